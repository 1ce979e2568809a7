//! Admin server: `/metrics`, `/healthz` and `/readyz` in plain HTTP, with the same content on every listen address.
//!
//! With [`Secure`], the addresses of metrics serve only `/metrics`, over TLS and for clients that the API server
//! accepts. The addresses of probes then serve only `/healthz` and `/readyz`, in plain HTTP.
//!
//! Every client in the pod network can connect, without authentication. A probe must get its response even if other
//! clients open many connections. So the server accepts every connection, but above a limit each new connection closes
//! an older one ([`connections`]). It encodes metrics at most once a second, and runs apart from the engine
//! ([`crate::process::listeners`]).

mod certificates;
pub mod connections;
mod exposition;

pub use certificates::{CertificateError, Certificates, Server};

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    fmt::Write as _,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus::Registry;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};

use crate::process::access::{Access, Client, Guard, Question};
use crate::process::listeners::Liveness;
use crate::process::reviews::{Wanted, bearer};

use crate::limits::{ADMIN_CONNECTION_LIFETIME, ADMIN_CONNECTIONS, ADMIN_HEADER_TIMEOUT, ADMIN_REQUESTS};

use exposition::Exposition;

/// Listen address of the admin server, parsed from a flag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BindAddress {
    /// The admin server does not listen (flag value `0`).
    Off,
    /// All addresses of the machine, with this port: `:8080`, `0.0.0.0:8080` or `[::]:8080`. With port 0, the system
    /// chooses a free port.
    AllAddresses(u16),
    /// One address or host name, with a port: `127.0.0.1:8080`, `localhost:8080`.
    Host(String, u16),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a listen address: use :port, host:port, or 0 for none")]
pub struct InvalidAddress(String);

impl std::str::FromStr for BindAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let invalid = || InvalidAddress(text.to_owned());
        if text == "0" {
            return Ok(Self::Off);
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let port = port.parse().map_err(|_| invalid())?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match bare.unwrap_or(host) {
            "" | "0.0.0.0" | "::" => Ok(Self::AllAddresses(port)),
            // Without brackets, the port of an IPv6 address is ambiguous.
            host if bare.is_none() && host.contains(':') => Err(invalid()),
            host => Ok(Self::Host(host.to_owned(), port)),
        }
    }
}

impl BindAddress {
    /// True if the system chooses a free port. Two such addresses are different.
    #[must_use]
    pub const fn is_any_port(&self) -> bool {
        matches!(self, Self::AllAddresses(0) | Self::Host(_, 0))
    }

    /// Listens on this address.
    ///
    /// # Errors
    /// If the system refuses the address, or if it is [`BindAddress::Off`].
    pub async fn listen(&self) -> io::Result<TcpListener> {
        match self {
            Self::Off => Err(io::ErrorKind::InvalidInput.into()),
            Self::Host(host, port) => TcpListener::bind((host.as_str(), *port)).await,
            // Listen on IPv6, because an IPv6 socket also accepts IPv4 connections. On a machine without IPv6, listen
            // on IPv4.
            Self::AllAddresses(port) => match TcpListener::bind((Ipv6Addr::UNSPECIFIED, *port)).await {
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                    TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).await
                }
                bound => bound,
            },
        }
    }
}

impl std::fmt::Display for BindAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off => formatter.write_str("0"),
            Self::AllAddresses(port) => write!(formatter, ":{port}"),
            Self::Host(host, port) if host.contains(':') => write!(formatter, "[{host}]:{port}"),
            Self::Host(host, port) => write!(formatter, "{host}:{port}"),
        }
    }
}

/// Error of an admin server that cannot listen on one of its addresses.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for metrics and probes: {cause}. Choose another address, or 0 for none")]
pub struct AdminError {
    /// Listen address, as written in the flag.
    pub address: String,
    #[source]
    pub cause: io::Error,
}

/// Content of `/readyz`: the agent is ready if all required checks are ok. Optional checks are listed for information
/// only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Result of each readiness check, by the check's name.
    pub checks: BTreeMap<String, Check>,
}

/// One line of `/readyz`: a readiness check and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub ok: bool,
    /// True if the agent is not ready while this check fails. False for a check that is only for information.
    pub required: bool,
    /// State of the check as text for people, such as an error message.
    pub detail: String,
}

