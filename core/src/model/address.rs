//! Addresses of endpoints.

use std::fmt;
use std::net::IpAddr;

/// Address of an endpoint, parsed once when the object is decoded. When the agent writes the address again, the text is
/// byte for byte the text that was decoded.
///
/// A text that is no IP address is kept too: the importer does not import this address and names the text in an Event.
/// The decoder keeps only a few such texts of a slice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address(Form);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// IP address whose text is canonical, so the text needs no storage.
    Canonical(IpAddr),
    /// IPv6 address whose text is not canonical, such as `FD00::1`. Boxed because such texts are rare.
    Spelled(Box<(IpAddr, Box<str>)>),
    NoAddress(Box<str>),
}

impl Address {
    /// Returns the IP address; `None` if the text is no IP address. A text with a zone id or with leading zeros is no
    /// IP address.
    pub fn ip(&self) -> Option<IpAddr> {
        match &self.0 {
            Form::Canonical(address) => Some(*address),
            Form::Spelled(spelled) => Some(spelled.0),
            Form::NoAddress(_) => None,
        }
    }
}

impl Address {
    /// Returns the number of bytes that the address keeps on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        // An allocation takes up to 32 bytes beside its content.
        match &self.0 {
            Form::Canonical(_) => 0,
            Form::Spelled(spelled) => size_of::<(IpAddr, Box<str>)>() + spelled.1.len() + 64,
            Form::NoAddress(text) => text.len() + 32,
        }
    }
}

impl From<&str> for Address {
    fn from(text: &str) -> Self {
        Self(match text.parse::<IpAddr>() {
            // For IPv4, only the canonical text parses.
            Ok(address) if address.is_ipv4() || address.to_string() == text => Form::Canonical(address),
            Ok(address) => Form::Spelled(Box::new((address, text.into()))),
            Err(_) => Form::NoAddress(text.into()),
        })
    }
}

impl From<String> for Address {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Canonical(address) => address.fmt(f),
            Form::Spelled(spelled) => f.write_str(&spelled.1),
            Form::NoAddress(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_it_was_read() {
        let table = [
            ("10.0.0.1", true),
            ("255.255.255.255", true),
            ("fd00::1", true),
            ("FD00::1", true),
            ("fd00:0::1", true),
            ("fd00:0:0:0:0:0:0:1", true),
            ("::ffff:10.0.0.1", true),
            ("::ffff:a00:1", true),
            ("010.0.0.1", false),
            ("10.0.0.1/32", false),
            ("fe80::1%eth0", false),
            (" 10.0.0.1", false),
            ("localhost", false),
            ("", false),
        ];
        for (text, is_ip) in table {
            let address = Address::from(text);
            assert_eq!((address.to_string().as_str(), address.ip().is_some()), (text, is_ip));
            assert_eq!(address.ip(), text.parse().ok(), "{text}");
        }
    }

    #[test]
    fn a_canonical_address_needs_no_storage_for_its_text() {
        for text in ["10.0.0.1", "fd00::1", "::ffff:10.0.0.1"] {
            assert!(matches!(Address::from(text).0, Form::Canonical(_)), "{text}");
        }
    }

    #[test]
    fn addresses_are_the_same_only_if_their_texts_are() {
        let texts = ["fd00::1", "FD00::1", "10.0.0.1", "::ffff:10.0.0.1"];
        for one in texts {
            for other in texts {
                assert_eq!(Address::from(one) == Address::from(other), one == other, "{one} and {other}");
            }
        }
    }

    /// Limits the memory of an address, because a fleet has many endpoints. A `Box<str>` needs 16 bytes and an
    /// allocation.
    #[test]
    fn an_address_is_small() {
        assert_eq!(size_of::<Address>(), 24);
    }
}
