//! Ports of a Service that an imported slice serves, and the exporting members that serve each port.

use crate::model::{AddressType, EndpointSlice, McsLabels, SliceContent};
use fleetnet_types::{ClusterId, ObjectName, Text};
use std::collections::BTreeMap;

/// Clients of imported slices. Each kind of clients finds the slices of a Service by a label of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Clients {
    /// kube-proxy, by the name of the derived Service. The label for headless Services hides a slice from it.
    KubeProxy,
    /// Gateways and DNS servers, by the name of the imported Service of the standard API.
    Gateways,
}

impl Clients {
    pub(crate) const ALL: [Self; 2] = [Self::KubeProxy, Self::Gateways];

    /// Returns the name of the Service for which these clients use a slice.
    pub(crate) fn service(self, slice: &EndpointSlice) -> Option<&Text> {
        self.service_of(slice.service.as_ref(), slice.mcs.as_deref())
    }

    /// Returns the name of the Service in the labels by which these clients find slices.
    pub(crate) fn service_of<'a>(self, service: Option<&'a Text>, mcs: Option<&'a McsLabels>) -> Option<&'a Text> {
        match self {
            Self::KubeProxy => service.filter(|_| mcs.is_none_or(|labels| !labels.headless)),
            Self::Gateways => mcs.map(|labels| &labels.service),
        }
    }
}

/// Clients of a Service, address type and port. They choose among the endpoints of one such tuple.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Served {
    pub(crate) clients: Clients,
    pub(crate) service: ObjectName,
    pub(crate) address_type: AddressType,
    /// Name of the port. Empty for a port without a name, and for a slice without ports.
    pub(crate) port: Text,
}

impl Served {
    /// Returns what a slice serves: each of its ports, or the Service itself if the slice has no ports. A headless
    /// Service may have no ports, and its clients use the addresses.
    pub(crate) fn by(clients: Clients, service: &ObjectName, content: &SliceContent) -> Vec<Self> {
        let of_port = |port: &Text| Self {
            clients,
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
    /// For each imported slice that is being written: what it will serve.
    pub(super) in_flight: BTreeMap<ObjectName, Vec<Served>>,
    /// Number of slices for each exporting member and what they serve.
    pub(super) exporters: BTreeMap<(Served, ClusterId), usize>,
}
