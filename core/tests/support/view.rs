//! Views with fixed objects, for tests of single plans.

use super::agent::{KindChange, View, applied, assert_targets_are_distinct, removed, undecodable_change};
use super::build::{Build, BuildClaim, IntoObject, claim, seconds};
use super::reworded::assert_reworded_plan_is_the_same;
use super::world::settings;
use fleetnet_core::member::Limits;
use fleetnet_core::model::{Kind, Object, ServiceImport};
use fleetnet_core::plan::{Plan, Write};
use fleetnet_core::{hub, member};
use fleetnet_types::{ClusterId, ObjectName, Timestamp, WatchState};

/// Time at which the views of these tests receive their objects.
pub(crate) const SEEN: Timestamp = Timestamp(10_000_000);
/// Time at which these tests make plans.
pub(crate) const NOW: Timestamp = Timestamp(20_500_000);

/// Returns a view of the agent of member-1. The view contains these objects, and all watches are complete.
pub(crate) fn member_view(objects: impl IntoIterator<Item = Object>) -> member::Planner {
    with_objects(member::Planner::new(settings(0)), objects)
}

/// The same with other limits.
pub(crate) fn limited_member_view(limits: Limits, objects: impl IntoIterator<Item = Object>) -> member::Planner {
    with_objects(member::Planner::new(member::Settings { limits, ..settings(0) }), objects)
}

/// Returns a view of the hub agent with limits for the bytes of each member, and for the objects that its exports
/// cause.
pub(crate) fn limited_hub_view(
    bytes: Option<usize>,
    fan_out: Option<usize>,
    objects: impl IntoIterator<Item = Object>,
) -> hub::Planner {
    let mut view = hub::Planner::default();
    (view.budgets.limit, view.budgets.fan_out_limit) = (bytes, fan_out);
    with_objects(view, objects)
}

/// Returns a view of the hub agent. The view contains these objects, and all watches are complete.
pub(crate) fn hub_view(objects: impl IntoIterator<Item = Object>) -> hub::Planner {
    with_objects(hub::Planner::default(), objects)
}

/// Returns a view of the hub agent with these objects. The agent denies every member in a namespace that does not
/// exist.
pub(crate) fn strict_hub_view(objects: impl IntoIterator<Item = Object>) -> hub::Planner {
    let mut view = hub::Planner::from(hub::View::default());
    view.namespace_policy = hub::NamespacePolicy::Strict;
    with_objects(view, objects)
}

/// Returns a view of the hub agent with these objects. The agent denies every member that no annotation lists.
pub(crate) fn listed_hub_view(objects: impl IntoIterator<Item = Object>) -> hub::Planner {
    let mut view = hub::Planner::from(hub::View::default());
    view.namespace_policy = hub::NamespacePolicy::Listed;
    with_objects(view, objects)
}

/// Returns a view of the hub agent with these objects, and with a claim for each importer that a ServiceImport records.
pub(crate) fn claimed_hub_view(objects: impl IntoIterator<Item = Object>) -> hub::Planner {
    let objects: Vec<Object> = objects.into_iter().collect();
    let claims = objects.iter().filter_map(|object| match object {
        Object::ServiceImport(import) => Some(claims_of(import)),
        _ => None,
    });
    hub_view(claims.flatten().chain(objects.iter().cloned()))
}

fn claims_of(import: &ServiceImport) -> Vec<Object> {
    let claim = |cluster: &ClusterId| claim(cluster, import).east_west().marked().with_status(import.status.clone());
    import.claims.importers.values().map(|cluster| claim(cluster).object()).collect()
}

/// Completes all watches of a view.
pub(crate) fn complete<V: View>(view: &mut V) {
    for kind in V::KINDS {
        view.watched(*kind, WatchState::Complete, SEEN, &mut Vec::new());
    }
}

