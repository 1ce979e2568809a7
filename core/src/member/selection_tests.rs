//! Tests of the choice of clusters.

use super::*;
use proptest::collection::vec;

const SECOND: i64 = 1_000_000;
const PACE: i64 = 30 * SECOND;

/// Small world: the clusters of one Service, and a kube-proxy that gets what the rule chooses.
struct World {
    results: Vec<Vec<ClusterId>>,
    candidates: BTreeMap<ClusterId, Candidate>,
    now: Timestamp,
}

fn ids(clusters: &[&str]) -> Vec<ClusterId> {
    clusters.iter().map(|cluster| ClusterId::from(*cluster)).collect()
}

fn pace() -> Pace {
    Pace::new(PACE)
}

impl World {
    fn new(results: &[&[&str]]) -> Self {
        let results = results.iter().map(|result| ids(result)).collect();
        Self { results, candidates: BTreeMap::new(), now: Timestamp::from_seconds(1_000_000) }
    }

    /// Returns a world in which these clusters have had these endpoints for long.
    fn settled(results: &[&[&str]], ready: &[(&str, usize)]) -> Self {
        let mut world = Self::new(results);
        ready.iter().for_each(|(cluster, ready)| world.ready(cluster, *ready));
        world.binds();
        world.passes(1_000);
        world.binds();
        world
    }

    fn ready(&mut self, cluster: &str, ready: usize) {
        let now = self.now;
        let candidate = self.candidates.entry(cluster.into()).or_default();
        candidate.ready = ready;
        candidate.is_bound &= ready > 0;
        let counted = if candidate.treatment.is_some() { 0 } else { ready };
        candidate.strength.set(counted, pace(), now);
    }

    fn silent(&mut self, cluster: &str, treatment: Option<Treatment>) {
        let candidate = self.candidates.entry(cluster.into()).or_default();
        candidate.treatment = treatment;
        let ready = candidate.ready;
        self.ready(cluster, ready);
    }

    fn passes(&mut self, seconds: i64) {
        self.now = self.now.plus_micros(seconds * SECOND);
    }

    fn choice(&self) -> Choice {
        choose(&self.results, &self.candidates, pace(), self.now)
    }

    /// Writes what the rule chooses, until it chooses what is bound. Returns the clusters that are bound then.
    fn binds(&mut self) -> Vec<&str> {
        for _ in 0..4 {
            let chosen = self.choice().clusters;
            for (cluster, candidate) in &mut self.candidates {
                candidate.is_bound |= chosen.contains(cluster) && candidate.ready > 0;
            }
            let chosen = self.choice().clusters;
            for (cluster, candidate) in &mut self.candidates {
                candidate.is_bound &= chosen.contains(cluster);
            }
        }
        self.candidates.iter().filter(|(_, it)| it.is_bound).map(|(cluster, _)| &**cluster).collect()
    }

    fn bound_endpoints(&self) -> usize {
        self.candidates.values().filter(|it| it.is_bound).map(|it| it.ready).sum()
    }
}

#[test]
fn the_first_result_with_ready_endpoints_serves() {
    type Case<'a> = (&'a [&'a [&'a str]], &'a [(&'a str, usize)], &'a [&'a str]);
    let table: [Case<'_>; 8] = [
        (&[&["near"], &["region"]], &[("near", 1), ("region", 9), ("far", 9)], &["near"]),
        (&[&["near"], &["region"]], &[("near", 0), ("region", 1), ("far", 9)], &["region"]),
        (&[&["near"], &["region"]], &[("near", 0), ("region", 0), ("far", 9)], &["far"]),
        (&[&["near"], &["region"]], &[("near", 0), ("region", 0), ("far", 0)], &[]),
        (&[&["near", "region"]], &[("near", 1), ("region", 1), ("far", 1)], &["near", "region"]),
        (&[&["near"], &["near", "region"]], &[("near", 0), ("region", 1), ("far", 1)], &["region"]),
        (&[&[]], &[("near", 1), ("far", 1)], &["far", "near"]),
        (&[], &[("near", 1), ("far", 1)], &["far", "near"]),
    ];
    for (results, ready, expected) in table {
        let mut world = World::new(results);
        ready.iter().for_each(|(cluster, ready)| world.ready(cluster, *ready));
        assert_eq!(world.binds(), expected, "{results:?} {ready:?}");
    }
}

