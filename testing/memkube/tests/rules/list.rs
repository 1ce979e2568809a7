//! Tests of gets and lists: selectors, pages, versions, forms.

use crate::support::{CONFIG_MAPS, MERGE, Server, WIDGETS};
use serde_json::{Value, json};
use std::time::Duration;

async fn with_config_maps(names: &[&str]) -> Server {
    let server = Server::new();
    for name in names {
        server.config_map(name).await;
    }
    server
}

#[tokio::test(start_paused = true)]
async fn items_of_built_in_kinds_do_not_say_their_kind() {
    let server = with_config_maps(&["a"]).await;
    let list = server.get(CONFIG_MAPS).await;
    assert_eq!((&list.body["kind"], &list.body["apiVersion"]), (&json!("ConfigMapList"), &json!("v1")));
    assert_eq!(list.body["metadata"], json!({"resourceVersion": "6"}));
    assert_eq!(list.body["items"][0].get("kind"), None);
    server.widget("w", json!({})).await;
    let list = server.get(WIDGETS).await;
    assert_eq!(list.body["metadata"], json!({"continue": "", "resourceVersion": "7"}));
    assert_eq!(list.body["items"][0]["kind"], "Widget");
}

#[tokio::test(start_paused = true)]
async fn lists_are_ordered_as_etcd_orders_keys() {
    let server = Server::new();
    for namespace in ["b", "b-c"] {
        server.post("/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await;
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        server.post(&path, json!({"metadata": {"name": format!("in-{namespace}")}})).await;
    }
    assert_eq!(server.get("/api/v1/configmaps").await.names(), ["in-b-c", "in-b"]);
    assert_eq!(server.get("/api/v1/namespaces/b/configmaps").await.names(), ["in-b"]);
}

#[tokio::test(start_paused = true)]
async fn selectors_select() {
    let server = Server::new();
    server.widget("red", json!({"metadata": {"labels": {"a": "1"}}, "spec": {"color": "red"}})).await;
    server.widget("blue", json!({"metadata": {"labels": {"a": "2"}}, "spec": {"color": "blue"}})).await;
    let names = async |query: &str| {
        let list = server.get(&format!("{WIDGETS}?{query}")).await;
        list.names().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names("labelSelector=a%3D1").await, ["red"]);
    assert_eq!(names("labelSelector=a+notin+(1)").await, ["blue"]);
    assert_eq!(names("fieldSelector=spec.color%3Dblue").await, ["blue"]);
    assert_eq!(names("fieldSelector=metadata.name!%3Dred").await, ["blue"]);
    assert!(names("labelSelector=a%3D1&fieldSelector=spec.color%3Dblue").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn selectors_that_mean_nothing_are_rejected() {
    let server = Server::new();
    for (path, query) in [
        (WIDGETS, "fieldSelector=spec.size%3D1"),
        (CONFIG_MAPS, "fieldSelector=data.x%3Dy"),
        (CONFIG_MAPS, "fieldSelector=junk"),
        (CONFIG_MAPS, "labelSelector=a+b"),
    ] {
        let answer = server.get(&format!("{path}?{query}")).await;
        assert_eq!((answer.code, &answer.body["reason"]), (400, &json!("BadRequest")), "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_state() {
    let server = with_config_maps(&["a", "b", "c", "d", "e"]).await;
    let first = server.get(&format!("{CONFIG_MAPS}?limit=2")).await;
    assert_eq!(first.names(), ["a", "b"]);
    assert_eq!(first.body["metadata"]["remainingItemCount"], 3);
    server.delete(&format!("{CONFIG_MAPS}/c"), Value::Null).await;
    server.config_map("bb").await;
    let token = |answer: &Value| answer["metadata"]["continue"].as_str().unwrap().to_owned();
    let second = server.get(&format!("{CONFIG_MAPS}?limit=2&continue={}", token(&first.body))).await;
    assert_eq!(second.names(), ["c", "d"]);
    assert_eq!(second.version(), first.version());
    let third = server.get(&format!("{CONFIG_MAPS}?limit=2&continue={}", token(&second.body))).await;
    assert_eq!(third.names(), ["e"]);
    assert_eq!(third.body["metadata"].get("continue"), None);
    let selected = server.get(&format!("{CONFIG_MAPS}?limit=1&labelSelector=!x")).await;
    assert_eq!(selected.body["metadata"].get("remainingItemCount"), None);
}

#[tokio::test(start_paused = true)]
async fn a_page_of_a_state_that_is_forgotten_can_be_gone_on_with() {
    let server = with_config_maps(&["a", "b", "c"]).await;
    let first = server.get(&format!("{CONFIG_MAPS}?limit=1")).await;
    let token = first.body["metadata"]["continue"].as_str().unwrap();
    server.config_map("d").await;
    server.memkube.compact();
    let late = server.get(&format!("{CONFIG_MAPS}?limit=1&continue={token}")).await;
    assert_eq!((late.code, &late.body["reason"]), (410, &json!("Expired")));
    let anew = late.body["metadata"]["continue"].as_str().unwrap();
    let rest = server.get(&format!("{CONFIG_MAPS}?continue={anew}")).await;
    assert_eq!(rest.names(), ["b", "c", "d"]);
    assert_eq!(server.get(&format!("{CONFIG_MAPS}?continue=zzz")).await.code, 400);
}

#[tokio::test(start_paused = true)]
async fn a_list_can_be_asked_for_at_a_version() {
    let server = with_config_maps(&["a", "b"]).await;
    let version = server.memkube.revision();
    server.delete(&format!("{CONFIG_MAPS}/a"), Value::Null).await;
    server.patch(&format!("{CONFIG_MAPS}/b"), MERGE, json!({"data": {"x": "1"}})).await;
    let query = |matching: &str| format!("{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch={matching}");
    let exact = server.get(&query("Exact")).await;
    assert_eq!((exact.names(), exact.version()), (vec!["a", "b"], version));
    assert_eq!(exact.body["items"][1].get("data"), None);
    assert_eq!(server.get(&query("NotOlderThan")).await.names(), ["b"]);
    // A limit and a resourceVersion without `resourceVersionMatch` request exactly this resourceVersion, for
    // compatibility.
    let legacy = server.get(&format!("{CONFIG_MAPS}?resourceVersion={version}&limit=5")).await;
    assert_eq!(legacy.names(), ["a", "b"]);
    server.memkube.compact();
    let message = "The resourceVersion for the provided list is too old.";
    assert_eq!(server.get(&query("Exact")).await.refusal(), (410, message));
}

#[tokio::test(start_paused = true)]
async fn a_limit_is_nothing_to_a_list_from_the_cache() {
    let server = with_config_maps(&["a", "b"]).await;
    assert_eq!(server.get(&format!("{CONFIG_MAPS}?resourceVersion=0&limit=1")).await.names(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_has_not_come_is_waited_for_three_seconds() {
    let server = with_config_maps(&["a"]).await;
    let begin = tokio::time::Instant::now();
    let answer = server.get(&format!("{CONFIG_MAPS}?resourceVersion=99")).await;
    assert_eq!(answer.refusal(), (504, "Timeout: Too large resource version: 99, current: 6"));
    assert_eq!(
        answer.body["details"],
        json!({
            "causes": [{"reason": "ResourceVersionTooLarge"}],
            "retryAfterSeconds": 1,
        })
    );
    assert_eq!(begin.elapsed(), Duration::from_secs(3));
    let word = server.get(&format!("{CONFIG_MAPS}/a?resourceVersion=x")).await;
    assert_eq!(word.code, 500);
    let path = format!("{CONFIG_MAPS}/a?resourceVersion=7");
    let (answer, _) = tokio::join!(server.get(&path), server.config_map("b"));
    assert_eq!(answer.code, 200);
}

#[tokio::test(start_paused = true)]
async fn options_that_contradict_are_rejected() {
    let server = Server::new();
    let about_match = "resourceVersionMatch";
    for (query, field) in [
        ("resourceVersionMatch=Exact", about_match),
        ("resourceVersionMatch=Exact&resourceVersion=0", about_match),
        ("resourceVersionMatch=Foo&resourceVersion=3", about_match),
        ("resourceVersionMatch=Exact&resourceVersion=3&continue=x", about_match),
        ("sendInitialEvents=true", "sendInitialEvents"),
        ("watch=true&sendInitialEvents=true", about_match),
        ("watch=true&resourceVersionMatch=NotOlderThan", about_match),
    ] {
        let answer = server.get(&format!("{CONFIG_MAPS}?{query}")).await;
        assert_eq!(answer.fields(), (422, vec![field]), "{query}");
    }
    for query in ["resourceVersion=x", "limit=x"] {
        assert_eq!(server.get(&format!("{CONFIG_MAPS}?{query}")).await.code, 400, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_can_be_asked_for_alone() {
    let server = Server::new();
    let created = server.widget("w", json!({"spec": {"color": "red"}})).await;
    let accept = |kind: &str| format!("application/json;as={kind};g=meta.k8s.io;v=v1");
    let one = server.get_as(&format!("{WIDGETS}/w"), &accept("PartialObjectMetadata")).await;
    let expected = json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": created.body["metadata"],
    });
    assert_eq!(one.body, expected);
    let list = server.get_as(WIDGETS, &accept("PartialObjectMetadataList")).await;
    assert_eq!(list.body["kind"], "PartialObjectMetadataList");
    assert_eq!(list.body["items"], json!([expected]));
}
