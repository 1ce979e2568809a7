//! Checks of IP addresses and ports that several kinds share.

use crate::status::FieldError;
use serde_json::{Value, json};
use std::net::IpAddr;

/// Parses an IP address.
///
/// # Errors
/// Error of the field if the text is no IP address.
pub(super) fn parse(field: impl FnOnce() -> String, text: &str) -> Result<IpAddr, FieldError> {
    let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    text.parse().map_err(|_| FieldError::invalid(field(), &json!(text), why))
}

/// Returns the reason why a special address, such as a loopback address, cannot be an endpoint.
pub(super) fn special(address: IpAddr) -> Option<&'static str> {
    let (link_local, link_local_multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (v6.is_unicast_link_local(), (v6.segments()[0] & 0xFF0F) == 0xFF02),
    };
    if address.is_unspecified() {
        Some("may not be unspecified")
    } else if address.is_loopback() {
        Some("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    } else if link_local || link_local_multicast {
        Some("may not be in a link-local range")
    } else {
        None
    }
}

/// Returns an error if a port is not between 1 and 65535.
pub(super) fn port_number(field: String, port: &Value) -> Option<FieldError> {
    let fits = port.as_i64().is_some_and(|port| (1..=65535).contains(&port));
    (!fits).then(|| FieldError::invalid(field, port, "must be between 1 and 65535, inclusive"))
}

/// Returns an error if a value is not one of the supported values.
pub(super) fn unsupported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Option<FieldError> {
    let known = supported.iter().any(|known| value == known);
    (!known).then(|| FieldError::not_supported(field, value, supported))
}
