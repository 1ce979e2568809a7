//! Tests that an agent emits an Event only if something changed, also in random histories with restarts. The agent
//! reports a blocking reason once, and stops reporting it when its cause is gone.

use crate::fleet::{edit_request, request_of};
use crate::histories::{MEMBERS, an_event, happen, prelude};
use crate::messages::set_by;
use crate::oracle::{CLASSES, classes};
use crate::support::agent::KindChange;
use crate::support::build::{
    Build, BuildExport, BuildImport, BuildRequest, BuildService, IntoObject, accepted_export, claim, derived_service,
    found, internal_export, named, not_found, port, request, resolved, service, service_import,
};
use crate::support::cluster::Answer;
use crate::support::property::for_any;
use crate::support::view::{
    NOW, SEEN, blocking_reasons, events_of, member_view, observe_change, observe_removal, planned, undecodable, writes,
};
use crate::support::world::{Who, World, fleet};
use fleetnet_core::conditions;
use fleetnet_core::member::{Key, Planner};
use fleetnet_core::model::{Condition, ConsumerType, Kind, MultiClusterService, Object, ServiceExport};
use fleetnet_core::plan::{Action, Event, Patch, Plan};
use fleetnet_core::reasons::Reason;
use fleetnet_types::{Change, ObjectName, Text, Uid, WatchState};
use proptest::prelude::*;
use std::collections::BTreeMap;

// === Names that other objects already have ===

fn settles(view: &Planner, key: &Key) {
    let left: Vec<_> = writes(view, key);
    assert_eq!(left, [], "what was told is not told again");
}

/// Rule R5: Other objects have both names that an InternalServiceExport can have in the hub
/// Then: The agent sets `Valid=False` (reason `NameHeldByAnother`) on the ServiceExport. The message contains the names
/// of both objects. The agent uses one of the two names as soon as no object has the name
#[test]
fn an_export_without_a_free_name_emits_one_event_and_continues_when_one_is_free() {
    let app = service("work/app").uid("0a1b2c3d");
    let theirs = |name: &str, of: &str| {
        let mut export = internal_export("member-1", &service(of).uid(of));
        export.meta.name.name = name.into();
        export
    };
    let (first, second) = (theirs("work-app", "a/b"), theirs("work-app-0a1b2", "c/d"));
    let export = accepted_export("work/app");
    let mut view = member_view([app.object(), export.clone().object(), first.clone().object(), second.object()]);
    let key = Key::Export(named("work/app"));
    view.watch_state(Kind::InternalServiceExport, WatchState::Incomplete, NOW, &mut Vec::new());
    assert_eq!(writes(&view, &key), [], "perhaps the hub has the export");
    view.watch_state(Kind::InternalServiceExport, WatchState::Complete, NOW, &mut Vec::new());
    let set = writes(&view, &key);
    let list = set_by(&set[0].action).expect("conditions").to_vec();
    let valid = conditions::find(&list, "Valid").expect("Valid");
    assert_eq!((valid.status.as_str(), &*valid.reason), ("False", "NameHeldByAnother"));
    let reported = export.with_conditions(&list);
    observe_change(&mut view, reported.object());
    settles(&view, &key);

    assert!(observe_removal(&mut view, &first.object()).contains(&key), "a name that is free wakes it");
    let planned = writes(&view, &key);
    let kinds: Vec<Kind> = planned.iter().map(|write| write.kind()).collect();
    assert_eq!(kinds, [Kind::ServiceExport, Kind::InternalServiceExport]);
    assert_eq!(&*planned[1].at.name, "work-app");
}

