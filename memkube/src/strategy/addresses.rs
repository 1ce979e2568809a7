//! Checks of IP addresses and ports that several kinds share.

use crate::object::names;
use crate::status::FieldError;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};

const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// Parses an IP address; `None` if the text is no IP address. As in kube-apiserver, leading zeros are allowed (`010.9.8.7`), and
/// the numbers are decimal.
pub(super) fn parse(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let parts: Vec<u8> = text.split('.').map(decimal).collect::<Option<_>>()?;
    let octets: [u8; 4] = parts.try_into().ok()?;
    Some(IpAddr::V4(Ipv4Addr::from(octets)))
}

fn decimal(part: &str) -> Option<u8> {
    let digits = !part.is_empty() && part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit());
    if digits { part.parse().ok() } else { None }
}

/// Error for a text that is not an IP address.
pub(super) fn no_address(field: &str, text: &str) -> FieldError {
    FieldError::invalid(field, &json!(text), NO_ADDRESS)
}

/// Warning about an address that a later Kubernetes release will reject. `place` is called only if there is a warning, because
/// it formats a path.
pub(super) fn warning(place: &dyn Fn() -> String, text: &str) -> Option<String> {
    let address = parse(text)?;
    let canonical = address.to_string();
    if text.parse::<IpAddr>().is_err() {
        return Some(format!(
            "{}: non-standard IP address {text:?} will be considered invalid in a future Kubernetes release: use \
             {canonical:?}",
            place()
        ));
    }
    let other = text != canonical;
    other.then(|| format!("{}: IPv6 address {text:?} should be in RFC 5952 canonical format ({canonical:?})", place()))
}

/// Returns an error for a special address, such as a loopback address. Such an address cannot be an endpoint.
pub(super) fn special(field: &str, text: &str) -> Option<FieldError> {
    let address = parse(text)?;
    let (link_local, link_local_multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (v6.is_unicast_link_local(), (v6.segments()[0] & 0xFF0F) == 0xFF02),
    };
    let why = if address.is_unspecified() {
        format!("may not be unspecified ({text})")
    } else if address.is_loopback() {
        "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()
    } else if link_local {
        "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()
    } else if link_local_multicast {
        "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()
    } else {
        return None;
    };
    Some(FieldError::invalid(field, &json!(text), &why))
}

/// Returns an error if a port is not between 1 and 65535.
pub(super) fn port_number(field: &str, port: &Value) -> Option<FieldError> {
    let fits = port.as_i64().is_some_and(|port| (1..=65535).contains(&port));
    (!fits).then(|| FieldError::invalid(field, port, "must be between 1 and 65535, inclusive"))
}

/// Checks the number or name of a port.
pub(super) fn port_or_name(field: &str, port: &Value) -> Vec<FieldError> {
    let Some(name) = port.as_str() else { return port_number(field, port).into_iter().collect() };
    let mut why = Vec::new();
    if name.len() > 15 {
        why.push("must be no more than 15 characters");
    }
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !name.bytes().all(letters) {
        why.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    } else if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        why.push("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        why.push("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        why.push("must not begin or end with a hyphen");
    }
    why.into_iter().map(|why| FieldError::invalid(field, port, why)).collect()
}

/// Checks a value that must be a qualified name, for example an application protocol or a class.
pub(super) fn qualified(field: &str, name: &str) -> Vec<FieldError> {
    let wrong = names::qualified(name).into_iter();
    wrong.map(|why| FieldError::invalid(field, &json!(name), &why)).collect()
}

/// Checks keys and values of labels.
pub(super) fn labels(field: &str, labels: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        errors.extend(qualified(field, key));
        let wrong = names::label_value(value.as_str().unwrap_or_default()).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid(field, value, &why)));
    }
    errors
}
