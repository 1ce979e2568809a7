//! Check that each metric is defined in the `metrics.rs` of the crate that exports it.

use super::source::Tree;

/// Crates that export metrics.
const CRATES: [&str; 6] =
    ["endpointslice", "endpointslice/controller", "runtime", "agent", "member-agent", "hub-agent"];

/// Texts in code that define or register a metric.
const DEFINITIONS: [&str; 6] =
    ["Definition {", "Opts::new", "HistogramOpts", "IntCounter::new", "IntGauge::new", "registry.register"];

pub(super) fn metrics_elsewhere(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for folder in CRATES {
        let (file_of_metrics, below) = (format!("{folder}/src/metrics.rs"), format!("{folder}/src/metrics/"));
        let others = tree.sources(folder).filter(|it| it.path != file_of_metrics && !it.path.starts_with(&below));
        places.extend(others.flat_map(|file| DEFINITIONS.iter().flat_map(|text| file.places(&file.code, text))));
    }
    places
}
