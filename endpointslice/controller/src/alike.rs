//! Comparison of two states of an object. Only the fields that plans read are compared, because a change of other
//! fields needs no new plan.

use endpointslice::model::{Endpoint, EndpointSlice, Node, Service};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// True if two states of a Service lead to the same plan. Plans do not read the status or the resourceVersion of a
/// Service.
pub(super) fn plans_alike(old: &Service, new: &Service) -> bool {
    let (one, other) = (&old.metadata, &new.metadata);
    old.spec == new.spec
        && one.uid == other.uid
        && one.labels == other.labels
        && one.annotations == other.annotations
        && one.deletion_timestamp == other.deletion_timestamp
}

/// True if two slices have the same address type, endpoints, ports, labels and deletion state. Annotations are ignored.
pub(super) fn has_same_content(old: &EndpointSlice, new: &EndpointSlice) -> bool {
    old.endpoints == new.endpoints
        && old.ports == new.ports
        && old.address_type == new.address_type
        && old.metadata.labels == new.metadata.labels
        && old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
}

/// Hash of a slice's address type, ports and endpoints. The hash excludes labels, because webhooks add some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint(u64);

impl Fingerprint {
    pub(super) fn of(slice: &EndpointSlice) -> Self {
        let mut hasher = DefaultHasher::new();
        let EndpointSlice { metadata: _, address_type, endpoints, ports } = slice;
        (address_type, ports).hash(&mut hasher);
        for Endpoint { addresses, conditions, hostname, target_ref, node_name, zone, hints } in endpoints {
            (&addresses[..], conditions, hostname, node_name, zone, hints).hash(&mut hasher);
            if let Some(target) = target_ref {
                (target.kind.as_str(), &target.namespace, &target.name, &target.uid).hash(&mut hasher);
                (&target.resource_version, &target.api_version, &target.field_path).hash(&mut hasher);
            }
        }
        Self(hasher.finish())
    }
}

/// True if a plan reads the same data from two states of a slice. Plans read the address type, endpoints, ports,
/// labels, deletion state and owner references of slices.
pub(super) fn reads_the_same(old: &EndpointSlice, new: &EndpointSlice) -> bool {
    has_same_content(old, new) && old.metadata.owner_references == new.metadata.owner_references
}

/// True if a change of a Node can change topology hints. Hints depend on each zone's share of the CPUs of ready Nodes,
/// which is computed from these fields. Kubelets update Nodes every few seconds, but rarely in these fields.
pub(super) fn counts_otherwise(old: &Node, new: &Node) -> bool {
    old.metadata.labels != new.metadata.labels
        || old.status.readiness.is_ready != new.status.readiness.is_ready
        || old.status.allocatable != new.status.allocatable
}

#[cfg(test)]
mod tests;
