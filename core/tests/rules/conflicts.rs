//! Tests that conflict resolution depends on the objects alone. The same exports with the same annotations
//! `ports-offered-since` have the same winner, order of exporters, outcomes and ServiceImport. The order of watch
//! events, duplicate events and restarts of the hub agent do not matter.
//!
//! Each test case is random. It has the objects in the hub at the start of the hub agent: several exports of one
//! Service and a ServiceImport, as our hub agent, a Go hub agent or a crash leaves them. It also has up to three later
//! events. The test counts the situations that its cases cover ([`classes`]), and fails if one of them is rare.

use crate::conflict_cases::{
    CLUSTERS, Case, InitialExport, Later, NOW, PortSet, Stamp, a_case, happen, hub_of, name_of, ports, set_of,
};
use crate::support::agent::WatchEvent;
use crate::support::build::{
    Build, BuildImport, BuildInternalExport, BuildService, IntoObject, internal_export, named, no_conflict, resolved,
    seconds, service, service_import,
};
use crate::support::cluster::Answer;
use crate::support::property::cases;
use crate::support::view::{hub_view, writes};
use crate::support::world::{Step, Who, World};
use fastrand::Rng;
use fleetnet_core::hub;
use fleetnet_core::model::{InternalServiceExport, Kind, Object, ServiceImport, ServicePort};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Patch};
use fleetnet_types::{ClusterId, ObjectName, Timestamp, WatchState};
use proptest::prelude::any;
use proptest::test_runner::TestRunner;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Restarts the hub agent. Its watches deliver all objects in random order, and some objects twice.
fn start(world: &mut World, random: &mut Rng) {
    world.restart(Who::Hub);
    for queue in world.hub_agent.inbox.values_mut() {
        let reported: Vec<WatchEvent> =
            queue.drain(..).filter(|event| matches!(event, WatchEvent::Changed(_))).collect();
        for event in reported {
            for _ in 0..1 + random.usize(..2) {
                queue.insert(random.usize(..queue.len() + 1), event.clone());
            }
        }
        queue.push_back(WatchEvent::Listed);
    }
}

fn exports(objects: &[Object]) -> impl Iterator<Item = &InternalServiceExport> {
    objects.iter().filter_map(|object| match object {
        Object::InternalServiceExport(export) => Some(export),
        _ => None,
    })
}

/// Returns for each cluster the export that takes part in conflict resolution: the first by name that is not being
/// deleted.
fn counting(objects: &[Object]) -> BTreeMap<ClusterId, &InternalServiceExport> {
    let mut first: BTreeMap<ClusterId, &InternalServiceExport> = BTreeMap::new();
    for export in exports(objects).filter(|export| !export.meta.deleting) {
        let cluster = names::cluster_of(&export.meta.name.namespace).expect("a member's namespace");
        let kept = first.entry(cluster).or_insert(export);
        if export.meta.name < kept.meta.name {
            *kept = export;
        }
    }
    first
}

/// Returns clusters with their ports, in the order of the start times of the port sets, oldest first. This function
/// does not use the code under test.
fn ranked<'a>(
    stamps: impl Iterator<Item = (Timestamp, &'a ClusterId, &'a [ServicePort])>,
) -> Vec<(ClusterId, Vec<ServicePort>)> {
    let mut ranked: Vec<_> = stamps.collect();
    ranked.sort_by_key(|(since, cluster, _)| (*since, (*cluster).clone()));
    ranked.into_iter().map(|(_, cluster, ports)| (cluster.clone(), ports.to_vec())).collect()
}

/// Returns the accepted clusters and their ports. `ranked` is ordered by the start time of the port set, oldest first.
fn accepted(ranked: &[(ClusterId, Vec<ServicePort>)]) -> (Vec<ClusterId>, Vec<ServicePort>) {
    let Some((_, ports)) = ranked.first() else { return Default::default() };
    let alike = ranked.iter().filter(|(_, other)| set_of(other) == set_of(ports));
    (alike.map(|(cluster, _)| cluster.clone()).collect(), ports.clone())
}

