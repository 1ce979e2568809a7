//! Tests with random faults: announcements change and are deleted, rights change, agents crash, requests and watch
//! events are delayed, and many requests fail. In the end, the importer has all content that both agents support, and
//! the agents make no more writes.

#[path = "support/random_faults.rs"]
mod random_faults;
mod support;

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::MemberAgent;
use harness::audit::Ledger;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, Patch, PatchParams};
use random_faults::RandomFaults;
use scenarios::announced::member_agents;
use scenarios::environment::{Backend as _, Environment};
use scenarios::{rich, trust};
use serde_json::{Value, json};
use sim::fleet::Place;
use sim::{Fleet, Options};
use std::time::Duration;
use support::OnMemkube;
use tokio::time::sleep;

/// Number of fleets to test, each with a different seed.
const FLEETS: u64 = 3;
/// Rounds for each fleet. A round causes each fault of [`KINDS`] once, in random order.
const ROUNDS: usize = 4;
const KINDS: [Kind; 10] = [
    Kind::SliceChanges,
    Kind::SliceChanges,
    Kind::SliceIsCreatedOrDeleted,
    Kind::MemberAnnouncesLess,
    Kind::HubAnnouncesLess,
    Kind::AnnouncementIsDeleted,
    Kind::RightIsRemoved,
    Kind::RightIsRestored,
    Kind::AgentIsKilled,
    Kind::LongPause,
];
/// Maximum time between two faults. The fault [`Kind::LongPause`] adds [`LONG_PAUSE`], which is longer than the 60 s in
/// which agents remember the features of a deleted MemberAgent.
const PAUSE_MILLISECONDS: u64 = 15_000;
const LONG_PAUSE: Duration = Duration::from_secs(65);
/// Time after the last fault within which all changes arrive, even after a long back-off.
const RECOVERED: Duration = Duration::from_secs(400);
/// Time without writes at the end that proves that the fleet has settled.
const QUIET: Duration = Duration::from_secs(120);
const ALL: [&str; 6] = ["IPv6", "DrainingEndpoints", "EndpointDetails", "Headless", "SessionAffinity", "SilentMembers"];

#[derive(Clone, Copy, Debug)]
enum Kind {
    SliceChanges,
    SliceIsCreatedOrDeleted,
    MemberAnnouncesLess,
    HubAnnouncesLess,
    AnnouncementIsDeleted,
    RightIsRemoved,
    RightIsRestored,
    AgentIsKilled,
    LongPause,
}

/// Expected content of the exporter's slices.
struct Content {
    four: u64,
    six: bool,
}

impl Content {
    fn fours(&self) -> Value {
        let number = self.four;
        json!([
            {"addresses": [format!("10.1.{number}.1")], "conditions": rich::ready(), "zone": format!("zone-{number}")},
            {"addresses": [format!("10.1.{number}.2")], "conditions": rich::draining(), "hostname": "web-1"},
        ])
    }

    /// Returns the expected content of the imported slices. A ready endpoint has no conditions there.
    fn imported(&self) -> Vec<Value> {
        let mut fours = self.fours();
        if let Some(ready) = fours[0].as_object_mut() {
            ready.remove("conditions");
        }
        let sixes = rich::slice("IPv6", json!([{"addresses": ["fd00:1::1"], "zone": "zone-1"}]));
        std::iter::once(rich::slice("IPv4", fours)).chain(self.six.then_some(sixes)).collect()
    }
}

