//! Tests of the garbage collector.

use crate::support::{CONFIG_MAPS, MERGE, Server, WIDGETS, clock};
use memkube::Options;
use serde_json::{Value, json};

/// Returns an owner reference to an object of the server.
fn owner(api_version: &str, kind: &str, owner: &Value) -> Value {
    let metadata = &owner["metadata"];
    json!({"apiVersion": api_version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"], "blockOwnerDeletion": true})
}

/// Creates ConfigMaps with these names, which have a ConfigMap `owner` as owner. Returns the server and the owner
/// reference.
async fn owned(names: &[&str]) -> (Server, Value) {
    let server = Server::new();
    let reference = owner("v1", "ConfigMap", &server.config_map("owner").await.body);
    for name in names {
        let metadata = json!({"name": name, "ownerReferences": [reference]});
        server.post(CONFIG_MAPS, json!({"metadata": metadata})).await;
    }
    (server, reference)
}

fn path(name: &str) -> String {
    format!("{CONFIG_MAPS}/{name}")
}

#[tokio::test(start_paused = true)]
async fn what_an_object_owned_goes_after_it_whatever_the_kinds() {
    let (server, _) = owned(&["a", "b"]).await;
    let b = server.get(&path("b")).await.body;
    server.widget("of-b", json!({"metadata": {"ownerReferences": [owner("v1", "ConfigMap", &b)]}})).await;
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", server.memkube.revision())).await;
    assert_eq!(server.delete(&path("owner"), Value::Null).await.code, 200);
    for event in ["DELETED owner", "DELETED a", "DELETED b"] {
        assert_eq!(watch.next().await, event);
    }
    assert_eq!(server.get(&format!("{WIDGETS}/of-b")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn without_the_collector_nothing_goes() {
    let mut options = Options::new(clock(), 1);
    options.garbage_collector = false;
    let server = Server::with(options);
    let reference = owner("v1", "ConfigMap", &server.config_map("owner").await.body);
    server.post(CONFIG_MAPS, json!({"metadata": {"name": "a", "ownerReferences": [reference]}})).await;
    assert_eq!(server.delete(&path("owner"), json!({"propagationPolicy": "Background"})).await.code, 200);
    assert_eq!(server.get(&path("owner")).await.code, 404);
    assert_eq!(server.get(&path("a")).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn what_has_another_owner_loses_a_reference_and_stays() {
    let (server, reference) = owned(&[]).await;
    let other = owner("v1", "ConfigMap", &server.config_map("other").await.body);
    let metadata = json!({"name": "a", "ownerReferences": [reference, other]});
    server.post(CONFIG_MAPS, json!({"metadata": metadata})).await;
    server.delete(&path("owner"), Value::Null).await;
    assert_eq!(server.get(&path("a")).await.body["metadata"]["ownerReferences"], json!([other]));
    server.delete(&path("other"), Value::Null).await;
    assert_eq!(server.get(&path("a")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn what_refers_to_an_owner_that_is_not_there_goes_at_once() {
    let (server, mut reference) = owned(&[]).await;
    reference["uid"] = json!("another");
    server.post(CONFIG_MAPS, json!({"metadata": {"name": "a", "ownerReferences": [reference]}})).await;
    assert_eq!(server.get(&path("a")).await.code, 404);
    let unknown = json!({"apiVersion": "none/v1", "kind": "None", "name": "n", "uid": "u"});
    server.post(CONFIG_MAPS, json!({"metadata": {"name": "b", "ownerReferences": [unknown]}})).await;
    assert_eq!(server.get(&path("b")).await.code, 200, "of a kind that is not known nobody can tell");
}

#[tokio::test(start_paused = true)]
async fn an_owner_deleted_in_the_foreground_waits_for_its_dependents() {
    let (server, reference) = owned(&["a"]).await;
    let metadata = json!({"name": "b", "ownerReferences": [reference], "finalizers": ["ex.io/f"]});
    server.post(CONFIG_MAPS, json!({"metadata": metadata})).await;
    let answer = server.delete(&path("owner"), json!({"propagationPolicy": "Foreground"})).await;
    assert_eq!(answer.body["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!(server.get(&path("a")).await.code, 404);
    for name in ["owner", "b"] {
        let marked = server.get(&path(name)).await;
        assert_eq!(marked.body["metadata"]["deletionTimestamp"], "2026-01-01T00:00:00Z", "{name}");
    }
    server.patch(&path("b"), MERGE, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(server.get(CONFIG_MAPS).await.names(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_is_orphaned_stays_without_its_owner() {
    let (server, _) = owned(&["a"]).await;
    let answer = server.delete(&path("owner"), json!({"propagationPolicy": "Orphan"})).await;
    assert_eq!(answer.body["metadata"]["finalizers"], json!(["orphan"]));
    assert_eq!(server.get(&path("owner")).await.code, 404);
    assert_eq!(server.get(&path("a")).await.body["metadata"].get("ownerReferences"), None);
}
