//! Image `client`: sends requests at a fixed rate, whether or not earlier ones have been answered, and counts lost
//! ones. With workers, it sends as many as the servers answer instead.
//!
//! Each lost request is a line of JSON in its output ([`super::result::Loss`]). The last line has the counts
//! ([`super::result::Totals`]). Its control port answers `GET /result` with the counts so far, and `POST /stop` with
//! the counts after the last request has ended.

use super::result::{Latencies, Loss, Totals};
use super::server;
use super::target::{Failure, Ports, Protocol, Target};
use crate::clock;
use crate::limits::UNDER_WAY;
use anyhow::Context as _;
use clap::Args;
use futures::future::join_all;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use parking_lot::Mutex;
use std::convert::Infallible;
use std::io::Write as _;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

/// Port of a client that answers with the counts.
pub const CONTROL_PORT: u16 = 9090;

/// Sends requests at a fixed rate, and counts those that are lost.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// Target of the requests, such as http://10.96.1.2:80/, tcp://app:81 or udp://app:80.
    #[arg(long)]
    target: String,
    /// Requests in a second.
    #[arg(long, default_value_t = 100)]
    rate: u32,
    /// Send with this number of workers in place of a fixed rate. A worker sends a request when its earlier one has
    /// ended.
    #[arg(long, default_value_t = 0)]
    workers: u32,
    /// Milliseconds until a request without an answer is lost.
    #[arg(long, default_value_t = 2000)]
    timeout: u64,
    /// Keep this number of connections, and use them in turn. With 0, each request has a new connection.
    #[arg(long, default_value_t = 0)]
    connections: usize,
    /// The port that answers with the counts.
    #[arg(long, default_value_t = CONTROL_PORT)]
    control_port: u16,
}

struct Client {
    target: Target,
    limit: Duration,
    control_port: u16,
    ports: Mutex<Ports>,
    /// Kept connections. A request waits until the earlier one on its connection has ended.
    kept: Vec<tokio::sync::Mutex<Option<TcpStream>>>,
    /// Number of requests so far.
    turn: AtomicUsize,
    totals: Mutex<Totals>,
    latencies: Mutex<Latencies>,
    under_way: watch::Sender<usize>,
    stopped: watch::Sender<bool>,
}

/// Sends requests until SIGTERM.
///
/// # Errors
/// If the target is none, or the control port is taken.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let client = Arc::new(Client {
        target: arguments.target.parse()?,
        limit: Duration::from_millis(arguments.timeout),
        control_port: arguments.control_port,
        ports: Mutex::new(Ports::new()),
        kept: (0..arguments.connections).map(|_| tokio::sync::Mutex::default()).collect(),
        turn: AtomicUsize::new(0),
        totals: Mutex::default(),
        latencies: Mutex::default(),
        under_way: watch::Sender::new(0),
        stopped: watch::Sender::new(false),
    });
    let control = TcpListener::bind((Ipv6Addr::UNSPECIFIED, arguments.control_port)).await;
    let control = control.context("the control port is taken")?;
    let asked = Arc::clone(&client);
    let answer = move |request| {
        let client = Arc::clone(&asked);
        async move { client.answer(&request).await }
    };
    tokio::spawn(server::serve(control, std::future::pending(), answer));
    tokio::select! {
        // A stopped client still answers with the counts.
        never = send(&client, arguments.rate), if arguments.workers == 0 => match never {},
        _ = join_all((0..arguments.workers).map(|_| work(&client))), if arguments.workers > 0 => {}
        _ = terminate.recv() => {}
    }
    println!("{}", serde_json::to_string(&client.stop().await)?);
    Ok(())
}

/// Sends one request after the other until the client is stopped. Never returns.
async fn work(client: &Arc<Client>) -> Infallible {
    while !*client.stopped.borrow() {
        client.under_way.send_modify(|number| *number += 1);
        client.perform(Instant::now()).await;
    }
    std::future::pending().await
}

