//! Network of a bed.
//!
//! ```text
//! root namespace of the bed, 192.168.0.1: API servers, agents
//!   └─ fabric: a bridge
//!        ├─ outside, 192.168.0.2: clients outside of all clusters
//!        ├─ node-1-1, 192.168.0.11: node 1 of member 1, with kubelet and kube-proxy
//!        │    ├─ pod-1-1-2, 10.1.64.2 and fd00:1::1:2
//!        │    └─ …
//!        └─ node-2-1, 192.168.0.21
//! ```
//!
//! All pods reach each other by their addresses, without NAT. The veth of a pod ends in its node without a bridge, so
//! all packets of a pod pass the rules of kube-proxy, also those to a pod of the same node.

use crate::shell::{add_namespace, ip, run, run_in};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Address of the bed's root namespace that nodes and pods can reach.
pub const ROOT: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
/// Namespace of clients outside of all clusters, and its address.
pub(crate) const OUTSIDE: &str = "outside";
pub(crate) const OUTSIDE_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 2);
/// Ranges of Services' addresses in all clusters.
pub const SERVICE_RANGES: &str = "10.96.0.0/16,fd00:96::/112";
/// Address of the Service kube-dns in all clusters.
pub const DNS: &str = "10.96.0.10";
/// IPv6 address of the bed's root namespace.
const ROOT6: &str = "fd01::1";
/// Namespace of the bridge.
pub(crate) const FABRIC: &str = "fabric";
/// Number of addresses that the pods of a node use in turn.
const PODS: u16 = 16_000;

/// Position of a node in the network. Members and nodes have numbers from 1. A member has at most 3 nodes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NodeNetwork {
    pub member: u8,
    pub node: u8,
    /// Number of the ranges of the member's pods: its own number, or that of a member whose pods have the same
    /// addresses.
    pub range: u8,
}

impl NodeNetwork {
    /// Returns the name of the node's network namespace.
    #[must_use]
    pub fn namespace(self) -> String {
        format!("node-{}-{}", self.member, self.node)
    }

    #[must_use]
    pub fn address(self) -> Ipv4Addr {
        Ipv4Addr::new(192, 168, 0, 10 * self.member + self.node)
    }

    #[must_use]
    pub fn address6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, self.member.into(), self.node.into())
    }

    /// Returns the ranges of the pods' addresses on this node, of both families.
    #[must_use]
    pub fn pod_ranges(self) -> [String; 2] {
        [format!("{}/18", self.pod_address(0)), format!("{}/112", self.pod_address6(0))]
    }

    /// Returns the address of the pod with this number.
    #[must_use]
    pub fn pod_address(self, number: u16) -> Ipv4Addr {
        let [high, low] = number.to_be_bytes();
        Ipv4Addr::new(10, self.range, 64 * self.node + high, low)
    }

    /// Returns the IPv6 address of the pod with this number.
    #[must_use]
    pub fn pod_address6(self, number: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfd00, self.range.into(), 0, 0, 0, 0, self.node.into(), number)
    }

    /// Returns the name of the network namespace of the pod with this number.
    #[must_use]
    pub fn pod_namespace(self, number: u16) -> String {
        format!("pod-{}-{}-{number}", self.member, self.node)
    }

    /// Returns the number after this one. Numbers are used in turn, so that an address comes back late. Address 1 is
    /// the gateway's.
    #[must_use]
    pub(crate) fn next(number: u16) -> u16 {
        if (2..PODS).contains(&number) { number + 1 } else { 2 }
    }

    /// Returns commands of `ip` that add or delete the routes to the pods of this node.
    pub(crate) fn routes(self, verb: &str) -> [String; 2] {
        let [four, six] = self.pod_ranges();
        [format!("route {verb} {four} via {}", self.address()), format!("route {verb} {six} via {}", self.address6())]
    }
}

/// Returns the ranges of all pods of a member with this number of its ranges, of both families.
#[must_use]
pub fn member_ranges(range: u8) -> String {
    format!("10.{range}.0.0/16,fd00:{range:x}::/64")
}

