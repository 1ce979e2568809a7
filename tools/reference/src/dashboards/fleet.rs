//! Dashboard of the whole fleet, with the hub agent.

use super::agent::{self, Agent};
use super::model::{Column, Dashboard, GREEN, ORANGE, Panel, RED, Row};

/// Address of the dashboard of the member in a cell.
const TO_MEMBER: &str = "/d/fleetnet-member/fleetnet-member?var-datasource=${datasource}&${hub_job:queryparam}\
                         &${member_job:queryparam}&var-member=${__value.text}";

pub(super) fn dashboard() -> Dashboard {
    let mut rows = vec![
        Row::open("Members", members()),
        Row::open("Agents of all clusters", agents()),
        Row::open("Exports and imports", exports_and_imports()),
        Row::open("Latency of changes", latency()),
        Row::open("Writes of all agents", writes()),
        Row::open("Slice streams", slice_streams()).close(),
        Row::open("Hub agent", agent::pods(Agent::Hub)).close(),
    ];
    let of_hub_agent = agent::rows(
        Agent::Hub,
        ["Watches of the hub agent", "Queues and writes of the hub agent", "Resources of the hub agent"],
    );
    rows.extend(of_hub_agent.into_iter().map(Row::close));
    Dashboard {
        uid: "fleetnet-fleet",
        title: "fleetnet / Fleet",
        description: "Members, agents, exports and imports, and the latency between all clusters.",
        variables: Vec::new(),
        members: "",
        rows,
    }
}

