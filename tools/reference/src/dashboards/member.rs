//! Dashboard of one member and its agent.

use super::agent::{self, Agent};
use super::model::{Column, Dashboard, Panel, RED, Row, Selection, Variable};

pub(super) fn dashboard() -> Dashboard {
    let mut rows = vec![
        Row::open("Member", agent::pods(Agent::Member).into_iter().chain(of_hub()).collect()),
        Row::open("Exports and imports", exports_and_imports()),
    ];
    rows.extend(agent::rows(Agent::Member, ["Watches", "Queues and writes", "Resources"]));
    rows.push(Row::open("EndpointSlice controller (--endpointslices)", slices()));
    Dashboard {
        uid: "fleetnet-member",
        title: "fleetnet / Member",
        description: "One member: its agent, its exports and imports.",
        variables: vec![Variable {
            name: "member",
            label: "Member",
            query: "label_values(fleetnet_build_info{<member>}, member)",
            selection: Selection::One,
        }],
        members: r#"member=~"$member""#,
        rows,
    }
}

/// Returns panels about the member's connection to the hub.
fn of_hub() -> Vec<Panel> {
    vec![
        Panel::number(
            "Since the last heartbeat",
            "at most 10 s.",
            "the hub agent hears nothing from the member. Check that the member agent runs and reaches the hub.",
        )
        .alert("FleetnetMemberSilent")
        .query(r#"max(fleetnet_member_last_renewal_age_seconds{<the-hub>,member=~"$member"})"#, "")
        .unit("s")
        .limit(RED, 60.0),
        Panel::number(
            "Clock minus clock of the hub",
            "between -0.1 s and 0.1 s.",
            "latencies from and to this member are wrong by this time. Check NTP on the nodes of the agent.",
        )
        .query(r#"max(fleetnet_member_clock_offset_seconds{<the-hub>,member=~"$member"})"#, "")
        .unit("s")
        .at_most_plus_or_minus(2.0),
        Panel::number(
            "Until the token for the hub expires",
            "more than half of its life, which is 30 days, because the agent renews the token every 8 hours.",
            "read the agent's log about the renewal. If the token has expired, `fleetnet join` with --apply repairs the member.",
        )
        .alert("FleetnetHubTokenExpiresSoon")
        .query(
            r#"min(fleetnet_hub_token_expiry_timestamp_seconds{<member>,member=~"$member"} > 0) - time()"#,
            "",
        )
        .unit("s")
        .at_least(86400.0)
        .no_value("never"),
        Panel::number(
            "Slice stream",
            "1 if the member uses a slice stream, else 0.",
            "`spec.sliceStream` of the MemberAgent says why the member has no stream. Changes arrive as objects meanwhile.",
        )
        .alert("FleetnetSliceStreamDown")
        .query(r#"max(fleetnet_slice_stream_connected{<member>,member=~"$member"})"#, ""),
        Panel::number(
            "Last renewal of the token failed",
            "0.",
            "read the agent's log about the renewal: it names the right or the Secret that is missing.",
        )
        .alert("FleetnetHubTokenExpires")
        .query(r#"max(fleetnet_hub_token_renewal_failing{<member>,member=~"$member"})"#, "")
        .limit(RED, 1.0)
        .no_value("not renewed"),
    ]
}

fn exports_and_imports() -> Vec<Panel> {
    let quantile = |quantile: &str| {
        format!(
            "histogram_quantile({quantile}, sum by (le, origin_cluster_id) (rate(<latency>_bucket\
             {{<member>,destination_cluster_id=~\"$member\",is_first_import=\"false\"}}[$__rate_interval])))"
        )
    };
    vec![
        Panel::lines(
            "p99 latency of changes into this member",
            "less than 750 ms.",
            "one line: look at the dashboard of that pair. All lines: look at the write durations of this agent and at its clock.",
        )
        .alert("FleetnetChangeBudgetBurn")
        .query(&quantile("0.99"), "{{origin_cluster_id}}")
        .unit("ms")
        .limit(RED, 750.0),
        Panel::lines(
            "Changes per second into this member",
            "as many as the imported Services change.",
            "with 0 although endpoints change, use `fleetnet explain` for the Service.",
        )
        .query(
            "sum by (origin_cluster_id) (rate(<latency>_count{<member>,destination_cluster_id=~\"$member\"}[$__rate_interval]))",
            "{{origin_cluster_id}}",
        )
        .unit("cps"),
        Panel::lines(
            "p99 time until the hub decides an export",
            "less than 1 s.",
            "look at the hub agent on the dashboard of the fleet, and at the write durations of this agent.",
        )
        .query(
            "histogram_quantile(0.99, sum by (le) (rate(fleet_networking_service_export_duration_milliseconds_bucket\
             {<member>,origin_cluster_id=~\"$member\"}[$__rate_interval])))",
            "p99",
        )
        .unit("ms"),
        Panel::table(
            "Blocked objects now",
            "none.",
            "docs/reference/events.md explains each reason. `fleetnet explain` names the Service, the cause and the next step.",
        )
        .alert("FleetnetHindered")
        .query(
            r#"max by (kind, reason) (fleetnet_hindrances{<member>,member=~"$member"}) > 0"#,
            "",
        )
        .column(Column::text("kind", "Kind"))
        .column(Column::text("reason", "Reason"))
        .column(Column::text("Value", "Objects"))
        .no_value("none")
        .width(24),
    ]
}

fn slices() -> Vec<Panel> {
    vec![
        Panel::states(
            "Controller",
            &[(0, "another controller makes the slices", "text"), (1, "this agent makes the slices", "green"), (2, "two replicas make slices", RED)],
            "one state, as --endpointslices says.",
            "if it changes often, another controller starts and stops. docs/how-to/endpointslices.md explains the takeover.",
        )
        .alert("FleetnetEndpointSlicesFlapping")
        .query(r#"sum by (member) (fleetnet_endpointslices_serving{<member>,member=~"$member"})"#, "{{member}}")
        .height(4),
        Panel::lines(
            "EndpointSlices",
            "both lines are close to each other.",
            "more slices than desired: the controller packs endpoints again when a Service changes, so no action is needed.",
        )
        .query(r#"sum(endpoint_slice_controller_num_endpoint_slices{<member>,member=~"$member"})"#, "slices")
        .query(
            r#"sum(endpoint_slice_controller_desired_endpoint_slices{<member>,member=~"$member"})"#,
            "desired",
        )
        .no_value("off"),
        Panel::lines(
            "Changes of EndpointSlices per second",
            "as many as pods become ready or go.",
            "many changes without rollouts: pods fail their readiness probes.",
        )
        .query(
            r#"sum by (operation) (rate(endpoint_slice_controller_changes{<member>,member=~"$member"}[$__rate_interval]))"#,
            "{{operation}}",
        )
        .unit("wps")
        .no_value("off"),
        Panel::lines(
            "Syncs of Services per second",
            "success.",
            "error: look at the results of writes above, and at the agent's log.",
        )
        .query(
            r#"sum by (result) (rate(endpoint_slice_controller_syncs{<member>,member=~"$member"}[$__rate_interval]))"#,
            "{{result}}",
        )
        .unit("ops")
        .no_value("off"),
    ]
}
