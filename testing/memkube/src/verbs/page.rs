//! Continue tokens: position of the next page of a list, and revision of the list. The format is that of
//! kube-apiserver.

use crate::status::Status;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

/// Content of a continue token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// Revision of the list. `None` for a list that continues in the newest state.
    pub(super) revision: Option<u64>,
    /// Lower bound of the keys in the page.
    pub(super) start: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Encoded {
    v: String,
    rv: i64,
    start: String,
}

/// True if no part of a key is empty, `.` or `..`. A client could otherwise send a continue token whose key leaves the
/// path of the list.
fn is_plain(start: &str) -> bool {
    let mut parts = start.strip_prefix('/').unwrap_or(start).split('/');
    parts.all(|part| !matches!(part, "" | "." | ".."))
}

impl Token {
    /// Returns the token for the page after the object with this key.
    pub(super) fn after(revision: u64, key: &str) -> Self {
        Self { revision: Some(revision), start: format!("{key}\0") }
    }

    pub(super) fn encode(&self) -> String {
        let encoded = Encoded {
            v: TOKEN_VERSION.to_owned(),
            rv: self.revision.map_or(-1, |revision| i64::try_from(revision).unwrap_or(i64::MAX)),
            start: self.start.clone(),
        };
        let json = serde_json::to_vec(&encoded).expect("two texts and a number can be encoded");
        URL_SAFE_NO_PAD.encode(json)
    }

    /// Decodes a token from a client.
    pub(super) fn decode(text: &str) -> Result<Self, Status> {
        let invalid =
            |why: &str| Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|error| invalid(&error.to_string()))?;
        let encoded: Encoded = serde_json::from_slice(&json).map_err(|error| invalid(&error.to_string()))?;
        if encoded.v != TOKEN_VERSION {
            let version = &encoded.v;
            return Err(invalid(&format!("server does not recognize this encoded version {version}")));
        }
        if encoded.rv == 0 {
            return Err(invalid(&format!("incorrect encoded start resourceVersion (version {TOKEN_VERSION})")));
        }
        if encoded.start.is_empty() {
            return Err(invalid(&format!("encoded start key empty (version {TOKEN_VERSION})")));
        }
        if !is_plain(&encoded.start) {
            return Err(invalid(&encoded.start));
        }
        Ok(Self { revision: u64::try_from(encoded.rv).ok(), start: encoded.start })
    }

    /// Returns 410 with a token that continues from the same key in the newest state.
    pub(super) fn expired(&self) -> Status {
        let mut status = Status::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list \
             without the continue parameter, or use the continue token in this response to retrieve the remainder of \
             the results. Continuing with the provided token results in an inconsistent list - objects that were \
             created, modified, or deleted between the time the first chunk was returned and now may show up in the \
             list.",
        );
        let anew = Self { revision: None, start: self.start.clone() };
        status.continue_token = Some(anew.encode());
        status
    }
}