fn members() -> Vec<Panel> {
    vec![
        Panel::number(
            "Members",
            "all members that joined and did not leave.",
            "a member that was never here has not connected: `fleetnet check` says why.",
        )
        .query("count(max by (member) (fleetnet_member_last_renewal_age_seconds{<hub>}))", "members"),
        Panel::number(
            "Silent members",
            "0.",
            "the hub agent has heard nothing from them for 60 s. The table names them. Check their agents and networks.",
        )
        .alert("FleetnetMemberSilent")
        .query("sum(max by (member) (fleetnet_member_last_renewal_age_seconds{<hub>}) > bool 60)", "members")
        .limit(RED, 1.0),
        Panel::table(
            "Members now",
            "a heartbeat every 10 s, a clock that differs by less than 2 s, the same version everywhere.",
            "click on a member to see its agent.",
        )
        .alert("FleetnetMemberSilent")
        .query("max by (member) (fleetnet_member_last_renewal_age_seconds{<hub>})", "")
        .query("max by (member) (fleetnet_member_clock_offset_seconds{<hub>})", "")
        .query(r#"max by (member, version) (fleetnet_build_info{<member>})"#, "")
        .column(Column { link: Some(TO_MEMBER), ..Column::text("member", "Member") })
        .column(Column {
            unit: "s",
            thresholds: &[(GREEN, None), (RED, Some(60.0))],
            ..Column::text("Value #A", "Since the last heartbeat")
        })
        .column(Column {
            unit: "s",
            thresholds: &[(RED, None), (GREEN, Some(-2.0)), (RED, Some(2.0))],
            ..Column::text("Value #B", "Clock minus clock of the hub")
        })
        .column(Column::text("version", "Version"))
        .width(16),
        Panel::lines(
            "Time since the last heartbeat",
            "at most 10 s.",
            "one member: check its agent and its way to the hub. All members: check the hub agent and the API server of the hub.",
        )
        .alert("FleetnetMemberSilent")
        .query("max by (member) (fleetnet_member_last_renewal_age_seconds{<hub>})", "{{member}}")
        .unit("s")
        .limit(RED, 60.0)
        .width(12),
        Panel::lines(
            "Clock of the member minus clock of the hub",
            "between -0.1 s and 0.1 s. A difference of two clocks is in every latency sample of this pair.",
            "check NTP on the nodes of the member's agent.",
        )
        .alert("FleetnetClockSkew")
        .query("max by (member) (fleetnet_member_clock_offset_seconds{<hub>})", "{{member}}")
        .unit("s")
        .at_most_plus_or_minus(2.0)
        .width(12),
    ]
}

fn agents() -> Vec<Panel> {
    vec![
        Panel::number(
            "Clusters without an agent",
            "0.",
            "Prometheus reaches no pod of an agent. The panel about pods shows which. Look at the pod and its log.",
        )
        .alert("FleetnetAgentAbsent")
        .query(r#"sum(max by (job, member) (up{<agents>}) == bool 0)"#, "clusters")
        .limit(RED, 1.0),
        Panel::number(
            "Leases without one leader",
            "0.",
            "without a leader, nothing is written. With two leaders, a pod has lost its Lease and did not notice.",
        )
        .alert("FleetnetNoLeader")
        .query("sum(sum by (job, member, lease) (fleetnet_leader{<agents>}) != bool 1)", "Leases")
        .limit(RED, 1.0),
        Panel::number(
            "Incomplete views of all agents",
            "0.",
            "an agent cannot read a kind, so it does not act on that kind. The dashboard of the member shows which.",
        )
        .alert("FleetnetViewIncomplete")
        .query(
            r#"sum(max by (job, member, side, kind) (fleetnet_watch_state{<agents>,state=~"incomplete|unknown"}))"#,
            "views",
        )
        .limit(ORANGE, 1.0),
        Panel::number(
            "Undecodable objects, bugs and lost Events",
            "0 since the start of the agents.",
            "the log of the agent names the object. A broken invariant is a bug of the agent: report it with the log.",
        )
        .alert("FleetnetObjectUnreadable")
        .query("sum(fleetnet_unreadable_objects_total{<agents>}) or vector(0)", "objects")
        .query("sum(fleetnet_broken_invariants_total{<agents>}) or vector(0)", "broken invariants")
        .query("sum(fleetnet_events_dropped_total{<agents>})", "lost Events")
        .limit(ORANGE, 1.0)
        .width(12),
        Panel::lines(
            "Pods that Prometheus reaches",
            "the number of replicas of each agent.",
            "look at the pod and its log. A NetworkPolicy can also block Prometheus.",
        )
        .alert("FleetnetAgentAbsent")
        .query(r#"sum by (job, member) (up{<agents>})"#, "{{job}} {{member}}")
        .width(12),
        Panel::table("Versions", "one version.", "an upgrade is not finished. Upgrade the hub agent first.")
            .alert("FleetnetVersionSkew")
            .query("count by (job, version, revision) (fleetnet_build_info{<agents>})", "")
            .column(Column::text("job", "Agent"))
            .column(Column::text("version", "Version"))
            .column(Column::text("revision", "Revision"))
            .column(Column::text("Value", "Pods")),
    ]
}

fn exports_and_imports() -> Vec<Panel> {
    vec![
        Panel::lines(
            "Exports by state",
            "accepted.",
            "conflicted: the export has other ports than the accepted exports. Denied: the namespace of the hub forbids it. \
             `fleetnet explain` names both sides.",
        )
        .query("max by (state) (fleetnet_exports{<hub>})", "{{state}}"),
        Panel::lines(
            "Imports by state",
            "granted.",
            "pending: the claim waits for an export, for another member's exclusive claim, or for a right. `fleetnet explain` says \
             for which.",
        )
        .query("max by (state) (fleetnet_imports{<hub>})", "{{state}}"),
        Panel::lines(
            "Blocked objects by reason",
            "none.",
            "docs/reference/events.md explains each reason. The table shows where.",
        )
        .alert("FleetnetHindered")
        .query("sum by (reason) (max by (job, member, kind, reason) (fleetnet_hindrances{<agents>}))", "{{reason}}")
        .no_value("none"),
        Panel::table(
            "Blocked objects now",
            "none.",
            "docs/reference/events.md explains each reason. `fleetnet explain` names the Service, the cause and the next step.",
        )
        .alert("FleetnetHindered")
        .query("max by (job, member, kind, reason) (fleetnet_hindrances{<agents>}) > 0", "")
        .column(Column::text("job", "Agent"))
        .column(Column { link: Some(TO_MEMBER), ..Column::text("member", "Member") })
        .column(Column::text("kind", "Kind"))
        .column(Column::text("reason", "Reason"))
        .column(Column::text("Value", "Objects"))
        .no_value("none")
        .width(20),
        Panel::number(
            "Conflicted exports",
            "0.",
            "the export has other ports than the accepted exports of this Service, so nobody imports from it. `fleetnet explain` \
             names both.",
        )
        .query(r#"max(fleetnet_exports{<hub>,state="conflicted"})"#, "exports")
        .limit(ORANGE, 1.0),
    ]
}

fn latency() -> Vec<Panel> {
    const SLOW: &str =
        "one row or column: look at that member. All: look at the hub agent and the API server of the hub.";
    vec![
        Panel::matrix(
            "p99 from the member in the row to the member in the column",
            "origin_cluster_id",
            "destination_cluster_id",
            "less than 750 ms in the time range.",
            SLOW,
        )
        .alert("FleetnetChangeBudgetBurn")
        .query(
            r#"histogram_quantile(0.99, sum by (le, origin_cluster_id, destination_cluster_id) (
                rate(<latency>_bucket{<member>,is_first_import="false"}[$__range])
            )) > 0"#,
            "",
        )
        .unit("ms")
        .limit(ORANGE, 500.0)
        .limit(RED, 750.0),
        Panel::number(
            "Error budget left",
            "more than 0 %. The budget is 1 % of the changes of the time range: so many may take longer than 750 ms.",
            SLOW,
        )
        .alert("FleetnetChangeBudgetBurn")
        .query(
            r#"1 - (
                1 - sum(increase(<latency>_bucket{<member>,is_first_import="false",<target>}[$__range]))
                / sum(increase(<latency>_count{<member>,is_first_import="false"}[$__range]))
            ) / 0.01 > -Inf"#,
            "left",
        )
        .unit("percentunit")
        .at_least(0.0)
        .no_value("no changes"),
        Panel::lines("Share of changes slower than 750 ms", "less than 1 %.", SLOW)
            .alert("FleetnetChangeBudgetBurn")
            .query(
                r#"1 - sum by (destination_cluster_id) (
                    rate(<latency>_bucket{<member>,is_first_import="false",<target>}[$__rate_interval])
                ) / sum by (destination_cluster_id) (
                    rate(<latency>_count{<member>,is_first_import="false"}[$__rate_interval])
                )"#,
                "to {{destination_cluster_id}}",
            )
            .unit("percentunit")
            .limit(RED, 0.01)
            .width(10),
        Panel::lines(
            "Changes per second into each member",
            "as many as the imported Services change.",
            "with 0 although endpoints change, use `fleetnet explain` for the Service.",
        )
        .query(
            "sum by (destination_cluster_id) (rate(<latency>_count{<member>}[$__rate_interval]))",
            "to {{destination_cluster_id}}",
        )
        .unit("cps")
        .width(10),
    ]
}

