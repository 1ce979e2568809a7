//! Tests of replaces, and of the common rules of all updates.

use crate::support::{CONFIG_MAPS, MERGE, Server, WIDGETS};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_replace_takes_the_place_of_the_whole_object() {
    let server = Server::new();
    let created =
        server.post(CONFIG_MAPS, json!({"metadata": {"name": "a", "labels": {"l": "1"}}, "data": {"x": "y"}})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let answer = server.put(&path, json!({"metadata": {"name": "a"}, "data": {"z": "1"}})).await;
    assert_eq!(answer.code, 200);
    assert_eq!(answer.body["data"], json!({"z": "1"}));
    assert_eq!(answer.body["metadata"].get("labels"), None);
    for kept in ["uid", "creationTimestamp"] {
        assert_eq!(answer.body["metadata"][kept], created.body["metadata"][kept]);
    }
    assert_eq!(answer.version(), created.version() + 1);
}

#[tokio::test(start_paused = true)]
async fn an_update_that_changes_nothing_is_not_stored() {
    let server = Server::new();
    let created = server.post(CONFIG_MAPS, json!({"metadata": {"name": "a"}, "data": {"x": "y"}})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let put = server.put(&path, json!({"metadata": {"name": "a"}, "data": {"x": "y"}})).await;
    assert_eq!(put.body, created.body);
    let patched = server.patch(&path, MERGE, json!({"data": {"x": "y"}})).await;
    assert_eq!(patched.body, created.body);
    assert_eq!(server.memkube.revision(), created.version());
}

#[tokio::test(start_paused = true)]
async fn a_stale_version_is_a_conflict() {
    let server = Server::new();
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a");
    let stale = server.put(&path, json!({"metadata": {"name": "a", "resourceVersion": "1"}})).await;
    let message = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your \
                   changes to the latest version and try again";
    assert_eq!(stale.refusal(), (409, message));
    assert_eq!(stale.body["reason"], "Conflict");
    assert_eq!(stale.body["details"], json!({"name": "a", "kind": "configmaps"}));
    let patch = server.patch(&path, MERGE, json!({"metadata": {"resourceVersion": "1"}})).await;
    assert_eq!(patch.refusal(), (409, message));
    let word = server.put(&path, json!({"metadata": {"name": "a", "resourceVersion": "x"}})).await;
    assert_eq!(word.refusal(), (500, "strconv.ParseUint: parsing \"x\": invalid syntax"));
}

#[tokio::test(start_paused = true)]
async fn another_uid_is_a_conflict_in_a_replace_and_invalid_in_a_patch() {
    let server = Server::new();
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a");
    let replaced = server.put(&path, json!({"metadata": {"name": "a", "uid": "x"}})).await;
    assert_eq!((replaced.code, &replaced.body["reason"]), (409, &json!("Conflict")));
    let patched = server.patch(&path, MERGE, json!({"metadata": {"uid": "x"}})).await;
    let message = "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"x\": field is immutable";
    assert_eq!(patched.refusal(), (422, message));
}

#[tokio::test(start_paused = true)]
async fn custom_resources_and_leases_are_not_replaced_blindly() {
    let server = Server::new();
    server.widget("w", json!({})).await;
    let widget = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}});
    let blind = server.put(&format!("{WIDGETS}/w"), widget).await;
    let message =
        "widgets.ex.io \"w\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_eq!(blind.refusal(), (422, message));
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "x"}});
    assert_eq!(server.put(leases, lease.clone()).await.code, 201);
    assert_eq!(server.put(leases, lease).await.code, 422);
}

#[tokio::test(start_paused = true)]
async fn a_replace_must_name_the_object_of_the_path() {
    let server = Server::new();
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a");
    for metadata in [json!({"name": "b"}), json!({})] {
        assert_eq!(server.put(&path, json!({"metadata": metadata})).await.code, 400, "{metadata}");
    }
    let absent = server.put(&format!("{CONFIG_MAPS}/b"), json!({"metadata": {"name": "b"}})).await;
    assert_eq!(absent.refusal(), (404, "configmaps \"b\" not found"));
}

#[tokio::test(start_paused = true)]
async fn what_the_server_decides_cannot_be_changed() {
    let server = Server::new();
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a");
    let ignored = json!({"metadata": {
        "creationTimestamp": "2020-01-01T00:00:00Z", "generation": 7, "selfLink": "x", "managedFields": [],
    }});
    let answer = server.patch(&path, MERGE, ignored).await;
    assert_eq!((answer.code, answer.version()), (200, 6));
    let deletion = json!({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}});
    assert_eq!(
        server.patch(&path, MERGE, deletion).await.refusal(),
        (
            422,
            "ConfigMap \"a\" is invalid: metadata.deletionTimestamp: Invalid value: \"2020-01-01T00:00:00Z\": field \
             is immutable"
        )
    );
    let grace = server.patch(&path, MERGE, json!({"metadata": {"deletionGracePeriodSeconds": 3}})).await;
    assert_eq!(grace.code, 422);
}

