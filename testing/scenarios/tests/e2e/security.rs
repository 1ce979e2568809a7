//! Tests of what the API servers of a fleet enforce: the roles, the admission policies, and the flow control. The roles
//! and objects are those of `deploy/`, the tokens are those of service accounts, and kube-apiserver is the real one.

mod flow_control;
mod mcs;
mod member_policy;
mod policy;
mod refused;
mod requests;

use serde_json::{Value, json};

/// Answer of an API server.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: http::HeaderMap,
    /// Body, or null if the server did not answer with JSON.
    body: Value,
}

impl Answer {
    fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the message of a Status, or nothing.
    fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

/// Sends a request as it is, also if the server refuses it.
async fn send(client: &kube::Client, request: http::request::Builder, body: Option<&Value>) -> anyhow::Result<Answer> {
    let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
    let response = client.send(request.body(body.into())?).await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.into_body().collect_bytes().await?;
    Ok(Answer { status, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}

/// Returns a request with the content type of its body: a merge patch for PATCH, otherwise JSON.
fn request(method: &str, path: &str) -> http::request::Builder {
    let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    http::Request::builder().method(method).uri(path).header(http::header::CONTENT_TYPE, content)
}

/// Sends requests until an answer fulfils `condition`. The server needs a moment before it uses new roles, policies and
/// schemas.
async fn until(
    what: &str,
    mut condition: impl FnMut(&Answer) -> bool,
    mut ask: impl AsyncFnMut() -> anyhow::Result<Answer>,
) -> anyhow::Result<Answer> {
    let deadline = harness::eventually::Deadline::start();
    loop {
        let answer = ask().await?;
        if condition(&answer) {
            return Ok(answer);
        }
        deadline.pause(|| format!("{what}; the last answer: {answer:?}")).await?;
    }
}

/// Waits until the hub uses both admission policies: it refuses an object that names another member, and a token for a
/// year.
async fn policy_is_used(member: &kube::Client, cluster_id: &str) -> anyhow::Result<()> {
    let path = policy::path(cluster_id, "internalserviceimports");
    let forged = policy::claim("probe", "another-member");
    let path = format!("{path}?dryRun=All");
    let what = "the hub does not use the policy";
    let ask = async || send(member, request("POST", &path), Some(&forged)).await;
    until(what, |it| it.message().contains(policy::DENIED), ask).await?;
    let path = format!("/api/v1/namespaces/fleet-member-{cluster_id}/serviceaccounts/member-agent/token?dryRun=All");
    let year = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                      "spec": {"audiences": [], "expirationSeconds": 31_536_000}});
    let ask = async || send(member, request("POST", &path), Some(&year)).await;
    until("the hub does not use the policy about tokens", |it| it.message().contains(policy::TOKEN_DENIED), ask)
        .await
        .map(drop)
}

/// Returns a reference to an object of a cluster, as in an export or a claim.
fn reference(cluster_id: &str, kind: &str, name: &str) -> Value {
    json!({
        "clusterId": cluster_id, "kind": kind, "namespace": "work", "name": name, "namespacedName": format!("work/{name}"),
        "resourceVersion": "1", "generation": 1, "uid": format!("uid-of-{name}"),
    })
}
