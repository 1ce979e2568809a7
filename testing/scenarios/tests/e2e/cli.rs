//! Test of the command line on real API servers: what `join` prints and applies, tokens that do not expire, `status`,
//! `gather`, and `leave --force` for a member whose agent does not run.

use crate::install::kubeconfig;
use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use harness::control_plane::ControlPlane;
use harness::fleet::{FLEET_SYSTEM, start_hub, start_member};
use harness::kubectl::Kubectl;
use harness::process::Ended;
use harness::turn::Turn;
use harness::{binaries, deployment, eventually};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, ResourceQuota, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;
use tokio::process::Command;

/// The command line with the kubeconfig of all clusters. The hub is the current context.
struct Cli {
    folder: TempDir,
    binary: PathBuf,
}

impl Cli {
    async fn of(clusters: &[(&str, &ControlPlane)]) -> anyhow::Result<Self> {
        let folder = TempDir::with_prefix("fleetnet-cli-")?;
        fs::write(folder.path().join("kubeconfig"), kubeconfig(clusters).await?)?;
        Ok(Self { folder, binary: binaries::find("fleetnet").await? })
    }

    /// Runs a command, which must end with the exit code 0. Returns its JSON.
    async fn json(&self, arguments: &str) -> anyhow::Result<Value> {
        let mut command = Command::new(&self.binary);
        command.args(arguments.split_whitespace()).args(["--hub-context", "hub", "-o", "json"]);
        command.env_clear().env("KUBECONFIG", self.folder.path().join("kubeconfig")).current_dir(self.folder.path());
        let output = command.kill_on_drop(true).output().await?;
        let (out, err) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        ensure!(output.status.success(), "fleetnet {arguments}: {:?}: {out}{err}", output.status.code());
        serde_json::from_str(&out).with_context(|| format!("fleetnet {arguments}: {out}"))
    }
}

/// Returns the distinct actions of a command that changes objects.
fn actions(changes: &Value) -> Vec<&str> {
    let objects = changes["objects"].as_array().into_iter().flatten();
    let mut actions: Vec<&str> = objects.filter_map(|object| object["action"].as_str()).collect();
    actions.sort_unstable();
    actions.dedup();
    actions
}

/// Gives the Deployment of a member agent the id of its member.
async fn name(cluster: &ControlPlane, id: &str) -> anyhow::Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(cluster.admin(), FLEET_SYSTEM);
    let container = json!({"name": "member-agent", "env": [{"name": "MEMBER_CLUSTER_NAME", "value": id}]});
    let patch = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
    deployments.patch("member-agent", &PatchParams::default(), &Patch::Strategic(&patch)).await?;
    Ok(())
}

