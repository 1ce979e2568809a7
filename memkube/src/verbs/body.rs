//! Request bodies: decoding into an object of the kind.

mod duplicates;

use super::Work;
use super::options::FieldValidation;
use crate::object::shape::{self, go_type};
use crate::object::{Object, meta_text};
use crate::protobuf;
use crate::registry::{Definition, Scope};
use crate::status::{FieldError, Named, Status};
use crate::strategy::{Findings, Undecodable};
use serde_json::{Value, json};

impl Work<'_> {
    /// Decodes the object in the request body, checks its kind and the types of its fields, and sets defaults.
    pub(super) fn read_object(&mut self, field_validation: FieldValidation) -> Result<Object, Status> {
        let mut findings = Findings::default();
        let mut object = self.parse_object(&mut findings)?;
        self.check_type(&mut object)?;
        let decoded = self.decode(&mut object, &mut findings);
        decoded.map_err(|why| self.undecodable(&why.0))?;
        self.apply_field_validation(findings, field_validation).map_err(|why| self.undecodable(&why))?;
        Ok(object)
    }

    /// Drops unknown fields, checks types, and sets defaults.
    pub(super) fn decode(&self, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        let definition = &self.request.definition;
        let within = if definition.custom { "ObjectMeta" } else { "ObjectMeta.metadata" };
        shape::check(object, within, findings)?;
        if let Some(registered) = self.state.registry.get(&definition.id()) {
            registered.strategy.decode(self.request.version(), object, findings)?;
            registered.strategy.set_defaults(self.request.version(), object);
        }
        Ok(())
    }

    /// Ignores unknown and duplicate fields, adds warnings, or rejects the request, according to `fieldValidation`.
    pub(super) fn apply_field_validation(
        &mut self,
        findings: Findings,
        field_validation: FieldValidation,
    ) -> Result<(), String> {
        match field_validation {
            FieldValidation::Ignore => Ok(()),
            FieldValidation::Warn => {
                self.warnings.extend(findings.strict);
                Ok(())
            }
            FieldValidation::Strict if findings.strict.is_empty() => Ok(()),
            FieldValidation::Strict => Err(format!("strict decoding error: {}", findings.strict.join(", "))),
        }
    }

    fn undecodable(&self, why: &str) -> Status {
        let kind = &self.request.definition.kind;
        let version = self.request.version();
        Status::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"))
    }

    fn parse_object(&self, findings: &mut Findings) -> Result<Object, Status> {
        let request = self.request;
        let parsed = match request.content_type.as_str() {
            "" | "application/json" => duplicates::parse(&request.body),
            "application/yaml" => serde_saphyr::from_slice(&request.body)
                .map(|value| (value, Vec::new()))
                .map_err(|error| error.to_string()),
            protobuf::CONTENT_TYPE => match protobuf::parse(&request.body) {
                Ok(value) => Ok((value, Vec::new())),
                Err(error @ protobuf::Error::NotHeld(_)) => {
                    return Err(Status::plain(415, "UnsupportedMediaType", error.to_string()));
                }
                Err(error) => Err(error.to_string()),
            },
            _ => {
                let message = "the body of the request was in an unknown format - accepted media types include: \
                               application/json, application/yaml";
                return Err(Status::plain(415, "UnsupportedMediaType", message));
            }
        };
        let kind = &request.definition.kind;
        let unrecognized = |why: String| {
            let message = format!("the object provided is unrecognized (must be of type {kind}): {why}");
            Status::bad_request(message)
        };
        let version_and_kind = |why: &str| unrecognized(format!("couldn't get version/kind; json parse error: {why}"));
        if request.body.is_empty() {
            return Err(version_and_kind("unexpected end of JSON input (<empty>)"));
        }
        match parsed {
            Ok((Value::Object(object), duplicates)) => {
                findings.strict.extend(duplicates);
                Ok(object)
            }
            Ok((other, _)) => {
                let found = go_type(&other);
                Err(version_and_kind(&format!("json: cannot unmarshal {found} into Go value of an object")))
            }
            Err(why) => Err(version_and_kind(&why)),
        }
    }

    /// Checks `apiVersion` and `kind`. Objects of built-in kinds may omit both.
    fn check_type(&self, object: &mut Object) -> Result<(), Status> {
        let definition = &self.request.definition;
        let version = self.request.version();
        let wanted = definition.api_version(version);
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (mut api_version, mut kind) = (text("apiVersion"), text("kind"));
        if definition.custom {
            if kind.is_empty() {
                let shown = String::from_utf8_lossy(&self.request.body);
                return Err(Status::bad_request(format!(
                    "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing in '{shown}' \
                     ({shown})",
                    definition.kind
                )));
            }
            if api_version != wanted {
                return Err(other_version(&api_version, &wanted));
            }
            return self.check_custom_type(object);
        }
        if api_version.is_empty() {
            api_version.clone_from(&wanted);
        }
        if kind.is_empty() {
            kind.clone_from(&definition.kind);
        }
        if (api_version.as_str(), kind.as_str()) != (wanted.as_str(), definition.kind.as_str()) {
            return Err(self.other_kind(&api_version, &kind));
        }
        object.insert("apiVersion".to_owned(), json!(api_version));
        object.insert("kind".to_owned(), json!(kind));
        Ok(())
    }

    /// Checks that a custom resource has the kind and version of the path.
    pub(super) fn check_custom_type(&self, object: &Object) -> Result<(), Status> {
        let definition = &self.request.definition;
        let wanted =
            [("kind", definition.kind.clone()), ("apiVersion", definition.api_version(self.request.version()))];
        for (name, wanted) in wanted {
            let found = object.get(name).and_then(Value::as_str).unwrap_or_default();
            if found != wanted {
                let error = FieldError::invalid(name, &json!(found), &format!("must be {wanted}"));
                let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
                let named = Named { group: &definition.group, kind, name: meta_text(object, "name") };
                return Err(Status::invalid(named, &[error]));
            }
        }
        Ok(())
    }

    fn other_kind(&self, api_version: &str, kind: &str) -> Status {
        let definition = &self.request.definition;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let matches = |other: &Definition| {
            other.group == group && other.kind == kind && other.versions.iter().any(|known| known.name == version)
        };
        let known = self.state.registry.definitions().any(|other| matches(other));
        let why = if known {
            let to = package(&definition.group);
            format!("converting ({version}.{kind}) to ({to}.{}): unknown conversion", definition.kind)
        } else {
            format!(
                "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\""
            )
        };
        let wanted = &definition.kind;
        Status::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {wanted}: {why}"))
    }

    /// Checks the namespace of an object, and the name if the path contains a name. Then sets the namespace.
    pub(super) fn check_place(&self, object: &mut Object) -> Result<(), Status> {
        let target = &self.request.call.target;
        let own = meta_text(object, "name");
        if !target.name.is_empty() {
            if own.is_empty() {
                let named = &target.name;
                return Err(Status::bad_request(format!(
                    "the name of the object ({named} based on URL) was undeterminable: name must be provided"
                )));
            }
            if *own != *target.name {
                return Err(Status::bad_request(format!(
                    "the name of the object ({own}) does not match the name on the URL ({})",
                    target.name
                )));
            }
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

fn other_version(found: &str, wanted: &str) -> Status {
    Status::bad_request(format!(
        "the API version in the data ({found}) does not match the expected API version ({wanted})"
    ))
}

/// Go package of a group's internal types, for error messages.
pub(super) fn package(group: &str) -> &str {
    match group.split('.').next() {
        None | Some("") => "core",
        Some(first) => first,
    }
}
