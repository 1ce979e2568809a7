//! Tests of two clusters with the same cluster id, on paused time. The first cluster owns the id and writes to the hub.
//! The second cluster waits until it may take the id over.

use crate::support::OnMemkube;
use anyhow::{Context as _, ensure};
use fleetnet_api::crd::MemberAgent;
use harness::eventually;
use harness::routes::Routes;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use memkube::Call;
use memkube::faults::{Answer, Fault, Faults};
use memkube::status::Status;
use scenarios::environment::{Backend as _, Environment};
use serde_json::json;
use sim::fleet::{MEMBER_AGENT, Place};
use sim::{Fleet, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const FIRST: usize = 0;
/// Index of another member. This member imports from member-1 and exports to member-1.
const OTHER: usize = 1;
/// Index of the second cluster with the id member-1.
const SECOND: usize = 2;

const SECONDS: Duration = Duration::from_secs(5);
const MINUTES: Duration = Duration::from_secs(600);
/// Duration of a restart of the agent of the cluster that owns the id. During this time, another cluster must not take
/// the id over.
const RESTART: Duration = Duration::from_secs(30);
/// Default of `--member-takeover-after`.
const TAKEOVER: Duration = Duration::from_secs(1_800);

/// Returns a fleet of three clusters, two of them with the id member-1. No agent runs.
async fn fleet() -> anyhow::Result<Environment<OnMemkube>> {
    let cluster_ids = ["member-1", "member-2", "member-1"].map(str::to_owned).into();
    let backend = OnMemkube(Fleet::new(Options { cluster_ids, ..Options::members(3) }).await?);
    let namespace = backend.namespace("work").await?;
    let members = backend.members();
    Ok(Environment { backend, namespace, members })
}

async fn start(env: &mut Environment<OnMemkube>, places: &[Place]) -> anyhow::Result<()> {
    for place in places {
        env.backend.0.start(*place)?;
    }
    env.backend.0.ready().await
}

/// Returns a fleet in which the second cluster owned the id before: it imported `db`, exports a different `app`, and
/// its agent has stopped. The first cluster owns the id now and exports `app`. The other member imports `app` and
/// exports `db`.
async fn first_after_second() -> anyhow::Result<Environment<OnMemkube>> {
    let mut env = fleet().await?;
    start(&mut env, &[Place::Hub, Place::Member(OTHER), Place::Member(SECOND)]).await?;
    env.user(OTHER).export_new("db", &["10.2.0.1"]).await?;
    env.user(SECOND).import("db", "db", Consume::ClusterIp).await?;
    env.user(SECOND).sees("db", &["10.2.0.1"]).await?;
    env.backend.0.stop(Place::Member(SECOND)).await?;
    env.user(SECOND).export_new("app", &["10.9.0.1"]).await?;
    start(&mut env, &[Place::Member(FIRST)]).await?;
    sleep(RESTART).await;
    env.user(FIRST).export_new("app", &["10.1.0.1"]).await?;
    env.user(OTHER).import("app", "app", Consume::ClusterIp).await?;
    env.user(OTHER).sees("app", &["10.1.0.1"]).await?;
    sleep(SECONDS).await;
    Ok(env)
}

async fn uid(env: &Environment<OnMemkube>, member: usize) -> anyhow::Result<String> {
    let namespaces: Api<Namespace> = Api::all(env.members[member].client.clone());
    namespaces.get("kube-system").await?.metadata.uid.context("it has a UID")
}

/// Returns the number of writes to the hub by a cluster's agent, including heartbeats.
fn written_in_hub(env: &Environment<OnMemkube>, member: usize) -> usize {
    let fleet = &env.backend.0;
    let user = &fleet.members[member].hub_user;
    let audit = fleet.hub.memkube().audit();
    assert_eq!(audit.forgotten, 0, "the ledger of the hub is too short for this test");
    audit.entries.iter().filter(|entry| &*entry.call.user.name == user.as_str() && entry.call.verb.writes()).count()
}

fn blocked(env: &Environment<OnMemkube>, member: usize) -> Option<String> {
    env.backend.0.agent(Place::Member(member)).expect("its agent runs").blocked()
}

fn has_blocking_reason(env: &Environment<OnMemkube>, member: usize, reason: &str) -> anyhow::Result<bool> {
    let metrics = env.backend.0.agent(Place::Member(member)).context("its agent runs")?.metrics()?;
    Ok(metrics.contains(&format!("fleetnet_hindrances{{kind=\"MemberAgent\",reason=\"{reason}\"}} 1")))
}

/// Returns a user of the namespace that contains the Events about the whole cluster.
fn operator(env: &Environment<OnMemkube>, member: usize) -> User {
    User::new(env.members[member].client.clone(), "default")
}

/// Hands the id over to another cluster with the command of docs/how-to/members.md.
async fn hand_over(env: &Environment<OnMemkube>, to: usize) -> anyhow::Result<()> {
    let in_hub = User::new(env.backend.hub(), &env.members[to].hub_namespace);
    in_hub.merge::<MemberAgent>("member-1", json!({"spec": {"clusterUid": uid(env, to).await?}})).await
}

/// Waits until the other member routes only to this address.
async fn routes_are(routes: &mut Routes, address: &str) -> anyhow::Result<()> {
    routes.are(&[&format!("{address}:8080")]).await
}

/// Also rules O1, O2.
#[test]
fn a_second_cluster_with_an_id_in_use_writes_nothing_in_the_hub_keeps_its_imports_and_reports_why() -> anyhow::Result<()>
{
    sim::paused(async {
        let mut env = first_after_second().await?;
        let before = written_in_hub(&env, SECOND);
        let mut routes = env.user(OTHER).routes("app");
        routes_are(&mut routes, "10.1.0.1").await?;
        start(&mut env, &[Place::Member(SECOND)]).await?;
        sleep(MINUTES).await;

        ensure!(written_in_hub(&env, SECOND) == before, "the second wrote in the hub");
        routes.always_had(&["10.1.0.1:8080"])?;
        env.user(SECOND).sees("db", &["10.2.0.1"]).await?;
        env.user(SECOND).delete::<fleetnet_api::crd::MultiClusterService>("db").await?;
        sleep(SECONDS).await;
        env.user(SECOND).sees("db", &["10.2.0.1"]).await.context("it removes nothing here")?;

        let (first, second) = (uid(&env, FIRST).await?, uid(&env, SECOND).await?);
        let why = blocked(&env, SECOND).context("the second is ready")?;
        let remedy =
            format!("patch memberagent member-1 --type=merge -p '{{\"spec\":{{\"clusterUid\":\"{second}\"}}}}'");
        ensure!(why.contains("another cluster owns the id of this cluster"), "{why}");
        ensure!(!why.contains(&first) && !why.contains(&second), "{why}: anybody can read it");
        ensure!(blocked(&env, FIRST).is_none());
        let mut events = 0;
        for part in [&first, &second, &remedy] {
            events = operator(&env, SECOND).sees_event("Namespace", "ClusterIdInUse", part).await?;
        }
        ensure!(events == 1 && has_blocking_reason(&env, SECOND, "ClusterIdInUse")?, "{events} Events");
        ensure!(!has_blocking_reason(&env, FIRST, "ClusterIdInUse")?);
        Ok(())
    })
}

/// Also rule O3.
#[test]
fn a_second_cluster_takes_over_by_command_and_back() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = first_after_second().await?;
        start(&mut env, &[Place::Member(SECOND)]).await?;
        let mut routes = env.user(OTHER).routes("app");
        for (to, from, address) in [(SECOND, FIRST, "10.9.0.1"), (FIRST, SECOND, "10.1.0.1")] {
            hand_over(&env, to).await?;
            routes_are(&mut routes, address).await?;
            sleep(SECONDS).await;
            let before = written_in_hub(&env, from);
            sleep(MINUTES).await;
            ensure!(written_in_hub(&env, from) == before, "both write in the hub");
            ensure!(blocked(&env, to).is_none() && blocked(&env, from).is_some());
        }
        Ok(())
    })
}

