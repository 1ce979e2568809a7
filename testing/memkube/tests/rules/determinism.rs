//! Tests of determinism: two servers with the same seed and the same calls return the same bytes. Also tests of
//! backups.

use crate::support::{CONFIG_MAPS, MERGE, Server, clock};
use memkube::{Object, Options};
use serde_json::{Value, json};

async fn history(seed: u64) -> Vec<Value> {
    let server = Server::with(Options::new(clock(), seed));
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    let mut told = Vec::new();
    for _ in 0..5 {
        let answer = server.post(CONFIG_MAPS, json!({"metadata": {"generateName": "g-"}})).await;
        told.push(answer.body);
        told.extend(watch.event().await);
    }
    told.push(server.get("/api/v1/namespaces").await.body);
    told
}

#[tokio::test(start_paused = true)]
async fn a_seed_decides_everything() {
    assert_eq!(history(7).await, history(7).await);
    assert_ne!(history(7).await, history(8).await);
}

#[tokio::test(start_paused = true)]
async fn a_backup_brings_back_objects_and_versions_and_ends_watches() {
    let server = Server::new();
    server.config_map("a").await;
    let backup = server.memkube.backup();
    server.config_map("b").await;
    server.patch(&format!("{CONFIG_MAPS}/a"), MERGE, json!({"data": {"x": "1"}})).await;
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion=8")).await;
    server.memkube.restore(&backup);
    assert_eq!(watch.event().await, None);
    let list = server.get(CONFIG_MAPS).await;
    assert_eq!((list.names(), list.version()), (vec!["a"], 6));
    assert_eq!(server.config_map("c").await.version(), 7);
    server.memkube.restore(&backup);
    assert_eq!(server.get(CONFIG_MAPS).await.names(), ["a"]);
}

/// A ConfigMap as another server had it.
fn loaded(name: &str, version: &str) -> Object {
    let metadata =
        json!({"name": name, "namespace": "default", "uid": format!("u-{name}"), "resourceVersion": version});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"from": "elsewhere"}})
        .as_object()
        .unwrap()
        .clone()
}

#[tokio::test(start_paused = true)]
async fn loaded_objects_are_those_of_the_other_server_and_watches_see_them() {
    let server = Server::new();
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    server.memkube.load([loaded("b", "900"), loaded("a", "70")]).unwrap();
    for name in ["a", "b"] {
        let event = watch.event().await.expect("an event for each loaded object");
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!(name)));
    }
    let read = server.get(&format!("{CONFIG_MAPS}/a")).await.body;
    assert_eq!(read.as_object(), Some(&loaded("a", "70")));
    assert_eq!(server.get(CONFIG_MAPS).await.version(), 900);
    assert_eq!(server.config_map("c").await.version(), 901);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_loaded_is_named() {
    let server = Server::new();
    let foreign = json!({"apiVersion": "x/v1", "kind": "Y", "metadata": {"name": "a", "namespace": "n"}});
    for (object, said) in [
        (foreign.as_object().unwrap().clone(), "Y n/a: the kind is not registered"),
        (loaded("a", "x"), "ConfigMap default/a has no resourceVersion"),
        (loaded("a", "1"), "ConfigMap default/a has the resourceVersion 1, which is not new"),
    ] {
        assert_eq!(server.memkube.load([object]).unwrap_err(), said);
    }
}
