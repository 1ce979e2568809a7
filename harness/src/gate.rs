//! Gate in front of a real API server, with which tests interrupt connections. The gate forwards bytes without decrypting TLS.
//! A gate is open, shut (every connection ends) or silent (connections stay open, but no bytes pass).

use anyhow::Context as _;
use std::net::SocketAddr;
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
    state: watch::Sender<Gate>,
    task: JoinHandle<()>,
}

impl Drop for GateProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl GateProxy {
    /// Starts a gate in front of the server at `https://127.0.0.1:<port>`.
    pub async fn start(server_url: &str, state: Gate) -> anyhow::Result<Self> {
        let server = server_url.strip_prefix("https://").context("the server speaks HTTPS")?;
        let server: SocketAddr = server.parse().with_context(|| format!("{server} is no address"))?;
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port is free on 127.0.0.1")?;
        let server_url = format!("https://{}", listener.local_addr()?);
        let state = watch::Sender::new(state);
        let task = tokio::spawn(accept(listener, server, state.clone()));
        Ok(Self { server_url, state, task })
    }

    pub fn set_state(&self, state: Gate) {
        self.state.send_replace(state);
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, state: watch::Sender<Gate>) {
    // Dropping this set ends all connections.
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(forward(stream, server, state.subscribe()))),
            Err(_) => sleep(PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Forwards one connection until the connection or the gate ends. A silent connection stays silent until it ends, even if the
/// gate is opened again.
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