fn slice_streams() -> Vec<Panel> {
    vec![
        Panel::number(
            "Members with a slice stream",
            "all members that use the stream.",
            "`kubectl get memberagents -A -o wide` shows why a member has none. Changes arrive as objects meanwhile.",
        )
        .alert("FleetnetSliceStreamDown")
        .query("sum(fleetnet_slice_streams{<hub>})", "members"),
        Panel::lines(
            "p99 time until a member has imported a change over its stream",
            "less than 0.1 s.",
            "look at the write durations of this member's agent. After 1 s, the hub agent writes the object.",
        )
        .query(
            "histogram_quantile(0.99, sum by (le, member) (\
             rate(fleetnet_slice_stream_delay_seconds_bucket{<hub>}[$__rate_interval])))",
            "{{member}}",
        )
        .unit("s")
        .width(10),
        Panel::lines(
            "Streams per second that are refused or end with an error",
            "0.",
            "the log of the hub agent and the MemberAgents have the reasons.",
        )
        .alert("FleetnetSliceStreamDown")
        .query("sum(rate(fleetnet_slice_stream_refusals_total{<hub>}[$__rate_interval])) or vector(0)", "streams")
        .width(10),
        Panel::lines(
            "Messages of slice streams per second",
            "a preview for each change and importer, and as many acknowledgements.",
            "previews without acknowledgements: the members do not import them, and their objects are written after 1 s.",
        )
        .query(
            "sum by (direction, message) (rate(fleetnet_slice_stream_messages_total{<hub>}[$__rate_interval]))",
            "{{direction}} {{message}}",
        )
        .width(12),
        Panel::lines(
            "Maximum error of the measured clock of a member",
            "a few ms: half of the round trip of a probe.",
            "the network to this member is slow. Corrected latencies are wrong by at most this time.",
        )
        .query("max by (member) (fleetnet_slice_stream_clock_uncertainty_seconds{<hub>})", "{{member}}")
        .unit("s")
        .width(12),
    ]
}

fn writes() -> Vec<Panel> {
    vec![
        Panel::lines(
            "Writes per second of all agents by result",
            "done. A few conflicts are repeated at once.",
            "denied: an agent lacks a right. Refused: a server rejects the content. Failed: a server did not answer.",
        )
        .alert("FleetnetWritesRefused")
        .query("sum by (result) (rate(fleetnet_writes_total{<agents>}[$__rate_interval]))", "{{result}}")
        .unit("wps")
        .stacked(),
        Panel::lines(
            "Share of writes that are not done",
            "less than 5 %.",
            "look at the results on the dashboard of the member, and at the log of its agent.",
        )
        .alert("FleetnetWritesFailing")
        .query(
            r#"1 - sum by (job, member) (rate(fleetnet_writes_total{<agents>,result="done"}[$__rate_interval]))
            / sum by (job, member) (rate(fleetnet_writes_total{<agents>}[$__rate_interval]))"#,
            "{{job}} {{member}}",
        )
        .unit("percentunit")
        .limit(RED, 0.05),
        Panel::lines(
            "Age of the oldest write of each agent that is not carried out",
            "0 to 1 s.",
            "a write fails again and again, so a change is stuck. The log of the agent names the object and the error.",
        )
        .alert("FleetnetChangeStuck")
        .query(
            "max by (job, member, side) (fleetnet_oldest_unfinished_change_seconds{<agents>})",
            "{{job}} {{member}} {{side}}",
        )
        .unit("s")
        .limit(RED, 120.0),
    ]
}
