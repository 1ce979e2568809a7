//! Deletions that Kubernetes carries out itself: of namespaces with all their objects, and of objects with those that they own.
//! On real servers kube-controller-manager does it; memkube does it at once.

#![allow(missing_docs, clippy::missing_errors_doc, reason = "the name of a scene says what must hold")]

use crate::audit::FleetMark;
use crate::eventually;
use crate::stage::{Ground, Place, Stage};
use crate::user::{Consume, User};
use anyhow::{Context as _, ensure};
use fleetnet_api::crd::{EndpointSliceExport, MultiClusterService, ServiceExport, ServiceImport};
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use std::collections::BTreeMap;

/// Limit of writes that fail while a namespace is being deleted, which takes up to half a minute on a real server. More would
/// be a loop without back-off.
const REFUSED_AT_MOST: usize = 10;

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

/// Checks that few of the agents' writes since then failed.
async fn few_were_refused(stage: &Stage<impl Ground>, mark: &FleetMark) -> anyhow::Result<()> {
    let told = stage.ground.since(mark).await?;
    let told = told.objects();
    let refused = told.clusters().map(|ledger| ledger.filter(|entry| entry.status >= 400).count()).sum::<usize>();
    ensure!(refused <= REFUSED_AT_MOST, "{refused} writes were refused:\n{told}");
    Ok(())
}

pub async fn a_namespace_that_goes_in_the_exporting_member_is_gone_with_its_exports(
    stage: Stage<impl Ground>,
) -> anyhow::Result<()> {
    stage.export_and_import(&["10.1.0.1"]).await?;
    let (exporting, importer) = (stage.members[0].client.clone(), stage.user(1));

    let mark = stage.ground.mark().await?;
    end(exporting.clone(), &stage.namespace).await?;
    stage.hub_is_empty(0).await?;
    importer.sees_no_slice("app").await?;
    importer.no_derived_service("app").await?;
    importer.sees_import("app", "Unknown").await?;
    eventually::gone(&stage.hub::<ServiceImport>(&stage.namespace), "app").await?;
    few_were_refused(&stage, &mark).await?;

    begin(exporting, &stage.namespace).await?;
    stage.export(&["10.1.0.2"]).await?;
    importer.sees("app", &["10.1.0.2"]).await?;
    importer.sees_import("app", "True").await
}

pub async fn a_namespace_that_goes_in_the_importing_member_is_gone_with_its_imports(
    stage: Stage<impl Ground>,
) -> anyhow::Result<()> {
    stage.export_and_import(&["10.1.0.1"]).await?;
    let (importing, importer) = (stage.members[1].client.clone(), stage.user(1));

    let mark = stage.ground.mark().await?;
    end(importing.clone(), &stage.namespace).await?;
    importer.sees_no_slice("app").await?;
    importer.no_derived_service("app").await?;
    stage.hub_is_empty(1).await?;
    few_were_refused(&stage, &mark).await?;

    begin(importing, &stage.namespace).await?;
    importer.import("app", "app", Consume::LoadBalancer).await?;
    importer.sees("app", &["10.1.0.1"]).await.map(drop)
}

pub async fn a_namespace_that_goes_in_the_hub_takes_nothing_away(stage: Stage<impl Ground>) -> anyhow::Result<()> {
    stage.export_and_import(&["10.1.0.1"]).await?;
    let importer = stage.user(1);
    let derived = importer.derived_service("app").await?;
    let mut routes = importer.routes("app");
    routes.are(&["10.1.0.1:8080"]).await?;

    let mark = stage.ground.mark().await?;
    end(stage.ground.hub(), &stage.namespace).await?;
    begin(stage.ground.hub(), &stage.namespace).await?;
    eventually::there(&stage.hub::<ServiceImport>(&stage.namespace), "app").await?;
    stage.user(0).set_endpoints("app-1", &["10.1.0.1", "10.1.0.2"]).await?;
    routes.are(&["10.1.0.1:8080", "10.1.0.2:8080"]).await?;
    routes.always_led_to(&["10.1.0.1:8080"])?;
    importer.sees_import("app", "True").await?;
    assert_eq!(importer.derived_service("app").await?.metadata.uid, derived.metadata.uid);
    few_were_refused(&stage, &mark).await
}

/// The member's agent loses its account with the namespace.
pub async fn an_exporting_members_namespace_that_goes_in_the_hub_is_gone_and_its_exports_with_it(
    stage: Stage<impl Ground>,
) -> anyhow::Result<()> {
    stage.export_and_import(&["10.1.0.1"]).await?;
    end(stage.ground.hub(), &stage.members[0].hub_namespace).await?;
    stage.user(1).sees_no_slice("app").await?;
    stage.user(1).sees_import("app", "Unknown").await?;
    eventually::gone(&stage.hub::<ServiceImport>(&stage.namespace), "app").await
}

