//! Make before break: slices are replaced, and importers have endpoints at every moment.

use crate::eventually;
use crate::stage::{Ground, Stage};
use crate::user::User;
use fleetnet_api::crd::{EndpointSliceExport, EndpointSliceImport};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::WatchParams;
use serde_json::json;
use std::collections::BTreeMap;

/// Replaces the slices of `app`, as kube-controller-manager does when new pods listen on another port. New slices with the new
/// ports come first, then the old ones go.
pub async fn make_slices_anew(exporter: &User, old: &str, new: &str, address: &str, port: u16) -> anyhow::Result<()> {
    exporter.create_slice_with_port("app", new, &[address], port).await?;
    exporter.delete::<EndpointSlice>(old).await
}

/// Replaces slices after a change of the pods' named port, which the Service does not show, and then of the Service's port too.
/// Then the endpoints move to another slice, and the empty one stays.
pub async fn slices_made_anew_leave_no_moment_without_endpoints(stage: Stage<impl Ground>) -> anyhow::Result<()> {
    stage.export_and_import(&["10.1.0.1"]).await?;
    let (exporter, importer) = (stage.user(0), stage.user(1));
    let mut routes = importer.routes("app");
    routes.are(&["10.1.0.1:8080"]).await?;

    make_slices_anew(&exporter, "app-1", "app-2", "10.1.0.2", 8081).await?;
    routes.are(&["10.1.0.2:8081"]).await?;

    let ports = json!({"spec": {"ports": [{"name": "http", "port": 81, "targetPort": 8082}]}});
    exporter.merge::<Service>("app", ports).await?;
    make_slices_anew(&exporter, "app-2", "app-3", "10.1.0.3", 8082).await?;
    routes.are(&["10.1.0.3:8082"]).await?;
    importer.sees_derived_port("app", 81).await?;

    exporter.create_slice_with_port("app", "app-4", &["10.1.0.4"], 8082).await?;
    exporter.set_endpoints("app-3", &[]).await?;
    routes.are(&["10.1.0.4:8082"]).await?;

    routes.never_led_nowhere()?;
    slices_are_left_in_the_hub(&stage, 2).await
}

/// Waits until the hub has that many slices of the first member and distributes as many to the second.
pub async fn slices_are_left_in_the_hub(stage: &Stage<impl Ground>, count: usize) -> anyhow::Result<()> {
    let ours = format!("-{}-", stage.namespace);
    let what = format!("{count} slices of {}", stage.namespace);
    let exports = stage.hub::<EndpointSliceExport>(&stage.members[0].hub_namespace);
    let are_exported = |held: &BTreeMap<String, _>| held.keys().filter(|name| name.contains(&ours)).count() == count;
    eventually::objects(&exports, &WatchParams::default(), &what, are_exported).await?;
    let imports = stage.hub::<EndpointSliceImport>(&stage.members[1].hub_namespace);
    let are_given = |held: &BTreeMap<String, _>| held.keys().filter(|name| name.contains(&ours)).count() == count;
    eventually::objects(&imports, &WatchParams::default(), &what, are_given).await.map(drop)
}
