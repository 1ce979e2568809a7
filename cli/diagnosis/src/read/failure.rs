//! Class of a failure to reach an API server.
//!
//! The class comes from the types of the errors. For DNS and TCP there is no public type, so a second attempt finds the
//! class: it resolves the host name, and connects to the port.

use super::Target;
use crate::snapshot::{Failure, FailureClass};
use http::Uri;
use std::error::Error;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// Returns the failure of a request that got no answer.
pub async fn failure(target: &Target, error: &(dyn Error + Send + Sync + 'static), limit: Duration) -> Failure {
    let (host, port) = host_and_port(target);
    let detail = innermost(error);
    let is_tls = chain(error).any(is_tls);
    let class = if target.proxy.is_some() {
        FailureClass::Proxy
    } else if is_tls {
        FailureClass::Tls
    } else {
        class_of_connection(&host, port, limit).await
    };
    Failure { class, host, port: Some(port), detail }
}

/// Returns the failure of a request that was not answered in time.
pub(super) fn timed_out(target: &Target, limit: Duration) -> Failure {
    let (host, port) = host_and_port(target);
    let detail = format!("no answer within {} s", limit.as_secs_f64());
    Failure { class: FailureClass::Timeout, host, port: Some(port), detail }
}

/// Returns the failure of a request that was answered with an error.
pub(super) fn answered(target: &Target, status: u16, detail: String) -> Failure {
    let (host, port) = host_and_port(target);
    let class = if status == 401 { FailureClass::Unauthorized } else { FailureClass::Http(status) };
    Failure { class, host, port: Some(port), detail }
}

async fn class_of_connection(host: &str, port: u16, limit: Duration) -> FailureClass {
    let found = match timeout(limit, lookup_host((host, port))).await {
        Err(_) => return FailureClass::Timeout,
        Ok(Err(_)) => return FailureClass::Dns,
        Ok(Ok(found)) => found.collect::<Vec<_>>(),
    };
    match timeout(limit, TcpStream::connect(found.as_slice())).await {
        Err(_) => FailureClass::Timeout,
        // A server that accepts the connection closed it later, or does not speak HTTP.
        Ok(Ok(_) | Err(_)) => FailureClass::Tcp,
    }
}

/// True for an error of TLS, also inside of an I/O error.
fn is_tls(error: &(dyn Error + 'static)) -> bool {
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>() || inner.is_some_and(|inner| is_tls(inner))
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'a (dyn Error + 'static) = *error;
        error.source()
    })
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

/// Returns host and port that a connection goes to: those of the proxy if there is one.
fn host_and_port(target: &Target) -> (String, u16) {
    let url = target.proxy.as_deref().unwrap_or(&target.server_url);
    let uri: Uri = url.parse().unwrap_or_default();
    let default = if uri.scheme_str() == Some("http") { 80 } else { 443 };
    let host = uri.host().unwrap_or(url).trim_matches(['[', ']']).to_owned();
    (host, uri.port_u16().unwrap_or(default))
}
