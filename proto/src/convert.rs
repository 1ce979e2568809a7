//! Conversion between messages and core's model.

use crate::v1;
use fleetnet_core::model::{AddressType, Endpoint, EndpointPort, HubSliceSpec, PortNumber, Reference, SliceContent};
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
            owner: Some(owner.to_message()),
            source: Some(v1::Source {
                cluster: reference.cluster.to_string(),
                slice: Some(reference.source.to_message()),
                uid: reference.uid.to_string(),
                resource_version: reference.resource_version.to_string(),
                generation: reference.generation,
                exported_since_micros: reference.exported_since.map(|since| since.0),
            }),
            address_type: address_type.into(),
            endpoints: content.endpoints.to_message(),
            draining: content.draining.to_message(),
            ports: content.ports.to_message(),
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
        let mut content = SliceContent {
            address_type,
            endpoints: Field::from_message(endpoints),
            draining: Field::from_message(draining),
            ports: Field::from_message(ports),
        };
        share_zones(&mut content);
        let reference = Reference {
            cluster: source.cluster.as_str().into(),
            source: Field::from_message(source_slice),
            uid: source.uid.as_str().into(),
            resource_version: source.resource_version.into(),
            generation: source.generation,
            exported_since: source.exported_since_micros.map(Timestamp),
        };
        Ok((slice.into(), HubSliceSpec { reference, owner: Field::from_message(owner), content: Arc::new(content) }))
    }
}

/// Value of core's model that a message has as a `T`.
trait Field<T> {
    fn to_message(&self) -> T;
    fn from_message(field: T) -> Self;
}

impl<T: ToString + From<String>> Field<String> for T {
    fn to_message(&self) -> String {
        self.to_string()
    }

    fn from_message(field: String) -> Self {
        field.into()
    }
}

impl Field<i32> for PortNumber {
    fn to_message(&self) -> i32 {
        self.as_written()
    }

    fn from_message(field: i32) -> Self {
        field.into()
    }
}

impl<T, M: Field<T>> Field<Option<T>> for Option<M> {
    fn to_message(&self) -> Option<T> {
        self.as_ref().map(M::to_message)
    }

    fn from_message(field: Option<T>) -> Self {
        field.map(M::from_message)
    }
}

impl<T, M: Field<T>> Field<Vec<T>> for Vec<M> {
    fn to_message(&self) -> Vec<T> {
        self.iter().map(M::to_message).collect()
    }

    fn from_message(field: Vec<T>) -> Self {
        field.into_iter().map(M::from_message).collect()
    }
}

/// Lists the fields of messages that core's model has under the same names.
macro_rules! messages {
    ($($model:ident = $message:ident { $($field:ident),+ })+) => {
        $(
            impl Field<v1::$message> for $model {
                fn to_message(&self) -> v1::$message {
                    v1::$message { $($field: self.$field.to_message()),+ }
                }

                fn from_message(message: v1::$message) -> Self {
                    Self { $($field: Field::from_message(message.$field)),+ }
                }
            }
        )+
    };
}

messages! {
    Endpoint = Endpoint { addresses, hostname, zone }
    EndpointPort = Port { name, protocol, port, app_protocol }
    ObjectName = NamespacedName { namespace, name }
}

/// Lets the endpoints of a slice share one allocation of each zone.
fn share_zones(content: &mut SliceContent) {
    let mut zones = HashSet::<Text>::new();
    for zone in content.endpoints.iter_mut().chain(&mut content.draining).filter_map(|it| it.zone.as_mut()) {
        match zones.get(zone) {
            Some(known) => *zone = known.clone(),
            None => drop(zones.insert(zone.clone())),
        }
    }
}
