//! Tests of members that fall silent, on paused time and with the real engine. `testing/scenarios/tests/e2e/silence.rs`
//! plays the first of them with processes and real control planes.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::MemberAgent;
use harness::eventually;
use harness::routes::Routes;
use harness::user::{Consume, User};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use memkube::auth::{Call, Verb};
use sim::fleet::{HUB_AGENT, MEMBER_AGENT, Place};
use sim::partition::Partition;
use sim::stream::Condition;
use sim::{Fleet, Options};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Routes to the endpoints of the first two members.
const OF_ONE: &str = "10.1.0.1:8080";
const OF_TWO: &str = "10.2.0.1:8080";
const BOTH: [&str; 2] = [OF_ONE, OF_TWO];
/// Time after which a dead member is drained: the soft limit and some writes.
const DRAINED: Duration = Duration::from_secs(62);
/// Time after which a member that renews again is used as usual.
const RESTORED: Duration = Duration::from_secs(2);

/// Fleet of three members. The first two export a Service, and the third imports it.
struct Trio {
    fleet: Fleet,
    importer: User,
    routes: Routes,
}

impl Trio {
    async fn new() -> anyhow::Result<Self> {
        Self::with(Options::members(3)).await
    }

    async fn with(options: Options) -> anyhow::Result<Self> {
        let mut fleet = Fleet::new(options).await?;
        fleet.make_namespace("work").await?;
        let users: Vec<User> = fleet.members.iter().map(|member| User::new(member.server.admin(), "work")).collect();
        fleet.start_agents().await?;
        fleet.ready().await?;
        for (user, address) in users.iter().zip(["10.1.0.1", "10.2.0.1"]) {
            user.export_new("app", &[address]).await?;
        }
        let importer = User::new(fleet.members[2].server.admin(), "work");
        importer.import("app", "app", Consume::ClusterIp).await?;
        let routes = importer.routes("app");
        let mut trio = Self { fleet, importer, routes };
        trio.routes.are(&BOTH).await?;
        sleep(Duration::from_secs(30)).await;
        Ok(trio)
    }

    /// Returns the phase of a member, by its number from 1; empty without one.
    async fn phase(&self, member: usize) -> anyhow::Result<String> {
        let agents: Api<MemberAgent> =
            Api::namespaced(self.fleet.hub.admin(), &format!("fleet-member-member-{member}"));
        let status = agents.get(&format!("member-{member}")).await?.status.context("the hub agent answered")?;
        Ok(status.silence.map(|silence| silence.phase).unwrap_or_default())
    }

    /// Returns the addresses that the importer has as draining endpoints.
    async fn draining(&self) -> anyhow::Result<Vec<String>> {
        let slices: Api<EndpointSlice> = Api::namespaced(self.fleet.members[2].server.admin(), "fleet-system");
        let endpoints = slices.list(&ListParams::default()).await?.items.into_iter().flat_map(|it| it.endpoints);
        let is_draining = |endpoint: &k8s_openapi::api::discovery::v1::Endpoint| {
            endpoint.conditions.as_ref().is_some_and(|it| it.ready == Some(false) && it.serving == Some(true))
        };
        Ok(endpoints.flatten().filter(is_draining).flat_map(|endpoint| endpoint.addresses).collect())
    }

    /// Waits, and fails if the importer loses a route meanwhile.
    async fn keeps_all_routes(&mut self, time: Duration) -> anyhow::Result<()> {
        let before = self.writes_in_importer();
        sleep(time).await;
        self.routes.are(&BOTH).await?;
        let slices = self.writes_in_importer() - before;
        ensure!(slices == 0, "{slices} writes of slices in the importer");
        Ok(())
    }

    fn writes_in_importer(&self) -> usize {
        let is_counted = |entry: &&memkube::audit::Entry| {
            entry.call.verb.writes()
                && &*entry.call.target.resource == "endpointslices"
                && &*entry.call.target.namespace == "fleet-system"
        };
        self.fleet.history().iter().filter(is_counted).count()
    }
}

