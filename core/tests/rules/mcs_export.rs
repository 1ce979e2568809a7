//! Tests of exports by the standard API in the member agent.

use crate::support::build::{
    Build, BuildInternalExport, BuildService, IntoObject, accepted_export, condition, derived_service, in_hub_of,
    internal_export, mcs_export, mcs_part, member_agent, named, no_conflict, port, reference, seconds, service,
    service_export, slice, slice_export,
};
use crate::support::view::{NOW, SEEN, events, observe_change, observe_removal, planned, undecodable, writes};
use crate::support::world::settings;
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::limits::PORTS_MAX;
use fleetnet_core::member::{Key, McsApi, Planner, Settings};
use fleetnet_core::model::{
    Condition, ExportedBy, InternalServiceExport, IpFamily, Kind, McsExport, McsServiceExport, Object, Service,
    ServiceType,
};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Desired, ExportContent, Patch, Sample, Write};
use fleetnet_types::WatchState;
use std::sync::Arc;

fn app() -> Key {
    Key::Export(named("work/app"))
}

fn app_slice() -> Key {
    Key::SliceExport(named("work/app-1"))
}

/// Returns the view of a member agent that uses the standard API, with these objects and the announcement of the hub
/// agent.
fn view(objects: impl IntoIterator<Item = Object>) -> Planner {
    view_of(objects, Features::ALL)
}

fn view_of(objects: impl IntoIterator<Item = Object>, hub: Features) -> Planner {
    let mut view = Planner::new(Settings { mcs_api: McsApi::LabelledNamespaces, ..settings(0) });
    for kind in <Planner as crate::support::agent::View>::KINDS {
        view.watch_state(*kind, WatchState::Complete, SEEN, &mut Vec::new());
    }
    let hub = member_agent("member-1", Features::ALL, hub).object();
    for object in objects.into_iter().chain([hub]) {
        view.applied(object, SEEN, &mut Vec::new());
    }
    view
}

fn content(exported_by: ExportedBy) -> ExportContent {
    let part = McsExport { exported_by, export_created: Some(seconds(1)), ..mcs_part() };
    ExportContent { ports: vec![port("http", 80)], mcs: Some(Arc::new(part)), ..ExportContent::default() }
}

/// Returns the InternalServiceExport of `work/app` by these APIs, before the hub agent has seen it.
fn fresh(exported_by: ExportedBy) -> InternalServiceExport {
    internal_export("member-1", &service("work/app")).mcs(McsExport { exported_by, ..mcs_part() })
}

fn outcome(status: &str, reason: &str) -> Condition {
    condition("multicluster.x-k8s.io/Conflict", status, reason, "as the hub agent says", 1)
}

/// Returns the InternalServiceExport after the hub agent has merged it.
fn merged(exported_by: ExportedBy) -> InternalServiceExport {
    fresh(exported_by).judged(outcome("False", "NoConflicts"))
}

fn of_hub(plan: Vec<Write>) -> Vec<Write> {
    plan.into_iter().filter(|write| write.kind() == Kind::InternalServiceExport).collect()
}

/// Returns type, status and reason of each condition that the plan writes to the ServiceExport.
fn shown(view: &Planner) -> Vec<(String, &'static str, String)> {
    let list = writes(view, &app()).into_iter().find_map(|write| match write.action {
        Action::Patch { patch: Patch::McsServiceExportConditions(list), .. } => Some(list),
        _ => None,
    });
    let shown = |it: Condition| (it.condition_type.to_string(), it.status.as_str(), it.reason.to_string());
    list.into_iter().flatten().map(shown).collect()
}

