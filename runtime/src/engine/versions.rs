//! Decides which observations of an object are new. Does no I/O.
//!
//! The agent observes an object in several ways: watch events, lists, responses to own writes, GETs. These observations
//! can arrive in any order. For every order, the view must never return to an older state, and must end in the newest
//! state:
//!
//! - Versions of one kind in one server are ordered (KEP-5504), so the observation with the newest version wins.
//! - A response may show an object that the view does not have. If the watch has already reported newer versions, the
//!   response is outdated, because the watch has also reported the deletion. So the agent need not remember most
//!   deleted objects.
//! - After an own delete, or a response with another UID under the same name, the view removes the old object before
//!   the watch reports its deletion. Until then, a tombstone rejects late events of the old UID.
//! - A list is only valid for its own version. If a known object has a newer version, from an own write, the object
//!   stays.
//! - If the version of a list is older than a version that was observed before the list was requested, the server's
//!   data went back in time. Then the list replaces everything known before. The watch reads the [`Mark`] of its source
//!   when it requests a list, because the engine may handle responses to later writes before it handles the list.
//! - An object that was deleted before the list was requested is in the list only if the server's data went back in
//!   time.
//! - An undecodable object exists, so its known state stays. If no state is known, the object is reported as
//!   undecodable until it decodes, is deleted, or is missing from a list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::TOMBSTONES_PER_SOURCE;
use fleetnet_types::{Change, ObjectName, Observed, Removal, Uid, Undecodable};

/// Known resourceVersions of one source's objects. The objects themselves are in the agent's view.
#[derive(Debug)]
pub(crate) struct Versions<O> {
    known: BTreeMap<ObjectName, KnownObject>,
    /// Objects that exist but have never been decoded, so no earlier state of these objects is known.
    undecodable: BTreeMap<ObjectName, UndecodableObject>,
    tombstones: Tombstones,
    /// Newest version that the watch has reported. Every change up to this version has been reported.
    passed: u64,
    progress: Progress,
    /// Number of lists started so far.
    lists: u64,
    list: Option<List<O>>,
}

#[derive(Debug)]
struct KnownObject {
    uid: Uid,
    version: u64,
    /// Sequence number of the last list that contained the object.
    listed: u64,
    /// Number of lists started before a response to a write or GET showed this state. 0 if no response showed it. Tells
    /// whether a list is older than the response.
    answered: u64,
    /// Hashes of own writes whose response had exactly this version. Sending such a write again would change nothing.
    echoes: Vec<u64>,
}

/// Object that exists but does not decode.
#[derive(Debug)]
struct UndecodableObject {
    /// UID of the object. Empty if the UID does not decode either.
    uid: Uid,
    /// resourceVersion of the object. 0 if the resourceVersion does not decode either.
    version: u64,
    /// Sequence number of the last list that contained the object.
    listed: u64,
}

/// List whose objects are still arriving.
#[derive(Debug)]
struct List<O> {
    /// Observations at the time when the list was requested.
    requested: Mark,
    /// True if a restore of the server was noticed since the list before. Then an object may have another content in
    /// the version that is known, because the server counts its versions again.
    follows_restore: bool,
    /// True if the list contained an object whose name does not decode. The list then does not prove the absence of any
    /// object.
    blind: bool,
    /// Listed states that are older than the known states. Used only if the server's data went back in time.
    overtaken: BTreeMap<ObjectName, Observed<O>>,
    /// UIDs of objects whose `DELETED` event arrived during the list, because a streaming list also carries live
    /// events. Responses that arrive later must not bring these objects back.
    deleted: BTreeSet<Uid>,
}

/// Observations of a source at one time. A server that has gone back in time since then shows an older state.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Mark {
    /// Newest version of any observation.
    pub(crate) version: u64,
    /// Number of tombstones that were set. A tombstone is the remembered UID of a deleted object.
    pub(crate) tombstones: u64,
}

/// Progress of a source's observations, shared with the watch of the source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    version: AtomicU64,
    tombstones: AtomicU64,
    unconfirmed: AtomicU64,
}

impl Progress {
    #[must_use]
    pub(crate) fn mark(&self) -> Mark {
        let Shared { version, tombstones, .. } = &*self.0;
        Mark { version: version.load(Ordering::Relaxed), tombstones: tombstones.load(Ordering::Relaxed) }
    }

