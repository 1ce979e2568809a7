//! Rules of Prometheus: each alert in a healthy fleet is inactive, and each recording rule has series.

use anyhow::Context as _;
use harness::prometheus::Prometheus;
use serde_json::Value;
use std::path::PathBuf;

/// Files with rules, from the root of the work tree.
const FILES: [&str; 2] =
    ["deploy/charts/fleetnet-hub-agent/files/rules.yaml", "deploy/charts/fleetnet-member-agent/files/rules.yaml"];

/// Returns the absolute paths of the files with rules.
pub(super) fn files() -> Vec<PathBuf> {
    FILES.iter().map(|file| programs::root().join(file)).collect()
}

/// Returns what is wrong with the rules in a healthy fleet, one line for each rule.
///
/// # Errors
/// If Prometheus does not answer, or has no rules.
pub(super) async fn faults(prometheus: &Prometheus) -> anyhow::Result<Vec<String>> {
    let data = prometheus.get("rules", &[]).await?;
    let groups = data["groups"].as_array().filter(|groups| !groups.is_empty()).context("there are rules")?;
    let mut faults = Vec::new();
    for rule in groups.iter().flat_map(|group| group["rules"].as_array().into_iter().flatten()) {
        let (name, query) = (text(rule, "name"), text(rule, "query"));
        match (text(rule, "health"), text(rule, "type")) {
            ("ok", "alerting") if text(rule, "state") != "inactive" => {
                faults.push(format!("{name} is {} in a healthy fleet: {}", text(rule, "state"), rule["alerts"]));
            }
            ("ok", "recording") if prometheus.query(name).await?.is_empty() => {
                faults.push(format!("{name} has no series: {query}"));
            }
            ("ok", _) => {}
            (health, _) => faults.push(format!("{name} is not evaluated ({health}): {query} {}", rule["lastError"])),
        }
    }
    Ok(faults)
}

fn text<'json>(rule: &'json Value, field: &str) -> &'json str {
    rule[field].as_str().unwrap_or_default()
}
