//! Tests of members that a fleet manager defines, and of members that are lost for good, on real control planes.
//! `membership_on_memkube` checks times and writes.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::{EndpointSliceExport, MultiClusterService, ServiceExport};
use fleetnet_api::crds::yaml;
use harness::eventually::{self, Deadline};
use harness::fleet::{Fleet, manifests};
use harness::kubectl::Kubectl;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sim::manager::{self, Manager};

/// Entry of the fleet's own agent, which the agents must keep.
fn entry_of_another_agent() -> Value {
    json!({ "type": "MemberAgent", "conditions": [{ "type": "Healthy", "status": "True" }] })
}

/// Starts a fleet with the kinds of a fleet manager, and the rights for them.
async fn managed(members: usize) -> anyhow::Result<(Fleet, Manager)> {
    let fleet = Fleet::own(members).await?;
    fleet.hub.apply_definitions(&manager::definitions().map(|definition| yaml(&definition))).await?;
    for member in &fleet.members {
        manifests::apply(&fleet.hub, &manifests::of_managed_member(&member.cluster_id)).await?;
        manifests::apply(&member.control_plane, manifests::FLEET_MANAGER_MEMBER).await?;
    }
    let manager = Manager::new(fleet.hub.admin());
    Ok((fleet, manager))
}

/// Membership of a member whose other agent has an entry, too.
struct Membership<'a> {
    manager: &'a Manager,
    cluster_id: &'a str,
}

impl<'a> Membership<'a> {
    async fn create(manager: &'a Manager, cluster_id: &'a str) -> anyhow::Result<Self> {
        manager.admit(cluster_id, 1).await?;
        let status = Patch::Merge(json!({ "status": { "agentStatus": [entry_of_another_agent()] } }));
        manager.memberships(cluster_id).patch_status(cluster_id, &PatchParams::default(), &status).await?;
        Ok(Self { manager, cluster_id })
    }

    /// Waits until both agents have answered this, and returns the time of their last heartbeat.
    async fn answered(&self, status: &str, reason: &str) -> anyhow::Result<String> {
        let deadline = Deadline::start();
        loop {
            let found = self.manager.membership(self.cluster_id).await?.context("an InternalMemberCluster")?;
            let (agents, generation) = (&found.data["status"]["agentStatus"], found.metadata.generation);
            let is_answered = |agent: &Value| {
                let joined = &agent["conditions"][0];
                (&joined["type"], &joined["status"], &joined["reason"])
                    == (&json!("Joined"), &json!(status), &json!(reason))
                    && joined["observedGeneration"].as_i64() == generation
            };
            let [other, agents @ ..] = &agents.as_array().context("the entries of agents")?[..] else {
                anyhow::bail!("an entry is missing: {found:?}")
            };
            ensure!(*other == entry_of_another_agent(), "another agent's entry is now {other}");
            let types: Vec<&Value> = agents.iter().map(|agent| &agent["type"]).collect();
            if types == ["ServiceExportImportAgent", "MultiClusterServiceAgent"] && agents.iter().all(is_answered) {
                return Ok(agents[0]["lastReceivedHeartbeat"].as_str().context("a heartbeat")?.to_owned());
            }
            deadline.pause(|| format!("both agents do not answer {status} {reason}: {found:?}")).await?;
        }
    }
}

/// Exports and imports the Service `app` in each of two members.
async fn export_and_import(users: &[User; 2]) -> anyhow::Result<()> {
    for (user, address) in users.iter().zip(["10.1.0.1", "10.2.0.1"]) {
        user.export_new("app", &[address]).await?;
        user.import("app", "app", Consume::ClusterIp).await?;
    }
    for user in users {
        user.sees("app", &["10.1.0.1", "10.2.0.1"]).await?;
    }
    Ok(())
}

async fn users(fleet: &Fleet) -> anyhow::Result<[User; 2]> {
    let namespace = fleet.namespace("membership").await?;
    Ok([0, 1].map(|index: usize| User::new(fleet.members[index].control_plane.admin(), &namespace)))
}

