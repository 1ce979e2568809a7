//! Load balancer of a cloud, for Services of the type LoadBalancer: [`give`].

use crate::network::{NodeNetwork, OUTSIDE};
use crate::shell::ip;
use anyhow::Context as _;
use harness::eventually;
use harness::user::User;
use k8s_openapi::api::core::v1::Service;
use serde_json::json;
use std::net::Ipv4Addr;

/// Gives an address to a Service of the type LoadBalancer, and waits until its cluster has allocated a node port.
/// Clients outside of all clusters reach the address through each of these nodes, by turns of their connections, as
/// through a load balancer that does not change packets.
pub async fn give(user: &User, service: &str, address: Ipv4Addr, nodes: &[NodeNetwork]) -> anyhow::Result<i32> {
    let hops: String = nodes.iter().map(|node| format!(" nexthop via {}", node.address())).collect();
    ip(Some(OUTSIDE), &[format!("route replace {address}/32{hops}")]).await?;
    user.merge_status::<Service>(service, json!({"loadBalancer": {"ingress": [{"ip": address}]}})).await?;
    let what = format!("a node port of {service}");
    let found = eventually::object(&user.api::<Service>(), service, &what, |it| node_port(it).is_some()).await?;
    node_port(&found).context("a Service that has a node port")
}

/// Returns the node port of the first port of a Service.
fn node_port(service: &Service) -> Option<i32> {
    service.spec.as_ref()?.ports.as_ref()?.first()?.node_port
}