/// Sends requests until the client is stopped. Never returns.
async fn send(client: &Arc<Client>, rate: u32) -> Infallible {
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate.max(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut stopped = client.stopped.subscribe();
    loop {
        tokio::select! {
            due = ticks.tick() => client.start(due),
            _ = stopped.wait_for(|stopped| *stopped) => std::future::pending().await,
        }
    }
}

impl Client {
    /// Starts a request that was due at this time.
    fn start(self: &Arc<Self>, due: Instant) {
        if *self.under_way.borrow() >= UNDER_WAY {
            let failure = Failure { kind: "local", message: "too many requests are under way".to_owned() };
            self.lose(time_of(due), &failure);
            return;
        }
        self.under_way.send_modify(|number| *number += 1);
        let client = Arc::clone(self);
        tokio::spawn(async move { client.perform(due).await });
    }

    /// Sends a request that was due at this time and counts as under way, and notes its outcome.
    async fn perform(&self, due: Instant) {
        let at = time_of(due);
        let begun = Instant::now();
        match tokio::time::timeout(self.limit, self.request()).await {
            Ok(Ok(name)) => {
                self.totals.lock().add_answer(name.trim(), at);
                self.latencies.lock().add(begun.elapsed().as_micros().try_into().unwrap_or(u64::MAX));
            }
            Ok(Err(failure)) => self.lose(at, &failure),
            Err(_) => self.lose(at, &Failure { kind: "timeout", message: "no answer".to_owned() }),
        }
        self.under_way.send_modify(|number| *number -= 1);
    }

    fn lose(&self, at: i64, failure: &Failure) {
        self.totals.lock().add_loss(failure.kind, at);
        let loss = Loss { at, kind: failure.kind.to_owned(), message: failure.message.clone() };
        let line = serde_json::to_string(&loss).unwrap_or_default();
        // Nobody reads standard output any more if this fails.
        let _ = writeln!(std::io::stdout(), "{line}");
    }

    async fn request(&self) -> Result<String, Failure> {
        let port = self.ports.lock().next(self.control_port);
        if self.target.protocol == Protocol::Udp {
            return self.target.exchange_datagram(port).await;
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let Some(kept) = turn.checked_rem(self.kept.len()).map(|turn| &self.kept[turn]) else {
            let mut stream = self.target.connect(port).await?;
            return self.target.exchange(&mut stream, false).await;
        };
        let mut kept = kept.lock().await;
        // Taken out, so that a connection that fails is not used again.
        let mut stream = match kept.take().filter(is_open) {
            Some(stream) => stream,
            None => self.target.connect(port).await?,
        };
        let answer = self.target.exchange(&mut stream, true).await?;
        *kept = Some(stream);
        Ok(answer)
    }

    /// Stops sending, waits until the last request has ended, and returns the counts.
    async fn stop(&self) -> Totals {
        self.stopped.send_replace(true);
        // The sender lives as long as `self`.
        let _ = self.under_way.subscribe().wait_for(|number| *number == 0).await;
        let mut totals = self.totals.lock().clone();
        totals.latency = self.latencies.lock().percentiles();
        totals
    }

    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let totals = match (request.method(), request.uri().path()) {
            (&Method::GET, "/result") => self.totals.lock().clone(),
            (&Method::POST, "/stop") => self.stop().await,
            _ => {
                let mut answer = Response::new(Full::default());
                *answer.status_mut() = StatusCode::NOT_FOUND;
                return answer;
            }
        };
        Response::new(Full::new(Bytes::from(serde_json::to_vec(&totals).unwrap_or_default())))
    }
}

/// True if the server has not closed a connection that no request uses.
fn is_open(stream: &TcpStream) -> bool {
    stream.try_read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Returns a time in microseconds since 1970.
fn time_of(due: Instant) -> i64 {
    clock::now().as_microsecond() - i64::try_from(due.elapsed().as_micros()).unwrap_or(i64::MAX)
}
