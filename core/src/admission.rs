//! Validation of distributed slices: no loopback, link-local or multicast addresses, and well-formed ports. Other
//! members are not trusted. Their slices must not direct traffic to services of the node itself or of its cloud
//! provider, and must not break kube-proxy or its replacements.

pub(crate) mod own;
mod special;

use crate::limits::REPORTED_NAMES_MAX;
use crate::message::{self, value};
use crate::model::{
    Address, AddressType, Endpoint, EndpointPort, HubSlice, PortNumber, ServicePort, SessionAffinity, SliceContent,
    TargetPort,
};
use crate::names;
use crate::ranges::{self, IpNet};
use crate::reasons::Reason;
use crate::work;
use own::{OwnAddresses, OwnRanges};
use special::Special;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Content of a distributed slice after validation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Admitted<'a> {
    /// Content to import. Borrowed from the distributed slice if all parts of the slice are imported.
    pub(crate) content: Cow<'a, SliceContent>,
    pub(crate) not_imported: NotImported,
}

/// Malformed or forbidden parts of a distributed slice, which are not imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NotImported {
    addresses: Vec<(Address, Forbidden)>,
    ports: Vec<EndpointPort>,
}

/// Reason why an address is not imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forbidden {
    Special(Special),
    NoAddress,
    OutOfRange,
    Own,
}

impl Forbidden {
    fn text(self) -> &'static str {
        match self {
            Self::Special(special) => special.text(),
            Self::NoAddress => "no address of the slice's type",
            Self::OutOfRange => "outside the ranges that --source-ranges declares for that cluster",
            Self::Own => "an address of the importing cluster itself",
        }
    }
}

/// True if content that was validated has an IPv6 address.
pub(crate) fn has_ipv6(admitted: &SliceContent) -> bool {
    let is_any_fit = admitted.endpoints.iter().chain(&admitted.draining).next().is_some();
    admitted.address_type == AddressType::IPv6 && is_any_fit
}

/// Knowledge of an importing cluster about the addresses of one exporting cluster's slices.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Source<'a> {
    /// Ranges outside of which no address is imported.
    pub(crate) ranges: Option<&'a [IpNet]>,
    /// Addresses of the importing cluster itself, which are not imported. `None` for slices that come back to their
    /// exporter.
    pub(crate) own: Option<(&'a OwnAddresses, &'a OwnRanges)>,
}

/// Validates the content of a slice.
pub(crate) fn admit<'a>(content: &'a SliceContent, source: Source<'_>) -> Admitted<'a> {
    let rules = Rules { family: &content.address_type, source };
    let fits = |endpoint: &Endpoint| {
        work::step();
        endpoint.zone.as_deref().is_none_or(names::is_label_value)
            && endpoint.hostname.as_deref().is_none_or(names::is_dns_1123_label)
            && endpoint.addresses.iter().all(|address| rules.forbidden(address).is_none())
    };
    let all = || content.endpoints.iter().chain(&content.draining);
    if all().all(fits) && content.ports.iter().all(is_fit) {
        return Admitted { content: Cow::Borrowed(content), not_imported: NotImported::default() };
    }
    let mut not_imported = NotImported::default();
    let mut of =
        |list: &[Endpoint]| list.iter().filter_map(|endpoint| rules.endpoint(endpoint, &mut not_imported)).collect();
    let (endpoints, draining) = (of(&content.endpoints), of(&content.draining));
    let (ports, unfit) = content.ports.iter().cloned().partition(is_fit);
    not_imported.ports = unfit;
    let address_type = content.address_type.clone();
    Admitted { content: Cow::Owned(SliceContent { address_type, endpoints, draining, ports }), not_imported }
}

/// Returns the reason why importers leave out an address of a slice, such as `loopback`; `None` if they import it.
/// Ranges that an importer declares, and its own addresses, are not known here.
pub fn forbidden(address: &Address, family: &AddressType) -> Option<&'static str> {
    Rules { family, source: Source::default() }.forbidden(address).map(Forbidden::text)
}

/// True if one of the ranges contains the address.
pub(crate) fn is_within(ranges: &[IpNet], address: &Address) -> bool {
    address.ip().is_some_and(|address| ranges.iter().any(|range| ranges::contains(range, address)))
}

