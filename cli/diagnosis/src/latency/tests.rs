//! Tests of the arithmetic over bucket counts.

use super::*;
use crate::snapshot::Listing;
use proptest::prelude::*;

const BOUNDS: [f64; 19] = [
    1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 75.0, 100.0, 150.0, 250.0, 500.0, 750.0, 1000.0, 2500.0, 5000.0, 10000.0,
    25000.0, 50000.0,
];

fn histogram(counts: &[u64]) -> Histogram {
    Histogram::new(&BOUNDS, counts).expect("it is valid")
}

fn tenths(value: Option<f64>) -> String {
    format!("{:.1}", value.expect("there are samples"))
}

#[test]
fn quantiles_are_those_of_prometheus() {
    let example = histogram(&[0, 0, 12, 180, 420, 380, 190, 40, 8, 3, 1]);
    assert_eq!(example.count(), 1234);
    let quantiles = [0.5, 0.9, 0.99].map(|quantile| tenths(example.quantile(quantile)));
    assert_eq!(quantiles, ["15.1", "40.6", "74.8"]);
    assert_eq!(histogram(&[]).quantile(0.5), None);
    assert_eq!(histogram(&[4]).quantile(0.5), Some(0.5), "the lower limit of the first bucket is 0");
    let endless: Vec<u64> = std::iter::repeat_n(0, 19).chain([3]).collect();
    assert_eq!(histogram(&endless).quantile(0.5), Some(50_000.0), "the last bucket has no upper limit");
}

#[test]
fn texts_have_two_digits_and_say_what_is_a_limit_or_rests_on_few_samples() {
    let text = |counts: &[u64], quantile| histogram(counts).text(quantile, 20);
    assert_eq!(text(&[], 0.5), "–");
    assert_eq!(text(&[30], 0.5), "<1ms");
    assert_eq!(text(&[0, 0, 12, 180, 420, 380, 190, 40, 8, 3, 1], 0.5), "15ms");
    assert_eq!(text(&[0, 30], 0.5), "1.8ms");
    assert_eq!(text(&[0, 3], 0.5), "~1.8ms");
    let late: Vec<u64> = std::iter::repeat_n(0, 19).chain([30]).collect();
    assert_eq!(text(&late, 0.5), ">50s");
    assert_eq!(
        ["1s", "1.5s", "250ms", "2ms"],
        [1_000.0, 1_499.0, 254.0, 2.0].map(duration).each_ref().map(|it| it.as_str())
    );
}

#[test]
fn a_malformed_histogram_is_an_error() {
    assert!(Histogram::new(&[], &[]).is_err());
    assert!(Histogram::new(&[2.0, 1.0], &[]).is_err());
    assert!(Histogram::new(&[1.0], &[1, 2, 3]).is_err());
    assert!(Histogram::new(&[1.0], &[u64::MAX, 1]).is_err());
    assert!(Histogram::new(&[f64::NAN], &[1]).is_err());
    let origin = Origin { count: 3, buckets: vec![1, 1], ..Origin::default() };
    let summary = Summary { bounds_milliseconds: vec![1.0], ..Summary::default() };
    assert_eq!(summary.histogram(&origin), Err("the buckets have 2 samples, and count is 3".to_owned()));
}

#[test]
fn a_summary_is_read_from_the_json_of_a_member_agent() {
    let json = serde_json::json!({"spec": {"latency": {
        "updateTime": "2026-11-22T03:48:02.123456Z", "windowSeconds": 300, "boundsMilliseconds": [1, 2.5],
        "origins": [{"cluster": "west", "count": 2, "clamped": 1, "firstImports": 3, "sumMilliseconds": 4, "buckets": [0, 2]}],
    }}});
    let summary = summary_of(&json).expect("it has one").expect("it is valid");
    assert_eq!(summary.histogram(&summary.origins[0]).map(|it| it.counts().to_vec()), Ok(vec![0, 2, 0]));
    let now: Timestamp = "2026-11-22T03:54:02Z".parse().expect("a time");
    assert!(!summary.is_stale(now), "359 s are within the window and 60 s");
    let later: Timestamp = "2026-11-22T03:54:04Z".parse().expect("a time");
    assert!(summary.is_stale(later));
    assert!(summary_of(&serde_json::json!({"spec": {"latency": {"origins": 7}}})).expect("it has one").is_err());
    assert_eq!(summary_of(&serde_json::json!({"spec": {}})), None);
}

