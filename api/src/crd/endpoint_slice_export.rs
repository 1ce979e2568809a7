//! EndpointSliceExport: an exported slice, in its member's namespace of the hub.

use super::shared::{ExportedObjectReference, OwnerServiceReference};
use crate::limits::{ADDRESS_BYTES_MAX, APP_PROTOCOL_BYTES_MAX, LABEL_BYTES_MAX, ZONE_BYTES_MAX};
use fleetnet_core::limits::{ADDRESSES_MAX, ENDPOINTS_MAX, PORTS_MAX};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a member tells the hub about one of its EndpointSlices.
#[derive(Clone, CustomResource, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "networking.fleet.azure.com",
    version = "v1alpha1",
    kind = "EndpointSliceExport",
    plural = "endpointsliceexports",
    category = "fleet-networking",
    namespaced,
    derive = "PartialEq",
    doc = "EndpointSliceExport carries one EndpointSlice of an exported Service from a member cluster to the hub."
)]
pub struct EndpointSliceExportSpec {
    /// The family of all addresses in this object.
    #[schemars(extend("default" = "IPv4"))]
    pub address_type: AddressType,
    /// The endpoints that take traffic: every reader of this list may route to all of them.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = ENDPOINTS_MAX))]
    pub endpoints: Vec<Endpoint>,
    /// Endpoints that no longer take new connections but still serve those that they have; used only where no endpoint is
    /// ready. Both lists together have at most 1000 endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = ENDPOINTS_MAX))]
    pub draining_endpoints: Option<Vec<Endpoint>>,
    /// The ports that every endpoint offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = PORTS_MAX))]
    pub ports: Option<Vec<EndpointPort>>,
    /// The source EndpointSlice.
    pub endpoint_slice_reference: ExportedObjectReference,
    /// The Service that the source EndpointSlice belongs to.
    pub owner_service_reference: OwnerServiceReference,
}

/// The family of the addresses of a slice.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum AddressType {
    /// IPv4 addresses, the default of a field that is left out.
    #[default]
    IPv4,
    /// IPv6 addresses.
    IPv6,
}

/// All addresses of one logical backend.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// The addresses of the endpoint, of the slice's address type.
    #[schemars(length(min = 1, max = ADDRESSES_MAX), inner(length(min = 1, max = ADDRESS_BYTES_MAX)))]
    pub addresses: Vec<String>,
    /// The host name of the endpoint, for endpoints of a headless Service that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = LABEL_BYTES_MAX), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub hostname: Option<String>,
    /// The zone that the endpoint stands in, as its own cluster names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = ZONE_BYTES_MAX))]
    pub zone: Option<String>,
}

/// One port of the endpoints of a slice.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct EndpointPort {
    /// The name of the port in its Service; empty where the Service has one port only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LABEL_BYTES_MAX))]
    pub name: Option<String>,
    /// The IP protocol of the port: TCP, UDP or SCTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "TCP"), length(max = LABEL_BYTES_MAX))]
    pub protocol: Option<String>,
    /// The port number; where it is left out, all ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// The application protocol of the port: an IANA service name or a prefixed name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = APP_PROTOCOL_BYTES_MAX))]
    pub app_protocol: Option<String>,
}
