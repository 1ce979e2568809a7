//! Planned writes that are not carried out yet, and the age of the oldest. A latency histogram has samples only of
//! changes that arrive, so it does not show a change that never arrives.
//!
//! A write counts from the first plan that wants it until the server carries it out, or until a plan does not want it
//! any more. A failed attempt changes nothing, so a write that fails again and again keeps its age. A key that waits
//! for a user, a claim, a replacement or a policy plans no write, so it does not count.

use std::collections::BTreeMap;

use tokio::time::Instant;

use crate::engine::slots::ClusterIndex;

/// Planned writes by key. The second type identifies a write of a key.
#[derive(Debug)]
pub(crate) struct Unfinished<K, W> {
    of_keys: BTreeMap<K, BTreeMap<W, Pending>>,
    /// For each cluster, the start of each pending write by its number. Later writes have higher numbers, so the first
    /// is the oldest.
    since: Vec<BTreeMap<u64, Instant>>,
    next_number: u64,
    /// Number of the plan whose writes are being noted.
    plan: u64,
}

#[derive(Debug)]
struct Pending {
    number: u64,
    cluster: ClusterIndex,
    /// True while a request of this key is on its way. Such a write counts even if the newest plan does not want it.
    is_in_flight: bool,
    /// Number of the last plan that wanted this write.
    plan: u64,
}

impl<K: Clone + Ord, W: Ord> Unfinished<K, W> {
    pub(crate) fn new(clusters: usize) -> Self {
        let since = std::iter::repeat_with(BTreeMap::new).take(clusters).collect();
        Self { of_keys: BTreeMap::new(), since, next_number: 0, plan: 0 }
    }

    /// Starts to note the writes of a plan. [`Unfinished::end_plan`] ends it.
    pub(crate) fn begin_plan(&mut self) {
        self.plan += 1;
    }

    /// Notes a write of the present plan.
    pub(crate) fn wanted(&mut self, key: &K, write: W, cluster: ClusterIndex, now: Instant) {
        let (plan, number) = (self.plan, self.next_number);
        if !self.of_keys.contains_key(key) {
            self.of_keys.insert(key.clone(), BTreeMap::new());
        }
        let Some(writes) = self.of_keys.get_mut(key) else { return };
        let pending = writes.entry(write).or_insert_with(|| {
            self.next_number += 1;
            self.since[cluster].insert(number, now);
            Pending { number, cluster, is_in_flight: false, plan }
        });
        pending.plan = plan;
    }

    /// Notes that a request for this write was sent.
    pub(crate) fn begun(&mut self, key: &K, write: &W) {
        if let Some(pending) = self.of_keys.get_mut(key).and_then(|writes| writes.get_mut(write)) {
            pending.is_in_flight = true;
        }
    }

    /// Forgets the writes of a key that the present plan does not want, except those in flight.
    pub(crate) fn end_plan(&mut self, key: &K) {
        let Some(writes) = self.of_keys.get_mut(key) else { return };
        writes.retain(|_, pending| {
            let stays = pending.plan == self.plan || pending.is_in_flight;
            if !stays {
                self.since[pending.cluster].remove(&pending.number);
            }
            stays
        });
        if writes.is_empty() {
            self.of_keys.remove(key);
        }
    }

    /// Notes that the server carried a write out.
    pub(crate) fn done(&mut self, key: &K, write: &W) {
        let Some(writes) = self.of_keys.get_mut(key) else { return };
        if let Some(pending) = writes.remove(write) {
            self.since[pending.cluster].remove(&pending.number);
        }
        if writes.is_empty() {
            self.of_keys.remove(key);
        }
    }

    /// Notes that an attempt to carry a write out failed.
    pub(crate) fn failed(&mut self, key: &K, write: &W) {
        if let Some(pending) = self.of_keys.get_mut(key).and_then(|writes| writes.get_mut(write)) {
            pending.is_in_flight = false;
        }
    }

