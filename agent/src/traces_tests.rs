//! Tests of [`super`].

use super::*;
use fleetnet_core::model::{AddressType, Endpoint, EndpointSlice, Finalizers, HubSlice, Meta, Reference, SliceContent};
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

/// Returns a source slice with this generation and address, created at 0 s.
fn slice(generation: i64, address: &str, traced: Traced) -> Change<Object> {
    let endpoints = vec![Endpoint { addresses: vec![address.into()], ..Endpoint::default() }];
    Change::Applied(Object::EndpointSlice(EndpointSlice {
        meta: Meta { generation, ..meta(&source()) },
        service: Some("app".into()),
        mcs: None,
        imported: false,
        relabelled: false,
        content: SliceContent { endpoints, ..content() },
        further_addresses: 0,
        excess: 0,
        observed_generation: None,
        traced: traced.boxed(),
    }))
}

fn exported(name: &ObjectName, generation: i64, traceparent: Option<Traceparent>) -> Change<Object> {
    let traced = Traced { traceparent, triggered: None }.boxed();
    let (meta, spec) = (meta(name), spec(generation, 1));
    let slice = HubSlice { meta, spec, observed_generation: None, misnamed: false, deleted: None, traced };
    Change::Applied(Object::EndpointSliceExport(slice))
}

fn parent(number: u8) -> Traceparent {
    Traceparent::read(&format!("00-{number:032x}-{number:016x}-01")).expect("its form is right")
}