impl Readiness {
    /// True if all required checks are ok, or there are none.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.checks.values().all(|check| check.ok || !check.required)
    }

    /// Returns one line for each check, in the form of Kubernetes' verbose probes.
    fn text(&self) -> String {
        let mut text = String::new();
        for (name, Check { ok, required, detail }) in &self.checks {
            let mark = if *ok { '+' } else { '-' };
            let note = if *ok || *required { "" } else { " (not required)" };
            // Writing to a `String` does not fail.
            let _ = writeln!(text, "[{mark}]{name}: {detail}{note}");
        }
        text.push_str(if self.is_ready() { "ready\n" } else { "not ready\n" });
        text
    }
}

/// Data sources for the responses.
#[derive(Clone)]
pub struct AdminSources {
    /// Metrics that `/metrics` shows.
    pub registry: Registry,
    /// Liveness of the engine's thread, which `/healthz` shows.
    pub engine: Liveness,
    /// Computes the response to `/readyz`. The server calls this function for each request.
    pub readiness: Arc<dyn Fn() -> Readiness + Send + Sync>,
}

/// Protection of the metrics: TLS, and clients that the API server accepts.
#[derive(Debug)]
pub struct Secure {
    pub certificates: Certificates,
    pub guard: Guard,
}

/// Sources that all connections share.
struct Shared {
    metrics: Exposition,
    engine: Liveness,
    readiness: Arc<dyn Fn() -> Readiness + Send + Sync>,
}

/// Content that a listen address serves.
#[derive(Clone)]
enum Serving {
    /// Metrics and probes in plain HTTP.
    Everything,
    /// Probes in plain HTTP.
    Probes,
    /// Metrics over TLS, for clients that the API server accepts.
    Metrics(Arc<Secure>),
}

impl Serving {
    /// Returns the message for the log when the server listens.
    const fn message(&self) -> &'static str {
        match self {
            Self::Everything => "serving metrics and probes",
            Self::Probes => "serving probes",
            Self::Metrics(_) => "serving metrics over TLS",
        }
    }
}

/// Running admin server. Dropping the value stops the server.
#[derive(Debug)]
pub struct AdminServer {
    addresses: Vec<SocketAddr>,
    _tasks: JoinSet<()>,
}

impl AdminServer {
    /// Starts the server on all these addresses, with the same content on each. A repeated address counts once.
    ///
    /// # Errors
    /// If the server cannot listen on one of the addresses.
    pub async fn start(addresses: &[BindAddress], sources: AdminSources) -> Result<Self, AdminError> {
        Self::start_all(&[(addresses, Serving::Everything)], sources).await
    }

    /// Starts the server with protected metrics on the addresses `metrics`, and probes in plain HTTP on the addresses
    /// `probes`.
    ///
    /// # Errors
    /// If the server cannot listen on one of the addresses.
    pub async fn start_secure(
        metrics: &[BindAddress],
        probes: &[BindAddress],
        sources: AdminSources,
        secure: Secure,
    ) -> Result<Self, AdminError> {
        let secure = Serving::Metrics(Arc::new(secure));
        Self::start_all(&[(metrics, secure), (probes, Serving::Probes)], sources).await
    }

    async fn start_all(parts: &[(&[BindAddress], Serving)], sources: AdminSources) -> Result<Self, AdminError> {
        let mut listeners = Vec::new();
        for (addresses, serving) in parts {
            let wanted: BTreeSet<&BindAddress> =
                addresses.iter().filter(|address| **address != BindAddress::Off).collect();
            for address in wanted {
                let failed = |cause| AdminError { address: address.to_string(), cause };
                let listener = address.listen().await.map_err(failed)?;
                let local = listener.local_addr().map_err(failed)?;
                tracing::info!(address = %local, asked = %address, "{}", serving.message());
                listeners.push((local, listener, serving.clone()));
            }
        }
        let AdminSources { registry, engine, readiness } = sources;
        let shared = Arc::new(Shared { metrics: Exposition::new(registry), engine, readiness });
        let mut tasks = JoinSet::new();
        let mut bound = Vec::new();
        for (local, listener, serving) in listeners {
            bound.push(local);
            tasks.spawn(accept(listener, Arc::clone(&shared), serving));
        }
        Ok(Self { addresses: bound, _tasks: tasks })
    }

