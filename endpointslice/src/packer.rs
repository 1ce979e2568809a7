//! Packs items into buckets of limited size and changes few buckets.
//!
//! For EndpointSlices, an item is an endpoint and a bucket is a slice. Every reader of slices receives every write of a
//! slice. So the addition or removal of an endpoint should change few slices.
//!
//! [`pack`] follows the three steps of KEP-752's algorithm. The algorithm never moves an item between buckets:
//!
//! 1. Keep every item where it is.
//! 2. Fill buckets that must be written in any case.
//! 3. Create new buckets for the remaining items. If the last items fit in a bucket that need not be written, fill this
//!    one bucket instead.
//!
//! The packing is deterministic: the same items and buckets in the same order give the same result.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher as _, Hash};

/// Item that is packed into buckets, such as an endpoint of a slice.
pub trait Item: Clone {
    /// Identity of an item. Borrows from the item to avoid allocations.
    type Key<'a>: Eq + Hash
    where
        Self: 'a;

    /// Returns the identity of the item.
    fn key(&self) -> Self::Key<'_>;

    /// True if a bucket that contains `self` needs no change to contain `wanted`, an item with the same key.
    fn stands_for(&self, wanted: &Self) -> bool;
}

/// Existing bucket, such as a slice.
#[derive(Debug)]
pub struct Bucket<'a, I> {
    /// Items in the bucket now.
    pub items: &'a [I],
    /// True if the bucket must be written even if its items stay the same.
    pub must_change: bool,
}

impl<I> Bucket<'_, I> {
    /// Returns what happens to the bucket: unchanged, changed or emptied. `touched` is true if an item is removed or
    /// replaced. `kept` returns the items that stay.
    pub(crate) fn fate(&self, touched: bool, kept: impl FnOnce() -> Vec<I>) -> Fate<I> {
        if !touched && !self.must_change {
            return Fate::Unchanged;
        }
        let kept = kept();
        if touched && kept.is_empty() { Fate::Emptied } else { Fate::Changed(kept) }
    }
}

/// Result of packing for an existing bucket.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Fate<I> {
    /// The bucket stays as it is.
    Unchanged,
    /// The bucket must be written with these items.
    Changed(Vec<I>),
    /// None of the bucket's items is wanted any more.
    Emptied,
}

/// Result of packing: the changes after which every item is in a bucket.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Packing<I> {
    /// Result for each existing bucket, in the order of the input.
    pub fates: Vec<Fate<I>>,
    /// Items of each new bucket.
    pub created: Vec<Vec<I>>,
    /// Number of items that were in no bucket before.
    pub added: usize,
    /// Number of items removed from buckets.
    pub removed: usize,
    /// Number of distinct items to pack.
    pub wanted: usize,
}

/// Packs the items `wanted` into `buckets` of at most `max` items. A bucket that already has more items keeps them. Of
/// several wanted items with the same key, only the last counts.
///
/// # Panics
/// If `max` is 0, because no bucket could have an item.
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

/// Step 1 of [`pack`]: keeps every wanted item in the bucket that already contains it. Returns the result for each
/// bucket, and the number of removed items.
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

/// Steps 2 and 3 of [`pack`]: puts the remaining items into buckets that must be written in any case, then into new
/// full buckets. The last items go into an unchanged bucket with enough room, or else into a new bucket. Returns the
/// items of each new bucket.
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

/// Returns the index of the fullest unchanged bucket that has room for all remaining items. `None` if there is none.
fn closest_to_full<I>(buckets: &[Bucket<'_, I>], fates: &[Fate<I>], left: usize, max: usize) -> Option<usize> {
    let unchanged = fates.iter().zip(buckets).enumerate().filter(|(_, (fate, _))| matches!(fate, Fate::Unchanged));
    let fitting = unchanged.filter_map(|(index, (_, bucket))| {
        let room = max.checked_sub(left + bucket.items.len())?;
        Some((room, index))
    });
    fitting.min().map(|(_, index)| index)
}

/// Items to pack, with an index by key.
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
            match table.find(hash, |&at: &usize| items[at].key() == key) {
                Some(&first) => again.push((first, index)),
                None => drop(table.insert_unique(hash, index, |_| unreachable!("it has room for all of them"))),
            }
        }
        if !again.is_empty() {
            return Self::new(without_repetition(items, &again));
        }
        Self { taken: vec![false; items.len()], items, table, hasher }
    }

    /// Marks the wanted item with the key of `item` as placed in a bucket, and returns its index. Returns `None` if no
    /// such item is wanted, or if it is in a bucket already.
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

/// Removes items with repeated keys: of the items with one key, only the last stays, at the position of the first. Each
/// pair in `again` has the position of the first item with a key, and the position of a later item with this key.
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