/// Causes one random fault in the fleet.
async fn one_fault(
    env: &mut Environment<OnMemkube>,
    faults: &RandomFaults,
    content: &mut Content,
    kind: Kind,
) -> anyhow::Result<()> {
    let exporter = env.user(0);
    let member = usize::try_from(faults.draw(2))?;
    let few: Vec<&str> = ALL.into_iter().filter(|_| faults.draw(2) == 0).collect();
    let agents = member_agents(env, member);
    let name = env.members[member].cluster_id.clone();
    let parameters = PatchParams::default();
    let members = if member == 0 { "exporters" } else { "importers" };
    match kind {
        Kind::SliceChanges => {
            content.four += 1;
            exporter.merge::<EndpointSlice>(rich::SLICE, json!({"endpoints": content.fours()})).await?;
        }
        Kind::SliceIsCreatedOrDeleted => {
            content.six = !content.six;
            if content.six {
                let sixes = json!([{"addresses": ["fd00:1::1"], "zone": "zone-1"}]);
                rich::create_slice(&exporter, rich::SIXES, "IPv6", sixes).await?;
            } else {
                exporter.delete::<EndpointSlice>(rich::SIXES).await?;
            }
        }
        Kind::MemberAnnouncesLess => {
            let patch = Patch::Merge(json!({"spec": {"version": "0.0.1", "features": few}}));
            unless_gone(agents.patch(&name, &parameters, &patch).await)?;
        }
        Kind::HubAnnouncesLess => {
            let patch = Patch::Merge(json!({"status": {"version": "0.0.1", "features": few}}));
            unless_gone(agents.patch_status(&name, &parameters, &patch).await)?;
        }
        Kind::AnnouncementIsDeleted => unless_gone(agents.delete(&name, &DeleteParams::default()).await)?,
        Kind::RightIsRemoved => trust::name(env, members, Some("")).await?,
        Kind::RightIsRestored => trust::name(env, members, None).await?,
        Kind::AgentIsKilled => {
            let places: Vec<Place> = env.backend.0.places().collect();
            let place = places[usize::try_from(faults.draw(3))?];
            env.backend.0.kill(place).await;
            env.backend.0.start(place)?;
        }
        Kind::LongPause => sleep(LONG_PAUSE).await,
    }
    Ok(())
}

/// Returns the items in random order.
fn shuffled<T, const N: usize>(mut items: [T; N], faults: &RandomFaults) -> anyhow::Result<[T; N]> {
    for last in (1..N).rev() {
        items.swap(last, usize::try_from(faults.draw(u64::try_from(last)? + 1))?);
    }
    Ok(items)
}

fn unless_gone<T>(outcome: kube::Result<T>) -> anyhow::Result<()> {
    match outcome {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        outcome => Ok(outcome.map(drop)?),
    }
}

/// Tests a fleet with the random faults of a seed.
async fn run_seed(seed: u64) -> anyhow::Result<()> {
    let mut env = Environment::on(OnMemkube(Fleet::new(Options { seed, ..Options::members(2) }).await?)).await?;
    rich::export_and_import(&env).await?;
    // Stop the agents, and start them again with the faults: a watch that is already open gets no faults.
    env.backend.stop_agents().await?;
    let (faults, mut content) = (RandomFaults::new(seed), Content { four: 0, six: true });
    faults.start(&env.backend.0);
    env.backend.start_agents().await?;
    for _ in 0..ROUNDS {
        for kind in shuffled(KINDS, &faults)? {
            one_fault(&mut env, &faults, &mut content, kind).await.with_context(|| format!("{kind:?}"))?;
            sleep(Duration::from_millis(faults.draw(PAUSE_MILLISECONDS))).await;
        }
    }
    for (_, server) in env.backend.0.servers() {
        server.memkube().set_faults(None);
    }
    faults.check_counts(5)?;
    for members in ["exporters", "importers"] {
        trust::name(&env, members, None).await?;
    }
    sleep(RECOVERED).await;
    // Check before the next change: if an update was lost, the next change would repair the slice and hide the loss.
    rich::arrives(&env.user(1), &content.imported()).await?;
    content.four += 1;
    env.user(0).merge::<EndpointSlice>(rich::SLICE, json!({"endpoints": content.fours()})).await?;
    rich::arrives(&env.user(1), &content.imported()).await?;
    env.user(1).sees_derived("app", "to have session affinity", rich::is_sticky).await?;
    env.user(1).sees_import("app", "True").await?;
    for member in [0, 1] {
        let agent: MemberAgent = member_agents(&env, member).get(&env.members[member].cluster_id).await?;
        let status = agent.status.context("the hub has answered")?;
        let of_hub: Vec<&str> = ALL.into_iter().chain(["MulticlusterApi"]).collect();
        let announced = json!([agent.spec.features, status.features]);
        ensure!(announced == json!([ALL.to_vec(), of_hub]), "{:?} {status:?}", agent.spec);
    }
    let mark = env.backend.mark().await?;
    sleep(QUIET).await;
    let ledger = env.backend.since(&mark).await?.objects();
    ensure!(ledger.clusters().map(Ledger::count).sum::<usize>() == 0, "the fleet is not settled:\n{ledger}");
    Ok(())
}

/// Also rule A1.
#[test]
fn all_supported_fields_arrive_after_random_faults_and_changes_of_features_and_rights() -> anyhow::Result<()> {
    for seed in 1..=FLEETS {
        sim::paused(run_seed(seed)).with_context(|| format!("seed {seed}"))?;
    }
    Ok(())
}