/// Returns a view after it received these objects. All watches are complete.
pub(crate) fn with_objects<V: View>(mut view: V, objects: impl IntoIterator<Item = Object>) -> V {
    complete(&mut view);
    for object in objects {
        observe_and_plan(&mut view, applied(object), SEEN);
    }
    view
}

/// Applies a change to a view, and plans the keys that it requeues. Returns these keys, with the key of a slice instead
/// of the keys of its distributed slices.
pub(crate) fn observe_and_plan<V: View>(view: &mut V, change: KindChange, at: Timestamp) -> Vec<V::Key> {
    let mut requeue = Vec::new();
    view.observe(change, at, &mut requeue);
    requeue.sort();
    requeue.dedup();
    requeue.iter().for_each(|key| drop(view.decide_and_record(key, at)));
    let mut requeue: Vec<V::Key> = requeue.into_iter().map(V::whole).collect();
    requeue.sort();
    requeue.dedup();
    requeue
}

/// Adds a changed object to a view at second 20. Returns the keys to plan.
pub(crate) fn observe_change<V: View>(view: &mut V, object: Object) -> Vec<V::Key> {
    observe_and_plan(view, applied(object), seconds(20))
}

/// Removes an object from a view at second 20. Returns the keys to plan.
pub(crate) fn observe_removal<V: View>(view: &mut V, object: &Object) -> Vec<V::Key> {
    let (kind, meta) = (object.kind(), object.meta());
    observe_and_plan(view, removed(kind, meta.name.clone(), meta.uid.clone()), seconds(20))
}

/// Marks an object as undecodable in a view at second 20.
pub(crate) fn undecodable<V: View>(view: &mut V, kind: Kind, name: &ObjectName) {
    observe_and_plan(view, undecodable_change(kind, name.clone()), seconds(20));
}

/// Removes an undecodable object from a view at second 20. Returns the keys to plan.
pub(crate) fn observe_undecodable_removal<V: View>(view: &mut V, kind: Kind, name: &ObjectName) -> Vec<V::Key> {
    observe_and_plan(view, removed(kind, name.clone(), "".into()), seconds(20))
}

/// Plans a key. With the key of a slice of the hub, the plan also has the writes of its distributed slices.
pub(crate) fn planned<V: View>(view: &V, key: &V::Key) -> Plan {
    planned_at(view, key, NOW)
}

/// The same at another time.
pub(crate) fn planned_at<V: View>(view: &V, key: &V::Key, now: Timestamp) -> Plan {
    let mut whole = Plan::default();
    for part in view.parts(key) {
        let plan = view.decide(&part, now);
        assert_reworded_plan_is_the_same(view, &part, now);
        whole.join(plan);
    }
    assert_targets_are_distinct(&whole);
    whole
}

/// Plans a key. Returns the writes of the plan without their Events.
pub(crate) fn writes<V: View>(view: &V, key: &V::Key) -> Vec<Write> {
    let silent = |write: Write| Write { events: Vec::new(), ..write };
    planned(view, key).writes.into_iter().map(silent).collect()
}

/// Returns the reason and the message of each Event in a plan.
pub(crate) fn events_of(plan: &Plan) -> Vec<(&'static str, &str)> {
    let events = plan.writes.iter().flat_map(|write| &write.events);
    events.map(|event| (event.reason.as_str(), &*event.message)).collect()
}

/// Returns the reason and the message of each `BlockingReason` in a plan.
pub(crate) fn blocking_reasons(plan: &Plan) -> Vec<(&'static str, &str)> {
    plan.blocking_reasons
        .iter()
        .map(|blocking_reason| (blocking_reason.reason.as_str(), &*blocking_reason.message))
        .collect()
}

/// Plans a key. Returns the reason of each Event in the plan.
pub(crate) fn events<V: View>(view: &V, key: &V::Key) -> Vec<&'static str> {
    planned(view, key).writes.iter().flat_map(|write| write.events.iter().map(|event| event.reason.as_str())).collect()
}
