//! Latency matrix from the summaries that members write to their MemberAgents.
//!
//! A summary has the bucket counts of a histogram for each origin. Counts can be added up, quantiles cannot. The
//! quantiles follow the rules of Prometheus' `histogram_quantile` for classic histograms.

mod summary;

pub use summary::{Origin, Summary};

use crate::explain::clock_of;
use crate::limits::{CLOCK_MILLISECONDS, SAMPLES_MIN};
use crate::order::natural;
use crate::report::{API_VERSION, LatencyCell, LatencyMatrix, Quantile, Verdict, WithoutSummary};
use crate::snapshot::Snapshot;
use crate::status::not_known;
use jiff::Timestamp;
use serde::Deserialize as _;

/// Time after the end of its window, in seconds, for which a summary counts as current. A member writes it at most once
/// in 60 s.
const STALE_SECONDS: i64 = 60;

/// Reason why a member without a summary has no latencies, with what to wait for.
const NO_SUMMARY: &str =
    "no summary yet: the member agent sends the first one up to a minute after an endpoint has changed";

/// Histogram of latencies. Has one count for each bound, and one for longer latencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    bounds: Vec<f64>,
    counts: Vec<u64>,
}

impl Histogram {
    /// Returns a histogram with these bounds and counts. Zeros at the end of the counts may be omitted.
    ///
    /// # Errors
    /// If the bounds are not increasing, or there are more counts than buckets.
    pub fn new(bounds: &[f64], counts: &[u64]) -> Result<Self, String> {
        let is_increasing = bounds.windows(2).all(|pair| pair[0] < pair[1]);
        if bounds.is_empty() || !is_increasing || !bounds.iter().all(|bound| bound.is_finite() && *bound > 0.0) {
            return Err("the bounds of the buckets are not increasing".to_owned());
        }
        if counts.len() > bounds.len() + 1 {
            return Err(format!("there are {} counts for {} buckets", counts.len(), bounds.len() + 1));
        }
        if counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count)).is_none() {
            return Err("the counts of the buckets are too large".to_owned());
        }
        let mut counts = counts.to_vec();
        counts.resize(bounds.len() + 1, 0);
        Ok(Self { bounds: bounds.to_vec(), counts })
    }

    /// Returns the number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the counts of all buckets.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the upper bounds of all buckets but the last.
    #[must_use]
    pub fn bounds(&self) -> &[f64] {
        &self.bounds
    }

    /// Returns the number of samples in buckets above this bound.
    #[must_use]
    pub fn above(&self, milliseconds: f64) -> u64 {
        let first = self.bounds.partition_point(|bound| *bound <= milliseconds);
        self.counts.iter().skip(first).sum()
    }

    /// Adds the samples of another histogram with the same bounds.
    ///
    /// # Errors
    /// If the bounds differ, or the sum is too large.
    pub fn add(&mut self, other: &Self) -> Result<(), String> {
        if self.bounds != other.bounds {
            return Err("the bounds of the buckets differ".to_owned());
        }
        let sums = self.counts.iter().zip(&other.counts).map(|(one, two)| one.checked_add(*two));
        let sums: Option<Vec<u64>> = sums.collect();
        *self = Self::new(&self.bounds, &sums.ok_or("the counts of the buckets are too large")?)?;
        Ok(())
    }

    /// Returns a quantile in milliseconds by linear interpolation inside its bucket; `None` without samples. A quantile
    /// in the last bucket is the highest bound.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        let (bucket, before, rank) = self.bucket_of(quantile)?;
        let Some(upper) = self.bounds.get(bucket) else { return self.bounds.last().copied() };
        let lower = bucket.checked_sub(1).map_or(0.0, |below| self.bounds[below]);
        Some(lower + (upper - lower) * ((rank - before) / float(self.counts[bucket])).clamp(0.0, 1.0))
    }

    /// Returns a quantile as text with two significant digits: `<1ms` in the first bucket, `>50s` in the last. A tilde
    /// marks fewer than `min_count` samples.
    #[must_use]
    pub fn text(&self, quantile: f64, min_count: u64) -> String {
        let Some((bucket, ..)) = self.bucket_of(quantile) else { return "–".to_owned() };
        let tilde = if self.count() < min_count { "~" } else { "" };
        let value = self.quantile(quantile).unwrap_or_default();
        let (sign, value) = match bucket {
            0 => ("<", self.bounds[0]),
            last if last == self.bounds.len() => (">", value),
            _ => ("", value),
        };
        format!("{tilde}{sign}{}", duration(value))
    }

    /// Returns the bucket of a quantile, the number of samples in the buckets below, and the rank of the quantile.
    fn bucket_of(&self, quantile: f64) -> Option<(usize, f64, f64)> {
        let rank = quantile.clamp(0.0, 1.0) * float(self.count());
        let mut before = 0_u64;
        for (bucket, count) in self.counts.iter().enumerate() {
            let up_to = before.saturating_add(*count);
            if *count > 0 && float(up_to) >= rank {
                return Some((bucket, float(before), rank));
            }
            before = up_to;
        }
        None
    }
}

/// Converts a count. Counts above 2^53 lose digits that no quantile needs.
#[expect(clippy::cast_precision_loss, reason = "a quantile needs no more digits")]
fn float(count: u64) -> f64 {
    count as f64
}