#[tokio::test(start_paused = true)]
async fn the_generation_of_a_custom_resource_counts_changes_of_its_spec() {
    let server = Server::new();
    server.widget("w", json!({"spec": {"color": "red"}})).await;
    let path = format!("{WIDGETS}/w");
    let generation = async |patch| server.patch(&path, MERGE, patch).await.body["metadata"]["generation"].clone();
    assert_eq!(generation(json!({"metadata": {"labels": {"a": "b"}}})).await, 1);
    assert_eq!(generation(json!({"metadata": {"generation": 55}})).await, 1);
    assert_eq!(generation(json!({"spec": {"color": "blue"}, "status": {"ok": true}})).await, 2);
    assert_eq!(generation(json!({"status": {"ok": true}})).await, 2);
    assert_eq!(server.get(&path).await.body.get("status"), None);
}

#[tokio::test(start_paused = true)]
async fn the_generation_of_an_endpoint_slice_counts_its_labels_too() {
    let server = Server::new();
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    server.post(slices, json!({"metadata": {"name": "e"}, "addressType": "IPv4", "endpoints": []})).await;
    let path = format!("{slices}/e");
    let generation = async |patch| server.patch(&path, MERGE, patch).await.body["metadata"]["generation"].clone();
    assert_eq!(generation(json!({"metadata": {"annotations": {"a": "b"}}})).await, 1);
    assert_eq!(generation(json!({"metadata": {"labels": {"a": "b"}}})).await, 2);
    assert_eq!(generation(json!({"endpoints": [{"addresses": ["10.1.2.3"]}]})).await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_status_update_of_a_custom_resource_touches_the_status_alone() {
    let server = Server::new();
    server.widget("w", json!({"metadata": {"finalizers": ["ex.io/f"]}, "spec": {"color": "red"}})).await;
    let patch = json!({
        "metadata": {"labels": {"a": "b"}, "finalizers": null}, "spec": {"color": "green"}, "status": {"ok": true},
    });
    let answer = server.patch(&format!("{WIDGETS}/w/status"), MERGE, patch).await;
    assert_eq!(answer.body["spec"], json!({"color": "red"}));
    assert_eq!(answer.body["status"], json!({"ok": true}));
    assert_eq!(answer.body["metadata"]["finalizers"], json!(["ex.io/f"]));
    assert_eq!(answer.body["metadata"].get("labels"), None);
    assert_eq!(answer.body["metadata"]["generation"], 1);
    assert_eq!(server.get(&format!("{WIDGETS}/w/status")).await.body, answer.body);
}

#[tokio::test(start_paused = true)]
async fn a_status_update_of_a_built_in_kind_may_touch_metadata() {
    let server = Server::new();
    let nodes = "/api/v1/nodes";
    server.post(nodes, json!({"metadata": {"name": "n"}, "spec": {"unschedulable": true}})).await;
    let patch = json!({"metadata": {"labels": {"a": "b"}}, "spec": null, "status": {"phase": "x"}});
    let answer = server.patch(&format!("{nodes}/n/status"), MERGE, patch).await;
    assert_eq!(answer.body["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(answer.body["spec"], json!({"unschedulable": true}));
    assert_eq!(answer.body["status"], json!({"phase": "x"}));
}

#[tokio::test(start_paused = true)]
async fn a_custom_resource_can_be_read_and_written_in_each_version() {
    let server = Server::new();
    server.widget("w", json!({"spec": {"color": "red"}})).await;
    let path = "/apis/ex.io/v2/namespaces/default/widgets/w";
    let second = server.get(path).await;
    assert_eq!(second.body["apiVersion"], "ex.io/v2");
    let mut changed = second.body.clone();
    changed["spec"]["color"] = json!("blue");
    assert_eq!(server.put(path, changed).await.body["apiVersion"], "ex.io/v2");
    let first = server.get(&format!("{WIDGETS}/w")).await;
    assert_eq!((&first.body["apiVersion"], &first.body["spec"]["color"]), (&json!("ex.io/v1"), &json!("blue")));
}

#[tokio::test(start_paused = true)]
async fn a_replace_that_creates_checks_a_uid_and_no_version() {
    let server = Server::new();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let created = server.put(&format!("{leases}/l"), json!({"metadata": {"name": "l", "resourceVersion": "5"}})).await;
    assert_eq!((created.code, created.version()), (201, 6));
    let other = server.put(&format!("{leases}/m"), json!({"metadata": {"name": "m", "uid": "u"}})).await;
    assert_eq!((other.code, &other.body["reason"]), (409, &json!("Conflict")));
}