/// Returns the expected exporters and ports of the ServiceImport, from the exports at the end and the expected start
/// times of their ports.
fn expected(case: &Case, end: &[Object]) -> (Vec<ClusterId>, Vec<ServicePort>) {
    let stamp = |export: &InternalServiceExport| {
        let of_this = |initial: &&InitialExport| name_of(initial.cluster, initial.second) == export.meta.name;
        let Some(initial) = case.exports.iter().find(of_this) else { return NOW };
        let turned = set_of(&export.ports) != set_of(&ports(initial.ports));
        let shown = case.import.as_ref().filter(|(clusters, _)| clusters.contains(&initial.cluster));
        let by_go = shown.is_some_and(|(_, shown)| set_of(&ports(*shown)) == set_of(&ports(initial.ports)));
        match initial.stamp {
            Stamp::Since(since) if !turned => seconds(since).max(export.meta.created),
            Stamp::None if !turned && by_go => seconds(initial.created),
            // The annotation has the start time of earlier ports. The ports changed while a Go hub agent ran, and this
            // agent accepted the new ports. So the start time in the annotation still counts.
            Stamp::Stale(since) if !turned && by_go && initial.conflict_before == Some(false) => {
                seconds(since).max(export.meta.created)
            }
            _ => NOW,
        }
    };
    let counting = counting(end);
    accepted(&ranked(counting.iter().map(|(cluster, export)| (stamp(export), cluster, export.ports.as_slice()))))
}

/// Asserts that the writes which the hub agent has just planned have the right outcomes of conflict resolution, judged
/// by the objects in its view.
fn assert_new_outcomes_are_true(world: &World) {
    let view = &world.hub_agent.view;
    let stored: Vec<Object> = view.internal_exports.iter().cloned().map(IntoObject::object).collect();
    let counting = counting(&stored);
    let import = view.hub_imports.get(&named("work/app")).map(|import| &import.status);
    let shown = |cluster: &ClusterId, export: &InternalServiceExport| {
        import.is_some_and(|it| it.clusters.contains(cluster) && set_of(&it.ports) == set_of(&export.ports))
    };
    let is_accepted = |export: &InternalServiceExport| conflict_status(export) == Some("False");
    let since = |cluster: &ClusterId, export: &InternalServiceExport| match &export.stamp {
        // If the start time in the annotation is before the creation of the export, the creation time counts instead.
        Some(stamp)
            if stamp.ports == names::ports_fingerprint(&export.ports)
                || is_accepted(export) && shown(cluster, export) =>
        {
            Some(stamp.since.max(export.meta.created))
        }
        Some(_) => None,
        None => shown(cluster, export).then_some(export.meta.created),
    };
    let marked = counting.iter().filter(|(_, export)| export.meta.finalizers.ours);
    let stamps =
        marked.filter_map(|(cluster, export)| Some((since(cluster, export)?, cluster, export.ports.as_slice())));
    let (accepted, winner) = accepted(&ranked(stamps));
    for (write, _) in &world.hub_agent.in_flight {
        let Action::Patch { resource_version, patch: Patch::InternalServiceExportConditions(list) } = &write.action
        else {
            continue;
        };
        let is_fresh =
            exports(&stored).any(|it| it.meta.name == write.at && it.meta.resource_version == *resource_version);
        if !is_fresh {
            continue; // the server will reject this write, because its resourceVersion is old
        }
        assert_eq!(view.watches.state(Kind::InternalServiceExport), WatchState::Complete, "of a half-told view");
        let export = exports(&stored).find(|export| export.meta.name == write.at).expect("it is held");
        let in_conflict = set_of(&export.ports) != set_of(&winner);
        assert_eq!(list[0].status.as_str() == "True", in_conflict, "{} beside {accepted:?}", write.at);
    }
}

