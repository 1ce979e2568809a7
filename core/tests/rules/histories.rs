//! Tests of random histories of users, agents and clusters. In any order of events the agents come to rest, the imported
//! endpoints equal the exported endpoints, and no unneeded object is left.

use crate::support::build::{
    BuildMcs, BuildSlice, IntoObject, address, content, mcs, named, port, service, service_export, slice,
};
use crate::support::oracle::{CLASSES, assert_empty, assert_settled, classes, state};
use crate::support::property::for_any;
use crate::support::world::{Step, Who, World};
use fastrand::Rng;
use fleetnet_core::model::{ConsumerType, EndpointSlice, Kind, Object, ServicePort, ServiceType};
use fleetnet_types::ObjectName;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};
use std::collections::BTreeMap;

pub(crate) const MEMBERS: usize = 3;
/// One day in microseconds, after which all grace periods have ended.
const LONG_MICROS: i64 = 86_400_000_000;

/// Event of a history.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    MakeService {
        member: usize,
        app: usize,
        ports: usize,
    },
    DeleteService {
        member: usize,
        app: usize,
    },
    ChangePorts {
        member: usize,
        app: usize,
        ports: usize,
    },
    ChangeServiceType {
        member: usize,
        app: usize,
        external: bool,
    },
    Export {
        member: usize,
        app: usize,
    },
    Unexport {
        member: usize,
        app: usize,
    },
    Weigh {
        member: usize,
        app: usize,
        weight: Option<&'static str>,
    },
    SetSlice {
        member: usize,
        app: usize,
        slice: usize,
        endpoints: Vec<u8>,
    },
    /// A user scales a Deployment to zero and back. kube-controller-manager removes all endpoints of a slice and later adds new
    /// ones; name and UID of the slice stay the same.
    RecycleSlice {
        member: usize,
        app: usize,
        slice: usize,
        endpoints: Vec<u8>,
    },
    /// A slice changes in a way that importers cannot see: a pod that is not ready is added or removed.
    TouchSlice {
        member: usize,
        app: usize,
        slice: usize,
    },
    DeleteSlice {
        member: usize,
        app: usize,
        slice: usize,
    },
    CreateMcs {
        member: usize,
        name: usize,
        app: usize,
        consumer: usize,
    },
    Retarget {
        member: usize,
        name: usize,
        app: usize,
    },
    ChangeConsumer {
        member: usize,
        name: usize,
        consumer: usize,
    },
    DeleteMcs {
        member: usize,
        name: usize,
    },
    /// The cloud assigns an address to a load balancer.
    Address {
        member: usize,
        name: usize,
    },
    /// Somebody deletes an object that an agent created.
    Meddle {
        hub: bool,
        member: usize,
        which: usize,
    },
    Crash {
        who: usize,
    },
    Relist {
        who: usize,
        kind: usize,
    },
    /// Agents make this many steps before the next event.
    Run {
        steps: usize,
    },
    Pass {
        seconds: i64,
    },
}

const APPS: [&str; 2] = ["work/app", "work/web"];
const MCS_NAMES: [&str; 2] = ["work/app", "work/other"];

fn ports(variant: usize) -> Vec<ServicePort> {
    match variant {
        0 => vec![port("http", 80)],
        1 => vec![port("http", 80), port("admin", 81)],
        _ => vec![port("admin", 81), port("http", 80)], // the same ports in another order
    }
}

fn consumer(which: usize) -> ConsumerType {
    [ConsumerType::LoadBalancer, ConsumerType::ClusterIp][which]
}

fn slice_of(app: usize, index: usize) -> EndpointSlice {
    slice(&format!("{}-{index}", APPS[app]))
}

fn addresses(member: usize, endpoints: &[u8]) -> Vec<String> {
    endpoints.iter().map(|last| format!("10.{member}.0.{last}")).collect()
}