/// Rule R6: Other objects have both names that a claim (InternalServiceImport) can have in the hub
/// Then: The agent sets `Valid=False` (reason `NameHeldByAnother`) on the MultiClusterService, and uses one of the two
/// names as soon as no object has the name
#[test]
fn an_import_without_a_free_claim_name_emits_one_event_and_continues_when_one_is_free() {
    let taken = request("work/app").taken_on();
    let import = service_import("work/app").uid("4e5f6a7b").controlled_by(&taken);
    let theirs = |name: &str, of: &str| {
        let mut claim = claim("member-1", &service_import(of).uid(of));
        claim.meta.name.name = name.into();
        claim
    };
    let (first, second) = (theirs("work-app", "a/b"), theirs("work-app-4e5f6", "c/d"));
    let objects = [taken.clone().object(), import.clone().object(), first.clone().object(), second.clone().object()];
    let mut view = member_view(objects);
    let (key, import_key) = (Key::MultiClusterService(named("work/app")), Key::Import(named("work/app")));
    let set = writes(&view, &key);
    let list = set_by(&set[0].action).expect("conditions").to_vec();
    assert_eq!((list[0].status.as_str(), &*list[0].reason), ("False", "NameHeldByAnother"));
    let claimless = planned(&view, &import_key);
    assert_eq!((claimless.writes.len(), claimless.blocking_reasons.len()), (0, 1));
    let reported = taken.clone().with_conditions(&list);
    observe_change(&mut view, reported.clone().object());
    settles(&view, &key);
    // After a restart, no claim or some of the claims are listed, and perhaps one of them is of this import.
    for shown in [reported, taken.clone().with_conditions(&[not_found()])] {
        for claims in [vec![], vec![first.clone().object(), second.clone().object()]] {
            let mut restarted =
                member_view([shown.clone().object(), import.clone().object()].into_iter().chain(claims));
            restarted.watch_state(Kind::InternalServiceImport, WatchState::Incomplete, SEEN, &mut Vec::new());
            settles(&restarted, &key);
        }
    }
    let mut fresh = member_view([taken.object(), import.clone().object()]);
    fresh.watch_state(Kind::InternalServiceImport, WatchState::Incomplete, SEEN, &mut Vec::new());
    assert_eq!(writes(&fresh, &key).len(), 1, "its user sees that it waits");
    // An undecodable object may be the claim.
    let mut unknown = member_view([import.object(), second.clone().object()]);
    undecodable(&mut unknown, Kind::InternalServiceImport, &first.meta.name);
    assert_eq!(planned(&unknown, &import_key), Plan::default());

    let woken = observe_removal(&mut view, &second.object());
    assert!(woken.contains(&key) && woken.contains(&import_key), "a name that is free wakes it: {woken:?}");
    let planned = writes(&view, &import_key);
    assert_eq!(planned.iter().map(|write| &*write.at.name).collect::<Vec<_>>(), ["work-app-4e5f6"]);
    let reasons: Vec<_> = events_of(&self::planned(&view, &key)).iter().map(|(reason, _)| *reason).collect();
    assert_eq!(reasons, ["UnknownServiceImport"], "it waits for exporters");
}

/// Rule R7: Other Services have both names that a derived Service can have
/// Then: The agent sets `Valid=False` (reason `NameHeldByAnother`) on the MultiClusterService, and uses one of the two
/// names as soon as no Service has the name
#[test]
fn a_derived_service_without_a_name_is_made_when_one_is_free() {
    let taken = request("work/app").taken_on().uid("0a1b2c3d");
    let import = service_import("work/app").controlled_by(&taken).showing(resolved(&["member-2"]));
    let theirs = service("fleet-system/work-app");
    let also_theirs = service("fleet-system/work-app-0a1b2");
    let objects = [taken.clone().object(), import.object(), theirs.clone().object(), also_theirs.object()];
    let mut view = member_view(objects);
    let key = Key::MultiClusterService(named("work/app"));
    let list = set_by(&writes(&view, &key)[0].action).expect("conditions").to_vec();
    let reported = taken.with_conditions(&list);
    observe_change(&mut view, reported.object());
    settles(&view, &key);
    assert!(observe_removal(&mut view, &theirs.object()).contains(&key), "a name that is free wakes it");
    let labelled = writes(&view, &key);
    assert!(
        matches!(&labelled[0].action, Action::Patch { patch: Patch::MultiClusterService { derived_label, .. }, .. }
            if derived_label.as_deref() == Some("work-app")),
        "{labelled:#?}"
    );
}

// === Writes that a server rejects ===

