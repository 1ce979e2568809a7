//! Address ranges in CIDR notation. An operator can restrict the endpoints of an exporting cluster to such ranges.

pub use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;

/// Ranges of the addresses that a member may export, as the operator of the hub declares them on its member namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SourceRanges {
    /// No ranges are declared, so the member may export any address.
    #[default]
    Any,
    Within(Vec<IpNet>),
    /// The declaration is malformed, for this reason.
    Malformed(String),
}

impl SourceRanges {
    /// Returns the ranges in an annotation, separated by commas. An empty list allows no address.
    pub fn of(annotation: &str) -> Self {
        let ranges = annotation.split(',').map(str::trim).filter(|range| !range.is_empty());
        match ranges.map(parse).collect::<Result<_, RangeError>>() {
            Ok(ranges) => Self::Within(ranges),
            Err(why) => Self::Malformed(why.to_string()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeError {
    /// The text does not start with an IPv4 or IPv6 address.
    Address(String),
    /// The prefix length is missing, or does not fit the address family.
    Length(String),
    /// Bits after the prefix length are set, so the range is ambiguous.
    HostBits {
        /// Range as the user wrote it.
        written: String,
        /// Range that the user probably means.
        range: IpNet,
    },
}

/// Parses a range such as `10.1.0.0/16` or `fd00:1::/32`. Unlike the parser of `ipnet`, this parser rejects leading
/// zeros, and rejects bits that are set after the prefix length.
///
/// # Errors
/// If the text is no address with a prefix length, or has bits set after the prefix length.
pub fn parse(written: &str) -> Result<IpNet, RangeError> {
    let length = || RangeError::Length(written.to_owned());
    let (address, bits) = written.split_once('/').ok_or_else(length)?;
    let address: IpAddr = address.parse().map_err(|_| RangeError::Address(written.to_owned()))?;
    let digits = bits.bytes().all(|byte| byte.is_ascii_digit()); // `parse` also accepts a number with a plus sign
    let bits: u8 = bits.parse().ok().filter(|_| digits).ok_or_else(length)?;
    let range = IpNet::new(address, bits).map_err(|_| length())?;
    if range != range.trunc() {
        return Err(RangeError::HostBits { written: written.to_owned(), range: range.trunc() });
    }
    Ok(range)
}

/// True if the range contains the address. An IPv4-mapped IPv6 address counts as its IPv4 address.
pub fn contains(range: &IpNet, address: IpAddr) -> bool {
    range.contains(&address.to_canonical())
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(written) => write!(f, "{written:?} does not begin with an IPv4 or IPv6 address"),
            Self::Length(written) => write!(
                f,
                "{written:?} does not end in the length of a range: /0 to /32 after an IPv4 address, /0 to /128 after one of \
                 IPv6"
            ),
            Self::HostBits { written, range } => {
                write!(f, "{written:?} has bits set beyond its length: use {range}")
            }
        }
    }
}

impl std::error::Error for RangeError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(written: &str) -> IpNet {
        parse(written).expect(written)
    }

    /// Also rule T21.
    #[test]
    fn a_range_holds_the_addresses_that_share_its_first_bits() {
        let table = [
            ("10.1.0.0/16", "10.1.255.255", true),
            ("10.1.0.0/16", "10.2.0.0", false),
            ("10.1.0.0/17", "10.1.128.0", false),
            ("10.1.2.3/32", "10.1.2.3", true),
            ("10.1.2.3/32", "10.1.2.2", false),
            ("0.0.0.0/0", "255.1.2.3", true),
            ("0.0.0.0/0", "fd00::1", false),
            ("10.1.0.0/16", "::ffff:10.1.2.3", true),
            ("10.1.0.0/16", "::ffff:10.2.2.3", false),
            ("fd00:1::/32", "fd00:1:ffff::1", true),
            ("fd00:1::/32", "fd00:2::1", false),
            ("fd00::1/128", "fd00::1", true),
            ("::/0", "fd00::1", true),
            ("::/0", "10.0.0.1", false),
        ];
        for (written, address, holds) in table {
            assert_eq!(contains(&range(written), address.parse().expect(address)), holds, "{address} in {written}");
        }
    }

    /// Also rule T63.
    #[test]
    fn an_annotation_lists_ranges_allows_nothing_or_is_malformed() {
        let within = |ranges: &[&str]| SourceRanges::Within(ranges.iter().map(|written| range(written)).collect());
        assert_eq!(SourceRanges::of("10.1.0.0/16, fd00:1::/32"), within(&["10.1.0.0/16", "fd00:1::/32"]));
        assert_eq!(SourceRanges::of("10.1.0.0/16,"), within(&["10.1.0.0/16"]));
        assert_eq!(SourceRanges::of(" "), within(&[]));
        let why = "\"10.1.2.3/16\" has bits set beyond its length: use 10.1.0.0/16";
        assert_eq!(SourceRanges::of("10.2.0.0/16,10.1.2.3/16"), SourceRanges::Malformed(why.to_owned()));
    }

    /// Also rule T21.
    #[test]
    fn a_malformed_range_is_rejected_with_the_reason() {
        let table = [
            ("10.0.0.0", "\"10.0.0.0\" does not end in the length of a range"),
            ("10.0.0.0/33", "does not end in the length"),
            ("fd00::/129", "does not end in the length"),
            ("10.0.0.0/", "does not end in the length"),
            ("10.0.0.0/+8", "does not end in the length"),
            ("10.0.0.0/8/8", "does not end in the length"),
            ("ten/8", "\"ten/8\" does not begin with an IPv4 or IPv6 address"),
            ("/8", "does not begin with"),
            ("010.0.0.0/8", "does not begin with"),
            ("fe80::1%eth0/64", "does not begin with"),
            ("10.1.2.3/16", "\"10.1.2.3/16\" has bits set beyond its length: use 10.1.0.0/16"),
            ("fd00::1/64", "use fd00::/64"),
        ];
        for (written, why) in table {
            let error = parse(written).expect_err(written).to_string();
            assert!(error.contains(why), "{written}: {error}");
        }
        assert_eq!(range("fd00:1::/32").to_string(), "fd00:1::/32");
    }
}
