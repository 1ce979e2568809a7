//! Tests of the request for each kind of planned write, compared with literal JSON.
#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod support;

use fleetnet_api::crd::LatencySummary;
use fleetnet_api::encode::{Body, TraceChange, encode, encode_traced};
use fleetnet_api::names::annotations::TRACEPARENT;
use fleetnet_core::model::{
    AddressType, Announcement, ClusterSelection, ClusterSelector, ConsumerType, ExportedBy, Finalizers, HubSliceSpec,
    ImportStatus, Kind, LatencyChange, LatencyReport, LoadBalancerIngress, LoadBalancerPort, LoadBalancerStatus,
    McsExport, MemberCounts, MemberStatus, Meta, Operator, OriginLatency, Place, PortSetStamp, Renewal, Requirement,
    ServicePort, SessionAffinity, Silence, SilencePhase, SilentMember, SliceContent, SliceStreamOffer,
    SliceStreamReport, TargetPort, Treatment,
};
use fleetnet_core::names::member_namespace;
use fleetnet_core::plan::{Controller, DerivedService, Desired, ExportContent, ImportedSlice, Patch, Write};
use fleetnet_types::ClusterId;
use fleetnet_types::{ObjectName, Timestamp, Traceparent, Uid};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::{MADE, condition, content, exported_slice, http_80, imported_from, meta, reference, text};

