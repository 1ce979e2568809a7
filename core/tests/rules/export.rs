//! Tests of the member agent's exports of Services and slices.

use crate::support::build::{
    Build, BuildExport, BuildHubSlice, BuildInternalExport, BuildService, BuildSlice, IntoObject, accepted_export,
    claim, condition, conflict, content, distributed_slice, in_hub_of, internal_export, member_agent, named,
    no_conflict, pending, port, reference, seconds, service, service_export, service_import, slice, slice_export,
    valid,
};
use crate::support::view::{
    NOW, SEEN, blocking_reasons, events, hub_view, member_view, observe_change, observe_removal, planned, writes,
};
use fleetnet_core::features::Features;
use fleetnet_core::member::{Key, Planner, ServiceLatency};
use fleetnet_core::model::{
    AddressType, Condition, EndpointSlice, HubSlice, Kind, Object, Reference, Service, ServiceExport, ServicePort,
    ServiceType,
};
use fleetnet_core::plan::{Action, Desired, ExportContent, Patch, Plan, Sample, Write};
use fleetnet_types::WatchState;

fn export_content(number: i32) -> ExportContent {
    ExportContent { ports: vec![port("http", number)], ..ExportContent::default() }
}

fn app() -> Key {
    Key::Export(named("work/app"))
}

fn app_slice() -> Key {
    Key::SliceExport(named("work/app-1"))
}

/// Returns the condition with second 20 as its last transition time. The plans of these tests are made in this second.
fn now(condition: Condition) -> Condition {
    Condition { last_transition: seconds(20), ..condition }
}

fn conditions(export: &ServiceExport, list: &[Condition]) -> Write {
    Write::patch(&export.meta, Patch::ServiceExportConditions(list.to_vec()))
}

fn exported(service: &Service) -> Reference {
    reference("member-1", &service.meta, Some(SEEN))
}

fn sampled(write: Write) -> Write {
    write.measured(Some(Sample::ServiceExported { service: named("work/app") }))
}

/// Also rule S14.
#[test]
fn an_object_in_the_hub_whose_object_in_the_member_is_gone_is_removed_by_an_agent_that_starts() {
    let left = [
        (internal_export("member-1", &service("work/app")).object(), app()),
        (Object::EndpointSliceExport(slice_export("member-1", &slice("work/app-1"))), app_slice()),
        (claim("member-1", &service_import("work/app")).object(), Key::Import(named("work/app"))),
    ];
    for (object, key) in left {
        let mut view = member_view([]);
        assert_eq!(observe_change(&mut view, object.clone()), std::slice::from_ref(&key));
        assert_eq!(writes(&view, &key), [Write::delete(object.kind(), object.meta())]);
    }
}

/// Rule S1: A ServiceExport is created for an existing Service
/// Then: The member agent sets `Valid=True` and `Conflict=Unknown` on the ServiceExport. Then the member agent adds the
/// finalizer to the ServiceExport. Then the member agent creates the InternalServiceExport `<namespace>-<name>` in the
/// member namespace
#[test]
fn a_new_export_gets_a_condition_then_a_finalizer_then_an_internal_export() {
    let source = service("work/app").version(7);
    let fresh = service_export("work/app");
    let view = member_view([source.clone().object(), fresh.clone().object()]);
    let both = [now(valid("work/app")), now(pending("work/app"))];
    assert_eq!(writes(&view, &app()), [conditions(&fresh, &both)]);
    assert_eq!(events(&view, &app()), ["ServiceIsValid", "ServicePendingConflictResolution"]);

    let written = fresh.with_conditions(&[valid("work/app"), pending("work/app")]);
    let view = member_view([source.clone().object(), written.clone().object()]);
    assert_eq!(writes(&view, &app()), [Write::add_finalizer(Kind::ServiceExport, &written.meta)]);

    let view = member_view([source.clone().object(), written.marked().object()]);
    let desired = Desired::InternalServiceExport { reference: exported(&source), content: export_content(80) };
    let create = Write::create(in_hub_of("member-1", "work-app"), desired);
    assert_eq!(writes(&view, &app()), [sampled(create)]);
}

/// Rule S9: The hub agent sets the outcome (accepted or conflicted) of an export
/// Then: The member agent copies the outcome to the condition `Conflict` of the ServiceExport, if the outcome is for
/// the current generation of the InternalServiceExport
#[test]
fn the_outcome_of_the_hub_is_shown_once_it_is_about_the_current_export() {
    let source = service("work/app");
    let waiting = service_export("work/app").marked().with_conditions(&[valid("work/app"), pending("work/app")]);
    let stamped = internal_export("member-1", &source).port_set_since(seconds(2));
    let stale = stamped.clone().judged(no_conflict("work/app")).generation(2);
    let table = [
        (stamped.clone(), None, vec![]),
        (stale, None, vec![]),
        (stamped.clone().judged(no_conflict("work/app")), Some(no_conflict("work/app")), vec!["NoConflictFound"]),
        (stamped.judged(conflict("work/app")), Some(conflict("work/app")), vec!["ConflictFound"]),
    ];
    for (internal, outcome, tells) in table {
        let view = member_view([source.clone().object(), waiting.clone().object(), internal.clone().object()]);
        let expected: Vec<Write> =
            outcome.into_iter().map(|outcome| conditions(&waiting, &[valid("work/app"), now(outcome)])).collect();
        assert_eq!(writes(&view, &app()), expected, "{internal:?}");
        assert_eq!(events(&view, &app()), tells);
    }
}

