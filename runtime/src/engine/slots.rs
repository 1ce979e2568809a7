//! Admission of writes: one write in flight per object, a limit per cluster and per flow, and the keys that wait. Does
//! no I/O.
//!
//! A key whose object has a write in flight waits for the end of that write. A key whose cluster or flow has no free
//! slot waits for the cluster, in the queue of its flow.
//!
//! A slot that becomes free is reserved for the next waiting key, so no later key can take the slot. A cluster that is
//! down uses only its own slots, and a full flow does not delay other flows.

use fleetnet_types::ObjectName;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::fair_queue::FairQueue;
use crate::engine::logic::{Flow, FlowId, Request, Urgency};
use crate::limits::{IN_FLIGHT_PER_CLUSTER, WRITE_BURST};

/// Object that a write changes: its source (cluster and kind) and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target<S> {
    pub(crate) source: S,
    pub(crate) name: ObjectName,
}

impl<S: Copy> Target<S> {
    pub(crate) fn of<R>(request: &Request<S, R>) -> Self {
        Self { source: request.source, name: request.name.clone() }
    }
}

/// Index of a cluster in this engine's list of clusters.
pub(crate) type ClusterIndex = usize;

#[derive(Debug)]
pub(crate) struct Slots<K, T> {
    clusters: Vec<Cluster<K>>,
    /// Objects with a write in flight. A second write to the same object waits until the first has ended.
    busy: BTreeMap<T, Busy<K>>,
    /// Average time between two writes to one cluster at the maximum rate.
    interval: Duration,
}

#[derive(Debug)]
struct Busy<K> {
    flow: FlowId,
    /// Keys that wait until the write in flight to this object has ended.
    waiting: BTreeSet<K>,
}

#[derive(Debug)]
struct Cluster<K> {
    in_flight: usize,
    /// Keys that waited for a slot and that the engine is about to plan. One free slot is reserved for each of these
    /// keys.
    reserved: BTreeMap<K, FlowId>,
    waiting: FairQueue<K>,
    /// Slots that each flow uses or has reserved. Only flows that have a limit of their own are listed.
    limited: BTreeMap<FlowId, Share>,
    /// Flows of heartbeats, which do not pause.
    heartbeats: BTreeSet<FlowId>,
    /// End of a pause that the server asked for (Retry-After).
    paused_until: Option<Instant>,
    /// Time of the next write if all writes are sent evenly at the maximum rate. Writes may be sent up to
    /// [`WRITE_BURST`] before this time.
    due: Option<Instant>,
}

/// Use of a cluster's slots by one flow. A slot permits one write in flight. `taken` counts used and reserved slots,
/// and `most` is the flow's limit.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    taken: usize,
    most: usize,
}

impl<K: Clone + Ord, T: Clone + Ord> Slots<K, T> {
    /// Returns the slots of `clusters` clusters, all free. `writes_per_second` is the maximum rate for each cluster, at
    /// least 1.
    pub(crate) fn new(clusters: usize, writes_per_second: u32) -> Self {
        let cluster = || Cluster {
            in_flight: 0,
            reserved: BTreeMap::new(),
            waiting: FairQueue::default(),
            limited: BTreeMap::new(),
            heartbeats: BTreeSet::new(),
            paused_until: None,
            due: None,
        };
        Self {
            clusters: std::iter::repeat_with(cluster).take(clusters).collect(),
            busy: BTreeMap::new(),
            // no limit: a unit (mark for `cargo xtask tidy`)
            interval: Duration::from_secs(1) / writes_per_second.max(1),
        }
    }

    pub(crate) fn is_busy(&self, target: &T) -> bool {
        self.busy.contains_key(target)
    }

    /// Makes the key wait until the write in flight to the object ends.
    pub(crate) fn wait_for_target(&mut self, target: &T, key: &K) {
        if let Some(busy) = self.busy.get_mut(target) {
            busy.waiting.insert(key.clone());
        }
    }

    /// Takes a slot for a write to the object. If no slot is free, queues the key for a slot and returns false.
    pub(crate) fn begin(&mut self, cluster: ClusterIndex, target: &T, flow: Flow, key: &K, now: Instant) -> bool {
        let slots = &mut self.clusters[cluster];
        slots.limit(flow);
        let has_reserved = slots.give_back(key);
        let has_room =
            has_reserved || slots.free() > 0 && has_room(&slots.limited, flow.id) && !slots.somebody_may_go(now);
        if slots.is_paused(flow.id, now) || !has_room {
            slots.waiting.push(flow.id, key.clone());
            return false;
        }
        slots.in_flight += 1;
        slots.take(flow.id);
        slots.due = Some(slots.due.unwrap_or(now).max(now) + self.interval);
        self.busy.insert(target.clone(), Busy { flow: flow.id, waiting: BTreeSet::new() });
        true
    }

