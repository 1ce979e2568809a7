//! State of the slices of one Service in a [`super::SliceTracker`].

use crate::limits::TRACKED_EVENTS_MAX;
use crate::model::EndpointSlice;
use crate::text::Text;
use std::borrow::Borrow;
use std::collections::{BTreeMap, VecDeque};

/// State of the slices of one Service.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracked {
    pub(super) service_uid: Text,
    /// Number of this state, unique in its tracker. 0 if no number is assigned yet. A Service that is created again
    /// gets a state with a new number.
    pub(super) era: u64,
    pub(super) under_way: usize,
    /// Number of pending creates, whose slices have no UID yet.
    pub(super) creates: usize,
    slices: BTreeMap<Text, SliceState>,
    /// UIDs that the watch has shown as deleted since the first pending write began. A later response about such a
    /// slice is outdated.
    gone: VecDeque<Text>,
    /// For each UID, the newest generation that the watch has shown and that a pending write may have caused.
    early: BTreeMap<Text, i64>,
}

/// State of one slice.
#[derive(Clone, Debug, Default)]
pub(super) struct SliceState {
    generation: i64,
    /// True if the API server has confirmed a write of the slice.
    is_answered: bool,
    /// Newest resourceVersion in a response.
    version: Option<u64>,
    pub(super) is_deleting: bool,
    pub(super) updates: usize,
}

impl Tracked {
    pub(super) fn new(service_uid: Text, era: u64) -> Self {
        Self { service_uid, era, ..Self::default() }
    }

    pub(super) const fn is_new(&self) -> bool {
        self.era == 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way == 0 && self.slices.is_empty()
    }

    pub(super) fn contains(&self, uid: &str) -> bool {
        self.slices.contains_key(uid)
    }

    /// Returns the state of the slice with this UID. A new state starts with `generation`.
    pub(super) fn known(&mut self, uid: Text, generation: i64) -> &mut SliceState {
        self.slices.entry(uid).or_insert_with(|| SliceState { generation, ..SliceState::default() })
    }

    pub(super) fn end_update(&mut self, uid: &str) {
        if let Some(known) = self.slices.get_mut(uid) {
            known.updates = known.updates.saturating_sub(1);
        }
    }

    /// Records the slice that the server stored, unless the watch has already shown its deletion.
    pub(super) fn record(&mut self, slice: &EndpointSlice) {
        let metadata = &slice.metadata;
        if self.gone.contains(&metadata.uid) {
            return;
        }
        let known = self.slices.entry(metadata.uid.clone()).or_default();
        known.generation = known.generation.max(metadata.generation);
        known.is_answered = true;
        known.version = known.version.max(version(&metadata.resource_version));
    }

    /// Handles a failed write of a slice, and forgets the slice if no other write of it is known. The slice may have
    /// been deleted before the write began. Then no watch event would remove its state.
    pub(super) fn give_up(&mut self, uid: &str) {
        let Some(known) = self.slices.get_mut(uid) else { return };
        known.is_deleting = false;
        if !known.is_answered && known.updates == 0 {
            self.slices.remove(uid);
        }
    }

    /// True if the watch shows a change that is not an own write, so that the Service must be planned again. False for
    /// now if a pending write may have made the change: [`Self::judge`] decides later.
    pub(super) fn changed(&mut self, slice: &EndpointSlice) -> bool {
        let metadata = &slice.metadata;
        let may_be_own = match self.slices.get(&metadata.uid) {
            Some(known) if known.is_deleting => return !metadata.is_terminating(),
            Some(known) if metadata.generation <= known.generation => return false,
            Some(known) => known.updates > 0,
            None => self.creates > 0 && !self.gone.contains(&metadata.uid),
        };
        if !may_be_own || self.early.len() >= TRACKED_EVENTS_MAX {
            return true;
        }
        let newest = self.early.entry(metadata.uid.clone()).or_default();
        *newest = metadata.generation.max(*newest);
        false
    }

    /// Forgets a slice that the watch shows as deleted. Returns true if the deletion was expected.
    pub(super) fn deleted(&mut self, uid: &Text) -> bool {
        self.early.remove(uid);
        if self.under_way > 0 {
            if self.gone.len() >= TRACKED_EVENTS_MAX {
                self.gone.pop_front();
            }
            self.gone.push_back(uid.clone());
        }
        self.slices.remove(uid).is_some_and(|known| known.is_deleting)
    }

    /// Compares the watch events that arrived during pending writes with the responses. Called when all responses have
    /// arrived. Returns true if an event shows a change by another writer.
    pub(super) fn judge(&mut self) -> bool {
        self.gone.clear();
        let early = std::mem::take(&mut self.early);
        let is_own = |(uid, generation): &(Text, i64)| {
            self.slices.get(uid).is_some_and(|known| known.is_answered && known.generation >= *generation)
        };
        !early.into_iter().all(|shown| is_own(&shown))
    }

    /// True if a watch cache that has these slices does not show all own writes yet.
    pub(super) fn is_ahead_of<S: Borrow<EndpointSlice>>(&self, slices: impl IntoIterator<Item = S>) -> bool {
        let mut missing = self.slices.values().filter(|known| !known.is_deleting).count();
        for slice in slices {
            let metadata = &slice.borrow().metadata;
            match self.slices.get(&metadata.uid) {
                Some(known) if known.is_deleting && !metadata.is_terminating() => return true,
                Some(known) if known.is_deleting => {}
                Some(known) if known.generation > metadata.generation => return true,
                Some(_) => missing = missing.saturating_sub(1),
                None => {}
            }
        }
        missing > 0
    }

    /// Forgets slices that this process wrote before a list and that are not in the list. Returns true if one of them
    /// was not deleted by this process.
    pub(super) fn forget_unlisted(&mut self, listed_at: u64, is_listed: impl Fn(&str) -> bool) -> bool {
        let mut is_bereft = false;
        self.slices.retain(|uid, known| {
            let is_older = known.version.is_some_and(|version| version <= listed_at);
            let is_gone = (is_older || known.is_deleting) && known.updates == 0 && !is_listed(uid);
            is_bereft |= is_gone && !known.is_deleting;
            !is_gone
        });
        is_bereft
    }
}

/// Parses a resourceVersion as a number, because resourceVersions of one kind can be compared as numbers (KEP-5504).
/// Returns `None` if the text is not a number.
pub(super) fn version(text: &str) -> Option<u64> {
    text.parse().ok()
}
