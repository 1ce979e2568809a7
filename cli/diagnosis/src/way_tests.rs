//! Tests of the ways of changes.

use super::*;
use crate::fixture::{app, healthy, set};
use crate::snapshot::{Listing, Member};
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
    set(west, TRIGGER, json!({LAST_CHANGE_TRIGGER_TIME: "2027-01-15T12:09:50Z"}));
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
    let (mut ways, left_out) = ways(&snapshot, &app(), 9);
    assert_eq!(left_out, 0);
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
fn what_is_left_out_on_purpose_is_not_missing() {
    each_is_as_expected(&[
        (
            "ranges in the hub leave it out",
            |it| {
                set(&mut it.members[EAST].slices, "/metadata/annotations", json!({LAST_OBSERVED_GENERATION: "2"}));
                set(&mut it.members[EAST].slices, "/endpoints", json!([]));
                let ranges = json!({"networking.fleet.azure.com/source-ranges": "10.9.0.0/16"});
                let namespaces = it.hub.namespaces.objects_mut().expect("known");
                let west = namespaces.iter_mut().find(|it| it.name_any() == "fleet-member-west").expect("it exists");
                west.metadata.annotations = serde_json::from_value(ranges).expect("annotations");
            },
            [Done, Done, Done, Done, LeftOut],
            "tttt-",
        ),
        (
            "the exporter is silent, and the importer has no slice of it",
            |it| {
                it.members[EAST].slices = Listing::of(Vec::new());
                let silent = json!([{"cluster": "west", "treatment": "Withdrawn"}]);
                set(&mut it.hub.member_agents, "/status/silentMembers", silent);
            },
            [Done, Done, Done, Done, LeftOut],
            "tttt-",
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
fn a_time_before_the_earlier_one_of_the_same_clock_has_no_span() {
    let seen = |time: &'static str| {
        way_of(|it| set(&mut it.hub.slice_exports, "/spec/endpointSliceReference/exportedSince", json!(time)))
    };
    let table = [
        ("2027-01-15T12:09:50.250000Z", span_of(0.0, 250.0, false)),
        ("2027-01-15T12:09:49.900000Z", None),
        ("2027-01-15T12:30:00.000000Z", None),
    ];
    for (time, since) in table {
        let step = &seen(time).steps[1];
        assert_eq!((step.time.as_deref(), step.since, step.clocks_differ), (Some(time), since, false), "{time}");
    }
}

#[test]
fn a_write_that_may_be_a_later_one_has_a_time_and_no_span() {
    let at = |time: &str| by("f:endpoints", time);
    let alter = |created: &'static str, written: &'static str| {
        way_of(|it| {
            let imported = &mut it.members[EAST].slices;
            set(imported, "/metadata/creationTimestamp", json!(created));
            set(imported, "/metadata/managedFields", at(written));
        })
    };
    let table = [
        ("before the change", "2027-01-01T00:00:00Z", "2027-01-15T12:09:54Z", true),
        ("by the change", "2027-01-15T12:09:54Z", "2027-01-15T12:09:54Z", true),
        ("for a new importer", "2027-01-15T12:12:00Z", "2027-01-15T12:12:00Z", false),
        ("written once more", "2027-01-01T00:00:00Z", "2027-01-15T12:20:00Z", false),
    ];
    for (name, created, written, has_span) in table {
        let way = alter(created, written);
        let step = &way.steps[4];
        assert_eq!((step.state, step.time.as_deref()), (Done, Some(written)), "{name}");
        assert_eq!(
            (step.since.is_some(), way.whole.is_some(), step.clocks_differ),
            (has_span, has_span, false),
            "{name}"
        );
    }
    let rewritten = way_of(|it| {
        set(&mut it.hub.slice_exports, "/metadata/managedFields", by("f:spec", "2027-01-18T12:00:00Z"));
    });
    let spans: Vec<bool> = rewritten.steps.iter().map(|step| step.since.is_some()).collect();
    assert_eq!(spans, [false, true, false, true, true], "the steps after a later write follow from those before it");
}

#[test]
fn of_many_ways_each_pair_keeps_the_first_ones() {
    let mut snapshot = arrived();
    let source = snapshot.members[WEST].slices.known().unwrap()[0].clone();
    let slices = (1..=4).map(|number| {
        let mut slice = source.clone();
        slice.metadata.name = Some(format!("app-{number}"));
        slice.metadata.uid = Some(format!("uid-of-app-{number}"));
        slice
    });
    snapshot.members[WEST].slices = Listing::of(slices.collect());
    for id in ["north", "south"] {
        let importer = Member { id: id.to_owned(), ..snapshot.members[EAST].clone() };
        snapshot.members.push(importer);
    }
    let kept = |max| {
        let (kept, left_out) = ways(&snapshot, &app(), max);
        let names: Vec<String> = kept.iter().map(|way| format!("{}{}", &way.importer[..1], &way.slice[4..])).collect();
        (names.join(" "), left_out)
    };
    // The slice that has arrived comes last.
    assert_eq!(kept(12), ("e2 e3 e4 e1 n1 n2 n3 n4 s1 s2 s3 s4".to_owned(), 0));
    assert_eq!(kept(7), ("e2 e3 n1 n2 s1 s2".to_owned(), 6));
    assert_eq!(kept(2), ("e2 n1".to_owned(), 10));
    assert_eq!(kept(0), (String::new(), 12));
}