    /// Frees the slot of a write that has ended. Returns the keys that waited for the end of this write, because they
    /// write to the same object.
    pub(crate) fn end(&mut self, cluster: ClusterIndex, target: &T) -> BTreeSet<K> {
        let Some(busy) = self.busy.remove(target) else { return BTreeSet::new() };
        self.clusters[cluster].in_flight -= 1;
        self.clusters[cluster].leave(busy.flow);
        busy.waiting
    }

    /// Releases the reserved slots of a key that has now been planned and has not used them.
    pub(crate) fn planned(&mut self, key: &K) {
        for cluster in &mut self.clusters {
            cluster.give_back(key);
        }
    }

    /// Pauses all writes to the cluster until this time, apart from heartbeats.
    pub(crate) fn pause(&mut self, cluster: ClusterIndex, until: Instant) {
        let paused_until = &mut self.clusters[cluster].paused_until;
        *paused_until = (*paused_until).max(Some(until));
    }

    /// Reserves each free slot for a waiting key, and returns these keys. The engine plans them next.
    pub(crate) fn reserve_waiting(&mut self, now: Instant) -> Vec<K> {
        let mut reserved = Vec::new();
        for cluster in &mut self.clusters {
            while cluster.free() > 0
                && let Some((flow, key)) = cluster.next_waiting(now)
            {
                cluster.take(flow);
                cluster.reserved.insert(key.clone(), flow);
                reserved.push(key);
            }
        }
        reserved
    }

    /// True if a write to any cluster could begin now.
    pub(crate) fn can_begin(&self, now: Instant) -> bool {
        self.clusters
            .iter()
            .any(|cluster| !cluster.reserved.is_empty() || cluster.free() > 0 && !cluster.are_all_paused(now))
    }

    /// Returns the earliest time at which a cluster with a free slot may be written to again. `None` if no such cluster
    /// must wait.
    pub(crate) fn next_free(&self, now: Instant) -> Option<Instant> {
        let free = self.clusters.iter().filter(|cluster| cluster.free() > 0);
        free.filter_map(Cluster::first_resumes_at).filter(|at| *at > now).min()
    }

    /// True if [`Slots::reserve_waiting`] would return a key.
    pub(crate) fn can_reserve_waiting(&self, now: Instant) -> bool {
        self.clusters.iter().any(|cluster| cluster.free() > 0 && cluster.somebody_may_go(now))
    }

    /// Returns the earliest time at which a cluster with waiting keys may be written to again. `None` if no such
    /// cluster must wait.
    pub(crate) fn next_resume(&self, now: Instant) -> Option<Instant> {
        let waiting = self.clusters.iter().filter(|cluster| !cluster.waiting.is_empty());
        // A heartbeat that waits may go earlier than the others.
        let times = waiting.flat_map(|cluster| [cluster.first_resumes_at(), cluster.resumes_at()]);
        times.flatten().filter(|at| *at > now).min()
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.busy.len()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.clusters.iter().map(|cluster| cluster.waiting.len()).sum()
    }
}

impl<K: Clone + Ord> Cluster<K> {
    fn limit(&mut self, flow: Flow) {
        if flow.most_in_flight < IN_FLIGHT_PER_CLUSTER {
            self.limited.entry(flow.id).or_default().most = flow.most_in_flight.max(1);
        }
        if flow.urgency == Urgency::Heartbeat {
            self.heartbeats.insert(flow.id);
        }
    }

    fn somebody_may_go(&self, now: Instant) -> bool {
        self.waiting.has(|flow| has_room(&self.limited, flow) && !self.is_paused(flow, now))
    }

    fn next_waiting(&mut self, now: Instant) -> Option<(FlowId, K)> {
        let (all, heartbeats) = (self.resumes_at(), self.below_ceiling_at());
        let resumes_at = |flow: FlowId| if self.heartbeats.contains(&flow) { heartbeats } else { all };
        self.waiting.pop_from(|flow| has_room(&self.limited, flow) && resumes_at(flow).is_none_or(|at| at <= now))
    }

    fn take(&mut self, flow: FlowId) {
        if let Some(share) = self.limited.get_mut(&flow) {
            share.taken += 1;
        }
    }

    fn leave(&mut self, flow: FlowId) {
        if let Some(share) = self.limited.get_mut(&flow) {
            share.taken -= 1;
        }
    }

    /// Releases the slot reserved for the key. Returns true if the key had a reserved slot.
    fn give_back(&mut self, key: &K) -> bool {
        let flow = self.reserved.remove(key);
        if let Some(flow) = flow {
            self.leave(flow);
        }
        flow.is_some()
    }

    fn free(&self) -> usize {
        IN_FLIGHT_PER_CLUSTER.saturating_sub(self.in_flight + self.reserved.len())
    }

