//! Requests to an agent's `/healthz` at short intervals. They run in a thread of their own, so that work of the bench
//! does not count as delay of the agent.

use crate::limits::{PROBE_INTERVAL, PROBE_TIMEOUT};
use anyhow::Context as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::time::Instant;

/// Running requests.
pub struct Probe {
    /// The requests end when this value is dropped.
    running: Sender<()>,
    thread: JoinHandle<anyhow::Result<Vec<Duration>>>,
}

impl Probe {
    /// Starts to send requests to an address, such as `127.0.0.1:40123`.
    pub fn start(address: &str) -> anyhow::Result<Self> {
        let address: SocketAddr = address.parse().with_context(|| address.to_owned())?;
        let (running, ended) = channel();
        let thread = std::thread::spawn(move || {
            let mut durations = vec![request(address)?];
            while ended.recv_timeout(PROBE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                durations.push(request(address)?);
            }
            Ok(durations)
        });
        Ok(Self { running, thread })
    }

    /// Stops the requests. Returns the durations of all requests.
    ///
    /// # Errors
    /// If a request failed or took longer than [`PROBE_TIMEOUT`].
    pub fn end(self) -> anyhow::Result<Vec<Duration>> {
        drop(self.running);
        self.thread.join().map_err(|_| anyhow::anyhow!("the thread of the requests to /healthz panicked"))?
    }
}

fn request(address: SocketAddr) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let mut stream = TcpStream::connect_timeout(&address, PROBE_TIMEOUT)?;
    stream.set_read_timeout(Some(PROBE_TIMEOUT))?;
    stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("/healthz does not answer in time")?;
    anyhow::ensure!(answer.contains(" 200 "), "/healthz: {answer}");
    Ok(start.elapsed())
}
