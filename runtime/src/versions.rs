//! Decides which observations of an object are new. Pure.
//!
//! The same object is observed in several ways that overtake each other: watch events, lists, answers to own writes, GETs. The
//! view must only move forward, and must end in the newest state for any order:
//!
//! - Versions of one kind in one server are ordered (KEP-5504), so of two observations the newer wins.
//! - An answer about an object that the view does not have is old if the watch has passed its version, because the watch has
//!   already shown the object's end. So most deleted objects need not be remembered.
//! - An own delete, or an answer with another UID under the same name, reports an end before the watch shows it. Until then a
//!   tombstone rejects late events of that UID.
//! - A list is only valid for its own version. An object whose known version is newer (by an own write since) stays.
//! - A list that is older than what the watch has shown means that the server's data went back in time. Then the list wins over
//!   everything known before it.
//! - An undecodable object exists. Its known state stays. Without one, the object is reported as unreadable until it decodes,
//!   is deleted, or is missing from a list.

use std::collections::{BTreeMap, BTreeSet};

use crate::limits::TOMBSTONES_PER_SOURCE;
use fleetnet_types::{Change, ObjectName, Observed, Removal, Uid, Undecodable};

/// Known versions of one source's objects. The objects themselves are in the agent's view.
#[derive(Debug)]
pub struct Versions<O> {
    held: BTreeMap<ObjectName, Held>,
    /// Undecodable objects without a known state.
    unreadable: BTreeMap<ObjectName, Unread>,
    tombstones: Tombstones,
    /// Objects to report again with the next list.
    retold: BTreeSet<ObjectName>,
    /// Newest version that the watch has shown. Everything up to it has been reported.
    passed: u64,
    /// Number of lists started.
    lists: u64,
    list: Option<List<O>>,
}

#[derive(Debug)]
struct Held {
    uid: Uid,
    version: u64,
    /// Number of the last list that had the object.
    listed: u64,
    /// Number of lists started when an answer to an own write was the last news.
    answered: u64,
    /// Contents of own writes that the server answered with exactly this version.
    echoes: Vec<u64>,
}

/// Undecodable object.
#[derive(Debug)]
struct Unread {
    /// Empty if it does not decode either.
    uid: Uid,
    /// 0 if it does not decode either.
    version: u64,
    /// Number of the last list that had the object.
    listed: u64,
}

/// List in progress.
#[derive(Debug)]
struct List<O> {
    /// First tombstone of this list. Older ones were set before the list began, so it cannot contain their objects.
    first_tombstone: u64,
    /// True if the list had an object without a readable name. Absence from the list then proves nothing.
    blind: bool,
    /// Listed states that are older than the known ones. They count only if the server's data went back in time.
    overtaken: BTreeMap<ObjectName, Observed<O>>,
    /// Objects deleted during the list, because streaming lists carry live events.
    deleted: BTreeSet<Uid>,
}

impl<O> Default for Versions<O> {
    fn default() -> Self {
        Self {
            held: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            tombstones: Tombstones::default(),
            retold: BTreeSet::new(),
            passed: 0,
            lists: 0,
            list: None,
        }
    }
}

impl<O> Versions<O> {
    /// Starts a list, and drops one in progress.
    pub fn list_started(&mut self) {
        self.lists += 1;
        self.list = Some(List {
            first_tombstone: self.tombstones.next,
            blind: false,
            overtaken: BTreeMap::new(),
            deleted: BTreeSet::new(),
        });
    }

    /// Forces a relist: the next list reports every object again, because the agent has dropped parts of them. Objects that the
    /// list does not have in a state that decodes are reported as unreadable.
    pub fn tell_again(&mut self) {
        self.retold = self.held.keys().chain(self.unreadable.keys()).cloned().collect();
    }

    /// Takes an object that the watch or a list shows.
    pub fn seen(&mut self, observed: Observed<O>, news: &mut Vec<Change<O>>) {
        let name = observed.name.clone();
        self.pass(observed.resource_version);
        let overtaken = self.tombstones.has(&observed.uid)
            || self.held.get(&name).is_some_and(|held| held.version > observed.resource_version);
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
        if self.held.get(&name).is_none_or(|held| held.version < observed.resource_version) {
            self.take(&name, observed, news);
        } else if self.retold.remove(&name) {
            news.push(Change::Applied(observed.object));
        }
        self.mark_listed(&name);
    }

