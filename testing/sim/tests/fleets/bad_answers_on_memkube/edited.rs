//! Tests of a user who writes meaningless values into an object that agents own, or deletes the object. There are tests
//! for every kind that agents own.

use super::trial::{AFTER, BEFORE, SOON, Trial, of_users, run_settled};
use anyhow::{Context as _, ensure};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Client;
use scenarios::environment::Backend as _;
use scenarios::handover::slices_are_left_in_the_hub;
use scenarios::snapshot::{differences, take_snapshot};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// Time limit for the repair of an edit.
const REPAIRED: Duration = Duration::from_secs(10);
/// Time between two edits. After this time, agents do not treat the next edit as a dispute, in which another writer
/// undoes their writes again and again.
const APART: Duration = Duration::from_secs(60);
/// Maximum number of writes that all agents together may make after an edit.
const WRITES: usize = 16;

/// Kind of objects that agents own. The fleet of these tests has one object of each kind.
#[derive(Clone, Copy)]
pub(crate) struct Owned {
    /// Cluster of the object: 0 for the hub, otherwise the number of the member.
    cluster: usize,
    /// URL path of the kind's API, `/apis/<group>/<version>`.
    api: &'static str,
    plural: &'static str,
}

const FLEET: &str = "/apis/networking.fleet.azure.com/v1alpha1";

impl Owned {
    pub(crate) const fn in_hub(plural: &'static str) -> Self {
        Self { cluster: 0, api: FLEET, plural }
    }

    pub(crate) const fn fleet_object_at_importer(plural: &'static str) -> Self {
        Self::at_importer(FLEET, plural)
    }

    pub(crate) const fn service_export() -> Self {
        Self { cluster: 1, api: "/apis/networking.fleet.azure.com/v1beta1", plural: "serviceexports" }
    }

    const fn at_importer(api: &'static str, plural: &'static str) -> Self {
        Self { cluster: 2, api, plural }
    }

    pub(crate) const fn imported_slice() -> Self {
        Self::at_importer("/apis/discovery.k8s.io/v1", "endpointslices")
    }

    pub(crate) const fn plural(self) -> &'static str {
        self.plural
    }

    pub(crate) fn client(self, trial: &Trial) -> Client {
        match self.cluster {
            0 => trial.env.backend.hub(),
            number => trial.env.members[number - 1].client.clone(),
        }
    }

    /// Returns the name of the CRD of this kind.
    pub(crate) fn definition(self) -> String {
        format!("{}.networking.fleet.azure.com", self.plural)
    }

    /// Returns the value of a top-level field of the object.
    pub(crate) async fn value_of(self, trial: &Trial, field: &str) -> anyhow::Result<Value> {
        Ok(self.path(trial).await?.1[field].take())
    }

    /// Returns the object's API path, and the object.
    async fn path(self, trial: &Trial) -> anyhow::Result<(String, Value)> {
        let Self { api, plural, .. } = self;
        let mut list: Value =
            self.client(trial).request(http::Request::get(format!("{api}/{plural}")).body(Vec::new())?).await?;
        let items: Vec<Value> = serde_json::from_value(list["items"].take())?;
        let text = |object: &Value, field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let ours = items.into_iter().filter(|object| object.to_string().contains("work"));
        let [object] = <[Value; 1]>::try_from(ours.collect::<Vec<_>>())
            .map_err(|found| anyhow::anyhow!("there is one of {plural}, not {}", found.len()))?;
        Ok((format!("{api}/namespaces/{}/{plural}/{}", text(&object, "namespace"), text(&object, "name")), object))
    }

    pub(crate) async fn patch(self, trial: &Trial, patch: &Value) -> anyhow::Result<()> {
        let (path, _) = self.path(trial).await?;
        let path = if patch.get("status").is_some() { format!("{path}/status") } else { path };
        let request = http::Request::patch(path).header("content-type", "application/merge-patch+json");
        let request = request.body(patch.to_string().into_bytes())?;
        self.client(trial).request::<Value>(request).await.with_context(|| format!("the server refuses {patch}"))?;
        Ok(())
    }

    pub(crate) async fn delete(self, trial: &Trial) -> anyhow::Result<()> {
        let (path, _) = self.path(trial).await?;
        self.client(trial).request::<Value>(http::Request::delete(path).body(Vec::new())?).await?;
        Ok(())
    }
}

