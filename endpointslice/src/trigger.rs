//! [`TriggerTimes`]: time of the change that a write of slices publishes.
//!
//! From this time, consumers measure how long a change takes to reach them: the "network programming latency" of
//! Kubernetes' service level objectives. Slices have the time in the annotation
//! `endpoints.kubernetes.io/last-change-trigger-time`.
//!
//! The creation of a Service and a change of a pod's readiness have a time. Deletions, and changes of a Service's ports
//! or labels, have no time (kubernetes/kubernetes #81360).
//!
//! kube-controller-manager forgets the time of a change if its write fails, so the retry has no time. Here the time of
//! a change is kept until a write publishes the change.
//!
//! A controller that waits for all writes of a plan calls [`TriggerTimes::published`] when all of them have succeeded:
//!
//! ```
//! use endpointslice::model::{Pod, Service};
//! use endpointslice::trigger::TriggerTimes;
//!
//! # let (service, pods): (Service, Vec<Pod>) = Default::default();
//! let mut times = TriggerTimes::default();
//! let trigger_time = times.observe(&service, &pods);
//! // Plan with `trigger_time` and apply the plan. When all writes have succeeded:
//! times.published(&service.metadata.namespace, &service.metadata.name);
//! ```
//!
//! A controller that plans again while writes are pending gets the time of each plan from [`TriggerTimes::planned`].
//! The controller reports the start ([`TriggerTimes::send`]) and the end ([`TriggerTimes::ended`]) of each write.
//!
//! The time of a plan is then the time of the oldest change that its writes publish for the first time. This also works
//! for a Service that changes all the time, and while one of its pods waits for its Node.

use crate::model::{EndpointSlice, Pod, Service};
use crate::per_service::PerService;
use crate::plan::{Plan, PlanError};
use crate::text::Text;
use hashbrown::HashMap;
use jiff::Timestamp;
use std::sync::Arc;

/// Times of changes that slices do not show yet, by Service.
#[derive(Clone, Debug, Default)]
pub struct TriggerTimes {
    services: PerService<Seen>,
}

/// Recorded times of one Service.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// UID of the Service. A Service that was created again under the same name starts with new state.
    uid: Text,
    created: Option<Timestamp>,
    /// Time of each pod's last change of readiness. Pods without such a time are absent.
    pods: HashMap<Text, LastChange>,
    /// Number of calls of [`TriggerTimes::observe`] so far. Each pod has the number of the last call that included it.
    /// A pod with another number was deleted.
    round: u32,
    /// Creation time of the Service. `None` after a slice without endpoints has published it. A slice with endpoints
    /// gets its time from the changes of its pods instead.
    service: Option<Timestamp>,
    /// For each pod, the time of its earliest change that no slice shows yet and that no pending write contains.
    waiting: HashMap<Text, Timestamp>,
    /// Names of the pods in each pending write. Plans keep the times of later changes of these pods until the write
    /// ends, because the write may fail. A later write then publishes all changes of these pods.
    underway: Vec<Arc<[Text]>>,
}

/// Pending write, with the times of the changes that it publishes.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    service: Option<Timestamp>,
    times: Vec<(Text, Timestamp)>,
    pods: Arc<[Text]>,
}

#[derive(Clone, Copy, Debug)]
struct LastChange {
    at: Timestamp,
    /// Value of `Seen::round` in the last call of [`TriggerTimes::observe`] that included this pod.
    round: u32,
}

