//! Tests of the agents' views. A view depends only on the objects that it received, not on their order. While a view is
//! incomplete, agents do not conclude from it that an object does not exist.

use crate::histories::{Event, MEMBERS, an_event, happen, prelude};
use crate::oracle::{CLASSES, classes};
use crate::support::agent::{Agent, KindChange, View, applied, removed, undecodable_change};
use crate::support::build::{
    Build as _, BuildImport as _, IntoObject as _, accepted_export, distributed_slice, mcs_export, named, resolved,
    service, service_import, slice, slice_export,
};
use crate::support::mcs;
use crate::support::property::for_any;
use crate::support::requeued::{Settled, Step};
use crate::support::view::{NOW, SEEN, hub_view, observe_change, observe_removal};
use crate::support::world::{Who, World};
use fastrand::Rng;
use fleetnet_core::member::SliceStreamUse;
use fleetnet_core::model::{EndpointSlice, HubSliceSpec, Kind, McsLabels, Object};
use fleetnet_core::plan::{Action, Patch, Plan, Write};
use fleetnet_core::{hub, member};
use fleetnet_types::{Timestamp, Uid, WatchState};
use proptest::prelude::{any, prop};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const DAY_MICROS: i64 = 86_400_000_000;

/// Returns a new view that receives the objects of `view` in random order, all at the time `now`.
fn rebuilt<V: View>(view: &V, now: Timestamp, random: &mut Rng) -> V {
    let mut replay = view.forgetful();
    let mut changes: Vec<Step> = view.objects().into_iter().map(|object| Step::Changed(applied(object))).collect();
    let states = V::KINDS.iter().map(|kind| (*kind, view.watches().state(*kind)));
    let known = states.filter(|(_, state)| *state != WatchState::Incomplete);
    changes.extend(known.map(|(kind, state)| Step::State(kind, state)));
    for index in (1..changes.len()).rev() {
        changes.swap(index, random.usize(..index + 1));
    }
    for step in changes {
        step.happen(&mut replay, now, &mut Vec::new());
    }
    replay
}

/// Asserts that an agent's view equals a new view that receives the same objects in random order.
fn assert_equals_rebuild<V: View>(agent: &Agent<V>, now: Timestamp, random: &mut Rng) {
    let replay = rebuilt(&agent.view, now, random);
    assert_eq!(agent.view, replay, "indexes and times are those of a rebuild");
}

/// Returns every key whose plan is not empty, with that plan.
fn wanted<V: View>(view: &V, now: Timestamp) -> BTreeMap<V::Key, Plan> {
    let keys: BTreeSet<V::Key> = view.every_key().into_iter().collect();
    keys.into_iter()
        .map(|key| (key.clone(), view.decide(&key, now)))
        .filter(|(_, plan)| !plan.writes.is_empty() || plan.again.is_some())
        .collect()
}

/// Delivers the next change of a kind to an agent. Asserts that the agent requeues every key whose plan changes.
fn hear_attentively<V: View>(agent: &mut Agent<V>, kind: Kind, now: Timestamp) {
    let before = wanted(&agent.view, now);
    agent.deliver(kind, now);
    for (key, plan) in wanted(&agent.view, now) {
        let wanted_before = before.get(&key).is_some_and(|before| same_targets(before, &plan));
        assert!(
            wanted_before || agent.requeue.contains(&key),
            "{key:?} is not planned anew, although it wants {plan:?}"
        );
    }
}

fn same_targets(one: &Plan, other: &Plan) -> bool {
    let targets = |plan: &Plan| {
        let what = |write: &Write| (write.kind(), write.at.clone(), std::mem::discriminant(&write.action));
        plan.writes.iter().map(what).collect::<Vec<_>>()
    };
    targets(one) == targets(other)
}

#[test]
fn views_with_other_objects_differ() {
    assert_eq!(hub_view([]), hub_view([]));
    assert_ne!(hub_view([service_import("work/app").object()]), hub_view([]));
}

