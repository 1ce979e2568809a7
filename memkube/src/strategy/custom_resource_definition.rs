//! Rules of CustomResourceDefinitions. A create registers the kind immediately. A delete removes the kind and its objects.

mod check;
mod names;
mod shape;
use super::custom_resource::{CustomResource, CustomVersion};
use super::{Context, Effect, Findings, Generation, Strategy, Undecodable, copy_member};
use crate::object::{Object, at, create, text_at};
use crate::registry::{ALL_VERBS, Definition, ResourceId, Scope, Subresource, Version};
use crate::schema::Schema;
use crate::status::{FieldError, Status};
use crate::store::{Change, ChangeKind, Stored};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct CustomResourceDefinition {
    /// Resources whose schema has changed since their creation. Stored objects of these resources may be in the form of an
    /// earlier schema.
    rewritten: BTreeSet<ResourceId>,
}

impl Strategy for CustomResourceDefinition {
    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        super::shape::read(&shape::DEFINITION, object, findings)
    }

    fn set_defaults(&self, _: &str, object: &mut Object) {
        let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
        spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
        let Some(Value::Object(names)) = spec.get_mut("names") else { return };
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !kind.is_empty() {
            names.entry("singular").or_insert_with(|| json!(kind.to_lowercase()));
            names.entry("listKind").or_insert_with(|| json!(format!("{kind}List")));
        }
    }

    fn prepare_for_create(&self, context: &mut Context<'_>, object: &mut Object) -> Result<(), Status> {
        object.remove("status");
        set_status(context, object);
        Ok(())
    }

    fn prepare_for_update(&self, context: &mut Context<'_>, object: &mut Object, old: &Object) -> Result<(), Status> {
        copy_member("status", old, object);
        set_status(context, object);
        Ok(())
    }

    fn validate(&self, context: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        let mut errors: Vec<FieldError> = check::name_error(object).into_iter().collect();
        errors.extend(check::errors(object));
        if errors.is_empty() {
            warn(context, object);
        }
        errors
    }

    fn validate_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        let mut errors = check::errors(object);
        errors.extend(check::update_errors(object, old));
        if errors.is_empty() {
            warn(context, object);
        }
        errors
    }

    fn validate_status_update(&self, _: &mut Context<'_>, _: &Object, _: &Object) -> Vec<FieldError> {
        Vec::new()
    }

    fn generation(&self) -> Generation {
        Generation::Content
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn committed(&mut self, change: &Change) -> Vec<Effect> {
        let object = change.after.decode();
        let id = ResourceId::new(text_at(&object, "spec.group"), text_at(&object, "spec.names.plural"));
        if change.kind == ChangeKind::Deleted {
            self.rewritten.remove(&id);
            return vec![Effect::Unregister(id)];
        }
        let before = change.before.as_deref().map(Stored::decode);
        let same = |before: &Object| before.get("spec") == object.get("spec") && is_established(before);
        if !is_established(&object) || before.as_ref().is_some_and(same) {
            return Vec::new();
        }
        if before.is_some_and(|before| schemas(&before) != schemas(&object)) {
            self.rewritten.insert(id.clone());
        }
        let rules = rules(&object, self.rewritten.contains(&id));
        vec![Effect::Register(Box::new(definition(&object)), Box::new(rules))]
    }
}

/// Sets the status: accepted names, conditions `NamesAccepted` and `Established`, and stored versions.
fn set_status(context: &Context<'_>, object: &mut Object) {
    let now = create::timestamp(context.now);
    let conflict = names::conflict(context, object);
    let mut status = object.get("status").cloned().unwrap_or_else(|| json!({}));
    let mut stored: Vec<Value> = status["storedVersions"].as_array().cloned().unwrap_or_default();
    let storage = versions(object).iter().find(|version| version["storage"] == true).map(|version| &version["name"]);
    if let Some(storage) = storage.filter(|storage| !stored.contains(storage)) {
        stored.push(storage.clone());
    }
    status["storedVersions"] = if stored.is_empty() { Value::Null } else { json!(stored) };
    let established = is_established(object);
    let names = at(object, "spec.names").cloned().unwrap_or_default();
    let accepted = conflict.is_none();
    if accepted || status["acceptedNames"].is_null() {
        status["acceptedNames"] = if accepted { names } else { json!({"plural": "", "kind": ""}) };
    }
    let (reason, message) = conflict.unwrap_or_else(|| ("NoConflicts".to_owned(), "no conflicts found".to_owned()));
    let old: Vec<Value> = status["conditions"].as_array().cloned().unwrap_or_default();
    let condition = |kind: &str, holds: bool, reason: &str, message: &str| {
        let fresh = json!({
            "type": kind, "status": if holds { "True" } else { "False" }, "lastTransitionTime": now,
            "reason": reason, "message": message,
        });
        let before = old.iter().find(|old| old["type"] == kind && old["status"] == fresh["status"]);
        before.cloned().unwrap_or(fresh)
    };
    let establishment = match accepted || established {
        true => condition("Established", true, "InitialNamesAccepted", "the initial names have been accepted"),
        false => condition("Established", false, "NotAccepted", "not all names are accepted"),
    };
    let own = [condition("NamesAccepted", accepted, &reason, &message), establishment];
    let others = old.iter().filter(|old| own.iter().all(|own| own["type"] != old["type"]));
    status["conditions"] = own.iter().chain(others).cloned().collect();
    object.insert("status".to_owned(), status);
}