#[test]
fn a_member_that_dies_is_drained_and_comes_back() -> anyhow::Result<()> {
    sim::paused(async {
        let mut trio = Trio::new().await?;
        trio.fleet.kill(Place::Member(0)).await;
        trio.routes.are_within(DRAINED, &[OF_TWO]).await?;
        ensure!(trio.draining().await? == ["10.1.0.1"]);
        ensure!(trio.phase(1).await? == "Draining");
        let silent = "exporting clusters are silent: member-1";
        trio.importer.sees_event("MultiClusterService", "MemberSilent", silent).await?;
        sleep(Duration::from_secs(600)).await;
        ensure!(trio.phase(1).await? == "Withdrawn");
        ensure!(trio.draining().await?.is_empty(), "the endpoints are withdrawn");
        trio.fleet.start(Place::Member(0))?;
        trio.routes.are_within(Duration::from_secs(30), &BOTH).await?;
        ensure!(trio.phase(1).await? == "Returned");
        trio.importer.sees_event("MultiClusterService", "MemberReturned", "no exporting cluster is silent").await?;
        Ok(())
    })
}

#[test]
fn the_endpoints_of_the_last_exporter_stay_although_it_is_silent() -> anyhow::Result<()> {
    sim::paused(async {
        let mut trio = Trio::new().await?;
        trio.fleet.kill(Place::Member(0)).await;
        trio.routes.are_within(DRAINED, &[OF_TWO]).await?;
        sleep(Duration::from_secs(120)).await;
        trio.fleet.kill(Place::Member(1)).await;
        trio.routes.are_within(DRAINED, &BOTH).await?;
        sleep(Duration::from_secs(1_200)).await;
        trio.routes.are(&BOTH).await?;
        ensure!(trio.phase(1).await? == "Withdrawn" && trio.phase(2).await? == "Withdrawn");
        trio.importer
            .sees_event("MultiClusterService", "MemberSilent", "(member-1, member-2), so their endpoints")
            .await?;
        Ok(())
    })
}

#[test]
fn a_member_that_flaps_is_trusted_later_each_time() -> anyhow::Result<()> {
    sim::paused(async {
        let mut trio = Trio::new().await?;
        for hold in [0, 10, 20] {
            trio.fleet.kill(Place::Member(0)).await;
            trio.routes.are_within(DRAINED, &[OF_TWO]).await?;
            trio.fleet.start(Place::Member(0))?;
            sleep(Duration::from_secs(2)).await;
            let phase = trio.phase(1).await?;
            ensure!((hold == 0) == (phase == "Returned") || hold == 10, "{hold}: {phase}");
            trio.routes.are_within(Duration::from_secs(hold + 1), &BOTH).await?;
            sleep(Duration::from_secs(60)).await;
        }
        Ok(())
    })
}

#[test]
fn a_planned_stop_and_a_restart_of_the_hub_agent_change_nothing() -> anyhow::Result<()> {
    sim::paused(async {
        let mut trio = Trio::new().await?;
        trio.fleet.stop(Place::Member(0)).await?;
        trio.keeps_all_routes(Duration::from_secs(600)).await?;
        trio.fleet.start(Place::Member(0))?;
        trio.keeps_all_routes(Duration::from_secs(30)).await?;

        trio.fleet.kill(Place::Member(0)).await;
        sleep(Duration::from_secs(50)).await;
        trio.fleet.kill(Place::Hub).await;
        trio.fleet.start(Place::Hub)?;
        trio.keeps_all_routes(Duration::from_secs(50)).await?;
        trio.routes.are_within(DRAINED, &[OF_TWO]).await?;
        trio.fleet.kill(Place::Hub).await;
        trio.fleet.start(Place::Hub)?;
        sleep(Duration::from_secs(120)).await;
        trio.routes.are(&[OF_TWO]).await
    })
}

