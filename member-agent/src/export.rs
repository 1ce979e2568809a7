//! Export, this cluster to the hub: what `fleetnet_core::export` is fed with.

use fleetnet_core::model::Kind;

/// Watched in the member. The import half reads Services (derived ones) and EndpointSlices (imported ones) too.
pub const LOCAL: [Kind; 3] = [Kind::Service, Kind::EndpointSlice, Kind::ServiceExport];

/// Watched in the member's namespace of the hub.
pub const REMOTE: [Kind; 2] = [Kind::InternalServiceExport, Kind::EndpointSliceExport];
