//! Tests of packing with letters and numbers, independent of Kubernetes.

use super::*;

/// Item of the tests: a key and a content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Thing(u32, char);

impl Item for Thing {
    type Key<'a> = u32;

    fn key(&self) -> u32 {
        self.0
    }

    fn stands_for(&self, wanted: &Self) -> bool {
        self.1 == wanted.1
    }
}

fn things(keys: impl IntoIterator<Item = u32>) -> Vec<Thing> {
    keys.into_iter().map(|key| Thing(key, 'a')).collect()
}

fn packed(wanted: Vec<Thing>, buckets: &[Vec<Thing>], max: usize) -> Packing<Thing> {
    let buckets: Vec<_> = buckets.iter().map(|items| Bucket { items, must_change: false }).collect();
    pack(wanted, &buckets, max)
}

/// Returns two lists: the new number of items of each existing bucket (`None` if the bucket stays as it is), and the
/// number of items of each new bucket.
fn lengths(packing: &Packing<Thing>) -> (Vec<Option<usize>>, Vec<usize>) {
    let changed = packing.fates.iter().map(|fate| match fate {
        Fate::Unchanged => None,
        Fate::Changed(items) => Some(items.len()),
        Fate::Emptied => Some(0),
    });
    (changed.collect(), packing.created.iter().map(Vec::len).collect())
}

/// Rule Z3: An endpoint changes, or nothing changes
/// Then: The library plans a write of a slice if an endpoint changes in a field that consumers read. A different order
/// of ports causes no write. If nothing changes, the plan is empty
#[test]
fn a_settled_world_changes_no_bucket() {
    let packing = packed(things(0..7), &[things([3, 1, 0]), things([6, 2, 4, 5])], 4);
    assert_eq!(lengths(&packing), (vec![None, None], vec![]));
    assert_eq!((packing.added, packing.removed, packing.wanted), (0, 0, 7));
}

#[test]
fn new_items_make_full_buckets_and_a_rest() {
    assert_eq!(lengths(&packed(things(0..250), &[], 100)).1, [100, 100, 50]);
}

/// Also rule Z2.
#[test]
fn one_new_bucket_is_preferred_over_many_changed_ones() {
    let buckets = [things(0..62), things(100..161)];
    let wanted = things((0..62).chain(100..161).chain(200..327));
    assert_eq!(lengths(&packed(wanted, &buckets, 100)), (vec![Some(89), None], vec![100]));
}

#[test]
fn a_rest_that_fits_in_no_bucket_gets_its_own() {
    let buckets = [things(0..74), things(100..174)];
    let wanted = things((0..74).chain(100..174).chain(200..352));
    assert_eq!(lengths(&packed(wanted, &buckets, 100)), (vec![None, None], vec![100, 52]));
}

/// Rule Z2: A Service has new endpoints
/// Then: The library changes as few slices as possible. The library first fills the slices that change anyway, the
/// fullest first. Then the library changes at most one other slice: the fullest slice with room for all remaining
/// endpoints. The library never moves an endpoint to another slice
#[test]
fn buckets_that_change_anyway_are_filled_first_the_fullest_before_others() {
    let mut wanted = things((0..20).chain(100..180).chain(200..215));
    wanted[0].1 = 'b';
    wanted[20].1 = 'b';
    let packing = packed(wanted, &[things(0..20), things(100..180)], 100);
    assert_eq!(lengths(&packing), (vec![Some(20), Some(95)], vec![]));
}

/// Also rule Z2.
#[test]
fn of_unchanged_buckets_only_the_one_that_gets_fullest_is_opened() {
    let buckets = [things(0..5), things(10..17), things(20..28), things(30..37)];
    let wanted = things((0..5).chain(10..17).chain(20..28).chain(30..37).chain(100..103));
    assert_eq!(lengths(&packed(wanted, &buckets, 10)), (vec![None, Some(10), None, None], vec![]));
}

/// Also rule Z1.
#[test]
fn a_bucket_over_the_limit_keeps_what_it_has_and_gets_no_more() {
    let mut wanted = things(0..8);
    wanted[0].1 = 'b';
    assert_eq!(lengths(&packed(wanted, &[things(0..6)], 4)), (vec![Some(6)], vec![2]));
}

#[test]
fn an_item_that_two_buckets_hold_stays_in_the_first() {
    let packing = packed(things(0..3), &[things([0, 1]), things([1, 2])], 4);
    assert_eq!(packing.fates, [Fate::Unchanged, Fate::Changed(things([2]))]);
    assert_eq!(packing.removed, 1);
}

#[test]
fn an_item_twice_in_one_bucket_is_once_in_it_afterwards() {
    let packing = packed(things(0..2), &[things([0, 1, 0])], 4);
    assert_eq!(packing.fates, [Fate::Changed(things([0, 1]))]);
}

#[test]
fn of_wanted_items_with_one_key_the_last_counts() {
    let packing = packed(vec![Thing(1, 'a'), Thing(2, 'a'), Thing(1, 'b')], &[], 4);
    assert_eq!(packing.created, [[Thing(1, 'b'), Thing(2, 'a')]]);
    assert_eq!(packing.wanted, 2);
}

#[test]
fn a_bucket_without_items_stays_unless_it_must_change() {
    let packing = packed(things(0..1), &[things([]), things([0])], 4);
    assert_eq!(lengths(&packing), (vec![None, None], vec![]));
    let empty = Bucket { items: &[] as &[Thing], must_change: true };
    assert_eq!(pack(things(0..1), &[empty], 4).fates, [Fate::Changed(things([0]))]);
}

#[test]
fn a_bucket_that_must_change_is_filled_like_any_that_does() {
    let (first, second) = (things(0..2), things(10..13));
    let buckets = [Bucket { items: &first, must_change: true }, Bucket { items: &second, must_change: false }];
    let packing = pack(things((0..2).chain(10..13).chain(20..21)), &buckets, 4);
    assert_eq!(packing.fates, [Fate::Changed(things([0, 1, 20])), Fate::Unchanged]);
}
