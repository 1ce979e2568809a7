//! Rules of CustomResourceDefinitions. A create registers the kind immediately. A delete removes the kind and its
//! objects.

use super::custom_resource::{CustomResource, CustomVersion};
use super::typed::{self, default};
use super::{Context, Effect, Findings, Generation, Strategy, Undecodable, addresses, copy_member};
use crate::auth::Verb;
use crate::columns::Column;
use crate::discovery::priority;
use crate::object::validate::broken;
use crate::object::{Object, at, create, meta_text, names, text_at};
use crate::registry::{Definition, ResourceId, Scope, Subresource, Version};
use crate::schema::Schema;
use crate::status::{FieldError, Status};
use crate::store::{Change, ChangeKind};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Fields that an update must not change.
const IMMUTABLE: [&str; 4] = ["spec.group", "spec.scope", "spec.names.kind", "spec.names.plural"];

#[derive(Clone, Copy, Debug)]
pub(super) struct CustomResourceDefinition;

impl Strategy for CustomResourceDefinition {
    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        typed::decode::<v1::CustomResourceDefinition>(object, findings)
    }

    fn set_defaults(&self, _: &str, object: &mut Object) {
        let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
        default(spec, "conversion", json!({"strategy": "None"}));
        let Some(Value::Object(names)) = spec.get_mut("names") else { return };
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !kind.is_empty() {
            default(names, "singular", json!(kind.to_lowercase()));
            default(names, "listKind", json!(format!("{kind}List")));
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

    fn validate(&self, _: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        let name = format!("{}.{}", text_at(object, "spec.names.plural"), text_at(object, "spec.group"));
        let mut errors = errors(object);
        if meta_text(object, "name") != name {
            let why = r#"must be spec.names.plural+"."+spec.group"#;
            errors.push(FieldError::invalid("metadata.name", &json!(meta_text(object, "name")), why));
        }
        errors
    }

    fn validate_update(&self, _: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        let mut errors = errors(object);
        let changed = IMMUTABLE.into_iter().filter(|field| at(object, field) != at(old, field));
        errors.extend(changed.map(|field| FieldError::invalid(field, &Value::Null, "field is immutable")));
        let stored = list(object, "status.storedVersions").iter().enumerate();
        let lost = stored.filter(|(_, name)| versions(object).iter().all(|version| version["name"] != **name));
        errors.extend(lost.map(|(index, name)| {
            let why = "missing from spec.versions; objects may be stored in this version";
            FieldError::invalid(format!("status.storedVersions[{index}]"), name, why)
        }));
        errors
    }

    fn validate_status_update(&self, _: &mut Context<'_>, _: &Object, _: &Object) -> Vec<FieldError> {
        Vec::new()
    }

    fn columns(&self, _: &str) -> Vec<Column> {
        vec![Column::text("Name", "metadata.name"), Column::text("Created At", "metadata.creationTimestamp")]
    }

    fn generation(&self) -> Generation {
        Generation::Content
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn committed(&mut self, change: &Change) -> Vec<Effect> {
        let object = change.after.decode();
        if change.kind == ChangeKind::Deleted {
            return vec![Effect::Unregister(resource(&object))];
        }
        let same = |before: Object| before.get("spec") == object.get("spec");
        if change.before.as_deref().is_some_and(|before| same(before.decode())) {
            return Vec::new();
        }
        vec![Effect::Register(Box::new(definition(&object)), Box::new(rules(&object)))]
    }
}

/// Resource that a CustomResourceDefinition describes.
pub(crate) fn resource(object: &Object) -> ResourceId {
    ResourceId::new(text_at(object, "spec.group"), text_at(object, "spec.names.plural"))
}

/// Sets the status: accepted names, conditions `NamesAccepted` and `Established`, and stored versions.
fn set_status(context: &Context<'_>, object: &mut Object) {
    let mut stored: Vec<Value> = list(object, "status.storedVersions").to_vec();
    let storage = versions(object).iter().find(|version| version["storage"] == true).map(|version| &version["name"]);
    stored.extend(storage.filter(|storage| !stored.contains(storage)).cloned());
    let now = create::timestamp(context.now);
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message});
    let conditions = at(object, "status.conditions").cloned().unwrap_or_else(|| {
        json!([
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ])
    });
    let names = at(object, "spec.names").cloned();
    let status = json!({"acceptedNames": names, "conditions": conditions, "storedVersions": stored});
    object.insert("status".to_owned(), status);
}

