//! Decoders of parts that several kinds share.

use super::lenient::{Field, Short, records};
use crate::limits::{APP_PROTOCOL_BYTES_MAX, LABEL_BYTES_MAX, NAME_BYTES_MAX, NAMESPACED_NAME_BYTES_MAX};
use fleetnet_core::model::{
    Condition, ImportStatus, ImportType, LoadBalancerIngress, LoadBalancerPort, LoadBalancerStatus, Meta, Reference,
    ServicePort, SessionAffinity, TargetPort,
};
use fleetnet_types::{ClusterId, ConditionStatus, ObjectName, Text, Timestamp};
use serde::Deserialize;

const TCP: &str = "TCP";
/// Default timeout of session affinity in an API server (core/v1, DefaultClientIPServiceAffinitySeconds).
// no limit: this number is a default value
const AFFINITY_TIMEOUT_SECONDS: i32 = 10_800;

type Label<T = Text> = Short<T, LABEL_BYTES_MAX>;
type Name = Short<Text, NAME_BYTES_MAX>;
type NamespacedName = Short<Box<str>, NAMESPACED_NAME_BYTES_MAX>;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawReference {
    cluster_id: Field<Name>,
    namespace: Field<Label>,
    name: Field<Name>,
    resource_version: Field<Name>,
    generation: Field<i64>,
    uid: Field<Name>,
    namespaced_name: Field<NamespacedName>,
    exported_since: Field<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawOwnerService {
    namespace: Field<Label>,
    name: Field<Name>,
    namespaced_name: Field<NamespacedName>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawServicePort {
    name: Field<Label>,
    protocol: Field<Label>,
    app_protocol: Field<Short<Text, APP_PROTOCOL_BYTES_MAX>>,
    port: Field<i32>,
    target_port: Field<Label<TargetPort>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawCondition {
    #[serde(rename = "type")]
    condition_type: Field<Text>,
    status: Field<ConditionStatus>,
    reason: Field<Text>,
    message: Field<Text>,
    observed_generation: Field<i64>,
    last_transition_time: Field<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawImportStatus {
    #[serde(rename = "type")]
    import_type: Field<Text>,
    ports: Field<Vec<RawServicePort>>,
    #[serde(rename = "sessionAffinity")]
    session_affinity: Field<Box<str>>,
    #[serde(rename = "sessionAffinityConfig")]
    session_affinity_config: Field<RawAffinityConfig>,
    clusters: Field<Vec<RawCluster>>,
    /// Only of ServiceImports.
    pub(super) conditions: Field<Vec<RawCondition>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawAffinityConfig {
    #[serde(rename = "clientIP")]
    client_ip: Field<RawClientIp>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawClientIp {
    timeout_seconds: Field<i32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawCluster {
    pub(super) cluster: Field<Text>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawLoadBalancer {
    ingress: Field<Vec<RawIngress>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawIngress {
    ip: Field<Text>,
    hostname: Field<Text>,
    ip_mode: Field<Text>,
    ports: Field<Vec<RawIngressPort>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawIngressPort {
    port: Field<i32>,
    protocol: Field<Text>,
    error: Field<Text>,
}

/// Status of an object. Only the conditions are decoded.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawConditions {
    pub(super) conditions: Field<Vec<RawCondition>>,
}

records!(
    RawReference,
    RawOwnerService,
    RawServicePort,
    RawCondition,
    RawImportStatus,
    RawAffinityConfig,
    RawClientIp,
    RawCluster,
    RawLoadBalancer,
    RawIngress,
    RawIngressPort,
    RawConditions,
);

impl Field<RawReference> {
    /// False if `namespacedName` names another object than the fields `namespace` and `name`.
    pub(super) fn is_named_once(&self) -> bool {
        let Self::Value(raw) = self else { return true };
        is_named_once(&raw.namespace, &raw.name, &raw.namespaced_name)
    }
}

impl Field<RawOwnerService> {
    /// False if `namespacedName` names another object than the fields `namespace` and `name`.
    pub(super) fn is_named_once(&self) -> bool {
        let Self::Value(raw) = self else { return true };
        is_named_once(&raw.namespace, &raw.name, &raw.namespaced_name)
    }
}

/// True if the field `namespacedName` equals `<namespace>/<name>` of the other two fields. Also true if a field is
/// absent, which a CRD does not allow.
fn is_named_once(namespace: &Field<Label>, name: &Field<Name>, both: &Field<NamespacedName>) -> bool {
    let (Field::Value(namespace), Field::Value(name)) = (namespace, name) else { return true };
    match both {
        Field::Absent => true,
        Field::Nonsense => false,
        Field::Value(both) => both.as_text().split_once('/') == Some((&**namespace.as_text(), &**name.as_text())),
    }
}

/// Returns the reference to the source object. `None` if the reference names no object. The caller then treats the
/// object that has this reference as undecodable.
///
/// For an object that is being deleted, an invalid reference is no error, because the agent whose finalizer is on the
/// object must see the deletion.
pub(super) fn reference(meta: &Meta, raw: Field<RawReference>) -> Option<Reference> {
    let raw = if meta.deleting { raw.or_default() } else { raw.value()? };
    Some(Reference {
        cluster: raw.cluster_id.text().or_default().into(),
        source: source(meta, raw.namespace.text(), raw.name.text())?,
        uid: raw.uid.text().or_default().into(),
        resource_version: raw.resource_version.text().or_default(),
        generation: raw.generation.or_default(),
        exported_since: raw.exported_since.value(),
    })
}

/// Returns the name of the Service that a slice belongs to; `None` if the slice names no Service. For a slice that is
/// being deleted, the name may be empty.
pub(super) fn owner_service(meta: &Meta, raw: Field<RawOwnerService>) -> Option<ObjectName> {
    let raw = if meta.deleting { raw.or_default() } else { raw.value()? };
    source(meta, raw.namespace.text(), raw.name.text())
}

fn source(meta: &Meta, namespace: Field<Text>, name: Field<Text>) -> Option<ObjectName> {
    let text_of = |field: Field<Text>| {
        let text = field.value().filter(|text| !text.is_empty());
        text.or_else(|| meta.deleting.then(Text::default))
    };
    Some(ObjectName::new(text_of(namespace)?, text_of(name)?))
}

/// Returns the ports of a Service. A port with an invalid number stays, with number 0. If the port were omitted, the
/// Service would seem to have fewer ports.
pub(super) fn service_ports(raw: Field<Vec<RawServicePort>>) -> Result<Vec<ServicePort>, &'static str> {
    let port = |raw: RawServicePort| ServicePort {
        name: raw.name.text().or_default(),
        protocol: raw.protocol.text().value().unwrap_or_else(|| TCP.into()),
        app_protocol: raw.app_protocol.text().value(),
        port: raw.port.or_default().into(),
        target_port: raw.target_port.text().value().filter(is_set),
    };
    Ok(raw.or_undecodable("ports is not a list")?.into_iter().map(port).collect())
}

/// False for the target ports 0 and "". Go writes these values for a target port that is not set, and Kubernetes reads
/// them as not set.
fn is_set(target: &TargetPort) -> bool {
    match target {
        TargetPort::Number(number) => number.as_written() != 0,
        TargetPort::Name(name) => !name.is_empty(),
    }
}

/// Returns the conditions that have a type, and skips all others.
pub(super) fn conditions(raw: Field<Vec<RawCondition>>) -> Result<Vec<Condition>, &'static str> {
    let condition = |raw: RawCondition| {
        Some(Condition {
            condition_type: raw.condition_type.value()?,
            status: raw.status.or_default(),
            reason: raw.reason.or_default(),
            message: raw.message.or_default(),
            observed_generation: raw.observed_generation.or_default(),
            last_transition: raw.last_transition_time.or_default(),
        })
    };
    Ok(raw.or_undecodable("status.conditions is not a list")?.into_iter().filter_map(condition).collect())
}

/// Returns the session affinity: none unless the value is `ClientIP`. An absent timeout counts as the API server's
/// default timeout.
pub(super) fn session_affinity(affinity: Field<Box<str>>, config: Field<RawAffinityConfig>) -> SessionAffinity {
    if affinity.value().as_deref() != Some("ClientIP") {
        return SessionAffinity::None;
    }
    let timeout = config.or_default().client_ip.or_default().timeout_seconds.value();
    SessionAffinity::ClientIp { timeout_seconds: timeout.unwrap_or(AFFINITY_TIMEOUT_SECONDS) }
}

pub(super) fn import_type(raw: Field<Text>) -> Option<ImportType> {
    match raw.value().as_deref() {
        Some("ClusterSetIP") => Some(ImportType::ClusterSetIp),
        Some("Headless") => Some(ImportType::Headless),
        _ => None,
    }
}

/// Returns the status of a ServiceImport or InternalServiceImport.
pub(super) fn import_status(raw: Field<RawImportStatus>) -> Result<ImportStatus, &'static str> {
    let raw = raw.or_undecodable("status is not an object")?;
    let clusters = raw.clusters.or_undecodable("status.clusters is not a list")?;
    Ok(ImportStatus {
        import_type: import_type(raw.import_type),
        ports: service_ports(raw.ports)?,
        session_affinity: session_affinity(raw.session_affinity, raw.session_affinity_config),
        clusters: clusters.into_iter().filter_map(|raw| raw.cluster.value()).map(ClusterId::from).collect(),
    })
}

/// Returns `status.loadBalancer` of a Service or MultiClusterService.
pub(super) fn load_balancer(raw: Field<RawLoadBalancer>) -> LoadBalancerStatus {
    let port = |raw: RawIngressPort| LoadBalancerPort {
        port: raw.port.or_default().into(),
        protocol: raw.protocol.value().unwrap_or_else(|| TCP.into()),
        error: raw.error.value(),
    };
    let ingress = |raw: RawIngress| LoadBalancerIngress {
        ip: raw.ip.value(),
        hostname: raw.hostname.value(),
        ip_mode: raw.ip_mode.value(),
        ports: raw.ports.or_default().into_iter().map(port).collect(),
    };
    LoadBalancerStatus { ingress: raw.or_default().ingress.or_default().into_iter().map(ingress).collect() }
}
