//! HTTP server of the page.

use super::assets::{Asset, asset};
use super::events::events;
use super::guard::{Guard, protect};
use super::service::Answers;
use super::source::Finder;
use super::state::{State, now};
use super::visits::Visits;
use crate::cli::explain::{Codes, service};
use crate::cli::output::document;
use crate::limits::{UI_ACCEPT_PAUSE, UI_CONNECTIONS, UI_HEADER_BYTES};
use bytes::Bytes;
use fleetnet_runtime::clock::Clock;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

type Body = UnsyncBoxBody<Bytes, Infallible>;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// Server of one page.
pub(super) struct Server {
    pub(super) guard: Guard,
    pub(super) finder: Arc<Finder>,
    pub(super) states: watch::Sender<Arc<State>>,
    pub(super) visits: Visits,
    pub(super) answers: Answers,
    pub(super) clock: Clock,
    /// Time for a browser to send the header of a request.
    pub(super) header: Duration,
    /// Time after which a browser that takes no bytes is dropped.
    pub(super) stall: Duration,
}

/// Accepts connections without end. Dropping this future closes all of them.
pub(super) async fn accept(server: Arc<Server>, listener: TcpListener) {
    let places = Arc::new(Semaphore::new(UI_CONNECTIONS));
    let mut running = JoinSet::new();
    loop {
        while running.try_join_next().is_some() {}
        let place = Arc::clone(&places).acquire_owned().await;
        match listener.accept().await {
            Ok((stream, _)) if limit_stall(&stream, server.stall).is_ok() => {
                let connection = serve(Arc::clone(&server), stream);
                running.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            _ => sleep(UI_ACCEPT_PAUSE).await,
        }
    }
}

/// Lets a connection fail if the browser takes no bytes for this time, although there are some for it.
fn limit_stall(stream: &TcpStream, limit: Duration) -> io::Result<()> {
    let milliseconds = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
    Ok(rustix::net::sockopt::set_tcp_user_timeout(stream, milliseconds)?)
}

/// Serves one connection. Errors are ignored, because the page notices them and connects again.
async fn serve(server: Arc<Server>, stream: TcpStream) {
    let header = server.header;
    let service = service_fn(|request| {
        let server = Arc::clone(&server);
        async move { Ok::<_, Infallible>(server.answer(&request).await) }
    });
    let mut builder = http1::Builder::new();
    // Each connection has one answer. So a client that sends requests and reads no answers keeps no place.
    builder.timer(TokioTimer::new()).header_read_timeout(header).max_buf_size(UI_HEADER_BYTES).keep_alive(false);
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

impl Server {
    /// Answers a request.
    pub(super) async fn answer<B>(&self, request: &Request<B>) -> Response<Body> {
        let mut response = match self.guard.check(request) {
            Ok(path) => self.content(path, request.method()).await,
            Err(refusal) => {
                let mut response = reply(refusal.status(), TEXT, Bytes::new());
                if refusal.status() == StatusCode::METHOD_NOT_ALLOWED {
                    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
                }
                response
            }
        };
        protect(response.headers_mut());
        response
    }

    /// Returns the content at a path below the token.
    async fn content(&self, path: &str, method: &Method) -> Response<Body> {
        if let Some(Asset { content_type, bytes }) = asset(path) {
            return reply(StatusCode::OK, content_type, Bytes::from_static(bytes));
        }
        match path {
            "codes" => {
                let codes = Codes { code: None, agents: self.finder.agents() };
                reply(StatusCode::OK, JSON, document(&codes).to_string().into())
            }
            "events" if method == Method::HEAD => reply(StatusCode::OK, "text/event-stream", Bytes::new()),
            "events" => {
                let events = events(self.states.subscribe(), self.visits.begin());
                with_type(StatusCode::OK, "text/event-stream", StreamBody::new(events).boxed_unsync())
            }
            _ => match path.strip_prefix("service/") {
                Some(name) => self.service(name).await,
                None => reply(StatusCode::NOT_FOUND, TEXT, Bytes::new()),
            },
        }
    }

    /// Returns the answer about a Service. The page shows the text of an error.
    async fn service(&self, name: &str) -> Response<Body> {
        let service = match service(name, None) {
            Ok(service) => service,
            Err(stop) => return reply(StatusCode::BAD_REQUEST, TEXT, stop.why.into()),
        };
        let answer = Box::pin(self.answers.get(&self.finder, &service, || now(&self.clock))).await;
        match answer {
            Ok(answer) => reply(StatusCode::OK, JSON, answer),
            Err(stop) => reply(StatusCode::BAD_GATEWAY, TEXT, stop.why.into()),
        }
    }
}

fn reply(status: StatusCode, content_type: &'static str, content: Bytes) -> Response<Body> {
    with_type(status, content_type, Full::new(content).boxed_unsync())
}

fn with_type(status: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::source::Source;
    use crate::ui::state::Documents;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::{Instant, timeout};

    /// Time limit of each wait. Long enough for a busy machine.
    const LIMIT: Duration = Duration::from_secs(60);

    /// Short time limit of a connection.
    const SHORT: Duration = Duration::from_millis(100);

    /// Serves a page until the returned tasks are dropped. Returns its address and its path too.
    async fn serving(header: Duration, stall: Duration) -> (Arc<Server>, JoinSet<()>, SocketAddr, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let guard = Guard::new(address, [7; 16]);
        let path = guard.url().split_once(&address.to_string()).unwrap().1.to_owned();
        let source = Source::Sandbox(watch::Sender::new(None).subscribe());
        let server = Arc::new(Server {
            guard,
            finder: Arc::new(Finder::new(source)),
            states: watch::Sender::new(Arc::new(State::default())),
            visits: Visits::new(),
            answers: Answers::new(watch::Sender::default().subscribe()),
            clock: Clock::system(),
            header,
            stall,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(Arc::clone(&server), listener));
        (server, tasks, address, path)
    }

    async fn ask(address: SocketAddr, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    #[tokio::test]
    async fn a_browser_that_takes_no_bytes_is_dropped() {
        let (server, _tasks, address, path) = serving(LIMIT, SHORT).await;
        let mut browser = ask(address, &format!("{path}events")).await;
        let mut begin = [0; 15];
        timeout(LIMIT, browser.read_exact(&mut begin)).await.expect("waited for the events").unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200 OK");
        // More bytes than the buffers of a connection have room for.
        let status = format!("\"{}\"", "a".repeat(64 << 20)).into();
        let documents = Documents { status, ..Documents::default() };
        server.states.send_replace(Arc::new(State { documents: Some(documents), ..State::default() }));
        timeout(LIMIT, server.states.closed()).await.expect("waited for the end of the connection");
        drop(browser);
    }

    #[tokio::test]
    async fn a_browser_that_sends_no_header_is_dropped() {
        let (_server, _tasks, address, _) = serving(SHORT, LIMIT).await;
        let begun = Instant::now();
        let mut browser = TcpStream::connect(address).await.unwrap();
        browser.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        let mut answer = Vec::new();
        // The end may be a reset, because the server did not read everything.
        let _ = timeout(LIMIT, browser.read_to_end(&mut answer)).await.expect("waited for the end of the connection");
        assert!(begun.elapsed() >= SHORT, "{:?}", begun.elapsed());
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
    }

    #[tokio::test]
    async fn a_connection_waits_while_all_places_are_taken() {
        let (_server, _tasks, address, path) = serving(SHORT, LIMIT).await;
        let begun = Instant::now();
        let mut idle = Vec::new();
        for _ in 0..UI_CONNECTIONS {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let mut answer = Vec::new();
        let mut browser = ask(address, &path).await;
        timeout(LIMIT, browser.read_to_end(&mut answer)).await.expect("waited for the page").unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "{answer:?}");
        assert!(begun.elapsed() >= SHORT, "it had a place after {:?}", begun.elapsed());
        drop(idle);
    }
}
