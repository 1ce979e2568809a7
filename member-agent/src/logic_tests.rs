//! Tests of what the agent does besides the rules of `fleetnet_core`: latencies, logs, reports and parts that are off.

use super::*;
use crate::{export, import};
use fleetnet_core::member::{McsApi, Membership};
use fleetnet_core::model::{Claims, Finalizers, ImportStatus, Meta, ServiceImport};
use fleetnet_runtime::process::logging::captured::Captured;
use fleetnet_runtime::{Removal, Request, Verb, WatchState};
use prometheus::Registry;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const NOON: Timestamp = Timestamp::from_seconds(1_800_000_000);

fn member() -> Member {
    member_with(Parts::ALL, &Registry::new())
}

fn member_with(parts: Parts, registry: &Registry) -> Member {
    member_by(McsApi::Off, parts, registry)
}

fn member_by(mcs_api: McsApi, parts: Parts, registry: &Registry) -> Member {
    let settings = Settings {
        cluster: "member-1".into(),
        hub_namespace: "fleet-member-member-1".into(),
        fleet_system_namespace: "fleet-system".into(),
        source_ranges: BTreeMap::new(),
        own_ranges: fleetnet_core::member::OwnRanges::default(),
        load_balancers_per_namespace: None,
        derived_service_grace_micros: 0,
        announces: None,
        leader: "one".into(),
        takeover_after_micros: 0,
        membership: Membership::default(),
        mcs_api,
        routing_slices: false,
        cluster_selection: None,
        limits: fleetnet_core::member::Limits::default(),
    };
    Member::new(settings, parts, Reports::new("member-1", registry).expect("the only ones"))
}

fn complete(member: &mut Member, kinds: impl IntoIterator<Item = Kind>) {
    for kind in kinds {
        member.watch(kind, WatchNews::State(WatchState::Complete), NOON, &mut Vec::new());
    }
}

fn complete_all(member: &mut Member) {
    complete(member, export::LOCAL.into_iter().chain(import::LOCAL).chain(import::REMOTE).chain([Kind::MemberAgent]));
}

/// Plans a key and applies the effect of the plan, as the engine does.
fn plan(member: &mut Member, key: &Key) -> Plan<Kind, Receipt, Effect> {
    let mut plan = member.plan(key, NOON);
    if let Some(effect) = plan.effect.take() {
        member.planned(key, effect, NOON);
    }
    plan
}

fn hears(member: &mut Member, kind: Kind, json: &Value) {
    let observed = convert::observe(kind, json.to_string().as_bytes()).expect("an object");
    member.observe(kind, Change::Applied(observed.object), NOON, &mut Vec::new());
}

fn loses(member: &mut Member, kind: Kind, namespace: &str, name: &str) {
    let uid = format!("uid-{name}");
    let change = Change::Removed { name: ObjectName::new(namespace, name), uid: uid.into(), how: Removal::Deleted };
    member.observe(kind, change, NOON, &mut Vec::new());
}

/// Delivers a distributed slice to `member`, and an imported slice of the same name. The annotation of the imported
/// slice says that the latency was measured for generation 2 of the source slice.
fn imports(member: &mut Member, name: &str, namespace: &str) {
    let reference = json!({ "namespace": "work", "name": "app-1" });
    let distributed_slice = json!({
        "metadata": { "namespace": "fleet-member-member-1", "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1" },
        "spec": { "endpoints": [], "endpointSliceReference": reference, "ownerServiceReference": reference },
    });
    hears(member, Kind::EndpointSliceImport, &distributed_slice);
    let annotations = json!({ "networking.fleet.azure.com/last-observed-generation": "2" });
    let imported_slice = json!({
        "metadata": {
            "namespace": namespace, "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1",
            "annotations": annotations,
        },
        "addressType": "IPv4", "endpoints": [],
    });
    hears(member, Kind::EndpointSlice, &imported_slice);
}

