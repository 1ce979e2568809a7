//! Tests of discovery and OpenAPI, with the requests of kubectl and kube.

use crate::clock::TokioClock;
use crate::registry::{Definition, Scope, Subresource, Version};
use crate::strategy::Plain;
use crate::{MemKube, Options, User};
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use tower::ServiceExt as _;

fn server() -> MemKube {
    let server = MemKube::new(Options::new(Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH)), 1));
    let mut widgets = Definition::built_in("ex.io", "v1alpha1", "Widget", "widgets", Scope::Namespaced)
        .short(&["wd"])
        .with(&[Subresource::Status]);
    widgets.custom = true;
    widgets.versions.push(Version { name: "v1".to_owned(), served: true, storage: false });
    widgets.versions.push(Version { name: "v2".to_owned(), served: false, storage: false });
    server.register(widgets, Box::new(Plain));
    server
}

async fn get(server: &MemKube, path: &str) -> Value {
    let request = Request::get(path).header("accept", "application/json").body(Empty::<&[u8]>::new()).unwrap();
    let response = server.service(User::new("admin")).oneshot(request).await.unwrap();
    assert_eq!(response.status().as_u16(), 200, "{path}");
    assert_eq!(response.headers()["content-type"], "application/json", "{path}");
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

#[tokio::test]
async fn the_core_group_lists_namespaces_as_kube_apiserver_does() {
    let core = get(&server(), "/api/v1").await;
    assert_eq!(core.get("apiVersion"), None);
    let namespaces: Vec<&Value> =
        core["resources"].as_array().unwrap().iter().filter(|resource| resource["kind"] == "Namespace").collect();
    let all = ["create", "delete", "get", "list", "patch", "update", "watch"];
    let expected = [
        json!({"name": "namespaces", "singularName": "namespace", "namespaced": false, "kind": "Namespace",
               "verbs": all, "shortNames": ["ns"], "storageVersionHash": "Q3oi5N2YM8M="}),
        json!({"name": "namespaces/status", "singularName": "", "namespaced": false, "kind": "Namespace",
               "verbs": ["get", "patch", "update"]}),
    ];
    assert_eq!(namespaces, expected.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn the_groups_and_their_versions_are_listed() {
    let server = server();
    assert_eq!(get(&server, "/api").await["versions"], json!(["v1"]));
    let groups = get(&server, "/apis").await;
    let names: Vec<&str> =
        groups["groups"].as_array().unwrap().iter().filter_map(|group| group["name"].as_str()).collect();
    assert!(names.contains(&"discovery.k8s.io") && names.contains(&"ex.io") && !names.contains(&""), "{names:?}");
}

#[tokio::test]
async fn the_version_is_that_of_the_behaviour() {
    let version = get(&server(), "/version").await;
    assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("35")));
    assert!(version["gitVersion"].as_str().unwrap().starts_with("v1.35.4+memkube."), "{version}");
}

#[tokio::test]
async fn openapi_has_every_kind_with_its_schema_and_the_parameters_that_kubectl_looks_for() {
    let server = server();
    let index = get(&server, "/openapi/v3").await;
    for (path, entry) in index["paths"].as_object().unwrap() {
        let document = get(&server, entry["serverRelativeURL"].as_str().unwrap()).await;
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for definition in server.definitions() {
            for version in definition.versions.iter().filter(|version| version.served) {
                let api_version = definition.api_version(&version.name);
                let root = if definition.group.is_empty() { "api" } else { "apis" };
                if *path != format!("{root}/{api_version}") {
                    continue;
                }
                let kind = json!({"group": definition.group, "version": version.name, "kind": definition.kind});
                let of_kind = |schema: &&Value| schema["x-kubernetes-group-version-kind"] == json!([kind]);
                assert_eq!(schemas.values().filter(of_kind).count(), 1, "{api_version} {}", definition.kind);
            }
        }
    }
    let document = get(&server, "/openapi/v3/api/v1").await;
    let patch = &document["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"];
    let names: Vec<&str> =
        patch["parameters"].as_array().unwrap().iter().filter_map(|parameter| parameter["name"].as_str()).collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation"]);
    assert_eq!(document["paths"].get("/api/v1/namespaces/{namespace}/namespaces"), None);
}

#[tokio::test]
async fn references_in_schemas_stand_alone_and_lead_somewhere() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                    assert_eq!(members.len(), 1, "{value}");
                    found.push(reference);
                }
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let server = server();
    for path in ["/openapi/v3/api/v1", "/openapi/v3/apis/discovery.k8s.io/v1", "/openapi/v3/apis/ex.io/v1"] {
        let document = get(&server, path).await;
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(!found.is_empty(), "{path}");
        for reference in found {
            assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{path}: {reference}");
        }
    }
}

#[tokio::test]
async fn openapi_v2_has_the_parameters_of_each_kind_that_can_be_patched() {
    let server = server();
    let document = get(&server, "/openapi/v2").await;
    let of = |path: &str| document["paths"][path]["patch"].clone();
    let namespaces = of("/api/v1/namespaces/{name}");
    let kind = json!({"group": "", "version": "v1", "kind": "Namespace"});
    assert_eq!(namespaces["x-kubernetes-group-version-kind"], kind);
    assert_eq!(namespaces["parameters"][2]["name"], "fieldValidation");
    assert!(of("/apis/ex.io/v1/namespaces/{namespace}/widgets/{name}").is_object());
    assert!(of("/apis/authentication.k8s.io/v1/tokenreviews/{name}").is_null());
}

#[tokio::test]
async fn openapi_v2_is_protobuf_for_kubectl() {
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let request = Request::get("/openapi/v2").header("accept", accept).body(Empty::<&[u8]>::new()).unwrap();
    let response = server().service(User::new("admin")).oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], accept.replace('@', "."));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(body.starts_with(b"\x0a\x032.0\x12"), "{body:?}");
    let has = |part: &[u8]| body.windows(part.len()).any(|window| window == part);
    assert!(has(b"/api/v1/namespaces/{name}") && has(b"fieldValidation") && has(b"kind: \"Namespace\"\n"));
}
