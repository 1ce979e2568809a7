//! Requests of the image `client`: [`Target`].

use crate::http;
use anyhow::{Context as _, bail, ensure};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream, UdpSocket, lookup_host};

/// First and last source port.
const PORTS: (u16, u16) = (1024, u16::MAX);
/// Longest answer.
const LONGEST: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Protocol {
    Http,
    Tcp,
    Udp,
}

/// Address that requests go to, such as `http://app.work.svc.clusterset.local:80/path` or `udp://10.96.1.2:53`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Target {
    pub(super) protocol: Protocol,
    /// Name or address, and port.
    authority: String,
    path: String,
}

impl FromStr for Target {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (scheme, rest) = text.split_once("://").context("a target begins with http://, tcp:// or udp://")?;
        let protocol = match scheme {
            "http" => Protocol::Http,
            "tcp" => Protocol::Tcp,
            "udp" => Protocol::Udp,
            _ => bail!("no protocol: {scheme}"),
        };
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        ensure!(authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()), "no port: {text}");
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self { protocol, authority: authority.to_owned(), path: path.to_owned() })
    }
}

/// Failed request.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: &'static str,
    pub(super) message: String,
}

impl Failure {
    fn new(kind: &'static str, message: impl ToString) -> Self {
        Self { kind, message: message.to_string() }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::ConnectionRefused => "refused",
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => "reset",
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => "unreachable",
            ErrorKind::TimedOut => "timeout",
            ErrorKind::UnexpectedEof => "eof",
            ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable => "local",
            _ => "other",
        };
        Self::new(kind, error)
    }
}

/// Source ports in turn. conntrack remembers a connection that got no answer for 120 s, and sends another one with the
/// same ports to the same pod, even if it is gone. At 500 requests a second, a port comes back after 129 s.
#[derive(Debug)]
pub(super) struct Ports(u16);

impl Ports {
    pub(super) fn new() -> Self {
        Self(PORTS.1)
    }

    /// Returns the next port that is not `except`.
    pub(super) fn next(&mut self, except: u16) -> u16 {
        self.0 = if self.0 == PORTS.1 { PORTS.0 } else { self.0 + 1 };
        if self.0 == except { self.next(except) } else { self.0 }
    }
}

impl Target {
    /// Returns the address, which is looked up each time if it is a name.
    async fn address(&self) -> Result<SocketAddr, Failure> {
        if let Ok(address) = self.authority.parse() {
            return Ok(address);
        }
        let found = lookup_host(&self.authority).await.map_err(|error| Failure::new("dns", error))?.next();
        found.ok_or_else(|| Failure::new("dns", "the name has no address"))
    }

    /// Opens a connection from this source port.
    pub(super) async fn connect(&self, port: u16) -> Result<TcpStream, Failure> {
        let to = self.address().await?;
        let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // The port may be that of an earlier connection, which the kernel remembers.
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::new(any(to), port))?;
        let stream = socket.connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Sends a datagram from this source port, and returns the answer.
    pub(super) async fn exchange_datagram(&self, port: u16) -> Result<String, Failure> {
        let to = self.address().await?;
        let socket = UdpSocket::bind(SocketAddr::new(any(to), port)).await?;
        socket.connect(to).await?;
        socket.send(b"?").await?;
        let mut answer = [0; 1500];
        let length = socket.recv(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
    }

    /// Sends a request on a connection, and returns the answer.
    pub(super) async fn exchange(&self, stream: &mut TcpStream, keep: bool) -> Result<String, Failure> {
        let request = match self.protocol {
            Protocol::Http => {
                let connection = if keep { "keep-alive" } else { "close" };
                let Self { authority, path, .. } = self;
                format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: {connection}\r\n\r\n")
            }
            Protocol::Tcp | Protocol::Udp => "?\n".to_owned(),
        };
        stream.write_all(request.as_bytes()).await?;
        match self.protocol {
            Protocol::Http => read_answer(stream).await,
            Protocol::Tcp | Protocol::Udp => Ok(read_until(stream, "\n").await?.0),
        }
    }
}

fn any(to: SocketAddr) -> IpAddr {
    if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

/// Reads an answer of HTTP whose head names its length. Returns the body.
async fn read_answer(stream: &mut (impl AsyncRead + Unpin)) -> Result<String, Failure> {
    let (head, mut body) = read_until(stream, "\r\n\r\n").await?;
    let mut lines = head.lines();
    let status = http::status(lines.next().unwrap_or_default()).map_err(|error| Failure::new("other", error))?;
    let length =
        lines.filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, value)| value.trim().parse().ok()).filter(|length| *length <= LONGEST);
    let length: usize = length.ok_or_else(|| Failure::new("other", "an answer without a length"))?;
    let had = body.len().min(length);
    body.resize(length, 0);
    stream.read_exact(&mut body[had..]).await?;
    let body = String::from_utf8_lossy(&body).into_owned();
    if status == 200 { Ok(body) } else { Err(Failure::new("status", format!("{status} {body}"))) }
}

/// Reads until `end`. Returns the text before it, and the bytes after it that were read too.
async fn read_until(stream: &mut (impl AsyncRead + Unpin), end: &str) -> Result<(String, Vec<u8>), Failure> {
    let mut bytes = Vec::new();
    loop {
        let found = bytes.windows(end.len()).position(|window| window == end.as_bytes());
        if let Some(at) = found {
            let rest = bytes.split_off(at + end.len());
            bytes.truncate(at);
            return Ok((String::from_utf8_lossy(&bytes).into_owned(), rest));
        }
        if bytes.len() > LONGEST {
            return Err(Failure::new("other", "the answer is too long"));
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(Failure::new("eof", "the connection ended before the answer"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ports, Protocol, Target, read_answer};

    #[test]
    fn a_target_has_a_protocol_a_port_and_a_path() {
        let target: Target = "http://app.work.svc:80".parse().unwrap();
        assert_eq!((target.protocol, &*target.authority, &*target.path), (Protocol::Http, "app.work.svc:80", "/"));
        let target: Target = "udp://[fd00:96::1]:53".parse().unwrap();
        assert_eq!((target.protocol, &*target.authority), (Protocol::Udp, "[fd00:96::1]:53"));
        assert!("http://app/".parse::<Target>().is_err());
        assert!("app:80".parse::<Target>().is_err());
    }

    #[test]
    fn source_ports_come_in_turn_and_leave_out_one() {
        let mut ports = Ports::new();
        assert_eq!([ports.next(1026), ports.next(1026), ports.next(1026)], [1024, 1025, 1027]);
        let mut ports = Ports(65_534);
        assert_eq!([ports.next(1), ports.next(1)], [65_535, 1024]);
    }

    #[tokio::test]
    async fn an_answer_ends_with_its_length() {
        let mut answer = &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\napp-1HTTP"[..];
        assert_eq!(read_answer(&mut answer).await.unwrap(), "app-1");
        let mut answer = &b"HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\nno"[..];
        assert_eq!(read_answer(&mut answer).await.unwrap_err().kind, "status");
        let mut answer = &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\napp"[..];
        assert_eq!(read_answer(&mut answer).await.unwrap_err().kind, "eof");
    }
}
