//! Tests of metrics that depend on several agents, on paused time.

use crate::support::OnMemkube;
use anyhow::{Context as _, ensure};
use fleetnet_api::crd::MemberAgent;
use fleetnet_api::names::annotations::{EXPORTERS, IMPORTERS};
use harness::user::Consume;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use scenarios::environment::{Backend as _, Environment};
use serde_json::json;
use sim::fleet::Place;
use sim::{Fleet, Options};
use std::time::Duration;
use tokio::time::sleep;

/// Longest age of a renewal of a member that runs: the interval of the renewals, and time for the write.
const FRESH: f64 = 11.0;
const HOUR_MICROS: i64 = 3_600_000_000;

/// Returns the value of a series in the metrics of an agent. `None` if there is no such series.
fn value(metrics: &str, series: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

fn age(metrics: &str, member: &str) -> Option<f64> {
    value(metrics, &format!("fleetnet_member_last_renewal_age_seconds{{member=\"{member}\"}}"))
}

fn offset(metrics: &str, member: &str) -> Option<f64> {
    value(metrics, &format!("fleetnet_member_clock_offset_seconds{{member=\"{member}\"}}"))
}

fn of_hub(env: &OnMemkube) -> anyhow::Result<String> {
    env.0.agent(Place::Hub).context("the hub agent runs")?.metrics()
}

/// Also rule O22.
#[test]
fn the_hub_agent_shows_which_members_are_silent() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = OnMemkube(Fleet::new(Options::members(3)).await?);
        env.start_agents().await?;
        sleep(Duration::from_secs(60)).await;
        let silent =
            |metrics: &str, member: &str| value(metrics, &format!("fleetnet_member_silent{{member=\"{member}\"}}"));
        let states = |metrics: &str| ["member-1", "member-2", "member-3"].map(|member| silent(metrics, member));
        let metrics = of_hub(&env)?;
        ensure!(states(&metrics) == [Some(0.0); 3], "{metrics}");
        env.0.kill(Place::Member(0)).await;
        sleep(Duration::from_secs(80)).await;
        let metrics = of_hub(&env)?;
        ensure!(states(&metrics) == [Some(1.0), Some(0.0), Some(0.0)], "{metrics}");
        env.0.start(Place::Member(0))?;
        sleep(Duration::from_secs(30)).await;
        ensure!(states(&of_hub(&env)?) == [Some(0.0); 3], "it renews again");
        env.0.start_replica(Place::Hub, 1)?;
        env.0.ready().await?;
        let other = |env: &OnMemkube| env.0.replica(Place::Hub, 1).context("the replica runs")?.metrics();
        ensure!(states(&other(&env)?) == [None; 3], "a replica that does not lead has no series of members");
        env.0.kill(Place::Hub).await;
        let agents: Api<MemberAgent> = Api::namespaced(env.hub(), "fleet-member-member-2");
        env.0.kill(Place::Member(1)).await;
        agents.delete("member-2", &DeleteParams::default()).await?;
        sleep(Duration::from_secs(40)).await;
        let metrics = other(&env)?;
        ensure!(states(&metrics) == [Some(0.0), None, Some(0.0)], "{metrics}");
        Ok(())
    })
}