    /// True if a response has shown a state that is newer than this version, or a deletion that the watch has not
    /// reported.
    #[must_use]
    pub(crate) fn is_ahead_of(&self, version: u64) -> bool {
        self.0.version.load(Ordering::Relaxed) > version || self.0.unconfirmed.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn observed(&self, version: u64) {
        self.0.version.fetch_max(version, Ordering::Relaxed);
    }

    fn went_back_to(&self, version: u64) {
        self.0.version.store(version, Ordering::Relaxed);
    }

    /// Records how many tombstones were set so far, and for how many of them the watch has not reported the deletion.
    fn deletions(&self, tombstones: &Tombstones) {
        self.0.tombstones.store(tombstones.next, Ordering::Relaxed);
        self.0.unconfirmed.store(tombstones.by_order.len() as u64, Ordering::Relaxed);
    }
}

impl<O> Default for Versions<O> {
    fn default() -> Self {
        Self {
            known: BTreeMap::new(),
            undecodable: BTreeMap::new(),
            tombstones: Tombstones::default(),
            passed: 0,
            progress: Progress::default(),
            lists: 0,
            list: None,
        }
    }
}

impl<O> Versions<O> {
    /// Returns the progress of the observations, which changes with each observation.
    #[must_use]
    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Starts a list. `requested` is the mark of the source when the list was requested. Discards an earlier list that
    /// has not ended.
    pub(crate) fn list_started(&mut self, requested: Mark) {
        self.lists += 1;
        let (overtaken, deleted) = (BTreeMap::new(), BTreeSet::new());
        self.list = Some(List { requested, follows_restore: false, blind: false, overtaken, deleted });
    }

    /// Records that a restore of the server was noticed before the present list was requested.
    pub(crate) fn list_follows_restore(&mut self) {
        if let Some(list) = &mut self.list {
            list.follows_restore = true;
        }
    }

    /// Handles an object in a watch event or a list.
    pub(crate) fn seen(&mut self, observed: Observed<O>, news: &mut Vec<Change<O>>) {
        let name = observed.name.clone();
        self.pass(observed.resource_version);
        let overtaken = self.tombstones.has(&observed.uid)
            || self.known.get(&name).is_some_and(|known| known.version > observed.resource_version);
        if overtaken {
            self.mark_listed(&name);
            if let Some(list) = &mut self.list {
                list.overtaken.insert(name, observed);
            }
            return;
        }
        if let Some(list) = &mut self.list {
            list.overtaken.remove(&name);
        }
        // Another object with the same version exists only if the server's data went back in time and the known object
        // was lost.
        let follows_restore = self.list.as_ref().is_some_and(|list| list.follows_restore);
        let is_other = |known: &KnownObject| follows_restore && known.answered != self.lists;
        let is_news = |known: &KnownObject| {
            known.version < observed.resource_version || known.uid != observed.uid || is_other(known)
        };
        if self.known.get(&name).is_none_or(is_news) {
            self.take(&name, observed, news);
        }
        self.mark_listed(&name);
    }

    /// Handles an undecodable object in a watch event or a list.
    ///
    /// The object exists, so its known state stays. If no state is known, the object is reported as undecodable. That
    /// is also done for a late event of an object that this agent has deleted: the `DELETED` event that follows
    /// corrects the report.
    pub(crate) fn undecodable(&mut self, undecodable: &Undecodable, news: &mut Vec<Change<O>>) {
        self.pass(undecodable.resource_version);
        if undecodable.name.name.is_empty() {
            if let Some(list) = &mut self.list {
                list.blind = true;
            }
            return;
        }
        let name = undecodable.name.clone();
        let replaced = self.known.get(&name).is_some_and(|known| {
            !undecodable.uid.is_empty() && known.uid != undecodable.uid && known.version < undecodable.resource_version
        });
        if replaced {
            self.drop_known(&name, Removal::Deleted, news);
        }
        let is_new = !self.known.contains_key(&name) && self.note_undecodable(&name, undecodable);
        if is_new {
            news.push(Change::Undecodable { name: name.clone() });
        }
        self.mark_listed(&name);
    }

