//! Node of the cluster ([`Node`]): its zone, readiness and CPU.

use super::lenient::{ready, write_ready};
use super::{Metadata, Readiness};
use crate::text::Text;
use serde::{Deserialize, Serialize};

/// Node of the cluster.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Node {
    /// Name and labels of the Node. One of the labels is the zone.
    pub metadata: Metadata,
    /// Status that the Node's kubelet reports.
    pub status: NodeStatus,
}

impl Node {
    /// Returns the zone of the Node, if it has one.
    #[must_use]
    pub fn zone(&self) -> Option<&Text> {
        self.metadata.labels.get(crate::names::LABEL_ZONE).and_then(Text::non_empty)
    }
}

/// Status of a Node, which its kubelet reports.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct NodeStatus {
    /// `Ready` condition of the Node.
    #[serde(rename = "conditions", deserialize_with = "ready", serialize_with = "write_ready")]
    pub readiness: Readiness,
    /// Resources available to pods.
    pub allocatable: Allocatable,
}

/// Resources of a Node that are available to pods.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Allocatable {
    /// CPU as a quantity of Kubernetes, for example `8` or `7910m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Text>,
}
