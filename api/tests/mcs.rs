//! Tests of the objects that the member agent makes for the standard API: what it writes, and that it reads this as it
//! wrote it.
#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod support;

use fleetnet_api::decode::decode;
use fleetnet_api::encode::{Body, encode};
use fleetnet_core::model::{
    ImportType, IpFamily, Kind, McsImportSpec, McsImportStatus, McsLabels, McsProperties, McsServiceImport, Meta,
    Object, Service, SessionAffinity,
};
use fleetnet_core::plan::{Desired, ImportedSlice, McsDerivedService, Patch, Write};
use fleetnet_types::{ObjectName, Timestamp};
use serde_json::{Value, json};
use support::{condition, content, http_80, meta};

fn at() -> ObjectName {
    ObjectName::new("work", "app")
}

fn created(desired: Desired) -> Value {
    let Body::Create { body } = encode(&Write::create(at(), desired)) else { panic!("no create") };
    body
}

fn patched(meta: &Meta, patch: Patch) -> (Option<&'static str>, Value) {
    let Body::Patch { subresource, body, .. } = encode(&Write::patch(meta, patch)) else { panic!("no patch") };
    (subresource, body)
}

/// Returns the object as a server stores it.
fn stored(kind: Kind, mut body: Value) -> Object {
    body["metadata"]["uid"] = "u".into();
    body["metadata"]["resourceVersion"] = "7".into();
    decode(kind, body.to_string().as_bytes()).unwrap()
}

/// Returns the object after a merge patch, as a server stores it.
fn after(mut object: Value, patch: &Value) -> Value {
    for field in ["labels", "annotations"] {
        for (name, value) in patch["metadata"][field].as_object().unwrap() {
            let fields = object["metadata"][field].as_object_mut().unwrap();
            drop(if value.is_null() { fields.remove(name) } else { fields.insert(name.clone(), value.clone()) });
        }
    }
    object
}

/// Also rule MI11.
#[test]
fn the_labels_of_an_imported_slice_are_read_as_they_were_written() {
    let wanted = |service: Option<&str>| ImportedSlice {
        service: service.map(Into::into),
        mcs: Some(McsLabels { service: "app".into(), cluster: "member-2".into(), headless: service.is_none() }),
        content: content(&["10.1.0.13"]),
        observed_generation: 3,
    };
    let labels = |body: &Value| body["metadata"]["labels"].clone();
    let managed_by = "endpointsliceimport-controller.networking.fleet.azure.com";
    let of_both = json!({
        "endpointslice.kubernetes.io/managed-by": managed_by,
        "multicluster.kubernetes.io/service-name": "app",
        "multicluster.kubernetes.io/source-cluster": "member-2",
    });
    let (mut of_cluster_ip, mut of_headless) = (of_both.clone(), of_both);
    of_cluster_ip["kubernetes.io/service-name"] = "derived-1".into();
    of_headless["service.kubernetes.io/headless"] = "".into();
    for (before, later, expected) in [(Some("derived-1"), None, of_cluster_ip), (None, Some("derived-1"), of_headless)]
    {
        let body = created(Desired::EndpointSlice(wanted(before)));
        assert_eq!(labels(&body), expected);
        let Object::EndpointSlice(slice) = stored(Kind::EndpointSlice, body.clone()) else { panic!() };
        assert_eq!((slice.service.as_deref(), slice.excess), (before, 0));
        assert_eq!(slice.mcs.as_deref(), wanted(before).mcs.as_ref());
        let (_, patch) = patched(&slice.meta, Patch::ImportedSlice(wanted(later)));
        let Object::EndpointSlice(slice) = stored(Kind::EndpointSlice, after(body, &patch)) else { panic!() };
        assert_eq!((slice.service.as_deref(), slice.excess), (later, 0), "each patch sets all labels");
        assert_eq!(slice.mcs.as_deref(), wanted(later).mcs.as_ref());
    }
    let mut edited = created(Desired::EndpointSlice(wanted(Some("derived-1"))));
    edited["metadata"]["labels"]["service.kubernetes.io/headless"] = "".into();
    let Object::EndpointSlice(slice) = stored(Kind::EndpointSlice, edited) else { panic!() };
    assert_ne!(slice.excess, 0, "kube-proxy would ignore the slice");
}

fn spec() -> McsImportSpec {
    McsImportSpec {
        import_type: ImportType::ClusterSetIp,
        ports: vec![http_80()],
        session_affinity: SessionAffinity::ClientIp { timeout_seconds: 60 },
        properties: McsProperties {
            families: vec![IpFamily::IPv6, IpFamily::IPv4],
            internal_traffic_policy: Some("Local".into()),
            traffic_distribution: Some("PreferClose".into()),
            labels: [("team".into(), "blue".into())].into(),
            annotations: [("note".into(), "n".into())].into(),
        },
        ips: vec!["fd00::7".into(), "10.96.0.7".into()],
        derived: Some("derived-0123456789".into()),
        selector_results: vec![vec!["member-1".into()], Vec::new()],
    }
}

