//! A gate before a real API server: it passes bytes on and reads none of them, so that TLS goes through it. It can stand
//! open, shut (every connection ends) or be silent (nothing passes, and nobody is told).

use anyhow::Context as _;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

/// After a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(10);

/// How a gate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Bytes pass.
    Open,
    /// Connections end, those that are open and new ones.
    Shut,
    /// Connections are taken and stay open, and nothing passes.
    Silent,
}

/// A gate and its keeper. It ends with this.
#[derive(Debug)]
pub struct Gatekeeper {
    /// The address to use instead of the server's.
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
    /// Builds a gate before a server, `https://127.0.0.1:<port>`.
    ///
    /// # Errors
    /// Where there is no port to be had, or the address is another.
    pub async fn start(server_url: &str, stands: Gate) -> anyhow::Result<Self> {
        let server = server_url.strip_prefix("https://").context("the server speaks HTTPS")?;
        let server: SocketAddr = server.parse().with_context(|| format!("{server} is no address"))?;
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port is free on 127.0.0.1")?;
        let server_url = format!("https://{}", listener.local_addr()?);
        let stands = watch::Sender::new(stands);
        let keeping = tokio::spawn(keep(listener, server, stands.clone()));
        Ok(Self { server_url, stands, keeping })
    }

    /// From now on.
    pub fn stand(&self, stands: Gate) {
        self.stands.send_replace(stands);
    }
}

async fn keep(listener: TcpListener, server: SocketAddr, stands: watch::Sender<Gate>) {
    // Dropped with this, and the connections with it.
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(pass(stream, server, stands.subscribe()))),
            Err(_) => sleep(PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Carries one connection until it or the gate ends it. A connection that met silence stays silent.
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
    // An error says that the gate is gone.
    let _ = stands.wait_for(|stands| *stands == Gate::Shut).await;
}
