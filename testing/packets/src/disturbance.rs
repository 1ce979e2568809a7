//! Faults of the network between nodes, made on purpose: [`Disturbance`].

use crate::network::{FABRIC, NodeNetwork, member_ranges};
use crate::shell::{ip, run, run_in};

/// Table of nftables with the rules of a firewall.
const TABLE: &str = "fleetnet_disturbance";
/// Rate of a slow link, as `tc` writes it.
const SLOW: &str = "64kbit";

/// Fault of the network at one node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Disturbance {
    /// The node has lost its link: no packet passes, in no direction.
    LinkDown,
    /// The node has no route to the pods of this member.
    NoRoute(NodeNetwork),
    /// A firewall of the node drops all packets from and to the pods of this member.
    Drop(u8),
    /// A firewall of the node drops new connections from the pods of this member. Connections to them work.
    OneDirection(u8),
    /// The link of the node carries 64 kbit/s.
    Slow,
}

impl Disturbance {
    /// Begins the fault at a node.
    pub async fn begin(self, at: NodeNetwork) -> anyhow::Result<()> {
        let namespace = at.namespace();
        match self {
            Self::LinkDown => ip(Some(FABRIC), &[format!("link set {namespace} down")]).await,
            Self::NoRoute(to) => {
                let unreachable = to.pod_ranges().map(|range| format!("route replace unreachable {range}"));
                ip(Some(&namespace), &[to.routes("del"), unreachable].concat()).await
            }
            Self::Drop(member) => nft(&namespace, &firewall(member, &["saddr", "daddr"], "")).await,
            Self::OneDirection(member) => nft(&namespace, &firewall(member, &["saddr"], "ct state new ")).await,
            Self::Slow => {
                let words = ["qdisc", "add", "dev", &namespace, "root", "tbf", "rate", SLOW];
                tc(&[&words[..], &["burst", "4kb", "latency", "200ms"]].concat()).await
            }
        }
    }

    /// Ends the fault at a node.
    pub async fn end(self, at: NodeNetwork) -> anyhow::Result<()> {
        let namespace = at.namespace();
        match self {
            Self::LinkDown => ip(Some(FABRIC), &[format!("link set {namespace} up")]).await,
            Self::NoRoute(to) => {
                let reachable = to.pod_ranges().map(|range| format!("route del unreachable {range}"));
                ip(Some(&namespace), &[reachable, to.routes("add")].concat()).await
            }
            Self::Drop(_) | Self::OneDirection(_) => nft(&namespace, &format!("delete table inet {TABLE}")).await,
            Self::Slow => tc(&["qdisc", "del", "dev", &namespace, "root"]).await,
        }
    }
}

/// Returns rules that drop forwarded packets whose addresses in these fields are of this member's pods.
fn firewall(member: u8, fields: &[&str], more: &str) -> String {
    let ranges = member_ranges(member);
    let families = ["ip", "ip6"].into_iter().zip(ranges.split(','));
    let rules = families.flat_map(|(family, range)| {
        fields.iter().map(move |field| format!("    {family} {field} {range} {more}drop\n"))
    });
    let rules: String = rules.collect();
    // Before the rules of kube-proxy.
    format!("table inet {TABLE} {{\n  chain forward {{\n    type filter hook forward priority -300;\n{rules}  }}\n}}\n")
}

/// Gives rules to nftables in a network namespace.
async fn nft(namespace: &str, rules: &str) -> anyhow::Result<()> {
    run_in(namespace, &["nft", "-f", "-"], rules).await
}

/// Calls `tc` in the namespace of the bridge, at whose end of a link packets to the node wait.
async fn tc(words: &[&str]) -> anyhow::Result<()> {
    run(&[&["tc", "-n", FABRIC][..], words].concat(), "").await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::firewall;

    #[test]
    fn a_firewall_drops_packets_of_both_families() {
        let rules = firewall(3, &["saddr"], "ct state new ");
        assert!(rules.contains("    ip saddr 10.3.0.0/16 ct state new drop\n"), "{rules}");
        assert!(rules.contains("    ip6 saddr fd00:3::/64 ct state new drop\n"), "{rules}");
        assert_eq!(firewall(3, &["saddr", "daddr"], "").matches("drop").count(), 4);
    }
}
