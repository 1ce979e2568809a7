//! Test of members that fall silent, with processes, real control planes and cut connections.
//! `testing/sim/tests/fleets/silence_on_memkube.rs` plays more on paused time.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::{MemberAgent, ServiceImport};
use harness::agent::Agent;
use harness::eventually;
use harness::fleet::Fleet;
use harness::gate::{Gate, GateProxy};
use harness::kubectl::Kubectl;
use harness::user::{Consume, User};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;

/// Routes to the endpoints of the first two members, which export the Service.
const OF_ONE: &str = "10.1.0.1:8080";
const OF_TWO: &str = "10.2.0.1:8080";
const EXPORTERS: [usize; 2] = [0, 1];
const IMPORTER: usize = 2;

/// Starts the agent of a member, whose connections to the hub pass through a gate.
async fn behind_a_gate(fleet: &Fleet, index: usize) -> anyhow::Result<(Agent, GateProxy)> {
    let member = &fleet.members[index];
    let hub = fleet.hub.access(&member.hub_user).await?;
    let gate = GateProxy::start(&hub.server_url, Gate::Open).await?;
    let agent = fleet.member_agent(member).await?.variable("HUB_SERVER_URL", &gate.server_url).start_ready().await?;
    Ok((agent, gate))
}

/// Waits until the hub agent has judged that a member is in this phase.
async fn is_in_phase(fleet: &Fleet, index: usize, phase: &str) -> anyhow::Result<()> {
    let member = &fleet.members[index];
    let agents: Api<MemberAgent> = Api::namespaced(fleet.hub.admin(), &member.hub_namespace);
    let of = |agent: &MemberAgent| Some(agent.status.as_ref()?.silence.as_ref()?.phase.clone());
    let what = format!("the phase {phase} of {}", member.cluster_id);
    eventually::objects(&agents, &Default::default(), &what, |all| {
        all.values().any(|it| of(it).as_deref() == Some(phase))
    })
    .await
    .map(drop)
}

/// Waits until the ServiceImport in the hub has the condition `ExporterSilent` with this status.
async fn is_shown(fleet: &Fleet, namespace: &str, status: &str) -> anyhow::Result<()> {
    let imports: Api<ServiceImport> = Api::namespaced(fleet.hub.admin(), namespace);
    let of = |import: &ServiceImport| {
        let conditions = import.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|it| it.type_ == "ExporterSilent").map(|it| it.status.clone())
    };
    let what = format!("the condition ExporterSilent {status}");
    eventually::objects(&imports, &Default::default(), &what, |all| {
        all.values().any(|it| of(it).as_deref() == Some(status))
    })
    .await
    .map(drop)
}

/// Returns the addresses that a user's cluster has as draining endpoints.
async fn draining(user: &User) -> anyhow::Result<Vec<String>> {
    let slices: Api<EndpointSlice> = Api::namespaced(user.api::<EndpointSlice>().into_client(), "fleet-system");
    let endpoints = slices.list(&ListParams::default()).await?.items.into_iter().flat_map(|slice| slice.endpoints);
    let is_draining = |endpoint: &k8s_openapi::api::discovery::v1::Endpoint| {
        let expected = (Some(false), Some(true), Some(true));
        endpoint.conditions.as_ref().is_some_and(|it| (it.ready, it.serving, it.terminating) == expected)
    };
    Ok(endpoints.flatten().filter(is_draining).flat_map(|endpoint| endpoint.addresses).collect())
}

#[test]
fn a_member_that_is_cut_off_is_drained_and_returns_and_an_importer_that_is_cut_off_follows_later() -> anyhow::Result<()>
{
    harness::run(async {
        let fleet = Fleet::own(3).await?;
        let namespace = fleet.namespace("silence").await?;
        let user = |index: usize| User::new(fleet.members[index].control_plane.admin(), &namespace);
        let hub_agent = fleet.hub_agent().await?.flag("--silence-soft", "30s").flag("--silence-hard", "90s");
        let hub_agent = hub_agent.start_ready().await?;
        let (_silent, gate) = behind_a_gate(&fleet, EXPORTERS[0]).await?;
        let _other = fleet.member_agent(&fleet.members[EXPORTERS[1]]).await?.start_ready().await?;
        let (_importing, importers_gate) = behind_a_gate(&fleet, IMPORTER).await?;
        for (index, address) in EXPORTERS.into_iter().zip(["10.1.0.1", "10.2.0.1"]) {
            user(index).export_new("app", &[address]).await?;
        }
        let importer = user(IMPORTER);
        importer.import("app", "app", Consume::ClusterIp).await?;
        let mut routes = importer.routes("app");
        routes.are(&[OF_ONE, OF_TWO]).await?;

        // Connections of the exporter stay open, and nothing passes.
        gate.set_state(Gate::Silent);
        is_in_phase(&fleet, EXPORTERS[0], "Draining").await?;
        routes.are(&[OF_TWO]).await?;
        ensure!(draining(&importer).await? == ["10.1.0.1"]);
        is_shown(&fleet, &namespace, "True").await?;
        importer.sees_event("MultiClusterService", "MemberSilent", "exporting clusters are silent").await?;
        let member = &fleet.members[EXPORTERS[0]].cluster_id;
        hub_agent.metrics_have(&format!("fleetnet_member_silent{{member=\"{member}\"}} 1")).await?;
        let kubectl = Kubectl::with(fleet.hub.admin_kubeconfig()?).await?;
        let shown = kubectl.print("get memberagents -A").await?;
        let line = shown.lines().find(|line| line.contains(member.as_str())).context("a line of the member")?;
        ensure!(shown.contains("SILENCE") && line.contains("Draining"), "{shown}");

        // The importer does not hear of the return, and changes nothing until it reaches the hub again.
        importers_gate.set_state(Gate::Shut);
        gate.set_state(Gate::Open);
        is_in_phase(&fleet, EXPORTERS[0], "Returned").await?;
        is_shown(&fleet, &namespace, "False").await?;
        routes.are(&[OF_TWO]).await?;
        importers_gate.set_state(Gate::Open);
        routes.are(&[OF_ONE, OF_TWO]).await
    })
}