/// Rule S8: The ports of an exported Service change
/// Then: The member agent updates the export with one write. A change of session affinity also costs one write, if the
/// hub announces the feature `SessionAffinity`. No other field of a Service is exported, so no other change of the
/// Service costs a write
#[test]
fn an_export_is_rewritten_only_when_its_ports_change() {
    let source = service("work/app");
    let standing = [
        accepted_export("work/app").object(),
        internal_export("member-1", &source).port_set_since(seconds(2)).judged(no_conflict("work/app")).object(),
    ];
    let touched = source.clone().version(9).with_address("192.0.2.1");
    let view = member_view(standing.iter().cloned().chain([touched.object()]));
    assert_eq!(writes(&view, &app()), []);

    let internal = internal_export("member-1", &source);
    let changed = source.version(9).ports(&[port("http", 81)]);
    let view = member_view(standing.into_iter().chain([changed.clone().object()]));
    let patch = Patch::InternalServiceExport { reference: exported(&changed), content: export_content(81) };
    let stamped = internal.port_set_since(seconds(2));
    assert_eq!(writes(&view, &app()), [sampled(Write::patch(&stamped.meta, patch))]);
}

/// Rule S11: An exported Service is deleted and created again
/// Then: The member agent deletes the old InternalServiceExport. Then the member agent makes no write for this Service
/// until the old InternalServiceExport is removed. Then the member agent creates the new InternalServiceExport (bug
/// B16)
#[test]
fn a_recreated_service_replaces_its_export() {
    let old =
        internal_export("member-1", &service("work/app")).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let export = accepted_export("work/app");
    let recreated = service("work/app").uid("uid-anew");
    let view = member_view([recreated.clone().object(), export.clone().object(), old.clone().object()]);
    let undecided = conditions(&export, &[valid("work/app"), now(pending("work/app"))]);
    assert_eq!(
        writes(&view, &app()),
        std::slice::from_ref(&undecided),
        "B9: the outcome for the old Service does not apply to the new one, and nothing else shows that once it is gone"
    );
    let updated = export.clone().with_conditions(&[valid("work/app"), now(pending("work/app"))]);
    let view = member_view([recreated.clone().object(), updated.clone().object(), old.clone().object()]);
    assert_eq!(writes(&view, &app()), [Write::delete(Kind::InternalServiceExport, &old.meta)]);
    let view = member_view([recreated.clone().object(), export.object(), old.clone().deleting().object()]);
    assert_eq!(writes(&view, &app()), [undecided]);
    let view = member_view([recreated.object(), updated.object(), old.deleting().object()]);
    assert_eq!(writes(&view, &app()), [], "the name is held until the old one is gone");
}

/// Rule S2: The exported Service does not exist or is being deleted
/// Then: The member agent sets `Valid=False` (reason `ServiceNotFound`) on the ServiceExport, and withdraws the export
/// and its slices. As soon as the Service exists, the member agent exports the Service
///
/// Rule S3: The exported Service is of type ExternalName. Or the Service is headless and its ServiceExport does not
/// request headless export (rule F5)
/// Then: The member agent sets `Valid=False` (reason `ServiceIneligible`) on the ServiceExport, and withdraws the
/// export. When the Service becomes eligible, the member agent exports the Service again
///
/// Also rule S18.
#[test]
fn an_ineligible_service_is_withdrawn_and_reported() {
    let not_found = "service work/app is not found";
    let ineligible = "service work/app is not eligible for export";
    type Case<'a> = (&'a str, Vec<Service>, &'a str, &'a str, &'a str);
    let table: [Case<'_>; 5] = [
        ("no Service", vec![], "False", "ServiceNotFound", not_found),
        ("a dying Service", vec![service("work/app").deleting()], "False", "ServiceNotFound", not_found),
        (
            "ExternalName",
            vec![service("work/app").of_type(ServiceType::ExternalName)],
            "False",
            "ServiceIneligible",
            ineligible,
        ),
        ("headless", vec![service("work/app").headless()], "False", "ServiceIneligible", ineligible),
        ("weight 0", vec![service("work/app")], "True", "ServiceIsValid", "exported service work/app with 0 weight"),
    ];
    for (case, services, status, reason, message) in table {
        let weight = if case == "weight 0" { "0" } else { "1" };
        let export = accepted_export("work/app").weighing(weight);
        let internal = internal_export("member-1", &service("work/app")).port_set_since(seconds(2));
        let objects = || services.iter().cloned().map(IntoObject::object);
        let view = member_view(objects().chain([export.clone().object(), internal.clone().object()]));
        let mut valid = condition("Valid", status, reason, message, 1);
        if status == "False" {
            valid = now(valid); // with weight 0 the status stays `True`, so the transition time does not change
        }
        let mut expected = vec![valid, no_conflict("work/app")];
        if case == "weight 0" {
            let message = "service work/app is not exported because its weight is 0";
            expected.push(now(condition("Withdrawn", "True", "WeightIsZero", message, 1)));
        }
        let updated = conditions(&export, &expected);
        let delete = Write::delete(Kind::InternalServiceExport, &internal.meta);
        assert_eq!(writes(&view, &app()), [updated], "{case}: once it is withdrawn, nothing else tells that (B9)");
        assert_eq!(events(&view, &app()), [reason], "{case}: told by the condition's word");

        let written = export.with_conditions(&expected);
        let view = member_view(objects().chain([written.clone().object(), internal.clone().object()]));
        assert_eq!(writes(&view, &app()), [delete], "{case}");
        let dying = internal.deleting();
        let view = member_view(objects().chain([written.clone().object(), dying.object()]));
        let unmark = Write::remove_finalizer(Kind::ServiceExport, &written.meta);
        assert_eq!(writes(&view, &app()), [unmark], "{case}: withdrawn, so unmarked");
    }
}

