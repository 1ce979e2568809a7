//! Tests of verbs on objects. The conformance table (`testing/scenarios/src/conformance/table`) has most rules of the
//! verbs. The tests of this file check what the table does not have: texts of errors, limits, durations, rare requests.

use crate::support::{CONFIG_MAPS, MERGE, Server, WIDGETS, clock};
use memkube::Options;
use memkube::limits::Limits;
use serde_json::{Value, json};
use std::time::Duration;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

async fn with_config_maps(names: &[&str]) -> Server {
    let server = Server::new();
    for name in names {
        server.config_map(name).await;
    }
    server
}

#[tokio::test(start_paused = true)]
async fn errors_have_the_texts_of_a_real_server() {
    let server = with_config_maps(&["a"]).await;
    let named = json!({"metadata": {"name": "a"}});
    let taken = server.post(CONFIG_MAPS, named.clone()).await;
    assert_eq!(
        taken.body,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 409,
            "message": "configmaps \"a\" already exists", "reason": "AlreadyExists",
            "details": {"name": "a", "kind": "configmaps"},
        })
    );
    let absent = server.get(&format!("{WIDGETS}/nope")).await;
    assert_eq!(absent.refusal(), (404, "widgets.ex.io \"nope\" not found"));
    assert_eq!(absent.body["details"], json!({"name": "nope", "group": "ex.io", "kind": "widgets"}));
    let nowhere = server.post("/api/v1/namespaces/none/configmaps", named).await;
    assert_eq!(nowhere.refusal(), (404, "namespaces \"none\" not found"));
    let old = server.patch(&format!("{CONFIG_MAPS}/a"), MERGE, json!({"metadata": {"resourceVersion": "1"}})).await;
    let message = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your \
                   changes to the latest version and try again";
    assert_eq!(old.refusal(), (409, message));
    let invalid = server.patch(&format!("{CONFIG_MAPS}/a"), MERGE, json!({"metadata": {"uid": "x"}})).await;
    let message = "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"x\": field is immutable";
    assert_eq!(invalid.refusal(), (422, message));
    let namespace = server.delete("/api/v1/namespaces/default", Value::Null).await;
    assert_eq!(namespace.refusal(), (403, "namespaces \"default\" is forbidden: this namespace may not be deleted"));
    let unknown = server.get("/api/v1/nothing").await;
    assert_eq!(unknown.refusal(), (404, "the server could not find the requested resource"));
    let method = server.put(CONFIG_MAPS, json!({})).await;
    assert_eq!(method.refusal(), (405, "the server does not allow this method on the requested resource"));
    assert_eq!(server.get("/nowhere").await.body, json!("404 page not found\n"));
}

#[tokio::test(start_paused = true)]
async fn with_times_of_writes_an_object_has_the_user_and_the_time_of_its_last_write() {
    let mut options = Options::new(clock(), 1);
    options.write_times = true;
    let server = Server::with(options);
    let path = format!("{CONFIG_MAPS}/a");
    let written = async || {
        let object = server.get(&path).await.body;
        (object["metadata"]["managedFields"].clone(), object["metadata"]["resourceVersion"].clone())
    };
    let created = server.config_map("a").await.body["metadata"]["creationTimestamp"].clone();
    let first = written().await;
    assert_eq!(first.0, json!([{"manager": "tester", "operation": "Update", "time": created}]));
    tokio::time::advance(Duration::from_secs(5)).await;
    let own = json!({"metadata": {"managedFields": [{"manager": "forged"}]}});
    server.patch(&path, MERGE, own).await;
    assert_eq!(written().await, first, "nothing has changed");
    server.patch(&path, MERGE, json!({"data": {"a": "b"}})).await;
    let second = written().await;
    assert_eq!(second.0[0]["manager"], "tester");
    assert!(second.0[0]["time"].as_str() > created.as_str(), "{second:?}");
    assert_eq!(server.get(CONFIG_MAPS).await.body["items"][0]["metadata"]["managedFields"], second.0);
}

