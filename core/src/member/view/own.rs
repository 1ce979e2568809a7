//! Addresses of this cluster itself: the cluster IPs of its Services, and the endpoints of its API server.

use super::{Effects, View};
use crate::admission::own::translated;
use crate::model::{Address, EndpointSlice, Kind, Service, SliceContent};
use crate::names::API_SERVER;
use std::net::IpAddr;

/// Kinds whose objects have addresses of this cluster.
const KINDS: [Kind; 2] = [Kind::Service, Kind::EndpointSlice];

/// Returns the addresses of a Service.
pub(super) fn of_service(service: &Service) -> Vec<IpAddr> {
    service.cluster_ips.iter().filter_map(|address| address.parse().ok()).collect()
}

/// Returns the addresses of the API server in a slice of this cluster.
pub(super) fn of_slice(slice: &EndpointSlice) -> Vec<IpAddr> {
    let (namespace, name) = API_SERVER;
    if &*slice.meta.name.namespace == namespace && slice.service.as_deref() == Some(name) {
        addresses(&slice.content).filter_map(Address::ip).collect()
    } else {
        Vec::new()
    }
}

fn addresses(content: &SliceContent) -> impl Iterator<Item = &Address> {
    content.endpoints.iter().chain(&content.draining).flat_map(|endpoint| &endpoint.addresses)
}

impl View {
    /// Replaces the addresses of an object of this cluster. Changes the imports of other clusters' slices that have one
    /// of them.
    pub(super) fn own_addresses_changed(&mut self, before: &[IpAddr], after: &[IpAddr], effects: &mut Effects) {
        let turned = self.own_addresses.replace(before, after);
        // While a watch begins, nothing is imported, and `own_addresses_listed` validates all slices once.
        if !turned.is_empty() && self.watches.complete(&KINDS) {
            let has_one = |slice: &SliceContent| {
                addresses(slice).filter_map(Address::ip).any(|address| turned.contains(&translated(address)))
            };
            self.admit_again(has_one, effects);
        }
    }

    /// Validates all distributed slices, if this watch was the last that did not show all addresses of this cluster.
    pub(in crate::member) fn own_addresses_listed(&mut self, kind: Kind, effects: &mut Effects) {
        if KINDS.contains(&kind) && self.watches.complete(&KINDS) {
            self.admit_again(|_| true, effects);
        }
    }
}
