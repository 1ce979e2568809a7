//! Claims of a bearer token (a JSON Web Token). Only the API server verifies tokens; here the claims are information.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;

/// First part of the user name of a service account.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Claims of a token that concern its user, its audience and its life. Absent claims and claims of another type are
/// `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// User of the token: `system:serviceaccount:<namespace>:<name>` for a service account.
    pub subject: Option<String>,
    /// Audiences that the token is for.
    pub audiences: Vec<String>,
    /// Time at which the token was issued, in seconds since 1970.
    pub issued_at: Option<i64>,
    /// Time at which the token expires, in seconds since 1970. `None` for a token that does not expire.
    pub expires_at: Option<i64>,
}

impl Claims {
    /// Returns the claims of a token. `None` if the token is no JSON Web Token, such as a static token.
    #[must_use]
    pub fn of(token: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Written {
            sub: Option<serde_json::Value>,
            aud: Option<serde_json::Value>,
            iat: Option<serde_json::Value>,
            exp: Option<serde_json::Value>,
        }
        let mut parts = token.trim().split('.');
        let (Some(_header), Some(payload), Some(_signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
        let written: Written = serde_json::from_slice(&payload).ok()?;
        let seconds = |value: Option<serde_json::Value>| value.as_ref().and_then(serde_json::Value::as_i64);
        let audiences = match written.aud {
            Some(serde_json::Value::Array(audiences)) => audiences,
            audience => Vec::from_iter(audience),
        };
        Some(Self {
            audiences: audiences.iter().filter_map(|audience| audience.as_str()).map(str::to_owned).collect(),
            subject: written.sub.as_ref().and_then(|subject| subject.as_str()).map(str::to_owned),
            issued_at: seconds(written.iat),
            expires_at: seconds(written.exp),
        })
    }

    /// Returns the namespace and name of the token's service account.
    #[must_use]
    pub fn service_account(&self) -> Option<(&str, &str)> {
        service_account(self.subject.as_deref()?)
    }

    /// Returns the time from issue to expiry. `None` for a token that does not expire or does not say when it was
    /// issued.
    #[must_use]
    pub fn life(&self) -> Option<Duration> {
        let seconds = self.expires_at?.checked_sub(self.issued_at?)?;
        u64::try_from(seconds).ok().map(Duration::from_secs)
    }
}

/// Returns the namespace and name of the service account with this user name. `None` for other users.
pub(crate) fn service_account(user: &str) -> Option<(&str, &str)> {
    user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a token with this payload.
    pub(crate) fn token(payload: &str) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(payload))
    }

    #[test]
    fn the_claims_of_a_service_account_are_read() {
        let token = token(r#"{"sub":"system:serviceaccount:fleet-member-west:member-agent","iat":100,"exp":3700}"#);
        let claims = Claims::of(&token).unwrap();
        assert_eq!(claims.service_account(), Some(("fleet-member-west", "member-agent")));
        assert_eq!(claims.life(), Some(Duration::from_secs(3600)));
    }

    #[test]
    fn the_audience_is_one_text_or_a_list() {
        let audiences = |payload: &str| Claims::of(&token(payload)).unwrap().audiences;
        assert_eq!(audiences(r#"{"aud":"a"}"#), ["a"]);
        assert_eq!(audiences(r#"{"aud":["a",7,"b"]}"#), ["a", "b"]);
        assert_eq!(audiences(r#"{"aud":{"a":"b"}}"#), [""; 0]);
        assert_eq!(audiences("{}"), [""; 0]);
    }

    #[test]
    fn a_token_without_expiry_has_no_life() {
        let claims = Claims::of(&token(r#"{"sub":"system:serviceaccount:a:b"}"#)).unwrap();
        assert_eq!((claims.expires_at, claims.life()), (None, None));
    }

    #[test]
    fn what_is_no_token_has_no_claims_and_odd_claims_are_absent() {
        for text in ["", "static", "a.b", "a.b.c.d", "a.!!!.c", &token("[]"), &token("{")] {
            assert_eq!(Claims::of(text), None, "{text}");
        }
        let odd = Claims::of(&token(r#"{"sub":7,"iat":"x","exp":1e300}"#)).unwrap();
        assert_eq!(odd, Claims::default());
        let reversed = Claims::of(&token(r#"{"sub":"user","iat":10,"exp":5}"#)).unwrap();
        assert_eq!((reversed.life(), reversed.service_account()), (None, None));
        let extreme = format!(r#"{{"iat":{},"exp":{}}}"#, i64::MIN, i64::MAX);
        assert_eq!(Claims::of(&token(&extreme)).unwrap().life(), None);
    }
}
