//! Renewal of the token for another cluster. The leader asks the other cluster's API server for a new token of its
//! service account (TokenRequest), and writes the token to a Secret in its own cluster. The kubelet then updates the
//! token file in the pods of all replicas.
//!
//! ```text
//! token file ──> request to the hub, with the old token ──> new token ──> Secret ──> kubelet ──> token file
//! ```
//!
//! A renewal begins at a third of the token's life at the latest. So a token with a life of 30 days outlasts an outage
//! of the hub of 29 days.

use std::{path::PathBuf, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{Method, Request, StatusCode, header};
use kube::Client;
use serde_json::{Value, json};
use tokio::{sync::watch, time::sleep};

use crate::{
    backoff::{Backoff, Jitter},
    engine::leadership::Leadership,
    errors::with_causes,
    io::{
        client::Cluster,
        token::{TokenError, claims::Claims, read_token, token_request},
    },
    limits::{
        TOKEN_LIFE, TOKEN_RENEWAL_EVERY, TOKEN_RENEWAL_RETRY_FIRST, TOKEN_RENEWAL_RETRY_LONGEST, TOKEN_RENEWAL_SOONEST,
    },
    process::lease,
};

/// Key of the token in the Secret's data.
const KEY: &str = "token";

/// Settings of the renewal of one token.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// Cluster that accepts the token, such as the hub.
    pub issuer: Cluster,
    /// Cluster with the Secret: the agent's own cluster.
    pub own: Cluster,
    pub secret_namespace: String,
    pub secret_name: String,
    /// File with the token that the agent uses.
    pub token_file: PathBuf,
}

/// Outcome of an attempt to renew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The Secret has a new token with these claims.
    Renewed(Claims),
    /// The token does not expire, or is not of a service account. It stays as it is.
    NotRenewable(&'static str),
}

/// Reason why a token was not renewed. The present token stays in use, and the agent tries again.
#[derive(Debug, thiserror::Error)]
pub enum RenewalError {
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A user or another replica has changed the Secret, and the token file is not up to date yet.
    #[error("the Secret {0} has another token than the token file; the kubelet updates the file within two minutes")]
    FileIsBehind(String),
    #[error("{step} failed: {cause}{remedy}")]
    Request { step: &'static str, cause: String, remedy: &'static str },
    /// The answer to the TokenRequest has no usable token. The Secret stays as it is.
    #[error("the API server answered the TokenRequest with a token that {0}")]
    Unusable(&'static str),
}

/// Steps of a renewal, each with a remedy for the status 403.
mod step {
    pub(super) const READ: (&str, &str) = (
        "reading the Secret of the token",
        " (its role must allow get and patch of this Secret: apply deploy/member-agent.yaml in the member)",
    );
    pub(super) const ISSUE: (&str, &str) = (
        "the TokenRequest",
        " (its role in the hub must allow create of serviceaccounts/token: apply deploy/hub-member.yaml in the hub)",
    );
    pub(super) const WRITE: (&str, &str) = (
        "writing the new token to its Secret",
        " (its role must allow get and patch of this Secret: apply deploy/member-agent.yaml in the member)",
    );
}

impl Renewal {
    /// Renews the token at once, and then again and again, while this process leads. `report` gets the outcome of each
    /// attempt.
    pub async fn run(
        self,
        mut leadership: watch::Receiver<Leadership>,
        mut jitter: Jitter,
        report: impl Fn(&Result<Outcome, RenewalError>),
    ) {
        let retry = Backoff::new(TOKEN_RENEWAL_RETRY_FIRST, TOKEN_RENEWAL_RETRY_LONGEST);
        let mut failures = 0;
        while lease::leads(&mut leadership).await {
            let outcome = self.attempt().await;
            report(&outcome);
            let wait = match &outcome {
                Ok(outcome) => {
                    failures = 0;
                    next_renewal(outcome)
                }
                Err(_) => {
                    failures += 1;
                    retry.wait(failures, &mut jitter)
                }
            };
            log(&outcome, wait);
            sleep(wait).await;
        }
    }

    /// Renews the token once.
    async fn attempt(&self) -> Result<Outcome, RenewalError> {
        let present = self.token_in_file().await?;
        let claims = Claims::of(&present).unwrap_or_default();
        let Some((namespace, name)) = claims.service_account() else {
            return Ok(Outcome::NotRenewable("it is not the token of a service account"));
        };
        if claims.expires_at.is_none() {
            return Ok(Outcome::NotRenewable("it does not expire"));
        }
        let secret = self.secret(&present).await?;
        let renewed = self.issue(namespace, name).await?;
        let renewed_claims = check(&renewed, &claims)?;
        self.store(&secret, &renewed).await?;
        Ok(Outcome::Renewed(renewed_claims))
    }

