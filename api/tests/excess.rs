//! Tests of the excess of an imported slice: values that other writers add to our fields. Our own write has no excess,
//! in the form in which an API server stores it.

use fleetnet_api::decode::decode;
use fleetnet_core::model::{Kind, Object};
use serde_json::{Value, json};

/// Returns the JSON of an imported slice with a ready and a draining endpoint, as an API server stores our write.
fn imported() -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": "fleet-system", "name": "member-2-work-app-1", "uid": "uid", "resourceVersion": "7", "generation": 1,
            "labels": {
                "kubernetes.io/service-name": "work-app",
                "endpointslice.kubernetes.io/managed-by": "endpointsliceimport-controller.networking.fleet.azure.com",
            },
            "annotations": { "networking.fleet.azure.com/last-observed-generation": "3" },
            "managedFields": [{ "manager": "fleetnet", "operation": "Update" }],
        },
        "addressType": "IPv4",
        "endpoints": [
            { "addresses": ["10.1.0.1"], "conditions": {}, "hostname": "db-0", "zone": "zone-1" },
            { "addresses": ["10.1.0.2"], "conditions": { "ready": false, "serving": true, "terminating": true } },
        ],
        "ports": [{ "name": "", "port": 8080, "protocol": "TCP" }],
    })
}

fn excess(slice: &Value) -> u64 {
    match decode(Kind::EndpointSlice, slice.to_string().as_bytes()) {
        Ok(Object::EndpointSlice(slice)) => slice.excess,
        other => panic!("{other:?}"),
    }
}

fn edited(edit: impl FnOnce(&mut Value)) -> u64 {
    let mut slice = imported();
    edit(&mut slice);
    excess(&slice)
}

/// Also rule P11.
#[test]
fn what_we_write_has_none_whatever_a_server_or_others_add_outside_of_our_fields() {
    type Edit = (&'static str, fn(&mut Value));
    let table: [Edit; 8] = [
        ("as we wrote it", |_| {}),
        ("null for a field that is left out", |slice| slice["endpoints"][0]["nodeName"] = Value::Null),
        ("conditions left out", |slice| drop(slice["endpoints"][0].as_object_mut().map(|it| it.remove("conditions")))),
        ("another's label", |slice| slice["metadata"]["labels"]["team"] = "red".into()),
        ("another's annotation", |slice| slice["metadata"]["annotations"]["team"] = "red".into()),
        ("another's finalizer", |slice| slice["metadata"]["finalizers"] = json!(["team/red"])),
        ("no ports", |slice| slice["ports"] = Value::Null),
        ("no endpoints", |slice| slice["endpoints"] = json!([])),
    ];
    for (case, edit) in table {
        assert_eq!(edited(edit), 0, "{case}");
    }
}

/// Also rule P11.
#[test]
fn every_field_that_somebody_adds_is_one_and_no_two_are_alike() {
    type Edit = (&'static str, fn(&mut Value));
    let table: [Edit; 13] = [
        ("hints", |slice| slice["endpoints"][0]["hints"] = json!({ "forZones": [{ "name": "zone-9" }] })),
        ("other hints", |slice| slice["endpoints"][0]["hints"] = json!({ "forZones": [{ "name": "zone-8" }] })),
        ("a node", |slice| slice["endpoints"][0]["nodeName"] = "node-1".into()),
        ("a target", |slice| slice["endpoints"][0]["targetRef"] = json!({ "kind": "Pod", "name": "app" })),
        ("topology", |slice| slice["endpoints"][0]["deprecatedTopology"] = json!({ "a": "b" })),
        ("a condition", |slice| slice["endpoints"][0]["conditions"] = json!({ "ready": true })),
        ("one condition less", |slice| {
            slice["endpoints"][1]["conditions"] = json!({ "ready": false, "serving": true });
        }),
        ("a field of the future", |slice| slice["endpoints"][0]["weight"] = 3.into()),
        ("an endpoint that is not ready", |slice| {
            let down = json!({ "addresses": ["10.1.0.9"], "conditions": { "ready": false } });
            slice["endpoints"].as_array_mut().expect("a list").push(down);
        }),
        ("another order", |slice| slice["endpoints"].as_array_mut().expect("a list").reverse()),
        ("a field of a port", |slice| slice["ports"][0]["weight"] = 3.into()),
        ("a label that hides it from kube-proxy", |slice| {
            slice["metadata"]["labels"]["service.kubernetes.io/headless"] = "".into();
        }),
        ("another such label", |slice| {
            slice["metadata"]["labels"]["service.kubernetes.io/service-proxy-name"] = "other".into();
        }),
    ];
    let mut seen = Vec::new();
    for (case, edit) in table {
        let excess = edited(edit);
        assert!(excess != 0 && !seen.contains(&excess), "{case}");
        assert_eq!(edited(edit), excess, "{case}: the same each time");
        seen.push(excess);
    }
}

#[test]
fn a_source_slice_and_one_that_is_going_have_none() {
    let hinted = |slice: &mut Value| slice["endpoints"][0]["hints"] = json!({ "forZones": [{ "name": "zone-9" }] });
    let source = edited(|slice| {
        hinted(slice);
        slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] =
            "endpointslice-controller.k8s.io".into();
    });
    let going = edited(|slice| {
        hinted(slice);
        slice["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    assert_eq!((source, going), (0, 0));
}

/// Also rule D12.
#[test]
fn a_slice_of_the_hub_that_is_named_twice_is_misnamed() {
    let misnamed = |kind: Kind, field: &str, named: Value| {
        let reference = json!({ "namespace": "work", "name": "app-1", "namespacedName": "work/app-1" });
        let mut slice = json!({
            "metadata": { "namespace": "fleet-member-west", "name": "app-1", "uid": "uid", "resourceVersion": "1" },
            "spec": { "endpoints": [], "endpointSliceReference": reference, "ownerServiceReference": reference },
        });
        slice["spec"][field]["namespacedName"] = named;
        match decode(kind, slice.to_string().as_bytes()) {
            Ok(Object::EndpointSliceExport(slice) | Object::EndpointSliceImport(slice)) => slice.misnamed,
            other => panic!("{other:?}"),
        }
    };
    for kind in [Kind::EndpointSliceExport, Kind::EndpointSliceImport] {
        for field in ["endpointSliceReference", "ownerServiceReference"] {
            assert!(!misnamed(kind, field, "work/app-1".into()), "{field}");
            assert!(!misnamed(kind, field, Value::Null), "{field}: left out");
            for other in ["work/app-2", "other/app-1", "app-1", ""] {
                assert!(misnamed(kind, field, other.into()), "{field}: {other:?}");
            }
            assert!(misnamed(kind, field, json!(["work/app-1"])), "{field}: nonsense");
        }
    }
}