/// Also rule A3.
#[test]
fn a_change_requeues_each_key_once_and_in_order() {
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2", "member-3"]);
    let exports = ["work/app-1", "work/app-2"].map(|name| slice_export("member-1", &slice(name).uid(name)).marked());
    let distributed_slices =
        exports.iter().flat_map(|export| ["member-2", "member-3"].map(|to| distributed_slice(to, export)));
    let distributed_slices = distributed_slices.map(Object::EndpointSliceImport).collect::<Vec<_>>();
    let exports = exports.into_iter().map(Object::EndpointSliceExport);
    let mut view = hub_view(exports.chain(distributed_slices).chain([import.object()]));
    let changed = service_import("work/app").showing(resolved(&["member-9"])).claimed_by(&["member-2", "member-4"]);
    let mut requeue = Vec::new();
    view.applied(changed.version(2).object(), SEEN, &mut requeue);
    assert!(requeue.len() > 4, "{requeue:?}");
    let distinct: BTreeSet<hub::Key> = requeue.iter().cloned().collect();
    assert_eq!(requeue, distinct.into_iter().collect::<Vec<_>>());
}

/// Also rule A3.
#[test]
fn after_every_event_a_view_equals_its_rebuild_and_every_key_concerned_is_requeued() {
    for_any(60, &(prop::collection::vec(an_event(), 1..25), any::<u64>()), (CLASSES, 4), |(events, seed)| {
        let mut world = World::new(MEMBERS).in_any_order(seed);
        world.tick_micros = 0;
        let mut random = Rng::with_seed(seed);
        for event in prelude(seed).iter().chain(&events).filter(|event| !matches!(event, Event::Pass { .. })) {
            happen(&mut world, event);
            while let Some((who, kind)) = next_news(&world) {
                let now = world.now;
                match who {
                    Who::Hub => {
                        hear_attentively(&mut world.hub_agent, kind, now);
                        assert_equals_rebuild(&world.hub_agent, now, &mut random);
                    }
                    Who::Member(index) => {
                        let agent = &mut world.members[index].agent;
                        hear_attentively(agent, kind, now);
                        assert_equals_rebuild(agent, now, &mut random);
                    }
                }
            }
        }
        classes(&world)
    });
}

fn next_news(world: &World) -> Option<(Who, Kind)> {
    let waiting =
        |inbox: &BTreeMap<Kind, VecDeque<_>>| inbox.iter().find(|(_, news)| !news.is_empty()).map(|(kind, _)| *kind);
    let of_hub = waiting(&world.hub_agent.inbox).map(|kind| (Who::Hub, kind));
    of_hub.or_else(|| {
        let mut members = world.members.iter().enumerate();
        members.find_map(|(index, member)| Some((Who::Member(index), waiting(&member.agent.inbox)?)))
    })
}

/// Returns a new view that receives all changes of a history. Changes of one kind stay in order, changes of different
/// kinds are mixed at random.
fn replayed<V: View>(view: &V, changes: &[(Who, KindChange)], who: Who, now: Timestamp, random: &mut Rng) -> V {
    let mut queues: Vec<VecDeque<&KindChange>> = V::KINDS
        .iter()
        .map(|kind| changes.iter().filter(|(to, change)| *to == who && change.0 == *kind).map(|(_, c)| c).collect())
        .collect();
    let mut replay = view.forgetful();
    for kind in V::KINDS {
        replay.watched(*kind, WatchState::Complete, now, &mut Vec::new());
    }
    loop {
        queues.retain(|queue| !queue.is_empty());
        if queues.is_empty() {
            return replay;
        }
        let chosen = random.usize(..queues.len());
        let change = queues[chosen].pop_front().expect("not empty");
        let again = if random.usize(..8) == 0 { 2 } else { 1 }; // a change that is delivered twice counts once
        for _ in 0..again {
            replay.observe(change.clone(), now, &mut Vec::new());
        }
    }
}

fn assert_order_does_not_matter<V: View>(
    view: &V,
    changes: &[(Who, KindChange)],
    who: Who,
    now: Timestamp,
    random: &mut Rng,
) {
    let one = replayed(view, changes, who, now, random);
    let other = replayed(view, changes, who, now, random);
    assert_eq!(one, other, "{who:?}: the same view");
    assert_eq!(wanted(&one, now), wanted(&other, now), "{who:?}: the same plans");
}