fn states(list: &[(&str, &'static str, &str)]) -> Vec<(String, &'static str, String)> {
    list.iter().map(|(kind, status, reason)| ((*kind).to_owned(), *status, (*reason).to_owned())).collect()
}

/// Rule ME1: A user creates a ServiceExport of `multicluster.x-k8s.io`
/// Then: The member agent creates one InternalServiceExport with `spec.multicluster`, and sets `Valid=True`,
/// `Ready=Unknown` on the ServiceExport. After the hub agent has merged the export, the member agent sets `Ready=True`
/// and `Conflict`, in one write. Labels and annotations of Kubernetes and fleetnet are left out, and `Ready` names them
///
/// Rule ME8: The member agent writes `spec.multicluster` of an InternalServiceExport
/// Then: The part has the creationTimestamp of the ServiceExport. It also has `recreated`, if the hub agent has merged
/// the export before and the hub has lost it. An export of an earlier version gets the creationTimestamp only with its
/// next write
#[test]
fn a_mcs_export_needs_one_write_in_the_hub_and_two_of_its_status() {
    let source = service("work/app").version(7);
    let export = McsServiceExport {
        labels: [("team", "blue"), ("app.kubernetes.io/name", "x")].map(|(a, b)| (a.into(), b.into())).into(),
        annotations: [("note".into(), "n".into())].into(),
        ..mcs_export("work/app").created(seconds(3))
    };
    let source = Service {
        families: vec![IpFamily::IPv6, IpFamily::IPv4],
        internal_traffic_policy: Some("Local".into()),
        traffic_distribution: Some("PreferClose".into()),
        ..source
    };
    let mut view = view([source.clone().object(), export.clone().object()]);
    assert_eq!(shown(&view), states(&[("Valid", "True", "Valid"), ("Ready", "Unknown", "Pending")]));
    let [create] = &of_hub(writes(&view, &app()))[..] else { panic!() };
    let Action::Create(Desired::InternalServiceExport { reference: of, content }) = &create.action else { panic!() };
    assert_eq!(*of, reference("member-1", &source.meta, Some(SEEN)));
    assert_eq!(create.at, in_hub_of("member-1", "work-app"));
    assert_eq!(create.sample, Some(Sample::ServiceExported { service: named("work/app") }));
    let part = content.mcs.as_ref().expect("a part");
    assert_eq!((part.exported_by, part.is_recreated), (ExportedBy::McsApi, false));
    assert_eq!(part.export_created, Some(seconds(3)), "the precedence of the export");
    assert_eq!(part.properties.families, [IpFamily::IPv6, IpFamily::IPv4]);
    assert_eq!(part.properties.internal_traffic_policy.as_deref(), Some("Local"));
    assert_eq!(part.properties.traffic_distribution.as_deref(), Some("PreferClose"));
    assert_eq!(part.properties.labels, [("team".into(), "blue".into())].into(), "names of Kubernetes stay");
    assert_eq!(part.properties.annotations, export.annotations);

    let internal = InternalServiceExport { mcs: content.mcs.clone(), ..merged(ExportedBy::Both) };
    observe_change(&mut view, internal.object());
    let expected = [("Valid", "True", "Valid"), ("Ready", "True", "Exported"), ("Conflict", "False", "NoConflicts")];
    assert_eq!(shown(&view), states(&expected));
    let [Write { action: Action::Patch { patch: Patch::McsServiceExportConditions(list), .. }, .. }] =
        &writes(&view, &app())[..]
    else {
        panic!("one write")
    };
    assert!(list[1].message.contains("app.kubernetes.io/name"), "{}", list[1].message);
    observe_change(&mut view, McsServiceExport { conditions: list.clone(), ..export }.version(2).object());
    assert_eq!(writes(&view, &app()), []);
}

/// Also rules ME1, ME6.
#[test]
fn conflicts_are_shown_and_do_not_end_the_export() {
    let in_conflict = fresh(ExportedBy::McsApi).judged(outcome("True", "PortConflict,TypeConflict"));
    let objects = [service("work/app").object(), mcs_export("work/app").object(), in_conflict.object()];
    let view = view(objects.into_iter().chain([slice("work/app-1").object()]));
    let expected =
        [("Valid", "True", "Valid"), ("Ready", "True", "Exported"), ("Conflict", "True", "PortConflict,TypeConflict")];
    assert_eq!(shown(&view), states(&expected));
    assert!(events(&view, &app()).contains(&"ConflictFound"));
    assert!(matches!(writes(&view, &app_slice())[..], [Write { action: Action::Create(_), .. }]));
}

/// Rule ME4: The Service of a ServiceExport does not exist, or is of type ExternalName
/// Then: The member agent sets `Valid=False` with reason `NoService` or `InvalidServiceType`, and withdraws the export
///
/// Rule ME5: The hub agent does not announce the standard API, the Service has too many ports, or the hub denies or
/// rejects the export
/// Then: The member agent sets `Ready=False` with reason `Failed` and the cause as message. With too many ports, an
/// existing export stays as it was
#[test]
fn a_service_that_cannot_be_exported_is_not_and_the_export_says_why() {
    let name = named("work/app");
    let external = Service { service_type: ServiceType::ExternalName, ..service("work/app") };
    let many: Vec<_> = (0..=PORTS_MAX).map(|number| port(&format!("p-{number}"), 80)).collect();
    let table = [
        (vec![], [("Valid", "False", "NoService"), ("Ready", "False", "Failed")]),
        (vec![external.object()], [("Valid", "False", "InvalidServiceType"), ("Ready", "False", "Failed")]),
        (vec![service("work/app").ports(&many).object()], [("Valid", "True", "Valid"), ("Ready", "False", "Failed")]),
        (
            vec![service("work/app").deleting().object()],
            [("Valid", "False", "NoService"), ("Ready", "False", "Failed")],
        ),
    ];
    for (objects, expected) in table {
        let view = view(objects.into_iter().chain([mcs_export("work/app").object()]));
        assert_eq!(shown(&view), states(&expected));
        assert_eq!(of_hub(writes(&view, &app())), []);
    }
    let denied = fresh(ExportedBy::McsApi).judged(condition("Valid", "False", "ExporterNotAllowed", "denied", 1));
    let mut view = view([service("work/app").object(), mcs_export("work/app").object(), denied.object()]);
    assert_eq!(shown(&view), states(&[("Valid", "True", "Valid"), ("Ready", "False", "Failed")]));
    view.write_rejected(&Key::Export(name), "the hub says no".to_owned());
    assert!(events(&view, &app()).contains(&"ExporterNotAllowed"));
    let objects = [service("work/app").object(), mcs_export("work/app").object()];
    let mut settled = self::view(objects.into_iter().chain([merged(ExportedBy::McsApi).object()]));
    settled.write_rejected(&app(), "the hub says no".to_owned());
    assert!(!events(&settled, &app()).contains(&"WriteRefused"), "no write waits for the hub");
    let objects = [service("work/app").object(), mcs_export("work/app").object()];
    let of_both = [service_export("work/app").object(), merged(ExportedBy::Both).object()];
    let mut begins = self::view(objects.into_iter().chain(of_both));
    begins.write_rejected(&app(), "the hub says no".to_owned());
    assert!(events(&begins, &app()).contains(&"ServiceIsValid"), "the fleet's API begins with the conditions");
    assert!(!events(&begins, &app()).contains(&"WriteRefused"), "no write waits for the hub");
    let mut waiting = self::view([service("work/app").object(), mcs_export("work/app").object()]);
    waiting.write_rejected(&app(), "the hub says no".to_owned());
    assert!(events(&waiting, &app()).contains(&"WriteRefused"));
    let mut left = self::view([service("work/app").object(), mcs_export("work/app").object()]);
    observe_removal(&mut left, &member_agent("member-1", Features::ALL, Features::ALL).object());
    assert!(planned(&left, &app()).again.is_some(), "the announcement of the hub agent ends in a minute");
    let old = view_of(
        [service("work/app").object(), mcs_export("work/app").object()],
        Features::ALL.without(Feature::McsApi),
    );
    assert_eq!(shown(&old), states(&[("Valid", "True", "Valid"), ("Ready", "False", "Failed")]), "an older hub agent");
    assert_eq!(of_hub(writes(&old, &app())), []);
    let objects = [service("work/app").object(), mcs_export("work/app").object()];
    let objects = objects.into_iter().chain([merged(ExportedBy::McsApi).object()]);
    let older = view_of(objects, Features::ALL.without(Feature::McsApi));
    let withdrawn = Write::delete(Kind::InternalServiceExport, &merged(ExportedBy::McsApi).meta);
    assert_eq!(of_hub(writes(&older, &app())), [withdrawn], "it would take the export for one of the fleet's API");
}

/// Rule ME6: The hub agent has merged an export
/// Then: The member agent exports the slices of the Service, also if the export is in conflict. It withdraws them when
/// the ServiceExport is gone. While the InternalServiceExport is of an earlier Service with the same name, no slice is
/// exported
///
/// Also rule ME1.
#[test]
fn slices_are_exported_after_the_merge_and_withdrawn_with_the_export() {
    let (source, export) = (service("work/app"), mcs_export("work/app"));
    let mut view = view([source.clone().object(), slice("work/app-1").object()]);
    assert!(observe_change(&mut view, export.clone().object()).contains(&app_slice()));
    observe_change(&mut view, fresh(ExportedBy::McsApi).object());
    assert_eq!(writes(&view, &app_slice()), [], "the hub agent has not merged the export");
    observe_change(&mut view, fresh(ExportedBy::McsApi).judged(outcome("Unknown", "Pending")).version(2).object());
    assert_eq!(writes(&view, &app_slice()), []);
    assert!(observe_change(&mut view, merged(ExportedBy::McsApi).version(3).object()).contains(&app_slice()));
    let [Write { action: Action::Create(Desired::EndpointSliceExport(_)), .. }] = &writes(&view, &app_slice())[..]
    else {
        panic!("the slice is exported")
    };
    let exported = slice_export("member-1", &slice("work/app-1"));
    observe_change(&mut view, Object::EndpointSliceExport(exported.clone()));
    assert_eq!(writes(&view, &app_slice()), []);
    assert!(observe_removal(&mut view, &export.object()).contains(&app_slice()));
    assert_eq!(writes(&view, &app_slice()), [Write::delete(Kind::EndpointSliceExport, &exported.meta)]);
    let internal = merged(ExportedBy::McsApi).version(3);
    assert_eq!(writes(&view, &app()), [Write::delete(Kind::InternalServiceExport, &internal.meta)]);
    let replaced = InternalServiceExport {
        reference: reference("member-1", &service("work/other").meta, None),
        ..merged(ExportedBy::McsApi)
    };
    let replaced = InternalServiceExport {
        reference: fleetnet_core::model::Reference { source: named("work/app"), ..replaced.reference },
        ..replaced
    };
    let view = self::view([
        source.object(),
        slice("work/app-1").object(),
        mcs_export("work/app").object(),
        replaced.clone().object(),
    ]);
    assert_eq!(writes(&view, &app_slice()), [], "its outcome is that of an earlier Service");
    assert_eq!(of_hub(writes(&view, &app())), [Write::delete(Kind::InternalServiceExport, &replaced.meta)]);
    let mut view = view;
    let mut second = merged(ExportedBy::McsApi);
    second.meta.name = in_hub_of("member-1", "work-app-2");
    observe_change(&mut view, second.object());
    assert_eq!(writes(&view, &app_slice()), [], "the export of the earlier Service is still there");
}

/// Rule ME3: Both APIs export a Service
/// Then: The Service has one InternalServiceExport and one set of exported slices. If one API ends its export, the
/// member agent changes `spec.multicluster` and keeps the rest. A weight of 0 ends the export by the fleet's API only
#[test]
fn both_apis_have_one_export_in_the_hub_and_each_can_end_alone() {
    let source = service("work/app");
    let fleet = accepted_export("work/app");
    let mcs = mcs_export("work/app");
    let patched_since = |internal: &InternalServiceExport, content: ExportContent, since| {
        let reference = reference("member-1", &service("work/app").meta, Some(since));
        let write = Write::patch(&internal.meta, Patch::InternalServiceExport { reference, content });
        vec![write.measured(Some(Sample::ServiceExported { service: named("work/app") }))]
    };
    let patched = |internal: &InternalServiceExport, content| patched_since(internal, content, SEEN);
    // The fleet's API exports the Service, and the standard API joins.
    let alone = internal_export("member-1", &source).judged(no_conflict("work/app"));
    let mut view = view([source.clone().object(), fleet.clone().object(), alone.clone().object()]);
    assert_eq!(of_hub(writes(&view, &app())), []);
    observe_change(&mut view, mcs.clone().object());
    assert_eq!(of_hub(writes(&view, &app())), patched_since(&alone, content(ExportedBy::Both), seconds(20)));
    // The fleet's export ends: the standard API keeps the InternalServiceExport, and the finalizer goes after that.
    let both = merged(ExportedBy::Both);
    let mut view = self::view([
        source.clone().object(),
        fleet.clone().deleting().object(),
        mcs.clone().object(),
        both.clone().object(),
    ]);
    assert_eq!(of_hub(writes(&view, &app())), patched(&both, content(ExportedBy::McsApi)));
    observe_change(&mut view, merged(ExportedBy::McsApi).version(2).object());
    assert!(writes(&view, &app()).contains(&Write::remove_finalizer(Kind::ServiceExport, &fleet.meta)));
    assert_eq!(of_hub(writes(&view, &app())), []);
    // The standard export ends: the fleet's API keeps it.
    let view = self::view([source.clone().object(), fleet.object(), both.clone().object()]);
    let fleet_only = ExportContent { mcs: None, ..content(ExportedBy::Both) };
    assert_eq!(of_hub(writes(&view, &app())), patched(&both, fleet_only));
    // An export with weight 0 is withdrawn from the fleet's API only.
    let malformed = fleetnet_core::model::ServiceExport { weight: Some("many".into()), ..service_export("work/app") };
    let alone = merged(ExportedBy::McsApi);
    let view = self::view([service("work/app").object(), malformed.object(), alone.clone().object()]);
    let withdrawn = Write::delete(Kind::InternalServiceExport, &alone.meta);
    assert_eq!(of_hub(writes(&view, &app())), [withdrawn], "neither API exports it");
    let zero = fleetnet_core::model::ServiceExport { weight: Some("0".into()), ..service_export("work/app").marked() };
    let view = self::view([source.object(), zero.object(), mcs.object(), both.clone().object()]);
    assert_eq!(of_hub(planned(&view, &app()).writes), patched(&both, content(ExportedBy::McsApi)));
}

/// Rule ME2: ServiceExports of the standard API are not listed, their kind is absent, one is undecodable, or the
/// features of the hub agent are not known
/// Then: Existing exports of the standard API and their slices stay as they are. The fleet's API goes on
///
/// Also rules ME3, ME5.
#[test]
fn an_export_stays_while_its_request_is_unknown() {
    let (source, internal) = (service("work/app"), merged(ExportedBy::McsApi));
    let exported = Object::EndpointSliceExport(slice_export("member-1", &slice("work/app-1")));
    let objects =
        || [source.clone().object(), internal.clone().object(), slice("work/app-1").object(), exported.clone()];
    let is_kept = |view: &Planner| of_hub(writes(view, &app())).is_empty() && writes(view, &app_slice()).is_empty();
    for state in [WatchState::Incomplete, WatchState::Absent, WatchState::Unknown] {
        let mut view = view(objects());
        assert!(!is_kept(&view), "no ServiceExport requests it");
        view.watch_state(Kind::McsServiceExport, state, NOW, &mut Vec::new());
        assert!(is_kept(&view), "{state:?}");
    }
    let mut view = view(objects());
    undecodable(&mut view, Kind::McsServiceExport, &named("work/app"));
    assert!(is_kept(&view), "undecodable");
    let mut view = self::view(objects());
    view.watch_state(Kind::MemberAgent, WatchState::Absent, NOW, &mut Vec::new());
    observe_change(&mut view, mcs_export("work/app").object());
    assert!(is_kept(&view), "the hub agent may support the standard API");
    observe_removal(&mut view, &internal.clone().object());
    assert_eq!(of_hub(writes(&view, &app())), [], "but it gets no new export");
    // The fleet's export ends in this time.
    let both = merged(ExportedBy::Both);
    let fleet = accepted_export("work/app").deleting();
    let mut view = self::view([source.clone().object(), both.object(), fleet.object()]);
    view.watch_state(Kind::McsServiceExport, WatchState::Unknown, NOW, &mut Vec::new());
    let [Write { action: Action::Patch { patch: Patch::InternalServiceExport { content, .. }, .. }, .. }] =
        &of_hub(writes(&view, &app()))[..]
    else {
        panic!("one write")
    };
    let kept = McsExport { exported_by: ExportedBy::McsApi, ..mcs_part() };
    assert_eq!(content.mcs.as_deref(), Some(&kept), "and the rest stays");
    // The same if the Service has too many ports.
    let many = service("work/app").ports(&vec![port("http", 80); PORTS_MAX + 1]);
    let objects = [many.object(), merged(ExportedBy::Both).object(), mcs_export("work/app").object()];
    let view = self::view(objects.into_iter().chain([accepted_export("work/app").deleting().object()]));
    let [Write { action: Action::Patch { patch: Patch::InternalServiceExport { content, .. }, .. }, .. }] =
        &of_hub(writes(&view, &app()))[..]
    else {
        panic!("one write")
    };
    assert_eq!(content.mcs.as_deref(), Some(&kept));
    assert_eq!(content.ports, [port("http", 80)], "the export stays as it was");
    let mut view =
        self::view([source.object(), merged(ExportedBy::Both).object(), accepted_export("work/app").object()]);
    view.watch_state(Kind::McsServiceExport, WatchState::Unknown, NOW, &mut Vec::new());
    assert_eq!(of_hub(writes(&view, &app())), [], "the fleet's export stays as it is");
    observe_change(&mut view, slice("work/app-1").object());
    assert_eq!(writes(&view, &app_slice()).len(), 1, "and exports new slices");
    // The fleet's API goes on, also to end its exports.
    let fleet_only = internal_export("member-1", &service("work/app")).judged(no_conflict("work/app"));
    let mut view =
        self::view([service("work/app").object(), fleet_only.object(), slice("work/app-1").object(), exported]);
    view.watch_state(Kind::McsServiceExport, WatchState::Absent, NOW, &mut Vec::new());
    assert!(!is_kept(&view), "no ServiceExport requests it");
    assert_ne!(writes(&view, &app_slice()), []);
}

/// Also rules ME2, ME9.
#[test]
fn slices_stay_if_the_hub_loses_their_export_while_its_request_is_unknown() {
    type Case<'a> = (&'a str, Option<&'a Object>, &'a dyn Fn(&mut Planner), bool);
    let exported = slice_export("member-1", &slice("work/app-1"));
    let shown = shows(&mcs_export("work/app"), &[("Conflict", "False", "NoConflicts")]);
    let of_fleet = internal_export("member-1", &service("work/app")).judged(no_conflict("work/app")).object();
    let is_undecodable = |view: &mut Planner| undecodable(view, Kind::McsServiceExport, &named("work/app"));
    let watch = |view: &mut Planner, state| view.watch_state(Kind::McsServiceExport, state, NOW, &mut Vec::new());
    let table: [Case<'_>; 6] = [
        ("undecodable since the agent has read it", Some(&shown), &is_undecodable, true),
        ("undecodable since before the agent started", None, &is_undecodable, true),
        ("not listed yet", None, &|view| watch(view, WatchState::Incomplete), true),
        ("without the kind, only the fleet's API exports", None, &|view| watch(view, WatchState::Absent), false),
        ("undecodable, and the fleet's API alone has exported it", Some(&of_fleet), &is_undecodable, false),
        ("known", None, &|_| (), false),
    ];
    for (case, object, change, is_kept) in table {
        let objects = [service("work/app").object(), slice("work/app-1").object()];
        let in_hub = Object::EndpointSliceExport(exported.clone());
        let mut view = view(objects.into_iter().chain([in_hub]).chain(object.cloned()));
        change(&mut view);
        let expected = (!is_kept).then(|| Write::delete(Kind::EndpointSliceExport, &exported.meta));
        assert_eq!(writes(&view, &app_slice()), Vec::from_iter(expected), "{case}");
    }
}

fn shows(export: &McsServiceExport, list: &[(&str, &'static str, &str)]) -> Object {
    let conditions = list.iter().map(|(kind, status, reason)| condition(kind, status, reason, "as shown", 1)).collect();
    McsServiceExport { conditions, ..export.clone() }.object()
}

/// Rule ME9: The hub has lost the InternalServiceExport or the outcome of the merge, for example after a restore from a
/// backup or because somebody deleted the object
/// Then: The outcome in the ServiceExport counts until the hub agent has merged the export again, so the slices stay in
/// the hub. The member agent removes this outcome when the Service is gone, replaced or denied, and only then deletes
/// the InternalServiceExport of the earlier Service
///
/// Also rule ME8.
#[test]
fn an_export_that_the_hub_has_lost_keeps_its_slices_and_is_created_again() {
    let exported = Object::EndpointSliceExport(slice_export("member-1", &slice("work/app-1")));
    let delete = || vec![Write::delete(Kind::EndpointSliceExport, exported.meta())];
    let (source, export) = (service("work/app"), mcs_export("work/app"));
    let objects = |shown: &[(&str, &'static str, &str)]| {
        let shown = shows(&export, shown);
        [source.clone().object(), slice("work/app-1").object(), exported.clone(), shown]
    };
    let internal = merged(ExportedBy::McsApi);
    for (status, reason) in [("False", "NoConflicts"), ("True", "PortConflict")] {
        let mut view = view(objects(&[("Conflict", status, reason)]).into_iter().chain([internal.clone().object()]));
        assert_eq!(writes(&view, &app_slice()), []);
        observe_removal(&mut view, &internal.clone().object());
        assert_eq!(writes(&view, &app_slice()), [], "the hub has lost the export");
        let [create] = &of_hub(writes(&view, &app()))[..] else { panic!("one write") };
        let Action::Create(Desired::InternalServiceExport { content, .. }) = &create.action else { panic!() };
        let part = content.mcs.as_deref().expect("a part");
        assert!(part.is_recreated);
        let again = internal_export("member-1", &source).mcs(part.clone()).version(3);
        observe_change(&mut view, again.clone().object());
        assert_eq!(writes(&view, &app_slice()), [], "the hub agent has not merged it again");
        observe_change(&mut view, again.judged(outcome("False", "NoConflicts")).version(4).object());
        assert_eq!(of_hub(writes(&view, &app())), [], "and the part stays as it is");
        let denial = condition("Valid", "False", "ExporterNotAllowed", "denied", 1);
        observe_change(&mut view, fresh(ExportedBy::McsApi).judged(denial).version(5).object());
        assert_eq!(writes(&view, &app_slice()), delete());
    }
    // The hub has an export of the Service from before the standard API exported it.
    let of_fleet = internal_export("member-1", &source).judged(no_conflict("work/app"));
    let older = view(objects(&[("Conflict", "False", "NoConflicts")]).into_iter().chain([of_fleet.object()]));
    assert_eq!(writes(&older, &app_slice()), []);
    let pending = [("Conflict", "Unknown", "Pending"), ("Ready", "True", "Exported")];
    assert_eq!(writes(&view(objects(&pending)), &app_slice()), delete(), "no outcome");
}

/// Also rule ME9.
#[test]
fn an_outcome_is_removed_before_the_export_of_an_earlier_service_and_with_a_denial() {
    let (source, export) = (service("work/app").uid("second"), mcs_export("work/app"));
    let earlier = merged(ExportedBy::McsApi);
    let shown_before = shows(&export, &[("Valid", "True", "Valid"), ("Conflict", "False", "NoConflicts")]);
    let mut view = view([source.clone().object(), shown_before.clone(), earlier.clone().object()]);
    assert_eq!(of_hub(writes(&view, &app())), []);
    let pending = ("Conflict", "Unknown", "ServicePendingConflictResolution");
    assert!(shown(&view).contains(&states(&[pending])[0]));
    observe_change(&mut view, shows(&export, &[("Valid", "True", "Valid"), pending]));
    assert_eq!(of_hub(writes(&view, &app())), [Write::delete(Kind::InternalServiceExport, &earlier.meta)]);
    observe_removal(&mut view, &earlier.object());
    let [create] = &of_hub(writes(&view, &app()))[..] else { panic!("one write") };
    let Action::Create(Desired::InternalServiceExport { content, .. }) = &create.action else { panic!() };
    assert!(!content.mcs.as_deref().expect("a part").is_recreated);
    let denied = InternalServiceExport {
        conditions: vec![
            outcome("False", "NoConflicts"),
            condition("Valid", "False", "ExporterNotAllowed", "denied", 1),
        ],
        ..internal_export("member-1", &source).mcs(mcs_part())
    };
    let older = view_of([source.clone().object(), shown_before.clone()], Features::ALL.without(Feature::McsApi));
    assert!(shown(&older).contains(&states(&[pending])[0]), "the export is withdrawn from an older hub agent");
    let denied = self::view([source.object(), shown_before, denied.object()]);
    assert!(shown(&denied).contains(&states(&[pending])[0]), "so that no lost denial brings the slices back");
}

/// Also rule ME8.
#[test]
fn an_export_of_an_earlier_version_gets_its_creation_time_with_its_next_write() {
    let (source, export) = (service("work/app"), mcs_export("work/app"));
    let internal = merged(ExportedBy::McsApi);
    let mut view = view([source.clone().object(), export.clone().object(), internal.clone().object()]);
    assert_eq!(of_hub(writes(&view, &app())), []);
    let exported_at = |view: &Planner| {
        let [write] = &of_hub(writes(view, &app()))[..] else { panic!("one write") };
        let Action::Patch { patch: Patch::InternalServiceExport { content, .. }, .. } = &write.action else { panic!() };
        content.mcs.as_deref().and_then(|part| part.export_created)
    };
    observe_change(&mut view, source.ports(&[port("http", 81)]).version(2).object());
    assert_eq!(exported_at(&view), Some(seconds(1)));
    let timed = McsExport { export_created: Some(seconds(1)), ..mcs_part() };
    let timed = InternalServiceExport { mcs: Some(Arc::new(timed)), ..internal };
    let objects = |at| [service("work/app").object(), export.clone().created(at).object(), timed.clone().object()];
    assert_eq!(of_hub(writes(&self::view(objects(seconds(1))), &app())), []);
    assert_eq!(exported_at(&self::view(objects(seconds(9)))), Some(seconds(9)), "it is another ServiceExport");
}

/// Rule ME7: A ServiceExport of the standard API names a derived Service
/// Then: As rule S26. The ServiceExport also has `Ready=False`
///
/// Rule S26: A ServiceExport names a derived Service, which the agents made for an import
/// Then: The member agent sets `Valid=False` with reason `ServiceImported`, and writes nothing to the hub. An earlier
/// export is withdrawn. Labels alone make no derived Service: namespace and name count too
#[test]
fn a_derived_service_is_not_exported() {
    let by_mcs_api =
        Service { imports: Some("other".into()), ..service(&names::mcs_derived(&named("work/other")).to_string()) };
    let by_fleet_api = derived_service("work-other", "work/other");
    for derived in [by_mcs_api, by_fleet_api] {
        let path = derived.meta.name.to_string();
        let key = Key::Export(named(&path));
        let mut view = view([derived.clone().object(), mcs_export(&path).object()]);
        let written = writes(&view, &key);
        assert_eq!(of_hub(written.clone()), []);
        let Action::Patch { patch: Patch::McsServiceExportConditions(list), .. } = &written[0].action else { panic!() };
        let shown: Vec<_> = list.iter().map(|it| (&*it.condition_type, it.status.as_str(), &*it.reason)).collect();
        assert_eq!(shown, [("Valid", "False", "ServiceImported"), ("Ready", "False", "Failed")]);
        assert_eq!(events(&view, &key), ["ServiceImported"]);
        // A ServiceExport that an earlier version exported.
        let internal = internal_export("member-1", &derived).mcs(mcs_part());
        observe_change(&mut view, internal.clone().object());
        assert_eq!(of_hub(writes(&view, &key)), [Write::delete(Kind::InternalServiceExport, &internal.meta)]);
        // The fleet's API.
        let mut view = self::view([derived.clone().object(), accepted_export(&path).object()]);
        observe_change(&mut view, internal_export("member-1", &derived).object());
        let [write] = &writes(&view, &key)[..] else { panic!("the condition is written first") };
        let Action::Patch { patch: Patch::ServiceExportConditions(list), .. } = &write.action else { panic!() };
        let valid = list.iter().find(|it| &*it.condition_type == "Valid").map(|it| (it.status.as_str(), &*it.reason));
        assert_eq!(valid, Some(("False", "ServiceImported")));
        let shown = fleetnet_core::model::ServiceExport { conditions: list.clone(), ..accepted_export(&path) };
        observe_change(&mut view, shown.version(2).object());
        let internal = internal_export("member-1", &derived);
        assert_eq!(of_hub(writes(&view, &key)), [Write::delete(Kind::InternalServiceExport, &internal.meta)]);
    }
    // Labels alone make no derived Service.
    let labelled = Service { imports: Some("other".into()), derived_from: Some(named("a/b")), ..service("work/app") };
    let view = view([labelled.object(), mcs_export("work/app").object()]);
    assert_eq!(of_hub(writes(&view, &app())).len(), 1);
}

/// Returns a view of a member whose hub has perhaps no MemberAgents.
fn assuming(objects: impl IntoIterator<Item = Object>) -> Planner {
    let mut view = view(objects);
    let agent = member_agent("member-1", Features::ALL, Features::ALL).object();
    observe_removal(&mut view, &agent);
    view.watch_state(Kind::MemberAgent, WatchState::Absent, SEEN, &mut Vec::new());
    view
}

#[test]
fn a_service_has_at_most_as_many_ports_as_the_hub_accepts() {
    let with_ports = |count: usize| service("work/app").ports(&vec![port("http", 80); count]).object();
    for (count, kinds, ready) in [(PORTS_MAX, 1, "Pending"), (PORTS_MAX + 1, 0, "Failed")] {
        let view = view([with_ports(count), mcs_export("work/app").object()]);
        assert_eq!(of_hub(writes(&view, &app())).len(), kinds, "{count}");
        assert_eq!(shown(&view)[1].2, ready, "{count}");
    }
}

/// Also rule ME2.
#[test]
fn the_fleets_api_replaces_an_export_while_the_request_of_the_mcs_api_is_undecodable() {
    let pending = condition(
        "Conflict",
        "Unknown",
        "ServicePendingConflictResolution",
        "service work/app is pending export conflict resolution",
        1,
    );
    let valid = condition("Valid", "True", "ServiceIsValid", "service work/app is valid for export", 1);
    let fleet =
        fleetnet_core::model::ServiceExport { conditions: vec![valid, pending], ..service_export("work/app").marked() };
    let earlier = merged(ExportedBy::Both);
    let shown = shows(&mcs_export("work/app"), &[("Conflict", "False", "NoConflicts")]);
    let recreated = service("work/app").uid("second").object();
    let mut view = view([recreated, fleet.object(), earlier.clone().object(), shown]);
    assert_eq!(of_hub(writes(&view, &app())), [], "the outcome is removed first");
    undecodable(&mut view, Kind::McsServiceExport, &named("work/app"));
    assert_eq!(of_hub(writes(&view, &app())), [Write::delete(Kind::InternalServiceExport, &earlier.meta)]);
}

#[test]
fn a_member_that_no_longer_uses_the_mcs_api_removes_its_exports() {
    let internal = merged(ExportedBy::McsApi);
    let mut view = crate::support::view::member_view([service("work/app").object(), internal.clone().object()]);
    view.watch_state(Kind::McsServiceExport, WatchState::Incomplete, NOW, &mut Vec::new());
    assert_eq!(of_hub(writes(&view, &app())), [Write::delete(Kind::InternalServiceExport, &internal.meta)]);
}

#[test]
fn conditions_are_written_only_for_exports_that_the_agent_knows_and_handles() {
    let (source, export) = (service("work/app").object(), mcs_export("work/app"));
    let view_without_api = crate::support::view::member_view([source.clone(), export.clone().object()]);
    assert_eq!(writes(&view_without_api, &app()), []);
    let mut view = view([source.clone(), export.clone().object()]);
    undecodable(&mut view, Kind::McsServiceExport, &named("work/app"));
    assert_eq!(writes(&view, &app()), []);
    let view = assuming([source.clone(), export.clone().object()]);
    assert_eq!(shown(&view)[1], states(&[("Ready", "Unknown", "Pending")])[0], "the hub agent may support the API");
    // Until the exports are listed, the condition stays as it is.
    let ready = condition("Ready", "True", "Exported", "as before", 1);
    let list = vec![condition("Valid", "True", "Valid", "service work/app is valid for export", 1), ready];
    let shown_before = McsServiceExport { conditions: list, ..export.clone() };
    for (export, state, expected) in [
        (export, WatchState::Incomplete, 2),
        (shown_before.clone(), WatchState::Incomplete, 0),
        (shown_before, WatchState::Complete, 2),
    ] {
        let mut view = self::view([source.clone(), export.object()]);
        view.watch_state(Kind::InternalServiceExport, state, NOW, &mut Vec::new());
        assert_eq!(shown(&view).len(), expected, "{state:?}");
    }
}

#[test]
fn only_an_outcome_of_the_merge_of_an_export_that_can_be_exported_counts() {
    let (source, export) = (service("work/app"), mcs_export("work/app"));
    // The fleet's API alone exports the Service, so the outcome is of an earlier export.
    let of_fleet = internal_export("member-1", &source).judged(outcome("False", "NoConflicts"));
    let view = view([source.clone().object(), export.clone().object(), of_fleet.object()]);
    assert_eq!(shown(&view), states(&[("Valid", "True", "Valid"), ("Ready", "Unknown", "Pending")]));
    let outdated = McsServiceExport { conditions: vec![no_conflict("work/app")], ..export.clone() };
    let view = self::view([outdated.object()]);
    let kinds: Vec<String> = shown(&view).into_iter().map(|(kind, status, _)| format!("{kind}={status}")).collect();
    assert_eq!(kinds, ["Conflict=Unknown", "Valid=False", "Ready=False"], "there is no Service");
    let exported = slice_export("member-1", &slice("work/app-1"));
    let external = source.of_type(ServiceType::ExternalName).object();
    let slice = slice("work/app-1").object();
    let merged = merged(ExportedBy::McsApi).object();
    let objects = [external, export.object(), merged, slice, Object::EndpointSliceExport(exported.clone())];
    let view = self::view(objects);
    assert_eq!(writes(&view, &app_slice()), [Write::delete(Kind::EndpointSliceExport, &exported.meta)]);
}

#[test]
fn the_condition_names_exactly_the_labels_and_annotations_that_are_not_exported() {
    let export = McsServiceExport {
        labels: [("team", "blue"), ("fleetnet/import", "x")].map(|(a, b)| (a.into(), b.into())).into(),
        annotations: [("note", "n"), ("fleetnet/weight", "x")].map(|(a, b)| (a.into(), b.into())).into(),
        ..mcs_export("work/app")
    };
    let view = view([service("work/app").object(), export.object(), merged(ExportedBy::McsApi).object()]);
    let all = planned(&view, &app()).writes.into_iter().find_map(|write| match write.action {
        Action::Patch { patch: Patch::McsServiceExportConditions(list), .. } => Some(list),
        _ => None,
    });
    let message = all.expect("a write")[1].message.to_string();
    let named = ["team", "note", "fleetnet/import", "fleetnet/weight"].map(|name| message.contains(name));
    assert_eq!(named, [false, false, true, true], "{message}");
}
