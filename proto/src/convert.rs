//! Conversion between messages and core's model.

use crate::v1;
use fleetnet_core::model::{AddressType, Endpoint, EndpointPort, HubSliceSpec, Reference, SliceContent};
use fleetnet_types::{ObjectName, Text, Timestamp};
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of characters of a slice's name in a message. Valid names have no more.
// no limit: it is the one of Kubernetes
const NAME_CHARACTERS: usize = 253;

/// Error of a message with a field that no agent writes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} of slice {slice:?} has {fault}")]
pub struct Malformed {
    message: &'static str,
    /// Name of the slice in the message; may be empty.
    slice: String,
    fault: &'static str,
}

impl v1::Preview {
    /// Returns the preview of a distributed slice with this name. `None` for an address type that no message can have.
    #[must_use]
    pub fn new(slice: &str, spec: &HubSliceSpec) -> Option<Self> {
        let HubSliceSpec { reference, owner, content } = spec;
        let address_type = match content.address_type {
            AddressType::IPv4 => v1::AddressType::Ipv4,
            AddressType::IPv6 => v1::AddressType::Ipv6,
            AddressType::Other(_) => return None,
        };
        Some(Self {
            slice: slice.to_owned(),
            owner: Some(owner.into()),
            source: Some(v1::Source {
                cluster: reference.cluster.to_string(),
                slice: Some((&reference.source).into()),
                uid: reference.uid.to_string(),
                resource_version: reference.resource_version.to_string(),
                generation: reference.generation,
                exported_since_micros: reference.exported_since.map(|since| since.0),
            }),
            address_type: address_type.into(),
            endpoints: content.endpoints.iter().map(Into::into).collect(),
            draining: content.draining.iter().map(Into::into).collect(),
            ports: content.ports.iter().map(Into::into).collect(),
            exporter_clock: None,
            traceparent: String::new(),
        })
    }

    /// Returns the content of the preview in core's model.
    ///
    /// # Errors
    /// If a field is missing that every agent writes.
    pub fn into_model(self) -> Result<(Text, HubSliceSpec), Malformed> {
        let Self { slice, owner, source, address_type, endpoints, draining, ports, .. } = self;
        let malformed = |fault| {
            let slice = slice.chars().take(NAME_CHARACTERS).collect();
            Malformed { message: "Preview", slice, fault }
        };
        if slice.is_empty() {
            return Err(malformed("no name"));
        }
        let owner = owner.ok_or_else(|| malformed("no owner"))?;
        let source = source.ok_or_else(|| malformed("no source"))?;
        let source_slice = source.slice.ok_or_else(|| malformed("no name of the source slice"))?;
        let address_type = match v1::AddressType::try_from(address_type) {
            Ok(v1::AddressType::Ipv4) => AddressType::IPv4,
            Ok(v1::AddressType::Ipv6) => AddressType::IPv6,
            Ok(v1::AddressType::Unspecified) | Err(_) => return Err(malformed("an unknown address type")),
        };
        let mut zones = Zones::default();
        let mut model = |endpoints: Vec<v1::Endpoint>| endpoints.into_iter().map(|it| zones.endpoint(it)).collect();
        let content = SliceContent {
            address_type,
            endpoints: model(endpoints),
            draining: model(draining),
            ports: ports.into_iter().map(Into::into).collect(),
        };
        let reference = Reference {
            cluster: source.cluster.as_str().into(),
            source: source_slice.into(),
            uid: source.uid.as_str().into(),
            resource_version: source.resource_version.into(),
            generation: source.generation,
            exported_since: source.exported_since_micros.map(Timestamp),
        };
        Ok((slice.into(), HubSliceSpec { reference, owner: owner.into(), content: Arc::new(content) }))
    }
}

/// Zones of a slice. Its endpoints share one allocation of each zone.
#[derive(Default)]
struct Zones(HashSet<Text>);

impl Zones {
    fn endpoint(&mut self, endpoint: v1::Endpoint) -> Endpoint {
        let v1::Endpoint { addresses, hostname, zone } = endpoint;
        let zone = zone.map(|zone| match self.0.get(zone.as_str()) {
            Some(known) => known.clone(),
            None => {
                let zone = Text::from(zone);
                self.0.insert(zone.clone());
                zone
            }
        });
        let addresses = addresses.iter().map(|address| address.as_str().into()).collect();
        Endpoint { addresses, hostname: hostname.map(Into::into), zone }
    }
}

impl From<&Endpoint> for v1::Endpoint {
    fn from(endpoint: &Endpoint) -> Self {
        Self {
            addresses: endpoint.addresses.iter().map(ToString::to_string).collect(),
            hostname: endpoint.hostname.as_deref().map(str::to_owned),
            zone: endpoint.zone.as_deref().map(str::to_owned),
        }
    }
}

impl From<&EndpointPort> for v1::Port {
    fn from(port: &EndpointPort) -> Self {
        Self {
            name: port.name.to_string(),
            protocol: port.protocol.to_string(),
            port: port.port.map(|number| number.as_written()),
            app_protocol: port.app_protocol.as_deref().map(str::to_owned),
        }
    }
}

impl From<v1::Port> for EndpointPort {
    fn from(port: v1::Port) -> Self {
        let v1::Port { name, protocol, port, app_protocol } = port;
        Self {
            name: name.into(),
            protocol: protocol.into(),
            port: port.map(Into::into),
            app_protocol: app_protocol.map(Into::into),
        }
    }
}

impl From<&ObjectName> for v1::NamespacedName {
    fn from(name: &ObjectName) -> Self {
        Self { namespace: name.namespace.to_string(), name: name.name.to_string() }
    }
}

impl From<v1::NamespacedName> for ObjectName {
    fn from(name: v1::NamespacedName) -> Self {
        Self::new(name.namespace, name.name)
    }
}
