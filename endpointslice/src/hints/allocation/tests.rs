//! Test tables of kube-controller-manager for zones that give and receive endpoints.

use super::super::fixtures::{hinted, in_zone, nodes, slice, with_readiness};
use super::*;

fn counts(zones: &[(&str, usize)]) -> Counts {
    zones.iter().map(|(zone, count)| ((*zone).into(), *count)).collect()
}

/// Returns an allocation in which each zone may have at most the given number of endpoints.
fn up_to(maxima: &[(&str, usize)]) -> Allocation {
    let zones = maxima.iter().map(|(zone, maximum)| ((*zone).into(), Quota { desired: 0, maximum: *maximum }));
    Allocation { zones: zones.collect(), unit: 1 }
}

/// Cases of kube-controller-manager's `Test_redistributeHints`. Columns: zones of the endpoints, giving zones,
/// receiving zones, resulting hints.
#[test]
fn the_three_cases_of_rehinting() {
    type Case<'a> = (&'a [&'a str], &'a [(&'a str, usize)], &'a [(&'a str, usize)], &'a [&'a str]);
    let cases: [Case<'_>; 3] = [
        (&[], &[], &[], &[]),
        (&["zone-a"], &[("zone-a", 1)], &[("zone-b", 1)], &["zone-b"]),
        (
            &["zone-a", "zone-a", "zone-a"],
            &[("zone-a", 2)],
            &[("zone-b", 1), ("zone-c", 1)],
            &["zone-b", "zone-c", "zone-a"],
        ),
    ];
    for (zones, giving, receiving, expected) in cases {
        let mut endpoints: Vec<_> = zones.iter().map(|zone| hinted(&[zone], &[], in_zone(zone))).collect();
        let mut per_zone = Counts::new();
        zones.iter().for_each(|zone| add(&mut per_zone, &(*zone).into()));
        let transfers = Transfers { giving: counts(giving), receiving: counts(receiving) };
        transfers.carry_out(endpoints.iter_mut(), &mut per_zone, |endpoint, zone| {
            *endpoint = hinted(&[zone], &[], endpoint.clone());
        });
        let hints: Vec<_> = endpoints.iter().map(super::super::fixtures::shown).collect();
        assert_eq!(hints, expected);
        let mut expected_counts = Counts::new();
        expected.iter().for_each(|zone| add(&mut expected_counts, &(*zone).into()));
        assert_eq!(per_zone, expected_counts);
    }
}

/// Cases of kube-controller-manager's `Test_getGivingAndReceivingZones`. Columns: name, desired endpoints of three
/// zones (in tenths), actual endpoints, giving zones, receiving zones.
#[test]
fn the_nine_cases_of_giving_and_receiving() {
    type Zones<'a> = &'a [(&'a str, usize)];
    type Case<'a> = (&'a str, [i128; 3], [i128; 3], Zones<'a>, Zones<'a>);
    let cases: [Case<'_>; 9] = [
        ("nothing", [0; 3], [0; 3], &[], &[]),
        ("no need", [12, 11, 10], [1, 1, 1], &[], &[]),
        ("keep rather than share out", [51, 51, 58], [16, 0, 0], &[("a", 10)], &[("b", 5), ("c", 5)]),
        ("the largest lack first", [50, 56, 54], [16, 0, 0], &[("a", 11)], &[("b", 6), ("c", 5)]),
        ("the largest surplus first", [50, 56, 54], [0, 8, 8], &[("b", 2), ("c", 3)], &[("a", 5)]),
        ("surplus everywhere", [50, 50, 50], [6, 6, 6], &[], &[]),
        ("negative wishes", [-50, -50, -50], [6, 6, 6], &[], &[]),
        ("negative counts", [50, 50, 50], [-4, -3, -2], &[], &[]),
        ("one negative count", [50, 50, 50], [-40, 20, 20], &[("b", 15), ("c", 15)], &[("a", 30)]),
    ];
    let zones: [Text; 3] = ["a".into(), "b".into(), "c".into()];
    for (name, desired, hinted, giving, receiving) in cases {
        let surplus = hinted.iter().zip(desired).map(|(hinted, desired)| hinted * 10 - desired);
        let transfers = Transfers::balancing(zones.iter().zip(surplus), 10);
        assert_eq!(transfers, Transfers { giving: counts(giving), receiving: counts(receiving) }, "{name}");
    }
}

/// Cases of kube-controller-manager's `Test_getHintsByZone`. Columns: name, endpoints of a slice, maximum of each zone,
/// counts of other slices whose hints stay, resulting counts (`None` if the slice needs new hints).
///
/// Also rule Z13.
#[test]
fn the_eight_cases_of_hints_that_may_stay() {
    let a = |hints: &[&str]| hinted(hints, &[], in_zone("zone-a"));
    let one = &[("zone-a", 1)][..];
    let each = &[("zone-a", 1), ("zone-b", 1), ("zone-c", 1)][..];
    let three = &[("zone-a", 3), ("zone-b", 3), ("zone-c", 3)][..];
    let unready =
        vec![a(&["zone-a"]), with_readiness(Some(false), a(&["zone-a"])), with_readiness(None, a(&["zone-a"]))];
    let several = vec![a(&["zone-a"]), a(&["zone-b"]), hinted(&["zone-b"], &[], in_zone("zone-b"))];
    let cases = [
        ("empty", vec![], &[][..], &[][..], Some(vec![])),
        ("one hint", vec![a(&["zone-a"])], &three[..1], one, Some(vec![("zone-a", 1)])),
        ("one ready, one not, one unknown", unready, &three[..1], one, Some(vec![("zone-a", 1)])),
        ("several zones", several, three, each, Some(vec![("zone-a", 1), ("zone-b", 2)])),
        ("a zone that needs none", vec![a(&["zone-non-existent"])], &three[..1], each, None),
        ("no hints", vec![in_zone("zone-a")], &three[..1], &[], None),
        ("hints for no zone", vec![a(&[])], &three[..1], &[], None),
        ("more than fit", vec![a(&["zone-a"]), a(&["zone-a"])], &[("zone-a", 2)], one, None),
    ];
    for (name, endpoints, maxima, staying, expected) in cases {
        let found = up_to(maxima).counts_of(&slice(endpoints), &counts(staying));
        assert_eq!(found, expected.map(|zones| counts(&zones)), "{name}");
    }
}

#[test]
fn hints_for_nodes_of_an_earlier_traffic_distribution_may_not_stay() {
    let left_over = hinted(&["zone-a"], &["node-1"], in_zone("zone-a"));
    assert_eq!(up_to(&[("zone-a", 3)]).counts_of(&slice(vec![left_over]), &Counts::new()), None);
}

#[test]
fn a_part_that_divides_evenly_is_not_rounded_up() {
    // Six endpoints for five equal zones: each zone should have 1.2, so its minimum is 1.2 / 1.2 = 1. In
    // kube-controller-manager a rounding error of floating point makes the minimum 2, so the Service gets no hints.
    let fifths = ["a", "b", "c", "d", "e"].map(|zone| (zone, 100));
    assert!(Allocation::new(ZoneShares::of(&nodes(&fifths)).as_ref(), 6).is_ok());
}

/// Divisions exactly at the limit of 20 % overload. kube-controller-manager rejects each of them because of a rounding
/// error of floating point.
#[test]
fn at_the_limit_of_overload_parts_are_exact() {
    let shared = |zones: &[(&'static str, u32)], endpoints| {
        let allocation = Allocation::new(ZoneShares::of(&nodes(zones)).as_ref(), endpoints).expect("hints");
        allocation.zones.values().map(|quota| quota.maximum).collect::<Vec<_>>()
    };
    assert_eq!(shared(&[("a", 3), ("b", 2)], 3), [2, 1]);
    let three = [("a", 2), ("b", 2), ("c", 1)];
    assert_eq!(shared(&three, 3), [1, 1, 1]);
    assert_eq!(shared(&three, 6), [3, 3, 2]);
    assert_eq!(shared(&three, 12), [6, 6, 4]);
}

#[test]
fn endpoints_are_allocated_by_exact_parts() {
    let shares = ZoneShares::of(&nodes(&[("zone-a", 350), ("zone-b", 350), ("zone-c", 300)]));
    let allocation = Allocation::new(shares.as_ref(), 10).unwrap();
    assert_eq!(allocation.unit, 1000);
    let quotas: Vec<_> = allocation.zones.values().map(|quota| (quota.desired, quota.maximum)).collect();
    assert_eq!(quotas, [(3500, 4), (3500, 4), (3000, 4)]);
}

/// Also rule Z13.
#[test]
fn endpoints_that_cannot_be_shared_out_get_no_hints() {
    let thirds = ZoneShares::of(&nodes(&[("zone-a", 100), ("zone-b", 100), ("zone-c", 100)]));
    let reason = |shares: Option<&ZoneShares>, endpoints| Allocation::new(shares, endpoints).unwrap_err();
    assert_eq!(reason(None, 10), NoHintsReason::InsufficientNodes);
    assert_eq!(reason(thirds.as_ref(), 2), NoHintsReason::TooFewEndpoints { endpoints: 2, zones: 3 });
    assert_eq!(reason(thirds.as_ref(), 4), NoHintsReason::Overload { endpoints: 4, zones: 3 });
    // The minimum of each zone is rounded up to 4, and 3 * 4 is more than 11. kube-controller-manager rejects this
    // division too (kubernetes/kubernetes #122437).
    assert_eq!(reason(thirds.as_ref(), 11), NoHintsReason::Overload { endpoints: 11, zones: 3 });
    assert!(Allocation::new(thirds.as_ref(), 9).is_ok());
}