/// Also rule S5.
#[test]
fn an_invalid_weight_changes_nothing_but_the_condition() {
    let source = service("work/app");
    let message = "serviceExport work/app has an invalid annotation networking.fleet.azure.com/weight: it is \
                   not a valid integer: many";
    let invalid = condition("Valid", "False", "ServiceExportInvalidWeightAnnotation", message, 1);
    let export = accepted_export("work/app").weighing("many");
    let updated = [now(invalid.clone()), no_conflict("work/app")];
    let internal = internal_export("member-1", &source).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let view = member_view([source.clone().object(), export.clone().object(), internal.object()]);
    assert_eq!(writes(&view, &app()), [conditions(&export, &updated)]);
    assert_eq!(events(&view, &app()), ["ServiceExportInvalidWeightAnnotation"]);

    // The agent keeps an existing export while the weight is malformed. If somebody deletes the export, the agent
    // creates it again.
    let written = export.with_conditions(&updated);
    let view = member_view([source.clone().object(), written.object()]);
    let kinds: Vec<Kind> = writes(&view, &app()).iter().map(|write| write.kind()).collect();
    assert_eq!(kinds, [Kind::InternalServiceExport]);

    // While the weight is malformed, the agent starts no new export.
    let fresh = service_export("work/app").weighing("many").with_conditions(&[invalid]);
    let view = member_view([source.clone().object(), fresh.clone().object()]);
    assert_eq!(writes(&view, &app()), []);

    // A hub that was restored has exports that the agent had withdrawn. One of this Service is an existing export
    // again. One of an earlier Service is withdrawn again.
    let restored = internal_export("member-1", &source);
    let view = member_view([source.clone().object(), fresh.clone().object(), restored.clone().object()]);
    assert_eq!(writes(&view, &app()), [Write::add_finalizer(Kind::ServiceExport, &fresh.meta)]);
    let view = member_view([source.uid("another").object(), fresh.object(), restored.clone().object()]);
    assert_eq!(writes(&view, &app()), [Write::delete(Kind::InternalServiceExport, &restored.meta)]);
}

fn with_ports(count: i32) -> Service {
    let ports: Vec<ServicePort> = (1..=count).map(|number| port(&format!("port-{number}"), number)).collect();
    service("work/app").ports(&ports)
}

/// Rule S23: A Service or a slice has more than 1,000 ports
/// Then: For a Service, the member agent sets `Valid=False` (reason `TooManyPorts`). For a slice, the member agent logs
/// the reason `TooManyPorts`. No new export starts, and existing exports stay unchanged
#[test]
fn a_service_with_too_many_ports_is_not_exported_and_its_user_gets_an_event() {
    let fresh = service_export("work/app");
    let message = "service work/app has 1001 ports, and at most 1000 can be exported";
    let too_many = condition("Valid", "False", "TooManyPorts", message, 1);
    let view = member_view([with_ports(1001).object(), fresh.clone().object()]);
    assert_eq!(writes(&view, &app()), [conditions(&fresh, &[now(too_many.clone())])]);
    assert_eq!(events(&view, &app()), ["TooManyPorts"]);
    let updated = fresh.clone().with_conditions(&[too_many]);
    assert_eq!(writes(&member_view([with_ports(1001).object(), updated.object()]), &app()), []);

    let view = member_view([with_ports(1000).object(), fresh.object()]);
    assert_eq!(events(&view, &app()), ["ServiceIsValid", "ServicePendingConflictResolution"], "one fewer fits");
}

/// Also rule S23.
#[test]
fn an_export_whose_service_comes_to_have_too_many_ports_stays_as_it_was() {
    let message = "service work/app has 1001 ports, and at most 1000 can be exported";
    let too_many = now(condition("Valid", "False", "TooManyPorts", message, 1));
    let updated = accepted_export("work/app").with_conditions(&[too_many, no_conflict("work/app")]);
    let stored =
        internal_export("member-1", &with_ports(1000)).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let standing = slice_export("member-1", &slice("work/app-1"));
    let mut grown = slice("work/app-1").generation(2).endpoints(&["10.0.0.9"]);
    grown.content.ports = vec![grown.content.ports[0].clone(); 1001];
    let mut full = slice("work/app-2");
    full.content.ports = vec![full.content.ports[0].clone(); 1000];
    let view = member_view([
        with_ports(1001).object(),
        updated.object(),
        stored.object(),
        Object::EndpointSliceExport(standing),
        grown.object(),
        full.object(),
    ]);
    assert_eq!(writes(&view, &app()), []);
    let key = |name: &str| Key::SliceExport(named(name));
    let plan = planned(&view, &key("work/app-1"));
    assert_eq!(plan.writes, []);
    let message = "EndpointSlice work/app-1 of cluster member-1 has 1001 ports, and at most 1000 can be exported. The \
                   exported slice stays as it was. Remove ports";
    assert_eq!(blocking_reasons(&plan), [("TooManyPorts", message)]);
    assert!(
        matches!(&writes(&view, &key("work/app-2"))[..], [Write { action: Action::Create(_), .. }]),
        "1000 ports can be exported"
    );
}

/// Rule S12: A ServiceExport is deleted
/// Then: The member agent deletes the InternalServiceExport. Then the member agent removes the finalizer of the
/// ServiceExport
///
/// Rule S14: The hub has an InternalServiceExport, but the member has no ServiceExport for this Service
/// Then: The member agent deletes this InternalServiceExport and its EndpointSliceExports
#[test]
fn a_deleted_export_is_withdrawn_then_unmarked() {
    let source = service("work/app");
    let dying = accepted_export("work/app").deleting();
    let internal = internal_export("member-1", &source).port_set_since(seconds(2));
    let view = member_view([source.clone().object(), dying.clone().object(), internal.clone().object()]);
    let delete = Write::delete(Kind::InternalServiceExport, &internal.meta);
    assert_eq!(writes(&view, &app()), std::slice::from_ref(&delete));
    let view = member_view([source.clone().object(), dying.clone().object(), internal.clone().deleting().object()]);
    assert_eq!(writes(&view, &app()), [Write::remove_finalizer(Kind::ServiceExport, &dying.meta)]);
    let view =
        member_view([source.clone().object(), service_export("work/app").with_finalizer("theirs").deleting().object()]);
    assert_eq!(writes(&view, &app()), [], "not marked, so nothing to undo");
    let view = member_view([source.object(), internal.object()]);
    assert_eq!(writes(&view, &app()), [delete], "a dangling export");
}