/// Rule R14: A server rejects the content of an object that an agent writes for an export or an import
/// Then: The agent sets `Valid=False` (reason `WriteRefused`), with the server's message, until the server accepts the
/// object. After a restart, this condition stays until the server has answered the write again
#[test]
fn a_rejected_export_shows_the_rejection_until_a_write_succeeds_also_after_a_restart() {
    let export = accepted_export("work/app");
    let objects = || [service("work/app").object(), export.clone().object()];
    let key = Key::Export(named("work/app"));
    let mut view = member_view(objects());
    view.write_rejected(&key, "cluster hub refused to create it".to_owned());
    let plan = planned(&view, &key);
    assert_eq!(events_of(&plan), [("WriteRefused", "cluster hub refused to create it")]);
    assert_eq!(blocking_reasons(&plan), events_of(&plan));
    let list = set_by(&plan.writes[0].action).expect("conditions").to_vec();
    assert_eq!((list[0].status.as_str(), &*list[0].reason), ("False", "WriteRefused"));
    let kinds = |plan: &Plan| plan.writes.iter().map(|write| write.kind()).collect::<Vec<_>>();
    assert_eq!(kinds(&plan), [Kind::ServiceExport, Kind::InternalServiceExport]);

    let reported = export.clone().with_conditions(&list);
    let mut restarted = member_view([service("work/app").object(), reported.object()]);
    let plan = planned(&restarted, &key);
    assert_eq!((kinds(&plan), events_of(&plan)), (vec![Kind::InternalServiceExport], vec![]), "it asks first");
    restarted.write_rejected(&key, "cluster hub refused to create it".to_owned());
    assert_eq!(kinds(&planned(&restarted, &key)), [Kind::InternalServiceExport], "refused as before: that was told");

    let taken = internal_export("member-1", &service("work/app"));
    observe_change(&mut restarted, taken.object());
    let plan = planned(&restarted, &key);
    assert_eq!((kinds(&plan), events_of(&plan)[0].0), (vec![Kind::ServiceExport], "ServiceIsValid"));
    assert_eq!(plan.blocking_reasons, []);
}

/// Also rule R14.
#[test]
fn a_rejected_derived_service_shows_the_rejection_until_a_write_succeeds_also_after_a_restart() {
    let taken = request("work/app").taken_on().deriving("work-app");
    let import = service_import("work/app").controlled_by(&taken).showing(resolved(&["member-2"]));
    let key = Key::MultiClusterService(named("work/app"));
    let mut view = member_view([taken.clone().object(), import.clone().object()]);
    view.write_rejected(&key, "cluster member refused to create it".to_owned());
    let plan = planned(&view, &key);
    assert_eq!(events_of(&plan), [("WriteRefused", "cluster member refused to create it")]);
    assert_eq!(blocking_reasons(&plan), events_of(&plan));
    let list = set_by(&plan.writes[1].action).expect("conditions").to_vec();
    let reported = taken.with_conditions(&list);
    let mut restarted = member_view([reported.object(), import.object()]);
    let kinds = |plan: &Plan| plan.writes.iter().map(|write| write.kind()).collect::<Vec<_>>();
    let plan = planned(&restarted, &key);
    assert_eq!((kinds(&plan), events_of(&plan)), (vec![Kind::Service], vec![]), "it asks first");
    observe_change(&mut restarted, derived_service("work-app", "work/app").object());
    let plan = planned(&restarted, &key);
    assert_eq!((kinds(&plan), events_of(&plan)[0].0), (vec![Kind::MultiClusterService], "FoundServiceImport"));

    let nothing = request("work/app").taken_on();
    let mut view = member_view([nothing.clone().object()]);
    view.write_rejected(&key, "cluster member refused to create it".to_owned());
    assert_eq!(events_of(&planned(&view, &key)), [("WriteRefused", "cluster member refused to create it")]);
    let restarted = member_view([nothing.with_conditions(&list).object()]);
    let plan = planned(&restarted, &key);
    assert_eq!((kinds(&plan), events_of(&plan)), (vec![Kind::ServiceImport], vec![]), "it asks first");
}