    /// Takes an undecodable object that the watch or a list shows.
    ///
    /// The object exists, so its known state stays. Without one, it is reported as unreadable. This also applies to late events
    /// of an object that this agent deleted, whose end is then on its way.
    pub fn unreadable(&mut self, unreadable: &Undecodable, news: &mut Vec<Change<O>>) {
        self.pass(unreadable.resource_version);
        if unreadable.name.name.is_empty() {
            if let Some(list) = &mut self.list {
                list.blind = true;
            }
            return;
        }
        let name = unreadable.name.clone();
        let replaced = self.held.get(&name).is_some_and(|held| {
            !unreadable.uid.is_empty() && held.uid != unreadable.uid && held.version < unreadable.resource_version
        });
        if replaced {
            self.drop_held(&name, Removal::Deleted, news);
        }
        let is_new = !self.held.contains_key(&name) && self.note_unreadable(&name, unreadable);
        if self.retold.remove(&name) || is_new {
            news.push(Change::Undecodable { name: name.clone() });
        }
        self.mark_listed(&name);
    }

    /// Takes a deletion that the watch shows.
    pub fn deleted(&mut self, name: &ObjectName, uid: &Uid, version: u64, news: &mut Vec<Change<O>>) {
        self.pass(version);
        self.tombstones.remove(uid);
        if let Some(list) = &mut self.list {
            list.deleted.insert(uid.clone());
            if list.overtaken.get(name).is_some_and(|listed| listed.uid == *uid) {
                list.overtaken.remove(name);
            }
        }
        if self.held.get(name).is_some_and(|held| held.uid == *uid) {
            self.drop_held(name, Removal::Deleted, news);
        }
        if self.unreadable.get(name).is_some_and(|unread| unread.uid.is_empty() || unread.uid == *uid) {
            self.drop_unreadable(name, Removal::Deleted, news);
        }
    }

    /// Ends a list. Objects that it does not have are gone, as far as the list can tell.
    pub fn list_ended(&mut self, version: u64, news: &mut Vec<Change<O>>) {
        let Some(list) = self.list.take() else { return };
        let rolled_back = version < self.passed;
        for (name, observed) in list.overtaken {
            let outdated = match self.held.get(&name) {
                Some(held) => held.version <= version || (rolled_back && held.answered != self.lists),
                None => true,
            };
            if outdated && (rolled_back || !self.tombstones.has(&observed.uid)) {
                self.take(&name, observed, news);
                self.mark_listed_in(&name, self.lists);
            }
        }
        if !list.blind {
            self.drop_unlisted(version, rolled_back, news);
        }
        news.extend(std::mem::take(&mut self.retold).into_iter().map(|name| Change::Undecodable { name }));
        self.tombstones.forget_before(if rolled_back { u64::MAX } else { list.first_tombstone });
        self.passed = version;
    }

    /// Takes the object in the answer to an own write or a GET. Returns true if it is now the known state.
    pub fn answered(&mut self, observed: Observed<O>, news: &mut Vec<Change<O>>) -> bool {
        let name = observed.name.clone();
        let deleted_meanwhile = self.list.as_ref().is_some_and(|list| list.deleted.contains(&observed.uid));
        let overtaken = self.unreadable.get(&name).is_some_and(|unread| unread.version >= observed.resource_version);
        if deleted_meanwhile || overtaken || self.tombstones.has(&observed.uid) {
            return false;
        }
        match self.held.get(&name) {
            Some(held) if held.version >= observed.resource_version => {
                return held.version == observed.resource_version && held.uid == observed.uid;
            }
            None if observed.resource_version <= self.passed => return false,
            replaced => {
                // The watch has yet to show the end of the previous object, and may show its events until then.
                if let Some(held) = replaced.filter(|held| held.uid != observed.uid) {
                    self.tombstones.insert(&held.uid);
                }
                self.take(&name, observed, news);
            }
        }
        let lists = self.lists;
        if let Some(held) = self.held.get_mut(&name) {
            held.answered = lists;
        }
        true
    }

