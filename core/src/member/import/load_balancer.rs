//! Load balancer of a MultiClusterService: decides if its derived Service may be one.

use super::claim;
use crate::conditions::{self, ConditionValue, VALID};
use crate::member::view::Reader;
use crate::model::{
    ConsumerType, InternalLoadBalancer, Kind, MultiClusterService, Service, ServiceImport, ServiceType,
};
use crate::reasons::Reason;

/// Type of the derived Service.
pub(super) enum Decision {
    /// The type that the user requests.
    AsRequested,
    /// Type ClusterIP, although the user requests a load balancer. The condition `Valid` says why.
    ClusterIp(ConditionValue),
    /// The derived Service is neither created nor changed. The condition `Valid` says why.
    Unchanged(ConditionValue),
}

/// Decides the type of the derived Service. `present` is the derived Service, if it exists.
pub(super) fn decide(
    view: Reader<'_>,
    request: &MultiClusterService,
    import: &ServiceImport,
    present: Option<&Service>,
) -> Decision {
    let cluster = &view.settings().cluster;
    let balances = request.consumer_type == ConsumerType::LoadBalancer && !import.status.is_headless();
    if balances && request.internal_load_balancer == InternalLoadBalancer::Malformed {
        return Decision::Unchanged(ConditionValue::internal_load_balancer_malformed(&request.meta.name, cluster));
    }
    if waits_for_grant(view, request, import, present) {
        return Decision::ClusterIp(ConditionValue::load_balancer_not_granted(&import.meta.name, cluster));
    }
    let exceeded = if balances { exceeded_limit(view, request) } else { None };
    let Some(limit) = exceeded else { return Decision::AsRequested };
    let refusal = ConditionValue::too_many_load_balancers(&request.meta.name, cluster, limit);
    if present.is_some() { Decision::ClusterIp(refusal) } else { Decision::Unchanged(refusal) }
}

/// True while the user requests type LoadBalancer, but the hub agent has not granted it and the import continues with
/// type ClusterIP. While the claims are not listed yet, or one of them is undecodable, the present condition and
/// derived Service decide.
fn waits_for_grant(
    view: Reader<'_>,
    request: &MultiClusterService,
    import: &ServiceImport,
    present: Option<&Service>,
) -> bool {
    let known = view.complete(&[Kind::InternalServiceImport]) && claim::undecodable(view, import).is_none();
    let says_so = || conditions::has_type_with_reason(&request.conditions, VALID, Reason::LoadBalancerNotGranted);
    let is_cluster_ip = |service: &Service| !service.headless && service.service_type == ServiceType::ClusterIp;
    request.consumer_type == ConsumerType::LoadBalancer
        && !claim::is_granted_exclusively(view, import)
        && if known { claim::is_shared(view, import) } else { says_so() || present.is_some_and(is_cluster_ip) }
}

/// Returns the maximum number of load balancers of a namespace if this MultiClusterService exceeds it. Load balancers
/// that exist stay, and the oldest MultiClusterServices get the others. So plans that run at the same time agree who
/// gets one.
fn exceeded_limit(view: Reader<'_>, request: &MultiClusterService) -> Option<usize> {
    let limit = view.settings().load_balancers_per_namespace?;
    if has_load_balancer(view, request) {
        return None;
    }
    let age = |request: &MultiClusterService| {
        Some((request.load_balancer_requested_since()?, request.meta.name.name.clone()))
    };
    let is_older = |other: &MultiClusterService| age(other).is_some_and(|older| Some(older) < age(request));
    let before = |other: &&MultiClusterService| has_load_balancer(view, other) || is_older(other);
    (view.requests_in(&request.meta.name.namespace).filter(before).count() >= limit).then_some(limit)
}

/// True if a MultiClusterService has a load balancer, also one that is being deleted.
fn has_load_balancer(view: Reader<'_>, request: &MultiClusterService) -> bool {
    let mut services = view.derived_of(&request.meta.name).filter_map(|name| view.services().get(name));
    services.any(|service| service.service_type == ServiceType::LoadBalancer)
}
