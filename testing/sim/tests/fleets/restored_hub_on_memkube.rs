//! Tests of a hub that is restored from a backup. `testing/scenarios/tests/e2e/old_backup.rs` plays restores on real
//! control planes.

use anyhow::ensure;
use fleetnet_api::crd::{InternalServiceImport, MemberAgent};
use fleetnet_core::member::McsApi;
use harness::user::{Consume, User};
use kube::Api;
use serde_json::json;
use sim::fleet::Place;
use sim::partition::Partition;
use sim::{Fleet, Options};
use std::time::Duration;
use tokio::time::sleep;

/// Also rule V4.
#[test]
fn an_agent_that_reaches_a_restored_hub_late_notices_it_by_a_conflict() -> anyhow::Result<()> {
    sim::paused(async {
        let mut fleet = Fleet::new(Options::members(2)).await?;
        fleet.make_namespace("work").await?;
        fleet.start_agents().await?;
        let [exporter, importer] = [0, 1].map(|index: usize| User::new(fleet.members[index].server.admin(), "work"));
        exporter.export_new("app", &["10.1.0.1"]).await?;
        sleep(Duration::from_secs(30)).await;
        let backup = fleet.hub.memkube().backup();
        importer.import("app", "app", Consume::ClusterIp).await?;
        importer.sees("app", &["10.1.0.1"]).await?;
        sleep(Duration::from_secs(30)).await;

        let network = Partition::before(&fleet.hub);
        network.drop_all_of([&*fleet.members[1].hub_user]);
        fleet.hub.memkube().restore(&backup);
        // The revision of the hub rises above all versions that the importer's agent knows, before the hub agent judges
        // the importer.
        for round in 0..100 {
            exporter.set_endpoints("app-1", &[&format!("10.1.0.{}", round % 2 + 2)]).await?;
            sleep(Duration::from_millis(400)).await;
        }
        network.mend();
        fleet.kill(Place::Hub).await;
        fleet.start(Place::Hub)?;
        sleep(Duration::from_secs(120)).await;
        let agents: Api<MemberAgent> = Api::namespaced(fleet.hub.admin(), "fleet-member-member-2");
        let renewed = agents.get("member-2").await?.spec.renew_time.0.as_microsecond();
        let overdue = (fleet.clock().now().0 - renewed) / 1_000_000;
        ensure!(overdue <= 11, "the last renewal is {overdue} s old");
        let claims: Api<InternalServiceImport> = Api::namespaced(fleet.hub.admin(), "fleet-member-member-2");
        ensure!(claims.get_opt("work-app").await?.is_some(), "the claim that the backup does not have");
        importer.sees("app", &["10.1.0.3"]).await?;
        Ok(())
    })
}

/// Also rule ME9.
#[test]
fn a_service_stays_imported_if_the_backup_has_only_its_export_by_the_fleets_api() -> anyhow::Result<()> {
    sim::paused(async {
        let mcs_api = McsApi::LabelledNamespaces;
        let mut fleet = Fleet::new(Options { mcs_api, ..Options::members(2) }).await?;
        fleet.make_namespace("work").await?;
        fleet.start_agents().await?;
        let [exporter, importer] = [0, 1].map(|index: usize| User::new(fleet.members[index].server.admin(), "work"));
        importer.label_namespace(Some("true")).await?;
        exporter.export_new("app", &["10.1.0.1"]).await?;
        exporter.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
        sleep(Duration::from_secs(30)).await;
        let backup = fleet.hub.memkube().backup();
        exporter.export_mcs("app", json!({})).await?;
        importer.sees_mcs_slices("app", &["member-1 10.1.0.1"]).await?;
        exporter.delete::<fleetnet_api::crd::ServiceExport>("app").await?;
        let import = importer.sees_ready_import("app", &["member-1"]).await?;
        sleep(Duration::from_secs(30)).await;

        // Writes that would change the endpoints or the address of the import.
        let disruptive = |fleet: &Fleet| {
            let writes = fleet.agent_writes().into_iter().filter(|entry| {
                let (verb, resource) = (entry.call.verb.name(), &*entry.call.target.resource);
                resource == "endpointslices"
                    || verb == "delete" && ["endpointsliceexports", "services"].contains(&resource)
            });
            writes.map(|entry| format!("{:?}", entry.call)).collect::<Vec<_>>()
        };
        let before = disruptive(&fleet);
        fleet.hub.memkube().restore(&backup);
        sleep(Duration::from_secs(120)).await;
        ensure!(disruptive(&fleet) == before, "{:?}", disruptive(&fleet));
        importer.sees_mcs_slices("app", &["member-1 10.1.0.1"]).await?;
        ensure!(importer.sees_ready_import("app", &["member-1"]).await?.spec.ips == import.spec.ips);
        Ok(())
    })
}
