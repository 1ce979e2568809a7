//! `Status` objects, the responses to failed requests. Codes, reasons, messages and details are those of kube-apiserver
//! 1.35.

use serde_json::{Map, Value, json};

/// Failure of a request, in the form that the client receives.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{code} {reason}: {message}")]
pub struct Status {
    pub code: u16,
    /// Reason, for example `NotFound` or `Conflict`. Empty in some responses with code 500, like kube-apiserver's.
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Box<Details>>,
    /// Continue token in `metadata` of the response to an expired list. With this token the client can continue the list.
    pub continue_token: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    pub name: String,
    pub group: String,
    /// Plural name of the resource. In validation errors (422), the kind.
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: Option<u32>,
}

/// One cause of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

/// Validation error of a field (`field.Error` of apimachinery).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Path of the field, for example `spec.ports[0].name`.
    pub field: String,
    pub reason: FieldReason,
    /// Message without the field, for example ``Invalid value: "x": must be …``.
    pub message: String,
}

/// Reason of a validation error, with the names of `details.causes[].reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldReason {
    Required,
    Invalid,
    NotSupported,
    Duplicate,
    Forbidden,
    TooLong,
    TooMany,
    NotFound,
    TypeInvalid,
    InternalError,
}

impl FieldReason {
    fn name(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TooMany => "FieldValueTooMany",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::NotFound => "FieldValueNotFound",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::InternalError => "InternalError",
        }
    }
}

/// Returns a value as messages show it: as JSON.
fn shown(value: &Value) -> String {
    value.to_string()
}

/// Returns a Go struct as messages show it, with the members in this order. Each value must be JSON.
pub(crate) fn shown_struct(members: &[(&str, String)]) -> String {
    let members: Vec<String> = members.iter().map(|(name, json)| format!("{name:?}:{json}")).collect();
    format!("{{{}}}", members.join(","))
}

impl FieldError {
    fn new(field: impl Into<String>, reason: FieldReason, message: String) -> Self {
        Self { field: field.into(), reason, message }
    }

    /// Error `Required value: <detail>`.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self::new(field, FieldReason::Required, message)
    }

    /// Error `Invalid value: <value>: <detail>`.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        let message = format!("Invalid value: {}: {detail}", shown(value));
        Self::new(field, FieldReason::Invalid, message)
    }

    /// Error `Unsupported value: <value>: supported values: "a", "b"`.
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let message = format!("Unsupported value: {}: supported values: {}", shown(value), supported.join(", "));
        Self::new(field, FieldReason::NotSupported, message)
    }

    /// Error `Duplicate value: <value>`.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new(field, FieldReason::Duplicate, format!("Duplicate value: {}", shown(value)))
    }

    /// Error `Forbidden: <detail>`.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(field, FieldReason::Forbidden, format!("Forbidden: {detail}"))
    }

    /// Error `Too long: may not be more than <max> bytes`.
    pub fn too_long(field: impl Into<String>, max: usize) -> Self {
        Self::new(
            field,
            FieldReason::TooLong,
            format!("Too long: may not be more than {max} {}", if max == 1 { "byte" } else { "bytes" }),
        )
    }

    /// Error `Too many: <actual>: must have at most <max> items`.
    pub fn too_many(field: impl Into<String>, actual: usize, max: usize) -> Self {
        let message =
            format!("Too many: {actual}: must have at most {max} {}", if max == 1 { "item" } else { "items" });
        Self::new(field, FieldReason::TooMany, message)
    }

    fn cause(&self) -> Cause {
        Cause { reason: self.reason.name().to_owned(), message: self.message.clone(), field: self.field.clone() }
    }
}

/// Object that a status is about.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// API group. Empty for the core group.
    pub group: &'a str,
    /// Plural name or kind.
    pub kind: &'a str,
    pub name: &'a str,
}

impl Named<'_> {
    fn qualified(&self) -> String {
        if self.group.is_empty() { self.kind.to_owned() } else { format!("{}.{}", self.kind, self.group) }
    }

    fn details(&self) -> Details {
        Details {
            name: self.name.to_owned(),
            group: self.group.to_owned(),
            kind: self.kind.to_owned(),
            ..Details::default()
        }
    }
}

