//! Tests of cluster selectors and weights: from the annotations of users to what the hub agent gives to an importer.

use crate::support::build::{
    Build, BuildClaim, BuildImport, BuildInternalExport, BuildRequest, BuildService, IntoObject, claim, condition,
    internal_export, mcs_export, mcs_part, member_agent, named, no_conflict, port, request, resolved, seconds, service,
    service_export, service_import,
};
use crate::support::view::{
    blocking_reasons, events, hub_view, observe_change, planned, undecodable, with_objects, writes,
};
use crate::support::world::settings;
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::hub;
use fleetnet_core::member::{self, Key, McsApi, Planner, Settings};
use fleetnet_core::model::{
    ClusterSelection, ClusterSelector, ExportedBy, InternalServiceExport, InternalServiceImport, Kind, McsExport,
    McsServiceExport, MemberAgent, MergedServiceImport, MultiClusterService, Object, Operator, Requirement,
};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Desired, ExportContent, Patch, Write};
use std::slice::from_ref;

/// Returns a selector of the clusters with this region.
fn in_region(region: &str) -> ClusterSelector {
    let requirement = Requirement { key: "region".into(), operator: Operator::In, values: vec![region.into()] };
    ClusterSelector { requirements: vec![requirement] }
}

fn near_first() -> Vec<ClusterSelector> {
    vec![in_region("@SameAsImporter@"), in_region("east")]
}

// === Member agent ===

/// Returns the view of a member agent, with cluster selection or without.
fn member_view(selects: bool, hub: Features, objects: impl IntoIterator<Item = Object>) -> Planner {
    let cluster_selection = selects.then(member::ClusterSelection::default);
    let view = Planner::new(Settings { mcs_api: McsApi::LabelledNamespaces, cluster_selection, ..settings(0) });
    with_objects(view, objects.into_iter().chain([member_agent("member-1", Features::ALL, hub).object()]))
}

/// Returns the content that the plan of `work/app` writes to the hub.
fn written(view: &Planner) -> Option<ExportContent> {
    writes(view, &Key::Export(named("work/app"))).into_iter().find_map(|write| match write.action {
        Action::Create(Desired::InternalServiceExport { content, .. })
        | Action::Patch { patch: Patch::InternalServiceExport { content, .. }, .. } => Some(content),
        _ => None,
    })
}

/// Returns status, reason and message of the condition `Valid` that the plan writes to the ServiceExport.
fn valid(view: &Planner) -> Option<(&'static str, String, String)> {
    let list = writes(view, &Key::Export(named("work/app"))).into_iter().find_map(|write| match write.action {
        Action::Patch { patch: Patch::McsServiceExportConditions(list), .. } => Some(list),
        _ => None,
    })?;
    let valid = list.into_iter().find(|it| &*it.condition_type == "Valid")?;
    Some((valid.status.as_str(), valid.reason.to_string(), valid.message.to_string()))
}

fn selecting(selectors: Result<Vec<ClusterSelector>, &str>) -> McsServiceExport {
    McsServiceExport { cluster_selectors: selectors.map_err(Into::into), ..mcs_export("work/app") }
}

/// Rule CS7: A user sets the annotation `networking.fleet.azure.com/cluster-selectors` of a ServiceExport of the
/// standard API, or the weight of a ServiceExport
/// Then: The member agent carries both to the hub, in one write of the InternalServiceExport. Without
/// `--cluster-selection`, or if the hub agent does not announce the feature `ClusterSelection`, it carries neither
#[test]
fn selectors_and_weights_travel_to_the_hub_only_with_cluster_selection() {
    let export = McsServiceExport { weight: Some("10".into()), ..selecting(Ok(near_first())) };
    let objects = || [service("work/app").object(), export.clone().object()];
    let old_hub = Features::ALL.without(Feature::ClusterSelection);
    for (selects, hub, sends) in [(true, Features::ALL, true), (false, Features::ALL, false), (true, old_hub, false)] {
        let content = written(&member_view(selects, hub, objects())).expect("an export");
        let selectors = content.mcs.map(|mcs| mcs.cluster_selectors.clone()).expect("a part");
        let expected = if sends { (near_first(), Some(10)) } else { (Vec::new(), None) };
        assert_eq!((selectors, content.weight), expected, "{selects} {hub:?}");
    }
    let fleet = service_export("work/app").marked();
    let fleet = fleetnet_core::model::ServiceExport { weight: Some("20".into()), ..fleet };
    let both = objects().into_iter().chain([fleet.object()]);
    let content = written(&member_view(true, Features::ALL, both)).expect("an export");
    assert_eq!(content.weight, Some(20), "the fleet's ServiceExport decides");
}

