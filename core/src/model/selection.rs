//! Cluster selection: the clusters that an importer prefers among the exporting clusters of a Service. The terms are
//! those of KEP-5939.

use fleetnet_types::ClusterId;
use std::collections::BTreeMap;

/// Selection of the exporting clusters of a Service for one importer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSelection {
    /// Result of each cluster selector: the exporting clusters that match. The most preferred result comes first. Empty
    /// without selectors.
    pub results: Vec<Vec<ClusterId>>,
    /// Weights of the clusters whose ServiceExport has another weight than 1.
    pub weights: BTreeMap<ClusterId, i64>,
}