/// Makes the bridge, the nodes, and the routes between them.
pub(crate) async fn make(nodes: &[NodeNetwork]) -> anyhow::Result<()> {
    add_namespace(FABRIC).await?;
    ip(Some(FABRIC), &["link add br0 type bridge".to_owned(), "link set br0 up".to_owned()]).await?;
    // Packets that pass the bridge must not pass the rules of nftables or conntrack there. Without the module
    // br_netfilter, there are no such settings.
    let bridged = ["net.bridge.bridge-nf-call-iptables=0", "net.bridge.bridge-nf-call-ip6tables=0"];
    let _ = set(FABRIC, &bridged).await;
    let root = [
        format!("link add eth0 type veth peer name root netns {FABRIC}"),
        format!("addr add {ROOT}/24 dev eth0"),
        format!("addr add {ROOT6}/64 dev eth0 nodad"),
        "link set eth0 up".to_owned(),
    ];
    ip(None, &root).await?;
    ip(Some(FABRIC), &["link set root master br0".to_owned(), "link set root up".to_owned()]).await?;
    // Each connection through a load balancer has a node of its own. Without this setting, all connections between two
    // addresses share one.
    let settings = ["net.ipv4.fib_multipath_hash_policy=1"];
    join(OUTSIDE, &settings, &[format!("addr add {OUTSIDE_ADDRESS}/24 dev eth0")]).await?;
    for node in nodes {
        make_node(*node).await?;
    }
    for node in nodes {
        ip(Some(&node.namespace()), &routes(nodes, Some(*node))).await?;
        if node.range != node.member {
            hide(*node).await?;
        }
    }
    ip(None, &routes(nodes, None)).await
}

/// Returns the routes of a node to the pods of the others; `None` for the routes of the bed's root namespace. If the
/// pods of two nodes have the same addresses, the first node gets the packets.
fn routes(nodes: &[NodeNetwork], own: Option<NodeNetwork>) -> Vec<String> {
    let mut known: Vec<_> = own.iter().map(|own| own.pod_ranges()).collect();
    let mut routes = Vec::new();
    for node in nodes {
        let ranges = node.pod_ranges();
        if !known.contains(&ranges) {
            known.push(ranges);
            routes.extend(node.routes("add"));
        }
    }
    routes
}

/// Gives the node's address to packets of its pods that leave for nodes and API servers, which have no way back to the
/// pods.
async fn hide(node: NodeNetwork) -> anyhow::Result<()> {
    let rules = "table inet fleetnet_hide {\n  chain postrouting {\n    type nat hook postrouting priority 100;\n    \
                 ip daddr 192.168.0.0/24 masquerade\n    ip6 daddr fd01::/16 masquerade\n  }\n}\n";
    run_in(&node.namespace(), &["nft", "-f", "-"], rules).await
}

/// Makes a namespace with a link to the bridge. `more` are commands of `ip` in the namespace before its link is up.
async fn join(namespace: &str, settings: &[&str], more: &[String]) -> anyhow::Result<()> {
    add_namespace(namespace).await?;
    set(namespace, settings).await?;
    let port = [
        format!("link add {namespace} type veth peer name eth0 netns {namespace}"),
        format!("link set {namespace} master br0"),
        format!("link set {namespace} up"),
    ];
    ip(Some(FABRIC), &port).await?;
    ip(Some(namespace), &[more, &["link set eth0 up".to_owned()]].concat()).await
}

