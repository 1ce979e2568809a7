//! Tests of weight 0 in exports, which earlier versions recognised by the message of the condition `Valid`. Today no
//! other decision reads a message: `support::reworded` checks this for the plans of all tests.

use crate::support::build::{
    Build, BuildExport, BuildInternalExport, IntoObject, condition, internal_export, named, no_conflict, seconds,
    service, service_export, slice, valid,
};
use crate::support::reworded::{compared, with_messages_of_earlier_versions};
use crate::support::view::{member_view, writes};
use crate::support::world::{Who, fleet};
use fleetnet_core::conditions;
use fleetnet_core::member::{Key, Planner};
use fleetnet_core::model::{Condition, ConsumerType, Kind, Object, ServiceExport};
use fleetnet_core::plan::{Action, Patch, Write};

fn export_key() -> Key {
    Key::Export(named("work/app"))
}

/// Returns the condition `Valid` of an export with weight 0, as the Go agents and fleetnet 0.1.0 write it.
fn weight_is_zero() -> Condition {
    condition("Valid", "True", "ServiceIsValid", "exported service work/app with 0 weight", 1)
}

/// Returns the condition of [`weight_is_zero`] with another message.
fn reworded() -> Condition {
    condition("Valid", "True", "ServiceIsValid", "other words", 1)
}

fn withdrawn(status: &str) -> Condition {
    condition("Withdrawn", status, "WeightIsZero", "other words", 1)
}

/// Returns the view of a ServiceExport with this weight, these conditions and our finalizer. The InternalServiceExport
/// of its Service is still in the hub.
fn view_of(weight: &str, conditions: &[Condition]) -> Planner {
    let export = service_export("work/app").marked().weighing(weight).with_conditions(conditions);
    let internal = internal_export("member-1", &service("work/app")).port_set_since(seconds(2));
    member_view([service("work/app").object(), export.object(), internal.object(), slice("work/app-1").object()])
}

fn deletes_the_export(writes: &[Write]) -> bool {
    matches!(writes, [Write { action: Action::Delete { kind: Kind::InternalServiceExport, .. }, .. }])
}

/// Rule S24: The agent restarts while the weight of a ServiceExport is 0, or after the weight was 0. The condition
/// `Valid` has the same reason for weight 0 and for an active export, so this reason does not show if the export was
/// withdrawn
/// Then: The member agent reads the condition `Withdrawn` of the ServiceExport to see if the export was withdrawn. The
/// write that changes `Valid` also sets `Withdrawn`, so `Withdrawn` costs no extra write. Earlier versions of the
/// member agent and Go agents do not write the condition `Withdrawn`. If a ServiceExport has no `Withdrawn`, the member
/// agent reads the message of `Valid` instead
///
/// Rule S25: The message of a condition differs from the message that this version of the agent writes, for example
/// because another version wrote the condition
/// Then: The member agent makes the same decisions as with its own message (exception: rule S24). The member agent
/// replaces the message with its own message. In the tests of all rules, other words in the messages of conditions must
/// not change the plan
#[test]
fn a_withdrawal_for_weight_zero_is_finished_whatever_the_messages() {
    let begun = [reworded(), no_conflict("work/app"), withdrawn("True")];
    assert!(deletes_the_export(&writes(&view_of("many", &begun), &export_key())), "an invalid weight starts nothing");
    let exported = [reworded(), no_conflict("work/app")];
    let kept = writes(&view_of("many", &exported), &export_key());
    assert!(kept.iter().all(|write| write.kind() == Kind::ServiceExport), "it was not withdrawn: {kept:#?}");
    let [Write { action: Action::Patch { patch: Patch::ServiceExportConditions(list), .. }, .. }, ..] =
        &writes(&view_of("5", &begun), &export_key())[..]
    else {
        panic!("it is exported again, and the condition says so");
    };
    assert_eq!(conditions::find(list, "Withdrawn").map(|held| held.status.as_str()), Some("False"));
    let over = [reworded(), no_conflict("work/app"), withdrawn("False")];
    let kept = writes(&view_of("many", &over), &export_key());
    assert!(kept.iter().all(|write| write.kind() == Kind::ServiceExport), "it is exported again: {kept:#?}");
}

/// Also rule S24.
#[test]
fn a_withdrawal_that_an_earlier_version_or_a_go_agent_began_is_finished() {
    with_messages_of_earlier_versions(|| {
        let begun = [weight_is_zero(), no_conflict("work/app")];
        assert!(deletes_the_export(&writes(&view_of("many", &begun), &export_key())));
        assert!(deletes_the_export(&writes(&view_of("0", &begun), &export_key())), "an upgrade costs no status write");
        let exported = [valid("work/app"), no_conflict("work/app")];
        let kept = writes(&view_of("many", &exported), &export_key());
        assert!(kept.iter().all(|write| write.kind() == Kind::ServiceExport), "{kept:#?}");
    });
}

/// Also rule S24.
#[test]
fn weight_zero_is_recorded_with_the_write_of_its_condition_valid() {
    let export_in = |world: &crate::support::world::World| -> ServiceExport {
        match world.cluster(Who::Member(0)).get(Kind::ServiceExport, &named("work/app")) {
            Some(Object::ServiceExport(export)) => export.clone(),
            other => panic!("{other:?}"),
        }
    };
    let said = |export: &ServiceExport| {
        let held = conditions::find(&export.conditions, "Withdrawn")?;
        Some((held.status.to_string(), held.reason.to_string()))
    };
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    assert_eq!(said(&export_in(&world)), None, "absent if the weight was never 0");
    let words = |status: &str, reason: &str| Some((status.to_owned(), reason.to_owned()));
    for (weight, expected) in [("0", words("True", "WeightIsZero")), ("5", words("False", "WeightIsNotZero"))] {
        let mark = world.ledger.len();
        world.edit(Who::Member(0), Kind::ServiceExport, &named("work/app"), |object| {
            if let Object::ServiceExport(export) = object {
                export.weight = Some(weight.into());
            }
        });
        world.run();
        assert_eq!(said(&export_in(&world)), expected, "weight {weight}");
        let statuses: Vec<&Vec<Condition>> = world.ledger[mark..]
            .iter()
            .filter_map(|entry| match &entry.write.action {
                Action::Patch { patch: Patch::ServiceExportConditions(list), .. } => Some(list),
                _ => None,
            })
            .collect();
        let words = conditions::find(statuses[0], "Withdrawn").map(|held| &*held.reason);
        assert_eq!(words, expected.as_ref().map(|(_, reason)| &**reason), "weight {weight}: the first status write");
    }
    assert!(compared() > 50, "plans were compared with those of reworded conditions");
}
