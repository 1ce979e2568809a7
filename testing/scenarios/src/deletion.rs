//! Scenarios of deletions by Kubernetes: of the objects in a namespace that is being deleted, and of the objects that a
//! deleted object owns. On real servers kube-controller-manager deletes these objects some time later. memkube deletes
//! them at once.

use crate::environment::{AgentPlace, Backend, Environment};
use anyhow::{Context as _, ensure};
use fleetnet_api::crd::{EndpointSliceExport, MultiClusterService, ServiceExport, ServiceImport};
use harness::audit::FleetMark;
use harness::eventually;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use std::collections::BTreeMap;

/// Limit for the agents' failed writes while a namespace is being deleted, which takes up to 30 s on a real server. An
/// agent without back-off would make more failed writes.
const FAILED_AT_MOST: usize = 10;

/// Deletes a namespace and waits until it is gone.
async fn end(client: Client, namespace: &str) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(client);
    namespaces.delete(namespace, &DeleteParams::default()).await?;
    eventually::gone(&namespaces, namespace).await
}

async fn begin(client: Client, namespace: &str) -> anyhow::Result<()> {
    let made = serde_json::from_value(json!({"metadata": {"name": namespace}}))?;
    Api::<Namespace>::all(client).create(&PostParams::default(), &made).await?;
    Ok(())
}

/// Checks that at most [`FAILED_AT_MOST`] of the agents' writes after the position `mark` failed.
async fn few_writes_failed(env: &Environment<impl Backend>, mark: &FleetMark) -> anyhow::Result<()> {
    let ledger = env.backend.since(mark).await?;
    let ledger = ledger.objects();
    let failed = ledger.clusters().map(|ledger| ledger.filter(|entry| entry.status >= 400).count()).sum::<usize>();
    ensure!(failed <= FAILED_AT_MOST, "{failed} writes failed:\n{ledger}");
    Ok(())
}

pub async fn a_namespace_deleted_in_the_exporting_member_is_removed_with_its_exports(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    let (exporting, importer) = (env.members[0].client.clone(), env.user(1));

    let mark = env.backend.mark().await?;
    end(exporting.clone(), &env.namespace).await?;
    env.hub_is_empty(0).await?;
    importer.sees_no_slice("app").await?;
    importer.no_derived_service("app").await?;
    importer.sees_import("app", "Unknown").await?;
    eventually::gone(&env.hub::<ServiceImport>(&env.namespace), "app").await?;
    few_writes_failed(&env, &mark).await?;

    begin(exporting, &env.namespace).await?;
    env.export(&["10.1.0.2"]).await?;
    importer.sees("app", &["10.1.0.2"]).await?;
    importer.sees_import("app", "True").await
}

pub async fn a_namespace_deleted_in_the_importing_member_is_removed_with_its_imports(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    let (importing, importer) = (env.members[1].client.clone(), env.user(1));

    let mark = env.backend.mark().await?;
    end(importing.clone(), &env.namespace).await?;
    importer.sees_no_slice("app").await?;
    importer.no_derived_service("app").await?;
    env.hub_is_empty(1).await?;
    few_writes_failed(&env, &mark).await?;

    begin(importing, &env.namespace).await?;
    importer.import("app", "app", Consume::LoadBalancer).await?;
    importer.sees("app", &["10.1.0.1"]).await.map(drop)
}

pub async fn a_namespace_deleted_in_the_hub_removes_nothing_in_the_members(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    let importer = env.user(1);
    let derived = importer.derived_service("app").await?;
    let mut routes = importer.routes("app");
    routes.are(&["10.1.0.1:8080"]).await?;

    let mark = env.backend.mark().await?;
    end(env.backend.hub(), &env.namespace).await?;
    begin(env.backend.hub(), &env.namespace).await?;
    eventually::exists(&env.hub::<ServiceImport>(&env.namespace), "app").await?;
    env.user(0).set_endpoints("app-1", &["10.1.0.1", "10.1.0.2"]).await?;
    routes.are(&["10.1.0.1:8080", "10.1.0.2:8080"]).await?;
    routes.always_had(&["10.1.0.1:8080"])?;
    importer.sees_import("app", "True").await?;
    assert_eq!(importer.derived_service("app").await?.metadata.uid, derived.metadata.uid);
    few_writes_failed(&env, &mark).await
}

/// Scenario: an exporter's namespace in the hub is deleted. The namespace contains the account of the member's agent,
/// so the agent loses its rights too.
pub async fn an_exporting_members_namespace_deleted_in_the_hub_is_removed_with_its_exports(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    end(env.backend.hub(), &env.members[0].hub_namespace).await?;
    env.user(1).sees_no_slice("app").await?;
    env.user(1).sees_import("app", "Unknown").await?;
    eventually::gone(&env.hub::<ServiceImport>(&env.namespace), "app").await
}

