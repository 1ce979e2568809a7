//! Backend of a Service ([`Backend`]): the addresses, conditions and ports of a pod, or of another object behind the
//! Service.

mod pods;

pub use pods::{PodBackends, SkipReason, Skipped, is_eligible};

use crate::address::Family;
use crate::model::{Addresses, Conditions, Endpoint, EndpointPort, TargetRef};
use crate::packer::Item;
use crate::ports::PortList;
use crate::text::Text;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Backend of a Service, from which endpoints are made. A controller whose backends are not pods constructs these
/// values itself.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Backend {
    /// IPv4 addresses in canonical form ([`crate::address::canonical`]).
    pub ipv4: Addresses,
    /// IPv6 addresses in canonical form.
    pub ipv6: Addresses,
    /// Readiness and termination, for the endpoint's conditions.
    pub conditions: Conditions,
    /// DNS name of the backend in a headless Service.
    pub hostname: Option<Text>,
    /// Reference to the object behind the backend, for example a pod.
    pub target_ref: Option<Arc<TargetRef>>,
    /// Node that the backend runs on.
    pub node_name: Option<Text>,
    /// Zone of the backend's Node.
    pub zone: Option<Text>,
    /// Ports of the backend. Backends with the same ports should share one list, because a shared list is fast to
    /// compare.
    pub ports: PortList,
}

impl Backend {
    /// Returns the backend that an existing endpoint describes. The endpoint is in a slice of `family` with these
    /// `ports`. Use this if the object behind the endpoint, such as a pod, cannot be read.
    #[must_use]
    pub fn of_endpoint(endpoint: &Endpoint, family: Family, ports: &[EndpointPort]) -> Self {
        let Endpoint { addresses, conditions, hostname, target_ref, node_name, zone, hints: _ } = endpoint.clone();
        let (ipv4, ipv6) = match family {
            Family::V4 => (addresses, Addresses::None),
            Family::V6 => (Addresses::None, addresses),
        };
        Self { ipv4, ipv6, conditions, hostname, target_ref, node_name, zone, ports: ports.into() }
    }

    /// Returns the backend's addresses of `family`.
    #[must_use]
    pub const fn addresses(&self, family: Family) -> &Addresses {
        match family {
            Family::V4 => &self.ipv4,
            Family::V6 => &self.ipv6,
        }
    }

    /// Returns the endpoint for slices of `family`, or `None` if the backend has no address of that family.
    #[must_use]
    pub fn endpoint(&self, family: Family) -> Option<Endpoint> {
        let addresses = self.addresses(family);
        (!addresses.is_empty()).then(|| Endpoint {
            addresses: addresses.clone(),
            conditions: self.conditions,
            hostname: self.hostname.clone(),
            target_ref: self.target_ref.clone(),
            node_name: self.node_name.clone(),
            zone: self.zone.clone(),
            hints: None,
        })
    }

    /// Returns the key of the backend's endpoint for slices of `family`, without constructing the endpoint. `None` if
    /// the backend has no address of that family.
    #[must_use]
    pub fn key(&self, family: Family) -> Option<EndpointKey<'_>> {
        let addresses = self.addresses(family);
        let (hostname, target) = (self.hostname.as_ref(), self.target_ref.as_deref());
        (!addresses.is_empty()).then_some(EndpointKey { addresses, hostname, target })
    }

    /// True if the existing `endpoint` already shows this backend, so that it needs no write ([`Item::stands_for`]).
    /// The key of `endpoint` must equal the key of this backend.
    #[must_use]
    pub fn is_shown_by(&self, endpoint: &Endpoint) -> bool {
        endpoint.conditions == self.conditions
            && endpoint.node_name == self.node_name
            && endpoint.zone == self.zone
            && same_target(endpoint.target_ref.as_deref(), self.target_ref.as_deref())
    }

    /// Like [`Self::endpoint`], but consumes the backend.
    #[must_use]
    pub fn into_endpoint(self, family: Family) -> Option<Endpoint> {
        let Self { ipv4, ipv6, conditions, hostname, target_ref, node_name, zone, .. } = self;
        let addresses = match family {
            Family::V4 => ipv4,
            Family::V6 => ipv6,
        };
        let is_there = !addresses.is_empty();
        is_there.then_some(Endpoint { addresses, conditions, hostname, target_ref, node_name, zone, hints: None })
    }
}

/// Identity of an endpoint: addresses in any order, hostname, and namespace and name of the target.
///
/// The target's UID, Node, zone and conditions are not part of the key. So a pod that is created again with the same
/// name and address keeps its position in the slice. Pods that share an address are several endpoints
/// (kubernetes/kubernetes #115907).
#[derive(Clone, Copy, Debug)]
pub struct EndpointKey<'a> {
    addresses: &'a [Text],
    hostname: Option<&'a Text>,
    target: Option<&'a TargetRef>,
}

impl PartialEq for EndpointKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        let (one, other_one) = (self.names(), other.names());
        one == other_one && same_addresses(self.addresses, other.addresses)
    }
}

impl Eq for EndpointKey<'_> {}

impl EndpointKey<'_> {
    /// Returns three texts: hostname, namespace of the target and name of the target. An absent field counts as empty.
    fn names(&self) -> [Option<&Text>; 3] {
        let target = self.target;
        let names = [target.map(|it| &it.name), self.hostname, target.map(|it| &it.namespace)];
        names.map(|name| name.and_then(Text::non_empty))
    }
}

impl Hash for EndpointKey<'_> {
    /// Hashes only the fields that distinguish nearly all endpoints; equality compares all fields.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.target.map_or("", |target| &target.name).as_bytes());
        state.write_usize(self.addresses.len());
        if let [address] = self.addresses {
            state.write(address.as_bytes());
        }
    }
}

fn same_addresses(one: &[Text], other: &[Text]) -> bool {
    if one.len() < 2 || one == other {
        return one == other;
    }
    let sorted = |addresses: &[Text]| {
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        addresses
    };
    one.len() == other.len() && sorted(one) == sorted(other)
}

impl Item for Endpoint {
    type Key<'a> = EndpointKey<'a>;

    fn key(&self) -> EndpointKey<'_> {
        let (hostname, target) = (self.hostname.as_ref(), self.target_ref.as_deref());
        EndpointKey { addresses: &self.addresses, hostname, target }
    }

    /// True if the existing endpoint `self` may stay as it is in place of the endpoint `wanted`, which has an equal
    /// key. Compares only the fields that are not part of the key. Ignores hints, which are set later, and the target's
    /// resourceVersion, which changes with every write of the target.
    fn stands_for(&self, wanted: &Self) -> bool {
        self.conditions == wanted.conditions
            && self.node_name == wanted.node_name
            && self.zone == wanted.zone
            && same_target(self.target_ref.as_deref(), wanted.target_ref.as_deref())
    }
}

fn same_target(one: Option<&TargetRef>, other: Option<&TargetRef>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return one.is_none() && other.is_none() };
    one.uid == other.uid
        && one.kind == other.kind
        && one.api_version == other.api_version
        && one.field_path == other.field_path
}
