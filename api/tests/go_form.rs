//! Tests of the CRD schemas: the complete Go form, and the differences between the full form and the Go form.
#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

use fleetnet_api::crds::{Form, all};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const QUALIFIED_NAME: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
    (([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

#[test]
fn slices_of_the_hub_in_the_go_form() {
    for kind in ["EndpointSliceExport v1alpha1", "EndpointSliceImport v1alpha1"] {
        assert_eq!(schemas(Form::Go)[kind], slice_root(), "{kind}");
    }
}

#[test]
fn internal_service_export_in_the_go_form() {
    let spec = json!({
        "type": "object",
        "required": ["ports", "serviceReference"],
        "properties": {
            "ports": atomic_list(service_port()),
            "serviceReference": reference(),
            "type": string(),
            "isDNSLabelConfigured": { "type": "boolean" },
            "isInternalLoadBalancer": { "type": "boolean" },
            "publicIPResourceID": string(),
            "weight": { "type": "integer", "format": "int64" },
        },
    });
    let status = json!({ "type": "object", "properties": { "conditions": conditions() } });
    let expected = root(&[], json!({ "spec": spec, "status": status }));
    assert_eq!(schemas(Form::Go)["InternalServiceExport v1alpha1"], expected);
}

#[test]
fn internal_service_import_in_the_go_form() {
    let spec = json!({
        "type": "object",
        "required": ["serviceImportReference"],
        "properties": { "serviceImportReference": reference() },
    });
    let expected = root(&["spec"], json!({ "spec": spec, "status": import_status() }));
    assert_eq!(schemas(Form::Go)["InternalServiceImport v1alpha1"], expected);
}

#[test]
fn multi_cluster_service_in_the_go_form() {
    let name = json!({ "type": "string", "maxLength": 63, "pattern": "^([a-z]([-a-z0-9]*[a-z0-9])?)$" });
    let spec = json!({
        "type": "object",
        "properties": {
            "serviceImport": { "type": "object", "required": ["name"], "properties": { "name": name } },
        },
    });
    let port = json!({
        "type": "object",
        "required": ["port", "protocol"],
        "properties": {
            "error": { "type": "string", "maxLength": 316, "pattern": QUALIFIED_NAME },
            "port": { "type": "integer", "format": "int32" },
            "protocol": { "type": "string", "default": "TCP" },
        },
    });
    let ingress = json!({
        "type": "object",
        "properties": { "hostname": string(), "ip": string(), "ipMode": string(), "ports": atomic_list(port) },
    });
    let status = json!({
        "type": "object",
        "properties": {
            "conditions": conditions(),
            "loadBalancer": { "type": "object", "properties": { "ingress": atomic_list(ingress) } },
        },
    });
    let expected = named_by_users(root(&["spec"], json!({ "spec": spec, "status": status })));
    assert_eq!(schemas(Form::Go)["MultiClusterService v1alpha1"], expected);
}

#[test]
fn both_versions_of_service_export_in_the_go_form() {
    let status = json!({ "type": "object", "properties": { "conditions": conditions() } });
    let expected = named_by_users(root(&[], json!({ "status": status })));
    let schemas = schemas(Form::Go);
    assert_eq!(schemas["ServiceExport v1alpha1"], expected);
    assert_eq!(schemas["ServiceExport v1beta1"], expected);
}

#[test]
fn service_import_in_the_go_form() {
    let expected = named_by_users(root(&[], json!({ "status": import_status() })));
    assert_eq!(schemas(Form::Go)["ServiceImport v1alpha1"], expected);
}

#[test]
fn the_full_form_adds_only_fields_and_bounds() {
    let (go, full) = (facts(Form::Go), facts(Form::Full));
    let name = "MultiClusterService v1alpha1: spec.serviceImport.name pattern";
    let gone: Vec<&String> = go.difference(&full).collect();
    assert_eq!(
        gone,
        [&format!("{name} = \"^([a-z]([-a-z0-9]*[a-z0-9])?)$\"")],
        "the full form takes nothing else away"
    );
    let of_go: BTreeSet<&str> = go.iter().map(|fact| parts(fact).0).collect();
    let changed = full.difference(&go).filter(|fact| {
        let (field, keyword) = parts(fact);
        of_go.contains(field) && !["maxItems", "minItems", "maxLength", "minLength"].contains(&keyword)
    });
    let expected = [
        "EndpointSliceExport v1alpha1: spec.addressType enum[1] = \"IPv6\"",
        "EndpointSliceImport v1alpha1: spec.addressType enum[1] = \"IPv6\"",
        &format!("{name} = \"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)$\""),
    ];
    assert_eq!(changed.collect::<Vec<_>>(), expected);
}

/// Also rule T37.
#[test]
fn every_text_and_list_that_a_member_writes_has_a_limit() {
    let full = facts(Form::Full);
    let has = |field: &str, keyword: &str| full.iter().any(|fact| parts(fact) == (field, keyword));
    let is_limited = |field: &str| ["maxItems", "maxLength", "enum[0]", "format"].iter().any(|it| has(field, it));
    let of_members = ["EndpointSliceExport", "EndpointSliceImport", "InternalServiceExport", "InternalServiceImport"]
        .map(|kind| format!("{kind} v1alpha1: spec."));
    let unlimited = full
        .iter()
        .filter(|fact| fact.ends_with(" type = \"string\"") || fact.ends_with(" type = \"array\""))
        .map(|fact| parts(fact).0)
        .filter(|field| of_members.iter().any(|of| field.starts_with(&**of)) && !is_limited(field));
    let of_traffic_manager =
        ["publicIPResourceID", "type"].map(|it| format!("InternalServiceExport v1alpha1: spec.{it}"));
    assert_eq!(unlimited.collect::<Vec<_>>(), of_traffic_manager);
}

/// Returns the field and the keyword of a fact.
fn parts(fact: &str) -> (&str, &str) {
    fact.split_once(" = ").unwrap().0.rsplit_once(' ').unwrap()
}

/// Returns every value in every schema as a line `<kind> <version>: <field> <keyword> = <value>`.
fn facts(form: Form) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (name, schema) in schemas(form) {
        collect_facts(&name, "", &schema, &mut found);
    }
    found
}

fn collect_facts(name: &str, field: &str, schema: &Value, found: &mut BTreeSet<String>) {
    for (keyword, value) in schema.as_object().unwrap() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (property, schema) in properties {
                    let field = if field.is_empty() { property.clone() } else { format!("{field}.{property}") };
                    collect_facts(name, &field, schema, found);
                }
            }
            ("items", items) => collect_facts(name, &format!("{field}[]"), items, found),
            (_, Value::Array(values)) => {
                for (index, value) in values.iter().enumerate() {
                    found.insert(format!("{name}: {field} {keyword}[{index}] = {value}"));
                }
            }
            _ => {
                found.insert(format!("{name}: {field} {keyword} = {value}"));
            }
        }
    }
}

