//! Responses before their conversion to HTTP.

use super::body::{Body, BoxError};
use crate::registry::Registry;
use crate::status::Status;
use bytes::Bytes;
use futures::stream::BoxStream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WARNING, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};
use serde_json::Value;

pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) content: Content,
    /// Texts of `Warning` headers, for example about ignored fields.
    pub(crate) warnings: Vec<String>,
    pub(crate) retry_after_seconds: Option<u32>,
    /// Name of the object that a create has created, for the audit ledger. `None` for other requests.
    pub(crate) object_name: Option<String>,
}

/// Body of a response.
pub(crate) enum Content {
    Json(Vec<Bytes>),
    Text(String),
    /// Body of another media type.
    Other(&'static str, Bytes),
    Watch(BoxStream<'static, Result<Bytes, BoxError>>),
}

impl Reply {
    pub(crate) fn new(code: u16, content: Content) -> Self {
        Self { code, content, warnings: Vec::new(), retry_after_seconds: None, object_name: None }
    }

    pub(crate) fn json(code: u16, value: &Value) -> Self {
        Self::new(code, Content::Json(vec![value.to_string().into()]))
    }

    pub(crate) fn text(code: u16, text: impl Into<String>) -> Self {
        Self::new(code, Content::Text(text.into()))
    }

    /// 404 for an unknown resource: a Status in groups of built-in kinds, plain text elsewhere.
    pub(crate) fn unknown_resource(registry: &Registry, group: &str) -> Self {
        let built_in = registry.definitions().any(|definition| !definition.custom && definition.group == group);
        if built_in { Self::from(&Status::no_such_resource()) } else { Self::text(404, "404 page not found\n") }
    }

    pub(crate) fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let plain = matches!(self.content, Content::Text(_));
        let (content_type, body) = match self.content {
            Content::Json(chunks) => ("application/json", Body::chunks(chunks)),
            Content::Text(text) => ("text/plain; charset=utf-8", Body::chunks(vec![text.into()])),
            Content::Other(content_type, body) => (content_type, Body::chunks(vec![body])),
            Content::Watch(stream) => ("application/json", Body::watch(stream)),
        };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        if plain {
            headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        }
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        for warning in self.warnings {
            let quoted = format!("299 - \"{}\"", warning.replace('\\', "\\\\").replace('"', "\\\""));
            if let Ok(value) = HeaderValue::from_str(&quoted) {
                headers.append(WARNING, value);
            }
        }
        response
    }
}

impl From<&Status> for Reply {
    fn from(status: &Status) -> Self {
        let mut reply = Self::json(status.code, &status.to_json());
        reply.retry_after_seconds =
            status.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0);
        reply
    }
}
