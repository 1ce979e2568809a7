//! Tests of the ways of changes.

use super::*;
use crate::fixture::{app, healthy, set};
use crate::snapshot::Listing;
use WayState::*;
use serde_json::{Value, json};

/// Indexes of importer and exporter.
const EAST: usize = 0;
const WEST: usize = 1;
const TRIGGER: &str = "/metadata/annotations";

/// Returns the entry of a writer in managedFields.
fn by(field: &str, time: &str) -> Value {
    json!([
        {"manager": "a", "time": time, "fieldsV1": {field: {}}},
        {"manager": "b", "time": "2027-01-15T12:09:59Z", "fieldsV1": {"f:metadata": {}}},
    ])
}

/// Returns a fleet in which the third generation of a slice has arrived. The exporter's agent saw it at 12:09:50.25.
fn arrived() -> Snapshot {
    let mut it = healthy();
    let west = &mut it.members[WEST].slices;
    set(west, "/metadata/generation", json!(3));
    set(west, TRIGGER, json!({TRIGGER_TIME: "2027-01-15T12:09:50Z"}));
    set(&mut it.hub.slice_exports, "/spec/endpointSliceReference/exportedSince", json!("2027-01-15T12:09:50.250000Z"));
    set(&mut it.hub.slice_exports, "/metadata/managedFields", by("f:spec", "2027-01-15T12:09:50Z"));
    set(&mut it.hub.distributed_slices, "/metadata/managedFields", by("f:spec", "2027-01-15T12:09:51Z"));
    set(&mut it.members[EAST].slices, "/metadata/managedFields", by("f:endpoints", "2027-01-15T12:09:54Z"));
    it
}

/// Returns the only way of an altered fleet.
fn way_of(alter: impl FnOnce(&mut Snapshot)) -> Way {
    let mut snapshot = arrived();
    alter(&mut snapshot);
    let mut ways = ways(&snapshot, &app());
    assert_eq!(ways.len(), 1, "{ways:#?}");
    ways.remove(0)
}

fn span_of(least: f64, most: f64, by_two_clocks: bool) -> Option<Span> {
    Some(Span { at_least_milliseconds: least, at_most_milliseconds: most, by_two_clocks })
}

#[test]
fn a_change_that_has_arrived_has_the_time_of_each_step_with_its_limits() {
    let way = way_of(|_| {});
    assert_eq!((way.exporter.as_str(), way.importer.as_str(), way.slice.as_str()), ("west", "east", "app-1"));
    let steps: Vec<(&str, Option<&str>, Option<Span>)> =
        way.steps.iter().map(|it| (it.cluster.as_str(), it.time.as_deref(), it.since)).collect();
    let expected = [
        ("west", Some("2027-01-15T12:09:50Z"), None),
        ("west", Some("2027-01-15T12:09:50.250000Z"), span_of(0.0, 250.0, false)),
        ("hub", Some("2027-01-15T12:09:50Z"), span_of(0.0, 750.0, true)),
        ("hub", Some("2027-01-15T12:09:51Z"), span_of(0.0, 2_000.0, false)),
        ("east", Some("2027-01-15T12:09:54Z"), span_of(2_000.0, 4_000.0, true)),
    ];
    assert_eq!(steps, expected);
    assert!(way.steps.iter().all(|step| step.state == Done && !step.clocks_differ), "{way:#?}");
    assert_eq!(way.whole, span_of(3_000.0, 5_000.0, true));
}

/// Name of a case, what it alters, and the expected states of the steps. The text has a `t` for each known time.
type Case = (&'static str, fn(&mut Snapshot), [WayState; 5], &'static str);

fn each_is_as_expected(cases: &[Case]) {
    for (name, alter, states, times) in cases {
        let way = way_of(alter);
        let found: Vec<WayState> = way.steps.iter().map(|step| step.state).collect();
        let known: String = way.steps.iter().map(|step| if step.time.is_some() { 't' } else { '-' }).collect();
        assert_eq!((found.as_slice(), known.as_str()), (&states[..], *times), "{name}");
    }
}