/// Kinds that an event of a history makes the agents list again.
const KINDS: [Kind; 9] = [
    Kind::Service,
    Kind::EndpointSlice,
    Kind::ServiceExport,
    Kind::ServiceImport,
    Kind::MultiClusterService,
    Kind::InternalServiceExport,
    Kind::InternalServiceImport,
    Kind::EndpointSliceExport,
    Kind::EndpointSliceImport,
];

/// Applies an event to a fleet.
pub(crate) fn happen(world: &mut World, event: &Event) {
    match event.clone() {
        Event::MakeService { member, app, ports: variant } => {
            let mut made = service(APPS[app]);
            made.ports = ports(variant);
            world.create(Who::Member(member), made.object());
        }
        Event::DeleteService { member, app } => {
            world.delete(Who::Member(member), Kind::Service, &named(APPS[app]));
            for index in 0..2 {
                let name = slice_of(app, index).meta.name;
                world.delete(Who::Member(member), Kind::EndpointSlice, &name);
            }
        }
        Event::ChangePorts { member, app, ports: variant } => {
            edit_service(world, member, app, |service| service.ports = ports(variant));
        }
        Event::ChangeServiceType { member, app, external } => edit_service(world, member, app, |service| {
            service.service_type = if external { ServiceType::ExternalName } else { ServiceType::ClusterIp };
        }),
        Event::Export { member, app } => {
            world.create(Who::Member(member), service_export(APPS[app]).object());
        }
        Event::Unexport { member, app } => {
            world.delete(Who::Member(member), Kind::ServiceExport, &named(APPS[app]));
        }
        Event::Weigh { member, app, weight } => {
            world.edit(Who::Member(member), Kind::ServiceExport, &named(APPS[app]), |object| {
                let Object::ServiceExport(export) = object else { return };
                export.weight = weight.map(Into::into);
            });
        }
        Event::SetSlice { member, app, slice, endpoints } | Event::RecycleSlice { member, app, slice, endpoints } => {
            set_slice(world, member, slice_of(app, slice), &addresses(member, &endpoints));
        }
        Event::TouchSlice { member, app, slice } => {
            let name = slice_of(app, slice).meta.name;
            world.edit(Who::Member(member), Kind::EndpointSlice, &name, |object| object.meta_mut().generation += 1);
        }
        Event::DeleteSlice { member, app, slice } => {
            world.delete(Who::Member(member), Kind::EndpointSlice, &slice_of(app, slice).meta.name);
        }
        Event::CreateMcs { .. }
        | Event::Retarget { .. }
        | Event::ChangeConsumer { .. }
        | Event::DeleteMcs { .. }
        | Event::Address { .. } => happen_to_mcs(world, event),
        Event::Meddle { hub, member, which } => meddle(world, hub, member, which),
        Event::Crash { who } => {
            let who = world.everyone()[who];
            world.restart(who);
        }
        Event::Relist { who, kind } => {
            let who = world.everyone()[who];
            world.relist(who, KINDS[kind]);
        }
        Event::Run { steps } => {
            for _ in 0..steps {
                world.step();
            }
        }
        Event::Pass { seconds } => {
            world.run_for(seconds * 1_000_000);
        }
    }
}

fn happen_to_mcs(world: &mut World, event: &Event) {
    match *event {
        Event::CreateMcs { member, name, app, consumer: which } => {
            let target = named(APPS[app]).name;
            let made = mcs(MCS_NAMES[name]).importing(&target).consumed_as(consumer(which));
            world.create(Who::Member(member), made.object());
        }
        Event::Retarget { member, name, app } => {
            world.edit(Who::Member(member), Kind::MultiClusterService, &named(MCS_NAMES[name]), |object| {
                let Object::MultiClusterService(mcs) = object else { return };
                mcs.import_name = named(APPS[app]).name;
            });
        }
        Event::ChangeConsumer { member, name, consumer: which } => {
            world.edit(Who::Member(member), Kind::MultiClusterService, &named(MCS_NAMES[name]), |object| {
                let Object::MultiClusterService(mcs) = object else { return };
                mcs.consumer_type = consumer(which);
            });
        }
        Event::DeleteMcs { member, name } => {
            world.delete(Who::Member(member), Kind::MultiClusterService, &named(MCS_NAMES[name]));
        }
        Event::Address { member, name } => {
            let derived = ObjectName::new("fleet-system", MCS_NAMES[name].replace('/', "-"));
            world.edit(Who::Member(member), Kind::Service, &derived, |object| {
                let Object::Service(service) = object else { return };
                if service.service_type == ServiceType::LoadBalancer {
                    service.load_balancer = address("192.0.2.1");
                }
            });
        }
        _ => {}
    }
}

