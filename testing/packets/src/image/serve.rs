//! Image `serve`: a server that answers with its name, over HTTP, TCP and UDP.
//!
//! Each path of HTTP answers with the name, except these:
//!
//! - `/ready` has the status 200 or 503, for probes.
//! - `POST /set?ready=false&status=500&delay=250` changes readiness, the status of answers, and their delay in
//!   milliseconds.

use super::server;
use anyhow::Context as _;
use clap::Args;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use parking_lot::Mutex;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::signal::unix::{SignalKind, signal};

/// Largest message over UDP that is read.
const DATAGRAM: usize = 1500;

/// Answers with a name, over HTTP, TCP and UDP.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// The name that it answers with.
    #[arg(long, env = "HOSTNAME")]
    name: String,
    /// The port for HTTP.
    #[arg(long, default_value_t = 8080)]
    http_port: u16,
    /// The port for TCP: each line is answered with a line.
    #[arg(long, default_value_t = 8081)]
    tcp_port: u16,
    /// The port for UDP.
    #[arg(long, default_value_t = 8080)]
    udp_port: u16,
}

/// Behaviour of the server, which requests can change.
#[derive(Debug)]
struct State {
    name: String,
    settings: Mutex<Settings>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    is_ready: bool,
    status: StatusCode,
    delay: Duration,
}

/// Serves until SIGTERM.
///
/// # Errors
/// If a port is taken.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let state = Arc::new(State::named(arguments.name));
    let http = TcpListener::bind((Ipv6Addr::UNSPECIFIED, arguments.http_port)).await.context("the port for HTTP")?;
    let tcp = TcpListener::bind((Ipv6Addr::UNSPECIFIED, arguments.tcp_port)).await.context("the port for TCP")?;
    let udp = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, arguments.udp_port)).await.context("the port for UDP")?;
    tokio::spawn(serve_tcp(tcp, Arc::clone(&state)));
    tokio::spawn(serve_udp(udp, Arc::clone(&state)));
    let stop = async {
        terminate.recv().await;
    };
    let answer = move |request| {
        let state = Arc::clone(&state);
        async move { state.answer(&request).await }
    };
    server::serve(http, stop, answer).await;
    Ok(())
}

async fn serve_tcp(listener: TcpListener, state: Arc<State>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(answer_lines(stream, Arc::clone(&state)));
    }
}

async fn answer_lines(stream: TcpStream, state: Arc<State>) -> std::io::Result<()> {
    let (input, mut output) = stream.into_split();
    let mut lines = BufReader::new(input).lines();
    while lines.next_line().await?.is_some() {
        state.delay().await;
        output.write_all(format!("{}\n", state.name).as_bytes()).await?;
    }
    Ok(())
}

async fn serve_udp(socket: UdpSocket, state: Arc<State>) {
    let mut message = [0; DATAGRAM];
    loop {
        let Ok((_, from)) = socket.recv_from(&mut message).await else { continue };
        state.delay().await;
        // A lost answer is what the client counts.
        let _ = socket.send_to(state.name.as_bytes(), from).await;
    }
}

impl State {
    fn named(name: String) -> Self {
        let settings = Settings { is_ready: true, status: StatusCode::OK, delay: Duration::ZERO };
        Self { name, settings: Mutex::new(settings) }
    }

    async fn delay(&self) {
        let delay = self.settings.lock().delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }

    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let settings = *self.settings.lock();
        let (status, body) = match (request.method(), request.uri().path()) {
            (&Method::POST, "/set") => match self.set(request.uri().query().unwrap_or_default()) {
                Ok(()) => (StatusCode::OK, String::new()),
                Err(error) => (StatusCode::BAD_REQUEST, format!("{error:#}")),
            },
            (_, "/ready") if settings.is_ready => (StatusCode::OK, String::new()),
            (_, "/ready") => (StatusCode::SERVICE_UNAVAILABLE, "not ready".to_owned()),
            _ => {
                self.delay().await;
                (settings.status, self.name.clone())
            }
        };
        let mut answer = Response::new(Full::new(Bytes::from(body)));
        *answer.status_mut() = status;
        answer
    }

    fn set(&self, query: &str) -> anyhow::Result<()> {
        let mut settings = self.settings.lock();
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("ready", value)) => settings.is_ready = value.parse()?,
                Some(("status", value)) => settings.status = StatusCode::from_bytes(value.as_bytes())?,
                Some(("delay", value)) => settings.delay = Duration::from_millis(value.parse()?),
                _ => anyhow::bail!("no setting: {pair}"),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::State;
    use std::time::Duration;

    #[test]
    fn what_is_told_changes_and_the_rest_stays() {
        let state = State::named("app-1".to_owned());
        state.set("ready=false&delay=250").expect("two settings");
        state.set("status=500").expect("one setting");
        let settings = *state.settings.lock();
        assert_eq!((settings.is_ready, settings.delay), (false, Duration::from_millis(250)));
        assert_eq!(settings.status, 500);
        assert!(state.set("size=7").is_err());
        assert!(state.set("delay=long").is_err());
    }
}