/// Also rule O3.
#[test]
fn a_second_cluster_takes_over_half_a_minute_after_an_announced_stop_and_not_at_a_restart() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = first_after_second().await?;
        start(&mut env, &[Place::Member(SECOND)]).await?;
        sleep(MINUTES).await;
        let mut routes = env.user(OTHER).routes("app");
        routes_are(&mut routes, "10.1.0.1").await?;
        let before = written_in_hub(&env, SECOND);
        env.backend.0.stop(Place::Member(FIRST)).await?;
        sleep(RESTART - SECONDS).await;
        start(&mut env, &[Place::Member(FIRST)]).await?;
        sleep(MINUTES).await;
        routes.always_had(&["10.1.0.1:8080"])?;
        ensure!(written_in_hub(&env, SECOND) == before, "a restart moved the id");

        env.backend.0.stop(Place::Member(FIRST)).await?;
        let stopped = Instant::now();
        routes.are_within(RESTART + SECONDS, &["10.9.0.1:8080"]).await?;
        ensure!(stopped.elapsed() >= RESTART - Duration::from_secs(1), "it took {:?}", stopped.elapsed());
        ensure!(blocked(&env, SECOND).is_none());
        Ok(())
    })
}

/// Also rule O3.
#[test]
fn a_second_cluster_takes_over_from_one_that_has_been_silent_for_half_an_hour_and_keeps_the_id() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = first_after_second().await?;
        start(&mut env, &[Place::Member(SECOND)]).await?;
        let mut routes = env.user(OTHER).routes("app");
        env.backend.0.kill(Place::Member(FIRST)).await;
        sleep(TAKEOVER - Duration::from_secs(15)).await;
        routes.always_had(&["10.1.0.1:8080"])?;
        routes.are_within(Duration::from_secs(16), &["10.9.0.1:8080"]).await?;
        start(&mut env, &[Place::Member(FIRST)]).await?;
        let before = written_in_hub(&env, FIRST);
        sleep(MINUTES).await;
        ensure!(written_in_hub(&env, FIRST) == before, "it wrote in the hub when it came back");
        ensure!(blocked(&env, FIRST).is_some());
        env.user(OTHER).sees("app", &["10.9.0.1"]).await.map(drop)
    })
}

