//! Tests of creates.

use crate::support::{CONFIG_MAPS, Server, WIDGETS};
use memkube::Options;
use memkube::limits::Limits;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn the_server_fills_in_what_is_its_own() {
    let server = Server::new();
    let answer = server
        .post(
            CONFIG_MAPS,
            json!({"metadata": {
                "name": "a", "uid": "mine", "creationTimestamp": "2020-01-01T00:00:00Z", "selfLink": "x",
                "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 4,
                "labels": {}, "annotations": null, "finalizers": [], "managedFields": [{"manager": "me"}],
            }, "data": {"x": "y"}}),
        )
        .await;
    assert_eq!(answer.code, 201);
    assert_eq!(
        answer.body,
        json!({
            "kind": "ConfigMap", "apiVersion": "v1", "data": {"x": "y"},
            "metadata": {
                "name": "a", "namespace": "default", "resourceVersion": "6",
                "uid": answer.body["metadata"]["uid"], "creationTimestamp": "2026-01-01T00:00:00Z",
            },
        })
    );
    assert_ne!(answer.body["metadata"]["uid"], "mine");
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await.body, answer.body);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_refused() {
    let server = Server::new();
    server.config_map("a").await;
    let answer = server.config_map("a").await;
    assert_eq!(
        answer.body,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 409,
            "message": "configmaps \"a\" already exists", "reason": "AlreadyExists",
            "details": {"name": "a", "kind": "configmaps"},
        })
    );
    server.widget("w", json!({})).await;
    assert_eq!(server.widget("w", json!({})).await.refusal(), (409, "widgets.ex.io \"w\" already exists"));
}

