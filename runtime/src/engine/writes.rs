//! Writes from the plan that wants them to their end: what delays them, what is in flight, and what failed.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::fights::{Fights, Requested, State, Turn};
use super::inquiries::{Inquiries, Inquiry};
use super::logic::{Flow, Urgency, Verb};
use super::outcome::{Outcome, Seen, WriteResult};
use super::retries::{Attempt, Class, Retries};
use super::sent::{Sent, Write};
use super::slots::{ClusterIndex, Slots, Target};
use super::unfinished::Unfinished;
use crate::backoff::Jitter;
use crate::limits::{HEARTBEAT_RETRY_AFTER_LONGEST, RETRY_AFTER_LONGEST, WRITES_PER_SECOND_CEILING};

/// Writes of an agent.
#[derive(Debug)]
pub(crate) struct Writes<K, S> {
    slots: Slots<K, Target<S>>,
    retries: Retries<K, Write<S>>,
    fights: Fights<K, S>,
    inquiries: Inquiries<K, S>,
    /// Planned writes that are not carried out yet.
    unfinished: Unfinished<K, Write<S>>,
    clusters: usize,
    /// Keys with creates in flight, and the number of these creates.
    creating: BTreeMap<K, usize>,
}

/// Write of a plan, with what the engine knows about its object.
#[derive(Debug)]
pub(crate) struct Candidate<'a, K, S> {
    pub(crate) key: &'a K,
    pub(crate) flow: Flow,
    pub(crate) cluster: ClusterIndex,
    pub(crate) write: &'a Write<S>,
    pub(crate) verb: &'a Verb,
    /// Hash of the write's content, without its precondition.
    pub(crate) content: u64,
    pub(crate) known_before: &'a State,
    /// True if an equal write has already led to the present version of the object.
    pub(crate) is_echo: bool,
    /// True if the plan writes the same content at intervals.
    pub(crate) renews: bool,
}

/// What became of a write of a plan.
#[derive(Debug)]
pub(crate) enum Begun {
    /// The write has a slot, and must be sent.
    Sent(Attempt, Requested),
    /// Another write to the object is in flight, or too many writes are in flight. The key waits in a queue.
    Waiting,
    /// End of the wait for a back-off, or for another writer that keeps undoing this write.
    Delayed(Instant),
    /// An equal write has already led to the present version of the object.
    Unneeded,
}

impl<K: Clone + Ord, S: Copy + Ord> Writes<K, S> {
    pub(crate) fn new(clusters: usize, jitter: Jitter) -> Self {
        Self {
            slots: Slots::new(clusters, WRITES_PER_SECOND_CEILING),
            retries: Retries::new(jitter),
            fights: Fights::default(),
            inquiries: Inquiries::new(clusters),
            unfinished: Unfinished::new(clusters),
            clusters,
            creating: BTreeMap::new(),
        }
    }

    /// True while a create of the key is in flight.
    pub(crate) fn is_creating(&self, key: &K) -> bool {
        self.creating.contains_key(key)
    }

    /// Releases the slots (permissions for one write in flight) that are reserved for the key. Another key can then use
    /// them.
    pub(crate) fn release_slots(&mut self, key: &K) {
        self.slots.planned(key);
    }

    /// Starts to note the writes of a plan. [`Writes::end_plan`] ends it.
    pub(crate) fn begin_plan(&mut self) {
        self.unfinished.begin_plan();
    }

    /// Decides whether a write of the present plan is sent now.
    pub(crate) fn begin(&mut self, candidate: &Candidate<'_, K, S>, now: Instant) -> Begun {
        let Candidate { key, flow, cluster, write, verb, content, known_before, is_echo, renews } = *candidate;
        let (target, _) = write;
        let is_busy = self.slots.is_busy(target);
        if is_echo && !is_busy {
            return Begun::Unneeded;
        }
        self.unfinished.wanted(key, write.clone(), cluster, now);
        if is_busy {
            self.slots.wait_for_target(target, key);
            return Begun::Waiting;
        }
        let timeless = verb.timeless_content();
        let attempt = Attempt { content: timeless, version: verb.resource_version().unwrap_or_default() };
        let is_create = matches!(verb, Verb::Create { .. });
        // A creation renews nothing.
        let requested = Requested::by(verb, if renews && !is_create { content } else { timeless }, known_before);
        if let Some(until) = self.retries.delayed_until(key, write, attempt, now) {
            return Begun::Delayed(until);
        }
        if let Some(until) = self.fights.delayed_until(target, requested, known_before, now) {
            if let Some(turn) = self.fights.begun(target) {
                self.inquiries.ask(cluster, turn);
            }
            return Begun::Delayed(until);
        }
        if !self.slots.begin(cluster, target, flow, key, now) {
            return Begun::Waiting;
        }
        self.unfinished.begun(key, write);
        if is_create {
            *self.creating.entry(key.clone()).or_default() += 1;
        }
        Begun::Sent(attempt, requested)
    }

