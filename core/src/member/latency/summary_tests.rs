//! Tests of the latency summary: the window, the buckets, and the times of reports.

use super::super::latency;
use super::*;
use property::{cases, for_any};
use proptest::collection::vec;

const MINUTE: i64 = MINUTE_MICROS;
const START: i64 = 1_000 * MINUTE;

/// Returns a summary of samples, given as (origin, import, latency in microseconds, time).
fn summary(samples: &[(&str, Import, i64, i64)]) -> Summary {
    let mut summary = Summary::default();
    for (origin, import, micros, at) in samples {
        let now = Timestamp(*at);
        summary.observe(&(*origin).into(), *import, latency(now.plus_micros(-micros), now), now);
    }
    summary
}

fn report(summary: &Summary, now: i64) -> Vec<OriginLatency> {
    match summary.change(Timestamp(now)) {
        Some(LatencyChange::Report(report)) => report.origins,
        other => panic!("{other:?}"),
    }
}

/// Also rule L10.
#[test]
fn samples_are_counted_by_bucket_and_what_is_no_measurement_apart() {
    let summary = summary(&[
        ("west", Import::Later, 1_000, START),
        ("west", Import::Later, 1_001, START),
        ("west", Import::Later, 60_000_000, START + 1),
        ("west", Import::Later, -5, START + 2),
        ("west", Import::First, 7_000, START + 3),
        ("east", Import::First, -7_000, START + 3),
    ]);
    let mut buckets = vec![0; 20];
    (buckets[0], buckets[1], buckets[19]) = (1, 1, 1);
    let west =
        OriginLatency { cluster: "west".into(), buckets, clamped: 1, first_imports: 1, sum_milliseconds: 60_002 };
    let east =
        OriginLatency { cluster: "east".into(), buckets: vec![], clamped: 0, first_imports: 1, sum_milliseconds: 0 };
    assert_eq!(report(&summary, START + 4), [east, west]);
}

/// Also rule L10.
#[test]
fn a_report_is_due_once_a_minute_and_the_summary_goes_after_ten_minutes_without_samples() {
    let mut summary = Summary::default();
    assert_eq!(summary.change(Timestamp(START)), None, "a new process knows nothing");
    summary.heartbeat_written(Timestamp(START));
    assert_eq!(summary.change(Timestamp(START + 10 * MINUTE - 1)), None);
    assert_eq!(summary.change(Timestamp(START + 10 * MINUTE)), Some(LatencyChange::Remove), "of an earlier process");

    let now = Timestamp(START);
    summary.observe(&"west".into(), Import::Later, latency(now.plus_micros(-1), now), now);
    assert_eq!(report(&summary, START).len(), 1);
    summary.change_written(now);
    for at in [START, START + MINUTE - 1] {
        assert_eq!(summary.change(Timestamp(at)), None);
    }
    assert_eq!(report(&summary, START + MINUTE).len(), 1);
    assert_eq!(report(&summary, START - 1).len(), 1, "the clock was set back");
    assert_eq!(summary.change(Timestamp(START + 6 * MINUTE)), None, "the window is empty, and the old summary stays");
    assert_eq!(summary.change(Timestamp(START + 10 * MINUTE)), Some(LatencyChange::Remove));
    summary.change_written(Timestamp(START + 10 * MINUTE));
    assert_eq!(summary.change(Timestamp(START + 20 * MINUTE)), None, "it is removed once");

    let now = Timestamp(START + 30 * MINUTE);
    summary.observe(&"west".into(), Import::Later, latency(now.plus_micros(-1), now), now);
    assert_eq!(summary.change(Timestamp(START + 40 * MINUTE - 1)), None, "there was a sample again");
    assert_eq!(summary.change(Timestamp(START + 40 * MINUTE)), Some(LatencyChange::Remove));
}

#[test]
fn a_clock_that_is_set_moves_the_window() {
    let mut summary = summary(&[("west", Import::Later, 5_000, START)]);
    summary.change_written(Timestamp(START));
    summary.clock_set(-500 * MINUTE);
    assert_eq!(summary.change(Timestamp(START - 500 * MINUTE + 1)), None);
    assert_eq!(report(&summary, START - 499 * MINUTE).len(), 1);
    assert_eq!(summary.change(Timestamp(START - 494 * MINUTE)), None, "the window is over");
    summary.clock_set(500 * MINUTE);
    assert_eq!(report(&summary, START + MINUTE).len(), 1);
}

#[test]
fn a_sample_before_the_newest_minute_keeps_the_window() {
    let later = START + 5 * MINUTE;
    let summary = summary(&[("west", Import::Later, 5_000, later), ("west", Import::Later, 5_000, START)]);
    assert_eq!(report(&summary, later + 5 * MINUTE)[0].count(), 2, "the clock was set back in between");
}

#[test]
fn nothing_is_kept_of_an_origin_without_samples_in_the_window() {
    let samples = [("west", Import::Later, 5_000, START), ("east", Import::Later, 5_000, START + 6 * MINUTE)];
    let kept: Vec<ClusterId> = summary(&samples).origins.into_keys().collect();
    assert_eq!(kept, ["east".into()]);
}

#[test]
fn of_too_many_origins_those_with_the_fewest_samples_are_left_out() {
    let mut summary = Summary::default();
    let now = Timestamp(START);
    for number in 0..LATENCY_ORIGINS_MAX + 2 {
        let samples = if number < 2 { 1 } else { 2 };
        for _ in 0..samples {
            summary.observe(&format!("c{number:04}").into(), Import::Later, latency(now.plus_micros(-1), now), now);
        }
    }
    let origins = report(&summary, START);
    assert_eq!(origins.len(), LATENCY_ORIGINS_MAX);
    assert_eq!((&*origins[0].cluster, &*origins[LATENCY_ORIGINS_MAX - 1].cluster), ("c0002", "c0257"));
}

/// The window has the samples of the present minute and the five minutes before, and nothing else.
///
/// Also rule L10.
#[test]
fn the_window_has_the_samples_of_the_last_six_minutes() {
    for_any(cases(256), 20, &vec((0..200_i64, 0..3_usize), 1..40), |steps| {
        let (mut now, mut all, mut summary) = (START, Vec::new(), Summary::default());
        for (seconds, origin) in steps {
            now += seconds * 1_000_000;
            let origin = ["a", "b", "c"][origin];
            let at = Timestamp(now);
            summary.observe(&origin.into(), Import::Later, latency(at.plus_micros(-3_000), at), at);
            all.push((origin, now));
        }
        let expected = |origin: &str| {
            let in_window = |at: i64| now.div_euclid(MINUTE) - at.div_euclid(MINUTE) < 6;
            u32::try_from(all.iter().filter(|(other, at)| *other == origin && in_window(*at)).count()).unwrap()
        };
        let found = report(&summary, now);
        let count = |origin: &str| {
            let found = found.iter().find(|it| &*it.cluster == origin);
            found.map_or(0, |it| it.buckets.iter().sum::<u32>())
        };
        for origin in ["a", "b", "c"] {
            assert_eq!(count(origin), expected(origin), "{origin}");
        }
        let is_over = |origin: &str| count(origin) == 0 && all.iter().any(|(it, _)| *it == origin);
        let in_window: u32 = ["a", "b", "c"].into_iter().map(count).sum();
        [
            (["a", "b", "c"].into_iter().any(is_over), "all samples of an origin are older than the window"),
            (u32::try_from(all.len()).unwrap() > in_window, "some samples are older than the window"),
            (in_window > 1, "several samples are in the window"),
        ]
    });
}
