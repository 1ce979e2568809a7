//! Plan of the slices of one Service.
//!
//! ```text
//!  pods ─► backends ─► groups by ports ─► draft per address type ─► placeholder ─► hints ─► finalize ─► Plan
//!                                              ▲                                             (recycling)
//!                          existing slices ────┘
//! ```
//!
//! [`plan`] is a pure function: the same request, backends and hints give the same plan. After a plan is applied, the
//! next plan is empty unless the input changed.

mod diff;
mod draft;
pub(crate) mod finalize;
pub(crate) mod group;
#[cfg(feature = "apply")]
mod hooks;
#[cfg(feature = "apply")]
mod patch;

pub use draft::{AssignHints, Draft, Update};
#[cfg(feature = "apply")]
pub use hooks::{Veto, Vetoed, Write};
#[cfg(feature = "apply")]
pub use patch::Precondition;

use crate::address::{self, Family};
use crate::backend::{Backend, PodBackends, SkipReason, Skipped};
use crate::config::Config;
use crate::model::{ClusterIpFamily, EndpointPort, EndpointSlice, Pod, Service};
use crate::nodes::NodeZones;
use crate::template::SliceTemplate;
use crate::text::Text;
use group::Groups;
use jiff::Timestamp;
use std::sync::Arc;
use thiserror::Error;

/// Input of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanRequest<'a> {
    /// Service whose slices are planned.
    pub service: &'a Service,
    /// Existing slices. The plan ignores slices of other managers or Services, and slices that are being deleted
    /// (kubernetes/kubernetes #108267). So this list may contain more than the slices of the Service.
    pub existing: &'a [Arc<EndpointSlice>],
    /// Time of the change that this plan publishes, for the trigger-time annotation. `None` removes the annotation from
    /// every slice that is written (kubernetes/kubernetes #74294).
    pub trigger_time: Option<Timestamp>,
    /// Settings of the controller.
    pub config: &'a Config,
}

/// Changes that bring the slices of one Service up to date.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Service whose slices are planned.
    pub service: ServiceName,
    /// Changes by address type. The address types are independent of each other.
    pub families: Vec<FamilyPlan>,
    /// Existing slices of address types that the Service no longer has. These slices are deleted after all writes of
    /// `families` succeeded.
    pub unsupported: Vec<Arc<EndpointSlice>>,
    /// Pods and addresses for which no endpoint is made.
    pub skipped: Vec<Skipped>,
    /// Writes that a hook removed from the plan.
    #[cfg(feature = "apply")]
    pub vetoed: Vec<Vetoed>,
}

/// Namespace and name of a Service.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ServiceName {
    /// Namespace of the Service.
    pub namespace: Text,
    /// Name of the Service.
    pub name: Text,
}

/// Changes of the slices of one address type.
#[derive(Clone, Debug, Default)]
pub struct FamilyPlan {
    /// Creates, updates and deletes in the order in which they are applied, and unchanged slices.
    pub draft: Draft,
    /// Number of slices that are not created because the Service is being deleted (kubernetes/kubernetes #91287).
    pub suppressed_creates: usize,
    /// Numbers of endpoints and slices, for metrics.
    pub stats: Stats,
}

/// Numbers about the plan of one address type, for metrics.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    /// Number of endpoints that were in no slice before.
    pub added: usize,
    /// Number of endpoints removed from slices. Slices with ports that no backend has any more do not count.
    pub removed: usize,
    /// Numbers of endpoints and slices after the plan, for each list of ports.
    pub groups: Vec<GroupStats>,
}

/// Numbers about the slices of one list of ports.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GroupStats {
    /// List of ports, in the order of the backends.
    pub ports: Arc<[EndpointPort]>,
    /// Number of endpoints that slices with these ports should have.
    pub endpoints: usize,
    /// Number of slices with these ports after the plan, including a placeholder.
    pub slices: usize,
}

/// Numbers of writes in a plan.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WriteCounts {
    /// Slices to create.
    pub creates: usize,
    /// Slices to update.
    pub updates: usize,
    /// Slices to delete.
    pub deletes: usize,
}

/// Problem that a plan could not solve. Apply the plan anyway, and plan again later.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum PlanError {
    /// A pod is not published because its Node is not known.
    #[error("skipping Pod {pod} for Service {namespace}/{service}: Node {node} Not Found")]
    NodeMissing {
        /// Name of the pod.
        pod: Text,
        /// Namespace of the Service.
        namespace: Text,
        /// Name of the Service.
        service: Text,
        /// Name of the Node.
        node: Text,
    },
}

