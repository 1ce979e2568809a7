//! Measurement of requests from outside of all clusters, through a node port and through the address of a load
//! balancer. The baseline is the same way into the exporting cluster.

use super::report::{Allowed, Row};
use super::{Scenario, Size, setup};
use fleetnet_api::crd::{MultiClusterService, ServiceExport};
use harness::user::Consume;
use packets::limits::SETTLED;
use packets::load_balancer;
use packets::network::NodeNetwork;
use packets::pair::Pair;
use packets::workload::{Client, Servers};
use serde_json::json;
use std::net::Ipv4Addr;

/// Seconds of the preStop hook with which no request may be lost.
const PRE_STOP: u32 = 10;
/// Traffic policies of the exporter's Service. A derived Service always has `Cluster`: imported endpoints are on no
/// node of the cluster.
const POLICIES: [&str; 2] = ["Cluster", "Local"];
/// Addresses of the load balancers of the exporting and of the importing cluster.
const BALANCERS: [Ipv4Addr; 2] = [Ipv4Addr::new(203, 0, 113, 1), Ipv4Addr::new(203, 0, 113, 2)];
/// Control ports of the clients of the exporting and of the importing cluster.
const CONTROL_PORTS: [u16; 2] = [991, 992];

/// Way into a cluster.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    /// Node port of the first node.
    NodePort,
    /// Address of a load balancer in front of all nodes.
    LoadBalancer,
}

/// Counts the requests from outside that are lost in rolling updates.
pub(super) async fn measure(pair: &Pair, size: &Size, times: u32) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for policy in POLICIES {
        let name = format!("outside-{}", policy.to_lowercase());
        let servers = Servers { name: &name, replicas: size.pods, pre_stop: Some(PRE_STOP), probe_delay: 0 };
        let ports = open(pair, servers, policy).await?;
        for way in [Way::NodePort, Way::LoadBalancer] {
            rows.extend(measure_way(pair, size, servers, (policy, way), ports, times).await?);
        }
        pair.importer.delete::<MultiClusterService>(&name).await?;
        pair.exporter.delete::<ServiceExport>(&name).await?;
        servers.delete(&pair.exporter).await?;
    }
    Ok(rows)
}

/// Returns the nodes of the exporting or of the importing cluster.
fn nodes(pair: &Pair, cluster: usize) -> Vec<NodeNetwork> {
    pair.fleet.members[cluster].nodes.iter().map(|node| node.network).collect()
}

/// Starts servers behind a Service of the type LoadBalancer with this traffic policy, exports it, and imports it as a
/// derived Service of the same type. Returns the node ports of both.
async fn open(pair: &Pair, servers: Servers<'_>, policy: &str) -> anyhow::Result<[i32; 2]> {
    let (exporter, importer) = (&pair.exporter, &pair.importer);
    servers.create(exporter).await?;
    let more = json!({"type": "LoadBalancer", "externalTrafficPolicy": policy});
    servers.create_service_with(exporter, &more).await?;
    let own = load_balancer::give(exporter, servers.name, BALANCERS[0], &nodes(pair, 0)).await?;
    exporter.export(servers.name).await?;
    importer.import(servers.name, servers.name, Consume::LoadBalancer).await?;
    let derived = importer.derived_service(servers.name).await?.metadata.name.unwrap_or_default();
    let system = pair.fleet.user(1, harness::fleet::FLEET_SYSTEM);
    Ok([own, load_balancer::give(&system, &derived, BALANCERS[1], &nodes(pair, 1)).await?])
}

async fn measure_way(
    pair: &Pair,
    size: &Size,
    servers: Servers<'_>,
    (policy, way): (&str, Way),
    ports: [i32; 2],
    times: u32,
) -> anyhow::Result<Vec<Row>> {
    let start = async |cluster: usize| {
        let target = match way {
            Way::NodePort => format!("http://{}:{}", nodes(pair, cluster)[0].address(), ports[cluster]),
            Way::LoadBalancer => format!("http://{}:80", BALANCERS[cluster]),
        };
        let rate = format!("--rate={}", size.rate);
        Client::outside(&format!("outside-{cluster}"), &target, CONTROL_PORTS[cluster], &[&rate]).await
    };
    let all = usize::try_from(servers.replicas)?;
    // With `Local`, a node sends requests to its own pods only.
    let own = if (policy, way) == ("Local", Way::NodePort) { 1 } else { all };
    let traffic = setup::settled([start(0).await?, start(1).await?], [own, all]).await?;
    for number in 1..=times {
        eprintln!("rolling update {number} of {times}, {way:?}, externalTrafficPolicy {policy}");
        servers.roll(&pair.exporter, number + if way == Way::NodePort { 0 } else { times }).await?;
        tokio::time::sleep(SETTLED).await;
    }
    let detail = format!("{way:?}, externalTrafficPolicy {policy} in the exporter");
    Ok(Row::of(Scenario::Outside, servers.pre_stop, &detail, Allowed::Baseline, traffic.stop().await?))
}
