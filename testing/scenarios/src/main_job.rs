//! Scenarios of the main job: members import Services that another member exports. The scenarios check the numbers of
//! writes that docs/contributors/architecture.md states. An audit log has every write of an agent, so the ledgers are
//! exact.

mod ledgers;

use crate::environment::{Backend, Environment};
use crate::ledger::{changes, counts};
use anyhow::Context;
use fleetnet_api::crd::{EndpointSliceExport, EndpointSliceImport, MultiClusterService, ServiceExport, ServiceImport};
use harness::audit::Ledger;
use harness::eventually;
use harness::fleet::FLEET_SYSTEM;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::{Event, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::WatchParams;
use ledgers::{first_export, first_import, unexport, unimport};
use serde_json::json;
use std::collections::BTreeMap;

const CHANGES: usize = 100;

/// Waits until the metrics of the importing member's agent fulfil `condition`. A user sees an imported slice before the
/// agent has the answer to its write, and the agent measures this answer.
async fn importer_exports(
    env: &Environment<impl Backend>,
    mut condition: impl FnMut(&str) -> bool,
) -> anyhow::Result<()> {
    let deadline = eventually::Deadline::start();
    loop {
        let metrics = env.backend.metrics(1).await?;
        if condition(&metrics) {
            return Ok(());
        }
        deadline.check().with_context(|| format!("the last metrics are\n{metrics}"))?;
        tokio::task::yield_now().await;
    }
}

pub async fn the_first_export_and_import_cost_what_the_ledger_lists(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    let exporter = &env.members[0].hub_namespace;

    let mark = env.backend.mark().await?;
    env.export(&["10.1.0.1", "10.1.0.2"]).await?;
    let hub = env.hub::<EndpointSliceExport>(exporter);
    eventually::objects(&hub, &Default::default(), "the exported slice", |objects| objects.len() == 1).await?;
    assert_eq!(env.ledger(&mark).await?, first_export(&env));

    let mark = env.backend.mark().await?;
    env.user(1).import("app", "app", Consume::LoadBalancer).await?;
    let slices = env.user(1).sees("app", &["10.1.0.1", "10.1.0.2"]).await?;
    env.user(1).sees_import("app", "True").await?;
    assert_eq!(env.ledger(&mark).await?, first_import(&env));

    let of_export = ["NoConflictFound", "ServiceIsValid", "ServicePendingConflictResolution"];
    events(&env.user(0), &of_export).await?;
    events(&env.user(1), &["FoundServiceImport", "UnknownServiceImport"]).await?;
    events(&User::new(env.backend.hub(), &env.namespace), &["ImportersChanged", "SuccessfulUpdateStatus"]).await?;

    let derived = env.user(1).derived_service("app").await?;
    assert_eq!(derived.spec.and_then(|spec| spec.type_).as_deref(), Some("LoadBalancer"));
    let slice = slices.into_values().next().expect("one slice was seen");
    let labels = slice.metadata.labels.unwrap_or_default();
    assert_eq!(
        labels["endpointslice.kubernetes.io/managed-by"],
        "endpointsliceimport-controller.networking.fleet.azure.com"
    );
    Ok(())
}

pub async fn a_hundred_changes_cost_one_write_in_the_hub_and_two_for_each_of_two_importers(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export(&["10.1.0.1"]).await?;
    for importer in [1, 2] {
        env.user(importer).import("app", "app", Consume::ClusterIp).await?;
    }
    for importer in [1, 2] {
        env.user(importer).sees("app", &["10.1.0.1"]).await?;
        env.user(importer).sees_import("app", "True").await?;
        let derived = env.user(importer).derived_service("app").await?;
        assert_eq!(derived.spec.and_then(|spec| spec.type_).as_deref(), Some("ClusterIP"));
    }
    let mark = env.backend.mark().await?;
    for change in 0..CHANGES {
        let address = format!("10.2.0.{change}");
        env.user(0).set_endpoints("app-1", &["10.1.0.1", &address]).await?;
        let (one, other, now) = (env.user(1), env.user(2), ["10.1.0.1", &address]);
        futures::try_join!(one.sees("app", &now), other.sees("app", &now))?;
    }
    let members = &env.members;
    let imported = counts(&[(CHANGES, "patch endpointslices in fleet-system by member-agent".to_owned())]);
    assert_eq!(
        env.ledger(&mark).await?,
        [
            counts(&[
                (CHANGES, format!("patch endpointsliceexports in {} by member-agent", members[0].hub_namespace)),
                (CHANGES, format!("patch endpointsliceimports in {} by hub-agent", members[1].hub_namespace)),
                (CHANGES, format!("patch endpointsliceimports in {} by hub-agent", members[2].hub_namespace)),
            ]),
            BTreeMap::new(),
            imported.clone(),
            imported,
        ]
    );
    let ledger = env.backend.since(&mark).await?;
    let events: usize = ledger.clusters().map(|ledger| ledger.events().count()).sum();
    assert_eq!(events, 0, "no Event repeats:\n{ledger}");
    let series = format!(
        "fleet_networking_endpointslice_export_import_duration_milliseconds_count{{destination_cluster_id=\"{}\",\
             is_first_import=\"false\",origin_cluster_id=\"{}\"}} {CHANGES}",
        members[1].cluster_id, members[0].cluster_id
    );
    importer_exports(&env, |metrics| metrics.contains(&series)).await
}

pub async fn a_settled_fleet_a_restart_and_changes_that_importers_cannot_see_cost_nothing(
    mut env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    let mark = env.backend.mark().await?;

    env.backend.stop_agents().await?;
    env.backend.start_agents().await?;
    let exporter = env.user(0);
    exporter.merge::<EndpointSlice>("app-1", json!({"metadata": {"annotations": {"seen": "no"}}})).await?;
    exporter.merge::<Service>("app", json!({"metadata": {"annotations": {"seen": "no"}}})).await?;
    let not_ready = json!({"endpoints": [
        {"addresses": ["10.1.0.1"], "conditions": {"ready": true}},
        {"addresses": ["10.1.0.9"], "conditions": {"ready": false}},
    ]});
    exporter.merge::<EndpointSlice>("app-1", not_ready).await?;

    // Make one more change. When the importer has this change, the agents have handled all earlier changes.
    exporter.set_endpoints("app-1", &["10.1.0.2"]).await?;
    env.user(1).sees("app", &["10.1.0.2"]).await?;
    assert_eq!(env.ledger(&mark).await?, changes(&env, 1));
    Ok(())
}

pub async fn b1b_a_slice_recycled_on_the_way_to_zero_and_back_keeps_its_export(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    let exporter = env.user(0);
    let of_a_go_agent = json!({"metadata": {"annotations": {"networking.fleet.azure.com/fleet-unique-name": "x"}}});
    exporter.merge::<EndpointSlice>("app-1", of_a_go_agent).await?;
    let mark = env.backend.mark().await?;

    exporter.recycle_slice("app", "app-1", &[]).await?;
    env.user(1).sees("app", &[]).await?;
    exporter.recycle_slice("app", "app-1", &["10.1.0.7"]).await?;
    let slices = env.user(1).sees("app", &["10.1.0.7"]).await?;
    assert_eq!(slices.len(), 1);
    assert_eq!(env.ledger(&mark).await?, changes(&env, 2));
    Ok(())
}

pub async fn b1_a_deleted_slice_is_withdrawn_by_its_event(env: Environment<impl Backend>) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    let exporter = env.user(0);
    exporter.create_slice("app", "app-2", &["10.1.0.2"]).await?;
    env.user(1).sees("app", &["10.1.0.1", "10.1.0.2"]).await?;
    let mark = env.backend.mark().await?;

    exporter.delete::<EndpointSlice>("app-2").await?;
    let slices = env.user(1).sees("app", &["10.1.0.1"]).await?;
    assert_eq!(slices.len(), 1, "the slice itself is gone, not only its endpoints");
    let [from, to] = [&env.members[0].hub_namespace, &env.members[1].hub_namespace];
    let imports = env.hub::<EndpointSliceImport>(to);
    eventually::objects(&imports, &Default::default(), "one import to be left", |objects| objects.len() == 1).await?;
    let exports = env.hub::<EndpointSliceExport>(from);
    eventually::objects(&exports, &Default::default(), "one export to be left", |objects| objects.len() == 1).await?;
    assert_eq!(
        env.ledger(&mark).await?,
        [
            counts(&[
                (1, format!("delete endpointsliceexports in {from} by member-agent")),
                (1, format!("delete endpointsliceimports in {to} by hub-agent")),
                (1, format!("patch endpointsliceexports in {from} by hub-agent")),
                (1, format!("patch endpointsliceimports in {to} by member-agent")),
            ]),
            BTreeMap::new(),
            counts(&[(1, "delete endpointslices in fleet-system by member-agent".to_owned())]),
        ]
    );
    Ok(())
}

