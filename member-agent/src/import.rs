//! Import, the hub to this cluster: what `fleetnet_core::import` is fed with.

use fleetnet_core::model::Kind;

/// Watched in the member, besides the Services and EndpointSlices that the export half watches.
pub const LOCAL: [Kind; 2] = [Kind::MultiClusterService, Kind::ServiceImport];

/// Watched in the member's namespace of the hub.
pub const REMOTE: [Kind; 2] = [Kind::InternalServiceImport, Kind::EndpointSliceImport];
