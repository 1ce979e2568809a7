//! Ports of a Service that an imported slice serves, and the exporting members that serve each port.

use crate::model::{AddressType, SliceContent};
use fleetnet_types::{ClusterId, ObjectName, Text};
use std::collections::BTreeMap;

/// Imported Service, address type and port. Clients choose among the endpoints of one such triple.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Served {
    /// Service in the labels of the imported slice: derived Service, or imported Service of the standard API.
    /// kube-proxy uses the endpoints of a derived Service, and gateways those of an imported one. By the standard API,
    /// the two differ only where routing slices are on.
    pub(crate) service: ObjectName,
    pub(crate) address_type: AddressType,
    /// Name of the port. Empty for a port without a name, and for a slice without ports.
    pub(crate) port: Text,
}

impl Served {
    /// Returns what a slice serves: each of its ports, or the Service itself if the slice has no ports. A headless
    /// Service may have no ports, and its clients use the addresses.
    pub(crate) fn by(service: &ObjectName, content: &SliceContent) -> Vec<Self> {
        let of_port = |port: &Text| Self {
            service: service.clone(),
            address_type: content.address_type.clone(),
            port: port.clone(),
        };
        if content.ports.is_empty() {
            return vec![of_port(&Text::default())];
        }
        content.ports.iter().map(|port| of_port(&port.name)).collect()
    }
}

/// Exporting members that serve imported Services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Serving {
    /// For each imported slice with ready endpoints: what it serves, and its exporting member.
    pub(super) slices: BTreeMap<ObjectName, (Vec<Served>, ClusterId)>,
    /// Number of these slices.
    pub(super) exporters: BTreeMap<(Served, ClusterId), usize>,
}
