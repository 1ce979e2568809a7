//! Types of fields that several kinds have.

use crate::lenient::{Field, Short};
use crate::limits::{APP_PROTOCOL_BYTES_MAX, LABEL_BYTES_MAX, NAME_BYTES_MAX, NAMESPACED_NAME_BYTES_MAX};
use crate::wire::{Maybe, Micros, Needed, OrTcp, Plain, Seconds, Sparse, codec, record};
use fleetnet_core::limits::{EXPORTED_ANNOTATION_BYTES_MAX, EXPORTED_LABELS_MAX};
use fleetnet_core::model::{self, PortNumber, Reference, TargetPort};
use fleetnet_types::{ClusterId, ConditionStatus, ObjectName, Text, Uid};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) type Label<T = Text> = Short<T, LABEL_BYTES_MAX>;
pub(crate) type Name<T = Text> = Short<T, NAME_BYTES_MAX>;
pub(crate) type NamespacedName = Short<Box<str>, NAMESPACED_NAME_BYTES_MAX>;

record! {
    /// Reference to the object that was exported or imported, as seen by the cluster that wrote it.
    #[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
    #[serde(rename_all = "camelCase")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    struct ExportedObjectReference: RawReference => Reference {
        /// ID of the cluster that has the object.
        #[schemars(length(max = NAME_BYTES_MAX))]
        cluster_id: String = cluster "clusterId" as Plain<Name<ClusterId>>,
        /// The resource version of the referred object, updated on every export.
        #[schemars(length(max = NAME_BYTES_MAX))]
        resource_version: String = resource_version "resourceVersion" as Plain<Name>,
        /// The generation of the referred object, updated on every export.
        generation: i64 = generation "generation" as Plain<i64>,
        /// The UID of the referred object, fixed when the reference is made.
        #[schemars(length(max = NAME_BYTES_MAX))]
        uid: String = uid "uid" as Plain<Name<Uid>>,
        /// Time at which the exporting cluster, by its own clock, first saw the oldest change in this export.
        exported_since(default): Option<MicroTime> = exported_since "exportedSince" as Maybe<Micros>,
        .source: ObjectName {
            /// The namespace of the referred object.
            #[schemars(length(min = 1, max = LABEL_BYTES_MAX))]
            namespace: String = namespace "namespace" as Plain<Label>,
            /// The name of the referred object.
            #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
            name: String = name "name" as Plain<Name>,
        }
    }
    definition {
        /// The API version of the referred object.
        #[schemars(length(max = NAME_BYTES_MAX))]
        api_version(default): Option<String>,
        /// The kind of the referred object; may be the empty string.
        #[schemars(length(max = NAME_BYTES_MAX))]
        kind: String,
        /// The referred object as namespace/name.
        #[schemars(length(max = NAMESPACED_NAME_BYTES_MAX))]
        namespaced_name: String,
    }
    // No agent reads `kind` and `apiVersion`. A patch leaves them out, so they keep the values of the create.
    raw { namespaced_name: NamespacedName = "namespacedName" => |reference| named(&reference.source), }
}

record! {
    /// Reference to an exported Service.
    #[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
    #[serde(rename_all = "camelCase")]
    struct OwnerServiceReference: RawOwnerService => ObjectName {
        /// The namespace of the owner Service.
        #[schemars(length(min = 1, max = LABEL_BYTES_MAX))]
        namespace: String = namespace "namespace" as Plain<Label>,
        /// The name of the owner Service.
        #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
        name: String = name "name" as Plain<Name>,
    }
    definition {
        /// The owner Service as namespace/name.
        #[schemars(length(max = NAMESPACED_NAME_BYTES_MAX))]
        namespaced_name: String,
    }
    raw { namespaced_name: NamespacedName = "namespacedName" => named, }
}

/// Returns the value of the field `namespacedName`.
fn named(object: &ObjectName) -> Value {
    format!("{}/{}", object.namespace, object.name).into()
}

