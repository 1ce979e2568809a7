//! Tests of [`super`].

use super::*;
use fleetnet_core::model::{AddressType, EndpointSlice, Finalizers, HubSlice, Meta, Reference, SliceContent};
use parking_lot::Mutex;

#[derive(Debug, Default)]
struct Taken(Mutex<Vec<(Span, Timestamp)>>);

impl Sink for Taken {
    fn take(&self, span: Span, end: Timestamp) {
        self.0.lock().push((span, end));
    }
}

fn traces(per_million: u32) -> Traces {
    Traces::new(Some(Sampling { per_million, sink: Arc::new(Taken::default()) }))
}

fn content() -> SliceContent {
    let (endpoints, draining, ports) = (Vec::new(), Vec::new(), Vec::new());
    SliceContent { address_type: AddressType::IPv4, endpoints, draining, ports }
}

fn spec(generation: i64, exported_since: i64) -> HubSliceSpec {
    HubSliceSpec {
        reference: Reference {
            cluster: "member-1".into(),
            source: source(),
            uid: "uid-1".into(),
            resource_version: "7".into(),
            generation,
            exported_since: Some(Timestamp::from_seconds(exported_since)),
        },
        owner: ObjectName::new("work", "app"),
        content: Arc::new(content()),
    }
}

fn source() -> ObjectName {
    ObjectName::new("work", "app-1")
}

fn meta(name: &ObjectName) -> Meta {
    Meta {
        name: name.clone(),
        uid: "uid-1".into(),
        resource_version: 1,
        generation: 1,
        created: Timestamp::EPOCH,
        deleting: false,
        finalizers: Finalizers::default(),
    }
}

fn slice(traced: Traced) -> Change<Object> {
    Change::Applied(Object::EndpointSlice(EndpointSlice {
        meta: meta(&source()),
        service: Some("app".into()),
        standard: None,
        imported: false,
        relabelled: false,
        content: content(),
        further_addresses: 0,
        excess: 0,
        observed_generation: None,
        traced: traced.boxed(),
    }))
}

fn exported(name: &ObjectName, traceparent: Option<Traceparent>) -> Change<Object> {
    let traced = Traced { traceparent, triggered: None }.boxed();
    let (meta, spec) = (meta(name), spec(1, 1));
    let slice = HubSlice { meta, spec, observed_generation: None, misnamed: false, deleted: None, traced };
    Change::Applied(Object::EndpointSliceExport(slice))
}

fn parent(number: u8) -> Traceparent {
    Traceparent::read(&format!("00-{number:032x}-{number:016x}-01")).expect("its form is right")
}

