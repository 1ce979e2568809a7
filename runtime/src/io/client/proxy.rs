//! HTTP proxies between an agent and an API server, as client-go uses them: `proxy-url` of the kubeconfig, or else the
//! environment variables `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`. The agent opens a tunnel (CONNECT), so the proxy
//! sees no content.

use std::net::IpAddr;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use kube::Config;
use tokio::net::TcpStream;
use tower::{BoxError, Service};

use super::error::ClientError;

/// Environment variables that kube reads into `Config::proxy_url` if the kubeconfig names no proxy. kube does not apply
/// `NO_PROXY` to the address of the API server.
const READ_BY_KUBE: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];

/// Returns the proxy for a cluster; `None` to connect directly.
///
/// # Errors
/// If a proxy is named that is not an HTTP proxy.
pub(super) fn of(cluster: &str, config: &Config, environment: &Matcher) -> Result<Option<Intercept>, ClientError> {
    let of_environment = READ_BY_KUBE.into_iter().filter_map(|name| std::env::var(name).ok()?.parse().ok());
    let explicit = config.proxy_url.as_ref().filter(|url| !of_environment.clone().any(|other: Uri| other == **url));
    choose(cluster, &config.cluster_url, explicit, environment)
}

fn choose(
    cluster: &str,
    server: &Uri,
    explicit: Option<&Uri>,
    environment: &Matcher,
) -> Result<Option<Intercept>, ClientError> {
    let (proxy, origin) = match explicit {
        Some(url) => (Matcher::builder().all(url.to_string()).build().intercept(server), "the kubeconfig (proxy-url)"),
        None if is_loopback(server) => return Ok(None),
        None => (environment.intercept(server), "HTTPS_PROXY or ALL_PROXY"),
    };
    let unusable = |why| Err(ClientError::Proxy { cluster: cluster.to_owned(), origin, why });
    match proxy {
        Some(proxy) if proxy.uri().scheme_str() == Some("http") => Ok(Some(proxy)),
        Some(_) => unusable("only proxies with http:// are supported"),
        None if explicit.is_some() => unusable("it is not a URL such as http://proxy:3128"),
        None => Ok(None),
    }
}

/// True if the API server runs on this host. Go's HTTP client never uses a proxy of the environment for such addresses.
fn is_loopback(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns the address of a proxy without its user and password.
pub(super) fn address(proxy: &Intercept) -> String {
    let uri = proxy.uri();
    format!("{}:{}", uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(80))
}

/// Connector for TCP connections, directly or through a proxy.
#[derive(Clone, Debug)]
pub(super) enum Tcp {
    Direct(HttpConnector),
    Tunnel(Box<Tunnelled>),
}

/// Connector through a proxy.
#[derive(Clone, Debug)]
pub(super) struct Tunnelled {
    tunnel: Tunnel<HttpConnector>,
    /// Address of the proxy.
    proxy: String,
}

/// Failure of a proxy, so that nobody looks for it at the API server.
#[derive(Debug, thiserror::Error)]
#[error("the proxy {proxy} opens no tunnel to {host}: check its address, its user, its password and its rules")]
struct NoTunnel {
    proxy: String,
    host: String,
    #[source]
    cause: BoxError,
}

impl Tcp {
    pub(super) fn new(connector: HttpConnector, proxy: Option<&Intercept>) -> Self {
        let Some(proxy) = proxy else { return Self::Direct(connector) };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), connector);
        if let Some(header) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(header.clone());
        }
        Self::Tunnel(Box::new(Tunnelled { tunnel, proxy: address(proxy) }))
    }
}

impl Service<Uri> for Tcp {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Direct(connector) => connector.poll_ready(context).map_err(Into::into),
            Self::Tunnel(through) => through.tunnel.poll_ready(context).map_err(Into::into),
        }
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        match self {
            Self::Direct(connector) => {
                let connection = connector.call(server);
                Box::pin(async move { connection.await.map_err(Into::into) })
            }
            Self::Tunnel(through) => {
                let (proxy, host) = (through.proxy.clone(), server.host().unwrap_or_default().to_owned());
                let connection = through.tunnel.call(server);
                Box::pin(async move {
                    connection.await.map_err(|cause| NoTunnel { proxy, host, cause: cause.into() }.into())
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().expect("a URL")
    }

    /// Rule K13: The kubeconfig has a `proxy-url`, or `HTTPS_PROXY` or `ALL_PROXY` is set
    /// Then: The agent reaches the API server through a tunnel (CONNECT) of the proxy. `proxy-url` wins. The variables
    /// do not apply to addresses of `NO_PROXY` and of this host. A proxy without `http://` is an error at the start.
    /// The error of a proxy that opens no tunnel names the proxy
    #[test]
    fn a_proxy_is_chosen_by_kubeconfig_environment_and_address() {
        let environment = || Matcher::builder().https("http://env:3128").no("10.0.0.0/8,.svc,hub.internal").build();
        // API server, proxy-url, expected proxy
        let table = [
            ("https://hub.example.com", None, Some("env:3128")),
            ("https://hub.internal:6443", None, None),
            ("https://kubernetes.default.svc", None, None),
            ("https://10.96.0.1", None, None),
            ("https://192.0.2.1:6443", None, Some("env:3128")),
            ("https://127.0.0.1:6443", None, None),
            ("https://[::1]:6443", None, None),
            ("https://localhost:6443", None, None),
            ("https://hub.internal", Some("http://explicit"), Some("explicit:80")),
            ("https://127.0.0.1:6443", Some("http://jane:secret@explicit:8080"), Some("explicit:8080")),
            ("http://hub.example.com", None, None),
        ];
        for (server, explicit, expected) in table {
            let explicit = explicit.map(uri);
            let proxy = choose("hub", &uri(server), explicit.as_ref(), &environment()).expect("usable");
            assert_eq!(proxy.as_ref().map(address).as_deref(), expected, "{server}");
        }
        let direct = choose("hub", &uri("https://hub.example.com"), None, &Matcher::builder().build());
        assert!(direct.expect("no proxy is fine").is_none());
    }

    /// Also rule K13.
    #[test]
    fn a_user_and_a_password_become_a_header_and_are_not_shown() {
        let explicit = uri("http://jane:p%40ss@explicit:8080");
        let proxy = choose("hub", &uri("https://hub"), Some(&explicit), &Matcher::builder().build()).expect("usable");
        let proxy = proxy.expect("a proxy");
        assert_eq!(proxy.basic_auth().expect("a header"), "Basic amFuZTpwQHNz");
        assert_eq!(address(&proxy), "explicit:8080");
    }

    /// Also rule K13.
    #[test]
    fn a_proxy_of_another_kind_is_rejected_with_the_reason() {
        for (explicit, environment) in [(Some("https://proxy:3128"), ""), (None, "socks5://proxy:1080")] {
            let (explicit, environment) = (explicit.map(uri), Matcher::builder().https(environment).build());
            let error = choose("hub", &uri("https://hub"), explicit.as_ref(), &environment).expect_err("not usable");
            assert!(error.to_string().ends_with("only proxies with http:// are supported"), "{error}");
        }
    }
}
