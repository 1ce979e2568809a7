//! Reasons why a cluster cannot be reached or refuses a request, with the place where the connection fails.

use diagnosis::snapshot::FailureClass;
use fleetnet_runtime::io::client::ClientError;
use http::Uri;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

/// Class of a failure. A timeout has its own class: it says nothing about the cluster but that it did not answer in
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// No kubeconfig has the context.
    NoContext,
    /// A kubeconfig is missing or malformed, or names a file that is.
    Kubeconfig,
    /// The name of the server has no address.
    Dns,
    /// The server or a router refuses the connection.
    Tcp,
    /// The certificate or the TLS protocol does not fit.
    Tls,
    /// The connection goes through a proxy, and the proxy fails.
    Proxy,
    /// No answer within the time limit.
    Timeout,
    /// The server refuses the credentials (401).
    Unauthorized,
    /// The user may not do this (403).
    Forbidden,
    /// Another HTTP status.
    Http,
    /// A failure without one of the other classes.
    Other,
}

impl Class {
    /// Word for messages and JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::NoContext => "NoContext",
            Self::Kubeconfig => "Kubeconfig",
            Self::Dns => "DNS",
            Self::Tcp => "TCP",
            Self::Tls => "TLS",
            Self::Proxy => "Proxy",
            Self::Timeout => "Timeout",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::Http => "HTTP",
            Self::Other => "Other",
        }
    }

    /// Returns the class of the diagnosis.
    pub(crate) fn of_diagnosis(self, status: u16) -> FailureClass {
        match self {
            Self::NoContext | Self::Kubeconfig | Self::Other => FailureClass::Context,
            Self::Dns => FailureClass::Dns,
            Self::Tcp => FailureClass::Tcp,
            Self::Tls => FailureClass::Tls,
            Self::Proxy => FailureClass::Proxy,
            Self::Timeout => FailureClass::Timeout,
            Self::Unauthorized => FailureClass::Unauthorized,
            Self::Forbidden | Self::Http => FailureClass::Http(status),
        }
    }

    /// Returns what the user can do.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Self::NoContext => "name the right context",
            Self::Kubeconfig => "correct the kubeconfig",
            Self::Forbidden => "ask the administrator of the cluster for the right",
            Self::Other => Self::Http.remedy(),
            _ => self.of_diagnosis(0).remedy(),
        }
    }
}

/// Failure of a connection or a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) class: Class,
    /// Context of the cluster. Empty if the failure is before a context is known.
    pub(crate) context: String,
    /// URL of the server. Empty if it is not known.
    pub(crate) url: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// HTTP status of the answer. 0 if there was none.
    pub(crate) status: u16,
    /// Words of the server or of the client.
    pub(crate) detail: String,
}

impl Failure {
    pub(crate) fn new(class: Class, detail: &str) -> Self {
        let (context, url, host) = Default::default();
        Self { class, context, url, host, port: 0, status: 0, detail: detail.to_owned() }
    }

    /// Returns the failure of a request that had no answer in time.
    pub(crate) fn timeout(limit: Duration) -> Self {
        Self::new(Class::Timeout, &format!("no answer within {limit:?}"))
    }

    /// Returns the failure of settings with which no connection can begin.
    pub(crate) fn of_settings(error: &ClientError) -> Self {
        let class = if matches!(error, ClientError::Proxy { .. }) { Class::Proxy } else { Class::Kubeconfig };
        Self::new(class, &causes(error))
    }

    /// Returns the failure of a request of kube's client.
    pub(crate) fn of(error: &kube::Error) -> Self {
        if let kube::Error::Api(status) = error {
            let class = match status.code {
                401 => Class::Unauthorized,
                403 => Class::Forbidden,
                _ => Class::Http,
            };
            let detail = format!("{} {}: {}", status.code, status.reason, status.message);
            return Self { status: status.code, ..Self::new(class, &detail) };
        }
        Self::new(class_of(error), &causes(error))
    }