/// Also rule G6.
#[test]
fn the_hub_agent_shows_how_long_ago_each_member_renewed_and_how_far_its_clock_is_off() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = OnMemkube(Fleet::new(Options::members(3)).await?);
        env.0.set_own_clock(Place::Member(2), HOUR_MICROS);
        env.start_agents().await?;
        sleep(Duration::from_secs(60)).await;
        let metrics = of_hub(&env)?;
        for (member, clock) in [("member-1", 0.0), ("member-2", 0.0), ("member-3", 3_600.0)] {
            let age = age(&metrics, member).with_context(|| format!("no age of {member}:\n{metrics}"))?;
            ensure!(age < FRESH, "{member} runs and its renewal is {age} s old");
            let offset = offset(&metrics, member).with_context(|| format!("no offset of {member}:\n{metrics}"))?;
            ensure!((offset - clock).abs() < 1.0, "the clock of {member} is {clock} s ahead, not {offset} s");
        }

        env.0.kill(Place::Member(1)).await;
        env.0.stop(Place::Member(0)).await?;
        sleep(Duration::from_secs(100)).await;
        let metrics = of_hub(&env)?;
        let silent = age(&metrics, "member-2").context("the killed member has an age")?;
        ensure!((100.0..100.0 + FRESH).contains(&silent), "member-2 is silent for 100 s, not {silent} s");
        ensure!(age(&metrics, "member-3").is_some_and(|age| age < FRESH), "{metrics}");
        ensure!(age(&metrics, "member-1").is_none(), "member-1 announced its stop and has an age:\n{metrics}");
        ensure!(offset(&metrics, "member-1").is_none(), "member-1 announced its stop and has a clock:\n{metrics}");

        // A new hub agent does not know when the last renewals arrived. It leads when the Lease of the old one has
        // expired.
        env.0.kill(Place::Hub).await;
        env.0.start(Place::Hub)?;
        env.0.start(Place::Member(0))?;
        env.0.ready().await?;
        ensure!(age(&of_hub(&env)?, "member-2").is_none(), "a replica that does not lead has no series of members");
        sleep(Duration::from_secs(40)).await;
        let metrics = of_hub(&env)?;
        let silent = age(&metrics, "member-2").context("the new leader has an age of the silent member")?;
        ensure!((140.0..142.0 + FRESH).contains(&silent), "member-2 is silent for 140 s, not {silent} s");
        for member in ["member-1", "member-3"] {
            ensure!(age(&metrics, member).is_some_and(|age| age < FRESH), "{member} renews again:\n{metrics}");
        }

        let agents: Api<MemberAgent> = Api::namespaced(env.hub(), "fleet-member-member-2");
        agents.delete("member-2", &DeleteParams::default()).await?;
        sleep(Duration::from_secs(1)).await;
        let metrics = of_hub(&env)?;
        ensure!(age(&metrics, "member-2").is_none(), "member-2 left and has an age:\n{metrics}");
        ensure!(age(&metrics, "member-3").is_some(), "{metrics}");
        Ok(())
    })
}

/// Also rule G7.
#[test]
fn exports_and_imports_are_counted_by_state_and_waiting_for_others_is_no_stuck_change() -> anyhow::Result<()> {
    sim::paused(async {
        let env = Environment::on(OnMemkube(Fleet::new(Options::members(4)).await?)).await?;
        let namespaces: Api<Namespace> = Api::all(env.backend.hub());
        let allowed =
            json!({"metadata": {"annotations": {EXPORTERS: "member-1, member-2", IMPORTERS: "member-2, member-3"}}});
        namespaces.patch(&env.namespace, &PatchParams::default(), &Patch::Merge(&allowed)).await?;
        sleep(Duration::from_secs(1)).await;
        // The second export has another port, and the third member may not export.
        for (member, port) in [(0, 80), (1, 8080), (2, 80)] {
            let user = env.user(member);
            user.create_service_with_port("app", port).await?;
            user.create_slice("app", "app-1", &[&format!("10.{member}.0.1")]).await?;
            user.export("app").await?;
            sleep(Duration::from_secs(1)).await;
        }
        env.user(1).sees_export("app", "Conflict", "True", "ConflictFound").await?;
        env.user(2).sees_export("app", "Valid", "False", "ExporterNotAllowed").await?;
        // Only one cluster may import with type LoadBalancer, nobody exports `db`, and the fourth member may not
        // import.
        env.user(1).import("app", "app", Consume::LoadBalancer).await?;
        env.user(1).sees("app", &["10.0.0.1"]).await?;
        env.user(2).import("app", "app", Consume::LoadBalancer).await?;
        env.user(2).import("db", "db", Consume::ClusterIp).await?;
        env.user(3).import("app", "app", Consume::ClusterIp).await?;
        sleep(Duration::from_secs(300)).await;

        let metrics = of_hub(&env.backend)?;
        let counted = |series: &str| value(&metrics, series).with_context(|| format!("no {series}:\n{metrics}"));
        for (state, number) in [("accepted", 1.0), ("conflicted", 1.0), ("denied", 1.0), ("pending", 0.0)] {
            assert_eq!(counted(&format!("fleetnet_exports{{state=\"{state}\"}}"))?, number, "{state}");
        }
        for (state, number) in [("granted", 1.0), ("pending", 3.0)] {
            assert_eq!(counted(&format!("fleetnet_imports{{state=\"{state}\"}}"))?, number, "{state}");
        }
        for place in env.backend.0.places() {
            let metrics = env.backend.0.agent(place).context("the agent runs")?.metrics()?;
            for line in metrics.lines().filter(|line| line.starts_with("fleetnet_oldest_unfinished_change_seconds")) {
                ensure!(line.ends_with(" 0"), "{place:?} waits for others, and has a stuck change: {line}");
            }
            ensure!(
                metrics.contains("fleetnet_oldest_unfinished_change_seconds{controller=\"fleet\",side=\"hub\"}"),
                "{place:?}:\n{metrics}"
            );
        }
        Ok(())
    })
}
