//! Tests of decoding objects: as the Go agents wrote them, without any field, and with invalid values in any field.
#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod support;

use fleetnet_api::decode::decode;
use fleetnet_core::model::{
    AddressType, Announcement, Claims, ClusterSelection, ConsumerType, Endpoint, EndpointSlice, ExportedBy, HubSlice,
    ImportStatus, ImportType, InternalLoadBalancer, InternalServiceExport, InternalServiceImport, IpFamily, Kind,
    LoadBalancerStatus, McsExport, McsProperties, McsServiceExport, MemberStatus, MergedCluster, Meta,
    MultiClusterService, Namespace, Object, Owner, Place, PortSetStamp, Service, ServiceExport, ServiceImport,
    ServiceType, SessionAffinity, TargetPort,
};
use fleetnet_types::ClusterId;
use fleetnet_types::{ObjectName, Timestamp, Traced, Traceparent, Uid, Undecodable};
use property::{cases, for_any};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use support::{MADE, condition, content, exported_slice, fixture, http_80, imported_from, kept, meta, reference, text};

const FIXTURES: [(&str, Kind); 14] = [
    ("Service of a user", Kind::Service),
    ("Service derived", Kind::Service),
    ("EndpointSlice of a user", Kind::EndpointSlice),
    ("EndpointSlice imported", Kind::EndpointSlice),
    ("ServiceExport in conflict", Kind::ServiceExport),
    ("MultiClusterService", Kind::MultiClusterService),
    ("ServiceImport in a member", Kind::ServiceImport),
    ("ServiceImport on the hub", Kind::ServiceImport),
    ("InternalServiceExport", Kind::InternalServiceExport),
    ("InternalServiceImport", Kind::InternalServiceImport),
    ("EndpointSliceExport", Kind::EndpointSliceExport),
    ("EndpointSliceImport", Kind::EndpointSliceImport),
    ("MemberAgent", Kind::MemberAgent),
    ("Namespace that names members", Kind::Namespace),
];

fn read(kind: Kind, json: &Value) -> Object {
    decode(kind, json.to_string().as_bytes()).unwrap()
}

fn undecodable(kind: Kind, json: &Value) -> Undecodable {
    decode(kind, json.to_string().as_bytes()).unwrap_err()
}

/// Returns the smallest JSON of an object that a server can return: only the metadata that identifies the object.
fn least(namespace: &str, name: &str) -> Value {
    json!({ "metadata": { "namespace": namespace, "name": name, "uid": "u", "resourceVersion": "7" } })
}

fn least_meta(namespace: &str, name: &str) -> Meta {
    Meta { created: Timestamp(0), ..meta(namespace, name, "u", 7, 0) }
}

/// Also rule T62.
#[test]
fn services_as_the_go_agents_leave_them() {
    let users = Service {
        meta: meta("work", "svc0", "2b5a3720-832e-4301-b7fb-229ff265f474", 233, 0),
        service_type: ServiceType::ClusterIp,
        headless: false,
        ports: vec![http_80()],
        session_affinity: SessionAffinity::None,
        dual_stack: false,
        families: vec![IpFamily::IPv4],
        has_selector_or_external_ips: false,
        internal_traffic_policy: Some("Cluster".into()),
        is_external_policy_local: false,
        traffic_distribution: None,
        imports: None,
        cluster_ips: vec!["10.0.185.13".into()],
        derived_from: None,
        relabelled: false,
        internal_load_balancer: false,
        load_balancer: LoadBalancerStatus::default(),
    };
    assert_eq!(read(Kind::Service, &fixture("Service of a user")), Object::Service(users.clone()));
    let derived = Service {
        meta: meta("fleet-system", "work-svc0", "25962644-c7ea-4bdc-b2f0-05cce2f82f7e", 253, 0),
        service_type: ServiceType::LoadBalancer,
        derived_from: Some(ObjectName::new("work", "svc0")),
        cluster_ips: vec!["10.0.253.21".into()],
        relabelled: false,
        ..users
    };
    assert_eq!(read(Kind::Service, &fixture("Service derived")), Object::Service(derived));
}

#[test]
fn slices_as_the_go_agents_leave_them() {
    let users = EndpointSlice {
        meta: meta("work", "svc0-0", "4a210213-4fbc-4116-ac85-ccffe838e4a9", 301, 3),
        service: Some(text("svc0")),
        mcs: None,
        imported: false,
        relabelled: false,
        excess: 0,
        further_addresses: 0,
        content: content(&["10.1.0.13", "172.16.0.2"]),
        observed_generation: None,
        traced: None,
    };
    assert_eq!(read(Kind::EndpointSlice, &fixture("EndpointSlice of a user")), Object::EndpointSlice(users.clone()));
    let mut at = meta("fleet-system", "exporter-work-svc0-0-12d5c", "37388deb-65ac-4f53-89c7-6d88acd71a7e", 305, 3);
    at.created = Timestamp(1_795_232_768_000_000);
    let imported = EndpointSlice { meta: at, service: Some(text("work-svc0")), imported: true, ..users };
    assert_eq!(read(Kind::EndpointSlice, &fixture("EndpointSlice imported")), Object::EndpointSlice(imported));
}

#[test]
fn annotations_for_traces_are_read_and_malformed_ones_count_as_absent() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let of = |name: &str, kind, parent: &str, triggered: &str| {
        let mut json = fixture(name);
        json["metadata"]["annotations"] = json!({
            "tracing.k8s.io/traceparent": parent, "endpoints.kubernetes.io/last-change-trigger-time": triggered,
        });
        match read(kind, &json) {
            Object::EndpointSlice(slice) => slice.traced,
            Object::EndpointSliceExport(slice) | Object::EndpointSliceImport(slice) => slice.traced,
            other => panic!("{other:?}"),
        }
    };
    let traceparent = Traceparent::read(parent);
    let both = Some(Box::new(Traced { traceparent, triggered: Some(Timestamp::from_seconds(1_795_232_775)) }));
    for (name, kind) in [
        ("EndpointSlice of a user", Kind::EndpointSlice),
        ("EndpointSliceExport", Kind::EndpointSliceExport),
        ("EndpointSliceImport", Kind::EndpointSliceImport),
    ] {
        assert_eq!(of(name, kind, parent, "2026-11-21T03:46:15Z"), both, "{name}");
        assert_eq!(of(name, kind, "00-<script>", "soon"), None, "{name}");
    }
}

#[test]
fn hub_slices_as_the_go_agents_leave_them() {
    let name = "exporter-work-svc0-0-12d5c";
    let export = HubSlice {
        meta: kept(meta("fleet-member-exporter", name, "39e36db4-f2d6-466b-9765-82152290f258", 343, 3)),
        spec: exported_slice(),
        observed_generation: None,
        misnamed: false,
        deleted: None,
        traced: None,
    };
    let expected = Object::EndpointSliceExport(export.clone());
    assert_eq!(read(Kind::EndpointSliceExport, &fixture("EndpointSliceExport")), expected);
    let import = HubSlice {
        meta: kept(meta("fleet-member-importer0", name, "2791b2cd-1706-49e1-b22c-a1ca2b091316", 345, 3)),
        observed_generation: Some(3),
        ..export
    };
    let expected = Object::EndpointSliceImport(import);
    assert_eq!(read(Kind::EndpointSliceImport, &fixture("EndpointSliceImport")), expected);
}

#[test]
fn a_service_export_as_the_go_agents_leave_it() {
    let since = Timestamp(1_795_232_782_000_000);
    let mut at = kept(meta("work", "svc0", "fc96304c-d732-4874-9096-2f92b3c987d5", 315, 1));
    at.created = since;
    let valid = condition("Valid", "True", "ServiceIsValid", "service work/svc0 is valid for export", since);
    let message = "service work/svc0 is in conflict with other exported services";
    let conflict = condition("Conflict", "True", "ConflictFound", message, since);
    let expected = ServiceExport { meta: at, weight: None, headless: false, conditions: vec![valid, conflict] };
    let found = read(Kind::ServiceExport, &fixture("ServiceExport in conflict"));
    assert_eq!(found, Object::ServiceExport(expected));
}

