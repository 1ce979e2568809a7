//! Tests of random histories with obstacles to deletions: finalizers of other controllers keep the deleted objects, and
//! namespaces are deleted and created again. When the obstacles end, each fleet reaches the same state as in a history
//! without them.

use crate::fleet::{export, hold, reappear, vanish};
use crate::histories::{Event, MEMBERS, an_event, happen, prelude};
use crate::oracle::{CLASSES, assert_settled, classes};
use crate::support::build::{IntoObject, named, request, service_export};
use crate::support::property::for_any;
use crate::support::world::{Who, World};
use fastrand::Rng;
use fleetnet_core::model::{Kind, Object};
use fleetnet_types::{ObjectName, Text};
use proptest::prelude::{Strategy, any, prop, prop_oneof};
use std::collections::BTreeSet;

const DAY_MICROS: i64 = 86_400_000_000;

/// Event of a history: a normal event, or an event that starts or ends an obstacle to deletions.
#[derive(Clone, Debug)]
pub(crate) enum Blocked {
    Usual(Event),
    /// Adds a finalizer of another controller to an object of this cluster.
    Hold {
        who: usize,
        which: usize,
    },
    /// Removes all finalizers of other controllers.
    LetGo,
    /// Deletes the namespace `work` if the cluster is the hub, or the namespace `fleet-system` if it is a member.
    Vanish {
        who: usize,
    },
    Reappear {
        who: usize,
    },
}

pub(crate) fn a_blocked_event() -> impl Strategy<Value = Blocked> {
    prop_oneof![
        12 => an_event().prop_map(Blocked::Usual),
        4 => (0..=MEMBERS, 0..40usize).prop_map(|(who, which)| Blocked::Hold { who, which }),
        2 => (0..1usize).prop_map(|_| Blocked::LetGo),
        1 => (0..=MEMBERS).prop_map(|who| Blocked::Vanish { who }),
        2 => (0..=MEMBERS).prop_map(|who| Blocked::Reappear { who }),
    ]
}

/// Obstacles at present: objects with a finalizer of another controller, and missing namespaces.
#[derive(Default)]
pub(crate) struct BlockingReasons {
    blocked: BTreeSet<(Who, Kind, ObjectName)>,
    missing: BTreeSet<Who>,
}

fn namespace_of(who: Who) -> &'static str {
    if who == Who::Hub { "work" } else { "fleet-system" }
}

impl BlockingReasons {
    pub(crate) fn happen(&mut self, world: &mut World, event: &Blocked) {
        match event {
            Blocked::Usual(event) => happen(world, event),
            Blocked::Hold { who, which } => {
                let who = world.everyone()[*who];
                let all: Vec<(Kind, ObjectName)> =
                    world.cluster(who).all().map(|object| (object.kind(), object.meta().name.clone())).collect();
                if let Some((kind, name)) = all.get(which % all.len().max(1))
                    && self.blocked.insert((who, *kind, name.clone()))
                {
                    hold(world, who, *kind, name, true);
                }
            }
            Blocked::LetGo => self.remove_finalizer(world),
            Blocked::Vanish { who } => {
                let who = world.everyone()[*who];
                if self.missing.insert(who) {
                    vanish(world, who, namespace_of(who));
                }
            }
            Blocked::Reappear { who } => self.reappear(world, world.everyone()[*who]),
        }
    }

    /// Runs the fleet until no step is possible. Then removes the finalizers of other controllers, and creates the
    /// missing namespaces again.
    pub(crate) fn end(&mut self, world: &mut World) {
        world.run();
        self.remove_finalizer(world);
        for who in world.everyone() {
            self.reappear(world, who);
        }
    }

    fn remove_finalizer(&mut self, world: &mut World) {
        for (who, kind, name) in std::mem::take(&mut self.blocked) {
            world.edit(who, kind, &name, |object| object.meta_mut().finalizers.others.clear());
        }
    }

    fn reappear(&mut self, world: &mut World, who: Who) {
        if self.missing.remove(&who) {
            reappear(world, who, namespace_of(who));
        }
    }
}

