//! Kinds that the import half of the agent watches: import runs from the hub to this cluster
//! (`fleetnet_core::member::import`).

use fleetnet_core::model::Kind;

/// Kinds that import needs from the member cluster, besides the Services and EndpointSlices that export watches.
pub const LOCAL: [Kind; 2] = [Kind::MultiClusterService, Kind::ServiceImport];

/// Kinds that import needs from this member's namespace in the hub.
pub const REMOTE: [Kind; 2] = [Kind::InternalServiceImport, Kind::EndpointSliceImport];
