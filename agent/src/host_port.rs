//! Address of a server, as `host:port`.

use crate::limits::HOST_BYTES_MAX;
use std::fmt;
use std::str::FromStr;

/// Host name or IP address, with a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// Host, without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(address: &str) -> Result<Self, String> {
        let (host, port) = address.rsplit_once(':').ok_or_else(|| format!("{address:?} is not HOST:PORT"))?;
        let port = port.parse().ok().filter(|port| *port != 0);
        let port = port.ok_or_else(|| format!("{address:?} has no valid port"))?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err(format!("{address:?} has no host"));
        }
        if host.len() > HOST_BYTES_MAX {
            return Err(format!("an address has a host of more than {HOST_BYTES_MAX} bytes"));
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            host if host.contains(':') => write!(formatter, "[{host}]:{}", self.port),
            host => write!(formatter, "{host}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for (written, host, port) in [("hub.example:8443", "hub.example", 8443), ("[fd00::1]:1", "fd00::1", 1)] {
            let parsed: HostPort = written.parse().expect("valid");
            assert_eq!((&*parsed.host, parsed.port, &*parsed.to_string()), (host, port, written));
        }
        let error = |written: &str| written.parse::<HostPort>().expect_err("malformed");
        assert_eq!(error("hub"), "\"hub\" is not HOST:PORT");
        assert_eq!(error("hub:x"), "\"hub:x\" has no valid port");
        assert_eq!(error("hub:0"), "\"hub:0\" has no valid port");
        assert_eq!(error(":1"), "\":1\" has no host");
        let long = format!("{}:1", "x".repeat(254));
        assert_eq!(error(&long), "an address has a host of more than 253 bytes");
        assert!(long[1..].parse::<HostPort>().is_ok());
    }
}