    /// Handles a `DELETED` event of the watch.
    pub(crate) fn deleted(&mut self, name: &ObjectName, uid: &Uid, version: u64, news: &mut Vec<Change<O>>) {
        self.pass(version);
        self.tombstones.remove(uid);
        self.progress.deletions(&self.tombstones);
        if let Some(list) = &mut self.list {
            list.deleted.insert(uid.clone());
            if list.overtaken.get(name).is_some_and(|listed| listed.uid == *uid) {
                list.overtaken.remove(name);
            }
        }
        if self.known.get(name).is_some_and(|known| known.uid == *uid) {
            self.drop_known(name, Removal::Deleted, news);
        }
        if self.undecodable.get(name).is_some_and(|undecodable| undecodable.uid.is_empty() || undecodable.uid == *uid) {
            self.drop_undecodable(name, Removal::Deleted, news);
        }
    }

    /// Ends a list. Reports known objects that are not in the list as removed, if the list proves their absence.
    pub(crate) fn list_ended(&mut self, version: u64, news: &mut Vec<Change<O>>) {
        let Some(list) = self.list.take() else { return };
        let rolled_back = version < self.passed.max(list.requested.version);
        for (name, observed) in list.overtaken {
            let outdated = match self.known.get(&name) {
                Some(known) => known.version <= version || (rolled_back && known.answered != self.lists),
                None => true,
            };
            if outdated && (rolled_back || !self.tombstones.has_since(&observed.uid, list.requested.tombstones)) {
                self.take(&name, observed, news);
                self.mark_listed_in(&name, self.lists);
            }
        }
        if !list.blind {
            self.drop_unlisted(version, rolled_back, news);
        }
        self.tombstones.forget_before(if rolled_back { u64::MAX } else { list.requested.tombstones });
        self.progress.deletions(&self.tombstones);
        self.passed = version;
        if rolled_back {
            self.progress.went_back_to(version);
        }
        let newest = self.known.values().map(|known| known.version).max();
        self.progress.observed(version.max(newest.unwrap_or_default()));
    }

    /// Handles the object in the response to an own write or a GET. Returns true if this state is now the known state.
    pub(crate) fn answered(&mut self, observed: Observed<O>, news: &mut Vec<Change<O>>) -> bool {
        self.progress.observed(observed.resource_version);
        let name = observed.name.clone();
        let deleted_meanwhile = self.list.as_ref().is_some_and(|list| list.deleted.contains(&observed.uid));
        let overtaken =
            self.undecodable.get(&name).is_some_and(|undecodable| undecodable.version >= observed.resource_version);
        if deleted_meanwhile || overtaken || self.tombstones.has(&observed.uid) {
            return false;
        }
        match self.known.get(&name) {
            Some(known) if known.version >= observed.resource_version => {
                return known.version == observed.resource_version && known.uid == observed.uid;
            }
            None if observed.resource_version <= self.passed => return false,
            replaced => {
                // A new UID means that the previous object of this name was deleted. Set a tombstone (remember the UID)
                // for the previous object, because the watch may still report its older events.
                if let Some(known) = replaced.filter(|known| known.uid != observed.uid) {
                    self.tombstones.insert(&known.uid);
                    self.progress.deletions(&self.tombstones);
                }
                self.take(&name, observed, news);
            }
        }
        if let Some(known) = self.known.get_mut(&name) {
            known.answered = self.lists;
        }
        true
    }

    /// Handles the server's confirmation that the object with this UID no longer exists.
    pub(crate) fn gone(&mut self, name: &ObjectName, uid: &Uid, news: &mut Vec<Change<O>>) {
        if self.known.get(name).is_some_and(|known| known.uid == *uid) {
            self.tombstones.insert(uid);
            self.progress.deletions(&self.tombstones);
            self.drop_known(name, Removal::Deleted, news);
        }
    }

    /// Returns the UID and the version of the known object with this name. `None` if no such object is known.
    #[must_use]
    pub(crate) fn known(&self, name: &ObjectName) -> Option<(&Uid, u64)> {
        self.known.get(name).map(|known| (&known.uid, known.version))
    }

    /// Remembers that the response to a write of this content had exactly the known version.
    pub(crate) fn remember_echo(&mut self, name: &ObjectName, content: u64) {
        if let Some(known) = self.known.get_mut(name)
            && !known.echoes.contains(&content)
        {
            known.echoes.push(content);
        }
    }

    /// True if the response to a write of this content had exactly the known version. Sending the write again would
    /// change nothing.
    #[must_use]
    pub(crate) fn echoed(&self, name: &ObjectName, content: u64) -> bool {
        self.known.get(name).is_some_and(|known| known.echoes.contains(&content))
    }

    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Records that the watch has reported this version, and everything before it unless it is in a list: listed
    /// objects are not ordered by version.
    fn pass(&mut self, version: u64) {
        self.progress.observed(version);
        if self.list.is_none() {
            self.passed = self.passed.max(version);
        }
    }

