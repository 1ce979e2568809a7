//! Cluster selection: the clusters that an importer prefers among the exporting clusters of a Service. The terms are
//! those of KEP-5939.

use crate::variants::variants;
use fleetnet_types::{ClusterId, Text};
use std::collections::BTreeMap;

/// Value of a selector that stands for the importing cluster's own value of the property.
pub const SAME_AS_IMPORTER: &str = "@SameAsImporter@";

/// Selection of the exporting clusters of a Service for one importer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSelection {
    /// Result of each cluster selector: the exporting clusters that match. The most preferred result comes first. Empty
    /// without selectors.
    pub results: Vec<Vec<ClusterId>>,
    /// Weights of the clusters whose ServiceExport has another weight than 1.
    pub weights: BTreeMap<ClusterId, i64>,
}

impl ClusterSelection {
    pub(crate) fn is_empty(&self) -> bool {
        self.results.is_empty() && self.weights.is_empty()
    }
}

/// Weights of exporting clusters that an importer's user declares, or the error of their annotation. Empty without the
/// annotation.
pub type Weights = Result<BTreeMap<ClusterId, i64>, Text>;
/// Selector of clusters by their properties. A cluster must meet all requirements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSelector {
    /// Requirements of `matchLabels` and `matchExpressions`.
    pub requirements: Vec<Requirement>,
}

/// Selectors in an annotation of a user, the most preferred first; or why the annotation is malformed.
pub type WrittenSelectors = Result<Vec<ClusterSelector>, Text>;

/// Requirement of a property of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Name of the property.
    pub key: Text,
    pub operator: Operator,
    /// Values for `In` and `NotIn`. Perhaps one of them is [`SAME_AS_IMPORTER`].
    pub values: Vec<Text>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operator {
    #[default]
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

variants!(Operator, as_str: In = "In", NotIn = "NotIn", Exists = "Exists", DoesNotExist = "DoesNotExist");
