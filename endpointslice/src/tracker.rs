//! [`SliceTracker`]: which slice events are echoes of one's own writes, and whether a cache has seen those writes yet.
//!
//! A controller that plans from a watched cache needs both answers. It must not plan while the cache lacks what it has
//! written itself, or it writes everything twice; and it must plan when somebody else has changed or deleted a slice of
//! its, but not because of itself.
//!
//! A write is announced before it is sent and settled when its answer is there, since the watch may be faster than the
//! answer. What the watch shows in between is judged then, when it is certain whose it was:
//!
//! ```text
//!  begin_update ──► PUT ──► the watch shows generation 8 ──► answer: generation 8 ──► stored: it was ours, nothing to do
//!                                    │                                                   generation 9: both, plan again
//!                                    └► changed: false for now
//! ```
//!
//! It differs from upstream's tracker where that has holes: a slice that is deleted while its update is answered leaves
//! nothing behind (kubernetes/kubernetes #141592: no slices for that Service until the controller restarts); an expected
//! deletion is forgotten however event and answer are ordered; a deletion by others is told even of a slice that was never
//! written by this process; and a slice that waits for its finalizers does not make the cache look stale (#108267).
//!
//! ```
//! use endpointslice::model::{EndpointSlice, Service};
//! use endpointslice::tracker::SliceTracker;
//!
//! # let (service, before, answer): (Service, EndpointSlice, EndpointSlice) = Default::default();
//! let mut tracker = SliceTracker::default();
//! let write = tracker.begin_update(&service, &before);
//! // Send it. Meanwhile the watch goes on: `tracker.changed(&slice)`, `tracker.deleted(&slice)`.
//! let plan_again = tracker.stored(write, &answer);
//! ```
//!
//! [`TrackedWriter`] does that for all writes of a plan.

mod tracked;
mod writer;

pub use writer::{SharedTracker, TrackedWriter};

use crate::model::{EndpointSlice, Service};
use crate::names::LABEL_SERVICE_NAME;
use crate::per_service::PerService;
use crate::plan::ServiceName;
use crate::text::Text;
use std::borrow::Borrow;
use tracked::Tracked;

/// What one process has written of slices and not seen again yet.
#[derive(Clone, Debug, Default)]
pub struct SliceTracker {
    services: PerService<Tracked>,
    eras: u64,
}

/// A write that was announced. It ends with [`SliceTracker::stored`], [`SliceTracker::removed`] or
/// [`SliceTracker::failed`], also if it is given up.
#[derive(Debug)]
#[must_use = "a write that is never settled keeps foreign changes of the Service's slices from being told"]
pub struct PendingWrite {
    namespace: Text,
    service: Text,
    /// A Service that was forgotten meanwhile, or another under its name, takes no answers of this write.
    era: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Create,
    Update { uid: Text, generation: i64 },
    Delete { uid: Text },
}

impl SliceTracker {
    /// Announces that a slice of `service` will be created.
    pub fn begin_create(&mut self, service: &Service) -> PendingWrite {
        let (tracked, write) = self.begin(service, Kind::Create);
        tracked.creates += 1;
        write
    }

    /// Announces that `slice`, as the plan knew it, will be updated.
    pub fn begin_update(&mut self, service: &Service, slice: &EndpointSlice) -> PendingWrite {
        let (uid, generation) = (slice.metadata.uid.clone(), slice.metadata.generation);
        let (tracked, write) = self.begin(service, Kind::Update { uid: uid.clone(), generation });
        tracked.known(uid, generation).updates += 1;
        write
    }

    /// Announces that `slice` will be deleted.
    pub fn begin_delete(&mut self, service: &Service, slice: &EndpointSlice) -> PendingWrite {
        let (uid, generation) = (slice.metadata.uid.clone(), slice.metadata.generation);
        let (tracked, write) = self.begin(service, Kind::Delete { uid: uid.clone() });
        tracked.known(uid, generation).is_deleting = true;
        write
    }

    fn begin(&mut self, service: &Service, kind: Kind) -> (&mut Tracked, PendingWrite) {
        let metadata = &service.metadata;
        let tracked = self.services.get_or_default(&metadata.namespace, &metadata.name);
        if tracked.is_new() || tracked.service_uid != metadata.uid {
            self.eras += 1;
            *tracked = Tracked::new(metadata.uid.clone(), self.eras);
        }
        tracked.under_way += 1;
        let (namespace, service) = (metadata.namespace.clone(), metadata.name.clone());
        let write = PendingWrite { namespace, service, era: tracked.era, kind };
        (tracked, write)
    }

    /// Settles a create or update: the API server answered with `slice`. True if somebody else has written to slices of
    /// the Service meanwhile, so that it must be planned again.
    #[must_use]
    pub fn stored(&mut self, write: PendingWrite, slice: &EndpointSlice) -> bool {
        self.settle(&write, |tracked| {
            tracked.record(slice);
            // Every write counts one up, or none if it changed nothing: more than one up, and somebody came between.
            matches!(write.kind, Kind::Update { generation, .. } if slice.metadata.generation > generation + 1)
        })
    }

