//! Objects in listings, by name and namespace.

use super::step_result::{Site, Stop};
use crate::snapshot::{Listing, Member, Reached};
use fleetnet_api::crd::{MultiClusterService, ServiceImport};
use fleetnet_api::names::labels;
use fleetnet_core::names::{cluster_of, member_namespace};
use fleetnet_types::ObjectName;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::{Resource, ResourceExt as _};
use std::collections::BTreeSet;

/// True if a Service has this namespace and name.
pub(crate) fn is_service(service: &ObjectName, namespace: &str, name: &str) -> bool {
    *namespace == *service.namespace && *name == *service.name
}

/// Returns the object with this name.
pub(crate) fn named<'a, K: Resource>(objects: &'a [K], namespace: &str, name: &str) -> Option<&'a K> {
    objects.iter().find(|object| in_namespace(*object, namespace) && object.meta().name.as_deref() == Some(name))
}

pub(crate) fn in_namespace<K: Resource>(object: &K, namespace: &str) -> bool {
    object.meta().namespace.as_deref().unwrap_or_default() == namespace
}

/// True if a MultiClusterService imports this Service.
pub(crate) fn imports(request: &MultiClusterService, service: &ObjectName) -> bool {
    in_namespace(request, &service.namespace)
        && request.spec.service_import.as_ref().is_some_and(|import| *import.name == *service.name)
}

/// Returns the clusters that a ServiceImport lists.
pub(crate) fn exporters(import: &ServiceImport) -> impl Iterator<Item = &str> {
    let clusters = import.status.iter().flat_map(|status| status.import.clusters.iter().flatten());
    clusters.map(|cluster| cluster.cluster.as_str())
}

/// True if the agents imported this slice.
pub(crate) fn is_imported(slice: &EndpointSlice) -> bool {
    slice.labels().get(labels::MANAGED_BY).is_some_and(|manager| manager == labels::MANAGED_BY_IMPORT)
}

pub(crate) fn is_of_another_cluster(slice: &EndpointSlice) -> bool {
    is_imported(slice) || slice.labels().contains_key(labels::MCS_SERVICE_NAME)
}

/// Returns the ready endpoints of a slice. An endpoint without the condition is ready.
pub(crate) fn ready_endpoints(slice: &EndpointSlice) -> impl Iterator<Item = &Endpoint> {
    slice.endpoints.iter().flatten().filter(|endpoint| is_ready(endpoint))
}

/// Returns the addresses of the ready endpoints of a slice.
pub(crate) fn ready_addresses(slice: &EndpointSlice) -> BTreeSet<&str> {
    ready_endpoints(slice).flat_map(|endpoint| endpoint.addresses.iter().map(String::as_str)).collect()
}

/// True if a Service has no address of its own.
pub(crate) fn is_headless(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None")
}

/// Returns the objects of a listing that a step needs. A step without them is unknown.
pub(crate) fn need<'a, K>(listing: &'a Listing<K>, kind: &str, site: Site<'_>) -> Result<&'a [K], Stop> {
    let cluster = site.cluster();
    match listing {
        Listing::Known { objects, .. } => Ok(objects),
        Listing::Denied(_) => Err(Stop::Unknown(format!("{cluster}: this user may not read {kind}"))),
        Listing::NotDefined => Err(Stop::Skipped(format!("{cluster}: the server does not have {kind}"))),
        Listing::Unknown(why) => Err(Stop::Unknown(format!("{cluster}: {kind} could not be read: {why}"))),
        Listing::NotAsked => Err(Stop::Unknown(match &site.connection().reached {
            Reached::Yes => format!("{cluster}: {kind} were not read"),
            Reached::No(failure) => format!("{cluster}: not reached ({})", failure.class),
            reached => format!("{cluster}: {}", reached.without_context().unwrap_or_default()),
        })),
    }
}

/// Returns the objects of a listing that a step can do without. The step is skipped without them.
pub(crate) fn optional<'a, K>(listing: &'a Listing<K>, kind: &str) -> Result<&'a [K], Stop> {
    let why = match listing {
        Listing::Denied(_) => format!("this user may not read {kind}"),
        _ => format!("{kind} were not read"),
    };
    listing.known().ok_or(Stop::Skipped(why))
}

/// Returns a found object. If nothing was found and the namespace contains an undecodable object, the step is skipped:
/// the missing object may be the undecodable one, which FN506 reports.
pub(crate) fn decodable<'a, K, L>(
    found: Option<&'a K>,
    listing: &Listing<L>,
    namespace: &str,
) -> Result<Option<&'a K>, Stop> {
    if found.is_none() && listing.undecodable().any(|object| object.namespace == namespace) {
        return Err(Stop::Skipped("an object of this kind is undecodable".to_owned()));
    }
    Ok(found)
}

/// True if an endpoint is ready. Without the condition, it is.
pub(crate) fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.as_ref().and_then(|it| it.ready).unwrap_or(true)
}

/// Returns the cluster id of a member namespace.
pub(crate) fn member_of(namespace: Option<String>) -> Option<String> {
    cluster_of(&namespace?).map(|id| id.to_string())
}

/// Returns the name of a member's namespace in the hub.
pub(crate) fn hub_namespace(member: &Member) -> String {
    member_namespace(&member.id).to_string()
}