/// Also rule N1.
#[test]
fn a_name_that_another_service_uses_is_not_fought_for() {
    let other = internal_export("member-1", &service("work-app/x")).port_set_since(seconds(2));
    let mut other = other;
    other.meta.name = in_hub_of("member-1", "work-app");
    let export = service_export("work/app").marked().with_conditions(&[valid("work/app"), pending("work/app")]);
    let source = service("work/app").uid("0a1b2c3d-aaaa");
    let view = member_view([source.object(), export.object(), other.object()]);
    let names: Vec<_> = writes(&view, &app()).into_iter().map(|write| write.at).collect();
    assert_eq!(names, [in_hub_of("member-1", "work-app-0a1b2")]);
}

/// Rule L6: A Service is exported, and the member agent measures the export latency
/// Then: The member agent writes a new generation of the InternalServiceExport. The measured latency ends when the hub
/// agent sets the outcome (accepted or conflicted) for this generation
#[test]
fn a_services_latency_ends_with_the_outcome_of_the_written_generation() {
    let source = service("work/app");
    let internal = internal_export("member-1", &source);
    let mut view =
        member_view([source.clone().object(), accepted_export("work/app").object(), internal.clone().object()]);
    let judged = internal.port_set_since(seconds(2)).judged(no_conflict("work/app"));
    observe_change(&mut view, judged.clone().object());
    assert_eq!(view.service_latencies(), [], "nothing was written since");
    observe_change(&mut view, judged.clone().generation(2).object());
    view.service_exported(&named("work/app"), seconds(19));
    assert_eq!(view.service_latencies(), [], "the outcome is for generation 1");
    observe_change(&mut view, judged.clone().generation(2).with_finalizer("example.com/other").object());
    assert_eq!(view.service_latencies(), [], "another writer changed the export");
    let outcome = Condition { observed_generation: 2, ..no_conflict("work/app") };
    let mut without = view.clone();
    observe_removal(&mut without, &source.object());
    observe_change(&mut without, judged.clone().generation(2).judged(outcome.clone()).object());
    assert_eq!(without.service_latencies(), [], "the Service is gone");
    observe_change(&mut view, judged.generation(2).judged(outcome).object());
    let sample =
        |at| ServiceLatency { service: named("work/app"), exported_since: Some(seconds(5)), outcome_at: seconds(at) };
    assert_eq!(view.service_latencies(), [sample(20)]);
    assert_eq!(view.service_latencies(), [], "told once");
    view.service_exported(&named("work/app"), seconds(21));
    assert_eq!(view.service_latencies(), [sample(21)], "the watch showed the outcome before the answer came");
    let mut view = member_view([]);
    view.service_exported(&named("work/app"), seconds(21));
    assert_eq!(view, member_view([]), "the Service went before the answer came");
}

/// Returns the `exportedSince`, in seconds, of the InternalServiceExport that the agent creates after this change.
fn service_stamp(view: &mut Planner, object: Object, second: i64) -> Option<i64> {
    view.applied(object, seconds(second), &mut Vec::new());
    let stamp = writes(view, &app()).into_iter().find_map(|write| match write.action {
        Action::Create(Desired::InternalServiceExport { reference, .. }) => reference.exported_since,
        _ => None,
    });
    stamp.map(|since| since.0 / 1_000_000)
}

/// Also rule L6.
#[test]
fn the_stamp_of_a_service_is_of_the_last_change_of_what_is_exported() {
    let export = service_export("work/app").marked().with_conditions(&[valid("work/app"), pending("work/app")]);
    let (source, mut view) = (service("work/app"), member_view([export.clone().object()]));
    let addressed = Service { cluster_ips: vec!["10.96.0.1".into()], ..source.clone() };
    let changed = Service { ports: vec![port("http", 81)], ..addressed.clone() };
    let table = [
        (source.object(), 25, 25),
        (addressed.object(), 30, 25),
        (changed.object(), 40, 40),
        (export.clone().weighing("5").object(), 50, 40),
        (export.uid("uid-of-another").object(), 60, 60),
    ];
    for (object, second, expected) in table {
        assert_eq!(service_stamp(&mut view, object, second), Some(expected), "{second}");
    }
}

// === Exports of EndpointSlices ===

fn create_slice(view: &Planner, key: &Key) -> Option<(String, HubSlice)> {
    let planned = writes(view, key);
    let [Write { at, action: Action::Create(Desired::EndpointSliceExport(spec)), .. }] = &planned[..] else {
        assert_eq!(planned, []);
        return None;
    };
    let mut made = slice_export("member-1", &slice("work/app-1"));
    made.spec = spec.clone();
    Some((at.name.to_string(), made))
}

/// Rule E1: A Service with an accepted export has a source slice
/// Then: The member agent creates one EndpointSliceExport. The EndpointSliceExport contains the ready endpoints in the
/// same order as the source slice, the ports and a reference to the source slice. If the hub announces features, the
/// EndpointSliceExport also contains the fields of these features
#[test]
fn a_slice_of_an_accepted_export_is_exported_with_what_importers_need() {
    let source = slice("work/app-1").generation(4).version(77).endpoints(&["10.0.0.1", "10.0.0.2"]);
    let view = member_view([service("work/app").object(), accepted_export("work/app").object(), source.object()]);
    let (name, made) = create_slice(&view, &app_slice()).expect("exported");
    assert_eq!(name, "member-1-work-app-1-e095f");
    let expected = Reference {
        cluster: "member-1".into(),
        source: named("work/app-1"),
        uid: "uid-app-1".into(),
        resource_version: "77".into(),
        generation: 4,
        exported_since: Some(SEEN),
    };
    assert_eq!(made.spec.reference, expected);
    assert_eq!(made.spec.owner, named("work/app"));
    assert_eq!(*made.spec.content, content(&["10.0.0.1", "10.0.0.2"]));
}

