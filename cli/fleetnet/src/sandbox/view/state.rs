//! State of the terminal view: a summary of all events so far. Does no I/O.

use super::lines;
use crate::limits::REMEMBERED;
use crate::sandbox::event::{AgentState, Change, Event, Export, Import, Writes};
use crate::sandbox::measure::{ByStream, Samples};
use chrono::{DateTime, Local};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Summary of all events so far.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) began: Option<DateTime<Local>>,
    /// Text that is shown while the fleet starts.
    starting: String,
    /// URL of the page for a browser.
    pub(super) page: Option<String>,
    /// Number of running clusters. The field `agents` has the number of running agents. Both are 0 while the fleet
    /// starts.
    pub(super) clusters: usize,
    pub(super) agents: usize,
    /// Names of the clusters, the hub first.
    pub(super) names: Vec<String>,
    /// API and scenario of the run.
    run: String,
    /// Time since when the hub is unreachable.
    pub(super) hub_down_since: Option<DateTime<Local>>,
    /// Names of agents that wait for their Leases.
    pub(super) waiting: BTreeSet<String>,
    pub(super) paused: bool,
    /// True if the user of the terminal can press keys.
    pub(super) has_keys: bool,
    /// True if the picture has the legend instead of the recent changes.
    pub(super) has_legend: bool,
    /// Names of agents that do not run now.
    pub(super) down: BTreeSet<String>,
    /// Number of restarts of agents so far.
    pub(super) restarts: u32,
    /// Observed exports, by Service and cluster.
    pub(super) exports: BTreeMap<(String, String), Export>,
    /// Observed imports, by Service and cluster.
    pub(super) imports: BTreeMap<(String, String), Import>,
    /// Latencies of each pair of exporting and importing cluster.
    pub(super) pairs: BTreeMap<(String, String), Samples>,
    /// Latencies of all pairs of two different clusters.
    pub(super) between: Samples,
    /// Latencies in members with a slice stream and in the member without one.
    pub(super) by_stream: ByStream,
    /// Descriptions of recent changes and steps, newest last.
    pub(super) happened: VecDeque<Happened>,
    /// Number of changes that reached all importers and have a known cost.
    pub(super) changes: u32,
    /// Number of changes that did not reach all importers.
    pub(super) lost: u32,
    pub(super) writes: Writes,
    /// Lines that explain how to reach the clusters with kubectl.
    pub(super) kubeconfigs: Vec<String>,
    pub(super) verdict: Option<(bool, String)>,
    pub(super) ended: Option<String>,
}

/// Description of an event, in a long and a short form.
#[derive(Clone, Debug)]
pub(super) struct Happened {
    pub(super) long: String,
    pub(super) short: String,
}

impl Happened {
    fn of(at: DateTime<Local>, event: &Event) -> Option<Self> {
        let long = lines::at(at, &lines::line(event)?);
        Some(Self { long, short: format!("{} {}", at.format("%H:%M:%S"), lines::short(event)?) })
    }
}

impl State {
    /// Adds an event to the summary.
    pub(super) fn take(&mut self, at: DateTime<Local>, event: Event) {
        self.began.get_or_insert(at);
        let happened = Happened::of(at, &event);
        match event {
            Event::Starting { api, scenario, .. } => {
                self.starting = lines::line(&event).unwrap_or_default();
                self.run =
                    scenario.map_or_else(String::new, |name| format!("scenario {name}, ")) + &format!("API {api}");
            }
            Event::Page { url } => self.page = Some(url),
            Event::Running { clusters, agents, .. } => {
                (self.clusters, self.agents, self.names) = (clusters.len(), agents, clusters);
            }
            Event::Hub { reachable } => {
                self.hub_down_since = (!reachable).then_some(at);
                self.remember(happened);
            }
            Event::Lease { agent, held } => {
                _ = if held { self.waiting.remove(&agent) } else { self.waiting.insert(agent) };
                self.remember(happened);
            }
            Event::Paused { paused } => {
                self.paused = paused;
                self.remember(happened);
            }
            Event::Export { cluster, service, export } => _ = self.exports.insert((service, cluster), export),
            Event::Import { cluster, service, import } => _ = self.imports.insert((service, cluster), import),
            Event::Arrival { origin, destination, milliseconds, slice_stream, .. } => {
                self.by_stream.add(slice_stream, milliseconds);
                if origin != destination {
                    self.between.add(milliseconds);
                }
                self.pairs.entry((origin, destination)).or_default().add(milliseconds);
            }
            Event::Gone { what, cluster, service } => {
                let key = (service, cluster);
                _ = if what == "export" {
                    self.exports.remove(&key).is_some()
                } else {
                    self.imports.remove(&key).is_some()
                };
                self.remember(happened);
            }
            Event::Change(change) => {
                self.count(&change);
                self.remember(happened);
            }
            Event::Agent { agent, state, .. } => {
                match state {
                    AgentState::Killed | AgentState::Failed => {
                        self.waiting.remove(&agent);
                        self.down.insert(agent);
                    }
                    AgentState::Restarted => {
                        self.down.remove(&agent);
                        self.restarts += 1;
                    }
                }
                self.remember(happened);
            }
            Event::Kubeconfig { .. } => self.kubeconfigs.extend(lines::line(&event)),
            Event::Commands { commands } => self.kubeconfigs.splice(0..0, commands).for_each(drop),
            Event::Step { .. } | Event::Trouble { .. } => self.remember(happened),
            Event::Verdict { passed, .. } => self.verdict = lines::line(&event).map(|line| (passed, line)),
            Event::Ended(_) => self.ended = lines::line(&event),
            // The first ones only summarize earlier events. With --packets there is no picture.
            Event::Latency { .. } | Event::SliceStream { .. } | Event::Cost { .. } => {}
            Event::Traffic(_) | Event::Requests { .. } | Event::Rollout { .. } => {}
        }
    }

    /// True if nothing is down and nobody waits.
    pub(super) fn is_well(&self) -> bool {
        self.down.is_empty() && self.waiting.is_empty() && self.hub_down_since.is_none()
    }

    /// Describes what is down first, and then the number of clusters and agents and the kind of run.
    pub(super) fn headline(&self) -> String {
        let Self { clusters, agents, run, .. } = self;
        if *clusters == 0 {
            return self.starting.clone();
        }
        let list = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let mut parts = Vec::new();
        if self.hub_down_since.is_some() {
            parts.push("HUB DOWN".to_owned());
        }
        if !self.down.is_empty() {
            parts.push(format!("{} of {agents} agents DOWN: {}", self.down.len(), list(&self.down)));
        }
        if !self.waiting.is_empty() {
            parts.push(format!("waits for its Lease: {}", list(&self.waiting)));
        }
        if self.paused {
            parts.push("PAUSED".to_owned());
        }
        parts.push(match self.restarts {
            0 => format!("{clusters} clusters, {agents} agents"),
            times => format!("{clusters} clusters, {agents} agents, restarted {times}x"),
        });
        if !run.is_empty() {
            parts.push(run.clone());
        }
        parts.join("   ")
    }

    fn count(&mut self, change: &Change) {
        if change.arrived < change.importers {
            self.lost += 1;
            return;
        }
        let Some(writes) = &change.writes else { return };
        self.changes += 1;
        self.writes.total += writes.total;
        for (cluster, times) in &writes.by_cluster {
            *self.writes.by_cluster.entry(cluster.clone()).or_default() += times;
        }
    }

    fn remember(&mut self, happened: Option<Happened>) {
        if self.happened.len() >= REMEMBERED {
            self.happened.pop_front();
        }
        self.happened.extend(happened);
    }
}
