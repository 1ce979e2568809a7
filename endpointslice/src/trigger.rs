//! [`TriggerTimes`]: when the change was made that a write of slices publishes.
//!
//! Consumers measure from it how long a change takes to reach them: the "network programming latency" of Kubernetes'
//! service level objectives, for which slices carry the annotation `endpoints.kubernetes.io/last-change-trigger-time`.
//!
//! A change has a time if it is the creation of a Service or a change of a pod's readiness. Deletions and changes of a
//! Service's ports or labels have none (kubernetes/kubernetes #81360). Where upstream forgets the time of a change whose
//! write failed, so that the retry that publishes it carries none, a time is kept here until it is published.
//!
//! Who writes a plan as a whole says when all of it went well:
//!
//! ```
//! use endpointslice::model::{Pod, Service};
//! use endpointslice::trigger::TriggerTimes;
//!
//! # let (service, pods): (Service, Vec<Pod>) = Default::default();
//! let mut times = TriggerTimes::default();
//! let trigger_time = times.observe(&service, &pods);
//! // Plan with that time and write. When all of it went well:
//! times.published(&service.metadata.namespace, &service.metadata.name);
//! ```
//!
//! Who plans again while writes are under way asks for the time of each plan once it is made ([`TriggerTimes::planned`]),
//! and says which writes leave ([`TriggerTimes::send`]) and how they have ended ([`TriggerTimes::ended`]). Then the
//! time is that of the oldest change that the plan's writes publish for the first time, also of a Service that never comes
//! to rest, and also while one of its pods waits for its Node.

use crate::model::{EndpointSlice, Pod, Service};
use crate::per_service::PerService;
use crate::plan::{Plan, PlanError};
use crate::text::Text;
use hashbrown::HashMap;
use jiff::Timestamp;
use std::sync::Arc;

/// When the changes were made that slices do not show yet, by Service.
#[derive(Clone, Debug, Default)]
pub struct TriggerTimes {
    services: PerService<Seen>,
}

/// What has been seen of one Service.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// A Service of the same name that was made anew is another.
    uid: Text,
    created: Option<Timestamp>,
    /// By name, when the readiness of each of its pods last changed. One that has no such time is not in it.
    pods: HashMap<Text, LastChange>,
    /// The number of the latest look at all pods.
    round: u32,
    /// The creation of the Service, until a slice without endpoints says so. Others have it from the pods that it began with.
    service: Option<Timestamp>,
    /// By pod, the earliest change that is neither published nor on its way.
    waiting: HashMap<Text, Timestamp>,
    /// The pods of each write that is under way: what a plan makes of their later changes, the answers may change.
    underway: Vec<Arc<[Text]>>,
}

/// A write under way, with the times of what it publishes.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    service: Option<Timestamp>,
    times: Vec<(Text, Timestamp)>,
    pods: Arc<[Text]>,
}

#[derive(Clone, Copy, Debug)]
struct LastChange {
    at: Timestamp,
    /// The latest look at all pods that found the pod.
    round: u32,
}

impl TriggerTimes {
    /// Takes note of a Service and all the pods that it selects, ended ones included, and answers when the earliest change
    /// was made that is not published yet; none if there is none that has a time. Of a Service that is seen for the first
    /// time this is its creation, whatever its pods say.
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

    /// Takes note of one pod of a Service whose others are as they were, and answers as [`Self::observe`] does: for those
    /// who plan one pod's change without looking at the others. A Service that was never observed has no time yet.
    pub fn observe_pod(&mut self, namespace: &str, service: &str, pod: &Pod) -> Option<Timestamp> {
        let seen = self.services.get_mut(namespace, service)?;
        let newer = seen.note(pod);
        seen.wait_for(&pod.metadata.name, newer);
        seen.earliest()
    }

    /// Takes note that a Service has lost one pod, and answers as [`Self::observe`] does. A deletion itself has no time;
    /// a later pod of that name starts anew.
    pub fn observe_removal(&mut self, namespace: &str, service: &str, pod: &str) -> Option<Timestamp> {
        let seen = self.services.get_mut(namespace, service)?;
        seen.pods.remove(pod);
        seen.waiting.remove(pod);
        seen.earliest()
    }

    /// Takes note that everything seen so far is published, or needed no write.
    pub fn published(&mut self, namespace: &str, service: &str) {
        if let Some(seen) = self.services.get_mut(namespace, service) {
            seen.service = None;
            seen.waiting.clear();
        }
    }

    /// Takes note of a plan over all that was observed, and answers when the oldest change was made that its writes publish
    /// for the first time. Of a pod that is in none of them all is published, or on its way, or not to be, and forgotten; a
    /// pod that waits for its Node keeps its time for the write that publishes it.
    pub fn planned(&mut self, plan: &Plan) -> Option<Timestamp> {
        let seen = self.services.get_mut(&plan.service.namespace, &plan.service.name)?;
        if seen.waiting.is_empty() && seen.service.is_none() {
            return None;
        }
        let drafts = || plan.families.iter().map(|family| &family.draft);
        let updated = || drafts().flat_map(|draft| draft.updates.iter().map(|update| &update.after));
        let written = || drafts().flat_map(|draft| &draft.creates).chain(updated());
        seen.service = seen.service.filter(|_| written().any(|slice| slice.endpoints.is_empty()));
        let mut kept: HashMap<Text, Timestamp> = HashMap::new();
        let pods = written().flat_map(pods_of);
        kept.extend(pods.filter_map(|pod| seen.waiting.remove_entry(pod)));
        let time = kept.values().copied().chain(seen.service).min();
        kept.extend(plan.errors().filter_map(|PlanError::NodeMissing { pod, .. }| seen.waiting.remove_entry(&pod)));
        let is_underway = |pod: &Text| seen.underway.iter().any(|pods| pods.contains(pod));
        kept.extend(seen.waiting.drain().filter(|(pod, _)| is_underway(pod)));
        seen.waiting = kept;
        time
    }

    /// A write leaves, of a slice with endpoints of these pods ([`pods_of`]). What it publishes is on its way: later plans
    /// have later times.
    pub fn send(&mut self, namespace: &str, service: &str, pods: Arc<[Text]>) -> Sent {
        let Some(seen) = self.services.get_mut(namespace, service) else { return Sent::default() };
        let times = pods.iter().filter_map(|pod| seen.waiting.remove_entry(pod)).collect();
        seen.underway.push(Arc::clone(&pods));
        Sent { times, service: seen.service.take_if(|_| pods.is_empty()), pods }
    }

    /// That write has ended. If it was not carried out, as far as is known, what it was to publish is yet to be.
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

    /// Forgets a Service, which is gone.
    pub fn forget(&mut self, namespace: &str, service: &str) {
        self.services.remove(namespace, service);
    }

    /// Whether it remembers no Service.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }
}

impl Seen {
    /// Remembers when the readiness of `pod` last changed, and answers that if it is later than what was remembered.
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

/// The pods whose endpoints a slice has.
pub fn pods_of(slice: &EndpointSlice) -> impl Iterator<Item = &Text> {
    slice.endpoints.iter().filter_map(|endpoint| endpoint.target_ref.as_ref().map(|target| &target.name))
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    [one, other].into_iter().flatten().min()
}

#[cfg(test)]
mod tests;