    /// Ends a plan. `wanted` has each of its writes, and the time until which the write must wait, if any.
    pub(crate) fn end_plan(&mut self, key: &K, wanted: &BTreeMap<Write<S>, Option<Instant>>, now: Instant) {
        self.unfinished.end_plan(key);
        self.retries.planned(key, wanted, now);
        self.slots.planned(key);
    }

    /// Returns the class of a failed write, which decides about the next attempt. `None` if the write is done.
    /// `known` is the present state of the object.
    pub(crate) fn class<R>(sent: &Sent<K, S, R>, result: &WriteResult, known: &State) -> Option<Class> {
        match result {
            WriteResult::Done => None,
            // After a conflict whose cause is now in the view, the next plan can succeed. If the view did not change,
            // an immediate retry would fail again.
            WriteResult::Conflict { .. } if *known != sent.known_before => Some(Class::Conflict),
            WriteResult::Rejected { .. } => Some(Class::Rejected),
            WriteResult::Denied { .. } => Some(Class::Denied),
            WriteResult::Conflict { .. } | WriteResult::Failed { .. } => Some(Class::Ordinary),
        }
    }

    /// True if the engine must report this failure to the agent.
    pub(crate) fn is_news<R>(&self, sent: &Sent<K, S, R>, class: Class) -> bool {
        self.retries.is_news(&sent.key, &sent.write(), sent.attempt, class)
    }

    /// Ends a write: frees its slot and plans its retry. Returns the keys that waited for its end.
    pub(crate) fn ended<R, O>(
        &mut self,
        (cluster, urgency): (ClusterIndex, Urgency),
        sent: &Sent<K, S, R>,
        outcome: &Outcome<O>,
        class: Option<Class>,
        now: Instant,
    ) -> BTreeSet<K> {
        let (key, write) = (&sent.key, &sent.write());
        let waiting = self.slots.end(cluster, &write.0);
        match class {
            None => {
                self.unfinished.done(key, write);
                self.retries.succeeded(key, write);
                let after = match &outcome.seen {
                    Seen::Object(observed) => Some((observed.uid.clone(), observed.resource_version)),
                    Seen::Gone | Seen::Nothing => None,
                };
                self.fights.written(key, &write.0, sent.requested, (&sent.known_before, &after), now);
            }
            Some(class) => {
                self.unfinished.failed(key, write);
                let retry_after = match outcome.result {
                    WriteResult::Failed { retry_after, .. } => retry_after,
                    _ => None,
                };
                let own = match urgency {
                    Urgency::Normal => retry_after,
                    Urgency::Heartbeat => retry_after.map(|requested| requested.min(HEARTBEAT_RETRY_AFTER_LONGEST)),
                };
                self.retries.failed(key, write, sent.attempt, class, own, now);
                if let Some(requested) = retry_after {
                    self.slots.pause(cluster, now + requested.min(RETRY_AFTER_LONGEST));
                }
            }
        }
        if matches!(sent.request.verb, Verb::Create { .. })
            && let Some(count) = self.creating.get_mut(key)
        {
            *count -= 1;
            if *count == 0 {
                self.creating.remove(key);
            }
        }
        waiting
    }

    /// Forgets the 403 and 404 failures of a key, because the missing object or right may now exist.
    pub(crate) fn clear_denied(&mut self, key: &K) {
        self.retries.clear_denied(key);
    }