    /// Returns the addresses that the server listens on. Port 0 is replaced by the port that the system chose.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, serving: Serving) {
    connections::accept(listener, "metrics or probes", ADMIN_CONNECTIONS, |stream, peer| {
        let served = serve(stream, peer.address, Arc::clone(&shared), serving.clone());
        // Close every connection after this lifetime, also if the client is still active. Such a client connects again.
        async move { drop(timeout(ADMIN_CONNECTION_LIFETIME, served).await) }
    })
    .await;
}

async fn serve(stream: TcpStream, client: IpAddr, shared: Arc<Shared>, serving: Serving) {
    let served = match &serving {
        Serving::Metrics(secure) => match secure.certificates.handshake(stream, client).await {
            Some(stream) => serve_requests(stream, client, shared, serving.clone()).await,
            None => return,
        },
        Serving::Everything | Serving::Probes => serve_requests(stream, client, shared, serving.clone()).await,
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection for metrics or probes ended");
    }
}

async fn serve_requests(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    client: IpAddr,
    shared: Arc<Shared>,
    serving: Serving,
) -> hyper::Result<()> {
    let requests = AtomicUsize::new(0);
    let service = service_fn(move |request: Request<Incoming>| {
        let (shared, serving) = (Arc::clone(&shared), serving.clone());
        let is_last = requests.fetch_add(1, Ordering::Relaxed) + 1 >= ADMIN_REQUESTS;
        async move {
            let mut response = respond(&request, client, &shared, &serving).await;
            if is_last {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ADMIN_HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

async fn respond<B>(request: &Request<B>, client: IpAddr, shared: &Shared, serving: &Serving) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are supported\n");
    }
    match (request.uri().path(), serving) {
        ("/metrics", Serving::Everything) => metrics(&shared.metrics).await,
        ("/metrics", Serving::Metrics(secure)) => {
            let authorization = request.headers().get(header::AUTHORIZATION);
            let token = authorization.and_then(bearer);
            let question = token.map(|token| Question { token, audience: None, wanted: Wanted::Path("/metrics") });
            let access = match question {
                Some(question) => secure.guard.access(Client::Stranger(client), question).await,
                None => Ok(Access::Unauthenticated),
            };
            match refusal(access) {
                Some(refusal) => refusal,
                None => metrics(&shared.metrics).await,
            }
        }
        ("/healthz", Serving::Everything | Serving::Probes) => {
            if shared.engine.is_alive() {
                text(StatusCode::OK, "ok\n")
            } else {
                text(StatusCode::SERVICE_UNAVAILABLE, "the thread of the engine is stuck\n")
            }
        }
        ("/readyz", Serving::Everything | Serving::Probes) => {
            let readiness = (shared.readiness)();
            let status = if readiness.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            text(status, readiness.text())
        }
        (_, Serving::Everything) => text(StatusCode::NOT_FOUND, "use /metrics, /healthz or /readyz\n"),
        (_, Serving::Probes) => {
            text(StatusCode::NOT_FOUND, "use /healthz or /readyz. Metrics have another address, with TLS\n")
        }
        (_, Serving::Metrics(_)) => text(StatusCode::NOT_FOUND, "use /metrics. Probes have another address\n"),
    }
}

/// Returns the response to a client without access to the metrics. `None` for a client with access.
fn refusal(access: Result<Access, kube::Error>) -> Option<Response<Full<Bytes>>> {
    match access {
        Ok(Access::Granted) => None,
        Ok(Access::Unauthenticated) => {
            Some(text(StatusCode::UNAUTHORIZED, "send a bearer token that this cluster's API server accepts\n"))
        }
        Ok(Access::Denied(user)) => {
            let message =
                format!("user {user} may not get the non-resource URL /metrics: grant it with a ClusterRole\n");
            Some(text(StatusCode::FORBIDDEN, message))
        }
        Err(error) => {
            tracing::warn!(
                %error,
                "a client of the metrics cannot be checked. The agent needs the rights in deploy/metrics-auth.yaml"
            );
            Some(text(StatusCode::INTERNAL_SERVER_ERROR, "the API server did not say if this client has access\n"))
        }
    }
}

async fn metrics(exposition: &Exposition) -> Response<Full<Bytes>> {
    match exposition.text().await {
        Ok(body) => response(StatusCode::OK, HeaderValue::from_static(prometheus::TEXT_FORMAT), body),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("the metrics cannot be encoded: {error}\n")),
    }
}

fn text(status: StatusCode, body: impl Into<String>) -> Response<Full<Bytes>> {
    response(status, HeaderValue::from_static("text/plain; charset=utf-8"), body.into().into())
}

fn response(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the doubles are plain functions, which cannot await a lock")]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use prometheus::IntCounter;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpSocket;
    use tokio::time::{Instant, sleep};
    use tokio_rustls::TlsConnector;

    use super::*;
    use crate::process::access::tests::Reviewer;

    /// Time limit in real time for operations that normally take milliseconds. A test that hangs fails after this time.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn readiness([local, hub]: [bool; 2]) -> Readiness {
        let checks = [
            ("member".to_owned(), Check { ok: local, required: true, detail: "3 of 3 watches".to_owned() }),
            ("hub".to_owned(), Check { ok: hub, required: false, detail: "0 of 2 watches".to_owned() }),
        ];
        Readiness { checks: checks.into() }
    }

    fn sources(state: &Arc<Mutex<Readiness>>) -> AdminSources {
        let registry = Registry::new();
        let counter = IntCounter::new("things_total", "Things.").unwrap();
        counter.inc();
        registry.register(Box::new(counter)).unwrap();
        let state = state.clone();
        let readiness = Arc::new(move || state.lock().unwrap().clone());
        AdminSources { registry, engine: Liveness::start(), readiness }
    }

    async fn start(addresses: &[&str]) -> Result<AdminServer, AdminError> {
        let addresses: Vec<BindAddress> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        AdminServer::start(&addresses, sources(&Arc::new(Mutex::new(readiness([true, true]))))).await
    }

    async fn start_one() -> (AdminServer, SocketAddr) {
        let server = start(&["127.0.0.1:0"]).await.unwrap();
        let address = server.addresses()[0];
        (server, address)
    }

    /// Sends one request. Returns the status line, headers and body of the response as text.
    async fn ask(address: SocketAddr, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn every_address_serves_the_same_routes() {
        let server = start(&["127.0.0.1:0", "localhost:0"]).await.unwrap();
        assert_eq!(server.addresses().len(), 2);
        for address in server.addresses() {
            assert_ne!(address.port(), 0);
            let metrics = ask(*address, "GET", "/metrics").await;
            assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
            assert!(metrics.contains("content-type: text/plain; version=0.0.4"), "{metrics}");
            assert!(metrics.contains("\nthings_total 1\n"), "{metrics}");
            assert!(ask(*address, "GET", "/healthz").await.ends_with("\r\n\r\nok\n"));
            assert!(ask(*address, "GET", "/readyz").await.ends_with("ready\n"));
            assert!(ask(*address, "GET", "/").await.starts_with("HTTP/1.1 404 "));
            assert!(ask(*address, "POST", "/metrics").await.starts_with("HTTP/1.1 405 "));
            assert!(ask(*address, "HEAD", "/healthz").await.ends_with("\r\n\r\n"));
        }
    }

    #[tokio::test]
    async fn equal_addresses_are_bound_once_and_zero_is_off() {
        let server = start(&["127.0.0.1:0", "0", "127.0.0.1:0"]).await.unwrap();
        assert_eq!(server.addresses().len(), 1);
        let server = start(&[":0", "0.0.0.0:0", "[::]:0"]).await.unwrap();
        assert_eq!(server.addresses().len(), 1);
        let server = start(&["0", "0"]).await.unwrap();
        assert_eq!(server.addresses().len(), 0);
    }

    #[tokio::test]
    async fn an_address_in_use_is_named() {
        let server = start(&["127.0.0.1:0"]).await.unwrap();
        let taken = server.addresses()[0].to_string();
        let error = start(&[&taken]).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot listen on {taken} for metrics and probes: ")), "{error}");
    }

    /// Rule K10: A required check fails
    /// Then: `/readyz` answers 503 and shows the result of each check. Each kind that the process watches in a cluster
    /// has one check, also if two of its agents watch the kind. A check is required if the kind is in the agent's own
    /// cluster and is not optional. While another cluster owns the cluster id (rule O2), a required check `blocked`
    /// also fails
    #[tokio::test]
    async fn readiness_needs_what_is_required_and_shows_the_rest() {
        let state = Arc::new(Mutex::new(readiness([true, false])));
        let server = AdminServer::start(&["127.0.0.1:0".parse().unwrap()], sources(&state)).await.unwrap();
        let address = server.addresses()[0];
        let answer = ask(address, "GET", "/readyz").await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let body = "[-]hub: 0 of 2 watches (not required)\n[+]member: 3 of 3 watches\nready\n";
        assert!(answer.ends_with(body), "{answer}");

        *state.lock().unwrap() = readiness([false, true]);
        let answer = ask(address, "GET", "/readyz").await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.ends_with("[+]hub: 0 of 2 watches\n[-]member: 3 of 3 watches\nnot ready\n"), "{answer}");
    }

    /// Starts a server with protected metrics. Returns the server and a TLS client that trusts its certificate.
    async fn start_secure(reviewer: &Reviewer) -> (AdminServer, TlsConnector) {
        let folder = tempfile::tempdir().unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificates::tests::write(folder.path())).unwrap();
        let client = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let certificates = Certificates::open(Server::METRICS, Some(folder.path()), "pod").await.unwrap();
        let secure = Secure { certificates, guard: Guard::of_metrics(reviewer.client()) };
        let addresses: [BindAddress; 2] = ["127.0.0.1:0", "localhost:0"].map(|address| address.parse().unwrap());
        let sources = sources(&Arc::new(Mutex::new(readiness([true, true]))));
        let started = AdminServer::start_secure(&addresses[..1], &addresses[1..], sources, secure).await;
        (started.unwrap(), TlsConnector::from(Arc::new(client)))
    }

    /// Sends one request over TLS. Returns the response as text.
    async fn ask_over_tls(tls: &TlsConnector, address: SocketAddr, path: &str, token: Option<&str>) -> String {
        let stream = TcpStream::connect(address).await.unwrap();
        let mut stream = tls.connect("localhost".try_into().unwrap(), stream).await.unwrap();
        let token = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\n{token}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // The server may close the connection without the end of TLS.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    /// Rule K12: A client reads protected metrics (`--metrics-secure`)
    /// Then: The agent serves the metrics over TLS to clients whose bearer token the API server accepts (TokenReview),
    /// if their user may `get` the non-resource URL `/metrics` (SubjectAccessReview). Other clients get 401 or 403. The
    /// agent uses a grant for 60 s and a denial for 10 s, and makes at most 20 reviews a second. Clients wait in turn
    /// (rule K15). A replaced certificate is used within 10 s. Probes stay in plain HTTP on their own addresses
    #[tokio::test]
    async fn protected_metrics_need_tls_and_an_accepted_client_and_probes_stay_open() {
        let reviewer = Reviewer::default();
        let (server, tls) = start_secure(&reviewer).await;
        let [metrics, probes] = server.addresses() else { panic!("two addresses: {:?}", server.addresses()) };
        let played = async {
            for (token, status) in [(None, 401), (Some("nobody"), 401), (Some("other"), 403), (Some("scraper"), 200)] {
                let answer = ask_over_tls(&tls, *metrics, "/metrics", token).await;
                assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{token:?}: {answer}");
                assert_eq!(answer.contains("things_total 1"), status == 200, "{token:?}: {answer}");
            }
            let probe = ask_over_tls(&tls, *metrics, "/readyz", Some("scraper")).await;
            assert!(probe.starts_with("HTTP/1.1 404 "), "{probe}");
            assert!(ask(*probes, "GET", "/healthz").await.ends_with("ok\n"));
            assert!(ask(*probes, "GET", "/readyz").await.ends_with("ready\n"));
            let open = ask(*probes, "GET", "/metrics").await;
            assert!(open.starts_with("HTTP/1.1 404 ") && !open.contains("things_total"), "{open}");
            let mut plain = TcpStream::connect(*metrics).await.unwrap();
            plain.write_all(b"GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
            let mut answer = Vec::new();
            let _ = plain.read_to_end(&mut answer).await;
            assert!(!String::from_utf8_lossy(&answer).contains("HTTP"), "plain HTTP is no TLS: {answer:?}");
        };
        timeout(PATIENCE, played).await.expect("the server answers");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_finish_its_tls_handshake_is_disconnected_after_10_s() {
        let (server, _tls) = start_secure(&Reviewer::default()).await;
        let begun = Instant::now();
        let mut stream = TcpStream::connect(server.addresses()[0]).await.unwrap();
        assert!(is_closed(&mut stream).await);
        assert_eq!(begun.elapsed().as_secs(), 10);
    }

    #[tokio::test]
    async fn a_self_signed_certificate_is_made_where_none_is_given() {
        let certificates = Certificates::open(Server::METRICS, None, "hub-agent-0").await.unwrap();
        let secure = Secure { certificates, guard: Guard::of_metrics(Reviewer::default().client()) };
        let address = ["127.0.0.1:0".parse().unwrap()];
        let sources = sources(&Arc::new(Mutex::new(readiness([true, true]))));
        let server = AdminServer::start_secure(&address, &[], sources, secure).await.unwrap();
        assert_eq!(server.addresses().len(), 1);
    }

    #[tokio::test]
    async fn a_dropped_server_stops_listening() {
        let (server, address) = start_one().await;
        assert!(ask(address, "GET", "/healthz").await.ends_with("ok\n"));
        drop(server);
        let closed = async {
            while TcpStream::connect(address).await.is_ok() {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, closed).await.expect("it still listens a minute later");
    }

    /// Connects from the loopback address `client`. The server counts 127.0.0.2 and 127.0.0.1 as two clients.
    async fn connect_from(client: &str, server: SocketAddr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(client.parse().unwrap(), 0)).unwrap();
        socket.connect(server).await.unwrap()
    }

    /// Sends a request on a connection that stays open, and returns the body of the response. `None` if the server
    /// closed the connection.
    async fn ask_on(stream: &mut TcpStream) -> Option<String> {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n").await.ok()?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"ok\n") {
            let mut part = [0; 1024];
            match stream.read(&mut part).await {
                Ok(0) | Err(_) => return None,
                Ok(read) => answer.extend_from_slice(&part[..read]),
            }
        }
        String::from_utf8(answer).ok()
    }

    /// Waits until the server closes the connection or sends data. Returns true if the server closed the connection.
    async fn is_closed(stream: &mut TcpStream) -> bool {
        matches!(stream.read(&mut [0]).await, Ok(0) | Err(_))
    }

    /// Also rule K9.
    #[tokio::test]
    async fn a_probe_is_answered_whatever_another_client_opens() {
        let server = start(&["127.0.0.1:0", ":0"]).await.unwrap();
        let played = async {
            for address in server.addresses() {
                let address = SocketAddr::from(([127, 0, 0, 1], address.port()));
                let mut kubelet = connect_from("127.0.0.1", address).await;
                assert!(ask_on(&mut kubelet).await.is_some());
                let mut hostile = Vec::new();
                for _ in 0..ADMIN_CONNECTIONS + 10 {
                    hostile.push(connect_from("127.0.0.2", address).await);
                }
                // The kubelet's first connection stays open, and a request on a new connection also gets a response.
                assert!(ask_on(&mut kubelet).await.is_some(), "the probe's connection was closed");
                assert!(ask(address, "GET", "/healthz").await.ends_with("ok\n"));
                // The server has closed the oldest connection of the client with the most connections.
                assert!(is_closed(&mut hostile[0]).await);
                assert!(ask_on(hostile.last_mut().unwrap()).await.is_some());
            }
        };
        timeout(PATIENCE, played).await.expect("probes are answered while others hold connections");
    }

    /// Also rule K9.
    #[tokio::test]
    async fn a_probe_is_answered_whatever_many_other_clients_open() {
        let (_server, address) = start_one().await;
        let played = async {
            let mut hostile = Vec::new();
            for number in 0..ADMIN_CONNECTIONS {
                hostile.push(connect_from(&format!("127.0.1.{}", number + 1), address).await);
            }
            assert!(ask(address, "GET", "/healthz").await.ends_with("ok\n"));
            assert!(is_closed(&mut hostile[0]).await, "of clients that have one each, the oldest goes");
        };
        timeout(PATIENCE, played).await.expect("a probe is answered while others hold connections");
    }

    #[tokio::test]
    async fn a_connection_that_ended_takes_no_place() {
        let (_server, address) = start_one().await;
        let played = async {
            let mut first = connect_from("127.0.0.1", address).await;
            for _ in 0..2 * ADMIN_CONNECTIONS {
                assert!(ask(address, "GET", "/healthz").await.ends_with("ok\n"));
            }
            assert!(ask_on(&mut first).await.is_some(), "it was closed for connections that had ended");
        };
        timeout(PATIENCE, played).await.expect("the server answers");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_no_complete_head_is_disconnected_after_10_s() {
        let (_server, address) = start_one().await;
        let (begun, mut stream) = (Instant::now(), TcpStream::connect(address).await.unwrap());
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: te").await.unwrap();
        assert!(is_closed(&mut stream).await);
        assert_eq!(begun.elapsed().as_secs(), 10);
    }

    /// Also rule K14.
    #[tokio::test(start_paused = true)]
    async fn a_connection_is_closed_after_60_s_however_busy_it_is() {
        let (_server, address) = start_one().await;
        let (begun, mut stream) = (Instant::now(), TcpStream::connect(address).await.unwrap());
        while ask_on(&mut stream).await.is_some() {
            assert!(begun.elapsed() < Duration::from_secs(600), "it is never closed");
            sleep(Duration::from_secs(4)).await;
        }
        assert!((59..=64).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    }

    /// Also rule K14.
    #[tokio::test]
    async fn a_connection_is_closed_after_100_requests() {
        let server = start(&["127.0.0.1:0"]).await.unwrap();
        let played = async {
            let mut stream = TcpStream::connect(server.addresses()[0]).await.unwrap();
            for number in 1..=100 {
                let answer = ask_on(&mut stream).await.unwrap();
                assert_eq!(answer.contains("connection: close"), number == 100, "{number}: {answer}");
            }
            assert!(is_closed(&mut stream).await);
        };
        timeout(PATIENCE, played).await.expect("the server answers");
    }

    /// Also rule K14.
    #[tokio::test(start_paused = true)]
    async fn an_agent_whose_engine_is_stuck_for_30_s_is_not_healthy() {
        let healthz = async |engine: &Liveness| {
            let AdminSources { registry, readiness, .. } = sources(&Arc::default());
            let shared = Shared { metrics: Exposition::new(registry), engine: engine.clone(), readiness };
            let request = Request::get("/healthz").body(()).unwrap();
            respond(&request, Ipv4Addr::LOCALHOST.into(), &shared, &Serving::Probes).await.status()
        };
        // The runtime ends, so its task shows nothing any more.
        let stuck = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { Liveness::start() })
        });
        let (stuck, running) = (stuck.join().unwrap(), Liveness::start());
        assert_eq!(healthz(&stuck).await, StatusCode::OK);
        sleep(Duration::from_secs(31)).await;
        assert_eq!(healthz(&stuck).await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(healthz(&running).await, StatusCode::OK);
    }

    #[test]
    fn addresses_are_read_as_the_go_agents_read_them() {
        let read = |text: &str| text.parse::<BindAddress>();
        assert_eq!(read("0"), Ok(BindAddress::Off));
        assert_eq!(read(":8080"), Ok(BindAddress::AllAddresses(8080)));
        assert_eq!(read("[::]:8080"), Ok(BindAddress::AllAddresses(8080)));
        assert_eq!(read("127.0.0.1:8080"), Ok(BindAddress::Host("127.0.0.1".to_owned(), 8080)));
        assert_eq!(read("[::1]:0"), Ok(BindAddress::Host("::1".to_owned(), 0)));
        assert_eq!(read("[::1]:0").unwrap().to_string(), "[::1]:0");
        for text in ["", "8080", "::1:80", "host:", "host:65536", "host:-1"] {
            assert_eq!(read(text), Err(InvalidAddress(text.to_owned())), "{text:?}");
        }
    }
}