/// Also rule T36.
#[test]
fn nothing_is_remembered_of_imported_slices_that_are_gone_in_whatever_order() {
    let mut member = member();
    for number in 0..100 {
        let name = format!("member-2-work-app-{number}");
        imports(&mut member, &name, "fleet-system");
        if number % 2 == 0 {
            loses(&mut member, Kind::EndpointSlice, "fleet-system", &name);
            loses(&mut member, Kind::EndpointSliceImport, "fleet-member-member-1", &name);
        } else {
            loses(&mut member, Kind::EndpointSliceImport, "fleet-member-member-1", &name);
            loses(&mut member, Kind::EndpointSlice, "fleet-system", &name);
        }
    }
    assert_eq!(member.observed.len(), 0);
}

#[test]
fn what_is_remembered_is_of_the_slices_that_the_hub_gives() {
    let mut member = member();
    imports(&mut member, "distributed", "fleet-system");
    loses(&mut member, Kind::EndpointSlice, "fleet-system", "distributed");
    assert_eq!(
        member.note_observed(&"distributed".into(), 2),
        Recorded::Generation,
        "somebody deleted the imported slice"
    );
    imports(&mut member, "another", "work");
    loses(&mut member, Kind::EndpointSlice, "work", "another");
    assert_eq!(member.note_observed(&"another".into(), 2), Recorded::Nothing, "a user's slice of the same name");
    assert_eq!(member.note_observed(&"gone".into(), 2), Recorded::Nothing);
    assert_eq!(member.observed.len(), 2, "its write was answered when the hub gave it no more");
}

/// Delivers an imported slice with one endpoint to `member`, in the form in which an API server returns the slice.
fn hears_slice(member: &mut Member, version: u64, endpoint: &Value) {
    hears_annotated_slice(member, version, endpoint, &json!({}));
}

fn hears_annotated_slice(member: &mut Member, version: u64, endpoint: &Value, annotations: &Value) {
    let slice = json!({
        "metadata": {
            "namespace": "fleet-system", "name": "app-1", "uid": "uid-app-1", "resourceVersion": version.to_string(),
            "labels": {
                "kubernetes.io/service-name": "work-app",
                "endpointslice.kubernetes.io/managed-by": "endpointsliceimport-controller.networking.fleet.azure.com",
            },
            "annotations": annotations,
        },
        "addressType": "IPv4",
        "endpoints": [endpoint],
        "ports": [],
    });
    hears(member, Kind::EndpointSlice, &slice);
}

/// Returns an agent that imports the Service `app-1` as the derived Service `work-app`.
fn importer() -> Member {
    let mut member = member();
    let meta = |namespace: &str, name: &str| json!({ "namespace": namespace, "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1" });
    let mut request = json!({ "metadata": meta("work", "app"), "spec": { "serviceImport": { "name": "app" } } });
    request["metadata"]["labels"] = json!({
        "networking.fleet.azure.com/service-import": "app",
        "networking.fleet.azure.com/derived-service": "work-app",
    });
    hears(&mut member, Kind::MultiClusterService, &request);
    let mut import = json!({ "metadata": meta("work", "app"), "status": { "clusters": [{ "cluster": "member-2" }] } });
    import["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "networking.fleet.azure.com/v1alpha1", "kind": "MultiClusterService", "name": "app",
        "uid": "uid-app", "controller": true,
    }]);
    hears(&mut member, Kind::ServiceImport, &import);
    let mut derived = json!({ "metadata": meta("fleet-system", "work-app"), "spec": { "ports": [] } });
    derived["metadata"]["labels"] = json!({
        "networking.fleet.azure.com/multi-cluster-service-name": "app",
        "networking.fleet.azure.com/multi-cluster-service-namespace": "work",
    });
    hears(&mut member, Kind::Service, &derived);
    let mut distributed_slice = json!({ "metadata": meta("fleet-member-member-1", "app-1") });
    distributed_slice["metadata"]["finalizers"] = json!(["networking.fleet.azure.com/endpointsliceimport-cleanup"]);
    distributed_slice["spec"] = json!({
        "endpoints": [{ "addresses": ["10.1.0.1"] }],
        "endpointSliceReference": { "clusterId": "member-2", "namespace": "work", "name": "app-1" },
        "ownerServiceReference": { "namespace": "work", "name": "app" },
    });
    hears(&mut member, Kind::EndpointSliceImport, &distributed_slice);
    complete_all(&mut member);
    member
}