/// Edit of an object by a user.
struct Edit {
    patch: Value,
    /// Patch that reverts the edit. Only a harmless edit has one, because agents keep such an edit. `None` for an edit
    /// that agents repair.
    undo: Option<Value>,
}

fn object(patch: Value) -> Edit {
    Edit { patch, undo: None }
}

fn status(patch: Value) -> Edit {
    Edit { patch: json!({"status": patch}), undo: None }
}

fn harmless(patch: Value, undo: Value) -> Edit {
    Edit { patch, undo: Some(undo) }
}

fn annotation(key: &str, value: Value) -> Value {
    json!({"metadata": {"annotations": {format!("networking.fleet.azure.com/{key}"): value}}})
}

fn label(key: &str, value: Value) -> Value {
    json!({"metadata": {"labels": {format!("networking.fleet.azure.com/{key}"): value}}})
}

/// Asserts that agents keep each harmless edit, and repair all other edits. Importers never see an effect of an edit.
fn repaired(owned: Owned, edits: impl IntoIterator<Item = Edit>) -> anyhow::Result<()> {
    run_settled(async |trial| {
        let mut expected = take_snapshot(&trial.env).await?;
        let mut wrong = Vec::new();
        for Edit { patch, undo } in edits {
            let mark = trial.env.backend.mark().await?;
            owned.patch(trial, &patch).await?;
            sleep(REPAIRED).await;
            let ledger = trial.env.backend.since(&mark).await?.objects();
            let written = ledger.clusters().map(|ledger| ledger.of_agents().count()).sum::<usize>();
            if let Some(undo) = &undo {
                ensure!(written == 0, "{patch} is not harmless:\n{ledger}");
                owned.patch(trial, undo).await?;
            }
            let found = take_snapshot(&trial.env).await?;
            let differences = differences(&expected, &found);
            if !differences.is_empty() || written > WRITES {
                wrong.push(format!("{patch}:\n  {}\n  {written} writes:\n{ledger}", differences.join("\n  ")));
            }
            expected = found;
            sleep(APART).await;
        }
        ensure!(wrong.is_empty(), "{} edits were not repaired:\n{}", wrong.len(), wrong.join("\n"));
        trial.nothing_is_lost(&AFTER).await?;
        trial.recovers(SOON).await
    })
}

/// Asserts that agents repair an edit of the name or the UID with which an object refers to another object. Agents
/// create the correct object again, if necessary with another name. Users notice nothing else.
fn replaced(owned: Owned, edits: impl IntoIterator<Item = Value>) -> anyhow::Result<()> {
    run_settled(async |trial| {
        let expected = of_users(&take_snapshot(&trial.env).await?);
        for edit in edits {
            let mark = trial.env.backend.mark().await?;
            owned.patch(trial, &edit).await?;
            sleep(SOON).await;
            let ledger = trial.env.backend.since(&mark).await?.objects();
            let written = ledger.clusters().map(|ledger| ledger.of_agents().count()).sum::<usize>();
            println!("{edit}: {written} writes");
            ensure!(written <= 2 * WRITES, "{edit} costs {written} writes:\n{ledger}");
            let wrong = differences(&expected, &of_users(&take_snapshot(&trial.env).await?));
            ensure!(wrong.is_empty(), "{edit}:\n{}", wrong.join("\n"));
            let mark = trial.env.backend.mark().await?;
            sleep(SOON).await;
            let ledger = trial.env.backend.since(&mark).await?.objects();
            ensure!(ledger.clusters().all(|ledger| ledger.count() == 0), "{edit} is not settled:\n{ledger}");
        }
        // After the repair, later changes of the source slice still arrive.
        trial.env.user(0).set_endpoints("app-1", &BEFORE).await?;
        trial.env.user(1).sees("app", &BEFORE).await.map(drop)
    })
}

/// Asserts that agents create a deleted object again.
fn recreated(owned: Owned) -> anyhow::Result<()> {
    run_settled(async |trial| {
        let mark = trial.env.backend.mark().await?;
        owned.delete(trial).await?;
        sleep(SOON).await;
        let ledger = trial.env.backend.since(&mark).await?.objects();
        let written = ledger.clusters().map(|ledger| ledger.of_agents().count()).sum::<usize>();
        println!("{written} writes");
        ensure!(written <= 2 * WRITES, "it costs {written} writes:\n{ledger}");
        trial.recovers(Duration::from_secs(120)).await
    })
}

const NONSENSE: &str = "%$ no sense { at [ all";

