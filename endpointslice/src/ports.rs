//! Ports of a Service at a pod, and comparison of lists of ports.

use crate::model::{ContainerPort, EndpointPort, Pod, Service, ServicePort, TargetPort};
use hashbrown::HashMap;
use std::sync::Arc;

/// List of ports that several endpoints share.
pub type PortList = Arc<[EndpointPort]>;

/// Identity of a list of ports: the order does not matter, and an absent list equals an empty list.
///
/// kube-controller-manager sorts the ports of a slice by a hash, and writes null for an empty list
/// (kubernetes/kubernetes #133474).
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialOrd)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "one list is equal to itself without a look at it")]
pub struct PortKey(PortList);

impl PartialEq for PortKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl PortKey {
    /// True if another value shares the allocation of this list.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// True if both keys share one allocation.
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

/// Resolver of the ports of one Service to port numbers at pods. Pods with the same port numbers share one list.
#[derive(Debug)]
pub(crate) struct PortResolver<'a> {
    ports: &'a [ServicePort],
    /// List of ports at every pod. `None` if the Service has a named target port, whose number may differ between pods.
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

    /// Returns the ports of the Service at `pod`. Omits a named target port that the pod lacks.
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
}

/// Returns the number that `port` of a Service has at `pod`, or `None` if the pod lacks the named target port.
///
/// A named target port is searched by name and protocol in the ports of containers, then of sidecars (init containers
/// that always restart, KEP-753). The first match counts.
#[must_use]
pub fn find_port(pod: &Pod, port: &ServicePort) -> Option<i32> {
    let name = match &port.target_port {
        TargetPort::Number(number) => return Some(*number),
        TargetPort::Name(name) => name,
    };
    let containers = pod.spec.containers.iter().flat_map(|container| &container.ports);
    let sidecars = pod.spec.init_containers.iter().filter(|container| container.restart_policy == "Always");
    let fits = |exposed: &&ContainerPort| exposed.name == *name && exposed.protocol == port.protocol;
    containers.chain(sidecars.flat_map(|container| &container.ports)).find(fits).map(|exposed| exposed.container_port)
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