/// Runs a case until no step is possible. The seed decides the order of steps, duplicate watch events and restarts of
/// the hub agent.
fn play(case: &Case, seed: u64) -> World {
    let mut random = Rng::with_seed(seed);
    let mut world = hub_of(case).in_any_order(seed);
    start(&mut world, &mut random);
    let mut later: Vec<(usize, Later)> = case.later.iter().map(|(cluster, later)| (*cluster, *later)).collect();
    let mut restarts = random.usize(..4);
    loop {
        let stepped = world.step();
        let carried_out = matches!(world.last, Some(Step::CarryOut(..)));
        if matches!(world.last, Some(Step::Plan(..))) {
            assert_new_outcomes_are_true(&world);
        }
        if !later.is_empty() && (!stepped || random.usize(..4) == 0) {
            let (cluster, event) = later.swap_remove(random.usize(..later.len()));
            happen(&mut world, cluster, event);
        } else if restarts > 0 && (!stepped || random.usize(..if carried_out { 2 } else { 8 }) == 0) {
            restarts -= 1;
            start(&mut world, &mut random);
        } else if !stepped {
            return world;
        }
    }
}

/// Returns a text for each object, without UIDs, versions and transition times. These texts must not depend on the
/// order of events.
fn outcome(world: &World) -> Vec<String> {
    let line = |object: &Object| match object {
        Object::InternalServiceExport(export) => {
            let outcome = export
                .conditions
                .iter()
                .map(|condition| (condition.status, &condition.message, condition.observed_generation));
            let (meta, outcome) = (&export.meta, outcome.collect::<Vec<_>>());
            format!("{} {:?} {:?} {outcome:?}", meta.name, meta.finalizers, export.stamp)
        }
        Object::ServiceImport(import) => {
            format!("{} {:?} {:?}", import.meta.name, import.meta.finalizers, import.status)
        }
        other => panic!("nobody makes a {:?}", other.kind()),
    };
    world.hub.all().map(line).collect()
}

fn import_of(world: &World) -> Option<&ServiceImport> {
    match world.hub.get(Kind::ServiceImport, &named("work/app")) {
        Some(Object::ServiceImport(import)) => Some(import),
        _ => None,
    }
}

fn conflict_status(export: &InternalServiceExport) -> Option<&str> {
    let conflict = export.conditions.iter().find(|condition| &*condition.condition_type == "Conflict")?;
    (conflict.observed_generation >= export.meta.generation).then_some(conflict.status.as_str())
}

/// Asserts that after the last step the ServiceImport in the hub is as expected. The status of every export must have
/// the expected outcome of conflict resolution.
fn assert_ends_right(case: &Case, world: &World) {
    let end: Vec<Object> = world.hub.all().cloned().collect();
    let (clusters, ports) = expected(case, &end);
    let shown = import_of(world).map(|import| (import.status.clusters.clone(), import.status.ports.clone()));
    assert_eq!(shown, (!clusters.is_empty()).then_some((clusters.clone(), ports.clone())));
    for export in exports(&end) {
        let outcome = if set_of(&export.ports) == set_of(&ports) { "False" } else { "True" };
        assert_eq!(conflict_status(export), Some(outcome), "{} beside {clusters:?}", export.meta.name);
    }
    assert!(exports(&end).all(|export| !export.meta.deleting), "who left is let go");
    assert_eq!(world.hub_agent.again.len(), 0, "nothing is left to the passing of time");
    let one_set =
        case.exports.iter().map(|initial| initial.ports).chain(case.later.values().filter_map(|later| match later {
            Later::Joins { ports } | Later::Turns { ports } => Some(*ports),
            Later::Leaves => None,
        }));
    if one_set.map(|which| set_of(&self::ports(which))).collect::<BTreeSet<_>>().len() == 1 {
        let reported = world.ledger.iter().any(|entry| match &entry.write.action {
            Action::Patch { patch: Patch::InternalServiceExportConditions(list), .. } => {
                list[0].status.as_str() == "True"
            }
            _ => false,
        });
        assert!(!reported, "all offered one set of ports at all times");
    }
}

