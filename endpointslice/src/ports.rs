//! Which ports a pod serves for a Service, and which lists of ports are the same.

use crate::model::{ContainerPort, EndpointPort, Pod, Service, ServicePort, TargetPort};
use hashbrown::HashMap;
use std::sync::Arc;

/// A list of ports that endpoints share.
pub type PortList = Arc<[EndpointPort]>;

/// What makes two lists of ports the same: their order does not matter, and a list that is not there is an empty one.
/// Slices that kube-controller-manager made have their ports in the order of a hash, and null for none (#133474).
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialOrd)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "one list is equal to itself without a look at it")]
pub struct PortKey(PortList);

impl PartialEq for PortKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl PortKey {
    /// Whether anybody else has this very list.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Whether this is that very list.
    #[cfg(test)]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl From<&PortList> for PortKey {
    fn from(ports: &PortList) -> Self {
        if ports.is_sorted() { Self(Arc::clone(ports)) } else { Self::from(&ports[..]) }
    }
}

impl From<&[EndpointPort]> for PortKey {
    fn from(ports: &[EndpointPort]) -> Self {
        let mut sorted = ports.to_vec();
        sorted.sort_unstable();
        Self(sorted.into())
    }
}

/// Finds the ports of pods for one Service. Pods that serve the same numbers get one list.
#[derive(Debug)]
pub(crate) struct PortResolver<'a> {
    ports: &'a [ServicePort],
    /// The list of every pod, where no port is found by name.
    fixed: Option<PortList>,
    known: HashMap<Vec<Option<i32>>, PortList>,
    last: (Vec<Option<i32>>, Option<PortList>),
    numbers: Vec<Option<i32>>,
}

impl<'a> PortResolver<'a> {
    pub(crate) fn new(service: &'a Service) -> Self {
        let ports = &service.spec.ports[..];
        let numbers: Option<Vec<_>> = ports.iter().map(|port| port.target_port.number().map(Some)).collect();
        let fixed = numbers.map(|numbers| list(ports, &numbers));
        Self { ports, fixed, known: HashMap::new(), last: (Vec::new(), None), numbers: Vec::new() }
    }

    /// The ports that `pod` serves. A port whose name it does not have is left out, which [`Self::is_complete`] tells.
    pub(crate) fn resolve(&mut self, pod: &Pod) -> PortList {
        if let Some(fixed) = &self.fixed {
            return Arc::clone(fixed);
        }
        self.numbers.clear();
        self.numbers.extend(self.ports.iter().map(|port| find_port(pod, port)));
        if let (numbers, Some(list)) = &self.last
            && *numbers == self.numbers
        {
            return Arc::clone(list);
        }
        let (ports, numbers) = (self.ports, &self.numbers);
        let found = self.known.entry_ref(&numbers[..]).or_insert_with(|| list(ports, numbers));
        let found = Arc::clone(found);
        self.last = (self.numbers.clone(), Some(Arc::clone(&found)));
        found
    }

    /// Whether `list`, which [`Self::resolve`] answered, has all of the Service's ports.
    pub(crate) fn is_complete(&self, list: &PortList) -> bool {
        list.len() == self.ports.len()
    }
}

/// The number of `port` at `pod`: of a named one that of the first container's port with its name and protocol, then of
/// the first sidecar's (an init container that always restarts, KEP-753).
#[must_use]
pub fn find_port(pod: &Pod, port: &ServicePort) -> Option<i32> {
    let name = match &port.target_port {
        TargetPort::Number(number) => return Some(*number),
        TargetPort::Name(name) => name,
    };
    let containers = pod.spec.containers.iter().flat_map(|container| &container.ports);
    let sidecars = pod.spec.init_containers.iter().filter(|container| container.restart_policy == "Always");
    let fits = |held: &&ContainerPort| held.name == *name && held.protocol == port.protocol;
    containers.chain(sidecars.flat_map(|container| &container.ports)).find(fits).map(|held| held.container_port)
}

impl TargetPort {
    const fn number(&self) -> Option<i32> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Name(_) => None,
        }
    }
}

fn list(ports: &[ServicePort], numbers: &[Option<i32>]) -> PortList {
    let found = ports.iter().zip(numbers).filter_map(|(port, number)| {
        Some(EndpointPort {
            name: Some(port.name.clone()),
            port: Some((*number)?),
            protocol: Some(port.protocol.clone()),
            app_protocol: port.app_protocol.clone(),
        })
    });
    found.collect()
}
