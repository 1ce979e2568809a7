//! What a slice says: its addresses and ports, the same in every kind that carries a slice.

use super::lenient::{Field, records};
use fleetnet_core::ids::Text;
use fleetnet_core::model::{AddressType, Endpoint, EndpointPort, SliceContent};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawEndpoint {
    addresses: Field<Vec<Box<str>>>,
    conditions: Field<RawEndpointConditions>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawEndpointConditions {
    ready: Field<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawEndpointPort {
    name: Field<Text>,
    protocol: Field<Text>,
    port: Field<i32>,
    app_protocol: Field<Text>,
}

records!(RawEndpoint, RawEndpointConditions, RawEndpointPort);

/// The content of a slice.
pub(super) fn content(
    address_type: AddressType,
    endpoints: Field<Vec<RawEndpoint>>,
    ports: Field<Vec<RawEndpointPort>>,
) -> Result<SliceContent, &'static str> {
    let endpoints = endpoints.or_refuse("endpoints is not a list")?.into_iter().filter_map(ready).collect();
    let port = |raw: RawEndpointPort| EndpointPort {
        name: raw.name.or_default(),
        protocol: raw.protocol.value().unwrap_or_else(|| "TCP".into()),
        port: raw.port.value(),
        app_protocol: raw.app_protocol.value(),
    };
    let ports = ports.or_default().into_iter().map(port).collect();
    Ok(SliceContent { address_type, endpoints, ports })
}

/// The endpoint if it is ready and has an address. Unsaid is ready, as in Kubernetes; what cannot be read is not.
fn ready(raw: RawEndpoint) -> Option<Endpoint> {
    let ready = match raw.conditions {
        Field::Absent => true,
        Field::Nonsense => false,
        Field::Value(conditions) => matches!(conditions.ready, Field::Absent | Field::Value(true)),
    };
    let addresses = raw.addresses.or_default();
    (ready && !addresses.is_empty()).then_some(Endpoint { addresses })
}

/// The address type as it is named.
pub(super) fn address_type(name: &str) -> AddressType {
    match name {
        "IPv4" => AddressType::IPv4,
        "IPv6" => AddressType::IPv6,
        other => AddressType::Other(other.into()),
    }
}
