//! Recording rules and alerts about the latency of changes.
//!
//! The target: within 750 ms, 99 % of the changes of exported slices are imported. First imports do not count, because
//! they wait for users. The target is below 1,000 ms on purpose: a sample from clocks in the wrong order is exactly
//! 1,000 ms, and must not look like a good one.

use super::Expressions::Member;
use super::{Agent, Alert, Recording, Severity};
use diagnosis::codes::Code;

const HISTOGRAM: &str = "fleet_networking_endpointslice_export_import_duration_milliseconds";
/// Windows of the burn rates.
const WINDOWS: [&str; 7] = ["5m", "30m", "1h", "2h", "6h", "1d", "3d"];
/// Quantiles for dashboards.
const QUANTILES: [(&str, &str); 3] = [("p50", "0.5"), ("p90", "0.9"), ("p99", "0.99")];

/// Returns the recording rules. The member agent exports the histogram.
pub(super) fn recordings() -> Vec<Recording> {
    let job = format!("job=\"{}\",is_first_import=\"false\"", Agent::Member.job());
    let by = "sum by (cluster, destination_cluster_id)";
    let mut recordings = vec![Recording {
        name: "destination:fleetnet_changes:rate5m".to_owned(),
        expression: format!("{by} (rate({HISTOGRAM}_count{{{job}}}[5m]))"),
    }];
    for window in WINDOWS {
        recordings.push(Recording {
            name: format!("destination:fleetnet_changes_slow:ratio_rate{window}"),
            // Prometheus 3 writes the bound as 750.0.
            expression: format!(
                "1 - {by} (rate({HISTOGRAM}_bucket{{{job},le=~\"750|750.0\"}}[{window}])) \
                 / {by} (rate({HISTOGRAM}_count{{{job}}}[{window}]))"
            ),
        });
    }
    for (name, quantile) in QUANTILES {
        recordings.push(Recording {
            name: format!("origin_destination:fleetnet_change_milliseconds:{name}_5m"),
            expression: format!(
                "histogram_quantile({quantile}, sum by (cluster, origin_cluster_id, destination_cluster_id, le) \
                 (rate({HISTOGRAM}_bucket{{{job}}}[5m])))"
            ),
        });
    }
    recordings
}

/// Returns the alert of one pair of windows. More than 50 changes in the long window are required, so that a few slow
/// changes of a quiet fleet are no alert.
macro_rules! burn {
    ($long:literal, $short:literal, $factor:literal, $after:literal, $severity:expr) => {
        Alert {
            name: "FleetnetChangeBudgetBurn",
            window: $long,
            expressions: Member(concat!(
                "destination:fleetnet_changes_slow:ratio_rate", $long, " > ", $factor, " * 0.01 \
                 and destination:fleetnet_changes_slow:ratio_rate", $short, " > ", $factor, " * 0.01 \
                 and sum by (cluster, destination_cluster_id) \
                 (increase(fleet_networking_endpointslice_export_import_duration_milliseconds_count\
                 {JOB,is_first_import=\"false\"}[", $long, "])) > 50"
            )),
            after: $after,
            keep: "",
            severity: $severity,
            summary: "Changes of endpoints arrive late.",
            description: concat!(
                "{{ $value | humanizePercentage }} of the changes that {{ $labels.destination_cluster_id }} imported in the last ",
                $long, " took longer than 750 ms. The target is 1 %."
            ),
            codes: &[Code::FN705, Code::FN706],
            confirm: &["fleetnet latency --hub-context HUB"],
            meaning: "The target is that 99 % of all changes are imported within 750 ms. The label window names the time in which too many changes \
                      were slow. If it goes on, in 30 days more than the allowed 1 % will be slow: with window 1h after 2 days, 6h after 5 days, 1d \
                      after 10 days.",
            steps: STEPS,
        }
    };
}

const STEPS: &[&str] = &[
    "See whether one pair of clusters is slow or all of them: `fleetnet latency`, \
     or the dashboard of pairs.",
    "One origin: look at the exporter's API server. One destination: at the importer's. All: at the hub.",
    "`fleetnet_write_duration_seconds` by side shows the API server that answers slowly. `fleetnet_queue_depth` shows an agent that does not \
     keep up.",
    "If FleetnetClockSkew fires as well, the latencies are wrong: correct the clock first.",
];

pub(super) const ALERTS: &[Alert] = &[
    burn!("1h", "5m", "14.4", "2m", Severity::Critical),
    burn!("6h", "30m", "6", "15m", Severity::Critical),
    burn!("1d", "2h", "3", "1h", Severity::Warning),
    burn!("3d", "6h", "1", "3h", Severity::Warning),
];