fn seconds(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

fn triggered(at: i64) -> Traced {
    Traced { traceparent: None, triggered: Some(seconds(at)) }
}

/// Shows a source slice to traces: its state at 1,000 s, and a change with these annotations.
fn changed(traces: &mut Traces, generation: i64, annotations: Traced, at: i64) {
    let known = content();
    let mut change = slice(generation, "10.1.0.1", annotations);
    traces.observe(Kind::EndpointSlice, &mut change, Some(&known), seconds(at));
}

#[test]
fn the_rate_of_sampled_changes_is_that_of_the_flag() {
    let sampled = |per_million| {
        let mut traces = traces(per_million);
        let mut count = 0;
        for generation in 1..=10_000 {
            changed(&mut traces, generation, Traced::default(), 1);
            count += usize::from(traces.export(&spec(generation, 1), None).is_some());
        }
        count
    };
    assert_eq!((sampled(0), sampled(SAMPLED_OF)), (0, 10_000));
    let (percent, half) = (sampled(10_000), sampled(500_000));
    assert!((70..=130).contains(&percent) && (4_800..=5_200).contains(&half), "{percent} and {half} of 10,000");
}

#[test]
fn only_a_change_of_the_content_that_this_agent_saw_has_a_span() {
    let is_traced = |traces: &Traces, generation, present| traces.export(&spec(generation, 1), present).is_some();
    let mut on = traces(SAMPLED_OF);
    let mut old = slice(7, "10.1.0.1", Traced::default());
    on.observe(Kind::EndpointSlice, &mut old, None, seconds(1_000));
    assert!(!is_traced(&on, 7, Some(5)), "the slice was there at the start of the agent");
    changed(&mut on, 8, Traced::default(), 1_001);
    assert!(is_traced(&on, 8, Some(5)) && is_traced(&on, 8, None));
    assert!(!is_traced(&on, 8, Some(8)), "a repair");
    let Change::Applied(Object::EndpointSlice(same)) = slice(9, "10.1.0.1", Traced::default()) else { unreachable!() };
    on.observe(Kind::EndpointSlice, &mut slice(9, "10.1.0.1", Traced::default()), Some(&same.content), seconds(1_002));
    assert!(!is_traced(&on, 9, Some(8)), "the generation rose without the content, and somebody edited the export");
    let mut new = traces(SAMPLED_OF);
    new.observe(Kind::EndpointSlice, &mut slice(1, "10.1.0.1", Traced::default()), None, seconds(60));
    assert!(is_traced(&new, 1, None), "a new slice");
    let mut off = Traces::default();
    changed(&mut off, 8, Traced::default(), 1);
    assert!(!is_traced(&off, 8, None) && off.changes.is_empty(), "the agent takes no part, and keeps nothing");
}

#[test]
fn ids_are_those_of_the_change_so_that_a_plan_stays_a_pure_function() {
    let ids = |generation| {
        let mut traces = traces(SAMPLED_OF);
        changed(&mut traces, generation, Traced::default(), 1);
        traces.export(&spec(generation, 1), None).expect("sampled").context
    };
    assert_eq!(ids(1), ids(1), "also after a restart");
    assert_ne!(ids(1), ids(2));
    let one = traces(SAMPLED_OF);
    let cause = Cause { traceparent: parent(1), generation: 1, since: seconds(1) };
    let follow = |name, namespace, spec: &HubSliceSpec| {
        let at = ObjectName::new(namespace, "member-1-app-1");
        one.follow(name, cause, (&at, "west"), spec).expect("the agent takes part")
    };
    let mut of_another = spec(1, 1);
    of_another.reference.cluster = "member-2".into();
    let spans = [
        follow("distribute", "a", &spec(1, 1)),
        follow("distribute", "a", &spec(2, 1)), // a member repeats the annotation
        follow("distribute", "a", &of_another), // a member copies the annotation of another one
        // A member that imports a Service by both APIs has the slice in two namespaces.
        follow("import", "fleet-system", &spec(1, 1)),
        follow("import", "work", &spec(1, 1)),
    ];
    let ids: std::collections::HashSet<_> = spans.iter().map(|span| span.context).collect();
    assert_eq!((ids.len(), ids.contains(&parent(1))), (5, false), "each span has ids of its own: {spans:#?}");
    assert!(spans.iter().all(|span| span.link == Some(parent(1)) && span.start == seconds(1)), "{spans:#?}");
    let change =
        |span: &Span| span.attributes.iter().find(|(key, _)| *key == CHANGE).map(|(_, value)| value.to_string());
    assert!(spans.iter().all(|span| change(span) == Some(format!("{:032x}", 1))), "{spans:#?}");
}

#[test]
fn the_span_of_an_exporter_starts_with_the_trigger_of_its_change() {
    // Annotations, time at which the agent saw the change, time from which the latency is measured, expected start.
    let table = [
        (triggered(10), 12, 12, 10, "the usual way"),
        (Traced::default(), 12, 12, 12, "no trigger"),
        (triggered(10), 12, 20, 20, "exportable only later"),
        (triggered(15), 12, 12, 12, "the clock of the trigger is ahead"),
        (triggered(10), 15, 12, 10, "an earlier change is not exported yet"),
        (triggered(10), 2_000, 2_000, 2_000, "the trigger is of an earlier change"),
    ];
    for (annotations, seen, since, start, why) in table {
        let mut traces = traces(SAMPLED_OF);
        changed(&mut traces, 1, annotations, seen);
        let span = traces.export(&spec(1, since), None).expect("sampled");
        assert_eq!(span.start, seconds(start), "{why}");
    }
    let mut traces = traces(SAMPLED_OF);
    changed(&mut traces, 1, Traced { traceparent: Some(parent(1)), ..triggered(1) }, 3);
    let linked = traces.export(&spec(1, 2), None).expect("sampled");
    assert_eq!(linked.link, Some(parent(1)), "the writer of the source slice has a span too");
    traces.clock_set(-2_000_000);
    assert_eq!(traces.changes[&source()].seen, seconds(1));
}

#[test]
fn annotations_are_taken_out_of_objects_and_forgotten_with_them() {
    let mut traces = traces(SAMPLED_OF);
    let annotations = Traced { traceparent: Some(parent(1)), triggered: Some(seconds(1)) };
    let mut change = slice(1, "10.1.0.1", annotations);
    traces.observe(Kind::EndpointSlice, &mut change, None, seconds(3));
    assert_eq!(change, slice(1, "10.1.0.1", Traced::default()), "the view does not get the annotations");
    let name = ObjectName::new("fleet-member-member-1", "x");
    let cause = |traces: &Traces, generation| traces.cause(Kind::EndpointSliceExport, &name, generation);
    let export = |traces: &mut Traces, generation, traceparent, at| {
        let mut change = exported(&name, generation, traceparent);
        traces.observe(Kind::EndpointSliceExport, &mut change, None, seconds(at));
        assert_eq!(change, exported(&name, generation, None));
    };
    export(&mut traces, 4, Some(parent(2)), 4);
    export(&mut traces, 4, Some(parent(2)), 5);
    let first = Cause { traceparent: parent(2), generation: 4, since: seconds(4) };
    assert_eq!(cause(&traces, 4), Some(first), "since it was seen first");
    assert_eq!(traces.cause(Kind::EndpointSliceImport, &name, 4), None);
    export(&mut traces, 5, Some(parent(2)), 6);
    assert_eq!(cause(&traces, 5), None, "the writer of generation 5 left the annotation of generation 4");
    export(&mut traces, 6, None, 7);
    assert_eq!((cause(&traces, 4), cause(&traces, 6)), (None, None));
    for gone in [
        Change::Removed { name: source(), uid: "uid-1".into(), how: fleetnet_types::Removal::Deleted },
        Change::Undecodable { name: source() },
    ] {
        traces.observe(Kind::EndpointSlice, &mut slice(1, "10.1.0.1", annotations), None, seconds(7));
        assert_eq!(traces.changes.len(), 1);
        traces.observe(Kind::EndpointSlice, &mut gone.clone(), None, seconds(8));
        assert!(traces.causes.is_empty() && traces.changes.is_empty(), "{gone:?}");
    }
}

#[test]
fn a_preview_has_a_cause_until_the_object_has_its_generation() {
    let mut traces = traces(SAMPLED_OF);
    let name = ObjectName::new("fleet-member-member-2", "x");
    let kind = Kind::EndpointSliceImport;
    traces.preview(name.clone(), Some(parent(6)), 6, seconds(1));
    traces.observe(kind, &mut exported(&name, 5, Some(parent(5))), None, seconds(2));
    let of = |traces: &Traces, generation| traces.cause(kind, &name, generation).map(|cause| cause.traceparent);
    assert_eq!((of(&traces, 5), of(&traces, 6)), (Some(parent(5)), Some(parent(6))), "an object of before");
    traces.observe(kind, &mut exported(&name, 6, Some(parent(6))), None, seconds(3));
    assert_eq!((of(&traces, 6), traces.previews.len()), (Some(parent(6)), 0));
    traces.preview(name.clone(), Some(parent(7)), 7, seconds(4));
    traces.preview(name.clone(), None, 8, seconds(5));
    assert_eq!((of(&traces, 7), of(&traces, 8)), (None, None), "the newest preview is not sampled");
    traces.preview(name.clone(), Some(parent(9)), 9, seconds(6));
    traces.drop_previews();
    assert_eq!(of(&traces, 9), None);
}

#[test]
fn a_newer_generation_without_a_span_removes_the_annotation_of_an_earlier_one() {
    let name = ObjectName::new("fleet-member-member-1", "x");
    let kind = Kind::EndpointSliceExport;
    let mut off = Traces::default();
    let change = |traces: &Traces, generation| traces.step((kind, &name, generation), None).annotation;
    assert_eq!(change(&off, 2), TraceChange::Keep);
    off.observe(kind, &mut exported(&name, 1, Some(parent(1))), None, seconds(1));
    assert_eq!(change(&off, 1), TraceChange::Keep, "a repair");
    assert_eq!(change(&off, 2), TraceChange::Remove, "also while traces are off");
    let cause = Cause { traceparent: parent(2), generation: 2, since: seconds(1) };
    let span = traces(SAMPLED_OF).follow("distribute", cause, (&name, "west"), &spec(2, 1));
    let carried = off.step((kind, &name, 2), span);
    assert_eq!(carried.annotation, TraceChange::Set(parent(2)));
}

#[test]
fn an_object_is_new_for_a_minute() {
    for (created, expected) in [(100, true), (40, true), (39, false)] {
        assert_eq!(is_new(seconds(created), seconds(100)), expected, "created at {created}");
    }
}
