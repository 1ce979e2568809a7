//! What is remembered of own wishes, and for how long. Time is data.

use super::*;
use endpointslice::model::Endpoint;

const NOON: Timestamp = Timestamp::from_seconds(1_800_000_000);
const SECOND: Duration = Duration::from_secs(1);

fn name() -> ObjectName {
    ObjectName::new("testing", "web-1")
}

/// A slice that says `says`, of that version.
fn slice(says: usize, version: &str) -> EndpointSlice {
    let mut slice = EndpointSlice { endpoints: vec![Endpoint::default(); says], ..EndpointSlice::default() };
    slice.metadata.name = "web-1".into();
    slice.metadata.resource_version = version.into();
    slice
}

fn asked(wishes: impl IntoIterator<Item = usize>) -> Asked {
    let mut asked = Asked::default();
    wishes.into_iter().for_each(|says| asked.note(&name(), Some(Fingerprint::of(&slice(says, ""))), NOON));
    asked
}

#[test]
fn a_wish_is_seen_once_whatever_version_it_got() {
    let mut asked = asked([1]);
    assert!(!asked.sees(&name(), &slice(2, "7"), NOON), "something else");
    assert!(!asked.sees(&ObjectName::new("testing", "web-2"), &slice(1, "7"), NOON), "of another slice");
    assert!(asked.sees(&name(), &slice(1, "7"), NOON));
    assert!(!asked.sees(&name(), &slice(1, "8"), NOON), "again, by another");
    assert!(asked.wishes.is_empty());
}

#[test]
fn a_later_wish_that_is_seen_ends_the_earlier_ones() {
    let mut asked = asked([1, 2, 3]);
    assert!(asked.sees(&name(), &slice(2, "7"), NOON));
    assert!(!asked.sees(&name(), &slice(1, "8"), NOON), "that could come before only");
    assert!(asked.sees(&name(), &slice(3, "8"), NOON), "this may still come");
}

#[test]
fn wishes_that_are_never_sent_do_not_crowd_out_the_one_that_was() {
    let mut asked = asked(0..1_000);
    assert!(asked.sees(&name(), &slice(0, "7"), NOON));
}

#[test]
fn the_latest_wishes_for_a_slice_are_remembered_and_the_same_counts_once() {
    let mut asked = asked([5; 10]);
    assert_eq!(asked.wishes[&name()].len(), 1);
    let wish = |number: usize| asked_for(&format!("pod{number}"));
    (0..=WISHES_PER_SLICE).for_each(|number| asked.note(&name(), Some(Fingerprint::of(&wish(number))), NOON));
    assert_eq!(asked.wishes[&name()].len(), WISHES_PER_SLICE);
    assert!(!asked.sees(&name(), &wish(0), NOON));
    assert!(asked.sees(&name(), &wish(1), NOON));
}

fn asked_for(address: &str) -> EndpointSlice {
    let mut slice = slice(1, "");
    slice.endpoints[0].addresses = [address.into()].into_iter().collect();
    slice
}

#[test]
fn a_slice_that_goes_was_asked_to_or_not() {
    let mut asked = asked([1]);
    assert!(!asked.sees_gone(&name(), NOON));
    asked.note(&name(), None, NOON);
    assert!(asked.sees_gone(&name(), NOON));
    assert!(!asked.sees_gone(&name(), NOON));
    asked.note(&name(), None, NOON);
    let mut lingering = slice(1, "7");
    lingering.metadata.deletion_timestamp = Some(NOON.to_jiff());
    assert!(asked.sees(&name(), &lingering, NOON), "finalizers hold it");
}

#[test]
fn wishes_are_forgotten_after_a_minute() {
    assert!(asked([1]).sees(&name(), &slice(1, "7"), NOON + SECOND * 60));
    assert!(!asked([1]).sees(&name(), &slice(1, "7"), NOON + SECOND * 61));
    let mut asked = asked([1]);
    asked.note(&ObjectName::new("testing", "web-2"), None, NOON + SECOND * 61);
    assert_eq!(asked.wishes.len(), 1, "what nobody sees takes no room for ever");
}

#[test]
fn a_clock_that_goes_back_a_little_forgets_nothing_and_one_that_goes_back_far_keeps_nothing_for_ever() {
    assert!(asked([1]).sees(&name(), &slice(1, "7"), NOON - SECOND * 60));
    let mut asked = asked([1]);
    asked.note(&ObjectName::new("testing", "web-2"), None, NOON - SECOND * 86_400);
    assert_eq!(asked.wishes.len(), 1);
}
