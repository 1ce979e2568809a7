//! What should be done about the slices of one Service.
//!
//! ```text
//!  pods ─► backends ─► groups by ports ─► draft per address type ─► placeholder ─► hints ─► finalize ─► Plan
//!                                              ▲                                             (recycling)
//!                          existing slices ────┘
//! ```
//!
//! [`plan`] is a pure function: the same request, backends and hints give the same plan, and the plan of a world that has
//! been brought to its last plan is empty.

mod diff;
mod draft;
pub(crate) mod finalize;
pub(crate) mod group;
mod hooks;
mod patch;

pub use draft::{AssignHints, Draft, LeaveHints, Update};
pub use hooks::{Veto, Vetoed, Write};
pub use patch::Precondition;

use crate::address::{self, Family};
use crate::backend::{Backend, PodBackends, SkipReason, Skipped};
use crate::config::{Config, HintPolicy};
use crate::model::{ClusterIpFamily, EndpointPort, EndpointSlice, Pod, Service};
use crate::nodes::NodeZones;
use crate::template::SliceTemplate;
use crate::text::Text;
use group::Groups;
use jiff::Timestamp;
use std::sync::Arc;
use thiserror::Error;

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
pub struct PlanRequest<'a> {
    /// The Service.
    pub service: &'a Service,
    /// The slices that there are. Those of other managers and Services and those that are being deleted are not looked
    /// at (#108267), so that giving too many does no harm.
    pub existing: &'a [Arc<EndpointSlice>],
    /// When the change was made that this plan publishes; none takes that annotation off every slice that is written
    /// (#74294).
    pub trigger_time: Option<Timestamp>,
    /// How slices are made.
    pub config: &'a Config,
}

/// What should be done about the slices of one Service.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The Service.
    pub service: ServiceName,
    /// What should be done, by address type: they do not depend on one another.
    pub families: Vec<FamilyPlan>,
    /// Slices of address types that the Service does not have any more. They go when all families are done.
    pub unsupported: Vec<Arc<EndpointSlice>>,
    /// Pods and addresses that were left out.
    pub skipped: Vec<Skipped>,
    /// Writes that a hook has taken out.
    pub vetoed: Vec<Vetoed>,
}

/// Namespace and name of a Service.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ServiceName {
    /// Its namespace.
    pub namespace: Text,
    /// Its name.
    pub name: Text,
}

/// What should be done about the slices of one address type.
#[derive(Clone, Debug, Default)]
pub struct FamilyPlan {
    /// Creates, updates, deletes in the order in which they may be carried out, and what stays as it is.
    pub draft: Draft,
    /// How many slices are not created because the Service is being deleted (#91287).
    pub suppressed_creates: usize,
    /// What it tells about itself.
    pub stats: Stats,
}

/// Figures about the plan of one address type.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    /// Endpoints that were in no slice.
    pub added: usize,
    /// Endpoints that left slices whose ports are still served.
    pub removed: usize,
    /// What there will be, by ports.
    pub groups: Vec<GroupStats>,
}

/// Figures about the slices of one list of ports.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GroupStats {
    /// The ports, in the order of the first slice or backend.
    pub ports: Arc<[EndpointPort]>,
    /// How many endpoints there should be.
    pub endpoints: usize,
    /// In how many slices, a placeholder included.
    pub slices: usize,
}

/// How many writes there are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WriteCounts {
    /// Slices to create.
    pub creates: usize,
    /// Slices to update.
    pub updates: usize,
    /// Slices to delete.
    pub deletes: usize,
}

/// What keeps a plan from being the last word: it should be carried out, and made again later.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum PlanError {
    /// A pod is left out until its Node is known.
    #[error("skipping Pod {pod} for Service {namespace}/{service}: Node {node} Not Found")]
    NodeMissing {
        /// The pod.
        pod: Text,
        /// The Service's namespace.
        namespace: Text,
        /// The Service's name.
        service: Text,
        /// The Node.
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
    let mut leave = LeaveHints;
    let hints = in_charge(config, hints, &mut leave);
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

/// Plans the slices of a Service from the pods that it selects. A Service without a selector and an ExternalName keep
/// what slices they have, unless the configuration wants them removed: somebody else may make them.
#[must_use]
pub fn plan_pods<'a>(
    request: &PlanRequest<'_>,
    pods: impl IntoIterator<Item = &'a Pod>,
    nodes: &NodeZones,
    hints: &mut dyn AssignHints,
) -> Plan {
    let PlanRequest { service, config, .. } = *request;
    if let Some(clean_up) = not_served(service, config) {
        return unserved(request, clean_up);
    }
    let mut backends = PodBackends::new(service, nodes, config);
    let mut plan = plan(request, pods.into_iter().filter_map(|pod| backends.convert(pod)), hints);
    plan.skipped = backends.into_skipped();
    plan
}

/// Who decides about hints under this configuration.
pub(crate) fn in_charge<'a>(
    config: &Config,
    hints: &'a mut dyn AssignHints,
    leave: &'a mut LeaveHints,
) -> &'a mut dyn AssignHints {
    match config.hints {
        HintPolicy::Managed => hints,
        HintPolicy::Ignored => leave,
    }
}

/// Whether slices are not made for `service` from pods, and then whether those that there are should go.
pub(crate) fn not_served(service: &Service, config: &Config) -> Option<bool> {
    if service.spec.is_external_name() {
        Some(config.clean_up_external_name)
    } else if service.spec.selector.is_empty() {
        Some(config.clean_up_without_selector)
    } else {
        None
    }
}

/// The plan of a Service that slices are not made for: nothing, or to remove every slice that this controller has for it.
pub(crate) fn unserved(request: &PlanRequest<'_>, clean_up: bool) -> Plan {
    if !clean_up {
        return Plan::nothing(request.service);
    }
    let template = SliceTemplate::new(request.service, request.config);
    let managed = request.existing.iter().filter(|slice| template.manages(slice) && !slice.metadata.is_terminating());
    Plan { unsupported: managed.cloned().collect(), ..Plan::nothing(request.service) }
}

/// The address families of a Service, in its order of preference: those that it says, else that of its address, else
/// both.
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
    /// A plan to leave everything as it is.
    #[must_use]
    pub fn nothing(service: &Service) -> Self {
        let metadata = &service.metadata;
        let service = ServiceName { namespace: metadata.namespace.clone(), name: metadata.name.clone() };
        Self { service, ..Self::default() }
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts() == WriteCounts::default()
    }

    /// How many writes there are.
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

    /// When the change was made that this plan publishes: for who can tell only once it is made
    /// ([`crate::trigger::TriggerTimes::planned`]).
    pub fn set_trigger_time(&mut self, time: Option<Timestamp>) {
        self.families.iter_mut().for_each(|family| family.draft.set_trigger_time(time));
    }

    /// What keeps this plan from being the last word.
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