/// Rule E2: The export of a Service is pending, conflicted or being deleted, has weight 0, or has no Service. Or the
/// slice is being deleted, belongs to no Service, or is an imported slice. Or the address type of the slice is FQDN, or
/// is IPv6 while the hub does not announce the feature `IPv6`
/// Then: The member agent does not export the slice, and withdraws the EndpointSliceExport if one exists
///
/// Also rule E11.
#[test]
fn only_ready_to_go_slices_of_accepted_exports_are_exported() {
    let source = slice("work/app-1");
    let with = |export: ServiceExport| vec![service("work/app").object(), export.object()];
    let accepted = || with(accepted_export("work/app"));
    let imported_here = Object::EndpointSliceImport(
        distributed_slice("member-1", &slice_export("member-2", &source)).called("app-1").marked(),
    );
    let mut v6 = source.clone();
    v6.content.address_type = AddressType::IPv6;
    let mut fqdn = source.clone();
    fqdn.content.address_type = AddressType::Other("FQDN".into());
    let mut annotated = source.clone();
    annotated.observed_generation = Some(1);
    let mut nobodys = source.clone();
    nobodys.service = None;
    let mut ours = source.clone();
    ours.imported = true;
    let mut unlabelled = slice("fleet-system/app-1");
    unlabelled.meta.uid = "uid-app-1".into();
    let go_form = member_agent("member-1", Features::ALL, Features::NONE).object();
    let to_go_form_hub = accepted().into_iter().chain([go_form]).collect();
    let table = [
        ("accepted", accepted(), source.clone(), true),
        ("with an annotation of imported slices", accepted(), annotated, true),
        ("with an invalid weight", with(accepted_export("work/app").weighing("many")), source.clone(), true),
        ("no ServiceExport", vec![service("work/app").object()], source.clone(), false),
        ("no Service", vec![accepted_export("work/app").object()], source.clone(), false),
        ("weight 0", with(accepted_export("work/app").weighing("0")), source.clone(), false),
        ("a dying export", with(accepted_export("work/app").deleting()), source.clone(), false),
        (
            "pending",
            with(accepted_export("work/app").with_conditions(&[valid("work/app"), pending("work/app")])),
            source.clone(),
            false,
        ),
        (
            "in conflict",
            with(accepted_export("work/app").with_conditions(&[valid("work/app"), conflict("work/app")])),
            source.clone(),
            false,
        ),
        ("a dying slice", accepted(), source.deleting(), false),
        ("IPv6: not in the Go form", to_go_form_hub, v6, false),
        ("FQDN", accepted(), fqdn, false),
        ("a slice without Service", accepted(), nobodys, false),
        ("a slice that we imported", accepted(), ours, false),
    ];
    for (case, others, source, expected) in table {
        let export = Object::EndpointSliceExport(slice_export("member-1", &slice("work/app-1")));
        let view = member_view(others.iter().cloned().chain([source.clone().object()]));
        assert_eq!(create_slice(&view, &app_slice()).is_some(), expected, "{case}");
        let view = member_view(others.into_iter().chain([source.object(), export.clone()]));
        let withdrawn = [Write::delete(Kind::EndpointSliceExport, export.meta())];
        let planned = writes(&view, &app_slice());
        assert_eq!(planned, if expected { &[][..] } else { &withdrawn[..] }, "{case}: what was exported");
    }
    // A slice in `fleet-system` with the name of an imported slice is not exported, even if somebody has removed its
    // labels.
    let system = [service("fleet-system/app").object(), accepted_export("fleet-system/app").object()];
    let view = member_view(system.into_iter().chain([unlabelled.object(), imported_here]));
    assert_eq!(writes(&view, &Key::SliceExport(named("fleet-system/app-1"))), []);
}

/// Also rule E2.
#[test]
fn the_present_answer_of_the_hub_counts_before_the_one_that_the_export_shows() {
    let denied = condition("Valid", "False", "ExporterNotAllowed", "denied", 1);
    let shows = |list: &[Condition]| accepted_export("work/app").with_conditions(list);
    let (internal, export) = (internal_export("member-1", &service("work/app")), accepted_export("work/app"));
    let table = [
        (export.clone(), internal.clone(), true),
        (export, internal.clone().judged(denied.clone()), false),
        (shows(&[denied.clone(), no_conflict("work/app")]), internal.clone(), false),
        (shows(&[denied, no_conflict("work/app")]), internal.clone().judged(no_conflict("work/app")), true),
        (shows(&[valid("work/app"), conflict("work/app")]), internal.judged(no_conflict("work/app")), true),
    ];
    for (export, internal, expected) in table {
        let objects = [service("work/app").object(), export.clone().object(), internal.clone().object()];
        let view = member_view(objects.into_iter().chain([slice("work/app-1").object()]));
        assert_eq!(create_slice(&view, &app_slice()).is_some(), expected, "{export:?} {internal:?}");
    }
}

/// Returns a view of a member with the exported Service `work/app`, the slice `work/app-1`, and these exports.
fn slice_view(exports: impl IntoIterator<Item = HubSlice>) -> Planner {
    let objects = [service("work/app").object(), accepted_export("work/app").object(), slice("work/app-1").object()];
    member_view(objects.into_iter().chain(exports.into_iter().map(Object::EndpointSliceExport)))
}