#[test]
fn a_multi_cluster_service_as_the_go_agents_leave_it() {
    let expected = MultiClusterService {
        meta: kept(meta("work", "svc0", "485b1ed9-7491-4be7-8b2d-62e2d2b038f7", 254, 1)),
        import_name: text("svc0"),
        consumer_type: ConsumerType::LoadBalancer,
        internal_load_balancer: InternalLoadBalancer::NotRequested,
        import_label: Some(text("svc0")),
        derived_label: Some(text("work-svc0")),
        weights: Ok(BTreeMap::new()),
        cluster_selectors: Ok(Vec::new()),
        conditions: vec![condition("Valid", "True", "FoundServiceImport", "found valid service import", MADE)],
        load_balancer: LoadBalancerStatus::default(),
    };
    let found = read(Kind::MultiClusterService, &fixture("MultiClusterService"));
    assert_eq!(found, Object::MultiClusterService(expected));
}

/// Also rule CS19.
#[test]
fn weights_of_an_importer_are_whole_numbers_from_0_to_1000() {
    let table = [
        (r#"{"west":80,"east":20}"#, Ok([("east".into(), 20), ("west".into(), 80)].into())),
        (r#"{"west":0,"east":1000}"#, Ok([("east".into(), 1000), ("west".into(), 0)].into())),
        ("{}", Ok(BTreeMap::new())),
        (r#"{"west":1001}"#, Err("the weight 1001 of west is not from 0 to 1000")),
        (r#"{"west":-1}"#, Err("the weight -1 of west is not from 0 to 1000")),
        (r#"{"west":"80"}"#, Err("it is no JSON object with a whole number for each cluster: ")),
        ("80", Err("it is no JSON object with a whole number for each cluster: ")),
        ("", Err("it is no JSON object with a whole number for each cluster: ")),
    ];
    for (written, expected) in table {
        let metadata = json!({"namespace": "work", "name": "app", "uid": "u", "resourceVersion": "1",
            "annotations": {"networking.fleet.azure.com/weights": written}});
        let json = json!({"metadata": metadata, "spec": {"serviceImport": {"name": "app"}}});
        let Object::MultiClusterService(found) = read(Kind::MultiClusterService, &json) else { panic!() };
        match expected {
            Ok(expected) => assert_eq!(found.weights, Ok(expected), "{written}"),
            Err(expected) => {
                let error = found.weights.expect_err(written);
                assert!(error.starts_with(expected), "{written}: {error}");
            }
        }
    }
}

#[test]
fn service_imports_as_the_go_agents_leave_them() {
    let owner = Owner {
        api_version: text("networking.fleet.azure.com/v1alpha1"),
        kind: text("MultiClusterService"),
        name: text("svc0"),
        uid: Uid::from("485b1ed9-7491-4be7-8b2d-62e2d2b038f7"),
        controller: true,
        block_owner_deletion: true,
    };
    let in_member = ServiceImport {
        meta: kept(meta("work", "svc0", "d7310d2b-323f-47c7-a4fc-4967c61a8e0e", 242, 1)),
        owners: vec![owner],
        claims: Claims::default(),
        status: imported_from("exporter"),
        conditions: Vec::new(),
    };
    let found = read(Kind::ServiceImport, &fixture("ServiceImport in a member"));
    assert_eq!(found, Object::ServiceImport(in_member));
    let importers = BTreeMap::from([("fleet-member-importer0".into(), ClusterId::from("importer0"))]);
    let on_hub = ServiceImport {
        meta: kept(meta("work", "svc0", "e1ff16bb-09c6-4ad3-9c47-ba4b768b005e", 243, 1)),
        owners: Vec::new(),
        claims: Claims { present: true, importers, load_balancer: None },
        status: imported_from("exporter"),
        conditions: Vec::new(),
    };
    let found = read(Kind::ServiceImport, &fixture("ServiceImport on the hub"));
    assert_eq!(found, Object::ServiceImport(on_hub));
}

#[test]
fn internal_exports_and_imports_as_the_go_agents_leave_them() {
    let message = "service work/svc0 is exported without conflict";
    let export = InternalServiceExport {
        meta: kept(meta("fleet-member-exporter", "work-svc0", "00f36a0c-e77e-4354-917f-d1f7588e7b94", 239, 1)),
        reference: reference("exporter", "svc0", "2b5a3720-832e-4301-b7fb-229ff265f474", "233", 0, MADE),
        ports: vec![http_80()],
        headless: false,
        session_affinity: SessionAffinity::None,
        mcs: None,
        weight: None,
        conditions: vec![condition("Conflict", "False", "NoConflictFound", message, MADE)],
        stamp: None,
        precedence: Vec::new(),
    };
    let found = read(Kind::InternalServiceExport, &fixture("InternalServiceExport"));
    assert_eq!(found, Object::InternalServiceExport(export));
    let import = InternalServiceImport {
        meta: kept(meta("fleet-member-importer0", "work-svc0", "746fd3f4-3527-482f-86e8-a68acbd482c5", 248, 2)),
        reference: reference("importer0", "svc0", "d7310d2b-323f-47c7-a4fc-4967c61a8e0e", "242", 1, MADE),
        consumer_type: ConsumerType::LoadBalancer,
        status: imported_from("exporter"),
        selection: ClusterSelection::default(),
        selectors: Vec::new(),
    };
    let found = read(Kind::InternalServiceImport, &fixture("InternalServiceImport"));
    assert_eq!(found, Object::InternalServiceImport(import));
}

#[test]
fn parts_for_the_mcs_api_are_read_and_what_would_end_an_export_makes_the_object_undecodable() {
    let export = |part: &Value| {
        let mut json = fixture("InternalServiceExport");
        json["spec"]["multicluster"] = part.clone();
        json
    };
    let read_part = |part: &Value| match read(Kind::InternalServiceExport, &export(part)) {
        Object::InternalServiceExport(export) => export.mcs.map(|part| (*part).clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!(read_part(&Value::Null), None);
    assert_eq!(read_part(&json!({})), Some(McsExport::default()));
    let part = json!({
        "only": true,
        "exportCreationTimestamp": "2026-11-21T03:46:06Z",
        "recreated": true,
        "ipFamilies": ["IPv5", "IPv4"],
        "internalTrafficPolicy": "Local",
        "trafficDistribution": 7,
        "exportedLabels": [{ "name": "team", "value": "a" }, { "name": "empty" }, { "value": "unnamed" }],
        "exportedAnnotations": {},
    });
    let expected = McsExport {
        exported_by: ExportedBy::McsApi,
        properties: McsProperties {
            families: vec![IpFamily::IPv4],
            internal_traffic_policy: Some(text("Local")),
            traffic_distribution: None,
            labels: BTreeMap::from([(text("team"), text("a")), (text("empty"), text(""))]),
            annotations: BTreeMap::new(),
        },
        export_created: Some(MADE),
        is_recreated: true,
        cluster_selectors: Vec::new(),
    };
    assert_eq!(read_part(&part), Some(expected));
    assert_eq!(read_part(&json!({ "exportCreationTimestamp": "soon" })), Some(McsExport::default()));
    let pair = json!({ "name": "a", "value": "b" });
    let long = |bytes: usize| Value::from("a".repeat(bytes));
    assert!(read_part(&json!({ "exportedLabels": many(32, &pair), "internalTrafficPolicy": long(63) })).is_some());
    for part in [
        json!(7),
        json!([]),
        json!({ "exportedLabels": many(33, &pair) }),
        json!({ "exportedAnnotations": [{ "name": "a", "value": long(1025) }] }),
        json!({ "internalTrafficPolicy": long(64) }),
        json!({ "clusterSelectors": 7 }),
        json!({ "clusterSelectors": many(17, &json!({})) }),
    ] {
        undecodable(Kind::InternalServiceExport, &export(&part));
    }
}

#[test]
fn places_of_exports_are_read_and_malformed_ones_are_left_out() {
    let places = |places: Value| {
        let mut json = fixture("InternalServiceExport");
        json["status"]["precedence"] = places;
        json
    };
    let read_places = |list: Value| match read(Kind::InternalServiceExport, &places(list)) {
        Object::InternalServiceExport(export) => export.precedence,
        other => panic!("{other:?}"),
    };
    let at = "2026-11-21T03:46:06.000000Z";
    let place = json!({ "cluster": "west", "exportCreationTimestamp": at, "since": at });
    let expected = Place { cluster: "west".into(), export_created: MADE, since: MADE };
    let malformed = json!({ "cluster": "east", "exportCreationTimestamp": 7, "since": at });
    assert_eq!(read_places(json!([malformed, place])), [expected]);
    assert_eq!(read_places(json!(7)), []);
    undecodable(Kind::InternalServiceExport, &places(many(17, &place)));
}

#[test]
fn a_merged_import_is_read_and_what_would_end_an_import_makes_it_undecodable() {
    let merged = |spec: Value| {
        let mut json = least("fleet-member-a", "app");
        json["spec"] = spec;
        json
    };
    let service = json!({ "namespace": "work", "name": "app" });
    let Object::MergedServiceImport(import) = read(
        Kind::MergedServiceImport,
        &merged(
            json!({ "serviceReference": service, "type": "Headless", "clusters": [{ "cluster": "member-1" }, {}] }),
        ),
    ) else {
        panic!("another kind")
    };
    assert_eq!(import.service, ObjectName::new("work", "app"));
    let only = MergedCluster { cluster: "member-1".into(), ports: None };
    assert_eq!((import.import.import_type, &import.import.clusters), (ImportType::Headless, &vec![only]));
    for spec in [
        json!({ "type": "Headless", "clusters": [] }),
        json!({ "serviceReference": service, "clusters": [] }),
        json!({ "serviceReference": service, "type": "Other", "clusters": [] }),
        json!({ "serviceReference": service, "type": "Headless", "clusters": 7 }),
        json!({ "serviceReference": service, "type": "Headless", "clusters": many(1001, &json!({})) }),
    ] {
        undecodable(Kind::MergedServiceImport, &merged(spec));
    }
}

#[test]
fn what_is_left_out_is_read_as_the_api_means_it() {
    let mut namespace = least("", "work");
    namespace["metadata"].as_object_mut().unwrap().remove("namespace");
    let open = Namespace {
        meta: least_meta("", "work"),
        exporters: None,
        importers: None,
        source_ranges: fleetnet_core::ranges::SourceRanges::Any,
        properties: Ok(BTreeMap::new()),
        is_importing: false,
    };
    assert_eq!(read(Kind::Namespace, &namespace), Object::Namespace(open.clone()));
    namespace["metadata"]["annotations"] = json!({
        "networking.fleet.azure.com/exporters": "member-1, member-2,",
        "networking.fleet.azure.com/importers": "",
    });
    let exporters = Some(["member-1".into(), "member-2".into()].into());
    let expected = Object::Namespace(Namespace { exporters, importers: Some([].into()), ..open });
    assert_eq!(read(Kind::Namespace, &namespace), expected);

    let expected =
        ServiceExport { meta: least_meta("work", "app"), weight: None, headless: false, conditions: Vec::new() };
    assert_eq!(read(Kind::ServiceExport, &least("work", "app")), Object::ServiceExport(expected));

    let expected = EndpointSlice {
        meta: least_meta("work", "app"),
        service: None,
        mcs: None,
        imported: false,
        relabelled: false,
        excess: 0,
        further_addresses: 0,
        content: fleetnet_core::model::SliceContent {
            address_type: AddressType::Other(text("")),
            endpoints: Vec::new(),
            draining: Vec::new(),
            ports: Vec::new(),
        },
        observed_generation: None,
        traced: None,
    };
    let mut slice = least("work", "app");
    slice["endpoints"] = Value::Null;
    slice["ports"] = Value::Null;
    assert_eq!(read(Kind::EndpointSlice, &slice), Object::EndpointSlice(expected));

    let Object::MultiClusterService(found) = read(Kind::MultiClusterService, &least("work", "app")) else { panic!() };
    assert_eq!((&*found.import_name, found.consumer_type), ("", ConsumerType::LoadBalancer));

    let Object::ServiceImport(found) = read(Kind::ServiceImport, &least("work", "app")) else { panic!() };
    assert_eq!((found.claims.present, found.status), (false, ImportStatus::default()));
}

/// Rule X5: An agent decodes or encodes the conditions of an endpoint
/// Then: An endpoint without conditions is ready. An endpoint that is serving but not ready is draining. An imported
/// slice shows a draining endpoint as serving and terminating
#[test]
fn endpoints_that_are_ready_or_have_no_conditions_are_kept_and_draining_ones_apart() {
    let mut slice = fixture("EndpointSlice of a user");
    let with = |conditions: Value, address: &str| json!({ "addresses": [address], "conditions": conditions });
    slice["endpoints"] = json!([
        with(json!({ "ready": true }), "10.0.0.1"),
        with(json!({ "ready": false, "serving": true, "terminating": true }), "10.0.0.2"),
        with(json!({ "ready": null }), "10.0.0.3"),
        with(json!({}), "10.0.0.4"),
        with(Value::Null, "10.0.0.5"),
        with(json!({ "ready": "certainly" }), "10.0.0.6"),
        with(json!("ready"), "10.0.0.7"),
        { "addresses": [] },
        { "addresses": ["10.0.0.8", 9, "10.0.0.10"], "hostname": "h", "nodeName": "n", "zone": "z" },
        "10.0.0.11",
        with(json!({ "ready": false, "serving": false }), "10.0.0.12"),
        with(json!({ "ready": false }), "10.0.0.13"),
        with(json!({ "ready": true, "serving": false }), "10.0.0.14"),
    ]);
    let Object::EndpointSlice(found) = read(Kind::EndpointSlice, &slice) else { panic!() };
    let one = |address| vec![address];
    let expected = vec![
        one("10.0.0.1"),
        one("10.0.0.3"),
        one("10.0.0.4"),
        one("10.0.0.5"),
        vec!["10.0.0.8", "10.0.0.10"],
        one("10.0.0.14"),
    ];
    assert_eq!(addresses(&found.content.endpoints), expected);
    assert_eq!(addresses(&found.content.draining), [one("10.0.0.2")]);
    let detailed = &found.content.endpoints[4];
    assert_eq!((detailed.hostname.as_deref(), detailed.zone.as_deref()), (Some("h"), Some("z")));
}

fn addresses(endpoints: &[Endpoint]) -> Vec<Vec<String>> {
    endpoints.iter().map(|endpoint| endpoint.addresses.iter().map(ToString::to_string).collect()).collect()
}

#[test]
fn a_slice_of_the_hub_lists_what_is_ready_and_what_drains() {
    let mut slice = fixture("EndpointSliceExport");
    slice["spec"]["addressType"] = "IPv6".into();
    slice["spec"]["endpoints"] = json!([{ "addresses": ["fd00::1"], "hostname": "db-0", "zone": "z" }]);
    slice["spec"]["drainingEndpoints"] = json!([{ "addresses": ["fd00::2"] }, { "addresses": [] }]);
    let Object::EndpointSliceExport(found) = read(Kind::EndpointSliceExport, &slice) else { panic!() };
    let content = found.spec.content;
    assert_eq!(content.address_type, AddressType::IPv6);
    assert_eq!(addresses(&content.endpoints), [["fd00::1"]]);
    assert_eq!(content.endpoints[0].hostname.as_deref(), Some("db-0"));
    assert_eq!(addresses(&content.draining), [["fd00::2"]]);
    slice["spec"]["drainingEndpoints"] = "none".into();
    let undecodable = decode(Kind::EndpointSliceExport, slice.to_string().as_bytes()).unwrap_err();
    assert_eq!(undecodable.why, "drainingEndpoints is not a list");
}

/// Also rule X10.
#[test]
fn session_affinity_is_read_as_an_api_server_completes_it() {
    let mut json = fixture("Service of a user");
    let table = [
        (json!("None"), Value::Null, SessionAffinity::None),
        (json!("ClientIP"), Value::Null, SessionAffinity::ClientIp { timeout_seconds: 10_800 }),
        (json!("ClientIP"), json!({ "clientIP": null }), SessionAffinity::ClientIp { timeout_seconds: 10_800 }),
        (
            json!("ClientIP"),
            json!({ "clientIP": { "timeoutSeconds": 60 } }),
            SessionAffinity::ClientIp { timeout_seconds: 60 },
        ),
        (Value::Null, json!({ "clientIP": { "timeoutSeconds": 60 } }), SessionAffinity::None),
        (json!(7), json!(7), SessionAffinity::None),
    ];
    for (affinity, config, expected) in table {
        json["spec"]["sessionAffinity"] = affinity;
        json["spec"]["sessionAffinityConfig"] = config;
        let Object::Service(found) = read(Kind::Service, &json) else { panic!() };
        assert_eq!(found.session_affinity, expected, "{json}");
    }
}

/// Also rule X10.
#[test]
fn both_address_families_are_requested_by_a_policy_and_headless_exports_by_an_annotation() {
    let mut json = fixture("Service of a user");
    for (policy, expected) in [("SingleStack", false), ("PreferDualStack", true), ("RequireDualStack", true)] {
        json["spec"]["ipFamilyPolicy"] = policy.into();
        let Object::Service(found) = read(Kind::Service, &json) else { panic!() };
        assert_eq!(found.dual_stack, expected, "{policy}");
    }
    for (value, expected) in [("true", true), ("false", false), ("yes", false)] {
        let mut json = least("work", "app");
        json["metadata"]["annotations"] = json!({ "networking.fleet.azure.com/export-headless": value });
        let Object::ServiceExport(found) = read(Kind::ServiceExport, &json) else { panic!() };
        assert_eq!(found.headless, expected, "{value}");
    }
}

#[test]
fn a_member_agent_decodes_whatever_its_content() {
    let mut json = least("fleet-member-a", "a");
    for nonsense in [
        Value::Null,
        json!(7),
        json!({ "version": 7, "features": "IPv6", "renewTime": "soon", "clusterUid": 7, "leaderIdentity": [] }),
    ] {
        json["spec"] = nonsense;
        let Object::MemberAgent(found) = read(Kind::MemberAgent, &json) else { panic!() };
        assert_eq!(
            (found.member, found.renewed, found.status),
            (Announcement::default(), None, MemberStatus::default())
        );
        assert_eq!((found.cluster_uid, found.leader), (None, None));
    }
    json["spec"] = json!({ "properties": { "a": "1", "b": 2 } });
    let Object::MemberAgent(found) = read(Kind::MemberAgent, &json) else { panic!() };
    assert_eq!(found.properties, [(text("a"), text("1"))].into());
    // The hub agent does not read the latency summary, so its content has no effect.
    json["spec"] = json!({ "clusterUid": "", "leaderIdentity": "one", "latency": {"origins": "x", "buckets": [[]]} });
    let Object::MemberAgent(found) = read(Kind::MemberAgent, &json) else { panic!() };
    assert_eq!((found.cluster_uid, found.leader), (None, Some(text("one"))), "an empty UID is none");
}

#[test]
fn the_properties_in_an_annotation_are_texts_by_name_within_limits() {
    let found = |annotation: &str| {
        let mut json = least("", "fleet-member-west");
        json["metadata"]["annotations"] = json!({ "networking.fleet.azure.com/cluster-properties": annotation });
        let Object::Namespace(found) = read(Kind::Namespace, &json) else { panic!() };
        found.properties
    };
    let pair = |name: &str, value: &str| [(text(name), text(value))].into();
    assert_eq!(found("{}"), Ok(BTreeMap::new()));
    assert_eq!(found(r#"{"a.example/tier": ""}"#), Ok(pair("a.example/tier", "")));
    assert_eq!(found(&json!({ "cost": "x".repeat(256) }).to_string()), Ok(pair("cost", &"x".repeat(256))));
    let many =
        |number: usize| json!((0..number).map(|it| (format!("a{it}"), "")).collect::<BTreeMap<_, _>>()).to_string();
    assert_eq!(found(&many(64)).map(|found| found.len()), Ok(64));
    for (annotation, why) in [
        ("", "it is no JSON object of texts, such as {\"region\":\"north\"}: "),
        (r#"{"a":1}"#, "it is no JSON object of texts, "),
        (r#"["a"]"#, "it is no JSON object of texts, "),
        (r#"{"a b":""}"#, "\"a b\" is no name of a property, or its value has more than 256 bytes"),
        (&json!({ "cost": "x".repeat(257) }).to_string(), "\"cost\" is no name of a property"),
        (&many(65), "it has 65 properties, and at most 64 count"),
    ] {
        let found = found(annotation).expect_err(annotation);
        assert!(found.starts_with(why), "{found}");
    }
}

#[test]
fn services_of_every_type_and_without_an_address() {
    let types = [
        ("ClusterIP", ServiceType::ClusterIp),
        ("NodePort", ServiceType::NodePort),
        ("LoadBalancer", ServiceType::LoadBalancer),
        ("ExternalName", ServiceType::ExternalName),
    ];
    for (name, expected) in types {
        let mut json = fixture("Service of a user");
        json["spec"]["type"] = name.into();
        json["spec"]["clusterIP"] = "None".into();
        json["spec"]["ports"] = json!([{ "port": 53, "protocol": "UDP", "targetPort": "dns", "appProtocol": "dns" }]);
        let Object::Service(found) = read(Kind::Service, &json) else { panic!() };
        assert_eq!((found.service_type, found.headless), (expected, true));
        let port = &found.ports[0];
        assert_eq!((&*port.name, &*port.protocol, port.port.as_written()), ("", "UDP", 53));
        assert_eq!(port.target_port, Some(TargetPort::Name(text("dns"))));
        assert_eq!(port.app_protocol, Some(text("dns")));
    }
}

/// Also rules M28, MI18.
#[test]
fn what_leads_clients_of_a_service_elsewhere_is_read() {
    let of = |spec: Value| {
        let Object::Service(service) = read(Kind::Service, &{
            let mut json = fixture("Service derived");
            json["spec"] = spec;
            json
        }) else {
            panic!()
        };
        (service.has_selector_or_external_ips, service.is_external_policy_local)
    };
    assert_eq!(of(json!({})), (false, false));
    assert_eq!(of(json!({ "selector": {}, "externalIPs": [], "externalTrafficPolicy": "Cluster" })), (false, false));
    assert_eq!(of(json!({ "selector": null, "externalIPs": null })), (false, false));
    assert_eq!(of(json!({ "selector": { "app": "web" } })), (true, false));
    assert_eq!(of(json!({ "externalIPs": ["192.0.2.1"] })), (true, false));
    assert_eq!(of(json!({ "externalTrafficPolicy": "Local" })), (false, true));
}

#[test]
fn a_derived_services_addresses_and_annotation_are_read() {
    let mut json = fixture("Service derived");
    json["metadata"]["annotations"] = json!({ "service.beta.kubernetes.io/azure-load-balancer-internal": "true" });
    json["status"] = json!({ "loadBalancer": { "ingress": [
        { "ip": "20.0.0.1", "ipMode": "VIP" },
        { "hostname": "lb.example", "ports": [{ "port": 80, "protocol": "TCP", "error": "Refused" }] },
    ] } });
    let Object::Service(found) = read(Kind::Service, &json) else { panic!() };
    assert!(found.internal_load_balancer);
    let [first, second] = &found.load_balancer.ingress[..] else { panic!() };
    assert_eq!((first.ip.as_deref(), first.ip_mode.as_deref()), (Some("20.0.0.1"), Some("VIP")));
    assert_eq!((second.hostname.as_deref(), second.ports[0].error.as_deref()), (Some("lb.example"), Some("Refused")));
}

/// Rule M27: A user requests an internal load balancer with the annotation of Azure,
/// `service.beta.kubernetes.io/azure-load-balancer-internal`, or with a value that is neither true nor false
/// Then: Both annotations count, and a load balancer is public only if none of them requests another one. Values are
/// those of Go's `strconv.ParseBool`. With another value, the member agent neither creates nor changes the load
/// balancer, and sets `Valid=False` with reason `InternalLoadBalancerInvalid`
///
/// Also rule X10.
#[test]
fn what_users_set_on_a_multi_cluster_service_is_read() {
    use InternalLoadBalancer::{Malformed, NotRequested, Requested};
    let fleet = "networking.fleet.azure.com/azure-load-balancer-internal";
    let azure = "service.beta.kubernetes.io/azure-load-balancer-internal";
    for (annotations, expected) in [
        (json!({}), NotRequested),
        (json!({fleet: "1"}), Requested),
        (json!({fleet: "T"}), Requested),
        (json!({azure: "true"}), Requested),
        (json!({azure: "TRUE", fleet: "false"}), Requested),
        (json!({azure: "yes", fleet: "true"}), Requested),
        (json!({fleet: "yes"}), Malformed),
        (json!({azure: ""}), Malformed),
        (json!({azure: "tRUE", fleet: "false"}), Malformed),
        (json!({fleet: "false", azure: "0"}), NotRequested),
    ] {
        let mut json = fixture("MultiClusterService");
        json["spec"]["type"] = "ClusterIP".into();
        json["metadata"]["annotations"] = annotations;
        let Object::MultiClusterService(found) = read(Kind::MultiClusterService, &json) else { panic!() };
        assert_eq!((found.internal_load_balancer, found.consumer_type), (expected, ConsumerType::ClusterIp));
    }
}

#[test]
fn annotations_of_ours_are_read_and_what_cannot_be_is_as_if_it_were_absent() {
    let export = |annotation: &str| {
        let mut json = fixture("InternalServiceExport");
        json["metadata"]["annotations"]["networking.fleet.azure.com/ports-offered-since"] = annotation.into();
        let Object::InternalServiceExport(found) = read(Kind::InternalServiceExport, &json) else { panic!() };
        found.stamp
    };
    let since = Timestamp(MADE.0 + 250_000);
    let expected = Some(PortSetStamp { since, ports: text("1f0c9a77e2") });
    assert_eq!(export("2026-11-21T03:46:06.250000Z 1f0c9a77e2"), expected);
    for undecodable in ["", "2026-11-21T03:46:06Z", "soon 1f0c9a77e2", "1f0c9a77e2 2026-11-21T03:46:06Z"] {
        assert_eq!(export(undecodable), None, "{undecodable:?}");
    }

    let mut json = fixture("InternalServiceImport");
    json["metadata"]["annotations"] = json!({ "networking.fleet.azure.com/service-type": "ClusterIP" });
    let Object::InternalServiceImport(found) = read(Kind::InternalServiceImport, &json) else { panic!() };
    assert_eq!(found.consumer_type, ConsumerType::ClusterIp);

    let mut json = fixture("EndpointSlice imported");
    json["metadata"]["annotations"] = json!({ "networking.fleet.azure.com/last-observed-generation": "12" });
    let Object::EndpointSlice(found) = read(Kind::EndpointSlice, &json) else { panic!() };
    assert_eq!(found.observed_generation, Some(12));

    let mut json = fixture("ServiceExport in conflict");
    json["metadata"]["annotations"]["networking.fleet.azure.com/weight"] = " 12".into();
    let Object::ServiceExport(found) = read(Kind::ServiceExport, &json) else { panic!() };
    assert_eq!(found.weight.as_deref(), Some(" 12"));
}

#[test]
fn a_claim_that_cannot_be_decoded_is_there_and_names_nobody() {
    for annotation in ["", "{}", "null", "[]", "{\"MemberClusters\":7}", "{\"MemberClusters\":{\"a\":1}}", "{"] {
        let mut json = fixture("ServiceImport on the hub");
        json["metadata"]["annotations"]["networking.fleet.azure.com/service-in-use-by"] = annotation.into();
        let Object::ServiceImport(found) = read(Kind::ServiceImport, &json) else { panic!() };
        assert_eq!(
            found.claims,
            Claims { present: true, importers: BTreeMap::new(), load_balancer: None },
            "{annotation:?}"
        );
    }
}

/// Rule X6: An object has finalizers of other writers
/// Then: The finalizers of other writers stay when an agent adds or removes its own finalizer
#[test]
fn finalizers_of_others_are_kept_apart_from_ours() {
    let mut json = fixture("EndpointSliceExport");
    json["metadata"]["finalizers"] =
        json!(["a.example/one", "networking.fleet.azure.com/endpointsliceexport-cleanup", "b.example/two"]);
    json["metadata"]["deletionTimestamp"] = "2026-11-21T04:00:00Z".into();
    let found = read(Kind::EndpointSliceExport, &json);
    let finalizers = &found.meta().finalizers;
    assert!(finalizers.ours && found.meta().deleting);
    assert_eq!(finalizers.others, [text("a.example/one"), text("b.example/two")]);
    json["metadata"]["finalizers"] = json!(["networking.fleet.azure.com/endpointsliceimport-cleanup"]);
    assert!(!read(Kind::EndpointSliceExport, &json).meta().finalizers.ours, "another kind's is not ours");
}

/// Rule X3: An object is being deleted
/// Then: The object is decodable with any content of its fields
#[test]
fn an_object_that_is_being_deleted_decodes_whatever_its_content() {
    for (name, kind) in FIXTURES {
        let whole = fixture(name);
        for nonsense in [json!(7), json!({}), json!({ "conditions": 7, "clusters": 7, "ports": 7, "endpoints": 7 })] {
            let mut json = json!({ "metadata": whole["metadata"].clone(), "endpoints": nonsense });
            json["spec"] = nonsense.clone();
            json["status"] = nonsense.clone();
            json["metadata"]["deletionTimestamp"] = "2026-11-21T04:00:00Z".into();
            let meta = read(kind, &whole).meta().clone();
            assert_eq!(*read(kind, &json).meta(), Meta { deleting: true, ..meta }, "{name} of {nonsense}");
        }
    }
}

#[test]
fn what_is_no_object_is_undecodable_with_a_reason() {
    for json in ["", "{", "[]", "null", "7", "{\"metadata\":{\"name\":\"a\"}"] {
        let undecodable = decode(Kind::EndpointSlice, json.as_bytes()).unwrap_err();
        assert_eq!((&*undecodable.name.name, &*undecodable.uid, undecodable.resource_version), ("", "", 0), "{json}");
        assert!(!undecodable.why.is_empty());
    }
}

/// Rule X1: An object has no name, UID or resourceVersion
/// Then: The object is undecodable
#[test]
fn without_name_uid_or_version_an_object_is_undecodable_and_known_fields_are_kept() {
    for (field, expected) in [
        ("name", ("work", "", "4a210213-4fbc-4116-ac85-ccffe838e4a9", 301)),
        ("uid", ("work", "svc0-0", "", 301)),
        ("resourceVersion", ("work", "svc0-0", "4a210213-4fbc-4116-ac85-ccffe838e4a9", 0)),
    ] {
        let mut json = fixture("EndpointSlice of a user");
        json["metadata"][field] = "".into();
        let undecodable = undecodable(Kind::EndpointSlice, &json);
        let known =
            (&*undecodable.name.namespace, &*undecodable.name.name, &*undecodable.uid, undecodable.resource_version);
        assert_eq!(known, expected);
    }
}

#[test]
fn an_undecodable_object_comes_with_its_identity_and_the_reason() {
    let mut json = fixture("EndpointSliceExport");
    json["spec"]["endpoints"] = "many".into();
    let expected = Undecodable {
        name: ObjectName::new("fleet-member-exporter", "exporter-work-svc0-0-12d5c"),
        uid: "39e36db4-f2d6-466b-9765-82152290f258".into(),
        resource_version: 343,
        why: "endpoints is not a list".to_owned(),
    };
    assert_eq!(undecodable(Kind::EndpointSliceExport, &json), expected);
}

// === Objects whose content exceeds a limit ===

fn many(count: usize, element: &Value) -> Value {
    vec![element.clone(); count].into()
}

/// Returns every list and text that has a limit: kind, fixture, JSON pointer, a value of the maximum length, and a
/// value that is one element or byte longer.
fn limited() -> Vec<(Kind, &'static str, &'static str, Value, Value)> {
    let text = |bytes: usize| Value::from("a".repeat(bytes));
    let mut limited = Vec::new();
    for kind in [Kind::EndpointSliceExport, Kind::EndpointSliceImport] {
        let name = if kind == Kind::EndpointSliceExport { "EndpointSliceExport" } else { "EndpointSliceImport" };
        let list = |most: usize, element: Value| (many(most, &element), many(most + 1, &element));
        let endpoint = json!({ "addresses": ["10.0.0.1"] });
        for (pointer, (most, more)) in [
            ("/spec/endpoints", list(1000, endpoint.clone())),
            ("/spec/endpoints", list(1000, json!({}))),
            ("/spec/endpoints", list(1000, json!(7))),
            ("/spec/ports", list(1000, json!({ "port": 80 }))),
            ("/spec/endpoints/0/hostname", (text(63), text(64))),
            ("/spec/endpoints/0/zone", (text(253), text(254))),
            ("/spec/ports/0/name", (text(63), text(64))),
            ("/spec/ports/0/protocol", (text(63), text(64))),
            ("/spec/ports/0/appProtocol", (text(317), text(318))),
            ("/spec/endpointSliceReference/name", (text(253), text(254))),
            ("/spec/endpointSliceReference/namespace", (text(63), text(64))),
            ("/spec/endpointSliceReference/uid", (text(253), text(254))),
            ("/spec/endpointSliceReference/clusterId", (text(253), text(254))),
            ("/spec/endpointSliceReference/resourceVersion", (text(253), text(254))),
            ("/spec/ownerServiceReference/name", (text(253), text(254))),
            ("/spec/ownerServiceReference/namespace", (text(63), text(64))),
        ] {
            limited.push((kind, name, pointer, most, more));
        }
        limited.push((kind, name, "/spec/drainingEndpoints", many(999, &endpoint), many(1000, &endpoint)));
    }
    let port = json!({ "name": "http", "port": 80 });
    let name = "InternalServiceExport";
    for (pointer, most, more) in [
        ("/spec/ports", many(1000, &port), many(1001, &port)),
        ("/spec/ports/0/name", text(63), text(64)),
        ("/spec/ports/0/targetPort", text(63), text(64)),
        ("/spec/serviceReference/name", text(253), text(254)),
    ] {
        limited.push((Kind::InternalServiceExport, name, pointer, most, more));
    }
    let name = "InternalServiceImport";
    limited.push((Kind::InternalServiceImport, name, "/spec/serviceImportReference/name", text(253), text(254)));
    limited
}

/// Rule T37: An object has more endpoints, ports or text than its limit
/// Then: The object is undecodable (rule A9), and the agent stores nothing beyond the limit. A ResourceQuota limits the
/// number of a member's objects
///
/// Rule X2: An array or a string in an object of the hub is longer than its limit
/// Then: The object is undecodable. The agent decodes nothing beyond the limit
#[test]
fn what_is_more_than_its_limit_makes_an_object_undecodable_and_what_is_as_much_does_not() {
    for (kind, name, pointer, most, more) in limited() {
        let mut json = fixture(name);
        if kind == Kind::EndpointSliceExport || kind == Kind::EndpointSliceImport {
            json["spec"]["endpoints"] = json!([{ "addresses": ["10.0.0.1"], "hostname": "h", "zone": "z" }]);
            json["spec"]["ports"] = json!([{ "name": "http", "protocol": "TCP", "port": 80, "appProtocol": "h2c" }]);
            json["spec"]["drainingEndpoints"] = json!([]);
        } else if kind == Kind::InternalServiceExport {
            json["spec"]["ports"][0]["targetPort"] = "http".into();
        }
        *json.pointer_mut(pointer).unwrap_or_else(|| panic!("{name} has no {pointer}")) = most;
        let whole = read(kind, &json).meta().clone();
        *json.pointer_mut(pointer).unwrap() = more;
        let found = undecodable(kind, &json);
        let known = (found.name, found.uid, found.resource_version);
        let expected = (whole.name, whole.uid, whole.resource_version);
        assert_eq!(known, expected, "{name} {pointer}: it is known which object it is");
        assert!(found.why.contains("more than") || found.why.contains("may have"), "{pointer}: {}", found.why);

        json["metadata"]["deletionTimestamp"] = "2026-11-21T04:00:00Z".into();
        assert!(read(kind, &json).meta().deleting, "{name} {pointer}: one that is to go is decodable");
    }
}

#[test]
fn an_object_beyond_a_limit_is_named_with_what_is_too_much() {
    let mut json = fixture("EndpointSliceExport");
    json["spec"]["endpoints"] = many(1001, &json!({ "addresses": ["10.0.0.1"] }));
    let found = undecodable(Kind::EndpointSliceExport, &json);
    assert!(found.why.starts_with("a list has more than 1000 elements at line 1 column "), "{}", found.why);
    json["spec"]["endpoints"] = many(600, &json!({ "addresses": ["10.0.0.1"] }));
    json["spec"]["drainingEndpoints"] = many(401, &json!({ "addresses": ["10.0.0.1"] }));
    let found = undecodable(Kind::EndpointSliceExport, &json);
    assert_eq!(found.why, "endpoints and drainingEndpoints have more than 1000 elements together");
    json["spec"]["drainingEndpoints"] = Value::Null;
    json["spec"]["ownerServiceReference"]["name"] = "a".repeat(254).into();
    let found = undecodable(Kind::EndpointSliceExport, &json);
    assert!(found.why.starts_with("a text has 254 bytes, and may have 253 at line 1 column "), "{}", found.why);
}

/// Returns the JSON of a slice with `count` copies of an endpoint. The test below chooses `count` so that the JSON has
/// 1 to 1.5 MB, about the size of the largest object that a server stores.
fn flood(endpoint: &str, count: usize) -> Vec<u8> {
    let mut json = fixture("EndpointSliceExport");
    json["spec"]["endpoints"] = json!([]);
    let many = format!("\"endpoints\":[{endpoint}{}]", format!(",{endpoint}").repeat(count - 1));
    json.to_string().replacen("\"endpoints\":[]", &many, 1).into_bytes()
}

/// Also rule T37.
#[test]
fn what_is_beyond_a_limit_is_not_kept_while_an_object_is_decoded() {
    let hundred = format!("{{\"addresses\":[{}\"10.0.0.1\"]}}", "\"10.0.0.1\",".repeat(99));
    let many = format!("{{\"addresses\":[{}\"1\"]}}", "\"1\",".repeat(350_000));
    for (endpoint, count) in
        [("{}", 500_000), ("7", 750_000), ("{\"addresses\":[\"1\"]}", 75_000), (&*many, 1), (&*hundred, 1_200)]
    {
        let json = flood(endpoint, count);
        assert!(json.len() > 1_000_000);
        let mut undecodable = None;
        let used = allocation_counter::measure(|| undecodable = decode(Kind::EndpointSliceExport, &json).err());
        let why = undecodable.map(|undecodable| undecodable.why).unwrap_or_default();
        assert!(why.contains("more than") || endpoint == many, "{why}");
        // With 100 addresses in each endpoint, 1000 endpoints with 8 addresses are decoded before the error.
        let most = if endpoint == hundred { 1 << 20 } else { 512 << 10 };
        assert!(used.bytes_max < most, "{} bytes for {count} times {:.30}", used.bytes_max, endpoint);
    }
}

/// Returns the number of bytes that a decoded EndpointSliceExport keeps.
fn bytes_kept(kind: Kind, json: &Value) -> u64 {
    let json = json.to_string();
    let mut slice = None;
    let used = allocation_counter::measure(|| slice = decode(kind, json.as_bytes()).ok());
    assert!(slice.is_some(), "a bound of addresses never makes a slice undecodable");
    u64::try_from(used.bytes_current).expect("memory is kept")
}

/// Rule X12: An endpoint of a slice has more than 8 addresses, or an address of more than 45 characters
/// Then: The agents use the first 8 addresses that have at most 45 characters. The slice stays decodable
///
/// Also rule E17.
#[test]
fn of_the_addresses_of_an_endpoint_the_first_8_that_may_be_ip_addresses_are_kept() {
    let longest = "0000:0000:0000:0000:0000:ffff:255.255.255.255";
    assert_eq!(longest.len(), 45);
    let mut given = vec![json!(7), json!("a".repeat(46)), json!(longest)];
    given.extend((1..=20).map(|it| json!(format!("10.0.0.{it}"))));
    let kept = ["0000:0000:0000:0000:0000:ffff:255.255.255.255"].into_iter().map(str::to_owned);
    let kept: Vec<String> = kept.chain((1..=7).map(|it| format!("10.0.0.{it}"))).collect();
    let endpoints = json!([{ "addresses": given }, { "addresses": ["10.1.0.1"] }]);
    for (kind, name) in
        [(Kind::EndpointSliceExport, "EndpointSliceExport"), (Kind::EndpointSliceImport, "EndpointSliceImport")]
    {
        let mut json = fixture(name);
        json["spec"]["endpoints"] = endpoints.clone();
        let (Object::EndpointSliceExport(found) | Object::EndpointSliceImport(found)) = read(kind, &json) else {
            panic!()
        };
        assert_eq!(addresses(&found.spec.content.endpoints), [kept.clone(), vec!["10.1.0.1".to_owned()]]);
    }
    let mut json = fixture("EndpointSlice of a user");
    json["endpoints"] = endpoints;
    let Object::EndpointSlice(found) = read(Kind::EndpointSlice, &json) else { panic!() };
    assert_eq!(addresses(&found.content.endpoints)[0], kept);
    assert_eq!(found.further_addresses, 13);
}

/// Rule T50: A slice has texts that are no IP addresses, or is of type FQDN
/// Then: The agents keep at most three such texts of a slice, for a message, and no address of a slice of type FQDN.
/// The other endpoints of the slice stay
#[test]
fn a_slice_keeps_nothing_for_what_is_no_address() {
    let many = |endpoint: Value| vec![endpoint; 1_000];
    for (kind, name) in
        [(Kind::EndpointSliceExport, "EndpointSliceExport"), (Kind::EndpointSlice, "EndpointSlice of a user")]
    {
        let with = |address_type: &str, endpoints: Vec<Value>| {
            let mut json = fixture(name);
            let spec = if kind == Kind::EndpointSlice { &mut json } else { &mut json["spec"] };
            spec["addressType"] = address_type.into();
            spec["endpoints"] = endpoints.into();
            json
        };
        let empty = bytes_kept(kind, &with("IPv4", Vec::new()));
        let hostile = json!({ "addresses": vec!["a"; 100], "hostname": "h".repeat(63), "zone": "z" });
        assert!(bytes_kept(kind, &with("IPv4", many(hostile))) < empty + 1_024, "texts that are no addresses");
        let mixed = json!({ "addresses": ["10.0.0.1", "a", "a", "a", "a", "a", "a", "a"] });
        assert!(bytes_kept(kind, &with("IPv4", many(mixed))) < empty + 100 * 1_000, "an address beside other texts");
        let name = json!({ "addresses": ["a.example", "10.0.0.1"] });
        assert!(bytes_kept(kind, &with("FQDN", many(name))) < empty + 1_024, "names");
    }
    let mut json = fixture("EndpointSliceExport");
    json["spec"]["endpoints"] = vec![json!({ "addresses": ["localhost", "10.0.0.1"] }); 5].into();
    let Object::EndpointSliceExport(found) = read(Kind::EndpointSliceExport, &json) else { panic!() };
    let kept: Vec<usize> = found.spec.content.endpoints.iter().map(|endpoint| endpoint.addresses.len()).collect();
    assert_eq!(kept, [2, 2, 2, 1, 1], "a message lists three");
}

#[test]
fn a_decoded_slice_keeps_96_bytes_for_each_endpoint() {
    let kept = |endpoints: usize| {
        let endpoint: Vec<Value> = (0..endpoints).map(|it| json!({"addresses": [format!("10.0.0.{it}")]})).collect();
        let mut json = fixture("EndpointSliceExport");
        json["spec"]["endpoints"] = endpoint.into();
        let json = json.to_string();
        let mut slice = None;
        let used = allocation_counter::measure(|| slice = decode(Kind::EndpointSliceExport, json.as_bytes()).ok());
        assert!(slice.is_some());
        used.bytes_current
    };
    let per_endpoint = (kept(200) - kept(100)) / 100;
    assert!(per_endpoint <= 96, "{per_endpoint} bytes");
}

/// Also rule X2.
#[test]
fn nothing_is_read_beyond_a_limit() {
    let mut json = fixture("EndpointSliceExport");
    json["spec"]["endpoints"] = json!([]);
    let json = json.to_string();
    let (before, after) = json.split_once("\"endpoints\":").unwrap();
    let rest = after.split_once(']').unwrap().1;
    let with = |elements: usize| format!("{before}\"endpoints\":[{}{{}}]{rest}", "{},".repeat(elements - 1));
    let steps = |elements: usize| {
        let why = decode(Kind::EndpointSliceExport, with(elements).as_bytes()).unwrap_err().why;
        why.rsplit(' ').next().unwrap().parse::<usize>().unwrap()
    };
    let column = steps(1001);
    assert_eq!([steps(10_000), steps(500_000)], [column, column], "where it was noticed");
}

#[test]
fn a_users_service_and_its_slices_may_have_more_ports_than_the_hub_takes() {
    let mut json = fixture("Service of a user");
    let port = |number: usize| json!({ "name": format!("port-{number}"), "port": number });
    json["spec"]["ports"] = (1..=1001).map(port).collect();
    let Object::Service(found) = read(Kind::Service, &json) else { panic!() };
    assert_eq!(found.ports.len(), 1001);
    let mut json = fixture("EndpointSlice of a user");
    json["ports"] = (1..=1001).map(port).collect();
    let Object::EndpointSlice(found) = read(Kind::EndpointSlice, &json) else { panic!() };
    assert_eq!(found.content.ports.len(), 1001);
}

/// Fields that make an object undecodable if they are invalid, by kind. In addition, the fields that identify an object
/// make an object of every kind undecodable.
const DANGEROUS: [(&str, &[&str]); 11] = [
    ("Service", &["/spec", "/spec/ports"]),
    ("EndpointSlice", &["/endpoints"]),
    ("ServiceExport", &["/status", "/status/conditions"]),
    (
        "MultiClusterService",
        &["/spec", "/spec/serviceImport", "/spec/serviceImport/name", "/status", "/status/conditions"],
    ),
    ("ServiceImport", &["/status", "/status/clusters", "/status/ports"]),
    (
        "InternalServiceExport",
        &[
            "/spec",
            "/spec/ports",
            "/spec/serviceReference",
            "/spec/serviceReference/name",
            "/spec/serviceReference/namespace",
            "/status",
            "/status/conditions",
        ],
    ),
    (
        "InternalServiceImport",
        &[
            "/spec",
            "/spec/serviceImportReference",
            "/spec/serviceImportReference/name",
            "/spec/serviceImportReference/namespace",
            "/status",
            "/status/clusters",
            "/status/ports",
        ],
    ),
    ("EndpointSliceExport", DANGEROUS_IN_HUB_SLICES),
    ("EndpointSliceImport", DANGEROUS_IN_HUB_SLICES),
    ("MemberAgent", &[]),
    ("Namespace", &[]),
];
const DANGEROUS_IN_HUB_SLICES: &[&str] = &[
    "/spec",
    "/spec/endpoints",
    "/spec/endpointSliceReference",
    "/spec/endpointSliceReference/name",
    "/spec/endpointSliceReference/namespace",
    "/spec/ownerServiceReference",
    "/spec/ownerServiceReference/name",
    "/spec/ownerServiceReference/namespace",
];

/// An invalid value counts as absent. The object is undecodable only if the absence would remove something.
///
/// Rule X4: A field of an object is malformed
/// Then: The malformed field counts as absent. Exception: if the absence of the field would remove endpoints, ports,
/// conditions, clusters or the name of an import, the whole object is undecodable
#[test]
fn nonsense_in_a_field_makes_an_object_undecodable_only_where_its_absence_would_take_something_away() {
    let everywhere = ["/metadata", "/metadata/name", "/metadata/uid", "/metadata/resourceVersion"];
    let expected: BTreeSet<String> = DANGEROUS
        .iter()
        .flat_map(|(kind, pointers)| pointers.iter().chain(&everywhere).map(move |pointer| format!("{kind} {pointer}")))
        .collect();
    let mut found = BTreeSet::new();
    for (name, kind) in FIXTURES {
        let whole = fixture(name);
        for pointer in pointers(&whole) {
            for nonsense in [json!(-1.5), json!({ "a": [1] }), json!([["b"]]), json!(true), json!(7), json!("c")] {
                let mut json = whole.clone();
                let place = json.pointer_mut(&pointer).unwrap();
                if std::mem::discriminant(place) == std::mem::discriminant(&nonsense) {
                    continue;
                }
                *place = nonsense.clone();
                let field = format!("{kind:?} {pointer}");
                let is_undecodable = decode(kind, json.to_string().as_bytes()).is_err();
                assert_eq!(is_undecodable, expected.contains(&field), "{field}: {nonsense}");
                if is_undecodable {
                    found.insert(field);
                }
            }
        }
    }
    assert_eq!(found, expected, "every field of the table is in a fixture");
}

/// Returns the JSON pointer of every value in a document, except the document itself.
fn pointers(value: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => {
            let name = |key: &String| key.replace('~', "~0").replace('/', "~1");
            fields.iter().map(|(key, value)| (name(key), value)).collect()
        }
        Value::Array(values) => values.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    let below = |(key, value): (String, &Value)| {
        let own = format!("/{key}");
        let deeper: Vec<String> = pointers(value).iter().map(|rest| format!("{own}{rest}")).collect();
        std::iter::once(own).chain(deeper)
    };
    children.into_iter().flat_map(below).collect()
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-zA-Z./-]{0,12}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Smallest number of random cases in which each fixture must occur, of 512 cases in all. With fewer cases, the test
/// below would not cover each fixture.
const LEAST: usize = 8;

/// Replaces a random value in a fixture by random JSON and decodes the result. Decoding never panics, and the result
/// never has the identity of another object.
#[test]
fn any_value_in_any_place_is_survived() {
    let input = (0..FIXTURES.len(), any::<prop::sample::Index>(), any_json());
    for_any(cases(512), LEAST, &input, |(fixture_index, place, value)| {
        let (name, kind) = FIXTURES[fixture_index];
        let mut json = fixture(name);
        let before = read(kind, &json);
        let places = pointers(&json);
        let pointer = place.get(&places);
        *json.pointer_mut(pointer).unwrap() = value;
        let outcome = decode(kind, json.to_string().as_bytes());
        let is_read = outcome.is_ok();
        let (uid, version) = match outcome {
            Ok(object) => (object.meta().uid.clone(), object.meta().resource_version),
            Err(undecodable) => (undecodable.uid, undecodable.resource_version),
        };
        let is_in_metadata = pointer.starts_with("/metadata");
        if !is_in_metadata {
            assert_eq!((uid, version), (before.meta().uid.clone(), before.meta().resource_version));
        }
        let of_fixture = FIXTURES.map(|(other, _)| (other == name, other));
        let of_outcome = [
            (is_in_metadata && is_read, "readable, with other metadata"),
            (is_in_metadata && !is_read, "undecodable for its metadata"),
            (!is_in_metadata && is_read, "readable, with other content"),
            (!is_in_metadata && !is_read, "undecodable for its content"),
        ];
        of_fixture.into_iter().chain(of_outcome)
    });
}

#[test]
fn any_bytes_are_survived() {
    let input = (0..FIXTURES.len(), any::<prop::sample::Index>(), any::<u8>());
    for_any(cases(512), LEAST, &input, |(fixture_index, cut, byte)| {
        let (name, kind) = FIXTURES[fixture_index];
        let mut bytes = fixture(name).to_string().into_bytes();
        let at = cut.index(bytes.len());
        bytes[at] = byte;
        let is_read = decode(kind, &bytes).is_ok();
        bytes.truncate(at);
        assert!(decode(kind, &bytes).is_err());
        let of_fixture = FIXTURES.map(|(other, _)| (other == name, other));
        of_fixture.into_iter().chain([(is_read, "readable all the same"), (!is_read, "no JSON any more")])
    });
}

/// Rule X10: The API allows several forms of one value in an object, or the value is absent
/// Then: The agents understand the value as the API server does: for example, the target ports 0 and "" count as not
/// set. The agents understand a boolean annotation as Go does (`1`, `t`, `true` and so on)
///
/// Also rule M21.
#[test]
fn a_target_port_of_0_or_without_a_name_is_one_that_is_not_set() {
    for (target, expected) in [
        (json!(0), None),
        (json!(""), None),
        (Value::Null, None),
        (json!(8080), Some(TargetPort::Number(8080.into()))),
        (json!("web"), Some(TargetPort::Name(text("web")))),
    ] {
        let mut json = fixture("ServiceImport on the hub");
        json["status"]["ports"] = json!([{ "name": "http", "protocol": "TCP", "port": 80, "targetPort": target }]);
        let Object::ServiceImport(found) = read(Kind::ServiceImport, &json) else { panic!() };
        assert_eq!(found.status.ports[0].target_port, expected, "{target}");
    }
}

#[test]
fn a_mcs_service_export_is_read_and_a_malformed_map_makes_it_undecodable() {
    let mut object = least("work", "app");
    object["spec"] = json!({ "exportedLabels": { "team": "blue" }, "exportedAnnotations": { "note": "n" } });
    object["status"] = json!({ "conditions": [{ "type": "Valid", "status": "True", "reason": "Valid" }] });
    let Object::McsServiceExport(found) = read(Kind::McsServiceExport, &object) else { panic!() };
    assert_eq!(found.labels, [("team".into(), "blue".into())].into());
    assert_eq!(found.annotations, [("note".into(), "n".into())].into());
    assert_eq!(&*found.conditions[0].reason, "Valid");
    object["metadata"]["annotations"] =
        json!({ "networking.fleet.azure.com/cluster-selectors": "[]", "networking.fleet.azure.com/weight": "10" });
    let Object::McsServiceExport(found) = read(Kind::McsServiceExport, &object) else { panic!() };
    assert_eq!(found.cluster_selectors, Err("it has 0 selectors, and may have 1 to 16".into()));
    assert_eq!(found.weight.as_deref(), Some("10"));
    let bare = McsServiceExport {
        meta: least_meta("work", "app"),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        cluster_selectors: Ok(Vec::new()),
        weight: None,
        conditions: Vec::new(),
    };
    assert_eq!(read(Kind::McsServiceExport, &least("work", "app")), Object::McsServiceExport(bare));
    for field in ["exportedLabels", "exportedAnnotations"] {
        let mut object = least("work", "app");
        object["spec"][field] = json!(["team"]);
        undecodable(Kind::McsServiceExport, &object);
    }
}