/// Rule A3: Watches deliver the same events in another order, or some events twice
/// Then: The agent's view and the agent's plans are the same for every order of events
#[test]
fn any_order_of_the_same_events_gives_the_same_view_and_the_same_plans() {
    for_any(60, &(prop::collection::vec(an_event(), 1..25), any::<u64>()), (CLASSES, 4), |(events, seed)| {
        let mut world = World::new(MEMBERS).in_any_order(seed);
        world.changes = Some(Vec::new());
        for event in prelude(seed).iter().chain(&events) {
            happen(&mut world, event);
        }
        let changes = world.changes.take().unwrap_or_default();
        let mut random = Rng::with_seed(seed);
        let now = world.now;
        assert_order_does_not_matter(&world.hub_agent.view, &changes, Who::Hub, now, &mut random);
        for (index, member) in world.members.iter().enumerate() {
            assert_order_does_not_matter(&member.agent.view, &changes, Who::Member(index), now, &mut random);
        }
        classes(&world)
    });
}

/// Returns a copy of a view that lacks some objects of the kind `hidden`. The watch of this kind is in the state
/// `state`.
fn half_filled<V: View>(view: &V, hidden: Kind, state: WatchState, now: Timestamp, random: &mut Rng) -> V {
    let mut half = view.forgetful();
    for object in view.objects() {
        if object.kind() != hidden || random.usize(..2) == 0 {
            half.observe(applied(object), now, &mut Vec::new());
        }
    }
    for kind in V::KINDS {
        let state = if *kind == hidden { state } else { WatchState::Complete };
        half.watched(*kind, state, now, &mut Vec::new());
    }
    half
}

fn required_by_member(key: &member::Key) -> &'static [Kind] {
    use Kind::*;
    match key {
        member::Key::Export(_) => &[Service, ServiceExport, InternalServiceExport],
        member::Key::SliceExport(_) => &[
            Service,
            ServiceExport,
            EndpointSlice,
            InternalServiceExport,
            EndpointSliceExport,
            EndpointSliceImport,
            MemberAgent,
        ],
        member::Key::MultiClusterService(_) => &[MultiClusterService, ServiceImport, Service],
        member::Key::Import(_) => &[ServiceImport, MultiClusterService, InternalServiceImport],
        member::Key::SliceImport(_) => {
            &[EndpointSliceImport, EndpointSlice, MultiClusterService, ServiceImport, Service, InternalServiceImport]
        }
        member::Key::McsImport(_) => &[MergedServiceImport, Namespace, Service, McsServiceImport],
        member::Key::Heartbeat => &[MemberAgent, EndpointSlice],
        member::Key::Membership => &[InternalMemberCluster],
    }
}

fn required_by_hub(key: &hub::Key) -> &'static [Kind] {
    use Kind::*;
    match key {
        hub::Key::Service(_) => &[InternalServiceExport, InternalServiceImport, ServiceImport],
        hub::Key::Slice(_) | hub::Key::DistributedSlice { .. } => {
            &[EndpointSliceExport, EndpointSliceImport, ServiceImport, InternalServiceImport, MemberAgent]
        }
        hub::Key::MergedImport { .. } => &[InternalServiceExport, MergedServiceImport, MemberAgent],
        hub::Key::Member(_) => &[MemberAgent],
    }
}

/// True if a write deletes an object, or removes our finalizer, endpoints, importers or exporters from it.
fn shrinks<V: View>(view: &V, write: &Write) -> bool {
    let stored =
        view.objects().into_iter().find(|object| object.kind() == write.kind() && object.meta().name == write.at);
    match (&write.action, stored) {
        (Action::Delete { .. }, _) => true,
        (Action::Patch { patch: Patch::Finalizers { finalizers: after, .. }, .. }, Some(stored)) => {
            stored.meta().finalizers.ours && !after.ours
        }
        (
            Action::Patch { patch: Patch::EndpointSliceExport(after) | Patch::EndpointSliceImport(after), .. },
            Some(Object::EndpointSliceExport(stored) | Object::EndpointSliceImport(stored)),
        ) => fewer(&stored.spec, after),
        (Action::Patch { patch: Patch::ImportedSlice(after), .. }, Some(Object::EndpointSlice(stored))) => {
            stored.content.endpoints.iter().any(|endpoint| !after.content.endpoints.contains(endpoint))
        }
        (Action::Patch { patch: Patch::Claims { importers, .. }, .. }, Some(Object::ServiceImport(stored))) => {
            stored.claims.importers.keys().any(|importer| !importers.contains_key(importer))
        }
        (Action::Patch { patch: Patch::ServiceImportStatus(after), .. }, Some(Object::ServiceImport(stored))) => {
            stored.status.clusters.iter().any(|cluster| !after.clusters.contains(cluster))
        }
        (
            Action::Patch { patch: Patch::InternalServiceImportStatus(after), .. },
            Some(Object::InternalServiceImport(stored)),
        ) => stored.status.clusters.iter().any(|cluster| !after.clusters.contains(cluster)),
        _ => false,
    }
}

