//! Services whose slices must be planned again after an event.

use crate::model::{EndpointSlice, Pod};
use crate::names::LABEL_SERVICE_NAME;
use crate::plan::ServiceName;
use crate::text::Text;
use std::collections::BTreeSet;
use thiserror::Error;

/// Changes of a pod that slices depend on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PodChange {
    /// True if the pod's addresses, readiness or deletion time changed, or if the pod has ended
    /// (kube-controller-manager ignores the end of a pod).
    pub endpoint: bool,
    /// True if the pod's labels, hostname or subdomain changed, so that other Services may select the pod.
    pub labels: bool,
}

impl PodChange {
    /// Returns the changes from pod `old` to `new`. A new Node or resourceVersion alone does not count: a pod does not
    /// move between Nodes, and slices do not contain the resourceVersion.
    #[must_use]
    pub fn between(old: &Pod, new: &Pod) -> Self {
        let endpoint = old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
            || old.status.readiness.is_ready != new.status.readiness.is_ready
            || old.status.pod_ips != new.status.pod_ips
            || old.status.phase.is_terminal() != new.status.phase.is_terminal();
        let labels = old.metadata.labels != new.metadata.labels
            || old.spec.hostname != new.spec.hostname
            || old.spec.subdomain != new.spec.subdomain;
        Self { endpoint, labels }
    }

    /// Returns the names of the Services to plan again after this change of a pod. `old` are the Services that selected
    /// the pod before the change, and `new` the Services that select the pod now.
    #[must_use]
    pub fn services(self, old: BTreeSet<Text>, new: BTreeSet<Text>) -> BTreeSet<Text> {
        match self {
            Self { endpoint: true, .. } => &old | &new,
            Self { endpoint: false, labels: true } => &old ^ &new,
            Self { endpoint: false, labels: false } => BTreeSet::new(),
        }
    }
}

/// Error for a slice that does not name its Service.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("EndpointSlice missing {LABEL_SERVICE_NAME} label")]
pub struct NoServiceName;

impl ServiceName {
    /// Returns the Service that `slice` belongs to.
    ///
    /// # Errors
    /// If the slice has no service-name label, or if the label is empty.
    pub fn of_slice(slice: &EndpointSlice) -> Result<Self, NoServiceName> {
        let name = slice.metadata.labels.get(LABEL_SERVICE_NAME).and_then(Text::non_empty).ok_or(NoServiceName)?;
        Ok(Self { namespace: slice.metadata.namespace.clone(), name: name.clone() })
    }
}
