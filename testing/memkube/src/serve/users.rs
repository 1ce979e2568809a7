//! Authentication by bearer token.

use super::secrets::Secrets;
use crate::auth::User;
use crate::server::MemKube;
use crate::status::Status;
use http::Request;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// Paths that need no token, because probes request them without a token.
const PUBLIC: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

pub(super) struct Users {
    tokens: BTreeMap<String, String>,
    /// Users by the hash of their token. Without the hash, the time of a look-up could show how many first characters
    /// of a token are right.
    by_hash: BTreeMap<[u8; 32], User>,
}

impl fmt::Debug for Users {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.tokens.keys()).finish()
    }
}

impl Users {
    pub(super) fn new(secrets: &Secrets, users: Vec<User>) -> Self {
        let mut known = Self { tokens: BTreeMap::new(), by_hash: BTreeMap::new() };
        for user in users {
            let token = secrets.text("token", &user.name);
            known.tokens.insert(user.name.to_string(), token.clone());
            known.by_hash.insert(Sha256::digest(&token).into(), user);
        }
        known
    }

    pub(super) fn token(&self, user: &str) -> Option<&str> {
        self.tokens.get(user).map(String::as_str)
    }

    /// Returns the user of a request. Their tokens are those of [`Users::token`], and those that the server issued.
    pub(super) fn authenticate<B>(&self, request: &Request<B>, server: &MemKube) -> Result<User, Status> {
        let given = request.headers().get(AUTHORIZATION);
        if given.is_none() && PUBLIC.contains(&request.uri().path()) {
            let groups = vec!["system:unauthenticated".to_owned()];
            return Ok(User::new("system:anonymous").with_groups(groups));
        }
        let bearer = given.and_then(|value| value.to_str().ok()).and_then(|value| value.split_once(' '));
        let token = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        let known = token.and_then(|token| self.by_hash.get::<[u8; 32]>(&Sha256::digest(token).into()));
        let issued = || server.user_of_issued(token?);
        known.cloned().or_else(issued).ok_or_else(|| Status::plain(401, "Unauthorized", "Unauthorized"))
    }
}
