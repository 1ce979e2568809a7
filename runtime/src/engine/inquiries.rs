//! Fights whose other writer is not known yet. One GET of the object finds its name. At most [`INQUIRIES_PER_CLUSTER`]
//! run at once in one cluster, because each GET needs a connection.

use std::collections::BTreeMap;

use super::fights::Turn;
use super::slots::{ClusterIndex, Target};
use crate::limits::INQUIRIES_PER_CLUSTER;

/// GET that finds the name of the other writer in a fight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inquiry<K, S> {
    pub(crate) cluster: ClusterIndex,
    pub(crate) turn: Turn<K, S>,
}

#[derive(Debug)]
pub(crate) struct Inquiries<K, S> {
    of_clusters: Vec<OfCluster<K, S>>,
}

#[derive(Debug)]
struct OfCluster<K, S> {
    under_way: usize,
    /// Fights that wait for their GET, by object, with the key that writes the object.
    waiting: BTreeMap<Target<S>, K>,
}

impl<K, S: Clone + Ord> Inquiries<K, S> {
    pub(crate) fn new(clusters: usize) -> Self {
        let of_cluster = |_| OfCluster { under_way: 0, waiting: BTreeMap::new() };
        Self { of_clusters: (0..clusters).map(of_cluster).collect() }
    }

    /// Asks for the name of the other writer in a fight.
    pub(crate) fn ask(&mut self, cluster: ClusterIndex, turn: Turn<K, S>) {
        self.of_clusters[cluster].waiting.insert(turn.target, turn.key);
    }

    /// Returns the next GET to send, if there is one. [`Inquiries::ended`] must follow.
    pub(crate) fn next(&mut self) -> Option<Inquiry<K, S>> {
        let mut of_clusters = self.of_clusters.iter_mut().enumerate();
        of_clusters.find_map(|(cluster, OfCluster { under_way, waiting })| {
            if *under_way == INQUIRIES_PER_CLUSTER {
                return None;
            }
            let (target, key) = waiting.pop_first()?;
            *under_way += 1;
            Some(Inquiry { cluster, turn: Turn { key, target } })
        })
    }

    pub(crate) fn ended(&mut self, cluster: ClusterIndex) {
        self.of_clusters[cluster].under_way -= 1;
    }

    /// Cancels the GET for a fight that is over. Returns true if the GET had not started, so the start of this fight
    /// was never reported.
    pub(crate) fn cancel(&mut self, target: &Target<S>) -> bool {
        self.of_clusters.iter_mut().any(|of_cluster| of_cluster.waiting.remove(target).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetnet_types::ObjectName;

    fn target(number: usize) -> Target<u8> {
        Target { source: 0, name: ObjectName::new("ns", format!("{number:02}")) }
    }

    #[test]
    fn a_full_cluster_delays_its_own_inquiries_only_and_a_fight_that_is_over_needs_none() {
        let mut inquiries = Inquiries::new(2);
        for number in 0..INQUIRIES_PER_CLUSTER + 2 {
            inquiries.ask(0, Turn { key: "key", target: target(number) });
        }
        let started: Vec<_> = std::iter::from_fn(|| inquiries.next()).map(|it| it.turn.target).collect();
        assert_eq!(started, (0..INQUIRIES_PER_CLUSTER).map(target).collect::<Vec<_>>());
        inquiries.ask(1, Turn { key: "other", target: target(99) });
        assert_eq!(inquiries.next().map(|it| it.cluster), Some(1));
        assert!(inquiries.cancel(&target(INQUIRIES_PER_CLUSTER)));
        assert!(!inquiries.cancel(&target(0)), "its GET is under way");
        inquiries.ended(0);
        assert_eq!(inquiries.next().map(|it| it.turn.target), Some(target(INQUIRIES_PER_CLUSTER + 1)));
        assert_eq!(inquiries.next(), None);
    }
}