/// Rule A10: Finalizers of other writers delay the deletion of objects, and namespaces disappear and return, in any
/// order
/// Then: When the finalizers of other writers are removed and all namespaces exist, imported slices equal exported
/// slices, as in rule A1
#[test]
fn a_fleet_settles_once_no_finalizer_blocks_it_and_all_namespaces_exist() {
    for_any(120, &(prop::collection::vec(a_blocked_event(), 1..40), any::<u64>()), (CLASSES, 12), |(events, seed)| {
        let mut world = World::new(MEMBERS).in_any_order(seed);
        let mut blocking_reasons = BlockingReasons::default();
        for event in prelude(seed) {
            happen(&mut world, &event);
        }
        for event in &events {
            blocking_reasons.happen(&mut world, event);
        }
        blocking_reasons.end(&mut world);
        world.run_for(DAY_MICROS);
        assert_settled(&world);
        world.restart_all();
        let writes = world.run_for(DAY_MICROS);
        assert_eq!(writes, 0, "{:#?}", world.lines_since(world.ledger.len() - writes));
        classes(&world)
    });
}

/// Two Services whose names collide: namespace and name joined by a hyphen give the same text, `a-b-c`.
const ALIKE: [&str; 2] = ["a-b/c", "a/b-c"];

const ALIKE_CLASSES: &[&str] =
    &["both exported at once", "both imported at once", "an export made again while it goes", "a restart"];

/// True if the hub has any object that belongs to the export of this Service.
fn is_in_hub(world: &World, service: &ObjectName) -> bool {
    world.hub.all().any(|object| match object {
        Object::InternalServiceExport(export) => export.reference.source == *service,
        Object::EndpointSliceExport(slice) => slice.spec.owner == *service,
        _ => false,
    })
}

/// Returns the names of the derived Services in member-2 to which imported slices belong.
fn imported(world: &World) -> BTreeSet<Text> {
    let slices = world.cluster(Who::Member(1)).all().filter_map(|object| match object {
        Object::EndpointSlice(slice) if slice.imported => slice.service.clone(),
        _ => None,
    });
    slices.collect()
}

/// Also rule N1.
#[test]
fn names_that_join_alike_are_never_fought_for_whatever_comes_and_goes() {
    for_any(150, &any::<u64>(), (ALIKE_CLASSES, 15), |seed| {
        let mut random = Rng::with_seed(seed);
        let mut world = World::new(2).in_any_order(seed);
        let mut seen = Vec::new();
        for path in ALIKE {
            export(&mut world, 0, path, 80, &["10.0.0.1"]);
            world.create(Who::Member(1), request(path).object());
        }
        if random.usize(..2) == 0 {
            world.run();
        }
        for _ in 0..12 {
            let path = ALIKE[random.usize(..2)];
            match random.usize(..7) {
                0 => world.delete(Who::Member(0), Kind::ServiceExport, &named(path)),
                again @ (1 | 5) => {
                    if again == 5 {
                        world.delete(Who::Member(0), Kind::ServiceExport, &named(path));
                        for _ in 0..random.usize(..20) {
                            world.step();
                        }
                    }
                    if world.create(Who::Member(0), service_export(path).object()) && is_in_hub(&world, &named(path)) {
                        seen.push("an export made again while it goes");
                    }
                }
                2 => world.delete(Who::Member(1), Kind::MultiClusterService, &named(path)),
                3 => drop(world.create(Who::Member(1), request(path).object())),
                4 => {
                    let who = world.everyone()[random.usize(..3)];
                    world.restart(who);
                    seen.push("a restart");
                }
                _ => {}
            }
            for _ in 0..random.usize(..40) {
                world.step();
            }
            if ALIKE.iter().all(|path| is_in_hub(&world, &named(path))) {
                seen.push("both exported at once");
            }
            if imported(&world).len() == ALIKE.len() {
                seen.push("both imported at once");
            }
        }
        world.run_for(DAY_MICROS);
        assert_settled(&world);
        seen
    });
}

/// Tests of this file that run random histories. `proved.rs` also runs these tests with broken agents, and asserts that
/// each test then fails.
pub(crate) const HISTORIES: &[(&str, fn())] = &[
    (
        "a_fleet_settles_once_no_finalizer_blocks_it_and_all_namespaces_exist",
        a_fleet_settles_once_no_finalizer_blocks_it_and_all_namespaces_exist,
    ),
    (
        "names_that_join_alike_are_never_fought_for_whatever_comes_and_goes",
        names_that_join_alike_are_never_fought_for_whatever_comes_and_goes,
    ),
];
