//! Tests of deletes.

use crate::support::{CONFIG_MAPS, MERGE, Server, WIDGETS};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn a_delete_answers_with_what_is_gone() {
    let server = Server::new();
    let created = server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a");
    let answer = server.delete(&path, Value::Null).await;
    assert_eq!(
        answer.body,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": {"name": "a", "kind": "configmaps", "uid": created.body["metadata"]["uid"]},
        })
    );
    assert_eq!(server.get(&path).await.refusal(), (404, "configmaps \"a\" not found"));
    assert_eq!(server.delete(&path, Value::Null).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn service_accounts_are_shown_when_they_are_deleted() {
    let server = Server::new();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let created = server.post(accounts, json!({"metadata": {"name": "a"}})).await;
    let answer = server.delete(&format!("{accounts}/a"), Value::Null).await;
    assert_eq!((answer.code, &answer.body["kind"]), (200, &json!("ServiceAccount")));
    assert_eq!(answer.version(), created.version() + 1);
}

#[tokio::test(start_paused = true)]
async fn preconditions_must_hold() {
    let server = Server::new();
    let created = server.config_map("a").await;
    let uid = created.body["metadata"]["uid"].as_str().unwrap();
    let path = format!("{CONFIG_MAPS}/a");
    for preconditions in [json!({"uid": "x"}), json!({"resourceVersion": "3"})] {
        let answer = server.delete(&path, json!({"preconditions": preconditions})).await;
        assert_eq!((answer.code, &answer.body["reason"]), (409, &json!("Conflict")));
        assert_eq!(answer.body["details"], json!({"name": "a", "kind": "ConfigMap"}));
    }
    let right = json!({"preconditions": {"uid": uid, "resourceVersion": "6"}});
    assert_eq!(server.delete(&path, right).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn finalizers_keep_an_object_until_the_last_is_gone() {
    let server = Server::new();
    server.widget("w", json!({"metadata": {"finalizers": ["ex.io/f"]}})).await;
    let path = format!("{WIDGETS}/w");
    let marked = server.delete(&path, Value::Null).await;
    assert_eq!(marked.code, 200);
    let metadata = &marked.body["metadata"];
    assert_eq!(metadata["deletionTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!((&metadata["deletionGracePeriodSeconds"], &metadata["generation"]), (&json!(0), &json!(2)));
    assert_eq!(server.delete(&path, Value::Null).await.body, marked.body);

    let more = server.patch(&path, MERGE, json!({"metadata": {"finalizers": ["ex.io/f", "ex.io/g"]}})).await;
    assert_eq!(more.fields(), (422, vec!["metadata.finalizers"]));

    let changed = server.patch(&path, MERGE, json!({"spec": {"color": "pink"}})).await;
    assert_eq!(changed.body["metadata"]["generation"], 3);
    let last = server.patch(&path, MERGE, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!((last.code, last.version()), (200, changed.version()));
    assert_eq!(server.get(&path).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_timestamp_cannot_be_taken_back() {
    let server = Server::new();
    server.widget("w", json!({"metadata": {"finalizers": ["ex.io/f"]}})).await;
    let path = format!("{WIDGETS}/w");
    let marked = server.delete(&path, Value::Null).await;
    let patch = json!({"metadata": {"deletionTimestamp": null, "deletionGracePeriodSeconds": null}});
    assert_eq!(server.patch(&path, MERGE, patch).await.body, marked.body);
}

#[tokio::test(start_paused = true)]
async fn options_are_checked_wherever_they_are() {
    let server = Server::new();
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a");
    let policy = server.delete(&path, json!({"propagationPolicy": "Bad"})).await;
    assert_eq!(policy.fields(), (422, vec!["propagationPolicy"]));
    assert_eq!(server.delete(&path, json!("x")).await.code, 400);
    let query = server.delete(&format!("{path}?dryRun=Some"), Value::Null).await;
    assert_eq!(query.fields(), (422, vec!["dryRun"]));
    assert_eq!(server.delete(&format!("{path}?dryRun=All"), Value::Null).await.code, 200);
    assert_eq!(server.get(&path).await.code, 200);
    assert_eq!(server.delete(&path, json!({"propagationPolicy": "Background"})).await.code, 200);
    assert_eq!(server.get(&path).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn all_that_a_selector_selects_can_be_deleted_at_once() {
    let server = Server::new();
    for (name, label) in [("a", "1"), ("b", "2"), ("c", "1")] {
        server.post(CONFIG_MAPS, json!({"metadata": {"name": name, "labels": {"q": label}}})).await;
    }
    let answer = server.delete(&format!("{CONFIG_MAPS}?labelSelector=q%3D1"), Value::Null).await;
    assert_eq!((answer.code, &answer.body["kind"]), (200, &json!("ConfigMapList")));
    assert_eq!(answer.names(), ["a", "c"]);
    assert_eq!(server.get(CONFIG_MAPS).await.names(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn pods_on_a_node_are_given_time() {
    let server = Server::new();
    let pods = "/api/v1/namespaces/default/pods";
    let containers = json!([{"name": "c", "image": "i"}]);
    server.post(pods, json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": containers}})).await;
    let path = format!("{pods}/p");
    let marked = server.delete(&path, Value::Null).await;
    let metadata = &marked.body["metadata"];
    assert_eq!(metadata["deletionTimestamp"], "2026-01-01T00:00:30Z");
    assert_eq!((&metadata["deletionGracePeriodSeconds"], &metadata["generation"]), (&json!(30), &json!(2)));
    assert_eq!(server.get(&path).await.code, 200);
    let ended = server.delete(&path, json!({"gracePeriodSeconds": 0})).await;
    assert_eq!(ended.version(), marked.version() + 2);
    assert_eq!(server.get(&path).await.code, 404);
}
