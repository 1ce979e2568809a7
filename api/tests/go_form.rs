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

/// Also rule T37.
#[test]
fn the_full_form_adds_exactly_these_fields_and_bounds() {
    let mut expected: BTreeSet<String> = BTreeSet::new();
    for kind in ["EndpointSliceExport v1alpha1", "EndpointSliceImport v1alpha1"] {
        expected.extend(additions_to_slices(kind));
        expected.extend(draining_endpoints(kind));
    }
    expected.extend(additions_to_services().map(str::to_owned));
    expected.extend(limits_of_ports());
    expected.extend(limits_of_references());
    expected.extend(part_for_the_standard_api());
    expected.extend(precedence());
    let (go, full) = (facts(Form::Go), facts(Form::Full));
    let added = full
        .iter()
        .filter(|fact| {
            !go.contains(*fact) && !["MemberAgent ", "MergedServiceImport "].iter().any(|it| fact.starts_with(it))
        })
        // The conditions of ServiceImport are those of the other kinds.
        .filter(|fact| !fact.starts_with("ServiceImport v1alpha1: status.conditions"))
        .map(|fact| fact.replacen(": ", ": + ", 1));
    let gone: Vec<&String> = go.difference(&full).collect();
    let name = "MultiClusterService v1alpha1: spec.serviceImport.name pattern = ";
    assert_eq!(gone, [&format!("{name}\"^([a-z]([-a-z0-9]*[a-z0-9])?)$\"")], "the full form takes nothing else away");
    expected.insert(format!("{}\"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)$\"", name.replacen(": ", ": + ", 1)));
    assert_eq!(added.collect::<BTreeSet<_>>(), expected);
}

fn part_for_the_standard_api() -> Vec<String> {
    let part = "InternalServiceExport v1alpha1: + spec.multicluster";
    let list = |field: &str, most: usize| {
        ["type = \"array\"", "x-kubernetes-list-type = \"atomic\"", &format!("maxItems = {most}")]
            .map(|bound| format!("{part}.{field} {bound}"))
    };
    let text = |field: &str, longest: usize| {
        [format!("{part}.{field} type = \"string\""), format!("{part}.{field} maxLength = {longest}")]
    };
    let pairs = |field: &str| {
        let of_pair = ["type = \"object\"", "required[0] = \"name\"", "required[1] = \"value\""];
        let of_pair = of_pair.map(|bound| format!("{part}.{field}[] {bound}"));
        let texts =
            [("name", 317), ("value", 1_024)].map(|(name, longest)| text(&format!("{field}[].{name}"), longest));
        list(field, 32).into_iter().chain(of_pair).chain(texts.into_iter().flatten()).collect::<Vec<_>>()
    };
    let family = ["type = \"string\"", "enum[0] = \"IPv4\"", "enum[1] = \"IPv6\""];
    let created = format!("{part}.exportCreationTimestamp");
    let plain = [
        format!("{part} type = \"object\""),
        format!("{part}.only type = \"boolean\""),
        format!("{part}.recreated type = \"boolean\""),
        format!("{created} type = \"string\""),
        format!("{created} format = \"date-time\""),
    ];
    plain
        .into_iter()
        .chain(["internalTrafficPolicy", "trafficDistribution"].into_iter().flat_map(|field| text(field, 63)))
        .chain(list("ipFamilies", 2))
        .chain(family.map(|bound| format!("{part}.ipFamilies[] {bound}")))
        .chain(["exportedLabels", "exportedAnnotations"].into_iter().flat_map(pairs))
        .collect()
}

fn precedence() -> Vec<String> {
    let of_list =
        ["type = \"array\"", "x-kubernetes-list-type = \"atomic\"", "maxItems = 16"].map(|it| format!(" {it}"));
    let of_place = [
        " type = \"object\"",
        " required[0] = \"cluster\"",
        " required[1] = \"exportCreationTimestamp\"",
        " required[2] = \"since\"",
        ".cluster type = \"string\"",
        ".cluster minLength = 1",
        ".cluster maxLength = 63",
        ".exportCreationTimestamp type = \"string\"",
        ".exportCreationTimestamp format = \"date-time\"",
        ".since type = \"string\"",
        ".since format = \"date-time\"",
    ];
    let all = of_list.into_iter().chain(of_place.map(|it| format!("[]{it}")));
    all.map(|it| format!("InternalServiceExport v1alpha1: + status.precedence{it}")).collect()
}

