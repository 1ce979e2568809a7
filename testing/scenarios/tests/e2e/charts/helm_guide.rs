//! Test of the commands for Helm in docs/how-to/install.md. The test runs the agents with the settings that the charts
//! render.

use crate::install::{commands, kubeconfig};
use anyhow::{Context as _, bail, ensure};
use fleetnet_api::crd::{EndpointSliceExport, InternalServiceExport, ServiceExport};
use fleetnet_api::crds::{Form, all};
use harness::control_plane::{ControlPlane, Options};
use harness::fleet::FLEET_SYSTEM;
use harness::helm::Helm;
use harness::kubectl::Kubectl;
use harness::process::Ended;
use harness::turn::Turn;
use harness::user::User;
use harness::{binaries, deployment, eventually};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::WatchParams;
use kube::{Api, ResourceExt as _};
use std::collections::BTreeMap;
use std::fs;
use tempfile::TempDir;
use tokio::process::Command;

/// Name of the test whose commands are in docs/how-to/install.md.
const GUIDE: &str = "helm_guide::the_guides_helm_commands_install_upgrade_and_remove_agents_that_do_their_job";
/// Name of the test that runs the commands of the plain manifests. One block is for both ways: the one that makes the
/// Secret.
const PLAIN: &str = "install::the_guides_commands_install_use_and_remove_agents_that_do_their_job";
/// Namespace of the user.
const USERS: &str = "work";

/// Returns the number of CRDs of fleetnet.
async fn definitions(cluster: &ControlPlane) -> anyhow::Result<usize> {
    let all = Api::<CustomResourceDefinition>::all(cluster.admin()).list(&Default::default()).await?;
    Ok(all.items.iter().filter(|it| it.spec.group == fleetnet_api::names::GROUP).count())
}