#[test]
fn what_another_writer_edits_in_an_export_of_a_slice_is_repaired() {
    let export = slice_export("member-1", &slice("work/app-1"));
    assert_eq!(planned(&slice_view([export.clone()]), &app_slice()), Plan::default());
    let edits: [fn(&mut HubSlice); 5] = [
        |export| export.spec.reference.cluster = "member-9".into(),
        |export| export.spec.reference.source = named("work/other"),
        |export| export.spec.owner = named("work/other"),
        |export| export.spec.content = content(&["10.0.0.9"]).into(),
        |export| export.misnamed = true,
    ];
    for edit in edits {
        let mut edited = export.clone();
        edit(&mut edited);
        let planned = writes(&slice_view([edited.clone()]), &app_slice());
        let [Write { at, action: Action::Patch { patch: Patch::EndpointSliceExport(spec), .. }, .. }] = &planned[..]
        else {
            panic!("one patch, not {planned:#?}")
        };
        let mut repaired = spec.clone();
        repaired.reference.exported_since = export.spec.reference.exported_since;
        assert_eq!((at, repaired), (&edited.meta.name, export.spec.clone()), "{edited:?}");
    }
}

#[test]
fn an_export_of_a_slice_that_is_being_deleted_is_neither_kept_nor_deleted_again() {
    let export = slice_export("member-1", &slice("work/app-1"));
    let mut going = export.clone().called("another").deleting();
    going.spec.reference.generation = 2;
    assert_eq!(writes(&slice_view([export.clone(), going]), &app_slice()), []);
    // It has the first name of the slice's next export, and another slice has the second one. So the slice waits.
    let mut theirs = export.clone().called("member-1-work-app-1-e095fccc09");
    (theirs.spec.reference.uid, theirs.spec.reference.source) = ("another".into(), named("work/other"));
    assert_eq!(planned(&slice_view([export.deleting(), theirs]), &app_slice()), Plan::default());
}

/// Rule E4: The EndpointSliceExport of another source slice already has the name that rule E3 gives
/// Then: The member agent uses 10 hex digits instead of 5 in the name of the new EndpointSliceExport
#[test]
fn a_slice_whose_short_name_another_source_uses_gets_the_long_one() {
    let source = slice("work/app-1");
    let mut other = slice_export("member-1", &source);
    other.spec.reference.uid = "uid-of-another".into();
    other.spec.reference.source = named("work/other");
    let view = member_view([
        service("work/app").object(),
        accepted_export("work/app").object(),
        source.object(),
        Object::EndpointSliceExport(other),
    ]);
    let (name, _) = create_slice(&view, &app_slice()).expect("exported");
    assert_eq!(name, "member-1-work-app-1-e095fccc09");
}

/// Returns the `exportedSince`, in seconds, of the export that the agent plans.
fn stamp(view: &Planner) -> Option<i64> {
    let planned = writes(view, &app_slice());
    let [Write { action, .. }] = &planned[..] else {
        assert_eq!(planned, []);
        return None;
    };
    let (Action::Patch { patch: Patch::EndpointSliceExport(spec), .. }
    | Action::Create(Desired::EndpointSliceExport(spec))) = action
    else {
        panic!("{action:?}")
    };
    spec.reference.exported_since.map(|since| since.0 / 1_000_000)
}

/// Returns the view of a member after these changes of an exported slice. Each change has a second, a generation and
/// endpoints.
fn changed(source: &EndpointSlice, changes: &[(i64, i64, &[&str])]) -> Planner {
    let mut view = member_view([
        service("work/app").object(),
        accepted_export("work/app").object(),
        source.clone().object(),
        Object::EndpointSliceExport(slice_export("member-1", source)),
    ]);
    for (at, generation, endpoints) in changes {
        let changed = source.clone().generation(*generation).endpoints(endpoints);
        view.applied(changed.object(), seconds(*at), &mut Vec::new());
    }
    view
}

fn stamp_after(changes: &[(i64, i64, &[&str])]) -> Option<i64> {
    stamp(&changed(&slice("work/app-1"), changes))
}

/// Rule L1: A source slice changes
/// Then: The member agent sets `exportedSince` of the EndpointSliceExport to a time in microseconds: when the agent
/// first saw the oldest change that the hub does not have yet
#[test]
fn the_stamp_is_when_the_oldest_change_that_the_hub_lacks_was_first_seen() {
    let same: &[&str] = &["10.0.0.1"];
    let other: &[&str] = &["10.0.0.9"];
    assert_eq!(stamp_after(&[(30, 2, other)]), Some(30));
    assert_eq!(stamp_after(&[(30, 2, other), (40, 3, &["10.0.0.8"])]), Some(30));
    assert_eq!(stamp_after(&[(30, 2, same)]), None, "nothing to export");
    assert_eq!(stamp_after(&[(30, 2, same), (40, 3, other)]), Some(40), "what importers cannot see has no stamp");
    assert_eq!(stamp_after(&[(30, 2, other), (40, 3, same)]), None, "and back");
    assert_eq!(stamp_after(&[(30, 2, other), (40, 3, same), (50, 4, other)]), Some(50), "there, back, and there again");
}

/// Also rule L1.
#[test]
fn the_stamp_follows_the_generation_that_the_hub_has() {
    type Changes<'a> = &'a [(i64, i64, &'a [&'a str])];
    let (old, new): (&[&str], &[&str]) = (&["10.0.0.9"], &["10.0.0.8"]);
    let table: [(&str, Changes<'_>, (i64, &str), i64); 3] = [
        ("the hub has the first change", &[(30, 2, old), (40, 3, new)], (2, "10.0.0.9"), 40),
        ("the hub has a generation without a change", &[(30, 2, old), (35, 3, old), (40, 4, new)], (3, "10.0.0.9"), 40),
        ("somebody edits the export", &[(30, 2, old), (35, 3, old)], (2, "10.6.6.6"), 30),
    ];
    let source = slice("work/app-1");
    for (case, changes, (generation, address), expected) in table {
        let mut view = changed(&source, changes);
        let in_hub = slice_export("member-1", &source).with_addresses(&[address], generation);
        view.applied(Object::EndpointSliceExport(in_hub), seconds(45), &mut Vec::new());
        assert_eq!(stamp(&view), Some(expected), "{case}");
    }
}

