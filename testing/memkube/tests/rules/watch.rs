//! Tests of watches.

use crate::support::{CONFIG_MAPS, MERGE, Server, WIDGETS, clock};
use memkube::Options;
use memkube::limits::Limits;
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_version_sees_what_happens_after_it() {
    let server = Server::new();
    server.config_map("a").await;
    let version = server.memkube.revision();
    server.config_map("b").await;
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}")).await;
    assert_eq!(watch.next().await, "ADDED b");
    watch.is_silent().await;
    server.patch(&format!("{CONFIG_MAPS}/a"), MERGE, json!({"data": {"x": "1"}})).await;
    let event = watch.event().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["kind"]), (&json!("MODIFIED"), &json!("ConfigMap")));
    assert_eq!(event["object"], server.get(&format!("{CONFIG_MAPS}/a")).await.body);
    server.delete(&format!("{CONFIG_MAPS}/a"), Value::Null).await;
    assert_eq!(watch.next().await, "DELETED a");
    watch.is_silent().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_version_begins_with_what_is_there() {
    let server = Server::new();
    server.config_map("a").await;
    for query in ["", "&resourceVersion=0"] {
        let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true{query}")).await;
        assert_eq!(watch.next().await, "ADDED a");
        watch.is_silent().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_says_when_all_was_sent() {
    let server = Server::new();
    server.config_map("a").await;
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?{query}&allowWatchBookmarks=true")).await;
    assert_eq!(watch.next().await, "ADDED a");
    assert_eq!(
        watch.event().await.unwrap(),
        json!({"type": "BOOKMARK", "object": {
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"resourceVersion": "6", "annotations": {"k8s.io/initial-events-end": "true"}},
        }})
    );
    server.config_map("b").await;
    assert_eq!(watch.next().await, "ADDED b");
    let mut without = server.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    assert_eq!(without.next().await, "ADDED a");
    assert_eq!(without.next().await, "ADDED b");
    without.is_silent().await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_can_begin_without_a_list() {
    let server = Server::new();
    server.config_map("a").await;
    let query = "watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    watch.is_silent().await;
    server.config_map("b").await;
    assert_eq!(watch.next().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_of_a_version_that_has_not_come_is_told_so() {
    let server = Server::new();
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99";
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    let event = watch.event().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(504)));
    assert_eq!(watch.event().await, None);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_and_before_the_end_to_those_who_ask_once_the_kind_has_changed() {
    let server = Server::new();
    let version = server.memkube.revision();
    let path = format!("{WIDGETS}?watch=true&resourceVersion={version}&timeoutSeconds=150");
    let begin = tokio::time::Instant::now();
    let mut watch = server.watch(&format!("{path}&allowWatchBookmarks=true")).await;
    let mut unasked = server.watch(&path).await;
    // A change of another kind causes no bookmark and no event.
    server.config_map("a").await;
    assert!(tokio::time::timeout(Duration::from_secs(61), watch.event()).await.is_err());
    server.widget("w", json!({})).await;
    assert_eq!(watch.next().await, "ADDED w");
    server.config_map("b").await;
    for seconds in [120, 148] {
        let event = watch.event().await.unwrap();
        let expected = json!({"type": "BOOKMARK", "object": {
            "kind": "Widget", "apiVersion": "ex.io/v1", "metadata": {"resourceVersion": "7"},
        }});
        assert_eq!(event, expected);
        assert_eq!(begin.elapsed(), Duration::from_secs(seconds));
    }
    assert_eq!(watch.event().await, None);
    assert_eq!(begin.elapsed(), Duration::from_secs(150));
    assert_eq!(unasked.next().await, "ADDED w");
    assert_eq!(unasked.event().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_what_is_forgotten_is_told_so() {
    let server = Server::new();
    server.config_map("a").await;
    server.config_map("b").await;
    server.memkube.compact();
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion=6")).await;
    assert_eq!(
        watch.event().await.unwrap(),
        json!({"type": "ERROR", "object": {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "too old resource version: 6 (7)", "reason": "Expired", "code": 410,
        }})
    );
    assert_eq!(watch.event().await, None);
    let word = server.get(&format!("{CONFIG_MAPS}?watch=true&resourceVersion=x")).await;
    assert_eq!(word.code, 500);
}

#[tokio::test(start_paused = true)]
async fn objects_that_come_into_sight_are_added_and_those_that_go_out_of_it_deleted() {
    let server = Server::new();
    let created = server.widget("w", json!({"metadata": {"labels": {"a": "1"}}, "spec": {"color": "red"}})).await;
    let path = format!("{WIDGETS}/w");
    let mut by_label = server.watch(&format!("{WIDGETS}?watch=true&labelSelector=a%3D1")).await;
    let mut by_field = server.watch(&format!("{WIDGETS}?watch=true&fieldSelector=spec.color%3Dblue")).await;
    assert_eq!(by_label.next().await, "ADDED w");
    by_field.is_silent().await;
    server.patch(&path, MERGE, json!({"metadata": {"labels": {"a": "2"}}, "spec": {"color": "blue"}})).await;
    let gone = by_label.event().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    // The event contains the last object that matched the selector, with the resourceVersion of the change.
    assert_eq!(gone["object"]["spec"], created.body["spec"]);
    assert_eq!(gone["object"]["metadata"]["resourceVersion"], "7");
    assert_eq!(by_field.next().await, "ADDED w");
    server.patch(&path, MERGE, json!({"metadata": {"labels": {"a": "1"}}})).await;
    assert_eq!(by_label.next().await, "ADDED w");
    assert_eq!(by_field.next().await, "MODIFIED w");
    server.delete(&path, Value::Null).await;
    assert_eq!(by_label.next().await, "DELETED w");
    assert_eq!(by_field.next().await, "DELETED w");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_shown_as_it_was_stored() {
    let server = Server::new();
    server.widget("w", json!({"metadata": {"finalizers": ["ex.io/f"]}})).await;
    let path = format!("{WIDGETS}/w");
    let marked = server.delete(&path, Value::Null).await;
    let mut watch = server.watch(&format!("{WIDGETS}?watch=true&resourceVersion={}", marked.version())).await;
    server.patch(&path, MERGE, json!({"metadata": {"finalizers": null, "labels": {"a": "2"}}})).await;
    let event = watch.event().await.unwrap();
    let mut expected = marked.body.clone();
    expected["metadata"]["resourceVersion"] = json!("8");
    assert_eq!(event, json!({"type": "DELETED", "object": expected}));
}

#[tokio::test(start_paused = true)]
async fn a_watch_sees_its_namespace_alone() {
    let server = Server::new();
    let mut here = server.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    let mut everywhere = server.watch("/api/v1/configmaps?watch=true").await;
    server.post("/api/v1/namespaces/kube-system/configmaps", json!({"metadata": {"name": "there"}})).await;
    assert_eq!(everywhere.next().await, "ADDED there");
    here.is_silent().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_reads_past_any_number_of_changes_that_are_not_for_it() {
    let server = Server::new();
    server.config_map("a").await;
    let version = server.memkube.revision();
    for change in 0..700 {
        server.patch(&format!("{CONFIG_MAPS}/a"), MERGE, json!({"data": {"x": change.to_string()}})).await;
    }
    server.config_map("b").await;
    let only_b = "fieldSelector=metadata.name%3Db";
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}&{only_b}")).await;
    assert_eq!(watch.next().await, "ADDED b");
    watch.is_silent().await;
}

#[tokio::test(start_paused = true)]
async fn metadata_can_be_watched_alone() {
    let server = Server::new();
    let created = server.widget("w", json!({"spec": {"color": "red"}})).await;
    let request = http::Request::get(format!("{WIDGETS}?watch=true&timeoutSeconds=1"))
        .header("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let answer = server.send(request.body(kube::client::Body::empty()).unwrap()).await.unwrap();
    let object = json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": created.body["metadata"],
    });
    assert_eq!(answer.body, json!({"type": "ADDED", "object": object}));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_reads_too_slowly_ends() {
    let mut options = Options::new(clock(), 1);
    options.limits = Limits { log_changes: 3, ..Limits::default() };
    let server = Server::with(options);
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    for name in ["a", "b", "c", "d"] {
        server.config_map(name).await;
    }
    assert_eq!(watch.event().await, None);
}

#[tokio::test(start_paused = true)]
async fn there_are_only_so_many_watches() {
    let mut options = Options::new(clock(), 1);
    options.limits = Limits { watches: 1, ..Limits::default() };
    let server = Server::with(options);
    let first = server.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    let second = server.get(&format!("{CONFIG_MAPS}?watch=true")).await;
    assert_eq!((second.code, &second.body["reason"]), (429, &json!("TooManyRequests")));
    drop(first);
    assert_eq!(server.memkube.open_watches(), 0);
    server.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
}

#[tokio::test(start_paused = true)]
async fn many_changes_come_in_their_order() {
    let server = Server::new();
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    for index in 0..1000 {
        server.config_map(&format!("c{index}")).await;
    }
    for index in 0..1000 {
        assert_eq!(watch.next().await, format!("ADDED c{index}"));
    }
}

#[tokio::test(start_paused = true)]
async fn large_objects_are_forgotten_sooner() {
    let mut options = Options::new(clock(), 1);
    options.limits = Limits { log_bytes: 1000, ..Limits::default() };
    let server = Server::with(options);
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion=5");
    server.config_map("a").await;
    assert_eq!(server.watch(&path).await.next().await, "ADDED a");
    server.post(CONFIG_MAPS, json!({"metadata": {"name": "b"}, "data": {"x": "y".repeat(2000)}})).await;
    let late = server.watch(&path).await.event().await.unwrap();
    assert_eq!(late["object"]["message"], "too old resource version: 5 (6)");
    assert_eq!(server.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion=6")).await.next().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn a_watch_may_want_to_last_for_ever_and_is_given_back() {
    let server = Server::new();
    server.config_map("a").await;
    for seconds in [i64::MAX, 9_223_372_036] {
        let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true&timeoutSeconds={seconds}")).await;
        assert_eq!(watch.next().await, "ADDED a");
        assert_eq!(server.memkube.open_watches(), 1);
        // The watch ends after twelve hours, the maximum duration of a watch. The paused clock advances by itself.
        assert_eq!(watch.event().await, None);
        drop(watch);
        assert_eq!(server.memkube.open_watches(), 0);
    }
}
