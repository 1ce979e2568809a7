//! Kinds that `fleetnet_core::member::export` reads: export runs from this cluster to the hub.

use fleetnet_core::model::Kind;

/// Kinds watched in the member. The import half also reads the derived Services and imported slices among them.
pub const LOCAL: [Kind; 3] = [Kind::Service, Kind::EndpointSlice, Kind::ServiceExport];

/// Kinds watched in the member namespace of the hub.
pub const REMOTE: [Kind; 2] = [Kind::InternalServiceExport, Kind::EndpointSliceExport];