/// Also rule T54.
#[test]
fn a_service_with_too_many_endpoints_of_an_exporter_is_reported_to_its_user() {
    let mut member = importer();
    let key = Key::SliceImport(ObjectName::new("fleet-system", "app-1"));
    assert_eq!(plan(&mut member, &key).events, [], "all is imported");
    member.view.settings.limits.imports.endpoints = 1;
    let reference = json!({ "clusterId": "member-2", "namespace": "work", "name": "app-1" });
    let metadata = json!({
        "namespace": "fleet-member-member-1", "name": "app-1", "uid": "uid-app-1", "resourceVersion": "2",
        "finalizers": ["networking.fleet.azure.com/endpointsliceimport-cleanup"],
    });
    let spec = json!({
        "endpoints": [{ "addresses": ["10.1.0.1"] }, { "addresses": ["10.1.0.2"] }],
        "endpointSliceReference": reference, "ownerServiceReference": { "namespace": "work", "name": "app" },
    });
    hears(&mut member, Kind::EndpointSliceImport, &json!({ "metadata": metadata, "spec": spec }));
    let plan = plan(&mut member, &key);
    let [event] = &plan.events[..] else { panic!("one Event: {:?}", plan.events) };
    assert_eq!((event.source, event.name.to_string()), (Kind::MultiClusterService, "work/app".to_owned()));
    assert_eq!((event.reason, event.severity), ("TooManyEndpoints", fleetnet_types::Severity::Warning));
    assert!(!event.message.contains("app-1"), "one Event for all slices: {}", event.message);
}

/// Also rule P12.
#[test]
fn what_the_answer_to_a_write_of_an_imported_slice_shows_is_a_webhooks_and_is_not_repaired() {
    let mut member = importer();
    let key = Key::SliceImport(ObjectName::new("fleet-system", "app-1"));
    let writes = |member: &mut Member| plan(member, &key).writes.len();
    let answered = |member: &mut Member, source: Kind, version: u64| {
        let request =
            Request { source, name: ObjectName::new("ns", "x"), verb: Verb::Delete { uid: "u".into() }, receipt: None };
        let end = WriteEnd::Done { version: Some(version) };
        let ended = WriteEnded { request: &request, end, receipt: None, failure: None, is_reported: false };
        member.write(&key, WriteNews::Ended(ended), NOON, &mut Vec::new());
    };
    let hinted = json!({ "addresses": ["10.1.0.1"], "hints": { "forZones": [{ "name": "zone-9" }] } });
    hears_slice(&mut member, 2, &json!({ "addresses": ["10.1.0.1"] }));
    assert_eq!(writes(&mut member), 0);
    hears_slice(&mut member, 3, &hinted);
    assert_eq!(writes(&mut member), 1, "somebody has edited it");
    answered(&mut member, Kind::EndpointSliceImport, 3);
    assert_eq!(writes(&mut member), 1, "the answer about another object");
    answered(&mut member, Kind::EndpointSlice, 3);
    assert_eq!(writes(&mut member), 0);
    hears_slice(&mut member, 4, &json!({ "addresses": ["10.1.0.1"], "nodeName": "node-1" }));
    assert_eq!(writes(&mut member), 1);
}

/// Also rule P13.
#[test]
fn an_older_distributed_slice_is_imported_after_a_minute_of_contact_with_the_hub() {
    let mut member = importer();
    let key = Key::SliceImport(ObjectName::new("fleet-system", "app-1"));
    let annotations = json!({ "networking.fleet.azure.com/last-observed-generation": "2" });
    hears_annotated_slice(&mut member, 2, &json!({ "addresses": ["10.1.0.2"] }), &annotations);
    let minute = |since: Timestamp| Some(since.plus_micros(60_000_000));
    assert_eq!(plan(&mut member, &key).again, minute(NOON));
    let mut connected = |is_connected: bool, at: Timestamp| {
        let mut requeue = Vec::new();
        member.watch(Kind::EndpointSliceImport, WatchNews::Connected(is_connected), at, &mut requeue);
        assert!(requeue.contains(&key), "{requeue:?}");
        let plan = plan(&mut member, &key);
        assert!(plan.writes.is_empty());
        plan.again
    };
    assert_eq!(connected(false, NOON), None);
    let back = NOON.plus_micros(300_000_000);
    assert_eq!(connected(true, back), minute(back));
}

