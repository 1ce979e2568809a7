//! Size of the measurement: scenarios, connections, hooks and numbers.

use anyhow::Context as _;
use packets::Settings;
use packets::interruptions::Interruption;
use serde::Serialize;
use std::path::PathBuf;
use std::str::FromStr;

/// What is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Scenario {
    /// Time from a pod's readiness until its first answer.
    Ready,
    /// Time from a pod's deletion until the last request to it.
    Deleted,
    /// Requests lost in rolling updates.
    Rollout,
    /// Requests lost in rolling updates in which an agent is killed.
    Kills,
    /// Requests lost while agents, API servers or users interrupt the work of the fleet.
    Interruptions,
    /// Requests from outside of all clusters that are lost in rolling updates.
    Outside,
    /// Requests lost when an exporting cluster dies, while another one has endpoints.
    Death,
    /// Requests lost in a downgrade and an upgrade of the agents. Needs `--older-agents`.
    Versions,
    /// Cost of the way through a derived Service.
    Overhead,
}

impl Scenario {
    /// Scenarios that need nothing that a user must give.
    const ALL: [Self; 8] = [
        Self::Ready,
        Self::Deleted,
        Self::Rollout,
        Self::Kills,
        Self::Interruptions,
        Self::Outside,
        Self::Death,
        Self::Overhead,
    ];
}

/// Connections of clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Connections {
    /// A new one for each request.
    New,
    /// The same connections for all requests. A connection that ends is replaced.
    Kept,
}

impl Connections {
    pub(super) const ALL: [Self; 2] = [Self::New, Self::Kept];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Kept => "kept",
        }
    }
}

/// preStop hook of pods: seconds that it sleeps, or `none`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct PreStop(pub Option<u32>);

impl FromStr for PreStop {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let seconds = || text.parse().map(Some).with_context(|| format!("{text}: a number of seconds, or none"));
        Ok(Self(if text == "none" { None } else { seconds()? }))
    }
}

/// How much there is of everything.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub struct Size {
    /// What is measured.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Scenario::ALL)]
    pub scenario: Vec<Scenario>,
    /// Number of changes, of rolling updates, of kills of each kind, and of everything else. Without it: 50, 200, 12
    /// and 3.
    #[arg(long)]
    pub times: Option<u32>,
    /// Requests in a second of each client.
    #[arg(long, default_value_t = 500)]
    pub rate: u32,
    /// Pods of a rolling update.
    #[arg(long, default_value_t = 10)]
    pub pods: u32,
    /// Seconds that the preStop hooks of the pods in rolling updates and interruptions sleep; `none` for no hook.
    /// Without it: 5, 2 and none in rolling updates, and 10 in interruptions. In interruptions with less than 10, lost
    /// requests are only counted.
    #[arg(long, value_delimiter = ',')]
    pub pre_stop: Option<Vec<PreStop>>,
    /// Connections of the clients in rolling updates, and when an exporting cluster dies or falls silent.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Connections::ALL)]
    pub connections: Vec<Connections>,
    /// Seconds for which the hub does not answer. Other servers are not down for longer, and leaders not frozen or cut
    /// off.
    #[arg(long, default_value_t = 300)]
    pub outage: u64,
    /// Interruptions to measure.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Interruption::ALL)]
    pub interruption: Vec<Interruption>,
    /// Folder with the programs hub-agent and member-agent of an older version.
    #[arg(long)]
    pub older_agents: Option<PathBuf>,
}

/// Numbers of changes, rolling updates, kills and others if `--times` is not given.
const TIMES: [u32; 4] = [50, 200, 12, 3];

impl Size {
    /// Returns the size of the smoke run, which runs every step in a short time.
    #[must_use]
    pub fn smoke() -> Self {
        Self {
            scenario: Scenario::ALL.to_vec(),
            times: Some(1),
            rate: 100,
            pods: 4,
            pre_stop: Some(vec![PreStop(Some(5))]),
            connections: Connections::ALL.to_vec(),
            outage: 10,
            interruption: Interruption::ALL.to_vec(),
            older_agents: None,
        }
    }

    /// Returns the numbers of changes, rolling updates, kills and others.
    pub(super) fn numbers(&self) -> [u32; 4] {
        TIMES.map(|number| self.times.unwrap_or(number))
    }

    pub(super) fn has(&self, scenario: Scenario) -> bool {
        self.scenario.contains(&scenario)
    }

    fn has_interruption(&self, interruption: Interruption) -> bool {
        self.has(Scenario::Interruptions) && self.interruption.contains(&interruption)
    }

    /// Returns the settings of the fleet in which all scenarios can happen.
    pub(super) fn settings(&self) -> Settings {
        // Clients outside need a second node, and a cluster that dies or falls silent a second exporter.
        let nodes = if self.has(Scenario::Outside) { 2 } else { 1 };
        let has_second = self.has(Scenario::Death) || self.has_interruption(Interruption::ExporterSilent);
        let members = if has_second { 3 } else { 2 };
        let gates = self.has_interruption(Interruption::LeadersCutOff);
        Settings { nodes: vec![nodes; members], gates, ..Settings::default() }
    }
}
