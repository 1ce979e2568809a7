//! Share of the cluster's CPU that each zone has: [`ZoneShares`].

use super::quantity;
use crate::model::Node;
use crate::names::LABELS_CONTROL_PLANE;
use crate::text::Text;
use std::collections::BTreeMap;

/// Share of the cluster's CPU that each zone has. Numbers are whole thousandths of a CPU, so shares are exact.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ZoneShares {
    /// Allocatable CPU of each zone, in thousandths of a CPU. There are at least two zones.
    milli_by_zone: BTreeMap<Text, u64>,
    total_milli: u64,
}

impl ZoneShares {
    /// Returns the zone shares of a cluster with these Nodes. A Node counts only if it is ready and not part of the
    /// control plane.
    ///
    /// Returns `None` if a Node that counts has no zone or no CPU. Also returns `None` if all Nodes that count are in
    /// one zone, because hints have no effect then.
    #[must_use]
    pub fn of<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Option<Self> {
        let mut milli_by_zone = BTreeMap::<Text, u64>::new();
        let mut total_milli = 0_u64;
        for node in nodes.into_iter().filter(|node| counts(node)) {
            let cpu = node.status.allocatable.cpu.as_deref().and_then(quantity::milli).filter(|milli| *milli > 0)?;
            let of_zone = milli_by_zone.entry(node.zone()?.clone()).or_default();
            *of_zone = of_zone.saturating_add(cpu);
            total_milli = total_milli.saturating_add(cpu);
        }
        (milli_by_zone.len() > 1).then_some(Self { milli_by_zone, total_milli })
    }

    /// Returns the zones by name, with their thousandths of a CPU.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Text, u64)> {
        self.milli_by_zone.iter().map(|(zone, milli)| (zone, *milli))
    }

    /// Returns the thousandths of a CPU in all zones together.
    #[must_use]
    pub const fn total_milli(&self) -> u64 {
        self.total_milli
    }

    /// True if a zone has too few endpoints: each endpoint of the zone would get over 20 % more traffic than an average
    /// endpoint. The argument has the number of endpoints of each zone.
    #[must_use]
    pub fn overloads(&self, endpoints_by_zone: &BTreeMap<Text, usize>) -> bool {
        let endpoints: usize = endpoints_by_zone.values().sum();
        self.iter().any(|(zone, milli)| {
            let minimum = minimum(milli, self.total_milli, endpoints);
            endpoints_by_zone.get(zone).is_none_or(|count| *count < minimum)
        })
    }
}

/// Returns the minimum number of endpoints for a zone with `milli` of the cluster's `total_milli` CPU: the zone's share
/// of all `endpoints`, divided by 1.2 and rounded up. With this number, no endpoint of the zone gets over 20 % more
/// traffic than an average endpoint.
pub(super) fn minimum(milli: u64, total_milli: u64, endpoints: usize) -> usize {
    let needed = (5 * u128::from(milli) * endpoints as u128).div_ceil(6 * u128::from(total_milli));
    usize::try_from(needed).unwrap_or(usize::MAX)
}

fn counts(node: &Node) -> bool {
    let is_control_plane = LABELS_CONTROL_PLANE.iter().any(|label| node.metadata.labels.contains_key(label));
    node.status.readiness.is_ready && !is_control_plane
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{control_plane, node, unready};
    use super::*;

    type Zones = &'static [(&'static str, u64)];

    /// Cases of kube-controller-manager's `TestSetNodes`. Columns: name, Nodes, resulting CPU of each zone.
    ///
    /// Also rule Z13.
    #[test]
    fn the_nine_cases_of_upstream() {
        let (a, b) = (|| node("zone-a", "1000m"), || node("zone-b", "1000m"));
        let halves: Zones = &[("zone-a", 1000), ("zone-b", 1000)];
        let seven = vec![a(), a(), a(), node("zone-a", "2000m")]
            .into_iter()
            .chain([node("zone-b", "3000m"), node("zone-b", "1500m"), node("zone-c", "500m")])
            .collect();
        let cases: [(&str, Vec<Node>, Option<Zones>); 9] = [
            ("no node", vec![], None),
            ("one node", vec![a()], None),
            ("one zone", vec![a(), a()], None),
            ("two zones", vec![a(), b()], Some(halves)),
            ("two zones, one with an unready node only", vec![unready(a()), b()], None),
            ("two zones, one with the control plane only", vec![a(), control_plane(b())], None),
            ("two zones and an unready node", vec![a(), b(), unready(b())], Some(halves)),
            ("two zones and a control plane", vec![a(), b(), control_plane(b())], Some(halves)),
            ("seven nodes in three zones", seven, Some(&[("zone-a", 5000), ("zone-b", 4500), ("zone-c", 500)])),
        ];
        for (name, nodes, expected) in cases {
            let shares = ZoneShares::of(&nodes);
            let zones = shares.as_ref().map(|shares| shares.iter().collect::<Vec<_>>());
            let expected_zones = expected.map(|zones| zones.iter().map(|(zone, milli)| (Text::from(*zone), *milli)));
            let expected_zones: Option<Vec<_>> = expected_zones.map(Iterator::collect);
            let zones: Option<Vec<_>> =
                zones.map(|zones| zones.into_iter().map(|(zone, milli)| (zone.clone(), milli)).collect());
            assert_eq!(zones, expected_zones, "{name}");
            let total: Option<u64> = expected.map(|zones| zones.iter().map(|(_, milli)| milli).sum());
            assert_eq!(shares.map(|shares| shares.total_milli()), total, "{name}");
        }
    }

    #[test]
    fn one_node_without_zone_or_processors_makes_shares_unknown() {
        let complete = [node("zone-a", "1"), node("zone-b", "1")];
        for incomplete in [node("", "1"), node("zone-a", "0"), node("zone-a", "many"), node("zone-a", "-1")] {
            assert_eq!(ZoneShares::of(complete.iter().chain([&incomplete])), None);
        }
        let mut silent = node("zone-a", "1");
        silent.status.allocatable.cpu = None;
        assert_eq!(ZoneShares::of(complete.iter().chain([&silent])), None);
    }

    #[test]
    fn the_minimum_is_exact_where_floating_point_is_not() {
        // Half of 12 endpoints is 6, and 6 / 1.2 is exactly 5. A rounding error of floating point could make this 6.
        assert_eq!(minimum(1, 2, 12), 5);
        assert_eq!(minimum(1, 3, 9), 3);
        assert_eq!(minimum(1, 3, 36), 10);
        assert_eq!(minimum(u64::MAX, u64::MAX, 12), 10);
    }
}
