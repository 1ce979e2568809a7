//! The subresource `scale` of workloads (`autoscaling/v1`), with which `kubectl scale` changes the number of replicas.

use super::Work;
use super::options::WriteOptions;
use crate::object::{Object, at, meta};
use crate::service::Reply;
use crate::status::{FieldError, Status};
use crate::store::Stored;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Fields of the object's metadata that its Scale has.
const METADATA: [&str; 5] = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];

impl Work<'_> {
    pub(super) fn read_scale(&mut self) -> Result<Reply, Status> {
        let stored = self.scaled()?;
        Ok(Reply::json(200, &Value::Object(scale_of(&self.decoded(&stored)))))
    }

    pub(super) fn replace_scale(&mut self) -> Result<Reply, Status> {
        self.dry_run = WriteOptions::of(self.request, "UpdateOptions")?.dry_run;
        let stored = self.scaled()?;
        let scale = self.parse_object()?;
        self.write_scale(&stored, &scale)
    }

    pub(super) fn patch_scale(&mut self) -> Result<Reply, Status> {
        self.check_patch_type()?;
        self.dry_run = WriteOptions::of(self.request, "PatchOptions")?.dry_run;
        let patch = serde_json::from_slice(&self.request.body)
            .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
        let stored = self.scaled()?;
        let mut scale = scale_of(&self.decoded(&stored));
        self.apply(patch, &mut scale)?;
        self.write_scale(&stored, &scale)
    }

    fn scaled(&self) -> Result<Arc<Stored>, Status> {
        let name = &*self.request.call.target.name;
        self.there(name).cloned().ok_or_else(|| Status::not_found(self.request.named(name)))
    }

    fn write_scale(&mut self, stored: &Arc<Stored>, scale: &Object) -> Result<Reply, Status> {
        let mut object = self.decoded(stored);
        let asked = at(scale, "spec.replicas").cloned().unwrap_or(json!(0));
        if asked.as_i64().is_none_or(|replicas| replicas < 0) {
            let error = FieldError::invalid("spec.replicas", &asked, "must be greater than or equal to 0");
            return Err(Status::invalid(self.request.named(stored.key.name()), &[error]));
        }
        object["spec"]["replicas"] = asked.clone();
        if let Some(version) = meta(scale, "resourceVersion").cloned() {
            object["metadata"]["resourceVersion"] = version;
        }
        self.check_version(&object, stored)?;
        self.update(stored, object)?;
        let stored = self.scaled()?;
        let mut answer = scale_of(&self.decoded(&stored));
        answer.insert("spec".to_owned(), json!({"replicas": asked}));
        Ok(Reply::json(200, &Value::Object(answer)))
    }
}

/// Returns the Scale of a workload.
fn scale_of(object: &Object) -> Object {
    let metadata = METADATA.iter().filter_map(|name| Some(((*name).to_owned(), meta(object, name)?.clone())));
    let replicas = |path: &str| at(object, path).cloned().unwrap_or(json!(0));
    let labels = at(object, "spec.selector.matchLabels").and_then(Value::as_object);
    let selector =
        labels.into_iter().flatten().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let scale = json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": metadata.collect::<Map<_, _>>(),
        "spec": {"replicas": replicas("spec.replicas")},
        "status": {"replicas": replicas("status.replicas"), "selector": selector.collect::<Vec<_>>().join(",")},
    });
    match scale {
        Value::Object(scale) => scale,
        _ => unreachable!("it was made an object"),
    }
}
