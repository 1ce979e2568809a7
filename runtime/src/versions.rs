//! Which observation of an object is news. Pure.
//!
//! The same object is seen on several ways that overtake each other: watch events, lists, answers to own writes, GETs.
//! The view must only ever move forward and must end in the newest state, whatever the order:
//!
//! - Versions of one kind in one server are ordered (KEP-5504), so of two observations the newer wins.
//! - An answer about an object that is not held is old if the watch has passed its version: the watch has shown the
//!   object's end already. This makes memories of deleted objects superfluous but for the next case.
//! - An own delete, or an answer with another UID under the name, tells of an end before the watch shows it. Until then
//!   a tombstone keeps late events of that UID out.
//! - A list speaks for its own version only: what is held at a newer one (an own write since) stays.
//! - A list that is older than what the watch has shown means that the server's data went back in time. Then the list
//!   wins over everything that was held before it.
//! - An object that cannot be read is there. What is held of it stays; where nothing is, that much is told, until it can
//!   be read, is deleted, or is missing from a list.

use std::collections::{BTreeMap, BTreeSet};

use crate::limits::TOMBSTONES_PER_SOURCE;
use crate::logic::{Change, Observed, Removal, Unreadable};

/// What is known of the versions of one source's objects. The objects themselves are in the agent's view.
#[derive(Debug)]
pub struct Versions<O> {
    held: BTreeMap<Name, Held>,
    /// Objects that are there, cannot be read, and of which nothing is held: as many as the server has.
    unreadable: BTreeMap<Name, Unread>,
    tombstones: Tombstones,
    /// To be told once more with the next list.
    retold: BTreeSet<Name>,
    /// The newest version that the watch has shown: everything up to it has been told.
    passed: u64,
    /// Number of lists begun.
    lists: u64,
    list: Option<List<O>>,
}

/// Namespace and name of an object; the namespace is empty for cluster-scoped kinds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    namespace: Box<str>,
    name: Box<str>,
}

#[derive(Debug)]
struct Held {
    uid: Box<str>,
    version: u64,
    /// Number of the last list that had the object.
    listed: u64,
    /// Number of lists begun when an answer to an own write was the last news.
    answered: u64,
    /// Contents of own writes that the server answered with this very version.
    echoes: Vec<u64>,
}

/// An object that cannot be read.
#[derive(Debug)]
struct Unread {
    /// Empty where it cannot be read either.
    uid: Box<str>,
    /// 0 where it cannot be read either.
    version: u64,
    /// Number of the last list that had the object.
    listed: u64,
}

/// A list under way.
#[derive(Debug)]
struct List<O> {
    /// Tombstones older than this one were set before the list began: it cannot contain what they stand for.
    first_tombstone: u64,
    /// An object was listed of which not even the name could be read: absence from the list proves nothing.
    blind: bool,
    /// Listed states that are older than what is held. They count only if time went back.
    overtaken: BTreeMap<Name, Observed<O>>,
    /// Deleted while the list went on (streaming lists carry live events).
    deleted: BTreeSet<Box<str>>,
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
    /// A list begins. One that was under way is given up.
    pub fn list_started(&mut self) {
        self.lists += 1;
        self.list = Some(List {
            first_tombstone: self.tombstones.next,
            blind: false,
            overtaken: BTreeMap::new(),
            deleted: BTreeSet::new(),
        });
    }

    /// Everything is told once more with the list that begins next, since the agent has let go of something of it. What that
    /// list has not in a state that can be told is told as unreadable.
    pub fn tell_again(&mut self) {
        self.retold = self.held.keys().chain(self.unreadable.keys()).cloned().collect();
    }

    /// The watch or a list shows an object.
    pub fn seen(&mut self, observed: Observed<O>, news: &mut Vec<Change<O>>) {
        let name = Name::of(&observed.namespace, &observed.name);
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

    /// The watch or a list shows an object that cannot be read. It is there: what is held stays, and where nothing is, it is
    /// told that something is there. Late news of what we deleted may say so too; its end is then on its way.
    pub fn unreadable(&mut self, unreadable: &Unreadable, news: &mut Vec<Change<O>>) {
        self.pass(unreadable.resource_version);
        if unreadable.name.is_empty() {
            if let Some(list) = &mut self.list {
                list.blind = true;
            }
            return;
        }
        let name = Name::of(&unreadable.namespace, &unreadable.name);
        let replaced = self.held.get(&name).is_some_and(|held| {
            !unreadable.uid.is_empty() && held.uid != unreadable.uid && held.version < unreadable.resource_version
        });
        if replaced {
            self.drop_held(&name, Removal::Deleted, news);
        }
        let is_new = !self.held.contains_key(&name) && self.note_unreadable(&name, unreadable);
        if self.retold.remove(&name) || is_new {
            news.push(name.clone().unreadable());
        }
        self.mark_listed(&name);
    }

    /// The watch shows the end of an object.
    pub fn deleted(&mut self, namespace: &str, name: &str, uid: &str, version: u64, news: &mut Vec<Change<O>>) {
        let name = Name::of(namespace, name);
        self.pass(version);
        self.tombstones.remove(uid);
        if let Some(list) = &mut self.list {
            list.deleted.insert(uid.into());
            if list.overtaken.get(&name).is_some_and(|listed| &*listed.uid == uid) {
                list.overtaken.remove(&name);
            }
        }
        if self.held.get(&name).is_some_and(|held| &*held.uid == uid) {
            self.drop_held(&name, Removal::Deleted, news);
        }
        if self.unreadable.get(&name).is_some_and(|unread| unread.uid.is_empty() || &*unread.uid == uid) {
            self.drop_unreadable(&name, Removal::Deleted, news);
        }
    }

    /// A list has ended: what it does not have is gone, as far as the list can tell.
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
        news.extend(std::mem::take(&mut self.retold).into_iter().map(Name::unreadable));
        self.tombstones.forget_before(if rolled_back { u64::MAX } else { list.first_tombstone });
        self.passed = version;
    }