/// Also rule J6.
#[test]
fn a_new_list_of_distributed_slices_drops_previews() {
    let (mut member, at) = (importer(), ObjectName::new("fleet-member-member-1", "app-1"));
    let generation = |member: &Member| {
        let slice = member.view.distributed_slices.get(&at).expect("a distributed slice");
        slice.spec.reference.generation
    };
    let object = member.view.distributed_slices.get(&at).expect("a distributed slice").spec.clone();
    let mut preview = object.clone();
    preview.reference.generation += 1;
    member.view.show_preview(&at.name, preview, NOON, &mut Vec::new());
    assert_eq!(generation(&member), object.reference.generation + 1);
    for is_listing in [false, true] {
        member.watch(Kind::EndpointSliceImport, WatchNews::Listing(is_listing), NOON, &mut Vec::new());
        assert_eq!(generation(&member), object.reference.generation + i64::from(!is_listing));
    }
}

const DISTRIBUTED_SLICE: &[u8] = br#"{
    "metadata": {"namespace": "fleet-member-member-1", "name": "distributed", "uid": "g", "resourceVersion": "1"},
    "spec": {
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}],
        "endpointSliceReference": {
            "clusterId": "member-2", "namespace": "work", "name": "app-1", "namespacedName": "work/app-1",
            "uid": "s", "resourceVersion": "1", "generation": 1, "exportedSince": "2026-11-21T03:46:15Z"
        },
        "ownerServiceReference": {"namespace": "work", "name": "app", "namespacedName": "work/app"}
    }
}"#;

/// Returns all metrics in the text format of Prometheus.
fn metrics(registry: &Registry) -> String {
    prometheus::TextEncoder::new().encode_to_string(&registry.gather()).expect("metrics are text")
}

/// Rule A16: The agent plans a key, also in a replica that does not lead
/// Then: The planning itself changes no state, logs nothing and counts nothing. Afterwards, the engine applies the
/// effects of the plan
#[test]
fn a_plan_made_twice_is_the_same_and_logs_and_counts_nothing() {
    let registry = Registry::new();
    let mut member = member_with(Parts::ALL, &registry);
    complete_all(&mut member);
    let slice = convert::observe(Kind::EndpointSliceImport, DISTRIBUTED_SLICE).expect("decodable").object;
    member.observe(Kind::EndpointSliceImport, Change::Applied(slice), NOON, &mut Vec::new());

    let log = Captured::at(4, &["member_agent", "fleetnet_agent"]);
    let before = metrics(&registry);
    let distributed = Key::SliceImport(ObjectName::new("fleet-system", "distributed"));
    for key in [distributed.clone(), Key::Heartbeat] {
        let first = format!("{:?}", member.plan(&key, NOON));
        assert_eq!(format!("{:?}", member.plan(&key, NOON)), first, "{key:?}");
    }
    assert_eq!(log.take(), [""; 0]);
    assert_eq!(metrics(&registry), before);
    plan(&mut member, &distributed);
    assert_eq!(log.take().len(), 1, "the log says why the slice is not imported when the effect is applied");
}

#[test]
fn the_reason_why_a_slice_is_not_imported_is_logged_from_level_2() {
    const REQUEST: &[u8] = br#"{
        "metadata": {"namespace": "work", "name": "app", "uid": "m", "resourceVersion": "2"},
        "spec": {"serviceImport": {"name": "app"}}
    }"#;
    let lines = |verbosity| {
        let mut member = member();
        let learn = |member: &mut Member, kind, json| {
            let object = convert::observe(kind, json).expect("readable").object;
            member.observe(kind, Change::Applied(object), NOON, &mut Vec::new());
        };
        let log = Captured::at(verbosity, &["member_agent"]);
        let key = Key::SliceImport(ObjectName::new("fleet-system", "distributed"));
        learn(&mut member, Kind::EndpointSliceImport, DISTRIBUTED_SLICE);
        plan(&mut member, &key);
        assert!(log.take().is_empty(), "nothing can be said before all is known");
        complete_all(&mut member);
        plan(&mut member, &key);
        learn(&mut member, Kind::MultiClusterService, REQUEST);
        plan(&mut member, &key);
        log.take()
    };
    let none: [&str; 0] = [];
    assert_eq!(lines(1), none);
    let expected = [
        "DEBUG not imported: no MultiClusterService imports this Service slice=distributed service=work/app",
        "DEBUG not imported yet: the derived Service does not exist slice=distributed service=work/app",
    ];
    assert_eq!(lines(2), expected);
    assert_eq!(lines(4), expected);
}

