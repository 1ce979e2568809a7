//! Port of a server, which is reserved before the server starts and stays reserved while the server restarts.

use anyhow::Context as _;
use tokio::net::TcpSocket;

/// Reserved port of 127.0.0.1.
///
/// A socket is bound to the port and never listens. The kernel gives the port to nobody else, and only sockets with SO_REUSEPORT of
/// the same user can listen on it (`--permit-port-sharing` of
/// kube-apiserver, `--socket-reuse-port` of etcd).
#[derive(Debug)]
pub(super) struct Port {
    pub(super) number: u16,
    _holder: TcpSocket,
}

impl Port {
    pub(super) fn reserve() -> anyhow::Result<Self> {
        let holder = TcpSocket::new_v4()?;
        holder.set_reuseport(true)?;
        holder.bind(([127, 0, 0, 1], 0).into()).context("no port is free on 127.0.0.1")?;
        Ok(Self { number: holder.local_addr()?.port(), _holder: holder })
    }

    pub(super) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}", self.number)
    }
}
