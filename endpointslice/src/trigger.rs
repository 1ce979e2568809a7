//! [`TriggerTimes`]: when the change was made that a write of slices publishes.
//!
//! Consumers measure from it how long a change takes to reach them: the "network programming latency" of Kubernetes'
//! service level objectives, for which slices carry the annotation `endpoints.kubernetes.io/last-change-trigger-time`.
//!
//! A change has a time if it is the creation of a Service or a change of a pod's readiness. Deletions and changes of a
//! Service's ports or labels have none (kubernetes/kubernetes #81360). Where upstream forgets the time of a change whose
//! write failed, so that the retry that publishes it carries none, a time is kept here until [`TriggerTimes::published`].
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

use crate::model::{Pod, Service};
use crate::per_service::PerService;
use crate::text::Text;
use hashbrown::HashMap;
use jiff::Timestamp;

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
    /// The earliest change that no successful write has published.
    pending: Option<Timestamp>,
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
            *seen = Seen { uid: metadata.uid.clone(), pending: metadata.creation_timestamp, ..Seen::default() };
        } else if metadata.creation_timestamp > seen.created {
            seen.wait_for(metadata.creation_timestamp);
        }
        seen.created = metadata.creation_timestamp;
        seen.round = seen.round.wrapping_add(1).max(1);
        for pod in pods {
            let newer = seen.note(pod);
            if is_known {
                seen.wait_for(newer);
            }
        }
        let round = seen.round;
        seen.pods.retain(|_, change| change.round == round);
        seen.pending
    }

    /// Takes note of one pod of a Service whose others are as they were, and answers as [`Self::observe`] does: for those
    /// who plan one pod's change without looking at the others. A Service that was never observed has no time yet.
    pub fn observe_pod(&mut self, namespace: &str, service: &str, pod: &Pod) -> Option<Timestamp> {
        let seen = self.services.get_mut(namespace, service)?;
        let newer = seen.note(pod);
        seen.wait_for(newer);
        seen.pending
    }

    /// Takes note that a Service has lost one pod, and answers as [`Self::observe`] does. A deletion itself has no time;
    /// a later pod of that name starts anew.
    pub fn observe_removal(&mut self, namespace: &str, service: &str, pod: &str) -> Option<Timestamp> {
        let seen = self.services.get_mut(namespace, service)?;
        seen.pods.remove(pod);
        seen.pending
    }

    /// Takes note that everything seen so far is published, or needed no write.
    pub fn published(&mut self, namespace: &str, service: &str) {
        if let Some(seen) = self.services.get_mut(namespace, service) {
            seen.pending = None;
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

    fn wait_for(&mut self, change: Option<Timestamp>) {
        self.pending = [self.pending, change].into_iter().flatten().min();
    }
}

#[cfg(test)]
mod tests;
