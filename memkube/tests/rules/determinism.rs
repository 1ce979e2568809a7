//! Tests of determinism: two servers with the same seed and the same calls return the same bytes. Also tests of backups.

use crate::support::{CONFIG_MAPS, MERGE, Server, clock};
use memkube::Options;
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
