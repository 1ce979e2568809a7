//! Connections to a cluster: one client for watches and one for requests, with fleetnet's own connector.
//!
//! kube's default stack leaves Nagle's algorithm on, which costs 44 ms on the first request of each new TLS connection.
//! By default, the stack has no read timeout, and repeats failed requests inside one call. The clients of this module
//! disable Nagle's algorithm, have short timeouts, and never repeat a request.
//!
//! A watch may receive nothing for a long time, but other requests must get a response soon. So watches and requests
//! have separate clients with different timeouts.

mod error;
mod pod;
mod proxy;
mod settings;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use http::{HeaderName, HeaderValue, header};
use hyper_rustls::HttpsConnector;
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::{
        legacy::connect::HttpConnector,
        proxy::matcher::{Intercept, Matcher},
    },
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ConfigExt as _},
    config::{KubeConfigOptions, Kubeconfig},
};
use tower::{BoxError, ServiceBuilder};

pub use error::{ClientError, kubeconfig_problem};
pub use pod::Pod;
use proxy::Tcp;
use settings::OWN_HEADERS;
pub use settings::parse_header_block;
pub(crate) use settings::{parse_authorities, parse_server_url};

use crate::{
    io::restores::Restores,
    io::token::{TokenFile, TokenLayer, TokenMetrics},
    limits::{CONNECT_TIMEOUT, POOL_IDLE_TIMEOUT, REQUEST_TIMEOUT, TCP_KEEPALIVE, TCP_KEEPALIVE_PROBES},
};

/// API server of one cluster, with the clients that connect to it. Clones are cheap and share their connections.
#[derive(Clone)]
pub struct Cluster {
    /// Role of the cluster for the agent, such as `member` or `hub`: the label in metrics, logs and errors.
    pub name: String,
    /// Client for watches. This client has no read timeout, because the code of each watch has its own timeouts.
    pub watches: Client,
    /// Client for all other requests, with the read timeout [`REQUEST_TIMEOUT`].
    pub requests: Client,
    /// Name of this agent in `metadata.managedFields`, which the server takes from the user agent. Empty if unknown.
    pub field_manager: String,
    /// Token file of the connection. `None` if the connection has other credentials.
    token: Option<TokenFile>,
    /// Restores from a backup that the watches of this server have noticed.
    pub(crate) restores: Restores,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cluster").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Settings to connect to the hub with an address and a token file, without a kubeconfig.
#[derive(Clone, Debug)]
pub struct HubConnection {
    /// URL of the API server. The default scheme is `https://`.
    pub server_url: String,
    /// File with the bearer token. The file may appear after the start of the agent, and may be replaced at any time.
    pub token_file: PathBuf,
    /// Certificate authorities to trust, as PEM. `None`: trust the certificate authorities of the system.
    pub ca_pem: Option<Vec<u8>>,
    /// True to accept any certificate. `ca_pem` is then ignored.
    pub insecure: bool,
    /// True to accept a URL that begins with `http://`.
    pub insecure_http: bool,
    /// Headers of every request; see [`parse_header_block`].
    pub extra_headers: Vec<(HeaderName, HeaderValue)>,
}

impl Cluster {
    /// Creates the clients from the first settings found, in this order: `kubeconfig`, the environment variable
    /// `KUBECONFIG`, the pod's service account, `~/.kube/config`. Sends no request.
    ///
    /// # Errors
    /// If no settings are found, or the settings found are malformed.
    pub async fn discover(name: &str, kubeconfig: Option<&Path>, user_agent: &str) -> Result<Self, ClientError> {
        let config = discover_config(name, kubeconfig).await?;
        Self::from_config(name, config, user_agent)
    }

    /// Creates the clients from this kubeconfig only. Sends no request.
    ///
    /// # Errors
    /// If the kubeconfig is malformed, or its server URL begins with `http://` and `insecure_http` is false.
    pub async fn from_kubeconfig(
        name: &str,
        kubeconfig: &Path,
        insecure_http: bool,
        user_agent: &str,
    ) -> Result<Self, ClientError> {
        let config = read_kubeconfig(name, kubeconfig).await?;
        check_scheme(name, &config, insecure_http)?;
        Self::from_config(name, config, user_agent)
    }

