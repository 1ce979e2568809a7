//! The verb patch: merge patch, JSON patch and, for built-in kinds, strategic merge patch. Server-side apply is not supported.

use super::Work;
use super::options::WriteOptions;
use crate::limits;
use crate::object::Object;
use crate::object::shape::go_type;
use crate::patch::{go_format, json, merge, strategic};
use crate::service::Reply;
use crate::status::{Details, FieldError, Named, Status};
use crate::strategy::Findings;
use serde_json::Value;

impl Work<'_> {
    pub(super) fn patch(&mut self) -> Result<Reply, Status> {
        let content_type = self.request.content_type.clone();
        self.check_patch_type(&content_type)?;
        let options = WriteOptions::of(self.request, "PatchOptions")?;
        self.dry_run = options.dry_run;
        let patch = Patch::parse(&content_type, &self.request.body)?;
        let key = self.key()?;
        let old = self.state.store.get(&self.request.resource(), &key).cloned();
        let old = old.ok_or_else(|| Status::not_found(self.request.named(key.name())))?;
        let mut object = self.decoded(&old);
        self.apply(&patch, &mut object)?;
        let mut findings = Findings::default();
        let shown = patch.shown(&object);
        if self.request.definition.custom {
            self.check_custom_type(&object)?;
        } else {
            self.complete_type(&patch, &mut object);
        }
        let decoded = self.decode(&mut object, &mut findings);
        decoded.map_err(|why| unusable(&shown, &why.0))?;
        self.apply_field_validation(findings, options.field_validation).map_err(|why| unusable(&shown, &why))?;
        self.check_patched_kind(&object, &shown)?;
        self.check_place(&mut object)?;
        self.update(&old, object)
    }

    fn check_patch_type(&self, content_type: &str) -> Result<(), Status> {
        let custom = self.request.definition.custom;
        let unknown = |offered: &str| {
            let message =
                format!("the body of the request was in an unknown format - accepted media types include: {offered}");
            Status::plain(415, "UnsupportedMediaType", message)
        };
        match content_type {
            "application/merge-patch+json" | "application/json-patch+json" => Ok(()),
            "application/strategic-merge-patch+json" if !custom => Ok(()),
            "application/strategic-merge-patch+json" => {
                Err(unknown("application/json-patch+json, application/merge-patch+json"))
            }
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => Err(Status::plain(
                415,
                "UnsupportedMediaType",
                "server-side apply is not offered by this server: take a merge patch, a JSON patch or client-side apply",
            )),
            _ => {
                let message = "415: Unsupported Media Type";
                Err(Status::plain(415, "UnsupportedMediaType", message).with_details(Details::default()))
            }
        }
    }

    fn apply(&self, patch: &Patch, object: &mut Object) -> Result<(), Status> {
        match patch {
            Patch::Merge(patch) => merge::apply(object, patch.clone()),
            Patch::Json(operations) => {
                let mut document = Value::Object(std::mem::take(object));
                json::apply(&mut document, operations).map_err(|_| impossible())?;
                match document {
                    Value::Object(patched) => *object = patched,
                    _ => return Err(impossible()),
                }
            }
            Patch::Strategic(patch) => {
                let registered = self.state.registry.get(&self.request.resource());
                let registered = registered.ok_or_else(Status::no_such_resource)?;
                let lists = |path: &str| registered.strategy.list_merge(path);
                let applied = strategic::apply(object, patch.clone(), "", &lists);
                applied.map_err(|why| Status::unexpected(why.0))?;
            }
        }
        Ok(())
    }

    /// Restores `kind`, and for a strategic merge patch `apiVersion`, if the patch removed them from an object of a built-in
    /// kind.
    fn complete_type(&self, patch: &Patch, object: &mut Object) {
        let definition = &self.request.definition;
        object.entry("kind").or_insert_with(|| definition.kind.as_str().into());
        // The patch was applied to an object that already had `apiVersion`, so only a patch that removes the field can make it
        // absent.
        if matches!(patch, Patch::Strategic(_)) {
            object.entry("apiVersion").or_insert_with(|| definition.api_version(self.request.version()).into());
        }
    }

    /// Rejects a patch that changes the kind or version of an object.
    fn check_patched_kind(&self, object: &Object, shown: &str) -> Result<(), Status> {
        let definition = &self.request.definition;
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let wanted = definition.api_version(self.request.version());
        if text("kind") == definition.kind && text("apiVersion") == wanted {
            return Ok(());
        }
        let (kind, version) = (text("kind"), text("apiVersion"));
        let why = format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        );
        Err(unusable(shown, &why))
    }
}

