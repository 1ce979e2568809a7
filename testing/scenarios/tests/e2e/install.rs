//! Test of the commands of the guides in `docs/`, with the real kubectl on real API servers. The test then runs the
//! agents with the settings of their Deployments.

use anyhow::{Context as _, bail, ensure};
use fleetnet_api::crd::{InternalServiceExport, ServiceExport};
use harness::control_plane::{ADMIN, ControlPlane, Options};
use harness::kubectl::Kubectl;
use harness::process::Ended;
use harness::turn::Turn;
use harness::user::User;
use harness::{deployment, eventually};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use programs::docs;
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

/// Cluster id of the member in the guide.
const MEMBER: &str = "west";
/// Namespace of the users in the guide.
const USERS: &str = "work";

/// Name of this test in the info strings of the blocks that it runs.
const GUIDES: &str = "install::the_guides_commands_install_use_and_remove_agents_that_do_their_job";

/// Returns the code blocks of a document in `docs` that this test must run, in a language (`sh` or `console`).
pub(crate) fn commands(test: &str, document: &str, language: &str) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(programs::root().join("docs").join(document))?;
    let without_prompts =
        |block: String| block.lines().flat_map(|line| [line.trim_start_matches("$ "), "\n"]).collect();
    Ok(docs::run_by(&text, test, language).map(without_prompts).collect())
}

/// Returns a kubeconfig with the contexts that the guide uses. The last context is the current one.
pub(crate) async fn kubeconfig(clusters: &[(&str, &ControlPlane)]) -> anyhow::Result<String> {
    let (mut contexts, mut servers, mut users) = (Vec::new(), Vec::new(), Vec::new());
    for (name, control_plane) in clusters {
        let access = control_plane.access(ADMIN).await?;
        let authority = access.authority_base64();
        contexts.push(json!({"name": name, "context": {"cluster": name, "user": name}}));
        let server = json!({"server": access.server_url, "certificate-authority-data": authority});
        servers.push(json!({"name": name, "cluster": server}));
        users.push(json!({"name": name, "user": {"token": access.token}}));
    }
    let current = clusters.last().map(|(name, _)| name);
    let config: Value = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": current, "contexts": contexts,
        "clusters": servers, "users": users,
    });
    Ok(config.to_string())
}

#[test]
fn the_guides_commands_install_use_and_remove_agents_that_do_their_job() -> anyhow::Result<()> {
    harness::run(async {
        let _turn = Turn::with_own_servers().await;
        // The first controller fills the Secrets for tokens. The second controller finishes the deletion of namespaces.
        let controllers = ["serviceaccount-token-controller", "namespace-controller"].map(str::to_owned).to_vec();
        let hub = Options { name: "hub".to_owned(), controllers: controllers.clone(), ..Options::default() };
        let member = Options { name: MEMBER.to_owned(), controllers, ..Options::default() };
        let (hub, member) = futures::future::try_join(ControlPlane::start(hub), ControlPlane::start(member)).await?;
        let folder = TempDir::with_prefix("fleetnet-install-")?;
        fs::write(folder.path().join("kubeconfig"), kubeconfig(&[("hub", &hub), (MEMBER, &member)]).await?)?;
        let kubectl = Kubectl::with(folder.path().join("kubeconfig")).await?;

        let guide = commands(GUIDES, "how-to/install.md", "sh")?;
        ensure!(guide.len() >= 5, "the guide has lost its commands: {guide:?}");
        kubectl.script(&guide.concat()).await.with_context(|| hub.tail())?;

        let hub_agent = deployment::start(&hub, "hub-agent", folder.path()).await?;
        let member_agent = deployment::start(&member, "member-agent", folder.path()).await?;
        member.create_namespace(USERS).await?;
        let user = User::new(member.admin(), USERS);
        user.export_new("app", &["10.1.0.1"]).await?;
        user.sees_export("app", "Conflict", "False", "NoConflictFound").await?;

        hub.create_namespace("shop").await?;
        let [looks] = &commands(GUIDES, "how-to/install.md", "console")?[..] else { bail!("one block of the guide") };
        let [removes, removes_all] = &commands(GUIDES, "how-to/members.md", "console")?[..] else {
            bail!("two blocks of the guide")
        };
        let others = [
            commands(GUIDES, "concepts/export-and-import.md", "console")?,
            commands(GUIDES, "concepts/trust.md", "sh")?,
        ];
        ensure!(others.each_ref().map(Vec::len) == [1, 1], "the other guides have lost commands: {others:?}");
        let (seen, others) = (looks.clone(), others.concat().concat());
        kubectl.script(&(seen + &others)).await.with_context(|| hub.tail())?;
        let shop = Api::<Namespace>::all(hub.admin()).get("shop").await?.metadata.annotations.unwrap_or_default();
        ensure!(shop["networking.fleet.azure.com/exporters"] == "west,east", "{shop:?}");

        user.delete::<ServiceExport>("app").await?;
        let exports: Api<InternalServiceExport> = Api::namespaced(hub.admin(), "fleet-member-west");
        eventually::gone(&exports, "work-app").await?;
        ensure!(member_agent.terminate().await? == Ended::Exited(0), "{}", member_agent.log().tail());
        kubectl.script(removes).await.with_context(|| hub.tail())?;
        eventually::gone(&Api::<Namespace>::all(hub.admin()), "fleet-member-west").await?;
        ensure!(hub_agent.ended().is_none(), "{}", hub_agent.log().tail());
        // After `kubectl delete`, a kubelet would stop the agent.
        ensure!(hub_agent.terminate().await? == Ended::Exited(0), "{}", hub_agent.log().tail());
        kubectl.script(removes_all).await.with_context(|| hub.tail())?;
        for cluster in [&hub, &member] {
            let left = Api::<CustomResourceDefinition>::all(cluster.admin()).list_metadata(&Default::default()).await?;
            ensure!(left.items.is_empty(), "{left:?}");
        }
        Ok(())
    })
}
