//! Fleet of an exporting and an importing member, with two replicas of each agent: [`Pair`].

use crate::disturbance::Disturbance;
use crate::limits::SILENCE;
use crate::replicas::Replicas;
use crate::{Fleet, Settings, workload};
use anyhow::Context as _;
use fleetnet_api::crd::MemberAgent;
use harness::eventually;
use harness::user::User;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::Api;
use kube::api::WatchParams;
use std::collections::BTreeMap;

/// Running fleet of an exporter and an importer. The fields are dropped in order, so the agents end before their API
/// servers.
pub struct Pair {
    /// Replicas of the hub agent, of the exporter's agent, and of the importer's agent. Agents of further members
    /// follow.
    pub agents: Vec<Replicas>,
    pub exporter: User,
    pub importer: User,
    pub fleet: Fleet,
    namespace: String,
}

impl Pair {
    /// Starts the fleet and its agents. The users have a namespace of their own.
    pub async fn start(namespace: &str, settings: Settings) -> anyhow::Result<Self> {
        let fleet = Fleet::start(settings).await?;
        let namespace = fleet.servers.namespace(namespace).await?;
        let agents = fleet.start_replicas().await?;
        let [exporter, importer] = [0, 1].map(|index| fleet.user(index, &namespace));
        Ok(Self { agents, exporter, importer, fleet, namespace })
    }

    /// Returns the cluster id of the exporter.
    #[must_use]
    pub fn exporting(&self) -> &str {
        &self.fleet.servers.members[0].cluster_id
    }

    /// Exports a Service of the exporter over the standard API. Returns the IPv4 address of the import in the importer.
    pub async fn export(&self, service: &str) -> anyhow::Result<String> {
        workload::export(&self.exporter, self.exporting(), &self.importer, service).await
    }

    /// Returns the namespace of the users.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns a user of the member after the importer, and its cluster id.
    pub fn second_exporter(&self) -> anyhow::Result<(User, String)> {
        let member = self.fleet.servers.members.get(2).context("the fleet has no second exporter")?;
        Ok((self.fleet.user(2, &self.namespace), member.cluster_id.clone()))
    }

    /// Cuts the power of the exporter: its nodes lose their links, its agents are killed, and its API server does not
    /// answer.
    pub async fn cut_exporter(&mut self) -> anyhow::Result<()> {
        for node in &self.fleet.members[0].nodes {
            Disturbance::LinkDown.begin(node.network).await?;
        }
        self.fleet.servers.members[0].control_plane.freeze().await?;
        self.agents[1].kill().await
    }

    /// Gives power to the exporter again, and waits until its agents are ready.
    pub async fn restore_exporter(&mut self) -> anyhow::Result<()> {
        self.fleet.servers.members[0].control_plane.thaw().await?;
        for node in &self.fleet.members[0].nodes {
            Disturbance::LinkDown.end(node.network).await?;
        }
        self.agents[1].replace().await
    }

    /// Waits until the hub agent has judged that the exporter is silent, or that it has returned.
    pub async fn exporter_is_silent(&self, silent: bool) -> anyhow::Result<()> {
        let member = &self.fleet.servers.members[0];
        let phase = if silent { "Draining" } else { "Returned" };
        let has_phase = |agents: &BTreeMap<String, MemberAgent>| {
            let mut silences = agents.values().filter_map(|agent| agent.status.as_ref()?.silence.as_ref());
            silences.any(|silence| silence.phase == phase)
        };
        let agents: Api<MemberAgent> = Api::namespaced(self.fleet.servers.hub.admin(), &member.hub_namespace);
        let what = format!("the phase {phase} of {}", member.cluster_id);
        eventually::objects_within(SILENCE, &agents, &WatchParams::default(), &what, has_phase).await.map(drop)
    }

    /// Waits until all endpoints of a Service that the importer has from the exporter are ready, or none if `used` is
    /// false.
    pub async fn exporter_is_used(&self, service: &str, used: bool) -> anyhow::Result<()> {
        let pods = self.fleet.members[0].pod_times();
        let is_own =
            |endpoint: &&Endpoint| pods.values().any(|pod| endpoint.addresses.contains(&pod.address.to_string()));
        let is_used = |slices: &BTreeMap<String, EndpointSlice>| {
            let endpoints = slices.values().flat_map(|slice| slice.endpoints.iter().flatten());
            let mut own = endpoints.filter(is_own).map(|it| it.conditions.as_ref().and_then(|it| it.ready)).peekable();
            own.peek().is_some() && own.all(|ready| ready.unwrap_or(true) == used)
        };
        let selection = WatchParams::default().labels(&format!("multicluster.kubernetes.io/service-name={service}"));
        let what = format!("the exporter's endpoints of {service}, ready: {used}");
        let slices = self.importer.api::<EndpointSlice>();
        eventually::objects_within(SILENCE, &slices, &selection, &what, is_used).await.map(drop)
    }
}
