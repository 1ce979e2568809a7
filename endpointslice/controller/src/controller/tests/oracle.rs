//! Second implementation of the rules for endpoints, for comparison with the controller. It applies the rules to one
//! pod at a time.

use super::world::Cluster;
use endpointslice::model::{ClusterIpFamily, EndpointSlice, Pod, Service, ServiceType, TargetPort};
use endpointslice::names;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// True if the Service should have slices.
pub(crate) fn is_served(service: &Service) -> bool {
    service.spec.r#type == ServiceType::ByAddress && !service.spec.selector.is_empty()
}

/// Returns the address types that the Service's slices should have.
pub(crate) fn families(service: &Service) -> BTreeSet<&'static str> {
    let families = service.spec.ip_families.iter().map(|family| match family {
        ClusterIpFamily::IPv6 => "IPv6",
        ClusterIpFamily::IPv4 | ClusterIpFamily::Other => "IPv4",
    });
    families.collect()
}

/// Returns the expected endpoints of the Service, each as address type, ports, pod and addresses.
pub(crate) fn identities(cluster: &Cluster, service: &Service) -> BTreeSet<String> {
    wanted(cluster, service).into_iter().map(|(identity, _)| identity).collect()
}

/// Returns the expected endpoints of the Service with all their fields.
pub(crate) fn endpoints(cluster: &Cluster, service: &Service) -> Vec<String> {
    let mut endpoints: Vec<_> =
        wanted(cluster, service).into_iter().map(|(identity, state)| format!("{identity} {state}")).collect();
    endpoints.sort();
    endpoints
}

/// Returns the smallest possible number of slices for the Service. Endpoints can share a slice only if they have the
/// same address type and the same ports. An address type without endpoints needs one slice.
pub(crate) fn fewest_slices(cluster: &Cluster, service: &Service) -> usize {
    let max = cluster.max_endpoints_per_slice;
    let slices = families(service).into_iter().map(|family| {
        let mut by_ports: BTreeMap<String, usize> = BTreeMap::new();
        for (identity, _) in wanted(cluster, service) {
            let (_, of_family) = identity.split_once(' ').expect("name, family and so on");
            if let Some(rest) = of_family.strip_prefix(family) {
                let ports = rest.rsplitn(3, ' ').last().expect("ports, pod and addresses");
                *by_ports.entry(ports.to_owned()).or_default() += 1;
            }
        }
        by_ports.values().map(|endpoints| endpoints.div_ceil(max)).sum::<usize>().max(1)
    });
    slices.sum()
}

fn wanted(cluster: &Cluster, service: &Service) -> Vec<(String, String)> {
    let mut wanted = Vec::new();
    let (spec, name) = (&service.spec, &service.metadata.name);
    for pod in cluster.pods.values().filter(|pod| is_eligible(pod, service)) {
        let node = cluster.nodes.get(&*pod.spec.node_name);
        if node.is_none() && !spec.publish_not_ready_addresses {
            continue;
        }
        for family in families(service) {
            let mut addresses = addresses(pod, family);
            if addresses.is_empty() {
                continue;
            }
            addresses.sort();
            let ports = ports(pod, service);
            let identity = format!("{name} {family} {ports} {} {}", pod.metadata.name, addresses.join(","));
            let is_terminating = pod.metadata.deletion_timestamp.is_some();
            let serving = pod.status.readiness.is_ready;
            let ready = spec.publish_not_ready_addresses || (serving && !is_terminating);
            let zone =
                node.and_then(|node| node.metadata.labels.get(names::LABEL_ZONE)).map_or("", |zone| zone.as_str());
            let (uid, on) = (&pod.metadata.uid, &pod.spec.node_name);
            wanted.push((identity, format!("{ready} {serving} {is_terminating} {uid} {on} {zone}")));
        }
    }
    wanted
}

fn is_eligible(pod: &Pod, service: &Service) -> bool {
    let is_selected = service.spec.selector.iter().all(|(key, value)| pod.metadata.labels.get(key) == Some(value));
    is_served(service)
        && is_selected
        && pod.metadata.namespace == service.metadata.namespace
        && !pod.status.phase.is_terminal()
}

/// Returns the pod's addresses of an address family in canonical form. Omits addresses that the API server rejects in a
/// slice.
fn addresses(pod: &Pod, family: &str) -> Vec<String> {
    let parsed = pod.status.pod_ips.iter().filter_map(|ip| ip.ip.parse::<IpAddr>().ok());
    let usable = parsed.filter(|address| {
        let is_link_local = match address {
            IpAddr::V4(v4) => v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        };
        !(is_link_local || address.is_loopback() || address.is_unspecified() || address.is_multicast())
    });
    usable.filter(|address| address.is_ipv4() == (family == "IPv4")).map(|address| address.to_string()).collect()
}

fn ports(pod: &Pod, service: &Service) -> String {
    let mut ports = BTreeSet::new();
    for port in &service.spec.ports {
        let number = match &port.target_port {
            TargetPort::Number(number) => Some(*number),
            TargetPort::Name(name) => {
                let mut opened = pod.spec.containers.iter().flat_map(|container| &container.ports);
                opened.find(|opened| opened.name == *name).map(|opened| opened.container_port)
            }
        };
        ports.extend(number.map(|number| format!("{}:{number}/{}", port.name, port.protocol.as_str())));
    }
    format!("{ports:?}")
}

/// Returns the endpoints in these slices, in the form of [`identities`].
pub(crate) fn shown_identities(slices: &[EndpointSlice]) -> BTreeSet<String> {
    shown(slices).into_iter().map(|(identity, _)| identity).collect()
}

/// Returns the endpoints in these slices, in the form of [`endpoints`].
pub(crate) fn shown_endpoints(slices: &[EndpointSlice]) -> Vec<String> {
    let mut endpoints: Vec<_> =
        shown(slices).into_iter().map(|(identity, state)| format!("{identity} {state}")).collect();
    endpoints.sort();
    endpoints
}

fn shown(slices: &[EndpointSlice]) -> Vec<(String, String)> {
    let mut shown = Vec::new();
    for slice in slices.iter().filter(|slice| !slice.metadata.is_terminating()) {
        let label = |key| slice.metadata.labels.get(key).map_or("", |value| value.as_str());
        if label(names::LABEL_MANAGED_BY) != names::CONTROLLER_NAME {
            continue;
        }
        let ports: BTreeSet<_> = slice
            .ports
            .iter()
            .map(|port| {
                let (name, number) = (port.name.as_deref().unwrap_or_default(), port.port.unwrap_or_default());
                format!("{name}:{number}/{}", port.protocol.as_ref().map_or("", |protocol| protocol.as_str()))
            })
            .collect();
        for endpoint in &slice.endpoints {
            let mut addresses: Vec<_> = endpoint.addresses.iter().map(ToString::to_string).collect();
            addresses.sort();
            let target = endpoint.target_ref.as_deref().cloned().unwrap_or_default();
            let service = label(names::LABEL_SERVICE_NAME);
            let identity =
                format!("{service} {} {ports:?} {} {}", slice.address_type, target.name, addresses.join(","));
            let is = |condition: Option<bool>| condition.map_or("unset".to_owned(), |is| is.to_string());
            let conditions = endpoint.conditions;
            let (ready, serving, terminating) =
                (is(conditions.ready), is(conditions.serving), is(conditions.terminating));
            let (node, zone) =
                (endpoint.node_name.as_deref().unwrap_or_default(), endpoint.zone.as_deref().unwrap_or_default());
            shown.push((identity, format!("{ready} {serving} {terminating} {} {node} {zone}", target.uid)));
        }
    }
    shown
}
