//! Servers and clients that are measured.

use super::Connections;
use super::traffic::Traffic;
use fleetnet_api::crd::multicluster::ServiceExport;
use harness::user::User;
use packets::limits::SETTLED;
use packets::pair::Pair;
use packets::workload::{Client, Servers, cluster_ip};

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
    let [own, imported] = export(pair, servers).await?;
    let targets = [own, imported].map(|address| format!("http://{address}:80"));
    traffic(pair, servers, rate, connections, targets).await
}

/// Does the same as [`serve`], with clients that use the names of the Service and of its import. They look them up for each request.
pub(super) async fn serve_by_name(pair: &Pair, servers: Servers<'_>, rate: u32) -> anyhow::Result<Traffic> {
    export(pair, servers).await?;
    let (name, namespace) = (servers.name, pair.namespace());
    let targets = ["cluster", "clusterset"].map(|zone| format!("http://{name}.{namespace}.svc.{zone}.local:8080"));
    traffic(pair, servers, rate, Connections::New, targets).await
}

/// Starts servers in the exporter, and exports their Service. Returns the addresses of the Service and of its import.
pub(super) async fn export(pair: &Pair, servers: Servers<'_>) -> anyhow::Result<[String; 2]> {
    servers.create(&pair.exporter).await?;
    let service = servers.create_service(&pair.exporter).await?;
    let imported = pair.export(servers.name).await?;
    Ok([cluster_ip(&service)?.to_owned(), imported])
}

/// Starts a client for each target: one in the exporter and one in the importer.
async fn traffic(
    pair: &Pair,
    servers: Servers<'_>,
    rate: u32,
    connections: Connections,
    targets: [String; 2],
) -> anyhow::Result<Traffic> {
    let kept = if connections == Connections::Kept { KEPT } else { 0 };
    let settings = [format!("--rate={rate}"), format!("--connections={kept}")];
    let name = format!("client-of-{}", servers.name);
    let start = async |user: &User, target: &str| {
        Client::create(user, &name, target, &settings.each_ref().map(|it| &**it)).await
    };
    let [own, imported] = &targets;
    let clients = [start(&pair.exporter, own).await?, start(&pair.importer, imported).await?];
    let servers = usize::try_from(servers.replicas)?;
    // A kept connection leads to one server, and it is chance which one.
    let servers = if connections == Connections::Kept { servers / 2 } else { servers };
    settled(clients, [servers; 2]).await
}

/// Waits until each client has answers of as many servers. Then starts the measurement.
pub(super) async fn settled(clients: [Client; 2], servers: [usize; 2]) -> anyhow::Result<Traffic> {
    for (client, servers) in clients.iter().zip(servers) {
        let what = format!("answers of {servers} servers");
        client.counts(&what, |totals| totals.servers.len() >= servers).await?;
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
