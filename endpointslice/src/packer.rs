//! Items into bounded buckets, so that few buckets change.
//!
//! Fan-out of any kind has this problem: many items are published in objects of limited size, each write of an object
//! costs every reader, and items come and go one at a time. [`pack`] keeps every item where it is, fills buckets that
//! must be written anyway, opens at most one bucket that need not be, and makes new ones for the rest. It never moves an
//! item and never rebalances. These are the three steps of KEP-752's algorithm.
//!
//! It is deterministic: the same items and buckets in the same order give the same packing.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher as _, Hash};

/// What is put in buckets.
pub trait Item: Clone {
    /// What tells one item from another. It borrows from the item, so that none is built.
    type Key<'a>: Eq + Hash
    where
        Self: 'a;

    /// Its key.
    fn key(&self) -> Self::Key<'_>;

    /// Whether the bucket that holds `self` can stay as it is where `wanted`, an item of the same key, should be.
    fn stands_for(&self, wanted: &Self) -> bool;
}

/// A bucket as it is.
#[derive(Debug)]
pub struct Bucket<'a, I> {
    /// What is in it.
    pub items: &'a [I],
    /// Whether it must be written whatever becomes of its items.
    pub must_change: bool,
}

impl<I> Bucket<'_, I> {
    /// What becomes of it, given whether its items are touched and what it should then hold.
    pub(crate) fn fate(&self, touched: bool, kept: impl FnOnce() -> Vec<I>) -> Fate<I> {
        if !touched && !self.must_change {
            return Fate::Unchanged;
        }
        let kept = kept();
        if touched && kept.is_empty() { Fate::Emptied } else { Fate::Changed(kept) }
    }
}

/// What becomes of a bucket.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Fate<I> {
    /// Nothing.
    Unchanged,
    /// It should hold these.
    Changed(Vec<I>),
    /// None of its items is wanted any more.
    Emptied,
}

/// What should be done so that all items are in buckets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Packing<I> {
    /// What becomes of each bucket, in the order in which they were given.
    pub fates: Vec<Fate<I>>,
    /// New buckets.
    pub created: Vec<Vec<I>>,
    /// How many items were in no bucket.
    pub added: usize,
    /// How many places of items in buckets were given up.
    pub removed: usize,
    /// How many items there are, each key counted once.
    pub wanted: usize,
}

