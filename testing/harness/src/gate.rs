//! Gate in front of a real API server, with which tests interrupt connections. The gate forwards bytes without
//! decrypting TLS. A gate is open, shut (every connection ends) or silent (connections stay open, but no bytes pass).

use anyhow::Context as _;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(10);

/// State of a gate in front of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Bytes pass in both directions.
    Open,
    /// All connections end, existing and new ones.
    Shut,
    /// Connections are accepted and stay open, but no bytes pass.
    Silent,
}

/// Running gate, which ends when this value is dropped.
#[derive(Debug)]
pub struct GateProxy {
    /// Address to connect to instead of the server's.
    pub server_url: String,
    server: Arc<Mutex<SocketAddr>>,
    state: watch::Sender<Gate>,
    task: JoinHandle<()>,
}

impl Drop for GateProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl GateProxy {
    /// Starts a gate in front of the server at `https://<address>:<port>`. The gate has the same address and another
    /// port, so the server's certificate is valid for it.
    pub async fn start(server_url: &str, state: Gate) -> anyhow::Result<Self> {
        let server = server_url.strip_prefix("https://").context("the server speaks HTTPS")?;
        Self::in_front_of(server.parse().with_context(|| format!("{server} is no address"))?, state).await
    }

    /// Starts a gate that is shut, for a server that does not run yet ([`GateProxy::open_to`]).
    pub async fn start_shut() -> anyhow::Result<Self> {
        Self::in_front_of(SocketAddr::from(([127, 0, 0, 1], 0)), Gate::Shut).await
    }

    async fn in_front_of(server: SocketAddr, state: Gate) -> anyhow::Result<Self> {
        let address = server.ip();
        let listener =
            TcpListener::bind((address, 0)).await.with_context(|| format!("no port is free on {address}"))?;
        let server_url = format!("https://{}", listener.local_addr()?);
        let state = watch::Sender::new(state);
        let server = Arc::new(Mutex::new(server));
        let task = tokio::spawn(accept(listener, Arc::clone(&server), state.clone()));
        Ok(Self { server_url, server, state, task })
    }

    /// Returns the address of the gate, as `<address>:<port>`.
    #[must_use]
    pub fn address(&self) -> &str {
        self.server_url.trim_start_matches("https://")
    }

    /// Ends all connections, and opens the gate to another server.
    pub fn open_to(&self, server: SocketAddr) {
        self.set_state(Gate::Shut);
        *self.server.lock() = server;
        self.set_state(Gate::Open);
    }

    pub fn set_state(&self, state: Gate) {
        self.state.send_replace(state);
    }
}

async fn accept(listener: TcpListener, server: Arc<Mutex<SocketAddr>>, state: watch::Sender<Gate>) {
    // Dropping this set ends all connections.
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(forward(stream, *server.lock(), state.subscribe()))),
            Err(_) => sleep(PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Forwards one connection until the connection or the gate ends. A silent connection stays silent until it ends, even
/// if the gate is opened again.
async fn forward(mut stream: TcpStream, server: SocketAddr, mut state: watch::Receiver<Gate>) {
    let initial = *state.borrow_and_update();
    if initial == Gate::Open {
        let carried = async {
            let mut upstream = TcpStream::connect(server).await?;
            upstream.set_nodelay(true)?;
            stream.set_nodelay(true)?;
            copy_bidirectional(&mut stream, &mut upstream).await
        };
        tokio::select! {
            _ = carried => return,
            _ = state.wait_for(|state| *state != Gate::Open) => {}
        }
    }
    // An error means that the gate was dropped.
    let _ = state.wait_for(|state| *state == Gate::Shut).await;
}
