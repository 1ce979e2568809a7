//! Tests of the limits of what a member costs others, and of what a namespace costs its member.

use crate::support::agent::View as _;
use crate::support::build::{
    Build, BuildClaim, BuildHubSlice, BuildImport, BuildInternalExport, BuildRequest, BuildSlice, IntoObject, claim,
    derived_service, distributed_slice, found, imported_slice, in_system, internal_export, mcs_export, mcs_part,
    member_agent, merged_service_import, named, no_conflict, request, resolved, seconds, service, service_export,
    service_import, slice, slice_export,
};
use crate::support::view::{
    blocking_reasons, limited_hub_view, limited_member_view, observe_change, observe_removal, planned, writes,
};
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::hub;
use fleetnet_core::member::{ImportLimits, Key, Limits, McsApi, Settings};
use fleetnet_core::model::{EndpointSlice, HubSlice, Kind, Object};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Desired, Patch, Write};

// === The hub agent ===

/// Returns an exported slice of a cluster with its finalizer, and the number of its Service in its name.
fn exported(cluster: &str, number: usize) -> HubSlice {
    let path = format!("work/app-{number}");
    slice_export(cluster, &slice(&path).uid(&path)).marked()
}

fn distributed_keys(view: &hub::Planner, slice: &HubSlice, importers: &[&str]) -> Vec<bool> {
    let key = |importer: &&str| hub::Key::DistributedSlice {
        slice: slice.meta.name.name.clone(),
        importer: names::member_namespace(importer),
    };
    importers.iter().map(|importer| !writes(view, &key(importer)).is_empty()).collect()
}

/// Rule T53: The exports of a member cause as many objects in the namespaces of other members as `--member-fan-out`
/// allows (50,000)
/// Then: The hub agent creates no further EndpointSliceImports of the member's slices, and no further
/// MergedServiceImports of Services that only such members export. Existing objects stay and are updated. A slice may
/// replace another slice of its Service that waits for it. What waits for room is planned again when there is room for
/// a tenth of the limit
#[test]
fn a_member_causes_a_limited_number_of_distributed_slices_and_those_that_exist_stay() {
    let importers = ["member-3", "member-4", "member-5"];
    let import = service_import("work/app").showing(resolved(&["member-1", "member-2"])).claimed_by(&importers);
    let claims = importers
        .map(|importer| claim(importer, &import).east_west().marked().with_status(import.status.clone()).object());
    let (one, two, theirs) = (exported("member-1", 1), exported("member-1", 2), exported("member-2", 3));
    let exports = [one.clone(), two.clone(), theirs.clone()].map(Object::EndpointSliceExport);
    let distributed_slices: Vec<HubSlice> =
        importers.iter().map(|importer| distributed_slice(importer, &one)).collect();
    let objects = [import.object()].into_iter().chain(claims).chain(exports);
    let mut view = limited_hub_view(None, Some(3), objects);
    assert_eq!(distributed_keys(&view, &one, &importers), [true; 3]);
    for distributed in &distributed_slices {
        assert_eq!(distributed_keys(&view, &two, &importers), [true; 3], "there is room");
        observe_change(&mut view, Object::EndpointSliceImport(distributed.clone()));
    }
    assert_eq!(distributed_keys(&view, &two, &importers), [false; 3], "no more of this member");
    assert_eq!(distributed_keys(&view, &theirs, &importers), [true; 3], "another member does not notice");
    let mut going = one.clone();
    going.meta.deleting = true;
    observe_change(&mut view, Object::EndpointSliceExport(going));
    assert_eq!(
        distributed_keys(&view, &two, &importers),
        [true; 3],
        "a slice that waits for its replacement makes room for it"
    );
    let changed = one.clone().with_addresses(&["10.0.0.9"], 2);
    observe_change(&mut view, Object::EndpointSliceExport(changed));
    assert_eq!(distributed_keys(&view, &one, &importers), [true; 3], "what exists follows its source");
    let requeued = observe_removal(&mut view, &Object::EndpointSliceImport(distributed_slices[0].clone()));
    assert!(requeued.contains(&hub::Key::Slice(two.meta.name.name.clone())), "{requeued:?}");
    assert_eq!(distributed_keys(&view, &two, &importers), [true; 3], "there is room again");
}

