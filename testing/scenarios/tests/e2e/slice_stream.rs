//! Tests of the slice stream on real control planes: over TLS, with tokens that the hub's API server gives and reviews,
//! at the address that the hub agent offers. A gate stands for the Service in front of the hub agent.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::MemberAgent;
use harness::agent::{Agent, AgentSpec};
use harness::eventually;
use harness::fleet::{Fleet, manifests};
use harness::gate::{Gate, GateProxy};
use harness::kubectl::Kubectl;
use harness::user::{Consume, User};
use kube::Api;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Fleet of two members. The first one exports and uses no stream. The second one imports.
struct Streamed {
    exporter: User,
    importer: User,
    /// MemberAgents in the importer's namespace of the hub.
    reports: Api<MemberAgent>,
    gate: GateProxy,
    hub_agent: AgentSpec,
    fleet: Fleet,
}

impl Streamed {
    async fn prepare() -> anyhow::Result<Self> {
        let fleet = Fleet::take(2).await?;
        manifests::apply(&fleet.hub, manifests::SLICE_STREAM).await?;
        let namespace = fleet.namespace("stream").await?;
        let user = |index: usize| User::new(fleet.members[index].control_plane.admin(), &namespace);
        let (exporter, importer) = (user(0), user(1));
        let gate = GateProxy::start_shut().await?;
        let hub_agent = fleet.hub_agent().await?;
        // A replica must take over from a killed one while the test waits.
        let hub_agent = hub_agent
            .flag("--leader-election-lease-duration", "15s")
            .flag("--leader-election-renew-deadline", "10s")
            .flag("--slice-stream-bind-address", "127.0.0.1:0")
            .flag("--slice-stream-advertise-address", gate.address());
        let reports = Api::namespaced(fleet.hub.admin(), &fleet.members[1].hub_namespace);
        Ok(Self { exporter, importer, reports, gate, hub_agent, fleet })
    }

    /// Starts a hub agent, and opens the gate to it.
    async fn start_hub_agent(&self) -> anyhow::Result<Agent> {
        let agent = self.hub_agent.start_ready().await?;
        self.gate.open_to(agent.slice_stream_address().await?);
        Ok(agent)
    }

    /// Starts the agents of both members.
    async fn start_member_agents(&self) -> anyhow::Result<[Agent; 2]> {
        let [exporter, importer] = &self.fleet.members[..] else { anyhow::bail!("two members") };
        let without = self.fleet.member_agent(exporter).await?.flag("--slice-stream-address", "0");
        Ok([without.start_ready().await?, self.fleet.member_agent(importer).await?.start_ready().await?])
    }

    /// Waits until the importer's MemberAgent reports this about its stream.
    async fn importer_reports(&self, reason: &str) -> anyhow::Result<MemberAgent> {
        let is_reported =
            |agent: &MemberAgent| agent.spec.slice_stream.as_ref().is_some_and(|report| report.reason == reason);
        let name = &self.fleet.members[1].cluster_id;
        eventually::object(&self.reports, name, &format!("the report {reason}"), is_reported).await
    }

    /// Changes the endpoints, and waits until the importer has them.
    async fn change(&self, addresses: &[&str]) -> anyhow::Result<()> {
        self.exporter.set_endpoints("app-1", addresses).await?;
        self.importer.sees("app", addresses).await?;
        Ok(())
    }

    /// Waits until the importer has acknowledged this number of changes over the stream of this hub agent.
    async fn acknowledged(&self, hub_agent: &Agent, changes: usize) -> anyhow::Result<()> {
        let member = &self.fleet.members[1].cluster_id;
        let line = format!("fleetnet_slice_stream_delay_seconds_count{{member=\"{member}\"}} {changes}");
        hub_agent.metrics_have(&line).await
    }
}

