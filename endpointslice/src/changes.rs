//! What an event calls for: which Services to plan again.

use crate::model::{EndpointSlice, Pod};
use crate::names::LABEL_SERVICE_NAME;
use crate::plan::ServiceName;
use crate::text::Text;
use std::collections::BTreeSet;
use thiserror::Error;

/// What is other about a pod, as far as slices are concerned.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PodChange {
    /// Its endpoint: addresses, readiness, deletion, or that it has ended (which upstream does not notice).
    pub endpoint: bool,
    /// Its labels, hostname or subdomain: other Services may have it now.
    pub labels: bool,
}

impl PodChange {
    /// What is other in `new`. A change of the Node or version alone is none: a pod does not move, and what else its
    /// version tells is compared.
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

    /// The Services to plan again, of those that selected the pod as it was and those that select it as it is.
    #[must_use]
    pub fn services(self, old: BTreeSet<Text>, new: BTreeSet<Text>) -> BTreeSet<Text> {
        match self {
            Self { endpoint: true, .. } => &old | &new,
            Self { endpoint: false, labels: true } => &old ^ &new,
            Self { endpoint: false, labels: false } => BTreeSet::new(),
        }
    }
}

/// A slice that does not say which Service it belongs to.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("EndpointSlice missing {LABEL_SERVICE_NAME} label")]
pub struct NoServiceName;

impl ServiceName {
    /// The Service that `slice` belongs to.
    ///
    /// # Errors
    /// It has no service-name label, or an empty one.
    pub fn of_slice(slice: &EndpointSlice) -> Result<Self, NoServiceName> {
        let name = slice.metadata.labels.get(LABEL_SERVICE_NAME).and_then(Text::non_empty).ok_or(NoServiceName)?;
        Ok(Self { namespace: slice.metadata.namespace.clone(), name: name.clone() })
    }
}