    /// Creates the clients from a pod's service account. Sends no request, and the token file need not exist yet.
    ///
    /// # Errors
    /// If the address or the certificate authority is missing or malformed.
    pub fn from_pod(name: &str, pod: &Pod, user_agent: &str) -> Result<Self, ClientError> {
        let unusable =
            |why| ClientError::Setting { cluster: name.to_owned(), setting: "the pod's service account", why };
        Self::from_config(name, pod.config().map_err(unusable)?, user_agent)
    }

    /// Creates the clients of the hub from an address and a token file. Sends no request, and the token file need not
    /// exist yet.
    ///
    /// # Errors
    /// If the address, the certificate authorities or an extra header are malformed, or the address begins with
    /// `http://` and `insecure_http` is false.
    pub fn from_hub_connection(name: &str, hub: &HubConnection, user_agent: &str) -> Result<Self, ClientError> {
        let setting = |setting, why: String| ClientError::Setting { cluster: name.to_owned(), setting, why };
        let mut config = Config::new(parse_server_url(&hub.server_url).map_err(|why| setting("the server URL", why))?);
        check_scheme(name, &config, hub.insecure_http)?;
        config.accept_invalid_certs = hub.insecure;
        config.root_cert = match &hub.ca_pem {
            // With `insecure`, the agent does not verify certificates. Trust no certificate authority, because loading
            // the system's certificate authorities fails in a container that has none.
            _ if hub.insecure => Some(Vec::new()),
            Some(pem) => Some(parse_authorities(pem).map_err(|why| setting("the certificate authority", why))?),
            None => None,
        };
        config.auth_info.token_file = Some(hub.token_file.to_string_lossy().into_owned());
        if let Some((header, _)) = hub.extra_headers.iter().find(|(header, _)| OWN_HEADERS.contains(header)) {
            return Err(setting("an extra header", format!("{header} is set by the agent itself")));
        }
        config.headers.clone_from(&hub.extra_headers);
        Self::from_config(name, config, user_agent)
    }

    /// Creates the clients from a configuration of the kube crate. Ignores the timeouts and the retry setting of the
    /// configuration.
    ///
    /// # Errors
    /// If the certificates or credentials of the configuration are malformed.
    pub fn from_config(name: &str, config: Config, user_agent: &str) -> Result<Self, ClientError> {
        Self::with_timeout(name, config, user_agent, REQUEST_TIMEOUT)
    }

    /// Returns a cluster that uses the given clients, for tests and simulations in one process.
    #[must_use]
    pub fn from_clients(name: &str, watches: Client, requests: Client) -> Self {
        Self {
            name: name.to_owned(),
            watches,
            requests,
            field_manager: String::new(),
            token: None,
            restores: Restores::default(),
        }
    }

    /// Shows expiry and life of the token in these metrics. They have no series before the first request, and none if
    /// the connection has no token file.
    pub fn show_token(&self, metrics: TokenMetrics) {
        if let Some(token) = &self.token {
            token.show(metrics);
        }
    }

