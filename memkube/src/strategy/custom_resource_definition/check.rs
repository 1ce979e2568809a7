//! Validation of CustomResourceDefinitions.

use super::{is_established, text, versions};
use crate::object::names::{label_1035, subdomain};
use crate::object::{Object, at, meta_text, text_at};
use crate::schema::Schema;
use crate::status::{FieldError, FieldReason, shown_struct};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const SCOPES: [&str; 2] = ["Cluster", "Namespaced"];

pub(super) fn name_error(object: &Object) -> Option<FieldError> {
    let (group, plural) = (text_at(object, "spec.group"), text_at(object, "spec.names.plural"));
    let name = meta_text(object, "name");
    let why = r#"must be spec.names.plural+"."+spec.group"#;
    let fits = name == format!("{plural}.{group}");
    (!fits).then(|| FieldError::invalid("metadata.name", &json!(name), why))
}

pub(super) fn errors(object: &Object) -> Vec<FieldError> {
    let mut errors = group_errors(text_at(object, "spec.group"));
    errors.extend(scope_error(object));
    if at(object, "spec.preserveUnknownFields").is_some() {
        let why =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", &json!(true), why));
    }
    errors.extend(versions_errors(object));
    errors.extend(names_errors(object));
    errors.extend(conversion_errors(object));
    errors.extend(stored_errors(object));
    errors
}

fn group_errors(group: &str) -> Vec<FieldError> {
    if group.is_empty() {
        return vec![FieldError::required("spec.group", "")];
    }
    let mut wrong = subdomain(group, false);
    if wrong.is_empty() && !group.contains('.') {
        wrong.push("should be a domain with at least one dot".to_owned());
    }
    wrong.iter().map(|why| FieldError::invalid("spec.group", &json!(group), why)).collect()
}

fn scope_error(object: &Object) -> Option<FieldError> {
    match text_at(object, "spec.scope") {
        "" => Some(FieldError::required("spec.scope", "")),
        scope if SCOPES.contains(&scope) => None,
        scope => Some(FieldError::not_supported("spec.scope", &json!(scope), &SCOPES)),
    }
}

fn versions_errors(object: &Object) -> Vec<FieldError> {
    let all = versions(object);
    let mut errors = Vec::new();
    let shared = all.windows(2).all(|pair| pair[0]["schema"] == pair[1]["schema"]);
    for (index, version) in all.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        let name = text(&version["name"]);
        let wrong = label_1035(&name, false).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid(format!("{at}.name"), &json!(name), &why)));
        if shared && index > 0 {
            continue;
        }
        let schema = &version["schema"]["openAPIV3Schema"];
        let place = match (shared, schema.is_null()) {
            (true, false) => "spec.validation.openAPIV3Schema".to_owned(),
            _ => format!("{at}.schema.openAPIV3Schema"),
        };
        if schema.is_null() {
            errors.push(FieldError::required(place, ""));
        } else if let Err(wrong) = Schema::parse(schema, &place) {
            errors.extend(wrong);
        }
        errors.extend(scale_errors(&version["subresources"]["scale"], shared, &at));
    }
    let mut seen = BTreeSet::new();
    let unique = all.iter().all(|version| seen.insert(text(&version["name"])));
    let storages = all.iter().filter(|version| version["storage"] == true).count();
    let rules = [
        (unique, "must contain unique version names"),
        (storages == 1, "must have exactly one version marked as storage version"),
    ];
    let shown = shown(object);
    let broken = rules.into_iter().filter(|(holds, _)| !holds);
    errors.extend(broken.map(|(_, why)| FieldError {
        field: "spec.versions".to_owned(),
        reason: FieldReason::Invalid,
        message: format!("Invalid value: {shown}: {why}"),
    }));
    if let Some(first) = all.first().filter(|_| shared) {
        let name = text(&first["name"]);
        let wrong = label_1035(&name, false).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid("spec.version", &json!(name), &why)));
    }
    errors
}