    /// Takes the confirmation of the server that the object of this UID no longer exists.
    pub fn gone(&mut self, name: &ObjectName, uid: &Uid, news: &mut Vec<Change<O>>) {
        if self.held.get(name).is_some_and(|held| held.uid == *uid) {
            self.tombstones.insert(uid);
            self.drop_held(name, Removal::Deleted, news);
        }
    }

    /// Returns UID and version of the known object of this name.
    #[must_use]
    pub fn held(&self, name: &ObjectName) -> Option<(&Uid, u64)> {
        self.held.get(name).map(|held| (&held.uid, held.version))
    }

    /// Remembers that the answer to a write of this content had exactly the known version.
    pub fn remember_echo(&mut self, name: &ObjectName, content: u64) {
        if let Some(held) = self.held.get_mut(name)
            && !held.echoes.contains(&content)
        {
            held.echoes.push(content);
        }
    }

    /// True if the answer to a write of this content had exactly the known version. Sending it again changes nothing.
    #[must_use]
    pub fn echoed(&self, name: &ObjectName, content: u64) -> bool {
        self.held.get(name).is_some_and(|held| held.echoes.contains(&content))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Advances the newest shown version. Not during a list, because lists are not ordered by version.
    fn pass(&mut self, version: u64) {
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
        if let Some(held) = self.held.get_mut(name) {
            held.listed = list;
        }
        if let Some(unread) = self.unreadable.get_mut(name) {
            unread.listed = list;
        }
    }

    /// Remembers an undecodable object. Returns true if that is new.
    fn note_unreadable(&mut self, name: &ObjectName, unreadable: &Undecodable) -> bool {
        let Undecodable { uid, resource_version, .. } = unreadable;
        let unread = Unread { uid: uid.clone(), version: *resource_version, listed: 0 };
        self.unreadable.insert(name.clone(), unread).is_none()
    }

    fn take(&mut self, name: &ObjectName, observed: Observed<O>, news: &mut Vec<Change<O>>) {
        if self.held.get(name).is_some_and(|held| held.uid != observed.uid) {
            self.drop_held(name, Removal::Deleted, news);
        }
        self.unreadable.remove(name);
        self.retold.remove(name);
        self.held.insert(
            name.clone(),
            Held { uid: observed.uid, version: observed.resource_version, listed: 0, answered: 0, echoes: Vec::new() },
        );
        news.push(Change::Applied(observed.object));
    }

    fn drop_unlisted(&mut self, version: u64, rolled_back: bool, news: &mut Vec<Change<O>>) {
        let outdated = |held: &Held| held.version <= version || (rolled_back && held.answered != self.lists);
        let unlisted: Vec<ObjectName> = self
            .held
            .iter()
            .filter(|(_, held)| held.listed != self.lists && outdated(held))
            .map(|(name, _)| name.clone())
            .collect();
        let how = if rolled_back { Removal::RolledBack } else { Removal::Unlisted };
        for name in unlisted {
            self.drop_held(&name, how, news);
        }
        let unlisted = self.unreadable.iter().filter(|(_, unread)| unread.listed != self.lists);
        for name in unlisted.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.drop_unreadable(&name, how, news);
        }
    }

    fn drop_held(&mut self, name: &ObjectName, how: Removal, news: &mut Vec<Change<O>>) {
        if let Some(held) = self.held.remove(name) {
            self.retold.remove(name);
            news.push(Change::Removed { name: name.clone(), uid: held.uid, how });
        }
    }

    fn drop_unreadable(&mut self, name: &ObjectName, how: Removal, news: &mut Vec<Change<O>>) {
        if let Some(unread) = self.unreadable.remove(name) {
            self.retold.remove(name);
            news.push(Change::Removed { name: name.clone(), uid: unread.uid, how });
        }
    }
}

/// UIDs of objects that are known to be gone before the watch has shown it, oldest first.
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
