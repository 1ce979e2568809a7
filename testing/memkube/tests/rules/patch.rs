//! Tests of patches.

use crate::support::{CONFIG_MAPS, JSON, MERGE, STRATEGIC, Server, WIDGETS};
use http::Method;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_merge_patch_with_null_removes() {
    let server = Server::new();
    server.post(CONFIG_MAPS, json!({"metadata": {"name": "a"}, "data": {"x": "1", "y": "2"}})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let answer = server.patch(&path, MERGE, json!({"data": {"x": null, "z": "3"}})).await;
    assert_eq!((answer.code, &answer.body["data"]), (200, &json!({"y": "2", "z": "3"})));
    let answer = server.patch(&path, MERGE, json!({"data": null})).await;
    assert_eq!(answer.body.get("data"), None);
}

#[tokio::test(start_paused = true)]
async fn a_patch_without_a_version_takes_effect_on_what_is_there() {
    let server = Server::new();
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a");
    let answer = server.patch(&path, MERGE, json!({"metadata": {"resourceVersion": null}, "data": {"w": "1"}})).await;
    assert_eq!((answer.code, answer.version()), (200, 7));
    server.widget("w", json!({})).await;
    let patch = json!({"metadata": {"resourceVersion": null}, "spec": {"color": "x"}});
    let answer = server.patch(&format!("{WIDGETS}/w"), MERGE, patch).await;
    let message =
        "widgets.ex.io \"w\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_eq!(answer.refusal(), (422, message));
}

#[tokio::test(start_paused = true)]
async fn a_patch_may_not_move_or_rename() {
    let server = Server::new();
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a");
    for metadata in [json!({"name": "b"}), json!({"namespace": "b"}), json!(null)] {
        let answer = server.patch(&path, MERGE, json!({"metadata": metadata})).await;
        assert_eq!((answer.code, &answer.body["reason"]), (400, &json!("BadRequest")), "{metadata}");
    }
    let version = server.patch(&path, MERGE, json!({"apiVersion": "v3"})).await;
    assert_eq!(version.fields(), (422, vec!["patch"]));
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_is_none_is_rejected() {
    let server = Server::new();
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a");
    for (content_type, body, code) in [
        (MERGE, "[1]", 400),
        (STRATEGIC, "[1]", 400),
        (MERGE, "{", 400),
        (JSON, "{}", 400),
        (JSON, "[5]", 400),
        ("application/json", "{}", 415),
        ("application/apply-patch+yaml", "{}", 415),
    ] {
        let answer = server.call(Method::PATCH, &path, content_type, body).await;
        assert_eq!(answer.code, code, "{content_type} {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_is_all_or_nothing() {
    let server = Server::new();
    server.post(CONFIG_MAPS, json!({"metadata": {"name": "a"}, "data": {"x": "y"}})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let failing = json!([
        {"op": "add", "path": "/data/z", "value": "1"},
        {"op": "test", "path": "/data/x", "value": "other"},
    ]);
    let answer = server.patch(&path, JSON, failing).await;
    assert_eq!((answer.code, &answer.body["reason"]), (422, &json!("Invalid")));
    assert_eq!(server.get(&path).await.body["data"], json!({"x": "y"}));
    let add = json!([{"op": "add", "path": "/data/q", "value": "1"}]);
    assert_eq!(server.patch(&path, JSON, add).await.body["data"], json!({"q": "1", "x": "y"}));
}

#[tokio::test(start_paused = true)]
async fn strategic_merge_patches_are_for_built_in_kinds() {
    let server = Server::new();
    server.post(CONFIG_MAPS, json!({"metadata": {"name": "a", "finalizers": ["ex.io/a"]}})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let answer = server.patch(&path, STRATEGIC, json!({"metadata": {"finalizers": ["ex.io/b"]}})).await;
    assert_eq!(answer.body["metadata"]["finalizers"], json!(["ex.io/a", "ex.io/b"]));
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["ex.io/a", "ex.io/b"]}});
    assert_eq!(server.patch(&path, STRATEGIC, patch).await.body["metadata"].get("finalizers"), None);
    server.widget("w", json!({})).await;
    let answer = server.patch(&format!("{WIDGETS}/w"), STRATEGIC, json!({"spec": {"color": "x"}})).await;
    assert_eq!((answer.code, &answer.body["reason"]), (415, &json!("UnsupportedMediaType")));
}

#[tokio::test(start_paused = true)]
async fn a_patch_of_what_is_not_there_is_refused() {
    let server = Server::new();
    let answer = server.patch(&format!("{WIDGETS}/nope"), MERGE, json!({})).await;
    assert_eq!(answer.refusal(), (404, "widgets.ex.io \"nope\" not found"));
    assert_eq!(answer.body["details"], json!({"name": "nope", "group": "ex.io", "kind": "widgets"}));
}

#[tokio::test(start_paused = true)]
async fn wrong_types_in_metadata_make_a_patch_unusable() {
    let server = Server::new();
    server.widget("w", json!({})).await;
    let answer = server.patch(&format!("{WIDGETS}/w"), MERGE, json!({"metadata": {"labels": {"a": 5}}})).await;
    assert_eq!(answer.fields(), (422, vec!["patch"]));
}
