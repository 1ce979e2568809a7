//! Scenarios of limited trust in a member: which members may export from a namespace or import from it, and which
//! objects a member can forge.

use crate::environment::{AgentPlace, Backend, Environment};
use crate::ledger::{changes, counts};
use crate::rich;
use anyhow::{Context as _, ensure};
use fleetnet_api::crd::{
    EndpointSliceExport, InternalServiceExport, InternalServiceImport, MultiClusterService, ServiceImport,
};
use harness::eventually;
use harness::fleet::FLEET_SYSTEM;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use std::collections::BTreeMap;

/// Limits the members that may export from the users' namespace, or import from it. `members` is the name of the
/// annotation that lists them in the hub. `clusters` is the list; `None` removes the annotation, so all members are
/// allowed.
pub async fn name(env: &Environment<impl Backend>, members: &str, clusters: Option<&str>) -> anyhow::Result<()> {
    let annotations = json!({format!("networking.fleet.azure.com/{members}"): clusters});
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    let namespaces: Api<Namespace> = Api::all(env.backend.hub());
    namespaces.patch(&env.namespace, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Returns a user with all rights in a member's namespace of the hub.
fn in_hub(env: &Environment<impl Backend>, member: usize) -> User {
    User::new(env.backend.hub(), &env.members[member].hub_namespace)
}

/// Waits until the condition of the InternalServiceExport of `app` in the hub has this status and reason.
async fn hub_sets_condition(
    env: &Environment<impl Backend>,
    status: &str,
    reason: &str,
) -> anyhow::Result<InternalServiceExport> {
    let has_condition = |export: &InternalServiceExport| {
        let conditions = export.status.iter().flat_map(|it| it.conditions.iter().flatten());
        conditions.into_iter().any(|it| it.type_ == "Valid" && it.status == status && it.reason == reason)
    };
    let what = format!("the hub to say Valid={status} ({reason})");
    let exports = in_hub(env, 0).api::<InternalServiceExport>();
    eventually::object(&exports, &format!("{}-app", env.namespace), &what, has_condition).await
}

/// Also rules T10, T11, T12.
pub async fn an_exporter_that_is_not_allowed_exports_nothing_and_is_notified(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    let (exporter, importer) = (env.user(0), env.user(1));
    let [this, other] = [&env.members[0].cluster_id, &env.members[1].cluster_id];
    let why = format!("Add {this} there, or remove the annotation");
    name(&env, "exporters", Some(other)).await?;
    exporter.create_service("app").await?;
    exporter.create_slice("app", "app-1", &["10.1.0.1"]).await?;
    importer.import("app", "app", Consume::ClusterIp).await?;
    importer.sees_import("app", "Unknown").await?;

    exporter.export("app").await?;
    exporter.sees_export("app", "Valid", "False", "ExporterNotAllowed").await?;
    assert_eq!(exporter.sees_event("ServiceExport", "ExporterNotAllowed", &why).await?, 1);
    assert_eq!(in_hub(&env, 0).sees_event("InternalServiceExport", "ExporterNotAllowed", &why).await?, 1);
    rich::is_exported(&env, &[]).await?;

    name(&env, "exporters", Some(&format!("{other}, {this}"))).await?;
    importer.sees("app", &["10.1.0.1"]).await?;
    importer.sees_import("app", "True").await?;
    exporter.sees_export("app", "Valid", "True", "ServiceIsValid").await?;
    let allowed = hub_sets_condition(&env, "True", "ExporterAllowed").await?;
    let derived = importer.derived_service("app").await?;

    let mark = env.backend.mark().await?;
    name(&env, "exporters", Some("")).await?;
    exporter.sees_export("app", "Valid", "False", "ExporterNotAllowed").await?;
    importer.sees_no_slice("app").await?;
    importer.sees_import("app", "Unknown").await?;
    let denied = hub_sets_condition(&env, "False", "ExporterNotAllowed").await?;
    assert_eq!(denied.metadata.uid, allowed.metadata.uid, "it stays, and waits to be allowed again");
    for member in [0, 1] {
        env.hub_has_no_slices(member).await?;
    }
    eventually::gone(&env.hub::<ServiceImport>(&env.namespace), "app").await?;
    eventually::without_finalizers(&in_hub(&env, 1).api::<InternalServiceImport>(), &format!("{}-app", env.namespace))
        .await?;
    assert_eq!(env.ledger(&mark).await?, exporter_denied(&env));

    name(&env, "exporters", None).await?;
    importer.sees("app", &["10.1.0.1"]).await?;
    exporter.sees_export("app", "Valid", "True", "ServiceIsValid").await?;
    importer.sees_import("app", "True").await?;
    assert_eq!(importer.derived_service("app").await?.metadata.uid, derived.metadata.uid, "with its address");
    assert_eq!(exporter.sees_events("ServiceExport", "ExporterNotAllowed", &why, 2).await?, 2, "once each time");
    Ok(())
}

/// Returns the expected writes if the only exporter of an imported Service with one slice loses the right to export it.
/// The array has the writes in the hub, in the exporter and in the importer.
fn exporter_denied<B>(env: &Environment<B>) -> [BTreeMap<String, usize>; 3] {
    let [from, to] = [&env.members[0].hub_namespace, &env.members[1].hub_namespace];
    let user = &env.namespace;
    [
        counts(&[
            (1, format!("patch internalserviceexports/status in {from} by hub-agent")),
            (1, format!("patch serviceimports in {user} by hub-agent")),
            (1, format!("delete serviceimports in {user} by hub-agent")),
            (1, format!("patch internalserviceimports/status in {to} by hub-agent")),
            (1, format!("patch internalserviceimports in {to} by hub-agent")),
            (1, format!("delete endpointsliceexports in {from} by member-agent")),
            (1, format!("delete endpointsliceimports in {to} by hub-agent")),
            (1, format!("patch endpointsliceexports in {from} by hub-agent")),
            (1, format!("patch endpointsliceimports in {to} by member-agent")),
        ]),
        counts(&[(1, format!("patch serviceexports/status in {user} by member-agent"))]),
        counts(&[
            (1, format!("patch serviceimports/status in {user} by member-agent")),
            (1, format!("patch multiclusterservices/status in {user} by member-agent")),
            (1, format!("delete endpointslices in {FLEET_SYSTEM} by member-agent")),
        ]),
    ]
}

/// Also rule T14.
pub async fn an_importer_that_is_not_allowed_imports_nothing_and_is_notified(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    let importer = env.user(1);
    let [exporting, this] = [&env.members[0].cluster_id, &env.members[1].cluster_id];
    let why = format!("cluster {this} may not import from namespace {} of the hub", env.namespace);
    let events =
        async |times| in_hub(&env, 1).sees_events("InternalServiceImport", "ImporterNotAllowed", &why, times).await;
    name(&env, "importers", Some(exporting)).await?;
    env.export(&["10.1.0.1"]).await?;
    importer.import("app", "app", Consume::LoadBalancer).await?;
    assert_eq!(events(1).await?, 1);
    importer.sees_import("app", "Unknown").await?;
    let claim = in_hub(&env, 1).api::<InternalServiceImport>().get(&format!("{}-app", env.namespace)).await?;
    assert_eq!(serde_json::to_value(claim.status)?.get("clusters"), None, "its status is empty");
    importer.sees_no_slice("app").await?;
    importer.no_derived_service("app").await?;

    name(&env, "importers", Some(this)).await?;
    importer.sees("app", &["10.1.0.1"]).await?;
    importer.sees_import("app", "True").await?;

    let mark = env.backend.mark().await?;
    name(&env, "importers", Some("")).await?;
    importer.sees_no_slice("app").await?;
    importer.sees_import("app", "Unknown").await?;
    importer.no_derived_service("app").await?;
    let derives_nothing =
        |object: &MultiClusterService| !object.labels().contains_key("networking.fleet.azure.com/derived-service");
    let multi_cluster_services = importer.api::<MultiClusterService>();
    eventually::object(
        &multi_cluster_services,
        "app",
        "the label to go that names the derived Service",
        derives_nothing,
    )
    .await?;
    env.hub_has_no_slices(1).await?;
    let exports = in_hub(&env, 0).api::<EndpointSliceExport>();
    let export = exports.list(&Default::default()).await?.items.pop().context("the slice is exported as before")?;
    eventually::without_finalizers(&exports, &export.name_any()).await?;
    assert_eq!(env.ledger(&mark).await?, importer_denied(&env));

    name(&env, "importers", None).await?;
    importer.sees("app", &["10.1.0.1"]).await?;
    importer.sees_import("app", "True").await?;
    assert_eq!(events(2).await?, 2, "once each time");
    Ok(())
}

/// Returns the expected writes if the only importer of a Service with one slice loses the right to import it. The array
/// has the writes in the hub, in the exporter and in the importer.
fn importer_denied<B>(env: &Environment<B>) -> [BTreeMap<String, usize>; 3] {
    let [from, to] = [&env.members[0].hub_namespace, &env.members[1].hub_namespace];
    let user = &env.namespace;
    [
        counts(&[
            (1, format!("patch serviceimports in {user} by hub-agent")),
            (1, format!("patch internalserviceimports/status in {to} by hub-agent")),
            (1, format!("delete endpointsliceimports in {to} by hub-agent")),
            (1, format!("patch endpointsliceimports in {to} by member-agent")),
            (1, format!("patch endpointsliceexports in {from} by hub-agent")),
        ]),
        counts(&[]),
        counts(&[
            (1, format!("patch serviceimports/status in {user} by member-agent")),
            (1, format!("patch multiclusterservices/status in {user} by member-agent")),
            (1, format!("patch multiclusterservices in {user} by member-agent")),
            (1, format!("delete services in {FLEET_SYSTEM} by member-agent")),
            (1, format!("delete endpointslices in {FLEET_SYSTEM} by member-agent")),
        ]),
    ]
}

/// Also rules T21, T22.
pub async fn addresses_outside_the_declared_ranges_are_not_imported_and_are_reported(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    let (exporter, importer) = (env.user(0), env.user(1));
    let why = |address: &str| {
        format!("address {address} (outside the ranges that --source-ranges declares for that cluster)")
    };
    let events =
        async |address: &str| importer.sees_event("MultiClusterService", "AddressRefused", &why(address)).await;
    let endpoints = |addresses: &[&str]| addresses.iter().map(|address| json!({"addresses": [address]})).collect();
    env.export_and_import(&["10.1.0.1"]).await?;
    rich::create_slice(&exporter, rich::SIXES, "IPv6", endpoints(&["fd00:1::1", "fd00:2::1"])).await?;
    importer.sees("app", &["10.1.0.1", "fd00:1::1"]).await?;
    assert_eq!(events("fd00:2::1").await?, 1);

    let mark = env.backend.mark().await?;
    exporter.set_endpoints("app-1", &["10.1.0.2", "10.2.0.1"]).await?;
    importer.sees("app", &["10.1.0.2", "fd00:1::1"]).await?;
    exporter.set_endpoints("app-1", &["10.1.0.3", "10.2.0.1"]).await?;
    importer.sees("app", &["10.1.0.3", "fd00:1::1"]).await?;
    assert_eq!(env.ledger(&mark).await?, changes(&env, 2));
    assert_eq!(events("10.2.0.1").await?, 1, "it is no news the second time");

    // A change of an address outside of the allowed ranges arrives in the hub and changes nothing in the importer.
    let mark = env.backend.mark().await?;
    exporter.set_endpoints("app-1", &["10.1.0.3", "10.2.0.2"]).await?;
    let outside = rich::slice("IPv4", endpoints(&["10.1.0.3", "10.2.0.2"]));
    let sixes = rich::slice("IPv6", endpoints(&["fd00:1::1", "fd00:2::1"]));
    rich::is_distributed(&env, &[outside, sixes]).await?;
    exporter.set_endpoints("app-1", &["10.1.0.4", "10.1.0.5"]).await?;
    importer.sees("app", &["10.1.0.4", "10.1.0.5", "fd00:1::1"]).await?;
    let [hub, exporting, importing] = changes(&env, 2);
    let one = importing.into_keys().map(|line| (1, line)).collect::<Vec<_>>();
    assert_eq!(env.ledger(&mark).await?, [hub, exporting, counts(&one)]);
    Ok(())
}

/// Scenario: somebody has the credentials of the second member, whose agent does not run, and writes objects to that
/// member's namespace in the hub.
///
/// Also rules T3, T4.
pub async fn objects_that_a_member_forges_are_rejected_and_reported_and_change_nothing(
    mut env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    let (exporter, forger) = (env.user(0), in_hub(&env, 1));
    let [this, other] = [&env.members[0], &env.members[1]].map(|member| member.cluster_id.clone());
    env.export(&["10.1.0.1"]).await?;
    exporter.import("app", "app", Consume::ClusterIp).await?;
    exporter.sees("app", &["10.1.0.1"]).await?;
    exporter.sees_import("app", "True").await?;
    env.backend.stop_agent(AgentPlace::Member(1)).await?;
    let genuine = in_hub(&env, 0).api::<EndpointSliceExport>().list(&Default::default()).await?.items.pop();
    let genuine = genuine.context("the slice is exported")?;
    let mut routes = exporter.routes("app");
    routes.are(&["10.1.0.1:8080"]).await?;

    let mut spec = serde_json::to_value(&genuine.spec)?;
    spec["endpoints"] = json!([{"addresses": ["10.66.0.1"]}]);
    spec["endpointSliceReference"]["clusterId"] = json!(this);
    let name = format!("{other}-{}-app-1-abcde", env.namespace);
    forger.create::<EndpointSliceExport>(json!({"metadata": {"name": name}, "spec": spec})).await?;
    let why = format!("cluster {this} already exports it");
    assert_eq!(forger.sees_event("EndpointSliceExport", "SliceHeldByAnother", &why).await?, 1);
    spec["endpointSliceReference"]["uid"] = json!("6f3cf4f8-0000-4000-8000-000000000001");
    let name = genuine.name_any();
    forger.create::<EndpointSliceExport>(json!({"metadata": {"name": name}, "spec": spec})).await?;
    let holder = format!("{}/{name}", env.members[0].hub_namespace);
    let why = format!("EndpointSliceExport {holder} of cluster {this} already uses the name");
    assert_eq!(forger.sees_event("EndpointSliceExport", "NameHeldByAnother", &why).await?, 1);

    exporter.set_endpoints("app-1", &["10.1.0.1", "10.1.0.2"]).await?;
    routes.are(&["10.1.0.1:8080", "10.1.0.2:8080"]).await?;
    routes.always_had(&["10.1.0.1:8080"])?;
    ensure!(routes.events()? == 2, "none but that change: {routes:?}");
    Ok(())
}

/// Also rules T20, T22.
pub async fn addresses_that_no_other_cluster_can_have_are_not_imported_and_are_reported(
    mut env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    env.backend.stop_agent(AgentPlace::Member(0)).await?;
    let exports = in_hub(&env, 0).api::<EndpointSliceExport>();
    let export = exports.list(&Default::default()).await?.items.pop().context("the slice is exported")?;
    let endpoints = json!([
        {"addresses": ["10.1.0.2"]}, {"addresses": ["127.0.0.1"]}, {"addresses": ["169.254.169.254"]}, {"addresses": ["::1"]},
    ]);
    let patch = Patch::Merge(json!({"spec": {"endpoints": endpoints}}));
    exports.patch(&export.name_any(), &PatchParams::default(), &patch).await?;
    let importer = env.user(1);
    importer.sees("app", &["10.1.0.2"]).await?;
    let why = "address 127.0.0.1 (loopback), address 169.254.169.254 (link-local), address ::1 (no address of the slice's type)";
    assert_eq!(importer.sees_event("MultiClusterService", "AddressRefused", why).await?, 1);
    Ok(())
}
