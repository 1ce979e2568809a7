//! Dashboards in the chart of the hub agent, with the queries that Grafana sends for them.

use anyhow::Context as _;
use harness::prometheus::Prometheus;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

const FOLDER: &str = "deploy/charts/fleetnet-hub-agent/files/dashboards";
/// Values of Grafana's variables for ranges. Every series has several samples in this time.
const RANGES: [(&str, &str); 2] = [("$__rate_interval", "1m"), ("$__range", "1m")];

pub(super) struct Dashboard {
    pub(super) uid: String,
    pub(super) panels: Vec<Panel>,
}

/// Panel, or a variable with its query.
pub(super) struct Panel {
    pub(super) title: String,
    /// Queries without variables.
    queries: Vec<String>,
    /// Labels that the panel shows: in legends, columns and rows.
    labels: BTreeSet<String>,
}

/// Reads all dashboards.
pub(super) fn all() -> anyhow::Result<Vec<Dashboard>> {
    let mut dashboards = Vec::new();
    for entry in fs::read_dir(programs::root().join(FOLDER))? {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        let json: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        dashboards.push(Dashboard::new(&json).with_context(|| path.display().to_string())?);
    }
    Ok(dashboards)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> anyhow::Result<&str> {
    value.as_str().with_context(|| format!("{value} is a text"))
}

impl Dashboard {
    fn new(json: &Value) -> anyhow::Result<Self> {
        let variables: Vec<&Value> =
            list(&json["templating"]["list"]).filter(|variable| variable["type"] == "query").collect();
        let mut names: Vec<&str> =
            variables.iter().map(|variable| text(&variable["name"])).collect::<Result<_, _>>()?;
        // Longer names first, because `$member` is also the beginning of `$member_job`.
        names.sort_unstable_by_key(|name| std::cmp::Reverse(name.len()));
        let mut panels = Vec::new();
        for variable in &variables {
            panels.push(Panel::of_variable(variable, &names)?);
        }
        // Grafana loads the panels of a closed row when a user opens it.
        let all = list(&json["panels"]).flat_map(|panel| [panel].into_iter().chain(list(&panel["panels"])));
        for panel in all.filter(|panel| panel["type"] != "row") {
            panels.push(Panel::new(panel, &names)?);
        }
        Ok(Self { uid: text(&json["uid"])?.to_owned(), panels })
    }
}

impl Panel {
    fn new(panel: &Value, variables: &[&str]) -> anyhow::Result<Self> {
        let title = text(&panel["title"])?.to_owned();
        let (mut queries, mut labels) = (Vec::new(), BTreeSet::new());
        for target in list(&panel["targets"]) {
            queries.push(without_variables(text(&target["expr"])?, variables));
            let legend = text(&target["legendFormat"])?.split("{{").skip(1);
            labels.extend(legend.filter_map(|rest| Some(rest.split_once("}}")?.0.to_owned())));
        }
        for options in list(&panel["transformations"]).map(|it| &it["options"]) {
            labels.extend(
                ["rowField", "columnField"].iter().filter_map(|field| Some(options[field].as_str()?.to_owned())),
            );
            let columns = list(&options["include"]["names"]).filter_map(Value::as_str);
            labels.extend(columns.filter(|column| !column.starts_with("Value")).map(str::to_owned));
        }
        Ok(Self { title, queries, labels })
    }

    fn of_variable(variable: &Value, variables: &[&str]) -> anyhow::Result<Self> {
        let query = text(&variable["query"]["query"])?;
        let parts = query.strip_prefix("label_values(").and_then(|it| it.strip_suffix(')')?.rsplit_once(", "));
        let (series, label) = parts.with_context(|| format!("{query} is no label_values(series, label)"))?;
        let query = format!("group by ({label}) ({})", without_variables(series, variables));
        let title = format!("variable {}", text(&variable["name"])?);
        Ok(Self { title, queries: vec![query], labels: [label.to_owned()].into() })
    }

    /// Returns what is wrong with the panel: queries without a value, and labels that no series has.
    pub(super) async fn faults(&self, prometheus: &Prometheus) -> anyhow::Result<Vec<String>> {
        let mut faults = Vec::new();
        let mut missing: BTreeSet<&str> = self.labels.iter().map(String::as_str).collect();
        for query in &self.queries {
            let series = prometheus.query(query).await?;
            if !series.iter().any(has_value) {
                faults.push(format!("no series with a value: {query}"));
            }
            missing.retain(|label| !series.iter().any(|it| it["metric"].get(label).is_some()));
        }
        if faults.is_empty() && !missing.is_empty() {
            faults.push(format!("no series has the labels {missing:?}: {:?}", self.queries));
        }
        Ok(faults)
    }
}

fn has_value(series: &Value) -> bool {
    series["value"][1].as_str().and_then(|value| value.parse::<f64>().ok()).is_some_and(f64::is_finite)
}

/// Returns a query in which each variable has a value.
fn without_variables(query: &str, variables: &[&str]) -> String {
    let ranges = RANGES.iter().fold(query.to_owned(), |query, (name, value)| query.replace(name, value));
    variables.iter().fold(ranges, |query, name| query.replace(&format!("${name}"), ".*"))
}
