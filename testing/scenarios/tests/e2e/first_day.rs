//! Test of docs/start/first-day.md: it runs the commands of the page in order, on real API servers and on the sandbox.
//! It does the work of kubelets: it starts the agents with the settings that the charts render, and makes the
//! EndpointSlices of pods.

use crate::install::{commands, kubeconfig};
use anyhow::{Context as _, bail, ensure};
use fleetnet_api::crd::MemberAgent;
use fleetnet_api::names::GROUP;
use harness::control_plane::{ADMIN, ControlPlane, Options};
use harness::eventually::{self, Deadline};
use harness::helm::Helm;
use harness::kubectl::Kubectl;
use harness::process::{Ended, Process, Spec};
use harness::turn::Turn;
use harness::user::User;
use harness::{binaries, deployment, run};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::WatchParams;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use tempfile::TempDir;

const PAGE: &str = "start/first-day.md";
const CLUSTERS: &str = "first_day::the_commands_of_the_page_lead_from_empty_clusters_to_a_member_that_leaves";
const SANDBOX: &str = "first_day::the_commands_of_the_page_work_on_the_sandbox";
/// Namespace and Service of the page.
const SHOP: &str = "shop";
const WEB: &str = "web";

async fn start(name: &str) -> anyhow::Result<ControlPlane> {
    let controllers = ["serviceaccount-token-controller", "namespace-controller", "garbage-collector-controller"];
    let controllers = controllers.map(str::to_owned).to_vec();
    ControlPlane::start(Options { name: name.to_owned(), controllers, ..Options::default() }).await
}

/// Creates the slice of the exposed Deployment. `kubectl expose` gives a single port no name.
async fn create_slice(user: &User) -> anyhow::Result<()> {
    user.create_slice(WEB, "web-1", &["10.11.0.1", "10.11.0.2"]).await?;
    let unnamed = json!({"ports": [{"name": "", "port": 8080, "protocol": "TCP"}]});
    user.merge::<EndpointSlice>("web-1", unnamed).await
}

/// Waits until the importer has sent a summary of its latencies to the hub.
async fn summary(hub: &ControlPlane, importer: &str) -> anyhow::Result<()> {
    let agents: Api<MemberAgent> = Api::namespaced(hub.admin(), &format!("fleet-member-{importer}"));
    let has_summary = |agents: &BTreeMap<String, MemberAgent>| {
        let mut summaries = agents.values().filter_map(|agent| agent.spec.latency.as_ref());
        summaries.any(|summary| summary.origins.iter().any(|origin| origin.cluster == "west" && origin.count > 0))
    };
    eventually::objects(&agents, &WatchParams::default(), "a summary of latencies from west", has_summary)
        .await
        .map(drop)
}

/// Waits until no object in the hub names a member that has left. Latency summaries may name it for five minutes more.
async fn no_object_names(kubectl: &Kubectl, member: &str) -> anyhow::Result<()> {
    let fleet = [
        "serviceimports",
        "internalserviceexports",
        "internalserviceimports",
        "endpointsliceexports",
        "endpointsliceimports",
    ];
    let mut kinds: Vec<String> = fleet.map(|kind| format!("{kind}.{GROUP}")).into();
    kinds.extend(["namespaces", "rolebindings", "clusterrolebindings"].map(str::to_owned));
    let deadline = Deadline::start();
    loop {
        let objects = kubectl.print(&format!("--context hub get {} -A -o json", kinds.join(","))).await?;
        if !objects.contains(member) {
            return Ok(());
        }
        deadline.pause(|| format!("objects in the hub name {member}: {objects}")).await?;
    }
}

