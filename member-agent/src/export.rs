//! Kinds that the export half of the agent watches: export runs from this cluster to the hub
//! (`fleetnet_core::member::export`).

use fleetnet_core::model::Kind;

/// Kinds that export needs from the member cluster. The import half also reads derived Services and imported slices
/// from these watches.
pub const LOCAL: [Kind; 3] = [Kind::Service, Kind::EndpointSlice, Kind::ServiceExport];

/// Kinds that export needs from this member's namespace in the hub.
pub const REMOTE: [Kind; 2] = [Kind::InternalServiceExport, Kind::EndpointSliceExport];
