//! [`Syncs`]: where one sync of a Service ends and the next begins, for the metrics.
//!
//! kube-controller-manager carries out a plan before it makes the next. Here a Service is planned while writes are under
//! way, so a sync is what those metrics can mean: the writes of one plan, and of those that follow it without news.

use endpointslice::plan::Plan;
use fleetnet_runtime::clock::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The syncs of one Service.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    /// The latest plan that has writes, until the first of them leaves.
    planned: Option<Begun>,
    current: Option<Sync>,
    /// The latest plan of which a write has left began the current sync.
    is_first: bool,
    /// Something else than slices has changed since the current sync began.
    has_news: bool,
    /// Slices that writes are under way to.
    under_way: BTreeSet<Arc<str>>,
}

/// A sync that has not ended.
#[derive(Debug)]
struct Sync {
    begun: Begun,
    /// Slices that its first plan writes and whose writes have not ended.
    outstanding: BTreeSet<Arc<str>>,
}

/// How a sync began.
#[derive(Debug)]
pub(super) struct Begun {
    /// Its first plan.
    pub(super) first: Plan,
    pub(super) at: Timestamp,
}

/// A sync that begins.
#[derive(Debug)]
pub(super) struct Opened<'a> {
    /// The sync before it, if that has gone well until now.
    pub(super) over: Option<Begun>,
    pub(super) now: &'a Begun,
}

impl Syncs {
    /// A plan has writes. Those that are held back do not leave.
    pub(super) fn plan(&mut self, first: Plan, at: Timestamp) {
        self.planned = Some(Begun { first, at });
    }

    pub(super) const fn has_news(&mut self) {
        self.has_news = true;
    }

    /// A write to this slice leaves.
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

    /// A write to this slice has ended.
    pub(super) fn ended(&mut self, slice: &str) {
        self.under_way.remove(slice);
        if let Some(sync) = &mut self.current {
            sync.outstanding.remove(slice);
        }
    }

    /// A write has failed. The sync that it ends, if any: the others that were under way with it have failed with it.
    pub(super) fn fails(&mut self) -> Option<Begun> {
        self.current.take().map(|sync| sync.begun)
    }

    /// A plan has nothing left to do. True if that ends a sync: a write that is under way may still fail.
    pub(super) fn rests(&self) -> bool {
        self.under_way.is_empty()
    }

    /// The sync that ends, if it had writes.
    pub(super) fn end(&mut self) -> Option<Begun> {
        self.planned = None;
        self.current.take().map(|sync| sync.begun)
    }
}
