//! Tests of two clusters with one cluster id, on real API servers with agents in separate processes. One cluster's
//! agent writes to the hub. The second agent waits, and takes over when it may. The tests on memkube cover all ways to
//! take over and the long waits.

use crate::install::{commands, kubeconfig};
use anyhow::{Context as _, bail, ensure};
use harness::agent::{Agent, AgentSpec};
use harness::eventually::Deadline;
use harness::fleet::{Fleet, Member};
use harness::kubectl::Kubectl;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::{Event, Namespace};
use kube::Api;
use kube::api::ListParams;
use std::fs;
use tempfile::TempDir;

async fn uid(member: &Member) -> anyhow::Result<String> {
    let namespaces: Api<Namespace> = Api::all(member.control_plane.admin());
    namespaces.get("kube-system").await?.metadata.uid.context("it has a UID")
}

/// Name of this test in the info strings of docs/how-to/members.md.
const GUIDE: &str = "identity::of_two_clusters_with_one_id_the_second_waits_reports_why_and_takes_over_by_command_and_after_an_announced_stop";

/// Commands of docs/how-to/members.md for two clusters with one cluster id. The test runs these commands.
struct Guide {
    kubectl: Kubectl,
    member: String,
    looks: String,
    takes_over: String,
    _folder: TempDir,
}

impl Guide {
    /// Returns the guide's commands for a member. [`Self::run`] replaces `west`, the cluster id in the guide, by the
    /// member's id.
    async fn about(fleet: &Fleet, member: &Member) -> anyhow::Result<Self> {
        let [looks, takes_over] = &commands(GUIDE, "how-to/members.md", "console")?[..] else { bail!("two blocks") };
        let folder = TempDir::with_prefix("fleetnet-identity-")?;
        let file = folder.path().join("kubeconfig");
        fs::write(&file, kubeconfig(&[("hub", &fleet.hub), (&member.cluster_id, &member.control_plane)]).await?)?;
        let (kubectl, member) = (Kubectl::with(file).await?, member.cluster_id.clone());
        Ok(Self { kubectl, member, looks: looks.clone(), takes_over: takes_over.clone(), _folder: folder })
    }

    async fn run(&self, commands: &str) -> anyhow::Result<String> {
        self.kubectl.script(&commands.replace("west", &self.member)).await
    }

    /// Runs the guide's command that shows the UIDs of the member's cluster and of the owner.
    async fn uids(&self) -> anyhow::Result<String> {
        self.run(&self.looks).await
    }

    async fn hand_over_to(&self, uid: &str) -> anyhow::Result<String> {
        self.run(&self.takes_over.replace("<UID>", uid)).await
    }
}

/// Returns the command in the message of the Event about two clusters with one cluster id.
async fn command_of_the_event(in_default: &User) -> anyhow::Result<String> {
    let events = in_default.api::<Event>().list(&ListParams::default()).await?;
    let found = events.items.into_iter().find(|event| event.reason.as_deref() == Some("ClusterIdInUse"));
    let message = found.and_then(|event| event.message).context("the Event has a message")?;
    let (_, command) = message.split_once("in the hub: ").with_context(|| message.clone())?;
    Ok(command.to_owned())
}

/// Gives an agent a Lease of 120 s, so that the Lease does not expire while the test freezes the agent.
fn with_a_long_lease(agent: AgentSpec) -> AgentSpec {
    let agent = agent.flag("--leader-election-lease-duration", "120s").flag("--leader-election-renew-deadline", "100s");
    agent.flag("--leader-election-retry-period", "10s")
}

/// Waits until an agent is not ready because another cluster owns its id. Anybody can read this reason, so it has no
/// UIDs.
async fn is_blocked(agent: &Agent, uids: [&str; 2]) -> anyhow::Result<()> {
    let deadline = Deadline::start();
    loop {
        let (status, body) = agent.get("/readyz").await?;
        if status != 200 && body.contains("another cluster owns the id of this cluster") {
            ensure!(uids.iter().all(|uid| !body.contains(uid)), "it shows UIDs: {body}");
            return Ok(());
        }
        deadline.pause(|| format!("{status} {body}\n{}", agent.log().tail())).await?;
    }
}

