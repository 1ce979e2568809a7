//! `Status` objects, the responses to failed requests. Codes, reasons and the fields of causes are those of
//! kube-apiserver 1.35.

pub use kube::core::response::{StatusCause as Cause, StatusDetails as Details};

use serde_json::{Value, json};

/// Failure of a request, in the form that the client receives.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{code} {reason}: {message}")]
pub struct Status {
    pub code: u16,
    /// Reason, for example `NotFound` or `Conflict`. Empty in some responses with code 500, like kube-apiserver's.
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Box<Details>>,
    /// Continue token in `metadata` of the response to an expired list. With this token the client can continue the
    /// list.
    pub continue_token: Option<String>,
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

/// Reason of a validation error, as in `details.causes[].reason` without the prefix `FieldValue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldReason {
    Required,
    Invalid,
    NotSupported,
    Duplicate,
    Forbidden,
    TooLong,
    TooMany,
    TypeInvalid,
}

impl FieldError {
    pub(crate) fn new(field: impl Into<String>, reason: FieldReason, message: String) -> Self {
        Self { field: field.into(), reason, message }
    }

    /// Error `Required value: <detail>`.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = format!("Required value: {detail}");
        Self::new(field, FieldReason::Required, message.trim_end_matches(": ").to_owned())
    }

    /// Error `Invalid value: <value>: <detail>`.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::new(field, FieldReason::Invalid, format!("Invalid value: {value}: {detail}"))
    }

    /// Error `Unsupported value: <value>: supported values: "a", "b"`.
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", supported.join(", "));
        Self::new(field, FieldReason::NotSupported, message)
    }

    /// Error `Duplicate value: <value>`.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new(field, FieldReason::Duplicate, format!("Duplicate value: {value}"))
    }

    /// Error `Forbidden: <detail>`.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(field, FieldReason::Forbidden, format!("Forbidden: {detail}"))
    }

    /// Error `Too long: may not be more than <max> bytes`.
    pub fn too_long(field: impl Into<String>, max: impl std::fmt::Display) -> Self {
        Self::new(field, FieldReason::TooLong, format!("Too long: may not be more than {max} bytes"))
    }

    /// Error `Too many: <actual>: must have at most <max> items`.
    pub fn too_many(field: impl Into<String>, actual: usize, max: impl std::fmt::Display) -> Self {
        Self::new(field, FieldReason::TooMany, format!("Too many: {actual}: must have at most {max} items"))
    }

    fn cause(&self) -> Cause {
        let reason = format!("FieldValue{:?}", self.reason);
        Cause { reason, message: self.message.clone(), field: self.field.clone() }
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

    pub(crate) fn details(&self) -> Details {
        Details {
            name: self.name.to_owned(),
            group: self.group.to_owned(),
            kind: self.kind.to_owned(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: 0,
        }
    }
}

const NOTHING: Named<'static> = Named { group: "", kind: "", name: "" };

impl Status {
    /// Returns a status without details.
    #[must_use]
    pub fn plain(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, continue_token: None }
    }

    fn about(code: u16, reason: &'static str, message: String, what: Named<'_>) -> Self {
        Self { details: Some(Box::new(what.details())), ..Self::plain(code, reason, message) }
    }

    pub(crate) fn with_cause(mut self, reason: &str, field: &str) -> Self {
        let details = self.details.get_or_insert_with(|| Box::new(NOTHING.details()));
        details.causes.push(Cause { reason: reason.to_owned(), message: String::new(), field: field.to_owned() });
        self
    }

    pub(crate) fn with_retry_after(mut self, seconds: u32) -> Self {
        let details = self.details.get_or_insert_with(|| Box::new(NOTHING.details()));
        details.retry_after_seconds = seconds;
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
        Self::about(404, "NotFound", format!("{} \"{}\" not found", what.qualified(), what.name), what)
    }

    /// 404 `NotFound` for a path without a resource.
    #[must_use]
    pub fn no_such_resource() -> Self {
        Self::about(404, "NotFound", "the server could not find the requested resource".to_owned(), NOTHING)
    }

    /// 405 `MethodNotAllowed` for a verb or HTTP method that the path does not support.
    #[must_use]
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource".to_owned();
        Self::about(405, "MethodNotAllowed", message, NOTHING)
    }

    /// 409 `AlreadyExists` for a create of an object that already exists.
    #[must_use]
    pub fn already_exists(what: Named<'_>) -> Self {
        Self::about(409, "AlreadyExists", format!("{} \"{}\" already exists", what.qualified(), what.name), what)
    }

    /// 409 `Conflict` for a failed precondition or an old resourceVersion.
    #[must_use]
    pub fn conflict(what: Named<'_>, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{}\": {why}", what.qualified(), what.name);
        Self::about(409, "Conflict", message, what)
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
        let name = if what.name.is_empty() { String::new() } else { format!(" {:?}", what.name) };
        Self::about(403, "Forbidden", format!("{}{name} is forbidden: {why}", what.qualified()), what)
    }

    /// 422 `Invalid` for validation errors. `what` has the kind, not the plural name.
    #[must_use]
    pub fn invalid(what: Named<'_>, errors: &[FieldError]) -> Self {
        let mut shown: Vec<String> = errors.iter().map(|error| format!("{}: {}", error.field, error.message)).collect();
        let list = if shown.len() == 1 { shown.remove(0) } else { format!("[{}]", shown.join(", ")) };
        let message = format!("{} \"{}\" is invalid: {list}", what.qualified(), what.name);
        let details = Details { causes: errors.iter().map(FieldError::cause).collect(), ..what.details() };
        Self { details: Some(Box::new(details)), ..Self::plain(422, "Invalid", message) }
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
        Self::about(500, "InternalError", format!("Internal error occurred: {message}"), NOTHING)
    }

    /// 429 `TooManyRequests` with `Retry-After`, the response of API Priority and Fairness.
    #[must_use]
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        let message = "Too many requests, please try again later.";
        Self::plain(429, "TooManyRequests", message).with_retry_after(retry_after_seconds)
    }

    /// Returns the status as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = json!(token);
        }
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = json!(details);
        }
        status
    }
}
