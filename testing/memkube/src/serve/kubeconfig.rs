//! Content of kubeconfig files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// Returns a kubeconfig with one cluster, one user and one context. Strings are written as JSON strings, which are
/// valid YAML for any content.
///
/// The context and the user have the name `<user>@<cluster>`. kubectl merges the users of several kubeconfigs by their
/// names, so users of two clusters must not have the same name.
#[must_use]
pub fn text(cluster: &str, url: &str, authority_pem: &str, user: &str, token: &str) -> String {
    let context = json!(format!("{user}@{cluster}"));
    let authority = STANDARD.encode(authority_pem);
    let (cluster, url, token) = (json!(cluster), json!(url), json!(token));
    format!(
        "apiVersion: v1
kind: Config
current-context: {context}
clusters:
- name: {cluster}
  cluster:
    server: {url}
    certificate-authority-data: {authority}
users:
- name: {context}
  user:
    token: {token}
contexts:
- name: {context}
  context:
    cluster: {cluster}
    user: {context}
"
    )
}
