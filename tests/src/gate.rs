//! A gate in front of a real API server: it forwards bytes without reading them, so that TLS passes through. It can be open,
//! shut (every connection ends) or silent (nothing passes, and connections stay open).

use anyhow::Context as _;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

/// Wait after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(10);

/// State of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Bytes pass.
    Open,
    /// Connections end, open ones and new ones.
    Shut,
    /// Connections are accepted and stay open, and nothing passes.
    Silent,
}

/// Runs a gate, which ends when this is dropped.
#[derive(Debug)]
pub struct Gatekeeper {
    /// Address to use instead of the server's.
    pub server_url: String,
    stands: watch::Sender<Gate>,
    keeping: JoinHandle<()>,
}

impl Drop for Gatekeeper {
    fn drop(&mut self) {
        self.keeping.abort();
    }
}

impl Gatekeeper {
    /// Starts a gate in front of a server, `https://127.0.0.1:<port>`.
    pub async fn start(server_url: &str, stands: Gate) -> anyhow::Result<Self> {
        let server = server_url.strip_prefix("https://").context("the server speaks HTTPS")?;
        let server: SocketAddr = server.parse().with_context(|| format!("{server} is no address"))?;
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port is free on 127.0.0.1")?;
        let server_url = format!("https://{}", listener.local_addr()?);
        let stands = watch::Sender::new(stands);
        let keeping = tokio::spawn(keep(listener, server, stands.clone()));
        Ok(Self { server_url, stands, keeping })
    }

    /// Sets the state from now on.
    pub fn stand(&self, stands: Gate) {
        self.stands.send_replace(stands);
    }
}

async fn keep(listener: TcpListener, server: SocketAddr, stands: watch::Sender<Gate>) {
    // Dropping this ends the connections.
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(pass(stream, server, stands.subscribe()))),
            Err(_) => sleep(PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Forwards one connection until the connection or the gate ends. A connection that was silent stays silent.
async fn pass(mut stream: TcpStream, server: SocketAddr, mut stands: watch::Receiver<Gate>) {
    let stood = *stands.borrow_and_update();
    if stood == Gate::Open {
        let carried = async {
            let mut upstream = TcpStream::connect(server).await?;
            upstream.set_nodelay(true)?;
            stream.set_nodelay(true)?;
            copy_bidirectional(&mut stream, &mut upstream).await
        };
        tokio::select! {
            _ = carried => return,
            _ = stands.wait_for(|stands| *stands != Gate::Open) => {}
        }
    }
    // An error means that the gate is dropped.
    let _ = stands.wait_for(|stands| *stands == Gate::Shut).await;
}
