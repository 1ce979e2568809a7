//! Derived Services of both APIs: how to tell them from others, and the comparison of one with its desired state.

use crate::member::view::Reader;
use crate::model::{ConsumerType, Service, ServicePort, ServiceType, TargetPort};
use crate::names;
use crate::plan::{DerivedService, McsDerivedService};
use fleetnet_types::{ObjectName, Text};

/// True if the agents made a Service for an import, by either API. The slices of such a Service are of other clusters.
pub(super) fn is_derived(view: Reader<'_>, service: &Service) -> bool {
    let ObjectName { namespace, name: _ } = &service.meta.name;
    let by_fleet_api = service.derived_from.is_some() && *namespace == view.settings().fleet_system_namespace;
    let of = |name: &Text| names::mcs_derived(&ObjectName { namespace: namespace.clone(), name: name.clone() });
    by_fleet_api || service.imports.as_ref().is_some_and(|name| of(name) == service.meta.name)
}

/// True if the derived Service equals its desired state in all fields that this agent owns.
pub(super) fn as_desired(service: &Service, desired: &DerivedService) -> bool {
    let service_type = match desired.consumer_type {
        ConsumerType::LoadBalancer => ServiceType::LoadBalancer,
        ConsumerType::ClusterIp => ServiceType::ClusterIp,
    };
    !service.relabelled
        && service.service_type == service_type
        && with_targets(&service.ports).eq(with_targets(&desired.ports))
        && service.internal_load_balancer == desired.internal_load_balancer
        && service.session_affinity == desired.session_affinity
        && service.dual_stack == desired.dual_stack
        && !service.is_external_policy_local
        && routes_to_imported_slices(service)
}

/// True if clients reach only imported slices by a derived Service, and reach them from each node.
fn routes_to_imported_slices(service: &Service) -> bool {
    // Imported endpoints have no node, so with `Local` no client would reach them.
    let is_cluster_policy = service.internal_traffic_policy.as_deref().is_none_or(|policy| policy == "Cluster");
    is_cluster_policy && !service.has_selector_or_external_ips
}

/// True if a derived Service of the standard API equals its desired state in all fields that this agent owns.
pub(super) fn as_desired_by_mcs(service: &Service, desired: &McsDerivedService) -> bool {
    !service.headless
        && !service.relabelled
        && service.service_type == ServiceType::ClusterIp
        && with_targets(&service.ports).eq(with_targets(&desired.ports))
        && service.session_affinity == desired.session_affinity
        && (service.dual_stack || !desired.dual_stack)
        && routes_to_imported_slices(service)
}

/// Sets the target port of each port without a target port to the port's number, as the API server does.
fn with_targets(ports: &[ServicePort]) -> impl Iterator<Item = ServicePort> {
    ports.iter().map(|port| {
        let target_port = Some(port.target_port.clone().unwrap_or(TargetPort::Number(port.port)));
        ServicePort { target_port, ..port.clone() }
    })
}
