//! Targets of each pair of exporter and importer.

use super::target::{By, Objects, Pair, Target};
use crate::call::{cluster_ips, names_to_call};
use crate::codes::Code;
use crate::explain::{
    Ends, Filter, Site, Stop, Walk, addresses_are_of_one_cluster, explain, finding_for, is_headless, of_service,
    of_slice, pairs_of,
};
use crate::limits::{ADDRESSES_TESTED, PORTS_TESTED};
use crate::report::{Api, Finding};
use crate::snapshot::Snapshot;
use fleetnet_core::model::{Address, PortNumber};
use fleetnet_types::ObjectName;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Longest name of a host in DNS.
const NAME_LENGTH: usize = 253;

/// Returns the pairs of a Service with their targets, as `explain` finds them.
#[must_use]
pub fn pairs(snapshot: &Snapshot, service: &ObjectName, filter: &Filter) -> Vec<Pair> {
    let causes = explain(snapshot, service, filter).pairs.into_iter().map(|pair| pair.cause);
    let ends = pairs_of(snapshot, service, filter);
    ends.iter().zip(causes).map(|(ends, cause)| pair(snapshot, service, ends, cause)).collect()
}

/// Returns the targets of all pairs with this importer, each once.
#[must_use]
pub fn targets(pairs: &[Pair], importer: &str) -> Vec<Target> {
    let of_importer = pairs.iter().filter(|pair| pair.importer.as_deref() == Some(importer));
    let all: BTreeSet<&Target> = of_importer.flat_map(|pair| &pair.targets).collect();
    all.into_iter().cloned().collect()
}

impl Pair {
    /// Drops the names: this machine does not ask the DNS server of the importer.
    pub fn leave_out_names(&mut self) {
        let before = self.targets.len();
        self.targets.retain(|target| target.by != By::Name);
        if self.targets.len() < before {
            self.left_out.push("names".to_owned());
        }
    }
}

fn pair(snapshot: &Snapshot, service: &ObjectName, ends: &Ends<'_>, cause: Option<Finding>) -> Pair {
    let walk = Walk::new(snapshot, service, ends);
    let [exporter, importer] = [walk.exporter, walk.importer].map(|member| member.map(|member| member.id.clone()));
    let mut pair = Pair {
        namespace: service.namespace.to_string(),
        name: service.name.to_string(),
        api: walk.api,
        exporter,
        importer,
        targets: Vec::new(),
        endpoints: BTreeSet::new(),
        left_out: Vec::new(),
        not_tested: Vec::new(),
        overlap: None,
        objects: Objects::default(),
    };
    if let Err(stop) = fill(&mut pair, &walk) {
        let mut why = match stop {
            Stop::Skipped(why) | Stop::Unknown(why) | Stop::Waiting(why) => why,
            Stop::Broken(evidence) => crate::explain::text(&evidence),
        };
        if let Some(cause) = &cause {
            why += &format!(": {} {} (`fleetnet explain {service}` shows more)", cause.code, cause.title);
        }
        pair.not_tested.push(why);
    }
    if let Err(Stop::Broken(evidence)) = addresses_are_of_one_cluster(&walk) {
        pair.overlap = Some(finding_for(Code::FN707, &evidence, service));
    }
    pair
}

/// Adds the targets of a pair.
fn fill(pair: &mut Pair, walk: &Walk<'_>) -> Result<(), Stop> {
    let (importer, exporter) = (walk.importer()?, walk.exporter()?);
    let slices = walk.imported_slices()?;
    let Some(first) = slices.first() else {
        return Err(Stop::Skipped(format!("{} has no endpoints of {}", importer.id, exporter.id)));
    };
    let derived = walk.derived_service().ok();
    pair.objects.imported = Site::Member(importer).shown(*first, "endpoints", "");
    pair.objects.source = match walk.source_slices().ok().and_then(|sources| sources.first().copied()) {
        Some(source) => Site::Member(exporter).shown(source, "ports", ""),
        None => Site::Member(importer).shown(*first, "ports", ""),
    };
    pair.objects.service = match derived {
        Some(derived) => Site::Member(importer).shown(derived, "spec", ""),
        None => pair.objects.imported.clone(),
    };
    let balanced = derived.filter(|derived| !is_headless(derived));
    let endpoints = Endpoints::of(&slices, balanced, &mut pair.left_out);
    pair.endpoints = endpoints.all();
    endpoints.add_to(pair);
    let ports: Vec<(String, u16)> = match balanced {
        Some(derived) => service_ports(derived).filter(|port| endpoints.has(&port.0)).collect(),
        None => endpoints.ports(),
    };
    for (port_name, port) in ports.iter().take(PORTS_TESTED) {
        let target = |by, host: String| Target { by, host, port: *port, port_names: [port_name.clone()].into() };
        // Text that is no address is not given to a pod.
        let addresses = balanced.into_iter().flat_map(cluster_ips).filter(|it| it.parse::<IpAddr>().is_ok());
        pair.targets.extend(addresses.map(|address| target(By::Service, address)));
        pair.targets.extend(names(walk, &importer.id).map(|name| target(By::Name, name)));
    }
    if pair.targets.is_empty() {
        let why = format!("the endpoints of {} in {} have no TCP port", exporter.id, importer.id);
        return Err(Stop::Skipped(why));
    }
    Ok(())
}

