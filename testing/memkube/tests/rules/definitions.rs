//! Tests of the deletion of CustomResourceDefinitions.

use crate::support::{MERGE, Server};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS_DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.ex.test";
const THINGS: &str = "/apis/ex.test/v1/namespaces/default/things";

async fn with_things() -> Server {
    let server = Server::new();
    define(&server, json!([])).await;
    server
}

async fn define(server: &Server, finalizers: Value) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "metadata": {"name": "things.ex.test", "finalizers": finalizers},
        "spec": {
            "group": "ex.test", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    assert_eq!(server.post(DEFINITIONS, definition).await.code, 201);
}

async fn thing(server: &Server, name: &str, finalizers: Value) -> u16 {
    let metadata = json!({"name": name, "finalizers": finalizers});
    server.post(THINGS, json!({"apiVersion": "ex.test/v1", "kind": "Thing", "metadata": metadata})).await.code
}

#[tokio::test(start_paused = true)]
async fn watches_are_told_of_each_object_that_goes_with_its_definition_and_end() {
    let server = with_things().await;
    assert_eq!(thing(&server, "a", json!([])).await, 201);
    let mut watch = server.watch(&format!("{THINGS}?watch=1")).await;
    assert_eq!(watch.next().await, "ADDED a");
    let mut unread = server.watch(&format!("{THINGS}?watch=1")).await;
    assert_eq!(thing(&server, "b", json!([])).await, 201);
    assert_eq!(server.delete(THINGS_DEFINITION, Value::Null).await.code, 200);
    assert_eq!(server.get(THINGS_DEFINITION).await.code, 404);
    assert_eq!(server.get(THINGS).await.code, 404);
    // Define a new kind with the same name. The watches of the deleted kind must get no events of the new kind's
    // objects.
    define(&server, json!([])).await;
    assert_eq!(thing(&server, "new", json!([])).await, 201);
    assert_eq!(server.get(THINGS).await.names(), ["new"]);
    assert_eq!([watch.next().await, watch.next().await, watch.next().await], ["ADDED b", "DELETED a", "DELETED b"]);
    assert_eq!(watch.event().await, None);
    assert_eq!(unread.next().await, "ADDED a");
    assert_eq!([unread.next().await, unread.next().await, unread.next().await], ["ADDED b", "DELETED a", "DELETED b"]);
    assert_eq!(unread.event().await, None);
    let mut anew = server.watch(&format!("{THINGS}?watch=1")).await;
    assert_eq!(anew.next().await, "ADDED new");
}

#[tokio::test(start_paused = true)]
async fn an_update_of_a_definition_that_is_going_leaves_it_going() {
    let server = with_things().await;
    thing(&server, "a", json!(["ex.io/f"])).await;
    server.delete(THINGS_DEFINITION, Value::Null).await;
    let patch = json!({"spec": {"names": {"shortNames": ["th"]}}});
    let patched = server.patch(THINGS_DEFINITION, MERGE, patch).await;
    assert_eq!(patched.code, 200, "{:?}", patched.body);
    assert_eq!(patched.body["metadata"]["deletionTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(thing(&server, "b", json!([])).await, 403);
}

#[tokio::test(start_paused = true)]
async fn a_definition_goes_when_a_namespace_takes_its_last_object() {
    let server = with_things().await;
    server.post("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    let held =
        json!({"apiVersion": "ex.test/v1", "kind": "Thing", "metadata": {"name": "a", "finalizers": ["ex.io/f"]}});
    let things = "/apis/ex.test/v1/namespaces/n/things";
    assert_eq!(server.post(things, held).await.code, 201);
    server.delete(THINGS_DEFINITION, Value::Null).await;
    server.delete("/api/v1/namespaces/n", Value::Null).await;
    assert_eq!(server.get(THINGS_DEFINITION).await.code, 200);
    server.patch(&format!("{things}/a"), MERGE, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(server.get(THINGS_DEFINITION).await.code, 404);
    assert_eq!(server.get("/api/v1/namespaces/n").await.code, 404);
}