#[test]
fn draining_endpoints_serve_only_if_no_endpoint_is_ready() {
    let mut world = World::new(&[&["near"]]);
    world.ready("near", 0);
    world.candidates.get_mut("near").unwrap().draining = 3;
    assert_eq!(world.choice().clusters, ids(&["near"]).into_iter().collect());
    world.ready("far", 1);
    assert_eq!(world.choice().clusters, ids(&["far"]).into_iter().collect());
}

#[test]
fn a_failover_binds_the_next_result_before_it_unbinds_the_last_one() {
    let mut world = World::settled(&[&["near"]], &[("near", 20), ("far", 20)]);
    world.candidates.get_mut("near").unwrap().ready = 0; // its slice is still bound
    let both = ids(&["far", "near"]).into_iter().collect();
    assert_eq!(world.choice(), Choice { clusters: both, active: 1, ..Choice::default() });
    world.candidates.get_mut("far").unwrap().is_bound = true;
    assert_eq!(world.choice().clusters, ids(&["far"]).into_iter().collect());
}

#[test]
fn a_failback_waits_for_two_thirds_of_the_former_strength_for_30_seconds() {
    let mut world = World::settled(&[&["near"]], &[("near", 20), ("far", 20)]);
    world.ready("near", 0);
    assert_eq!(world.binds(), ["far"]);
    world.passes(3_600);
    world.ready("near", 1);
    assert_eq!(world.binds(), ["far", "near"], "it takes its share");
    world.passes(60);
    world.ready("near", 13);
    assert_eq!(world.binds(), ["far", "near"]);
    world.passes(60);
    world.ready("near", 14);
    assert_eq!(world.choice().again, Some(world.now.plus_micros(PACE)));
    world.passes(29);
    assert_eq!(world.binds(), ["far", "near"]);
    world.passes(1);
    assert_eq!(world.binds(), ["near"]);
}

#[test]
fn fewer_endpoints_are_full_strength_once_their_number_has_not_grown_for_5_minutes() {
    let mut world = World::settled(&[&["near"]], &[("near", 20), ("far", 20)]);
    world.ready("near", 0);
    assert_eq!(world.binds(), ["far"]);
    world.ready("near", 4);
    world.passes(200);
    world.ready("near", 5);
    assert_eq!(world.binds(), ["far", "near"]);
    assert_eq!(world.choice().again, Some(world.now.plus_micros(300 * SECOND)));
    world.passes(299);
    assert_eq!(world.binds(), ["far", "near"]);
    world.passes(1);
    assert_eq!(world.binds(), ["near"]);
}

/// After its start, the agent does not know how strong a cluster was.
#[test]
fn a_cluster_of_unknown_strength_waits_for_5_minutes_without_growth() {
    let mut world = World::new(&[&["near"]]);
    world.ready("far", 20);
    assert_eq!(world.binds(), ["far"]);
    world.ready("near", 20);
    world.passes(299);
    assert_eq!(world.binds(), ["far", "near"]);
    world.passes(1);
    assert_eq!(world.binds(), ["near"]);
}

#[test]
fn each_flap_doubles_the_time_up_to_5_minutes() {
    let mut world = World::settled(&[&["near"]], &[("near", 3), ("far", 3)]);
    for expected in [30, 60, 120, 240, 300, 300] {
        world.ready("near", 0);
        world.binds();
        world.ready("near", 3);
        assert_eq!(world.binds(), ["far", "near"]);
        assert_eq!(world.choice().again, Some(world.now.plus_micros(expected * SECOND)), "{expected}");
        world.passes(5);
    }
    world.passes(1_800);
    world.binds();
    world.ready("near", 0);
    world.binds();
    world.ready("near", 3);
    assert_eq!(world.choice().again, Some(world.now.plus_micros(30 * SECOND)), "old losses do not count");
}

