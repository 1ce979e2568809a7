//! Tests of `fleetnet rotate`.

use crate::hub::{Cluster, folder, heard, hub_and_west, hub_secret};
use crate::program::{Ended, run_with};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use tempfile::TempDir;

const NAMESPACE: &str = "fleet-member-west";

/// Hub and its member west, with a token.
struct Pair {
    _folder: TempDir,
    hub: Cluster,
    west: Cluster,
}

impl Pair {
    async fn start() -> Self {
        let folder = folder();
        let (hub, west) = hub_and_west(folder.path()).await;
        let pair = Self { _folder: folder, hub, west };
        pair.run(&["join", "west", "--apply", "--context", "admin@west"]).await.expect(0);
        pair
    }

    async fn run(&self, arguments: &[&str]) -> Ended {
        run_with(arguments, &[self.hub.flag(), self.west.flag()], &[]).await
    }

    async fn token(&self) -> String {
        let secret = self.west.secret("fleet-system", "fleetnet-hub").await.unwrap();
        String::from_utf8(secret.data.unwrap()["token"].0.clone()).unwrap()
    }

    /// True if the hub accepts a token.
    async fn accepts(&self, token: &str) -> bool {
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let reviews: Api<TokenReview> = Api::all(self.hub.client());
        let review = TokenReview { spec, ..TokenReview::default() };
        let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
        answer.status.is_some_and(|status| status.authenticated == Some(true))
    }

    async fn account(&self) -> ServiceAccount {
        Api::namespaced(self.hub.client(), NAMESPACE).get("member-agent").await.unwrap()
    }
}

/// Rule K17: A user runs `fleetnet rotate`
/// Then: The command replaces the ServiceAccount of the member in the hub, so the hub refuses all tokens from before.
/// The member gets a new token. What users wrote into the account stays
#[tokio::test(flavor = "multi_thread")]
async fn all_tokens_of_a_member_are_revoked_and_its_secret_gets_a_new_one() {
    let pair = Pair::start().await;
    heard(&pair.hub, "west", &pair.west.uid().await).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(pair.hub.client(), NAMESPACE);
    let labels = Patch::Merge(json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}}}));
    accounts.patch("member-agent", &PatchParams::default(), &labels).await.unwrap();
    let bindings: Api<RoleBinding> = Api::namespaced(pair.hub.client(), NAMESPACE);
    let (old, binding) = (pair.account().await, bindings.get("fleetnet-member-agent").await.unwrap());
    let stolen = pair.token().await;
    assert!(pair.accepts(&stolen).await);

    let done = pair.run(&["rotate", "west", "-o", "json"]).await.expect(0).json("Rotate");
    let objects = done["objects"].as_array().unwrap().iter();
    let objects: Vec<String> =
        objects.map(|it| format!("{} {} {}", it["action"], it["kind"], it["cluster"]).replace('"', "")).collect();
    let expected = [
        "deleted ServiceAccount admin@hub",
        "created ServiceAccount admin@hub",
        "unchanged Namespace admin@west",
        "updated Secret admin@west",
    ];
    assert_eq!(objects, expected, "{done}");
    let token = pair.token().await;
    assert!(pair.accepts(&token).await && !pair.accepts(&stolen).await);
    let new = pair.account().await;
    assert_ne!(new.metadata.uid, old.metadata.uid);
    assert_eq!(new.metadata.labels, old.metadata.labels, "what users wrote stays");
    assert_eq!(bindings.get("fleetnet-member-agent").await.unwrap().metadata.uid, binding.metadata.uid);
    for format in ["table", "wide", "yaml", "name"] {
        let ended = pair.run(&["rotate", "west", "-o", format]).await.expect(0);
        assert!(
            ended.output.contains("ServiceAccount/fleet-member-west/member-agent") || format == "yaml",
            "{ended:?}"
        );
        assert!(!ended.output.contains(&pair.token().await), "no token is printed");
    }
    assert!(!pair.accepts(&token).await);
}

/// Also rule K17.
#[tokio::test(flavor = "multi_thread")]
async fn with_the_hub_alone_the_commands_for_the_member_are_printed() {
    let pair = Pair::start().await;
    let stolen = pair.token().await;
    let ended = pair.run(&["rotate", "west", "--hub-only"]).await.expect(0);
    for command in [
        "kubectl --context west -n fleet-system delete secret fleetnet-hub --ignore-not-found\n",
        "kubectl --context admin@hub -n fleet-member-west create token member-agent --duration=720h",
        "--from-file=token=/dev/stdin",
    ] {
        assert!(ended.errors.contains(command), "{command}: {ended:?}");
    }
    assert!(!pair.accepts(&stolen).await);
    assert_eq!(pair.token().await, stolen, "the member was not changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_a_namespace_without_the_agent_is_refused_before_anything_is_revoked() {
    let pair = Pair::start().await;
    let before = pair.token().await;
    let ended = pair.run(&["rotate", "west", "--context=admin@west", "--agent-namespace=fabric"]).await.expect(2);
    assert!(ended.errors.contains("the namespace fabric has neither the Secret fleetnet-hub nor"), "{ended:?}");
    assert!(ended.errors.contains("--agent-namespace, or use --hub-only"), "{ended:?}");
    assert!(pair.accepts(&before).await, "a wrong namespace locks nobody out");
    let commands = pair.run(&["rotate", "west", "--hub-only", "--agent-namespace=fabric"]).await.expect(0);
    let commands = commands.errors;
    assert!(commands.contains("-n fabric delete secret") && !commands.contains("fleet-system"), "{commands}");
}

/// Also rules K17, O26.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_goes_to_no_cluster_that_is_not_proven_to_be_the_member() {
    let pair = Pair::start().await;
    let stolen = pair.token().await;
    let refused = async |more: &[&str], code: i32, expected: &str| {
        let ended = pair.run(&[&["rotate", "west"], more].concat()).await.expect(code);
        assert!(ended.errors.contains(expected) && ended.errors.contains("--hub-only"), "{expected}: {ended:?}");
        assert!(pair.accepts(&stolen).await, "nothing was revoked");
    };
    refused(&[], 2, "the hub does not know the UID of the member's cluster").await;
    // West forges the UID of the cluster that says it is east.
    heard(&pair.hub, "west", &pair.west.uid().await).await;
    hub_secret(&pair.west, "east").await;
    refused(&[], 2, "leads to the member east").await;
    refused(&["--context", "admin@west"], 2, "leads to the member east").await;
    refused(&["--context", "admin@hub"], 2, "is not the cluster of the member west").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_the_hub_does_not_know_is_named() {
    let pair = Pair::start().await;
    let ended = pair.run(&["rotate", "north", "--hub-only"]).await.expect(1);
    assert!(ended.errors.contains("fleetnet join north --apply"), "{ended:?}");
}
