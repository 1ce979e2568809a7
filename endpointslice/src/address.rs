//! Addresses of pods as slices have them: of one family, in one form, and such that the API takes them.

use crate::model::AddressType;
use crate::text::Text;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A family of addresses that slices are made for.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The address type of its slices.
    #[must_use]
    pub const fn address_type(self) -> AddressType {
        match self {
            Self::V4 => AddressType::IPv4,
            Self::V6 => AddressType::IPv6,
        }
    }
}

/// Why an address cannot stand in a slice.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum BadAddress {
    /// It is no address.
    Unreadable,
    /// The API refuses addresses of this range in slices, and would refuse the whole slice: unspecified, loopback,
    /// link-local and multicast ones.
    Forbidden,
}

/// The family of `text` and its one form (RFC 5952; an IPv4 address in IPv6 form is IPv4). The text itself where it has
/// that form, as nearly every one does.
///
/// # Errors
/// Why it cannot stand in a slice.
pub fn canonical(text: &Text) -> Result<(Family, Text), BadAddress> {
    // The standard library reads IPv4 addresses in their one form only.
    if let Ok(address) = text.parse() {
        return if is_forbidden_v4(address) { Err(BadAddress::Forbidden) } else { Ok((Family::V4, text.clone())) };
    }
    match parse(text).ok_or(BadAddress::Unreadable)? {
        IpAddr::V4(address) if is_forbidden_v4(address) => Err(BadAddress::Forbidden),
        IpAddr::V6(address) if is_forbidden_v6(address) => Err(BadAddress::Forbidden),
        IpAddr::V4(address) => Ok((Family::V4, address.to_string().into())),
        IpAddr::V6(address) => Ok((Family::V6, printed(address, text))),
    }
}

/// The family of `text`, if it is an address.
#[must_use]
pub fn family(text: &str) -> Option<Family> {
    Some(if parse(text)?.is_ipv4() { Family::V4 } else { Family::V6 })
}

fn parse(text: &str) -> Option<IpAddr> {
    let parsed = text.parse().ok().or_else(|| with_leading_zeros(text).map(IpAddr::V4))?;
    Some(match parsed {
        IpAddr::V6(address) => address.to_ipv4_mapped().map_or(parsed, IpAddr::V4),
        IpAddr::V4(_) => parsed,
    })
}

/// Kubernetes takes `010.001.002.003`, which old network plugins report, and reads it as decimal.
fn with_leading_zeros(text: &str) -> Option<Ipv4Addr> {
    let mut parts = text.split('.');
    let mut octets = [0; 4];
    for octet in &mut octets {
        let digits = parts.next().filter(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        *octet = digits.parse().ok()?;
    }
    parts.next().is_none().then(|| octets.into())
}

fn is_forbidden_v4(address: Ipv4Addr) -> bool {
    address.is_unspecified() || address.is_loopback() || address.is_link_local() || address.is_multicast()
}

fn is_forbidden_v6(address: Ipv6Addr) -> bool {
    address.is_unspecified() || address.is_loopback() || address.is_unicast_link_local() || address.is_multicast()
}

/// `address` as text: `given` where it reads so already, which costs no allocation.
fn printed(address: Ipv6Addr, given: &Text) -> Text {
    let mut rest = Matching(given);
    if write!(rest, "{address}").is_ok() && rest.0.is_empty() {
        return given.clone();
    }
    address.to_string().into()
}

/// Takes what is written off the beginning of a text, and fails where they differ.
struct Matching<'a>(&'a str);

impl std::fmt::Write for Matching<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 = self.0.strip_prefix(text).ok_or(std::fmt::Error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &str, expected: Result<(Family, &str), BadAddress>) {
        let found = canonical(&given.into());
        assert_eq!(
            found.as_ref().map(|(family, text)| (*family, text.as_str())),
            expected.as_ref().map(|it| *it),
            "{given}"
        );
    }

    #[test]
    fn addresses_get_their_one_form() {
        check("10.1.2.3", Ok((Family::V4, "10.1.2.3")));
        check("1234::5678:0000:0000:9abc:def0", Ok((Family::V6, "1234::5678:0:0:9abc:def0")));
        check("2001:DB8:0:0:0:0:0:1", Ok((Family::V6, "2001:db8::1")));
        check("::ffff:10.0.0.1", Ok((Family::V4, "10.0.0.1")));
        check("010.001.000.009", Ok((Family::V4, "10.1.0.9")));
    }

    #[test]
    fn what_is_no_address_is_unreadable() {
        for text in ["", "<nil>", "1.2.3", "1.2.3.256", "1.2.3.4.5", "a.b.c.d", "1..2.3", "fe80::1%eth0", "10.0.0.1/24"]
        {
            check(text, Err(BadAddress::Unreadable));
        }
    }

    #[test]
    fn addresses_that_the_api_refuses_in_slices_are_forbidden() {
        for text in ["0.0.0.0", "127.0.0.1", "169.254.1.1", "224.0.0.1", "::", "::1", "fe80::1", "ff02::1"] {
            check(text, Err(BadAddress::Forbidden));
        }
        check("::ffff:127.0.0.1", Err(BadAddress::Forbidden));
    }

    #[test]
    fn an_address_in_its_one_form_is_shared_not_copied() {
        let given = Text::from("2001:db8::1");
        let (_, found) = canonical(&given).unwrap();
        assert!(std::ptr::eq(given.as_str(), found.as_str()));
    }
}