/// Fields of a reference that name an object.
pub(crate) trait Names {
    fn names(&self) -> (&Field<Label>, &Field<Name>, &Field<NamespacedName>);
}

impl Names for RawReference {
    fn names(&self) -> (&Field<Label>, &Field<Name>, &Field<NamespacedName>) {
        (&self.namespace, &self.name, &self.namespaced_name)
    }
}

impl Names for RawOwnerService {
    fn names(&self) -> (&Field<Label>, &Field<Name>, &Field<NamespacedName>) {
        (&self.namespace, &self.name, &self.namespaced_name)
    }
}

impl<T: Names> Field<T> {
    /// True if the reference names an object: if neither its namespace nor its name is empty.
    pub(crate) fn names_object(&self) -> bool {
        let Self::Value(raw) = self else { return false };
        let (namespace, name, _) = raw.names();
        let is_filled = |text: &Text| !text.is_empty();
        namespace.as_value().is_some_and(|text| is_filled(text.as_text()))
            && name.as_value().is_some_and(|text| is_filled(text.as_text()))
    }

    /// True if the field `namespacedName` equals `<namespace>/<name>` of the other two fields. Also true if a field is
    /// absent, which a CRD does not allow.
    pub(crate) fn is_named_once(&self) -> bool {
        let Self::Value(raw) = self else { return true };
        let (Field::Value(namespace), Field::Value(name), both) = raw.names() else { return true };
        match both {
            Field::Absent => true,
            Field::Nonsense => false,
            Field::Value(both) => both.as_text().split_once('/') == Some((&**namespace.as_text(), &**name.as_text())),
        }
    }
}

/// Properties of a Service that only the API group multicluster.x-k8s.io carries. In a MergedServiceImport they come
/// from the oldest export.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct McsProperties {
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

record! {
    /// Port of an exported or imported Service. Node ports are absent, because each cluster chooses its own.
    #[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
    struct ServicePort: RawServicePort => model::ServicePort {
        /// Name of the port in its Service. Empty if the Service has one port only.
        #[schemars(length(max = LABEL_BYTES_MAX))]
        name(default): Option<String> = name "name" as Sparse<Label>,
        /// The IP protocol of the port.
        #[schemars(with = "Protocol", extend("default" = "TCP"))]
        protocol(default): Option<Protocol> = protocol "protocol" as OrTcp<Label>,
        /// Application protocol of the port, which is an IANA service name or a prefixed name.
        #[schemars(length(max = APP_PROTOCOL_BYTES_MAX))]
        app_protocol(default): Option<String> = app_protocol "appProtocol" as Maybe<Short<Text, APP_PROTOCOL_BYTES_MAX>>,
        /// The port that the Service exposes.
        #[schemars(range(min = 1, max = 65535))]
        port: i32 = port "port" as Plain<PortNumber>,
        /// The number or name of the port on the pods.
        target_port(default): Option<IntOrString> = target_port "targetPort" as Maybe<Label<TargetPort>>,
    }
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

/// Title of the fields that fleetnet adds to the kinds of the Go agents. The CustomResourceDefinitions do not have it.
pub(crate) const ADDED: &str = "added by fleetnet";

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

codec! {
    RawCondition => model::Condition {
        condition_type = "type" as Needed<Text>,
        status = "status" as Plain<ConditionStatus>,
        reason = "reason" as Plain<Text>,
        message = "message" as Plain<Text>,
        observed_generation = "observedGeneration" as Plain<i64>,
        last_transition = "lastTransitionTime" as Plain<Seconds>,
    }
}

codec! {
    RawOwner => model::Owner {
        api_version = "apiVersion" as Plain<Text>,
        kind = "kind" as Plain<Text>,
        name = "name" as Plain<Text>,
        uid = "uid" as Plain<Uid>,
        controller = "controller" as Plain<bool>,
        block_owner_deletion = "blockOwnerDeletion" as Plain<bool>,
    }
}
