//! Systematic tests of the reads of the hub agent: a change that changes what a read returns also changes a value that
//! the read notes. So no plan misses a change, even if it reads nothing else.

use super::Planner;
use crate::hub::view::Key;
use crate::hub::view::reader::Reader;
use crate::hub::view::value::{Source, Value};
use crate::model::{AddressType, Kind, SliceStreamOffer};
use crate::names;
use crate::planner::Computed;
use crate::reads::Reads;
use crate::support::build::{BuildInternalExport, IntoObject, internal_export, mcs_part, named, service};
use crate::support::fleets::{Fleet, agents, competing, of_fleet, of_mcs, previewing, silent, slices};
use crate::support::requeued::{Step, paths_of_watches};
use crate::support::view::SEEN;
use fleetnet_types::{Change, ClusterId, MemberNamespace, ObjectName, Removal, Text};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Arguments of a read.
#[derive(Clone, Debug)]
struct Of {
    service: ObjectName,
    member: ClusterId,
    namespace: MemberNamespace,
    slice: Text,
    distributed: ObjectName,
    source: Source,
}

type Read = fn(Reader<'_>, &Of) -> String;

fn text(value: impl Debug) -> String {
    format!("{value:?}")
}

fn list<T: Debug>(values: impl Iterator<Item = T>) -> String {
    text(values.collect::<Vec<_>>())
}

/// Reads of a Service, of a member and of a slice.
const READS: [(&str, Read); 34] = [
    ("merged_import", |view, of| {
        let name = names::merged_import_name(&of.service);
        text(view.merged_import(&ObjectName::new(&of.namespace, name)))
    }),
    ("merge_of", |view, of| text(view.merge_of(&of.service))),
    ("exporters", |view, of| text(view.exporters(&of.service))),
    ("recorded", |view, of| text(view.recorded(&of.service).map(|it| it.importers.keys().collect::<Vec<_>>()))),
    ("is_recorded", |view, of| text(view.is_recorded(&of.service, &of.namespace))),
    ("has_distributed_slices", |view, of| text(view.has_distributed_slices(&of.slice))),
    ("may_fan_out", |view, of| text(view.may_fan_out(&of.namespace))),
    ("lists_of", |view, of| {
        let lists =
            |namespace: &Text| view.lists_of(namespace).map(|it| (&it.exporters, &it.importers, &it.source_ranges));
        text((lists(&of.service.namespace), lists(of.namespace.as_text())))
    }),
    ("internal_exports_of", |view, of| list(view.internal_exports_of(&of.service))),
    ("internal_exports_in", |view, of| list(view.internal_exports_in(&of.service, &of.namespace))),
    ("mcs_export_in", |view, of| text(view.mcs_export_in(&of.service, &of.namespace))),
    ("is_merged", |view, of| {
        let export = ObjectName::new(&of.namespace, of.slice.clone());
        let slice = view.slice_exports().get(&export);
        text((slice, slice.map(|slice| view.is_merged(slice))))
    }),
    ("imports_by_mcs_api", |view, of| text(view.imports_by_mcs_api(&of.service, &of.namespace))),
    ("mcs_importers", |view, of| list(view.mcs_importers(&of.service))),
    ("merged_imports_in", |view, of| {
        list(view.merged_imports_in(&of.service, &of.namespace).map(|name| view.merged_import(&name)))
    }),
    ("claims_of", |view, of| list(view.claims_of(&of.service))),
    ("claims_in", |view, of| list(view.claims_in(&of.service, &of.namespace))),
    ("slice_exports_of", |view, of| list(view.slice_exports_of(&of.service))),
    ("has_slice_exports_of", |view, of| text(view.has_slice_exports_of(&of.service, &of.namespace))),
    ("slice_exports_named", |view, of| list(view.slice_exports_named(&of.slice))),
    ("distributed_slices_named", |view, of| list(view.distributed_slices_named(&of.slice))),
    ("holder", |view, of| text(view.holder(&of.source))),
    ("complete", |view, _| text(view.complete(&[Kind::EndpointSliceExport, Kind::Namespace]))),
    ("watch_of", |view, _| text(view.watch_of(Kind::MergedServiceImport))),
    ("announces", |view, _| text(view.announces())),
    ("has_announcement", |view, of| text(view.has_announcement(&of.namespace))),
    ("features_of", |view, of| text(view.features_of(&of.namespace, SEEN))),
    ("endpoint_counts", |view, of| {
        let of_type = |it: &AddressType| view.endpoint_counts(&of.service, it).collect::<Vec<_>>();
        text([AddressType::IPv4, AddressType::IPv6].map(|it| of_type(&it)))
    }),
    ("silent_members", |view, _| list(view.silent_members())),
    ("silence_of", |view, of| text(view.silence_of(&of.member))),
    ("renewal_state", |view, of| {
        text((view.member_agents().get(&names::member_agent(&of.member)), view.renewal_state(&of.member)))
    }),
    ("knows_features", |view, _| text(view.knows_features())),
    ("has_stream", |view, of| text(view.has_stream(&of.namespace))),
    ("lagging", |view, of| text((view.distributed_slices().get(&of.distributed), view.lagging(&of.distributed)))),
];

/// Reads of undecodable objects of each kind.
const UNDECODABLE: [Kind; 4] =
    [Kind::InternalServiceExport, Kind::EndpointSliceExport, Kind::Namespace, Kind::MergedServiceImport];

/// Result of a read, with the values that it noted.
struct ReadResult {
    result: String,
    values: Vec<Value>,
}

fn arguments() -> Vec<Of> {
    let [one, three] = slices();
    let of = |service: &str, member: &str, slice: &crate::model::HubSlice| Of {
        service: named(service),
        member: member.into(),
        namespace: names::member_namespace(member),
        slice: slice.meta.name.name.clone(),
        distributed: ObjectName::new(names::member_namespace(member), slice.meta.name.name.clone()),
        source: Source::of(slice).expect("it has a source slice"),
    };
    vec![
        of("work/app", "member-1", &one),
        of("work/app", "member-2", &one),
        of("work/app", "member-3", &three),
        of("work/app", "member-2", &three),
        of("work/other", "member-1", &one),
        of("work/other", "member-4", &three),
    ]
}

/// Reads everything. The keys stand for plans that read nothing else.
fn read_all(planner: &Planner, arguments: &[Of]) -> BTreeMap<String, ReadResult> {
    let mut all = BTreeMap::new();
    let mut add = |name: String, read: &dyn Fn(Reader<'_>) -> String| {
        let reads = Reads::default();
        let result = read(Reader::new(&planner.view, &reads));
        all.insert(name, ReadResult { result, values: reads.into_values() });
    };
    for (number, of) in arguments.iter().enumerate() {
        for (name, read) in READS {
            add(format!("{name} {number}"), &|view| read(view, of));
        }
        for kind in UNDECODABLE {
            let at = |view: Reader<'_>| view.has_undecodable(kind, &of.namespace).to_string();
            add(format!("has_undecodable {kind:?} {number}"), &at);
            let named = |view: Reader<'_>| list(view.undecodable_named(kind, &of.slice));
            add(format!("undecodable_named {kind:?} {number}"), &named);
            let has = |view: Reader<'_>| text(view.is_undecodable(kind, &ObjectName::new("", "work")));
            add(format!("is_undecodable {kind:?} {number}"), &has);
        }
    }
    all
}

fn key(read: &str) -> Key {
    Key::Member(read.into())
}

fn record(planner: &mut Planner, found: &BTreeMap<String, ReadResult>) {
    found.iter().for_each(|(name, found)| keep(planner, name, found));
}

fn keep(planner: &mut Planner, name: &str, found: &ReadResult) {
    let reads = Reads::default();
    found.values.iter().cloned().for_each(|value| reads.note(value));
    planner.recorded.keep(&Computed::Plan(key(name)), Some(reads));
}

/// Does something to a planner, and asserts that exactly the reads are requeued whose result is another one, or that
/// noted a value which another such read noted too. If `is_exact` is false, others may be requeued too.
fn assert_noted(
    planner: &mut Planner,
    arguments: &[Of],
    before: &BTreeMap<String, ReadResult>,
    (what, is_exact): (&dyn Debug, bool),
    change: impl FnOnce(&mut Planner, &mut Vec<Key>),
) -> BTreeMap<String, ReadResult> {
    let mut requeue = Vec::new();
    change(planner, &mut requeue);
    let after = read_all(planner, arguments);
    let changed: Vec<&String> = after.keys().filter(|name| after[*name].result != before[*name].result).collect();
    for name in &changed {
        let (was, is) = (&before[*name].result, &after[*name].result);
        assert!(requeue.contains(&key(name)), "{name} was {was} and is {is}, but is not requeued by {what:#?}");
    }
    let justified: Vec<&Value> = changed.iter().flat_map(|name| &before[*name].values).collect();
    for (name, found) in before {
        let is_justified = found.values.iter().any(|value| justified.contains(&value));
        assert!(
            is_justified || !is_exact || !requeue.contains(&key(name)),
            "{name} is requeued for nothing by {what:#?}"
        );
    }
    for name in after.keys().filter(|name| requeue.contains(&key(name))) {
        keep(planner, name, &after[name]);
    }
    after
}

/// The same for all paths of a fleet. If `is_exact` is false, a change may also requeue other reads.
fn assert_all_noted(fleet: &Fleet, paths: Vec<Vec<Step>>, is_exact: bool) {
    let (mut settled, arguments) = (fleet.settled().view, arguments());
    let first = read_all(&settled, &arguments);
    settled.take_reads(); // those of the plans
    record(&mut settled, &first);
    for path in paths {
        let mut planner = settled.clone();
        let mut before = None;
        for step in &path {
            let known = before.as_ref().unwrap_or(&first);
            let after = assert_noted(&mut planner, &arguments, known, (&path, is_exact), |planner, requeue| {
                step.clone().happen(planner, SEEN, requeue);
            });
            before = Some(after);
        }
    }
}

#[test]
fn a_change_of_what_a_read_returns_changes_a_value_that_it_noted() {
    let fleet = Fleet::new(of_fleet(), Vec::new());
    assert_all_noted(&fleet, fleet.paths(), true);
}

#[test]
fn a_change_of_what_a_read_of_the_mcs_api_returns_changes_a_value_that_it_noted() {
    let fleet = Fleet { absent: Vec::new(), ..of_mcs() };
    assert_all_noted(&fleet, fleet.paths(), false);
}

#[test]
fn an_object_of_the_mcs_api_that_comes_changes_a_value_that_a_read_noted() {
    let fleet = of_mcs();
    let present = Fleet { absent: Vec::new(), ..of_mcs() }.paths().len() - paths_of_watches::<Planner>().len();
    assert_all_noted(&fleet, fleet.paths().split_off(present), false);
}

#[test]
fn a_change_of_slices_that_compete_changes_a_value_that_a_read_noted() {
    let (first, second) = (slices(), competing());
    let objects = agents().into_iter().chain(first.map(crate::model::Object::EndpointSliceExport));
    let fleet = Fleet::new(objects.collect(), second.into());
    assert_all_noted(&fleet, fleet.paths(), true);
}

#[test]
fn a_change_of_a_slice_stream_changes_a_value_that_a_read_noted() {
    type Event = fn(&mut Planner, &mut Vec<Key>);
    let events: [(&str, Event); 8] = [
        ("stream_began again", |planner, requeue| {
            planner.stream_began(&names::member_namespace("member-2"), SEEN, requeue);
        }),
        ("acknowledged", |planner, requeue| {
            planner.acknowledged(
                &ObjectName::new(names::member_namespace("member-2"), slices()[1].meta.name.name.clone()),
                3,
                SEEN,
                requeue,
            );
        }),
        ("stream_began of another", |planner, requeue| {
            planner.stream_began(&names::member_namespace("member-1"), SEEN, requeue);
        }),
        ("stream_ended of another", |planner, requeue| {
            planner.stream_ended(&names::member_namespace("member-1"), SEEN, requeue);
        }),
        ("offer", |planner, requeue| {
            planner.offer(SliceStreamOffer { address: "hub:1".into(), ca_bundle: "pem".into() }, SEEN, requeue);
        }),
        ("stream_ended", |planner, requeue| planner.stream_ended(&names::member_namespace("member-2"), SEEN, requeue)),
        ("members_lost", |planner, requeue| planner.members_lost(SEEN, requeue)),
        ("members_followed", |planner, requeue| planner.members_followed(SEEN, requeue)),
    ];
    let (mut planner, arguments) = (previewing().settled().view, arguments());
    let mut before = read_all(&planner, &arguments);
    record(&mut planner, &before);
    for (name, event) in events {
        before = assert_noted(&mut planner, &arguments, &before, (&name, true), event);
    }
}

#[test]
fn a_change_beside_a_silent_member_changes_a_value_that_a_read_noted() {
    let fleet = silent();
    assert_all_noted(&fleet, fleet.paths(), false);
}

#[test]
fn a_change_beside_a_preview_changes_a_value_that_a_read_noted() {
    let fleet = previewing();
    assert_all_noted(&fleet, fleet.paths(), false);
}

#[test]
fn nothing_is_kept_of_a_service_that_the_mcs_api_exports_no_longer() {
    let export = internal_export("member-1", &service("work/app")).mcs(mcs_part());
    let mut planner = Planner::default();
    planner.applied(export.clone().object(), SEEN, &mut Vec::new());
    assert_eq!(planner.recorded.number_of_readers(), 1, "its merged import");
    let change = Change::Removed { name: export.meta.name, uid: export.meta.uid, how: Removal::Deleted };
    planner.apply(Kind::InternalServiceExport, change, SEEN, &mut Vec::new());
    assert_eq!(planner.recorded.number_of_readers(), 0);
}
