//! Panels about one agent: the hub agent, or the member agent of a cluster.

use super::model::{GREEN, ORANGE, Panel, RED, Row};

/// States of a view, each with its number in the query below.
const STATES: [(u8, &str, &str); 4] =
    [(0, "complete", GREEN), (1, "absent", "blue"), (2, "incomplete", ORANGE), (3, "unknown", RED)];

/// Agent whose series a row shows.
#[derive(Clone, Copy)]
pub(super) enum Agent {
    Hub,
    /// Agent of the member that a user selects.
    Member,
}

impl Agent {
    /// Label matchers of the agent's series.
    fn matchers(self) -> &'static str {
        match self {
            Self::Hub => "<hub>",
            Self::Member => r#"<member>,member=~"$member""#,
        }
    }

    /// Adds a query. `<agent>` in it are the label matchers of the agent.
    pub(super) fn query(self, panel: Panel, expression: &str, legend: &'static str) -> Panel {
        panel.query(&expression.replace("<agent>", self.matchers()), legend)
    }
}

/// Returns the numbers about the pods of an agent.
pub(super) fn pods(agent: Agent) -> Vec<Panel> {
    let up = Panel::number(
        "Pods",
        "the number of replicas.",
        "Prometheus does not reach a pod. Look at its state and its log.",
    )
    .alert("FleetnetAgentAbsent")
    .at_least(1.0);
    let leaders = Panel::number(
        "Leaders",
        "1 for each Lease.",
        "with 0, nothing is written: the pods cannot renew the Lease. With 2, a pod has lost the Lease and did not notice.",
    )
    .alert("FleetnetNoLeader")
    .at_least(1.0)
    .limit(RED, 2.0);
    let restarts = Panel::number(
        "Restarts",
        "0 in the time range.",
        "read the log of the previous container, `kubectl logs --previous`.",
    )
    .alert("FleetnetAgentRestarting")
    .limit(ORANGE, 1.0);
    let views = Panel::number(
        "Incomplete views",
        "0.",
        "the agent cannot read a kind, so it does not act on that kind. The states below show which kind.",
    )
    .alert("FleetnetViewIncomplete")
    .limit(ORANGE, 1.0);
    vec![
        agent.query(up, "sum(up{<agent>})", "pods"),
        agent.query(leaders, "sum by (lease) (fleetnet_leader{<agent>})", "{{lease}}").width(8),
        agent.query(restarts, "sum(changes(process_start_time_seconds{<agent>}[$__range]))", "restarts"),
        agent.query(
            views,
            r#"sum(max by (side, kind) (fleetnet_watch_state{<agent>,state=~"incomplete|unknown"}))"#,
            "views",
        ),
    ]
}

/// Returns rows about the watches, the queues and writes, and the resources of an agent.
pub(super) fn rows(agent: Agent, titles: [&'static str; 3]) -> Vec<Row> {
    let [watches, work, resources] = titles;
    vec![
        Row::open(watches, self::watches(agent)),
        Row::open(work, self::work(agent)),
        Row::open(resources, self::resources(agent)),
    ]
}

fn watches(agent: Agent) -> Vec<Panel> {
    let states = Panel::states(
        "State of the view of each kind",
        &STATES,
        "complete. Absent: the server does not have an optional kind, or denies it, and its feature is off.",
        "incomplete: the first list has not ended. Look for errors of the watch in the log, and at the agent's rights. Unknown: the \
         server lost the kind, so install the CRDs again.",
    )
    .alert("FleetnetViewIncomplete");
    let age = Panel::lines(
        "Time since the server sent anything on a watch",
        "at most 65 s, because each watch ends after 30 s to 60 s, and begins again.",
        "the connection to the server is broken, and the agent acts on outdated objects. Check network, proxy and API server.",
    )
    .alert("FleetnetWatchStale")
    .unit("s")
    .limit(RED, 120.0)
    .width(12);
    let restarts = Panel::lines(
        "Watches that failed",
        "none. A watch that ends in time, after 30 s to 60 s, does not count, nor does the absence of an optional kind.",
        "the log has the error. Reason `not_served`: the server does not have the kind, or denies it. Reason `cut`: a proxy or \
         the network ends connections.",
    )
    .width(12)
    .no_value("none");
    vec![
        agent.query(
            states,
            r#"max by (side, kind) (
                fleetnet_watch_state{<agent>,state="complete"} * 0
                or fleetnet_watch_state{<agent>,state="absent"}
                or fleetnet_watch_state{<agent>,state="incomplete"} * 2
                or fleetnet_watch_state{<agent>,state="unknown"} * 3
            )"#,
            "{{side}} {{kind}}",
        ),
        agent.query(age, "max by (side, kind) (fleetnet_watch_age_seconds{<agent>})", "{{side}} {{kind}}"),
        agent.query(
            restarts,
            r#"sum by (side, kind, reason) (
                increase(fleetnet_watch_restarts_total{<agent>,reason!~"ended|absent"}[$__rate_interval])
            )"#,
            "{{side}} {{kind}} {{reason}}",
        ),
    ]
}

