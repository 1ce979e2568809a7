//! Tests of kinds whose versions have different fields.

use crate::support::{MERGE, Server};
use memkube::registry::ALL_VERBS;
use memkube::{Definition, Object, Scope, Strategy, Version};
use serde_json::{Value, json};

const FIRST: &str = "/apis/ex.io/v1/gauges";
const SECOND: &str = "/apis/ex.io/v2/gauges";

/// Strategy of a kind with two versions: the field `size` of `v1`, the storage version, has the name `length` in `v2`.
struct Gauge;

impl Strategy for Gauge {
    fn stored_form_serves(&self, version: &str) -> bool {
        version == "v1"
    }

    fn convert(&self, object: &mut Object, to: &str) {
        let (old, new) = if to == "v1" { ("length", "size") } else { ("size", "length") };
        if let Some(value) = object.remove(old) {
            object.insert(new.to_owned(), value);
        }
    }
}

fn with_gauges() -> Server {
    let server = Server::new();
    let mut definition = Definition::built_in("ex.io", "v1", "Gauge", "gauges", Scope::Cluster);
    definition.versions.push(Version { name: "v2".to_owned(), served: true, storage: false });
    definition.verbs = ALL_VERBS.to_vec();
    server.memkube.register(definition, Box::new(Gauge));
    server
}

#[tokio::test(start_paused = true)]
async fn each_version_is_read_and_written_in_its_own_form() {
    let server = with_gauges();
    let created = server.post(SECOND, json!({"metadata": {"name": "g"}, "length": 3})).await;
    assert_eq!((&created.body["apiVersion"], &created.body["length"]), (&json!("ex.io/v2"), &json!(3)));
    let first = server.get(&format!("{FIRST}/g")).await;
    assert_eq!((&first.body["size"], first.body.get("length")), (&json!(3), None));
    let patched = server.patch(&format!("{SECOND}/g"), MERGE, json!({"length": 4})).await;
    assert_eq!((&patched.body["length"], patched.body.get("size")), (&json!(4), None));
    assert_eq!(server.get(FIRST).await.body["items"][0]["size"], 4);
    let unchanged = server.patch(&format!("{SECOND}/g"), MERGE, json!({"length": 4})).await;
    assert_eq!(unchanged.version(), patched.version());
}

#[tokio::test(start_paused = true)]
async fn a_watch_shows_the_version_that_it_asks_for() {
    let server = with_gauges();
    let mut watch = server.watch(&format!("{SECOND}?watch=true")).await;
    server.post(FIRST, json!({"metadata": {"name": "g"}, "size": 3})).await;
    assert_eq!(watch.event().await.unwrap()["object"]["length"], 3);
    server.delete(&format!("{FIRST}/g"), Value::Null).await;
    let event = watch.event().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["length"]), (&json!("DELETED"), &json!(3)));
}
