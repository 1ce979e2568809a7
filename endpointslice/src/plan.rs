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
mod types;

pub use draft::{AssignHints, Draft, Update};
#[cfg(feature = "apply")]
pub use hooks::{Veto, Write};
#[cfg(feature = "apply")]
pub use patch::Precondition;
#[cfg(feature = "apply")]
pub use types::Vetoed;
pub use types::{FamilyPlan, GroupStats, Plan, PlanError, PlanRequest, ServiceName, Stats, WriteCounts};

use crate::address::{self, Family};
use crate::backend::{Backend, PodBackends};
use crate::model::{ClusterIpFamily, EndpointSlice, Pod, Service};
use crate::nodes::NodeZones;
use crate::template::SliceTemplate;
use group::Groups;
use std::sync::Arc;

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
