//! Servers and clients that are measured.

use super::Connections;
use super::traffic::Traffic;
use fleetnet_api::crd::mcs::ServiceExport;
use harness::user::User;
use packets::limits::SETTLED;
use packets::pair::Pair;
use packets::workload::{self, Client, Servers, cluster_ip};
use serde_json::json;

/// Number of connections of a client that keeps them.
const KEPT: u32 = 20;

/// Starts servers in the exporter and exports their Service. Then starts a client in each cluster, and waits until each
/// client has answers of all servers.
pub(super) async fn serve(
    pair: &Pair,
    servers: Servers<'_>,
    rate: u32,
    connections: Connections,
) -> anyhow::Result<Traffic> {
    let [own, imported] = export(pair, servers).await?;
    let targets = [own, imported].map(|address| format!("http://{address}:80"));
    let users = [&pair.exporter, &pair.importer];
    traffic(servers.name, users, targets, (rate, connections), [servers.replicas; 2]).await
}

/// Does the same as [`serve`], with clients that use the names of the Service and of its import. They look them up for
/// each request.
pub(super) async fn serve_by_name(pair: &Pair, servers: Servers<'_>, rate: u32) -> anyhow::Result<Traffic> {
    export(pair, servers).await?;
    let (name, namespace) = (servers.name, pair.namespace());
    let targets = ["cluster", "clusterset"].map(|zone| format!("http://{name}.{namespace}.svc.{zone}.local:8080"));
    let users = [&pair.exporter, &pair.importer];
    traffic(name, users, targets, (rate, Connections::New), [servers.replicas; 2]).await
}

/// Starts servers in the exporter, and exports their Service. Returns the addresses of the Service and of its import.
pub(super) async fn export(pair: &Pair, servers: Servers<'_>) -> anyhow::Result<[String; 2]> {
    servers.create(&pair.exporter).await?;
    let service = servers.create_service(&pair.exporter).await?;
    let imported = pair.export(servers.name).await?;
    Ok([cluster_ip(&service)?.to_owned(), imported])
}

/// Does the same as [`export`] in the second exporter, after the first one. Returns the addresses of its Service and of
/// the import of both.
pub(super) async fn export_second(pair: &Pair, servers: Servers<'_>) -> anyhow::Result<[String; 2]> {
    let (user, cluster) = pair.second_exporter()?;
    servers.create(&user).await?;
    let service = servers.create_service(&user).await?;
    user.export_mcs(servers.name, json!({})).await?;
    let imported = workload::imported_address(&pair.importer, servers.name, &[pair.exporting(), &cluster]).await?;
    Ok([cluster_ip(&service)?.to_owned(), imported])
}

/// Starts a client of each user with a target, at a rate and over such connections. Then waits until they have answers
/// of as many servers.
pub(super) async fn traffic(
    name: &str,
    users: [&User; 2],
    targets: [String; 2],
    (rate, connections): (u32, Connections),
    servers: [u32; 2],
) -> anyhow::Result<Traffic> {
    let kept = if connections == Connections::Kept { KEPT } else { 0 };
    let settings = [format!("--rate={rate}"), format!("--connections={kept}")];
    let name = format!("client-of-{name}");
    let start = async |user: &User, target: &str| {
        Client::create(user, &name, target, &settings.each_ref().map(|it| &**it)).await
    };
    let clients = [start(users[0], &targets[0]).await?, start(users[1], &targets[1]).await?];
    // A kept connection leads to one server, and it is chance which one.
    let expected = |servers: u32| {
        usize::try_from(if connections == Connections::Kept { (servers / 2).min(KEPT / 4) } else { servers })
    };
    settled(clients, [expected(servers[0])?, expected(servers[1])?]).await
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
    end_of(&pair.exporter, servers).await
}

/// Does the same as [`end`] in the second exporter.
pub(super) async fn end_second(pair: &Pair, servers: Servers<'_>) -> anyhow::Result<()> {
    end_of(&pair.second_exporter()?.0, servers).await
}

async fn end_of(user: &User, servers: Servers<'_>) -> anyhow::Result<()> {
    user.delete::<ServiceExport>(servers.name).await?;
    servers.delete(user).await
}
