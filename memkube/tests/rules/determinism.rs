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

/// Returns the error response to an object that breaks CEL rules. The rules iterate over a map with eight members.
async fn refused_by_rules_about_a_map() -> Vec<u8> {
    let server = Server::new();
    let rule = |rule: &str, message: &str| json!({"rule": rule, "messageExpression": message});
    let map = json!({
        "type": "object", "additionalProperties": {"type": "integer"},
        "x-kubernetes-validations": [
            rule("self.map(k, k)[0] == 'none'", "'first is ' + self.map(k, k)[0]"),
            rule("self.filter(k, self[k] > 2)[0] == 'none'", "'first above 2 is ' + self.filter(k, self[k] > 2)[0]"),
            rule("{'y': 1, 'x': 2, 'z': 3}.map(k, k)[0] == 'y'", "'a map that is written out'"),
            rule("self.all(k, 6 / self[k] > 5)", ""),
            rule("false", "'all: %s'.format([[self]])"),
            rule("self < self", ""),
        ],
    });
    let schema = json!({"type": "object", "properties": {"map": map}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "maps.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Cluster", "names": {"plural": "maps", "kind": "Map"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let made = server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    assert_eq!(made.code, 201, "{:?}", made.body);
    let map = json!({"h": 8, "g": 7, "f": 6, "e": 5, "d": 4, "c": 3, "b": 2, "a": 1, "zero": 0});
    let object = json!({"apiVersion": "ex.io/v1", "kind": "Map", "metadata": {"name": "a"}, "map": map});
    let refused = server.post("/apis/ex.io/v1/maps", object).await;
    assert_eq!(refused.code, 422, "{:?}", refused.body);
    serde_json::to_vec(&refused.body).unwrap()
}

#[tokio::test(start_paused = true)]
async fn rules_go_through_maps_in_the_order_of_their_keys() {
    let first = refused_by_rules_about_a_map().await;
    let told = String::from_utf8(first.clone()).unwrap();
    for part in [
        "first is a\"",
        "first above 2 is c\"",
        "a map that is written out",
        r#"all: [{\"a\":1, \"b\":2, \"c\":3, \"d\":4, \"e\":5, \"f\":6, \"g\":7, \"h\":8, \"zero\":0}]"#,
        "no such overload",
    ] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    for _ in 0..20 {
        assert_eq!(String::from_utf8(refused_by_rules_about_a_map().await), Ok(told.clone()));
    }
}