/// Rule CS8: The cluster selectors of a ServiceExport are malformed, or its Service is headless
/// Then: The member agent sets `Valid=False` (reason `InvalidClusterSelector`, or `InvalidServiceType` for a headless
/// Service). The export stays, with the last valid selectors
#[test]
fn malformed_selectors_are_shown_and_the_last_valid_ones_stay() {
    let part = McsExport { cluster_selectors: near_first(), export_created: Some(seconds(1)), ..mcs_part() };
    let present = |source: &fleetnet_core::model::Service| internal_export("member-1", source).mcs(part.clone());
    let source = service("work/app");
    let malformed = selecting(Err("selector 1: propertySelector is empty"));
    let view = member_view(
        true,
        Features::ALL,
        [source.clone().object(), malformed.clone().object(), present(&source).object()],
    );
    assert_eq!(written(&view), None, "the export stays as it is");
    let (status, reason, message) = valid(&view).expect("a condition");
    assert_eq!((status, &*reason), ("False", "InvalidClusterSelector"));
    assert_eq!(
        message,
        "the annotation networking.fleet.azure.com/cluster-selectors of ServiceExport work/app of cluster member-1 is malformed: selector \
         1: propertySelector is empty. The last valid cluster selectors stay in use. Correct the annotation"
    );
    let view = member_view(false, Features::ALL, [source.object(), malformed.object()]);
    assert_eq!(valid(&view).map(|(status, ..)| status), Some("True"), "without cluster selection, nobody reads it");
    let headless = service("work/app").headless();
    let objects = [headless.clone().object(), selecting(Ok(near_first())).object(), present(&headless).object()];
    let (status, reason, _) = valid(&member_view(true, Features::ALL, objects)).expect("a condition");
    assert_eq!((status, &*reason), ("False", "InvalidServiceType"));
}

/// Rule CS9: A user sets the annotation `networking.fleet.azure.com/cluster-selectors` of a MultiClusterService
/// Then: With `--cluster-selection`, the member agent copies the selectors to the claim, in one write for each change.
/// While they are malformed, the claim keeps those that it has, and the condition `ClusterSelectorsValid` is False
#[test]
fn the_claim_has_the_selectors_of_the_multi_cluster_service() {
    let stored = service_import("work/app").controlled_by(&request("work/app").taken_on());
    let claimed = |selectors: Vec<ClusterSelector>| InternalServiceImport { selectors, ..claim("member-1", &stored) };
    let plan = |selects: bool, selectors: Result<Vec<ClusterSelector>, &str>, claim: &InternalServiceImport| {
        let request =
            MultiClusterService { cluster_selectors: selectors.map_err(Into::into), ..request("work/app").taken_on() };
        let view =
            member_view(selects, Features::ALL, [request.object(), stored.clone().object(), claim.clone().object()]);
        let conditions = writes(&view, &Key::MultiClusterService(named("work/app")));
        (writes(&view, &Key::Import(named("work/app"))), format!("{conditions:?}").contains("ClusterSelectorsValid"))
    };
    let (without, with) = (claimed(Vec::new()), claimed(near_first()));
    let patch = |selectors| vec![Write::patch(&without.meta, Patch::ClaimSelectors(selectors))];
    let table = [
        (plan(true, Ok(near_first()), &without), (patch(near_first()), false)),
        (plan(true, Ok(near_first()), &with), (Vec::new(), false)),
        (plan(true, Ok(Vec::new()), &with), (patch(Vec::new()), false)),
        (plan(true, Err("no list"), &with), (Vec::new(), true)),
        (plan(false, Ok(near_first()), &without), (Vec::new(), false)),
        (plan(false, Err("no list"), &without), (Vec::new(), false)),
        (plan(false, Ok(near_first()), &with), (patch(Vec::new()), false)),
    ];
    for (number, (planned, expected)) in table.into_iter().enumerate() {
        assert_eq!(planned, expected, "row {number}");
    }
    let malformed = condition("ClusterSelectorsValid", "False", "InvalidClusterSelector", "no list", 1);
    let mended = MultiClusterService { conditions: vec![malformed], ..request("work/app").taken_on() };
    let view = member_view(true, Features::ALL, [mended.object(), stored.object()]);
    let events = events(&view, &Key::MultiClusterService(named("work/app")));
    assert!(events.contains(&"ClusterSelectorsRead"), "{events:?}");
}

