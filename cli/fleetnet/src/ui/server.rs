//! HTTP server of the page.

use super::assets::{Asset, asset};
use super::events::events;
use super::guard::{Guard, protect};
use super::reading::{Visits, now};
use super::service::Answers;
use super::source::Finder;
use super::state::State;
use crate::cli::explain::{Codes, service};
use crate::cli::output::document;
use crate::limits::{UI_ACCEPT_PAUSE, UI_CONNECTIONS, UI_HEADER, UI_HEADER_BYTES};
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
use std::sync::Arc;
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
}

/// Accepts connections without end. Dropping this future closes all of them.
pub(super) async fn accept(server: Arc<Server>, listener: TcpListener) {
    let places = Arc::new(Semaphore::new(UI_CONNECTIONS));
    let mut running = JoinSet::new();
    loop {
        while running.try_join_next().is_some() {}
        let place = Arc::clone(&places).acquire_owned().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = serve(Arc::clone(&server), stream);
                running.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(_) => sleep(UI_ACCEPT_PAUSE).await,
        }
    }
}

/// Serves one connection. Errors are ignored, because the page notices them and connects again.
async fn serve(server: Arc<Server>, stream: TcpStream) {
    let service = service_fn(|request| {
        let server = Arc::clone(&server);
        async move { Ok::<_, Infallible>(server.answer(&request).await) }
    });
    let mut builder = http1::Builder::new();
    // Each connection has one answer. So a client that sends requests and reads no answers keeps no place.
    builder.timer(TokioTimer::new()).header_read_timeout(UI_HEADER).max_buf_size(UI_HEADER_BYTES).keep_alive(false);
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