pub async fn an_imported_slice_deleted_by_hand_is_created_again_and_not_measured_again(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    let slices = env.user(1).sees("app", &["10.1.0.1"]).await?;
    let slice = slices.into_values().next().expect("one slice was seen");
    let in_system = User::new(env.members[1].client.clone(), FLEET_SYSTEM);
    let name = slice.metadata.name.unwrap_or_default();
    in_system.delete::<EndpointSlice>(&name).await?;
    let is_new = |seen: &EndpointSlice| seen.metadata.uid != slice.metadata.uid;
    eventually::object(&in_system.api::<EndpointSlice>(), &name, "the slice to be created again", is_new).await?;
    env.user(0).set_endpoints("app-1", &["10.1.0.2"]).await?;
    env.user(1).sees("app", &["10.1.0.2"]).await?;

    importer_exports(&env, |metrics| {
        let series = "fleet_networking_endpointslice_export_import_duration_milliseconds_count";
        let samples: Vec<&str> = metrics.lines().filter(|line| line.starts_with(series)).collect();
        let counts: Vec<&str> = samples.iter().filter_map(|line| line.rsplit(' ').next()).collect();
        assert!(counts.iter().all(|count| *count == "1"), "one first import and one change: {samples:?}");
        counts.len() == 2
    })
    .await
}