fn is_established(object: &Object) -> bool {
    let conditions = at(object, "status.conditions").and_then(Value::as_array);
    let established = |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(established))
}

fn warn(context: &mut Context<'_>, object: &Object) {
    let mut formats: Vec<String> = Vec::new();
    for version in versions(object) {
        formats.extend(Schema::unknown_formats(&version["schema"]["openAPIV3Schema"]));
    }
    let told: BTreeSet<String> = formats.into_iter().collect();
    context.warnings.extend(told.iter().map(|format| format!("unrecognized format {format:?}")));
}

fn versions(object: &Object) -> &[Value] {
    at(object, "spec.versions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn schemas(object: &Object) -> Vec<(&Value, &Value)> {
    versions(object).iter().map(|version| (&version["name"], &version["schema"])).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: Option<&Value>) -> Vec<String> {
    value.and_then(Value::as_array).into_iter().flatten().map(text).collect()
}

/// Returns the definition of the resource that a CustomResourceDefinition describes.
fn definition(object: &Object) -> Definition {
    let name = |name: &str| text_at(object, &format!("spec.names.{name}")).to_owned();
    let mut versions_of: Vec<Version> = versions(object)
        .iter()
        .map(|version| Version {
            name: text(&version["name"]),
            served: version["served"] == true,
            storage: version["storage"] == true,
        })
        .collect();
    versions_of.sort_by_key(|version| names::priority(&version.name));
    let has_status = versions(object).iter().any(|version| !version["subresources"]["status"].is_null());
    Definition {
        group: text_at(object, "spec.group").to_owned(),
        kind: name("kind"),
        list_kind: name("listKind"),
        plural: name("plural"),
        singular: name("singular"),
        short_names: texts(at(object, "spec.names.shortNames")),
        categories: texts(at(object, "spec.names.categories")),
        scope: if text_at(object, "spec.scope") == "Cluster" { Scope::Cluster } else { Scope::Namespaced },
        versions: versions_of,
        subresources: if has_status { vec![Subresource::Status] } else { Vec::new() },
        custom: true,
        verbs: ALL_VERBS.to_vec(),
    }
}

fn rules(object: &Object, rewritten: bool) -> CustomResource {
    let versions = versions(object).iter().filter_map(|version| {
        let source = &version["schema"]["openAPIV3Schema"];
        // The validation of the CustomResourceDefinition already parsed this schema, so it is valid.
        let schema = Schema::parse(source, "").ok()?;
        let selectable = version["selectableFields"].as_array().into_iter().flatten();
        Some(CustomVersion {
            name: text(&version["name"]),
            schema: Arc::new(schema),
            source: Arc::new(source.clone()),
            selectable: selectable.map(|field| text(&field["jsonPath"]).trim_start_matches('.').to_owned()).collect(),
            storage: version["storage"] == true,
            deprecation: deprecation(object, version),
        })
    });
    CustomResource { versions: versions.collect(), rewritten }
}

/// Deprecation warning of a version: the text of the version, or a default text that names the version to use instead. `None` if
/// the version is not deprecated.
fn deprecation(object: &Object, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(words) = version["deprecationWarning"].as_str() {
        return Some(words.to_owned());
    }
    let (group, kind) = (text_at(object, "spec.group"), text_at(object, "spec.names.kind"));
    let name = text(&version["name"]);
    let mut better: Vec<String> = versions(object)
        .iter()
        .filter(|other| other["served"] == true && other["deprecated"] != true)
        .map(|other| text(&other["name"]))
        .filter(|other| names::priority(other) < names::priority(&name))
        .collect();
    better.sort_by_key(|other| names::priority(other));
    let instead = better.first().map(|better| format!("; use {group}/{better} {kind}")).unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{instead}"))
}