/// Returns the names of the situations that a case covers.
fn classes(case: &Case, end: &World) -> BTreeSet<&'static str> {
    let any = |test: &dyn Fn(&InitialExport) -> bool| case.exports.iter().any(test);
    let later = |test: &dyn Fn(&Later) -> bool| case.later.values().any(test);
    let outcomes: Vec<Object> = end.hub.all().cloned().collect();
    let losers = exports(&outcomes).filter(|export| conflict_status(export) == Some("True")).count();
    let stamps: Vec<i64> = case
        .exports
        .iter()
        .filter_map(|initial| match initial.stamp {
            Stamp::Since(since) => Some(since),
            _ => None,
        })
        .collect();
    let distinct = stamps.iter().collect::<BTreeSet<_>>().len();
    let named_by_go = |initial: &InitialExport| {
        case.import.as_ref().is_some_and(|(clusters, _)| clusters.contains(&initial.cluster))
            && initial.stamp == Stamp::None
    };
    let is_older = |other: &InitialExport, one: &InitialExport| {
        matches!(other.stamp, Stamp::Since(since) if since < one.created) && other.cluster != one.cluster
    };
    let all = [
        ("no conflict in the end", losers == 0),
        ("one in conflict", losers == 1),
        ("several in conflict", losers > 1),
        ("one set in several orders", any(&|initial| initial.ports == 2) && any(&|initial| initial.ports == 3)),
        ("one set with other targets", any(&|initial| initial.ports == 0) && any(&|initial| initial.ports == 1)),
        ("another appProtocol", any(&|initial| initial.ports == 4)),
        ("another protocol", any(&|initial| initial.ports == 5)),
        ("equal stamps", distinct < stamps.len()),
        ("different stamps", distinct > 1),
        ("no stamp", any(&|initial| initial.stamp == Stamp::None)),
        ("a stale stamp", any(&|initial| matches!(initial.stamp, Stamp::Stale(_)))),
        ("accepted by a Go hub", any(&named_by_go)),
        ("beside one of ours", any(&named_by_go) && !stamps.is_empty()),
        ("beside an older one of ours", any(&|one| named_by_go(one) && any(&|other| is_older(other, one)))),
        ("not marked", any(&|initial| !initial.marked)),
        ("dying", any(&|initial| initial.dying)),
        ("two of one cluster", any(&|one| one.second && any(&|other| !other.second && other.cluster == one.cluster))),
        ("told what does not hold", any(&|initial| initial.conflict_before == Some(true)) && losers == 0),
        ("joins", later(&|later| matches!(later, Later::Joins { .. }))),
        ("leaves", later(&|later| matches!(later, Later::Leaves))),
        ("turns", later(&|later| matches!(later, Later::Turns { .. }))),
        ("a write that came too late", end.ledger.iter().any(|entry| entry.answer == Answer::Conflict)),
        ("nobody is left", import_of(end).is_none()),
    ];
    all.into_iter().filter_map(|(class, seen)| seen.then_some(class)).collect()
}

const CASES: u32 = 200;
const ORDERS: u64 = 6;
const CLASSES: usize = 23;

