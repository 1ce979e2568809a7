//! Decoders from the JSON of an object to the compact value in the agents' caches ([`fleetnet_core::model`]).
//!
//! Usually an invalid value counts as absent. An object is [`Undecodable`] only in these cases, where this would be
//! dangerous:
//!
//! - The name, UID or resourceVersion is absent.
//! - An object in the hub does not name its source object.
//! - A field is invalid, and an agent would remove endpoints, ports, clusters, conditions or the name of an import if
//!   the field counted as absent.
//! - A list or text exceeds its limit ([`crate::limits`]). Without this rule, a member could fill the memory of other
//!   agents.
//!
//! The agents continue to use the last decoded state of an undecodable object. An object that is being deleted is
//! always decodable if its metadata is decodable: no agent needs its content any more, and the agent whose finalizer is
//! on the object must see the deletion.

mod content;
mod endpoint_slice;
mod excess;
mod hub_slice;
mod internal_service_export;
mod internal_service_import;
mod mcs;
mod mcs_service_export;
mod mcs_service_import;
mod member_agent;
mod membership;
mod merged_service_import;
mod meta;
mod multi_cluster_service;
mod namespace;
mod object;
mod service;
mod service_export;
mod service_import;
mod shared;
mod topology;

pub use multi_cluster_service::internal_load_balancer;

use fleetnet_core::model::{Kind, Object};
use fleetnet_types::Undecodable;
use object::object;

/// Decodes an object of a kind, in the API version of [`crate::resources::resource`]. For a Namespace, the JSON of the
/// metadata is enough.
pub fn decode(kind: Kind, json: &[u8]) -> Result<Object, Undecodable> {
    match kind {
        Kind::Service => object(kind, json, service::read),
        Kind::EndpointSlice => object(kind, json, endpoint_slice::read).map(|found| with_excess(found, json)),
        Kind::ServiceExport => object(kind, json, service_export::read),
        Kind::ServiceImport => object(kind, json, service_import::read),
        Kind::MultiClusterService => object(kind, json, multi_cluster_service::read),
        Kind::InternalServiceExport => object(kind, json, internal_service_export::read),
        Kind::InternalServiceImport => object(kind, json, internal_service_import::read),
        Kind::EndpointSliceExport => {
            object(kind, json, |known, top| hub_slice::read(known, top).map(Object::EndpointSliceExport))
        }
        Kind::EndpointSliceImport => {
            object(kind, json, |known, top| hub_slice::read(known, top).map(Object::EndpointSliceImport))
        }
        Kind::Namespace => object(kind, json, namespace::read),
        Kind::SystemNamespace => object(kind, json, namespace::read_system),
        Kind::MemberAgent => object(kind, json, member_agent::read),
        Kind::MergedServiceImport => object(kind, json, merged_service_import::read),
        Kind::McsServiceExport => object(kind, json, mcs_service_export::read),
        Kind::McsServiceImport => object(kind, json, mcs_service_import::read),
        Kind::InternalMemberCluster => object(kind, json, membership::read),
        Kind::ClusterProperty => object(kind, json, topology::read_property),
        Kind::Node => object(kind, json, topology::read_node),
        Kind::MemberCluster => object(kind, json, membership::read_member),
    }
}

/// Sets the excess of an imported slice: a hash of content that agents did not write. Other slices have no excess,
/// because agents own no fields of source slices.
fn with_excess(mut found: Object, json: &[u8]) -> Object {
    if let Object::EndpointSlice(slice) = &mut found
        && slice.imported
        && !slice.meta.deleting
    {
        slice.excess = excess::excess(json, slice);
    }
    found
}
