//! Tokens for another audience than the API server: the agent asks the API server for a token of its own ServiceAccount
//! (TokenRequest).

use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::Value;

use crate::clock::Clock;
use crate::errors::with_causes;
use crate::io::token::claims::{Claims, service_account};
use crate::io::token::token_request;
use crate::limits::AUDIENCE_TOKEN_LIFE;

/// Token with the time for which it is used.
#[derive(Clone, PartialEq, Eq)]
pub struct AudienceToken {
    pub token: String,
    /// Time until the token must be replaced: two thirds of its life, and of an hour at most.
    pub renew_after: Duration,
}

/// Reason why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum AudienceTokenError {
    #[error("the user {0:?} of this agent in the hub is no ServiceAccount, so the hub issues no token for it")]
    NoServiceAccount(String),
    #[error(
        "the role of this agent in the hub does not allow create of serviceaccounts/token: apply deploy/hub-member.yaml in \
         the hub"
    )]
    Forbidden,
    #[error("the hub's API server issued no token: {0}")]
    Failed(String),
}

/// Requests a token of the agent's own ServiceAccount for an audience.
///
/// # Errors
/// If the agent's user is no ServiceAccount, or if the API server issues no token.
pub async fn request(client: &Client, audience: &str, clock: &Clock) -> Result<AudienceToken, AudienceTokenError> {
    let failed = |error: kube::Error| AudienceTokenError::Failed(with_causes(&error));
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.map_err(failed)?;
    let user = review.status.and_then(|status| status.user_info).and_then(|user| user.username).unwrap_or_default();
    let Some((namespace, name)) = service_account(&user) else {
        return Err(AudienceTokenError::NoServiceAccount(user));
    };
    let (path, body) = token_request(namespace, name, Some(audience), AUDIENCE_TOKEN_LIFE);
    let request = Request::builder().method(Method::POST).uri(path).header(header::CONTENT_TYPE, "application/json");
    let request = request.body(body.to_string().into_bytes());
    let request = request.map_err(|error| AudienceTokenError::Failed(error.to_string()))?;
    let answer = client.request::<Value>(request).await.map_err(|error| match error {
        kube::Error::Api(status) if status.code == StatusCode::FORBIDDEN => AudienceTokenError::Forbidden,
        other => failed(other),
    })?;
    let token = answer["status"]["token"].as_str().filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| AudienceTokenError::Failed("the answer has no token".to_owned()))?.to_owned();
    let renew_after = renew_after(&token, clock);
    Ok(AudienceToken { token, renew_after })
}

/// Returns the time for which a new token is used. The API server may change the life that was asked for.
fn renew_after(token: &str, clock: &Clock) -> Duration {
    let claims = Claims::of(token).unwrap_or_default();
    let left = || {
        let seconds = claims.expires_at?.checked_sub(clock.now().0 / 1_000_000)?;
        u64::try_from(seconds).ok().map(Duration::from_secs)
    };
    // Its own life does not depend on the clock of this machine. So a wrong clock does not make the agent use an
    // expired token.
    let life = claims.life().or_else(left).unwrap_or(AUDIENCE_TOKEN_LIFE);
    // A server that grants more does not honour the token for longer: the hub agent ends a stream after this time.
    let life = life.min(AUDIENCE_TOKEN_LIFE);
    life * 2 / 3
}

impl std::fmt::Debug for AudienceToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AudienceToken").field("renew_after", &self.renew_after).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "audience_tests.rs"]
mod tests;