fn edit_service(world: &mut World, member: usize, app: usize, change: impl FnOnce(&mut fleetnet_core::model::Service)) {
    world.edit(Who::Member(member), Kind::Service, &named(APPS[app]), |object| {
        if let Object::Service(service) = object {
            change(service);
        }
    });
}

/// Creates a slice in a member, or replaces the endpoints of an existing slice.
pub(crate) fn set_slice(world: &mut World, member: usize, slice: EndpointSlice, endpoints: &[String]) {
    let endpoints: Vec<&str> = endpoints.iter().map(String::as_str).collect();
    let name = slice.meta.name.clone();
    if !world.create(Who::Member(member), slice.endpoints(&endpoints).object()) {
        world.edit(Who::Member(member), Kind::EndpointSlice, &name, |object| {
            let Object::EndpointSlice(slice) = object else { return };
            slice.content = content(&endpoints);
        });
    }
}

/// Deletes one of the objects that agents created.
fn meddle(world: &mut World, hub: bool, member: usize, which: usize) {
    let who = if hub { Who::Hub } else { Who::Member(member) };
    let ours = |object: &Object| match object {
        Object::Service(service) => service.derived_from.is_some(),
        Object::EndpointSlice(slice) => slice.imported,
        Object::ServiceExport(_) | Object::MultiClusterService(_) => false,
        _ => true,
    };
    let all: Vec<(Kind, ObjectName)> = world
        .cluster(who)
        .all()
        .filter(|object| ours(object))
        .map(|object| (object.kind(), object.meta().name.clone()))
        .collect();
    if let Some((kind, name)) = all.get(which % all.len().max(1)) {
        world.delete(who, *kind, name);
    }
}

/// Deletes all objects of users. After that, the agents must delete all their objects.
fn delete_everything(world: &mut World) {
    for who in world.everyone() {
        let users: Vec<(Kind, ObjectName)> = world
            .cluster(who)
            .all()
            .filter(|object| match object {
                Object::Service(service) => service.derived_from.is_none(),
                Object::EndpointSlice(slice) => !slice.imported,
                Object::ServiceExport(_) | Object::MultiClusterService(_) => true,
                _ => false,
            })
            .map(|object| (object.kind(), object.meta().name.clone()))
            .collect();
        for (kind, name) in users {
            world.delete(who, kind, &name);
        }
    }
}

