//! Validation of Services.

use super::super::addresses::{port_number, unsupported};
use super::{is_external_name, is_headless, list};
use crate::object::validate::broken;
use crate::object::{Object, at, names, text_at};
use crate::status::{FieldError, FieldReason};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Fields with a fixed set of values.
const CHOICES: [(&str, &[&str]); 5] = [
    ("spec.type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]),
    ("spec.sessionAffinity", &["ClientIP", "None"]),
    ("spec.externalTrafficPolicy", &["Cluster", "Local"]),
    ("spec.internalTrafficPolicy", &["Cluster", "Local"]),
    ("spec.trafficDistribution", &["PreferClose", "PreferSameNode", "PreferSameZone"]),
];

pub(super) fn errors(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let ports = list(object, "spec.ports");
    if ports.is_empty() && !is_headless(object) && !is_external_name(object) {
        errors.push(FieldError::required("spec.ports", ""));
    }
    for (field, choices) in CHOICES {
        errors.extend(at(object, field).and_then(|value| unsupported(field, value, choices)));
    }
    errors.extend(type_error(object));
    errors.extend(port_errors(ports));
    for (key, value) in at(object, "spec.selector").and_then(Value::as_object).into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        errors.extend(broken("spec.selector", key, names::qualified(key)));
        errors.extend(broken("spec.selector", text, names::label_value(text)));
    }
    errors
}

fn type_error(object: &Object) -> Option<FieldError> {
    let name = text_at(object, "spec.externalName");
    match text_at(object, "spec.type") {
        "LoadBalancer" | "NodePort" if is_headless(object) => {
            Some(FieldError::invalid("spec.clusterIPs[0]", &json!("None"), "may not be set to 'None' for this type"))
        }
        "ExternalName" if name.is_empty() => Some(FieldError::required("spec.externalName", "")),
        "ExternalName" => {
            broken("spec.externalName", name, names::subdomain(name.strip_suffix('.').unwrap_or(name), false))
        }
        _ => None,
    }
}

fn port_errors(ports: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (mut named, mut numbered) = (BTreeSet::new(), BTreeSet::new());
    for (index, port) in ports.iter().enumerate() {
        let field = |name: &str| format!("spec.ports[{index}].{name}");
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::required(field("name"), ""));
        } else if !name.is_empty() {
            errors.extend(broken(field("name"), name, names::label(name, false)));
            if !named.insert(name) {
                errors.push(FieldError::duplicate(field("name"), &json!(name)));
            }
        }
        errors.extend(port_number(field("port"), &port["port"]));
        errors.extend(unsupported(field("protocol"), &port["protocol"], &PROTOCOLS));
        match port["targetPort"].as_str() {
            None => errors.extend(port_number(field("targetPort"), &port["targetPort"])),
            Some(name) => errors.extend(broken(field("targetPort"), name, port_name(name))),
        }
        if let Some(protocol) = port["appProtocol"].as_str() {
            errors.extend(broken(field("appProtocol"), protocol, names::qualified(protocol)));
        }
        if !numbered.insert((port["port"].to_string(), port["protocol"].to_string())) {
            let message = format!("Duplicate value: {port}");
            errors.push(FieldError::new(format!("spec.ports[{index}]"), FieldReason::Duplicate, message));
        }
    }
    errors
}

/// Returns the rule that the name of a port breaks.
fn port_name(name: &str) -> Option<&'static str> {
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits = name.len() <= 15
        && name.bytes().all(letters)
        && name.bytes().any(|byte| byte.is_ascii_lowercase())
        && !name.contains("--")
        && !name.starts_with('-')
        && !name.ends_with('-');
    let rule =
        "must have at most 15 lower case letters, digits and single inner hyphens, at least one of them a letter";
    (!fits).then_some(rule)
}