fn work(agent: Agent) -> Vec<Panel> {
    let queues = Panel::lines(
        "Length of queues",
        "near 0, with short peaks. `left_to_leader` grows in a replica that does not lead.",
        "`retry`: writes fail, look at the results of writes. `slot`: writes wait for the API server, look at their durations.",
    )
    .alert("FleetnetRetriesPending");
    let oldest = Panel::lines(
        "Age of the oldest write that is not carried out",
        "0 to 1 s.",
        "a write fails again and again. The log names the object and the error of the server.",
    )
    .alert("FleetnetChangeStuck")
    .unit("s")
    .limit(RED, 120.0);
    let results = Panel::lines(
        "Writes per second by result",
        "done. A few conflicts are repeated at once.",
        "denied: the agent lacks a right. Refused: the server rejects the content. Failed: the server did not answer. The log names \
         the object.",
    )
    .alert("FleetnetWritesRefused")
    .unit("wps")
    .stacked();
    let durations = Panel::lines(
        "Duration of writes",
        "a p99 of less than 100 ms.",
        "the API server or etcd of this side is slow, or far away. Look at their own dashboards.",
    )
    .unit("s");
    let own = Panel::lines(
        "The agent's own part of a change",
        "a p99 of less than 1 ms of processor time, and a reaction within a few ms.",
        "the pod lacks CPU: compare with its CPU below, and raise its request.",
    )
    .unit("s");
    let events = Panel::lines(
        "Kubernetes Events per second by reason",
        "near 0. Exports, imports and their changes emit Events.",
        "docs/reference/events.md explains each reason and the next step.",
    )
    .unit("cps")
    .no_value("no Events");
    let durations = agent.query(
        durations,
        "histogram_quantile(0.5, sum by (le, side) (rate(fleetnet_write_duration_seconds_bucket{<agent>}[$__rate_interval])))",
        "p50 {{side}}",
    );
    let own = agent.query(
        own,
        "histogram_quantile(0.99, sum by (le) (rate(fleetnet_own_share_duration_seconds_bucket{<agent>}[$__rate_interval])))",
        "p99 of the processor time",
    );
    vec![
        agent.query(queues, "max by (queue) (fleetnet_queue_depth{<agent>})", "{{queue}}"),
        agent.query(oldest, "max by (side) (fleetnet_oldest_unfinished_change_seconds{<agent>})", "{{side}}"),
        agent.query(results, "sum by (result) (rate(fleetnet_writes_total{<agent>}[$__rate_interval]))", "{{result}}"),
        agent.query(
            durations,
            "histogram_quantile(0.99, sum by (le, side) (rate(fleetnet_write_duration_seconds_bucket{<agent>}[$__rate_interval])))",
            "p99 {{side}}",
        ),
        agent.query(
            own,
            "histogram_quantile(0.99, sum by (le) (rate(fleetnet_reaction_duration_seconds_bucket{<agent>}[$__rate_interval])))",
            "p99 of the time to the first write",
        ),
        agent.query(events, "sum by (reason) (rate(fleetnet_events_total{<agent>}[$__rate_interval]))", "{{reason}}"),
    ]
}

fn resources(agent: Agent) -> Vec<Panel> {
    let memory = Panel::lines(
        "Memory",
        "20 to 60 MiB for a small fleet.",
        "memory grows with the number of objects. Raise the limit of the Deployment before the pod is killed.",
    )
    .unit("bytes")
    .width(8);
    let cpu = Panel::lines(
        "CPU",
        "less than 0.05 cores without changes.",
        "look at the writes and Events above: something changes objects all the time.",
    )
    .width(8);
    let tasks = Panel::lines(
        "Tasks",
        "less than 200, and not growing from hour to hour.",
        "report tasks that grow for hours as a bug, with the log of the agent.",
    )
    .width(8);
    vec![
        agent.query(memory, "max by (pod) (process_resident_memory_bytes{<agent>})", "{{pod}}"),
        agent.query(cpu, "max by (pod) (rate(process_cpu_seconds_total{<agent>}[$__rate_interval]))", "{{pod}}"),
        agent.query(tasks, "max by (pod) (fleetnet_tasks{<agent>})", "{{pod}}"),
    ]
}
