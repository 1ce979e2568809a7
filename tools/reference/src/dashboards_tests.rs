//! Tests of the dashboards in the chart of the hub agent: Grafana can read them, each panel says what is normal, and
//! their queries use metrics and labels that exist. `testing/scenarios/tests/e2e/observability.rs` runs the queries.

use endpointslice::metrics::Metrics;
use fleetnet_runtime::metrics::register_process_metrics;
use prometheus::Registry;
use prometheus::core::Collector as _;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Labels that Prometheus adds to each series: `member` comes from the chart of the member agent, `cluster` from a
/// user.
const OF_TARGETS: [&str; 4] = ["cluster", "job", "member", "pod"];

/// Folder of the dashboards, from the root of the work tree.
const FOLDER: &str = "deploy/charts/fleetnet-hub-agent/files/dashboards";

/// Returns the file name and the text of each dashboard, in the order of the names.
fn files() -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(programs::root().join(FOLDER)).expect("the folder");
    let file = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        (name, std::fs::read_to_string(path).expect("a text"))
    };
    entries.map(file).collect()
}

fn dashboards() -> Vec<Value> {
    files().values().map(|text| serde_json::from_str(text).expect("JSON")).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the panels that are no rows, also those in closed rows.
fn panels(dashboard: &Value) -> impl Iterator<Item = &Value> {
    let all = list(&dashboard["panels"]).iter().flat_map(|panel| [panel].into_iter().chain(list(&panel["panels"])));
    all.filter(|panel| panel["type"] != "row")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

#[test]
fn each_dashboard_has_a_fixed_uid_and_needs_no_inputs() {
    let dashboards = dashboards();
    let uids: Vec<&str> = dashboards.iter().map(|dashboard| text(&dashboard["uid"])).collect();
    assert_eq!(uids, ["fleetnet-fleet", "fleetnet-member", "fleetnet-pair"]);
    for (dashboard, file) in dashboards.iter().zip(files().keys()) {
        assert_eq!(*file, format!("{}.json", text(&dashboard["uid"])));
        assert!(dashboard["id"].is_null() && dashboard.get("id").is_some(), "an import gives the id");
        assert!(dashboard.get("__inputs").is_none(), "provisioned dashboards ask for no inputs");
        assert!(dashboard["schemaVersion"].as_u64() >= Some(39));
        assert_eq!(dashboard["templating"]["list"][0]["type"], "datasource");
    }
}

#[test]
fn each_panel_is_of_a_type_that_grafana_has_and_says_what_is_normal() {
    let types = ["timeseries", "stat", "heatmap", "table", "state-timeline"];
    for dashboard in dashboards() {
        let mut ids = BTreeSet::new();
        let mut titles = BTreeSet::new();
        let rows = list(&dashboard["panels"]).iter().filter(|panel| panel["type"] == "row");
        for panel in rows.chain(panels(&dashboard)) {
            assert!(ids.insert(panel["id"].as_u64()), "{panel}");
        }
        for panel in panels(&dashboard) {
            let title = text(&panel["title"]);
            assert!(types.contains(&text(&panel["type"])), "{title}");
            // Without a version, Grafana treats the options of some panels as those of its first versions.
            assert_eq!(panel["pluginVersion"], "10.4.0", "{title}");
            assert!(titles.insert(title), "two panels are called {title}");
            let description = text(&panel["description"]);
            assert!(description.starts_with("Normal: ") && description.contains("\n\nOtherwise: "), "{title}");
            assert!(!list(&panel["targets"]).is_empty(), "{title}");
            for target in list(&panel["targets"]) {
                assert_eq!(target["datasource"], json!({"type": "prometheus", "uid": "${datasource}"}), "{title}");
                let one = u8::from(target["instant"] == true) + u8::from(target["range"] == true);
                assert_eq!(one, 1, "{title}");
                let is_over_time = target["range"] == true;
                assert!(!(is_over_time && text(&target["expr"]).contains("$__range]")), "{title}: not over time");
            }
        }
    }
}

#[test]
fn panels_do_not_overlap_and_stay_within_the_width() {
    for dashboard in dashboards() {
        // The panels of a closed row cover others until the row is opened.
        let closed = list(&dashboard["panels"]).iter().filter(|row| row["collapsed"] == true);
        for row in closed {
            assert!(!list(&row["panels"]).is_empty(), "{}", row["title"]);
            assert!(
                list(&row["panels"]).iter().all(|panel| panel["gridPos"]["y"].as_u64() > row["gridPos"]["y"].as_u64())
            );
        }
        let mut cells = BTreeSet::new();
        for panel in list(&dashboard["panels"]) {
            let place = |key: &str| panel["gridPos"][key].as_u64().expect("a number");
            assert!(place("x") + place("w") <= 24, "{}", panel["title"]);
            for x in place("x")..place("x") + place("w") {
                for y in place("y")..place("y") + place("h") {
                    assert!(cells.insert((x, y)), "{} covers another panel", panel["title"]);
                }
            }
        }
    }
}

/// Returns the labels of each metric of the agents. A histogram has three series.
fn metrics() -> BTreeMap<String, BTreeSet<String>> {
    let definitions = fleetnet_runtime::metrics::ALL.iter().chain(fleetnet_agent::metrics::ALL);
    let definitions = definitions.chain(hub_agent::metrics::ALL).chain(member_agent::metrics::ALL);
    let labels = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect::<BTreeSet<String>>();
    let mut metrics = BTreeMap::from([("up".to_owned(), BTreeSet::new())]);
    for it in definitions {
        if it.kind.as_str() == "histogram" {
            metrics.insert(format!("{}_count", it.name), labels(it.labels));
            metrics.insert(format!("{}_bucket", it.name), labels(&[it.labels, &["le"]].concat()));
        } else {
            metrics.insert(it.name.to_owned(), labels(it.labels));
        }
    }
    let registry = Registry::new();
    let slices = Metrics::new(&registry, &endpointslice::Config::default());
    for description in slices.expect("a new registry").desc() {
        metrics.insert(description.fq_name.clone(), description.variable_labels.iter().cloned().collect());
    }
    register_process_metrics(&registry).expect("a new registry");
    for family in registry.gather() {
        metrics.entry(family.name().to_owned()).or_default();
    }
    metrics
}

/// Returns the names in a query: metrics, functions, operators and labels, each with the character after it.
fn names(query: &str) -> Vec<(String, char)> {
    let mut names = Vec::new();
    let mut is_quoted = false;
    let mut name = String::new();
    for character in query.chars().chain([' ']) {
        if character == '"' {
            is_quoted = !is_quoted;
        }
        if !is_quoted && (character.is_ascii_alphanumeric() || character == '_' || character == '$') {
            name.push(character);
        } else if !name.is_empty() {
            names.push((std::mem::take(&mut name), character));
        }
    }
    names.retain(|(name, _)| name.starts_with(|first: char| first.is_ascii_lowercase()));
    names
}

/// Words of PromQL and Grafana in the queries.
const WORDS: &[&str] = &[
    "and",
    "bool",
    "by",
    "changes",
    "count",
    "histogram_quantile",
    "increase",
    "label_values",
    "max",
    "min",
    "or",
    "rate",
    "sum",
    "time",
    "vector",
    "h",
    "m",
    "s",
];

#[test]
fn queries_use_metrics_and_labels_that_the_agents_export() {
    let metrics = metrics();
    for dashboard in dashboards() {
        let targets = panels(&dashboard).flat_map(|panel| list(&panel["targets"]));
        let of_panels = targets.map(|target| (text(&target["expr"]), text(&target["legendFormat"])));
        let variables = list(&dashboard["templating"]["list"]).iter();
        let of_variables = variables.filter_map(|it| Some((it["definition"].as_str()?, "")));
        let annotations = list(&dashboard["annotations"]["list"]).iter();
        // Prometheus itself has the series of alerts.
        let of_annotations =
            annotations.map(|it| (text(&it["expr"]), "")).filter(|(query, _)| !query.starts_with("ALERTS"));
        for (query, legend) in of_panels.chain(of_variables).chain(of_annotations) {
            let names = names(query);
            let names = names.iter().map(|(name, _)| name.as_str()).filter(|name| !WORDS.contains(name));
            let (used, labels): (BTreeSet<&str>, BTreeSet<&str>) = names.partition(|name| metrics.contains_key(*name));
            assert!(!used.is_empty(), "{query} uses no metric that exists");
            let known = used.iter().flat_map(|name| metrics[*name].iter().map(String::as_str)).chain(OF_TARGETS);
            let known: BTreeSet<&str> = known.collect();
            let unknown: Vec<&&str> = labels.difference(&known).collect();
            assert!(unknown.is_empty(), "{query}: its metrics have no {unknown:?}");
            for label in legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next()) {
                assert!(labels.contains(label), "the legend {legend} of {query}");
            }
        }
    }
}

#[test]
fn each_selector_of_a_panel_has_the_job_as_a_variable() {
    for dashboard in dashboards() {
        let queries = panels(&dashboard).flat_map(|panel| list(&panel["targets"])).map(|target| text(&target["expr"]));
        let annotations = list(&dashboard["annotations"]["list"]).iter().map(|it| text(&it["expr"]));
        for query in queries.chain(annotations.filter(|query| !query.starts_with("ALERTS"))) {
            let metrics = metrics();
            for (name, after) in names(query).iter().filter(|(name, _)| metrics.contains_key(name)) {
                assert_eq!(*after, '{', "{name} has no selector in {query}");
            }
            for selector in query.split('{').skip(1) {
                assert!(selector.starts_with("job=~\"$"), "{query}");
            }
        }
        let variables = list(&dashboard["templating"]["list"]);
        let names: Vec<&str> = variables.iter().take(4).map(|it| text(&it["name"])).collect();
        assert_eq!(names, ["datasource", "cluster", "hub_job", "member_job"]);
        // Most Prometheus servers are for one cluster, and have no label `cluster`.
        assert_eq!(variables[1]["allValue"], ".*");
        // A pattern for all jobs would count the targets of others.
        assert!(variables[2..4].iter().all(|it| it["includeAll"] == true && it.get("allValue").is_none()));
    }
}

#[test]
fn each_alert_in_a_description_exists() {
    let known: BTreeSet<&str> = crate::alerts::table().map(|alert| alert.name.as_str()).collect();
    let mut found = 0;
    for (name, file) in files() {
        for alert in file.split("Alert [Fleetnet").skip(1) {
            let alert = format!("Fleetnet{}", alert.split(']').next().expect("a name"));
            let link = format!("\"url\": \"${{runbook}}/{alert}.md\"");
            assert!(file.contains(&link), "{name}: no panel links to {alert}");
            assert!(known.contains(&*alert), "{name}: there is no alert {alert}");
            found += 1;
        }
    }
    assert!(found > 20, "descriptions name alerts, for example {found}");
}
