//! Tests of the record of own writes with unknown outcome: the writes that it contains, and the time for which it keeps
//! them. Time is simulated.

use super::*;
use endpointslice::model::{Endpoint, EndpointSlice};
use std::time::Duration;

const NOON: Timestamp = Timestamp::from_seconds(1_800_000_000);
const SECOND: Duration = Duration::from_secs(1);

fn name() -> ObjectName {
    ObjectName::new("testing", "web-1")
}

/// Returns the hash of a slice with this number of endpoints.
fn content(endpoints: usize) -> Content {
    let endpoints = vec![Endpoint::default(); endpoints];
    Some(Fingerprint::of(&EndpointSlice { endpoints, ..EndpointSlice::default() }))
}

fn lost(writes: impl IntoIterator<Item = usize>) -> Lost {
    let mut lost = Lost::default();
    writes.into_iter().for_each(|endpoints| lost.note(&name(), content(endpoints), NOON));
    lost
}

#[test]
fn a_lost_write_is_seen_once() {
    let mut lost = lost([1]);
    assert!(!lost.sees(&name(), content(2), NOON), "something else");
    assert!(!lost.sees(&ObjectName::new("testing", "web-2"), content(1), NOON), "of another slice");
    assert!(lost.sees(&name(), content(1), NOON));
    assert!(!lost.sees(&name(), content(1), NOON), "again, by another");
    assert!(!lost.has(&name()));
}

#[test]
fn a_later_write_that_is_seen_ends_the_earlier_ones() {
    let mut lost = lost([1, 2, 3]);
    assert!(lost.sees(&name(), content(2), NOON));
    assert!(!lost.sees(&name(), content(1), NOON), "that could come before only");
    assert!(lost.sees(&name(), content(3), NOON), "this may still come");
}

#[test]
fn the_latest_writes_to_a_slice_are_remembered_and_the_same_counts_once() {
    assert_eq!(lost([5; 10]).writes[&name()].len(), 1);
    let mut lost = lost(0..=LOST_WRITES_PER_SLICE);
    assert_eq!(lost.writes[&name()].len(), LOST_WRITES_PER_SLICE);
    assert!(!lost.sees(&name(), content(0), NOON));
    assert!(lost.sees(&name(), content(1), NOON));
}

#[test]
fn a_deletion_is_own_only_if_it_was_requested() {
    let mut lost = lost([1]);
    assert!(!lost.sees(&name(), None, NOON));
    lost.note(&name(), None, NOON);
    assert!(lost.sees(&name(), None, NOON));
    assert!(!lost.sees(&name(), None, NOON));
}

#[test]
fn lost_writes_are_forgotten_after_a_minute() {
    assert!(lost([1]).sees(&name(), content(1), NOON + SECOND * 60));
    assert!(!lost([1]).sees(&name(), content(1), NOON + SECOND * 61));
    let mut lost = lost([1]);
    lost.note(&ObjectName::new("testing", "web-2"), None, NOON + SECOND * 61);
    assert_eq!(lost.writes.len(), 1, "what nobody sees takes no room for ever");
}

#[test]
fn a_clock_that_goes_back_a_little_forgets_nothing_and_one_that_goes_back_far_keeps_nothing_for_ever() {
    assert!(lost([1]).sees(&name(), content(1), NOON - SECOND * 60));
    let mut lost = lost([1]);
    lost.note(&ObjectName::new("testing", "web-2"), None, NOON - SECOND * 86_400);
    assert_eq!(lost.writes.len(), 1);
}
