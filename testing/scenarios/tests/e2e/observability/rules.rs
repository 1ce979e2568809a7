//! Rules of Prometheus: each alert in a healthy fleet is inactive, and each recording rule has series.

use anyhow::{Context as _, ensure};
use harness::prometheus::Prometheus;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Folders with files of rules, from the root of the work tree.
const FOLDERS: [&str; 3] =
    ["deploy/observability", "deploy/charts/fleetnet-hub-agent/files", "deploy/charts/fleetnet-member-agent/files"];

/// Returns the absolute paths of the files with rules: YAML files with the field `groups`.
///
/// # Errors
/// If there are none, or a file is no YAML.
pub(super) fn files() -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(programs::root().join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|it| it == "yaml") {
                let content: Value = serde_saphyr::from_str(&fs::read_to_string(&path)?)
                    .with_context(|| format!("{} is no YAML", path.display()))?;
                files.extend(content.get("groups").map(|_| path));
            }
        }
    }
    ensure!(!files.is_empty(), "there are no rules");
    Ok(files)
}

async fn rules(prometheus: &Prometheus) -> anyhow::Result<Vec<Value>> {
    let data = prometheus.get("rules", &[]).await?;
    let groups = data["groups"].as_array().into_iter().flatten();
    Ok(groups.flat_map(|group| group["rules"].as_array().into_iter().flatten()).cloned().collect())
}

/// Returns the last evaluation of each rule: its query with the time.
pub(super) async fn evaluations(prometheus: &Prometheus) -> anyhow::Result<BTreeSet<String>> {
    Ok(rules(prometheus).await?.iter().map(evaluation).collect())
}

fn evaluation(rule: &Value) -> String {
    format!("{} at {}", text(rule, "query"), text(rule, "lastEvaluation"))
}

/// Returns what is wrong with the rules in a healthy fleet, one line for each rule. Evaluations in `before` do not
/// count.
///
/// # Errors
/// If Prometheus does not answer, or has no rules.
pub(super) async fn faults(prometheus: &Prometheus, before: &BTreeSet<String>) -> anyhow::Result<Vec<String>> {
    let rules = rules(prometheus).await?;
    ensure!(!rules.is_empty(), "Prometheus has no rules");
    let mut faults = Vec::new();
    for rule in &rules {
        let (name, query) = (text(rule, "name"), text(rule, "query"));
        match (text(rule, "health"), text(rule, "type")) {
            ("ok", _) if before.contains(&evaluation(rule)) => faults.push(format!("{name} is not evaluated again")),
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