pub async fn an_unexported_service_leaves_nothing_in_the_hub_and_its_derived_service_goes_after_the_grace(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;

    let mark = env.backend.mark().await?;
    env.user(0).delete::<ServiceExport>("app").await?;
    env.user(1).sees_no_slice("app").await?;
    env.user(1).no_derived_service("app").await?;
    env.user(1).sees_import("app", "Unknown").await?;
    eventually::gone(&env.user(0).api::<ServiceExport>(), "app").await?;
    env.hub_is_empty(0).await?;
    let imports = env.hub::<ServiceImport>(&env.namespace);
    eventually::gone(&imports, "app").await?;
    assert_eq!(env.ledger(&mark).await?, unexport(&env));

    // A Service that was unexported can be exported and imported again.
    env.user(0).export("app").await?;
    env.user(1).sees("app", &["10.1.0.1"]).await?;
    env.user(1).sees_import("app", "True").await
}

pub async fn a_deleted_multi_cluster_service_leaves_nothing_in_its_cluster_and_in_the_hub(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;

    let mark = env.backend.mark().await?;
    env.user(1).delete::<MultiClusterService>("app").await?;
    eventually::gone(&env.user(1).api::<MultiClusterService>(), "app").await?;
    env.user(1).sees_no_slice("app").await?;
    env.user(1).no_derived_service("app").await?;
    eventually::gone(&env.user(1).api::<ServiceImport>(), "app").await?;
    env.hub_is_empty(1).await?;
    assert_eq!(env.ledger(&mark).await?, unimport(&env));

    // A new import works, even right after the old one was deleted.
    env.user(1).import("app", "app", Consume::LoadBalancer).await?;
    env.user(1).sees("app", &["10.1.0.1"]).await.map(drop)
}

pub async fn a_service_deleted_and_created_again_is_exported_again(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    let exporter = env.user(0);

    let mark = env.backend.mark().await?;
    exporter.delete::<Service>("app").await?;
    exporter.sees_export("app", "Valid", "False", "ServiceNotFound").await?;
    env.user(1).sees("app", &[]).await?;
    exporter.create_service_with_port("app", 81).await?;
    exporter.sees_export("app", "Valid", "True", "ServiceIsValid").await?;
    env.user(1).sees("app", &["10.1.0.1"]).await?;
    let failed_writes = |ledger: &Ledger| ledger.filter(|entry| entry.status >= 400).count();
    let ledger = env.backend.since(&mark).await?.objects();
    assert_eq!(ledger.clusters().map(failed_writes).sum::<usize>(), 0, "{ledger}");

    // Delete and create without a pause: the agents may never see that the Service was deleted.
    exporter.delete::<Service>("app").await?;
    exporter.create_service_with_port("app", 82).await?;
    let has_port_82 = |service: &Service| {
        service.spec.iter().flat_map(|spec| spec.ports.iter().flatten()).any(|port| port.port == 82)
    };
    let derived: Api<Service> = Api::namespaced(env.members[1].client.clone(), FLEET_SYSTEM);
    let name = format!("{}-app", env.namespace);
    eventually::object(&derived, &name, "the derived Service to have port 82", has_port_82).await?;
    env.user(1).sees("app", &["10.1.0.1"]).await.map(drop)
}

/// Waits until the agents' Events in the user's namespace have exactly these reasons, each once. The API server's
/// Events do not count.
async fn events(user: &User, reasons: &[&str]) -> anyhow::Result<()> {
    let what = format!("Events with the reasons {reasons:?}");
    let are_there = |objects: &BTreeMap<String, Event>| {
        let by_agents = objects
            .values()
            .filter(|event| event.reporting_instance.as_deref().is_some_and(|instance| instance.contains("-agent_")));
        let mut shown: Vec<&str> = by_agents.filter_map(|event| event.reason.as_deref()).collect();
        shown.sort_unstable();
        shown == reasons
    };
    eventually::objects(&user.api::<Event>(), &WatchParams::default(), &what, are_there).await.map(drop)
}