    fn is_paused(&self, flow: FlowId, now: Instant) -> bool {
        let at = if self.heartbeats.contains(&flow) { self.below_ceiling_at() } else { self.resumes_at() };
        at.is_some_and(|at| at > now)
    }

    /// True if no write of any flow is permitted now.
    fn are_all_paused(&self, now: Instant) -> bool {
        self.first_resumes_at().is_some_and(|at| at > now)
    }

    /// Returns the time from which the next write is permitted, by the server's pause and by the maximum rate. `None`
    /// if neither sets a time.
    fn resumes_at(&self) -> Option<Instant> {
        self.paused_until.max(self.below_ceiling_at())
    }

    /// [`Cluster::resumes_at`] for the first write of any flow.
    fn first_resumes_at(&self) -> Option<Instant> {
        if self.heartbeats.is_empty() { self.resumes_at() } else { self.below_ceiling_at() }
    }

    fn below_ceiling_at(&self) -> Option<Instant> {
        self.due.and_then(|due| due.checked_sub(WRITE_BURST))
    }
}

/// True if the flow's own limit allows one more write in flight.
fn has_room(limited: &BTreeMap<FlowId, Share>, flow: FlowId) -> bool {
    limited.get(&flow).is_none_or(|share| share.taken < share.most)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUB: ClusterIndex = 0;
    const MEMBER: ClusterIndex = 1;
    const FLOW: Flow = flow(0);

    const fn flow(number: u64) -> Flow {
        Flow { id: FlowId(number), most_in_flight: usize::MAX, urgency: Urgency::Normal }
    }

    /// Returns slots of two clusters, `HUB` and `MEMBER`. Writes of the keys 1000, 1001 and so on use all slots of the
    /// hub.
    fn hub_full(now: Instant) -> Slots<u32, u32> {
        let mut slots = Slots::new(2, 1_000_000);
        for number in 0..u32::try_from(IN_FLIGHT_PER_CLUSTER).expect("small") {
            assert!(slots.begin(HUB, &(1000 + number), FLOW, &(1000 + number), now));
        }
        slots
    }

    /// Rule Q9: Many writes are queued, or a cluster does not answer
    /// Then: The agent has at most 32 writes in flight for each cluster, and starts at most 2,000 writes in a second.
    /// The agent starts writes of the flows (units of fair queueing) in turn. A cluster with 32 writes in flight does
    /// not delay writes to other clusters. While no write to any cluster can begin, the agent plans nothing. So a
    /// change of many slices for many importers costs two plans for each write: one that begins the write, and one
    /// after its answer
    #[test]
    fn a_full_cluster_takes_no_slot_of_another() {
        let now = Instant::now();
        let mut slots = hub_full(now);
        assert!(!slots.begin(HUB, &1, FLOW, &1, now));
        assert!(slots.begin(MEMBER, &2, FLOW, &1, now));
        assert_eq!(slots.in_flight(), IN_FLIGHT_PER_CLUSTER + 1);
        assert_eq!(slots.waiting(), 1);
    }

    /// Also rule Q9.
    #[test]
    fn a_freed_slot_goes_to_who_has_waited_and_not_to_who_comes_later() {
        let now = Instant::now();
        let mut slots = hub_full(now);
        assert!(!slots.begin(HUB, &1, FLOW, &1, now));
        assert!(!slots.begin(HUB, &2, FLOW, &2, now));
        assert!(slots.reserve_waiting(now).is_empty());
        slots.end(HUB, &1000);
        assert!(!slots.begin(HUB, &4, FLOW, &4, now), "there are others who have waited");
        assert_eq!(slots.reserve_waiting(now), [1]);
        assert!(slots.reserve_waiting(now).is_empty(), "the slot is spoken for");
        assert!(!slots.begin(HUB, &3, FLOW, &3, now));
        assert!(slots.begin(HUB, &1, FLOW, &1, now));
    }

    #[test]
    fn a_reserved_slot_that_is_not_used_goes_to_the_next() {
        let now = Instant::now();
        let mut slots = hub_full(now);
        assert!(!slots.begin(HUB, &1, FLOW, &1, now));
        assert!(!slots.begin(HUB, &2, FLOW, &2, now));
        slots.end(HUB, &1000);
        assert_eq!(slots.reserve_waiting(now), [1]);
        slots.planned(&1);
        assert_eq!(slots.reserve_waiting(now), [2]);
    }

    #[test]
    fn keys_that_wait_for_a_cluster_take_turns_by_flow() {
        let now = Instant::now();
        let mut slots = hub_full(now);
        for key in 0..10 {
            slots.begin(HUB, &key, flow(1), &key, now);
        }
        slots.begin(HUB, &900, flow(2), &900, now);
        for target in 1000..1003 {
            slots.end(HUB, &target);
        }
        assert_eq!(slots.reserve_waiting(now), [0, 900, 1]);
    }

    /// Also rule Q9.
    #[test]
    fn a_flow_that_may_not_have_all_slots_waits_for_its_own_and_delays_nobody() {
        let now = Instant::now();
        let mut slots: Slots<u32, u32> = Slots::new(1, 1_000_000);
        let narrow = Flow { most_in_flight: 2, ..flow(1) };
        let begun = (0..4).map(|key| slots.begin(HUB, &key, narrow, &key, now)).collect::<Vec<_>>();
        assert_eq!(begun, [true, true, false, false]);
        assert!(!slots.can_reserve_waiting(now));
        assert!(slots.begin(HUB, &900, flow(2), &900, now), "those who wait could not go");
        slots.end(HUB, &900);
        assert!(slots.reserve_waiting(now).is_empty(), "the flow is as full as it was");
        slots.end(HUB, &0);
        assert!(slots.can_reserve_waiting(now));
        assert_eq!(slots.reserve_waiting(now), [2]);
        assert!(slots.reserve_waiting(now).is_empty(), "the slot is spoken for");
        assert!(slots.begin(HUB, &2, narrow, &2, now));
        slots.end(HUB, &1);
        assert_eq!(slots.reserve_waiting(now), [3]);
        slots.planned(&3);
        assert!(slots.begin(HUB, &4, narrow, &4, now), "what was reserved and not used is free again");
    }

    #[test]
    fn the_end_of_a_write_requeues_keys_that_wait_for_its_target() {
        let now = Instant::now();
        let mut slots: Slots<u32, u32> = Slots::new(1, 1_000_000);
        assert!(slots.begin(HUB, &7, FLOW, &1, now));
        assert!(slots.is_busy(&7));
        slots.wait_for_target(&7, &2);
        slots.wait_for_target(&7, &3);
        slots.wait_for_target(&7, &2);
        assert_eq!(slots.end(HUB, &7), BTreeSet::from([2, 3]));
        assert!(!slots.is_busy(&7));
        assert_eq!(slots.in_flight(), 0);
    }

    #[test]
    fn a_paused_cluster_sends_nothing_until_the_pause_ends() {
        let now = Instant::now();
        let later = now + Duration::from_secs(3);
        let mut slots: Slots<u32, u32> = Slots::new(2, 1_000_000);
        slots.pause(HUB, later);
        slots.pause(HUB, now + Duration::from_secs(1));
        assert_eq!(slots.next_resume(now), None, "nobody waits");
        assert!(!slots.begin(HUB, &1, FLOW, &1, now));
        assert!(slots.begin(MEMBER, &2, FLOW, &2, now));
        assert_eq!(slots.next_resume(now), Some(later));
        assert!(slots.reserve_waiting(now + Duration::from_secs(2)).is_empty());
        assert_eq!(slots.reserve_waiting(later), [1]);
        assert_eq!(slots.next_resume(later), None);
    }

    /// Also rule Q13.
    #[test]
    fn a_pause_that_another_write_asked_for_holds_no_heartbeat_back() {
        let now = Instant::now();
        let heartbeat = Flow { urgency: Urgency::Heartbeat, ..flow(9) };
        let mut slots = hub_full(now);
        let later = now + Duration::from_secs(300);
        slots.pause(HUB, later);
        assert!(!slots.begin(HUB, &1, FLOW, &1, now));
        assert!(!slots.begin(HUB, &2, heartbeat, &2, now), "no slot is free");
        slots.end(HUB, &1000);
        assert!(slots.can_reserve_waiting(now));
        assert_eq!(slots.reserve_waiting(now), [2]);
        assert!(slots.begin(HUB, &2, heartbeat, &2, now));
        slots.end(HUB, &2);
        assert!(slots.can_begin(now));
        assert!(slots.begin(HUB, &2, heartbeat, &2, now));
        assert!(slots.reserve_waiting(now).is_empty());
        assert_eq!(slots.next_resume(now), Some(later), "the other write waits");
    }

    /// Also rule Q9.
    #[test]
    fn the_ceiling_lets_a_second_through_at_once_and_then_its_rate() {
        let now = Instant::now();
        let mut slots: Slots<u32, u32> = Slots::new(1, 10);
        let mut writes = 0;
        let mut write_all = |slots: &mut Slots<u32, u32>, at| {
            let before = writes;
            while slots.begin(HUB, &writes, FLOW, &writes, at) {
                slots.end(HUB, &writes);
                writes += 1;
            }
            slots.reserve_waiting(at + WRITE_BURST);
            slots.planned(&writes);
            writes - before
        };
        assert_eq!(write_all(&mut slots, now), 11);
        assert_eq!(write_all(&mut slots, now + Duration::from_millis(300)), 3);
        assert_eq!(write_all(&mut slots, now + Duration::from_secs(60)), 11);
    }
}