/// Packs `wanted` into `buckets` of at most `max` items; one that has more keeps them. Of items with the same key the
/// last counts.
///
/// # Panics
/// If `max` is 0: no bucket could hold anything.
#[must_use]
pub fn pack<I: Item>(wanted: Vec<I>, buckets: &[Bucket<'_, I>], max: usize) -> Packing<I> {
    assert!(max > 0, "a bucket that holds nothing");
    let mut left = Wanted::new(wanted);
    let count = left.items.len();
    let (mut fates, removed) = keep(&mut left, buckets);
    let rest = left.into_rest();
    let added = rest.len();
    let created = place(rest, buckets, &mut fates, max);
    Packing { fates, created, added, removed, wanted: count }
}

/// Step 1: items stay where they are.
fn keep<I: Item>(wanted: &mut Wanted<I>, buckets: &[Bucket<'_, I>]) -> (Vec<Fate<I>>, usize) {
    let mut removed = 0;
    let mut kept = Vec::new();
    let fates = buckets.iter().map(|bucket| {
        kept.clear();
        let mut touched = false;
        for item in bucket.items {
            if let Some(index) = wanted.take(item) {
                touched |= !item.stands_for(&wanted.items[index]);
                kept.push(index);
            }
        }
        removed += bucket.items.len() - kept.len();
        touched |= bucket.items.len() != kept.len();
        bucket.fate(touched, || kept.iter().map(|&index| wanted.items[index].clone()).collect())
    });
    (fates.collect(), removed)
}

/// Steps 2 and 3: the rest fills buckets that change anyway, then at most one that would not, then new ones.
pub(crate) fn place<I: Item>(
    rest: Vec<I>,
    buckets: &[Bucket<'_, I>],
    fates: &mut [Fate<I>],
    max: usize,
) -> Vec<Vec<I>> {
    let mut left = rest.len();
    let mut rest = rest.into_iter();
    if left > 0 {
        for items in fullest_first(fates) {
            items.extend(rest.by_ref().take(max.saturating_sub(items.len())));
        }
        left = rest.len();
    }
    let mut created = Vec::new();
    while left > 0 {
        let opened = if left < max { closest_to_full(buckets, fates, left, max) } else { None };
        if let Some(index) = opened {
            fates[index] = Fate::Changed(buckets[index].items.iter().cloned().chain(rest.by_ref()).collect());
        } else {
            created.push(rest.by_ref().take(max).collect());
        }
        left = rest.len();
    }
    created
}

fn fullest_first<I>(fates: &mut [Fate<I>]) -> Vec<&mut Vec<I>> {
    let changed = fates.iter_mut().filter_map(|fate| match fate {
        Fate::Changed(items) => Some(items),
        Fate::Unchanged | Fate::Emptied => None,
    });
    let mut changed: Vec<_> = changed.collect();
    changed.sort_by_key(|items| std::cmp::Reverse(items.len()));
    changed
}

/// The unchanged bucket that all of what is left fits into with the least room to spare.
fn closest_to_full<I>(buckets: &[Bucket<'_, I>], fates: &[Fate<I>], left: usize, max: usize) -> Option<usize> {
    let unchanged = fates.iter().zip(buckets).enumerate().filter(|(_, (fate, _))| matches!(fate, Fate::Unchanged));
    let fitting = unchanged.filter_map(|(index, (_, bucket))| {
        let room = max.checked_sub(left + bucket.items.len())?;
        Some((room, index))
    });
    fitting.min().map(|(_, index)| index)
}

/// The items that should be in buckets, found by key.
struct Wanted<I> {
    items: Vec<I>,
    taken: Vec<bool>,
    table: HashTable<usize>,
    hasher: DefaultHashBuilder,
}

impl<I: Item> Wanted<I> {
    fn new(items: Vec<I>) -> Self {
        let hasher = DefaultHashBuilder::default();
        let mut table = HashTable::with_capacity(items.len());
        let mut again = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let key = item.key();
            let hash = hasher.hash_one(&key);
            match table.find(hash, |&held: &usize| items[held].key() == key) {
                Some(&first) => again.push((first, index)),
                None => drop(table.insert_unique(hash, index, |_| unreachable!("it has room for all of them"))),
            }
        }
        if !again.is_empty() {
            return Self::new(without_repetition(items, &again));
        }
        Self { taken: vec![false; items.len()], items, table, hasher }
    }

    /// The wanted item of the same key, unless another bucket has it already.
    fn take(&mut self, item: &I) -> Option<usize> {
        let key = item.key();
        let hash = self.hasher.hash_one(&key);
        let index = *self.table.find(hash, |&index| self.items[index].key() == key)?;
        (!std::mem::replace(&mut self.taken[index], true)).then_some(index)
    }

    fn into_rest(self) -> Vec<I> {
        if self.taken.iter().all(|taken| *taken) {
            return Vec::new();
        }
        self.items.into_iter().zip(self.taken).filter_map(|(item, taken)| (!taken).then_some(item)).collect()
    }
}

/// `items` without those that come `again`, as pairs of the first and the later place; the last one takes the first place.
fn without_repetition<I: Clone>(mut items: Vec<I>, again: &[(usize, usize)]) -> Vec<I> {
    for &(first, later) in again {
        items[first] = items[later].clone();
    }
    let mut later = again.iter().map(|(_, later)| *later).peekable();
    let mut index = 0;
    items.retain(|_| {
        let repeated = later.next_if_eq(&index).is_some();
        index += 1;
        !repeated
    });
    items
}

#[cfg(test)]
mod tests;
