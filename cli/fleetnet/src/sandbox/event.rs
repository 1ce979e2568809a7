//! Events of the sandbox, such as a finished import. Every view shows them, and `--json` prints them unchanged.

use crate::args::{Api, Options};
use chrono::{DateTime, Local};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// First event of a run.
    Starting {
        /// Number of members in the fleet, without the hub.
        members: u16,
        /// Kind of the API servers: `memkube` or `kube-apiserver`.
        servers: &'static str,
        /// API by which the members export and import: `fleet` or `multicluster`.
        api: &'static str,
        /// Name of the scenario; `None` if the run has no scenario.
        scenario: Option<&'static str>,
    },
    /// A page for a browser shows the fleet from now on.
    Page {
        /// URL of the page. Only users who know it can open the page.
        url: String,
    },
    /// All clusters and agents run.
    Running {
        /// Names of the clusters, the hub first.
        clusters: Vec<String>,
        /// Number of agents.
        agents: usize,
        /// Names of the members that use a slice stream.
        streams: Vec<String>,
    },
    /// A kubeconfig was written.
    Kubeconfig {
        /// Cluster that the kubeconfig connects to.
        cluster: String,
        /// Path of the file, relative if `--kubeconfigs` is relative.
        path: String,
    },
    /// Commands that a user can run in another shell, because there are kubeconfigs.
    Commands { commands: Vec<String> },
    /// The hub became unreachable for all agents and for kubectl, or reachable again.
    Hub { reachable: bool },
    /// An agent waits until it holds its Leases, or holds them.
    Lease {
        /// Name of the agent, such as `hub-agent` or `member-agent of member-1`.
        agent: String,
        held: bool,
    },
    /// A user has paused the changes of the sandbox by a key, or goes on with them.
    Paused { paused: bool },
    /// An agent was killed or restarted, or failed.
    Agent {
        /// Name of the agent, such as `hub-agent` or `member-agent of member-1`.
        agent: String,
        state: AgentState,
        /// Reason, if the agent failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A ServiceExport appeared or changed.
    Export {
        cluster: String,
        /// Service, as `namespace/name`.
        service: String,
        /// Conditions of the ServiceExport.
        #[serde(flatten)]
        export: Export,
    },
    /// A MultiClusterService, or a ServiceImport of the standard API, or its derived Service appeared or changed.
    Import {
        cluster: String,
        /// Service, as `namespace/name`.
        service: String,
        #[serde(flatten)]
        import: Import,
    },
    /// A ServiceExport, a MultiClusterService, or a ServiceImport of the standard API was removed.
    Gone {
        /// Kind of the removed object: `export` or `import`.
        what: &'static str,
        cluster: String,
        /// Service, as `namespace/name`.
        service: String,
    },
    /// A changed endpoint is visible in an imported slice.
    Arrival {
        /// Number of the change.
        change: u32,
        /// Exporting cluster, where the change was made.
        origin: String,
        /// Importing cluster, where the change arrived.
        destination: String,
        /// Time from before the write in the exporter until the watch event in the importer.
        milliseconds: f64,
        /// True if the importer used a slice stream. `None` if not all streams of the fleet were open.
        slice_stream: Option<bool>,
    },
    /// A change of endpoints reached all importers, or the time limit of the change passed.
    Change(Change),
    /// The changed object could not be written, for example because a user changed the same object.
    Trouble {
        /// Number of the change.
        change: u32,
        /// Message of the server.
        why: String,
    },
    /// A scenario has reached its next step, for example an interruption of the hub.
    Step {
        /// Name of the scenario.
        scenario: &'static str,
        /// Description of the step, in one sentence.
        text: String,
    },
    /// Latency between two clusters in this run.
    Latency {
        /// Exporting cluster.
        origin: String,
        /// Importing cluster.
        destination: String,
        /// Number of samples, and their percentiles.
        #[serde(flatten)]
        latency: Latency,
    },
    /// Latency of all changes in this run, in members with a slice stream and in the member without one.
    SliceStream { with_stream: Option<Latency>, without_stream: Option<Latency> },
    /// Total number of writes for all changes of the run.
    Cost {
        /// Number of changes that reached all importers. Only the writes of these changes are counted.
        changes: u32,
        /// Number of changes that did not reach all importers.
        lost: u32,
        /// Writes for the counted changes.
        writes: Writes,
        /// Writes of each kind in words, such as `2 patch endpointsliceexports in hub by member-agent of member-1`.
        details: Vec<String>,
    },
    /// With `--packets`, a client sends requests from now on.
    #[cfg_attr(not(feature = "real"), allow(dead_code, reason = "only builds with this feature have --packets"))]
    Traffic(Traffic),
    /// With `--packets`, outcomes of the requests since the last such event, each second.
    #[cfg_attr(not(feature = "real"), allow(dead_code, reason = "only builds with this feature have --packets"))]
    Requests {
        /// Requests in a second, rounded.
        requests_per_second: u64,
        /// Number of lost requests since the client began.
        lost_so_far: u64,
        #[serde(flatten)]
        counts: Counts,
    },
    /// Last event of a run with `--packets --once`: outcomes of the requests since the client began.
    #[cfg_attr(not(feature = "real"), allow(dead_code, reason = "only builds with this feature have --packets"))]
    Rollout {
        /// Cluster whose pods a rolling update replaced.
        cluster: String,
        /// True if no request was lost and each exporter has answered.
        passed: bool,
        #[serde(flatten)]
        counts: Counts,
    },
    /// Last event of a run with `--once`.
    Verdict {
        /// True if no agent failed and the clusters are in the expected state.
        passed: bool,
        /// True if every importer has exactly the exported endpoints, even if something else is wrong.
        imported: bool,
        /// Failures of agents and differences from the expected state, as sentences.
        wrong: Vec<String>,
        /// Name of the scenario; `None` if the run has no scenario.
        scenario: Option<&'static str>,
        /// API by which the members export and import: `fleet` or `multicluster`.
        api: &'static str,
    },
    /// Last event of a run that a user has stopped.
    Ended(Ended),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AgentState {
    /// The sandbox killed the agent.
    Killed,
    /// A new agent started in place of an earlier one.
    Restarted,
    /// The agent ended by itself.
    Failed,
}

/// Conditions of a ServiceExport. A condition is `None` until the agent sets it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Export {
    /// Status of the condition `Valid`.
    pub(crate) valid: Option<bool>,
    /// Status of the condition `Conflict`.
    pub(crate) conflict: Option<bool>,
}

