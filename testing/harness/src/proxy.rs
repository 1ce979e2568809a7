//! Proxy between one agent and a real API server. A test can choose a write at which the proxy stops. The proxy
//! forwards everything before this write, and nothing after it.
//!
//! The agent sends plain HTTP. The proxy sends each request to the server over HTTPS, with the agent's token.

use crate::kubeconfig::Access;
use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Write at which a proxy stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Verb and resource of the write, such as `create endpointsliceexports` or `patch serviceexports/status`. The
    /// proxy stops at the first such write.
    pub write: String,
    /// True if the proxy still sends this write to the server. Even then, the agent gets no response.
    pub carried_out: bool,
}

/// Running proxy, which ends when this value is dropped.
pub struct Proxy {
    /// Access with which the agent reaches the server through the proxy.
    pub access: Access,
    connections: tokio::task::JoinHandle<()>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Proxy").field("url", &self.access.server_url).finish_non_exhaustive()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.connections.abort();
    }
}

/// Shared state of all proxies of one agent: if one proxy stops, all of them stop.
#[derive(Clone, Debug)]
pub struct Line(Arc<State>);

#[derive(Debug)]
struct State {
    /// Text in object names. Writes to objects with this text in their name are not recorded and never stop the
    /// proxies.
    ignored: Option<String>,
    /// Delay of each request before it is sent to the server.
    delay: Duration,
    stop: Mutex<Option<Stop>>,
    /// Verbs and resources of forwarded writes, in the order of the first write of each.
    passed: Mutex<Vec<String>>,
    stopped: watch::Sender<bool>,
}

impl Default for Line {
    fn default() -> Self {
        Self::but_for(None)
    }
}

impl Line {
    /// Returns the shared state for proxies that ignore writes to objects with this text in their names. `None` ignores
    /// no writes.
    #[must_use]
    pub fn but_for(ignored: Option<&str>) -> Self {
        Self::new(ignored, Duration::ZERO)
    }

    /// Returns the shared state for proxies that delay each request to the server.
    #[must_use]
    pub fn slow(delay: Duration) -> Self {
        Self::new(None, delay)
    }

    fn new(ignored: Option<&str>, delay: Duration) -> Self {
        let (stop, passed, stopped) = (Mutex::default(), Mutex::default(), watch::Sender::new(false));
        Self(Arc::new(State { ignored: ignored.map(str::to_owned), delay, stop, passed, stopped }))
    }

    /// Clears the recorded writes. From now on, the proxies stop at the first write that matches `stop`. Without `stop`
    /// they do not stop.
    pub fn arm(&self, stop: Option<Stop>) {
        *self.0.stop.lock() = stop;
        self.0.passed.lock().clear();
    }

    /// Returns verb and resource of the recorded writes since the last [`Line::arm`], without Leases and Events.
    #[must_use]
    pub fn passed(&self) -> Vec<String> {
        self.0.passed.lock().clone()
    }

    /// Waits until the agent's proxies have stopped.
    pub async fn stopped(&self) {
        // The wait cannot fail: `self` owns the channel's sender.
        let _ = self.0.stopped.subscribe().wait_for(|stopped| *stopped).await;
    }

    /// Records the verb and resource of a write. Returns the planned stop if the proxies must stop at this write,
    /// otherwise `None`.
    fn meets(&self, write: &str, path: &str) -> Option<Stop> {
        if self.0.ignored.as_ref().is_some_and(|ignored| path.contains(ignored)) {
            return None;
        }
        let mut passed = self.0.passed.lock();
        if !passed.iter().any(|known| known == write) {
            passed.push(write.to_owned());
        }
        self.0.stop.lock().take_if(|stop| stop.write == write)
    }

    async fn stop<T>(&self) -> T {
        self.0.stopped.send_replace(true);
        pending().await
    }
}

impl Proxy {
    /// Starts a proxy for a user of a server.
    pub async fn start(access: &Access, line: &Line) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port is free on 127.0.0.1")?;
        let server_url = format!("http://{}", listener.local_addr()?);
        let upstream = access.client().await?;
        let connections = tokio::spawn(accept(listener, upstream, line.clone()));
        Ok(Self { access: Access { server_url, ..access.clone() }, connections })
    }
}

async fn accept(listener: TcpListener, upstream: Client, line: Line) {
    // Dropping this set ends all connections.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, upstream.clone(), line.clone()));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, upstream: Client, line: Line) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| pass(request, upstream.clone(), line.clone()));
    // An error ends this connection. The agent notices, and connects again.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn pass(request: Request<Incoming>, upstream: Client, line: Line) -> anyhow::Result<Response<Body>> {
    if *line.0.stopped.borrow() {
        return line.stop().await;
    }
    tokio::time::sleep(line.0.delay).await;
    let stop = written(&request).and_then(|write| line.meets(&write, request.uri().path()));
    if stop.as_ref().is_some_and(|stop| !stop.carried_out) {
        return line.stop().await;
    }
    let answer = upstream.send(for_upstream(request).await?).await;
    if stop.is_some() || *line.0.stopped.borrow() {
        return line.stop().await;
    }
    Ok(answer?)
}

/// Converts an agent's request to one for kube's client, which adds the server's address and the token.
async fn for_upstream(request: Request<Incoming>) -> anyhow::Result<Request<Body>> {
    let (mut parts, body) = request.into_parts();
    let body: Bytes = body.collect().await?.to_bytes();
    for own in [header::HOST, header::AUTHORIZATION, header::CONTENT_LENGTH, header::CONNECTION] {
        parts.headers.remove(own);
    }
    let path = parts.uri.path_and_query().map(ToString::to_string).ok_or_else(|| anyhow!("a request has a path"))?;
    parts.uri = path.parse()?;
    Ok(Request::from_parts(parts, Body::from(body.to_vec())))
}

/// Returns the verb and resource of a write to objects; `None` for reads, Leases and Events.
fn written<B>(request: &Request<B>) -> Option<String> {
    let verb = match *request.method() {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => return None,
    };
    let segments: Vec<&str> = request.uri().path().split('/').filter(|segment| !segment.is_empty()).collect();
    let namespaces = segments.iter().position(|segment| *segment == "namespaces")?;
    let (resource, subresource) = (segments.get(namespaces + 2)?, segments.get(namespaces + 4));
    if matches!(*resource, "leases" | "memberagents" | "events") {
        return None;
    }
    Some(subresource.map_or_else(|| format!("{verb} {resource}"), |sub| format!("{verb} {resource}/{sub}")))
}

#[cfg(test)]
mod tests {
    use super::written;
    use http::Request;

    #[test]
    fn writes_are_named_by_verb_resource_and_subresource() {
        let table = [
            ("POST", "/apis/g.io/v1/namespaces/a/widgets", Some("create widgets")),
            ("PATCH", "/apis/g.io/v1/namespaces/a/widgets/w?x=1", Some("patch widgets")),
            ("PATCH", "/apis/g.io/v1/namespaces/a/widgets/w/status", Some("patch widgets/status")),
            ("DELETE", "/api/v1/namespaces/a/services/s", Some("delete services")),
            ("GET", "/api/v1/namespaces/a/services/s", None),
            ("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l", None),
            ("POST", "/api/v1/namespaces/a/events", None),
        ];
        for (method, path, expected) in table {
            let request = Request::builder().method(method).uri(path).body(()).expect("a request");
            assert_eq!(written(&request).as_deref(), expected, "{method} {path}");
        }
    }
}
