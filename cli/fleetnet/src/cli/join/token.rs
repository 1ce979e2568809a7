//! Token of a member for the hub: its claims, and a new one by TokenRequest.

use super::manifests::{ACCOUNT, TOKEN_SECRET, Token, namespace};
use crate::cli::contexts::connect::Cluster;
use crate::cli::exit::Stop;
use crate::cli::objects::{Reference, write_failed};
use crate::limits::{POLL, TOKEN_WAIT};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::Api;
use kube::api::PostParams;
use std::time::Duration;

/// Life of a token that the command asks for. A hub may grant less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// The token expires after this time.
    For(Duration),
    /// The token does not expire.
    Unlimited,
}

impl Life {
    pub(crate) fn kind(self) -> Token {
        match self {
            Self::For(_) => Token::Expires,
            Self::Unlimited => Token::NeverExpires,
        }
    }
}

/// Parses `--token-ttl`. API servers refuse a life of less than ten minutes.
pub(crate) fn life(written: &str) -> Result<Life, String> {
    if written == "none" {
        return Ok(Life::Unlimited);
    }
    let life = fleetnet_agent::go_flags::parse_duration(written)
        .map_err(|_| "use none, or a duration such as 720h".to_owned())?;
    if life < Duration::from_secs(600) {
        return Err("API servers grant no token for less than 10m".to_owned());
    }
    Ok(Life::For(life))
}

/// What the claims of a token say. Only the hub knows if the token is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claims {
    /// The text is not a token of a ServiceAccount.
    Malformed,
    /// Subject, expiry, and the time at which half of the life is over. A token without an expiry does not expire.
    Token { subject: String, expires: Option<Timestamp>, half: Option<Timestamp> },
}

/// Returns the claims of a token. The signature is not verified.
pub(crate) fn claims(token: &str) -> Claims {
    let claims = fleetnet_runtime::io::token::claims::Claims::of(token).unwrap_or_default();
    let life = claims.life();
    match claims.subject {
        None => Claims::Malformed,
        Some(subject) => {
            let expires = claims.expires_at.and_then(|seconds| Timestamp::from_second(seconds).ok());
            let half = life.and_then(|life| expires?.checked_sub(life / 2).ok());
            Claims::Token { subject, expires, half }
        }
    }
}

/// User name of the member's ServiceAccount in the hub.
pub(crate) fn user(member: &str) -> String {
    format!("system:serviceaccount:{}:{ACCOUNT}", namespace(member))
}

/// Reason why the present token cannot stay; `None` if its claims fit. `asked` is the life that the user asked for, if
/// any.
pub(crate) fn defect(token: &str, member: &str, now: Timestamp, asked: Option<Life>) -> Option<String> {
    let Claims::Token { subject, expires, half } = claims(token) else {
        return Some("the Secret had no token".to_owned());
    };
    if subject != user(member) {
        return Some(format!("the token was that of {subject}"));
    }
    match (expires, asked) {
        (Some(expires), _) if expires <= now => Some(format!("the token had expired at {expires}")),
        (Some(_), Some(Life::Unlimited)) => Some("the token would have expired".to_owned()),
        // The agent renews a token long before: something is wrong with the renewal.
        (Some(_), _) if half.is_some_and(|half| half <= now) => {
            Some("less than half of the token's life was left".to_owned())
        }
        (None, Some(Life::For(_))) => Some("the token would never have expired".to_owned()),
        _ => None,
    }
}

/// Token with a remark for the user.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    pub(crate) token: String,
    /// Remark such as `expires 2026-12-23T…`.
    pub(crate) remark: String,
}

/// Gets a new token from the hub.
pub(crate) async fn get(hub: &Cluster, member: &str, life: Life) -> Result<Granted, Stop> {
    match life {
        Life::For(life) => request(hub, member, life).await,
        Life::Unlimited => stored(hub, member).await,
    }
}

