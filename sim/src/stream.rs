//! Slice streams of a simulated fleet: connections in memory between the member agents and the replicas of the hub agent. A test can
//! cut them and make them slow.

use crate::line::Line;
use hub_agent::stream::Server;
use member_agent::stream::Dialer;
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
}

/// Running replica of the hub agent.
#[derive(Debug)]
struct Replica {
    server: Server,
    line: Line,
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
    /// Adds the server of a replica of the hub agent. The connections of an earlier server break. While `line` holds the requests of
    /// this replica, its connections deliver nothing.
    pub(crate) fn serve(&self, replica: usize, server: Server, line: Line) {
        self.0.lock().replicas.insert(replica, Replica { server, line, connections: JoinSet::new() });
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

    /// Changes the network between a member and the hub.
    pub fn set(&self, member: &str, condition: Condition) {
        self.0.lock().network(member).condition.send_replace(condition);
    }

    /// Returns a dialer of a replica of a member agent. It reaches one replica of the hub agent after another, as through a Service.
    /// While `line` holds the requests of the member agent, its connections deliver nothing.
    pub(crate) fn dialer(&self, member: &str, line: &Line) -> Dialer {
        let line = line.clone();
        let (streams, member, turn) = (self.clone(), member.to_owned(), Arc::new(AtomicUsize::new(0)));
        Dialer::new("hub".to_owned(), move || {
            let connected = streams.connect(&member, &line, turn.fetch_add(1, Ordering::Relaxed));
            async move { connected.map(|stream| Box::new(stream) as Box<dyn member_agent::stream::Io>) }
        })
    }

    /// Opens a connection of a member to a replica of the hub agent.
    ///
    /// # Errors
    /// If no replica runs, or the network of the member is down.
    pub fn connect(&self, member: &str, line: &Line, turn: usize) -> io::Result<DuplexStream> {
        let mut state = self.0.lock();
        let network = state.network(member);
        let (address, condition) = (network.address, network.condition.subscribe());
        let replicas = &mut state.replicas;
        let replica = replicas.keys().nth(turn % replicas.len().max(1)).copied();
        let replica = replica.filter(|_| !condition.borrow().is_down);
        let Some(replica) = replica.and_then(|replica| replicas.get_mut(&replica)) else {
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        let ((near, far), (from, to)) = (duplex(BUFFER), duplex(BUFFER));
        replica.connections.spawn(replica.server.clone().serve(address, to));
        let lines = [line.clone(), replica.line.clone()];
        let passing = replica.connections.spawn(pass(far, from, condition, lines));
        state.network(member).connections.push(passing);
        Ok(near)
    }
}

/// Passes the data of a connection in both directions, until one end closes it.
async fn pass(one: DuplexStream, other: DuplexStream, condition: watch::Receiver<Condition>, lines: [Line; 2]) {
    let ((read_one, write_one), (read_other, write_other)) = (split(one), split(other));
    tokio::select! {
        () = copy(read_one, write_other, condition.clone(), &lines) => {}
        () = copy(read_other, write_one, condition, &lines) => {}
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut condition: watch::Receiver<Condition>,
    lines: &[Line; 2],
) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let delay = condition.borrow().delay;
        if !delay.is_zero() {
            sleep(delay).await;
        }
        // Fails only after the fleet has ended.
        let _ = condition.wait_for(|condition| !condition.is_stuck).await;
        for line in lines {
            line.is_open().await;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