// === Hub agent ===

fn export(number: i64, selectors: Vec<ClusterSelector>, weight: Option<i64>) -> InternalServiceExport {
    let service = service("work/app").ports(&[port("http", 80)]);
    let part = McsExport { cluster_selectors: selectors, ..mcs_part() };
    let export = internal_export(&format!("member-{number}"), &service).created(seconds(number)).mcs(part);
    InternalServiceExport { weight, ..export }
}

fn agent(number: i64, region: &str, features: Features) -> Object {
    let properties = [("region".into(), region.into())].into();
    MemberAgent { properties, ..member_agent(&format!("member-{number}"), features, Features::ALL) }.object()
}

fn merged_key(number: i64) -> hub::Key {
    let importer = names::member_namespace(&format!("member-{number}"));
    hub::Key::MergedImport { service: named("work/app"), importer }
}

fn selection(results: &[&[&str]], weights: &[(&str, i64)]) -> ClusterSelection {
    let results = results.iter().map(|clusters| clusters.iter().map(|it| (*it).into()).collect());
    let weights = weights.iter().map(|(cluster, weight)| ((*cluster).into(), *weight));
    ClusterSelection { results: results.collect(), weights: weights.collect() }
}

/// Returns the selection in the MergedServiceImport that a plan creates or sets.
fn selected(view: &hub::Planner, number: i64) -> Option<ClusterSelection> {
    writes(view, &merged_key(number)).into_iter().find_map(|write| match write.action {
        Action::Create(Desired::MergedServiceImport { selection, .. })
        | Action::Patch { patch: Patch::MergedServiceImport { selection, .. }, .. } => Some(selection),
        _ => None,
    })
}

fn fleet(exports: &[InternalServiceExport]) -> hub::Planner {
    let agents = [
        agent(1, "west", Features::ALL),
        agent(2, "east", Features::ALL),
        agent(3, "west", Features::ALL.without(Feature::ClusterSelection)),
    ];
    hub_view(exports.iter().cloned().map(IntoObject::object).chain(agents))
}

/// Rule CS10: Clusters export a Service by the standard API with cluster selectors or weights
/// Then: The MergedServiceImport of each member that announces the feature `ClusterSelection` has the results for this
/// member, and the weights that are not 1. A change is one write for each such member whose results change. Without
/// selectors and weights, no object has more
#[test]
fn each_importer_gets_the_results_for_it() {
    let exports = [export(1, near_first(), None), export(2, near_first(), Some(10))];
    let view = fleet(&exports);
    let weights = &[("member-2", 10)][..];
    assert_eq!(selected(&view, 1), Some(selection(&[&["member-1"], &["member-2"]], weights)));
    assert_eq!(selected(&view, 2), Some(selection(&[&["member-2"], &["member-2"]], weights)));
    assert_eq!(selected(&view, 3), Some(ClusterSelection::default()), "its agent selects no clusters");
    let plain = fleet(&[export(1, Vec::new(), None), export(2, Vec::new(), Some(1))]);
    assert_eq!(selected(&plain, 1), Some(ClusterSelection::default()));
}

/// Returns the MergedServiceImport that the plan of a member creates.
fn created(view: &hub::Planner, number: i64) -> MergedServiceImport {
    let Some(Action::Create(Desired::MergedServiceImport { service, import, selection })) =
        writes(view, &merged_key(number)).into_iter().map(|write| write.action).next()
    else {
        panic!("it is created")
    };
    let at = crate::support::build::merged_service_import(&format!("member-{number}"), "work/app", &import);
    MergedServiceImport { service, import, selection, ..at }
}