/// Also rule MI21.
#[test]
fn a_service_import_is_read_as_it_was_written() {
    let body = created(Desired::McsServiceImport(spec()));
    assert_eq!(body["apiVersion"], "multicluster.x-k8s.io/v1beta1");
    assert_eq!(body["metadata"]["labels"]["team"], "blue");
    assert_eq!(body["metadata"]["annotations"]["note"], "n");
    assert_eq!(body["metadata"]["annotations"]["multicluster.kubernetes.io/derived-service"], "derived-0123456789");
    let expected = |spec: McsImportSpec, status: McsImportStatus| {
        Object::McsServiceImport(McsServiceImport {
            meta: Meta { created: Timestamp(0), ..meta("work", "app", "u", 7, 0) },
            is_ours: true,
            relabelled: false,
            weights: Ok(std::collections::BTreeMap::new()),
            spec,
            status,
        })
    };
    let status = McsImportStatus::default();
    assert_eq!(stored(Kind::McsServiceImport, body.clone()), expected(spec(), status.clone()));
    let bare = McsImportSpec {
        session_affinity: SessionAffinity::None,
        properties: McsProperties::default(),
        ips: Vec::new(),
        derived: None,
        selector_results: Vec::new(),
        import_type: ImportType::Headless,
        ..spec()
    };
    let headless = created(Desired::McsServiceImport(bare.clone()));
    assert_eq!(headless["spec"].get("ips"), None);
    assert_eq!(stored(Kind::McsServiceImport, headless), expected(bare, status));
    let full = McsImportStatus {
        clusters: vec!["member-1".into(), "member-2".into()],
        has_slices: true,
        conditions: vec![condition("Ready", "True", "Ready", "it can be used", Timestamp::from_seconds(5))],
    };
    let (subresource, status) = patched(&meta("work", "app", "u", 7, 0), Patch::McsServiceImportStatus(full.clone()));
    assert_eq!(subresource, Some("status"));
    let mut object = body;
    object["status"] = status["status"].clone();
    assert_eq!(stored(Kind::McsServiceImport, object.clone()), expected(spec(), full));
    object["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "another".into();
    let Object::McsServiceImport(foreign) = stored(Kind::McsServiceImport, object) else { panic!() };
    assert!(!foreign.is_ours);
}

#[test]
fn a_patch_of_a_service_import_removes_what_is_not_exported_any_more() {
    let patch = Patch::McsServiceImport {
        spec: McsImportSpec {
            properties: McsProperties { labels: [("tier".into(), "1".into())].into(), ..McsProperties::default() },
            ips: Vec::new(),
            derived: None,
            ..spec()
        },
        recorded: spec().properties,
    };
    let (subresource, body) = patched(&meta("work", "app", "u", 7, 0), patch);
    assert_eq!(subresource, None);
    let labels = json!({ "team": null, "tier": "1", "app.kubernetes.io/managed-by": "fleetnet-member-agent" });
    assert_eq!(body["metadata"]["labels"], labels);
    let annotations = json!({
        "note": null,
        "fleetnet/exported": "{\"annotations\":{},\"labels\":{\"tier\":\"1\"}}",
        "fleetnet/cluster-selector-results": r#"[{"clusters":["member-1"]},{"clusters":[]}]"#,
        "multicluster.kubernetes.io/derived-service": null,
    });
    assert_eq!(body["metadata"]["annotations"], annotations);
    for removed in ["ips", "ipFamilies", "internalTrafficPolicy", "trafficDistribution"] {
        assert_eq!(body["spec"].get(removed), Some(&Value::Null), "{removed}");
    }
}

/// Also rule MI18.
#[test]
fn a_derived_service_is_read_as_it_was_written_and_the_cluster_chooses_its_families() {
    let desired = McsDerivedService {
        service: "app".into(),
        ports: vec![http_80()],
        session_affinity: SessionAffinity::None,
        dual_stack: true,
    };
    let mut body = created(Desired::McsService(desired.clone()));
    let spec = &body["spec"];
    assert_eq!([spec.get("ipFamilies"), spec.get("selector"), spec.get("externalIPs")], [None; 3]);
    body["spec"]["ipFamilies"] = json!(["IPv6"]);
    body["spec"]["clusterIPs"] = json!(["fd00::7"]);
    let Object::Service(Service { imports, cluster_ips, families, dual_stack, internal_traffic_policy, .. }) =
        stored(Kind::Service, body.clone())
    else {
        panic!()
    };
    assert_eq!((imports.as_deref(), dual_stack), (Some("app"), true));
    assert_eq!((cluster_ips, families), (vec!["fd00::7".into()], vec![IpFamily::IPv6]));
    assert_eq!(internal_traffic_policy.as_deref(), Some("Cluster"));
    body["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm".into();
    let Object::Service(users) = stored(Kind::Service, body) else { panic!() };
    assert_eq!((users.imports, users.cluster_ips), (None, vec!["fd00::7".into()]), "a label of a user is no proof");
    let (_, patch) = patched(&meta("work", "derived", "u", 7, 0), Patch::McsService(desired));
    assert_eq!(patch["spec"].get("ipFamilies"), None, "immutable");
    let null = Some(&Value::Null);
    assert_eq!(
        [patch["spec"].get("selector"), patch["spec"].get("externalIPs")],
        [null; 2],
        "they lead clients elsewhere"
    );
}
