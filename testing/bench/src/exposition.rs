//! Histograms in an agent's metrics, as the difference of two scrapes.

use serde::Serialize;
use std::collections::BTreeMap;

/// Scraped metrics of an agent.
#[derive(Clone, Debug, Default)]
pub struct Exposition {
    /// Buckets of each histogram, by the name of the histogram. A bucket is an upper bound and the number of
    /// observations up to this bound. Series that differ only in labels are added up.
    histograms: BTreeMap<String, Vec<(f64, f64)>>,
}

/// Summary of a histogram in microseconds. Percentiles are interpolated within a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Number of observations in the histogram.
    pub count: f64,
    pub p50_microseconds: f64,
    pub p99_microseconds: f64,
    /// Percentage of observations in buckets whose upper bound is at most 500 µs.
    pub below_500_microseconds_percent: f64,
}

impl Exposition {
    /// Parses metrics in the Prometheus text format.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut histograms: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for line in text.lines() {
            let Some((bound, name, count)) = bucket(line) else { continue };
            let buckets = histograms.entry(name.to_owned()).or_default();
            match buckets.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, sum)) => *sum += count,
                None => buckets.push((bound, count)),
            }
        }
        for buckets in histograms.values_mut() {
            buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        }
        Self { histograms }
    }

    /// Returns a histogram's observations since an earlier scrape.
    #[must_use]
    pub fn since(&self, earlier: &Self, name: &str) -> Summary {
        let none = Vec::new();
        let (now, before) = (self.histograms.get(name).unwrap_or(&none), earlier.histograms.get(name).unwrap_or(&none));
        let before = |bound: f64| before.iter().find(|(known, _)| *known == bound).map_or(0.0, |(_, count)| *count);
        Summary::of(&now.iter().map(|(bound, count)| (*bound, count - before(*bound))).collect::<Vec<_>>())
    }
}

impl Summary {
    fn of(buckets: &[(f64, f64)]) -> Self {
        let count = buckets.last().map_or(0.0, |(_, count)| *count);
        if count == 0.0 {
            return Self::default();
        }
        let below = buckets.iter().rfind(|(bound, _)| *bound <= 5e-4).map_or(0.0, |(_, count)| *count);
        Self {
            count,
            p50_microseconds: percentile(buckets, count * 0.5),
            p99_microseconds: percentile(buckets, count * 0.99),
            below_500_microseconds_percent: (below / count * 10_000.0).round() / 100.0,
        }
    }
}

fn percentile(buckets: &[(f64, f64)], rank: f64) -> f64 {
    let mut lower = (0.0, 0.0);
    for (bound, count) in buckets {
        if *count >= rank {
            if bound.is_infinite() {
                break;
            }
            let share = (rank - lower.1) / (count - lower.1);
            return ((lower.0 + (bound - lower.0) * share) * 1e7).round() / 10.0;
        }
        lower = (*bound, *count);
    }
    (lower.0 * 1e7).round() / 10.0
}

/// Parses the line of one bucket of a histogram. Returns the bucket's upper bound, the histogram's name and the
/// bucket's count. `None` for other lines.
fn bucket(line: &str) -> Option<(f64, &str, f64)> {
    let (name, rest) = line.split_once("_bucket{")?;
    let (labels, count) = rest.rsplit_once("} ")?;
    let bound = labels.split(',').find_map(|label| label.strip_prefix("le=\"")?.strip_suffix('"'))?;
    let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
    Some((bound, name, count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::Exposition;

    #[test]
    fn observations_between_two_scrapes_are_summarised() {
        let before =
            Exposition::parse("x_bucket{le=\"0.0001\"} 5\nx_bucket{le=\"0.0005\"} 5\nx_bucket{le=\"+Inf\"} 5\n");
        let after = Exposition::parse(
            "x_bucket{kind=\"a\",le=\"0.0001\"} 60\nx_bucket{kind=\"a\",le=\"0.0005\"} 100\nx_bucket{kind=\"a\",le=\"+Inf\"} 100\n\
             x_bucket{kind=\"b\",le=\"0.0001\"} 0\nx_bucket{kind=\"b\",le=\"0.0005\"} 4\nx_bucket{kind=\"b\",le=\"+Inf\"} 5\n",
        );
        let summary = after.since(&before, "x");
        assert_eq!(summary.count, 100.0);
        assert_eq!(summary.p50_microseconds, 90.9);
        assert_eq!(summary.p99_microseconds, 500.0);
        assert_eq!(summary.below_500_microseconds_percent, 99.0);
        assert_eq!(after.since(&after, "x"), super::Summary::default());
        assert_eq!(after.since(&before, "y"), super::Summary::default());
    }
}
