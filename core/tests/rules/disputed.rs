//! Tests of disputes: another writer undoes an agent's writes again and again. The condition `Disputed` shows this
//! writer to the user of the export or import.

use crate::support::build::{
    Build, BuildExport, BuildImport, BuildInternalExport, BuildRequest, IntoObject, accepted_export, condition,
    derived_service, found, internal_export, named, no_conflict, request, resolved, seconds, service, service_import,
};
use crate::support::view::{NOW, hub_view, member_view, observe_change, writes};
use fleetnet_core::member::{Key, Planner};
use fleetnet_core::model::{Condition, Kind, Object};
use fleetnet_core::plan::{Action, Patch, Write};
use fleetnet_core::{conditions, hub};
use fleetnet_types::ObjectName;

const MESSAGE: &str = "another writer undoes the agent's writes to EndpointSlice fleet-system/a";

/// Returns status, reason and message of the condition `Disputed`.
fn disputed_condition(conditions: &[Condition]) -> Option<(&str, &str, &str)> {
    conditions::find(conditions, "Disputed")
        .map(|condition| (condition.status.as_str(), &*condition.reason, &*condition.message))
}

/// Returns the conditions that the only write of a plan sets.
fn set(writes: &[Write]) -> Vec<Condition> {
    let [Write { action: Action::Patch { patch, .. }, .. }] = writes else { panic!("{writes:?}") };
    match patch {
        Patch::MultiClusterServiceStatus { conditions, .. }
        | Patch::ServiceExportConditions(conditions)
        | Patch::InternalServiceExportConditions(conditions)
        | Patch::InternalServiceExportMerge { conditions, precedence: _ } => conditions.clone(),
        other => panic!("{other:?}"),
    }
}

fn slice() -> (Kind, ObjectName) {
    (Kind::EndpointSlice, named("fleet-system/a"))
}

fn importer(disputed_condition: &[Condition]) -> Planner {
    let conditions: Vec<Condition> = [found()].into_iter().chain(disputed_condition.iter().cloned()).collect();
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&conditions);
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"]));
    member_view([request.object(), import.object(), derived_service("work-app", "work/app").object()])
}

/// Rule R15: Another writer undoes an agent's writes, and the agent repairs the object only once a minute (rule A12)
/// Then: The member agent emits `WritesUndone` and sets `Disputed=True` on the ServiceExport or MultiClusterService.
/// The hub agent emits the same Event and sets the same condition on the InternalServiceExports of the Service. The
/// message contains the name of the object. If `metadata.managedFields` shows the field managers that changed the
/// object, the message lists these managers with their fields. The condition describes at most three disputes, and says
/// how many other disputes exist. The agent sets `Disputed=False` when nobody has undone a repair for a minute, or
/// after a restart
#[test]
fn the_import_shows_a_dispute_until_it_ends() {
    let key = Key::MultiClusterService(named("work/app"));
    let mut view = importer(&[]);
    assert_eq!(writes(&view, &key), [], "nothing is disputed");
    let mut requeue = Vec::new();
    let about = Some((Kind::MultiClusterService, named("work/app")));
    view.disputed(about.clone(), slice(), Some(MESSAGE.to_owned()), &mut requeue);
    assert_eq!(requeue, std::slice::from_ref(&key));
    let planned = writes(&view, &key);
    assert_eq!(planned[0].events, [], "the runtime tells it");
    let disputed = set(&planned);
    assert_eq!(disputed_condition(&disputed), Some(("True", "WritesUndone", MESSAGE)));
    assert_eq!(conditions::find(&disputed, "Valid"), Some(&found()), "it is imported all the same");

    // A restarted agent does not know about the dispute, so it sets the condition to False. If the other writer
    // continues, the agent detects the dispute again.
    let view = importer(&disputed[1..]);
    let no_more = "no other writer undoes the agents' writes";
    let over = set(&writes(&view, &key));
    assert_eq!(disputed_condition(&over), Some(("False", "WritesStand", no_more)));
    let mut view = importer(&over[1..]);
    assert_eq!(writes(&view, &key), [], "said once");

    view.disputed(about, slice(), Some(MESSAGE.to_owned()), &mut Vec::new());
    view.disputed(None, slice(), None, &mut requeue);
    assert_eq!(requeue.last(), Some(&key));
    assert_eq!(writes(&view, &key), [], "it was over before it was said");
}

/// Also rule R15.
#[test]
fn the_condition_names_all_disputed_objects_of_its_import_only() {
    let mut view = importer(&[]);
    let key = Key::MultiClusterService(named("work/app"));
    let of = |path: &str| Some((Kind::MultiClusterService, named(path)));
    let message = |text: &str| Some(text.to_owned());
    view.disputed(of("work/app"), slice(), message("a"), &mut Vec::new());
    view.disputed(of("work/app"), (Kind::Service, named("fleet-system/a")), message("b"), &mut Vec::new());
    view.disputed(of("work/other"), (Kind::Service, named("fleet-system/c")), message("c"), &mut Vec::new());
    assert_eq!(disputed_condition(&set(&writes(&view, &key))), Some(("True", "WritesUndone", "b; a")));
    view.disputed(of("work/app"), slice(), None, &mut Vec::new());
    assert_eq!(disputed_condition(&set(&writes(&view, &key))), Some(("True", "WritesUndone", "b")));
}