impl TriggerTimes {
    /// Records a Service and all pods that it selects, including ended pods. Returns the time of the earliest change
    /// that is not published yet. Returns `None` if no such change has a time.
    ///
    /// For a Service that is observed for the first time, returns the creation time of the Service, independent of its
    /// pods.
    pub fn observe<'a>(&mut self, service: &Service, pods: impl IntoIterator<Item = &'a Pod>) -> Option<Timestamp> {
        let metadata = &service.metadata;
        let seen = self.services.get_or_default(&metadata.namespace, &metadata.name);
        let is_known = seen.uid == metadata.uid && seen.round > 0;
        if !is_known {
            *seen = Seen { uid: metadata.uid.clone(), service: metadata.creation_timestamp, ..Seen::default() };
        } else if metadata.creation_timestamp > seen.created {
            seen.service = metadata.creation_timestamp;
        }
        seen.created = metadata.creation_timestamp;
        seen.round = seen.round.wrapping_add(1).max(1);
        for pod in pods {
            let newer = seen.note(pod);
            seen.wait_for(&pod.metadata.name, if is_known { newer } else { metadata.creation_timestamp });
        }
        let Seen { pods, waiting, round, .. } = seen;
        pods.retain(|_, change| change.round == *round);
        waiting.retain(|pod, _| !is_known || pods.contains_key(pod));
        seen.earliest()
    }

    /// Records one pod of a Service whose other pods are unchanged. Like [`Self::observe`], returns the time of the
    /// earliest change that is not published yet.
    ///
    /// Use this to plan the change of one pod without a list of all pods. Returns `None` for a Service that was never
    /// observed.
    pub fn observe_pod(&mut self, namespace: &str, service: &str, pod: &Pod) -> Option<Timestamp> {
        let seen = self.services.get_mut(namespace, service)?;
        let newer = seen.note(pod);
        seen.wait_for(&pod.metadata.name, newer);
        seen.earliest()
    }

    /// Records that a Service lost one pod. Like [`Self::observe`], returns the time of the earliest change that is not
    /// published yet. A deletion itself has no time. A later pod of the same name starts with new state.
    pub fn observe_removal(&mut self, namespace: &str, service: &str, pod: &str) -> Option<Timestamp> {
        let seen = self.services.get_mut(namespace, service)?;
        seen.pods.remove(pod);
        seen.waiting.remove(pod);
        seen.earliest()
    }

    /// Records that all changes of a Service so far are published or needed no write.
    pub fn published(&mut self, namespace: &str, service: &str) {
        if let Some(seen) = self.services.get_mut(namespace, service) {
            seen.service = None;
            seen.waiting.clear();
        }
    }

    /// Records a plan that was made from everything observed so far. Returns the time of the oldest change that the
    /// plan's writes publish for the first time.
    ///
    /// Times are kept for pods in these writes, for pods in pending writes, and for pods that wait for their Node.
    /// Times of all other pods are dropped, because their changes are published or need no write.
    pub fn planned(&mut self, plan: &Plan) -> Option<Timestamp> {
        let time = self.oldest(plan);
        let seen = self.services.get_mut(&plan.service.namespace, &plan.service.name)?;
        if seen.waiting.is_empty() && seen.service.is_none() {
            return None;
        }
        seen.service = seen.service.filter(|_| written(plan).any(|slice| slice.endpoints.is_empty()));
        let mut kept: HashMap<Text, Timestamp> = HashMap::new();
        kept.extend(written(plan).flat_map(pods_of).filter_map(|pod| seen.waiting.remove_entry(pod)));
        kept.extend(plan.errors().filter_map(|PlanError::NodeMissing { pod, .. }| seen.waiting.remove_entry(&pod)));
        let is_underway = |pod: &Text| seen.underway.iter().any(|pods| pods.contains(pod));
        kept.extend(seen.waiting.drain().filter(|(pod, _)| is_underway(pod)));
        seen.waiting = kept;
        time
    }

    /// Returns the time of the oldest change that the writes of a plan publish for the first time, without recording
    /// the plan. `None` if they publish no change that has a time.
    #[must_use]
    pub fn oldest(&self, plan: &Plan) -> Option<Timestamp> {
        let seen = self.services.get(&plan.service.namespace, &plan.service.name)?;
        let service = seen.service.filter(|_| written(plan).any(|slice| slice.endpoints.is_empty()));
        written(plan).flat_map(pods_of).filter_map(|pod| seen.waiting.get(pod)).copied().chain(service).min()
    }

    /// Returns a copy with the state of one Service only, to plan that Service without changing `self`.
    #[must_use]
    pub fn for_service(&self, namespace: &Text, service: &Text) -> Self {
        let mut times = Self::default();
        if let Some(seen) = self.services.get(namespace, service) {
            *times.services.get_or_default(namespace, service) = seen.clone();
        }
        times
    }

    /// Records that a write of a slice is sent. `pods` are the pods of the slice's endpoints ([`pods_of`]). The changes
    /// of these pods do not count for later plans, unless the write fails.
    pub fn send(&mut self, namespace: &str, service: &str, pods: Arc<[Text]>) -> Sent {
        let Some(seen) = self.services.get_mut(namespace, service) else { return Sent::default() };
        let times = pods.iter().filter_map(|pod| seen.waiting.remove_entry(pod)).collect();
        seen.underway.push(Arc::clone(&pods));
        Sent { times, service: seen.service.take_if(|_| pods.is_empty()), pods }
    }

    /// Records the end of a write. `is_done` is false if the write failed; then a later write must publish the changes
    /// of its pods.
    pub fn ended(&mut self, namespace: &str, service: &str, sent: Sent, is_done: bool) {
        let Some(seen) = self.services.get_mut(namespace, service) else { return };
        if let Some(at) = seen.underway.iter().position(|pods| Arc::ptr_eq(pods, &sent.pods)) {
            seen.underway.swap_remove(at);
        }
        if !is_done {
            seen.service = earlier(seen.service, sent.service);
            sent.times.into_iter().for_each(|(pod, time)| seen.wait_for(&pod, Some(time)));
        }
    }

    /// Forgets a Service that was deleted.
    pub fn forget(&mut self, namespace: &str, service: &str) {
        self.services.remove(namespace, service);
    }

    /// True if no Service has recorded times.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }
}

impl Seen {
    /// Records the time of a pod's last change of readiness. Returns this time if it is later than the time recorded
    /// before.
    fn note(&mut self, pod: &Pod) -> Option<Timestamp> {
        let at = pod.status.readiness.since?;
        let round = self.round;
        match self.pods.get_mut(&pod.metadata.name) {
            Some(known) => {
                let is_newer = at > known.at;
                *known = LastChange { at, round };
                is_newer.then_some(at)
            }
            None => {
                self.pods.insert(pod.metadata.name.clone(), LastChange { at, round });
                Some(at)
            }
        }
    }

    fn wait_for(&mut self, pod: &Text, change: Option<Timestamp>) {
        if let Some(change) = change {
            let waits = self.waiting.entry_ref(pod).or_insert(change);
            *waits = change.min(*waits);
        }
    }

    fn earliest(&self) -> Option<Timestamp> {
        self.waiting.values().copied().chain(self.service).min()
    }
}

/// Returns the slices that a plan creates and updates.
fn written(plan: &Plan) -> impl Iterator<Item = &EndpointSlice> {
    let drafts = || plan.families.iter().map(|family| &family.draft);
    let updated = drafts().flat_map(|draft| draft.updates.iter().map(|update| &update.after));
    drafts().flat_map(|draft| &draft.creates).chain(updated)
}

/// Returns the names of the pods that a slice's endpoints refer to.
pub fn pods_of(slice: &EndpointSlice) -> impl Iterator<Item = &Text> {
    slice.endpoints.iter().filter_map(|endpoint| endpoint.target_ref.as_ref().map(|target| &target.name))
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    [one, other].into_iter().flatten().min()
}

#[cfg(test)]
mod tests;
