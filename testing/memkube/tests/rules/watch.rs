//! Tests of watches.

use crate::support::{CONFIG_MAPS, MERGE, Server, WIDGETS, clock};
use memkube::Options;
use memkube::limits::Limits;
use serde_json::json;
use std::time::Duration;

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
