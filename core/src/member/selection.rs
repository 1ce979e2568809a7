//! Cluster selection: which exporting clusters serve one port of an imported Service. A pure rule.
//!
//! The selectors of a Service give **results**: lists of clusters, the best first. All exporting clusters are the last
//! result. One result is **active**: its clusters are bound, so that kube-proxy uses their endpoints.
//!
//! | change | then |
//! |---|---|
//! | the active result has no ready endpoint left | the next result that has one is active at once |
//! | a better result has ready endpoints again | its clusters are bound too, once the load of each endpoint is bearable |
//! | the better result holds its strength for a while | it is active |
//!
//! Clusters stay bound until all clusters of the active result are bound, so that no port is without endpoints.

mod split;
mod strength;

use crate::model::Treatment;
use fleetnet_types::{ClusterId, Timestamp};
pub(crate) use split::{Rank, sizes};
use std::collections::{BTreeMap, BTreeSet};
pub use strength::Pace;
pub(crate) use strength::Strength;

/// Exporting cluster that has endpoints for a port, or that had some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Ready endpoints.
    pub(crate) ready: usize,
    /// Endpoints that are not ready but still serving.
    pub(crate) draining: usize,
    /// Treatment of a silent member; `None` unless it is silent.
    pub(crate) treatment: Option<Treatment>,
    /// True if an imported slice that kube-proxy uses has ready endpoints of this cluster for the port.
    pub(crate) is_bound: bool,
    pub(crate) strength: Strength,
    /// Ready endpoints in the order in which the importer takes them. Empty without weights.
    pub(crate) ranks: BTreeSet<Rank>,
}

/// Class of a cluster's endpoints. kube-proxy gets only endpoints of the best class that any cluster has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// Ready. Endpoints of a silent member come after those of others.
    Ready(Option<Treatment>),
    Draining,
    Without,
}

impl Candidate {
    fn class(&self) -> Class {
        match self {
            Self { ready: 1.., .. } => Class::Ready(self.treatment),
            Self { draining: 1.., .. } => Class::Draining,
            _ => Class::Without,
        }
    }
}

/// Clusters to bind for a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) clusters: BTreeSet<ClusterId>,
    /// Number of the active result. The result after the last is all clusters.
    pub(crate) active: usize,
    /// Time at which the choice may change although nothing else does.
    pub(crate) again: Option<Timestamp>,
    /// Last endpoint of each cluster of which not all endpoints serve, because of its weight.
    pub(crate) last: BTreeMap<ClusterId, Rank>,
}

/// Exporting clusters of a port, with the results of the selectors.
struct Selection<'a> {
    results: &'a [Vec<ClusterId>],
    candidates: &'a BTreeMap<ClusterId, Candidate>,
    /// Best class of endpoints that any candidate has.
    class: Class,
    pace: Pace,
}

/// Chooses the clusters to bind for a port.
pub(crate) fn choose(
    results: &[Vec<ClusterId>],
    candidates: &BTreeMap<ClusterId, Candidate>,
    pace: Pace,
    now: Timestamp,
) -> Choice {
    let class = candidates.values().map(Candidate::class).min().unwrap_or(Class::Without);
    if class == Class::Without {
        return Choice::default();
    }
    Selection { results, candidates, class, pace }.choose(now)
}

impl<'a> Selection<'a> {
    fn choose(&self, now: Timestamp) -> Choice {
        let best = (0..=self.results.len()).find(|rank| !self.members(*rank).is_empty()).unwrap_or_default();
        let bound = |cluster: &&ClusterId| self.candidates[*cluster].is_bound;
        let active = self.eligible().filter(bound).map(|cluster| self.rank(cluster)).max();
        let better = self.members(best);
        match active.filter(|active| best < *active) {
            Some(active) if !self.is_proven(best, now) => self.land(best, active, now),
            _ => Choice { clusters: self.with_bound(better), active: best, ..Choice::default() },
        }
    }

    /// Returns the clusters whose endpoints kube-proxy may get.
    fn eligible(&self) -> impl Iterator<Item = &'a ClusterId> {
        let class = self.class;
        self.candidates.iter().filter(move |(_, candidate)| candidate.class() == class).map(|(cluster, _)| cluster)
    }

    /// Returns the eligible clusters of a result. The result after the last is all clusters.
    fn members(&self, rank: usize) -> BTreeSet<&'a ClusterId> {
        let result = self.results.get(rank);
        self.eligible().filter(|cluster| result.is_none_or(|result| result.contains(cluster))).collect()
    }

    /// Returns the first result that has a cluster.
    fn rank(&self, cluster: &ClusterId) -> usize {
        self.results.iter().position(|result| result.contains(cluster)).unwrap_or(self.results.len())
    }

    /// Adds what is bound now, until all chosen clusters are bound.
    fn with_bound(&self, chosen: BTreeSet<&ClusterId>) -> BTreeSet<ClusterId> {
        let is_complete = chosen.iter().all(|cluster| self.candidates[*cluster].is_bound);
        let kept = self.candidates.iter().filter(|(_, candidate)| !is_complete && candidate.is_bound);
        kept.map(|(cluster, _)| cluster).chain(chosen).cloned().collect()
    }

    /// Returns the strengths of the clusters of a result, with those that have no endpoint now.
    fn strengths(&self, rank: usize) -> impl Iterator<Item = &'a Strength> {
        let result = self.results.get(rank);
        let members = self.candidates.iter().filter(move |(cluster, _)| result.is_none_or(|it| it.contains(cluster)));
        members.map(|(_, candidate)| &candidate.strength)
    }

    /// True if a better result holds two thirds of its strength for long enough.
    fn is_proven(&self, better: usize, now: Timestamp) -> bool {
        let parts = self.strengths(better).map(|strength| strength.proof(self.pace, now));
        let (held, full) = parts.fold((0, 0), |(held, full), part| (held + part.held, full + part.full));
        3 * held >= 2 * full
    }

    /// Binds both results until the better one is proven. A cluster of the better result joins when no endpoint gets
    /// more than 1.5 times the load that it had at full strength.
    fn land(&self, better: usize, active: usize, now: Timestamp) -> Choice {
        let (returning, present) = (self.members(better), self.members(active));
        let ready = |cluster: &&ClusterId| self.candidates[*cluster].ready;
        let endpoints: usize = returning.union(&present).map(ready).sum();
        let full: usize = self.strengths(better).map(|strength| strength.proof(self.pace, now).full).sum();
        let joins = |cluster: &&&ClusterId| 3 * endpoints >= 2 * full || self.candidates[**cluster].is_bound;
        let again = self.strengths(better).filter_map(|strength| strength.next_proof(self.pace, now)).min();
        let clusters = returning.iter().filter(joins).chain(present.difference(&returning));
        let clusters = clusters.map(|cluster| (*cluster).clone()).collect();
        Choice { clusters, active, again, ..Choice::default() }
    }
}

#[cfg(test)]
#[path = "selection_tests.rs"]
mod tests;
