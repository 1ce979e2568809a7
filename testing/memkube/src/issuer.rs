//! Tokens that the server issues for ServiceAccounts (`TokenRequest`). They are JSON Web Tokens, because clients read
//! from them when they expire. The server stores none: a signature shows that it issued a token.

use crate::auth::{AUDIENCE, User};
use crate::registry::ResourceId;
use crate::store::{Key, Store};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Issuer of tokens. The same seed gives the same tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Issuer(u64);

/// ServiceAccount that a token is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
}

impl Issuer {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a token that is valid for `seconds` from now on.
    pub(crate) fn issue(self, account: Account<'_>, audiences: &Value, seconds: i64, now: Timestamp) -> String {
        let Account { namespace, name, uid } = account;
        let from = now.as_second();
        let claims = json!({
            "iss": AUDIENCE, "aud": audiences, "iat": from, "nbf": from, "exp": from + seconds,
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
        });
        let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let content = format!("{}.{}", encoded(&json!({"typ": "JWT"})), encoded(&claims));
        format!("{content}.{}", self.signature(&content))
    }

    /// Returns user and audiences of a token. `None` if this server did not issue the token, if it has expired, or if
    /// its ServiceAccount is gone.
    pub(crate) fn read(self, token: &str, store: &Store, now: Timestamp) -> Option<(User, Vec<String>)> {
        let (content, signature) = token.rsplit_once('.')?;
        if self.signature(content) != signature {
            return None;
        }
        let claims = URL_SAFE_NO_PAD.decode(content.split_once('.')?.1).ok()?;
        let claims: Value = serde_json::from_slice(&claims).ok()?;
        let account = &claims["kubernetes.io"];
        let (namespace, name) = (account["namespace"].as_str()?, account["serviceaccount"]["name"].as_str()?);
        let stored = store.get(&ResourceId::new("", "serviceaccounts"), &Key::new(namespace, name))?;
        let is_same = Some(&*stored.header.uid) == account["serviceaccount"]["uid"].as_str();
        if !is_same || claims["exp"].as_i64()? <= now.as_second() {
            return None;
        }
        let groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        let audiences = claims["aud"].as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Some((User::new(claims["sub"].as_str()?).with_groups(groups), audiences))
    }

    fn signature(self, content: &str) -> String {
        let signed = Sha256::new_with_prefix(self.0.to_be_bytes()).chain_update(content).finalize();
        URL_SAFE_NO_PAD.encode(signed)
    }
}