#[test]
fn members_join_show_their_state_and_leave() -> anyhow::Result<()> {
    harness::run(async {
        let _turn = Turn::with_own_servers().await;
        let members = futures::future::try_join(start_member(0), start_member(1));
        let (hub, (west, east)) = futures::future::try_join(start_hub(), members).await?;
        let cli = Cli::of(&[("hub", &hub), ("west", &west), ("east", &east)]).await?;
        let hub_agent = deployment::run(&hub, "hub-agent", cli.folder.path()).await?;

        printed_commands_join_a_member(&cli, &west).await?;
        let joined = cli.json("join west --apply --context west").await?;
        ensure!(actions(&joined) == ["created", "unchanged"], "{joined}");
        let again = cli.json("join west --apply --context west").await?;
        ensure!(actions(&again) == ["unchanged"], "a real server returns 5k for 5000: {again}");
        let quotas: Api<ResourceQuota> = Api::namespaced(hub.admin(), "fleet-member-west");
        let raised = json!({"spec": {"hard": {"count/endpointsliceexports.networking.fleet.azure.com": "20k"}}});
        quotas.patch("fleetnet-member-agent", &PatchParams::default(), &Patch::Merge(&raised)).await?;
        let kept = cli.json("join west --apply").await?;
        ensure!(actions(&kept) == ["kept", "unchanged"], "{kept}");
        a_token_that_does_not_expire(&cli, &hub, &west).await?;

        name(&west, "west").await?;
        name(&east, "east").await?;
        let west_agent = deployment::run(&west, "member-agent", cli.folder.path()).await?;
        cli.json("join east --apply --context east").await?;
        let east_agent = deployment::run(&east, "member-agent", cli.folder.path()).await?;
        cli.json("join east --apply --context east --wait=60s").await?;
        ensure!(cli.json("status --wait=60s").await?["members"].as_array().is_some_and(|members| members.len() == 2));

        let gathered = cli.json("gather").await?;
        ensure!(gathered["clusters"].as_array().is_some_and(|clusters| clusters.len() == 3), "{gathered}");
        west_agent.kill().await?;
        let left = cli.json("leave west --force --yes").await?;
        ensure!(actions(&left) == ["deleted"], "{left}");
        eventually::gone(&Api::<Namespace>::all(hub.admin()), "fleet-member-west").await?;
        for agent in [east_agent, hub_agent] {
            ensure!(agent.terminate().await? == Ended::Exited(0), "{}", agent.log().tail());
        }
        Ok(())
    })
}

/// Runs the manifests and commands that join prints without `--apply`. Then `--apply` finds nothing to do.
async fn printed_commands_join_a_member(cli: &Cli, west: &ControlPlane) -> anyhow::Result<()> {
    let kubectl = Kubectl::with(cli.folder.path().join("kubeconfig")).await?;
    let join = format!("{} join north --hub-context hub --context west", cli.binary.display());
    let script = format!(
        "{join} | kubectl --context hub apply -f -\n{join} --print member > commands\ntest -s commands\n. ./commands\n"
    );
    kubectl.script(&format!("cd {}\n{script}", cli.folder.path().display())).await?;
    let applied = cli.json("join north --apply --context west").await?;
    ensure!(actions(&applied) == ["unchanged"], "{applied}");
    let left = cli.json("leave north --force --yes").await?;
    ensure!(actions(&left) == ["deleted"], "{left}");
    let secrets: Api<Secret> = Api::namespaced(west.admin(), FLEET_SYSTEM);
    secrets.delete("fleetnet-hub", &DeleteParams::default()).await?;
    Ok(())
}

/// A token that does not expire replaces one that does, and stays, until a token that expires is asked for.
async fn a_token_that_does_not_expire(cli: &Cli, hub: &ControlPlane, west: &ControlPlane) -> anyhow::Result<()> {
    let _controller = hub.start_controller_manager(&["serviceaccount-token-controller"], &[]).await?;
    let secrets: Api<Secret> = Api::namespaced(west.admin(), FLEET_SYSTEM);
    let claims = async || {
        let token = secrets.get("fleetnet-hub").await?.data.context("the Secret has keys")?.remove("token");
        let token = String::from_utf8(token.context("the Secret has a token")?.0)?;
        let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).context("it is a JWT")?)?;
        anyhow::Ok(serde_json::from_slice::<Value>(&payload)?)
    };
    ensure!(claims().await?["exp"].is_i64(), "the first token expires");
    let unlimited = cli.json("join west --apply --context west --token-ttl none").await?;
    ensure!(actions(&unlimited) == ["created", "kept", "unchanged", "updated"], "{unlimited}");
    ensure!(claims().await?["exp"].is_null(), "the second does not");
    let again = cli.json("join west --apply --context west").await?;
    ensure!(actions(&again) == ["kept", "unchanged"], "{again}");
    let limited = cli.json("join west --apply --context west --token-ttl 24h").await?;
    ensure!(actions(&limited) == ["kept", "unchanged", "updated"], "{limited}");
    ensure!(claims().await?["exp"].is_i64(), "the third expires");
    Ok(())
}
