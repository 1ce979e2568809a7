//! Entry points of the fuzz targets to decoders that are private, because agents must not call them. Only the feature
//! `fuzzing` has this module.

use http::Uri;
use kube::Config;
use kube::config::Kubeconfig;
use serde_json::Value;

use crate::io::answers::{ApiStatus, Ending, contains, is_replaced_by};
use crate::io::client::{self, ClientError};
use crate::io::{rivals, token};
use crate::limits::{RIVAL_FIELD_BYTES, RIVAL_FIELDS_NAMED, RIVAL_NAME_BYTES, RIVALS_NAMED};

pub use crate::io::watch::fuzzing::{ListPage, Refusal, WatchLine, list_page, refusal, watch_lines};

/// Reads the body of the response to a write that the server refused. Returns the message, the reason and the wait
/// time.
#[must_use]
pub fn refused_write(code: u16, body: &[u8]) -> (Refusal, String) {
    let status = ApiStatus::read(code, body);
    (Refusal { message: status.text(), retry_after: status.retry_after() }, status.reason().to_owned())
}

/// Reads the deletion state in a response. Returns true in the first place if finalizers keep the object, and true in
/// the second place if the server removes the object.
#[must_use]
pub fn deletion_state(body: &[u8]) -> (bool, bool) {
    let ending = Ending::read(body);
    (ending.lingers(), ending.is_final())
}

/// True if a merge patch does not change the object.
#[must_use]
pub fn is_patched(object: &Value, patch: &Value) -> bool {
    contains(object, patch)
}

/// True if the object equals the result of a replace with this body.
#[must_use]
pub fn is_replaced(object: &Value, body: &Value) -> bool {
    is_replaced_by(object, body)
}

/// Returns the names of the other field managers of an object, for a message.
#[must_use]
pub fn field_managers(object: &Value, own: &str) -> String {
    rivals::of(object, own)
}

/// Returns the maximum number of bytes of the text that [`field_managers`] returns.
#[must_use]
pub fn field_managers_bytes_max() -> usize {
    let fields = RIVAL_FIELDS_NAMED * (2 * RIVAL_FIELD_BYTES + ", .".len()) + " ( and more)".len();
    "field manager ".len() + RIVALS_NAMED * (RIVAL_NAME_BYTES + "\"\", before it ".len() + fields)
}

/// Parses the content of a token file. Returns the value of the header `Authorization`.
///
/// # Errors
/// If the content is no token. The text is the reason.
pub fn token_file(content: &[u8]) -> Result<Vec<u8>, &'static str> {
    token::parse_token(content).map(|header| header.as_bytes().to_vec())
}

/// Returns the settings of a connection from a kubeconfig.
///
/// # Errors
/// If the kubeconfig has no usable connection, or one without TLS.
pub async fn kubeconfig(kubeconfig: Kubeconfig) -> Result<Config, ClientError> {
    let config = client::config_from("hub", "of the fuzz target", kubeconfig).await?;
    client::check_scheme("hub", &config, false)?;
    Ok(config)
}

/// Parses the address of the hub.
///
/// # Errors
/// If the text is no usable address. The text is the reason.
pub fn server_url(text: &str) -> Result<Uri, String> {
    client::parse_server_url(text)
}

/// Parses certificate authorities in PEM. Returns them in DER.
///
/// # Errors
/// If the text has no certificate. The text is the reason.
pub fn authorities(pem: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    client::parse_authorities(pem)
}
