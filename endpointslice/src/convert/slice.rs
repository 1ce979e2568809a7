//! Conversion of EndpointSlices from and to k8s-openapi.

use super::{own, shared};
use crate::model::{
    AddressType, Conditions, Endpoint, EndpointPort, EndpointSlice, Hints, Metadata, OwnerReference, Protocol,
    TargetKind, TargetRef,
};
use crate::text::Text;
use crate::text_map::TextMap;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::discovery::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference as Owner, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

impl From<&v1::EndpointSlice> for EndpointSlice {
    fn from(slice: &v1::EndpointSlice) -> Self {
        Self {
            metadata: Metadata::from(&slice.metadata),
            address_type: AddressType::from(slice.address_type.as_str()),
            endpoints: super::list(slice.endpoints.as_ref()),
            ports: super::list(slice.ports.as_ref()),
        }
    }
}

impl From<&v1::EndpointPort> for EndpointPort {
    fn from(port: &v1::EndpointPort) -> Self {
        Self {
            name: port.name.as_ref().map(|name| Text::shared(name)),
            port: port.port,
            protocol: port.protocol.as_deref().map(Protocol::from),
            app_protocol: port.app_protocol.as_ref().map(|protocol| Text::shared(protocol)),
        }
    }
}

impl From<&v1::Endpoint> for Endpoint {
    fn from(endpoint: &v1::Endpoint) -> Self {
        let conditions = endpoint.conditions.as_ref().map(|conditions| Conditions {
            ready: conditions.ready,
            serving: conditions.serving,
            terminating: conditions.terminating,
        });
        Self {
            addresses: endpoint.addresses.iter().map(Text::from).collect(),
            conditions: conditions.unwrap_or_default(),
            hostname: endpoint.hostname.as_ref().map(Text::from),
            target_ref: endpoint.target_ref.as_ref().map(|target| Arc::new(TargetRef::from(target))),
            node_name: endpoint.node_name.as_ref().map(|name| Text::shared(name)),
            zone: endpoint.zone.as_ref().map(|zone| Text::shared(zone)),
            hints: endpoint.hints.as_ref().map(|hints| Arc::new(Hints::from(hints))),
        }
    }
}

impl From<&ObjectReference> for TargetRef {
    fn from(target: &ObjectReference) -> Self {
        Self {
            kind: TargetKind::from(target.kind.as_deref().unwrap_or_default()),
            namespace: shared(target.namespace.as_ref()),
            name: own(target.name.as_ref()),
            uid: own(target.uid.as_ref()),
            resource_version: target.resource_version.as_ref().map(Text::from),
            api_version: target.api_version.as_ref().map(Text::from),
            field_path: target.field_path.as_ref().map(Text::from),
        }
    }
}

impl From<&v1::EndpointHints> for Hints {
    fn from(hints: &v1::EndpointHints) -> Self {
        Self {
            for_zones: hints.for_zones.iter().flatten().map(|zone| Text::shared(&zone.name)).collect(),
            for_nodes: hints.for_nodes.iter().flatten().map(|node| Text::shared(&node.name)).collect(),
        }
    }
}

/// Returns the text, or `None` if it is empty.
fn some(text: &Text) -> Option<String> {
    text.non_empty().map(ToString::to_string)
}

fn map(pairs: &TextMap) -> Option<BTreeMap<String, String>> {
    let pairs: BTreeMap<_, _> = pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    (!pairs.is_empty()).then_some(pairs)
}

fn list<'a, T: 'a, U>(items: &'a [T], convert: impl Fn(&'a T) -> U) -> Option<Vec<U>> {
    (!items.is_empty()).then(|| items.iter().map(convert).collect())
}

impl From<&EndpointSlice> for v1::EndpointSlice {
    /// Sets the lists `endpoints` and `ports` also when they are empty. The API requires `endpoints`.
    fn from(slice: &EndpointSlice) -> Self {
        Self {
            metadata: ObjectMeta::from(&slice.metadata),
            address_type: slice.address_type.to_string(),
            endpoints: Some(slice.endpoints.iter().map(v1::Endpoint::from).collect()),
            ports: Some(slice.ports.iter().map(v1::EndpointPort::from).collect()),
        }
    }
}

impl From<&Metadata> for ObjectMeta {
    fn from(metadata: &Metadata) -> Self {
        Self {
            name: some(&metadata.name),
            generate_name: some(&metadata.generate_name),
            namespace: some(&metadata.namespace),
            uid: some(&metadata.uid),
            resource_version: some(&metadata.resource_version),
            generation: Some(metadata.generation).filter(|generation| *generation != 0),
            creation_timestamp: metadata.creation_timestamp.map(Time),
            deletion_timestamp: metadata.deletion_timestamp.map(Time),
            labels: map(&metadata.labels),
            annotations: map(&metadata.annotations),
            owner_references: list(&metadata.owner_references, Owner::from),
            finalizers: list(&metadata.finalizers, ToString::to_string),
            ..Self::default()
        }
    }
}

impl From<&OwnerReference> for Owner {
    fn from(owner: &OwnerReference) -> Self {
        Self {
            api_version: owner.api_version.to_string(),
            kind: owner.kind.to_string(),
            name: owner.name.to_string(),
            uid: owner.uid.to_string(),
            controller: owner.controller,
            block_owner_deletion: owner.block_owner_deletion,
        }
    }
}

impl From<&EndpointPort> for v1::EndpointPort {
    fn from(port: &EndpointPort) -> Self {
        Self {
            name: port.name.as_ref().map(ToString::to_string),
            port: port.port,
            protocol: port.protocol.as_ref().map(|protocol| protocol.as_str().to_owned()),
            app_protocol: port.app_protocol.as_ref().map(ToString::to_string),
        }
    }
}

impl From<&Endpoint> for v1::Endpoint {
    fn from(endpoint: &Endpoint) -> Self {
        let Conditions { ready, serving, terminating } = endpoint.conditions;
        Self {
            addresses: endpoint.addresses.iter().map(ToString::to_string).collect(),
            conditions: Some(v1::EndpointConditions { ready, serving, terminating }),
            hostname: endpoint.hostname.as_ref().map(ToString::to_string),
            target_ref: endpoint.target_ref.as_deref().map(ObjectReference::from),
            node_name: endpoint.node_name.as_ref().map(ToString::to_string),
            zone: endpoint.zone.as_ref().map(ToString::to_string),
            hints: endpoint.hints.as_deref().map(v1::EndpointHints::from),
            deprecated_topology: None,
        }
    }
}

impl From<&TargetRef> for ObjectReference {
    fn from(target: &TargetRef) -> Self {
        let kind = target.kind.as_str();
        Self {
            kind: (!kind.is_empty()).then(|| kind.to_owned()),
            namespace: some(&target.namespace),
            name: some(&target.name),
            uid: some(&target.uid),
            resource_version: target.resource_version.as_ref().map(ToString::to_string),
            api_version: target.api_version.as_ref().map(ToString::to_string),
            field_path: target.field_path.as_ref().map(ToString::to_string),
        }
    }
}

impl From<&Hints> for v1::EndpointHints {
    fn from(hints: &Hints) -> Self {
        Self {
            for_zones: list(&hints.for_zones, |zone| v1::ForZone { name: zone.to_string() }),
            for_nodes: list(&hints.for_nodes, |node| v1::ForNode { name: node.to_string() }),
        }
    }
}