/// Also rule T53.
#[test]
fn at_the_limit_an_empty_slice_takes_no_place_of_a_replacement() {
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-3"]);
    let of_importer = claim("member-3", &import).east_west().marked().with_status(import.status.clone());
    let [one, empty, two] = [1, 2, 3].map(|number| exported("member-1", number));
    let distributed = Object::EndpointSliceImport(distributed_slice("member-3", &one));
    let exports = [one.deleting(), empty.with_addresses(&[], 1), two.clone()].map(Object::EndpointSliceExport);
    let objects = [import.object(), of_importer.object(), distributed].into_iter().chain(exports);
    let view = limited_hub_view(None, Some(1), objects);
    assert_eq!(distributed_keys(&view, &two, &["member-3"]), [true]);
}

/// Also rule T53.
#[test]
fn a_member_causes_a_limited_number_of_merged_imports() {
    let members = ["member-1", "member-2", "member-3"];
    let agents = members.map(|id| member_agent(id, Features::ALL, Features::ALL).object());
    let export = |cluster: &str, path: &str| {
        internal_export(cluster, &service(path)).port_set_since(seconds(5)).mcs(mcs_part()).object()
    };
    let exports = [export("member-1", "work/app"), export("member-1", "work/web"), export("member-2", "work/shared")];
    let mut view = limited_hub_view(None, Some(2), agents.into_iter().chain(exports));
    let creates = |view: &hub::Planner, path: &str| {
        let key = |id: &&str| hub::Key::MergedImport { service: named(path), importer: names::member_namespace(id) };
        let creates = |write: &Write| matches!(write.action, Action::Create(Desired::MergedServiceImport { .. }));
        members.iter().filter(|id| writes(view, &key(id)).iter().any(creates)).count()
    };
    assert_eq!([creates(&view, "work/app"), creates(&view, "work/web")], [3, 3]);
    let key = hub::Key::MergedImport { service: named("work/app"), importer: names::member_namespace("member-1") };
    let first = writes(&view, &key).into_iter().next().map(|write| write.action);
    let Some(Action::Create(Desired::MergedServiceImport { import, .. })) = first else { panic!("it is created") };
    let made = ["member-1", "member-2"].map(|id| merged_service_import(id, "work/app", &import).object());
    made.iter().for_each(|made| drop(observe_change(&mut view, made.clone())));
    assert_eq!([creates(&view, "work/app"), creates(&view, "work/web")], [0, 0], "no more of this member");
    assert_eq!(creates(&view, "work/shared"), 3, "another member does not notice");
    observe_change(&mut view, export("member-1", "work/shared"));
    assert_eq!(creates(&view, "work/shared"), 3, "one of its exporters has room");
    observe_removal(&mut view, &made[0]);
    assert_eq!(creates(&view, "work/web"), 3, "there is room again");
    // The other exporters of the Service count its imports from the time of their exports on.
    observe_change(&mut view, made[0].clone());
    observe_change(&mut view, export("member-2", "work/app"));
    assert_eq!([creates(&view, "work/web"), creates(&view, "work/shared")], [0, 0]);
    observe_removal(&mut view, &export("member-2", "work/app"));
    assert_eq!(creates(&view, "work/shared"), 3);
    let shared = [export("member-1", "work/shared")];
    observe_removal(&mut view, &shared[0]);
    assert_eq!(creates(&view, "work/shared"), 3);
}

/// Rule U25: A member announces features that it did not announce before, several times in a minute
/// Then: Lost features count at once. Gained features count at most once a minute
#[test]
fn a_member_gains_features_at_most_once_a_minute_and_loses_them_at_once() {
    let few = Features::ALL.without(Feature::IPv6).without(Feature::EndpointDetails);
    let some = Features::ALL.without(Feature::IPv6);
    let mut view = limited_hub_view(None, None, []);
    // Returns true if the announcement of a member at this second requeues the plan of a slice that is distributed to
    // it.
    let mut version = 10;
    let mut announces = |view: &mut hub::Planner, features, second: i64| {
        version += 1;
        let mut agent = member_agent("member-3", features, Features::ALL);
        agent.meta.resource_version = version;
        agent.renewed = Some(seconds(second));
        let mut requeue = Vec::new();
        view.applied(agent.object(), seconds(second), &mut requeue);
        requeue.iter().for_each(|key| drop(view.decide_and_record(key, seconds(second))));
        requeue.iter().any(|key| matches!(key, hub::Key::DistributedSlice { .. }))
    };
    let slice = exported("member-1", 1);
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-3"]);
    let claim = claim("member-3", &import).east_west().marked().with_status(import.status.clone());
    assert!(!announces(&mut view, few, 100));
    for object in [
        import.object(),
        claim.object(),
        Object::EndpointSliceExport(slice.clone()),
        Object::EndpointSliceImport(distributed_slice("member-3", &slice)),
    ] {
        observe_change(&mut view, object);
    }
    assert!(announces(&mut view, some, 110), "the first gain counts at once");
    assert!(!announces(&mut view, Features::ALL, 120), "the second one waits");
    assert!(!announces(&mut view, Features::ALL, 169));
    assert!(announces(&mut view, Features::ALL, 170), "a minute after the first");
    assert!(announces(&mut view, few, 171), "a loss counts at once");
    assert!(!announces(&mut view, Features::ALL, 180));
    view.clock_set(-3_600_000_000);
    assert!(!announces(&mut view, Features::ALL, -3_400));
    assert!(announces(&mut view, Features::ALL, -3_370), "the clock was set back by an hour");
}

