//! Valid object of each kind. The tests change these objects into invalid objects.

use serde_json::{Value, json};

/// Kind of object, with the content of a valid object.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) kind: &'static str,
    pub(super) version: &'static str,
    /// Returns everything in the object except its metadata.
    pub(super) body: fn() -> Value,
}

impl Kind {
    /// Returns a valid object of the kind, named `valid`.
    pub(super) fn valid(&self) -> Value {
        let mut object = (self.body)();
        object["metadata"] = json!({"name": "valid"});
        object
    }
}

pub(super) const MULTI_CLUSTER_SERVICE: Kind = Kind {
    kind: "MultiClusterService",
    version: "v1alpha1",
    body: || json!({"spec": {"serviceImport": {"name": "app"}, "type": "LoadBalancer"}}),
};
pub(super) const SERVICE_EXPORT: Kind = Kind { kind: "ServiceExport", version: "v1beta1", body: || json!({}) };
pub(super) const SERVICE_IMPORT: Kind = Kind { kind: "ServiceImport", version: "v1alpha1", body: || json!({}) };
pub(super) const ENDPOINT_SLICE_EXPORT: Kind =
    Kind { kind: "EndpointSliceExport", version: "v1alpha1", body: || json!({"spec": slice()}) };
pub(super) const ENDPOINT_SLICE_IMPORT: Kind =
    Kind { kind: "EndpointSliceImport", version: "v1alpha1", body: || json!({"spec": slice()}) };
pub(super) const INTERNAL_SERVICE_EXPORT: Kind = Kind {
    kind: "InternalServiceExport",
    version: "v1alpha1",
    body: || {
        json!({"spec": {
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "web", "appProtocol": "http"}],
            "serviceReference": reference(),
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}},
            "headless": false,
            "multicluster": {
                "only": true,
                "ipFamilies": ["IPv4"],
                "internalTrafficPolicy": "Cluster",
                "exportedLabels": [{"name": "example.com/team", "value": "web"}],
            },
        }})
    },
};
pub(super) const INTERNAL_SERVICE_IMPORT: Kind = Kind {
    kind: "InternalServiceImport",
    version: "v1alpha1",
    body: || json!({"spec": {"serviceImportReference": reference()}}),
};

pub(super) const MEMBER_AGENT: Kind = Kind {
    kind: "MemberAgent",
    version: "v1alpha1",
    body: || {
        json!({"spec": {
            "version": "1.2.3",
            "features": ["IPv6", "Telepathy"],
            "renewTime": "2026-01-01T00:00:00.250001Z",
            "plannedStopTime": "2026-01-01T00:00:00.250001Z",
        }})
    },
};

pub(super) const MERGED_SERVICE_IMPORT: Kind = Kind {
    kind: "MergedServiceImport",
    version: "v1alpha1",
    body: || {
        json!({"spec": {
            "serviceReference": {"namespace": "work", "name": "app", "namespacedName": "work/app"},
            "type": "ClusterSetIP",
            "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
            "ipFamilies": ["IPv6", "IPv4"],
            "exportedLabels": [{"name": "example.com/team", "value": "web"}],
            "clusters": [{"cluster": "member-1", "ports": [{"name": "http", "ownName": "web"}]}],
        }})
    },
};

pub(super) const KINDS: [Kind; 9] = [
    MULTI_CLUSTER_SERVICE,
    SERVICE_EXPORT,
    SERVICE_IMPORT,
    ENDPOINT_SLICE_EXPORT,
    ENDPOINT_SLICE_IMPORT,
    INTERNAL_SERVICE_EXPORT,
    INTERNAL_SERVICE_IMPORT,
    MEMBER_AGENT,
    MERGED_SERVICE_IMPORT,
];

fn slice() -> Value {
    json!({
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.0.7"], "zone": "z1"}, {"addresses": ["10.1.0.9"], "hostname": "web-1"}],
        "drainingEndpoints": [{"addresses": ["10.1.0.8"]}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpointSliceReference": reference(),
        "ownerServiceReference": {"namespace": "work", "name": "app", "namespacedName": "work/app"},
    })
}

fn reference() -> Value {
    json!({
        "clusterId": "member-1",
        "kind": "",
        "namespace": "work",
        "name": "app",
        "namespacedName": "work/app",
        "uid": "6f3cf4f8-0000-4000-8000-000000000001",
        "resourceVersion": "123456",
        "generation": 7,
        "exportedSince": "2026-01-01T00:00:00.123456Z",
    })
}