/// Also rules O10, O11.
#[test]
fn a_manager_lets_a_member_join_and_leave() -> anyhow::Result<()> {
    harness::run(async {
        let (fleet, manager) = managed(2).await?;
        let membership = Membership::create(&manager, &fleet.members[0].cluster_id).await?;
        let users = users(&fleet).await?;
        let _hub_agent = fleet.hub_agent().await?.start_ready().await?;
        let _first = fleet.member_agent(&fleet.members[0]).await?.start_ready().await?;
        let _second = fleet.member_agent(&fleet.members[1]).await?.start_ready().await?;
        export_and_import(&users).await?;
        let first = membership.answered("True", "AgentJoined").await?;
        let deadline = Deadline::start();
        while membership.answered("True", "AgentJoined").await? == first {
            deadline.pause(|| "there is no second heartbeat").await?;
        }

        manager.ask(membership.cluster_id, "Leave").await?;
        membership.answered("False", "AgentLeft").await?;
        eventually::gone(&users[0].api::<ServiceExport>(), "app").await?;
        eventually::gone(&users[0].api::<MultiClusterService>(), "app").await?;
        users[0].no_derived_service("app").await?;
        users[0].sees_no_slice("app").await?;
        users[1].sees("app", &["10.2.0.1"]).await?;
        let exports: Api<EndpointSliceExport> = Api::namespaced(fleet.hub.admin(), &fleet.members[0].hub_namespace);
        eventually::objects(&exports, &Default::default(), "no exported slice", |all| all.is_empty()).await?;
        Ok(())
    })
}

/// Also rule A14.
#[test]
fn an_agent_without_features_joins_and_leaves_with_the_shipped_roles_and_deletes_nothing() -> anyhow::Result<()> {
    harness::run(async {
        let (fleet, manager) = managed(1).await?;
        let membership = Membership::create(&manager, &fleet.members[0].cluster_id).await?;
        let namespace = fleet.namespace("membership").await?;
        let user = User::new(fleet.members[0].control_plane.admin(), &namespace);
        user.export("app").await?;
        let agent = fleet.member_agent(&fleet.members[0]).await?.flag("--enable-networking-features", "false");
        let _agent = agent.start_ready().await?;
        membership.answered("True", "AgentJoined").await?;
        manager.ask(membership.cluster_id, "Leave").await?;
        membership.answered("False", "AgentLeft").await?;
        let export = user.api::<ServiceExport>().get("app").await?;
        ensure!(export.metadata.deletion_timestamp.is_none() && export.status.is_none(), "{export:?}");
        Ok(())
    })
}

/// Also rule O13.
#[test]
fn a_member_that_is_lost_for_good_is_removed() -> anyhow::Result<()> {
    harness::run(async {
        let (fleet, manager) = managed(2).await?;
        let (hub, lost) = (fleet.hub.admin(), &fleet.members[1]);
        manager.admit(&lost.cluster_id, 1).await?;
        let users = users(&fleet).await?;
        let hub_agent = fleet.hub_agent().await?.flag("--force-delete-wait-time", "2s");
        let _hub_agent = hub_agent.start_ready().await?;
        let _member = fleet.member_agent(&fleet.members[0]).await?.start_ready().await?;
        let agent = fleet.member_agent(lost).await?.start_ready().await?;
        export_and_import(&users).await?;
        agent.kill().await?;

        manager.dismiss(&lost.cluster_id).await?;
        let kubectl = Kubectl::with(fleet.hub.admin_kubeconfig()?).await?;
        kubectl.print(&format!("delete namespace {} --wait=false", lost.hub_namespace)).await?;
        eventually::gone(&Api::<Namespace>::all(hub), &lost.hub_namespace).await?;
        users[0].sees("app", &["10.1.0.1"]).await?;
        users[1].sees("app", &["10.1.0.1", "10.2.0.1"]).await?;
        Ok(())
    })
}
