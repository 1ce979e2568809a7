//! Content of a slice (addresses and ports), which every kind with a slice has.

use crate::crd::endpoint_slice_export::{RawEndpoint, RawEndpointPort};
use crate::lenient::Field;
use crate::wire::{Plain, Rule, Wire};
use fleetnet_core::limits::REPORTED_NAMES_MAX;
use fleetnet_core::model::{AddressType, SliceContent};
use fleetnet_types::Text;

/// Returns the content of a source slice or imported slice, and the number of addresses beyond
/// [`fleetnet_core::limits::ADDRESSES_MAX`] of an endpoint. In these slices, the conditions of an endpoint show its
/// state.
pub(super) fn content(
    address_type: AddressType,
    endpoints: Field<Vec<RawEndpoint>>,
    ports: Field<Vec<RawEndpointPort>>,
) -> Result<(SliceContent, u32), &'static str> {
    let raw = endpoints.or_undecodable("endpoints is not a list")?;
    let (mut ready, mut draining, mut further) = (Vec::with_capacity(raw.len()), Vec::new(), 0_usize);
    for raw in raw {
        let list = match state(&raw) {
            State::Ready => &mut ready,
            State::Draining => &mut draining,
            State::Down => continue,
        };
        further += raw.addresses.as_value().map_or(0, |addresses| addresses.further);
        list.extend(raw.model());
    }
    let ports = Plain::read(ports, "ports is not a list")?;
    let mut content = SliceContent { address_type, endpoints: ready, draining, ports };
    let has_ips = keep_ips(&mut content);
    Ok((content, if has_ips { u32::try_from(further).unwrap_or(u32::MAX) } else { 0 }))
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

/// Returns the state from the endpoint's conditions. An absent condition means ready, as in Kubernetes. An invalid
/// condition does not mean ready.
fn state(endpoint: &RawEndpoint) -> State {
    let (ready, serving) = match &endpoint.conditions {
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

/// Removes the endpoints that have no address that the agents keep. Of the texts that are no IP addresses, only as many
/// are kept as a message of the importer lists. False if the addresses of the slice are no IP addresses: no agent
/// distributes others.
pub(super) fn keep_ips(content: &mut SliceContent) -> bool {
    if let AddressType::Other(_) = content.address_type {
        (content.endpoints, content.draining) = (Vec::new(), Vec::new());
        return false;
    }
    let (mut zones, mut malformed) = (Zones::default(), 0);
    for list in [&mut content.endpoints, &mut content.draining] {
        list.retain_mut(|endpoint| {
            endpoint.addresses.retain(|address| {
                malformed += usize::from(address.ip().is_none());
                address.ip().is_some() || malformed <= REPORTED_NAMES_MAX
            });
            if malformed > 0 {
                endpoint.addresses.shrink_to_fit();
            }
            endpoint.zone = endpoint.zone.take().map(|zone| zones.shared(zone));
            !endpoint.addresses.is_empty()
        });
        list.shrink_to_fit();
    }
    true
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
