//! Tests that incremental plans equal full plans.

use crate::builders::{BuildPod as _, BuildService as _, node, pod, pods, service};
use crate::histories::{Event, History, SliceChange, Truth, all_hints, hints, history};
use crate::world::{World, world};
use endpointslice::address::Family;
use endpointslice::apply::Written;
use endpointslice::hints::{ServiceHints, is_topology_aware};
use endpointslice::plan::{FamilyPlan, WriteCounts};
use endpointslice::{Incremental, NodeZones, Plan};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const CASES: u32 = 10_000;

/// Kinds of situations, each with the least number of histories of [`CASES`] that must contain it.
const CLASSES: [(&str, u32); 12] = [
    ("two slices of IPv4", 5_000),
    ("two slices of IPv6", 2_500),
    ("slices of IPv4 and IPv6", 3_000),
    ("two groups of ports in IPv4", 2_500),
    ("two groups of ports in IPv6", 1_200),
    ("a slice is used again", 1_500),
    ("a slice of an address type without use", 300),
    ("hints by Auto", 300),
    ("hints by Auto end", 20),
    ("hints for a zone", 500),
    ("hints for a Node", 150),
    ("a pod without its Node", 500),
];

/// Number of random histories that contained each kind of situation.
#[derive(Debug, Default)]
struct Coverage {
    classes: BTreeMap<&'static str, u32>,
    plans: u64,
    full_plans: u64,
}

