//! Kinds that `fleetnet_core::member::import` reads: import runs from the hub to this cluster.

use fleetnet_core::model::Kind;

/// Kinds watched in the member, besides the Services and EndpointSlices of the export half.
pub const LOCAL: [Kind; 2] = [Kind::MultiClusterService, Kind::ServiceImport];

/// Kinds watched in the member namespace of the hub.
pub const REMOTE: [Kind; 2] = [Kind::InternalServiceImport, Kind::EndpointSliceImport];
