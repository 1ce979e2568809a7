//! Interpretation of an API server's responses to writes, and of errors without a response.

use std::time::Duration;

use http::{HeaderMap, header};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::engine::logic::NAMESPACE_TERMINATING;
use crate::errors::{causes, cut};
use crate::io::token::TokenError;

/// Body of an error response (metav1.Status). A missing field has an empty value.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ApiStatus {
    pub(crate) reason: String,
    message: String,
    pub(crate) details: StatusDetails,
    #[serde(skip)]
    code: u16,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StatusDetails {
    pub(crate) name: String,
    pub(crate) kind: String,
    retry_after_seconds: u64,
    causes: Vec<StatusCause>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusCause {
    reason: String,
}

impl ApiStatus {
    pub(crate) fn read(code: u16, body: &[u8]) -> Self {
        match serde_json::from_slice::<Self>(body) {
            Ok(status) => Self { code, ..status },
            Err(_) => Self { code, message: String::from_utf8_lossy(body).into_owned(), ..Self::default() },
        }
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        Some(self.details.retry_after_seconds).filter(|seconds| *seconds > 0).map(Duration::from_secs)
    }

    /// Returns the reason of the error, or [`NAMESPACE_TERMINATING`] if that is the reason of one of the error's
    /// causes.
    pub(crate) fn reason(&self) -> &str {
        let is_terminating = self.details.causes.iter().any(|cause| cause.reason == NAMESPACE_TERMINATING);
        if is_terminating { NAMESPACE_TERMINATING } else { &self.reason }
    }

    pub(crate) fn text(&self) -> String {
        cut(format!("{} {}", self.code, self.message.trim()))
    }
}

/// Deletion state of the object in a server's response: its deletionTimestamp and its finalizers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ending {
    metadata: EndingMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct EndingMetadata {
    deletion_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Option<Vec<String>>,
}

impl Ending {
    pub(crate) fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    pub(crate) fn of(object: &Value) -> Self {
        Self::deserialize(object).unwrap_or_default()
    }

    /// True if the object has a deletionTimestamp but still exists, because of finalizers.
    pub(crate) fn lingers(&self) -> bool {
        self.metadata.deletion_timestamp.is_some() && !self.is_final()
    }

    /// True if the object has a deletionTimestamp and no finalizer. The server then removes the object, and this
    /// response shows its last state.
    ///
    /// The result is wrong for Namespaces, because their finalizers are in `spec`. No agent writes Namespaces.
    pub(crate) fn is_final(&self) -> bool {
        let metadata = &self.metadata;
        metadata.deletion_timestamp.is_some()
            && metadata.finalizers.as_ref().is_none_or(Vec::is_empty)
            && metadata.deletion_grace_period_seconds.unwrap_or(0) == 0
    }
}

/// True if the object already contains every value of the JSON merge patch (RFC 7386), so the patch would not change
/// the object.
///
/// Items of an array may have more fields than in the patch, because the server adds default values.
pub(crate) fn contains(object: &Value, patch: &Value) -> bool {
    match (object, patch) {
        (Value::Array(items), Value::Array(wanted)) => {
            items.len() == wanted.len() && items.iter().zip(wanted).all(|(item, wanted)| contains(item, wanted))
        }
        (Value::Object(fields), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| contains(fields.get(name).unwrap_or(&Value::Null), wanted))
        }
        (Value::Null, Value::Object(wanted)) => wanted.values().all(|wanted| contains(&Value::Null, wanted)),
        (object, patch) => object == patch,
    }
}

/// Fields of `metadata` that a PUT never changes.
const SERVERS_METADATA: [&str; 10] = [
    "name",
    "namespace",
    "uid",
    "generateName",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
];

/// True if the object already equals the result of a PUT of `body`, so that the PUT has probably been executed.
///
/// The object must have exactly the fields of `body`, because a PUT removes every field that `body` omits. Fields that
/// a PUT cannot set are not compared.
pub(crate) fn is_replaced_by(object: &Value, body: &Value) -> bool {
    let uid = |object: &Value| object["metadata"]["uid"].clone();
    let is_meant = uid(body).is_null() || uid(body) == uid(object);
    is_meant && means_the_same(&without_servers(object), &without_servers(body))
}

fn without_servers(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| !["apiVersion", "kind", "status"].contains(&name.as_str()));
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| !SERVERS_METADATA.contains(&name.as_str()));
        }
    }
    object
}

/// True if both JSON values mean the same to an API server: null, absent and empty count as equal.
fn means_the_same(one: &Value, other: &Value) -> bool {
    let field = |fields: &Map<String, Value>, name: &str| fields.get(name).cloned().unwrap_or_default();
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| means_the_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let mut names = one.keys().chain(other.keys());
            names.all(|name| means_the_same(&field(one, name), &field(other, name)))
        }
        _ => one == other || (is_nothing(one) && is_nothing(other)),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns the wait time of a `Retry-After` header in seconds. Returns `None` for a header with a date, which API
/// servers never send.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// True if the request certainly did not reach the server, because there was no token or no connection.
pub(crate) fn never_sent(error: &kube::Error) -> bool {
    causes(error).any(|cause| {
        cause.is::<TokenError>()
            || cause.downcast_ref::<hyper_util::client::legacy::Error>().is_some_and(|error| error.is_connect())
            || cause
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    })
}
