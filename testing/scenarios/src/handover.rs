//! Scenarios of handover (make-before-break): slices are replaced, and importers have endpoints at every moment.

use crate::environment::{Backend, Environment};
use fleetnet_api::crd::{EndpointSliceExport, EndpointSliceImport};
use harness::eventually;
use harness::user::User;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::WatchParams;
use serde_json::json;
use std::collections::BTreeMap;

/// Replaces the slices of `app`, as kube-controller-manager does when new pods listen on another port. The controller
/// creates slices with the new port first, then deletes the old slices.
pub async fn recreate_slices(exporter: &User, old: &str, new: &str, address: &str, port: u16) -> anyhow::Result<()> {
    exporter.create_slice_with_port("app", new, &[address], port).await?;
    exporter.delete::<EndpointSlice>(old).await
}

/// Scenario with three changes. First only the pods' named port changes, which is not visible in the Service. Then the
/// Service's port changes too. Last, the endpoints move to another slice, and the empty slice stays.
pub async fn recreated_slices_leave_no_moment_without_endpoints(env: Environment<impl Backend>) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    let (exporter, importer) = (env.user(0), env.user(1));
    let mut routes = importer.routes("app");
    routes.are(&["10.1.0.1:8080"]).await?;

    recreate_slices(&exporter, "app-1", "app-2", "10.1.0.2", 8081).await?;
    routes.are(&["10.1.0.2:8081"]).await?;

    let ports = json!({"spec": {"ports": [{"name": "http", "port": 81, "targetPort": 8082}]}});
    exporter.merge::<Service>("app", ports).await?;
    recreate_slices(&exporter, "app-2", "app-3", "10.1.0.3", 8082).await?;
    routes.are(&["10.1.0.3:8082"]).await?;
    importer.sees_derived_port("app", 81).await?;

    exporter.create_slice_with_port("app", "app-4", &["10.1.0.4"], 8082).await?;
    exporter.set_endpoints("app-3", &[]).await?;
    routes.are(&["10.1.0.4:8082"]).await?;

    routes.never_empty()?;
    slices_are_left_in_the_hub(&env, 2).await
}

/// Waits until the hub has `count` exported slices of the first member, and `count` distributed slices for the second
/// member.
pub async fn slices_are_left_in_the_hub(env: &Environment<impl Backend>, count: usize) -> anyhow::Result<()> {
    let ours = format!("-{}-", env.namespace);
    let what = format!("{count} slices of {}", env.namespace);
    let exports = env.hub::<EndpointSliceExport>(&env.members[0].hub_namespace);
    let are_exported =
        |objects: &BTreeMap<String, _>| objects.keys().filter(|name| name.contains(&ours)).count() == count;
    eventually::objects(&exports, &WatchParams::default(), &what, are_exported).await?;
    let imports = env.hub::<EndpointSliceImport>(&env.members[1].hub_namespace);
    let are_distributed =
        |objects: &BTreeMap<String, _>| objects.keys().filter(|name| name.contains(&ours)).count() == count;
    eventually::objects(&imports, &WatchParams::default(), &what, are_distributed).await.map(drop)
}
