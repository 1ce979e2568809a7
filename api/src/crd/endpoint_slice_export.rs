//! EndpointSliceExport: an exported slice, in the exporting member's namespace in the hub.

use super::shared::{ExportedObjectReference, OwnerServiceReference};
use crate::limits::{
    ADDRESS_BYTES_MAX, ADDRESSES_WRITTEN_MAX, APP_PROTOCOL_BYTES_MAX, LABEL_BYTES_MAX, ZONE_BYTES_MAX,
};
use fleetnet_core::limits::{ENDPOINTS_MAX, PORTS_MAX};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Content of an EndpointSlice that a member exports.
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
    /// Address family of all addresses in this object.
    #[schemars(extend("default" = "IPv4"))]
    pub address_type: AddressType,
    /// Endpoints that take traffic. Every reader of this list may route to all of them.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = ENDPOINTS_MAX))]
    pub endpoints: Vec<Endpoint>,
    /// Endpoints that take no new connections but still serve existing ones. They are used only while no endpoint is
    /// ready. Both lists together have at most 1000 endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = ENDPOINTS_MAX))]
    pub draining_endpoints: Option<Vec<Endpoint>>,
    /// Ports that every endpoint serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = PORTS_MAX))]
    pub ports: Option<Vec<EndpointPort>>,
    /// Reference to the source EndpointSlice.
    pub endpoint_slice_reference: ExportedObjectReference,
    /// Reference to the Service that the source EndpointSlice belongs to.
    pub owner_service_reference: OwnerServiceReference,
}

/// Address family of a slice.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum AddressType {
    /// IPv4 addresses, the default if the field is omitted.
    #[default]
    IPv4,
    /// IPv6 addresses.
    IPv6,
}

/// One endpoint of a slice, with all of its addresses.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Addresses of the endpoint, of the slice's address type.
    #[schemars(length(min = 1, max = ADDRESSES_WRITTEN_MAX), inner(length(min = 1, max = ADDRESS_BYTES_MAX)))]
    pub addresses: Vec<String>,
    /// Host name of the endpoint, if its Service is headless and gives it one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = LABEL_BYTES_MAX), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub hostname: Option<String>,
    /// Zone of the endpoint, as its own cluster names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = ZONE_BYTES_MAX))]
    pub zone: Option<String>,
}

/// Port that the endpoints of a slice serve.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct EndpointPort {
    /// Name of the port in its Service. Empty if the Service has one port only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LABEL_BYTES_MAX))]
    pub name: Option<String>,
    /// IP protocol of the port, which is TCP, UDP or SCTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "TCP"), length(max = LABEL_BYTES_MAX))]
    pub protocol: Option<String>,
    /// Port number. If it is omitted, the slice is for all ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// Application protocol of the port, which is an IANA service name or a prefixed name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = APP_PROTOCOL_BYTES_MAX))]
    pub app_protocol: Option<String>,
}