/// Also rule R14.
#[test]
fn a_rejected_change_of_a_derived_service_shows_the_rejection_until_a_write_succeeds() {
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"]));
    let other_port = derived_service("work-app", "work/app").ports(&[port("http", 81)]);
    let key = Key::MultiClusterService(named("work/app"));
    let mut view = member_view([request.clone().object(), import.object(), other_port.object()]);
    let kinds = |plan: &Plan| plan.writes.iter().map(|write| write.kind()).collect::<Vec<_>>();
    view.write_rejected(&key, "cluster member refused to change it".to_owned());
    let plan = planned(&view, &key);
    assert_eq!(kinds(&plan), [Kind::Service, Kind::MultiClusterService], "it tries again");
    assert_eq!(events_of(&plan), [("WriteRefused", "cluster member refused to change it")]);
    assert_eq!(blocking_reasons(&plan), events_of(&plan));
    let list = set_by(&plan.writes[1].action).expect("conditions").to_vec();
    view.forget_rejection(&key);
    observe_change(&mut view, request.with_conditions(&list).object());
    let plan = planned(&view, &key);
    assert_eq!((kinds(&plan), events_of(&plan)), (vec![Kind::Service], vec![]), "the server has not answered yet");
    observe_change(&mut view, derived_service("work-app", "work/app").object());
    assert_eq!(events_of(&planned(&view, &key))[0].0, "FoundServiceImport");
}

// === No Event without a change ===

/// Returns the number of Events about ServiceExports and MultiClusterServices, by the object's UID and the Event's
/// reason.
fn events_in(world: &World) -> BTreeMap<(Uid, &'static str), usize> {
    let mut reported = BTreeMap::new();
    let done = world.ledger.iter().filter(|entry| entry.answer == Answer::Done);
    let about_conditions = |kind: Kind| matches!(kind, Kind::ServiceExport | Kind::MultiClusterService);
    for event in done.flat_map(|entry| &entry.write.events).filter(|event| about_conditions(event.source)) {
        *reported.entry((event.uid.clone(), event.reason.as_str())).or_default() += 1;
    }
    reported
}

/// Returns how often a condition of a user's object changed, by the object's UID and the condition's reason. A new
/// message with the same reason counts too. `changes` are the changes that watches delivered.
fn changed_in(changes: &[(Who, KindChange)]) -> BTreeMap<(Uid, &'static str), usize> {
    let mut known: BTreeMap<(Uid, Text), Condition> = BTreeMap::new();
    let mut changed = BTreeMap::new();
    for (_, change) in changes {
        let (_, Change::Applied(object)) = change else { continue };
        let (Object::ServiceExport(ServiceExport { meta, conditions, .. })
        | Object::MultiClusterService(MultiClusterService { meta, conditions, .. })) = object
        else {
            continue;
        };
        for condition in conditions {
            let key = (meta.uid.clone(), condition.condition_type.clone());
            let words = |it: &Condition| (it.status, it.reason.clone(), it.message.clone());
            let before = known.insert(key, condition.clone());
            if before.is_none_or(|before| words(&before) != words(condition)) {
                let is_why = |reason: &&Reason| conditions::has_reason(condition, **reason);
                let reason = Reason::ALL.iter().find(is_why).expect("a reason");
                *changed.entry((meta.uid.clone(), reason.as_str())).or_default() += 1;
            }
        }
    }
    changed
}

