//! Tests of the standard API `multicluster.x-k8s.io`, with processes and real control planes.
//! `testing/sim/tests/fleets/mcs_on_memkube.rs` plays more on paused time.

mod dns;
mod specs;
mod suite;

use anyhow::ensure;
use fleetnet_api::crd::mcs::{ServiceExport, ServiceImport};
use fleetnet_api::crds;
use harness::agent::Agent;
use harness::eventually;
use harness::fleet::{Fleet, manifests};
use harness::user::User;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;
use serde_json::json;

/// Starts a fleet whose members have the definitions of the standard API, and whose member agents have the rights for
/// it.
async fn fleet(members: usize) -> anyhow::Result<Fleet> {
    let fleet = Fleet::own(members).await?;
    let definitions: Vec<String> = crds::mcs().iter().map(crds::yaml).collect();
    for member in &fleet.members {
        member.control_plane.apply_definitions(&definitions).await?;
        manifests::apply(&member.control_plane, manifests::MCS_API).await?;
    }
    Ok(fleet)
}

/// Starts the agents of a fleet, which use the standard API.
async fn agents(fleet: &Fleet, namespaces: &str) -> anyhow::Result<Vec<Agent>> {
    agents_with(fleet, namespaces, "false").await
}

/// The same with a value of `--routing-slices`.
async fn agents_with(fleet: &Fleet, namespaces: &str, routing_slices: &str) -> anyhow::Result<Vec<Agent>> {
    let mut agents = vec![fleet.hub_agent().await?.start_ready().await?];
    for member in &fleet.members {
        let agent = fleet.member_agent(member).await?;
        let agent = agent.flag("--multicluster-api", "true").flag("--multicluster-api-import", namespaces);
        let agent = agent.flag("--derived-service-grace", "1s");
        agents.push(agent.flag("--routing-slices", routing_slices).start_ready().await?);
    }
    Ok(agents)
}

/// Also rule MI26.
#[test]
fn with_routing_slices_gateways_and_kube_proxy_find_the_endpoints_of_an_import() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = fleet(2).await?;
        let namespace = fleet.namespace("standard").await?;
        let [exporter, importer] =
            [0, 1].map(|index| User::new(fleet.members[index].control_plane.admin(), &namespace));
        let agents = agents_with(&fleet, "labelled", "true").await?;
        let cluster = &*fleet.members[0].cluster_id;
        exporter.create_service("app").await?;
        exporter.create_slice("app", "app-1", &["10.1.0.1"]).await?;
        exporter.export_mcs("app", json!({})).await?;
        importer.label_namespace(Some("true")).await?;
        importer.sees_ready_import("app", &[cluster]).await?;
        for address in ["10.1.0.1", "10.1.0.2"] {
            exporter.set_endpoints("app-1", &[address]).await?;
            importer.sees_gateway_endpoints("app", &[&format!("{cluster} {address}")]).await?;
            importer.sees_derived_endpoints(&[address]).await?;
        }
        exporter.delete::<ServiceExport>("app").await?;
        importer.sees_gateway_endpoints("app", &[]).await?;
        importer.sees_derived_endpoints(&[]).await?;
        drop(agents);
        Ok(())
    })
}

#[test]
fn a_service_is_exported_and_imported_and_edits_are_repaired_under_the_policy_of_the_manifest() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = fleet(2).await?;
        let namespace = fleet.namespace("standard").await?;
        let [exporter, importer] =
            [0, 1].map(|index| User::new(fleet.members[index].control_plane.admin(), &namespace));
        let agents = agents(&fleet, "labelled").await?;
        let cluster = &*fleet.members[0].cluster_id;
        exporter.create_service("app").await?;
        exporter.create_slice("app", "app-1", &["10.1.0.1"]).await?;
        exporter.export_mcs("app", json!({"exportedLabels": {"team": "blue"}})).await?;
        exporter
            .sees_conditions("app", &["Conflict=False NoConflicts", "Ready=True Exported", "Valid=True Valid"])
            .await?;
        importer.label_namespace(Some("true")).await?;
        let import = importer.sees_ready_import("app", &[cluster]).await?;
        let endpoint = format!("{cluster} 10.1.0.1");
        let slices = importer.sees_mcs_slices("app", &[&endpoint]).await?;
        let derived = importer.sees_derived_by_mcs_api("app", "to exist", |_| true).await?;
        let spec = derived.spec.clone().unwrap_or_default();
        ensure!((import.spec.ips, import.spec.ip_families) == (spec.cluster_ips, spec.ip_families));
        ensure!(import.metadata.labels.is_some_and(|labels| labels.get("team").is_some_and(|team| team == "blue")));

        // The labels show who writes an object. The policy lets the agent restore them.
        let writer = "app.kubernetes.io/managed-by";
        let unlabelled = json!({"metadata": {"labels": {writer: null}}});
        importer.merge::<Service>(&derived.name_any(), unlabelled.clone()).await?;
        let has_label = |labels: Option<&String>| labels.is_some_and(|writer| writer == "fleetnet-member-agent");
        let is_labelled = |service: &Service| has_label(service.labels().get(writer));
        eventually::object(&importer.api(), &derived.name_any(), "the label of the Service", is_labelled).await?;
        importer.merge::<ServiceImport>("app", unlabelled).await?;
        let is_labelled = |import: &ServiceImport| has_label(import.labels().get(writer));
        importer.sees_service_import("app", "to have its label", is_labelled).await?;
        for slice in slices.values() {
            importer.set_endpoints(&slice.name_any(), &["10.9.9.9"]).await?;
            importer.sees_mcs_slices("app", &[&endpoint]).await?;
            importer.delete::<k8s_openapi::api::discovery::v1::EndpointSlice>(&slice.name_any()).await?;
            importer.sees_mcs_slices("app", &[&endpoint]).await?;
        }

        exporter.delete::<ServiceExport>("app").await?;
        eventually::gone(&importer.api::<ServiceImport>(), "app").await?;
        importer.sees_mcs_slices("app", &[]).await?;
        eventually::gone(&importer.api::<Service>(), &derived.name_any()).await?;
        drop(agents);
        Ok(())
    })
}
