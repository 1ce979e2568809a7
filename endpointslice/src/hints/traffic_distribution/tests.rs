//! Test tables of kube-controller-manager for hints by traffic distribution.

use super::super::fixtures::{draft, hinted, in_zone, on_node, preferring, shown_draft, with_readiness};
use super::*;
use std::sync::Arc;

/// Returns a draft of a plan with two slices to create and two slices to update. Each slice has two of these endpoints.
fn fresh(endpoints: [Endpoint; 8]) -> Draft {
    let [e1, e2, e3, e4, e5, e6, e7, e8] = endpoints;
    draft(vec![vec![e1, e2], vec![e3, e4]], vec![vec![e5, e6], vec![e7, e8]], vec![])
}

fn in_zones() -> [Endpoint; 8] {
    let zones = ["zone-a", "zone-b", "zone-a", "zone-b", "zone-a", "zone-a", "zone-b", "zone-c"];
    std::array::from_fn(|at| on_node(&format!("node-{}", at + 1), in_zone(zones[at])))
}

fn without_zones() -> [Endpoint; 8] {
    in_zones().map(|endpoint| Endpoint { zone: None, ..endpoint })
}

/// Cases of kube-controller-manager's `TestReconcileHints`. Columns: name, `trafficDistribution`, draft, and the
/// resulting hints of created, updated and unchanged slices.
#[test]
fn the_nine_cases_of_upstream() {
    let own = |zone: &str| hinted(&[zone], &[], in_zone(zone));
    let wrong = draft(
        vec![],
        vec![vec![hinted(&["zone-b"], &[], in_zone("zone-a"))]],
        vec![vec![hinted(&["zone-c"], &[], in_zone("zone-b"))], vec![in_zone("zone-c")]],
    );
    let unready = draft(vec![], vec![], vec![vec![with_readiness(Some(false), in_zone("zone-b"))]]);
    let unknown =
        draft(vec![vec![own("zone-a"), own("zone-b")], vec![own("zone-a")]], vec![vec![own("zone-a")]], vec![]);
    let unset = draft(vec![], vec![vec![own("zone-a")]], vec![vec![own("zone-b")]]);
    let zones: [&[&str]; 3] = [&["zone-a zone-b", "zone-a zone-b"], &["zone-a zone-a", "zone-b zone-c"], &[]];
    let zones_and_nodes: [&[&str]; 3] = [
        &["zone-a@node-1 zone-b@node-2", "zone-a@node-3 zone-b@node-4"],
        &["zone-a@node-5 zone-a@node-6", "zone-b@node-7 zone-c@node-8"],
        &[],
    ];
    let nodes: [&[&str]; 3] = [&["@node-1 @node-2", "@node-3 @node-4"], &["@node-5 @node-6", "@node-7 @node-8"], &[]];
    type Case<'a> = (&'a str, Option<&'a str>, Draft, [&'a [&'a str]; 3]);
    let cases: [Case<'_>; 9] = [
        ("zones", Some("PreferClose"), fresh(in_zones()), zones),
        ("zones by the new name", Some("PreferSameZone"), fresh(in_zones()), zones),
        ("zones and nodes", Some("PreferSameNode"), fresh(in_zones()), zones_and_nodes),
        ("wrong hints", Some("PreferClose"), wrong, [&[], &["zone-a", "zone-b", "zone-c"], &[]]),
        ("no zones", Some("PreferClose"), fresh(without_zones()), [&["- -", "- -"], &["- -", "- -"], &[]]),
        ("nodes without zones", Some("PreferSameNode"), fresh(without_zones()), nodes),
        ("unready endpoints force no update", Some("PreferClose"), unready, [&[], &[], &["-"]]),
        ("unknown value", Some("Unknown"), unknown, [&["- -", "-"], &["-"], &[]]),
        ("no value", None, unset, [&[], &["-", "-"], &[]]),
    ];
    for (name, traffic_distribution, mut draft, expected) in cases {
        TrafficDistribution::default().assign(&preferring(traffic_distribution), &mut draft);
        assert_eq!(shown_draft(&draft), expected, "{name}");
    }
}

/// Case of kube-controller-manager's `TestReconcileHints_doesNotMutateUnchangedSlices`. Here the types prevent a change
/// of cached slices.
#[test]
fn slices_of_the_cache_are_not_changed() {
    let mut draft = draft(vec![], vec![], vec![vec![in_zone("zone-a")]]);
    let cached = Arc::clone(&draft.unchanged[0]);
    TrafficDistribution::default().assign(&preferring(Some("PreferClose")), &mut draft);
    assert_eq!(cached.endpoints, [in_zone("zone-a")]);
    assert_eq!(shown_draft(&draft), [vec![], vec!["zone-a".to_owned()], vec![]]);
}

#[test]
fn stale_hints_are_removed_and_right_ones_stay() {
    let leave = [
        hinted(&["zone-a"], &[], in_zone("zone-a")),
        in_zone(""),
        with_readiness(Some(false), hinted(&["zone-x"], &[], in_zone("zone-a"))),
        with_readiness(None, in_zone("zone-a")),
    ];
    let revise = [
        hinted(&["zone-a"], &[], in_zone("")),
        hinted(&["zone-a"], &["node-1"], on_node("node-1", in_zone("zone-a"))),
        hinted(&["zone-a", "zone-b"], &[], in_zone("zone-a")),
    ];
    let unchanged = leave.iter().chain(&revise).map(|endpoint| vec![endpoint.clone()]).collect();
    let mut draft = draft(vec![], vec![], unchanged);
    TrafficDistribution::default().assign(&preferring(Some("PreferSameZone")), &mut draft);
    let [_, updated, left] = shown_draft(&draft);
    assert_eq!(left, ["zone-a", "-", "zone-x", "-"]);
    assert_eq!(updated, ["-", "zone-a", "zone-a"]);
}

#[test]
fn endpoints_of_one_place_share_their_hints_from_plan_to_plan() {
    let mut hints = TrafficDistribution::default();
    let mut planned = |value| {
        let mut draft = draft(vec![vec![on_node("node-1", in_zone("zone-a")); 2]], vec![], vec![]);
        hints.assign(&preferring(Some(value)), &mut draft);
        draft.creates.remove(0).endpoints.into_iter().map(|endpoint| endpoint.hints.unwrap()).collect::<Vec<_>>()
    };
    for value in ["PreferSameZone", "PreferSameNode"] {
        let (first, second) = (planned(value), planned(value));
        assert!(first.iter().chain(&second).all(|hints| Arc::ptr_eq(hints, &first[0])), "{value}");
    }
}