/// A decoded patch.
enum Patch {
    Merge(Object),
    Json(Vec<json::Operation>),
    Strategic(Object),
}

impl Patch {
    fn parse(content_type: &str, body: &[u8]) -> Result<Self, Status> {
        let value: Value = serde_json::from_slice(body).map_err(|error| {
            let why = if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() };
            Status::bad_request(format!("error decoding patch: {why}"))
        })?;
        match (content_type, value) {
            // Go decodes null as an empty list or an empty map.
            ("application/json-patch+json", Value::Null) => Ok(Self::Json(Vec::new())),
            ("application/merge-patch+json", Value::Null) => Err(Status::bad_request("Invalid JSON Patch")),
            (_, Value::Null) => Ok(Self::Strategic(Object::new())),
            ("application/json-patch+json", value) => Self::operations(value),
            ("application/merge-patch+json", Value::Object(patch)) => Ok(Self::Merge(patch)),
            ("application/merge-patch+json", other) => {
                Err(Status::bad_request(format!("error decoding patch: {}", no_map(&other))))
            }
            (_, Value::Object(patch)) => Ok(Self::Strategic(patch)),
            (_, other) => Err(Status::bad_request(no_map(&other))),
        }
    }

    fn operations(value: Value) -> Result<Self, Status> {
        let Value::Array(items) = &value else {
            let found = go_type(&value);
            let why = format!("json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp");
            return Err(Status::bad_request(format!("error decoding patch: {why}")));
        };
        if items.len() > limits::JSON_PATCH_OPERATIONS {
            let message = format!(
                "The allowed maximum operations in a JSON patch is {}, got {}",
                limits::JSON_PATCH_OPERATIONS,
                items.len()
            );
            return Err(Status::plain(413, "RequestEntityTooLarge", message));
        }
        if let Some(other) = items.iter().find(|item| !item.is_object() && !item.is_null()) {
            let found = go_type(other);
            let why = format!("json: cannot unmarshal {found} into Go value of type handlers.jsonPatchOp");
            return Err(Status::bad_request(format!("error decoding patch: {why}")));
        }
        // An operation that lacks a required member gets the same error as an operation that cannot be applied.
        serde_json::from_value(value).map(Self::Json).map_err(|_| impossible())
    }

    /// Text in error messages: the patch itself for a strategic merge patch, the patched object for other patches.
    fn shown(&self, patched: &Object) -> String {
        match self {
            Self::Strategic(patch) => go_format(&Value::Object(patch.clone())),
            _ => Value::Object(patched.clone()).to_string(),
        }
    }
}

fn no_map(value: &Value) -> String {
    let found = go_type(value);
    format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
}

/// 422 for a JSON patch that cannot be applied. As in kube-apiserver, the message contains no reason.
fn impossible() -> Status {
    let message = "the server rejected our request due to an error in our request";
    Status::plain(422, "Invalid", message).with_details(Details::default())
}

/// 422 for a patch whose result is not a valid object of the kind.
fn unusable(shown: &str, why: &str) -> Status {
    let error = FieldError::invalid("patch", &Value::from(shown), why);
    let nothing = Named { group: "", kind: "", name: "" };
    Status::invalid(nothing, &[error])
}