/// Returns the names by which clients call the Service. Text that is no name is not given to a pod.
fn names(walk: &Walk<'_>, importer: &str) -> impl Iterator<Item = String> + use<> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let is_name = move |name: &str| name.len() <= NAME_LENGTH && name.bytes().all(is_letter) && !name.starts_with('-');
    let api: Api = walk.api;
    let calls = names_to_call(walk.snapshot, walk.service, importer).into_iter();
    calls.filter(move |call| call.api == api && is_name(&call.name)).map(|call| call.name)
}

/// Ready endpoints in slices: their addresses, by name, number and family of their TCP ports.
struct Endpoints(BTreeMap<(String, u16, bool), BTreeSet<IpAddr>>);

impl Endpoints {
    /// Returns the endpoints that clients of the Service reach.
    fn of(slices: &[&EndpointSlice], service: Option<&Service>, left_out: &mut Vec<String>) -> Self {
        let mut found: BTreeMap<(String, u16, bool), BTreeSet<IpAddr>> = BTreeMap::new();
        for content in slices.iter().filter_map(|slice| of_service(of_slice(slice)?, service)) {
            let addresses = || content.endpoints.iter().flat_map(|it| &it.addresses).filter_map(Address::ip);
            for port in &content.ports {
                match (&*port.protocol, port.port.and_then(PortNumber::valid)) {
                    ("TCP", Some(number)) => {
                        for address in addresses() {
                            let key = (port.name.to_string(), number.get(), address.is_ipv6());
                            found.entry(key).or_default().insert(address);
                        }
                    }
                    (protocol, number) => {
                        let number = number.map_or_else(|| "all ports".to_owned(), |number| format!("port {number}"));
                        let text = format!("{protocol} {number}");
                        if !left_out.contains(&text) {
                            left_out.push(text);
                        }
                    }
                }
            }
        }
        Self(found)
    }

    fn all(&self) -> BTreeSet<(String, u16)> {
        let of_port = |(key, addresses): (&(String, u16, bool), &BTreeSet<IpAddr>)| {
            let port = key.1;
            addresses.iter().map(move |address| (address.to_string(), port)).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of_port).collect()
    }

    /// Returns names and numbers of the ports.
    fn ports(&self) -> Vec<(String, u16)> {
        let ports: BTreeSet<(String, u16)> = self.0.keys().map(|(name, number, _)| (name.clone(), *number)).collect();
        ports.into_iter().collect()
    }

    fn has(&self, port_name: &str) -> bool {
        self.0.keys().any(|(name, ..)| name == port_name)
    }

    /// Adds the first addresses of the first ports as targets, and says what is left out.
    fn add_to(&self, pair: &mut Pair) {
        let ports = self.ports();
        let tested = &ports[..ports.len().min(PORTS_TESTED)];
        if ports.len() > tested.len() {
            pair.left_out.push(format!("{} more ports", ports.len() - tested.len()));
        }
        let mut targets: BTreeMap<(u16, IpAddr), BTreeSet<String>> = BTreeMap::new();
        let mut more: BTreeMap<u16, usize> = BTreeMap::new();
        let of_tested = |((name, number, _), _): &(&(String, u16, bool), &BTreeSet<IpAddr>)| {
            tested.contains(&(name.clone(), *number))
        };
        for ((name, number, _), addresses) in self.0.iter().filter(of_tested) {
            for address in addresses.iter().take(ADDRESSES_TESTED) {
                targets.entry((*number, *address)).or_default().insert(name.clone());
            }
            let left = more.entry(*number).or_default();
            *left = addresses.len().saturating_sub(ADDRESSES_TESTED).max(*left);
        }
        let target = |((port, address), port_names): ((u16, IpAddr), BTreeSet<String>)| Target {
            by: By::Address,
            host: address.to_string(),
            port,
            port_names,
        };
        pair.targets.extend(targets.into_iter().map(target));
        let more = more.into_iter().filter(|(_, left)| *left > 0);
        pair.left_out.extend(more.map(|(port, left)| format!("{left} more addresses of port {port}")));
    }
}

/// Returns names and numbers of the TCP ports of a Service.
fn service_ports(service: &Service) -> impl Iterator<Item = (String, u16)> {
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let tcp = ports.filter(|port| port.protocol.as_deref().unwrap_or("TCP") == "TCP");
    tcp.filter_map(|port| Some((port.name.clone().unwrap_or_default(), u16::try_from(port.port).ok()?)))
}
