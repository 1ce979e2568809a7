//! Tests of a right that the hub agent lacks in its first seconds, for example until a role is applied. Without the
//! right, the hub agent allows no forbidden import, and removes nothing.

use crate::support::OnMemkube;
use anyhow::Context as _;
use fleetnet_core::hub::NamespacePolicy;
use harness::audit::Ledger;
use harness::user::Consume;
use memkube::auth::{Call, Verb};
use scenarios::environment::{Backend as _, Environment, FleetSpec};
use scenarios::rich;
use scenarios::trust::name;
use sim::fleet::Place;
use sim::{Fleet, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Time after the hub agent's start in which it lacks a right.
const LACKING: Duration = Duration::from_secs(2);
/// Time within which the hub agent notices that it has the right, and all changes arrive.
const NOTICED: Duration = Duration::from_secs(60);

/// Forbids all agents to list or watch a resource of the hub, while the returned flag is set.
fn forbid(env: &Environment<OnMemkube>, resource: &'static str) -> Arc<AtomicBool> {
    let forbidden = Arc::new(AtomicBool::new(true));
    let is_forbidden = Arc::clone(&forbidden);
    let allows = move |call: &Call| {
        &*call.target.resource != resource
            || !call.user.name.contains("agent")
            || !matches!(call.verb, Verb::List | Verb::Watch)
            || !is_forbidden.load(Ordering::Relaxed)
    };
    env.backend.0.hub.memkube().set_policy(Arc::new(allows));
    forbidden
}

async fn is_ready(env: &Environment<OnMemkube>) -> anyhow::Result<bool> {
    let agent = env.backend.0.agent(Place::Hub).context("the hub agent runs")?;
    Ok(timeout(Duration::ZERO, agent.ready()).await.is_ok())
}

/// Also rule T15.
#[test]
fn an_importer_that_is_not_allowed_gets_nothing_while_namespaces_cannot_be_listed_at_start() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = Environment::<OnMemkube>::create(FleetSpec::of(3)).await?;
        name(&env, "importers", Some("member-3")).await?;
        env.export(&["10.1.0.1"]).await?;
        let (exporter, denied, granted) = (env.user(0), env.user(1), env.user(2));
        denied.import("app", "app", Consume::ClusterIp).await?;
        granted.import("app", "app", Consume::ClusterIp).await?;
        granted.sees("app", &["10.1.0.1"]).await?;
        let mark = env.backend.mark().await?;

        let fleet = &mut env.backend.0;
        fleet.stop(Place::Hub).await?;
        let forbidden = forbid(&env, "namespaces");
        env.backend.0.start(Place::Hub)?;
        sleep(LACKING / 2).await;
        assert!(!is_ready(&env).await?);
        let metrics = env.backend.0.agent(Place::Hub).context("it runs")?.metrics()?;
        let incomplete =
            "fleetnet_watch_state{controller=\"fleet\",kind=\"Namespace\",side=\"hub\",state=\"incomplete\"} 1";
        assert!(metrics.contains(incomplete), "{metrics}");
        exporter.set_endpoints("app-1", &["10.1.0.2"]).await?;
        sleep(LACKING / 2).await;
        granted.sees("app", &["10.1.0.2"]).await?;
        assert!(!is_ready(&env).await?, "what was granted goes on changing without that right");

        forbidden.store(false, Ordering::Relaxed);
        sleep(NOTICED).await;
        assert!(is_ready(&env).await?);
        let ledger = env.backend.since(&mark).await?.objects();
        let distributed = ledger.hub.0.iter().filter(|entry| entry.namespace == "fleet-member-member-2");
        assert_eq!(distributed.count(), 0, "{ledger}");
        assert_eq!(ledger.members[1].count(), 0, "{ledger}");
        Ok(())
    })
}

/// Also rule U13.
#[test]
fn no_distributed_slice_of_ipv6_is_deleted_while_memberagents_cannot_be_listed_at_start() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = Environment::<OnMemkube>::create(FleetSpec::of(2)).await?;
        rich::export_and_import(&env).await?;
        let mark = env.backend.mark().await?;
        for place in [Place::Hub, Place::Member(0)] {
            env.backend.0.stop(place).await?;
            let forbidden = forbid(&env, "memberagents");
            env.backend.0.start(place)?;
            sleep(LACKING).await;
            forbidden.store(false, Ordering::Relaxed);
            sleep(NOTICED).await;
            let ledger = env.backend.since(&mark).await?.objects();
            assert_eq!(ledger.clusters().map(Ledger::count).sum::<usize>(), 0, "{place:?}: {ledger}");
        }
        rich::is_distributed(&env, &rich::in_hub()).await
    })
}

/// Also rule T16.
#[test]
fn with_the_policy_off_namespaces_need_not_be_listed() -> anyhow::Result<()> {
    sim::paused(async {
        let options = Options { namespace_policy: NamespacePolicy::Off, ..Options::members(2) };
        let backend = OnMemkube(Fleet::new(options).await?);
        let namespace = backend.namespace("work").await?;
        let members = backend.members();
        let mut env = Environment { backend, namespace, members };
        forbid(&env, "namespaces");
        name(&env, "importers", Some("")).await?;
        env.backend.start_agents().await?;
        env.export_and_import(&["10.1.0.1"]).await
    })
}
