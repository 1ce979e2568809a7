//! Tests of the standard API `multicluster.x-k8s.io`, on paused time and with the real engine. `tests/tests/e2e/multicluster.rs` plays
//! the main job with processes and real control planes.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::multicluster::{ServiceExport, ServiceImport};
use fleetnet_core::hub::NamespacePolicy;
use fleetnet_core::member::StandardApi;
use harness::eventually;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, ResourceExt as _};
use serde_json::json;
use sim::{Fleet, Options};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

/// Conditions of an export that is part of an import without conflicts.
const EXPORTED: [&str; 3] = ["Conflict=False NoConflicts", "Ready=True Exported", "Valid=True Valid"];

/// Conditions of an export whose cluster may not export the Service.
const DENIED: [&str; 2] = ["Ready=False Failed", "Valid=True Valid"];

/// Conditions of an export whose cluster has lost the right to export the Service.
const DENIED_LATER: [&str; 3] = ["Conflict=False NoConflicts", "Ready=False Failed", "Valid=True Valid"];

/// Returns a fleet that uses the standard API, and the user of the namespace `work` in each member. The namespaces import.
async fn fleet(members: usize) -> anyhow::Result<(Fleet, Vec<User>)> {
    fleet_with(Options::members(members)).await
}

async fn fleet_with(options: Options) -> anyhow::Result<(Fleet, Vec<User>)> {
    let standard_api = StandardApi::LabelledNamespaces;
    let mut fleet = Fleet::new(Options { standard_api, ..options }).await?;
    let mut users = Vec::new();
    for member in &fleet.members {
        member.server.make_namespace("work").await?;
        let user = User::new(member.server.admin(), "work");
        user.label_namespace(Some("true")).await?;
        users.push(user);
    }
    fleet.start_agents().await?;
    Ok((fleet, users))
}

/// Returns how often agents wrote to each resource since there were `before` writes.
fn writes_since(fleet: &Fleet, before: &BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    let mut counts = writes(fleet);
    for (write, number) in before {
        *counts.entry(write.clone()).or_default() -= number;
    }
    counts.retain(|_, number| *number > 0);
    counts
}

/// Returns how often agents wrote to each resource.
fn writes(fleet: &Fleet) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for entry in fleet.agent_writes() {
        let target = &entry.call.target;
        let subresource = if target.subresource.is_empty() { "" } else { "/" };
        let shown = format!("{} {}{subresource}{}", entry.call.verb.name(), target.resource, target.subresource);
        *counts.entry(shown).or_default() += 1;
    }
    counts
}

fn counted(expected: &[(&str, usize)]) -> BTreeMap<String, usize> {
    expected.iter().map(|(write, number)| ((*write).to_owned(), *number)).collect()
}

#[test]
fn a_service_is_exported_and_imported_with_the_writes_of_the_ledger() -> anyhow::Result<()> {
    sim::paused(async {
        let (fleet, users) = fleet(2).await?;
        users[1].label_namespace(None).await?;
        let before = writes(&fleet);
        users[0].create_service("app").await?;
        users[0].create_slice("app", "app-1", &["10.1.0.1"]).await?;
        users[0].export_standard("app", json!({"exportedLabels": {"team": "blue"}})).await?;
        users[0].sees_conditions("app", &EXPORTED).await?;
        let import = users[0].sees_ready_import("app", &["member-1"]).await?;
        users[0].sees_standard_slices("app", &["member-1 10.1.0.1"]).await?;
        sleep(Duration::from_secs(30)).await;
        let expected = counted(&[
            // The exporter.
            ("create internalserviceexports", 1),
            ("patch serviceexports/status", 2),
            ("create endpointsliceexports", 1),
            // The hub: an outcome for the export, a MergedServiceImport for each member, a finalizer for the slice.
            ("patch internalserviceexports/status", 1),
            ("create mergedserviceimports", 2),
            ("patch endpointsliceexports", 1),
            ("create endpointsliceimports", 1),
            // The importer. It also has a finalizer on the MergedServiceImport and on the distributed slice.
            ("patch mergedserviceimports", 1),
            ("patch endpointsliceimports", 1),
            ("create services", 1),
            ("create serviceimports", 1),
            ("patch serviceimports/status", 1),
            ("create endpointslices", 1),
        ]);
        assert_eq!(writes_since(&fleet, &before), expected);
        let services = users[0].api::<Service>();
        let derived = services.list(&Default::default()).await?.items.into_iter().find(|it| it.name_any() != "app");
        let derived = derived.context("a derived Service")?.spec.context("a spec")?;
        assert_eq!((import.spec.ips, import.spec.ip_families), (derived.cluster_ips, derived.ip_families));
        assert_eq!(import.metadata.labels.context("labels")?.get("team").map(String::as_str), Some("blue"));

        users[1].label_namespace(Some("true")).await?;
        users[1].sees_ready_import("app", &["member-1"]).await?;
        users[1].sees_standard_slices("app", &["member-1 10.1.0.1"]).await?;
        let before = writes(&fleet);
        users[0].set_endpoints("app-1", &["10.1.0.1", "10.1.0.2"]).await?;
        for user in &users {
            user.sees_standard_slices("app", &["member-1 10.1.0.1", "member-1 10.1.0.2"]).await?;
        }
        sleep(Duration::from_secs(30)).await;
        // One write for the export, and two for each importer.
        let expected = counted(&[
            ("patch endpointsliceexports", 1),
            ("patch endpointsliceimports", 2),
            ("patch endpointslices", 2),
        ]);
        assert_eq!(writes_since(&fleet, &before), expected);

        users[0].delete::<ServiceExport>("app").await?;
        for user in &users {
            eventually::gone(&user.api::<ServiceImport>(), "app").await?;
            user.sees_standard_slices("app", &[]).await?;
        }
        sleep(Duration::from_secs(60)).await;
        for (user, left) in users.iter().zip([1, 0]) {
            assert_eq!(user.api::<Service>().list(&Default::default()).await?.items.len(), left);
            assert_eq!(user.api::<EndpointSlice>().list(&Default::default()).await?.items.len(), left);
        }
        Ok(())
    })
}

