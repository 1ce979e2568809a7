//! What is told of a fleet, as data: every view shows these, `--json` as they are.

use crate::args::Options;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// The first words.
    Starting {
        /// Of the fleet, beside the hub.
        members: u16,
        /// `memkube` or `kube-apiserver`.
        servers: &'static str,
        /// The scenario to be played.
        scenario: Option<&'static str>,
    },
    /// All clusters and agents run.
    Running {
        /// The hub first.
        clusters: Vec<String>,
        /// How many agents.
        agents: usize,
    },
    /// A kubeconfig was written.
    Kubeconfig {
        /// The cluster that it is for.
        cluster: String,
        /// The file, as the folder was named.
        path: String,
    },
    /// What became of an agent.
    Agent {
        /// `hub-agent`, `member-agent of member-1`.
        agent: String,
        /// What.
        state: AgentState,
        /// Why it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// What a ServiceExport says.
    Export {
        /// Where it is.
        cluster: String,
        /// `namespace/name`.
        service: String,
        /// Its conditions.
        #[serde(flatten)]
        export: Export,
    },
    /// What a MultiClusterService says and what its derived Service has.
    Import {
        /// Where it is.
        cluster: String,
        /// `namespace/name`.
        service: String,
        /// What was imported.
        #[serde(flatten)]
        import: Import,
    },
    /// A ServiceExport or a MultiClusterService is no longer there.
    Gone {
        /// `export` or `import`.
        what: &'static str,
        /// Where it was.
        cluster: String,
        /// `namespace/name`.
        service: String,
    },
    /// An imported slice has a changed endpoint.
    Arrival {
        /// Number of the change.
        change: u32,
        /// Where it was made.
        origin: String,
        /// Where it was seen.
        destination: String,
        /// From before the write in the one to the event in the other.
        milliseconds: f64,
    },
    /// A change of endpoints, once it has arrived or is given up.
    Change(Change),
    /// A change could not be made: somebody plays with the objects too.
    Trouble {
        /// Its number.
        change: u32,
        /// What the server says.
        why: String,
    },
    /// A step of a scenario.
    Step {
        /// Which.
        scenario: &'static str,
        /// What happens, in a sentence.
        text: String,
    },
    /// Latency between two clusters so far.
    Latency {
        /// Where changes were made.
        origin: String,
        /// Where they were seen.
        destination: String,
        /// How many, and how long they took.
        #[serde(flatten)]
        latency: Latency,
    },
    /// What all changes cost together.
    Cost {
        /// Changes that were counted: those that arrived.
        changes: u32,
        /// Changes that did not arrive everywhere.
        lost: u32,
        /// What the counted ones cost.
        writes: Writes,
        /// In words: `2 patch endpointsliceexports in hub by member-agent of member-1`.
        details: Vec<String>,
    },
    /// The end of what was asked for.
    Verdict {
        /// Whether all was as it should be.
        passed: bool,
        /// Whether every importer has exactly what is exported, whatever else was wrong.
        imported: bool,
        /// What was not, in sentences.
        wrong: Vec<String>,
    },
}

/// What became of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AgentState {
    /// It was killed by us.
    Killed,
    /// Another was started in its place.
    Restarted,
    /// It ended though nobody asked it to.
    Failed,
}

/// The conditions of a ServiceExport; none where it does not say yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Export {
    /// `Valid`.
    pub(crate) valid: Option<bool>,
    /// `Conflict`.
    pub(crate) conflict: Option<bool>,
}

/// What a cluster imports under one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Import {
    /// The MultiClusterService's condition `Valid`.
    pub(crate) valid: bool,
    /// The clusters whose endpoints are there.
    pub(crate) from: BTreeSet<String>,
    /// Imported slices.
    pub(crate) slices: usize,
    /// Endpoints in them.
    pub(crate) endpoints: usize,
}

/// A change of endpoints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Change {
    /// Its number, from 1.
    pub(crate) change: u32,
    /// Where it was made.
    pub(crate) cluster: String,
    /// In which slice.
    pub(crate) slice: String,
    /// The endpoint that came.
    pub(crate) address: String,
    /// How many clusters had it when this was told.
    pub(crate) arrived: usize,
    /// How many were to have it.
    pub(crate) importers: usize,
    /// When the last one had it; none where not all have.
    pub(crate) slowest_milliseconds: Option<f64>,
    /// What it cost; none where a server could not be asked.
    pub(crate) writes: Option<Writes>,
}

/// Writes of the agents, Leases and Events apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Writes {
    /// All.
    pub(crate) total: u64,
    /// By the cluster that was written to.
    pub(crate) by_cluster: BTreeMap<String, u64>,
}

/// How long changes took between two clusters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Latency {
    /// Changes that were timed.
    pub(crate) samples: usize,
    /// Half of them took no longer.
    pub(crate) p50_milliseconds: f64,
    /// Of a hundred, 99 took no longer; none of fewer than a hundred.
    pub(crate) p99_milliseconds: Option<f64>,
    /// None took longer.
    pub(crate) max_milliseconds: f64,
}

impl Event {
    /// What is about to be started.
    pub(crate) fn starting(options: &Options) -> Self {
        Self::Starting {
            members: options.members,
            servers: if options.real { "kube-apiserver" } else { "memkube" },
            scenario: options.scenario.map(|scenario| scenario.name()),
        }
    }
}