/// Also rule R15.
#[test]
fn a_dispute_with_an_unchanged_message_requeues_nobody() {
    let mut view = importer(&[]);
    let key = Key::MultiClusterService(named("work/app"));
    let about = || Some((Kind::MultiClusterService, named("work/app")));
    let message = || Some(MESSAGE.to_owned());
    view.disputed(about(), slice(), message(), &mut Vec::new());
    let disputed_condition = set(&writes(&view, &key));
    let mut view = importer(&disputed_condition[1..]);
    view.disputed(about(), slice(), message(), &mut Vec::new());
    assert_eq!(writes(&view, &key), [], "the condition says it");
    let mut requeue = Vec::new();
    view.disputed(about(), slice(), message(), &mut requeue);
    assert_eq!(requeue, [], "nothing has changed");
    view.disputed(Some((Kind::MultiClusterService, named("work/other"))), slice(), message(), &mut requeue);
    assert_eq!(requeue, [key, Key::MultiClusterService(named("work/other"))], "it moves from one to the other");
}

/// Also rule R15.
#[test]
fn of_a_thousand_disputes_three_are_named_and_the_other_conditions_are_written_too() {
    let distributed =
        |number: usize| (Kind::EndpointSliceImport, named(&format!("fleet-member-member-2/a-{number:04}")));
    let message = |number: usize| format!("dispute {number} {}", "x".repeat(700));
    let service = service("work/app");
    let internal = internal_export("member-1", &service).port_set_since(seconds(2));
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let mut view = hub_view([internal.object(), import.object()]);
    for number in 0..1_000 {
        view.disputed(Some(named("work/app")), distributed(number), Some(message(number)), &mut Vec::new());
    }
    let planned = set(&writes(&view, &hub::Key::Service(named("work/app"))));
    let expected = format!("{}; {}; {}; and 997 more", message(0), message(1), message(2));
    assert_eq!(disputed_condition(&planned), Some(("True", "WritesUndone", &*expected)));
    let conflict = conditions::find(&planned, "Conflict").map(|condition| &*condition.reason);
    assert_eq!(conflict, Some("NoConflictFound"), "in the same write");

    let mut view = importer(&[]);
    for number in 0..1_000 {
        let about = Some((Kind::MultiClusterService, named("work/app")));
        view.disputed(about, distributed(number), Some(message(number)), &mut Vec::new());
    }
    let planned = set(&writes(&view, &Key::MultiClusterService(named("work/app"))));
    assert_eq!(disputed_condition(&planned), Some(("True", "WritesUndone", &*expected)));
}

/// Also rule R15.
#[test]
fn the_export_shows_disputes_of_member_agent_and_hub_agent() {
    let key = Key::Export(named("work/app"));
    let exporter = |reported_in_hub: &[Condition]| {
        let export = accepted_export("work/app");
        let service = service("work/app");
        let mut internal =
            internal_export("member-1", &service).port_set_since(seconds(2)).judged(no_conflict("work/app"));
        internal.conditions.extend(reported_in_hub.iter().cloned());
        member_view([export.object(), service.object(), internal.object()])
    };
    let mut view = exporter(&[]);
    assert_eq!(writes(&view, &key), []);
    let about = Some((Kind::ServiceExport, named("work/app")));
    view.disputed(about, slice(), Some(MESSAGE.to_owned()), &mut Vec::new());
    assert_eq!(disputed_condition(&set(&writes(&view, &key))), Some(("True", "WritesUndone", MESSAGE)));

    let in_hub = condition("Disputed", "True", "WritesUndone", "in the hub", 1);
    let mut view = exporter(&[in_hub]);
    let shown = set(&writes(&view, &key));
    assert_eq!(disputed_condition(&shown), Some(("True", "WritesUndone", "in the hub")));
    observe_change(&mut view, accepted_export("work/app").with_conditions(&shown).version(2).object());
    assert_eq!(writes(&view, &key), [], "said once");
    let about = Some((Kind::ServiceExport, named("work/app")));
    view.disputed(about, slice(), Some(MESSAGE.to_owned()), &mut Vec::new());
    assert_eq!(
        disputed_condition(&set(&writes(&view, &key))),
        Some(("True", "WritesUndone", MESSAGE)),
        "own dispute first"
    );
    let over = condition("Disputed", "False", "WritesStand", "no more", 1);
    assert_eq!(writes(&exporter(&[over]), &key), []);
}

/// Also rule R15.
#[test]
fn in_the_hub_the_exports_of_the_service_show_the_dispute() {
    let key = hub::Key::Service(named("work/app"));
    let service = service("work/app");
    let internal = internal_export("member-1", &service).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let objects: [Object; 2] = [internal.object(), import.object()];
    let mut view = hub_view(objects);
    assert_eq!(writes(&view, &key), []);
    let mut requeue = Vec::new();
    let distributed = (Kind::EndpointSliceImport, named("fleet-member-member-2/a"));
    view.disputed(Some(named("work/app")), distributed, Some(MESSAGE.to_owned()), &mut requeue);
    assert_eq!(requeue, std::slice::from_ref(&key));
    assert_eq!(disputed_condition(&set(&writes(&view, &key))), Some(("True", "WritesUndone", MESSAGE)));
    assert!(!view.plan(&key, NOW).writes.is_empty());
}
