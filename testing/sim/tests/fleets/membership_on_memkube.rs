//! Tests of members that a fleet manager defines, on paused time and with the real engine.
//! `testing/scenarios/tests/e2e/membership.rs` plays them with processes and real control planes.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::mcs::ServiceImport as McsServiceImport;
use fleetnet_api::crd::{EndpointSliceImport, MemberAgent, MultiClusterService, ServiceExport};
use fleetnet_api::decode::decode;
use fleetnet_core::member::{McsApi, Membership, OnLeave};
use fleetnet_core::model::{AgentStatus, Kind, MembershipAgent, Object};
use harness::eventually;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use sim::fleet::Place;
use sim::manager::Manager;
use sim::server::ADMIN;
use sim::{Fleet, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::sleep;

/// Period of the heartbeats, in seconds.
const PERIOD: u32 = 60;
const FORCE_DELETE: Duration = Duration::from_mins(2);
/// Addresses of the members that use the standard API.
const BOTH: [&str; 2] = ["member-1 10.1.0.1", "member-2 10.2.0.1"];

async fn fleet(members: usize, membership: Membership) -> anyhow::Result<(Fleet, Manager, Vec<User>)> {
    fleet_with(Options { membership, ..Options::members(members) }).await
}

async fn fleet_with(options: Options) -> anyhow::Result<(Fleet, Manager, Vec<User>)> {
    let force_delete = Some(FORCE_DELETE);
    let fleet = Fleet::new(Options { force_delete, ..options }).await?;
    let manager = Manager::new(fleet.hub.admin());
    manager.install().await?;
    for member in &fleet.members {
        manager.admit(&member.name, PERIOD).await?;
    }
    fleet.make_namespace("work").await?;
    let users = fleet.members.iter().map(|member| User::new(member.server.admin(), "work")).collect();
    Ok((fleet, manager, users))
}

fn of_all_agents(on_leave: OnLeave) -> Membership {
    Membership { agents: MembershipAgent::ALL.to_vec(), on_leave }
}

/// Returns a fleet with all agents, whose first member exports the Service `app`. All members import it.
async fn importing(members: usize, membership: Membership) -> anyhow::Result<(Fleet, Manager, Vec<User>)> {
    let (mut fleet, manager, users) = fleet(members, membership).await?;
    fleet.start_agents().await?;
    users[0].export_new("app", &["10.1.0.1"]).await?;
    for user in &users {
        user.import("app", "app", Consume::ClusterIp).await?;
        user.sees("app", &["10.1.0.1"]).await?;
    }
    Ok((fleet, manager, users))
}

/// Returns the answers of a member's agents: the type of each, the reason of its condition `Joined`, and whether it has
/// a heartbeat.
async fn answers(manager: &Manager, member: &str) -> anyhow::Result<Vec<(MembershipAgent, String, bool)>> {
    let found = manager.membership(member).await?.context("an InternalMemberCluster")?;
    let json = serde_json::to_vec(&found)?;
    let Ok(Object::InternalMemberCluster(found)) = decode(Kind::InternalMemberCluster, &json) else {
        anyhow::bail!("it does not decode")
    };
    let answer = |status: AgentStatus| match status {
        AgentStatus::Known { agent, joined, heartbeat } => {
            Some((agent, joined.map(|it| it.reason.to_string()).unwrap_or_default(), heartbeat.is_some()))
        }
        AgentStatus::Other(_) => None,
    };
    Ok(found.agents.into_iter().filter_map(answer).collect())
}

fn both(reason: &str, has_heartbeat: bool) -> Vec<(MembershipAgent, String, bool)> {
    MembershipAgent::ALL.into_iter().map(|agent| (agent, reason.to_owned(), has_heartbeat)).collect()
}

/// Returns how often agents wrote to each resource after the first `skipped` requests to each server, without Leases.
fn writes(fleet: &Fleet, skipped: &[usize]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for ((cluster, server), skipped) in fleet.servers().zip(skipped) {
        for entry in server.memkube().audit().entries.into_iter().skip(*skipped) {
            let target = &entry.call.target;
            if entry.call.verb.writes() && &*entry.call.user.name != ADMIN && &*target.resource != "leases" {
                let subresource = if target.subresource.is_empty() { "" } else { "/" };
                let at = format!(
                    "{cluster}: {} {}{subresource}{}",
                    entry.call.verb.name(),
                    target.resource,
                    target.subresource
                );
                *counts.entry(at).or_default() += 1;
            }
        }
    }
    counts
}

/// Restarts the hub agent if `is_restarted`, and checks that agents write nothing but the heartbeats of `living`
/// members for five minutes.
async fn writes_only_heartbeats(fleet: &mut Fleet, living: usize, is_restarted: bool) -> anyhow::Result<()> {
    let before: Vec<usize> = fleet.servers().map(|(_, server)| server.memkube().audit().entries.len()).collect();
    if is_restarted {
        fleet.kill(Place::Hub).await;
        fleet.start(Place::Hub)?;
    }
    sleep(Duration::from_mins(5)).await;
    let counts = writes(fleet, &before);
    let kinds: Vec<&str> = counts.keys().map(String::as_str).collect();
    ensure!(kinds == ["hub: patch internalmemberclusters/status", "hub: patch memberagents"], "{counts:?}");
    let counts: Vec<usize> = counts.into_values().collect();
    // The jitter of 5% moves the first or the last heartbeat into or out of the five minutes.
    ensure!((4 * living..=6 * living).contains(&counts[0]), "{} heartbeats for the manager", counts[0]);
    ensure!((29 * living..=34 * living).contains(&counts[1]), "{} renewals", counts[1]);
    Ok(())
}

/// Also rule O10.
#[test]
fn a_healthy_fleet_writes_heartbeats_only_also_after_a_restart_of_the_hub_agent() -> anyhow::Result<()> {
    sim::paused(async {
        let (mut fleet, manager, _) = importing(3, of_all_agents(OnLeave::Delete)).await?;
        sleep(Duration::from_mins(2)).await;
        for is_restarted in [false, true] {
            writes_only_heartbeats(&mut fleet, 3, is_restarted).await?;
        }
        for member in &fleet.members {
            ensure!(answers(&manager, &member.name).await? == both("AgentJoined", true));
        }
        Ok(())
    })
}

/// Also rule O14.
#[test]
fn beside_silent_members_a_restart_of_the_hub_agent_causes_no_write() -> anyhow::Result<()> {
    sim::paused(async {
        let (mut fleet, _, users) = importing(5, of_all_agents(OnLeave::Delete)).await?;
        let [withdrawn, draining] = [3, 4];
        for member in [withdrawn, draining] {
            users[member].export_new("app", &[&format!("10.{member}.0.1")]).await?;
        }
        sleep(Duration::from_mins(1)).await;
        fleet.kill(Place::Member(withdrawn)).await;
        sleep(Duration::from_mins(12)).await;
        fleet.kill(Place::Member(draining)).await;
        sleep(Duration::from_mins(2)).await;
        let agents: Api<MemberAgent> = Api::all(fleet.hub.admin());
        let phases: Vec<String> = agents
            .list(&ListParams::default())
            .await?
            .into_iter()
            .filter_map(|agent| Some(agent.status?.silence?.phase))
            .collect();
        ensure!(phases == ["Withdrawn", "Draining"], "{phases:?}");
        for is_restarted in [false, true] {
            writes_only_heartbeats(&mut fleet, 3, is_restarted).await?;
        }
        Ok(())
    })
}

/// Also rule A14.
#[test]
fn an_agent_without_features_needs_no_kind_of_services() -> anyhow::Result<()> {
    sim::paused(async {
        let (mut fleet, manager, users) = fleet(1, of_all_agents(OnLeave::Keep)).await?;
        users[0].export("app").await?;
        fleet.start(Place::Member(0))?;
        fleet.ready().await?;
        sleep(Duration::from_secs(5)).await;
        ensure!(answers(&manager, "member-1").await? == both("AgentJoined", true));
        manager.ask("member-1", "Leave").await?;
        sleep(Duration::from_secs(5)).await;
        ensure!(answers(&manager, "member-1").await? == both("AgentLeft", true));
        users[0].api::<ServiceExport>().get("app").await.context("the agent deletes nothing")?;
        let used: BTreeSet<String> = fleet
            .history()
            .into_iter()
            .filter(|entry| &*entry.call.user.name != ADMIN)
            .map(|entry| entry.call.target.resource.to_string())
            .collect();
        let expected = ["internalmemberclusters", "leases", "memberagents", "namespaces"];
        ensure!(used.iter().eq(&expected), "{used:?}");
        Ok(())
    })
}

/// Also rule A14.
#[test]
fn an_agent_that_does_not_follow_its_membership_neither_joins_nor_leaves() -> anyhow::Result<()> {
    sim::paused(async {
        let (fleet, manager, users) = importing(1, Membership::default()).await?;
        manager.ask("member-1", "Leave").await?;
        sleep(Duration::from_mins(2)).await;
        ensure!(answers(&manager, "member-1").await? == []);
        users[0].sees("app", &["10.1.0.1"]).await?;
        let asked = fleet.history().into_iter().filter(|entry| {
            &*entry.call.target.resource == "internalmemberclusters" && &*entry.call.user.name != ADMIN
        });
        ensure!(asked.count() == 0);
        Ok(())
    })
}

/// Returns a fleet of two members, both of which export and import the Service `app` by the standard API.
async fn importing_by_mcs_api() -> anyhow::Result<(Fleet, Manager, Vec<User>)> {
    let (membership, mcs_api) = (of_all_agents(OnLeave::Delete), McsApi::LabelledNamespaces);
    let options = Options { membership, mcs_api, ..Options::members(2) };
    let (mut fleet, manager, users) = fleet_with(options).await?;
    fleet.start_agents().await?;
    for (user, address) in users.iter().zip(["10.1.0.1", "10.2.0.1"]) {
        user.label_namespace(Some("true")).await?;
        user.serve("app", &[address]).await?;
        user.export_mcs("app", json!({})).await?;
    }
    for user in &users {
        user.sees_mcs_slices("app", &BOTH).await?;
        user.sees_ready_import("app", &["member-1", "member-2"]).await?;
    }
    Ok((fleet, manager, users))
}

/// Also rule O25.
#[test]
fn a_member_that_leaves_ends_the_mcs_api_too() -> anyhow::Result<()> {
    sim::paused(async {
        let (mut fleet, manager, users) = importing_by_mcs_api().await?;
        manager.ask("member-2", "Leave").await?;
        users[0].sees_mcs_slices("app", &["member-1 10.1.0.1"]).await?;
        users[1].sees_mcs_slices("app", &[]).await?;
        eventually::gone(&users[1].api::<McsServiceImport>(), "app").await?;
        let expected = ["Conflict=Unknown ServicePendingConflictResolution", "Ready=False Failed", "Valid=True Valid"];
        users[1].sees_conditions("app", &expected).await?;
        sleep(Duration::from_secs(5)).await;
        ensure!(answers(&manager, "member-2").await? == both("AgentLeft", true));
        let services: Api<Service> = Api::all(fleet.members[1].server.admin());
        let left: Vec<String> =
            services.list(&ListParams::default()).await?.iter().map(ResourceExt::name_any).collect();
        ensure!(!left.iter().any(|name| name.starts_with("derived-")), "{left:?}");

        // The agent that starts again waits, and changes nothing.
        fleet.kill(Place::Member(1)).await;
        fleet.start(Place::Member(1))?;
        fleet.ready().await?;
        sleep(Duration::from_mins(15)).await;
        users[1].sees_conditions("app", &expected).await?;
        manager.ask("member-2", "Join").await?;
        for user in &users {
            user.sees_mcs_slices("app", &BOTH).await?;
        }
        Ok(())
    })
}

/// Also rule O24.
#[test]
fn a_restored_request_to_leave_deletes_nothing_of_users() -> anyhow::Result<()> {
    sim::paused(async {
        let (mut fleet, manager, users) = importing(2, of_all_agents(OnLeave::Delete)).await?;
        sleep(Duration::from_secs(30)).await;
        // In the backup, member-2 is asked to leave. No agent of it has seen this.
        fleet.kill(Place::Member(1)).await;
        manager.ask("member-2", "Leave").await?;
        let backup = fleet.hub.memkube().backup();
        manager.ask("member-2", "Join").await?;
        fleet.start(Place::Member(1))?;
        sleep(Duration::from_mins(3)).await;
        fleet.hub.memkube().restore(&backup);
        sleep(Duration::from_mins(9)).await;
        let kept = || async {
            users[1].api::<MultiClusterService>().get("app").await.context("the user's object stays")?;
            users[1].sees("app", &["10.1.0.1"]).await
        };
        kept().await?;
        manager.ask("member-2", "Join").await?;
        sleep(Duration::from_mins(9)).await;
        kept().await?;
        ensure!(answers(&manager, "member-2").await? == both("AgentJoined", true));
        Ok(())
    })
}

/// Also rule O13.
#[test]
fn a_lost_member_has_the_time_of_force_delete_and_is_then_removed() -> anyhow::Result<()> {
    sim::paused(async {
        let (mut fleet, manager, users) = importing(2, of_all_agents(OnLeave::Delete)).await?;
        fleet.kill(Place::Member(1)).await;
        manager.dismiss("member-2").await?;
        let namespaces: Api<Namespace> = Api::all(fleet.hub.admin());
        namespaces.delete("fleet-member-member-2", &DeleteParams::default()).await?;
        sleep(FORCE_DELETE - Duration::from_secs(1)).await;
        let imports: Api<EndpointSliceImport> = Api::namespaced(fleet.hub.admin(), "fleet-member-member-2");
        let held = imports.list(&ListParams::default()).await?.items;
        ensure!(held.iter().any(|it| it.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty())), "{held:?}");
        sleep(Duration::from_secs(2)).await;
        eventually::gone(&namespaces, "fleet-member-member-2").await?;
        ensure!(manager.membership("member-2").await?.is_none());
        users[0].sees("app", &["10.1.0.1"]).await?;
        Ok(())
    })
}