/// Import of one Service in one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Import {
    /// Status of the condition `Valid` of the MultiClusterService, or `Ready` of the ServiceImport.
    pub(crate) valid: bool,
    /// Clusters whose endpoints are imported.
    pub(crate) from: BTreeSet<String>,
    /// Number of imported slices.
    pub(crate) slices: usize,
    /// Number of endpoints in the imported slices.
    pub(crate) endpoints: usize,
    /// Number of these endpoints that are terminating. Clients use them only if no other endpoint is ready.
    pub(crate) draining: usize,
    /// Number of these endpoints that are neither ready nor terminating.
    pub(crate) unready: usize,
}

/// End of a run that a user has stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Ended {
    /// Duration of the run in seconds.
    pub(crate) seconds: u64,
    /// True if the sandbox compared the members with what it made before the end. False if it stopped during its start.
    pub(crate) compared: bool,
    /// Differences of the members from what the sandbox made, as sentences. Objects that only users made do not count.
    pub(crate) differences: Vec<String>,
    /// Names of the clusters that the sandbox removed.
    pub(crate) clusters: Vec<String>,
    /// Number of kubeconfigs that the sandbox removed.
    pub(crate) kubeconfigs: usize,
    /// Name of the scenario that the stop interrupted, so that it has no verdict.
    pub(crate) interrupted: Option<&'static str>,
}

/// Change of one endpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Change {
    /// Number of the change, from 1.
    pub(crate) change: u32,
    /// Exporting cluster, where the change was made.
    pub(crate) cluster: String,
    /// Name of the changed slice.
    pub(crate) slice: String,
    /// Address of the new endpoint.
    pub(crate) address: String,
    /// Number of importers that the change had reached when the event was sent.
    pub(crate) arrived: usize,
    /// Number of importers that the change should reach.
    pub(crate) importers: usize,
    /// Latency of the slowest importer; `None` if the change did not reach all importers.
    pub(crate) slowest_milliseconds: Option<f64>,
    /// Median latency of the importers with a slice stream; `None` if there are none, or if not all streams were open.
    pub(crate) with_stream_milliseconds: Option<f64>,
    /// Median latency of the importers without a slice stream; `None` as above.
    pub(crate) without_stream_milliseconds: Option<f64>,
    /// Number of writes for the change; `None` if a server did not respond.
    pub(crate) writes: Option<Writes>,
}

/// Numbers of the agents' writes. Writes of Leases and Events are not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Writes {
    pub(crate) total: u64,
    /// Number of writes in each cluster.
    pub(crate) by_cluster: BTreeMap<String, u64>,
}

/// Latency of changes from one cluster to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Latency {
    /// Number of timed changes.
    pub(crate) samples: usize,
    pub(crate) p50_milliseconds: f64,
    /// 99th percentile, or `None` below 100 samples.
    pub(crate) p99_milliseconds: Option<f64>,
    pub(crate) max_milliseconds: f64,
}

/// Client of `--packets`, and the Service that it uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Traffic {
    /// Service, as `namespace/name`.
    pub(crate) service: String,
    /// Clusters that export the Service.
    pub(crate) exporters: Vec<String>,
    /// Cluster that imports the Service and has the client.
    pub(crate) importer: String,
    /// Address of the import.
    pub(crate) address: String,
    /// Pod of the client, as `namespace/name`.
    pub(crate) client: String,
    pub(crate) requests_per_second: u32,
    /// Command that sends one more request from the client's pod; `None` without kubeconfigs.
    pub(crate) command: Option<String>,
}

/// Outcomes of requests in a period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    /// Number of requests with an outcome.
    pub(crate) requests: u64,
    /// Number of requests without a right answer.
    pub(crate) lost: u64,
    /// Lost requests by the kind of failure.
    pub(crate) lost_by_kind: BTreeMap<String, u64>,
    /// Answers by the cluster of the pod that answered.
    pub(crate) answers_by_cluster: BTreeMap<String, u64>,
}

impl Event {
    /// Returns the first event of a run with these options.
    pub(crate) fn starting(options: &Options) -> Self {
        Self::Starting {
            members: options.members(),
            servers: if options.real || options.packets { "kube-apiserver" } else { "memkube" },
            api: if options.packets { Api::Mcs } else { options.api }.name(),
            scenario: options.scenario.map(|scenario| scenario.name()),
        }
    }
}

/// Name of the hub cluster in events.
pub(crate) const HUB: &str = "hub";

/// Event and its time.
#[derive(Clone, Debug)]
pub(super) struct TimedEvent {
    pub(super) at: DateTime<Local>,
    pub(super) event: Event,
}