fn errors(object: &Object) -> Vec<FieldError> {
    let group = text_at(object, "spec.group");
    let mut errors = Vec::new();
    let mut invalid = |field: &str, why: &str| errors.push(FieldError::invalid(field, &Value::Null, why));
    if names::subdomain(group, false).is_some() || !group.contains('.') {
        invalid("spec.group", "must be a domain with at least one dot");
    }
    if text_at(object, "spec.conversion.strategy") != "None" {
        invalid("spec.conversion.strategy", "this server converts objects by strategy None only");
    }
    let all = versions(object);
    let mut seen = BTreeSet::new();
    if !all.iter().all(|version| seen.insert(text(&version["name"]))) {
        invalid("spec.versions", "must contain unique version names");
    }
    if all.iter().filter(|version| version["storage"] == true).count() != 1 {
        invalid("spec.versions", "must have exactly one version marked as storage version");
    }
    let scope = at(object, "spec.scope").cloned().unwrap_or_default();
    if scope == "" {
        errors.push(FieldError::required("spec.scope", ""));
    } else {
        errors.extend(addresses::unsupported("spec.scope", &scope, &["Cluster", "Namespaced"]));
    }
    for name in ["plural", "singular", "kind", "listKind"] {
        let field = format!("spec.names.{name}");
        let value = text_at(object, &field);
        match value {
            "" => errors.push(FieldError::required(field, "")),
            _ => errors.extend(broken(field.clone(), value, names::label_1035(&value.to_lowercase(), false))),
        }
    }
    let shared = all.windows(2).all(|pair| pair[0]["schema"] == pair[1]["schema"]);
    for (index, version) in all.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        let name = text(&version["name"]);
        errors.extend(broken(format!("{at}.name"), &name, names::label_1035(&name, false)));
        let schema = &version["schema"]["openAPIV3Schema"];
        // kube-apiserver reports errors of a schema that all versions share once, under its place in `v1beta1`.
        let at = if shared { "spec.validation" } else { &format!("{at}.schema") };
        let at = format!("{at}.openAPIV3Schema");
        if schema.is_null() {
            errors.push(FieldError::required(format!("spec.versions[{index}].schema.openAPIV3Schema"), ""));
        } else if !shared || index == 0 {
            errors.extend(Schema::parse(schema, &at).err().into_iter().flatten());
        }
    }
    errors
}

fn list<'a>(object: &'a Object, path: &str) -> &'a [Value] {
    at(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn versions(object: &Object) -> &[Value] {
    list(object, "spec.versions")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the definition of the resource that a CustomResourceDefinition describes.
fn definition(object: &Object) -> Definition {
    let name = |name: &str| text_at(object, &format!("spec.names.{name}")).to_owned();
    let texts = |path: &str| list(object, path).iter().map(text).collect();
    let mut versions_of: Vec<Version> = versions(object)
        .iter()
        .map(|version| Version {
            name: text(&version["name"]),
            served: version["served"] == true,
            storage: version["storage"] == true,
        })
        .collect();
    versions_of.sort_by_key(|version| Reverse(priority(&version.name)));
    let has_status = versions(object).iter().any(|version| !version["subresources"]["status"].is_null());
    Definition {
        group: text_at(object, "spec.group").to_owned(),
        kind: name("kind"),
        list_kind: name("listKind"),
        plural: name("plural"),
        singular: name("singular"),
        short_names: texts("spec.names.shortNames"),
        categories: texts("spec.names.categories"),
        scope: if text_at(object, "spec.scope") == "Cluster" { Scope::Cluster } else { Scope::Namespaced },
        versions: versions_of,
        subresources: if has_status { vec![Subresource::Status] } else { Vec::new() },
        custom: true,
        verbs: Verb::ALL.to_vec(),
    }
}

fn rules(object: &Object) -> CustomResource {
    let versions = versions(object).iter().filter_map(|version| {
        let source = &version["schema"]["openAPIV3Schema"];
        let items = |name: &str| version[name].as_array().cloned().unwrap_or_default();
        let selectable = items("selectableFields");
        Some(CustomVersion {
            name: text(&version["name"]),
            // The validation of the CustomResourceDefinition already parsed this schema, so it is valid.
            schema: Schema::parse(source, "").ok()?,
            source: source.clone(),
            selectable: selectable.iter().map(|it| text(&it["jsonPath"]).trim_start_matches('.').to_owned()).collect(),
            columns: items("additionalPrinterColumns").iter().map(Column::printer).collect(),
            storage: version["storage"] == true,
        })
    });
    CustomResource { versions: versions.collect() }
}