/// Returns a duration with two significant digits.
fn duration(milliseconds: f64) -> String {
    let (value, unit) = if milliseconds < 999.5 { (milliseconds, "ms") } else { (milliseconds / 1_000.0, "s") };
    let digits = if value < 9.95 && value.fract() != 0.0 { 1 } else { 0 };
    let text = format!("{value:.digits$}");
    match value {
        value if value >= 99.5 => format!("{:.0}{unit}", (value / 10.0).round() * 10.0),
        _ => format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text)),
    }
}

impl Summary {
    /// Returns the histogram of an origin.
    ///
    /// # Errors
    /// If the counts contradict each other: a member's summary may be false.
    pub fn histogram(&self, origin: &Origin) -> Result<Histogram, String> {
        let histogram = Histogram::new(&self.bounds_milliseconds, &origin.buckets)?;
        if histogram.count() != origin.count {
            return Err(format!("the buckets have {} samples, and count is {}", histogram.count(), origin.count));
        }
        Ok(histogram)
    }

    /// True if the summary is too old at this time of the member's clock.
    fn is_stale(&self, now: Timestamp) -> bool {
        let updated: Option<Timestamp> = self.update_time.parse().ok();
        let age = updated.map(|updated| now.duration_since(updated).as_secs());
        age.is_none_or(|age| age > self.window_seconds.saturating_add(STALE_SECONDS))
    }
}

/// Settings of the latency matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Quantiles from 0 to 1.
    pub quantiles: Vec<f64>,
    /// Number of samples below which a value is marked.
    pub min_count: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { quantiles: vec![0.5, 0.99], min_count: SAMPLES_MIN }
    }
}

/// Returns the latency from each member to each other member. Origins that are no members are omitted. A member may run
/// without a summary, but a summary that is stale or invalid hides latencies, which are then not known.
#[must_use]
pub fn latency(snapshot: &Snapshot, options: &Options) -> LatencyMatrix {
    let members: Vec<String> = snapshot.members.iter().map(|member| member.id.clone()).collect();
    let (mut cells, mut without_summary) = (Vec::new(), Vec::new());
    let not_known = not_known(snapshot);
    let mut is_unknown = !not_known.is_empty();
    for destination in &members {
        let mut without = |why: String| without_summary.push(WithoutSummary { member: destination.clone(), why });
        let summary = match snapshot.hub.latencies.get(destination) {
            Some(Ok(summary)) => summary,
            Some(Err(why)) => {
                without(format!("invalid summary: {why}"));
                is_unknown = true;
                continue;
            }
            None => {
                without(NO_SUMMARY.to_owned());
                continue;
            }
        };
        let offset = clock_of(snapshot, destination);
        // A member writes its own time, so the sum may be out of range.
        let now = snapshot.now().and_then(|now| now.checked_add(offset.unwrap_or_default()).ok());
        if now.is_some_and(|now| summary.is_stale(now)) {
            without(format!("stale since {}", summary.update_time));
            is_unknown = true;
            continue;
        }
        for origin in summary.origins.iter().filter(|origin| members.contains(&origin.cluster)) {
            match summary.histogram(origin) {
                Ok(histogram) => {
                    let skew = skew(snapshot, &origin.cluster, destination);
                    cells.push(cell(origin, destination, &histogram, options, skew));
                }
                Err(why) => {
                    without(format!("invalid samples of {}: {why}", origin.cluster));
                    is_unknown = true;
                }
            }
        }
    }
    cells.sort_by(|one, two| {
        natural(&one.origin, &two.origin).then_with(|| natural(&one.destination, &two.destination))
    });
    let verdict = if is_unknown { Verdict::NotKnown } else { Verdict::Healthy };
    LatencyMatrix {
        api_version: API_VERSION,
        kind: "LatencyMatrix",
        members,
        cells,
        without_summary,
        verdict,
        not_known,
    }
}

fn cell(
    origin: &Origin,
    destination: &str,
    histogram: &Histogram,
    options: &Options,
    clock_milliseconds: Option<i64>,
) -> LatencyCell {
    let quantiles = options.quantiles.iter().map(|quantile| Quantile {
        quantile: *quantile,
        milliseconds: histogram.quantile(*quantile),
        text: histogram.text(*quantile, options.min_count),
    });
    LatencyCell {
        origin: origin.cluster.clone(),
        destination: destination.to_owned(),
        count: origin.count,
        clamped: origin.clamped,
        first_imports: origin.first_imports,
        bounds_milliseconds: histogram.bounds.clone(),
        buckets: histogram.counts.clone(),
        quantiles: quantiles.collect(),
        clock_milliseconds,
    }
}

/// Returns the difference between the clocks of two members, in milliseconds, if it is more than 2 s.
fn skew(snapshot: &Snapshot, origin: &str, destination: &str) -> Option<i64> {
    let difference = clock_of(snapshot, destination)? - clock_of(snapshot, origin)?;
    let milliseconds = i64::try_from(difference.as_millis()).ok()?;
    (milliseconds.abs() > CLOCK_MILLISECONDS).then_some(milliseconds)
}

/// Reads the summary of a member from the JSON of its MemberAgent; `None` if it sends none.
#[must_use]
pub fn summary_of(member_agent: &serde_json::Value) -> Option<Result<Summary, String>> {
    let summary = member_agent.get("spec")?.get("latency")?;
    Some(Summary::deserialize(summary).map_err(|error| error.to_string()))
}

#[cfg(test)]
mod tests;
