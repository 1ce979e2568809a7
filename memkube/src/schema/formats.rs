//! String formats. Formats that kube-apiserver does not know or does not check are not checked here either.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Byte,
    Cidr,
    Date,
    DateTime,
    Duration,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Mac,
    Uri,
    Uuid,
}

const ALL: [(&str, Format); 12] = [
    ("byte", Format::Byte),
    ("cidr", Format::Cidr),
    ("date", Format::Date),
    ("date-time", Format::DateTime),
    ("duration", Format::Duration),
    ("email", Format::Email),
    ("hostname", Format::Hostname),
    ("ipv4", Format::Ipv4),
    ("ipv6", Format::Ipv6),
    ("mac", Format::Mac),
    ("uri", Format::Uri),
    ("uuid", Format::Uuid),
];

/// Formats that kube-apiserver accepts without a warning and does not check.
const UNCHECKED: [&str; 20] = [
    "bsonobjectid",
    "creditcard",
    "datetime",
    "double",
    "float",
    "hexcolor",
    "int32",
    "int64",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-long-name",
    "k8s-short-name",
    "password",
    "rgbcolor",
    "ssn",
    "uint32",
    "uint64",
    "uuid3",
    "uuid4",
];

/// True if kube-apiserver accepts a format without a warning.
pub(super) fn is_known(name: &str) -> bool {
    Format::named(name).is_some() || UNCHECKED.contains(&name) || name == "uuid5"
}

impl Format {
    pub(super) fn named(name: &str) -> Option<Self> {
        ALL.iter().find(|(own, _)| *own == name).map(|(_, format)| *format)
    }

    pub(super) fn name(self) -> &'static str {
        ALL.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    pub(super) fn fits(self, text: &str) -> bool {
        match self {
            Self::Byte => STANDARD.decode(text).is_ok(),
            Self::Cidr => is_cidr(text),
            Self::Date => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
            Self::DateTime => is_date_time(text),
            Self::Duration => is_duration(text),
            Self::Email => is_email(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Mac => is_mac(text),
            Self::Uri => is_uri(text),
            Self::Uuid => is_uuid(text),
        }
    }
}

/// True for a time of RFC 3339, with `T` and an offset.
fn is_date_time(text: &str) -> bool {
    let separated = text.as_bytes().get(10).is_some_and(|byte| matches!(byte, b'T' | b't'));
    separated && text.parse::<jiff::Timestamp>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    let canonical = bits.bytes().all(|byte| byte.is_ascii_digit()) && (bits.len() == 1 || !bits.starts_with('0'));
    canonical && bits.parse::<u32>().is_ok_and(|bits| bits <= most)
}

/// True for a duration of Go (`1h5m`) or of ISO 8601 (`P1D`).
fn is_duration(text: &str) -> bool {
    let units = ["ns", "us", "µs", "ms", "s", "m", "h"];
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    unsigned == "0" || is_go_duration(unsigned, &units) || text.parse::<jiff::Span>().is_ok()
}

fn is_go_duration(text: &str, units: &[&str]) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let unit = behind.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit);
        if number.parse::<f64>().is_err() || !units.contains(&unit) {
            return false;
        }
        rest = behind;
    }
    !text.is_empty()
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let plain = |letter: char| !letter.is_whitespace() && !matches!(letter, '<' | '>' | '(' | ')' | ',' | ';' | '"');
    !local.is_empty()
        && !local.contains('@')
        && local.chars().all(plain)
        && !domain.is_empty()
        && domain.chars().all(plain)
}

/// True for labels of letters, digits and dashes, separated by dots. If there is a dot, the last label has at least two letters.
fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    text.len() <= 255 && text.split('.').all(is_label) && (!text.contains('.') || last.len() >= 2)
}

fn is_mac(text: &str) -> bool {
    let octets = |separator: char| {
        let parts: Vec<&str> = text.split(separator).collect();
        let is_octet = |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        matches!(parts.len(), 6 | 8 | 20) && parts.iter().all(is_octet)
    };
    octets(':') || octets('-')
}

/// True for an absolute URI (`https://host`) and for an absolute path (`/path`), as in Go's `url.ParseRequestURI`.
fn is_uri(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    let absolute = text.starts_with('/') || text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme));
    absolute && !text.chars().any(|letter| letter.is_control() || letter == ' ')
}

fn is_uuid(text: &str) -> bool {
    let bare: String = text.chars().filter(|letter| *letter != '-').collect();
    let dashes = text.len() - bare.len();
    bare.len() == 32 && dashes <= 4 && bare.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::{Format, is_known};

    #[test]
    fn texts_fit_their_format_or_do_not() {
        let cases: [(Format, &[&str], &[&str]); 12] = [
            (Format::Byte, &["", "YQ=="], &["a", "YQ"]),
            (Format::Cidr, &["1.2.3.0/24", "fd00::/8"], &["1.2.3.4", "1.2.3.0/33", "1.2.3.0/08", "x/8"]),
            (Format::Date, &["2020-02-29"], &["2020-1-1", "2021-02-29", "2020-01-01T00:00:00Z"]),
            (Format::DateTime, &["2020-01-01T00:00:00.5+02:00", "2020-01-01t00:00:00z"], &["2020-01-01", "", "x"]),
            (Format::Duration, &["1s", "1h5m", "P1D", "-1.5ms"], &["", "x", "5", "1d2"]),
            (Format::Email, &["a@b.c"], &["x", "a@", "@b", "a b@c"]),
            (Format::Hostname, &["a", "a.bc"], &["a_b", "a.b", "-a", ""]),
            (Format::Ipv4, &["1.2.3.4"], &["1.2.3", "::1", "1.2.3.256"]),
            (Format::Ipv6, &["::1"], &["1.2.3.4", "x"]),
            (Format::Mac, &["01:02:03:04:05:06", "01-02-03-04-05-06"], &["x", "01:02:03:04:05"]),
            (Format::Uri, &["http://a", "/a"], &["x", "", "http://a b"]),
            (Format::Uuid, &["123e4567-e89b-12d3-a456-426614174000"], &["x", "123e4567"]),
        ];
        for (format, right, wrong) in cases {
            for text in right {
                assert!(format.fits(text), "{text} is a {}", format.name());
            }
            for text in wrong {
                assert!(!format.fits(text), "{text} is no {}", format.name());
            }
        }
    }

    #[test]
    fn formats_that_are_not_checked_may_be_known() {
        assert!(is_known("int64") && is_known("date-time"));
        assert!(!is_known("ip"));
    }
}
