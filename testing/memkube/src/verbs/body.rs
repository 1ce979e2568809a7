//! Request bodies: decoding into an object of the kind.

use super::Work;
use super::options::FieldValidation;
use crate::object::{Object, meta_text};
use crate::registry::Scope;
use crate::status::{FieldError, Status};
use crate::strategy::{Findings, Undecodable, typed};
use serde_json::{Value, json};

impl Work<'_> {
    /// Decodes the object in the request body, checks its kind and the types of its fields, and sets defaults.
    pub(super) fn read_object(&mut self, field_validation: FieldValidation) -> Result<Object, Status> {
        let mut findings = Findings::default();
        let mut object = self.parse_object()?;
        self.check_type(&mut object)?;
        self.decode(&mut object, &mut findings).map_err(|why| self.undecodable(&why.0))?;
        self.apply_field_validation(findings, field_validation).map_err(|why| self.undecodable(&why))?;
        Ok(object)
    }

    /// Drops unknown fields, checks types, and sets defaults.
    pub(super) fn decode(&self, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        typed::metadata(object, findings)?;
        if let Some(registered) = self.state.registry.get(&self.request.resource()) {
            registered.strategy.decode(self.request.version(), object, findings)?;
            registered.strategy.set_defaults(self.request.version(), object);
        }
        Ok(())
    }

    /// Ignores unknown fields, adds warnings, or rejects the request, according to `fieldValidation`.
    pub(super) fn apply_field_validation(
        &mut self,
        findings: Findings,
        field_validation: FieldValidation,
    ) -> Result<(), String> {
        match field_validation {
            FieldValidation::Strict if !findings.strict.is_empty() => {
                return Err(format!("strict decoding error: {}", findings.strict.join(", ")));
            }
            FieldValidation::Warn => self.warnings.extend(findings.strict),
            FieldValidation::Ignore | FieldValidation::Strict => {}
        }
        Ok(())
    }

    fn undecodable(&self, why: &str) -> Status {
        let kind = &self.request.definition.kind;
        let version = self.request.version();
        Status::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"))
    }

    pub(super) fn parse_object(&self) -> Result<Object, Status> {
        let request = self.request;
        let parsed: Result<Value, String> = match request.content_type.as_str() {
            "" | "application/json" => serde_json::from_slice(&request.body).map_err(|error| error.to_string()),
            "application/yaml" => serde_saphyr::from_slice(&request.body).map_err(|error| error.to_string()),
            content_type => {
                let message = match content_type {
                    "application/vnd.kubernetes.protobuf" => {
                        "this server does not decode protobuf: write the object with `--dry-run=client -o yaml` and \
                         give it to `kubectl apply -f -`"
                    }
                    _ => {
                        "the body of the request was in an unknown format - accepted media types include: \
                         application/json, application/yaml"
                    }
                };
                return Err(Status::plain(415, "UnsupportedMediaType", message));
            }
        };
        let kind = &request.definition.kind;
        match parsed {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(self.undecodable("the body is not an object")),
            Err(why) => {
                let message = format!("the object provided is unrecognized (must be of type {kind}): {why}");
                Err(Status::bad_request(message))
            }
        }
    }

    /// Checks `apiVersion` and `kind`. Objects of built-in kinds may omit both.
    fn check_type(&self, object: &mut Object) -> Result<(), Status> {
        let definition = &self.request.definition;
        let wanted =
            [("kind", definition.kind.clone()), ("apiVersion", definition.api_version(self.request.version()))];
        for (name, wanted) in wanted {
            let found = object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            if found.is_empty() && !definition.custom {
                object.insert(name.to_owned(), json!(wanted));
            } else if found != wanted {
                let why = format!("the {name} in the data ({found}) does not match the expected {name} ({wanted})");
                // Like kube-apiserver, reject another kind of custom resource as a validation error.
                if definition.custom && name == "kind" && !found.is_empty() {
                    let error = FieldError::invalid(name, &json!(found), &why);
                    return Err(Status::invalid(self.request.named_kind(meta_text(object, "name")), &[error]));
                }
                return Err(Status::bad_request(why));
            }
        }
        Ok(())
    }

    /// Checks the namespace of an object, and the name if the path contains a name. Then sets the namespace.
    pub(super) fn check_place(&self, object: &mut Object) -> Result<(), Status> {
        let named = &*self.request.call.target.name;
        let own = meta_text(object, "name");
        if !named.is_empty() && own != named {
            return Err(Status::bad_request(format!(
                "the name of the object ({own:?}) does not match the name on the URL ({named})"
            )));
        }
        if self.request.definition.scope == Scope::Cluster {
            crate::object::remove_meta(object, "namespace");
            return Ok(());
        }
        let own = meta_text(object, "namespace");
        if !own.is_empty() && own != self.request.namespace() {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Status::bad_request(message));
        }
        crate::object::set_meta(object, "namespace", self.request.namespace());
        Ok(())
    }
}
