//! State of the terminal view: a summary of all events so far. Does no I/O.

use super::lines;
use crate::limits::REMEMBERED;
use crate::sandbox::event::{AgentState, Change, Event, Export, Import, Writes};
use crate::sandbox::measure::Samples;
use chrono::{DateTime, Local};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Summary of all events so far.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) began: Option<DateTime<Local>>,
    /// Text that is shown while the fleet starts.
    starting: String,
    /// Number of running clusters. The field `agents` has the number of running agents. Both are 0 while the fleet starts.
    pub(super) clusters: usize,
    pub(super) agents: usize,
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
    /// Descriptions of recent changes and steps, newest last.
    pub(super) happened: VecDeque<Happened>,
    /// Number of changes that reached all importers and have a known cost.
    pub(super) changes: u32,
    /// Number of changes that did not reach all importers.
    pub(super) lost: u32,
    pub(super) writes: Writes,
    /// Lines that explain how to reach the clusters with kubectl.
    pub(super) kubeconfigs: Vec<String>,
    pub(super) verdict: Option<(bool, Vec<String>)>,
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
            Event::Starting { .. } => self.starting = lines::line(&event).unwrap_or_default(),
            Event::Running { clusters, agents } => (self.clusters, self.agents) = (clusters.len(), agents),
            Event::Export { cluster, service, export } => _ = self.exports.insert((service, cluster), export),
            Event::Import { cluster, service, import } => _ = self.imports.insert((service, cluster), import),
            Event::Arrival { origin, destination, milliseconds, .. } => {
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
                    AgentState::Killed | AgentState::Failed => _ = self.down.insert(agent),
                    AgentState::Restarted => {
                        self.down.remove(&agent);
                        self.restarts += 1;
                    }
                }
                self.remember(happened);
            }
            Event::Kubeconfig { .. } => self.kubeconfigs.extend(lines::line(&event)),
            Event::Step { .. } | Event::Trouble { .. } => self.remember(happened),
            Event::Verdict { passed, wrong, .. } => self.verdict = Some((passed, wrong)),
            // These events only summarize earlier events.
            Event::Latency { .. } | Event::Cost { .. } => {}
            // With --packets there is no picture.
            Event::Traffic(_) | Event::Requests { .. } | Event::Rollout { .. } => {}
        }
    }

    /// Describes the number of clusters and agents, and the agents that are down.
    pub(super) fn headline(&self) -> String {
        let Self { clusters, agents, .. } = self;
        if *clusters == 0 {
            return self.starting.clone();
        }
        let restarts = match self.restarts {
            0 => String::new(),
            times => format!(", restarted {times}x"),
        };
        if self.down.is_empty() {
            return format!("{clusters} clusters, {agents} agents{restarts}");
        }
        let names: Vec<&str> = self.down.iter().map(String::as_str).collect();
        format!("{clusters} clusters, {} of {agents} agents DOWN: {}{restarts}", names.len(), names.join(", "))
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
