//! EndpointSliceExport: an exported slice, in the exporting member's namespace in the hub. The hub agent distributes
//! its content to the importing members.

use super::shared::{ADDED, ExportedObjectReference, OwnerServiceReference, RawOwnerService, RawReference};
use crate::lenient::{Few, Field, Filled, First, Short, records};
use crate::limits::{
    ADDRESS_BYTES_MAX, ADDRESSES_WRITTEN_MAX, APP_PROTOCOL_BYTES_MAX, LABEL_BYTES_MAX, ZONE_BYTES_MAX,
};
use crate::wire::{Maybe, OrTcp, Plain, Rule, Sparse, Strict, record};
use fleetnet_core::limits::{ADDRESSES_MAX, ENDPOINTS_MAX, PORTS_MAX};
use fleetnet_core::model::{self, Address, HubSliceSpec, PortNumber, SliceContent};
use fleetnet_types::Text;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

record! {
    /// Content of an EndpointSlice that a member exports.
    #[derive(Clone, CustomResource, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
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
    struct EndpointSliceExportSpec: RawSpec => HubSliceSpec {
        /// Reference to the source EndpointSlice.
        endpoint_slice_reference: ExportedObjectReference
            = reference "endpointSliceReference" as Plain<RawReference>,
        /// Reference to the Service that the source EndpointSlice belongs to.
        owner_service_reference: OwnerServiceReference
            = owner "ownerServiceReference" as Plain<RawOwnerService>,
        .content: SliceContent {
            /// Address family of all addresses in this object.
            #[schemars(extend("default" = "IPv4"))]
            address_type: AddressType = address_type "addressType" as OrIpv4,
            /// Endpoints that take traffic. Every reader of this list may route to all of them.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = ENDPOINTS_MAX))]
            endpoints: Vec<Endpoint> = endpoints "endpoints" as Strict<Plain<Few<RawEndpoint, ENDPOINTS_MAX>>>,
            /// Endpoints that take no new connections but still serve existing ones. They are used only while no
            /// endpoint is ready. Both lists together have at most 1000 endpoints.
            #[schemars(extend("x-kubernetes-list-type" = "atomic", "title" = ADDED), length(max = ENDPOINTS_MAX))]
            draining_endpoints(default): Option<Vec<Endpoint>>
                = draining "drainingEndpoints" as Strict<Sparse<Few<RawEndpoint, ENDPOINTS_MAX>>>,
            /// Ports that every endpoint serves.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = PORTS_MAX))]
            ports(default): Option<Vec<EndpointPort>> = ports "ports" as Plain<Few<RawEndpointPort, PORTS_MAX>>,
        }
    }
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

/// Address type of a slice, IPv4 if it is absent.
pub(crate) struct OrIpv4;

impl Rule for OrIpv4 {
    type Raw = Box<str>;
    type Model = model::AddressType;

    fn read(raw: Field<Box<str>>, _: &'static str) -> Result<model::AddressType, &'static str> {
        Ok(if raw.is_present() { address_type(&raw.or_default()) } else { model::AddressType::IPv4 })
    }

    fn write(address_type: &model::AddressType) -> Value {
        match address_type {
            model::AddressType::IPv4 => "IPv4".into(),
            model::AddressType::IPv6 => "IPv6".into(),
            model::AddressType::Other(other) => (**other).into(),
        }
    }
}

/// Returns the address type with this name.
pub(crate) fn address_type(name: &str) -> model::AddressType {
    match name {
        "IPv4" => model::AddressType::IPv4,
        "IPv6" => model::AddressType::IPv6,
        other => model::AddressType::Other(other.into()),
    }
}

record! {
    /// One endpoint of a slice, with all of its addresses.
    #[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
    struct Endpoint: RawEndpoint => model::Endpoint {
        /// Addresses of the endpoint, of the slice's address type.
        #[schemars(length(min = 1, max = ADDRESSES_WRITTEN_MAX), inner(length(min = 1, max = ADDRESS_BYTES_MAX)))]
        addresses: Vec<String> = addresses "addresses" as Plain<First<Address, ADDRESSES_MAX>>,
        /// Host name of the endpoint, if its Service is headless and gives it one.
        #[schemars(extend("title" = ADDED))]
        #[schemars(length(min = 1, max = LABEL_BYTES_MAX), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
        hostname(default): Option<String> = hostname "hostname" as Maybe<Short<Filled<Box<str>>, LABEL_BYTES_MAX>>,
        /// Zone of the endpoint, as its own cluster names it.
        #[schemars(extend("title" = ADDED), length(max = ZONE_BYTES_MAX))]
        zone(default): Option<String> = zone "zone" as Maybe<Short<Filled<Text>, ZONE_BYTES_MAX>>,
    }
    raw { conditions: RawEndpointConditions = "conditions", }
}

/// Conditions of an endpoint. Slices in the hub have none.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct RawEndpointConditions {
    pub(crate) ready: Field<bool>,
    pub(crate) serving: Field<bool>,
}

records!(RawEndpointConditions);

record! {
    /// Port that the endpoints of a slice serve.
    #[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    struct EndpointPort: RawEndpointPort => model::EndpointPort {
        /// Name of the port in its Service. Empty if the Service has one port only.
        #[schemars(length(max = LABEL_BYTES_MAX))]
        name(default): Option<String> = name "name" as Plain<Short<Text, LABEL_BYTES_MAX>>,
        /// IP protocol of the port, which is TCP, UDP or SCTP.
        #[schemars(extend("default" = "TCP"), length(max = LABEL_BYTES_MAX))]
        protocol(default): Option<String> = protocol "protocol" as OrTcp<Short<Text, LABEL_BYTES_MAX>>,
        /// Port number. If it is omitted, the slice is for all ports.
        port(default): Option<i32> = port "port" as Maybe<PortNumber>,
        /// Application protocol of the port, which is an IANA service name or a prefixed name.
        #[schemars(length(max = APP_PROTOCOL_BYTES_MAX))]
        app_protocol(default): Option<String> = app_protocol "appProtocol" as Maybe<Short<Text, APP_PROTOCOL_BYTES_MAX>>,
    }
}
