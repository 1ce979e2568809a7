//! Decoders of parts that several kinds share.

use crate::crd::multi_cluster_service::RawLoadBalancer;
use crate::crd::shared::{Names, RawCondition, RawServicePort};
use crate::lenient::{Field, records};
use crate::wire::{Plain, Rule, Strict, Wire};
use fleetnet_core::model::{
    Condition, ImportStatus, ImportType, LoadBalancerStatus, Meta, ServicePort, SessionAffinity,
};
use fleetnet_types::{ClusterId, Text};
use serde::Deserialize;

/// Default timeout of session affinity in an API server (core/v1, DefaultClientIPServiceAffinitySeconds).
// no limit: this number is a default value
const AFFINITY_TIMEOUT_SECONDS: i32 = 10_800;

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

/// Status of an object. Only the conditions are decoded.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawConditions {
    pub(super) conditions: Field<Vec<RawCondition>>,
}

records!(RawImportStatus, RawAffinityConfig, RawClientIp, RawCluster, RawConditions);

/// Returns the reference to the source object, or the name of the Service that a slice belongs to. `None` if the
/// reference names no object. The caller then treats the object that has this reference as undecodable.
///
/// For an object that is being deleted, an invalid reference is no error, because the agent whose finalizer is on the
/// object must see the deletion.
pub(super) fn reference<W: Wire + Names + Default>(meta: &Meta, raw: Field<W>) -> Option<W::Model> {
    if meta.deleting || raw.names_object() { raw.or_default().model().ok() } else { None }
}

/// Returns the ports of a Service. A port with an invalid number stays, with number 0. If the port were omitted, the
/// Service would seem to have fewer ports.
pub(super) fn service_ports<W>(raw: Field<W>) -> Result<Vec<ServicePort>, &'static str>
where
    W: Wire<Model = Vec<ServicePort>> + Default,
{
    Strict::<Plain<W>>::read(raw, "ports is not a list")
}

/// Returns the conditions that have a type, and skips all others.
pub(super) fn conditions(raw: Field<Vec<RawCondition>>) -> Result<Vec<Condition>, &'static str> {
    Strict::<Plain<_>>::read(raw, "status.conditions is not a list")
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
    raw.or_default().model().unwrap_or_default()
}
