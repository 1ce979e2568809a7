//! Tests of the common rules of requests: paths, methods, forms, authorization, and the audit ledger.

use crate::support::{CONFIG_MAPS, MERGE, Server, WIDGETS, clock};
use http::Method;
use memkube::{Call, Options, User, Verb};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const NO_RESOURCE: (u16, &str) = (404, "the server could not find the requested resource");
const NO_METHOD: (u16, &str) = (405, "the server does not allow this method on the requested resource");

#[tokio::test(start_paused = true)]
async fn paths_that_mean_nothing_are_told_apart() {
    let server = Server::new();
    server.config_map("a").await;
    for path in [
        "/api/v1/nothing",
        "/api/v1/namespaces/default/nothings",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/namespaces/default/namespaces",
        "/api/v1/configmaps/a",
        "/api/v1/namespaces/default/configmaps/a/nosub",
    ] {
        assert_eq!(server.get(path).await.refusal(), NO_RESOURCE, "{path}");
    }
    for path in ["/apis/none/v1/x", "/apis/ex.io/v7/widgets", "/nowhere"] {
        let answer = server.get(path).await;
        assert_eq!((answer.code, answer.body), (404, json!("404 page not found\n")), "{path}");
    }
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/")).await.names(), ["a"]);
    assert_eq!(server.get("/readyz").await.body, json!("ok"));
}

#[tokio::test(start_paused = true)]
async fn methods_that_a_path_does_not_have_are_refused() {
    let server = Server::new();
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a");
    for (method, path) in [
        (Method::PUT, CONFIG_MAPS),
        (Method::POST, path.as_str()),
        (Method::OPTIONS, CONFIG_MAPS),
        (Method::POST, "/api/v1/configmaps"),
        (Method::DELETE, "/api/v1/configmaps"),
        (Method::GET, "/apis/authentication.k8s.io/v1/tokenreviews"),
    ] {
        let answer = server.call(method.clone(), path, "application/json", "{}").await;
        assert_eq!(answer.refusal(), NO_METHOD, "{method} {path}");
    }
    let status = "/apis/ex.io/v1/namespaces/default/widgets/w/status";
    let answer = server.call(Method::DELETE, status, "application/json", "{}").await;
    assert_eq!(answer.refusal(), NO_METHOD);
}