/// Plans the slices of a Service from its backends.
#[must_use]
pub fn plan(
    request: &PlanRequest<'_>,
    backends: impl IntoIterator<Item = Backend>,
    hints: &mut dyn AssignHints,
) -> Plan {
    let PlanRequest { service, existing, config, .. } = *request;
    let template = SliceTemplate::new(service, config);
    let families = families(service);
    let groups = Groups::of(&families, backends);
    let managed = existing.iter().filter(|slice| template.manages(slice) && !slice.metadata.is_terminating());
    let supported =
        |slice: &&Arc<EndpointSlice>| families.iter().any(|family| family.address_type() == slice.address_type);
    let (supported, unsupported): (Vec<_>, Vec<_>) = managed.partition(supported);
    let planned = groups.into_families().into_iter().map(|(family, groups)| {
        let address_type = family.address_type();
        let existing = supported.iter().filter(|slice| slice.address_type == address_type);
        let (mut draft, stats) = group::draft(&template, config, address_type.clone(), groups, existing.copied());
        hints.assign(service, &mut draft);
        finalize::finalize(request, &template, draft, stats)
    });
    Plan {
        families: planned.collect(),
        unsupported: unsupported.into_iter().cloned().collect(),
        ..Plan::nothing(service)
    }
}

/// Plans the slices of a Service from the pods that it selects.
///
/// For a Service without a selector or of type ExternalName the plan is empty.
#[must_use]
pub fn plan_pods<'a>(
    request: &PlanRequest<'_>,
    pods: impl IntoIterator<Item = &'a Pod>,
    nodes: &NodeZones,
    hints: &mut dyn AssignHints,
) -> Plan {
    let PlanRequest { service, .. } = *request;
    if !is_served(service) {
        return Plan::nothing(service);
    }
    let mut backends = PodBackends::new(service, nodes);
    let mut plan = plan(request, pods.into_iter().filter_map(|pod| backends.convert(pod)), hints);
    plan.skipped = backends.into_skipped();
    plan
}

/// True for a Service whose slices are made from pods. False for an ExternalName and a Service without a selector,
/// whose existing slices stay.
pub(crate) fn is_served(service: &Service) -> bool {
    !service.spec.is_external_name() && !service.spec.selector.is_empty()
}

/// Returns the address families of a Service, the preferred family first. These are the families in `spec.ipFamilies`,
/// or else the family of the cluster IP, or else both families.
#[must_use]
pub fn families(service: &Service) -> Vec<Family> {
    let mut families = Vec::with_capacity(2);
    for family in &service.spec.ip_families {
        let family = match family {
            ClusterIpFamily::IPv4 => Family::V4,
            ClusterIpFamily::IPv6 => Family::V6,
            ClusterIpFamily::Other => continue,
        };
        if !families.contains(&family) {
            families.push(family);
        }
    }
    match (families.is_empty(), address::family(&service.spec.cluster_ip)) {
        (false, _) => families,
        (true, Some(family)) => vec![family],
        (true, None) => vec![Family::V4, Family::V6],
    }
}

impl Plan {
    /// Returns a plan without writes.
    #[must_use]
    pub fn nothing(service: &Service) -> Self {
        let metadata = &service.metadata;
        let service = ServiceName { namespace: metadata.namespace.clone(), name: metadata.name.clone() };
        Self { service, ..Self::default() }
    }

    /// True if the plan has no writes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts() == WriteCounts::default()
    }

    /// Returns the numbers of writes in the plan.
    #[must_use]
    pub fn counts(&self) -> WriteCounts {
        let mut counts = WriteCounts { deletes: self.unsupported.len(), ..WriteCounts::default() };
        for FamilyPlan { draft, .. } in &self.families {
            counts.creates += draft.creates.len();
            counts.updates += draft.updates.len();
            counts.deletes += draft.deletes.len();
        }
        counts
    }

    /// Sets the trigger time of the slices that are written, for callers that know the time only after planning
    /// ([`crate::trigger::TriggerTimes::planned`]).
    pub fn set_trigger_time(&mut self, time: Option<Timestamp>) {
        self.families.iter_mut().for_each(|family| family.draft.set_trigger_time(time));
    }

    /// Returns the problems that the plan could not solve. If there are any, the Service must be planned again later.
    pub fn errors(&self) -> impl Iterator<Item = PlanError> {
        self.skipped.iter().filter_map(|skipped| match &skipped.reason {
            SkipReason::NodeMissing(node) => Some(PlanError::NodeMissing {
                pod: skipped.pod.clone(),
                namespace: self.service.namespace.clone(),
                service: self.service.name.clone(),
                node: node.clone(),
            }),
            _ => None,
        })
    }
}
