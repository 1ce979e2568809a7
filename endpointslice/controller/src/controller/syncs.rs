//! Start and end of each sync of a Service ([`Syncs`]). The metrics of the controller count syncs.
//!
//! In kube-controller-manager, a sync is one plan and its writes, because it finishes one plan before the next one.
//! Here a Service is also planned while writes are in flight. So a sync here is the writes of one plan, and the writes
//! of later plans until another change.

use endpointslice::plan::Plan;
use fleetnet_types::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Record of the syncs of one Service, for the metrics. A sync starts with the first write after a change. The sync
/// ends when nothing is left to write, or when a write fails.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    /// Latest plan with writes, kept until its first write is sent.
    planned: Option<Begun>,
    current: Option<Sync>,
    /// True if the plan whose writes are sent now is the first plan of the current sync. False if the sync started with
    /// an earlier plan.
    is_first: bool,
    /// True if a Service, pod or Node has changed since the current sync started.
    has_news: bool,
    /// Slices with a write in flight.
    under_way: BTreeSet<Arc<str>>,
}

/// Sync that has not ended yet. A sync is the writes of the plan that started the sync, and the writes of later plans.
#[derive(Debug)]
struct Sync {
    begun: Begun,
    /// Slices that the first plan of the sync writes, and whose writes have not ended.
    outstanding: BTreeSet<Arc<str>>,
}

/// Plan that started a sync, and the time of this plan. A sync is the writes of one plan, and of later plans until
/// another change.
#[derive(Debug)]
pub(super) struct Begun {
    /// Plan that started the sync.
    pub(super) first: Plan,
    pub(super) at: Timestamp,
}

/// New sync of a Service, and the previous sync of the same Service. The start of the new sync ends the previous sync.
#[derive(Debug)]
pub(super) struct Opened<'a> {
    /// Previous sync; `None` if there was none or if it failed.
    pub(super) over: Option<Begun>,
    pub(super) now: &'a Begun,
}

impl Syncs {
    /// Records a plan with writes. The sync starts only when the first write is sent, because the engine may delay
    /// writes.
    pub(super) fn plan(&mut self, first: Plan, at: Timestamp) {
        self.planned = Some(Begun { first, at });
    }

    pub(super) const fn has_news(&mut self) {
        self.has_news = true;
    }

    /// Records that a write to this slice is sent. Returns the new sync if this write starts one.
    pub(super) fn begin(&mut self, slice: &Arc<str>) -> Option<Opened<'_>> {
        self.under_way.insert(Arc::clone(slice));
        let Some(begun) = self.planned.take() else {
            if let Some(sync) = self.current.as_mut().filter(|_| self.is_first) {
                sync.outstanding.insert(Arc::clone(slice));
            }
            return None;
        };
        self.is_first = self.current.as_ref().is_none_or(|sync| sync.outstanding.is_empty() && self.has_news);
        if !self.is_first {
            return None;
        }
        self.has_news = false;
        let over = self.current.take().map(|sync| sync.begun);
        let outstanding = BTreeSet::from([Arc::clone(slice)]);
        let Sync { begun: now, .. } = self.current.insert(Sync { begun, outstanding });
        Some(Opened { over, now })
    }

    /// Records the end of a write to this slice.
    pub(super) fn ended(&mut self, slice: &str) {
        self.under_way.remove(slice);
        if let Some(sync) = &mut self.current {
            sync.outstanding.remove(slice);
        }
    }

    /// Records a failed write. Returns the current sync, which fails. Later failures of the same sync return `None`.
    pub(super) fn fails(&mut self) -> Option<Begun> {
        self.current.take().map(|sync| sync.begun)
    }

    /// True if no write of the Service is in flight. Only then does a plan with nothing left to write end the sync,
    /// because a write in flight may still fail.
    pub(super) fn rests(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Ends the current sync and returns it. Returns `None` if no sync is in progress.
    pub(super) fn end(&mut self) -> Option<Begun> {
        self.planned = None;
        self.current.take().map(|sync| sync.begun)
    }
}