#[tokio::test(start_paused = true)]
async fn bodies_may_be_yaml_and_must_be_something_known() {
    let server = Server::new();
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: \"y\"\n";
    let answer = server.call(Method::POST, CONFIG_MAPS, "application/yaml", yaml).await;
    assert_eq!((answer.code, &answer.body["data"]), (201, &json!({"x": "y"})));
    let text = server.call(Method::POST, CONFIG_MAPS, "text/plain", "{}").await;
    assert_eq!((text.code, &text.body["reason"]), (415, &json!("UnsupportedMediaType")));
    for body in ["nonsense", "[]", ""] {
        let answer = server.call(Method::POST, CONFIG_MAPS, "application/json", body).await;
        assert_eq!((answer.code, &answer.body["reason"]), (400, &json!("BadRequest")), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_policy_forbids_is_refused_as_rbac_does() {
    let mut options = Options::new(clock(), 1);
    options.policy = Arc::new(|call: &Call| call.verb == Verb::List && &*call.target.resource == "configmaps");
    let server = Server::with(options);
    assert_eq!(server.get(CONFIG_MAPS).await.code, 200);
    let get = server.get(&format!("{WIDGETS}/w")).await;
    assert_eq!(
        get.refusal(),
        (
            403,
            "widgets.ex.io \"w\" is forbidden: User \"tester\" cannot get resource \"widgets\" in API group \"ex.io\" \
             in the namespace \"default\""
        )
    );
    assert_eq!(get.body["details"], json!({"name": "w", "group": "ex.io", "kind": "widgets"}));
    let list = server.get("/api/v1/nodes").await;
    assert_eq!(
        list.refusal().1,
        "nodes is forbidden: User \"tester\" cannot list resource \"nodes\" in API group \"\" at the cluster scope"
    );
    let status = server.patch(&format!("{WIDGETS}/w/status"), MERGE, json!({})).await;
    assert!(status.refusal().1.contains("cannot patch resource \"widgets/status\""));
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_a_collection_by_the_name_of_one_object_asks_for_that_object() {
    let mut options = Options::new(clock(), 1);
    options.policy = Arc::new(|call: &Call| call.verb == Verb::List && &*call.target.name == "mine");
    let server = Server::with(options);
    assert_eq!(server.get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dmine")).await.code, 200);
    for selector in ["", "?fieldSelector=metadata.name!%3Dmine", "?fieldSelector=metadata.namespace%3Dmine"] {
        assert_eq!(server.get(&format!("{CONFIG_MAPS}{selector}")).await.code, 403, "{selector}");
    }
    let other = server.get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dother")).await;
    assert!(other.refusal().1.starts_with("configmaps \"other\" is forbidden: "), "{}", other.refusal().1);
}

#[tokio::test(start_paused = true)]
async fn the_ledger_has_who_did_what_and_what_came_of_it() {
    let server = Server::new();
    server.config_map("a").await;
    server.config_map("a").await;
    server.post(CONFIG_MAPS, json!({"metadata": {"generateName": "g-"}})).await;
    server.get(CONFIG_MAPS).await;
    server.delete(&format!("{CONFIG_MAPS}/a"), Value::Null).await;
    server.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    let other = server.memkube.client(User::new("other"));
    let request = http::Request::get(CONFIG_MAPS).body(kube::client::Body::empty()).unwrap();
    other.send(request).await.unwrap();
    let audit = server.memkube.audit();
    let entries: Vec<(String, Verb, u16)> =
        audit.entries.iter().map(|entry| (entry.call.user.name.to_string(), entry.call.verb, entry.code)).collect();
    let tester = || "tester".to_owned();
    assert_eq!(
        entries,
        [
            (tester(), Verb::Create, 201),
            (tester(), Verb::Create, 409),
            (tester(), Verb::Create, 201),
            (tester(), Verb::List, 200),
            (tester(), Verb::Delete, 200),
            (tester(), Verb::Watch, 200),
            ("other".to_owned(), Verb::List, 200),
        ]
    );
    assert_eq!(&*audit.entries[0].call.target.name, "a");
    assert!(audit.entries[2].call.target.name.starts_with("g-"));
    assert_eq!((audit.writes_of("tester"), audit.writes_of("other")), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn kube_s_own_api_works_on_it() {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
    let server = Server::new();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client.clone());
    let mut map = ConfigMap::default();
    map.metadata.name = Some("a".to_owned());
    let created = maps.create(&PostParams::default(), &map).await.unwrap();
    let patch = json!({"metadata": {"labels": {"l": "1"}}});
    let patched = maps.patch_metadata("a", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    assert_eq!(patched.metadata.uid, created.metadata.uid);
    let listed = maps.list_metadata(&ListParams::default().labels("l=1")).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    assert!(maps.delete("a", &DeleteParams::default()).await.unwrap().is_right());
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn tokens_and_access_can_be_reviewed() {
    let mut options = Options::new(clock(), 1);
    options.policy = Arc::new(|call: &Call| call.verb == Verb::Create || &*call.user.name == "bob");
    let server = Server::with(options);
    server.memkube.set_token("secret", Some(User::new("bob").with_groups(vec!["crew".to_owned()])));
    let tokens = "/apis/authentication.k8s.io/v1/tokenreviews";
    let known = server.post(tokens, json!({"spec": {"token": "secret"}})).await;
    let user = json!({"username": "bob", "groups": ["crew", "system:authenticated"]});
    let expected = json!({"authenticated": true, "user": user, "audiences": ["https://kubernetes.default.svc"]});
    assert_eq!((known.code, &known.body["status"]), (201, &expected));
    let unknown = json!({"user": {}, "error": "invalid bearer token"});
    for spec in [json!({"token": "nope"}), json!({"token": "secret", "audiences": ["other"]})] {
        assert_eq!(server.post(tokens, json!({"spec": spec})).await.body["status"], unknown);
    }
    let none = server.post(tokens, json!({"spec": {}})).await;
    assert_eq!(none.refusal(), (400, "token is required for TokenReview in authentication"));

    let attributes = json!({"verb": "get", "resource": "pods"});
    let others = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let bob = server.post(others, json!({"spec": {"user": "bob", "resourceAttributes": attributes}})).await;
    assert_eq!(bob.body["status"], json!({"allowed": true}));
    let own = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let tester = server.post(own, json!({"spec": {"resourceAttributes": attributes}})).await;
    assert_eq!(tester.body["status"], json!({"allowed": false}));
    let nobody = server.post(others, json!({"spec": {"resourceAttributes": attributes}})).await;
    assert_eq!(nobody.fields(), (422, vec!["spec.user"]));
}

#[tokio::test(start_paused = true)]
async fn a_service_account_gets_tokens_that_end_with_it() {
    let server = Server::with(Options::new(clock(), 1));
    let (accounts, reviews) =
        ("/api/v1/namespaces/default/serviceaccounts", "/apis/authentication.k8s.io/v1/tokenreviews");
    let account = json!({"metadata": {"name": "agent"}});
    let (path, spec) = (format!("{accounts}/agent/token"), json!({"audiences": ["stream"], "expirationSeconds": 600}));
    assert_eq!(server.post(&path, json!({"spec": spec})).await.code, 404, "no account");
    assert_eq!(server.post(accounts, account.clone()).await.code, 201);
    let short = server.post(&path, json!({"spec": {"expirationSeconds": 599}})).await;
    assert_eq!(short.fields(), (422, vec!["spec.expirationSeconds"]));
    let issued = server.post(&path, json!({"spec": spec})).await;
    assert_eq!((issued.code, &issued.body["kind"]), (201, &json!("TokenRequest")));
    let token = issued.body["status"]["token"].clone();
    let review = async |token: &Value, audience: &str| {
        let reviewed = server.post(reviews, json!({"spec": {"token": token, "audiences": [audience]}})).await;
        reviewed.body["status"]["user"]["username"].as_str().map(str::to_owned)
    };
    let user = Some("system:serviceaccount:default:agent".to_owned());
    assert_eq!(review(&token, "stream").await, user);
    assert_eq!(review(&token, "other").await, None);
    let forged = json!(format!("{}x", token.as_str().expect("a token")));
    assert_eq!(review(&forged, "stream").await, None);
    let own = server.post(&path, json!({})).await;
    assert_eq!(own.body["spec"]["expirationSeconds"], 3600);
    assert_eq!(review(&own.body["status"]["token"], "https://kubernetes.default.svc").await, user);
    tokio::time::advance(Duration::from_secs(600)).await;
    assert_eq!(review(&token, "stream").await, None, "it has expired");
    assert_eq!(review(&own.body["status"]["token"], "https://kubernetes.default.svc").await, user);
    assert_eq!(server.delete(&format!("{accounts}/agent"), json!({})).await.code, 200);
    assert_eq!(server.post(accounts, account).await.code, 201);
    assert_eq!(review(&own.body["status"]["token"], "https://kubernetes.default.svc").await, None, "another account");
}

#[tokio::test(start_paused = true)]
async fn access_is_reviewed_for_verbs_that_no_request_has() {
    let mut options = Options::new(clock(), 1);
    options.policy = Arc::new(|call: &Call| &*call.user.name != "reader" || call.verb == Verb::Get);
    let server = Server::with(options);
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    for (user, verb, allowed) in [
        ("reader", "get", true),
        ("reader", "*", false),
        ("all", "*", true),
        // This policy allows the user `all` every verb in [`Verb`]. `impersonate` is not in [`Verb`], so by default it
        // is denied.
        ("all", "impersonate", false),
    ] {
        let attributes = json!({"verb": verb, "resource": "users"});
        let answer = server.post(reviews, json!({"spec": {"user": user, "resourceAttributes": attributes}})).await;
        assert_eq!(answer.body["status"], json!({"allowed": allowed}), "{user} {verb}");
    }
    server.memkube.set_policy(Arc::new(memkube::auth::AllowAll));
    let attributes = json!({"verb": "impersonate", "resource": "users"});
    let answer = server.post(reviews, json!({"spec": {"user": "all", "resourceAttributes": attributes}})).await;
    assert_eq!(answer.body["status"], json!({"allowed": true}));
}

#[tokio::test(start_paused = true)]
async fn one_can_ask_who_one_is() {
    let server = Server::new();
    let crew = server.memkube.client(User::new("bob").with_groups(vec!["crew".to_owned()]));
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(b"{}".to_vec()).unwrap();
    let answer: Value = crew.request(request).await.unwrap();
    let user = json!({"username": "bob", "groups": ["crew", "system:authenticated"]});
    assert_eq!(answer["status"], json!({"userInfo": user}));
}

#[tokio::test(start_paused = true)]
async fn the_ledger_forgets_the_oldest_and_counts_all() {
    let mut options = Options::new(clock(), 1);
    options.limits.audit_entries = 2;
    let server = Server::with(options);
    for name in ["a", "b", "c"] {
        server.config_map(name).await;
    }
    let audit = server.memkube.audit();
    let names: Vec<&str> = audit.entries.iter().map(|entry| &*entry.call.target.name).collect();
    assert_eq!((names, audit.forgotten, audit.writes_of("tester")), (vec!["b", "c"], 1, 3));
}