/// Rules for the addresses of one slice.
#[derive(Clone, Copy)]
struct Rules<'a> {
    family: &'a AddressType,
    source: Source<'a>,
}

impl Rules<'_> {
    /// Returns the reason why an address is not imported; `None` if the address is imported. Addresses with zone ids or
    /// leading zeros, and IPv4-mapped IPv6 addresses, are forbidden.
    fn forbidden(self, address: &Address) -> Option<Forbidden> {
        let address = address.ip().filter(|address| match self.family {
            AddressType::IPv4 => address.is_ipv4(),
            AddressType::IPv6 => address.to_canonical().is_ipv6(),
            AddressType::Other(_) => false,
        });
        let Some(address) = address else { return Some(Forbidden::NoAddress) };
        let declared = self.source.ranges.map(|ranges| ranges.iter().any(|range| ranges::contains(range, address)));
        match special::of(address) {
            Some(Special::Reserved) if declared == Some(true) => None,
            Some(special) => Some(Forbidden::Special(special)),
            None if declared == Some(false) => Some(Forbidden::OutOfRange),
            None => self.source.own.filter(|(own, ranges)| own.contains(ranges, address)).map(|_| Forbidden::Own),
        }
    }

    /// Returns an endpoint without its forbidden addresses and malformed fields; `None` if all addresses are forbidden.
    fn endpoint(self, endpoint: &Endpoint, not_imported: &mut NotImported) -> Option<Endpoint> {
        let mut admitted = endpoint.clone();
        admitted.addresses.retain(|address| {
            let forbidden = self.forbidden(address);
            not_imported.addresses.extend(forbidden.map(|forbidden| (address.clone(), forbidden)));
            forbidden.is_none()
        });
        admitted.hostname = admitted.hostname.filter(|hostname| names::is_dns_1123_label(hostname));
        admitted.zone = admitted.zone.filter(|zone| names::is_label_value(zone));
        (!admitted.addresses.is_empty()).then_some(admitted)
    }
}

/// True if a port of a slice is well-formed, so that kube-proxy can use it.
fn is_fit(port: &EndpointPort) -> bool {
    is_fit_port(&port.name, &port.protocol, port.port, port.app_protocol.as_deref())
}

/// Returns the first malformed port of a ServiceImport; `None` if all ports are well-formed.
pub(crate) fn unfit_port(ports: &[ServicePort]) -> Option<&ServicePort> {
    let is_fit = |port: &&ServicePort| is_fit_service_port(port) && port.target_port.as_ref().is_none_or(is_fit_target);
    ports.iter().find(|port| !is_fit(port))
}

/// True if a port is well-formed, apart from its target port.
pub(crate) fn is_fit_service_port(port: &ServicePort) -> bool {
    is_fit_port(&port.name, &port.protocol, Some(port.port), port.app_protocol.as_deref())
}

fn is_fit_target(target: &TargetPort) -> bool {
    match target {
        TargetPort::Number(number) => number.valid().is_some(),
        TargetPort::Name(name) => names::is_port_name(name),
    }
}

/// Returns the session affinity of a ServiceImport, or [`SessionAffinity::None`] if the timeout is not valid for a
/// Service.
pub(crate) fn fit_affinity(affinity: SessionAffinity) -> SessionAffinity {
    match affinity {
        SessionAffinity::ClientIp { timeout_seconds } if !(1..=86_400).contains(&timeout_seconds) => {
            SessionAffinity::None
        }
        fit => fit,
    }
}

fn is_fit_port(name: &str, protocol: &str, port: Option<PortNumber>, app_protocol: Option<&str>) -> bool {
    (name.is_empty() || names::is_dns_1123_label(name))
        && matches!(protocol, "TCP" | "UDP" | "SCTP")
        && port.is_none_or(|port| port.valid().is_some())
        && app_protocol.is_none_or(names::is_qualified_name)
}

/// No part at all.
pub(crate) static NOTHING: NotImported = NotImported { addresses: Vec::new(), ports: Vec::new() };