#[test]
fn a_service_export_edited_by_hand_is_repaired() -> anyhow::Result<()> {
    let owned = Owned::service_export();
    let condition = |kind: &str| {
        json!({"type": kind, "status": "Unknown", "reason": "Nonsense", "message": NONSENSE,
               "lastTransitionTime": "1970-01-01T00:00:00Z", "observedGeneration": 0})
    };
    repaired(
        owned,
        [
            status(json!({"conditions": [condition("Valid")]})),
            status(json!({"conditions": [condition("Valid"), condition("Conflict")]})),
            status(json!({"conditions": []})),
            status(json!({"conditions": null})),
            object(json!({"metadata": {"finalizers": null}})),
        ],
    )
}

#[test]
fn an_internal_service_export_edited_by_hand_is_repaired() -> anyhow::Result<()> {
    repaired(
        Owned::in_hub("internalserviceexports"),
        [
            object(json!({"metadata": {"annotations": {"networking.fleet.azure.com/ports-offered-since": NONSENSE}}})),
            object(
                json!({"metadata": {"annotations": {"networking.fleet.azure.com/ports-offered-since": "9999-99-99T99:99:99Z x"}}}),
            ),
            object(annotation("ports-offered-since", Value::Null)),
            harmless(
                annotation("last-observed-resource-version", Value::Null),
                annotation("last-observed-resource-version", json!("7")),
            ),
            object(json!({"metadata": {"finalizers": null}})),
            object(json!({"spec": {"ports": [{"name": "x", "port": 1}]}})),
            object(json!({"spec": {"serviceReference": {"clusterId": NONSENSE}}})),
            status(json!({"conditions": []})),
            status(json!({"conditions": null})),
        ],
    )
}

#[test]
fn an_internal_service_import_edited_by_hand_is_repaired() -> anyhow::Result<()> {
    repaired(
        Owned::in_hub("internalserviceimports"),
        [
            // Both edits are harmless, so agents keep them. Any value of the annotation `service-type` except ClusterIP
            // means LoadBalancer, which is already the type of this claim. The namespace, not `clusterId`, determines
            // the member of a claim.
            harmless(annotation("service-type", json!(NONSENSE)), annotation("service-type", Value::Null)),
            harmless(
                json!({"spec": {"serviceImportReference": {"clusterId": NONSENSE}}}),
                json!({"spec": {"serviceImportReference": {"clusterId": "member-2"}}}),
            ),
            object(json!({"metadata": {"finalizers": null}})),
            status(json!({"clusters": [{"cluster": NONSENSE}]})),
            status(json!({"ports": [{"port": 1}]})),
            status(json!({"ports": null, "clusters": null, "type": null})),
        ],
    )
}

