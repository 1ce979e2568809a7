//! Content of a slice (addresses and ports), which every kind with a slice has.

use super::lenient::{Few, Field, First, Short, records};
use crate::limits::{APP_PROTOCOL_BYTES_MAX, LABEL_BYTES_MAX, ZONE_BYTES_MAX};
use fleetnet_core::limits::{ADDRESSES_MAX, ENDPOINTS_MAX, PORTS_MAX, REPORTED_NAMES_MAX};
use fleetnet_core::model::{Address, AddressType, Endpoint, EndpointPort, PortNumber, SliceContent};
use fleetnet_types::Text;
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawEndpoint {
    addresses: Field<First<Address, ADDRESSES_MAX>>,
    conditions: Field<RawEndpointConditions>,
    hostname: Field<Short<Box<str>, LABEL_BYTES_MAX>>,
    zone: Field<Short<Text, ZONE_BYTES_MAX>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawEndpointConditions {
    ready: Field<bool>,
    serving: Field<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawEndpointPort {
    name: Field<Short<Text, LABEL_BYTES_MAX>>,
    protocol: Field<Short<Text, LABEL_BYTES_MAX>>,
    port: Field<i32>,
    app_protocol: Field<Short<Text, APP_PROTOCOL_BYTES_MAX>>,
}

records!(RawEndpoint, RawEndpointConditions, RawEndpointPort);

/// Returns the content of a source slice or imported slice, and the number of addresses beyond [`ADDRESSES_MAX`] of an
/// endpoint. In these slices, the conditions of an endpoint show its state.
pub(super) fn content(
    address_type: AddressType,
    endpoints: Field<Vec<RawEndpoint>>,
    ports: Field<Vec<RawEndpointPort>>,
) -> Result<(SliceContent, u32), &'static str> {
    let raw = endpoints.or_undecodable("endpoints is not a list")?;
    let mut lists = Endpoints::of(&address_type);
    let (mut ready, mut draining) = (Vec::with_capacity(raw.len()), Vec::new());
    for raw in raw {
        match raw.state() {
            State::Ready => ready.extend(lists.endpoint(raw)),
            State::Draining => draining.extend(lists.endpoint(raw)),
            State::Down => {}
        }
    }
    let further = lists.further;
    ready.shrink_to_fit();
    Ok((SliceContent { address_type, endpoints: ready, draining, ports: endpoint_ports(ports) }, further))
}

/// Endpoints of a slice in the hub. More than [`ENDPOINTS_MAX`] endpoints are an error.
pub(super) type HubEndpoints = Field<Few<RawEndpoint, ENDPOINTS_MAX>>;
/// Ports of a slice in the hub. More than [`PORTS_MAX`] ports are an error.
pub(super) type HubPorts = Field<Few<RawEndpointPort, PORTS_MAX>>;

/// Returns the content of a slice in the hub. Such a slice has one list of ready endpoints and one list of draining
/// endpoints.
pub(super) fn hub_content(
    address_type: AddressType,
    endpoints: HubEndpoints,
    draining: HubEndpoints,
    ports: HubPorts,
) -> Result<SliceContent, &'static str> {
    let endpoints = endpoints.list().or_undecodable("endpoints is not a list")?;
    let draining = draining.list().or_undecodable("drainingEndpoints is not a list")?;
    if endpoints.len() + draining.len() > ENDPOINTS_MAX {
        return Err("endpoints and drainingEndpoints have more than 1000 elements together");
    }
    let mut lists = Endpoints::of(&address_type);
    let mut list = |raw: Vec<RawEndpoint>| {
        // `collect` would keep the larger memory of `raw`.
        let mut list = Vec::with_capacity(raw.len());
        list.extend(raw.into_iter().filter_map(|raw| lists.endpoint(raw)));
        list.shrink_to_fit();
        list
    };
    let (endpoints, draining) = (list(endpoints), list(draining));
    Ok(SliceContent { address_type, endpoints, draining, ports: endpoint_ports(ports.list()) })
}

fn endpoint_ports(ports: Field<Vec<RawEndpointPort>>) -> Vec<EndpointPort> {
    let port = |raw: RawEndpointPort| EndpointPort {
        name: raw.name.text().or_default(),
        protocol: raw.protocol.text().value().unwrap_or_else(|| "TCP".into()),
        port: raw.port.value().map(PortNumber::from),
        app_protocol: raw.app_protocol.text().value(),
    };
    ports.or_default().into_iter().map(port).collect()
}

/// State of an endpoint: the kind of traffic that it can get.
enum State {
    /// Takes new connections.
    Ready,
    /// Takes no new connections, but still serves existing connections.
    Draining,
    /// Takes no traffic.
    Down,
}

impl RawEndpoint {
    /// Returns the state from the endpoint's conditions. An absent condition means ready, as in Kubernetes. An invalid
    /// condition does not mean ready.
    fn state(&self) -> State {
        let (ready, serving) = match &self.conditions {
            Field::Absent => (true, false),
            Field::Nonsense => (false, false),
            Field::Value(conditions) => (
                matches!(conditions.ready, Field::Absent | Field::Value(true)),
                matches!(conditions.serving, Field::Value(true)),
            ),
        };
        match (ready, serving) {
            (true, _) => State::Ready,
            (false, true) => State::Draining,
            (false, false) => State::Down,
        }
    }
}

/// Decoder of the endpoints of one slice.
struct Endpoints {
    zones: Zones,
    /// True if the addresses of the slice are IP addresses. No agent distributes others.
    is_of_ips: bool,
    /// Number of addresses so far that are no IP addresses.
    malformed: usize,
    /// Number of addresses so far that are beyond [`ADDRESSES_MAX`] of their endpoint.
    further: u32,
}

impl Endpoints {
    fn of(address_type: &AddressType) -> Self {
        let is_of_ips = !matches!(address_type, AddressType::Other(_));
        Self { zones: Zones::default(), is_of_ips, malformed: 0, further: 0 }
    }

    /// Returns the decoded endpoint; `None` if the endpoint has no address that the agents keep. Of the texts that are
    /// no IP addresses, only as many are kept as a message of the importer lists.
    fn endpoint(&mut self, raw: RawEndpoint) -> Option<Endpoint> {
        if !self.is_of_ips {
            return None;
        }
        let First { elements: mut addresses, further } = raw.addresses.or_default();
        self.further = self.further.saturating_add(u32::try_from(further).unwrap_or(u32::MAX));
        addresses.retain(|address| {
            self.malformed += usize::from(address.ip().is_none());
            address.ip().is_some() || self.malformed <= REPORTED_NAMES_MAX
        });
        if self.malformed > 0 {
            addresses.shrink_to_fit();
        }
        let hostname = raw.hostname.text().value().filter(|hostname| !hostname.is_empty());
        let zone = raw.zone.text().value().filter(|zone| !zone.is_empty()).map(|zone| self.zones.shared(zone));
        (!addresses.is_empty()).then_some(Endpoint { addresses, hostname, zone })
    }
}

/// Zones of a slice's endpoints. Many endpoints have the same zone, so each distinct zone is stored once.
#[derive(Default)]
struct Zones(Vec<Text>);

impl Zones {
    fn shared(&mut self, zone: Text) -> Text {
        if let Some(known) = self.0.iter().find(|known| **known == zone) {
            return known.clone();
        }
        self.0.push(zone.clone());
        zone
    }
}

/// Returns the address type with this name.
pub(super) fn address_type(name: &str) -> AddressType {
    match name {
        "IPv4" => AddressType::IPv4,
        "IPv6" => AddressType::IPv6,
        other => AddressType::Other(other.into()),
    }
}
