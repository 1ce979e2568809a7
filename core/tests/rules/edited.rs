//! Tests of random histories in which another writer edits the agents' objects. Meanwhile users change their objects,
//! agents restart, and namespaces are deleted and created. At the end, the fleets are still in the state that the users
//! requested.
//!
//! The tests omit edits that agents do not repair:
//!
//! - edits of finalizers and labels of users' objects and derived Services;
//! - edits of the owner of a ServiceImport;
//! - edits of fields that the API server keeps immutable.

use crate::blocked::{Blocked, BlockingReasons, a_blocked_event};
use crate::histories::{MEMBERS, happen, prelude};
use crate::oracle::assert_settled;
use crate::support::build::{content, named, seconds};
use crate::support::property::cases;
use crate::support::world::{Who, World};
use fleetnet_core::model::{
    Claims, ConsumerType, HubSliceSpec, ImportStatus, ImportType, Kind, Object, PortSetStamp, Reference,
};
use fleetnet_types::{ObjectName, Timestamp};
use proptest::prelude::{Strategy, any, prop, prop_oneof};
use proptest::test_runner::TestRunner;
use std::cell::RefCell;
use std::collections::BTreeMap;

const DAY_MICROS: i64 = 86_400_000_000;

/// Edit of an object: the name of the edit, the kind of the object, and the change.
type Edit = (&'static str, Kind, fn(&mut Object));

fn of_slice(object: &mut Object, change: impl FnOnce(&mut HubSliceSpec)) {
    if let Object::EndpointSliceExport(slice) | Object::EndpointSliceImport(slice) = object {
        change(&mut slice.spec);
    }
}

fn of_reference(object: &mut Object, change: impl FnOnce(&mut Reference)) {
    match object {
        Object::InternalServiceExport(export) => change(&mut export.reference),
        Object::InternalServiceImport(claim) => change(&mut claim.reference),
        Object::EndpointSliceExport(slice) | Object::EndpointSliceImport(slice) => change(&mut slice.spec.reference),
        _ => {}
    }
}

/// Returns edits of the references with which objects in the hub name their source objects in members.
fn edits_of_references() -> impl Iterator<Item = Edit> {
    let of = |kind: Kind| -> [Edit; 6] {
        [
            ("the source's name", kind, |object| of_reference(object, |it| it.source = named("work/other"))),
            ("the source's namespace", kind, |object| of_reference(object, |it| it.source.namespace = "other".into())),
            ("no source", kind, |object| of_reference(object, |it| it.source = ObjectName::new("", ""))),
            ("the UID", kind, |object| of_reference(object, |it| it.uid = "other".into())),
            ("no UID", kind, |object| of_reference(object, |it| it.uid = "".into())),
            ("the cluster", kind, |object| of_reference(object, |it| it.cluster = "other".into())),
        ]
    };
    const KINDS: [Kind; 4] = [
        Kind::InternalServiceExport,
        Kind::InternalServiceImport,
        Kind::EndpointSliceExport,
        Kind::EndpointSliceImport,
    ];
    KINDS.into_iter().flat_map(of)
}

fn edits_of_slices() -> impl Iterator<Item = Edit> {
    let of = |kind: Kind| -> [Edit; 5] {
        [
            ("a namespacedName", kind, |object| {
                let (Object::EndpointSliceExport(slice) | Object::EndpointSliceImport(slice)) = object else { return };
                slice.misnamed = true;
            }),
            ("the generation", kind, |object| of_slice(object, |it| it.reference.generation = 77)),
            ("the owner's name", kind, |object| of_slice(object, |it| it.owner = named("work/other"))),
            ("the owner's namespace", kind, |object| of_slice(object, |it| it.owner.namespace = "other".into())),
            ("the endpoints", kind, |object| of_slice(object, |it| it.content = content(&[]).into())),
        ]
    };
    let stamp: Edit = ("the stamp", Kind::EndpointSliceImport, |object| {
        of_slice(object, |it| it.reference.exported_since = Some(Timestamp(1_100_000)));
    });
    [Kind::EndpointSliceExport, Kind::EndpointSliceImport].into_iter().flat_map(of).chain([stamp])
}

fn edits_in_the_hub() -> [Edit; 8] {
    [
        ("the stamp", Kind::InternalServiceExport, |object| {
            let Object::InternalServiceExport(export) = object else { return };
            export.stamp = Some(PortSetStamp { since: seconds(3), ports: "other".into() });
        }),
        ("no stamp", Kind::InternalServiceExport, |object| {
            let Object::InternalServiceExport(export) = object else { return };
            export.stamp = None;
        }),
        ("headless", Kind::InternalServiceExport, |object| {
            let Object::InternalServiceExport(export) = object else { return };
            export.headless = true;
        }),
        ("the type", Kind::InternalServiceImport, |object| {
            let Object::InternalServiceImport(claim) = object else { return };
            claim.consumer_type = ConsumerType::ClusterIp;
        }),
        ("no answer", Kind::InternalServiceImport, |object| {
            let Object::InternalServiceImport(claim) = object else { return };
            claim.status = ImportStatus::default();
        }),
        ("no claims", Kind::ServiceImport, |object| {
            let Object::ServiceImport(import) = object else { return };
            import.claims = Claims::default();
        }),
        ("no exporters", Kind::ServiceImport, |object| {
            let Object::ServiceImport(import) = object else { return };
            import.status = ImportStatus::default();
        }),
        ("headless", Kind::ServiceImport, |object| {
            let Object::ServiceImport(import) = object else { return };
            import.status.import_type = Some(ImportType::Headless);
        }),
    ]
}

fn edits_in_members() -> [Edit; 8] {
    [
        ("the label of the import", Kind::MultiClusterService, |object| {
            let Object::MultiClusterService(request) = object else { return };
            request.import_label = None;
        }),
        ("the label of the Service", Kind::MultiClusterService, |object| {
            let Object::MultiClusterService(request) = object else { return };
            request.derived_label = None;
        }),
        ("no conditions", Kind::MultiClusterService, |object| {
            let Object::MultiClusterService(request) = object else { return };
            request.conditions.clear();
        }),
        ("no conditions", Kind::ServiceExport, |object| {
            let Object::ServiceExport(export) = object else { return };
            export.conditions.clear();
        }),
        ("hints and a node", Kind::EndpointSlice, |object| {
            let Object::EndpointSlice(slice) = object else { return };
            slice.excess = 77;
        }),
        ("the endpoints of a slice", Kind::EndpointSlice, |object| {
            let Object::EndpointSlice(slice) = object else { return };
            slice.content.endpoints.clear();
        }),
        ("the Service of a slice", Kind::EndpointSlice, |object| {
            let Object::EndpointSlice(slice) = object else { return };
            slice.service = None;
        }),
        ("the ports", Kind::Service, |object| {
            let Object::Service(service) = object else { return };
            service.ports.clear();
        }),
    ]
}

/// Returns edits that remove our finalizer from an object.
fn edits_of_marks() -> impl Iterator<Item = Edit> {
    const MARKED: [Kind; 5] = [
        Kind::EndpointSliceExport,
        Kind::EndpointSliceImport,
        Kind::InternalServiceExport,
        Kind::InternalServiceImport,
        Kind::ServiceImport,
    ];
    MARKED.into_iter().map(|kind| -> Edit { ("no mark", kind, |object| object.meta_mut().finalizers.ours = false) })
}

fn edits() -> Vec<Edit> {
    let beside = edits_in_the_hub().into_iter().chain(edits_in_members());
    edits_of_references().chain(edits_of_slices()).chain(beside).chain(edits_of_marks()).collect()
}

#[derive(Clone, Debug)]
enum Event {
    Usual(Blocked),
    /// Another writer edits an object. The fields are the index of the edit and the index of the edited object.
    Edited(usize, usize),
}

fn an_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        1 => a_blocked_event().prop_map(Event::Usual),
        1 => (any::<u16>(), any::<u16>()).prop_map(|(edit, which)| Event::Edited(edit.into(), which.into())),
    ]
}