/// Rule H9: Exports are created, changed and deleted in any order. Some watch events are repeated, and the hub agent
/// restarts in between
/// Then: In any order of events, the results are the same: the objects, the start times of port sets, the outcomes, and
/// the ServiceImport with its exporting members. No outcome is wrong at any moment
#[test]
fn exports_observed_in_any_order_end_with_the_same_outcome_and_no_outcome_is_ever_false() {
    let seen: RefCell<BTreeMap<&str, usize>> = RefCell::default();
    let outcome = TestRunner::new(cases(CASES)).run(&(a_case(), any::<u64>()), |(case, seed)| {
        let mut first = None;
        for order in 0..ORDERS {
            let world = play(&case, seed.wrapping_add(order));
            assert_ends_right(&case, &world);
            let end = outcome(&world);
            assert_eq!(&end, first.get_or_insert(end.clone()), "order {order}");
            for class in classes(&case, &world) {
                *seen.borrow_mut().entry(class).or_default() += 1;
            }
        }
        Ok(())
    });
    assert!(outcome.is_ok(), "{}", outcome.err().map(|error| error.to_string()).unwrap_or_default());
    let seen = seen.into_inner();
    assert_eq!(seen.len(), CLASSES, "every class is seen: {seen:#?}");
    assert!(seen.values().all(|count| *count >= 20), "and not by chance: {seen:#?}");
}

/// Rule H10: The cause of a conflict ends: the losing export changes its ports back, or the winning export is deleted
/// or changes its ports
/// Then: The hub agent ends the conflict as soon as its watch delivers the change that removes the cause. The hub agent
/// waits for no other event
#[test]
fn a_conflict_clears_on_the_event_that_ends_its_cause_without_any_other() {
    let cleared: RefCell<BTreeMap<&str, usize>> = RefCell::default();
    let outcome = TestRunner::new(cases(CASES)).run(&(a_case(), any::<u64>()), |(case, seed)| {
        let world = play(&case, seed);
        let end: Vec<Object> = world.hub.all().cloned().collect();
        let Some(import) = import_of(&world) else {
            assert!(counting(&end).is_empty(), "exports without a ServiceImport");
            return Ok(());
        };
        let winners: Vec<ObjectName> = counting(&end)
            .iter()
            .filter(|(cluster, _)| import.status.clusters.contains(cluster))
            .map(|(_, export)| export.meta.name.clone())
            .collect();
        let losers = counting(&end).into_values().filter(|export| conflict_status(export) == Some("True")).cloned();
        for loser in losers.collect::<Vec<_>>() {
            type Way<'a> = (&'static str, &'a dyn Fn(&mut World));
            let ways: [Way<'_>; 3] = [
                ("the loser turns back", &|world| set_ports(world, &loser.meta.name, &import.status.ports)),
                ("the winners leave", &|world| {
                    winners.iter().for_each(|winner| world.delete(Who::Hub, Kind::InternalServiceExport, winner));
                }),
                ("the winners turn", &|world| winners.iter().for_each(|winner| set_ports(world, winner, &loser.ports))),
            ];
            for (way, end_cause) in ways {
                let mut after = world.clone();
                end_cause(&mut after);
                let left: Vec<Object> = after.hub.all().cloned().collect();
                let sets: BTreeSet<PortSet> = counting(&left).values().map(|export| set_of(&export.ports)).collect();
                after.run(); // no time passes, and nothing else happens
                let Some(Object::InternalServiceExport(reported)) =
                    after.hub.get(Kind::InternalServiceExport, &loser.meta.name)
                else {
                    panic!("it stays");
                };
                let import = import_of(&after).expect("somebody exports");
                let accepted = set_of(&reported.ports) == set_of(&import.status.ports);
                let another = way != "the loser turns back" && sets.len() > 1;
                assert!(accepted || another, "{way}: nobody but another loser may win now");
                assert_eq!(conflict_status(reported), Some(if accepted { "False" } else { "True" }), "{way}");
                if accepted {
                    *cleared.borrow_mut().entry(way).or_default() += 1;
                }
            }
        }
        Ok(())
    });
    assert!(outcome.is_ok(), "{}", outcome.err().map(|error| error.to_string()).unwrap_or_default());
    let cleared = cleared.into_inner();
    assert!(cleared.len() == 3 && cleared.values().all(|count| *count >= 20), "{cleared:#?}");
}

fn set_ports(world: &mut World, name: &ObjectName, ports: &[ServicePort]) {
    world.edit(Who::Hub, Kind::InternalServiceExport, name, |object| {
        let Object::InternalServiceExport(export) = object else { return };
        export.ports = ports.to_vec();
    });
}