#[tokio::test(start_paused = true)]
async fn a_resource_version_is_refused_even_before_the_name_is_looked_up() {
    let server = with_config_maps(&["a"]).await;
    let answer = server.post(CONFIG_MAPS, json!({"metadata": {"name": "a", "resourceVersion": "4"}})).await;
    assert_eq!(answer.refusal(), (500, "resourceVersion should not be set on objects to be created"));
    assert_eq!(answer.body.get("reason"), None);
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_is_refused() {
    let mut options = Options::new(clock(), 1);
    options.limits = Limits { object_bytes: 1000, body_bytes: 2000, objects: 6, ..Limits::default() };
    let server = Server::with(options);
    let post = async |name: &str, bytes: usize| {
        server.post(CONFIG_MAPS, json!({"metadata": {"name": name}, "data": {"a": "x".repeat(bytes)}})).await
    };
    assert_eq!(post("a", 1000).await.refusal(), (500, "etcdserver: request is too large"));
    assert_eq!(post("a", 2000).await.refusal(), (413, "Request entity too large: limit is 2000"));
    // The limit is six objects, and the server has four namespaces from the start. So two creates succeed and the third
    // fails.
    assert_eq!(post("a", 1).await.code, 201);
    assert_eq!(post("b", 1).await.code, 201);
    assert_eq!(post("c", 1).await.refusal(), (500, "etcdserver: mvcc: database space exceeded"));
}

#[tokio::test(start_paused = true)]
async fn service_accounts_are_shown_when_they_are_deleted() {
    let server = Server::new();
    let created = server.post(ACCOUNTS, json!({"metadata": {"name": "a"}})).await;
    let answer = server.delete(&format!("{ACCOUNTS}/a"), Value::Null).await;
    assert_eq!((answer.code, &answer.body["kind"]), (200, &json!("ServiceAccount")));
    assert_eq!(answer.version(), created.version() + 1);
}

#[tokio::test(start_paused = true)]
async fn what_refers_to_an_owner_of_an_unknown_kind_stays() {
    let server = Server::new();
    let unknown = json!({"apiVersion": "none/v1", "kind": "None", "name": "n", "uid": "u"});
    server.post(CONFIG_MAPS, json!({"metadata": {"name": "b", "ownerReferences": [unknown]}})).await;
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/b")).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_limit_asks_for_exactly_a_version_and_is_nothing_to_a_list_from_the_cache() {
    let server = with_config_maps(&["a", "b"]).await;
    let version = server.memkube.revision();
    let from_cache = server.get(&format!("{CONFIG_MAPS}?resourceVersion=0&limit=1")).await;
    assert_eq!(from_cache.names(), ["a", "b"]);
    server.delete(&format!("{CONFIG_MAPS}/a"), Value::Null).await;
    let exact = server.get(&format!("{CONFIG_MAPS}?resourceVersion={version}&limit=5")).await;
    assert_eq!((exact.names(), exact.version()), (vec!["a", "b"], version));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_has_not_come_is_waited_for_three_seconds() {
    let server = with_config_maps(&["a"]).await;
    let begin = tokio::time::Instant::now();
    let answer = server.get(&format!("{CONFIG_MAPS}?resourceVersion=99")).await;
    assert_eq!(answer.refusal(), (504, "Timeout: Too large resource version: 99, current: 6"));
    let details = json!({"causes": [{"reason": "ResourceVersionTooLarge"}], "retryAfterSeconds": 1});
    assert_eq!(answer.body["details"], details);
    assert_eq!(begin.elapsed(), Duration::from_secs(3));
    let path = format!("{CONFIG_MAPS}/a?resourceVersion=7");
    let (answer, _) = tokio::join!(server.get(&path), server.config_map("b"));
    assert_eq!(answer.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_status_update_changes_metadata_only_of_a_built_in_kind() {
    let server = Server::new();
    server.widget("w", json!({"metadata": {"finalizers": ["ex.io/f"]}})).await;
    server.post("/api/v1/nodes", json!({"metadata": {"name": "n"}, "spec": {"unschedulable": true}})).await;
    let patch = json!({
        "metadata": {"labels": {"a": "b"}, "finalizers": null}, "spec": null, "status": {"phase": "x"},
    });
    let node = server.patch("/api/v1/nodes/n/status", MERGE, patch.clone()).await;
    assert_eq!(node.body["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(node.body["spec"], json!({"unschedulable": true}));
    let widget = server.patch(&format!("{WIDGETS}/w/status"), MERGE, patch).await;
    assert_eq!(widget.body["status"], json!({"phase": "x"}));
    assert_eq!(widget.body["metadata"]["finalizers"], json!(["ex.io/f"]));
    assert_eq!(widget.body["metadata"].get("labels"), None);
}

#[tokio::test(start_paused = true)]
async fn a_replace_that_creates_checks_a_uid_and_no_version() {
    let server = Server::new();
    let created = server.put(&format!("{LEASES}/l"), json!({"metadata": {"name": "l", "resourceVersion": "5"}})).await;
    assert_eq!((created.code, created.version()), (201, 6));
    assert_eq!(server.put(&format!("{LEASES}/l"), json!({"metadata": {"name": "l"}})).await.code, 422);
    let other = server.put(&format!("{LEASES}/m"), json!({"metadata": {"name": "m", "uid": "u"}})).await;
    assert_eq!((other.code, &other.body["reason"]), (409, &json!("Conflict")));
}
