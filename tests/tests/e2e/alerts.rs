//! Tests of the alerts and recording rules in `deploy/observability`, with Prometheus' own tool.

use anyhow::{Context as _, ensure};
use harness::prometheus::promtool;
use harness::run;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

const RULES: [&str; 3] = [
    "deploy/observability/rules.yaml",
    "deploy/charts/fleetnet-hub-agent/files/rules.yaml",
    "deploy/charts/fleetnet-member-agent/files/rules.yaml",
];
const TESTS: &str = "deploy/observability/rules_test.yaml";

fn document(name: &str) -> anyhow::Result<Value> {
    let text = fs::read_to_string(programs::root().join(name)).with_context(|| name.to_owned())?;
    serde_saphyr::from_str(&text).with_context(|| name.to_owned())
}

/// Returns the values of a list in a document. An absent list is empty.
fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

/// Returns the name of an alert, with its window if it has one.
fn named(alert: &str, window: Option<&str>) -> String {
    window.map_or_else(|| alert.to_owned(), |window| format!("{alert} {window}"))
}

#[test]
fn prometheus_accepts_all_rules() -> anyhow::Result<()> {
    run(promtool(&[&["check", "rules", "--lint=all", "--lint-fatal"], &RULES[..]].concat()))
}

#[test]
fn each_alert_fires_and_ends_as_its_tests_say() -> anyhow::Result<()> {
    run(promtool(&["test", "rules", TESTS]))
}

#[test]
fn each_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() -> anyhow::Result<()> {
    let (rules, tests) = (document(RULES[0])?, document(TESTS)?);
    let mut alerts = BTreeSet::new();
    let mut recordings = BTreeSet::new();
    for rule in list(&rules, "groups").flat_map(|group| list(group, "rules")) {
        match (rule["alert"].as_str(), rule["record"].as_str()) {
            (Some(alert), _) => alerts.insert(named(alert, rule["labels"]["window"].as_str())),
            (None, recorded) => recordings.insert(recorded.context("a rule has a name")?.to_owned()),
        };
    }
    ensure!(alerts.len() >= 20 && recordings.len() >= 8, "{} alerts, {} recordings", alerts.len(), recordings.len());
    let (mut firing, mut quiet) = (BTreeSet::new(), BTreeSet::new());
    let mut expressions = String::new();
    for test in list(&tests, "tests").flat_map(|test| list(test, "promql_expr_test")) {
        let expression = test["expr"].as_str().context("a test has an expression")?;
        expressions += expression;
        let label = |name: &str| expression.split(&format!("{name}=\"")).nth(1)?.split('"').next();
        let Some(alert) = label("alertname").map(|alert| named(alert, label("window"))) else { continue };
        let fires = list(test, "exp_samples").next().is_some();
        if fires {
            firing.insert(alert)
        } else {
            quiet.insert(alert)
        };
    }
    ensure!(firing == alerts, "alerts without a test that fires: {:?}", alerts.symmetric_difference(&firing));
    ensure!(quiet == alerts, "alerts without a test that does not fire: {:?}", alerts.symmetric_difference(&quiet));
    for recorded in
        recordings.iter().filter(|name| ["changes:", "p50", "p90", "p99", "1h"].iter().any(|it| name.contains(it)))
    {
        ensure!(expressions.contains(recorded.as_str()), "no test reads {recorded}");
    }
    Ok(())
}