    /// Returns the time since which the oldest write to a cluster is planned. `None` if no write is pending.
    pub(crate) fn oldest(&self, cluster: ClusterIndex) -> Option<Instant> {
        self.since[cluster].values().next().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const HUB: ClusterIndex = 0;
    const MEMBER: ClusterIndex = 1;

    type Writes = Unfinished<&'static str, &'static str>;

    fn plan(unfinished: &mut Writes, key: &'static str, writes: &[(&'static str, ClusterIndex)], now: Instant) {
        unfinished.begin_plan();
        for (write, cluster) in writes {
            unfinished.wanted(&key, write, *cluster, now);
        }
        unfinished.end_plan(&key);
    }

    /// Rule A17: A planned write is not carried out: it fails, waits for its retry, or waits for other writes
    /// Then: `fleetnet_oldest_unfinished_change_seconds{side}` of the leader shows the age of the oldest such write. A
    /// write that fails again and again keeps its age. A key that waits for a user, a claim, a replacement or a policy
    /// plans no write, so it does not count
    #[test]
    fn a_write_that_fails_again_and_again_keeps_its_age() {
        let start = Instant::now();
        let mut unfinished = Writes::new(2);
        for minute in 0..10 {
            plan(&mut unfinished, "key", &[("write", HUB)], start + Duration::from_secs(60 * minute));
            unfinished.begun(&"key", &"write");
            unfinished.failed(&"key", &"write");
            assert_eq!(unfinished.oldest(HUB), Some(start), "minute {minute}");
        }
        assert_eq!(unfinished.oldest(MEMBER), None);
        unfinished.done(&"key", &"write");
        assert_eq!(unfinished.oldest(HUB), None);
        assert!(unfinished.of_keys.is_empty());
    }

    #[test]
    fn the_oldest_of_many_counts_for_its_cluster() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut unfinished = Writes::new(2);
        plan(&mut unfinished, "a", &[("one", HUB), ("two", MEMBER)], at(0));
        plan(&mut unfinished, "b", &[("one", HUB)], at(1));
        plan(&mut unfinished, "c", &[("one", HUB)], at(2));
        assert_eq!((unfinished.oldest(HUB), unfinished.oldest(MEMBER)), (Some(at(0)), Some(at(0))));
        unfinished.done(&"b", &"one");
        unfinished.done(&"a", &"one");
        assert_eq!((unfinished.oldest(HUB), unfinished.oldest(MEMBER)), (Some(at(2)), Some(at(0))));
    }

    #[test]
    fn a_write_that_no_plan_wants_any_more_counts_only_while_it_is_in_flight() {
        let now = Instant::now();
        let mut unfinished = Writes::new(1);
        plan(&mut unfinished, "key", &[("sent", HUB), ("waiting", HUB)], now);
        unfinished.begun(&"key", &"sent");
        plan(&mut unfinished, "key", &[], now);
        assert_eq!(unfinished.of_keys["key"].keys().collect::<Vec<_>>(), [&"sent"]);
        unfinished.failed(&"key", &"sent");
        plan(&mut unfinished, "key", &[], now);
        assert!(unfinished.of_keys.is_empty());
        assert_eq!(unfinished.oldest(HUB), None);
    }

    #[test]
    fn a_write_that_is_wanted_again_after_it_was_done_has_a_new_age() {
        let start = Instant::now();
        let later = start + Duration::from_secs(30);
        let mut unfinished = Writes::new(1);
        plan(&mut unfinished, "key", &[("write", HUB)], start);
        unfinished.begun(&"key", &"write");
        plan(&mut unfinished, "key", &[("write", HUB)], later);
        assert_eq!(unfinished.oldest(HUB), Some(start), "the first is still in flight");
        unfinished.done(&"key", &"write");
        plan(&mut unfinished, "key", &[("write", HUB)], later);
        assert_eq!(unfinished.oldest(HUB), Some(later));
    }
}
