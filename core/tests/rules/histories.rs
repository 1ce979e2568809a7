//! Tests of random histories of users, agents and clusters. In any order of events the agents come to rest, the
//! imported endpoints equal the exported endpoints, and no unneeded object is left.

use crate::oracle::{CLASSES, assert_empty, assert_grace_is_over, assert_settled, classes, state};
use crate::support::property::for_any;
use crate::support::users::act;
use crate::support::world::{Step, Who, World};
use fastrand::Rng;
use fleetnet_core::model::{Kind, Object};
use fleetnet_types::ObjectName;
use histories::users::{self, Action};
use proptest::prelude::{Strategy, any, prop, prop_oneof};
use std::collections::BTreeMap;

pub(crate) use histories::users::MEMBERS;
/// One day in microseconds, after which all grace periods have ended.
const LONG_MICROS: i64 = 86_400_000_000;

/// Event of a history.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    User(Action),
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
    match event {
        Event::User(action) => act(world, action),
        Event::Crash { who } => {
            let who = world.everyone()[*who];
            world.restart(who);
        }
        Event::Relist { who, kind } => {
            let who = world.everyone()[*who];
            world.relist(who, KINDS[*kind]);
        }
        Event::Run { steps } => {
            for _ in 0..*steps {
                world.step();
            }
        }
        Event::Pass { seconds } => {
            world.run_for(seconds * 1_000_000);
        }
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
    prop_oneof![
        users::WEIGHT => users::an_action().prop_map(Event::User),
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
    for actions in users::prelude(&mut random) {
        events.extend(actions.into_iter().map(Event::User));
        events.push(Event::Run { steps: random.usize(..100) });
    }
    events
}

/// Rule A1: Users change objects, agents crash, watches relist and other writers edit objects, in any order
/// Then: After the last change, the agents reach a state in which imported slices equal exported slices, and no other
/// object is left. If the agents then restart, the agents make no write
#[test]
fn any_history_settles_with_imported_equal_to_exported_and_nothing_left_over() {
    for_any(150, &(prop::collection::vec(an_event(), 1..40), any::<u64>()), (CLASSES, 15), |(events, seed)| {
        let mut world = World::new(MEMBERS).in_any_order(seed);
        for event in prelude(seed).iter().chain(&events) {
            happen(&mut world, event);
        }
        world.run_for(LONG_MICROS);
        assert_settled(&world);
        assert_grace_is_over(&world);
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

/// Returns a history with every kind of change: exports, imports of both types, changes, a conflict, and the removal of
/// all objects.
fn a_whole_life() -> Vec<Action> {
    vec![
        Action::MakeService { member: 0, app: 0, ports: 0 },
        Action::SetSlice { member: 0, app: 0, slice: 0, endpoints: vec![1, 2] },
        Action::Export { member: 0, app: 0 },
        Action::CreateRequest { member: 1, name: 0, app: 0, consumer: 0 },
        Action::Address { member: 1, name: 0 },
        Action::CreateRequest { member: 2, name: 0, app: 0, consumer: 1 },
        Action::SetSlice { member: 0, app: 0, slice: 0, endpoints: vec![3] },
        Action::RecycleSlice { member: 0, app: 0, slice: 0, endpoints: vec![] },
        Action::RecycleSlice { member: 0, app: 0, slice: 0, endpoints: vec![4] },
        Action::MakeService { member: 1, app: 0, ports: 2 },
        Action::SetSlice { member: 1, app: 0, slice: 0, endpoints: vec![1] },
        Action::Export { member: 1, app: 0 },
        Action::ChangePorts { member: 1, app: 0, ports: 0 },
        Action::Weigh { member: 0, app: 0, weight: Some("0") },
        Action::Weigh { member: 0, app: 0, weight: None },
        Action::DeleteService { member: 0, app: 0 },
        Action::MakeService { member: 0, app: 0, ports: 0 },
        Action::SetSlice { member: 0, app: 0, slice: 1, endpoints: vec![7] },
        Action::ChangeConsumer { member: 1, name: 0, consumer: 1 },
        Action::DeleteRequest { member: 2, name: 0 },
        Action::Retarget { member: 1, name: 0, app: 1 },
        Action::Retarget { member: 1, name: 0, app: 0 },
        Action::Unexport { member: 1, app: 0 },
        Action::Unexport { member: 0, app: 0 },
        Action::Export { member: 0, app: 0 },
    ]
}

/// Runs the fleet until no step is possible, also after one more day. Returns all objects.
fn state_at_rest(mut world: World) -> BTreeMap<String, Object> {
    world.run_for(LONG_MICROS);
    state(&world)
}

/// Rule A2: An agent crashes between any two writes
/// Then: After a restart, the result is the same as without the crash
#[test]
fn a_crash_between_any_two_writes_ends_in_the_same_state() {
    let mut world = World::new(MEMBERS);
    let mut victims: Vec<Vec<Who>> = world.everyone().into_iter().map(|who| vec![who]).collect();
    victims.push(world.everyone());
    for action in a_whole_life() {
        act(&mut world, &action);
        let expected = state_at_rest(world.clone());
        while world.step() {
            if !matches!(world.last, Some(Step::CarryOut(..))) {
                continue;
            }
            for victims in &victims {
                let mut crashed = world.clone();
                victims.iter().for_each(|victim| crashed.restart(*victim)); // the agent does not see the answer to its write
                let last = world.lines_since(world.ledger.len() - 1);
                assert_eq!(state_at_rest(crashed), expected, "{victims:?} crashed after {last:?} after {action:?}");
            }
        }
        world.run_for(LONG_MICROS);
        assert_eq!(state(&world), expected);
        assert_settled(&world);
    }
    let writes = world.ledger.len();
    assert!(writes > 150, "a whole life is more than {writes} writes");
}

/// Tests of this file that run random histories. `proved.rs` also runs these tests with broken agents, and asserts that
/// each test then fails.
pub(crate) const HISTORIES: &[(&str, fn())] = &[
    (
        "any_history_settles_with_imported_equal_to_exported_and_nothing_left_over",
        any_history_settles_with_imported_equal_to_exported_and_nothing_left_over,
    ),
    ("a_crash_between_any_two_writes_ends_in_the_same_state", a_crash_between_any_two_writes_ends_in_the_same_state),
];
