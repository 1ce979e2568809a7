//! Tests of undecodable objects. Agents keep using the last known state of such an object. If no state is known,
//! everything that depends on the object stays.

use super::edited::Owned;
use super::faults::{assert_backs_off, is_about_objects, is_heartbeat};
use super::trial::{AFTER, BEFORE, FAULT_DURATION, SOON, Trial, run};
use anyhow::{Context as _, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use scenarios::environment::Backend as _;
use scenarios::snapshot::take_snapshot;
use serde_json::{Value, json};
use sim::fleet::Place;
use tokio::time::{Instant, sleep};

/// Action of a user that ends the fault.
#[derive(Clone, Copy)]
enum Remedy {
    Repair,
    Delete,
}

/// Makes an object undecodable: sets the name in one of its fields to "". Then makes a change that agents would write
/// to the object. Asserts that agents back off, log a warning and count the object in a metric, and that the fleet
/// recovers after the remedy.
async fn survives(trial: &mut Trial, plural: &'static str, field: &str, remedy: Remedy) -> anyhow::Result<()> {
    let owned = Owned::in_hub(plural);
    let name = |name: &str| -> Value { json!({"spec": {field: {"name": name}}}) };
    trial.settle().await?;
    admit_anything(trial, owned).await?;
    owned.patch(trial, &name("")).await?;
    let begun = Instant::now();
    trial.change().await?;
    sleep(FAULT_DURATION).await;

    let writes = |call: &memkube::Call| call.verb.writes() && is_about_objects(call) && !is_heartbeat(call);
    assert_backs_off(&trial.hub.requests_by_minute(begun, writes), 20, 4)?;
    trial.log.has(&[
        "WARN",
        "an object is undecodable: its last decoded state stays in force. Repair or delete the object",
        field,
    ])?;
    let undecodable = |line: &str| {
        line.starts_with("fleetnet_unreadable_objects_total{") && line.contains("side=\"hub\"") && !line.ends_with(" 0")
    };
    let metrics = trial.env.backend.0.agent(Place::Hub).map(|agent| agent.metrics()).transpose()?.unwrap_or_default();
    ensure!(metrics.lines().any(undecodable), "the metric counts no undecodable object:\n{metrics}");

    match remedy {
        Remedy::Repair => owned.patch(trial, &name(if field.contains("Slice") { "app-1" } else { "app" })).await?,
        Remedy::Delete => {
            owned.delete(trial).await?;
            return trial.recovers_for_users(2 * SOON).await;
        }
    }
    trial.recovers(2 * SOON).await
}

/// Kinds of objects in the hub, each with the field of its reference to another object.
const REFERENCES: [(&str, &str); 4] = [
    ("endpointsliceimports", "ownerServiceReference"),
    ("endpointsliceexports", "endpointSliceReference"),
    ("internalserviceexports", "serviceReference"),
    ("internalserviceimports", "serviceImportReference"),
];

#[test]
fn an_undecodable_object_keeps_its_last_content_until_it_is_repaired() -> anyhow::Result<()> {
    for (plural, field) in REFERENCES {
        let survived = run(async |trial| {
            survives(trial, plural, field, Remedy::Repair).await?;
            trial.nothing_is_lost(&AFTER).await
        });
        survived.context(plural)?;
    }
    Ok(())
}

#[test]
fn an_undecodable_object_of_a_member_is_created_again_once_it_is_deleted() -> anyhow::Result<()> {
    for (plural, field) in REFERENCES.into_iter().skip(1) {
        run(async |trial| survives(trial, plural, field, Remedy::Delete).await).context(plural)?;
    }
    Ok(())
}

// === Agents that start while an object is undecodable ===

/// Field of an object with a value that makes the object undecodable.
#[derive(Clone, Copy)]
struct MalformedField {
    owned: Owned,
    /// Position of the field: `spec` or `status`, and the name of the field in it.
    part: &'static str,
    field: &'static str,
    /// True if the malformed value is an object with an empty `name`. False if the malformed value is a string.
    name_only: bool,
}

impl MalformedField {
    /// Returns a malformed field: a reference with an empty `name`. The current CRDs reject the value (`minLength`).
    /// Older CRDs without this check accept the value.
    const fn reference(plural: &'static str, field: &'static str) -> Self {
        Self { owned: Owned::in_hub(plural), part: "spec", field, name_only: true }
    }

    /// Returns a malformed field: a string in place of an object or a list. The current CRDs reject the value; other
    /// CRDs accept it.
    const fn text(owned: Owned, part: &'static str, field: &'static str) -> Self {
        Self { owned, part, field, name_only: false }
    }

    /// Writes the malformed value to the object. Returns a patch that restores the previous value.
    async fn write(self, trial: &Trial) -> anyhow::Result<Value> {
        let Self { owned, part, field, name_only } = self;
        admit_anything(trial, owned).await?;
        let before = owned.value_of(trial, part).await?[field].take();
        let malformed = if name_only { json!({"name": ""}) } else { json!("malformed") };
        owned.patch(trial, &json!({part: {field: malformed}})).await?;
        Ok(json!({part: {field: before}}))
    }
}

async fn admit_anything(trial: &Trial, owned: Owned) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(owned.client(trial));
    let mut definition = serde_json::to_value(definitions.get(&owned.definition()).await?)?;
    let mut versions = definition["spec"]["versions"].take();
    for version in versions.as_array_mut().into_iter().flatten() {
        let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        version["schema"]["openAPIV3Schema"] = anything;
    }
    let patch = Patch::Merge(json!({"spec": {"versions": versions}}));
    definitions.patch(&owned.definition(), &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Restarts all agents while the object is undecodable. Asserts that agents write nothing, and that all imports stay.
async fn survives_from_the_start(trial: &mut Trial, malformed: MalformedField) -> anyhow::Result<Value> {
    trial.settle().await?;
    trial.change().await?;
    trial.env.user(1).sees("app", &AFTER).await?;
    sleep(SOON).await;
    let mark = trial.env.backend.mark().await?;
    let before = malformed.write(trial).await?;
    let fleet = trial.fleet();
    for place in fleet.places() {
        fleet.kill(place).await;
    }
    trial.start_agents().await?;
    sleep(FAULT_DURATION).await;
    let ledger = trial.env.backend.since(&mark).await?.objects();
    let written = ledger.clusters().map(|ledger| ledger.of_agents().count()).sum::<usize>();
    ensure!(written == 0, "{written} writes:\n{ledger}");
    trial.log.has(&[
        "WARN",
        "an object is undecodable: its last decoded state stays in force. Repair or delete the object",
    ])?;
    trial.nothing_is_lost(&AFTER).await?;
    Ok(before)
}

const MULTI_CLUSTER_SERVICE: MalformedField =
    MalformedField::text(Owned::fleet_object_at_importer("multiclusterservices"), "spec", "serviceImport");
const SERVICE_EXPORT: MalformedField = MalformedField::text(Owned::service_export(), "status", "conditions");

/// Objects that agents own.
const OF_AGENTS: [MalformedField; 6] = [
    MalformedField::reference("endpointsliceexports", "endpointSliceReference"),
    MalformedField::reference("endpointsliceimports", "ownerServiceReference"),
    MalformedField::reference("internalserviceexports", "serviceReference"),
    MalformedField::reference("internalserviceimports", "serviceImportReference"),
    MalformedField::text(Owned::in_hub("serviceimports"), "status", "clusters"),
    MalformedField::text(Owned::fleet_object_at_importer("serviceimports"), "status", "clusters"),
];

#[test]
fn agents_that_start_beside_an_undecodable_object_remove_nothing_until_it_is_repaired() -> anyhow::Result<()> {
    for malformed in OF_AGENTS.into_iter().chain([MULTI_CLUSTER_SERVICE, SERVICE_EXPORT]) {
        let survived = run(async |trial| {
            let before = survives_from_the_start(trial, malformed).await?;
            malformed.owned.patch(trial, &before).await?;
            trial.recovers(SOON).await?;
            trial.nothing_is_lost(&AFTER).await
        });
        survived.context(malformed.owned.plural())?;
    }
    Ok(())
}

#[test]
fn agents_that_start_beside_an_undecodable_object_remove_nothing_until_it_is_deleted() -> anyhow::Result<()> {
    for malformed in OF_AGENTS {
        let survived = run(async |trial| {
            survives_from_the_start(trial, malformed).await?;
            malformed.owned.delete(trial).await?;
            trial.recovers_for_users(2 * SOON).await
        });
        survived.context(malformed.owned.plural())?;
    }
    Ok(())
}

/// Asserts that a user can delete the undecodable object, and that agents then remove all its parts in other clusters.
fn survives_until_its_user_deletes_it(malformed: MalformedField, left_over: &[&str]) -> anyhow::Result<()> {
    run(async |trial| {
        survives_from_the_start(trial, malformed).await?;
        malformed.owned.delete(trial).await?;
        sleep(2 * SOON).await;
        trial.is_quiet().await?;
        let names: Vec<String> = take_snapshot(&trial.env).await?.into_keys().collect();
        let left: Vec<&String> = names.iter().filter(|name| left_over.iter().any(|part| name.contains(part))).collect();
        ensure!(!names.is_empty() && left.is_empty(), "left over: {left:?} of {names:?}");
        Ok(())
    })
}

#[test]
fn an_import_ends_with_its_multi_cluster_service_even_if_agents_never_decoded_it() -> anyhow::Result<()> {
    let in_hub = ["internalserviceimports/", "endpointsliceimports/"];
    survives_until_its_user_deletes_it(MULTI_CLUSTER_SERVICE, &[in_hub[0], in_hub[1], "member-2/"])
}

#[test]
fn an_export_ends_with_its_service_export_even_if_agents_never_decoded_it() -> anyhow::Result<()> {
    let in_hub = ["internalserviceexports/", "endpointsliceexports/", "endpointsliceimports/"];
    let at_importer = ["member-2/services/", "member-2/endpointslices/"];
    survives_until_its_user_deletes_it(SERVICE_EXPORT, &[&in_hub[..], &at_importer].concat())
}

#[test]
fn changes_reach_an_importer_whose_agent_never_decoded_its_multi_cluster_service() -> anyhow::Result<()> {
    run(async |trial| {
        let before = survives_from_the_start(trial, MULTI_CLUSTER_SERVICE).await?;
        trial.env.user(0).set_endpoints("app-1", &BEFORE).await?;
        sleep(SOON).await;
        trial.nothing_is_lost(&BEFORE).await?;
        trial.change().await?;
        sleep(SOON).await;
        trial.nothing_is_lost(&AFTER).await?;
        MULTI_CLUSTER_SERVICE.owned.patch(trial, &before).await?;
        trial.recovers(SOON).await
    })
}
