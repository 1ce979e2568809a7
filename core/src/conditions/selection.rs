//! Values of the conditions about cluster selectors.

use super::ConditionValue;
use super::mcs::INVALID_SERVICE_TYPE;
use crate::annotations::CLUSTER_SELECTORS;
use crate::reasons::Reason;
use fleetnet_types::{ClusterId, ConditionStatus, ObjectName};

impl ConditionValue {
    /// Condition False: the annotation with cluster selectors is malformed.
    pub fn cluster_selectors_malformed(kind: &str, of: &ObjectName, cluster: &ClusterId, why: &str) -> Self {
        let message = format!(
            "the annotation {CLUSTER_SELECTORS} of {kind} {of} of cluster {cluster} is malformed: {why}. The last valid \
             cluster selectors stay in use. Correct the annotation"
        );
        Self::new(ConditionStatus::False, Reason::InvalidClusterSelector, message)
    }

    /// Condition `Valid` False: a headless Service has no cluster selection, because clients use all its addresses.
    pub(crate) fn headless_cluster_selectors(service: &ObjectName, cluster: &ClusterId) -> Self {
        let message = format!(
            "service {service} of cluster {cluster} is headless, so its cluster selectors are not used: clients get all \
             addresses. Remove the annotation {CLUSTER_SELECTORS}"
        );
        Self::new(ConditionStatus::False, Reason::InvalidClusterSelector, message).shown_as(INVALID_SERVICE_TYPE)
    }

    /// Condition `ClusterSelectorsValid` True.
    pub(crate) fn cluster_selectors_read() -> Self {
        Self::new(
            ConditionStatus::True,
            Reason::ClusterSelectorsRead,
            "the cluster selectors are used, if there are any",
        )
    }
}