/// Asks the hub for a token that expires.
async fn request(hub: &Cluster, member: &str, life: Duration) -> Result<Granted, Stop> {
    let accounts: Api<ServiceAccount> = Api::namespaced(hub.client.clone(), &namespace(member));
    let seconds = i64::try_from(life.as_secs()).ok();
    let asked = TokenRequest {
        spec: Some(TokenRequestSpec { expiration_seconds: seconds, ..TokenRequestSpec::default() }),
        ..TokenRequest::default()
    };
    let parameters = PostParams::default();
    let answer = hub.ask(accounts.create_token_request(ACCOUNT, &parameters, &asked)).await;
    let account = Reference::new("ServiceAccount", &namespace(member), ACCOUNT);
    let status = answer.map_err(|failure| write_failed(failure, "create a token of", &account))?.status;
    let (token, expires) = status.map(|status| (status.token, status.expiration_timestamp)).unwrap_or_default();
    let token = token.ok_or_else(|| Stop::fault(format!("context {}: {account} got no token", hub.context)))?;
    let remark = expires.map_or_else(String::new, |expires| format!("token expires {:.0}", expires.0));
    Ok(Granted { token, remark })
}

/// Waits for the token that the hub's controller writes into the Secret.
async fn stored(hub: &Cluster, member: &str) -> Result<Granted, Stop> {
    let secrets: Api<Secret> = Api::namespaced(hub.client.clone(), &namespace(member));
    let end = tokio::time::Instant::now() + TOKEN_WAIT;
    loop {
        let secret = hub.find(secrets.get(TOKEN_SECRET)).await?;
        let token = secret.and_then(|secret| secret.data?.get("token").map(|token| token.0.clone()));
        if let Some(token) = token.and_then(|token| String::from_utf8(token).ok()).filter(|token| !token.is_empty()) {
            return Ok(Granted { token, remark: "token does not expire".to_owned() });
        }
        if tokio::time::Instant::now() >= end {
            return Err(Stop::fault(format!(
                "context {}: Secret/{}/{TOKEN_SECRET} has no token after {TOKEN_WAIT:?}: look at kube-controller-manager \
                 of this cluster, or leave out --token-ttl none",
                hub.context,
                namespace(member)
            )));
        }
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::{Value, json};

    /// Returns a token with these claims, without a valid signature.
    fn token(payload: &Value) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(payload.to_string()))
    }

    #[test]
    fn a_life_is_a_duration_or_none() {
        assert_eq!(life("none"), Ok(Life::Unlimited));
        assert_eq!(life("24h"), Ok(Life::For(Duration::from_secs(86_400))));
        assert!(life("9m59s").unwrap_err().contains("10m"));
        assert!(life("soon").unwrap_err().contains("720h"));
    }

    #[test]
    fn claims_are_read_without_the_signature() {
        let of = token(&json!({"sub": "a", "exp": 1_700_000_000}));
        let expires = Some("2023-11-14T22:13:20Z".parse().unwrap());
        assert_eq!(claims(&of), Claims::Token { subject: "a".to_owned(), expires, half: None });
        let unlimited = Claims::Token { subject: "a".to_owned(), expires: None, half: None };
        assert_eq!(claims(&token(&json!({"sub": "a"}))), unlimited);
        for malformed in ["", "x", "a.b.c", &token(&json!({"exp": 1})), &token(&json!([]))] {
            assert_eq!(claims(malformed), Claims::Malformed, "{malformed}");
        }
    }

    #[test]
    fn a_token_stays_if_it_is_the_members_and_has_not_expired() {
        let now: Timestamp = "2026-11-23T06:00:00Z".parse().unwrap();
        let (west, later, earlier) = (user("west"), now.as_second() + 60, now.as_second());
        let month = Life::For(Duration::from_secs(720 * 3600));
        let table = [
            (json!({"sub": west, "exp": later}), None, None),
            (json!({"sub": west, "exp": later}), Some(month), None),
            (json!({"sub": west, "exp": later}), Some(Life::Unlimited), Some("would have expired")),
            (json!({"sub": west, "exp": earlier}), None, Some("had expired at 2026-11-23T06:00:00Z")),
            (json!({"sub": west, "iat": earlier - 59, "exp": later}), None, None),
            (json!({"sub": west, "iat": earlier - 60, "exp": later}), None, Some("less than half")),
            (json!({"sub": west}), None, None),
            (json!({"sub": west}), Some(month), Some("never have expired")),
            (json!({"sub": user("east"), "exp": later}), None, Some("fleet-member-east")),
            (json!({}), None, Some("no token")),
        ];
        for (payload, asked, expected) in table {
            let found = defect(&token(&payload), "west", now, asked);
            match (&found, expected) {
                (Some(found), Some(expected)) => assert!(found.contains(expected), "{found}"),
                (found, expected) => assert_eq!(found.as_deref(), expected, "{payload}"),
            }
        }
    }
}