/// Also rule M24.
#[test]
fn a_part_that_makes_no_claims_lets_imports_go_that_nobody_claims() {
    let alone = Parts { multi_cluster_service: true, ..Parts::NONE };
    let exporting = Parts { export: true, ..Parts::NONE };
    for (parts, expected) in [(alone, 1), (exporting, 0)] {
        let mut member = member_with(parts, &Registry::new());
        complete(&mut member, [Kind::ServiceImport, Kind::InternalServiceImport]);
        let mut requeue = Vec::new();
        let change = Change::Applied(Object::ServiceImport(dying_import()));
        member.observe(Kind::ServiceImport, change, NOON, &mut requeue);
        let key = Key::Import(ObjectName::new("work", "app"));
        assert!(requeue.contains(&key), "{parts:?}");
        assert_eq!(plan(&mut member, &key).writes.len(), expected, "{parts:?}");
    }
}

fn dying_import() -> ServiceImport {
    ServiceImport {
        meta: Meta {
            name: ObjectName::new("work", "app"),
            uid: "u".into(),
            resource_version: 1,
            generation: 1,
            created: Timestamp(0),
            deleting: true,
            finalizers: Finalizers { ours: true, others: Vec::new() },
        },
        owners: Vec::new(),
        claims: Claims::default(),
        status: ImportStatus::default(),
        conditions: Vec::new(),
    }
}

/// Returns a member that imports `work/app` by the standard API, and that has not created anything for it.
fn importer_by_mcs_api() -> Member {
    let mut member = member_by(McsApi::AllNamespaces, Parts::ALL, &Registry::new());
    hears(
        &mut member,
        Kind::Namespace,
        &json!({ "metadata": { "name": "work", "uid": "uid-work", "resourceVersion": "1" } }),
    );
    let merged = json!({
        "metadata": {
            "namespace": "fleet-member-member-1", "name": "work-app-9529755fdb", "uid": "uid-merged", "resourceVersion": "1",
            "finalizers": ["networking.fleet.azure.com/mergedserviceimport-cleanup"],
        },
        "spec": {
            "serviceReference": { "namespace": "work", "name": "app" }, "type": "ClusterSetIP",
            "ports": [{ "port": 80 }], "ipFamilies": ["IPv4"], "clusters": [{ "cluster": "member-2" }],
        },
    });
    hears(&mut member, Kind::MergedServiceImport, &merged);
    complete(&mut member, [Kind::MergedServiceImport, Kind::Namespace, Kind::Service, Kind::McsServiceImport]);
    member
}

/// Tells `member` that a server denied a write of this key. Returns reason and object of each Event.
fn is_denied(member: &mut Member, key: &Key, request: &Request<Kind, Receipt>) -> Vec<(&'static str, String)> {
    let failure = WriteFailure {
        source: request.source,
        cluster: "member-1".to_owned(),
        kind: format!("{:?}", request.source),
        name: request.name.clone(),
        verb: "create",
        status: 403,
        reason: "Forbidden".to_owned(),
        message: "exceeded quota: services, used: 5, limited: 5".to_owned(),
    };
    let end = WriteEnd::Denied;
    let ended = WriteEnded { request, end, receipt: None, failure: Some(&failure), is_reported: true };
    let events = member.write(key, WriteNews::Ended(ended), NOON, &mut Vec::new());
    events.into_iter().map(|event| (event.reason, event.name.to_string())).collect()
}

