//! Request and result of a plan.

use super::draft::Draft;
use crate::backend::{SkipReason, Skipped};
use crate::config::Config;
use crate::model::{EndpointPort, EndpointSlice, Service};
use crate::text::Text;
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

/// Write that a hook removed from a plan.
#[cfg(feature = "apply")]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Vetoed {
    /// Name of the slice; its name prefix if the slice is new.
    pub slice: Text,
    /// Reason that the hook gave.
    pub reason: Text,
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
