//! Measurement of requests to an imported Service, on the fleet with real traffic of `testing/packets/`. Two clients
//! send the same requests: one in the exporting cluster itself, which is the baseline, and one in the importing
//! cluster.
//!
//! ```text
//! setup (fleet, two replicas of each agent) ── traffic (servers, clients, counts)
//! changes (one pod more, one pod less), rollouts, kills (of agents, during rollouts) ── imports (addresses in the importer, with times)
//! interruptions (frozen leaders, outages, restarts, changes by users), versions (agents of another version)
//! silence (of an exporting cluster whose pods answer), death (of an exporting cluster)
//! outside (node port, load balancer), overhead (of the way through a derived Service)
//! report (figures, targets)
//! ```

pub mod changes;
pub mod death;
pub mod imports;
pub mod interruptions;
pub mod kills;
pub mod outside;
pub mod overhead;
pub mod report;
pub mod rollouts;
pub mod setup;
pub mod silence;
pub mod traffic;
pub mod versions;

use anyhow::Context as _;
use packets::Settings;
use packets::interruptions::{Interruption, PRE_STOP};
use packets::pair::Pair;
use report::Figures;
use serde::Serialize;
use std::path::PathBuf;
use std::str::FromStr;

/// Results of the measurement.
pub type Report = crate::report::Report<Size, Figures>;

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
    const ALL: [Self; 2] = [Self::New, Self::Kept];

    fn as_str(self) -> &'static str {
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

/// preStop hooks in rolling updates and in interruptions if `--pre-stop` is not given.
const PRE_STOPS: [PreStop; 3] = [PreStop(Some(5)), PreStop(Some(2)), PreStop(None)];
const PRE_STOPS_OF_INTERRUPTIONS: [PreStop; 1] = [PreStop(Some(PRE_STOP))];
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
    fn numbers(&self) -> [u32; 4] {
        TIMES.map(|number| self.times.unwrap_or(number))
    }

    fn has(&self, scenario: Scenario) -> bool {
        self.scenario.contains(&scenario)
    }

    fn has_interruption(&self, interruption: Interruption) -> bool {
        self.has(Scenario::Interruptions) && self.interruption.contains(&interruption)
    }

    /// Returns the settings of the fleet in which all scenarios can happen.
    fn settings(&self) -> Settings {
        // Clients outside need a second node, and a cluster that dies or falls silent a second exporter.
        let nodes = if self.has(Scenario::Outside) { 2 } else { 1 };
        let has_second = self.has(Scenario::Death) || self.has_interruption(Interruption::ExporterSilent);
        let members = if has_second { 3 } else { 2 };
        let gates = self.has_interruption(Interruption::LeadersCutOff);
        Settings { nodes: vec![nodes; members], gates, ..Settings::default() }
    }
}

/// Measures the scenarios of `size` in one fleet, one after the other.
pub async fn measure(size: &Size) -> anyhow::Result<Report> {
    let has = |scenario| size.has(scenario);
    let mut pair = Pair::start("requests", size.settings()).await?;
    let mut figures = Figures::default();
    let [changes, rollouts, kills, others] = size.numbers();
    if has(Scenario::Ready) || has(Scenario::Deleted) {
        figures.rows.extend(changes::measure(&pair, size, changes).await?);
    }
    if has(Scenario::Rollout) {
        for connections in &size.connections {
            for pre_stop in size.pre_stop.as_deref().unwrap_or(&PRE_STOPS) {
                figures.rows.extend(rollouts::measure(&pair, size, *connections, *pre_stop, rollouts).await?);
            }
        }
    }
    if has(Scenario::Outside) {
        figures.rows.extend(outside::measure(&pair, size, others).await?);
    }
    if has(Scenario::Overhead) {
        figures.overheads = overhead::measure(&pair, size, others).await?;
    }
    if has(Scenario::Kills) {
        for successor in kills::SUCCESSORS {
            let (rows, killed) = kills::measure(&mut pair, size, successor, kills).await?;
            figures.rows.extend(rows);
            figures.kills.extend(killed);
        }
    }
    interrupt(&mut pair, size, others, &mut figures).await?;
    let targets = figures.targets();
    Ok(Report::new(size.clone(), figures, targets))
}

/// Measures the scenarios in which agents or clusters fail or change.
async fn interrupt(pair: &mut Pair, size: &Size, times: u32, figures: &mut Figures) -> anyhow::Result<()> {
    if size.has(Scenario::Interruptions) {
        for interruption in &size.interruption {
            if *interruption == Interruption::ExporterSilent {
                figures.rows.extend(silence::measure(pair, size, times).await?);
                continue;
            }
            for pre_stop in size.pre_stop.as_deref().unwrap_or(&PRE_STOPS_OF_INTERRUPTIONS) {
                figures.rows.extend(interruptions::measure(*interruption, pair, size, *pre_stop, times).await?);
            }
        }
    }
    if size.has(Scenario::Versions) {
        let older = size.older_agents.as_deref().context("the scenario versions needs --older-agents")?;
        figures.rows.extend(versions::measure(pair, size, older, times).await?);
    }
    if size.has(Scenario::Death) {
        let (rows, deaths) = death::measure(pair, size, times).await?;
        figures.rows.extend(rows);
        figures.deaths = deaths;
    }
    Ok(())
}