#[test]
fn members_use_the_offered_stream_and_follow_the_hub_agent() -> anyhow::Result<()> {
    harness::run(async {
        let streamed = Streamed::prepare().await?;
        let hub_agent = streamed.start_hub_agent().await?;
        let _members = streamed.start_member_agents().await?;
        let offered = streamed.importer_reports("Connected").await?.status.and_then(|status| status.slice_stream);
        let first = offered.context("an offer")?;
        ensure!(first.address == streamed.gate.address(), "{first:?}");

        streamed.exporter.export_new("app", &["10.1.0.1"]).await?;
        streamed.importer.import("app", "app", Consume::ClusterIp).await?;
        streamed.importer.sees("app", &["10.1.0.1"]).await?;
        streamed.change(&["10.1.0.2"]).await?;
        streamed.acknowledged(&hub_agent, 1).await?;
        let kubectl = Kubectl::with(streamed.fleet.hub.admin_kubeconfig()?).await?;
        let table = kubectl.print("get memberagents -A -o wide").await?;
        let connected = table.lines().filter(|line| line.contains("Connected")).count();
        ensure!(table.contains("SLICE-STREAM") && connected == 1, "{table}");

        // The next hub agent has another self-signed certificate, and the member follows its offer without a restart.
        hub_agent.kill().await?;
        let hub_agent = streamed.start_hub_agent().await?;
        streamed.change(&["10.1.0.3"]).await?;
        let is_new = |agent: &MemberAgent| {
            let offer = agent.status.as_ref().and_then(|status| status.slice_stream.as_ref());
            let report = agent.spec.slice_stream.as_ref();
            offer.is_some_and(|offer| offer.ca_bundle != first.ca_bundle)
                && report.is_some_and(|report| report.connected)
        };
        let name = &streamed.fleet.members[1].cluster_id;
        eventually::object(&streamed.reports, name, "a stream to the new hub agent", is_new).await?;
        streamed.change(&["10.1.0.4"]).await?;
        streamed.acknowledged(&hub_agent, 1).await?;

        // Without a way to the hub agent, changes arrive as objects.
        streamed.gate.set_state(Gate::Shut);
        streamed.change(&["10.1.0.5"]).await?;
        streamed.importer_reports("ConnectionFailed").await?;
        Ok(())
    })
}

/// Authority with a certificate for the address of the gate, in a folder as of a Secret of cert-manager. Returns the
/// authority.
fn write_certificate(folder: &Path) -> anyhow::Result<String> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.signed_by(&key, &authority)?;
    fs::write(folder.join("tls.key"), key.serialize_pem())?;
    fs::write(folder.join("tls.crt"), certificate.pem())?;
    fs::write(folder.join("ca.crt"), authority.pem())?;
    Ok(authority.pem())
}

#[test]
fn a_replaced_certificate_and_its_authority_reach_the_members_without_a_restart() -> anyhow::Result<()> {
    harness::run(async {
        let (mut streamed, folder) = (Streamed::prepare().await?, TempDir::with_prefix("fleetnet-stream-")?);
        let first = write_certificate(folder.path())?;
        streamed.hub_agent = streamed.hub_agent.flag("--slice-stream-cert-path", folder.path());
        let hub_agent = streamed.start_hub_agent().await?;
        let [_, importer] = streamed.start_member_agents().await?;
        let offered = |agent: &MemberAgent| {
            agent.status.as_ref().and_then(|status| status.slice_stream.as_ref()).map(|offer| offer.ca_bundle.clone())
        };
        let connected = streamed.importer_reports("Connected").await?;
        ensure!(offered(&connected) == Some(first), "{connected:?}");
        let second = write_certificate(folder.path())?;
        let name = &streamed.fleet.members[1].cluster_id;
        let is_new = |agent: &MemberAgent| offered(agent).is_some_and(|authority| authority == second);
        eventually::object(&streamed.reports, name, "the new authority", is_new).await?;
        importer.metrics_have("fleetnet_slice_stream_ends_total{reason=\"moved\"} 1").await?;
        importer.metrics_have("fleetnet_slice_stream_connected 1").await?;
        hub_agent.metrics_have("fleetnet_slice_streams 1").await
    })
}
