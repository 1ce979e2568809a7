//! Keys to plan: now, at a later time, or when this replica leads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::Duration;

use fleetnet_types::Timestamp;
use tokio::time::Instant;

use super::fair_queue::FairQueue;
use super::logic::FlowId;
use super::timers::Timers;

/// Keys to plan.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    due: FairQueue<K>,
    /// Time of each key's next plan, if the last plan asked for one. On the monotonic clock, so a step of the wall
    /// clock does not move it.
    again: Timers<K, Instant>,
    /// Keys that were last planned while another replica was the leader, if that plan had writes or asked for a later
    /// plan.
    left_to_leader: BTreeSet<K>,
    /// For each queued key, the oldest change since the key's last plan. For the latency metrics.
    changes: BTreeMap<K, OldestChange>,
}

/// Oldest change that caused the engine to queue a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OldestChange {
    pub(crate) at: Timestamp,
    /// Processor time of decoding the change and storing it in the agent's view.
    pub(crate) spent: Duration,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        let (left_to_leader, changes) = (BTreeSet::new(), BTreeMap::new());
        Self { due: FairQueue::default(), again: Timers::default(), left_to_leader, changes }
    }
}

impl<K: Clone + Ord + Debug> Queue<K> {
    pub(crate) fn push(&mut self, flow: FlowId, key: K) {
        if tracing::enabled!(tracing::Level::TRACE) && !self.due.contains(&key) {
            tracing::trace!(?key, "queued");
        }
        self.due.push(flow, key);
    }

    pub(crate) fn pop(&mut self) -> Option<K> {
        self.due.pop()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// Remembers a change that concerns the key, unless an older one is known.
    pub(crate) fn note(&mut self, key: &K, change: OldestChange) {
        if !self.changes.contains_key(key) {
            self.changes.insert(key.clone(), change);
        }
    }

    /// Removes and returns the oldest change since the key's last plan.
    pub(crate) fn take_oldest_change(&mut self, key: &K) -> Option<OldestChange> {
        self.changes.remove(key)
    }

    /// Moves the times of the changes by a step of the wall clock.
    pub(crate) fn follow_clock(&mut self, microseconds: i64) {
        for change in self.changes.values_mut() {
            change.at = change.at.plus_micros(microseconds);
        }
    }

    /// Sets the time of the key's next plan. `None` clears it.
    pub(crate) fn plan_again(&mut self, key: &K, at: Option<Instant>) {
        self.again.set(key, at);
    }

    /// Removes and returns a key whose next plan is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<K> {
        self.again.pop_due(now)
    }

    /// Returns the time of the earliest next plan.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.again.next()
    }

    /// Records that the leader has to make writes of the key.
    pub(crate) fn leave_to_leader(&mut self, key: &K) {
        self.left_to_leader.insert(key.clone());
    }

    /// Records that the leader has made all writes of the key.
    pub(crate) fn done_by_leader(&mut self, key: &K) {
        self.left_to_leader.remove(key);
    }

    /// Removes and returns the keys whose writes the leader has not made.
    pub(crate) fn take_left_to_leader(&mut self) -> BTreeSet<K> {
        std::mem::take(&mut self.left_to_leader)
    }

    /// Returns the number of keys in each queue, by the value of the metric's label `queue`.
    pub(crate) fn depths(&self) -> [(&'static str, usize); 3] {
        [("dirty", self.due.len()), ("left_to_leader", self.left_to_leader.len()), ("again", self.again.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowId = FlowId(0);

    #[test]
    fn the_oldest_change_of_a_key_counts_until_its_plan() {
        let mut queue = Queue::default();
        let change = |seconds| OldestChange { at: Timestamp::from_seconds(seconds), spent: Duration::ZERO };
        queue.note(&"a", change(10));
        queue.note(&"a", change(20));
        queue.follow_clock(-1_000_000);
        assert_eq!(queue.take_oldest_change(&"a"), Some(change(9)));
        assert_eq!(queue.take_oldest_change(&"a"), None);
    }

    #[test]
    fn a_key_that_the_leader_has_planned_is_not_left() {
        let mut queue = Queue::default();
        ["a", "b"].iter().for_each(|key| queue.leave_to_leader(key));
        queue.done_by_leader(&"a");
        queue.push(FLOW, "c");
        assert_eq!(queue.depths(), [("dirty", 1), ("left_to_leader", 1), ("again", 0)]);
        assert_eq!(queue.take_left_to_leader().into_iter().collect::<Vec<_>>(), ["b"]);
        assert_eq!(queue.depths()[1], ("left_to_leader", 0));
    }

    #[test]
    fn a_later_plan_is_due_at_its_time() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.plan_again(&"a", Some(now + Duration::from_secs(1)));
        assert_eq!((queue.pop_due(now), queue.next_due()), (None, Some(now + Duration::from_secs(1))));
        assert_eq!(queue.pop_due(now + Duration::from_secs(1)), Some("a"));
        assert_eq!(queue.next_due(), None);
    }
}