fn additions_to_slices(kind: &str) -> Vec<String> {
    let endpoint = "spec.endpoints[]";
    vec![
        format!("{kind}: + spec.endpoints maxItems = 1000"),
        format!("{kind}: + {endpoint}.addresses[] maxLength = 253"),
        format!("{kind}: + {endpoint}.addresses[] minLength = 1"),
        format!("{kind}: + spec.ports maxItems = 1000"),
        format!("{kind}: + spec.ports[].appProtocol maxLength = 317"),
        format!("{kind}: + spec.ports[].name maxLength = 63"),
        format!("{kind}: + spec.ports[].protocol maxLength = 63"),
        format!("{kind}: + spec.ownerServiceReference.name maxLength = 253"),
        format!("{kind}: + spec.ownerServiceReference.name minLength = 1"),
        format!("{kind}: + spec.ownerServiceReference.namespace maxLength = 63"),
        format!("{kind}: + spec.ownerServiceReference.namespace minLength = 1"),
        format!("{kind}: + spec.ownerServiceReference.namespacedName maxLength = 317"),
        format!("{kind}: + spec.addressType enum[1] = \"IPv6\""),
        format!("{kind}: + {endpoint}.addresses maxItems = 100"),
        format!("{kind}: + {endpoint}.addresses minItems = 1"),
        format!("{kind}: + {endpoint}.hostname maxLength = 63"),
        format!("{kind}: + {endpoint}.hostname minLength = 1"),
        format!("{kind}: + {endpoint}.hostname pattern = \"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$\""),
        format!("{kind}: + {endpoint}.hostname type = \"string\""),
        format!("{kind}: + {endpoint}.zone maxLength = 253"),
        format!("{kind}: + {endpoint}.zone type = \"string\""),
    ]
}

fn draining_endpoints(kind: &str) -> Vec<String> {
    vec![
        format!("{kind}: + spec.drainingEndpoints maxItems = 1000"),
        format!("{kind}: + spec.drainingEndpoints[].addresses[] maxLength = 253"),
        format!("{kind}: + spec.drainingEndpoints[].addresses[] minLength = 1"),
        format!("{kind}: + spec.drainingEndpoints[].addresses[] type = \"string\""),
        format!("{kind}: + spec.drainingEndpoints[].addresses maxItems = 100"),
        format!("{kind}: + spec.drainingEndpoints[].addresses minItems = 1"),
        format!("{kind}: + spec.drainingEndpoints[].addresses type = \"array\""),
        format!("{kind}: + spec.drainingEndpoints[].hostname maxLength = 63"),
        format!("{kind}: + spec.drainingEndpoints[].hostname minLength = 1"),
        format!("{kind}: + spec.drainingEndpoints[].hostname pattern = \"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$\""),
        format!("{kind}: + spec.drainingEndpoints[].hostname type = \"string\""),
        format!("{kind}: + spec.drainingEndpoints[] required[0] = \"addresses\""),
        format!("{kind}: + spec.drainingEndpoints[] type = \"object\""),
        format!("{kind}: + spec.drainingEndpoints[].zone maxLength = 253"),
        format!("{kind}: + spec.drainingEndpoints[].zone type = \"string\""),
        format!("{kind}: + spec.drainingEndpoints type = \"array\""),
        format!("{kind}: + spec.drainingEndpoints x-kubernetes-list-type = \"atomic\""),
    ]
}

fn additions_to_services() -> [&'static str; 11] {
    [
        "InternalServiceExport v1alpha1: + spec.headless type = \"boolean\"",
        "InternalServiceExport v1alpha1: + spec.sessionAffinity enum[0] = \"None\"",
        "InternalServiceExport v1alpha1: + spec.sessionAffinity enum[1] = \"ClientIP\"",
        "InternalServiceExport v1alpha1: + spec.sessionAffinity type = \"string\"",
        "InternalServiceExport v1alpha1: + spec.sessionAffinityConfig type = \"object\"",
        "InternalServiceExport v1alpha1: + spec.sessionAffinityConfig.clientIP type = \"object\"",
        "InternalServiceExport v1alpha1: + spec.sessionAffinityConfig.clientIP.timeoutSeconds format = \"int32\"",
        "InternalServiceExport v1alpha1: + spec.sessionAffinityConfig.clientIP.timeoutSeconds type = \"integer\"",
        "MultiClusterService v1alpha1: + spec.type enum[0] = \"LoadBalancer\"",
        "MultiClusterService v1alpha1: + spec.type enum[1] = \"ClusterIP\"",
        "MultiClusterService v1alpha1: + spec.type type = \"string\"",
    ]
}

fn limits_of_ports() -> Vec<String> {
    let mut limits = vec!["InternalServiceExport v1alpha1: + spec.ports maxItems = 1000".to_owned()];
    for (kind, part) in
        [("InternalServiceExport", "spec"), ("ServiceImport", "status"), ("InternalServiceImport", "status")]
    {
        limits.push(format!("{kind} v1alpha1: + {part}.ports[].appProtocol maxLength = 317"));
        limits.push(format!("{kind} v1alpha1: + {part}.ports[].name maxLength = 63"));
    }
    limits
}

fn limits_of_references() -> Vec<String> {
    let limits = [
        "apiVersion maxLength = 253",
        "clusterId maxLength = 253",
        "kind maxLength = 253",
        "name maxLength = 253",
        "name minLength = 1",
        "namespace maxLength = 63",
        "namespace minLength = 1",
        "namespacedName maxLength = 317",
        "resourceVersion maxLength = 253",
        "uid maxLength = 253",
    ];
    let references = [
        ("EndpointSliceExport", "endpointSliceReference"),
        ("EndpointSliceImport", "endpointSliceReference"),
        ("InternalServiceExport", "serviceReference"),
        ("InternalServiceImport", "serviceImportReference"),
    ];
    let of = |(kind, field)| limits.map(|limit| format!("{kind} v1alpha1: + spec.{field}.{limit}"));
    references.into_iter().flat_map(of).collect()
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