    fn mark_listed(&mut self, name: &ObjectName) {
        if self.list.is_some() {
            self.mark_listed_in(name, self.lists);
        }
    }

    fn mark_listed_in(&mut self, name: &ObjectName, list: u64) {
        if let Some(known) = self.known.get_mut(name) {
            known.listed = list;
        }
        if let Some(undecodable) = self.undecodable.get_mut(name) {
            undecodable.listed = list;
        }
    }

    /// Remembers an undecodable object. Returns true if the object was not yet known as undecodable.
    fn note_undecodable(&mut self, name: &ObjectName, undecodable: &Undecodable) -> bool {
        let Undecodable { uid, resource_version, .. } = undecodable;
        let undecodable = UndecodableObject { uid: uid.clone(), version: *resource_version, listed: 0 };
        self.undecodable.insert(name.clone(), undecodable).is_none()
    }

    fn take(&mut self, name: &ObjectName, observed: Observed<O>, news: &mut Vec<Change<O>>) {
        if self.known.get(name).is_some_and(|known| known.uid != observed.uid) {
            self.drop_known(name, Removal::Deleted, news);
        }
        self.undecodable.remove(name);
        self.known.insert(
            name.clone(),
            KnownObject {
                uid: observed.uid,
                version: observed.resource_version,
                listed: 0,
                answered: 0,
                echoes: Vec::new(),
            },
        );
        news.push(Change::Applied(observed.object));
    }

    fn drop_unlisted(&mut self, version: u64, rolled_back: bool, news: &mut Vec<Change<O>>) {
        let outdated = |known: &KnownObject| known.version <= version || (rolled_back && known.answered != self.lists);
        let unlisted: Vec<ObjectName> = self
            .known
            .iter()
            .filter(|(_, known)| known.listed != self.lists && outdated(known))
            .map(|(name, _)| name.clone())
            .collect();
        let how = if rolled_back { Removal::RolledBack } else { Removal::Unlisted };
        for name in unlisted {
            self.drop_known(&name, how, news);
        }
        let unlisted = self.undecodable.iter().filter(|(_, undecodable)| undecodable.listed != self.lists);
        for name in unlisted.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.drop_undecodable(&name, how, news);
        }
    }

    fn drop_known(&mut self, name: &ObjectName, how: Removal, news: &mut Vec<Change<O>>) {
        if let Some(known) = self.known.remove(name) {
            news.push(Change::Removed { name: name.clone(), uid: known.uid, how });
        }
    }

    fn drop_undecodable(&mut self, name: &ObjectName, how: Removal, news: &mut Vec<Change<O>>) {
        if let Some(undecodable) = self.undecodable.remove(name) {
            news.push(Change::Removed { name: name.clone(), uid: undecodable.uid, how });
        }
    }
}

/// UIDs of deleted objects whose `DELETED` event has not arrived yet, oldest first.
#[derive(Debug, Default)]
struct Tombstones {
    order_of: BTreeMap<Uid, u64>,
    by_order: BTreeMap<u64, Uid>,
    next: u64,
}

impl Tombstones {
    fn has(&self, uid: &Uid) -> bool {
        self.order_of.contains_key(uid)
    }

    /// True if the object was deleted and its tombstone is not one of the first `earlier`.
    fn has_since(&self, uid: &Uid, earlier: u64) -> bool {
        self.order_of.get(uid).is_some_and(|order| *order >= earlier)
    }

    fn insert(&mut self, uid: &Uid) {
        self.remove(uid);
        self.order_of.insert(uid.clone(), self.next);
        self.by_order.insert(self.next, uid.clone());
        self.next += 1;
        if self.by_order.len() > TOMBSTONES_PER_SOURCE
            && let Some((_, oldest)) = self.by_order.pop_first()
        {
            self.order_of.remove(&oldest);
        }
    }

    fn remove(&mut self, uid: &Uid) {
        if let Some(order) = self.order_of.remove(uid) {
            self.by_order.remove(&order);
        }
    }

    fn forget_before(&mut self, order: u64) {
        while let Some(first) = self.by_order.first_entry()
            && *first.key() < order
        {
            self.order_of.remove(&first.remove());
        }
    }
}

#[cfg(test)]
#[path = "versions_tests.rs"]
mod tests;
