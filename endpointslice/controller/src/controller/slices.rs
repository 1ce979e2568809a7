//! Reaction of the controller to changes of slices: to own and to foreign writes.

use super::super::view::Touched;
use super::super::write_origin::{AttributedChange, WriteOrigin};
use super::super::writes::SliceReceipt;
use super::Controller;
use super::progress::Progress;
use endpointslice::model::EndpointSlice;
use fleetnet_runtime::{Verb, WriteEnd};
use fleetnet_types::{ObjectName, Timestamp};
use std::sync::Arc;

/// Ended write to a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    /// Service whose plan contains the write.
    pub service: &'a ObjectName,
    /// Slice that was written.
    pub slice: &'a ObjectName,
    /// Operation of the request that was sent.
    pub verb: &'a Verb,
    /// Outcome of the write.
    pub end: WriteEnd,
}

impl Controller {
    pub(super) fn apply_slice(&mut self, slice: EndpointSlice, at: Timestamp, requeue: &mut Vec<ObjectName>) {
        let slice = Arc::new(slice);
        let touched = if self.is_serving { self.view.set_slice(Arc::clone(&slice)) } else { Touched::new() };
        let origin = self.write_origins.observe(&slice, &touched, at);
        if origin == WriteOrigin::Foreign {
            self.note_foreign_change(slice.metadata.is_terminating(), at);
        }
        if origin != WriteOrigin::Unknown {
            self.after_slice(touched, origin == WriteOrigin::Own, at, requeue);
        }
    }

    /// Records the time of a foreign write to a slice. The decision to be active uses it, because the write shows that
    /// another controller is active. A deletion does not count, because the garbage collector and people also delete
    /// slices.
    fn note_foreign_change(&mut self, is_terminating: bool, at: Timestamp) {
        if self.write_origins.is_listed() && !is_terminating {
            self.foreign_change = self.foreign_change.max(Some(at));
        }
    }

    /// Records that a write for a Service is sent.
    pub(crate) fn write_begun(&mut self, service: &ObjectName, slice: &ObjectName, receipt: &SliceReceipt) {
        self.write_origins.begin(slice, receipt.operation);
        self.view.write_begun(service, slice, receipt);
        self.sync(service, slice);
    }

    /// Records the end of a write for a Service. The view already contains the object that the server returned. Adds
    /// the Services that must be planned to `requeue`.
    pub(crate) fn write_ended(&mut self, write: &Written<'_>, at: Timestamp, requeue: &mut Vec<ObjectName>) {
        let Written { service, slice, verb, end } = *write;
        self.view.write_ended(service, slice, matches!(end, WriteEnd::Done { .. }));
        if let Some(progress) = self.progress.get_mut(service) {
            progress.syncs.ended(&slice.name);
        }
        if let WriteEnd::Done { version } = end {
            if let Some(progress) = self.progress.get_mut(service) {
                progress.written(&slice.name);
            }
            self.view.keep_what_was_added(slice, version, verb);
        }
        let is_for = |progress: &Progress| progress.news_for.contains(&*slice.name);
        let carries_news = matches!(end, WriteEnd::Conflict | WriteEnd::Rejected | WriteEnd::Denied)
            && self.progress.get(service).is_some_and(is_for);
        for AttributedChange { is_own, at: seen, is_terminating, touched } in
            self.write_origins.end(slice, verb, end, at)
        {
            if !is_own {
                self.note_foreign_change(is_terminating, seen);
            }
            if !is_own && carries_news {
                let delay = self.timing.foreign_change_delay();
                self.touch_by(touched, |progress| progress.retry(at, delay), requeue);
            } else {
                self.after_slice(touched, is_own, if is_own { at } else { seen }, requeue);
            }
        }
    }

    /// Sets the time of the next plan after a slice changed. After an own write, the plan is due now, unless another
    /// change has already set a time. After a foreign write, the plan is delayed.
    pub(super) fn after_slice(&mut self, touched: Touched, is_own: bool, at: Timestamp, requeue: &mut Vec<ObjectName>) {
        if !is_own {
            let by = at + self.timing.foreign_change_delay();
            return self.touch_by(touched, |_| by, requeue);
        }
        for (namespace, name) in touched {
            let progress = self.progress.get(&ObjectName::new(&*namespace, &*name));
            if progress.is_none_or(|progress| progress.has_more_phases || !progress.due.is_some()) {
                let goes_on = |progress: &mut Progress| {
                    progress.has_no_news &= !progress.carries_news;
                    at
                };
                self.touch_by(Touched::from([(namespace, name)]), goes_on, requeue);
            }
        }
    }
}
