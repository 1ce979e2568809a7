//! Tests of mutating webhooks that change agents' objects in every write. When an agent repairs an object, the response
//! shows that the webhook has undone the repair. The agent must not repeat the repair, because each repair would cause
//! the next one, without end.

use super::edited::Owned;
use super::trial::{AFTER, BEFORE, Trial, run};
use anyhow::ensure;
use scenarios::environment::Backend as _;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// Duration in which a repeated repair would be visible. Agents that repeat repairs do so at least once a minute.
const LONG: Duration = Duration::from_secs(600);

/// Returns a webhook that changes every object of this kind, in every write to the namespaces of the agents.
fn webhook(resource: &'static str, alter: fn(&mut Value)) -> impl Fn(&memkube::Call, &mut memkube::Object) {
    move |call, object| {
        let namespaces = ["fleet-system", "fleet-member-member-2"];
        if &*call.target.resource == resource && namespaces.contains(&&*call.target.namespace) {
            let mut altered = Value::Object(std::mem::take(object));
            alter(&mut altered);
            if let Value::Object(altered) = altered {
                *object = altered;
            }
        }
    }
}

/// Returns the number of the agents' writes to objects of a kind during `act` and ten minutes more.
async fn writes_during(
    trial: &mut Trial,
    resource: &str,
    act: impl AsyncFnOnce(&mut Trial) -> anyhow::Result<()>,
) -> anyhow::Result<usize> {
    let mark = trial.env.backend.mark().await?;
    act(trial).await?;
    sleep(LONG).await;
    let ledger = trial.env.backend.since(&mark).await?.objects();
    Ok(ledger.clusters().map(|ledger| ledger.filter(|entry| entry.resource == resource).count()).sum())
}

async fn annotate(trial: &Trial, over: Owned, value: &str) -> anyhow::Result<()> {
    over.patch(trial, &json!({"metadata": {"annotations": {"example.com/note": value}}})).await
}

async fn import(trial: &mut Trial) -> anyhow::Result<()> {
    trial.start_agents().await?;
    trial.create_objects().await
}

fn add_node(slice: &mut Value) {
    for endpoint in slice["endpoints"].as_array_mut().into_iter().flatten() {
        endpoint["nodeName"] = "node-of-webhook".into();
        endpoint["hints"] = json!({"forZones": [{"name": "zone-9"}]});
    }
}

/// Also rule P12.
#[test]
fn additions_of_a_webhook_to_imported_slices_stay_and_cost_no_write() -> anyhow::Result<()> {
    run(async |trial| {
        let slice = Owned::imported_slice();
        trial.importer.webhook(webhook("endpointslices", add_node));
        let writes = writes_during(trial, "endpointslices", import).await?;
        ensure!(writes == 1, "the import costs {writes} writes");
        trial.env.user(1).sees("app", &AFTER).await?;
        let endpoints = slice.value_of(trial, "endpoints").await?;
        ensure!(endpoints[0]["nodeName"] == "node-of-webhook", "the webhook does nothing: {endpoints}");

        let annotated = async |trial: &mut Trial| annotate(trial, slice, "one").await;
        let writes = writes_during(trial, "endpointslices", annotated).await?;
        ensure!(writes == 0, "an annotation costs {writes} writes");

        let changed = async |trial: &mut Trial| trial.env.user(0).set_endpoints("app-1", &BEFORE).await;
        let writes = writes_during(trial, "endpointslices", changed).await?;
        ensure!(writes == 1, "a change of the source costs {writes} writes");
        trial.env.user(1).sees("app", &BEFORE).await.map(drop)
    })
}

/// Tests a webhook that undoes the agents' writes. A change by another writer causes at most one repair. After the
/// webhook is removed, a change of the source slice arrives.
fn undone(resource: &'static str, owned: Owned, alter: fn(&mut Value)) -> anyhow::Result<()> {
    run(async |trial| {
        for faults in [&trial.hub, &trial.importer] {
            faults.webhook(webhook(resource, alter));
        }
        let writes = writes_during(trial, resource, import).await?;
        // Expected writes of the import: a create, and a repair after it. A slice in the hub also gets the importer's
        // finalizer, and then another repair.
        ensure!((2..=4).contains(&writes), "the import costs {writes} writes");
        let writes = writes_during(trial, resource, async |_: &mut Trial| Ok(())).await?;
        ensure!(writes == 0, "{writes} writes by itself");
        for note in ["one", "two", "three"] {
            let annotated = async |trial: &mut Trial| annotate(trial, owned, note).await;
            let writes = writes_during(trial, resource, annotated).await?;
            ensure!(writes <= 1, "the annotation {note} costs {writes} writes");
        }
        trial.hub.end();
        trial.importer.end();
        trial.env.user(0).set_endpoints("app-1", &BEFORE).await?;
        trial.env.user(1).sees("app", &BEFORE).await.map(drop)
    })
}

#[test]
fn a_webhook_that_renames_the_service_of_distributed_slices_costs_one_repair_at_most_for_each_foreign_change()
-> anyhow::Result<()> {
    undone("endpointsliceimports", Owned::in_hub("endpointsliceimports"), |copy| {
        copy["spec"]["ownerServiceReference"]["namespacedName"] = "work/another".into();
    })
}

#[test]
fn a_webhook_that_alters_an_endpoint_of_distributed_slices_costs_one_repair_at_most_for_each_foreign_change()
-> anyhow::Result<()> {
    undone("endpointsliceimports", Owned::in_hub("endpointsliceimports"), |copy| {
        copy["spec"]["endpoints"][0]["addresses"] = json!(["10.6.6.6"]);
    })
}

#[test]
fn a_webhook_that_removes_an_endpoint_of_imported_slices_costs_one_repair_at_most_for_each_foreign_change()
-> anyhow::Result<()> {
    undone("endpointslices", Owned::imported_slice(), |slice| {
        if let Some(endpoints) = slice["endpoints"].as_array_mut() {
            endpoints.truncate(1);
        }
    })
}