fn fewer(before: &HubSliceSpec, after: &HubSliceSpec) -> bool {
    before.content.endpoints.iter().any(|endpoint| !after.content.endpoints.contains(endpoint))
}

/// Asserts that a plan removes nothing while a kind that it requires is not completely listed.
fn assert_patient<V: View>(
    view: &V,
    required: fn(&V::Key) -> &'static [Kind],
    settled: bool,
    now: Timestamp,
    random: &mut Rng,
) {
    for kind in V::KINDS {
        for state in [WatchState::Incomplete, WatchState::Unknown] {
            let half = half_filled(view, *kind, state, now, random);
            for (key, plan) in wanted(&half, now) {
                // No plan requires Namespaces to be listed, so plans may have writes while Namespaces are unknown.
                if settled && *kind != Kind::Namespace {
                    assert_eq!(plan.writes, Vec::new(), "{key:?} of a settled fleet without all of {kind:?}");
                }
                // Long after MemberAgents became unknown, agents assume the Go form. So plans may remove content that
                // the Go form does not have.
                let is_decided = *kind == Kind::MemberAgent && state == WatchState::Unknown;
                let impatient = plan.writes.iter().find(|write| shrinks(&half, write)).filter(|_| !is_decided);
                assert!(
                    !required(&key).contains(kind) || impatient.is_none(),
                    "{key:?} without all of {kind:?} wants {impatient:?}"
                );
            }
        }
    }
}

fn assert_all_patient(world: &World, settled: bool, random: &mut Rng) {
    assert_patient(&world.hub_agent.view, required_by_hub, settled, world.now, random);
    for member in &world.members {
        assert_patient(&member.agent.view, required_by_member, settled, world.now, random);
    }
}

/// Rule A4: A watch is incomplete, or the server no longer has the watched kind
/// Then: The agent removes no object whose removal depends on this watch
///
/// Also rule E16.
#[test]
fn nothing_is_removed_while_a_required_watch_is_incomplete() {
    for_any(60, &(prop::collection::vec(an_event(), 1..25), any::<u64>()), (CLASSES, 4), |(events, seed)| {
        let mut world = World::new(MEMBERS).in_any_order(seed);
        let mut random = Rng::with_seed(seed);
        for event in prelude(seed).iter().chain(&events) {
            happen(&mut world, event);
        }
        assert_all_patient(&world, false, &mut random);
        world.run_for(DAY_MICROS);
        assert_all_patient(&world, true, &mut random);
        classes(&world)
    });
}

/// Returns the view of an agent that starts while the object `hidden` is undecodable. The view contains all other
/// objects.
fn blind_to<V: View>(view: &V, hidden: &Object, now: Timestamp) -> V {
    let mut blind = view.forgetful();
    for object in view.objects() {
        let same = object.kind() == hidden.kind() && object.meta().name == hidden.meta().name;
        let change = if same { undecodable(hidden) } else { applied(object) };
        blind.observe(change, now, &mut Vec::new());
    }
    for kind in V::KINDS {
        blind.watched(*kind, WatchState::Complete, now, &mut Vec::new());
    }
    blind.every_key().iter().for_each(|key| drop(blind.decide_and_record(key, now)));
    blind
}

fn undecodable(object: &Object) -> KindChange {
    undecodable_change(object.kind(), object.meta().name.clone())
}

