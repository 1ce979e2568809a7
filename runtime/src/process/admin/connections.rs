//! Open connections of a listening address. Those of clients that were not accepted have a limit.
//!
//! At the limit, a new connection closes an older one: the oldest connection of the client with the most connections.
//! So a client that opens many connections closes its own, and cannot block the connections of other clients. A client
//! is an IPv4 address, or a /64 network of IPv6. Of clients with as many, it closes that of the larger network with the
//! most connections.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use crate::limits::ADMIN_ACCEPT_PAUSE;
use crate::process::pace::networks;

/// Client of one connection.
#[derive(Clone, Debug)]
pub struct Peer {
    pub address: IpAddr,
    is_accepted: Arc<AtomicBool>,
}

impl Peer {
    #[must_use]
    pub fn new(address: IpAddr) -> Self {
        Self { address, is_accepted: Arc::default() }
    }

    /// Sets if the client was accepted. The connection of an accepted client is not closed for a new one.
    pub fn accept(&self, is_accepted: bool) {
        self.is_accepted.store(is_accepted, Ordering::Relaxed);
    }

    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.is_accepted.load(Ordering::Relaxed)
    }
}

/// Open connections. Dropping the value closes them.
#[derive(Debug)]
struct Connections {
    most: usize,
    tasks: JoinSet<()>,
    /// Open connections, oldest first.
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    peer: Peer,
    task: AbortHandle,
}

impl Connections {
    /// Returns a set with at most this many connections of clients that were not accepted.
    fn new(most: usize) -> Self {
        Self { most, tasks: JoinSet::new(), open: Vec::new() }
    }

    /// Serves a new connection. At the limit, closes an older one.
    fn serve<F: Future<Output = ()> + Send + 'static>(&mut self, client: IpAddr, serving: impl FnOnce(Peer) -> F) {
        while self.tasks.try_join_next().is_some() {}
        self.open.retain(|connection| !connection.task.is_finished());
        let waiting = self.open.iter().filter(|connection| !connection.peer.is_accepted()).count();
        let to_close = (waiting >= self.most).then(|| self.to_close()).flatten();
        if let Some(index) = to_close {
            self.open.remove(index).task.abort();
        }
        let peer = Peer::new(client);
        let task = self.tasks.spawn(serving(peer.clone()));
        self.open.push(Open { peer, task });
    }

    /// Returns the index of the connection to close before a new one opens: the oldest of the client with the most
    /// connections.
    fn to_close(&self) -> Option<usize> {
        let may_close = |connection: &Open| !connection.peer.is_accepted();
        let mut counts = BTreeMap::new();
        for connection in self.open.iter().filter(|connection| may_close(connection)) {
            for network in networks(connection.peer.address) {
                *counts.entry(network).or_insert(0) += 1;
            }
        }
        // Number of connections of the client, and then of its larger networks.
        let of_client = |connection: &Open| -> Vec<usize> {
            networks(connection.peer.address).iter().map(|network| counts[network]).collect()
        };
        let most = self.open.iter().filter(|connection| may_close(connection)).map(of_client).max()?;
        self.open.iter().position(|connection| may_close(connection) && of_client(connection) == most)
    }
}

/// Accepts connections and serves each, at most `most` of clients that were not accepted. `server` names the server in
/// the log.
pub async fn accept<F: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    server: &'static str,
    most: usize,
    serve: impl Fn(TcpStream, Peer) -> F,
) {
    let mut connections = Connections::new(most);
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Disable Nagle's algorithm, which can delay an answer by 40 ms. If this fails, answers are only
                // slower.
                let _ = stream.set_nodelay(true);
                connections.serve(peer.ip().to_canonical(), |peer| serve(stream, peer));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection for {server} could not be accepted");
                sleep(ADMIN_ACCEPT_PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    /// Rule K9: Clients keep connections to the port of the probes open
    /// Then: The agent closes the oldest connection of the client with the most connections, so that a new probe gets
    /// an answer. A connection with an open slice stream is never closed for a new one
    #[tokio::test]
    async fn open_connections_do_not_exceed_their_limit() {
        let mut connections = Connections::new(3);
        for last in 0..20 {
            connections.serve(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), |_| std::future::pending());
            assert!(connections.open.len() <= 3, "{} are open", connections.open.len());
        }
    }

    #[tokio::test]
    async fn a_client_with_a_network_of_addresses_closes_its_own_connections() {
        let mut connections = Connections::new(3);
        let member = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        connections.serve(member, |_| std::future::pending());
        for last in 0..20 {
            connections.serve([0x2001, 0xdb8, 0, 0, 0, 0, 0, last].into(), |_| std::future::pending());
        }
        assert_eq!(connections.open[0].peer.address, member);
    }

    /// Also rule K15.
    #[tokio::test]
    async fn a_client_with_many_networks_closes_its_own_connections() {
        let mut connections = Connections::new(3);
        let member = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        connections.serve(member, |_| std::future::pending());
        for site in 0..20 {
            connections.serve([0x2001, 0xdb8, 0, site, 0, 0, 0, 1].into(), |_| std::future::pending());
        }
        assert_eq!(connections.open[0].peer.address, member);
    }

    /// Also rule K9.
    #[tokio::test]
    async fn a_connection_of_an_accepted_client_is_never_closed_for_a_new_one() {
        let client = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        let mut connections = Connections::new(2);
        let mut peers = Vec::new();
        for last in [1, 2] {
            connections.serve(client(last), |peer| {
                peers.push(peer);
                std::future::pending()
            });
        }
        peers[0].accept(true);
        connections.serve(client(1), |_| std::future::pending());
        let clients =
            |connections: &Connections| connections.open.iter().map(|open| open.peer.address).collect::<Vec<_>>();
        connections.serve(client(3), |_| std::future::pending());
        assert_eq!(clients(&connections), [client(1), client(1), client(3)], "the oldest that was not accepted");
        for open in &connections.open {
            open.peer.accept(true);
        }
        for last in [4, 5, 6] {
            connections.serve(client(last), |_| std::future::pending());
        }
        assert_eq!(clients(&connections), [client(1), client(1), client(3), client(5), client(6)]);
        connections.open[1].peer.accept(false);
        connections.serve(client(7), |_| std::future::pending());
        assert_eq!(clients(&connections), [client(1), client(3), client(5), client(6), client(7)]);
    }
}
