//! Tests of the life cycle of namespaces.

use crate::support::{MERGE, Server, clock};
use memkube::Options;
use serde_json::{Value, json};

const NAMESPACES: &str = "/api/v1/namespaces";

#[tokio::test(start_paused = true)]
async fn a_server_begins_with_four_namespaces() {
    let server = Server::new();
    assert_eq!(server.get(NAMESPACES).await.names(), ["default", "kube-node-lease", "kube-public", "kube-system"]);
    let refused = server.delete("/api/v1/namespaces/default", Value::Null).await;
    assert_eq!(refused.refusal(), (403, "namespaces \"default\" is forbidden: this namespace may not be deleted"));
    assert_eq!(server.delete(NAMESPACES, Value::Null).await.code, 405);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_labelled_with_its_name_and_finalized_by_kubernetes() {
    let server = Server::new();
    let created = server.post(NAMESPACES, json!({"metadata": {"name": "n", "namespace": "x"}})).await;
    assert_eq!(created.body["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "n"}));
    assert_eq!(created.body["metadata"].get("namespace"), None);
    assert_eq!(created.body["spec"], json!({"finalizers": ["kubernetes"]}));
    assert_eq!(created.body["status"], json!({"phase": "Active"}));
    let patch = json!({"metadata": {"labels": null}, "spec": {"finalizers": []}});
    assert_eq!(server.patch("/api/v1/namespaces/n", MERGE, patch).await.body, created.body);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_in_a_namespace_that_is_not_there() {
    let server = Server::new();
    let answer = server.post("/api/v1/namespaces/none/configmaps", json!({"metadata": {"name": "B_D"}})).await;
    assert_eq!(answer.refusal(), (404, "namespaces \"none\" not found"));
    assert_eq!(answer.body["details"], json!({"name": "none", "kind": "namespaces"}));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_is_emptied_and_gone() {
    let server = Server::new();
    server.post(NAMESPACES, json!({"metadata": {"name": "n"}})).await;
    server.post("/api/v1/namespaces/n/configmaps", json!({"metadata": {"name": "a"}})).await;
    let answer = server.delete("/api/v1/namespaces/n", Value::Null).await;
    assert_eq!(answer.body["status"], json!({"phase": "Terminating"}));
    assert_eq!(answer.body["metadata"]["deletionTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(answer.body["metadata"].get("deletionGracePeriodSeconds"), None);
    assert_eq!(server.get("/api/v1/namespaces/n").await.code, 404);
    assert_eq!(server.get("/api/v1/namespaces/n/configmaps/a").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn finalizers_of_its_content_keep_a_namespace() {
    let server = Server::new();
    server.post(NAMESPACES, json!({"metadata": {"name": "n"}})).await;
    let maps = "/api/v1/namespaces/n/configmaps";
    server.post(maps, json!({"metadata": {"name": "a", "finalizers": ["ex.io/f"]}})).await;
    server.delete("/api/v1/namespaces/n", Value::Null).await;
    assert_eq!(server.get("/api/v1/namespaces/n").await.body["status"], json!({"phase": "Terminating"}));
    let marked = server.get(&format!("{maps}/a")).await;
    assert_eq!(marked.body["metadata"]["deletionTimestamp"], "2026-01-01T00:00:00Z");
    let late = server.post(maps, json!({"metadata": {"name": "d"}})).await;
    assert_eq!(late.fields(), (403, vec!["metadata.namespace"]));
    assert_eq!(late.body["details"]["causes"][0]["reason"], "NamespaceTerminating");
    server.patch(&format!("{maps}/a"), MERGE, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(server.get("/api/v1/namespaces/n").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn without_the_controller_a_namespace_stays() {
    let mut options = Options::new(clock(), 1);
    options.namespace_controller = false;
    let server = Server::with(options);
    server.post(NAMESPACES, json!({"metadata": {"name": "n"}})).await;
    let first = server.delete("/api/v1/namespaces/n", Value::Null).await;
    assert_eq!(server.delete("/api/v1/namespaces/n", Value::Null).await.body, first.body);
    assert_eq!(server.get("/api/v1/namespaces/n").await.body["status"], json!({"phase": "Terminating"}));
}