    /// Adds the context and the address of its server.
    pub(crate) fn at(mut self, context: &str, server: Option<&Uri>) -> Self {
        context.clone_into(&mut self.context);
        if let Some(server) = server {
            self.url = server.to_string();
            self.host = server.host().unwrap_or_default().to_owned();
            let default = if server.scheme_str() == Some("http") { 80 } else { 443 };
            self.port = server.port_u16().unwrap_or(default);
        }
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.context.is_empty() {
            write!(formatter, "context {}", self.context)?;
            if !self.url.is_empty() {
                write!(formatter, " ({}, host {}, port {})", self.url, self.host, self.port)?;
            }
            formatter.write_str(": ")?;
        }
        write!(formatter, "{}: {}: {}", self.class.word(), self.detail, self.class.remedy())
    }
}

impl Error for Failure {}

/// Returns the class of an error without an HTTP status. The chain of causes has types for most classes. For DNS and
/// proxies, hyper has no public types, so their messages decide.
fn class_of(error: &(dyn Error + 'static)) -> Class {
    let mut class = Class::Other;
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = class_of_one(error) {
            class = found;
        }
        if class == Class::Proxy {
            return class; // below, the cause is that of the connection to the proxy
        }
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = match inner {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    class
}

fn class_of_one(error: &(dyn Error + 'static)) -> Option<Class> {
    if error.is::<rustls::Error>() {
        return Some(Class::Tls);
    }
    if let Some(error) = error.downcast_ref::<kube::Error>() {
        return match error {
            kube::Error::Auth(_) => Some(Class::Unauthorized),
            kube::Error::ProxyProtocolDisabled { .. } | kube::Error::ProxyProtocolUnsupported { .. } => {
                Some(Class::Proxy)
            }
            kube::Error::InferKubeconfig(_) => Some(Class::Kubeconfig),
            _ => None,
        };
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return match error.kind() {
            io::ErrorKind::TimedOut => Some(Class::Timeout),
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe => Some(Class::Tcp),
            _ => None,
        };
    }
    let text = error.to_string();
    if text.starts_with("dns error") {
        return Some(Class::Dns);
    }
    text.contains("proxy").then_some(Class::Proxy)
}

/// Returns an error with all its causes, without repeating one that already is in the text before.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(error: io::Error) -> kube::Error {
        kube::Error::Service(Box::new(error))
    }

    #[test]
    fn the_class_is_that_of_the_deepest_cause() {
        let tls = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let refused = anyhow::Error::new(io::Error::from(io::ErrorKind::ConnectionRefused));
        let of_proxy = refused.context("the proxy opens no tunnel").into_boxed_dyn_error();
        let table = [
            (service(io::ErrorKind::ConnectionRefused.into()), Class::Tcp),
            (service(io::ErrorKind::TimedOut.into()), Class::Timeout),
            (service(io::Error::other(tls)), Class::Tls),
            (service(io::Error::other("dns error")), Class::Dns),
            (service(io::Error::other("else")), Class::Other),
            (service(io::Error::other(of_proxy)), Class::Proxy),
            (kube::Error::ProxyProtocolDisabled { proxy_url: Box::default(), protocol_feature: "x" }, Class::Proxy),
        ];
        for (error, class) in table {
            assert_eq!(Failure::of(&error).class, class, "{error:?}");
        }
    }

    #[test]
    fn a_failure_names_context_url_host_port_class_and_remedy() {
        let server: Uri = "https://hub.test:6443/api".parse().unwrap();
        let failure = Failure::new(Class::Tcp, "connection refused").at("hub", Some(&server));
        assert_eq!(
            failure.to_string(),
            "context hub (https://hub.test:6443/api, host hub.test, port 6443): TCP: connection refused: check that the \
             server runs and that a firewall lets this machine through"
        );
        let server: Uri = "https://hub.test/".parse().unwrap();
        assert_eq!(Failure::timeout(Duration::from_secs(5)).at("hub", Some(&server)).port, 443);
        assert_eq!(
            Failure::new(Class::Kubeconfig, "a: no such file").to_string(),
            "Kubeconfig: a: no such file: correct the kubeconfig"
        );
    }
}