async fn make_node(node: NodeNetwork) -> anyhow::Result<()> {
    let namespace = node.namespace();
    let addresses = [node.address().to_string() + "/24", node.address6().to_string() + "/64"];
    let [four, six] = addresses.map(|address| format!("addr add {address} dev eth0"));
    let router = [
        "net.ipv4.ip_forward=1",
        "net.ipv6.conf.all.forwarding=1",
        "net.ipv4.conf.all.rp_filter=0",
        "net.ipv4.conf.default.rp_filter=0",
        // A node forwards packets to an address of a load balancer that kube-proxy does not know yet. Senders must not
        // remember that way.
        "net.ipv4.conf.all.send_redirects=0",
        "net.ipv4.conf.default.send_redirects=0",
    ];
    join(&namespace, &router, &[four, six + " nodad"]).await?;
    // Without a default route, the node's own packets to Services fail before kube-proxy's rules see them.
    let routes = [format!("route add default via {ROOT}"), format!("route add default via {ROOT6}")];
    ip(Some(&namespace), &routes).await
}

/// Makes the namespace of a pod, and joins it to its node.
pub(crate) async fn make_pod(node: NodeNetwork, number: u16) -> anyhow::Result<()> {
    let (namespace, gateway) = (node.pod_namespace(number), node.pod_address(1));
    let (four, six) = (node.pod_address(number), node.pod_address6(number));
    add_namespace(&namespace).await?;
    let link = pod_link(number);
    let at_node = [
        format!("link add {link} type veth peer name eth0 netns {namespace}"),
        format!("addr add {gateway}/32 dev {link}"),
        format!("addr add fe80::1/64 dev {link} nodad"),
        format!("link set {link} up"),
        format!("route add {four}/32 dev {link}"),
        format!("route add {six}/128 dev {link}"),
    ];
    ip(Some(&node.namespace()), &at_node).await?;
    let at_pod = [
        format!("addr add {four}/32 dev eth0"),
        format!("addr add {six}/128 dev eth0 nodad"),
        "link set eth0 up".to_owned(),
        format!("route add {gateway}/32 dev eth0 scope link"),
        format!("route add default via {gateway} dev eth0"),
        "route add default via fe80::1 dev eth0".to_owned(),
    ];
    ip(Some(&namespace), &at_pod).await
}

/// Removes the namespace of a pod and its link to the node.
pub(crate) async fn remove_pod(node: NodeNetwork, number: u16) -> anyhow::Result<()> {
    // A process that was just killed may keep the namespace for a moment, but not the link.
    ip(Some(&node.namespace()), &[format!("link del {}", pod_link(number))]).await?;
    run(&["ip", "netns", "del", &node.pod_namespace(number)], "").await.map(drop)
}

fn pod_link(number: u16) -> String {
    format!("pod{number}")
}

/// Writes settings of the kernel for a namespace.
async fn set(namespace: &str, settings: &[&str]) -> anyhow::Result<()> {
    run_in(namespace, &[&["sysctl", "-qw"], settings].concat(), "").await
}

#[cfg(test)]
mod tests {
    use super::{NodeNetwork, routes};

    #[test]
    fn the_pods_of_two_nodes_have_other_addresses() {
        let [first, second] = [1, 2].map(|node| NodeNetwork { member: 3, node, range: 3 });
        assert_eq!(first.pod_ranges(), ["10.3.64.0/18", "fd00:3::1:0/112"]);
        assert_eq!(second.pod_ranges(), ["10.3.128.0/18", "fd00:3::2:0/112"]);
        assert_eq!(first.pod_address(300).to_string(), "10.3.65.44");
        assert_eq!(first.pod_address6(300).to_string(), "fd00:3::1:12c");
    }

    #[test]
    fn pods_with_the_same_addresses_are_at_the_first_node() {
        let nodes = [(1, 1), (2, 1), (3, 3)].map(|(member, range)| NodeNetwork { member, node: 1, range });
        let [first, second, third] = nodes;
        assert_eq!(first.pod_ranges(), second.pod_ranges());
        assert_eq!(routes(&nodes, None), [first.routes("add"), third.routes("add")].concat());
        assert_eq!(routes(&nodes, Some(second)), third.routes("add"), "a node keeps its own pods");
    }

    #[test]
    fn numbers_of_pods_are_used_in_turn() {
        assert_eq!([0, 1, 2, 15_999, 16_000].map(NodeNetwork::next), [2, 2, 3, 16_000, 2]);
    }
}