fn permutations(length: usize) -> Vec<Vec<usize>> {
    if length == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(length - 1);
    let with = |at: usize, order: &Vec<usize>| {
        let mut order = order.clone();
        order.insert(at, length - 1);
        order
    };
    (0..length).flat_map(|at| shorter.iter().map(move |order| with(at, order))).collect()
}

/// Also rule H9.
#[test]
fn four_exports_end_alike_in_each_of_the_orders_in_which_they_can_arrive() {
    // For each export: the index of its cluster, the index of its list of ports, and the start time of its port set in
    // seconds. The clock starts at second 1000, so each start time is later than the creation of its export. An earlier
    // start time would not count.
    let exports = [(0, 0, 2_003), (1, 2, 2_001), (2, 3, 2_002), (3, 6, 2_001)];
    let expected: [ClusterId; 2] = ["member-2".into(), "member-3".into()];
    let orders = permutations(exports.len());
    assert_eq!(orders.len(), 24);
    for order in orders {
        for at_rest_between in [false, true] {
            let mut world = World::new(0);
            world.run();
            for index in &order {
                let (cluster, which, since) = exports[*index];
                let mut export = internal_export(CLUSTERS[cluster], &service("work/app").ports(&ports(which)));
                export = export.port_set_since(seconds(since));
                world.create(Who::Hub, export.object());
                if at_rest_between {
                    world.run();
                }
            }
            world.run();
            let import = import_of(&world).expect("it is exported");
            assert_eq!(import.status.clusters, expected, "{order:?}");
            assert_eq!(import.status.ports, ports(2), "{order:?}");
            let outcomes = world.hub.list(Kind::InternalServiceExport).filter_map(|object| match object {
                Object::InternalServiceExport(export) => conflict_status(export),
                _ => None,
            });
            assert_eq!(outcomes.collect::<Vec<_>>(), ["True", "False", "False", "True"], "{order:?}");
        }
    }
}

/// Also rule H7.
#[test]
fn what_a_go_hub_accepted_is_stamped_before_the_import_changes() {
    let key = hub::Key::Service(named("work/app"));
    let by_go = internal_export("member-1", &service("work/app")).created(seconds(3)).marked();
    let about = |other: InternalServiceExport, clusters: &[&str]| -> Vec<ObjectName> {
        let import = service_import("work/app").showing(resolved(clusters));
        let view = hub_view([by_go.clone().object(), other.object(), import.object()]);
        writes(&view, &key).into_iter().map(|write| write.at).collect()
    };
    let same = internal_export("member-2", &service("work/app")).port_set_since(seconds(5));
    let same = same.judged(no_conflict("work/app"));
    let stamp = [by_go.meta.name.clone()];
    assert_eq!(about(same, &["member-1", "member-2"]), stamp, "it counts from its creation on already");
    let joins = internal_export("member-2", &service("work/app")).port_set_since(seconds(5));
    let both = [by_go.meta.name.clone(), named("work/app")];
    assert_eq!(about(joins, &["member-1"]), both, "and who joins it does not wait for its stamp");
    let older = internal_export("member-2", &service("work/app").ports(&ports(6))).port_set_since(seconds(1));
    assert_eq!(about(older, &["member-1"]), stamp, "its place is not lost to a crash between two writes");
}

/// Tests of this file that run random histories. `proved.rs` also runs these tests with broken agents, and asserts that
/// each test then fails.
pub(crate) const HISTORIES: &[(&str, fn())] = &[
    (
        "exports_observed_in_any_order_end_with_the_same_outcome_and_no_outcome_is_ever_false",
        exports_observed_in_any_order_end_with_the_same_outcome_and_no_outcome_is_ever_false,
    ),
    (
        "a_conflict_clears_on_the_event_that_ends_its_cause_without_any_other",
        a_conflict_clears_on_the_event_that_ends_its_cause_without_any_other,
    ),
];
