//! Addresses of endpoints.

use std::fmt;
use std::net::IpAddr;

/// Address of an endpoint, parsed once when the object is decoded. It is written back byte for byte as it was read.
///
/// A text that is no IP address is kept: the hub passes it on unchanged, and the importer rejects it by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address(Form);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// IP address in its canonical text. Needs no allocation.
    Canonical(IpAddr),
    /// IPv6 address in another text, such as `FD00::1`. Boxed because it is rare.
    Spelled(Box<(IpAddr, Box<str>)>),
    NoAddress(Box<str>),
}

impl Address {
    /// Returns the IP address; `None` if the text is none. Zone ids and leading zeros are not part of an IP address.
    pub fn ip(&self) -> Option<IpAddr> {
        match &self.0 {
            Form::Canonical(address) => Some(*address),
            Form::Spelled(spelled) => Some(spelled.0),
            Form::NoAddress(_) => None,
        }
    }
}

impl From<&str> for Address {
    fn from(text: &str) -> Self {
        Self(match text.parse::<IpAddr>() {
            // An IPv4 address has one text only.
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
    fn addresses_are_the_same_only_if_their_texts_are() {
        let texts = ["fd00::1", "FD00::1", "10.0.0.1", "::ffff:10.0.0.1"];
        for one in texts {
            for other in texts {
                assert_eq!(Address::from(one) == Address::from(other), one == other, "{one} and {other}");
            }
        }
    }

    /// A fleet has many endpoints. A `Box<str>` takes 16 bytes and an allocation for each address.
    #[test]
    fn an_address_is_small() {
        assert_eq!(size_of::<Address>(), 24);
    }
}
