//! [`Node`]: where pods run, and in which zone.

use super::lenient::{ready, write_ready};
use super::{Metadata, Readiness};
use crate::text::Text;
use serde::{Deserialize, Serialize};

/// A machine of the cluster.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Node {
    /// Its name and its labels, one of which is the zone.
    pub metadata: Metadata,
    /// What its kubelet reports.
    pub status: NodeStatus,
}

impl Node {
    /// Its zone, if it has one.
    #[must_use]
    pub fn zone(&self) -> Option<&Text> {
        self.metadata.labels.get(crate::names::LABEL_ZONE).and_then(Text::non_empty)
    }
}

/// What a kubelet reports.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct NodeStatus {
    /// Its `Ready` condition.
    #[serde(rename = "conditions", deserialize_with = "ready", serialize_with = "write_ready")]
    pub readiness: Readiness,
    /// What pods may have of it.
    pub allocatable: Allocatable,
}

/// What pods may have of a Node.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Allocatable {
    /// Processors, as a quantity of Kubernetes: `8`, `7910m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Text>,
}