#[test]
fn with_the_strict_policy_a_service_is_imported_while_the_hub_has_its_namespace() -> anyhow::Result<()> {
    sim::paused(async {
        let (fleet, users) =
            fleet_with(Options { namespace_policy: NamespacePolicy::Strict, ..Options::members(2) }).await?;
        users[0].create_service("app").await?;
        users[0].create_slice("app", "app-1", &["10.1.0.1"]).await?;
        users[0].export_standard("app", json!({})).await?;
        users[0].sees_conditions("app", &DENIED).await?;
        fleet.hub.make_namespace("work").await?;
        for user in &users {
            user.sees_ready_import("app", &["member-1"]).await?;
            user.sees_standard_slices("app", &["member-1 10.1.0.1"]).await?;
        }
        let namespaces: Api<Namespace> = Api::all(fleet.hub.admin());
        namespaces.delete("work", &Default::default()).await?;
        for user in &users {
            eventually::gone(&user.api::<ServiceImport>(), "app").await?;
            user.sees_standard_slices("app", &[]).await?;
        }
        users[0].sees_conditions("app", &DENIED_LATER).await?;
        Ok(())
    })
}

#[test]
fn both_apis_export_and_import_a_service_side_by_side() -> anyhow::Result<()> {
    sim::paused(async {
        let (fleet, users) = fleet(2).await?;
        fleet.hub.make_namespace("work").await?;
        users[0].create_service("app").await?;
        users[0].create_slice("app", "app-1", &["10.1.0.1"]).await?;
        users[0].export("app").await?;
        users[0].export_standard("app", json!({})).await?;
        users[1].import("app", "app", Consume::ClusterIp).await?;
        users[1].sees("app", &["10.1.0.1"]).await?;
        users[1].sees_standard_slices("app", &["member-1 10.1.0.1"]).await?;
        users[0].sees_conditions("app", &EXPORTED).await?;
        sleep(Duration::from_secs(30)).await;
        let before = writes(&fleet);
        users[0].set_endpoints("app-1", &["10.1.0.9"]).await?;
        users[1].sees("app", &["10.1.0.9"]).await?;
        users[1].sees_standard_slices("app", &["member-1 10.1.0.9"]).await?;
        sleep(Duration::from_secs(30)).await;
        let expected = counted(&[
            ("patch endpointsliceexports", 1),
            ("patch endpointsliceimports", 2),
            ("patch endpointslices", 3),
        ]);
        assert_eq!(writes_since(&fleet, &before), expected, "the exporter imports too");

        users[0].delete::<ServiceExport>("app").await?;
        eventually::gone(&users[1].api::<ServiceImport>(), "app").await?;
        users[1].sees_standard_slices("app", &[]).await?;
        users[1].sees("app", &["10.1.0.9"]).await?;
        sleep(Duration::from_secs(60)).await;
        users[1].sees("app", &["10.1.0.9"]).await?;
        users[0].export_standard("app", json!({})).await?;
        users[1].sees_standard_slices("app", &["member-1 10.1.0.9"]).await?;
        users[0].delete::<fleetnet_api::crd::ServiceExport>("app").await?;
        sleep(Duration::from_secs(90)).await;
        users[1].sees_no_slice("app").await?;
        users[1].no_derived_service("app").await?;
        users[1].sees_standard_slices("app", &["member-1 10.1.0.9"]).await.map(drop)
    })
}

#[test]
fn a_settled_fleet_writes_nothing_also_after_restarts() -> anyhow::Result<()> {
    sim::paused(async {
        let (mut fleet, users) = fleet(2).await?;
        for (user, address) in users.iter().zip(["10.1.0.1", "10.2.0.1"]) {
            user.create_service("app").await?;
            user.create_slice("app", "app-1", &[address]).await?;
            user.export_standard("app", json!({})).await?;
        }
        let all = ["member-1 10.1.0.1", "member-2 10.2.0.1"];
        for user in &users {
            user.sees_standard_slices("app", &all).await?;
            user.sees_ready_import("app", &["member-1", "member-2"]).await?;
            user.sees_conditions("app", &EXPORTED).await?;
        }
        sleep(Duration::from_secs(60)).await;
        let before = writes(&fleet);
        let places: Vec<_> = fleet.places().collect();
        for place in places {
            fleet.kill(place).await;
            fleet.start(place)?;
            fleet.ready().await?;
            sleep(Duration::from_secs(120)).await;
        }
        ensure!(writes(&fleet) == before, "{:?}", writes_since(&fleet, &before));
        for user in &users {
            user.sees_standard_slices("app", &all).await?;
        }
        Ok(())
    })
}