    /// Settles a delete: the API server accepted it, and the watch will show it. (Where the answer was that there is no
    /// such slice, that is [`Self::failed`]: no event may come.) True as in [`Self::stored`].
    #[must_use]
    pub fn removed(&mut self, write: PendingWrite) -> bool {
        // The deletion is awaited since its announcement; the watch may have shown it already.
        self.settle(&write, |_| false)
    }

    /// Settles a write that failed, was given up, or found nothing to delete or update. True as in [`Self::stored`].
    #[must_use]
    pub fn failed(&mut self, write: PendingWrite) -> bool {
        self.settle(&write, |tracked| {
            if let Kind::Update { uid, .. } | Kind::Delete { uid } = &write.kind {
                tracked.give_up(uid);
            }
            false
        })
    }

    fn settle(&mut self, write: &PendingWrite, outcome: impl FnOnce(&mut Tracked) -> bool) -> bool {
        let PendingWrite { namespace, service, era, kind } = write;
        let Some(tracked) = self.services.get_mut(namespace, service).filter(|tracked| tracked.era == *era) else {
            return false;
        };
        match kind {
            Kind::Create => tracked.creates -= 1,
            Kind::Update { uid, .. } => tracked.end_update(uid),
            Kind::Delete { .. } => {}
        }
        let overtaken = outcome(tracked);
        tracked.under_way -= 1;
        let found = tracked.under_way == 0 && tracked.judge();
        if tracked.is_empty() {
            self.services.remove(namespace, service);
        }
        overtaken || found
    }

    /// The watch shows `slice`, new or changed. True if its Service must be planned again: it is not known to be one's own
    /// write. While a write is under way that may have made it, the answer to that write decides.
    #[must_use]
    pub fn changed(&mut self, slice: &EndpointSlice) -> bool {
        self.of_mut(slice).is_none_or(|tracked| tracked.changed(slice))
    }

    /// The watch shows that `slice` is gone. True if its Service must be planned again: nobody here has deleted it.
    #[must_use]
    pub fn deleted(&mut self, slice: &EndpointSlice) -> bool {
        let Some(service) = slice.metadata.labels.get(LABEL_SERVICE_NAME) else { return true };
        let namespace = &slice.metadata.namespace;
        let Some(tracked) = self.services.get_mut(namespace, service) else { return true };
        let was_expected = tracked.deleted(&slice.metadata.uid);
        if tracked.is_empty() {
            self.services.remove(namespace, service);
        }
        !was_expected
    }

    /// Whether a cache that has these slices of `service`, those included that are being deleted, lacks something that
    /// was written here. Such a Service is planned when the cache has caught up: ask again at each event of its slices.
    #[must_use]
    pub fn is_stale<S: Borrow<EndpointSlice>>(&self, service: &Service, slices: impl IntoIterator<Item = S>) -> bool {
        let metadata = &service.metadata;
        let tracked = self.services.get(&metadata.namespace, &metadata.name);
        tracked.is_some_and(|tracked| tracked.service_uid == metadata.uid && tracked.is_ahead_of(slices))
    }

    /// Whether it remembers `slice`.
    #[must_use]
    pub fn contains(&self, slice: &EndpointSlice) -> bool {
        let service = slice.metadata.labels.get(LABEL_SERVICE_NAME);
        let tracked = service.and_then(|service| self.services.get(&slice.metadata.namespace, service));
        tracked.is_some_and(|tracked| tracked.contains(&slice.metadata.uid))
    }

    /// The watch had a gap and began anew with a list of all slices, as of `resource_version`. What was written before
    /// that and is not listed (which `is_listed` says of a UID) is gone, and no event will tell: such slices are forgotten
    /// and their Services answered, to be planned again.
    #[must_use]
    pub fn relisted(&mut self, resource_version: &str, is_listed: impl Fn(&str) -> bool) -> Vec<ServiceName> {
        let Some(listed_at) = version(resource_version) else { return Vec::new() };
        let mut bereft = Vec::new();
        self.services.retain(|namespace, service, tracked| {
            if tracked.forget_unlisted(listed_at, &is_listed) {
                bereft.push(ServiceName { namespace: namespace.clone(), name: service.clone() });
            }
            !tracked.is_empty()
        });
        bereft
    }

    /// Forgets a Service, which is gone. Answers to writes that are still under way are ignored.
    pub fn forget(&mut self, namespace: &str, service: &str) {
        self.services.remove(namespace, service);
    }

    /// Whether it remembers nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    fn of_mut(&mut self, slice: &EndpointSlice) -> Option<&mut Tracked> {
        let service = slice.metadata.labels.get(LABEL_SERVICE_NAME)?;
        self.services.get_mut(&slice.metadata.namespace, service)
    }
}

/// Versions of one resource can be ordered as numbers (KEP-5504); should they be no numbers, nothing is concluded.
fn version(text: &str) -> Option<u64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests;
