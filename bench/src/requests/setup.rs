//! Servers and clients that are measured.

use super::Connections;
use super::traffic::Traffic;
use fleetnet_api::crd::multicluster::ServiceExport;
use harness::user::User;
use packets::limits::SETTLED;
use packets::pair::Pair;
use packets::workload::{self, Client, Servers, cluster_ip};

/// Number of connections of a client that keeps them.
const KEPT: u32 = 20;

/// Starts servers in the exporter and exports their Service. Then starts a client in each cluster, and waits until each client has
/// answers of all servers.
pub(super) async fn serve(
    pair: &Pair,
    servers: Servers<'_>,
    rate: u32,
    connections: Connections,
) -> anyhow::Result<Traffic> {
    servers.create(&pair.exporter).await?;
    let service = servers.create_service(&pair.exporter).await?;
    let own = cluster_ip(&service)?;
    let imported = &workload::export(&pair.exporter, pair.exporting(), &pair.importer, servers.name).await?;
    let kept = if connections == Connections::Kept { KEPT } else { 0 };
    let settings = [format!("--rate={rate}"), format!("--connections={kept}")];
    let start = async |user: &User, address: &str| {
        let name = format!("client-of-{}", servers.name);
        Client::create(user, &name, &format!("http://{address}:80"), &settings.each_ref().map(|it| &**it)).await
    };
    let clients = [start(&pair.exporter, own).await?, start(&pair.importer, imported).await?];
    let replicas = usize::try_from(servers.replicas)?;
    for client in &clients {
        client.counts("answers of all servers", |totals| totals.servers.len() == replicas).await?;
    }
    // Until now, kube-proxy did not know all servers, and requests could be lost.
    tokio::time::sleep(SETTLED).await;
    Traffic::of(clients).await
}

/// Ends the export of servers, and deletes them.
pub(super) async fn end(pair: &Pair, servers: Servers<'_>) -> anyhow::Result<()> {
    pair.exporter.delete::<ServiceExport>(servers.name).await?;
    servers.delete(&pair.exporter).await
}