/// Also rule L1.
#[test]
fn the_stamp_of_a_slice_that_was_created_again_is_of_no_earlier_slice() {
    let source = slice("work/app-1").generation(5);
    let mut view = changed(&source, &[(20, 6, &["10.0.0.7"])]);
    let again = source.clone().uid("uid-of-another").generation(1).endpoints(&["10.0.0.9"]);
    view.applied(again.object(), seconds(30), &mut Vec::new());
    assert_eq!(stamp(&view), Some(30));
    let of_earlier = HubSlice { observed_generation: Some(5), ..slice_export("member-1", &source) };
    view.applied(Object::EndpointSliceExport(of_earlier), seconds(45), &mut Vec::new());
    assert_eq!(stamp(&view), Some(30), "the hub does not have this slice");
}

/// Also rule L1.
#[test]
fn a_slice_that_the_hub_begins_to_support_is_stamped_then() {
    let mut six = slice("work/app-1");
    six.content.address_type = AddressType::IPv6;
    let mut view = member_view([service("work/app").object(), accepted_export("work/app").object(), six.object()]);
    assert_eq!(stamp(&view), None);
    let agent = member_agent("member-1", Features::ALL, Features::ALL);
    view.applied(agent.object(), seconds(30), &mut Vec::new());
    assert_eq!(stamp(&view), Some(30));
}

/// Rule L2: The agent restarts, or repairs another field of an EndpointSliceExport
/// Then: The time in `exportedSince` stays the same as long as the content of the slice does not change
#[test]
fn the_stamp_of_content_that_the_hub_has_is_kept() {
    let source = slice("work/app-1").generation(2);
    let mut export = slice_export("member-1", &source);
    export.spec.owner = named("work/old"); // another field needs repair too
    let view = member_view([
        service("work/app").object(),
        accepted_export("work/app").object(),
        source.object(),
        Object::EndpointSliceExport(export),
    ]);
    let planned = writes(&view, &app_slice());
    let [Write { action: Action::Patch { patch: Patch::EndpointSliceExport(spec), .. }, .. }] = &planned[..] else {
        panic!("one patch, not {planned:#?}");
    };
    assert_eq!(spec.reference.exported_since, Some(seconds(5)), "same content, same stamp, also after a restart");
}

/// Rule L3: The hub has lost an EndpointSliceExport
/// Then: The member agent creates the EndpointSliceExport again, and sets `exportedSince` to the time when the agent
/// saw the loss
#[test]
fn an_export_that_the_hub_lost_is_stamped_when_that_was_seen() {
    let source = slice("work/app-1");
    let export = Object::EndpointSliceExport(slice_export("member-1", &source));
    let mut view = member_view([
        service("work/app").object(),
        accepted_export("work/app").object(),
        source.object(),
        export.clone(),
    ]);
    assert_eq!(observe_removal(&mut view, &export), [app_slice()]);
    let (_, made) = create_slice(&view, &app_slice()).expect("exported anew");
    assert_eq!(made.spec.reference.exported_since, Some(seconds(20)));
}

/// Rule L4: The member agent sees a change of a slice before the hub agent accepts the export
/// Then: The measured latency of this change starts when the hub agent accepts the export
#[test]
fn a_change_seen_before_the_export_was_accepted_counts_from_then() {
    let waiting = service_export("work/app").marked().with_conditions(&[valid("work/app"), pending("work/app")]);
    let mut view = member_view([service("work/app").object(), waiting.object(), slice("work/app-1").object()]);
    let requeue = observe_change(&mut view, accepted_export("work/app").object());
    assert_eq!(requeue, [app(), app_slice()]);
    let (_, made) = create_slice(&view, &app_slice()).expect("exported");
    assert_eq!(made.spec.reference.exported_since, Some(seconds(20)));
}

#[test]
fn nothing_is_exported_before_the_views_are_complete() {
    for kind in [Kind::Service, Kind::ServiceExport] {
        let mut view = member_view([service("work/app").object(), service_export("work/app").object()]);
        view.watch_state(kind, WatchState::Incomplete, SEEN, &mut Vec::new());
        assert!(planned(&view, &app()).writes.is_empty(), "{kind:?}");
    }
    // The agent sets the condition for a missing Service even while it does not know the objects in the hub.
    let mut view = member_view([service_export("work/app").object()]);
    view.watch_state(Kind::InternalServiceExport, WatchState::Unknown, SEEN, &mut Vec::new());
    let kinds: Vec<Kind> = writes(&view, &app()).iter().map(|write| write.kind()).collect();
    assert_eq!(kinds, [Kind::ServiceExport]);
    assert!(hub_view([]).plan(&fleetnet_core::hub::Key::Service(named("work/app")), NOW).writes.is_empty());
}

#[test]
fn a_withdrawal_writes_the_service_export_once_and_waits_for_the_list_of_exports() {
    let export = service_export("work/app").marked();
    let internal = internal_export("member-1", &service("work/app"));
    let view = member_view([export.clone().object()]);
    assert_eq!(writes(&view, &app()), [Write::remove_finalizer(Kind::ServiceExport, &export.meta)]);
    let view = member_view([export.object(), internal.clone().object()]);
    let kinds: Vec<Kind> = writes(&view, &app()).iter().map(Write::kind).collect();
    assert_eq!(kinds, [Kind::InternalServiceExport, Kind::ServiceExport]);
    for object in [internal.object(), accepted_export("work/app").deleting().object()] {
        let mut view = member_view([object]);
        assert_eq!(writes(&view, &app()).len(), 1);
        view.watch_state(Kind::InternalServiceExport, WatchState::Incomplete, NOW, &mut Vec::new());
        assert_eq!(writes(&view, &app()), []);
    }
}

const ZERO_WEIGHT: &str = "exported service work/app with 0 weight";

fn withdrawn() -> Condition {
    condition("Withdrawn", "True", "WeightIsZero", "service work/app is not exported because its weight is 0", 1)
}