#[test]
fn nothing_changes_in_any_member_while_the_hub_is_away_or_most_members_are_cut_off() -> anyhow::Result<()> {
    sim::paused(async {
        let mut trio = Trio::new().await?;
        let network = Partition::before(&trio.fleet.hub);
        let of_members: Vec<String> = trio.fleet.members.iter().map(|member| member.hub_user.clone()).collect();
        let of_members: Vec<&str> = of_members.iter().map(String::as_str).collect();
        network.drop_all_of(of_members.iter().copied().chain([HUB_AGENT]));
        trio.keeps_all_routes(Duration::from_secs(900)).await?;
        network.mend();
        trio.keeps_all_routes(Duration::from_secs(300)).await?;
        ensure!(trio.phase(1).await?.is_empty() && trio.phase(2).await?.is_empty());

        // Both exporters lose the hub: two of three members.
        network.drop_all_of(of_members[..2].iter().copied());
        trio.keeps_all_routes(Duration::from_secs(300)).await?;
        let phases = [trio.phase(1).await?, trio.phase(2).await?, trio.phase(3).await?];
        ensure!(phases == ["Postponed", "Postponed", ""], "{phases:?}");
        network.mend();
        trio.keeps_all_routes(Duration::from_secs(300)).await
    })
}

#[test]
fn an_importer_that_is_cut_off_changes_nothing_and_follows_later() -> anyhow::Result<()> {
    sim::paused(async {
        let mut trio = Trio::new().await?;
        let network = Partition::before(&trio.fleet.hub);
        network.drop_all_of([&*trio.fleet.members[2].hub_user]);
        trio.keeps_all_routes(Duration::from_secs(120)).await?;
        trio.fleet.kill(Place::Member(0)).await;
        trio.keeps_all_routes(Duration::from_secs(900)).await?;
        ensure!(trio.phase(1).await? == "Withdrawn" && trio.phase(3).await? == "Withdrawn");
        network.mend();
        trio.routes.are_within(Duration::from_secs(120), &[OF_TWO]).await
    })
}

#[test]
fn slice_streams_are_a_sign_of_life_and_their_end_is_not_forgotten() -> anyhow::Result<()> {
    sim::paused(async {
        let mut trio = Trio::with(Options { slice_streams: true, ..Options::members(3) }).await?;
        trio.fleet.kill(Place::Member(0)).await;
        trio.routes.are_within(DRAINED, &[OF_TWO]).await?;
        trio.fleet.start(Place::Member(0))?;
        trio.routes.are_within(Duration::from_secs(60), &BOTH).await
    })
}

/// Also rule O14.
#[test]
fn a_frozen_member_with_a_slice_stream_is_drained_in_time() -> anyhow::Result<()> {
    sim::paused(async {
        let mut trio = Trio::with(Options { slice_streams: true, ..Options::members(3) }).await?;
        // The cluster has lost its power: its stream stays open until a probe has no reply.
        trio.fleet.streams.set("member-1", Condition { is_stuck: true, ..Condition::default() });
        trio.fleet.connection(Place::Member(0)).context("its agent runs")?.hold();
        trio.routes.are_within(DRAINED, &[OF_TWO]).await?;
        trio.fleet.kill(Place::Member(0)).await;
        trio.fleet.streams.set("member-1", Condition::default());
        trio.fleet.start(Place::Member(0))?;
        trio.routes.are_within(Duration::from_secs(60), &BOTH).await
    })
}

