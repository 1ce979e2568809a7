//! Proxy between one agent and a real API server. It records the agent's writes.
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
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

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

/// Verbs and resources of the writes that a proxy has forwarded, in the order of the first write of each.
#[derive(Clone, Debug, Default)]
pub struct Line(Arc<Mutex<Vec<String>>>);

impl Line {
    /// Returns verb and resource of the recorded writes, without Leases and Events.
    #[must_use]
    pub fn passed(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    /// Records the verb and resource of a write.
    fn record(&self, write: String) {
        let mut passed = self.0.lock();
        if !passed.contains(&write) {
            passed.push(write);
        }
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
    if let Some(write) = written(&request) {
        line.record(write);
    }
    Ok(upstream.send(for_upstream(request).await?).await?)
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
