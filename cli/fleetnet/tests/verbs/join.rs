//! Tests of `fleetnet join`.

use crate::hub::{Cluster, claims, folder, token};
use crate::program::{Ended, run, run_with};
use fleetnet_api::crd::MemberAgent;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ResourceQuota, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use memkube::{Call, Verb};
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;

/// Hub with TokenRequests and a member.
struct Pair {
    _folder: TempDir,
    hub: Cluster,
    member: Cluster,
}

impl Pair {
    async fn start() -> Self {
        let folder = folder();
        let (hub, member) = (Cluster::with_tokens(folder.path()).await, Cluster::https(folder.path(), "west").await);
        Self { _folder: folder, hub, member }
    }

    async fn with_authority() -> Self {
        let pair = Self::start().await;
        pair.publish_authority().await;
        pair
    }

    async fn join(&self, arguments: &[&str]) -> Ended {
        // The first file decides which context is the current one.
        run_with(&["join", "west", &self.hub.flag(), &self.member.flag()], &[], arguments).await
    }

    /// Applies to hub and member. Returns the actions by object.
    async fn apply(&self, more: &[&str]) -> Vec<(String, String, String)> {
        let arguments = [&["--apply", "--context", "admin@west", "-o", "json"], more].concat();
        // The server of this hub sends no certificate authority, so the hub's own ConfigMap has it.
        let ended = self.join(&arguments).await.expect(0);
        let json = ended.json("Join");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entries = json["objects"].as_array().unwrap().iter();
        entries.map(|entry| (text(&entry["kind"]), text(&entry["action"]), text(&entry["note"]))).collect()
    }

