//! Metric that shows which build of an agent runs.

use crate::metrics;
use prometheus::Registry;

/// Revision of the source code that this agent was built from. `None` if the build did not set `FLEETNET_REVISION`. A
/// build does not ask git, because then each commit would rebuild the agents.
const REVISION: Option<&str> = option_env!("FLEETNET_REVISION");

/// Registers the metric with the version and revision of this build.
///
/// # Errors
/// If the registry already has the metric.
pub fn register(registry: &Registry) -> Result<(), prometheus::Error> {
    show(env!("CARGO_PKG_VERSION"), revision(REVISION), registry)
}

fn show(version: &str, revision: &str, registry: &Registry) -> Result<(), prometheus::Error> {
    metrics::BUILD_INFO.gauges(registry)?.with_label_values(&[version, revision]).set(1);
    Ok(())
}

/// Returns the value of the label `revision`. An empty variable counts as unset.
fn revision(built_with: Option<&'static str>) -> &'static str {
    built_with.map(str::trim).filter(|revision| !revision.is_empty()).unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_shows_its_version_and_revision() {
        let registry = Registry::new();
        show("1.2.3", "0a1b2c3", &registry).expect("a new registry");
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).expect("text");
        assert!(text.contains("fleetnet_build_info{revision=\"0a1b2c3\",version=\"1.2.3\"} 1\n"), "{text}");
    }

    #[test]
    fn a_build_without_a_revision_shows_unknown() {
        for (built_with, expected) in
            [(None, "unknown"), (Some(""), "unknown"), (Some(" \n"), "unknown"), (Some("0a1b2c3\n"), "0a1b2c3")]
        {
            assert_eq!(revision(built_with), expected, "{built_with:?}");
        }
    }
}