/// Returns the schema of each version of each kind, without descriptions.
fn schemas(form: Form) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for definition in all(form) {
        for version in definition.spec.versions {
            let schema = version.schema.unwrap().open_api_v3_schema.unwrap();
            let mut value = serde_json::to_value(schema).unwrap();
            plain(&mut value);
            found.insert(format!("{} {}", definition.spec.names.kind, version.name), value);
        }
    }
    found
}

fn plain(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, value| !(key == "description" && value.is_string()));
            fields.values_mut().for_each(plain);
        }
        Value::Array(values) => values.iter_mut().for_each(plain),
        Value::Number(number) if number.is_f64() => {
            let whole = format!("{}", number.as_f64().unwrap());
            *value = serde_json::from_str(&whole).unwrap();
        }
        _ => {}
    }
}

fn string() -> Value {
    json!({ "type": "string" })
}

fn root(required: &[&str], properties: Value) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties });
    schema["properties"]["apiVersion"] = string();
    schema["properties"]["kind"] = string();
    schema["properties"]["metadata"] = json!({ "type": "object" });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn named_by_users(mut root: Value) -> Value {
    root["x-kubernetes-validations"] =
        json!([{ "rule": "size(self.metadata.name) < 64", "message": "metadata.name max length is 63" }]);
    root
}

fn atomic_list(items: Value) -> Value {
    json!({ "type": "array", "x-kubernetes-list-type": "atomic", "items": items })
}

fn slice_root() -> Value {
    let endpoint = json!({
        "type": "object",
        "required": ["addresses"],
        "properties": { "addresses": { "type": "array", "items": string() } },
    });
    let port = json!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "name": string(),
            "protocol": { "type": "string", "default": "TCP" },
            "port": { "type": "integer", "format": "int32" },
            "appProtocol": string(),
        },
    });
    let owner = json!({
        "type": "object",
        "required": ["name", "namespace", "namespacedName"],
        "properties": { "name": string(), "namespace": string(), "namespacedName": string() },
    });
    let spec = json!({
        "type": "object",
        "required": ["addressType", "endpointSliceReference", "endpoints", "ownerServiceReference"],
        "properties": {
            "addressType": { "type": "string", "enum": ["IPv4"], "default": "IPv4" },
            "endpoints": atomic_list(endpoint),
            "ports": atomic_list(port),
            "endpointSliceReference": reference(),
            "ownerServiceReference": owner,
        },
    });
    root(&["spec"], json!({ "spec": spec }))
}

fn reference() -> Value {
    json!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "required": [
            "clusterId", "generation", "kind", "name", "namespace", "namespacedName", "resourceVersion", "uid",
        ],
        "properties": {
            "clusterId": string(),
            "apiVersion": string(),
            "kind": string(),
            "namespace": string(),
            "name": string(),
            "resourceVersion": string(),
            "generation": { "type": "integer", "format": "int64" },
            "uid": string(),
            "namespacedName": string(),
            "exportedSince": { "type": "string", "format": "date-time" },
        },
    })
}

fn service_port() -> Value {
    json!({
        "type": "object",
        "required": ["port"],
        "properties": {
            "name": string(),
            "protocol": { "type": "string", "enum": ["TCP", "UDP", "SCTP"], "default": "TCP" },
            "appProtocol": string(),
            "port": { "type": "integer", "format": "int32", "minimum": 1, "maximum": 65535 },
            "targetPort": { "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] },
        },
    })
}

fn import_status() -> Value {
    let timeout = json!({ "type": "integer", "format": "int32" });
    let client_ip = json!({ "type": "object", "properties": { "timeoutSeconds": timeout } });
    let cluster = json!({ "type": "object", "required": ["cluster"], "properties": { "cluster": string() } });
    json!({
        "type": "object",
        "properties": {
            "ips": { "type": "array", "maxItems": 1, "items": string() },
            "type": { "type": "string", "enum": ["ClusterSetIP", "Headless"] },
            "sessionAffinity": string(),
            "sessionAffinityConfig": { "type": "object", "properties": { "clientIP": client_ip } },
            "ports": atomic_list(service_port()),
            "clusters": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["cluster"],
                "items": cluster,
            },
        },
    })
}

fn conditions() -> Value {
    let reason = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
    json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": { "type": "string", "format": "date-time" },
                "message": { "type": "string", "maxLength": 32768 },
                "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0 },
                "reason": { "type": "string", "minLength": 1, "maxLength": 1024, "pattern": reason },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                "type": { "type": "string", "maxLength": 316, "pattern": QUALIFIED_NAME },
            },
        },
    })
}