    /// An own write was answered with this object, or a GET brought it. True if that is what is held now.
    pub fn answered(&mut self, observed: Observed<O>, news: &mut Vec<Change<O>>) -> bool {
        let name = Name::of(&observed.namespace, &observed.name);
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
                // The watch has yet to show the end of the one before, and until then it may show its life.
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

    /// The server confirmed that an object of this UID does not exist any more.
    pub fn gone(&mut self, namespace: &str, name: &str, uid: &str, news: &mut Vec<Change<O>>) {
        let name = Name::of(namespace, name);
        if self.held.get(&name).is_some_and(|held| &*held.uid == uid) {
            self.tombstones.insert(uid);
            self.drop_held(&name, Removal::Deleted, news);
        }
    }

    /// UID and version of what is held under a name.
    #[must_use]
    pub fn held(&self, namespace: &str, name: &str) -> Option<(&str, u64)> {
        self.held.get(&Name::of(namespace, name)).map(|held| (&*held.uid, held.version))
    }

    /// Remembers that a write of this content was answered with the very version that is held.
    pub fn remember_echo(&mut self, namespace: &str, name: &str, content: u64) {
        if let Some(held) = self.held.get_mut(&Name::of(namespace, name))
            && !held.echoes.contains(&content)
        {
            held.echoes.push(content);
        }
    }

    /// Whether a write of this content was answered with the version that is held: sending it again changes nothing.
    #[must_use]
    pub fn echoed(&self, namespace: &str, name: &str, content: u64) -> bool {
        self.held.get(&Name::of(namespace, name)).is_some_and(|held| held.echoes.contains(&content))
    }

    /// Number of objects held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Versions come in order only outside of lists.
    fn pass(&mut self, version: u64) {
        if self.list.is_none() {
            self.passed = self.passed.max(version);
        }
    }

    fn mark_listed(&mut self, name: &Name) {
        if self.list.is_some() {
            self.mark_listed_in(name, self.lists);
        }
    }

    fn mark_listed_in(&mut self, name: &Name, list: u64) {
        if let Some(held) = self.held.get_mut(name) {
            held.listed = list;
        }
        if let Some(unread) = self.unreadable.get_mut(name) {
            unread.listed = list;
        }
    }

    /// Whether that is new.
    fn note_unreadable(&mut self, name: &Name, unreadable: &Unreadable) -> bool {
        let Unreadable { uid, resource_version, .. } = unreadable;
        let unread = Unread { uid: uid.clone(), version: *resource_version, listed: 0 };
        self.unreadable.insert(name.clone(), unread).is_none()
    }

    fn take(&mut self, name: &Name, observed: Observed<O>, news: &mut Vec<Change<O>>) {
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
        let unlisted: Vec<Name> = self
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

    fn drop_held(&mut self, name: &Name, how: Removal, news: &mut Vec<Change<O>>) {
        if let Some(held) = self.held.remove(name) {
            self.retold.remove(name);
            let Name { namespace, name } = name.clone();
            news.push(Change::Removed { namespace, name, uid: held.uid, how });
        }
    }

    fn drop_unreadable(&mut self, name: &Name, how: Removal, news: &mut Vec<Change<O>>) {
        if let Some(unread) = self.unreadable.remove(name) {
            self.retold.remove(name);
            let Name { namespace, name } = name.clone();
            news.push(Change::Removed { namespace, name, uid: unread.uid, how });
        }
    }
}

impl Name {
    fn of(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    fn unreadable<O>(self) -> Change<O> {
        let Self { namespace, name } = self;
        Change::Unreadable { namespace, name }
    }
}

/// UIDs of objects that we know to be gone before the watch has shown it, oldest first.
#[derive(Debug, Default)]
struct Tombstones {
    order_of: BTreeMap<Box<str>, u64>,
    by_order: BTreeMap<u64, Box<str>>,
    next: u64,
}

impl Tombstones {
    fn has(&self, uid: &str) -> bool {
        self.order_of.contains_key(uid)
    }

    fn insert(&mut self, uid: &str) {
        self.remove(uid);
        self.order_of.insert(uid.into(), self.next);
        self.by_order.insert(self.next, uid.into());
        self.next += 1;
        if self.by_order.len() > TOMBSTONES_PER_SOURCE
            && let Some((_, oldest)) = self.by_order.pop_first()
        {
            self.order_of.remove(&oldest);
        }
    }

    fn remove(&mut self, uid: &str) {
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