#[test]
fn the_guides_helm_commands_install_upgrade_and_remove_agents_that_do_their_job() -> anyhow::Result<()> {
    harness::run(async {
        let _turn = Turn::with_own_servers().await;
        let controllers = ["serviceaccount-token-controller", "namespace-controller"].map(str::to_owned).to_vec();
        let hub = Options { name: "hub".to_owned(), controllers: controllers.clone(), ..Options::default() };
        let member = Options { name: "west".to_owned(), controllers, ..Options::default() };
        let (hub, member) = futures::future::try_join(ControlPlane::start(hub), ControlPlane::start(member)).await?;
        let folder = TempDir::with_prefix("fleetnet-charts-")?;
        fs::write(folder.path().join("kubeconfig"), kubeconfig(&[("hub", &hub), ("west", &member)]).await?)?;
        let kubectl = Kubectl::with(folder.path().join("kubeconfig")).await?.and_helm(&Helm::find().await?);

        let [of_hub, of_member, of_agent] = &commands(GUIDE, "how-to/install.md", "sh")?[..] else {
            bail!("three blocks")
        };
        let credentials = commands(PLAIN, "how-to/install.md", "sh")?;
        let credentials = credentials.iter().find(|block| block.contains("create secret")).context("the Secret")?;
        let install = [of_hub, of_member, credentials, of_agent].map(String::as_str).concat();
        let notes = kubectl.script(&install).await.with_context(|| hub.tail())?;
        ensure!(notes.contains("These members may connect: west, east."), "{notes}");
        ensure!(notes.contains("\n  fleetnet join west --apply --hub-context hub --context west\n"), "{notes}");
        ensure!(notes.contains("The member agent 0.1.0 of the member west is installed"), "{notes}");

        join_finds_what_the_chart_made(&folder).await?;
        let hub_agent = deployment::start(&hub, "hub-agent", folder.path()).await?;
        let member_agent = deployment::start(&member, "member-agent", folder.path()).await?;
        hub.create_namespace(USERS).await?;
        member.create_namespace(USERS).await?;
        let user = User::new(member.admin(), USERS);
        user.export_new("app", &["10.1.0.1"]).await?;
        user.sees_export("app", "Conflict", "False", "NoConflictFound").await?;

        let [upgrade, uninstall] = &commands(GUIDE, "how-to/install.md", "console")?[..] else { bail!("two blocks") };
        let accounts: Api<ServiceAccount> = Api::namespaced(hub.admin(), "fleet-member-west");
        let account = accounts.get("member-agent").await?;
        kubectl.script(upgrade).await.with_context(|| member.tail())?;
        // An upgrade keeps the account of a member: a new account would end the member's token.
        ensure!(accounts.get("member-agent").await?.metadata.uid == account.metadata.uid, "the account is another one");
        ensure!(member_agent.terminate().await? == Ended::Exited(0), "{}", member_agent.log().tail());
        let deployments: Api<Deployment> = Api::namespaced(member.admin(), FLEET_SYSTEM);
        let upgraded = serde_json::to_value(deployments.get("member-agent").await?.spec)?.to_string();
        ensure!(upgraded.contains("--v=2") && upgraded.contains(r#""value":"west""#), "{upgraded}");
        let member_agent = deployment::start(&member, "member-agent", folder.path()).await?;
        user.set_endpoints("app-1", &["10.1.0.2"]).await?;
        arrives(&hub, "10.1.0.2").await?;
        ensure!(member_agent.terminate().await? == Ended::Exited(0), "{}", member_agent.log().tail());
        ensure!(hub_agent.terminate().await? == Ended::Exited(0), "{}", hub_agent.log().tail());

        kubectl.script(uninstall).await.with_context(|| member.tail())?;
        eventually::gone(&deployments, "member-agent").await?;
        eventually::gone(&Api::<ClusterRole>::all(member.admin()), "fleetnet-member-agent").await?;
        eventually::gone(&accounts, "member-agent").await?;
        let kinds = all(Form::Full).len();
        ensure!(definitions(&hub).await? == kinds && definitions(&member).await? == kinds, "definitions are lost");
        user.api::<ServiceExport>().get("app").await.context("the export of a user is lost")?;
        let exports: Api<InternalServiceExport> = Api::namespaced(hub.admin(), "fleet-member-west");
        exports.get("work-app").await.context("the export of a member is lost")?;
        let namespaces = Api::<Namespace>::all(hub.admin());
        ensure!(namespaces.get("fleet-member-west").await?.metadata.deletion_timestamp.is_none(), "it is deleted");

        // After an uninstall, the same commands install again: Helm adopts what it kept.
        let again = [of_hub, of_member, of_agent].map(String::as_str).concat();
        kubectl.script(&again).await.with_context(|| hub.tail())?;
        let deployment = deployments.get("member-agent").await?;
        ensure!(deployment.labels()["app.kubernetes.io/managed-by"] == "Helm", "{deployment:?}");
        Ok(())
    })
}

/// Runs the command that the notes of both agents' charts name. The objects in the hub are those of the chart, so
/// nothing changes.
async fn join_finds_what_the_chart_made(folder: &TempDir) -> anyhow::Result<()> {
    let mut join = Command::new(binaries::find("fleetnet").await?);
    join.args(["join", "west", "--apply", "--hub-context", "hub", "--context", "west"])
        .env("KUBECONFIG", folder.path().join("kubeconfig"));
    let output = join.env("HOME", folder.path()).output().await?;
    let (out, err) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    ensure!(output.status.success(), "{out}{err}");
    let changed: Vec<&str> = out.lines().skip(1).filter(|line| !line.contains("unchanged")).collect();
    ensure!(changed.is_empty(), "{out}");
    Ok(())
}

/// Waits until an exported slice of the member has an address.
async fn arrives(hub: &ControlPlane, wanted: &str) -> anyhow::Result<()> {
    let slices: Api<EndpointSliceExport> = Api::namespaced(hub.admin(), "fleet-member-west");
    let has_arrived = |slices: &BTreeMap<String, EndpointSliceExport>| {
        let endpoints = slices.values().flat_map(|slice| &slice.spec.endpoints);
        endpoints.flat_map(|endpoint| &endpoint.addresses).any(|address| address == wanted)
    };
    eventually::objects(&slices, &WatchParams::default(), &format!("a slice with {wanted}"), has_arrived)
        .await
        .map(drop)
}