/// Also rule MI19.
#[test]
fn a_failed_write_of_an_import_by_the_mcs_api_is_reported_where_its_user_looks() {
    let (mut member, key) = (importer_by_mcs_api(), Key::McsImport(ObjectName::new("work", "app")));
    let sources = |plan: &Plan<Kind, Receipt, Effect>| plan.writes.iter().map(|it| it.source).collect::<Vec<_>>();
    let first = plan(&mut member, &key);
    assert_eq!(sources(&first), [Kind::Service]);
    assert_eq!(is_denied(&mut member, &key, &first.writes[0]), [], "the ServiceImport shows it");
    let second = plan(&mut member, &key);
    assert_eq!(sources(&second), [Kind::Service, Kind::McsServiceImport]);
    let of_namespace = [("WriteDenied", "work".to_owned())];
    assert_eq!(is_denied(&mut member, &key, &second.writes[1]), of_namespace, "there is no ServiceImport");
    let labels = json!({ "app.kubernetes.io/managed-by": "fleetnet-member-agent" });
    let meta =
        json!({ "namespace": "work", "name": "app", "uid": "uid-app", "resourceVersion": "1", "labels": labels });
    let import = json!({ "metadata": meta, "spec": { "type": "ClusterSetIP", "ports": [{ "port": 80 }] } });
    hears(&mut member, Kind::McsServiceImport, &import);
    let third = plan(&mut member, &key);
    let Verb::Patch { subresource: Some("status"), body, .. } = &third.writes[1].verb else { panic!() };
    let ready = &body["status"]["conditions"][0];
    assert_eq!(
        (&ready["type"], &ready["status"], &ready["reason"]),
        (&json!("Ready"), &json!("False"), &json!("Pending"))
    );
    assert!(ready["message"].as_str().is_some_and(|message| message.contains("exceeded quota")), "{ready}");
    assert_eq!(is_denied(&mut member, &key, &third.writes[1]), [("WriteDenied", "work/app".to_owned())]);

    let reference = json!({ "namespace": "work", "name": "app" });
    let distributed = json!({
        "metadata": { "namespace": "fleet-member-member-1", "name": "app-1", "uid": "uid-app-1", "resourceVersion": "1" },
        "spec": { "endpoints": [], "endpointSliceReference": reference, "ownerServiceReference": reference },
    });
    hears(&mut member, Kind::EndpointSliceImport, &distributed);
    let slice = ObjectName::new("work", "app-1");
    let verb = Verb::Delete { uid: "u".into() };
    let request = Request { source: Kind::EndpointSlice, name: slice.clone(), verb, receipt: None };
    let of_import = [("WriteDenied", "work/app".to_owned())];
    assert_eq!(is_denied(&mut member, &Key::SliceImport(slice), &request), of_import, "of an imported slice");
}

/// Also rule MI3.
#[test]
fn the_writer_of_a_service_import_that_blocks_an_import_gets_an_event() {
    let (mut member, key) = (importer_by_mcs_api(), Key::McsImport(ObjectName::new("work", "app")));
    let meta =
        |name: &str| json!({ "namespace": "work", "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1" });
    let derived = fleetnet_core::names::mcs_derived(&ObjectName::new("work", "app"));
    let mut service = json!({ "metadata": meta(&derived.name) });
    service["metadata"]["labels"] = json!({
        "multicluster.kubernetes.io/service-name": "app", "app.kubernetes.io/managed-by": "fleetnet-member-agent",
    });
    service["spec"] =
        json!({ "ports": [{ "port": 80, "targetPort": 80 }], "clusterIPs": ["10.0.0.7"], "ipFamilies": ["IPv4"] });
    hears(&mut member, Kind::Service, &service);
    hears(
        &mut member,
        Kind::McsServiceImport,
        &json!({ "metadata": meta("app"), "spec": { "type": "ClusterSetIP", "ports": [] } }),
    );
    assert_eq!(plan(&mut member, &key).events.len(), 0, "another process leads and emits it");
    member.process(ProcessNews::Leads, NOON, &mut Vec::new());
    let planned = plan(&mut member, &key);
    let [event] = &planned.events[..] else { panic!("one Event") };
    assert_eq!(
        (event.reason, event.name.to_string(), planned.writes.len()),
        ("NameHeldByAnother", "work/app".to_owned(), 0)
    );
    assert!(event.message.contains("Delete it"), "{}", event.message);
}