/// Asserts that an agent can start while any one object of a fleet at rest is undecodable. The agent writes nothing,
/// even after all grace periods. When the object becomes decodable, the agent requeues the right keys.
fn assert_bears_blindness<V: View>(view: &V, now: Timestamp) {
    let long_after = now.plus_micros(DAY_MICROS);
    for hidden in view.objects() {
        let mut blind = blind_to(view, &hidden, now);
        let name = (hidden.kind(), &hidden.meta().name);
        for at in [now, long_after] {
            let writes = |(key, plan): (V::Key, Plan)| (!plan.writes.is_empty()).then_some((key, plan.writes));
            let wanted: Vec<_> = wanted(&blind, at).into_iter().filter_map(writes).collect();
            assert_eq!(wanted, [], "without a word of {name:?}");
        }
        let without: BTreeSet<V::Key> = wanted(&blind, now).into_keys().collect();
        let mut requeue = Vec::new();
        blind.observe(applied(hidden.clone()), now, &mut requeue);
        assert_eq!(blind, rebuilt(&blind, now, &mut Rng::with_seed(0)), "{name:?} is known again");
        let mut replay = requeue.iter().collect::<BTreeSet<_>>();
        replay.extend(&without);
        for (key, plan) in wanted(&blind, now) {
            assert!(replay.contains(&key), "{key:?} is not planned anew with {name:?}, although it wants {plan:?}");
        }
        let mut gone = blind_to(view, &hidden, now);
        requeue.clear();
        let removed = removed(hidden.kind(), hidden.meta().name.clone(), Uid::default());
        gone.observe(removed, now, &mut requeue);
        for (key, plan) in wanted(&gone, now).into_iter().filter(|(_, plan)| !plan.writes.is_empty()) {
            assert!(requeue.contains(&key), "{key:?} is not planned anew without {name:?}, although it wants {plan:?}");
        }
    }
}

/// Asserts that a member's view is that of a new agent after it received these objects, one after the other.
fn assert_the_last_state_counts(objects: &[Object]) {
    let come = objects.iter().map(|object| applied(object.clone()));
    let gone = |object: &Object| removed(object.kind(), object.meta().name.clone(), object.meta().uid.clone());
    let path = come.chain(objects.iter().rev().map(gone)).map(Step::Changed).collect();
    let _ = Settled::new(mcs::view(Vec::new()), &[], Vec::new(), NOW).assert_requeued([path]);
}

#[test]
fn a_view_keeps_nothing_of_earlier_states_of_its_objects() {
    let distributed = distributed_slice("member-1", &slice_export("member-3", &slice("work/app-1")).marked());
    let imported = EndpointSlice {
        imported: true,
        mcs: Some(Box::new(McsLabels { service: "app".into(), cluster: "member-3".into(), headless: false })),
        observed_generation: Some(1),
        ..slice(&format!("work/{}", distributed.meta.name.name))
    };
    let mut moved = distributed.clone().version(9);
    moved.spec.owner = named("other/app");
    moved.spec.reference.cluster = "member-2".into();
    assert_the_last_state_counts(&[
        Object::EndpointSliceImport(distributed),
        imported.object(),
        Object::EndpointSliceImport(moved),
    ]);
    assert_the_last_state_counts(&[mcs_export("work/app").object(), service("work/app").object()]);
    assert_the_last_state_counts(&[mcs_export("work/app").object(), accepted_export("work/app").object()]);
}

/// Also rule T36.
#[test]
fn nothing_is_kept_of_a_slice_that_was_written_for_two_services() {
    let empty = || {
        let mut view = mcs::view(Vec::new());
        view.slice_stream.chosen = SliceStreamUse::Fixed;
        view
    };
    let distributed = distributed_slice("member-1", &slice_export("member-3", &slice("work/app-1")).marked());
    let mut moved = distributed.clone().version(9);
    moved.spec.owner = named("other/app");
    let [distributed, moved] = [distributed, moved].map(Object::EndpointSliceImport);
    let mut view = empty();
    observe_change(&mut view, distributed);
    observe_change(&mut view, moved.clone());
    assert_ne!(view, empty());
    observe_removal(&mut view, &moved);
    assert_eq!(view, empty());
}

/// Rule A9: An object is undecodable
/// Then: The agents do not treat an undecodable object as absent ([failures.md](../concepts/failures.md))
///
/// Also rule T38.
#[test]
fn an_agent_that_starts_while_an_object_cannot_be_decoded_writes_nothing_because_of_it() {
    for_any(40, &(prop::collection::vec(an_event(), 1..25), any::<u64>()), (CLASSES, 4), |(events, seed)| {
        let mut world = World::new(MEMBERS).in_any_order(seed);
        for event in prelude(seed).iter().chain(&events) {
            happen(&mut world, event);
        }
        world.run_for(DAY_MICROS);
        assert_bears_blindness(&world.hub_agent.view, world.now);
        for member in &world.members {
            assert_bears_blindness(&member.agent.view, world.now);
        }
        classes(&world)
    });
}