/// Rule CS11: The properties of the importer or of an exporter change, or become unknown
/// Then: The hub agent writes the new results. While properties are unknown, the results stay as they are, and the
/// metric `fleetnet_hindrances` and the log name the broken object (reason `PropertiesUnknown`)
#[test]
fn results_follow_the_properties_and_stay_while_these_are_unknown() {
    let mut view = fleet(&[export(1, near_first(), None), export(2, near_first(), None)]);
    let given = created(&view, 1);
    observe_change(&mut view, given.object());
    assert_eq!(writes(&view, &merged_key(1)), []);
    observe_change(&mut view, agent(2, "west", Features::ALL));
    assert_eq!(selected(&view, 1), Some(selection(&[&["member-1", "member-2"], &[]], &[])));
    undecodable(&mut view, Kind::MemberAgent, &names::member_agent(&"member-2".into()));
    let plan = planned(&view, &merged_key(1));
    assert_eq!(plan.writes, [], "the last results stay");
    let [(reason, message)] = blocking_reasons(&plan)[..] else { panic!("it is reported") };
    assert_eq!(reason, "PropertiesUnknown");
    assert!(message.starts_with("MemberAgent fleet-member-member-2/member-2 of the hub is undecodable"), "{message}");
}

/// Rule CS12: The cluster selectors of the exports of a Service differ
/// Then: Those of the oldest export are used, and all exports show the conflict `ClusterSelectorsConflict`. Lists are
/// equal only as a whole, in the same order
#[test]
fn the_selectors_of_the_oldest_export_are_used() {
    let reversed: Vec<_> = near_first().into_iter().rev().collect();
    for (older, younger, conflicts) in [
        (near_first(), near_first(), false),
        (near_first(), reversed, true),
        (near_first(), Vec::new(), true),
        (Vec::new(), near_first(), true),
    ] {
        let view = fleet(&[export(1, older.clone(), None), export(2, younger, None)]);
        let results = selected(&view, 1).expect("a selection").results.len();
        assert_eq!(results, older.len());
        let shown = format!("{:?}", writes(&view, &hub::Key::Service(named("work/app"))));
        assert_eq!(shown.matches("\"ClusterSelectorsConflict\"").count(), if conflicts { 2 } else { 0 }, "{shown}");
    }
}

/// Rule CS13: A claim has cluster selectors, or exports of its Service have weights
/// Then: The hub agent writes the results for the claim's member and the weights to the claim, in the annotation
/// `fleetnet/cluster-selection`. It does so only if the member announces the feature `ClusterSelection`, and removes
/// the annotation otherwise
#[test]
fn a_granted_claim_gets_the_results_for_its_member() {
    let status = resolved(&["member-1", "member-2"]);
    let import = service_import("work/app").showing(status.clone()).claimed_by(&["member-1"]);
    let granted = claim("member-1", &service_import("work/app")).marked().with_status(status);
    let export = |number: i64, weight| {
        let both = McsExport { exported_by: ExportedBy::Both, ..mcs_part() };
        InternalServiceExport { mcs: Some(both.into()), ..export(number, Vec::new(), weight) }
            .judged(no_conflict("work/app"))
    };
    let plan = |claim: &InternalServiceImport, features: Features, weight: Option<i64>| {
        let exports = [export(1, None).object(), export(2, weight).object()];
        let agents = [agent(1, "west", features), agent(2, "east", Features::ALL)];
        let view = hub_view(exports.into_iter().chain(agents).chain([import.clone().object(), claim.clone().object()]));
        let writes = writes(&view, &hub::Key::Service(named("work/app"))).into_iter();
        let selection = writes.filter_map(|write| match write.action {
            Action::Patch { patch: Patch::ClaimSelection(selection), .. } => Some(selection),
            _ => None,
        });
        selection.collect::<Vec<_>>()
    };
    let selecting = InternalServiceImport { selectors: near_first(), ..granted.clone() };
    let expected = selection(&[&["member-1"], &["member-2"]], &[("member-2", 0)]);
    assert_eq!(plan(&selecting, Features::ALL, Some(0)), from_ref(&expected));
    assert_eq!(plan(&granted, Features::ALL, None), []);
    assert_eq!(plan(&granted, Features::ALL, Some(5)), [selection(&[], &[("member-2", 5)])]);
    let old = Features::ALL.without(Feature::ClusterSelection);
    assert_eq!(plan(&selecting, old, Some(0)), [], "its agent selects no clusters");
    let shown = InternalServiceImport { selection: expected, ..selecting };
    assert_eq!(plan(&shown, Features::ALL, Some(0)), [], "a restart writes nothing");
    assert_eq!(plan(&shown, old, Some(0)), [ClusterSelection::default()]);
}