#[test]
fn the_commands_of_the_page_lead_from_empty_clusters_to_a_member_that_leaves() -> anyhow::Result<()> {
    run(async {
        let _turn = Turn::with_own_servers().await;
        let (hub, west, east) = futures::future::try_join3(start("hub"), start("west"), start("east")).await?;
        let folder = TempDir::with_prefix("fleetnet-first-day-")?;
        let clusters = [("west", &west), ("east", &east), ("hub", &hub)];
        fs::write(folder.path().join("kubeconfig"), kubeconfig(&clusters).await?)?;
        let kubectl = Kubectl::with(folder.path().join("kubeconfig")).await?.and_helm(&Helm::find().await?);
        let kubectl = kubectl.and_cli(&binaries::find("fleetnet").await?);
        // The page sets this variable for clusters of kind, or lets the user set it.
        let hub_url = hub.access(ADMIN).await?.server_url;
        let play = async |block: &str| {
            let script = format!("hub_url={hub_url}\n{block}");
            kubectl.script(&script).await.with_context(|| format!("{}\n{}\n{}", hub.tail(), west.tail(), east.tail()))
        };
        let blocks = commands(CLUSTERS, PAGE, "sh")?;
        let [install_hub, join, status, export, view, change, latency, fault, repair, leave] = &blocks[..] else {
            bail!("ten blocks, not {blocks:#?}")
        };

        play(install_hub).await?;
        let hub_agent = deployment::run(&hub, "hub-agent", folder.path()).await?;
        let joined = play(join).await?;
        ensure!(joined.contains("ServiceAccount/fleet-member-west/member-agent"), "{joined}");
        let west_agent = deployment::run(&west, "member-agent", folder.path()).await?;
        let east_agent = deployment::run(&east, "member-agent", folder.path()).await?;
        let shown = play(status).await?;
        for member in ["west", "east"] {
            ensure!(shown.lines().any(|line| line.starts_with(member) && line.contains("Ready")), "{shown}");
        }
        let shown = play("kubectl fleetnet status --hub-context hub -o name").await?;
        ensure!(shown.contains("west"), "{shown}");

        play(export).await?;
        let user = User::new(west.admin(), SHOP);
        create_slice(&user).await?;
        let importer = User::new(east.admin(), SHOP);
        importer.sees(WEB, &["10.11.0.1", "10.11.0.2"]).await?;
        let shown = play(view).await?;
        ensure!(shown.contains("west → east: ok") && shown.contains("shop-web"), "{shown}");

        play(change).await?;
        for number in 3..9 {
            let addresses = ["10.11.0.1", &format!("10.11.0.{number}")];
            user.set_endpoints("web-1", &addresses).await?;
            importer.sees(WEB, &addresses).await?;
        }
        summary(&hub, "east").await?;
        let shown = play(latency).await?;
        ensure!(shown.lines().any(|line| line.starts_with("west") && line.contains("ms / ")), "{shown}");

        let shown = play(fault).await?;
        ensure!(shown.contains("west → east: FN305") && shown.ends_with("exit code 1\n"), "{shown}");
        let shown = play(repair).await?;
        ensure!(shown.contains("west → east: ok"), "{shown}");

        // The agent of west runs until its member has left. After `helm uninstall`, a kubelet would stop it.
        let shown = play(leave).await?;
        ensure!(!shown.lines().any(|line| line.starts_with("west ")), "{shown}");
        ensure!(shown.lines().any(|line| line.starts_with("east") && line.contains("Ready")), "{shown}");
        eventually::gone(&Api::<Namespace>::all(hub.admin()), "fleet-member-west").await?;
        no_object_names(&kubectl, "west").await?;
        importer.sees_no_slice(WEB).await?;
        west_agent.kill().await?;
        for agent in [east_agent, hub_agent] {
            ensure!(agent.terminate().await? == Ended::Exited(0), "{}", agent.log().tail());
        }
        Ok(())
    })
}

#[test]
fn the_commands_of_the_page_work_on_the_sandbox() -> anyhow::Result<()> {
    run(async {
        let folder = TempDir::with_prefix("fleetnet-first-day-")?;
        let start = commands(SANDBOX, PAGE, "console")?;
        let [start] = &start[..] else { bail!("one command that starts the sandbox, not {start:?}") };
        let arguments =
            start.trim().strip_prefix("cargo run --release -p fleetnet -- ").context("the README's command")?;
        let at = folder.path().join("clusters");
        let arguments =
            arguments.split(' ').map(|word| if word == "clusters" { at.clone().into() } else { word.into() });
        let program = binaries::find("fleetnet").await?;
        let sandbox = Process::start(Spec {
            name: "fleetnet sandbox".to_owned(),
            file: program.clone(),
            arguments: arguments.chain(["--json".into()]).collect(),
            environment: Vec::new(),
            scratch: None,
        });
        let sandbox = sandbox.await?;
        let change = |line: &str| line.contains(r#""event":"change""#).then_some(());
        sandbox.log().find("a change", change).await?;
        let kubectl = Kubectl::with(at.join("hub.kubeconfig")).await?.and_cli(&program);
        let [commands] = &commands(SANDBOX, PAGE, "sh")?[..] else { bail!("one block") };
        let shown = kubectl.script(&format!("cd {}\n{commands}", folder.path().display())).await?;
        ensure!(shown.contains("member-2 → member-1: FN305") && shown.contains("exit code 1\n"), "{shown}");
        ensure!(shown.contains("member-1, member-2 → member-1, member-2: ok, 4 pairs"), "{shown}");
        sandbox.end().await
    })
}