impl NotImported {
    pub(crate) fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.ports.is_empty()
    }

    /// Returns the reason of the Event about the parts that are not imported.
    pub(crate) fn reason(&self) -> Reason {
        if self.addresses.is_empty() { Reason::PortRefused } else { Reason::AddressRefused }
    }

    /// Returns the message for users: the parts that are not imported, the exporting cluster, and the next step.
    pub(crate) fn message(&self, distributed: &HubSlice) -> String {
        let addresses = self
            .addresses
            .iter()
            .map(|(address, forbidden)| format!("address {} ({})", value(&address.to_string()), forbidden.text()));
        let ports = self.ports.iter().map(|port| {
            let number = port.port.map_or_else(String::new, |number| format!(" {number}"));
            format!("port {:?}{number}/{} (not a port)", value(&port.name), value(&port.protocol))
        });
        let all: Vec<String> = addresses.chain(ports).collect();
        let mut list = all[..all.len().min(REPORTED_NAMES_MAX)].join(", ");
        if all.len() > REPORTED_NAMES_MAX {
            let _ = write!(list, " and {} more", all.len() - REPORTED_NAMES_MAX);
        }
        let reference = &distributed.spec.reference;
        let (source, cluster) = (message::name(&reference.source), value(&reference.cluster));
        let undeclared = self.addresses.iter().any(|(_, forbidden)| *forbidden == Forbidden::OutOfRange);
        let or = if undeclared { ", or declare the ranges of its endpoints with --source-ranges" } else { "" };
        format!(
            "EndpointSlice {source} of cluster {cluster} has values that are not imported: {list}. Correct the slice in \
             cluster {cluster}{or}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(family: AddressType, addresses: &[&[&str]]) -> SliceContent {
        let endpoint = |addresses: &&[&str]| Endpoint {
            addresses: addresses.iter().map(|address| (*address).into()).collect(),
            ..Endpoint::default()
        };
        let endpoints = addresses.iter().map(endpoint).collect();
        SliceContent { address_type: family, endpoints, draining: Vec::new(), ports: vec![port("http", Some(80))] }
    }

    fn port(name: &str, number: Option<i32>) -> EndpointPort {
        EndpointPort {
            name: name.into(),
            protocol: "TCP".into(),
            port: number.map(PortNumber::from),
            app_protocol: None,
        }
    }

    fn not_imported(family: AddressType, address: &str, ranges: Option<&[IpNet]>) -> Option<&'static str> {
        Rules { family: &family, source: Source { ranges, ..Source::default() } }
            .forbidden(&address.into())
            .map(Forbidden::text)
    }

    /// Rule T20: A distributed slice (EndpointSliceImport) has loopback, link-local, multicast, broadcast or
    /// unspecified addresses, or addresses of another address type than the slice
    /// Then: The importing member agent leaves out these addresses, in ready and in draining endpoints. If all
    /// addresses of an endpoint are left out, the agent leaves out the endpoint too
    #[test]
    fn addresses_that_no_other_cluster_can_have_are_not_imported() {
        use AddressType::{IPv4, IPv6};
        let no_address = "no address of the slice's type";
        let table = [
            (IPv4, "10.0.0.1", None),
            (IPv4, "203.0.113.9", None),
            (IPv4, "127.0.0.1", Some("loopback")),
            (IPv4, "127.255.1.2", Some("loopback")),
            (IPv4, "169.254.169.254", Some("link-local")),
            (IPv4, "224.0.0.1", Some("multicast or broadcast")),
            (IPv4, "239.1.2.3", Some("multicast or broadcast")),
            (IPv4, "255.255.255.255", Some("multicast or broadcast")),
            (IPv4, "0.0.0.0", Some("unspecified")),
            (IPv4, "0.1.2.3", Some("unspecified")),
            (IPv4, "fd00::1", Some(no_address)),
            (IPv4, "010.0.0.1", Some(no_address)),
            (IPv4, "10.0.0.1/32", Some(no_address)),
            (IPv4, "10.0.0", Some(no_address)),
            (IPv4, "localhost", Some(no_address)),
            (IPv4, "", Some(no_address)),
            (IPv6, "fd00::1", None),
            (IPv6, "::1", Some("loopback")),
            (IPv6, "fe80::1", Some("link-local")),
            (IPv6, "febf::1", Some("link-local")),
            (IPv6, "ff02::1", Some("multicast or broadcast")),
            (IPv6, "::", Some("unspecified")),
            (IPv6, "10.0.0.1", Some(no_address)),
            (IPv6, "::ffff:127.0.0.1", Some(no_address)),
            (IPv6, "::ffff:7f00:1", Some(no_address)),
            (IPv6, "::ffff:10.0.0.1", Some(no_address)),
            (IPv6, "fe80::1%eth0", Some(no_address)),
            (AddressType::Other("FQDN".into()), "10.0.0.1", Some(no_address)),
        ];
        for (family, address, expected) in table {
            assert_eq!(not_imported(family.clone(), address, None), expected, "{address} in a slice of {family:?}");
        }
    }

    /// Rule T60: A distributed slice (EndpointSliceImport) has the address of a service of a cloud provider, such as
    /// its metadata service, a site-local address, or an address in 240.0.0.0/4
    /// Then: The importing member agent leaves out the address. It imports an address in 240.0.0.0/4 only if
    /// `--source-ranges` declares ranges of the exporting cluster that contain the address, because some clusters use
    /// this range for pods. A declared range does not allow any of the other addresses
    #[test]
    fn services_of_cloud_providers_are_not_imported() {
        use AddressType::{IPv4, IPv6};
        let provider = Some("a service of a cloud provider");
        let table = [
            (IPv4, "168.63.129.15", None),
            (IPv4, "168.63.129.16", provider), // Azure: https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
            (IPv4, "168.63.129.17", None),
            (IPv4, "100.100.100.200", provider), // Alibaba Cloud
            (IPv4, "100.100.100.201", None),
            (IPv4, "192.0.0.192", provider), // Oracle Cloud
            (IPv4, "192.0.0.193", None),
            (IPv4, "169.254.170.2", Some("link-local")), // AWS, credentials of tasks
            (IPv4, "169.254.170.23", Some("link-local")), // AWS, credentials of pods
            (IPv4, "169.254.0.23", Some("link-local")),  // Tencent Cloud
            (IPv4, "169.254.42.42", Some("link-local")), // Scaleway
            (IPv6, "fd00:ec2::254", provider),           // AWS, metadata
            (IPv6, "fd00:ec2::23", provider),            // AWS, credentials of pods
            (IPv6, "fd00:ec1:ffff::254", None),
            (IPv6, "fd00:ec3::254", None),
            (IPv6, "fd20:ce::254", provider), // Google Cloud
            (IPv6, "fd20:ce::255", None),
            (IPv6, "fd00:c1::a9fe:a9fe", provider),        // Oracle Cloud
            (IPv6, "fd00:100::100:200", provider),         // Alibaba Cloud
            (IPv6, "fd00:42::42", provider),               // Scaleway
            (IPv6, "fd00:a9fe:a9fe::1", provider),         // Akamai (Linode)
            (IPv6, "fe80::a9fe:a9fe", Some("link-local")), // OpenStack
        ];
        for (family, address, expected) in table {
            assert_eq!(not_imported(family.clone(), address, None), expected, "{address}");
            let everything = ["0.0.0.0/0", "::/0"].map(|range| ranges::parse(range).expect("a range"));
            assert_eq!(not_imported(family, address, Some(&everything)), expected, "{address}: a range allows none");
        }
    }

    #[test]
    fn the_reason_of_a_forbidden_address_is_known_without_an_importer() {
        let reason = |address: &str| forbidden(&address.into(), &AddressType::IPv4);
        assert_eq!((reason("127.0.0.1"), reason("10.0.0.1")), (Some("loopback"), None));
    }

    /// Also rule T20.
    #[test]
    fn an_endpoint_keeps_what_fits_beside_what_does_not() {
        let plain = content(AddressType::IPv4, &[&["10.0.0.1"]]).endpoints.remove(0);
        let endpoint = |hostname: &str, zone: &str| Endpoint {
            hostname: Some(hostname.into()),
            zone: Some(zone.into()),
            ..plain.clone()
        };
        let slice = |endpoints| SliceContent { endpoints, ..content(AddressType::IPv4, &[]) };
        let mut without = endpoint("-", "-");
        (without.hostname, without.zone) = (None, None);
        let source = slice(vec![endpoint("db-0", "zone-1"), endpoint("-", "-")]);
        let admitted = admit(&source, Source::default());
        assert_eq!(*admitted.content, slice(vec![endpoint("db-0", "zone-1"), without]));
    }

    /// Also rule T60.
    #[test]
    fn reserved_addresses_are_imported_only_if_ranges_declare_them() {
        let undeclared = Some("in 240.0.0.0/4, which --source-ranges does not declare for that cluster");
        let ranges = ["10.0.0.0/8", "240.10.0.0/16"].map(|range| ranges::parse(range).expect("a range"));
        let table = [
            ("240.0.0.1", undeclared, undeclared),
            ("240.10.0.1", undeclared, None),
            ("255.255.255.254", undeclared, undeclared),
            ("255.255.255.255", Some("multicast or broadcast"), Some("multicast or broadcast")),
        ];
        for (address, without, with) in table {
            assert_eq!(not_imported(AddressType::IPv4, address, None), without, "{address}");
            assert_eq!(not_imported(AddressType::IPv4, address, Some(&ranges)), with, "{address}");
        }
    }

    /// Rule T61: A distributed slice has an IPv6 address that carries an IPv4 address
    /// Then: For an address in 64:ff9b::/96 (NAT64), the rules for IPv4 addresses apply to the carried address. The
    /// importing member agent leaves out all other forms: IPv4-mapped, IPv4-compatible, IPv4-translated, 6to4, Teredo,
    /// and NAT64 in 64:ff9b:1::/48
    #[test]
    fn ipv6_addresses_that_carry_ipv4_addresses_are_judged_or_not_imported() {
        let carries = Some("an IPv6 address that carries an IPv4 address");
        let table = [
            ("64:ff9b::203.0.113.9", None),
            ("64:ff9b::10.0.0.1", None),
            ("64:ff9b::169.254.169.254", Some("link-local")),
            ("64:ff9b::7f00:1", Some("loopback")),
            ("64:ff9b::168.63.129.16", Some("a service of a cloud provider")),
            ("64:ff9b::1:203.0.113.9", None), // not the well-known prefix
            ("64:ff9b:1::203.0.113.9", carries),
            ("64:ff9b:1:ffff::1", carries),
            ("64:ff9b:2::1", None),
            ("::203.0.113.9", carries),
            ("::127.0.0.1", carries),
            ("::1:0:0:1", None),
            ("::ffff:0:127.0.0.1", carries),
            ("2002:7f00:1::1", carries),
            ("2002:cb00:7109::1", carries),
            ("2003::1", None),
            ("2001:0:7f00:1::1", carries),
            ("2001:1::1", None),
            ("2001:db8::1", None),
            ("fec0::1", Some("site-local")),
            ("feff::1", Some("site-local")),
            ("fe00::1", None),
        ];
        for (address, expected) in table {
            assert_eq!(not_imported(AddressType::IPv6, address, None), expected, "{address}");
        }
    }

    /// Rule T21: `--source-ranges` of the importing member agent has address ranges for the exporting cluster of a
    /// slice
    /// Then: The importing member agent leaves out the addresses outside of these address ranges
    #[test]
    fn addresses_outside_declared_ranges_are_not_imported() {
        let ranges = ["10.1.0.0/16", "fd00:1::/32"].map(|range| ranges::parse(range).expect("a range"));
        let outside = Some("outside the ranges that --source-ranges declares for that cluster");
        let table = [
            (AddressType::IPv4, "10.1.2.3", None),
            (AddressType::IPv4, "10.2.2.3", outside),
            (AddressType::IPv6, "fd00:1::7", None),
            (AddressType::IPv6, "fd00:2::7", outside),
            (AddressType::IPv4, "127.0.0.1", Some("loopback")),
        ];
        for (family, address, expected) in table {
            assert_eq!(not_imported(family, address, Some(&ranges)), expected, "{address}");
        }
        assert_eq!(not_imported(AddressType::IPv4, "10.1.2.3", Some(&[])), outside, "none is declared");
    }

    /// Also rule T20.
    #[test]
    fn an_endpoint_goes_with_its_last_address_ready_or_draining() {
        let mut input = content(AddressType::IPv4, &[&["10.0.0.1", "127.0.0.1"], &["0.0.0.0"], &["10.0.0.2"]]);
        input.draining = content(AddressType::IPv4, &[&["224.0.0.1"], &["10.0.0.3"]]).endpoints;
        let admitted = admit(&input, Source::default());
        let mut expected = content(AddressType::IPv4, &[&["10.0.0.1"], &["10.0.0.2"]]);
        expected.draining = content(AddressType::IPv4, &[&["10.0.0.3"]]).endpoints;
        assert_eq!(*admitted.content, expected);
        let not_imported: Vec<String> =
            admitted.not_imported.addresses.iter().map(|(address, _)| address.to_string()).collect();
        assert_eq!(not_imported, ["127.0.0.1", "0.0.0.0", "224.0.0.1"]);
    }

    #[test]
    fn what_is_fit_costs_no_copy() {
        let mut input = content(AddressType::IPv4, &[&["10.0.0.1"], &["10.0.0.2"]]);
        input.endpoints[0].hostname = Some("db-0".into());
        input.endpoints[1].zone = Some("eu-west-1a".into());
        let admitted = admit(&input, Source::default());
        assert!(matches!(admitted.content, Cow::Borrowed(_)) && admitted.not_imported.is_empty());
    }

    /// Rule T25: A host name or a zone of an endpoint is no DNS label
    /// Then: The importing member agent imports the endpoint without this host name or zone
    #[test]
    fn host_names_and_zones_that_are_none_are_left_out() {
        let labels = [("db-0", true), ("Db_0", false), ("", false), ("a.b", false), ("-a", false)];
        for (hostname, fit) in labels {
            let mut input = content(AddressType::IPv4, &[&["10.0.0.1"]]);
            input.endpoints[0].hostname = Some(hostname.into());
            let admitted = admit(&input, Source::default());
            assert_eq!(admitted.content.endpoints[0].hostname.is_some(), fit, "{hostname:?}");
            assert!(admitted.not_imported.is_empty(), "the endpoint itself is imported");
        }
        let long = "z".repeat(64);
        for (zone, fit) in [("eu-west-1a", true), ("Zone_1.b", true), (&*long, false), ("a b", false), ("-a", false)] {
            let mut input = content(AddressType::IPv4, &[&["10.0.0.1"], &["10.0.0.2"]]);
            input.endpoints.iter_mut().for_each(|endpoint| endpoint.zone = Some(zone.into()));
            let admitted = admit(&input, Source::default());
            assert!(admitted.content.endpoints.iter().all(|endpoint| endpoint.zone.is_some() == fit), "{zone:?}");
        }
    }

    /// Rule T23: A distributed slice (EndpointSliceImport) has malformed ports
    /// Then: The importing member agent leaves out the malformed ports
    #[test]
    fn ports_that_are_none_are_left_out() {
        let with = |change: &dyn Fn(&mut EndpointPort)| {
            let mut port = port("http", Some(80));
            change(&mut port);
            port
        };
        let table = [
            (with(&|_| {}), true),
            (with(&|port| port.name = "".into()), true),
            (with(&|port| port.port = None), true),
            (with(&|port| port.port = Some(65_535.into())), true),
            (with(&|port| port.app_protocol = Some("kubernetes.io/h2c".into())), true),
            (with(&|port| port.port = Some(0.into())), false),
            (with(&|port| port.port = Some((-5).into())), false),
            (with(&|port| port.port = Some(65_536.into())), false),
            (with(&|port| port.name = "a -j ACCEPT".into()), false),
            (with(&|port| port.protocol = "ICMP".into()), false),
            (with(&|port| port.app_protocol = Some("two words".into())), false),
            (with(&|port| port.app_protocol = Some("/h2c".into())), false),
        ];
        for (port, fit) in table {
            let mut input = content(AddressType::IPv4, &[&["10.0.0.1"]]);
            input.ports.push(port.clone());
            let admitted = admit(&input, Source::default());
            assert_eq!(
                (admitted.content.ports.len(), admitted.not_imported.is_empty()),
                (1 + usize::from(fit), fit),
                "{port:?}"
            );
            let of_service = ServicePort {
                name: port.name.clone(),
                protocol: port.protocol.clone(),
                app_protocol: port.app_protocol.clone(),
                port: port.port.unwrap_or(80.into()),
                target_port: None,
            };
            assert_eq!(unfit_port(&[of_service]).is_none(), fit, "{port:?}");
        }
    }
}