/// Kinds of situations that one history contained.
#[derive(Debug, Default)]
struct Seen(BTreeSet<&'static str>);

impl Seen {
    fn note(&mut self, truth: &Truth, plan: &Plan) {
        let slices = |family: &str| {
            let of_family = truth.slices.values().filter(|slice| slice.address_type.as_str() == family);
            of_family.filter(|slice| !slice.endpoints.is_empty()).count()
        };
        let (v4, v6) = (slices("IPv4"), slices("IPv6"));
        self.add("two slices of IPv4", v4 > 1);
        self.add("two slices of IPv6", v6 > 1);
        self.add("slices of IPv4 and IPv6", v4 > 0 && v6 > 0);
        self.add("a slice of an address type without use", !plan.unsupported.is_empty());
        self.add("a pod without its Node", plan.errors().next().is_some());
        for family in &plan.families {
            self.add("a slice is used again", family.draft.updates.iter().any(|update| update.recycled));
            let is_v4 = family.draft.address_type.as_str() == "IPv4";
            let class = if is_v4 { "two groups of ports in IPv4" } else { "two groups of ports in IPv6" };
            self.add(class, family.stats.groups.iter().filter(|group| group.endpoints > 0).count() > 1);
        }
        self.note_hints(truth);
    }

    fn note_hints(&mut self, truth: &Truth) {
        let endpoints = truth.slices.values().flat_map(|slice| &slice.endpoints);
        let hints: Vec<_> = endpoints.filter_map(|endpoint| endpoint.hints.as_ref()).collect();
        let is_auto = is_topology_aware(&truth.service);
        let has_zones = hints.iter().any(|hints| !hints.for_zones.is_empty());
        self.add("hints by Auto end", self.0.contains("hints by Auto") && !has_zones);
        self.add("hints by Auto", is_auto && has_zones);
        self.add("hints for a zone", !is_auto && has_zones);
        self.add("hints for a Node", !is_auto && hints.iter().any(|hints| !hints.for_nodes.is_empty()));
    }

    fn add(&mut self, class: &'static str, is_seen: bool) {
        self.0.extend(is_seen.then_some(class));
    }
}

impl Coverage {
    fn add(&mut self, seen: Seen, plans: u64, full_plans: u64) {
        seen.0.into_iter().for_each(|class| *self.classes.entry(class).or_default() += 1);
        self.plans += plans;
        self.full_plans += full_plans;
    }
}

/// True if two plans are equal apart from unchanged slices, because an incremental plan does not list all of them.
fn same(one: &Plan, other: &Plan) -> bool {
    let same_family = |(one, other): (&FamilyPlan, &FamilyPlan)| {
        let updates = one.draft.updates.iter().zip(&other.draft.updates);
        one.draft.address_type == other.draft.address_type
            && one.draft.creates == other.draft.creates
            && one.draft.updates.len() == other.draft.updates.len()
            && updates.into_iter().all(|(one, other)| {
                Arc::ptr_eq(&one.before, &other.before) && one.after == other.after && one.recycled == other.recycled
            })
            && one.draft.deletes == other.draft.deletes
            && one.suppressed_creates == other.suppressed_creates
            && one.stats == other.stats
    };
    one.families.len() == other.families.len()
        && one.families.iter().zip(&other.families).all(same_family)
        && one.unsupported == other.unsupported
        && one.skipped == other.skipped
}

fn happen(truth: &mut Truth, state: &mut Incremental, event: &Event, plan: &Plan) {
    match event {
        Event::Pod(number, shape) => state.set_pod(&truth.set_pod(*number, *shape), &truth.nodes),
        Event::NoPod(number) => state.remove_pod(&truth.remove_pod(*number)),
        Event::Service(change) => {
            truth.change_service(*change);
            state.set_service(Arc::new(truth.service.clone()), truth.pods.values(), &truth.nodes);
        }
        Event::Write(count) => show(state, truth.write(plan, *count)),
        Event::Edit(at, edit) => show(state, truth.edit(*at, *edit)),
    }
}

fn show(state: &mut Incremental, changes: Vec<SliceChange>) {
    for change in changes {
        match change {
            Ok(slice) => state.set_slice(slice),
            Err(name) => state.remove_slice(&name),
        }
    }
}

fn check(history: &History, coverage: &RefCell<Coverage>) -> TestCaseResult {
    let mut truth = Truth::new(history);
    let mut state = Incremental::new(Arc::new(truth.service.clone()), Arc::new(truth.config.clone()));
    truth.pods.values().for_each(|pod| state.set_pod(pod, &truth.nodes));
    let (mut seen, mut plans) = (Seen::default(), 0);
    let (mut hints_of_full, mut hints_of_incremental) = (all_hints(), all_hints());
    let mut last = truth.plan(&mut hints_of_full.clone());
    let whole = Event::Write(usize::MAX);
    for event in [&whole].into_iter().chain(&history.events).chain([&whole, &whole]) {
        happen(&mut truth, &mut state, event, &last);
        last = truth.plan(&mut hints_of_full);
        plans += 1;
        let incremental = state.plan(None, &mut hints_of_incremental);
        proptest::prop_assert!(same(&incremental, &last), "after {event:?}: {incremental:#?}\nnot {last:#?}");
        seen.note(&truth, &last);
    }
    coverage.borrow_mut().add(seen, plans, state.full_plans());
    Ok(())
}

#[test]
fn over_random_histories_an_incremental_plan_is_the_full_plan() {
    let coverage = RefCell::new(Coverage::default());
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    if let Err(failure) = runner.run(&history(), |history| check(&history, &coverage)) {
        panic!("{failure}");
    }
    let coverage = coverage.into_inner();
    println!("{coverage:?}");
    for (class, least) in CLASSES {
        let count = coverage.classes.get(class).copied().unwrap_or_default();
        assert!(count >= least, "{class}: {count}, {coverage:?}");
    }
    assert!(coverage.full_plans * 2 <= coverage.plans, "mostly it is not the full plan that is compared: {coverage:?}");
}

/// Returns the incremental state with the Service, pods and slices of `world`.
fn state_of(world: &World) -> Incremental {
    let mut state = Incremental::new(Arc::new(world.service.clone()), Arc::new(world.config.clone()));
    let nodes: NodeZones = world.nodes.iter().collect();
    world.pods.iter().for_each(|pod| state.set_pod(pod, &nodes));
    world.memory.slices().into_iter().for_each(|slice| state.set_slice(slice));
    state
}

fn settled(world: World) -> (World, Incremental, NodeZones) {
    world.reconcile();
    let (mut state, nodes) = (state_of(&world), world.nodes.iter().collect());
    assert!(state.plan(None, &mut hints()).is_empty());
    (world, state, nodes)
}

#[test]
fn one_pod_of_many_costs_one_update_and_no_full_plan() {
    let (world, mut state, nodes) = settled(world(pods(0..250)));
    state.set_pod(&pod(120).not_ready(), &nodes);
    let plan = state.plan(None, &mut hints());
    assert_eq!(plan.counts(), WriteCounts { updates: 1, ..WriteCounts::default() });
    assert!(plan.families[0].draft.unchanged.is_empty(), "no other slice is looked at");
    let applied = world.apply(&plan);
    for written in applied.written {
        if let Written::Updated(slice) = written {
            state.set_slice(Arc::new(slice));
        }
    }
    assert!(state.plan(None, &mut hints()).is_empty());
    assert_eq!(state.full_plans(), 0);
}

#[test]
fn families_without_addresses_need_no_full_plan() {
    let dual = service("web").with_families(&[Family::V4, Family::V6]);
    let (_, mut state, nodes) = settled(world(pods(0..250)).with_service(dual));
    state.set_pod(&pod(120).not_ready(), &nodes);
    assert_eq!(state.plan(None, &mut hints()).counts().updates, 1);
    assert_eq!(state.full_plans(), 0);
}

#[test]
fn until_a_write_is_seen_the_same_plan_comes_again() {
    let (_, mut state, nodes) = settled(world(pods(0..3)));
    state.set_pod(&pod(7), &nodes);
    let first = state.plan(None, &mut hints());
    assert!(same(&first, &state.plan(None, &mut hints())) && !first.is_empty());
}

#[test]
fn a_node_that_comes_or_moves_changes_the_endpoints_on_it() {
    let (_, mut state, mut nodes) = settled(world(vec![pod(1), pod(2).on_node("node-2")]));
    assert_eq!(state.plan(None, &mut hints()).errors().count(), 1);
    assert!(nodes.insert(&node("node-2", "b")));
    state.set_pod(&pod(2).on_node("node-2"), &nodes);
    let plan = state.plan(None, &mut hints());
    assert_eq!(plan.errors().count(), 0);
    assert_eq!(plan.families[0].draft.updates[0].after.endpoints[1].zone.as_deref(), Some("b"));
    assert!(nodes.insert(&node("node-1", "a")));
    assert!(!nodes.insert(&node("node-1", "a")), "the same again changes nothing");
    state.set_pod(&pod(1), &nodes);
    let zones = state.plan(None, &mut hints()).families[0].draft.updates[0].after.endpoints.clone();
    assert_eq!(zones[0].zone.as_deref(), Some("a"));
}

#[test]
fn hints_that_depend_on_all_slices_are_planned_in_full() {
    let mut auto = service("web");
    auto.metadata.annotations.insert("service.kubernetes.io/topology-mode", "Auto");
    let mut state = state_of(&world(pods(0..3)).with_service(auto));
    let mut topology = ServiceHints::new();
    assert_eq!(state.plan(None, &mut topology).counts().creates, 1);
    assert_eq!(state.full_plans(), 1);
}
