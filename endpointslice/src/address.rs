//! Conversion of pod addresses to the form that slices need: canonical, of a known family, and valid for the API.

use crate::model::AddressType;
use crate::text::Text;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Address family that slices are made for.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Returns the address type that slices of this family have.
    #[must_use]
    pub const fn address_type(self) -> AddressType {
        match self {
            Self::V4 => AddressType::IPv4,
            Self::V6 => AddressType::IPv6,
        }
    }
}

/// Reason why an address is not valid in an EndpointSlice.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum BadAddress {
    /// The text is not an IP address.
    NotAnAddress,
    /// The address is unspecified, loopback, link-local or multicast. The API rejects a slice with such an address.
    Forbidden,
}

/// Returns the family and the canonical form of an address (RFC 5952; an IPv4-mapped IPv6 address becomes IPv4). Nearly
/// all texts are canonical already; such a text is returned without a copy.
///
/// # Errors
/// Returns the reason why the address is not valid in an EndpointSlice.
pub fn canonical(text: &Text) -> Result<(Family, Text), BadAddress> {
    // The standard library parses only canonical IPv4 addresses, so a text that it parses is canonical already.
    if let Ok(address) = text.parse() {
        return if is_forbidden_v4(address) { Err(BadAddress::Forbidden) } else { Ok((Family::V4, text.clone())) };
    }
    match parse(text).ok_or(BadAddress::NotAnAddress)? {
        IpAddr::V4(address) if is_forbidden_v4(address) => Err(BadAddress::Forbidden),
        IpAddr::V6(address) if is_forbidden_v6(address) => Err(BadAddress::Forbidden),
        IpAddr::V4(address) => Ok((Family::V4, address.to_string().into())),
        IpAddr::V6(address) => Ok((Family::V6, printed(address, text))),
    }
}

/// Returns the address family of `text`, or `None` if it is not an address.
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

/// Parses an IPv4 address with leading zeros (`010.001.002.003`) as decimal, like Kubernetes. Returns `None` if the
/// text is not such an address. Old network plugins report such addresses.
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

/// Returns `address` as text. Returns `text` without an allocation if `text` is canonical already.
fn printed(address: Ipv6Addr, text: &Text) -> Text {
    let mut rest = Matching(text);
    if write!(rest, "{address}").is_ok() && rest.0.is_empty() {
        return text.clone();
    }
    address.to_string().into()
}

/// Writer that compares the written characters with a text, and fails at the first difference.
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

    fn check(input: &str, expected: Result<(Family, &str), BadAddress>) {
        let found = canonical(&input.into());
        assert_eq!(
            found.as_ref().map(|(family, text)| (*family, text.as_str())),
            expected.as_ref().map(|it| *it),
            "{input}"
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
    fn other_texts_are_not_addresses() {
        for text in ["", "<nil>", "1.2.3", "1.2.3.256", "1.2.3.4.5", "a.b.c.d", "1..2.3", "fe80::1%eth0", "10.0.0.1/24"]
        {
            check(text, Err(BadAddress::NotAnAddress));
        }
    }

    /// Rule Z8: An address of a pod is malformed, or the API forbids the address in slices
    /// Then: The library leaves out only the malformed or forbidden address. The other addresses of the pod stay in the
    /// slices
    #[test]
    fn addresses_that_the_api_rejects_in_slices_are_forbidden() {
        for text in ["0.0.0.0", "127.0.0.1", "169.254.1.1", "224.0.0.1", "::", "::1", "fe80::1", "ff02::1"] {
            check(text, Err(BadAddress::Forbidden));
        }
        check("::ffff:127.0.0.1", Err(BadAddress::Forbidden));
    }

    #[test]
    fn an_address_in_its_one_form_is_shared_not_copied() {
        let input = Text::from("2001:db8::1");
        let (_, found) = canonical(&input).unwrap();
        assert!(std::ptr::eq(input.as_str(), found.as_str()));
    }
}