/// Returns `spec.versions` as messages of kube-apiserver show it: as Go structs. The field `Schema` and all fields after it are
/// shown as null.
fn shown(object: &Object) -> String {
    let Some(Value::Array(all)) = at(object, "spec.versions") else { return "null".to_owned() };
    let shown = all.iter().map(|version| {
        let member = |name: &str| version[name].to_string();
        let absent = || "null".to_owned();
        shown_struct(&[
            ("Name", member("name")),
            ("Served", member("served")),
            ("Storage", member("storage")),
            ("Deprecated", (version["deprecated"] == true).to_string()),
            ("DeprecationWarning", member("deprecationWarning")),
            ("Schema", absent()),
            ("Subresources", absent()),
            ("AdditionalPrinterColumns", absent()),
            ("SelectableFields", absent()),
        ])
    });
    format!("[{}]", shown.collect::<Vec<_>>().join(","))
}

fn scale_errors(scale: &Value, shared: bool, at: &str) -> Vec<FieldError> {
    if scale.is_null() {
        return Vec::new();
    }
    let at = if shared { "spec" } else { at };
    let paths = ["specReplicasPath", "statusReplicasPath"].into_iter();
    let missing = paths.filter(|path| scale[*path].as_str().unwrap_or_default().is_empty());
    missing.map(|path| FieldError::required(format!("{at}.subresources.scale.{path}"), "")).collect()
}

fn names_errors(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (name, mixed_case) in [("plural", false), ("singular", false), ("kind", true), ("listKind", true)] {
        let field = format!("spec.names.{name}");
        let value = text_at(object, &field);
        if value.is_empty() {
            errors.push(FieldError::required(field, ""));
            continue;
        }
        let wrong = match mixed_case {
            true => label_1035(&value.to_lowercase(), false),
            false => label_1035(value, false),
        };
        errors.extend(wrong.into_iter().map(|why| {
            let why = if mixed_case { format!("may have mixed case, but should otherwise match: {why}") } else { why };
            FieldError::invalid(field.clone(), &json!(value), &why)
        }));
    }
    if text_at(object, "spec.names.kind") == text_at(object, "spec.names.listKind") && errors.is_empty() {
        let shown = json!(text_at(object, "spec.names.listKind"));
        errors.push(FieldError::invalid("spec.names.listKind", &shown, "kind and listKind may not be the same"));
    }
    errors
}

fn conversion_errors(object: &Object) -> Vec<FieldError> {
    match text_at(object, "spec.conversion.strategy") {
        "None" => Vec::new(),
        "Webhook" => {
            let why = "conversion by webhooks is not offered by this server: objects are converted by strategy None";
            vec![FieldError::forbidden("spec.conversion.strategy", why)]
        }
        other => {
            let supported = ["None", "Webhook"];
            vec![FieldError::not_supported("spec.conversion.strategy", &json!(other), &supported)]
        }
    }
}

fn stored_errors(object: &Object) -> Vec<FieldError> {
    let stored = at(object, "status.storedVersions").cloned().unwrap_or_default();
    let field = "status.storedVersions";
    let Some(list) = stored.as_array() else {
        return vec![FieldError::invalid(field, &Value::Null, "must have at least one stored version")];
    };
    let mut left: BTreeMap<String, usize> = list.iter().enumerate().map(|(index, name)| (text(name), index)).collect();
    let mut errors = Vec::new();
    for version in versions(object) {
        let name = text(&version["name"]);
        if left.remove(&name).is_none() && version["storage"] == true {
            errors.push(FieldError::invalid(field, &stored, &format!("must have the storage version {name}")));
        }
    }
    errors.extend(left.into_iter().map(|(name, index)| {
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until \
             a storage migration ensures no data remains persisted in {name} and removes {name} from \
             status.storedVersions"
        );
        FieldError::invalid(format!("{field}[{index}]"), &json!(name), &why)
    }));
    errors
}

/// Errors for changed fields that are immutable after the kind is established.
pub(super) fn update_errors(object: &Object, old: &Object) -> Vec<FieldError> {
    if !is_established(old) {
        return Vec::new();
    }
    let fields = ["spec.group", "spec.scope", "spec.names.kind", "spec.names.plural"].into_iter();
    let changed = fields.filter(|field| at(object, field) != at(old, field));
    changed.map(|field| FieldError::invalid(field, &json!(text_at(object, field)), "field is immutable")).collect()
}