/// Rule R2: A condition of a user's object changes
/// Then: The agent emits one Event with the write that changes the condition. The agent emits no Event if only the
/// `observedGeneration` of the condition changes
///
/// Also rule R3.
#[test]
fn each_change_of_a_condition_emits_one_event_and_nothing_else_does_in_any_history() {
    for_any(60, &(prop::collection::vec(an_event(), 1..30), any::<u64>()), (CLASSES, 6), |(events, seed)| {
        let mut world = World::new(MEMBERS).in_any_order(seed);
        world.changes = Some(Vec::new());
        for event in prelude(seed).iter().chain(&events) {
            happen(&mut world, event);
        }
        world.run_for(600_000_000);
        let changes = world.changes.take().unwrap_or_default();
        let of_conditions = |counts: BTreeMap<(Uid, &'static str), usize>| -> BTreeMap<_, _> {
            counts
                .into_iter()
                .filter(|((_, reason), _)| ![&BESIDE_CONDITIONS[..], &WITHOUT_EVENT].concat().contains(reason))
                .collect()
        };
        assert_eq!(of_conditions(events_in(&world)), of_conditions(changed_in(&changes)));

        let mark = world.ledger.len();
        world.restart_all();
        world.run_for(600_000_000);
        let again: Vec<_> = world.ledger[mark..].iter().flat_map(|entry| &entry.write.events).collect();
        assert_eq!(again, Vec::<&Event>::new(), "a restart tells nothing");
        classes(&world)
    });
}

/// Also rule R2.
#[test]
fn a_condition_follows_its_object_to_another_generation_without_an_event() {
    let observed = |world: &World| {
        let request = request_of(world, 1, "work/app").expect("it is there");
        (request.meta.generation, request.conditions[0].observed_generation)
    };
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    let (generation, observed_generation) = observed(&world);
    assert_eq!(observed_generation, generation);
    let mark = world.ledger.len();
    edit_request(&mut world, 1, "work/app", |request| request.consumer_type = ConsumerType::ClusterIp);
    world.run();
    assert_eq!(observed(&world), (generation + 1, generation + 1), "who waits for that sees that it was heard");
    let reported = world.ledger[mark..].iter().flat_map(|entry| &entry.write.events);
    assert_eq!(
        reported.filter(|event| event.source == Kind::MultiClusterService).collect::<Vec<_>>(),
        Vec::<&Event>::new()
    );
}

/// Reasons that occur only in Events about users' objects, and in no condition.
const BESIDE_CONDITIONS: [&str; 4] = ["UnimportedService", "DerivedServiceLost", "AddressRefused", "NameHeldByAnother"];

/// Reasons of the condition `Withdrawn`. A change of this condition emits no Event: the same write changes the
/// condition `Valid`, and that change emits an Event.
const WITHOUT_EVENT: [&str; 2] = ["WeightIsZero", "WeightIsNotZero"];

/// Rule R3: A fleet has no pending changes, and its agents restart
/// Then: The agents emit no Event. For comparison: agents emit seven Events for a first export and import
#[test]
fn a_fleet_emits_each_event_once_and_none_after_a_restart() {
    let world = fleet(1, ConsumerType::LoadBalancer);
    let reported: Vec<(Kind, ObjectName, &str)> = world
        .ledger
        .iter()
        .flat_map(|entry| &entry.write.events)
        .map(|event| (event.source, event.name.clone(), event.reason.as_str()))
        .collect();
    let app = || named("work/app");
    let mut expected = vec![
        (Kind::ServiceExport, app(), "ServiceIsValid"),
        (Kind::ServiceExport, app(), "ServicePendingConflictResolution"),
        (Kind::ServiceImport, app(), "SuccessfulUpdateStatus"),
        (Kind::ServiceExport, app(), "NoConflictFound"),
        (Kind::MultiClusterService, app(), "UnknownServiceImport"),
        (Kind::ServiceImport, app(), "ImportersChanged"),
        (Kind::MultiClusterService, app(), "FoundServiceImport"),
    ];
    let mut sorted = reported;
    sorted.sort();
    expected.sort();
    assert_eq!(sorted, expected);

    let mut world = world;
    let mark = world.ledger.len();
    world.restart_all();
    world.run_for(600_000_000);
    assert_eq!(world.ledger.len(), mark, "a settled fleet tells nothing and writes nothing");
}

/// Tests of this file that run random histories. `proved.rs` also runs these tests with broken agents, and asserts that
/// each test then fails.
pub(crate) const HISTORIES: &[(&str, fn())] = &[(
    "each_change_of_a_condition_emits_one_event_and_nothing_else_does_in_any_history",
    each_change_of_a_condition_emits_one_event_and_nothing_else_does_in_any_history,
)];