#[tokio::test(start_paused = true)]
async fn names_are_generated_behind_a_prefix() {
    let server = Server::new();
    let answer = server.post(CONFIG_MAPS, json!({"metadata": {"generateName": "web-"}})).await;
    let name = answer.body["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("web-") && name.len() == 9, "{name}");
    let long = "a".repeat(80);
    let answer = server.post(CONFIG_MAPS, json!({"metadata": {"generateName": long}})).await;
    assert_eq!(answer.body["metadata"]["name"].as_str().unwrap().len(), 63);
}

#[tokio::test(start_paused = true)]
async fn an_object_needs_a_name_that_a_path_can_hold() {
    let server = Server::new();
    let nameless = server.post(CONFIG_MAPS, json!({"metadata": {}})).await;
    assert_eq!(nameless.fields(), (422, vec!["metadata.name"]));
    assert_eq!(nameless.body["details"]["causes"][0]["reason"], "FieldValueRequired");
    assert_eq!(nameless.body["details"]["kind"], "ConfigMap");
    let wrong = server.post(CONFIG_MAPS, json!({"metadata": {"name": "A_b"}})).await;
    assert_eq!(wrong.fields(), (422, vec!["metadata.name"]));
    assert!(wrong.refusal().1.starts_with("ConfigMap \"A_b\" is invalid: metadata.name: Invalid value: \"A_b\": "));
}

#[tokio::test(start_paused = true)]
async fn all_that_is_wrong_with_metadata_is_told_at_once() {
    let server = Server::new();
    let answer = server
        .post(
            CONFIG_MAPS,
            json!({"metadata": {
                "name": "b", "labels": {"a b": "c d"}, "annotations": {"_x": "y"}, "finalizers": ["x"],
                "ownerReferences": [{}],
            }}),
        )
        .await;
    let causes = answer.body["details"]["causes"].as_array().unwrap();
    let fields: Vec<&str> = causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    assert_eq!(
        fields,
        [
            "metadata.labels",
            "metadata.labels",
            "metadata.annotations",
            "metadata.ownerReferences.apiVersion",
            "metadata.ownerReferences.kind",
            "metadata.ownerReferences.name",
            "metadata.ownerReferences.uid",
            "metadata.finalizers[0]",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn only_one_owner_controls() {
    let server = Server::new();
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u", "controller": true});
    let metadata = json!({"name": "o", "ownerReferences": [owner("x"), owner("y")]});
    let two = server.post(CONFIG_MAPS, json!({"metadata": metadata})).await;
    assert_eq!(two.fields(), (422, vec!["metadata.ownerReferences"]));
}

#[tokio::test(start_paused = true)]
async fn a_body_must_be_of_the_path_s_kind() {
    let server = Server::new();
    for body in [
        json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}}),
        json!({"kind": "ConfigMap", "apiVersion": "v2", "metadata": {"name": "a"}}),
        json!({"metadata": {"name": "a", "namespace": "other"}}),
    ] {
        let answer = server.post(CONFIG_MAPS, body.clone()).await;
        assert_eq!((answer.code, &answer.body["reason"]), (400, &json!("BadRequest")), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn custom_resources_must_say_their_kind() {
    let server = Server::new();
    let post = |body| server.post(WIDGETS, body);
    assert_eq!(post(json!({"metadata": {"name": "a"}})).await.code, 400);
    assert_eq!(post(json!({"kind": "Widget", "metadata": {"name": "a"}})).await.code, 400);
    let gadget = post(json!({"kind": "Gadget", "apiVersion": "ex.io/v1", "metadata": {"name": "a"}})).await;
    assert_eq!(gadget.fields(), (422, vec!["kind"]));
}

#[tokio::test(start_paused = true)]
async fn a_resource_version_is_refused_even_before_the_name_is_looked_up() {
    let server = Server::new();
    server.config_map("a").await;
    let answer = server.post(CONFIG_MAPS, json!({"metadata": {"name": "a", "resourceVersion": "4"}})).await;
    assert_eq!(answer.refusal(), (500, "resourceVersion should not be set on objects to be created"));
    assert_eq!(answer.body.get("reason"), None);
}

#[tokio::test(start_paused = true)]
async fn wrong_types_in_metadata_are_rejected() {
    let server = Server::new();
    assert_eq!(server.post(CONFIG_MAPS, json!({"metadata": {"name": 5}})).await.code, 400);
    let widget = server.widget("t", json!({"metadata": {"labels": 5}})).await;
    let (code, message) = widget.refusal();
    assert_eq!(code, 400);
    assert!(message.starts_with("Widget in version \"v1\" cannot be handled as a Widget: "), "{message}");
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_ignored_warned_of_or_rejected() {
    let server = Server::new();
    let post = async |name: &str, validation: &str| {
        let path = format!("{CONFIG_MAPS}?fieldValidation={validation}");
        server.post(&path, json!({"metadata": {"name": name, "bogus": 1}, "dota": {"a": "1"}})).await
    };
    let strict = post("a", "Strict").await;
    let (code, message) = strict.refusal();
    assert_eq!(code, 400);
    let end = "strict decoding error: unknown field \"metadata.bogus\", unknown field \"dota\"";
    assert!(message.ends_with(end), "{message}");
    let warned = post("b", "Warn").await;
    assert_eq!(warned.code, 201);
    let warnings = [r#"299 - "unknown field \"metadata.bogus\"""#, r#"299 - "unknown field \"dota\"""#];
    assert_eq!(warned.warnings, warnings);
    assert_eq!(warned.body.get("dota"), None);
    let ignored = post("c", "Ignore").await;
    assert_eq!((ignored.code, ignored.warnings), (201, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_as_if_and_stores_nothing() {
    let server = Server::new();
    let before = server.memkube.revision();
    let answer = server.post(&format!("{CONFIG_MAPS}?dryRun=All"), json!({"metadata": {"name": "a"}})).await;
    assert_eq!(answer.code, 201);
    assert_eq!(answer.body["metadata"].get("resourceVersion"), None);
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await.code, 404);
    assert_eq!(server.memkube.revision(), before);
    let wrong = server.post(&format!("{CONFIG_MAPS}?dryRun=Foo"), json!({"metadata": {"name": "a"}})).await;
    let message =
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Foo\"]: supported values: \"All\"";
    assert_eq!(wrong.refusal(), (422, message));
}

#[tokio::test(start_paused = true)]
async fn a_new_custom_resource_has_generation_1_and_no_status() {
    let server = Server::new();
    let rest = json!({"metadata": {"generation": 9}, "spec": {"color": "red"}, "status": {"ok": true}});
    let answer = server.widget("w", rest).await;
    assert_eq!(answer.body["metadata"]["generation"], 1);
    assert_eq!(answer.body.get("status"), None);
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_is_refused() {
    let mut options = Options::new(crate::support::clock(), 1);
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