// === The importing member ===

const LIMITS: Limits = Limits { imports: ImportLimits { slices: 2, endpoints: 3 }, exports_per_namespace: 2 };

/// Returns a distributed slice of `work/app` with this number of endpoints, which member-2 exports.
fn given(number: usize, endpoints: usize) -> HubSlice {
    let addresses: Vec<String> = (0..endpoints).map(|it| format!("10.0.{number}.{it}")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let path = format!("work/app-{number}");
    let mut slice = slice_export("member-2", &slice(&path).uid(&path).endpoints(&addresses));
    slice.meta.name.name = format!("member-2-work-app-{number}").as_str().into();
    distributed_slice("member-1", &slice)
}

fn importing(slices: impl IntoIterator<Item = HubSlice>) -> fleetnet_core::member::Planner {
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"]));
    let objects = [request.object(), import.object(), derived_service("work-app", "work/app").object()];
    limited_member_view(LIMITS, objects.into_iter().chain(slices.into_iter().map(Object::EndpointSliceImport)))
}

/// Returns the number of endpoints with which each of these slices is created; `None` if it is not imported.
fn imported<const N: usize>(view: &fleetnet_core::member::Planner, numbers: [usize; N]) -> [Option<usize>; N] {
    numbers.map(|number| {
        let key = Key::SliceImport(in_system(&format!("member-2-work-app-{number}")));
        writes(view, &key).into_iter().find_map(|write| match write.action {
            Action::Create(Desired::EndpointSlice(slice)) => Some(slice.content.endpoints.len()),
            _ => None,
        })
    })
}

/// Rule T54: An exporting cluster has more slices or endpoints of a Service than `--max-imported-slices` (400) or
/// `--max-imported-endpoints` (10,000) of the importing member agent allow
/// Then: The agent imports slices up to the limits: first those whose import has begun, then those with the first
/// names. Of the last one, it imports the first endpoints; if its import has not begun, it begins only when the slice
/// fits whole. It removes imported slices beyond the limits. The reason `TooManyEndpoints` is in the log and in an
/// Event on the user's object, the same for all slices of the Service and cluster
#[test]
fn of_a_service_and_an_exporter_only_so_many_slices_and_endpoints_are_imported() {
    let marked = |number, endpoints| given(number, endpoints).marked();
    let table = [
        (vec![marked(1, 1), marked(2, 1)], vec![Some(1), Some(1), None], 0),
        (vec![marked(1, 1), marked(2, 2)], vec![Some(1), Some(2), None], 0),
        (vec![marked(1, 1), marked(2, 1), marked(3, 1)], vec![Some(1), Some(1), None], 1),
        (vec![marked(1, 1), marked(2, 3)], vec![Some(1), Some(2), None], 1),
        (vec![marked(1, 3), marked(2, 1), marked(3, 0)], vec![Some(3), None, None], 2),
        (vec![marked(1, 9)], vec![Some(3), None, None], 1),
    ];
    for (slices, expected, limited) in table {
        let view = importing(slices.clone());
        assert_eq!(imported(&view, [1, 2, 3]).to_vec(), expected, "{slices:?}");
        let reasons = (1..=3).map(|number| {
            let plan = planned(&view, &Key::SliceImport(in_system(&format!("member-2-work-app-{number}"))));
            blocking_reasons(&plan).into_iter().filter(|(reason, _)| *reason == "TooManyEndpoints").count()
        });
        assert_eq!(reasons.sum::<usize>(), limited, "{slices:?}");
    }
}

/// Also rule T54.
#[test]
fn slices_that_are_imported_stay_when_others_come_before_them() {
    let new = importing([given(1, 1), given(2, 1), given(3, 1)]);
    let is_taken_on = |number: usize| {
        let key = Key::SliceImport(in_system(&format!("member-2-work-app-{number}")));
        let marks = |write: &Write| matches!(write.action, Action::Patch { patch: Patch::Finalizers { .. }, .. });
        writes(&new, &key).iter().any(marks)
    };
    assert_eq!([1, 2, 3].map(is_taken_on), [true, true, false], "in the order of their names");
    let view = importing([given(1, 1), given(2, 1).marked(), given(3, 1).marked()]);
    assert_eq!(imported(&view, [2, 3]), [Some(1); 2], "their import has begun");
    // One that does not fit whole does not begin. Otherwise, it would come before a slice that is imported.
    let mut view = importing([given(1, 2), given(2, 2).marked()]);
    assert!(writes(&view, &Key::SliceImport(in_system("member-2-work-app-1"))).is_empty());
    assert_eq!(imported(&view, [2]), [Some(2)]);
    observe_change(&mut view, Object::EndpointSliceImport(given(1, 1)));
    assert!(!writes(&view, &Key::SliceImport(in_system("member-2-work-app-1"))).is_empty(), "now it fits");
}

/// Also rule T54.
#[test]
fn a_share_follows_each_change_of_its_slices() {
    let mut view = importing([given(1, 2).marked(), given(2, 2).marked(), given(3, 1).marked()]);
    assert_eq!(imported(&view, [1, 2, 3]), [Some(2), Some(1), None]);
    let key = |number: usize| Key::SliceImport(in_system(&format!("member-2-work-app-{number}")));
    let changed = observe_change(&mut view, Object::EndpointSliceImport(given(1, 1).marked()));
    assert!(changed.contains(&key(2)), "{changed:?}");
    assert_eq!(imported(&view, [1, 2, 3]), [Some(1), Some(2), None]);
    let changed = observe_removal(&mut view, &Object::EndpointSliceImport(given(1, 1).marked()));
    assert!(changed.contains(&key(3)), "{changed:?}");
    assert_eq!(imported(&view, [2, 3]), [Some(2), Some(1)]);
    let changed = observe_change(&mut view, Object::EndpointSliceImport(given(1, 3).marked()));
    assert!(changed.contains(&key(2)) && changed.contains(&key(3)), "{changed:?}");
    assert_eq!(imported(&view, [1, 2, 3]), [Some(3), None, None]);
    let present = || {
        let mut present: EndpointSlice = imported_slice("member-2-work-app-3", "work-app");
        present.content = (*given(3, 1).spec.content).clone();
        present
    };
    observe_change(&mut view, present().object());
    let [Write { action: Action::Delete { kind: Kind::EndpointSlice, .. }, .. }] = &writes(&view, &key(3))[..] else {
        panic!("a slice beyond the limit is removed: {:?}", writes(&view, &key(3)))
    };
    let mut going = given(1, 3).marked();
    going.meta.deleting = true;
    observe_change(&mut view, Object::EndpointSliceImport(going));
    assert_eq!(imported(&view, [2]), [Some(2)], "one that is being deleted does not count");
}

// === The exporting member ===

fn exporting(service_name: &str) -> [Object; 2] {
    [service(service_name).object(), service_export(service_name).marked().object()]
}

fn creates_export(view: &fleetnet_core::member::Planner, path: &str) -> bool {
    let creates = |write: &Write| matches!(write.action, Action::Create(Desired::InternalServiceExport { .. }));
    writes(view, &Key::Export(named(path))).iter().any(creates)
}

/// Rule S30: A namespace has as many exported Services as `--max-exports-per-namespace` of the member agent allows
/// (500), or two and a half times as many exported slices
/// Then: The agent creates no further InternalServiceExport (or EndpointSliceExport) for the namespace, by neither API.
/// The ServiceExport has the condition `Valid=False` with reason `TooManyExports`. By the standard API, the condition
/// `Ready` is False with reason `Failed`, and its message says the cause. Existing exports stay. When one is gone, the
/// next one begins. A slice may replace an exported slice of its Service that waits for it
#[test]
fn a_namespace_has_a_limited_number_of_exports_and_those_that_exist_stay() {
    let objects = ["work/one", "work/two", "work/three", "shop/one"].into_iter().flat_map(exporting);
    let mut view = limited_member_view(LIMITS, objects);
    let internal = |path: &str| internal_export("member-1", &service(path));
    assert!(creates_export(&view, "work/three"));
    observe_change(&mut view, internal("work/one").object());
    assert!(creates_export(&view, "work/three"));
    let requeued = observe_change(&mut view, internal("work/two").object());
    assert!(requeued.contains(&Key::Export(named("work/three"))), "{requeued:?}");
    assert!(!creates_export(&view, "work/three"));
    assert!(creates_export(&view, "shop/one"), "another namespace does not notice");
    let requeued = observe_removal(&mut view, &internal("work/one").object());
    assert!(requeued.contains(&Key::Export(named("work/three"))), "{requeued:?}");
    assert!(creates_export(&view, "work/three"));
}

/// Also rule S30.
#[test]
fn the_limit_of_a_namespace_counts_exports_of_both_apis() {
    let mut view = fleetnet_core::member::Planner::new(Settings {
        limits: LIMITS,
        mcs_api: McsApi::LabelledNamespaces,
        ..crate::support::world::settings(0)
    });
    let mcs = ["work/one", "work/two", "work/three"].map(|path| [service(path).object(), mcs_export(path).object()]);
    let agent = member_agent("member-1", Features::ALL, Features::ALL).object();
    crate::support::view::complete(&mut view);
    for object in mcs.into_iter().flatten().chain([agent]) {
        observe_change(&mut view, object);
    }
    assert!(creates_export(&view, "work/three"));
    for path in ["work/one", "work/two"] {
        observe_change(&mut view, internal_export("member-1", &service(path)).mcs(mcs_part()).object());
    }
    assert!(!creates_export(&view, "work/three"));
    let plan = planned(&view, &Key::Export(named("work/three")));
    let [Write { action: Action::Patch { patch: Patch::McsServiceExportConditions(conditions), .. }, .. }] =
        &plan.writes[..]
    else {
        panic!("its user is told: {plan:?}")
    };
    let ready = conditions.iter().find(|it| &*it.condition_type == "Ready").expect("a condition");
    assert!(ready.message.contains("has 2 exported Services already"), "{ready:?}");
}

/// Also rule S30.
#[test]
fn a_namespace_has_two_and_a_half_times_as_many_exported_slices() {
    let path = |number: usize| format!("work/app-{number}");
    let source = |number: usize| slice(&path(number)).uid(&path(number));
    let internal = internal_export("member-1", &service("work/app")).judged(no_conflict("work/app"));
    let export = service_export("work/app").marked();
    let first = [service("work/app").object(), export.object(), internal.object()];
    let exported = (1..=4).map(|number| Object::EndpointSliceExport(slice_export("member-1", &source(number))));
    let objects = first.into_iter().chain((1..=6).map(|number| source(number).object())).chain(exported);
    let mut view = limited_member_view(LIMITS, objects);
    let key = |number| Key::SliceExport(named(&path(number)));
    let creates = |view: &fleetnet_core::member::Planner, number| {
        let creates = |write: &Write| matches!(write.action, Action::Create(Desired::EndpointSliceExport(_)));
        writes(view, &key(number)).iter().any(creates)
    };
    assert!(creates(&view, 5) && creates(&view, 6));
    observe_change(&mut view, Object::EndpointSliceExport(slice_export("member-1", &source(5))));
    assert!(!creates(&view, 6));
    observe_change(&mut view, Object::EndpointSliceExport(slice_export("member-1", &slice("shop/other-1"))));
    assert!(!creates(&view, 6), "the slices of another Service make no room");
    let reasons = planned(&view, &key(6));
    assert_eq!(
        blocking_reasons(&reasons).into_iter().map(|(reason, _)| reason).collect::<Vec<_>>(),
        ["TooManyExports"]
    );
    let mut replaced = fleetnet_core::member::Planner::clone(&view);
    let requeued = observe_removal(&mut replaced, &source(1).object());
    assert!(requeued.contains(&key(6)), "{requeued:?}");
    assert!(creates(&replaced, 6), "a slice that waits for its replacement makes room for it");
    observe_change(&mut replaced, source(7).endpoints(&[]).object());
    assert!(creates(&replaced, 6), "an empty slice takes no place of a replacement");
    observe_change(&mut replaced, Object::EndpointSliceExport(slice_export("member-1", &source(1)).deleting()));
    assert!(!creates(&replaced, 6), "and not again while it is being deleted");
    observe_removal(&mut view, &Object::EndpointSliceExport(slice_export("member-1", &source(1))));
    assert!(creates(&view, 6));
}