#[test]
fn the_hubs_service_import_edited_by_hand_is_repaired() -> anyhow::Result<()> {
    let claims = |text: &str| {
        object(json!({"metadata": {"annotations": {"networking.fleet.azure.com/service-in-use-by": text}}}))
    };
    repaired(
        Owned::in_hub("serviceimports"),
        [
            claims(NONSENSE),
            claims("{}"),
            claims("[1, 2]"),
            claims(r#"{"MemberClusters": 7}"#),
            claims(r#"{"MemberClusters": {"fleet-member-nobody": "nobody"}}"#),
            claims(r#"{"MemberClusters": {"fleet-member-member-2": {"a": ["b"]}}}"#),
            object(json!({"metadata": {"annotations": null}})),
            object(json!({"metadata": {"finalizers": null}})),
            status(json!({"clusters": [{"cluster": NONSENSE}]})),
            status(json!({"clusters": null})),
            status(json!({"ports": [{"port": 1}]})),
            status(json!({"ports": null, "clusters": null, "type": null})),
        ],
    )
}

/// Also rule E15.
#[test]
fn an_endpoint_slice_export_edited_by_hand_is_repaired() -> anyhow::Result<()> {
    repaired(
        Owned::in_hub("endpointsliceexports"),
        [
            object(json!({"metadata": {"finalizers": null}})),
            object(json!({"spec": {"endpoints": [{"addresses": ["9.9.9.9"]}]}})),
            object(json!({"spec": {"endpoints": []}})),
            object(json!({"spec": {"ports": [{"name": "http", "port": 9, "protocol": "UDP"}]}})),
            object(json!({"spec": {"ports": null}})),
            object(json!({"spec": {"ownerServiceReference": {"name": "another", "namespacedName": "work/another"}}})),
            object(json!({"spec": {"endpointSliceReference": {"clusterId": NONSENSE}}})),
            object(json!({"spec": {"endpointSliceReference": {"namespacedName": NONSENSE}}})),
            harmless(
                annotation("last-observed-generation", json!(NONSENSE)),
                annotation("last-observed-generation", Value::Null),
            ),
        ],
    )
}

/// Also rule D12.
#[test]
fn an_endpoint_slice_import_edited_by_hand_is_repaired() -> anyhow::Result<()> {
    repaired(
        Owned::in_hub("endpointsliceimports"),
        [
            object(json!({"metadata": {"finalizers": null}})),
            object(json!({"spec": {"endpoints": [{"addresses": ["9.9.9.9"]}]}})),
            object(json!({"spec": {"endpoints": []}})),
            object(json!({"spec": {"ports": null}})),
            object(json!({"spec": {"ownerServiceReference": {"name": "another", "namespacedName": "work/another"}}})),
            object(json!({"spec": {"ownerServiceReference": {"namespacedName": "work/another"}}})),
            object(json!({"spec": {"endpointSliceReference": {"namespacedName": NONSENSE}}})),
            object(json!({"spec": {"endpointSliceReference": {"uid": NONSENSE}}})),
            object(json!({"spec": {"endpointSliceReference": {"generation": 0}}})),
            object(json!({"spec": {"endpointSliceReference": {"exportedSince": "2020-01-01T00:00:00.000001Z"}}})),
        ],
    )
}

#[test]
fn a_multi_cluster_service_edited_by_hand_is_repaired() -> anyhow::Result<()> {
    let label = |key: &str, value: Value| {
        object(json!({"metadata": {"labels": {format!("networking.fleet.azure.com/{key}"): value}}}))
    };
    repaired(
        Owned::at_importer(FLEET, "multiclusterservices"),
        [
            label("service-import", json!("nonsense")),
            label("service-import", Value::Null),
            label("derived-service", json!("No.Sense")),
            label("derived-service", json!("another")),
            label("derived-service", Value::Null),
            object(json!({"metadata": {"labels": null}})),
            object(json!({"metadata": {"finalizers": null}})),
            status(json!({"conditions": []})),
            status(json!({"conditions": null, "loadBalancer": {"ingress": [{"ip": "9.9.9.9"}]}})),
        ],
    )
}

#[test]
fn an_importers_service_import_edited_by_hand_is_repaired() -> anyhow::Result<()> {
    repaired(
        Owned::at_importer(FLEET, "serviceimports"),
        [
            object(json!({"metadata": {"finalizers": null}})),
            object(json!({"metadata": {"ownerReferences": null}})),
            status(json!({"clusters": [{"cluster": NONSENSE}]})),
            status(json!({"ports": [{"port": 1}]})),
            status(json!({"ports": null, "clusters": null, "type": null})),
        ],
    )
}

#[test]
fn a_derived_service_edited_by_hand_is_repaired() -> anyhow::Result<()> {
    repaired(
        Owned::at_importer("/api/v1", "services"),
        [
            object(json!({"spec": {"ports": [{"name": "x", "port": 1}]}})),
            object(json!({"spec": {"type": "ClusterIP"}})),
            object(
                json!({"metadata": {"annotations": {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}}}),
            ),
            object(label("multi-cluster-service-name", json!("nonsense"))),
            object(label("multi-cluster-service-namespace", json!("nonsense"))),
            object(label("multi-cluster-service-name", Value::Null)),
            object(json!({"metadata": {"labels": null}})),
        ],
    )
}

#[test]
fn an_imported_slice_edited_by_hand_is_repaired() -> anyhow::Result<()> {
    repaired(
        Owned::imported_slice(),
        [
            object(json!({"endpoints": [{"addresses": ["9.9.9.9"]}]})),
            object(json!({"endpoints": []})),
            object(json!({"ports": [{"name": "x", "port": 1}]})),
            object(json!({"ports": null})),
            object(json!({"metadata": {"labels": {"kubernetes.io/service-name": "nonsense"}}})),
            object(json!({"metadata": {"labels": {"kubernetes.io/service-name": null}}})),
            object(json!({"metadata": {"labels": {MANAGED_BY: "nonsense"}}})),
            object(json!({"metadata": {"labels": {MANAGED_BY: null}}})),
            object(json!({"metadata": {"labels": null}})),
            // Agents keep an edit of this annotation. It only records the generation of the source slice whose latency
            // was measured. The next change of the slice overwrites it.
            harmless(
                annotation("last-observed-generation", json!(NONSENSE)),
                annotation("last-observed-generation", json!("2")),
            ),
            harmless(
                annotation("last-observed-generation", Value::Null),
                annotation("last-observed-generation", json!("2")),
            ),
        ],
    )
}

/// Returns an edit of the first endpoint in the imported slice.
fn first_endpoint(change: Value) -> Edit {
    let mut endpoints = json!(AFTER.map(|address| json!({"addresses": [address]})));
    for (field, value) in change.as_object().into_iter().flatten() {
        endpoints[0][field] = value.clone();
    }
    object(json!({"endpoints": endpoints}))
}

/// Also rule P11.
#[test]
fn additions_to_an_imported_slice_are_removed_and_fields_of_others_stay() -> anyhow::Result<()> {
    let down = json!({"addresses": ["10.1.0.9"], "conditions": {"ready": false}});
    let label = |key: &str| object(json!({"metadata": {"labels": {key: "x"}}}));
    repaired(
        Owned::imported_slice(),
        [
            first_endpoint(json!({"hints": {"forZones": [{"name": "zone-9"}]}})),
            first_endpoint(json!({"nodeName": "node-1"})),
            first_endpoint(json!({"targetRef": {"kind": "Pod", "namespace": "work", "name": "app"}})),
            first_endpoint(json!({"conditions": {"ready": true, "terminating": true}})),
            object(json!({"endpoints": [{"addresses": [AFTER[0]]}, {"addresses": [AFTER[1]]}, down]})),
            object(json!({"endpoints": [{"addresses": [AFTER[1]]}, {"addresses": [AFTER[0]]}]})),
            label("service.kubernetes.io/headless"),
            label("service.kubernetes.io/service-proxy-name"),
            harmless(json!({"metadata": {"labels": {"team": "red"}}}), json!({"metadata": {"labels": {"team": null}}})),
            harmless(
                json!({"metadata": {"annotations": {"team": "red"}}}),
                json!({"metadata": {"annotations": {"team": null}}}),
            ),
            harmless(
                json!({"metadata": {"finalizers": ["example.com/keep"]}}),
                json!({"metadata": {"finalizers": null}}),
            ),
        ],
    )
}

#[test]
fn an_imported_slice_whose_manager_was_edited_while_no_agent_ran_is_withdrawn_like_any_other() -> anyhow::Result<()> {
    run_settled(async |trial| {
        trial.env.backend.stop_agents().await?;
        let slice = Owned::imported_slice();
        slice.patch(trial, &json!({"metadata": {"labels": {MANAGED_BY: "nonsense"}}})).await?;
        trial.env.user(0).delete::<EndpointSlice>("app-1").await?;
        trial.env.backend.start_agents().await?;
        sleep(REPAIRED).await;
        trial.env.user(1).sees("app", &[]).await?;
        slices_are_left_in_the_hub(&trial.env, 0).await
    })
}

#[test]
fn an_object_changed_to_another_object_by_hand_is_replaced() -> anyhow::Result<()> {
    let edits = |reference: &str, changes: &[Value]| -> Vec<Value> {
        changes.iter().map(|change| json!({"spec": {reference: change}})).collect()
    };
    let (name, namespace, uid) =
        (json!({"name": "another"}), json!({"namespace": "another"}), json!({"uid": NONSENSE}));
    for (plural, edits) in [
        ("internalserviceexports", edits("serviceReference", &[name.clone(), namespace, uid.clone()])),
        ("endpointsliceexports", edits("endpointSliceReference", &[uid.clone(), name.clone()])),
        ("internalserviceimports", edits("serviceImportReference", &[name, uid])),
    ] {
        replaced(Owned::in_hub(plural), edits).context(plural)?;
    }
    Ok(())
}

#[test]
fn an_object_deleted_by_hand_is_created_again() -> anyhow::Result<()> {
    for owned in [
        Owned::in_hub("internalserviceexports"),
        Owned::in_hub("internalserviceimports"),
        Owned::in_hub("serviceimports"),
        Owned::in_hub("endpointsliceexports"),
        Owned::in_hub("endpointsliceimports"),
        Owned::at_importer(FLEET, "serviceimports"),
        Owned::at_importer("/api/v1", "services"),
        Owned::imported_slice(),
    ] {
        recreated(owned).context(owned.plural())?;
    }
    Ok(())
}