pub(crate) fn an_event() -> impl Strategy<Value = Event> {
    let member = 0..MEMBERS;
    let app = prop_oneof![4 => 0..1usize, 1 => 1..2usize];
    let mcs = prop_oneof![4 => 0..1usize, 1 => 1..2usize];
    let endpoints = || prop::collection::vec(1..5u8, 0..3);
    let weights = prop_oneof![Just(None), Just(Some("0")), Just(Some("7")), Just(Some("many"))];
    let (m, a, w) = (member, app, mcs);
    prop_oneof![
        6 => (m.clone(), a.clone(), 0..3usize).prop_map(|(member, app, ports)| Event::MakeService { member, app, ports }),
        2 => (m.clone(), a.clone()).prop_map(|(member, app)| Event::DeleteService { member, app }),
        3 => (m.clone(), a.clone(), 0..3usize).prop_map(|(member, app, ports)| Event::ChangePorts { member, app, ports }),
        1 => (m.clone(), a.clone(), any::<bool>())
            .prop_map(|(member, app, external)| Event::ChangeServiceType { member, app, external }),
        7 => (m.clone(), a.clone()).prop_map(|(member, app)| Event::Export { member, app }),
        3 => (m.clone(), a.clone()).prop_map(|(member, app)| Event::Unexport { member, app }),
        2 => (m.clone(), a.clone(), weights).prop_map(|(member, app, weight)| Event::Weigh { member, app, weight }),
        8 => (m.clone(), a.clone(), 0..2usize, endpoints())
            .prop_map(|(member, app, slice, endpoints)| Event::SetSlice { member, app, slice, endpoints }),
        2 => (m.clone(), a.clone(), 0..2usize, endpoints())
            .prop_map(|(member, app, slice, endpoints)| Event::RecycleSlice { member, app, slice, endpoints }),
        2 => (m.clone(), a.clone(), 0..2usize).prop_map(|(member, app, slice)| Event::TouchSlice { member, app, slice }),
        2 => (m.clone(), a.clone(), 0..2usize).prop_map(|(member, app, slice)| Event::DeleteSlice { member, app, slice }),
        7 => (m.clone(), w.clone(), a.clone(), 0..2usize)
            .prop_map(|(member, name, app, consumer)| Event::CreateMcs { member, name, app, consumer }),
        2 => (m.clone(), w.clone(), a).prop_map(|(member, name, app)| Event::Retarget { member, name, app }),
        2 => (m.clone(), w.clone(), 0..2usize)
            .prop_map(|(member, name, consumer)| Event::ChangeConsumer { member, name, consumer }),
        3 => (m.clone(), w.clone()).prop_map(|(member, name)| Event::DeleteMcs { member, name }),
        2 => (m.clone(), w).prop_map(|(member, name)| Event::Address { member, name }),
        2 => (any::<bool>(), m, 0..20usize).prop_map(|(hub, member, which)| Event::Meddle { hub, member, which }),
        2 => (0..=MEMBERS).prop_map(|who| Event::Crash { who }),
        2 => (0..=MEMBERS, 0..KINDS.len()).prop_map(|(who, kind)| Event::Relist { who, kind }),
        9 => (1..60usize).prop_map(|steps| Event::Run { steps }),
        1 => (1..90i64).prop_map(|seconds| Event::Pass { seconds }),
    ]
}

/// Returns the first events of a history: at least one member exports and one imports, and usually more members do.
pub(crate) fn prelude(seed: u64) -> Vec<Event> {
    let mut random = Rng::with_seed(seed);
    let mut events = Vec::new();
    for (member, exports, imports) in
        [(0, true, random.usize(..4) == 0), (1, random.usize(..2) == 0, true), (2, true, true)]
    {
        if exports {
            let ports = [0, 0, 0, 1, 2][random.usize(..5)];
            events.push(Event::MakeService { member, app: 0, ports });
            events.push(Event::SetSlice { member, app: 0, slice: 0, endpoints: vec![1, 2] });
            events.push(Event::Export { member, app: 0 });
        }
        if imports {
            events.push(Event::CreateMcs { member, name: 0, app: 0, consumer: random.usize(..2) });
        }
        events.push(Event::Run { steps: random.usize(..100) });
    }
    events
}

#[test]
fn any_history_settles_with_imported_equal_to_exported_and_nothing_left_over() {
    for_any(150, &(prop::collection::vec(an_event(), 1..40), any::<u64>()), (CLASSES, 15), |(events, seed)| {
        let mut world = World::new(MEMBERS).in_any_order(seed);
        for event in prelude(seed).iter().chain(&events) {
            happen(&mut world, event);
        }
        world.run_for(LONG_MICROS);
        assert_settled(&world);
        let shown = classes(&world);

        world.restart_all();
        let writes = world.run_for(LONG_MICROS);
        assert_eq!(
            writes,
            0,
            "a settled fleet costs no writes after a restart: {:#?}",
            world.lines_since(world.ledger.len() - writes)
        );

        delete_everything(&mut world);
        world.run_for(LONG_MICROS);
        assert_empty(&world);
        let bound = 200 + 40 * events.len();
        assert!(world.ledger.len() <= bound, "{} writes for {} events", world.ledger.len(), events.len());
        shown
    });
}

