//! Port of a server, which is reserved before the server starts and stays reserved while the server restarts.

use anyhow::Context as _;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpSocket;

/// Reserved port of an address of this machine.
///
/// A socket is bound to the port and never listens. The kernel gives the port to nobody else, and only sockets with
/// SO_REUSEPORT of the same user can listen on it (`--permit-port-sharing` of kube-apiserver, `--socket-reuse-port` of
/// etcd).
#[derive(Debug)]
pub(super) struct Port {
    pub(super) address: SocketAddr,
    _holder: TcpSocket,
}

impl Port {
    pub(super) fn reserve(address: Ipv4Addr) -> anyhow::Result<Self> {
        let holder = TcpSocket::new_v4()?;
        holder.set_reuseport(true)?;
        holder.bind((address, 0).into()).with_context(|| format!("no port is free on {address}"))?;
        Ok(Self { address: holder.local_addr()?, _holder: holder })
    }

    pub(super) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.address)
    }
}
