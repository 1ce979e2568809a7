//! Tests of authorization, tokens, and the audit ledger.

use crate::support::{CONFIG_MAPS, MERGE, Server, WIDGETS, clock};
use memkube::{Call, Options, User, Verb};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

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
async fn the_ledger_forgets_the_oldest_and_counts_all() {
    let mut options = Options::new(clock(), 1);
    options.limits.audit_entries = 2;
    let server = Server::with(options);
    for name in ["a", "b", "c"] {
        server.config_map(name).await;
    }
    let audit = server.memkube.audit();
    let names: Vec<&str> = audit.entries.iter().map(|entry| &*entry.call.target.name).collect();
    assert_eq!((names, audit.forgotten, audit.counts.values().sum::<u64>()), (vec!["b", "c"], 1, 3));
}