/// Slow reference: writes each sample as the limits of its bucket, counts samples one by one up to the rank, and
/// interpolates between the limits of the bucket in which the rank is reached.
fn reference(bounds: &[f64], counts: &[u64], quantile: f64) -> Option<f64> {
    let mut samples: Vec<(f64, f64)> = Vec::new();
    let mut lower = 0.0;
    for (index, count) in counts.iter().enumerate() {
        let upper = bounds.get(index).copied().unwrap_or(f64::INFINITY);
        samples.extend((0..*count).map(|_| (lower, upper)));
        lower = upper;
    }
    let total = u32::try_from(samples.len()).expect("few samples");
    let rank = quantile * f64::from(total);
    let mut number = 0.0;
    for sample in &samples {
        number += 1.0;
        if number < rank {
            continue;
        }
        if sample.1.is_infinite() {
            return bounds.last().copied();
        }
        let in_bucket = u32::try_from(samples.iter().filter(|other| *other == sample).count()).expect("few samples");
        let before = u32::try_from(samples.iter().filter(|other| other.1 < sample.1).count()).expect("few samples");
        let share = (rank - f64::from(before)) / f64::from(in_bucket);
        return Some(sample.0 + (sample.1 - sample.0) * share);
    }
    None
}

#[test]
fn quantiles_agree_with_a_slow_reference() {
    let bounds = prop::collection::btree_set(1_u32..5_000, 1..8);
    let input = (bounds, prop::collection::vec(0_u64..9, 0..9), 0_u32..=100);
    property::for_any(property::cases(512), 8, &input, |(bounds, mut counts, hundredths)| {
        let bounds: Vec<f64> = bounds.into_iter().map(f64::from).collect();
        counts.truncate(bounds.len() + 1);
        let quantile = f64::from(hundredths) / 100.0;
        let histogram = Histogram::new(&bounds, &counts).expect("it is valid");
        let (found, wanted) = (histogram.quantile(quantile), reference(&bounds, &counts, quantile));
        match (found, wanted) {
            (Some(found), Some(wanted)) => assert!((found - wanted).abs() < 1e-6, "{found} and not {wanted}"),
            (found, wanted) => assert_eq!(found, wanted),
        }
        let is_last = wanted == bounds.last().copied();
        [(wanted.is_none(), "no samples"), (is_last, "the highest bound"), (!is_last && wanted.is_some(), "inside")]
    });
}

#[test]
fn adding_histograms_adds_counts() {
    let mut sum = histogram(&[1, 2]);
    sum.add(&histogram(&[0, 1, 5])).expect("the bounds are equal");
    assert_eq!(sum.counts()[..4], [1, 3, 5, 0]);
    assert_eq!(sum.above(2.5), 5);
    assert_eq!(sum.above(2.0), 8);
    let other = Histogram::new(&[1.0], &[]).expect("it is valid");
    assert!(sum.add(&other).is_err());
}

/// Returns the healthy fleet, in which `east` has 30 samples of changes of `west` and of a cluster that is no member.
fn fleet() -> Snapshot {
    let mut snapshot = crate::fixture::healthy();
    let mut agent = crate::fixture::member_agent("east");
    let samples = |cluster: &str| {
        serde_json::json!({
            "cluster": cluster, "count": 30, "clamped": 1, "firstImports": 2, "sumMilliseconds": 60, "buckets": [0, 30],
        })
    };
    agent["spec"]["latency"] = serde_json::json!({
        "updateTime": "2027-01-15T12:09:00.000000Z", "windowSeconds": 300, "boundsMilliseconds": [1.0, 2.5, 5.0],
        "origins": [samples("nobody"), samples("west")],
    });
    // What the CRD type writes is what this crate reads.
    let agent: fleetnet_api::crd::MemberAgent = crate::fixture::object("MemberAgent", agent);
    let json = serde_json::to_value(&agent).expect("it serializes");
    snapshot.hub.latencies.insert("east".to_owned(), summary_of(&json).expect("it has a summary"));
    snapshot
}

