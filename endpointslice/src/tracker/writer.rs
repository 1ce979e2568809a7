//! Writer that reports each write to a [`SliceTracker`]: [`TrackedWriter`].

use super::{PendingWrite, SliceTracker};
use crate::apply::SliceWriter;
use crate::model::{EndpointSlice, Service};
use crate::plan::Update;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lock of any kind around a [`SliceTracker`].
pub trait SharedTracker: Sync {
    /// Calls `act` with the tracker under the lock. `act` does not block.
    fn with<T>(&self, act: impl FnOnce(&mut SliceTracker) -> T) -> T;
}

/// Writer that announces each write of one Service's plan to a [`SliceTracker`] and reports the response. A pending
/// write that is dropped is reported as failed.
///
/// The inner writer should return an error if a slice to delete does not exist any more. If the inner writer returned
/// success, the tracker would wait for a deletion event that the watch never delivers, and would keep the UID until the
/// Service is deleted.
#[derive(Debug)]
pub struct TrackedWriter<'a, W, T: SharedTracker> {
    writer: &'a W,
    tracker: &'a T,
    service: &'a Service,
    plan_again: AtomicBool,
}

impl<'a, W: SliceWriter, T: SharedTracker> TrackedWriter<'a, W, T> {
    /// Returns a writer for plans of `service` that sends its writes through `writer`.
    #[must_use]
    pub const fn new(writer: &'a W, tracker: &'a T, service: &'a Service) -> Self {
        Self { writer, tracker, service, plan_again: AtomicBool::new(false) }
    }

    /// True if another writer wrote to slices of the Service while writes of this writer were pending, so that the
    /// Service must be planned again. Call this when all writes have ended.
    #[must_use]
    pub fn must_plan_again(&self) -> bool {
        self.plan_again.load(Ordering::Relaxed)
    }

    fn announce(&self, begin: impl FnOnce(&mut SliceTracker) -> PendingWrite) -> Announced<'_, T> {
        let write = self.tracker.with(begin);
        Announced { tracker: self.tracker, plan_again: &self.plan_again, write: Some(write) }
    }
}

impl<W: SliceWriter, T: SharedTracker> SliceWriter for TrackedWriter<'_, W, T> {
    type Error = W::Error;

    async fn create(&self, slice: &EndpointSlice) -> Result<EndpointSlice, W::Error> {
        let announced = self.announce(|tracker| tracker.begin_create(self.service));
        let stored = self.writer.create(slice).await?;
        announced.settle(|tracker, write| tracker.stored(write, &stored));
        Ok(stored)
    }

    async fn update(&self, update: &Update) -> Result<EndpointSlice, W::Error> {
        let announced = self.announce(|tracker| tracker.begin_update(self.service, &update.before));
        let stored = self.writer.update(update).await?;
        announced.settle(|tracker, write| tracker.stored(write, &stored));
        Ok(stored)
    }

    async fn delete(&self, slice: &EndpointSlice) -> Result<(), W::Error> {
        let announced = self.announce(|tracker| tracker.begin_delete(self.service, slice));
        self.writer.delete(slice).await?;
        announced.settle(SliceTracker::removed);
        Ok(())
    }

    fn is_namespace_terminating(&self, error: &W::Error) -> bool {
        self.writer.is_namespace_terminating(error)
    }
}

/// Write that was announced to the tracker. If this value is dropped before a response, the write is reported as
/// failed.
struct Announced<'a, T: SharedTracker> {
    tracker: &'a T,
    plan_again: &'a AtomicBool,
    write: Option<PendingWrite>,
}

impl<T: SharedTracker> Announced<'_, T> {
    fn settle(mut self, outcome: impl FnOnce(&mut SliceTracker, PendingWrite) -> bool) {
        self.end(outcome);
    }

    fn end(&mut self, outcome: impl FnOnce(&mut SliceTracker, PendingWrite) -> bool) {
        let Some(write) = self.write.take() else { return };
        if self.tracker.with(|tracker| outcome(tracker, write)) {
            self.plan_again.store(true, Ordering::Relaxed);
        }
    }
}

