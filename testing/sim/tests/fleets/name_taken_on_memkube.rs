//! Tests of a foreign EndpointSlice with the same name as a slice that the importer must create.

use crate::support::OnMemkube;
use anyhow::Context as _;
use fleetnet_api::crd::EndpointSliceExport;
use harness::audit::Ledger;
use harness::user::{Consume, User};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt as _;
use scenarios::environment::{AgentPlace, Backend as _, Environment, FleetSpec};
use serde_json::json;
use sim::server::FLEET_SYSTEM;

/// Also rule P5.
#[test]
fn an_importer_gets_one_event_when_another_slice_has_the_name_of_one_to_import() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = Environment::<OnMemkube>::create(FleetSpec::of(2)).await?;
        env.export(&["10.1.0.1"]).await?;
        let exports = env.hub::<EndpointSliceExport>(&env.members[0].hub_namespace);
        let name = exports.list(&Default::default()).await?.items.pop().context("it is exported")?.name_any();
        let (importer, in_system) = (env.user(1), User::new(env.members[1].client.clone(), FLEET_SYSTEM));
        let theirs = json!({"metadata": {"name": name}, "addressType": "IPv4", "endpoints": [], "ports": []});
        in_system.create::<EndpointSlice>(theirs).await?;

        importer.import("app", "app", Consume::ClusterIp).await?;
        importer.sees_import("app", "False").await?;
        let events = async || importer.sees_event("MultiClusterService", "NameHeldByAnother", &name).await;
        assert_eq!(events().await?, 1);

        let mark = env.backend.mark().await?;
        env.backend.stop_agent(AgentPlace::Member(1)).await?;
        env.backend.start_agent(AgentPlace::Member(1)).await?;
        let since = env.backend.since(&mark).await?.objects();
        assert_eq!(since.clusters().map(Ledger::count).sum::<usize>(), 0, "{since}");
        assert_eq!(events().await?, 1, "the condition remembers it");

        in_system.delete::<EndpointSlice>(&name).await?;
        importer.sees("app", &["10.1.0.1"]).await?;
        importer.sees_import("app", "True").await
    })
}
