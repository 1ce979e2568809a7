//! Candidates of the ports of imported Services with selectors or weights, and their strengths. The strengths are only
//! in memory: after a restart, what is bound stays bound.

use super::serving::Served;
use crate::member::selection::{self, Candidate, Choice, Pace, Rank, Strength};
use crate::model::ClusterSelection;
use crate::variants::variants;
use fleetnet_types::{ClusterId, ObjectName, Text, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Imported Service whose clusters are selected, by the namespace of its imported slices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selected {
    /// Namespace of the imported slices, which tells the API.
    pub(crate) namespace: Text,
    /// Exported Service.
    pub(crate) service: ObjectName,
}

/// Candidates of an imported Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Results of the selectors, the best first.
    pub(crate) results: Vec<Vec<ClusterId>>,
    /// Declared weights; the others are 1. Without any, all endpoints have the same weight.
    pub(crate) weights: BTreeMap<ClusterId, i64>,
    pub(crate) ports: BTreeMap<Served, BTreeMap<ClusterId, Candidate>>,
    pub(crate) pace: Pace,
    /// Active result of each port. A port without endpoints keeps its last one.
    pub(super) active: BTreeMap<Served, usize>,
}

impl Selection {
    pub(crate) fn new(ClusterSelection { results, weights }: ClusterSelection, pace: Pace) -> Self {
        Self { results, weights, ports: BTreeMap::new(), pace, active: BTreeMap::new() }
    }

    /// Returns what is chosen for a port with these candidates.
    pub(crate) fn choose(&self, candidates: &BTreeMap<ClusterId, Candidate>, now: Timestamp) -> Choice {
        let mut choice = selection::choose(&self.results, candidates, self.pace, now);
        let weighed: Vec<(&ClusterId, &BTreeSet<Rank>)> = candidates
            .iter()
            .map(|(cluster, it)| (cluster, &it.ranks))
            .filter(|(cluster, ranks)| choice.clusters.contains(*cluster) && !ranks.is_empty())
            .collect();
        let sizes: Vec<_> = weighed.iter().map(|(cluster, ranks)| (self.weight(cluster), ranks.len())).collect();
        let last = |((cluster, ranks), size): (&(&ClusterId, &BTreeSet<Rank>), usize)| {
            Some(((*cluster).clone(), ranks.iter().nth(size - 1)?.clone()))
        };
        choice.last = weighed.iter().zip(selection::sizes(&sizes)).filter_map(last).collect();
        choice
    }

    /// Returns the weight of a cluster.
    pub(crate) fn weight(&self, cluster: &ClusterId) -> usize {
        self.weights.get(cluster).map_or(1, |weight| usize::try_from(*weight).unwrap_or_default())
    }

    pub(super) fn choices(&self, at: Timestamp) -> BTreeMap<&Served, Choice> {
        self.ports.iter().map(|(served, candidates)| (served, self.choose(candidates, at))).collect()
    }

    /// Takes over the strengths of an earlier state.
    pub(super) fn continue_from(&mut self, before: Option<&Self>, at: Timestamp) {
        for (served, of_before) in before.iter().flat_map(|before| &before.ports) {
            let of_port = self.ports.entry(served.clone()).or_default();
            for (cluster, candidate) in of_before {
                of_port.entry(cluster.clone()).or_default().strength = candidate.strength.clone();
            }
        }
        for candidate in self.ports.values_mut().flat_map(BTreeMap::values_mut) {
            let ready = if candidate.treatment.is_some() { 0 } else { candidate.ready };
            candidate.strength.set(ready, self.pace, at);
        }
    }
}

/// Change of the active result of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Namespace of the imported slices, which tells the API.
    pub namespace: Text,
    /// Exported Service.
    pub service: ObjectName,
    pub port: Text,
    pub direction: Direction,
    /// Clusters that are chosen now.
    pub clusters: BTreeSet<ClusterId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// The clusters of the former result have no endpoint left.
    Failover,
    /// A better result serves again.
    Failback,
}

variants!(Direction, as_str: Failover = "failover", Failback = "failback");

/// Selections of all imported Services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selections {
    pub(super) of: BTreeMap<Selected, Selection>,
    /// Switches that the agent has not reported yet.
    pub(super) switches: Vec<Switch>,
}

impl Selections {
    pub(super) fn get(&self, of: &Selected) -> Option<&Selection> {
        self.of.get(of)
    }

    /// Moves all times by `micros`, after the wall clock was set by this duration.
    pub(super) fn clock_set(&mut self, micros: i64) {
        let candidates = self.of.values_mut().flat_map(|it| it.ports.values_mut()).flat_map(BTreeMap::values_mut);
        candidates
            .map(|candidate| &mut candidate.strength)
            .for_each(|strength: &mut Strength| strength.clock_set(micros));
    }
}