fn seconds(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

#[test]
fn the_rate_of_sampled_changes_is_that_of_the_flag() {
    let sampled = |per_million| {
        let traces = traces(per_million);
        (1..=10_000).filter(|generation| traces.export(&spec(*generation, 1), seconds(2)).is_some()).count()
    };
    assert_eq!((sampled(0), sampled(SAMPLED_OF)), (0, 10_000));
    let (percent, half) = (sampled(10_000), sampled(500_000));
    assert!((70..=130).contains(&percent) && (4_800..=5_200).contains(&half), "{percent} and {half} of 10,000");
    assert_eq!(Traces::default().export(&spec(1, 1), seconds(2)), None, "the agent takes no part");
}

#[test]
fn ids_are_those_of_the_change_so_that_a_plan_stays_a_pure_function() {
    let ids = |traces: &Traces, generation| traces.export(&spec(generation, 1), seconds(9)).expect("sampled").context;
    let (one, other) = (traces(SAMPLED_OF), traces(SAMPLED_OF));
    assert_eq!(ids(&one, 1), ids(&other, 1), "also after a restart");
    assert_ne!(ids(&one, 1), ids(&one, 2));
    let cause = Cause { traceparent: parent(1), since: seconds(1) };
    let follow = |name, importer| one.follow(name, cause, importer, &spec(1, 1)).expect("the agent takes part");
    let spans = [follow("distribute", "west"), follow("distribute", "east"), follow("import", "west")];
    let ids: std::collections::HashSet<_> = spans.iter().map(|span| span.context).collect();
    assert_eq!((ids.len(), ids.contains(&parent(1))), (3, false), "each span has ids of its own: {spans:#?}");
    assert!(spans.iter().all(|span| span.link == Some(parent(1)) && span.start == seconds(1)), "{spans:#?}");
    let change =
        |span: &Span| span.attributes.iter().find(|(key, _)| *key == CHANGE).map(|(_, value)| value.to_string());
    assert!(spans.iter().all(|span| change(span) == Some(format!("{:032x}", 1))), "{spans:#?}");
}

#[test]
fn the_span_of_an_exporter_starts_with_the_trigger_of_its_change() {
    // Triggered, seen by the agent, time from which the latency is measured, expected start.
    let table = [
        (Some(10), 12, 12, 10, "the usual way"),
        (None, 12, 12, 12, "no trigger"),
        (Some(10), 12, 20, 20, "exportable only later"),
        (Some(15), 12, 12, 12, "the clock of the trigger is ahead"),
        (Some(10), 15, 12, 10, "an earlier change is not exported yet"),
        (Some(10), 2_000, 2_000, 2_000, "the trigger is of an earlier change"),
    ];
    for (triggered, at, since, start, why) in table {
        let mut traces = traces(SAMPLED_OF);
        let traced = Traced { traceparent: None, triggered: triggered.map(seconds) };
        traces.observe(Kind::EndpointSlice, &mut slice(traced), seconds(at));
        // The same trigger again is no news.
        traces.observe(Kind::EndpointSlice, &mut slice(traced), seconds(at + 1_000));
        let since = spec(1, since);
        assert_eq!(traces.start(&source(), since.reference.exported_since.expect("set")), seconds(start), "{why}");
    }
}

#[test]
fn annotations_are_taken_out_of_objects_and_forgotten_with_them() {
    let mut traces = traces(SAMPLED_OF);
    let traced = Traced { traceparent: Some(parent(1)), triggered: Some(seconds(1)) };
    let mut change = slice(traced);
    traces.observe(Kind::EndpointSlice, &mut change, seconds(3));
    assert_eq!(change, slice(Traced::default()), "the view does not get the annotations");
    let linked = traces.export(&spec(1, 2), seconds(3)).expect("sampled");
    assert_eq!(linked.link, Some(parent(1)), "the writer of the source slice has a span too");
    let name = ObjectName::new("fleet-member-member-1", "x");
    let cause = |traces: &Traces| traces.cause(Kind::EndpointSliceExport, &name);
    traces.observe(Kind::EndpointSliceExport, &mut exported(&name, Some(parent(2))), seconds(4));
    traces.observe(Kind::EndpointSliceExport, &mut exported(&name, Some(parent(2))), seconds(5));
    assert_eq!(cause(&traces), Some(Cause { traceparent: parent(2), since: seconds(4) }), "since it was seen first");
    assert_eq!(traces.cause(Kind::EndpointSliceImport, &name), None);
    traces.observe(Kind::EndpointSliceExport, &mut exported(&name, None), seconds(6));
    assert_eq!(cause(&traces), None);
    for gone in [
        Change::Removed { name: source(), uid: "uid-1".into(), how: fleetnet_types::Removal::Deleted },
        Change::Undecodable { name: source() },
    ] {
        traces.observe(Kind::EndpointSlice, &mut slice(traced), seconds(7));
        traces.observe(Kind::EndpointSlice, &mut gone.clone(), seconds(8));
        assert!(traces.causes.is_empty() && traces.triggers.is_empty(), "{gone:?}");
    }
}

#[test]
fn a_change_without_a_span_removes_the_annotation_of_an_earlier_one() {
    let name = ObjectName::new("fleet-member-member-1", "x");
    let kind = Kind::EndpointSliceExport;
    let mut off = Traces::default();
    assert_eq!(off.step(kind, &name, None, None).annotation, TraceChange::None);
    off.observe(kind, &mut exported(&name, Some(parent(1))), seconds(1));
    assert_eq!(off.step(kind, &name, None, None).annotation, TraceChange::Remove, "also while traces are off");
    let on = traces(SAMPLED_OF);
    let span = on.export(&spec(1, 1), seconds(2));
    let step = on.step(kind, &name, Some(parent(2)), span);
    assert_eq!((step.annotation, step.span.is_some()), (TraceChange::Set(parent(2)), true));
}

#[test]
fn only_a_newer_generation_or_a_new_object_is_a_change() {
    let table = [
        (2, Some(1), 0, true),
        (2, Some(2), 0, false), // a repair
        (1, Some(2), 0, false), // the source went back
        (1, None, 100, true),
        (1, None, 40, true),
        (1, None, 39, false), // for a new importer, or a repair
    ];
    for (generation, present, created, expected) in table {
        let is = is_change(generation, present, seconds(created), seconds(100));
        assert_eq!(is, expected, "{generation} after {present:?}, created at {created}");
    }
}
