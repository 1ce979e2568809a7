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
    let refused = async |patch| {
        let answer = server.patch(&path, MERGE, patch).await;
        (answer.code, answer.body["message"].as_str().unwrap().to_owned())
    };
    let expected = (400, "the name of the object (b) does not match the name on the URL (a)".to_owned());
    assert_eq!(refused(json!({"metadata": {"name": "b"}})).await, expected);
    let message = "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!(refused(json!({"metadata": {"namespace": "b"}})).await, (400, message.to_owned()));
    let message = "the name of the object (a based on URL) was undeterminable: name must be provided";
    assert_eq!(refused(json!({"metadata": null})).await, (400, message.to_owned()));
    let (code, message) = refused(json!({"apiVersion": "v3"})).await;
    assert_eq!(code, 422);
    let end = "no kind \"ConfigMap\" is registered for version \"v3\" in scheme \"pkg/runtime/scheme.go:111\"";
    assert!(message.starts_with(" \"\" is invalid: patch: Invalid value: ") && message.ends_with(end), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_is_none_is_refused() {
    let server = Server::new();
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a");
    let refused = async |content_type: &str, body: &'static str| {
        let answer = server.call(Method::PATCH, &path, content_type, body).await;
        (answer.code, answer.body["message"].as_str().unwrap().to_owned())
    };
    let no_map = "json: cannot unmarshal array into Go value of type map[string]interface {}";
    assert_eq!(refused(MERGE, "[1]").await, (400, format!("error decoding patch: {no_map}")));
    assert_eq!(refused(STRATEGIC, "[1]").await, (400, no_map.to_owned()));
    assert_eq!(refused(MERGE, "{").await, (400, "error decoding patch: unexpected end of JSON input".to_owned()));
    assert_eq!(
        refused(JSON, "{}").await,
        (
            400,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
                .to_owned()
        )
    );
    let number = "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp";
    assert_eq!(refused(JSON, "[5]").await, (400, number.to_owned()));
    assert_eq!(refused("application/json", "{}").await, (415, "415: Unsupported Media Type".to_owned()));
    assert_eq!(refused("application/apply-patch+yaml", "{}").await.0, 415);
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
    assert_eq!(
        answer.body,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 422, "details": {},
            "message": "the server rejected our request due to an error in our request", "reason": "Invalid",
        })
    );
    assert_eq!(server.get(&path).await.body["data"], json!({"x": "y"}));
    let replace = json!([{"op": "replace", "path": "/data/q", "value": "1"}]);
    assert_eq!(server.patch(&path, JSON, replace).await.body["data"], json!({"q": "1", "x": "y"}));
}

#[tokio::test(start_paused = true)]
async fn strategic_merge_patches_are_for_built_in_kinds() {
    let server = Server::new();
    server.post(CONFIG_MAPS, json!({"metadata": {"name": "a", "finalizers": ["ex.io/a"]}})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let answer = server.patch(&path, STRATEGIC, json!({"metadata": {"finalizers": ["ex.io/b"]}})).await;
    assert_eq!(answer.body["metadata"]["finalizers"], json!(["ex.io/b", "ex.io/a"]));
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
    let (code, message) = answer.refusal();
    assert_eq!(code, 422);
    let end = "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string";
    assert!(message.ends_with(end), "{message}");
    assert_eq!(answer.body["details"]["causes"][0]["field"], "patch");
}