/// Also rule U21.
#[test]
fn a_member_that_does_not_see_its_slices_is_silent_also_with_a_slice_stream() -> anyhow::Result<()> {
    sim::paused(async {
        let mut trio = Trio::with(Options { slice_streams: true, ..Options::members(3) }).await?;
        let may_not_watch = |call: &Call| {
            let is_of_slices = &*call.target.resource == "endpointslices" && &*call.user.name == MEMBER_AGENT;
            !(is_of_slices && matches!(call.verb, Verb::List | Verb::Watch))
        };
        trio.fleet.members[0].server.memkube().set_policy(Arc::new(may_not_watch));
        // The watch that is open ends after some minutes.
        trio.routes.are_within(Duration::from_secs(900), &[OF_TWO]).await?;
        ensure!(trio.phase(1).await? == "Draining");
        trio.fleet.members[0].server.memkube().set_policy(Arc::new(|_: &Call| true));
        trio.routes.are_within(Duration::from_secs(400), &BOTH).await
    })
}

/// Waits for the next renewal of the first member's MemberAgent.
async fn next_renewal(fleet: &Fleet) -> anyhow::Result<()> {
    let agents = Api::namespaced(fleet.hub.admin(), "fleet-member-member-1");
    eventually::renewal(&agents, "member-1", Duration::from_millis(100)).await
}

/// Also rule O14.
#[test]
fn ten_importers_stop_using_a_hundred_slices_of_a_dead_member_in_62_s_and_use_them_again_in_2_s() -> anyhow::Result<()>
{
    const SERVICES: usize = 5;
    const SLICES: usize = 20;
    sim::paused(async {
        let mut fleet = Fleet::new(Options::members(12)).await?;
        fleet.make_namespace("work").await?;
        let users: Vec<User> = fleet.members.iter().map(|member| User::new(member.server.admin(), "work")).collect();
        fleet.start_agents().await?;
        fleet.ready().await?;
        // Each Service has twenty slices in the first member. The second member has all Services but the last.
        for service in 0..SERVICES {
            let name = format!("s{service}");
            for (member, slices) in [(1, SLICES), (2, usize::from(service + 1 < SERVICES))] {
                for slice in 0..slices {
                    if slice == 0 {
                        users[member - 1].create_service(&name).await?;
                        users[member - 1].export(&name).await?;
                    }
                    let address = format!("10.{member}.{slice}.{}", service + 1);
                    users[member - 1].create_slice(&name, &format!("{name}-{slice}"), &[&address]).await?;
                }
            }
            for importer in &users[2..] {
                importer.import(&name, &name, Consume::ClusterIp).await?;
            }
        }
        let of = |service: usize, is_dead: bool| -> Vec<String> {
            let route = |member: usize, slice: usize| format!("10.{member}.{slice}.{}:8080", service + 1);
            let is_last = service + 1 == SERVICES;
            let first = if is_dead && !is_last { 0 } else { SLICES };
            (0..first).map(|slice| route(1, slice)).chain((!is_last).then(|| route(2, 0))).collect()
        };
        let watched = |importer: &User| (0..SERVICES).map(|it| importer.routes(&format!("s{it}"))).collect::<Vec<_>>();
        let watch = || users[2..].iter().flat_map(watched).enumerate().collect::<Vec<(usize, Routes)>>();
        let all_are = async |routes: &mut Vec<(usize, Routes)>, limit: Duration, is_dead: bool| -> anyhow::Result<()> {
            let deadline = tokio::time::Instant::now() + limit;
            for (number, routes) in routes {
                let service = *number % SERVICES;
                let expected = of(service, is_dead);
                let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
                routes.are_within(deadline - tokio::time::Instant::now(), &expected).await?;
            }
            Ok(())
        };
        all_are(&mut watch(), Duration::from_secs(120), false).await?;
        let mut routes = watch();
        sleep(Duration::from_secs(60)).await;
        next_renewal(&fleet).await?;
        fleet.kill(Place::Member(0)).await;
        all_are(&mut routes, DRAINED, true).await?;
        sleep(Duration::from_secs(60)).await;
        fleet.start(Place::Member(0))?;
        next_renewal(&fleet).await?;
        all_are(&mut routes, RESTORED, false).await?;
        routes.iter().try_for_each(|(_, routes)| routes.never_empty())
    })
}