#[test]
fn of_two_clusters_with_one_id_the_second_waits_reports_why_and_takes_over_by_command_and_after_an_announced_stop()
-> anyhow::Result<()> {
    harness::run(async {
        let mut fleet = Fleet::take(3).await?;
        let (id, namespace, user) = {
            let first = &fleet.members[0];
            (first.cluster_id.clone(), first.hub_namespace.clone(), first.hub_user.clone())
        };
        let second = &mut fleet.members[2];
        (second.cluster_id, second.hub_namespace, second.hub_user) = (id.clone(), namespace, user.clone());
        let work = fleet.namespace("work").await?;
        let [first, other, second] = &fleet.members[..] else { anyhow::bail!("three members") };
        let users = [first, other, second].map(|member| User::new(member.control_plane.admin(), &work));
        let (of_first, of_second) = (uid(first).await?, uid(second).await?);

        // At first the second cluster owns the cluster id, and imports `db`.
        let _hub = fleet.hub_agent().await?.start_ready().await?;
        let _other = fleet.member_agent(other).await?.start_ready().await?;
        let before = fleet.member_agent(second).await?.start_ready().await?;
        users[1].export_new("db", &["10.2.0.1"]).await?;
        users[2].import("db", "db", Consume::ClusterIp).await?;
        users[2].sees("db", &["10.2.0.1"]).await?;
        before.terminate().await?;
        users[2].export_new("app", &["10.9.0.1"]).await?;
        let guide = Guide::about(&fleet, second).await?;
        guide.hand_over_to(&of_first).await?;
        ensure!(guide.uids().await? == format!("{of_second}{of_first}"), "{of_second} looks, {of_first} owns");
        let owner = with_a_long_lease(fleet.member_agent(first).await?).start_ready().await?;
        users[0].export_new("app", &["10.1.0.1"]).await?;
        users[1].import("app", "app", Consume::ClusterIp).await?;
        users[1].sees("app", &["10.1.0.1"]).await?;

        // The second cluster's agent must write nothing to the hub. Freeze the owner's agent, so that any write with
        // their common user name comes from the second agent.
        owner.freeze().await?;
        let mark = fleet.hub.audit().mark().await?;
        let waiting = fleet.member_agent(second).await?.start().await?;
        let remedy =
            format!("patch memberagent {id} --type=merge -p '{{\"spec\":{{\"clusterUid\":\"{of_second}\"}}}}'");
        let why = [&*of_first, &*of_second, &*remedy];
        is_blocked(&waiting, [&of_first, &of_second]).await?;
        users[2].set_endpoints("app-1", &["10.9.0.2"]).await?;
        users[2].delete::<fleetnet_api::crd::MultiClusterService>("db").await?;
        let has_reason = |line: &str| {
            let line = line.replace("\\\"", "\"");
            (line.contains("ClusterIdInUse") && why.iter().all(|part| line.contains(part))).then_some(())
        };
        waiting.log().find("why it waits", has_reason).await?;
        let in_default = User::new(second.control_plane.admin(), "default");
        let events = in_default.sees_event("Namespace", "ClusterIdInUse", &remedy).await?;
        ensure!(events == 1, "{events} Events");
        let written = fleet.hub.audit().since(mark).await?.of_user(&user);
        ensure!(written.count() == 0, "the second wrote in the hub:\n{written}");
        users[2].sees("db", &["10.2.0.1"]).await.context("it removes nothing that it imported")?;
        owner.thaw().await?;

        // The command in the Event has no `--context`, so the hub must be the current context.
        let in_hub = Kubectl::with(fleet.hub.admin_kubeconfig()?).await?;
        in_hub.script(&command_of_the_event(&in_default).await?).await?;
        users[1].sees("app", &["10.9.0.2"]).await?;
        waiting.ready().await?;
        is_blocked(&owner, [&of_first, &of_second]).await?;

        // Now the second cluster owns the cluster id. Stop its agent: 30 s after this agent has announced its stop, the
        // first cluster takes over.
        waiting.terminate().await?;
        users[1].sees("app", &["10.1.0.1"]).await?;
        owner.ready().await
    })
}