/// Scenario: an importer's namespace in the hub is deleted. The distributed slices have a finalizer of the member's
/// agent, and the agent loses the right to remove this finalizer.
///
/// Also rule D13.
pub async fn an_importing_members_namespace_deleted_in_the_hub_is_removed(
    mut env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    env.backend.stop_agent(AgentPlace::Member(1)).await?;
    end(env.backend.hub(), &env.members[1].hub_namespace).await?;
    let exports = env.hub::<EndpointSliceExport>(&env.members[0].hub_namespace);
    let have_no_finalizers = |objects: &BTreeMap<String, EndpointSliceExport>| {
        objects.len() == 1 && objects.values().all(|export| export.finalizers().is_empty())
    };
    eventually::objects(
        &exports,
        &Default::default(),
        "the exported slice without distributed slices",
        have_no_finalizers,
    )
    .await?;
    let imports = env.hub::<ServiceImport>(&env.namespace);
    let is_unclaimed =
        |import: &ServiceImport| !import.annotations().contains_key("networking.fleet.azure.com/service-in-use-by");
    eventually::object(&imports, "app", "the ServiceImport without claims", is_unclaimed).await.map(drop)
}

/// Checks that all objects of a deleted MultiClusterService are removed, with this propagation policy. A new
/// MultiClusterService with the same name must import again.
async fn is_unimported(env: &Environment<impl Backend>, importer: &User, how: &DeleteParams) -> anyhow::Result<()> {
    let request = importer.api::<MultiClusterService>();
    let mark = env.backend.mark().await?;
    request.delete("app", how).await?;
    eventually::gone(&request, "app").await?;
    importer.sees_no_slice("app").await?;
    importer.no_derived_service("app").await?;
    eventually::gone(&importer.api::<ServiceImport>(), "app").await?;
    env.hub_is_empty(1).await?;
    few_writes_failed(env, &mark).await?;
    importer.import("app", "app", Consume::LoadBalancer).await?;
    importer.sees("app", &["10.1.0.1"]).await?;
    importer.sees_import("app", "True").await
}

/// Also rule M12.
pub async fn a_multi_cluster_service_is_removed_with_any_propagation_of_its_deletion(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    for how in [DeleteParams::foreground(), DeleteParams::background(), DeleteParams::orphan()] {
        is_unimported(&env, &env.user(1), &how).await.with_context(|| format!("deleted with {how:?}"))?;
    }
    Ok(())
}

pub async fn a_service_export_is_removed_with_any_propagation_of_its_deletion(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    let exporter = env.user(0);
    for how in [DeleteParams::foreground(), DeleteParams::background(), DeleteParams::orphan()] {
        let exports = exporter.api::<ServiceExport>();
        exports.delete("app", &how).await?;
        eventually::gone(&exports, "app").await.with_context(|| format!("deleted with {how:?}"))?;
        env.user(1).sees_no_slice("app").await?;
        env.hub_is_empty(0).await?;
        exporter.export("app").await?;
        env.user(1).sees("app", &["10.1.0.1"]).await?;
    }
    Ok(())
}

/// Scenario: the slices of a Service with a selector have the Service as owner. The garbage collector deletes these
/// slices after the Service, or before the Service with foreground deletion.
pub async fn a_deleted_service_is_removed_with_its_slices_and_their_exports(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    let (exporter, importer) = (env.user(0), env.user(1));
    importer.import("app", "app", Consume::ClusterIp).await?;
    exporter.export("app").await?;
    for how in [DeleteParams::background(), DeleteParams::foreground()] {
        let service = exporter.create_service("app").await?;
        let owner = json!({
            "apiVersion": "v1", "kind": "Service", "name": "app", "uid": service.metadata.uid,
            "controller": true, "blockOwnerDeletion": true,
        });
        exporter.create_slice("app", "app-1", &["10.1.0.1"]).await?;
        exporter.merge::<EndpointSlice>("app-1", json!({"metadata": {"ownerReferences": [owner]}})).await?;
        importer.sees("app", &["10.1.0.1"]).await?;

        let services = exporter.api::<Service>();
        services.delete("app", &how).await?;
        eventually::gone(&exporter.api::<EndpointSlice>(), "app-1").await?;
        eventually::gone(&services, "app").await?;
        exporter.sees_export("app", "Valid", "False", "ServiceNotFound").await?;
        importer.sees("app", &[]).await?;
        env.hub_has_no_slices(0).await.with_context(|| format!("deleted with {how:?}"))?;
    }
    Ok(())
}

/// Scenario: after a restore from a backup, objects have new UIDs, so an owner reference names an owner that does not
/// exist.
pub async fn a_service_import_without_its_owner_is_garbage_collected_and_created_again(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    let importer = env.user(1);
    let imports = importer.api::<ServiceImport>();
    let before = imports.get("app").await?;
    let mut owner = before.owner_references().first().context("its MultiClusterService owns it")?.clone();
    owner.uid = "6f3cf4f8-0000-4000-8000-000000000001".to_owned();
    importer.merge::<ServiceImport>("app", json!({"metadata": {"ownerReferences": [owner]}})).await?;
    let is_new = |import: &ServiceImport| import.metadata.uid != before.metadata.uid;
    eventually::object(&imports, "app", "the ServiceImport to be created again", is_new).await?;
    importer.sees("app", &["10.1.0.1"]).await?;
    importer.sees_import("app", "True").await
}
