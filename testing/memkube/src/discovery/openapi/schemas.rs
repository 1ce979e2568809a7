//! OpenAPI schemas of kinds: built-in kinds from k8s-openapi, custom kinds from their CustomResourceDefinitions.

use crate::registry::{Definition, ResourceId};
use crate::server::MemKube;
use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::authentication::v1 as authentication;
use k8s_openapi::api::authorization::v1 as authorization;
use k8s_openapi::api::coordination::v1 as coordination;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::discovery::v1 as discovery;
use k8s_openapi::api::rbac::v1 as rbac;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as extensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::schemars::generate::SchemaSettings;
use k8s_openapi::schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const PREFIX: &str = "#/components/schemas/";

/// Returns the schemas of resources in a version, and all schemas that they refer to.
pub(super) fn of(server: &MemKube, resources: &[Arc<Definition>], version: &str) -> Map<String, Value> {
    let mut settings = SchemaSettings::draft07();
    settings.definitions_path = "/components/schemas".into();
    settings.transforms.clear();
    let mut generator = settings.into_generator();
    let metadata = reference(&generator.subschema_for::<meta::ObjectMeta>());
    let mut kinds = Vec::new();
    let mut custom = Map::new();
    for definition in resources {
        let name = match built_in(&definition.group, version, &definition.kind) {
            Some(schema) => reference(&schema(&mut generator)),
            None => {
                let name = custom_name(definition, version);
                custom.insert(name.clone(), custom_schema(server, definition, version, &metadata));
                name
            }
        };
        kinds.push((name, definition));
    }
    let mut schemas = generator.take_definitions(false);
    schemas.values_mut().for_each(separate_references);
    schemas.extend(custom);
    for (name, definition) in kinds {
        let kind = json!([{"group": definition.group, "version": version, "kind": definition.kind}]);
        if let Some(Value::Object(schema)) = schemas.get_mut(&name) {
            schema.insert("x-kubernetes-group-version-kind".to_owned(), kind);
        }
    }
    schemas
}

/// Name of the schema that a `$ref` refers to.
fn reference(schema: &Schema) -> String {
    let reference = schema.get("$ref").and_then(Value::as_str).unwrap_or_default();
    reference.strip_prefix(PREFIX).unwrap_or(reference).to_owned()
}

type Generate = fn(&mut SchemaGenerator) -> Schema;

fn known<T: k8s_openapi::Resource + JsonSchema>() -> ((&'static str, &'static str, &'static str), Generate) {
    ((T::GROUP, T::VERSION, T::KIND), |generator| generator.subschema_for::<T>())
}

/// Schema of a built-in kind. `None` if memkube does not support the kind.
fn built_in(group: &str, version: &str, kind: &str) -> Option<Generate> {
    let all = [
        known::<core::ConfigMap>(),
        known::<core::Event>(),
        known::<core::Namespace>(),
        known::<core::Node>(),
        known::<core::Pod>(),
        known::<core::Secret>(),
        known::<core::Service>(),
        known::<core::ServiceAccount>(),
        known::<apps::Deployment>(),
        known::<apps::ReplicaSet>(),
        known::<authentication::SelfSubjectReview>(),
        known::<authentication::TokenReview>(),
        known::<authorization::SelfSubjectAccessReview>(),
        known::<authorization::SubjectAccessReview>(),
        known::<coordination::Lease>(),
        known::<discovery::EndpointSlice>(),
        known::<extensions::CustomResourceDefinition>(),
        known::<rbac::ClusterRole>(),
        known::<rbac::ClusterRoleBinding>(),
        known::<rbac::Role>(),
        known::<rbac::RoleBinding>(),
    ];
    let wanted = (group, version, kind);
    all.into_iter().find(|(known, _)| *known == wanted).map(|(_, schema)| schema)
}

/// Schema name of a custom kind, for example `io.k8s.networking.multicluster.v1alpha1.ServiceExport`. The parts of the
/// group are reversed.
fn custom_name(definition: &Definition, version: &str) -> String {
    let mut parts: Vec<&str> = definition.group.split('.').rev().collect();
    parts.extend([version, &definition.kind]);
    parts.join(".")
}

/// Schema of a custom kind, from its CustomResourceDefinition. If a kind was registered without a
/// CustomResourceDefinition, its schema accepts any field.
fn custom_schema(server: &MemKube, definition: &Definition, version: &str, metadata: &str) -> Value {
    let resource = ResourceId::new("apiextensions.k8s.io", "customresourcedefinitions");
    let stored = server.peek(&resource, "", &definition.qualified_plural());
    let given = stored.as_ref().and_then(|stored| {
        let versions = stored.get("spec")?.get("versions")?.as_array()?;
        let version = versions.iter().find(|known| known["name"] == version)?;
        version.get("schema")?.get("openAPIV3Schema")
    });
    let mut schema = match given {
        Some(Value::Object(schema)) => schema.clone(),
        _ => Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true)),
        ]),
    };
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    properties["apiVersion"] = json!({"type": "string", "description": API_VERSION});
    properties["kind"] = json!({"type": "string", "description": KIND});
    properties["metadata"] = json!({"description": METADATA, "allOf": [{"$ref": format!("{PREFIX}{metadata}")}]});
    Value::Object(schema)
}

const API_VERSION: &str = "The version of the schema of this object.";
const KIND: &str = "The kind of this object.";
const METADATA: &str = "The object's metadata.";

/// Moves each `$ref` that has siblings into an `allOf`, because OpenAPI 3.0 ignores the siblings of a `$ref`.
fn separate_references(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.len() > 1 && members.get("$ref").is_some_and(Value::is_string) {
                let reference = members.remove("$ref");
                members.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
            }
            members.values_mut().for_each(separate_references);
        }
        Value::Array(items) => items.iter_mut().for_each(separate_references),
        _ => {}
    }
}