#[test]
fn a_withdrawal_that_has_begun_is_completed_before_another_problem_is_shown() {
    let not_valid = |reason| vec![condition("Valid", "False", reason, "as before", 1)];
    let began = [
        not_valid("ServiceNotFound"),
        not_valid("ServiceIneligible"),
        not_valid("ServiceImported"),
        vec![condition("Valid", "True", "ServiceIsValid", ZERO_WEIGHT, 1), withdrawn()],
    ];
    let internal = internal_export("member-1", &service("work/app")).port_set_since(seconds(2));
    let delete = [Write::delete(Kind::InternalServiceExport, &internal.meta)];
    for conditions in began {
        let export = service_export("work/app").marked().with_conditions(&conditions);
        for (source, weight) in [(service("work/app"), "many"), (with_ports(1001), "1")] {
            let export = export.clone().weighing(weight);
            let view = member_view([source.object(), export.object(), internal.clone().object()]);
            assert_eq!(writes(&view, &app()), delete, "{conditions:?}");
        }
    }
    // A restored hub has the export again, which the agent continues. The weight was 0 before.
    let shown = [condition("Valid", "False", "ServiceExportInvalidWeightAnnotation", "as before", 1), withdrawn()];
    let export = service_export("work/app").marked().weighing("many").with_conditions(&shown);
    let view = member_view([service("work/app").object(), export.object(), internal.object()]);
    assert_eq!(writes(&view, &app()).iter().map(Write::kind).collect::<Vec<_>>(), [Kind::ServiceExport]);
}

#[test]
fn the_conditions_of_weight_zero_are_of_the_present_generation() {
    let shown = [condition("Valid", "True", "ServiceIsValid", ZERO_WEIGHT, 1), withdrawn()];
    let export = service_export("work/app").marked().weighing("0").with_conditions(&shown).generation(2);
    let internal = internal_export("member-1", &service("work/app")).port_set_since(seconds(2));
    let view = member_view([service("work/app").object(), export.clone().object(), internal.clone().object()]);
    let expected = shown.map(|condition| Condition { observed_generation: 2, ..condition });
    let delete = Write::delete(Kind::InternalServiceExport, &internal.meta);
    assert_eq!(writes(&view, &app()), [delete, conditions(&export, &expected)]);
}

/// Returns the reasons of the conditions that the plan writes to the ServiceExport.
fn reasons(view: &Planner) -> Vec<String> {
    let list = writes(view, &app()).into_iter().find_map(|write| match write.action {
        Action::Patch { patch: Patch::ServiceExportConditions(list), .. } => Some(list),
        _ => None,
    });
    list.into_iter().flatten().map(|condition| condition.reason.to_string()).collect()
}

#[test]
fn a_malformed_weight_is_shown_before_a_denial_and_a_rejection() {
    let (source, export) = (service("work/app"), accepted_export("work/app").weighing("many"));
    let mut view = member_view([source.clone().object(), export.clone().object()]);
    view.write_rejected(&app(), "the hub rejects it".to_owned());
    assert_eq!(reasons(&view), ["ServiceExportInvalidWeightAnnotation", "NoConflictFound"]);
    let fit = accepted_export("work/app");
    let mut rejected = member_view([source.clone().object(), fit.object()]);
    rejected.write_rejected(&app(), "the hub rejects it".to_owned());
    assert_eq!(reasons(&rejected), ["WriteRefused", "NoConflictFound"]);
    rejected.forget_rejection(&app());
    assert_eq!(reasons(&rejected), [""; 0], "the export is written");
    let denied = condition("Valid", "False", "ExporterNotAllowed", "denied", 1);
    let internal = internal_export("member-1", &source).judged(denied);
    let view = member_view([source.object(), export.object(), internal.object()]);
    assert_eq!(reasons(&view), ["ServiceExportInvalidWeightAnnotation", "NoConflictFound"]);
}

#[test]
fn an_export_without_an_outcome_in_the_hub_is_pending() {
    let (source, export) = (service("work/app"), accepted_export("work/app").with_conditions(&[valid("work/app")]));
    let internal = internal_export("member-1", &source).port_set_since(seconds(2));
    for internal in [internal.clone(), internal.judged(no_conflict("work/app")).deleting()] {
        let view = member_view([source.clone().object(), export.clone().object(), internal.object()]);
        assert_eq!(reasons(&view), ["ServiceIsValid", "ServicePendingConflictResolution"]);
    }
}

#[test]
fn as_many_ports_as_the_hub_accepts_are_exported_and_no_more() {
    for (count, expected) in [(1_000, 1), (1_001, 0)] {
        let view = member_view([with_ports(count).object(), accepted_export("work/app").object()]);
        let in_hub = |write: &Write| write.kind() == Kind::InternalServiceExport;
        assert_eq!(writes(&view, &app()).into_iter().filter(in_hub).count(), expected, "{count}");
    }
}

#[test]
fn while_the_features_of_the_hub_are_assumed_an_export_may_have_more_than_the_go_form() {
    let affine = |mut service: Service| {
        service.session_affinity = fleetnet_core::model::SessionAffinity::ClientIp { timeout_seconds: 60 };
        service
    };
    let (source, fuller) = (service("work/app"), affine(service("work/app")));
    let view = |source: &Service, of: &Service| {
        let internal = internal_export("member-1", of).judged(no_conflict("work/app"));
        // The first announcement of the hub agent may still come.
        member_view([source.clone().object(), accepted_export("work/app").object(), internal.object()])
    };
    let planned = |source: &Service, of: &Service| {
        let plan = planned(&view(source, of), &app());
        (plan.writes.len(), plan.again.is_some())
    };
    assert_eq!(planned(&source, &source), (0, false));
    assert_eq!(planned(&fuller, &fuller), (0, true), "it stays until the features are known");
    assert_eq!(planned(&source, &source.clone().headless()).0, 1, "the Service is not headless");
}
