//! [`SliceTracker`]: distinguishes own writes from writes of others in watch events, and detects a watch cache that
//! lacks own writes.
//!
//! A controller that plans from a watch cache needs both:
//! - The controller must not plan while the cache lacks an own write. Otherwise it would make the same write twice.
//! - The controller must plan when another writer changed or deleted one of its slices, but not after an own write.
//!
//! The controller announces a write before it sends the request, and settles the write when the response arrives. The
//! watch may show the write before the response arrives. Then only the response shows if the event was caused by the
//! own write:
//!
//! ```text
//!  begin_update ──► PUT ──► watch event: generation 8 ──► response: generation 8 ──► stored: own write, returns false
//!                                    │                    response: generation 9 ──► stored: another write too, returns true
//!                                    └► changed: returns false for now
//! ```
//!
//! Four cases differ from the tracker of kube-controller-manager:
//!
//! - If a slice is deleted before the response to its update, no state of the slice remains here. In the same case,
//!   kube-controller-manager writes no slices of the Service until it restarts (kubernetes/kubernetes #141592).
//! - An own deletion leaves no state, in any order of event and response.
//! - A deletion by another writer is reported also for a slice that this process never wrote.
//! - A deleted slice that waits for its finalizers does not make the cache look stale (kubernetes/kubernetes #108267).
//!
//! ```
//! use endpointslice::model::{EndpointSlice, Service};
//! use endpointslice::tracker::SliceTracker;
//!
//! # let (service, before, answer): (Service, EndpointSlice, EndpointSlice) = Default::default();
//! let mut tracker = SliceTracker::default();
//! let write = tracker.begin_update(&service, &before);
//! // Send the request. Meanwhile pass each watch event to `tracker.changed(&slice)` or `tracker.deleted(&slice)`.
//! let plan_again = tracker.stored(write, &answer);
//! ```
//!
//! [`TrackedWriter`] announces and settles all writes of a plan.

mod tracked;
mod writer;

pub use writer::{SharedTracker, TrackedWriter};

use crate::model::{EndpointSlice, Service};
use crate::names::LABEL_SERVICE_NAME;
use crate::per_service::PerService;
use crate::plan::ServiceName;
use crate::text::Text;
use std::borrow::Borrow;
use tracked::{Tracked, version};

/// Record of the slice writes of one process that the watch of this process has not shown yet.
#[derive(Clone, Debug, Default)]
pub struct SliceTracker {
    services: PerService<Tracked>,
    eras: u64,
}

/// Write that was announced to the tracker and has no response yet. Pass the response to [`SliceTracker::stored`] or
/// [`SliceTracker::removed`]. Call [`SliceTracker::failed`] for a write that failed or is abandoned.
#[derive(Debug)]
#[must_use = "a write that is never settled keeps foreign changes of the Service's slices from being reported"]
pub struct PendingWrite {
    namespace: Text,
    service: Text,
    /// Number of the tracker's state of the Service, when the write was announced. A Service that is forgotten or
    /// created again gets a new state. A response that belongs to an earlier state is ignored.
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

    /// Announces that `slice` is going to be updated. `slice` must be the version from which the plan was made.
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

    /// Handles the response to a create or update. `slice` is the stored slice in this response.
    ///
    /// Returns true if another writer wrote to slices of the Service while writes were pending, so that the Service
    /// must be planned again.
    #[must_use]
    pub fn stored(&mut self, write: PendingWrite, slice: &EndpointSlice) -> bool {
        self.settle(&write, |tracked| {
            tracked.record(slice);
            // This update increased the generation by one. A larger increase means that another writer wrote too.
            matches!(write.kind, Kind::Update { generation, .. } if slice.metadata.generation > generation + 1)
        })
    }

    /// Handles the response to a delete that succeeded and that the watch will show. Returns true if the Service must
    /// be planned again, like [`Self::stored`].
    ///
    /// If the API server responds that the slice does not exist, call [`Self::failed`] instead, because the watch may
    /// show no event.
    #[must_use]
    pub fn removed(&mut self, write: PendingWrite) -> bool {
        // Nothing to record: the tracker has expected this deletion since `begin_delete`, and the watch may have shown
        // it already.
        self.settle(&write, |_| false)
    }

    /// Handles a write that failed, was abandoned, or found no slice to delete or update. Returns true if the Service
    /// must be planned again, like [`Self::stored`].
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

    /// Handles a watch event about a new or changed slice. Returns true if the slice's Service must be planned again,
    /// because the change is not known to be an own write.
    ///
    /// If a pending write may have made the change, returns false for now. The response to this write then decides.
    #[must_use]
    pub fn changed(&mut self, slice: &EndpointSlice) -> bool {
        self.of_mut(slice).is_none_or(|tracked| tracked.changed(slice))
    }

    /// Handles a watch event about a deleted slice. Returns true if the slice's Service must be planned again, because
    /// this process did not delete the slice.
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

    /// True if the watch cache, in which `service` has these `slices`, lacks an own write. `slices` must include slices
    /// that are being deleted.
    ///
    /// While this is true, do not plan the Service. Call this again at each watch event of the Service's slices.
    #[must_use]
    pub fn is_stale<S: Borrow<EndpointSlice>>(&self, service: &Service, slices: impl IntoIterator<Item = S>) -> bool {
        let metadata = &service.metadata;
        let tracked = self.services.get(&metadata.namespace, &metadata.name);
        tracked.is_some_and(|tracked| tracked.service_uid == metadata.uid && tracked.is_ahead_of(slices))
    }

    /// True if the tracker has recorded state of `slice`.
    #[must_use]
    pub fn contains(&self, slice: &EndpointSlice) -> bool {
        let service = slice.metadata.labels.get(LABEL_SERVICE_NAME);
        let tracked = service.and_then(|service| self.services.get(&slice.metadata.namespace, service));
        tracked.is_some_and(|tracked| tracked.contains(&slice.metadata.uid))
    }

    /// Handles a new list of all slices, as of `resource_version`, after a gap in the watch.
    ///
    /// A slice that this process wrote before the list and that is not in the list was deleted, and no watch event will
    /// show the deletion. The tracker forgets such slices and returns their Services, which must be planned again.
    /// `is_listed` is true for a UID in the list.
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

    /// Forgets a Service that was deleted. Responses to its pending writes are ignored.
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

#[cfg(test)]
mod tests;