/// Also rule TR1.
#[test]
fn a_write_sets_or_removes_the_annotation_for_traces_besides_its_content() {
    let parent = Traceparent::read("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
    let at = ObjectName::new("fleet-member-west", "x");
    let create = Write::create(at, Desired::EndpointSliceExport(exported_slice()));
    let patch = Write::patch(&stored(), Patch::EndpointSliceExport(exported_slice()));
    for write in [create, patch] {
        let annotations = |change| match encode_traced(&write, change) {
            Body::Create { body } | Body::Patch { body, .. } => body["metadata"]["annotations"].clone(),
            other @ Body::Delete { .. } => panic!("{other:?}"),
        };
        assert_eq!(encode_traced(&write, TraceChange::Keep), encode(&write));
        let (set, removed) = (annotations(TraceChange::Set(parent)), annotations(TraceChange::Remove));
        assert_eq!(set, json!({ TRACEPARENT: parent.to_string() }));
        assert_eq!(removed, json!({ TRACEPARENT: null }));
    }
    assert_eq!(TRACEPARENT, fleetnet_types::trace::ANNOTATION);
}

fn encode_of(kind: Kind, write: &Write) -> Body {
    assert_eq!(write.kind(), kind);
    encode(write)
}

fn created(kind: Kind, namespace: &str, name: &str, desired: Desired) -> Value {
    match encode_of(kind, &Write::create(ObjectName::new(namespace, name), desired)) {
        Body::Create { body } => body,
        other => panic!("{other:?}"),
    }
}

fn stored() -> Meta {
    meta("work", "app", "uid-1", 42, 3)
}

fn patched(kind: Kind, patch: Patch) -> Value {
    match encode_of(kind, &Write::patch(&stored(), patch)) {
        Body::Patch { subresource: None, resource_version: 42, body } => body,
        other => panic!("{other:?}"),
    }
}

fn patched_status(kind: Kind, patch: Patch) -> Value {
    match encode_of(kind, &Write::patch(&stored(), patch)) {
        Body::Patch { subresource: Some("status"), resource_version: 42, body } => body,
        other => panic!("{other:?}"),
    }
}

fn with_others(ours: bool) -> Finalizers {
    Finalizers { ours, others: vec![text("a.example/one")] }
}

fn dns() -> ServicePort {
    ServicePort {
        name: text(""),
        protocol: text("UDP"),
        app_protocol: Some(text("dns")),
        port: 53.into(),
        target_port: Some(TargetPort::Name(text("dns-udp"))),
    }
}

#[test]
fn a_deletion_contains_only_the_uid_precondition() {
    assert_eq!(encode(&Write::delete(Kind::EndpointSliceImport, &stored())), Body::Delete { uid: Uid::from("uid-1") });
}

/// Rule X11: An agent writes a reference to an object
/// Then: The field `namespacedName` has the namespace, a slash and the name of the object
///
/// Also rule X7.
#[test]
fn an_internal_service_export_is_made() {
    let mut of = reference("exporter", "app", "uid-9", "233", 0, MADE);
    let desired =
        Desired::InternalServiceExport { reference: of.clone(), content: export_content(vec![http_80(), dns()]) };
    let expected = json!({
        "apiVersion": "networking.fleet.azure.com/v1alpha1",
        "kind": "InternalServiceExport",
        "metadata": {
            "namespace": "fleet-member-exporter",
            "name": "work-app",
            "annotations": { "networking.fleet.azure.com/last-observed-resource-version": "233" },
        },
        "spec": {
            "ports": [
                { "name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080 },
                { "protocol": "UDP", "port": 53, "targetPort": "dns-udp", "appProtocol": "dns" },
            ],
            "serviceReference": {
                "clusterId": "exporter",
                "kind": "",
                "namespace": "work",
                "name": "app",
                "namespacedName": "work/app",
                "uid": "uid-9",
                "resourceVersion": "233",
                "generation": 0,
                "exportedSince": "2026-11-21T03:46:06.000000Z",
            },
        },
    });
    assert_eq!(created(Kind::InternalServiceExport, "fleet-member-exporter", "work-app", desired), expected);
    of.exported_since = None;
    let desired = Desired::InternalServiceExport { reference: of, content: export_content(Vec::new()) };
    let without = created(Kind::InternalServiceExport, "fleet-member-exporter", "work-app", desired);
    assert_eq!(without["spec"]["ports"], json!([]));
    assert!(without["spec"]["serviceReference"].get("exportedSince").is_none());
}

#[test]
fn an_endpoint_slice_export_and_its_distributed_slices_are_made() {
    let spec = json!({
        "addressType": "IPv4",
        "endpoints": [{ "addresses": ["10.1.0.13"] }, { "addresses": ["172.16.0.2"] }],
        "ports": [{ "name": "http", "protocol": "TCP", "port": 8080 }],
        "endpointSliceReference": {
            "clusterId": "exporter",
            "kind": "",
            "namespace": "work",
            "name": "svc0-0",
            "namespacedName": "work/svc0-0",
            "uid": "4a210213-4fbc-4116-ac85-ccffe838e4a9",
            "resourceVersion": "301",
            "generation": 3,
            "exportedSince": "2026-11-21T03:46:15.000000Z",
        },
        "ownerServiceReference": { "namespace": "work", "name": "svc0", "namespacedName": "work/svc0" },
    });
    let export = Desired::EndpointSliceExport(exported_slice());
    let expected = json!({
        "apiVersion": "networking.fleet.azure.com/v1alpha1",
        "kind": "EndpointSliceExport",
        "metadata": { "namespace": "fleet-member-exporter", "name": "x" },
        "spec": spec,
    });
    assert_eq!(created(Kind::EndpointSliceExport, "fleet-member-exporter", "x", export), expected);
    // The server takes the namespace from the URL, so that all importers of a slice get the same body.
    let import = Desired::EndpointSliceImport(exported_slice());
    let expected = json!({
        "apiVersion": "networking.fleet.azure.com/v1alpha1",
        "kind": "EndpointSliceImport",
        "metadata": { "name": "x" },
        "spec": spec,
    });
    assert_eq!(created(Kind::EndpointSliceImport, "fleet-member-importer0", "x", import), expected);
}

#[test]
fn service_imports_are_made_in_a_member_and_on_the_hub() {
    let controller = Some(Controller { name: text("mcs"), uid: Uid::from("uid-5") });
    let in_member = Desired::ServiceImport { controller, finalizer: true };
    let expected = json!({
        "apiVersion": "networking.fleet.azure.com/v1alpha1",
        "kind": "ServiceImport",
        "metadata": {
            "namespace": "work",
            "name": "app",
            "finalizers": ["networking.fleet.azure.com/serviceimport-cleanup"],
            "ownerReferences": [{
                "apiVersion": "networking.fleet.azure.com/v1alpha1",
                "kind": "MultiClusterService",
                "name": "mcs",
                "uid": "uid-5",
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
    });
    assert_eq!(created(Kind::ServiceImport, "work", "app", in_member), expected);
    let on_hub = Desired::ServiceImport { controller: None, finalizer: false };
    let expected = json!({
        "apiVersion": "networking.fleet.azure.com/v1alpha1",
        "kind": "ServiceImport",
        "metadata": { "namespace": "work", "name": "app" },
    });
    assert_eq!(created(Kind::ServiceImport, "work", "app", on_hub), expected);
}

#[test]
fn a_claim_contains_its_type_unless_it_is_load_balancer() {
    let of = reference("importer0", "app", "uid-7", "242", 1, MADE);
    let claim = |consumer_type| Desired::InternalServiceImport { reference: of.clone(), consumer_type };
    let mut expected = json!({
        "apiVersion": "networking.fleet.azure.com/v1alpha1",
        "kind": "InternalServiceImport",
        "metadata": { "namespace": "fleet-member-importer0", "name": "work-app" },
        "spec": {
            "serviceImportReference": {
                "clusterId": "importer0",
                "kind": "",
                "namespace": "work",
                "name": "app",
                "namespacedName": "work/app",
                "uid": "uid-7",
                "resourceVersion": "242",
                "generation": 1,
                "exportedSince": "2026-11-21T03:46:06.000000Z",
            },
        },
    });
    let make = |consumer| created(Kind::InternalServiceImport, "fleet-member-importer0", "work-app", claim(consumer));
    assert_eq!(make(ConsumerType::LoadBalancer), expected);
    expected["metadata"]["annotations"] = json!({ "networking.fleet.azure.com/service-type": "ClusterIP" });
    assert_eq!(make(ConsumerType::ClusterIp), expected);
}

#[test]
fn the_selection_for_an_importer_is_one_annotation_of_its_claim() {
    let patch = |selection| patched(Kind::InternalServiceImport, Patch::ClaimSelection(selection));
    let annotation = |value: Value| json!({ "metadata": { "annotations": { "fleetnet/cluster-selection": value } } });
    let results = vec![vec!["west".into(), "east".into()], Vec::new()];
    let full = ClusterSelection { results, weights: [("west".into(), 10)].into() };
    let expected = r#"{"clusterSelectorResults":[{"clusters":["west","east"]},{"clusters":[]}],"weights":{"west":10}}"#;
    assert_eq!(patch(full.clone()), annotation(expected.into()));
    assert_eq!(
        patch(ClusterSelection { results: Vec::new(), ..full }),
        annotation(r#"{"weights":{"west":10}}"#.into())
    );
    assert_eq!(patch(ClusterSelection::default()), annotation(Value::Null));
    let requirement = Requirement { key: "gpu".into(), operator: Operator::In, values: vec!["a".into()] };
    let selectors = vec![ClusterSelector { requirements: vec![requirement] }];
    let expected = r#"[{"propertySelector":{"matchExpressions":[{"key":"gpu","operator":"In","values":["a"]}]}}]"#;
    let annotation = |value: Value| json!({ "metadata": { "annotations": { "networking.fleet.azure.com/cluster-selectors": value } } });
    let patch = |selectors| patched(Kind::InternalServiceImport, Patch::ClaimSelectors(selectors));
    assert_eq!(patch(selectors), annotation(expected.into()));
    assert_eq!(patch(Vec::new()), annotation(Value::Null));
}

fn export_content(ports: Vec<ServicePort>) -> ExportContent {
    ExportContent { ports, ..ExportContent::default() }
}

fn derived(consumer_type: ConsumerType, internal_load_balancer: bool) -> DerivedService {
    let derived_from = ObjectName::new("work", "mcs");
    DerivedService {
        derived_from,
        consumer_type,
        ports: vec![http_80()],
        headless: false,
        session_affinity: SessionAffinity::None,
        dual_stack: false,
        internal_load_balancer,
    }
}

/// Also rules M28, X7.
#[test]
fn a_derived_service_is_made_and_changed() {
    let mut expected = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "namespace": "fleet-system",
            "name": "work-mcs",
            "labels": {
                "networking.fleet.azure.com/multi-cluster-service-name": "mcs",
                "networking.fleet.azure.com/multi-cluster-service-namespace": "work",
            },
        },
        "spec": {
            "type": "ClusterIP",
            "ports": [{ "name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080 }],
            "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
        },
    });
    let make = |service| created(Kind::Service, "fleet-system", "work-mcs", Desired::Service(service));
    assert_eq!(make(derived(ConsumerType::ClusterIp, false)), expected);
    expected["spec"]["type"] = "LoadBalancer".into();
    expected["spec"]["externalTrafficPolicy"] = "Cluster".into();
    expected["metadata"]["annotations"] = json!({ "service.beta.kubernetes.io/azure-load-balancer-internal": "true" });
    assert_eq!(make(derived(ConsumerType::LoadBalancer, true)), expected);

    let patch = Patch::DerivedService(derived(ConsumerType::LoadBalancer, false));
    let expected = json!({
        "metadata": {
            "labels": {
                "networking.fleet.azure.com/multi-cluster-service-name": "mcs",
                "networking.fleet.azure.com/multi-cluster-service-namespace": "work",
            },
            "annotations": { "service.beta.kubernetes.io/azure-load-balancer-internal": null },
        },
        "spec": {
            "type": "LoadBalancer",
            "ports": [{ "name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080 }],
            "sessionAffinity": "None",
            "sessionAffinityConfig": null,
            "internalTrafficPolicy": "Cluster",
            "externalTrafficPolicy": "Cluster",
            "selector": null,
            "externalIPs": null,
        },
    });
    assert_eq!(patched(Kind::Service, patch), expected);
    let patch = Patch::DerivedService(derived(ConsumerType::ClusterIp, false));
    assert_eq!(patched(Kind::Service, patch)["spec"].get("externalTrafficPolicy"), Some(&json!(null)));
}

#[test]
fn a_derived_service_without_an_address_and_one_of_both_families_with_affinity_are_made() {
    let mut service = derived(ConsumerType::ClusterIp, false);
    service.headless = true;
    let make = |service: &DerivedService| {
        created(Kind::Service, "fleet-system", "work-mcs", Desired::Service(service.clone()))["spec"].clone()
    };
    let ports = json!([{ "name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080 }]);
    let expected = json!({
        "type": "ClusterIP",
        "clusterIP": "None",
        "ports": ports,
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
    });
    assert_eq!(make(&service), expected);
    service.headless = false;
    service.dual_stack = true;
    service.session_affinity = SessionAffinity::ClientIp { timeout_seconds: 60 };
    let expected = json!({
        "type": "ClusterIP",
        "ports": ports,
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": { "clientIP": { "timeoutSeconds": 60 } },
        "internalTrafficPolicy": "Cluster",
        "ipFamilyPolicy": "PreferDualStack",
    });
    assert_eq!(make(&service), expected);
    let Body::Patch { body, .. } = encode(&Write::patch(
        &meta("fleet-system", "work-mcs", "uid", 7, 0),
        Patch::DerivedService(DerivedService { headless: true, ..service }),
    )) else {
        panic!("a patch")
    };
    assert_eq!(body["spec"].get("clusterIP"), None, "it is immutable");
}

#[test]
fn a_latency_summary_and_properties_are_written_kept_or_removed() {
    let renewal = Renewal {
        announcement: Announcement::default(),
        cluster_uid: None,
        leader: text("one"),
        renewed: MADE,
        stopped: None,
        latency: None,
        slice_stream: None,
        properties: None,
    };
    let kept = patched(Kind::MemberAgent, Patch::MemberAgent(renewal.clone()));
    assert_eq!(kept["spec"].get("properties"), None, "they stay as they are");
    let changes = [(text("a"), Some(text("1"))), (text("b"), None)].into();
    for (changes, expected) in [(BTreeMap::new(), Value::Null), (changes, json!({ "a": "1", "b": null }))] {
        let properties = Patch::MemberAgent(Renewal { properties: Some(changes), ..renewal.clone() });
        assert_eq!(patched(Kind::MemberAgent, properties)["spec"].get("properties"), Some(&expected));
    }
    assert_eq!(kept["spec"].get("latency"), None, "the summary stays as it is");
    let latency = Some(LatencyChange::Remove);
    let removed = patched(Kind::MemberAgent, Patch::MemberAgent(Renewal { latency, ..renewal.clone() }));
    assert_eq!(removed["spec"].get("latency"), Some(&Value::Null));
    let west = OriginLatency {
        cluster: "west".into(),
        buckets: vec![0, 3, 1],
        clamped: 2,
        first_imports: 5,
        sum_milliseconds: 9,
    };
    let latency = Some(LatencyChange::Report(LatencyReport { updated: MADE, origins: vec![west] }));
    let reported = patched(Kind::MemberAgent, Patch::MemberAgent(Renewal { latency, ..renewal }));
    let expected = json!({
        "updateTime": "2026-11-21T03:46:06.000000Z",
        "windowSeconds": 300,
        "boundsMilliseconds": [1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 75.0, 100.0, 150.0, 250.0, 500.0, 750.0, 1000.0,
                               2500.0, 5000.0, 10000.0, 25000.0, 50000.0],
        "origins": [{"cluster": "west", "count": 4, "clamped": 2, "firstImports": 5, "sumMilliseconds": 9,
                     "buckets": [0, 3, 1]}],
    });
    assert_eq!(reported["spec"]["latency"], expected);
    let summary: LatencySummary = serde_json::from_value(expected).expect("the type of the CRD");
    assert_eq!(summary.origins[0].buckets.len(), 3);
}

/// Rule X8: An agent does not know the UID of its own cluster
/// Then: The agent does not change the UID in the MemberAgent
///
/// Also rule X9.
#[test]
fn a_member_agent_announces_itself() {
    let announcement = Announcement { version: text("1.2.3"), features: vec![text("IPv6"), text("Headless")] };
    let renewal = Renewal {
        announcement,
        cluster_uid: Some(Uid::from("6c9f0f5e")),
        leader: text("member-agent_node-1_ab12"),
        renewed: MADE,
        stopped: None,
        latency: None,
        slice_stream: None,
        properties: None,
    };
    let expected = json!({
        "apiVersion": "networking.fleet.azure.com/v1alpha1",
        "kind": "MemberAgent",
        "metadata": { "namespace": "fleet-member-exporter", "name": "exporter" },
        "spec": {
            "version": "1.2.3",
            "features": ["IPv6", "Headless"],
            "clusterUid": "6c9f0f5e",
            "leaderIdentity": "member-agent_node-1_ab12",
            "renewTime": "2026-11-21T03:46:06.000000Z",
        },
    });
    let desired = Desired::MemberAgent(renewal.clone());
    assert_eq!(created(Kind::MemberAgent, "fleet-member-exporter", "exporter", desired), expected);
    let renewed = |stopped| Patch::MemberAgent(Renewal { stopped, ..renewal.clone() });
    let running = patched(Kind::MemberAgent, renewed(None));
    assert_eq!(running["spec"]["plannedStopTime"], Value::Null);
    let stopped = patched(Kind::MemberAgent, renewed(Some(MADE)));
    assert_eq!(stopped["spec"]["plannedStopTime"], "2026-11-21T03:46:06.000000Z");
    let report = SliceStreamReport { connected: false, reason: text("Refused"), message: text("no") };
    let slice_stream = Patch::MemberAgent(Renewal { slice_stream: Some(report), ..renewal.clone() });
    let reported = patched(Kind::MemberAgent, slice_stream);
    let expected_report = json!({ "connected": false, "reason": "Refused", "message": "no" });
    assert_eq!(reported["spec"]["sliceStream"], expected_report);
    let unread = Patch::MemberAgent(Renewal { cluster_uid: None, ..renewal });
    assert_eq!(patched(Kind::MemberAgent, unread)["spec"].get("clusterUid"), None, "null would remove it");
}

#[test]
fn the_hub_agent_answers_a_member_agent_in_its_status() {
    let announcement = Announcement { version: text("1.2.3"), features: vec![text("IPv6"), text("Headless")] };
    let counts = MemberCounts {
        exported_services: 1,
        exported_slices: 2,
        exported_endpoints: 3,
        imported_services: 4,
        imported_slices: 5,
    };
    let silence = Silence {
        phase: SilencePhase::Draining,
        since: Timestamp(1_800_000_060_000_001),
        renewed: Timestamp(1_800_000_000_000_001),
        count: 2,
    };
    let silent = SilentMember { cluster: "b".into(), treatment: Treatment::Withdrawn };
    let answer = |slice_stream| {
        let status = MemberStatus {
            announcement: announcement.clone(),
            slice_stream,
            counts: Some(counts),
            silence: Some(silence),
            silent_members: vec![silent.clone()],
        };
        patched_status(Kind::MemberAgent, Patch::MemberAgentStatus(status))
    };
    let offer = SliceStreamOffer { address: text("hub.example:8443"), ca_bundle: text("PEM") };
    let expected = json!({
        "status": {
            "version": "1.2.3",
            "features": ["IPv6", "Headless"],
            "sliceStream": { "address": "hub.example:8443", "caBundle": "PEM" },
            "exportedServices": 1,
            "exportedSlices": 2,
            "exportedEndpoints": 3,
            "importedServices": 4,
            "importedSlices": 5,
            "silence": {
                "phase": "Draining",
                "phaseTime": "2027-01-15T08:01:00.000001Z",
                "lastRenewTime": "2027-01-15T08:00:00.000001Z",
                "count": 2,
            },
            "silentMembers": [{ "cluster": "b", "treatment": "Withdrawn" }],
        },
    });
    assert_eq!(answer(Some(offer)), expected);
    let healthy = patched_status(Kind::MemberAgent, Patch::MemberAgentStatus(MemberStatus::default()));
    let limits = (&healthy["status"]["refusedObjects"], &healthy["status"]["distributionLimited"]);
    assert_eq!(limits, (&Value::Null, &Value::Null), "a member within its limits");
    assert_eq!((&healthy["status"]["silence"], &healthy["status"]["silentMembers"]), (&Value::Null, &Value::Null));
    assert_eq!(answer(None)["status"]["sliceStream"], Value::Null, "the offer is withdrawn");
}

#[test]
fn an_imported_slice_is_made_and_changed() {
    let imported = |addresses: &[&str]| ImportedSlice {
        service: Some(text("work-mcs")),
        mcs: None,
        content: content(addresses),
        observed_generation: 3,
    };
    let metadata = json!({
        "labels": {
            "kubernetes.io/service-name": "work-mcs",
            "endpointslice.kubernetes.io/managed-by": "endpointsliceimport-controller.networking.fleet.azure.com",
        },
        "annotations": { "networking.fleet.azure.com/last-observed-generation": "3" },
    });
    let ports = json!([{ "name": "http", "protocol": "TCP", "port": 8080 }]);
    let desired = Desired::EndpointSlice(imported(&["10.1.0.13"]));
    let mut expected = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": "IPv4",
        "endpoints": [{ "addresses": ["10.1.0.13"] }],
        "ports": ports,
    });
    expected["metadata"]["namespace"] = "fleet-system".into();
    expected["metadata"]["name"] = "x".into();
    assert_eq!(created(Kind::EndpointSlice, "fleet-system", "x", desired), expected);
    let mut metadata = metadata;
    metadata["labels"]["service.kubernetes.io/headless"] = Value::Null;
    metadata["labels"]["service.kubernetes.io/service-proxy-name"] = Value::Null;
    metadata["labels"]["multicluster.kubernetes.io/service-name"] = Value::Null;
    metadata["labels"]["multicluster.kubernetes.io/source-cluster"] = Value::Null;
    let expected = json!({ "metadata": metadata, "endpoints": [], "ports": ports });
    assert_eq!(patched(Kind::EndpointSlice, Patch::ImportedSlice(imported(&[]))), expected);
}

/// Returns the content of a slice with two endpoints: a ready endpoint with host name and zone, and a draining
/// endpoint.
fn detailed() -> SliceContent {
    let mut content = content(&["10.1.0.13"]);
    content.endpoints[0].hostname = Some("db-0".into());
    content.endpoints[0].zone = Some(text("zone-1"));
    content.draining = support::content(&["10.1.0.14"]).endpoints;
    content
}

/// Also rule X5.
#[test]
fn an_imported_slice_shows_draining_endpoints_in_conditions() {
    let imported =
        ImportedSlice { service: Some(text("work-mcs")), mcs: None, content: detailed(), observed_generation: 3 };
    let patch = patched(Kind::EndpointSlice, Patch::ImportedSlice(imported));
    let draining = json!({ "ready": false, "serving": true, "terminating": true });
    let expected = json!([
        { "addresses": ["10.1.0.13"], "hostname": "db-0", "zone": "zone-1" },
        { "addresses": ["10.1.0.14"], "conditions": draining },
    ]);
    assert_eq!(patch["endpoints"], expected);
}

#[test]
fn a_slice_of_the_hub_lists_draining_endpoints_apart() {
    let spec = HubSliceSpec { content: detailed().into(), ..exported_slice() };
    let patch = patched(Kind::EndpointSliceExport, Patch::EndpointSliceExport(spec));
    let ready = json!([{ "addresses": ["10.1.0.13"], "hostname": "db-0", "zone": "zone-1" }]);
    assert_eq!(patch["spec"]["endpoints"], ready);
    assert_eq!(patch["spec"]["drainingEndpoints"], json!([{ "addresses": ["10.1.0.14"] }]));
}

#[test]
fn an_address_type_that_no_agent_knows_is_written_as_it_was_read() {
    let content = SliceContent { address_type: AddressType::Other(text("FQDN")), ..detailed() };
    let spec = HubSliceSpec { content: content.into(), ..exported_slice() };
    let patch = patched(Kind::EndpointSliceImport, Patch::EndpointSliceImport(spec));
    assert_eq!(patch["spec"]["addressType"], "FQDN");
}

/// Also rule X6.
#[test]
fn finalizers_of_others_stay_and_ours_is_that_of_the_kind() {
    let ours = [
        (Kind::ServiceExport, "networking.fleet.azure.com/svc-export-cleanup"),
        (Kind::ServiceImport, "networking.fleet.azure.com/serviceimport-cleanup"),
        (Kind::MultiClusterService, "networking.fleet.azure.com/service-resources-cleanup"),
        (Kind::InternalServiceExport, "networking.fleet.azure.com/internal-svc-export-cleanup"),
        (Kind::InternalServiceImport, "networking.fleet.azure.com/internalsvcimport-cleanup"),
        (Kind::EndpointSliceExport, "networking.fleet.azure.com/endpointsliceexport-cleanup"),
        (Kind::EndpointSliceImport, "networking.fleet.azure.com/endpointsliceimport-cleanup"),
    ];
    for (kind, finalizer) in ours {
        let set = |ours| patched(kind, Patch::Finalizers { kind, finalizers: with_others(ours) });
        let added = set(true);
        assert_eq!(added, json!({ "metadata": { "finalizers": ["a.example/one", finalizer] } }));
        let removed = set(false);
        assert_eq!(removed, json!({ "metadata": { "finalizers": ["a.example/one"] } }));
    }
    let none = Patch::Finalizers { kind: Kind::ServiceExport, finalizers: Finalizers::default() };
    let last = patched(Kind::ServiceExport, none);
    assert_eq!(last, json!({ "metadata": { "finalizers": [] } }));
}

#[test]
fn conditions_are_written_whole_to_the_status() {
    let since = Timestamp(MADE.0 + 999_999);
    let list = vec![condition("Valid", "True", "ServiceIsValid", "m", since)];
    let expected = json!({
        "status": {
            "conditions": [{
                "type": "Valid",
                "status": "True",
                "reason": "ServiceIsValid",
                "message": "m",
                "observedGeneration": 1,
                "lastTransitionTime": "2026-11-21T03:46:06Z",
            }],
        },
    });
    assert_eq!(patched_status(Kind::ServiceExport, Patch::ServiceExportConditions(list.clone())), expected);
    let patch = Patch::InternalServiceExportConditions(list.clone());
    assert_eq!(patched_status(Kind::InternalServiceExport, patch), expected);
    let place = Place { cluster: "west".into(), export_created: MADE, since: Timestamp(MADE.0 + 1) };
    let patch = Patch::InternalServiceExportMerge { conditions: list, precedence: vec![place] };
    let mut merged = expected;
    merged["status"]["precedence"] = json!([{
        "cluster": "west",
        "exportCreationTimestamp": "2026-11-21T03:46:06.000000Z",
        "since": "2026-11-21T03:46:06.000001Z",
    }]);
    assert_eq!(patched_status(Kind::InternalServiceExport, patch), merged);
}

#[test]
fn the_export_of_a_service_is_changed_and_its_references_kind_left_alone() {
    let mut of = reference("exporter", "app", "uid-9", "234", 0, MADE);
    of.exported_since = None;
    let patch = Patch::InternalServiceExport { reference: of, content: export_content(vec![http_80()]) };
    let expected = json!({
        "metadata": { "annotations": { "networking.fleet.azure.com/last-observed-resource-version": "234" } },
        "spec": {
            "ports": [{ "name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080 }],
            "serviceReference": {
                "clusterId": "exporter",
                "namespace": "work",
                "name": "app",
                "namespacedName": "work/app",
                "uid": "uid-9",
                "resourceVersion": "234",
                "generation": 0,
                "exportedSince": null,
            },
            "headless": null,
            "sessionAffinity": null,
            "sessionAffinityConfig": null,
            "multicluster": null,
        },
    });
    assert_eq!(patched(Kind::InternalServiceExport, patch), expected);
}

/// Rule H21: A cluster ends its export by the fleet's API, and its InternalServiceExport stays for the standard API
/// Then: The member agent removes the stamp (annotation `ports-offered-since`) in the same write. If the fleet's API
/// exports the Service again later, the age of the ports starts again
#[test]
fn the_age_of_the_ports_ends_with_the_export_by_the_fleets_api() {
    let stamp = |exported_by| {
        let part = McsExport { exported_by, ..McsExport::default() };
        let content = ExportContent { mcs: Some(Arc::new(part)), ..export_content(vec![http_80()]) };
        let patch =
            Patch::InternalServiceExport { reference: reference("exporter", "app", "uid-9", "234", 0, MADE), content };
        let body = patched(Kind::InternalServiceExport, patch);
        body["metadata"]["annotations"].get("networking.fleet.azure.com/ports-offered-since").cloned()
    };
    assert_eq!(stamp(ExportedBy::McsApi), Some(Value::Null));
    assert_eq!(stamp(ExportedBy::Both), None);
}

#[test]
fn an_export_is_stamped_in_the_write_of_its_finalizer() {
    let stamp = PortSetStamp { since: Timestamp(MADE.0 + 250_000), ports: text("1f0c9a77e2") };
    let patch = Patch::InternalServiceExportStamp { finalizers: with_others(true), stamp };
    let stamp = "2026-11-21T03:46:06.250000Z 1f0c9a77e2";
    let expected = json!({
        "metadata": {
            "annotations": { "networking.fleet.azure.com/ports-offered-since": stamp },
            "finalizers": ["a.example/one", "networking.fleet.azure.com/internal-svc-export-cleanup"],
        },
    });
    assert_eq!(patched(Kind::InternalServiceExport, patch), expected);
}

#[test]
fn a_multi_cluster_services_status_is_set_and_cleared() {
    let port = LoadBalancerPort { port: 80.into(), protocol: text("TCP"), error: Some(text("Refused")) };
    let ingress = LoadBalancerIngress {
        ip: Some(text("20.0.0.1")),
        hostname: None,
        ip_mode: Some(text("VIP")),
        ports: vec![port],
    };
    let status = |ingress| Patch::MultiClusterServiceStatus {
        conditions: Vec::new(),
        load_balancer: LoadBalancerStatus { ingress },
    };
    let ports = json!([{ "port": 80, "protocol": "TCP", "error": "Refused" }]);
    let expected = json!({
        "status": {
            "conditions": [],
            "loadBalancer": { "ingress": [{ "ip": "20.0.0.1", "ipMode": "VIP", "ports": ports }] },
        },
    });
    assert_eq!(patched_status(Kind::MultiClusterService, status(vec![ingress])), expected);
    let expected = json!({ "status": { "conditions": [], "loadBalancer": { "ingress": null } } });
    assert_eq!(patched_status(Kind::MultiClusterService, status(Vec::new())), expected);
}

/// Rule X7: A field that the agents write has no value any more
/// Then: If the object exists, the agent sets the field to null with a patch. A new object does not have the field
#[test]
fn the_status_of_an_import_is_set_and_cleared() {
    let patch = |kind, status| match kind {
        Kind::ServiceImport => Patch::ServiceImportStatus(status),
        _ => Patch::InternalServiceImportStatus(status),
    };
    for kind in [Kind::ServiceImport, Kind::InternalServiceImport] {
        let expected = json!({
            "status": {
                "type": "ClusterSetIP",
                "ports": [{ "name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080 }],
                "clusters": [{ "cluster": "exporter" }],
                "sessionAffinity": null,
                "sessionAffinityConfig": null,
            },
        });
        assert_eq!(patched_status(kind, patch(kind, imported_from("exporter"))), expected);
        let nothing = ["type", "ports", "clusters", "sessionAffinity", "sessionAffinityConfig"];
        let nothing: serde_json::Map<_, _> = nothing.map(|field| (field.to_owned(), Value::Null)).into_iter().collect();
        let expected = json!({ "status": nothing });
        assert_eq!(patched_status(kind, patch(kind, ImportStatus::default())), expected);
    }
}

/// Also rule C10.
#[test]
fn claims_are_written_as_the_go_agents_write_them_and_removed_with_the_last() {
    let claims = |members: &[&str], ours| Patch::Claims {
        importers: members
            .iter()
            .map(|member| (member_namespace(member), ClusterId::from(*member)))
            .collect::<BTreeMap<_, _>>(),
        load_balancer: (members.len() > 1).then(|| member_namespace(members[0])),
        finalizers: Finalizers { ours, others: Vec::new() },
    };
    let written = |text: &str| {
        json!({
            "metadata": {
                "annotations": { "networking.fleet.azure.com/service-in-use-by": text },
                "finalizers": ["networking.fleet.azure.com/serviceimport-cleanup"],
            },
        })
    };
    let one = written(r#"{"MemberClusters":{"fleet-member-a":"a"}}"#);
    assert_eq!(patched(Kind::ServiceImport, claims(&["a"], true)), one);
    let two = r#"{"LoadBalancer":"fleet-member-b","MemberClusters":{"fleet-member-a":"a","fleet-member-b":"b"}}"#;
    assert_eq!(patched(Kind::ServiceImport, claims(&["b", "a"], true)), written(two), "beside them what is not Go's");
    let expected = json!({
        "metadata": {
            "annotations": { "networking.fleet.azure.com/service-in-use-by": null },
            "finalizers": [],
        },
    });
    assert_eq!(patched(Kind::ServiceImport, claims(&[], false)), expected);
}
