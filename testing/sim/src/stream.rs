//! Slice streams of a simulated fleet: connections in memory between the member agents and the replicas of the hub
//! agent. A test can cut them and make them slow.

use crate::connection::Connection;
use fleetnet_core::model::SliceStreamOffer;
use fleetnet_types::Text;
use hub_agent::stream::Server;
use member_agent::stream::{Dialer, Dialers};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex, split};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

/// Bytes that a connection holds in each direction.
// no limit: it is the size of a buffer of tests
const BUFFER: usize = 64 << 10;

/// Condition of the network between one member and the hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// True while no connection can be opened.
    pub is_down: bool,
    /// True while open connections deliver nothing, although they stay open.
    pub is_stuck: bool,
    /// Time that each piece of data takes.
    pub delay: Duration,
}

/// Network of the slice streams.
#[derive(Clone, Debug, Default)]
pub struct Streams(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    replicas: BTreeMap<usize, Replica>,
    members: BTreeMap<String, Network>,
    /// Number of servers that were started.
    started: u32,
}

/// Running replica of the hub agent.
#[derive(Debug)]
struct Replica {
    server: Server,
    /// Authority of its certificate. Each server makes its own.
    authority: Text,
    connection: Connection,
    connections: JoinSet<()>,
}

#[derive(Debug)]
struct Network {
    address: IpAddr,
    condition: watch::Sender<Condition>,
    connections: Vec<AbortHandle>,
}

impl State {
    /// Returns the network of a member, which has an address of its own.
    fn network(&mut self, member: &str) -> &mut Network {
        let number = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        self.members.entry(member.to_owned()).or_insert_with(|| Network {
            address: Ipv4Addr::from_bits(number).into(),
            condition: watch::Sender::new(Condition::default()),
            connections: Vec::new(),
        })
    }
}

impl Streams {
    /// Adds the server of a replica of the hub agent, and returns its offer. The connections of an earlier server
    /// break. While `connection` holds the requests of this replica, its streams deliver nothing.
    pub(crate) fn serve(&self, replica: usize, server: Server, connection: Connection) -> SliceStreamOffer {
        let mut state = self.0.lock();
        state.started += 1;
        let authority = Text::from(format!("authority {}", state.started));
        let offer = SliceStreamOffer { address: "hub".into(), ca_bundle: authority.clone() };
        state.replicas.insert(replica, Replica { server, authority, connection, connections: JoinSet::new() });
        offer
    }

    /// Breaks the connections of a replica of the hub agent, which has ended.
    pub(crate) fn end(&self, replica: usize) {
        self.0.lock().replicas.remove(&replica);
    }

    /// Breaks the connections of a member.
    pub fn cut(&self, member: &str) {
        let mut state = self.0.lock();
        state.network(member).connections.drain(..).for_each(|connection| connection.abort());
    }

    /// Gives a member another address, from which it opens its next connections.
    pub fn move_to(&self, member: &str, address: IpAddr) {
        self.0.lock().network(member).address = address;
    }

    /// Changes the network between a member and the hub.
    pub fn set(&self, member: &str, condition: Condition) {
        self.0.lock().network(member).condition.send_replace(condition);
    }

    /// Returns the dialers of a replica of a member agent. They reach one replica of the hub agent after another, as
    /// through a Service, and accept only the certificate of the replica that made the offer. While `connection` holds
    /// the requests of the member agent, its streams deliver nothing.
    pub(crate) fn dialers(&self, member: &str, connection: &Connection) -> Dialers {
        let (streams, member, connection) = (self.clone(), member.to_owned(), connection.clone());
        let turns = Arc::new(AtomicUsize::new(0));
        Dialers::new(move |offer| {
            let (streams, member, connection, turns) =
                (streams.clone(), member.clone(), connection.clone(), Arc::clone(&turns));
            let authority = offer.ca_bundle.clone();
            Ok(Dialer::new(offer.address.to_string(), move || {
                let turn = turns.fetch_add(1, Ordering::Relaxed);
                let connected = streams.connect(&member, &connection, turn, Some(&authority));
                async move { connected.map(|stream| Box::new(stream) as Box<dyn member_agent::stream::Io>) }
            }))
        })
    }

    /// Opens a connection of a member to a replica of the hub agent. With an authority, the certificate of the replica
    /// must be of it.
    ///
    /// # Errors
    /// If no replica runs, if its certificate is of another authority, or if the network of the member is down.
    pub fn connect(
        &self,
        member: &str,
        connection: &Connection,
        turn: usize,
        authority: Option<&Text>,
    ) -> io::Result<DuplexStream> {
        let mut state = self.0.lock();
        let network = state.network(member);
        let (address, condition) = (network.address, network.condition.subscribe());
        let replicas = &mut state.replicas;
        let replica = replicas.keys().nth(turn % replicas.len().max(1)).copied();
        let replica = replica.filter(|_| !condition.borrow().is_down);
        let Some(replica) = replica.and_then(|replica| replicas.get_mut(&replica)) else {
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        if authority.is_some_and(|authority| *authority != replica.authority) {
            return Err(io::Error::other("a certificate of another authority"));
        }
        let ((near, far), (from, to)) = (duplex(BUFFER), duplex(BUFFER));
        replica.connections.spawn(replica.server.clone().serve(address, to));
        let connections = [connection.clone(), replica.connection.clone()];
        let passing = replica.connections.spawn(pass(far, from, condition, connections));
        state.network(member).connections.push(passing);
        Ok(near)
    }
}

/// Passes the data of a connection in both directions, until one end closes it.
async fn pass(
    one: DuplexStream,
    other: DuplexStream,
    condition: watch::Receiver<Condition>,
    connections: [Connection; 2],
) {
    let ((read_one, write_one), (read_other, write_other)) = (split(one), split(other));
    tokio::select! {
        () = copy(read_one, write_other, condition.clone(), &connections) => {}
        () = copy(read_other, write_one, condition, &connections) => {}
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut condition: watch::Receiver<Condition>,
    connections: &[Connection; 2],
) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let delay = condition.borrow().delay;
        if !delay.is_zero() {
            sleep(delay).await;
        }
        // Fails only after the fleet has ended.
        let _ = condition.wait_for(|condition| !condition.is_stuck).await;
        for connection in connections {
            connection.is_open().await;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