/// Applies the edit with the index `index` to the object with the index `which`, among all objects of the agents.
/// Returns the name of the edit and the kind of the object; `None` if no object changed.
fn edit(world: &mut World, index: usize, which: usize) -> Option<(&'static str, Kind)> {
    let edits = edits();
    let (what, kind, change) = edits[index % edits.len()];
    let is_ours = |object: &&Object| match object {
        Object::Service(service) => service.derived_from.is_some(),
        Object::EndpointSlice(slice) => slice.imported,
        _ => true,
    };
    let of =
        |who: Who| world.cluster(who).list(kind).filter(is_ours).map(move |object| (who, object.meta().name.clone()));
    let all: Vec<(Who, ObjectName)> = world.everyone().into_iter().flat_map(of).collect();
    let (who, name) = all.get(which % all.len().max(1))?;
    world.edit(*who, kind, name, change).then_some((what, kind))
}

const CASES: u32 = 320;

/// Also rules A6, P11.
#[test]
fn a_fleet_settles_whatever_of_ours_somebody_edits_in_any_history() {
    let done: RefCell<BTreeMap<(&str, Kind), usize>> = RefCell::default();
    let events = prop::collection::vec(an_event(), 1..30);
    let outcome = TestRunner::new(cases(CASES)).run(&(events, any::<u64>()), |(events, seed)| {
        let mut world = World::new(MEMBERS).in_any_order(seed);
        let mut blocking_reasons = BlockingReasons::default();
        prelude(seed).iter().for_each(|event| happen(&mut world, event));
        for event in &events {
            match event {
                Event::Usual(event) => blocking_reasons.happen(&mut world, event),
                Event::Edited(index, which) => {
                    if let Some(what) = edit(&mut world, *index, *which) {
                        *done.borrow_mut().entry(what).or_default() += 1;
                    }
                }
            }
        }
        blocking_reasons.end(&mut world);
        world.run_for(DAY_MICROS);
        assert_settled(&world);

        let mark = world.ledger.len();
        world.restart_all();
        world.run_for(DAY_MICROS);
        assert_eq!(world.lines_since(mark), Vec::<String>::new());
        Ok(())
    });
    assert!(outcome.is_ok(), "{}", outcome.err().map(|error| error.to_string()).unwrap_or_default());
    let done = done.into_inner();
    let seldom =
        edits().into_iter().map(|(what, kind, _)| (what, kind)).filter(|it| done.get(it).is_none_or(|it| *it < 5));
    assert_eq!(seldom.collect::<Vec<_>>(), [], "every edit is made, and not by chance");
}

/// Tests of this file that run random histories. `proved.rs` also runs these tests with broken agents, and asserts that
/// each test then fails.
pub(crate) const HISTORIES: &[(&str, fn())] = &[(
    "a_fleet_settles_whatever_of_ours_somebody_edits_in_any_history",
    a_fleet_settles_whatever_of_ours_somebody_edits_in_any_history,
)];