#[test]
fn a_step_is_done_when_its_object_has_the_last_change() {
    each_is_as_expected(&[
        ("it has arrived", |_| {}, [Done; 5], "ttttt"),
        (
            "the agent has not exported it",
            |it| {
                set(&mut it.members[WEST].slices, "/metadata/generation", json!(4));
                set(&mut it.members[WEST].slices, "/endpoints", json!([]));
            },
            [Done, NotYet, NotYet, NotYet, NotYet],
            "t----",
        ),
        (
            "a change that clients do not see is not exported",
            |it| set(&mut it.members[WEST].slices, "/metadata/generation", json!(4)),
            [Done; 5],
            "-tttt",
        ),
        (
            "the hub has not distributed it",
            |it| set(&mut it.hub.distributed_slices, "/spec/endpointSliceReference/generation", json!(2)),
            [Done, Done, Done, NotYet, Done],
            "ttt-t",
        ),
        (
            "the hub has a newer change than the source slice that was read before",
            |it| {
                let pointer = "/spec/endpointSliceReference/generation";
                set(&mut it.hub.slice_exports, pointer, json!(4));
                set(&mut it.hub.distributed_slices, pointer, json!(4));
                set(&mut it.members[WEST].slices, "/endpoints", json!([]));
                set(&mut it.members[EAST].slices, "/metadata/annotations", json!({LAST_OBSERVED_GENERATION: "5"}));
            },
            [Done; 5],
            "-ttt-",
        ),
        (
            "nobody wrote the exported slice yet",
            |it| it.hub.slice_exports = Listing::of(Vec::new()),
            [Done, NotYet, NotYet, Done, Done],
            "t--tt",
        ),
    ]);
}

#[test]
fn what_is_not_known_or_not_needed_is_not_missing() {
    each_is_as_expected(&[
        (
            "the importer does not have it",
            |it| {
                set(&mut it.members[EAST].slices, "/metadata/annotations", json!({LAST_OBSERVED_GENERATION: "2"}));
                set(&mut it.members[EAST].slices, "/endpoints", json!([]));
            },
            [Done, Done, Done, Done, NotYet],
            "tttt-",
        ),
        (
            "the change makes no difference in the importer",
            |it| set(&mut it.members[EAST].slices, "/metadata/annotations", json!({LAST_OBSERVED_GENERATION: "2"})),
            [Done, Done, Done, Done, NotNeeded],
            "tttt-",
        ),
        (
            "a Go importer does not say what it has",
            |it| set(&mut it.members[EAST].slices, "/metadata/annotations", json!({})),
            [Done, Done, Done, Done, Unknown],
            "tttt-",
        ),
        (
            "the hub could not be read",
            |it| {
                it.hub.slice_exports = Listing::Unknown("late".to_owned());
                it.hub.distributed_slices = Listing::Unknown("late".to_owned());
            },
            [Done, Unknown, Unknown, Unknown, Unknown],
            "t----",
        ),
        (
            "the exporter was not read",
            |it| it.members[WEST].slices = Listing::Unknown("late".to_owned()),
            [Unknown, Done, Done, Done, Done],
            "-tttt",
        ),
        (
            "a server without managedFields, and a controller without the annotation",
            |it| {
                set(&mut it.members[WEST].slices, TRIGGER, json!({}));
                set(&mut it.hub.slice_exports, "/metadata/managedFields", Value::Null);
                set(&mut it.members[EAST].slices, "/metadata/managedFields", Value::Null);
            },
            [Done; 5],
            "-t-t-",
        ),
    ]);
}

#[test]
fn times_of_clocks_that_differ_are_not_compared() {
    let imported = |time: &'static str| {
        move |it: &mut Snapshot| set(&mut it.members[EAST].slices, "/metadata/managedFields", by("f:endpoints", time))
    };
    let last = |way: &Way| (way.steps[4].since, way.steps[4].clocks_differ, way.whole);
    // The clock of the importer is behind that of the hub.
    assert_eq!(last(&way_of(imported("2027-01-15T12:09:40Z"))), (None, true, None));
    let ahead = way_of(|it| set(&mut it.hub.member_agents, "/spec/renewTime", json!("2027-01-15T12:10:00.400000Z")));
    assert_eq!((ahead.steps[4].since, ahead.steps[4].clocks_differ), (None, true));
    let same_second = way_of(imported("2027-01-15T12:09:51Z"));
    assert_eq!(same_second.steps[4].since, span_of(0.0, 1_000.0, true));
}

#[test]
fn of_many_ways_each_pair_keeps_the_first_ones() {
    let way = way_of(|_| {});
    let of =
        |importer: &str, slice: usize| Way { importer: importer.to_owned(), slice: slice.to_string(), ..way.clone() };
    let all: Vec<Way> = ["a", "b", "c"].iter().flat_map(|it| (0..4).map(|slice| of(it, slice))).collect();
    let kept = |max| {
        let (kept, left_out) = limited(all.clone(), max);
        let names: Vec<String> = kept.iter().map(|way| format!("{}{}", way.importer, way.slice)).collect();
        (names.join(" "), left_out)
    };
    assert_eq!(kept(12), ("a0 a1 a2 a3 b0 b1 b2 b3 c0 c1 c2 c3".to_owned(), 0));
    assert_eq!(kept(7), ("a0 a1 b0 b1 c0 c1".to_owned(), 6));
    assert_eq!(kept(2), ("a0 b0".to_owned(), 10));
    assert_eq!(limited(Vec::new(), 7), (Vec::new(), 0));
}
