//! Address ranges in which no other cluster can have an endpoint, and the services of cloud providers that each machine
//! reaches under the same address.

use ipnet::{Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Reason why no endpoint of another cluster has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Unspecified,
    Loopback,
    LinkLocal,
    SiteLocal,
    Multicast,
    /// Class E. Some networks use these addresses for pods.
    Reserved,
    /// A service of a cloud provider, such as the metadata of a virtual machine.
    Provider,
    /// An IPv6 address that stands for an IPv4 address in a way that no cluster needs.
    CarriesIpv4,
}

impl Special {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::SiteLocal => "site-local",
            Self::Multicast => "multicast or broadcast",
            Self::Reserved => "in 240.0.0.0/4, which --source-ranges does not declare for that cluster",
            Self::Provider => "a service of a cloud provider",
            Self::CarriesIpv4 => "an IPv6 address that carries an IPv4 address",
        }
    }
}

const fn v4([a, b, c, d]: [u8; 4], length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

/// Returns the range whose first address has these first and last groups.
const fn v6([a, b, c, d]: [u16; 4], [e, f, g, h]: [u16; 4], length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), length)
}

/// IPv4 ranges, with the standard or the provider that defines them. The first range that contains an address decides.
const IPV4: [(Ipv4Net, Special); 9] = [
    (v4([0, 0, 0, 0], 8), Special::Unspecified),        // RFC 791, "this network"
    (v4([127, 0, 0, 0], 8), Special::Loopback),         // RFC 1122
    (v4([169, 254, 0, 0], 16), Special::LinkLocal),     // RFC 3927; metadata and DNS of most cloud providers
    (v4([224, 0, 0, 0], 4), Special::Multicast),        // RFC 5771
    (v4([255, 255, 255, 255], 32), Special::Multicast), // RFC 919
    (v4([240, 0, 0, 0], 4), Special::Reserved),         // RFC 1112
    (v4([168, 63, 129, 16], 32), Special::Provider),    // Azure, WireServer
    (v4([100, 100, 100, 200], 32), Special::Provider),  // Alibaba Cloud, metadata
    (v4([192, 0, 0, 192], 32), Special::Provider),      // Oracle Cloud, metadata of Compute Classic
];

/// IPv6 ranges, in the same form.
const IPV6: [(Ipv6Net, Special); 16] = [
    (v6([0; 4], [0, 0, 0, 0], 128), Special::Unspecified),   // RFC 4291
    (v6([0; 4], [0, 0, 0, 1], 128), Special::Loopback),      // RFC 4291
    (v6([0xfe80, 0, 0, 0], [0; 4], 10), Special::LinkLocal), // RFC 4291; metadata of OpenStack
    (v6([0xfec0, 0, 0, 0], [0; 4], 10), Special::SiteLocal), // RFC 3879, deprecated
    (v6([0xff00, 0, 0, 0], [0; 4], 8), Special::Multicast),  // RFC 4291
    (v6([0; 4], [0; 4], 96), Special::CarriesIpv4),          // RFC 4291, IPv4-compatible, deprecated
    (v6([0; 4], [0xffff, 0, 0, 0], 96), Special::CarriesIpv4), // RFC 2765, IPv4-translated
    (v6([0x64, 0xff9b, 1, 0], [0; 4], 48), Special::CarriesIpv4), // RFC 8215, NAT64 of one network only
    (v6([0x2001, 0, 0, 0], [0; 4], 32), Special::CarriesIpv4), // RFC 4380, Teredo
    (v6([0x2002, 0, 0, 0], [0; 4], 16), Special::CarriesIpv4), // RFC 3056, 6to4
    (v6([0xfd00, 0xec2, 0, 0], [0; 4], 32), Special::Provider), // AWS: metadata, DNS, time, credentials of pods
    (v6([0xfd20, 0xce, 0, 0], [0, 0, 0, 0x254], 128), Special::Provider), // Google Cloud, metadata
    (v6([0xfd00, 0xc1, 0, 0], [0, 0, 0xa9fe, 0xa9fe], 128), Special::Provider), // Oracle Cloud, metadata
    (v6([0xfd00, 0x100, 0, 0], [0, 0, 0x100, 0x200], 128), Special::Provider), // Alibaba Cloud, metadata
    (v6([0xfd00, 0x42, 0, 0], [0, 0, 0, 0x42], 128), Special::Provider), // Scaleway, metadata
    (v6([0xfd00, 0xa9fe, 0xa9fe, 0], [0, 0, 0, 1], 128), Special::Provider), // Akamai (Linode), metadata
];

/// Returns the reason why no endpoint of another cluster has this address; `None` if an endpoint can have it.
pub(super) fn of(address: IpAddr) -> Option<Special> {
    match translated(address) {
        IpAddr::V4(address) => first(&IPV4, |range| range.contains(&address)),
        IpAddr::V6(address) => first(&IPV6, |range| range.contains(&address)),
    }
}

fn first<R>(ranges: &[(R, Special)], contains: impl Fn(&R) -> bool) -> Option<Special> {
    ranges.iter().find(|(range, _)| contains(range)).map(|(_, special)| *special)
}

/// Returns the address to which NAT64 translates an address with the well-known prefix 64:ff9b::/96 (RFC 6052).
/// Clusters with IPv6 only reach IPv4 endpoints under such addresses, so the rules for IPv4 addresses apply.
pub(crate) fn translated(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else { return address };
    match six.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => {
            let [.., a, b, c, d] = six.octets();
            IpAddr::from([a, b, c, d])
        }
        _ => address,
    }
}