/// Returns a history with every kind of change: exports, imports of both types, changes, a conflict, and the removal of all
/// objects.
fn a_whole_life() -> Vec<Event> {
    vec![
        Event::MakeService { member: 0, app: 0, ports: 0 },
        Event::SetSlice { member: 0, app: 0, slice: 0, endpoints: vec![1, 2] },
        Event::Export { member: 0, app: 0 },
        Event::CreateMcs { member: 1, name: 0, app: 0, consumer: 0 },
        Event::Address { member: 1, name: 0 },
        Event::CreateMcs { member: 2, name: 0, app: 0, consumer: 1 },
        Event::SetSlice { member: 0, app: 0, slice: 0, endpoints: vec![3] },
        Event::RecycleSlice { member: 0, app: 0, slice: 0, endpoints: vec![] },
        Event::RecycleSlice { member: 0, app: 0, slice: 0, endpoints: vec![4] },
        Event::MakeService { member: 1, app: 0, ports: 2 },
        Event::SetSlice { member: 1, app: 0, slice: 0, endpoints: vec![1] },
        Event::Export { member: 1, app: 0 },
        Event::ChangePorts { member: 1, app: 0, ports: 0 },
        Event::Weigh { member: 0, app: 0, weight: Some("0") },
        Event::Weigh { member: 0, app: 0, weight: None },
        Event::DeleteService { member: 0, app: 0 },
        Event::MakeService { member: 0, app: 0, ports: 0 },
        Event::SetSlice { member: 0, app: 0, slice: 1, endpoints: vec![7] },
        Event::ChangeConsumer { member: 1, name: 0, consumer: 1 },
        Event::DeleteMcs { member: 2, name: 0 },
        Event::Retarget { member: 1, name: 0, app: 1 },
        Event::Retarget { member: 1, name: 0, app: 0 },
        Event::Unexport { member: 1, app: 0 },
        Event::Unexport { member: 0, app: 0 },
        Event::Export { member: 0, app: 0 },
    ]
}

/// Runs the fleet until no step is possible, also after one more day. Returns all objects.
fn state_at_rest(mut world: World) -> BTreeMap<String, Object> {
    world.run_for(LONG_MICROS);
    state(&world)
}

#[test]
fn a_crash_between_any_two_writes_ends_in_the_same_state() {
    let mut world = World::new(MEMBERS);
    let mut victims: Vec<Vec<Who>> = world.everyone().into_iter().map(|who| vec![who]).collect();
    victims.push(world.everyone());
    for event in a_whole_life() {
        happen(&mut world, &event);
        let expected = state_at_rest(world.clone());
        while world.step() {
            if !matches!(world.last, Some(Step::CarryOut(..))) {
                continue;
            }
            for victims in &victims {
                let mut crashed = world.clone();
                victims.iter().for_each(|victim| crashed.restart(*victim)); // the agent does not see the answer to its write
                let last = world.lines_since(world.ledger.len() - 1);
                assert_eq!(state_at_rest(crashed), expected, "{victims:?} crashed after {last:?} after {event:?}");
            }
        }
        world.run_for(LONG_MICROS);
        assert_eq!(state(&world), expected);
        assert_settled(&world);
    }
    let writes = world.ledger.len();
    assert!(writes > 150, "a whole life is more than {writes} writes");
}

/// Tests of this file that run random histories. `proved.rs` also runs these tests with broken agents, and asserts that each test
/// then fails.
pub(crate) const HISTORIES: &[(&str, fn())] = &[
    (
        "any_history_settles_with_imported_equal_to_exported_and_nothing_left_over",
        any_history_settles_with_imported_equal_to_exported_and_nothing_left_over,
    ),
    ("a_crash_between_any_two_writes_ends_in_the_same_state", a_crash_between_any_two_writes_ends_in_the_same_state),
];