    /// Removes and returns a key whose retry is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<K> {
        self.retries.pop_due(now)
    }

    /// Returns the time of the earliest retry.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.retries.next()
    }

    /// Reserves each free slot for a waiting key, and returns these keys.
    pub(crate) fn reserve_waiting(&mut self, now: Instant) -> Vec<K> {
        self.slots.reserve_waiting(now)
    }

    /// Returns the fights that are over and whose start was reported.
    pub(crate) fn fights_over(&mut self, now: Instant) -> Vec<Turn<K, S>> {
        let mut over = self.fights.tidy(now);
        over.retain(|turn| !self.inquiries.cancel(&turn.target));
        over
    }

    /// Returns the next GET about a fight to send.
    pub(crate) fn next_inquiry(&mut self) -> Option<Inquiry<K, S>> {
        self.inquiries.next()
    }

    pub(crate) fn inquired(&mut self, cluster: ClusterIndex) {
        self.inquiries.ended(cluster);
    }

    /// True if a write to any cluster could begin now.
    pub(crate) fn can_begin(&self, now: Instant) -> bool {
        self.slots.can_begin(now)
    }

    /// True if [`Writes::reserve_waiting`] would return a key.
    pub(crate) fn can_reserve_waiting(&self, now: Instant) -> bool {
        self.slots.can_reserve_waiting(now)
    }

    /// Returns the earliest time at which a cluster may be written to again: one with a free slot, or one with waiting
    /// keys if no other key is due.
    pub(crate) fn next_resume(&self, is_queue_empty: bool, now: Instant) -> Option<Instant> {
        if is_queue_empty { self.slots.next_resume(now) } else { self.slots.next_free(now) }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.slots.in_flight()
    }

    /// Forgets which writes are planned, because another replica leads.
    pub(crate) fn step_down(&mut self) {
        self.unfinished = Unfinished::new(self.clusters);
    }

    /// Returns the time since which the oldest write to a cluster is planned.
    pub(crate) fn oldest_unfinished(&self, cluster: ClusterIndex) -> Option<Instant> {
        self.unfinished.oldest(cluster)
    }

    /// Returns the number of keys or writes in each queue, by the value of the metric's label `queue`.
    pub(crate) fn depths(&self) -> [(&'static str, usize); 3] {
        [("retry", self.retries.len()), ("slot", self.slots.waiting()), ("in_flight", self.slots.in_flight())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::logic::{FlowId, Request};
    use fleetnet_types::{ObjectName, Timestamp};
    use serde_json::json;
    use std::time::Duration;

    type Of = Writes<&'static str, u8>;

    fn create() -> Request<u8, ()> {
        let verb = Verb::Create { body: json!({"spec": 1}).into() };
        Request { source: 0, name: ObjectName::new("ns", "a"), verb, receipt: None }
    }

    /// Plans a key with one write, the same for each key.
    fn plan(writes: &mut Of, key: &'static str, is_echo: bool, now: Instant) -> Begun {
        let request = create();
        let write = (Target::of(&request), request.verb.as_str());
        writes.begin_plan();
        let candidate = Candidate {
            key: &key,
            flow: FlowId(0).into(),
            cluster: 0,
            write: &write,
            verb: &request.verb,
            content: request.verb.content(),
            known_before: &None,
            is_echo,
            renews: false,
        };
        let begun = writes.begin(&candidate, now);
        writes.end_plan(&key, &BTreeMap::from([(write, None)]), now);
        begun
    }

    fn end(writes: &mut Of, key: &'static str, begun: &Begun, result: WriteResult, now: Instant) -> Vec<&'static str> {
        let Begun::Sent(attempt, requested) = *begun else { panic!("it was not sent: {begun:?}") };
        let request = create();
        let content = request.verb.content();
        let sent = Sent { key, content, attempt, requested, known_before: None, request };
        let (seen, at, took) = (Seen::<()>::Nothing, Timestamp::EPOCH, Duration::ZERO);
        let outcome = Outcome { result, is_answered: true, seen, at, took };
        let class = Of::class(&sent, &outcome.result, &None);
        writes.ended((0, Urgency::Normal), &sent, &outcome, class, now).into_iter().collect()
    }

    #[test]
    fn a_create_in_flight_delays_its_key_and_other_writes_to_its_object() {
        let (mut writes, now) = (Of::new(1, Jitter::new(1)), Instant::now());
        let begun = plan(&mut writes, "a", false, now);
        assert!(writes.is_creating(&"a") && !writes.is_creating(&"b"));
        assert!(matches!(plan(&mut writes, "b", false, now), Begun::Waiting));
        assert!(matches!(plan(&mut writes, "c", true, now), Begun::Waiting), "an echo of an older state");
        assert_eq!(end(&mut writes, "a", &begun, WriteResult::Done, now), ["b", "c"]);
        assert!(!writes.is_creating(&"a"));
        assert!(matches!(plan(&mut writes, "c", true, now), Begun::Unneeded));
    }

    #[test]
    fn a_failed_write_waits_and_counts_as_unfinished_since_its_first_plan() {
        let (mut writes, now) = (Of::new(1, Jitter::new(1)), Instant::now());
        let begun = plan(&mut writes, "a", false, now);
        let failed = WriteResult::Failed { message: String::new(), retry_after: None };
        assert!(end(&mut writes, "a", &begun, failed, now).is_empty());
        assert!(matches!(plan(&mut writes, "a", false, now), Begun::Delayed(until) if until > now));
        let later = now + Duration::from_secs(1);
        let begun = plan(&mut writes, "a", false, later);
        assert_eq!(writes.oldest_unfinished(0), Some(now));
        end(&mut writes, "a", &begun, WriteResult::Done, later);
        assert_eq!((writes.oldest_unfinished(0), writes.in_flight()), (None, 0));
    }
}