#[test]
fn a_pod_that_returns_beside_a_small_result_waits_for_others() {
    let mut world = World::settled(&[&["near"]], &[("near", 20), ("far", 2)]);
    world.ready("near", 0);
    assert_eq!(world.binds(), ["far"]);
    world.ready("near", 11);
    assert_eq!(world.binds(), ["far"], "13 endpoints would get more than 1.5 times the load of 20");
    world.ready("near", 12);
    assert_eq!(world.binds(), ["far", "near"]);
    world.ready("near", 11);
    assert_eq!(world.binds(), ["far", "near"], "what is bound stays");
}

#[test]
fn a_silent_cluster_serves_only_if_all_others_are_silent_too() {
    let mut world = World::settled(&[&["near"]], &[("near", 5), ("far", 5)]);
    world.silent("near", Some(Treatment::Draining));
    assert_eq!(world.binds(), ["far"]);
    world.silent("far", Some(Treatment::Draining));
    assert_eq!(world.binds(), ["far", "near"], "both are silent");
    world.silent("far", None);
    assert_eq!(world.binds(), ["far"]);
    world.passes(100);
    world.silent("near", None);
    assert_eq!(world.binds(), ["far", "near"], "it must prove itself like any other");
    world.passes(30);
    assert_eq!(world.binds(), ["near"]);
}

#[test]
fn a_result_of_two_clusters_counts_as_one() {
    let mut world = World::settled(&[&["one", "two"]], &[("one", 10), ("two", 10), ("far", 20)]);
    world.ready("one", 0);
    assert_eq!(world.binds(), ["two"]);
    world.ready("two", 0);
    assert_eq!(world.binds(), ["far"]);
    world.ready("one", 10);
    world.passes(60);
    assert_eq!(world.binds(), ["far", "one"], "half of the strength");
    world.passes(300);
    assert_eq!(world.binds(), ["one"], "the other cluster has not grown for 5 minutes");
}

#[test]
fn the_clock_moves_all_times() {
    let mut world = World::settled(&[&["near"]], &[("near", 20), ("far", 20)]);
    world.ready("near", 0);
    world.binds();
    world.ready("near", 20);
    let before = world.choice().again.unwrap();
    world.candidates.values_mut().for_each(|it| it.strength.clock_set(7));
    assert_eq!(world.choice().again, Some(before.plus_micros(7)));
}

/// In random histories of three clusters, no port loses its last endpoint while another cluster has some. After five
/// quiet minutes, the first result serves.
#[test]
fn random_histories_keep_the_promises() {
    let clusters = ["far", "near", "region"];
    let step = (0..3_usize, 0..8_usize, 0..120_i64, 0..10_u32);
    property::for_any(property::cases(300), 30, &vec(step, 1..60), |steps| {
        let mut world = World::settled(&[&["near"], &["region"]], &[("near", 6), ("region", 6), ("far", 6)]);
        let (mut failovers, mut failbacks) = (0, 0);
        for (cluster, ready, seconds, silence) in steps {
            world.passes(seconds);
            let before: Vec<String> = world.binds().into_iter().map(str::to_owned).collect();
            match silence {
                0 => world.silent(clusters[cluster], Some(Treatment::Draining)),
                1 => world.silent(clusters[cluster], None),
                _ => world.ready(clusters[cluster], ready),
            }
            let choice = world.choice();
            let has_endpoints = world.candidates.values().any(|it| it.ready > 0);
            let serves = |cluster: &ClusterId| world.candidates[cluster].ready > 0;
            assert_eq!(choice.clusters.iter().any(serves), has_endpoints, "{:?}", world.candidates);
            let after: Vec<String> = world.binds().into_iter().map(str::to_owned).collect();
            assert_eq!(world.bound_endpoints() > 0, has_endpoints);
            failovers += usize::from(before == ["near"] && !after.contains(&"near".to_owned()));
            failbacks += usize::from(before != ["near"] && after == ["near"]);
        }
        clusters.iter().for_each(|cluster| world.silent(cluster, None));
        world.binds();
        world.passes(300);
        let expected = ["near", "region", "far"].into_iter().find(|it| world.candidates[*it].ready > 0);
        assert_eq!(world.binds(), Vec::from_iter(expected));
        [(failovers > 0, "failover"), (failbacks > 0, "failback")]
    });
}
