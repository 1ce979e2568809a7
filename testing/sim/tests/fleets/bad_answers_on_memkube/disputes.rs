//! Tests of another writer that undoes the agents' writes again and again. After the first repairs, the agents repair
//! the object only once a minute, and name the other writer.

use super::edited::Owned;
use super::trial::{AFTER, SOON, Trial, run_settled};
use anyhow::{Context as _, ensure};
use fleetnet_api::crd::{InternalServiceExport, MultiClusterService, ServiceExport};
use harness::user::User;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use scenarios::environment::Backend as _;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Duration of a dispute, and the interval at which the other writer checks the object.
const DISPUTE: Duration = Duration::from_secs(900);
const LOOK: Duration = Duration::from_secs(7);
/// Expected number of repairs in a dispute. The agent makes the first 10 repairs at once, each after the other writer's
/// check, so they take 10 * 7 s. In the remaining 830 s, the agent makes one repair a minute, which is about 14. The
/// sum is 24, and the range allows 2 more or fewer.
const REPAIRS: std::ops::RangeInclusive<usize> = 22..=26;

/// Simulates another writer that undoes every change of the agents to an object. Returns the number of the agents'
/// writes to the object.
async fn dispute(trial: &Trial, over: Owned, field: &str, theirs: &Value) -> anyhow::Result<usize> {
    let mark = trial.env.backend.mark().await?;
    let end = Instant::now() + DISPUTE;
    while Instant::now() < end {
        let current = over.value_of(trial, field).await?;
        if current != theirs[field] {
            over.patch(trial, theirs).await?;
        }
        sleep(LOOK).await;
    }
    let ledger = trial.env.backend.since(&mark).await?.objects();
    let plural = format!(" {} ", over.plural());
    let of_object = |line: &String| line.starts_with("patch") && line.contains(&plural) && line.contains("-agent");
    Ok(ledger.clusters().flat_map(|ledger| ledger.counts()).filter(|(line, _)| of_object(line)).map(|(_, n)| n).sum())
}

/// Returns the status, reason and message of the condition `Disputed`.
fn disputed(conditions: Option<&Vec<Condition>>) -> Option<(String, String, String)> {
    let condition = conditions?.iter().find(|condition| condition.type_ == "Disputed")?;
    Some((condition.status.clone(), condition.reason.clone(), condition.message.clone()))
}

async fn of_import(trial: &Trial) -> anyhow::Result<Option<(String, String, String)>> {
    let import = trial.env.user(1).api::<MultiClusterService>().get("app").await?;
    Ok(disputed(import.status.as_ref().and_then(|status| status.conditions.as_ref())))
}

async fn of_export(trial: &Trial) -> anyhow::Result<Option<(String, String, String)>> {
    let export = trial.env.user(0).api::<ServiceExport>().get("app").await?;
    Ok(disputed(export.status.as_ref().and_then(|status| status.conditions.as_ref())))
}

/// Also rule R15.
#[test]
fn repeated_hints_in_an_imported_slice_are_removed_once_a_minute_and_the_importer_is_notified() -> anyhow::Result<()> {
    run_settled(async |trial| {
        let slice = Owned::imported_slice();
        let before = slice.value_of(trial, "endpoints").await?;
        let mut theirs = before.clone();
        theirs[0]["hints"] = json!({"forZones": [{"name": "zone-9"}]});
        ensure!(of_import(trial).await?.is_none(), "nothing is disputed");
        let writes = dispute(trial, slice, "endpoints", &json!({"endpoints": theirs})).await?;
        ensure!(REPAIRS.contains(&writes), "{writes} writes");
        let (status, reason, message) = of_import(trial).await?.context("nothing is said to be disputed")?;
        ensure!((&*status, &*reason) == ("True", "WritesUndone"), "{status} {reason}");
        let why = "another writer undoes the agent's writes to EndpointSlice fleet-system/";
        ensure!(message.starts_with(why) && message.ends_with("Stop that writer"), "{message}");
        let events = trial.env.user(1).sees_event("MultiClusterService", "WritesUndone", &message).await?;
        ensure!(events == 1, "{events} Events");
        trial.env.user(1).sees_import("app", "True").await?;

        sleep(SOON * 3).await;
        let (status, reason, _) = of_import(trial).await?.context("it is forgotten")?;
        ensure!((&*status, &*reason) == ("False", "WritesStand"), "{status} {reason}");
        ensure!(slice.value_of(trial, "endpoints").await? == before, "the hints stay");
        trial.env.user(1).sees("app", &AFTER).await.map(drop)
    })
}

/// Also rule R15.
#[test]
fn repeated_edits_of_a_distributed_slice_are_undone_once_a_minute_and_the_exporter_is_notified() -> anyhow::Result<()> {
    run_settled(async |trial| {
        let copy = Owned::in_hub("endpointsliceimports");
        let mut theirs = copy.value_of(trial, "spec").await?;
        theirs["ownerServiceReference"]["namespacedName"] = "work/another".into();
        let writes = dispute(trial, copy, "spec", &json!({"spec": theirs})).await?;
        ensure!(REPAIRS.contains(&writes), "{writes} writes");
        let in_hub = User::new(trial.env.backend.hub(), &trial.env.members[0].hub_namespace);
        let exports = in_hub.api::<InternalServiceExport>().list(&Default::default()).await?;
        let condition = disputed(exports.items[0].status.as_ref().and_then(|status| status.conditions.as_ref()));
        let (status, reason, message) = condition.clone().context("the hub says nothing")?;
        ensure!((&*status, &*reason) == ("True", "WritesUndone"), "{status} {reason}");
        let why = "another writer undoes the agent's writes to EndpointSliceImport fleet-member-member-2/";
        ensure!(message.starts_with(why), "{message}");
        ensure!(of_export(trial).await? == condition, "the exporter does not see it");
        let events = in_hub.sees_event("EndpointSliceExport", "WritesUndone", &message).await?;
        ensure!(events == 1, "{events} Events");

        sleep(SOON * 3).await;
        let (status, reason, _) = of_export(trial).await?.context("it is forgotten")?;
        ensure!((&*status, &*reason) == ("False", "WritesStand"), "{status} {reason}");
        trial.env.user(1).sees("app", &AFTER).await.map(drop)
    })
}
