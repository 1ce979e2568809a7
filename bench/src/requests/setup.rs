//! Fleet that is measured: [`Setup`].

use super::traffic::Traffic;
use crate::limits::REQUESTS_SETTLED;
use fleetnet_api::crd::multicluster::ServiceExport;
use harness::user::User;
use packets::replicas::Replicas;
use packets::workload::{self, Client, Servers, cluster_ip};
use packets::{Fleet, Settings};

/// Fleet of an exporting and an importing member, with two replicas of each agent. The fields are dropped in order, so the agents end
/// before their API servers.
pub struct Setup {
    /// Replicas of the hub agent, of the exporter's agent, and of the importer's agent.
    pub agents: Vec<Replicas>,
    pub exporter: User,
    pub importer: User,
    pub fleet: Fleet,
}

impl Setup {
    /// Starts the fleet and its agents.
    pub async fn start() -> anyhow::Result<Self> {
        let fleet = Fleet::start(Settings::default()).await?;
        let namespace = fleet.servers.namespace("requests").await?;
        let agents = fleet.start_replicas().await?;
        let [exporter, importer] = [0, 1].map(|index| fleet.user(index, &namespace));
        Ok(Self { agents, exporter, importer, fleet })
    }

    /// Starts servers in the exporter and exports their Service. Then starts a client in each cluster, and waits until each client has
    /// answers of all servers.
    pub async fn serve(&self, servers: Servers<'_>, rate: u32) -> anyhow::Result<Traffic> {
        servers.create(&self.exporter).await?;
        let service = servers.create_service(&self.exporter).await?;
        let own = cluster_ip(&service)?;
        let exporting = &self.fleet.servers.members[0].cluster_id;
        let imported = &workload::export(&self.exporter, exporting, &self.importer, servers.name).await?;
        let rate = format!("--rate={rate}");
        let start = async |user: &User, address: &str| {
            let name = format!("client-of-{}", servers.name);
            Client::create(user, &name, &format!("http://{address}:80"), &[&rate]).await
        };
        let clients = [start(&self.exporter, own).await?, start(&self.importer, imported).await?];
        let replicas = usize::try_from(servers.replicas)?;
        for client in &clients {
            client.counts("answers of all servers", |totals| totals.servers.len() == replicas).await?;
        }
        // Until now, kube-proxy did not know all servers, and requests could be lost.
        tokio::time::sleep(REQUESTS_SETTLED).await;
        Traffic::of(clients).await
    }

    /// Ends the export of servers, and deletes them.
    pub async fn end(&self, servers: Servers<'_>) -> anyhow::Result<()> {
        self.exporter.delete::<ServiceExport>(servers.name).await?;
        servers.delete(&self.exporter).await
    }
}