/// The distributed slices have the finalizer of the member's agent, which may no longer remove it.
pub async fn an_importing_members_namespace_that_goes_in_the_hub_is_gone(
    mut stage: Stage<impl Ground>,
) -> anyhow::Result<()> {
    stage.export_and_import(&["10.1.0.1"]).await?;
    stage.ground.stop_agent(Place::Member(1)).await?;
    end(stage.ground.hub(), &stage.members[1].hub_namespace).await?;
    let exports = stage.hub::<EndpointSliceExport>(&stage.members[0].hub_namespace);
    let are_let_go = |held: &BTreeMap<String, EndpointSliceExport>| {
        held.len() == 1 && held.values().all(|export| export.finalizers().is_empty())
    };
    eventually::objects(&exports, &Default::default(), "the exported slice without copies", are_let_go).await?;
    let imports = stage.hub::<ServiceImport>(&stage.namespace);
    let is_unclaimed =
        |import: &ServiceImport| !import.annotations().contains_key("networking.fleet.azure.com/service-in-use-by");
    eventually::object(&imports, "app", "the ServiceImport without claims", is_unclaimed).await.map(drop)
}

/// Checks that a MultiClusterService is deleted with all that was created for it, for each propagation policy. A new one of its
/// name imports again.
async fn is_unimported(stage: &Stage<impl Ground>, importer: &User, how: &DeleteParams) -> anyhow::Result<()> {
    let wishes = importer.api::<MultiClusterService>();
    let mark = stage.ground.mark().await?;
    wishes.delete("app", how).await?;
    eventually::gone(&wishes, "app").await?;
    importer.sees_no_slice("app").await?;
    importer.no_derived_service("app").await?;
    eventually::gone(&importer.api::<ServiceImport>(), "app").await?;
    stage.hub_is_empty(1).await?;
    few_were_refused(stage, &mark).await?;
    importer.import("app", "app", Consume::LoadBalancer).await?;
    importer.sees("app", &["10.1.0.1"]).await?;
    importer.sees_import("app", "True").await
}

pub async fn a_multi_cluster_service_is_gone_however_its_deletion_propagates(
    stage: Stage<impl Ground>,
) -> anyhow::Result<()> {
    stage.export_and_import(&["10.1.0.1"]).await?;
    for how in [DeleteParams::foreground(), DeleteParams::background(), DeleteParams::orphan()] {
        is_unimported(&stage, &stage.user(1), &how).await.with_context(|| format!("deleted with {how:?}"))?;
    }
    Ok(())
}

pub async fn a_service_export_is_gone_however_its_deletion_propagates(stage: Stage<impl Ground>) -> anyhow::Result<()> {
    stage.export_and_import(&["10.1.0.1"]).await?;
    let exporter = stage.user(0);
    for how in [DeleteParams::foreground(), DeleteParams::background(), DeleteParams::orphan()] {
        let exports = exporter.api::<ServiceExport>();
        exports.delete("app", &how).await?;
        eventually::gone(&exports, "app").await.with_context(|| format!("deleted with {how:?}"))?;
        stage.user(1).sees_no_slice("app").await?;
        stage.hub_is_empty(0).await?;
        exporter.export("app").await?;
        stage.user(1).sees("app", &["10.1.0.1"]).await?;
    }
    Ok(())
}

/// The slices of a Service with a selector belong to it: the garbage collector deletes them after it, or before it is gone.
pub async fn a_service_that_goes_takes_its_slices_with_it_and_their_exports(
    stage: Stage<impl Ground>,
) -> anyhow::Result<()> {
    let (exporter, importer) = (stage.user(0), stage.user(1));
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
        stage.hub_has_no_slices(0).await.with_context(|| format!("deleted with {how:?}"))?;
    }
    Ok(())
}

/// A restore from a backup gives objects other UIDs, with this effect.
pub async fn a_service_import_whose_owner_is_not_there_is_collected_and_made_anew(
    stage: Stage<impl Ground>,
) -> anyhow::Result<()> {
    stage.export_and_import(&["10.1.0.1"]).await?;
    let importer = stage.user(1);
    let imports = importer.api::<ServiceImport>();
    let before = imports.get("app").await?;
    let mut owner = before.owner_references().first().context("its MultiClusterService owns it")?.clone();
    owner.uid = "6f3cf4f8-0000-4000-8000-000000000001".to_owned();
    importer.merge::<ServiceImport>("app", json!({"metadata": {"ownerReferences": [owner]}})).await?;
    let anew = |import: &ServiceImport| import.metadata.uid != before.metadata.uid;
    eventually::object(&imports, "app", "the ServiceImport to be made anew", anew).await?;
    importer.sees("app", &["10.1.0.1"]).await?;
    importer.sees_import("app", "True").await
}
