//! The verb create of `pods/binding`, with which a scheduler gives a pod its node.

use super::Work;
use super::options::WriteOptions;
use crate::object::{at, text_at};
use crate::service::Reply;
use crate::status::{FieldError, Status};
use serde_json::{Value, json};

impl Work<'_> {
    pub(super) fn bind(&mut self) -> Result<Reply, Status> {
        WriteOptions::of(self.request, "CreateOptions")?;
        let name = self.request.call.target.name.clone();
        let old = self.there(&name).cloned().ok_or_else(|| Status::not_found(self.request.named(&name)))?;
        let binding = self.parse_object()?;
        let node = at(&binding, "target.name").and_then(Value::as_str).unwrap_or_default();
        if node.is_empty() {
            return Err(Status::invalid(self.request.named(&name), &[FieldError::required("target.name", "")]));
        }
        let mut pod = self.decoded(&old);
        let present = text_at(&pod, "spec.nodeName");
        if !present.is_empty() {
            let why = format!("pod {name} is already assigned to node \"{present}\"");
            return Err(Status::conflict(self.request.named(&name), &why));
        }
        pod["spec"]["nodeName"] = json!(node);
        self.update(&old, pod)?;
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        Ok(Reply::json(201, &status))
    }
}
