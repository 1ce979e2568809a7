//! The verb patch: merge patch, JSON patch and, for built-in kinds, strategic merge patch. Server-side apply is not
//! supported.

use super::Work;
use super::options::WriteOptions;
use crate::object::Object;
use crate::service::Reply;
use crate::status::{FieldError, Named, Status};
use crate::strategic;
use crate::strategy::Findings;
use serde_json::{Value, json};

const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

impl Work<'_> {
    pub(super) fn patch(&mut self) -> Result<Reply, Status> {
        self.check_patch_type()?;
        let options = WriteOptions::of(self.request, "PatchOptions")?;
        self.dry_run = options.dry_run;
        let patch = serde_json::from_slice(&self.request.body).map_err(undecodable)?;
        let key = self.key()?;
        let old = self.state.store.get(&self.request.resource(), &key).cloned();
        let old = old.ok_or_else(|| Status::not_found(self.request.named(key.name())))?;
        let mut object = self.decoded(&old);
        self.apply(patch, &mut object)?;
        self.check_patched_type(&mut object)?;
        let mut findings = Findings::default();
        self.decode(&mut object, &mut findings).map_err(|why| unusable(&why.0))?;
        self.apply_field_validation(findings, options.field_validation).map_err(|why| unusable(&why))?;
        self.check_place(&mut object)?;
        self.update(&old, object)
    }

    pub(super) fn check_patch_type(&self) -> Result<(), Status> {
        let why = match self.request.content_type.as_str() {
            MERGE | JSON => return Ok(()),
            STRATEGIC if !self.request.definition.custom => return Ok(()),
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
                "server-side apply is not offered by this server: take a merge patch, a JSON patch or client-side apply"
            }
            _ => {
                "the body of the request was in an unknown format - accepted media types include: \
                  application/json-patch+json, application/merge-patch+json"
            }
        };
        Err(Status::plain(415, "UnsupportedMediaType", why))
    }

    pub(super) fn apply(&self, patch: Value, object: &mut Object) -> Result<(), Status> {
        let mut document = Value::Object(std::mem::take(object));
        match (self.request.content_type.as_str(), patch) {
            (JSON, patch) => {
                let patch: json_patch::Patch = serde_json::from_value(patch).map_err(undecodable)?;
                json_patch::patch(&mut document, &patch).map_err(|why| {
                    Status::plain(422, "Invalid", format!("the server cannot apply the JSON patch: {why}"))
                })?;
            }
            (MERGE, patch @ Value::Object(_)) => json_patch::merge(&mut document, &patch),
            (_, Value::Object(patch)) => {
                let registered = self.state.registry.get(&self.request.resource());
                let registered = registered.ok_or_else(Status::no_such_resource)?;
                let lists = |path: &str| registered.strategy.list_merge(path);
                if let Value::Object(document) = &mut document {
                    strategic::apply(document, patch, "", &lists).map_err(|why| Status::unexpected(why.0))?;
                }
            }
            _ => return Err(undecodable("the patch is not an object")),
        }
        match document {
            Value::Object(patched) => *object = patched,
            _ => return Err(unusable("the result of the patch is not an object")),
        }
        Ok(())
    }

    /// Rejects a patch that changes the kind or version of an object. Restores both if the patch of a built-in kind
    /// removed them.
    fn check_patched_type(&self, object: &mut Object) -> Result<(), Status> {
        let definition = &self.request.definition;
        let wanted =
            [("kind", definition.kind.clone()), ("apiVersion", definition.api_version(self.request.version()))];
        for (name, wanted) in wanted {
            let wanted = json!(wanted);
            if !definition.custom {
                object.entry(name).or_insert_with(|| wanted.clone());
            }
            if object.get(name) != Some(&wanted) {
                let found = object.get(name).cloned().unwrap_or_default();
                return Err(unusable(&format!("{name} must be {wanted}, not {found}")));
            }
        }
        Ok(())
    }
}

fn undecodable(why: impl std::fmt::Display) -> Status {
    Status::bad_request(format!("error decoding patch: {why}"))
}

/// 422 for a patch whose result is not a valid object of the kind.
fn unusable(why: &str) -> Status {
    let nothing = Named { group: "", kind: "", name: "" };
    Status::invalid(nothing, &[FieldError::invalid("patch", &Value::Null, why)])
}