    async fn token_in_file(&self) -> Result<String, TokenError> {
        let header = read_token(&self.token_file).await?;
        let text = String::from_utf8_lossy(header.as_bytes()).into_owned();
        Ok(text.trim_start_matches("Bearer ").to_owned())
    }

    /// Returns the Secret, if it has the token that the agent uses. A user who moves the member to another hub replaces
    /// the token; a renewal of the old token must not overwrite the new one.
    async fn secret(&self, present: &str) -> Result<Value, RenewalError> {
        let secret = send(&self.own.requests, step::READ, Method::GET, &self.secret_path(), None).await?;
        let stored = secret["data"][KEY].as_str().and_then(|text| STANDARD.decode(text).ok());
        if stored.unwrap_or_default().trim_ascii() != present.as_bytes() {
            return Err(RenewalError::FileIsBehind(format!("{}/{}", self.secret_namespace, self.secret_name)));
        }
        Ok(secret)
    }

    async fn issue(&self, namespace: &str, name: &str) -> Result<String, RenewalError> {
        let (path, body) = token_request(namespace, name, None, TOKEN_LIFE);
        let answer = send(&self.issuer.requests, step::ISSUE, Method::POST, &path, Some(&body)).await?;
        answer["status"]["token"].as_str().map(str::to_owned).ok_or(RenewalError::Unusable("is missing"))
    }

    /// Writes the token to the Secret, unless somebody else has changed the Secret since it was read.
    async fn store(&self, secret: &Value, token: &str) -> Result<(), RenewalError> {
        let version = &secret["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version}, "data": {KEY: STANDARD.encode(token)}});
        send(&self.own.requests, step::WRITE, Method::PATCH, &self.secret_path(), Some(&patch)).await?;
        Ok(())
    }

    fn secret_path(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets/{}", self.secret_namespace, self.secret_name)
    }
}

/// Returns the claims of a new token. The token must be of the same service account and must expire, so that a wrong
/// answer never replaces a token that works.
fn check(renewed: &str, present: &Claims) -> Result<Claims, RenewalError> {
    let claims = Claims::of(renewed).ok_or(RenewalError::Unusable("is not a JSON Web Token"))?;
    if claims.subject != present.subject {
        return Err(RenewalError::Unusable("is of another user"));
    }
    if claims.life().is_none() {
        return Err(RenewalError::Unusable("has no life span"));
    }
    Ok(claims)
}

/// Returns the time until the next renewal after an attempt that did not fail.
fn next_renewal(outcome: &Outcome) -> Duration {
    match outcome {
        Outcome::Renewed(claims) => claims.life().map_or(TOKEN_RENEWAL_EVERY, |life| life / 3),
        Outcome::NotRenewable(_) => TOKEN_RENEWAL_EVERY,
    }
    .clamp(TOKEN_RENEWAL_SOONEST, TOKEN_RENEWAL_EVERY)
}

fn log(outcome: &Result<Outcome, RenewalError>, wait: Duration) {
    match outcome {
        Ok(Outcome::Renewed(claims)) => {
            let expires = claims.expires_at.and_then(|at| jiff::Timestamp::from_second(at).ok());
            let expires = expires.map_or_else(|| "an unknown time".to_owned(), |at| at.to_string());
            tracing::info!(
                side = "hub",
                "the token was renewed and is valid until {expires}; next renewal in {wait:?}"
            );
        }
        Ok(Outcome::NotRenewable(why)) => tracing::info!(side = "hub", "the token is not renewed: {why}"),
        Err(error) => tracing::warn!(side = "hub", %error, "the token was not renewed; next attempt in {wait:?}"),
    }
}

/// Sends a request and returns the body of the answer. The error has a remedy if the API server refused the request.
async fn send(
    client: &Client,
    (step, remedy): (&'static str, &'static str),
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, RenewalError> {
    let failed = |cause: String, remedy| RenewalError::Request { step, cause, remedy };
    let content_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content_type);
    let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = request.body(bytes).map_err(|error| failed(error.to_string(), ""))?;
    client.request::<Value>(request).await.map_err(|error| match error {
        kube::Error::Api(status) => {
            let remedy = match StatusCode::from_u16(status.code) {
                Ok(StatusCode::FORBIDDEN) => remedy,
                Ok(StatusCode::UNAUTHORIZED) => {
                    " (the token has expired or was revoked: run `fleetnet join MEMBER --apply --context CONTEXT` with rights in both clusters)"
                }
                _ => "",
            };
            failed(format!("{} {}", status.code, status.message), remedy)
        }
        other => failed(with_causes(&other), ""),
    })
}

#[cfg(test)]
#[path = "renewal_tests.rs"]
mod tests;