    /// Creates the clients as [`Self::from_config`] does, with another time limit for the answer to a request.
    ///
    /// # Errors
    /// As [`Self::from_config`].
    pub fn with_timeout(
        name: &str,
        mut config: Config,
        user_agent: &str,
        request_timeout: Duration,
    ) -> Result<Self, ClientError> {
        install_crypto_provider();
        warn_of_what_is_not_protected(name, &config);
        let field_manager = user_agent.split('/').next().unwrap_or_default().to_owned();
        let user_agent = HeaderValue::from_str(user_agent).map_err(|error| ClientError::Setting {
            cluster: name.to_owned(),
            setting: "the user agent",
            why: error.to_string(),
        })?;
        config.headers.push((header::USER_AGENT, user_agent));
        // Remove the token file from kube's configuration. Otherwise kube would also read the file, and would fail if
        // the file does not exist at the start.
        let token = config.auth_info.token_file.take().map(|path| TokenFile::new(path.into()));
        let proxy = proxy::of(name, &config, &Matcher::from_env())?;
        if let Some(proxy) = &proxy {
            tracing::info!(side = name, proxy = proxy::address(proxy), "requests to this cluster go through a proxy");
        }
        let client = |read_timeout| {
            assemble(&config, proxy.as_ref(), token.clone(), read_timeout)
                .map_err(|cause| ClientError::SetUp { cluster: name.to_owned(), cause: Box::new(cause) })
        };
        let (watches, requests) = (client(None)?, client(Some(request_timeout))?);
        Ok(Self { name: name.to_owned(), watches, requests, field_manager, token, restores: Restores::default() })
    }
}

/// Builds a client. A request passes through its parts in this order: server address, credentials, headers, connection
/// pool.
fn assemble(
    config: &Config,
    proxy: Option<&Intercept>,
    token: Option<TokenFile>,
    read_timeout: Option<Duration>,
) -> kube::Result<Client> {
    let pool: hyper_util::client::legacy::Client<_, Body> =
        hyper_util::client::legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .build(connector(config, proxy, read_timeout)?);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .option_layer(token.map(TokenLayer::new))
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(pool);
    Ok(Client::new(service, config.default_namespace.clone()))
}

fn connector(
    config: &Config,
    proxy: Option<&Intercept>,
    read_timeout: Option<Duration>,
) -> kube::Result<TimeoutConnector<HttpsConnector<Tcp>>> {
    let tcp = Tcp::new(tcp_connector(), proxy);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp)?);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_write_timeout(Some(REQUEST_TIMEOUT));
    connector.set_read_timeout(read_timeout);
    // Restart the read timeout at each write. Otherwise the time that a connection was idle in the pool counts as
    // waiting time of the next response.
    connector.set_reset_reader_on_write(true);
    Ok(connector)
}

fn tcp_connector() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_keepalive(Some(TCP_KEEPALIVE));
    tcp.set_keepalive_interval(Some(TCP_KEEPALIVE));
    tcp.set_keepalive_retries(Some(TCP_KEEPALIVE_PROBES));
    tcp
}

/// Selects ring as rustls' cryptography for the whole process, unless a provider is already selected.
fn install_crypto_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread selected a provider at the same time. That provider works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// Sources of a cluster's connection settings. The agent tries them in the same order as the Go agents.
#[derive(Debug, PartialEq, Eq)]
enum Origin<'a> {
    /// Kubeconfig that a flag names.
    File(&'a Path),
    /// Kubeconfig files that the variable `KUBECONFIG` lists.
    Environment,
    /// The pod's service account, or else `~/.kube/config`.
    PodOrHome,
}

fn origin<'a>(kubeconfig: Option<&'a Path>, environment: Option<&std::ffi::OsStr>) -> Origin<'a> {
    match (kubeconfig, environment) {
        (Some(path), _) if !path.as_os_str().is_empty() => Origin::File(path),
        (_, Some(list)) if !list.is_empty() => Origin::Environment,
        _ => Origin::PodOrHome,
    }
}

async fn read_kubeconfig(cluster: &str, path: &Path) -> Result<Config, ClientError> {
    let origin = path.display().to_string();
    let kubeconfig = Kubeconfig::read_from(path).map_err(|cause| ClientError::Kubeconfig {
        cluster: cluster.to_owned(),
        origin: origin.clone(),
        cause: Box::new(cause),
    })?;
    config_from(cluster, &origin, kubeconfig).await
}

async fn discover_config(cluster: &str, kubeconfig: Option<&Path>) -> Result<Config, ClientError> {
    let unusable = |origin: &str, cause| ClientError::Kubeconfig {
        cluster: cluster.to_owned(),
        origin: origin.to_owned(),
        cause: Box::new(cause),
    };
    match origin(kubeconfig, std::env::var_os("KUBECONFIG").as_deref()) {
        Origin::File(path) => read_kubeconfig(cluster, path).await,
        Origin::Environment => {
            let kubeconfig = Kubeconfig::read().map_err(|cause| unusable("of KUBECONFIG", cause))?;
            config_from(cluster, "of KUBECONFIG", kubeconfig).await
        }
        Origin::PodOrHome => match Pod::here().config() {
            Ok(config) => Ok(config),
            Err(in_cluster) => match Kubeconfig::read() {
                Ok(kubeconfig) => config_from(cluster, "~/.kube/config", kubeconfig).await,
                Err(home) => Err(ClientError::NothingFound {
                    cluster: cluster.to_owned(),
                    in_cluster,
                    home: kubeconfig_problem(&home),
                }),
            },
        },
    }
}

