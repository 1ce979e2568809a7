//! Errors in the settings of the connection to a cluster.

use http::Uri;
use kube::config::KubeconfigError;

use crate::errors::with_causes;

/// Error in the settings of the connection to a cluster. The agent has not sent any request.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cluster {cluster}: {setting} is not usable: {why}")]
    Setting {
        cluster: String,
        /// Name of the setting for the error message, such as `the server URL`.
        setting: &'static str,
        why: String,
    },
    #[error("cluster {cluster}: the kubeconfig {origin} is not usable: {}", kubeconfig_problem(cause))]
    Kubeconfig {
        cluster: String,
        /// Place where the setting was read, such as a file or a flag.
        origin: String,
        cause: Box<KubeconfigError>,
    },
    /// The kubeconfig or the environment names a proxy that the agent cannot use.
    #[error("cluster {cluster}: the proxy of {origin} is not usable: {why}")]
    Proxy {
        cluster: String,
        /// Place of the proxy setting: the kubeconfig or an environment variable.
        origin: &'static str,
        why: &'static str,
    },
    /// The URL of the server begins with `http://`. Plain HTTP would expose the credentials to everybody on the network
    /// path.
    #[error(
        "cluster {cluster}: {url} would send the token unencrypted: use https://, or --hub-insecure-http=true to \
         accept that"
    )]
    PlainHttp { cluster: String, url: Uri },
    /// None of the sources has connection settings: no kubeconfig, no pod service account.
    #[error(
        "cluster {cluster}: no way to connect was found (no --kubeconfig, no KUBECONFIG, not in a pod: {in_cluster}; {home})"
    )]
    NothingFound {
        cluster: String,
        /// Reason why the in-cluster settings are not usable.
        in_cluster: String,
        /// Reason why `~/.kube/config` is not usable.
        home: String,
    },
    /// The TLS configuration or the credentials cannot be used.
    #[error("cluster {cluster}: the connection cannot be set up: {cause}")]
    SetUp { cluster: String, cause: Box<kube::Error> },
}

/// Returns the reason why a kubeconfig is not usable. The parser's own message shows lines of the file, and so perhaps
/// a token.
#[must_use]
pub fn kubeconfig_problem(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => format!("failed to parse kubeconfig YAML: {}", error.without_snippet()),
        error => with_causes(error),
    }
}
