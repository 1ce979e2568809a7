//! Types of fields that several kinds have.

use crate::limits::{APP_PROTOCOL_BYTES_MAX, LABEL_BYTES_MAX, NAME_BYTES_MAX, NAMESPACED_NAME_BYTES_MAX};
use fleetnet_core::limits::{EXPORTED_ANNOTATION_BYTES_MAX, EXPORTED_LABELS_MAX};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Reference to the object that was exported or imported, as seen by the cluster that wrote it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ExportedObjectReference {
    /// ID of the cluster that has the object.
    #[schemars(length(max = NAME_BYTES_MAX))]
    pub cluster_id: String,
    /// The API version of the referred object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME_BYTES_MAX))]
    pub api_version: Option<String>,
    /// The kind of the referred object; may be the empty string.
    #[schemars(length(max = NAME_BYTES_MAX))]
    pub kind: String,
    /// The namespace of the referred object.
    #[schemars(length(min = 1, max = LABEL_BYTES_MAX))]
    pub namespace: String,
    /// The name of the referred object.
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    pub name: String,
    /// The resource version of the referred object, updated on every export.
    #[schemars(length(max = NAME_BYTES_MAX))]
    pub resource_version: String,
    /// The generation of the referred object, updated on every export.
    pub generation: i64,
    /// The UID of the referred object, fixed when the reference is made.
    #[schemars(length(max = NAME_BYTES_MAX))]
    pub uid: String,
    /// The referred object as namespace/name.
    #[schemars(length(max = NAMESPACED_NAME_BYTES_MAX))]
    pub namespaced_name: String,
    /// Time at which the exporting cluster, by its own clock, first saw the oldest change in this export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_since: Option<MicroTime>,
}

/// Reference to an exported Service.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerServiceReference {
    /// The namespace of the owner Service.
    #[schemars(length(min = 1, max = LABEL_BYTES_MAX))]
    pub namespace: String,
    /// The name of the owner Service.
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    pub name: String,
    /// The owner Service as namespace/name.
    #[schemars(length(max = NAMESPACED_NAME_BYTES_MAX))]
    pub namespaced_name: String,
}

/// Properties of a Service that only the API group multicluster.x-k8s.io carries. In a MergedServiceImport they come
/// from the oldest export.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StandardProperties {
    /// IP families of the Service, the preferred one first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = 2))]
    pub ip_families: Option<Vec<IpFamily>>,
    /// Traffic policy of the Service for clients inside of a cluster, Cluster or Local.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LABEL_BYTES_MAX))]
    pub internal_traffic_policy: Option<String>,
    /// Preference of the Service for near endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LABEL_BYTES_MAX))]
    pub traffic_distribution: Option<String>,
    /// Labels for the ServiceImports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = EXPORTED_LABELS_MAX))]
    pub exported_labels: Option<Vec<NamedValue>>,
    /// Annotations for the ServiceImports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = EXPORTED_LABELS_MAX))]
    pub exported_annotations: Option<Vec<NamedValue>>,
}

/// IP family of a Service.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum IpFamily {
    /// IPv4.
    IPv4,
    /// IPv6.
    IPv6,
}

/// Label or annotation.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct NamedValue {
    /// Name of the label or annotation.
    #[schemars(length(max = NAMESPACED_NAME_BYTES_MAX))]
    pub name: String,
    /// Value of the label or annotation.
    #[schemars(length(max = EXPORTED_ANNOTATION_BYTES_MAX))]
    pub value: String,
}

/// IP protocol of a Service's port.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum Protocol {
    /// TCP, the default of a field that is left out.
    #[default]
    #[serde(rename = "TCP")]
    Tcp,
    /// UDP.
    #[serde(rename = "UDP")]
    Udp,
    /// SCTP.
    #[serde(rename = "SCTP")]
    Sctp,
}

impl Protocol {
    /// Returns the name, as in Kubernetes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }
}

/// Port of an exported or imported Service. Node ports are absent, because each cluster chooses its own.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// Name of the port in its Service. Empty if the Service has one port only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LABEL_BYTES_MAX))]
    pub name: Option<String>,
    /// The IP protocol of the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Protocol", extend("default" = "TCP"))]
    pub protocol: Option<Protocol>,
    /// Application protocol of the port, which is an IANA service name or a prefixed name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = APP_PROTOCOL_BYTES_MAX))]
    pub app_protocol: Option<String>,
    /// The port that the Service exposes.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// The number or name of the port on the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_port: Option<IntOrString>,
}

/// Timeout of the session affinity of the Service.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionAffinityConfig {
    /// The configuration of session affinity by the client's address.
    #[serde(default, rename = "clientIP", skip_serializing_if = "Option::is_none")]
    pub client_ip: Option<ClientIpConfig>,
}

/// The configuration of session affinity by the client's address.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientIpConfig {
    /// How long an idle client keeps its endpoint, in seconds; Kubernetes takes 1 to 86400 and defaults to 10800.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
}

/// Type of an imported Service, with or without a virtual address.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum ServiceImportType {
    /// The imported Service has a virtual address.
    ClusterSetIP,
    /// The imported Service is headless.
    Headless,
}

/// Cluster whose export is part of the imported Service.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ClusterStatus {
    /// The ID of the exporting cluster.
    pub cluster: String,
}

/// State of an imported Service, the status of ServiceImport and of InternalServiceImport.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceImportStatus {
    /// Virtual addresses of the Service. No fleetnet agent sets them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1))]
    pub ips: Option<Vec<String>>,
    /// Type of the imported Service, with or without a virtual address.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ServiceImportType")]
    pub type_: Option<ServiceImportType>,
    /// Session affinity of the Service, None or ClientIP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<String>,
    /// Timeout of the session affinity of the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity_config: Option<SessionAffinityConfig>,
    /// Ports of the Service, as in the export that won the conflict resolution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub ports: Option<Vec<ServicePort>>,
    /// Clusters whose exports are accepted and imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]))]
    pub clusters: Option<Vec<ClusterStatus>>,
}

/// Regular expression for a name in CamelCase, optionally after a DNS subdomain and a slash.
pub(super) const QUALIFIED_NAME: &str = concat!(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?",
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
);

/// Returns the schema of a list of conditions with the limits that the API machinery documents. The generated schema of
/// the type `Condition` has no limits: with it, a server would accept the status `Perhaps` with an empty reason.
pub(super) fn conditions_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "description": "Condition tells one aspect of the current state of the object.",
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "When the condition last changed from one status to another.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": {
                    "description": "What people read about the transition; may be empty.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "observedGeneration": {
                    "description": "The generation of the object that the condition was made for.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "reason": {
                    "description": "Why the condition last changed, in CamelCase, for programs.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "status": {
                    "description": "Whether the condition holds.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "type": {
                    "description": "What the condition is about, in CamelCase.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": QUALIFIED_NAME,
                },
            },
        },
    })
}