impl Status {
    /// Returns a status without details.
    #[must_use]
    pub fn plain(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, continue_token: None }
    }

    /// Sets the details. `details` may be empty, as in some responses of kube-apiserver.
    #[must_use]
    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// 400 `BadRequest`.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::plain(400, "BadRequest", message)
    }

    /// 404 `NotFound` for an object.
    #[must_use]
    pub fn not_found(what: Named<'_>) -> Self {
        let message = format!("{} \"{}\" not found", what.qualified(), what.name);
        Self::plain(404, "NotFound", message).with_details(what.details())
    }

    /// 404 `NotFound` for a path without a resource.
    #[must_use]
    pub fn no_such_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::plain(404, "NotFound", message).with_details(Details::default())
    }

    /// 405 `MethodNotAllowed` for a verb that a subresource of a custom resource does not support.
    #[must_use]
    pub fn not_supported(verb: &str, what: Named<'_>) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{}\"", what.qualified());
        Self::plain(405, "MethodNotAllowed", message).with_details(what.details())
    }

    /// 405 `MethodNotAllowed` for an HTTP method that the path does not support.
    #[must_use]
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::plain(405, "MethodNotAllowed", message).with_details(Details::default())
    }

    /// 409 `AlreadyExists` for a create of an object that already exists.
    #[must_use]
    pub fn already_exists(what: Named<'_>) -> Self {
        let message = format!("{} \"{}\" already exists", what.qualified(), what.name);
        Self::plain(409, "AlreadyExists", message).with_details(what.details())
    }

    /// 409 `Conflict` for a failed precondition or an old resourceVersion.
    #[must_use]
    pub fn conflict(what: Named<'_>, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{}\": {why}", what.qualified(), what.name);
        Self::plain(409, "Conflict", message).with_details(what.details())
    }

    /// 409 `Conflict` for an update with an old resourceVersion.
    #[must_use]
    pub fn modified(what: Named<'_>) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(what, why)
    }

    /// 403 `Forbidden`.
    #[must_use]
    pub fn forbidden(what: Named<'_>, why: &str) -> Self {
        let message = format!("{} \"{}\" is forbidden: {why}", what.qualified(), what.name);
        Self::plain(403, "Forbidden", message).with_details(what.details())
    }

    /// 422 `Invalid` for validation errors. `what` has the kind, not the plural name.
    #[must_use]
    pub fn invalid(what: Named<'_>, errors: &[FieldError]) -> Self {
        let mut shown: Vec<String> = Vec::new();
        for error in errors {
            let text = format!("{}: {}", error.field, error.message);
            if !shown.contains(&text) {
                shown.push(text);
            }
        }
        let list = if shown.len() == 1 { shown.remove(0) } else { format!("[{}]", shown.join(", ")) };
        let message = format!("{} \"{}\" is invalid: {list}", what.qualified(), what.name);
        let mut details = what.details();
        details.causes = errors.iter().map(FieldError::cause).collect();
        Self::plain(422, "Invalid", message).with_details(details)
    }

    /// 410 `Expired` for a resourceVersion or continue token that is too old.
    #[must_use]
    pub fn expired(message: impl Into<String>) -> Self {
        Self::plain(410, "Expired", message)
    }

    /// 500 without a reason, kube-apiserver's response after unexpected errors.
    #[must_use]
    pub fn unexpected(message: impl Into<String>) -> Self {
        Self::plain(500, "", message)
    }

    /// 500 `InternalError`.
    #[must_use]
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let text = format!("Internal error occurred: {message}");
        let cause = Cause { reason: String::new(), message: message.to_string(), field: String::new() };
        Self::plain(500, "InternalError", text).with_details(Details { causes: vec![cause], ..Details::default() })
    }

    /// 429 `TooManyRequests` with `Retry-After`, the response of API Priority and Fairness.
    #[must_use]
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        let message = "Too many requests, please try again later.";
        Self::plain(429, "TooManyRequests", message)
            .with_details(Details { retry_after_seconds: Some(retry_after_seconds), ..Details::default() })
    }

    /// Returns the status as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".to_owned(), json!(token));
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_json();
        }
        status
    }
}

impl Details {
    /// Returns the details as JSON, without empty members.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut json = Map::new();
        let texts = [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)];
        for (name, text) in texts {
            if !text.is_empty() {
                json.insert(name.to_owned(), json!(text));
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(Cause::to_json);
            json.insert("causes".to_owned(), causes.collect());
        }
        if let Some(seconds) = self.retry_after_seconds {
            json.insert("retryAfterSeconds".to_owned(), json!(seconds));
        }
        Value::Object(json)
    }
}

impl Cause {
    fn to_json(&self) -> Value {
        let members = [("reason", &self.reason), ("message", &self.message), ("field", &self.field)];
        let given = members.iter().filter(|(_, text)| !text.is_empty());
        Value::Object(given.map(|(name, text)| ((*name).to_owned(), json!(text))).collect())
    }
}