impl<T: SharedTracker> Drop for Announced<'_, T> {
    fn drop(&mut self) {
        self.end(SliceTracker::failed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{service, slice, slice_of};
    use super::*;
    use crate::apply::apply;
    use crate::model::AddressType;
    use crate::plan::{Draft, FamilyPlan, Plan};
    use futures::FutureExt as _;
    use parking_lot::Mutex;
    use std::convert::Infallible;
    use std::num::NonZeroUsize;
    use std::sync::Arc;

    impl SharedTracker for Mutex<SliceTracker> {
        fn with<T>(&self, act: impl FnOnce(&mut SliceTracker) -> T) -> T {
            act(&mut self.lock())
        }
    }

    /// Simulated API server. Its watch shows a write before the response arrives. Optionally, the server never
    /// responds.
    struct Server<'a> {
        tracker: &'a Mutex<SliceTracker>,
        answers: bool,
        /// Number by which an update increases the slice's generation: 1, or more if another writer writes at the same
        /// time.
        steps: i64,
    }

    impl Server<'_> {
        async fn shown(&self, slice: EndpointSlice) -> Result<EndpointSlice, Infallible> {
            assert!(!self.tracker.lock().changed(&slice), "it is announced");
            self.answer().await;
            Ok(slice)
        }

        async fn answer(&self) {
            if !self.answers {
                futures::future::pending::<()>().await;
            }
        }
    }

    impl SliceWriter for Server<'_> {
        type Error = Infallible;

        async fn create(&self, _slice: &EndpointSlice) -> Result<EndpointSlice, Infallible> {
            self.shown(slice_of("ns1", "svc1", "new", 1)).await
        }

        async fn update(&self, update: &Update) -> Result<EndpointSlice, Infallible> {
            let mut stored = update.after.clone();
            stored.metadata.generation += self.steps;
            self.shown(stored).await
        }

        async fn delete(&self, slice: &EndpointSlice) -> Result<(), Infallible> {
            assert!(!self.tracker.lock().deleted(slice), "it is announced");
            self.answer().await;
            Ok(())
        }

        fn is_namespace_terminating(&self, _error: &Infallible) -> bool {
            false
        }
    }

    /// Returns a plan with a create, an update of the only slice, and a delete of another slice.
    fn plan() -> Plan {
        let draft = Draft {
            address_type: AddressType::IPv4,
            creates: vec![EndpointSlice::default()],
            updates: vec![Update::of(&Arc::new(slice(1)), Vec::new())],
            deletes: vec![Arc::new(slice_of("ns1", "svc1", "old", 1))],
            unchanged: Vec::new(),
        };
        Plan { families: vec![FamilyPlan { draft, ..FamilyPlan::default() }], ..Plan::default() }
    }

    #[test]
    fn writes_of_a_plan_are_announced_and_settled() {
        for (steps, must_plan_again) in [(1, false), (2, true)] {
            let tracker = Mutex::new(SliceTracker::default());
            let server = Server { tracker: &tracker, answers: true, steps };
            let service = service();
            let writer = TrackedWriter::new(&server, &tracker, &service);
            let applied = apply(&plan(), &writer, NonZeroUsize::MIN).now_or_never().unwrap();
            assert_eq!(applied.written.len(), 3);
            assert_eq!(writer.must_plan_again(), must_plan_again);
            let (updated, created) = (slice(1 + steps), slice_of("ns1", "svc1", "new", 1));
            let tracker = tracker.lock();
            assert!(!tracker.is_stale(&service, [&updated, &created]));
            assert!(tracker.is_stale(&service, [&slice(1), &created]));
        }
    }

    #[test]
    fn a_write_that_is_given_up_counts_as_failed() {
        let tracker = Mutex::new(SliceTracker::default());
        let server = Server { tracker: &tracker, answers: false, steps: 1 };
        let service = service();
        let writer = TrackedWriter::new(&server, &tracker, &service);
        assert!(apply(&plan(), &writer, NonZeroUsize::MIN).now_or_never().is_none());
        assert!(writer.must_plan_again(), "the watch has shown a slice whose create was never answered");
        assert!(tracker.lock().is_empty());
    }
}