    /// Creates the ConfigMap that kube-controller-manager writes into each namespace.
    async fn publish_authority(&self) {
        self.hub.server.make_namespace("fleet-member-west").await.unwrap();
        let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(self.hub.client(), "fleet-member-west");
        let map = serde_json::from_value(json!({"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "PEM"}}));
        maps.create(&PostParams::default(), &map.unwrap()).await.unwrap();
    }

    async fn token(&self) -> Value {
        let secret = self.member.secret("fleet-system", "fleetnet-hub").await.unwrap();
        let ByteString(token) = &secret.data.unwrap()["token"];
        claims(std::str::from_utf8(token).unwrap()).unwrap()
    }

    async fn set(&self, key: &str, value: &str) {
        let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(self.member.client(), "fleet-system");
        let patch = json!({"stringData": {key: value}});
        secrets.patch("fleetnet-hub", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }
}

fn actions(done: &[(String, String, String)]) -> Vec<&str> {
    done.iter().map(|(_, action, _)| action.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_apply_manifests_are_printed_and_no_cluster_is_needed() {
    let ended = run(["join", "west"]).await.expect(0);
    let documents: Vec<Value> = serde_saphyr::from_multiple(&ended.output).unwrap();
    let kinds: Vec<&str> = documents.iter().filter_map(|object| object["kind"].as_str()).collect();
    assert_eq!(kinds, ["Namespace", "ResourceQuota", "ServiceAccount", "Role", "RoleBinding"]);
    assert!(ended.output.contains("create token member-agent --duration=720h"), "{}", ended.output);
    assert_eq!(run(["join", "west", "--print", "hub"]).await.expect(0).output.matches("\n---\n").count(), 4);
    let values = run(["join", "west", "--print", "values"]).await.expect(0).output;
    assert_eq!(serde_saphyr::from_str::<Value>(&values).unwrap()["member"]["id"], "west");
    let json = run(["join", "west", "-o", "json", "--token-ttl", "none"]).await.expect(0).output;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["items"][5]["kind"], "Secret");
    let names = run(["join", "west", "-o", "name"]).await.expect(0).output;
    assert!(names.starts_with("Namespace/fleet-member-west\n"), "{names}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_secret_is_written_into_the_namespace_of_the_agent() {
    let pair = Pair::with_authority().await;
    let applied = pair.apply(&["--agent-namespace", "fabric"]).await;
    let of_member: Vec<(&str, &str)> =
        applied[5..].iter().map(|(kind, action, _)| (kind.as_str(), action.as_str())).collect();
    assert_eq!(of_member, [("Namespace", "created"), ("Secret", "created")]);
    assert!(pair.member.secret("fabric", "fleetnet-hub").await.is_some());
    assert!(pair.member.secret("fleet-system", "fleetnet-hub").await.is_none());
    let printed = pair.join(&["--agent-namespace", "fabric", "--print", "member"]).await.expect(0).output;
    assert!(printed.contains(" -n fabric create secret ") && !printed.contains("fleet-system"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_creates_everything_and_a_second_run_changes_nothing() {
    let pair = Pair::with_authority().await;
    let first = pair.apply(&[]).await;
    let expected = ["updated", "created", "created", "created", "created", "unchanged", "created"];
    assert_eq!(actions(&first), expected, "{first:?}");
    assert_eq!(pair.token().await["sub"], "system:serviceaccount:fleet-member-west:member-agent");
    assert_eq!(pair.token().await["asked"], 720 * 3600);
    let secret = pair.member.secret("fleet-system", "fleetnet-hub").await.unwrap().data.unwrap();
    assert_eq!(secret["url"].0, pair.hub.url.as_bytes());
    assert_eq!(secret["certificate-authority"].0, b"UEVN");
    for format in ["table", "wide", "json", "yaml", "name"] {
        let ended = pair.join(&["--apply", "--context", "admin@west", "-o", format]).await.expect(0);
        assert!(!ended.output.contains("created") && !ended.output.contains("updated"), "{ended:?}");
    }
    let second = pair.apply(&[]).await;
    assert_eq!(actions(&second), ["unchanged"; 7], "{second:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_expired_or_is_refused_or_foreign_is_replaced() {
    let pair = Pair::with_authority().await;
    pair.apply(&[]).await;
    let of = |subject: &str, expires: i64| token(&json!({"sub": subject, "exp": expires}));
    let west = "system:serviceaccount:fleet-member-west:member-agent";
    for (present, reason) in [
        (of(west, 1_000_000_000), "had expired at 2001-09-09"),
        (of("system:serviceaccount:fleet-member-east:member-agent", 4_000_000_000), "fleet-member-east"),
        ("garbage".to_owned(), "no token"),
    ] {
        pair.set("token", &present).await;
        let done = pair.apply(&[]).await;
        let (_, action, note) = done.last().unwrap();
        assert!(action == "updated" && note.contains(reason), "{done:?}");
        assert_eq!((&pair.token().await["sub"], &pair.token().await["exp"]), (&json!(west), &json!(4_102_444_800_i64)));
    }
    pair.hub.revoke(true);
    let done = pair.apply(&[]).await;
    assert!(done.last().unwrap().2.contains("the hub refused the token"), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_users_changed_stays_and_is_named_until_they_ask_to_overwrite() {
    let pair = Pair::with_authority().await;
    pair.apply(&[]).await;
    let namespace = "fleet-member-west";
    let quotas: Api<ResourceQuota> = Api::namespaced(pair.hub.client(), namespace);
    let limit = "count/memberagents.networking.fleet.azure.com";
    let patch = json!({"spec": {"hard": {limit: "9"}}});
    quotas.patch("fleetnet-member-agent", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    pair.set("url", "https://10.0.0.1").await;
    let done = pair.apply(&[]).await;
    assert_eq!(actions(&done), ["unchanged", "kept", "unchanged", "unchanged", "unchanged", "unchanged", "kept"]);
    assert_eq!(done[1].2, format!("spec.hard.{limit}: 9, not 4: use --overwrite to replace"));
    assert!(done[6].2.contains("url is not http://127.0.0.1"), "{done:?}");
    assert_eq!(actions(&pair.apply(&["--overwrite"]).await)[1], "updated");
    let quota = quotas.get("fleetnet-member-agent").await.unwrap();
    assert_eq!(quota.spec.unwrap().hard.unwrap()[limit].0, "4");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_rights_are_repaired_and_a_foreign_binding_is_an_error() {
    let pair = Pair::with_authority().await;
    pair.apply(&[]).await;
    let roles: Api<Role> = Api::namespaced(pair.hub.client(), "fleet-member-west");
    let patch = json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    roles.patch("fleetnet-member-agent", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    let done = pair.apply(&[]).await;
    assert!(done[3].1 == "updated" && done[3].2.starts_with("missing rights added: "), "{done:?}");
    assert!(roles.get("fleetnet-member-agent").await.unwrap().rules.unwrap().len() > 3);
    let bindings: Api<RoleBinding> = Api::namespaced(pair.hub.client(), "fleet-member-west");
    let patch = json!({"roleRef": {"name": "view"}});
    bindings.patch("fleetnet-member-agent", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    let ended = pair.join(&["--apply"]).await.expect(1);
    assert!(
        ended.errors.contains("RoleBinding/fleet-member-west/fleetnet-member-agent: it binds the role view"),
        "{ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_is_named() {
    let pair = Pair::start().await;
    let policy = |call: &Call| !(call.verb == Verb::Create && &*call.target.resource == "roles");
    pair.hub.server.memkube().set_policy(Arc::new(policy));
    for format in ["table", "json", "yaml", "name"] {
        let ended = pair.join(&["--apply", "-o", format]).await.expect(1);
        let expected = "this user may not create Role/fleet-member-west/fleetnet-member-agent: 403 Forbidden: ";
        assert!(
            ended.errors.contains(expected) && ended.errors.contains("cannot create resource \"roles\""),
            "{ended:?}"
        );
        // What was done before the error is shown.
        let shown = |object: &str| ended.output.contains(object);
        assert!(shown("member-agent") && !shown("RoleBinding"), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_member_context_leaves_nothing_in_the_hub() {
    let pair = Pair::start().await;
    let ended = pair.join(&["--apply", "--context", "nowhere"]).await.expect(2);
    assert!(ended.errors.contains("context nowhere: NoContext"), "{ended:?}");
    let accounts: Api<ServiceAccount> = Api::namespaced(pair.hub.client(), "fleet-member-west");
    assert!(accounts.get_opt("member-agent").await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_ends_with_a_timeout_if_the_agent_is_not_heard() {
    let pair = Pair::start().await;
    let ended = pair.join(&["--apply", "--wait=100ms"]).await.expect(4);
    assert!(ended.errors.contains("the hub has not heard from the agent of west within 100ms"), "{ended:?}");
    assert!(ended.output.contains("created"), "what was done is shown: {ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_ends_when_the_hub_hears_from_the_agent() {
    let pair = Pair::start().await;
    let heartbeats = async {
        let agents: Api<MemberAgent> = Api::namespaced(pair.hub.client(), "fleet-member-west");
        let agent = |second: u32| {
            serde_json::from_value(json!({
                "apiVersion": "networking.fleet.azure.com/v1alpha1", "kind": "MemberAgent", "metadata": {"name": "west"},
                "spec": {"version": "1", "renewTime": format!("2026-11-23T06:00:{second:02}.000000Z")},
            }))
            .unwrap()
        };
        // The agent writes as soon as it has a namespace.
        while agents.create(&PostParams::default(), &agent(0)).await.is_err() {
            tokio::task::yield_now().await;
        }
        for second in (1..60).cycle() {
            let patch: MemberAgent = agent(second);
            agents.patch("west", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let ended = tokio::select! {
        ended = pair.join(&["--apply", "--wait=50s"]) => ended.expect(0),
        () = heartbeats => unreachable!("the agent writes for ever"),
    };
    assert!(ended.output.contains("created"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_of_the_member_that_leads_to_the_hub_is_refused_unless_the_hub_is_a_member() {
    let pair = Pair::with_authority().await;
    let refused = |ended: &Ended, context: &str| {
        let expected =
            format!("context admin@hub of the hub and context {context} of the member lead to one cluster (");
        ended.errors.contains(&expected) && ended.errors.contains("--hub-context") && ended.output.is_empty()
    };
    // Another context of the hub, which has another name of the same server.
    let other = pair.hub.kubeconfig.with_file_name("other");
    let config = std::fs::read_to_string(&pair.hub.kubeconfig).unwrap();
    std::fs::write(&other, config.replace("admin@hub", "west").replace("127.0.0.1", "localhost")).unwrap();
    let flag = format!("--kubeconfig={}", other.display());
    for (context, flags) in [("admin@hub", &[][..]), ("west", &[flag.as_str()])] {
        let ended = pair.join(&[&["--apply", "--context", context], flags].concat()).await.expect(2);
        assert!(refused(&ended, context) && ended.errors.contains("(its UID is "), "{ended:?}");
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(pair.hub.client(), "fleet-member-west");
    assert!(accounts.get_opt("member-agent").await.unwrap().is_none(), "nothing was written");

    pair.join(&["--apply", "--context", "admin@hub", "--hub-is-member"]).await.expect(0);
    assert!(pair.hub.secret("fleet-system", "fleetnet-hub").await.is_some());

    // Without the right to read kube-system, the URLs decide.
    let policy = |call: &Call| &*call.target.name != "kube-system";
    pair.hub.server.memkube().set_policy(Arc::new(policy));
    let ended = pair.join(&["--apply", "--context", "admin@hub"]).await.expect(2);
    assert!(refused(&ended, "admin@hub") && ended.errors.contains("(its URL is http://127.0.0.1:"), "{ended:?}");
    pair.join(&["--apply", "--context", "admin@west"]).await.expect(0);
}