pub(crate) async fn config_from(cluster: &str, origin: &str, kubeconfig: Kubeconfig) -> Result<Config, ClientError> {
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(|cause| {
        ClientError::Kubeconfig { cluster: cluster.to_owned(), origin: origin.to_owned(), cause: Box::new(cause) }
    })
}

pub(crate) fn check_scheme(cluster: &str, config: &Config, insecure_http: bool) -> Result<(), ClientError> {
    match config.cluster_url.scheme_str() {
        Some("http") if !insecure_http => {
            Err(ClientError::PlainHttp { cluster: cluster.to_owned(), url: config.cluster_url.clone() })
        }
        _ => Ok(()),
    }
}

fn warn_of_what_is_not_protected(cluster: &str, config: &Config) {
    if config.cluster_url.scheme_str() == Some("http") {
        tracing::warn!(
            side = cluster,
            "the connection to the API server is plain http: everybody on the network path can read the token"
        );
    } else if config.accept_invalid_certs {
        tracing::warn!(
            side = cluster,
            "the certificate of the API server is not verified: everybody on the network path can read the token"
        );
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the doubles are plain functions, which cannot await a lock")]
mod tests {
    use std::{
        convert::Infallible,
        ffi::OsStr,
        sync::{Arc, Mutex},
    };

    use http::{HeaderMap, Request, Response, Uri};
    use http_body_util::Full;
    use hyper::{body::Incoming, server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use rustix::net::sockopt;
    use tokio::{net::TcpListener, sync::Notify};
    use tower::ServiceExt as _;

    use super::*;

    /// Test server that responds to each request with 200 and an empty object, but only after the test calls
    /// `may_answer.notify_one()`. Remembers the headers of each request.
    struct Server {
        url: String,
        seen: Arc<Mutex<Vec<HeaderMap>>>,
        may_answer: Arc<Notify>,
    }

    impl Server {
        async fn start() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let seen = Arc::new(Mutex::new(Vec::new()));
            let may_answer = Arc::new(Notify::new());
            tokio::spawn(accept(listener, seen.clone(), may_answer.clone()));
            Self { url, seen, may_answer }
        }

        fn hub_connection(&self, token_file: &Path) -> HubConnection {
            HubConnection {
                server_url: self.url.clone(),
                token_file: token_file.to_owned(),
                ca_pem: None,
                insecure: true,
                insecure_http: true,
                extra_headers: Vec::new(),
            }
        }
    }

    async fn accept(listener: TcpListener, seen: Arc<Mutex<Vec<HeaderMap>>>, may_answer: Arc<Notify>) {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (seen, may_answer) = (seen.clone(), may_answer.clone());
            tokio::spawn(http1::Builder::new().serve_connection(
                TokioIo::new(stream),
                service_fn(move |request: Request<Incoming>| {
                    let (seen, may_answer) = (seen.clone(), may_answer.clone());
                    async move {
                        seen.lock().unwrap().push(request.headers().clone());
                        may_answer.notified().await;
                        Ok::<_, Infallible>(Response::new(Full::new(bytes::Bytes::from_static(b"{}"))))
                    }
                }),
            ));
        }
    }

    fn get() -> Request<Body> {
        Request::get("/version").body(Body::empty()).unwrap()
    }

    #[tokio::test]
    async fn a_connection_never_waits_to_fill_a_packet_and_notices_a_dead_peer_within_a_minute() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target: Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let stream = tcp_connector().oneshot(target).await.unwrap();
        let socket = stream.inner();
        assert!(socket.nodelay().unwrap());
        assert!(sockopt::socket_keepalive(socket).unwrap());
        assert_eq!(sockopt::tcp_keepidle(socket).unwrap(), Duration::from_secs(15));
        assert_eq!(sockopt::tcp_keepintvl(socket).unwrap(), Duration::from_secs(15));
        assert_eq!(sockopt::tcp_keepcnt(socket).unwrap(), 3);
    }

    #[tokio::test]
    async fn requests_carry_the_token_the_user_agent_and_the_extra_headers() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "secret").unwrap();
        let server = Server::start().await;
        let mut hub = server.hub_connection(&folder.path().join("token"));
        hub.extra_headers = parse_header_block("X-Route: blue\n").unwrap();
        let cluster = Cluster::from_hub_connection("hub", &hub, "agent/1.0").unwrap();

        for client in [&cluster.watches, &cluster.requests] {
            server.may_answer.notify_one();
            assert_eq!(client.send(get()).await.unwrap().status(), 200);
        }

        let seen = server.seen.lock().unwrap();
        assert_eq!(seen.len(), 2);
        for headers in seen.iter() {
            assert_eq!(headers["authorization"], "Bearer secret");
            assert_eq!(headers["user-agent"], "agent/1.0");
            assert_eq!(headers["x-route"], "blue");
        }
    }

    #[tokio::test]
    async fn a_silent_server_ends_a_request_and_not_a_watch() {
        let server = Server::start().await;
        let config = Config::new(server.url.parse().unwrap());
        let timeout = Duration::from_millis(50);
        let cluster = Cluster::with_timeout("hub", config, "agent/1.0", timeout).unwrap();

        let watch = tokio::spawn({
            let watches = cluster.watches.clone();
            async move { watches.send(get()).await.map(|response| response.status()) }
        });
        let sent = tokio::time::timeout(Duration::from_secs(20), cluster.requests.send(get())).await;

        assert!(sent.is_ok_and(|answer| answer.is_err()), "the request went on past its timeout");
        assert!(!watch.is_finished());
        server.may_answer.notify_waiters();
        server.may_answer.notify_one();
        assert_eq!(watch.await.unwrap().unwrap(), 200);
    }

    #[tokio::test]
    async fn malformed_hub_settings_are_rejected_by_name() {
        let hub = HubConnection {
            server_url: "https://hub:6443".to_owned(),
            token_file: "/token".into(),
            ca_pem: None,
            insecure: false,
            insecure_http: false,
            extra_headers: Vec::new(),
        };
        let rejection =
            |hub: HubConnection| Cluster::from_hub_connection("hub", &hub, "agent/1.0").unwrap_err().to_string();

        assert_eq!(
            rejection(HubConnection { server_url: "ftp://hub".to_owned(), ..hub.clone() }),
            "cluster hub: the server URL is not usable: \"ftp://hub\" is not of the form https://host:port"
        );
        assert_eq!(
            rejection(HubConnection { server_url: "http://hub:8080".to_owned(), insecure: true, ..hub.clone() }),
            "cluster hub: http://hub:8080/ would send the token unencrypted: use https://, or \
             --hub-insecure-http=true to accept that"
        );
        assert_eq!(
            rejection(HubConnection { ca_pem: Some(b"no certificate".to_vec()), ..hub.clone() }),
            "cluster hub: the certificate authority is not usable: it contains no PEM certificate"
        );
        let authorization = vec![(header::AUTHORIZATION, HeaderValue::from_static("Basic x"))];
        assert_eq!(
            rejection(HubConnection { extra_headers: authorization, ..hub }),
            "cluster hub: an extra header is not usable: authorization is set by the agent itself"
        );
    }

    #[test]
    fn a_server_url_without_a_scheme_means_https() {
        assert_eq!(parse_server_url("hub.example:6443").unwrap().to_string(), "https://hub.example:6443/");
        assert_eq!(parse_server_url(" https://hub.example ").unwrap().to_string(), "https://hub.example/");
        assert!(parse_server_url("").is_err());
    }

    #[test]
    fn a_server_url_with_a_malformed_port_is_an_error() {
        for address in ["https://hub:6443x", "https://hub:99999", "hub:port", "https://[::1]:x", "https://hub:"] {
            let error = parse_server_url(address).expect_err(address);
            assert_eq!(error, format!("{address:?} is not of the form https://host:port"));
        }
        for address in ["https://hub:6443/path", "https://[::1]:6443", "https://[::1]"] {
            assert!(parse_server_url(address).is_ok(), "{address}");
        }
    }

    #[test]
    fn a_server_url_with_a_password_is_not_repeated() {
        for address in ["https://me:secret@hub", "me:sec ret@hub", "https://me:sec/ret@hub", "ftp://me:secret@hub"] {
            assert_eq!(
                parse_server_url(address).unwrap_err(),
                "it contains a user or a password, and the agent uses only the token file: remove it",
                "{address}"
            );
        }
    }

    #[test]
    fn a_header_block_is_read_line_by_line_and_never_overrides_our_own() {
        let headers = parse_header_block("X-One: 1\r\n\r\nx-two:two words\n").unwrap();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(headers, [("x-one", "1"), ("x-two", "two words")]);

        assert_eq!(parse_header_block("nonsense").unwrap_err(), "line 1 is not of the form Name: value");
        assert_eq!(parse_header_block("\nbad name: x").unwrap_err(), "line 2: \"bad name\" is not a header name");
        assert_eq!(
            parse_header_block("Authorization: Bearer x").unwrap_err(),
            "line 1: authorization is set by the agent itself"
        );
        assert_eq!(parse_header_block("").unwrap(), []);
    }

    #[test]
    fn the_flag_wins_over_the_environment_and_that_over_the_pod() {
        let flag = Path::new("/flag");
        assert_eq!(origin(Some(flag), Some(OsStr::new("/environment"))), Origin::File(flag));
        assert_eq!(origin(None, Some(OsStr::new("/environment"))), Origin::Environment);
        assert_eq!(origin(Some(Path::new("")), None), Origin::PodOrHome);
        assert_eq!(origin(None, Some(OsStr::new(""))), Origin::PodOrHome);
    }

    #[tokio::test]
    async fn a_proxy_that_cannot_be_used_is_rejected_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = kubeconfig_of(folder.path(), "{server: 'https://hub', proxy-url: 'https://proxy'}");
        let error = Cluster::from_kubeconfig("hub", &path, false, "agent/1").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "cluster hub: the proxy of the kubeconfig (proxy-url) is not usable: only proxies with http:// are supported"
        );
    }

    fn kubeconfig_of(folder: &Path, server: &str) -> PathBuf {
        let path = folder.join("kubeconfig");
        let text = format!(
            "{{clusters: [{{name: c, cluster: {server}}}], contexts: [{{name: x, context: {{cluster: c, user: u}}}}],
              users: [{{name: u, user: {{token: t}}}}], current-context: x}}"
        );
        std::fs::write(&path, text).unwrap();
        path
    }

    #[tokio::test]
    async fn a_kubeconfig_of_the_hub_with_plain_http_is_accepted_only_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let path = kubeconfig_of(folder.path(), "{server: 'http://hub:8080'}");
        let error = Cluster::from_kubeconfig("hub", &path, false, "agent/1.0").await.unwrap_err().to_string();
        assert!(error.starts_with("cluster hub: http://hub:8080/ would send the token unencrypted"), "{error}");
        assert!(Cluster::from_kubeconfig("hub", &path, true, "agent/1.0").await.is_ok());
    }

    #[tokio::test]
    async fn a_connection_that_others_can_read_is_warned_of() {
        let folder = tempfile::tempdir().unwrap();
        let table = [
            ("{server: 'https://hub'}", None),
            (
                "{server: 'https://hub', insecure-skip-tls-verify: true}",
                Some(
                    "the certificate of the API server is not verified: everybody on the network path can read the \
                     token",
                ),
            ),
            (
                "{server: 'http://hub'}",
                Some(
                    "the connection to the API server is plain http: everybody on the network path can read the token",
                ),
            ),
        ];
        for (server, warning) in table {
            let path = kubeconfig_of(folder.path(), server);
            let config = read_kubeconfig("hub", &path).await.unwrap();
            let lines =
                crate::process::logging::lines(|| drop(Cluster::from_config("hub", config, "agent/1.0").unwrap()));
            let reported: Vec<_> =
                lines.iter().map(|line| (line["level"].as_str(), line["message"].as_str())).collect();
            assert_eq!(reported, warning.map(|warning| (Some("WARN"), Some(warning))).into_iter().collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn the_error_of_a_malformed_kubeconfig_does_not_show_its_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let text = "users:\n- name: u\n  user:\n    token: not-for-logs\n    as-groups: 7\n";
        std::fs::write(&path, text).unwrap();
        let error = read_kubeconfig("hub", &path).await.unwrap_err().to_string();
        assert!(error.contains("expected sequence start at line 5, column 16"), "{error}");
        assert!(!error.contains("not-for-logs") && !error.contains('\n'), "{error}");
    }

    #[tokio::test]
    async fn a_kubeconfig_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let error = Cluster::discover("member", Some(&path), "agent/1.0").await.unwrap_err().to_string();
        assert!(error.starts_with("cluster member: the kubeconfig "), "{error}");
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }
}