fn without(matrix: &LatencyMatrix) -> Vec<(&str, &str)> {
    matrix.without_summary.iter().map(|it| (it.member.as_str(), it.why.as_str())).collect()
}

#[test]
fn the_matrix_has_the_pairs_of_members_and_names_members_without_a_summary() {
    let matrix = latency(&fleet(), &Options::default());
    assert_eq!(matrix.members, ["east", "west"]);
    let [cell] = matrix.cells.as_slice() else { panic!("{:#?}", matrix.cells) };
    assert_eq!((cell.origin.as_str(), cell.destination.as_str()), ("west", "east"));
    assert_eq!((cell.count, cell.clamped, cell.first_imports), (30, 1, 2));
    assert_eq!(cell.buckets, [0, 30, 0, 0]);
    let texts: Vec<&str> = cell.quantiles.iter().map(|quantile| quantile.text.as_str()).collect();
    assert_eq!(texts, ["1.8ms", "2.5ms"]);
    assert_eq!(cell.clock_milliseconds, None);
    assert_eq!(without(&matrix), [("west", NO_SUMMARY)]);
    assert_eq!(matrix.verdict, Verdict::Healthy);
}

#[test]
fn a_stale_summary_is_not_shown() {
    let mut snapshot = fleet();
    snapshot.hub.connection.now = Some(crate::fixture::at("2027-01-15T12:15:01Z"));
    let matrix = latency(&snapshot, &Options::default());
    assert!(matrix.cells.is_empty());
    assert_eq!(without(&matrix)[0], ("east", "stale since 2027-01-15T12:09:00.000000Z"));
    assert_eq!(matrix.verdict, Verdict::NotKnown);
}

#[test]
fn a_malformed_summary_is_named() {
    let mut snapshot = fleet();
    snapshot.hub.latencies.insert("east".to_owned(), Err("missing field".to_owned()));
    let matrix = latency(&snapshot, &Options::default());
    assert_eq!(without(&matrix)[0], ("east", "invalid summary: missing field"));
    assert_eq!((matrix.cells.len(), matrix.verdict), (0, Verdict::NotKnown));
}

#[test]
fn counts_that_contradict_each_other_are_named() {
    let mut snapshot = fleet();
    snapshot.hub.latencies.get_mut("east").expect("it has a summary").as_mut().expect("it is valid").origins[1].count =
        31;
    let matrix = latency(&snapshot, &Options::default());
    assert!(matrix.cells.is_empty());
    let why = "invalid samples of west: the buckets have 30 samples, and count is 31";
    assert_eq!(without(&matrix)[0], ("east", why));
    assert_eq!(matrix.verdict, Verdict::NotKnown);
}

#[test]
fn clocks_that_differ_are_shown_in_the_cell() {
    let mut snapshot = fleet();
    let agents = snapshot.hub.member_agents.objects_mut().expect("they are known");
    agents[1].spec.renew_time.0 = crate::fixture::at("2027-01-15T12:09:58Z");
    let matrix = latency(&snapshot, &Options::default());
    assert_eq!(matrix.cells[0].clock_milliseconds, None, "2 s are within the accuracy");
    let agents = snapshot.hub.member_agents.objects_mut().expect("they are known");
    agents[1].spec.renew_time.0 = crate::fixture::at("2027-01-15T12:09:59Z");
    let matrix = latency(&snapshot, &Options::default());
    assert_eq!(matrix.cells[0].clock_milliseconds, Some(-3_000));
}

#[test]
fn a_hub_whose_member_agents_are_not_known_is_not_known() {
    let mut snapshot = fleet();
    snapshot.hub.member_agents = Listing::Denied("forbidden".to_owned());
    assert_eq!(latency(&snapshot, &Options::default()).verdict, Verdict::NotKnown);
}
