//! What a picture shows: all events so far, folded. Pure.

use super::lines;
use crate::limits::REMEMBERED;
use crate::sandbox::event::{Event, Export, Import, Writes};
use crate::sandbox::measure::Samples;
use chrono::{DateTime, Local};
use std::collections::{BTreeMap, VecDeque};

/// All that was told, as far as it is still of interest.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) began: Option<DateTime<Local>>,
    pub(super) headline: String,
    /// By Service and cluster.
    pub(super) exports: BTreeMap<(String, String), Export>,
    /// By Service and cluster.
    pub(super) imports: BTreeMap<(String, String), Import>,
    /// By origin and destination.
    pub(super) pairs: BTreeMap<(String, String), Samples>,
    /// What happened, newest last.
    pub(super) happened: VecDeque<String>,
    /// Changes whose cost is known, and that cost.
    pub(super) changes: u32,
    pub(super) writes: Writes,
    /// Lines on how to reach the clusters.
    pub(super) kubeconfigs: Vec<String>,
    pub(super) verdict: Option<(bool, Vec<String>)>,
}

impl State {
    /// Takes one in.
    pub(super) fn take(&mut self, at: DateTime<Local>, event: Event) {
        self.began.get_or_insert(at);
        let line = lines::line(&event);
        match event {
            Event::Starting { .. } => self.headline = line.unwrap_or_default(),
            Event::Running { clusters, agents } => {
                self.headline = format!("{} clusters, {agents} agents", clusters.len());
            }
            Event::Export { cluster, service, export } => _ = self.exports.insert((service, cluster), export),
            Event::Import { cluster, service, import } => _ = self.imports.insert((service, cluster), import),
            Event::Arrival { origin, destination, milliseconds, .. } => {
                self.pairs.entry((origin, destination)).or_default().add(milliseconds);
            }
            Event::Gone { what, cluster, service } => {
                let key = (service, cluster);
                _ = if what == "export" {
                    self.exports.remove(&key).is_some()
                } else {
                    self.imports.remove(&key).is_some()
                };
                self.remember(at, line);
            }
            Event::Change(change) => {
                if let Some(writes) = change.writes {
                    self.count(&writes);
                }
                self.remember(at, line);
            }
            Event::Kubeconfig { .. } => self.kubeconfigs.extend(line),
            Event::Agent { .. } | Event::Step { .. } | Event::Trouble { .. } => self.remember(at, line),
            Event::Verdict { passed, wrong, .. } => self.verdict = Some((passed, wrong)),
            // They sum up what is shown already.
            Event::Latency { .. } | Event::Cost { .. } => {}
        }
    }

    fn count(&mut self, writes: &Writes) {
        self.changes += 1;
        self.writes.total += writes.total;
        for (cluster, times) in &writes.by_cluster {
            *self.writes.by_cluster.entry(cluster.clone()).or_default() += times;
        }
    }

    fn remember(&mut self, at: DateTime<Local>, line: Option<String>) {
        if self.happened.len() >= REMEMBERED {
            self.happened.pop_front();
        }
        self.happened.extend(line.map(|line| lines::at(at, &line)));
    }
}
