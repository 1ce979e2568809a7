//! [`SliceTracker`]: distinguishes own writes from those of others in watch events, and detects a cache that lacks own writes.
//!
//! A controller that plans from a watched cache needs both. It must not plan while the cache lacks its own writes, or it writes
//! everything twice. It must plan when somebody else changed or deleted one of its slices, but not after its own writes.
//!
//! A write is announced before it is sent and settled when its answer arrives, because the watch may be faster than the answer.
//! Events in between are judged at the answer, when their origin is certain:
//!
//! ```text
//!  begin_update ──► PUT ──► the watch shows generation 8 ──► answer: generation 8 ──► stored: it was ours, nothing to do
//!                                    │                                                   generation 9: both, plan again
//!                                    └► changed: false for now
//! ```
//!
//! Four cases differ from upstream's tracker:
//!
//! - A slice that is deleted before the answer to its update leaves no state. Upstream writes no slices for its Service until
//!   the controller restarts (kubernetes/kubernetes #141592).
//! - An expected deletion is forgotten in any order of event and answer.
//! - A deletion by others is reported also for a slice that this process never wrote.
//! - A slice that waits for its finalizers does not make the cache look stale (kubernetes/kubernetes #108267).
//!
//! ```
//! use endpointslice::model::{EndpointSlice, Service};
//! use endpointslice::tracker::SliceTracker;
//!
//! # let (service, before, answer): (Service, EndpointSlice, EndpointSlice) = Default::default();
//! let mut tracker = SliceTracker::default();
//! let write = tracker.begin_update(&service, &before);
//! // Send it. Meanwhile the watch continues: `tracker.changed(&slice)`, `tracker.deleted(&slice)`.
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

/// Writes of slices by one process that its watch has not shown yet.
#[derive(Clone, Debug, Default)]
pub struct SliceTracker {
    services: PerService<Tracked>,
    eras: u64,
}

/// Write that was announced and has no answer yet. It ends with [`SliceTracker::stored`], [`SliceTracker::removed`] or
/// [`SliceTracker::failed`]; call the last also for a write that is given up.
#[derive(Debug)]
#[must_use = "a write that is never settled keeps foreign changes of the Service's slices from being told"]
pub struct PendingWrite {
    namespace: Text,
    service: Text,
    /// Number of the Service's state when the write was announced. If the Service was forgotten or created again meanwhile, the
    /// answer is ignored.
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
    /// Announces that a slice of `service` is going to be created.
    pub fn begin_create(&mut self, service: &Service) -> PendingWrite {
        let (tracked, write) = self.begin(service, Kind::Create);
        tracked.creates += 1;
        write
    }

    /// Announces that `slice`, in the version that was planned with, is going to be updated.
    pub fn begin_update(&mut self, service: &Service, slice: &EndpointSlice) -> PendingWrite {
        let (uid, generation) = (slice.metadata.uid.clone(), slice.metadata.generation);
        let (tracked, write) = self.begin(service, Kind::Update { uid: uid.clone(), generation });
        tracked.known(uid, generation).updates += 1;
        write
    }

    /// Announces that `slice` is going to be deleted.
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

    /// Ends a create or update that the API server answered with `slice`.
    ///
    /// Returns true if another writer wrote to slices of the Service meanwhile, so that the Service must be planned again.
    #[must_use]
    pub fn stored(&mut self, write: PendingWrite, slice: &EndpointSlice) -> bool {
        self.settle(&write, |tracked| {
            tracked.record(slice);
            // Every write that changes something increases the generation by one. A larger increase means that another writer
            // wrote too.
            // fault Z16.1: slice.metadata.generation > generation + 1 ~> false
            matches!(write.kind, Kind::Update { generation, .. } if slice.metadata.generation > generation + 1)
        })
    }

    /// Ends a delete that the API server accepted, and that the watch will show. Returns true in the same case as
    /// [`Self::stored`].
    ///
    /// If the API server answered that the slice does not exist, call [`Self::failed`]: no event may follow.
    #[must_use]
    pub fn removed(&mut self, write: PendingWrite) -> bool {
        // Nothing to record: the deletion is expected since it was announced, and the watch may have shown it already.
        self.settle(&write, |_| false)
    }

    /// Ends a write that failed, was given up, or found no slice to delete or update. Returns true in the same case as
    /// [`Self::stored`].
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

    /// Handles a watch event about a new or changed slice. Returns true if its Service must be planned again, because the
    /// change is not known to be an own write.
    ///
    /// If a pending write may have made the change, the answer to that write decides.
    #[must_use]
    pub fn changed(&mut self, slice: &EndpointSlice) -> bool {
        self.of_mut(slice).is_none_or(|tracked| tracked.changed(slice))
    }

    /// Handles a watch event about a deleted slice. Returns true if its Service must be planned again, because this process did
    /// not delete the slice.
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

    /// True if a cache that has these slices of `service` does not show an own write yet. `slices` must include those that are
    /// being deleted.
    ///
    /// Do not plan such a Service until the cache has caught up: ask again at each event of its slices.
    #[must_use]
    pub fn is_stale<S: Borrow<EndpointSlice>>(&self, service: &Service, slices: impl IntoIterator<Item = S>) -> bool {
        let metadata = &service.metadata;
        let tracked = self.services.get(&metadata.namespace, &metadata.name);
        tracked.is_some_and(|tracked| tracked.service_uid == metadata.uid && tracked.is_ahead_of(slices))
    }

    /// True if the tracker has state of `slice`.
    #[must_use]
    pub fn contains(&self, slice: &EndpointSlice) -> bool {
        let service = slice.metadata.labels.get(LABEL_SERVICE_NAME);
        let tracked = service.and_then(|service| self.services.get(&slice.metadata.namespace, service));
        tracked.is_some_and(|tracked| tracked.contains(&slice.metadata.uid))
    }

    /// Handles a new list of all slices, as of `resource_version`, after a gap in the watch.
    ///
    /// A slice that was written before and is not listed is gone, and no event will follow. The tracker forgets such slices and
    /// returns their Services, which must be planned again. `is_listed` is true for a UID in the list.
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

    /// Forgets a Service that is gone. Answers to its pending writes are ignored.
    pub fn forget(&mut self, namespace: &str, service: &str) {
        self.services.remove(namespace, service);
    }

    /// True if the tracker has no state of any Service.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    fn of_mut(&mut self, slice: &EndpointSlice) -> Option<&mut Tracked> {
        let service = slice.metadata.labels.get(LABEL_SERVICE_NAME)?;
        self.services.get_mut(&slice.metadata.namespace, service)
    }
}

/// Parses a resourceVersion as a number: those of one kind can be ordered (KEP-5504). `None` for others, which are not
/// compared.
fn version(text: &str) -> Option<u64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests;
