//! Tests of names that not every server accepts, on paused time and with the real engine.

use anyhow::ensure;
use fleetnet_core::member::McsApi;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::Service;
use kube::{Api, ResourceExt as _};
use serde_json::json;
use sim::server::FLEET_SYSTEM;
use sim::{Fleet, Options};

/// Also rule N4.
#[test]
fn a_service_whose_name_begins_with_a_digit_is_exported_and_imported_by_both_apis() -> anyhow::Result<()> {
    sim::paused(async {
        let mcs_api = McsApi::LabelledNamespaces;
        let mut fleet = Fleet::new(Options { mcs_api, ..Options::members(2) }).await?;
        fleet.hub.make_namespace("game").await?;
        let mut users = Vec::new();
        for member in &fleet.members {
            member.server.make_namespace("game").await?;
            let user = User::new(member.server.admin(), "game");
            user.label_namespace(Some("true")).await?;
            users.push(user);
        }
        fleet.start_agents().await?;
        let (exporter, importer) = (&users[0], &users[1]);
        for (service, address) in [("3scale", "10.1.0.1"), ("2048", "10.1.0.2")] {
            exporter.serve(service, &[address]).await?;
        }

        exporter.export("3scale").await?;
        importer.import("3scale", "3scale", Consume::ClusterIp).await?;
        importer.sees("3scale", &["10.1.0.1"]).await?;
        importer.sees_import("3scale", "True").await?;

        exporter.export_mcs("2048", json!({})).await?;
        importer.sees_ready_import("2048", &["member-1"]).await?;
        importer.sees_mcs_slices("2048", &["member-1 10.1.0.2"]).await?;

        // A server before Kubernetes 1.36 also accepts the names that the agents chose.
        for namespace in [FLEET_SYSTEM, "game"] {
            let derived: Api<Service> = Api::namespaced(fleet.members[1].server.admin(), namespace);
            let derived = derived.list(&Default::default()).await?.items;
            ensure!(!derived.is_empty(), "a derived Service in {namespace}");
            for service in derived {
                ensure!(service.name_any().starts_with(|first: char| first.is_ascii_lowercase()), "{service:?}");
            }
        }
        Ok(())
    })
}