/// Fault: a user cannot reach the hub. The user's open watches end within a minute.
struct CutOff {
    user: String,
    is_cut: AtomicBool,
}

impl Faults for CutOff {
    fn request(&self, call: &Call) -> Fault {
        if *self.user != *call.user.name || !self.is_cut.load(Ordering::Relaxed) {
            return Fault::default();
        }
        let refuse = Some(Status::plain(503, "ServiceUnavailable", "cut off"));
        Fault { refuse, answer: Answer::Never, ..Fault::default() }
    }
}

/// Also rule O4.
#[test]
fn a_first_cluster_that_was_cut_off_for_long_writes_nothing_when_it_is_back() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = first_after_second().await?;
        start(&mut env, &[Place::Member(SECOND)]).await?;
        let user = env.backend.0.members[FIRST].hub_user.clone();
        let cut_off = Arc::new(CutOff { user, is_cut: AtomicBool::new(true) });
        env.backend.0.hub.memkube().set_faults(Some(cut_off.clone()));
        let mut routes = env.user(OTHER).routes("app");
        routes.are_within(TAKEOVER + MINUTES, &["10.9.0.1:8080"]).await?;
        env.user(FIRST).set_endpoints("app-1", &["10.1.0.7"]).await?;
        sleep(SECONDS).await;
        let objects = || {
            let fleet = &env.backend.0;
            let audit = fleet.hub.memkube().audit();
            let of_first = |entry: &&memkube::audit::Entry| {
                *entry.call.user.name == *cut_off.user && entry.call.verb.writes() && entry.code < 300
            };
            audit.entries.iter().filter(of_first).count()
        };
        let before = objects();
        cut_off.is_cut.store(false, Ordering::Relaxed);
        sleep(MINUTES).await;
        ensure!(objects() == before, "it wrote in the hub");
        ensure!(blocked(&env, FIRST).is_some() && blocked(&env, SECOND).is_none());
        Ok(())
    })
}

/// Also rule O9.
#[test]
fn clones_of_a_cluster_are_reported_and_both_ready() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = fleet().await?;
        env.user(FIRST).export_new("app", &["10.1.0.1"]).await?;
        let servers = &env.backend.0.members;
        let backup = servers[FIRST].server.memkube().backup();
        servers[SECOND].server.memkube().restore(&backup);
        ensure!(uid(&env, FIRST).await? == uid(&env, SECOND).await?, "they are no clones");
        start(&mut env, &[Place::Hub, Place::Member(FIRST), Place::Member(SECOND)]).await?;
        for member in [FIRST, SECOND] {
            operator(&env, member).sees_event("Namespace", "ClusterIdShared", "take turns").await?;
            ensure!(blocked(&env, member).is_none() && has_blocking_reason(&env, member, "ClusterIdShared")?);
        }
        let before = [FIRST, SECOND].map(|member| written_in_hub(&env, member));
        sleep(MINUTES).await;
        for (member, before) in [FIRST, SECOND].into_iter().zip(before) {
            env.user(member).sees_export("app", "Conflict", "False", "NoConflictFound").await?;
            let renewals = written_in_hub(&env, member) - before;
            ensure!((50..200).contains(&renewals), "{renewals} writes in 10 minutes, and a renewal is due every 10 s");
        }
        Ok(())
    })
}

/// Fault: the agent has no right to read the namespaces of its own cluster.
struct NoNamespaces;

impl Faults for NoNamespaces {
    fn request(&self, call: &Call) -> Fault {
        let is_meant = &*call.target.resource == "namespaces" && &*call.user.name == MEMBER_AGENT;
        let refuse = is_meant.then(|| Status::plain(403, "Forbidden", "namespaces is forbidden"));
        Fault { refuse, ..Fault::default() }
    }
}

/// Also rule O8.
#[test]
fn without_the_right_to_read_kube_system_the_check_is_off_and_reported() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = fleet().await?;
        env.backend.0.members[FIRST].server.memkube().set_faults(Some(Arc::new(NoNamespaces)));
        start(&mut env, &[Place::Hub, Place::Member(FIRST), Place::Member(OTHER)]).await?;
        env.user(FIRST).export_new("app", &["10.1.0.1"]).await?;
        env.user(OTHER).import("app", "app", Consume::ClusterIp).await?;
        env.user(OTHER).sees("app", &["10.1.0.1"]).await?;
        ensure!(has_blocking_reason(&env, FIRST, "ClusterIdNotChecked")? && blocked(&env, FIRST).is_none());
        ensure!(!has_blocking_reason(&env, OTHER, "ClusterIdNotChecked")?);
        let agents: Api<MemberAgent> = env.hub(&env.members[FIRST].hub_namespace);
        let is_renewed = |agent: &MemberAgent| agent.spec.leader_identity.is_some();
        let agent = eventually::object(&agents, "member-1", "a renewal", is_renewed).await?;
        ensure!(agent.spec.cluster_uid.is_none(), "{agent:?}");
        Ok(())
    })
}
