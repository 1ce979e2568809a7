//! Tests of reads of an earlier state, as from an API server whose cache lags behind.

use crate::support::{CONFIG_MAPS, MERGE, Server};
use memkube::faults::{Fault, Faults, State};
use memkube::{Call, Verb};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Fault that makes all reads return this state.
struct Seen(State);

impl Faults for Seen {
    fn request(&self, call: &Call) -> Fault {
        let reads = matches!(call.verb, Verb::Get | Verb::List | Verb::Watch);
        if reads { Fault { state: self.0, ..Fault::default() } } else { Fault::default() }
    }
}

/// Returns a server whose reads return `state`. ConfigMap `a` was created at version 6 and changed at 7; `b` was
/// created at 8.
async fn seeing(state: State) -> Server {
    let server = Server::new();
    server.config_map("a").await;
    server.patch(&format!("{CONFIG_MAPS}/a"), MERGE, json!({"data": {"x": "1"}})).await;
    assert_eq!(server.config_map("b").await.version(), 8);
    server.memkube.set_faults(Some(Arc::new(Seen(state))));
    server
}

#[tokio::test(start_paused = true)]
async fn gets_and_lists_see_the_past() {
    let server = seeing(State::Behind(1)).await;
    let list = server.get(CONFIG_MAPS).await;
    assert_eq!((list.names(), list.version()), (vec!["a"], 7));
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await.version(), 7);
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/b")).await.code, 404);
    let server = seeing(State::At(6)).await;
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await.version(), 6);
    assert_eq!(server.get(CONFIG_MAPS).await.body["items"][0].get("data"), None);
    server.memkube.compact();
    assert_eq!(server.get(CONFIG_MAPS).await.names(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_begins_in_the_past_and_is_told_at_once_what_followed() {
    let server = seeing(State::At(6)).await;
    for query in ["watch=1", "watch=1&resourceVersion=0"] {
        let mut watch = server.watch(&format!("{CONFIG_MAPS}?{query}")).await;
        let first = watch.event().await.unwrap();
        assert_eq!((&first["type"], &first["object"]["metadata"]["resourceVersion"]), (&json!("ADDED"), &json!("6")));
        assert_eq!(watch.next().await, "MODIFIED a");
        assert_eq!(watch.next().await, "ADDED b");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_version_begins_there_whatever_is_seen() {
    let server = seeing(State::At(6)).await;
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=7")).await;
    assert_eq!(watch.next().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_ends_in_the_past_that_it_shows() {
    let server = seeing(State::Behind(1)).await;
    let streamed = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?{streamed}")).await;
    assert_eq!(watch.next().await, "ADDED a");
    let bookmark = watch.event().await.unwrap();
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], "7");
    assert_eq!(watch.next().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn what_must_not_be_older_is_refused_rather_than_older() {
    let server = seeing(State::Behind(1)).await;
    let too_large = "Timeout: Too large resource version: 8, current: 7";
    let begin = Instant::now();
    let list = server.get(&format!("{CONFIG_MAPS}?resourceVersion=8&resourceVersionMatch=NotOlderThan")).await;
    assert_eq!((list.refusal(), begin.elapsed()), ((504, too_large), Duration::from_secs(3)));
    for path in ["?resourceVersion=8", "/a?resourceVersion=8", "?resourceVersion=8&resourceVersionMatch=Exact"] {
        assert_eq!(server.get(&format!("{CONFIG_MAPS}{path}")).await.refusal(), (504, too_large), "{path}");
    }
    let streamed = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=8";
    let told = server.watch(&format!("{CONFIG_MAPS}?{streamed}")).await.event().await.unwrap();
    assert_eq!((&told["type"], &told["object"]["message"]), (&json!("ERROR"), &json!(too_large)));
    let list = server.get(&format!("{CONFIG_MAPS}?resourceVersion=7&resourceVersionMatch=NotOlderThan")).await;
    assert_eq!((list.names(), list.version()), (vec!["a"], 7));
}

#[tokio::test(start_paused = true)]
async fn what_must_not_be_older_waits_until_the_state_has_come_so_far() {
    let server = seeing(State::Behind(1)).await;
    let begin = Instant::now();
    let path = format!("{CONFIG_MAPS}?resourceVersion=8&resourceVersionMatch=NotOlderThan");
    let later = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        server.config_map("c").await;
    };
    let (list, ()) = tokio::join!(server.get(&path), later);
    assert_eq!((list.names(), list.version()), (vec!["a", "b"], 8));
    assert_eq!(begin.elapsed(), Duration::from_secs(2));
}
