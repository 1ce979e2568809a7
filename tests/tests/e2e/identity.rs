//! Two clusters with one id, on real API servers with agents in processes of their own: one acts in the hub, the other waits
//! and takes over when it may. (On memkube: every way to take over, and the long silences.)

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::MemberAgent;
use fleetnet_tests::agent::Agent;
use fleetnet_tests::eventually::Deadline;
use fleetnet_tests::fleet::{Fleet, Member};
use fleetnet_tests::limits::POLL;
use fleetnet_tests::user::{Consume, User};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::json;
use tokio::time::sleep;

async fn exports(user: &User, name: &str, address: &str) -> anyhow::Result<()> {
    user.create_service(name).await?;
    user.create_slice(name, &format!("{name}-1"), &[address]).await?;
    user.export(name).await.map(drop)
}

async fn uid(member: &Member) -> anyhow::Result<String> {
    let namespaces: Api<Namespace> = Api::all(member.control_plane.admin());
    namespaces.get("kube-system").await?.metadata.uid.context("it has a UID")
}

/// The command of docs/install.md.
async fn hand_over(fleet: &Fleet, to: &Member) -> anyhow::Result<()> {
    let in_hub = User::new(fleet.hub.admin(), &to.hub_namespace);
    in_hub.merge::<MemberAgent>(&to.cluster_id, json!({"spec": {"clusterUid": uid(to).await?}})).await
}

/// Waits until an agent is not ready and says why with all of these words.
async fn is_blocked(agent: &Agent, why: &[&str]) -> anyhow::Result<()> {
    let deadline = Deadline::start();
    loop {
        let (status, body) = agent.get("/readyz").await?;
        if status != 200 && why.iter().all(|part| body.contains(part)) {
            return Ok(());
        }
        deadline.check().with_context(|| format!("{status} {body}\n{}", agent.log().tail()))?;
        sleep(POLL).await;
    }
}

#[test]
fn of_two_clusters_with_one_id_the_second_waits_says_why_and_takes_over_by_command_and_after_an_announced_stop()
-> anyhow::Result<()> {
    fleetnet_tests::run(async {
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

        // The second owned the id before, and imported `db`.
        let _hub = fleet.hub_agent().await?.start_ready().await?;
        let _other = fleet.member_agent(other).await?.start_ready().await?;
        let before = fleet.member_agent(second).await?.start_ready().await?;
        exports(&users[1], "db", "10.2.0.1").await?;
        users[2].import("db", "db", Consume::ClusterIp).await?;
        users[2].sees("db", &["10.2.0.1"]).await?;
        before.terminate().await?;
        exports(&users[2], "app", "10.9.0.1").await?;
        hand_over(&fleet, first).await?;
        let owner = fleet.member_agent(first).await?.start_ready().await?;
        exports(&users[0], "app", "10.1.0.1").await?;
        users[1].import("app", "app", Consume::ClusterIp).await?;
        users[1].sees("app", &["10.1.0.1"]).await?;

        // It writes nothing in the hub: while the owner is frozen, all that is written in their name is the second's.
        owner.freeze().await?;
        let mark = fleet.hub.audit().mark().await?;
        let waiting = fleet.member_agent(second).await?.start().await?;
        let remedy =
            format!("patch memberagent {id} --type=merge -p '{{\"spec\":{{\"clusterUid\":\"{of_second}\"}}}}'");
        let why = [&*of_first, &*of_second, &*remedy];
        is_blocked(&waiting, &why).await?;
        users[2].set_endpoints("app-1", &["10.9.0.2"]).await?;
        users[2].delete::<fleetnet_api::crd::MultiClusterService>("db").await?;
        let says_why = |line: &str| {
            let line = line.replace("\\\"", "\"");
            (line.contains("ClusterIdInUse") && why.iter().all(|part| line.contains(part))).then_some(())
        };
        waiting.log().find("why it waits", says_why).await?;
        let in_default = User::new(second.control_plane.admin(), "default");
        let told = in_default.is_told("Namespace", "ClusterIdInUse", &remedy).await?;
        ensure!(told == 1, "{told} Events");
        let written = fleet.hub.audit().since(mark).await?.of_user(&user);
        ensure!(written.count() == 0, "the second wrote in the hub:\n{written}");
        users[2].sees("db", &["10.2.0.1"]).await.context("it removes nothing that it imported")?;
        owner.thaw().await?;

        hand_over(&fleet, second).await?;
        users[1].sees("app", &["10.9.0.2"]).await?;
        waiting.ready().await?;
        is_blocked(&owner, &[&of_first, &of_second]).await?;

        // Half a minute after an announced stop the other acts.
        waiting.terminate().await?;
        users[1].sees("app", &["10.1.0.1"]).await?;
        owner.ready().await
    })
}
