//! Alerts and recording rules for Prometheus, read from `tools/reference/alerts.yaml`: the one table from which
//! `deploy/observability/rules.yaml`, the rules of the charts and the pages of `docs/runbook/` come. `rules.rs` writes
//! the rules as YAML.

mod rules;

use diagnosis::codes::Code;
use serde::{Deserialize, Deserializer};
use std::sync::LazyLock;

pub(crate) use rules::run;

static TABLE: LazyLock<Table> =
    LazyLock::new(|| serde_saphyr::from_str(include_str!("../alerts.yaml")).expect("alerts.yaml has alerts"));

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    recordings: Vec<Recording>,
    alerts: Vec<Alert>,
}

/// Agent whose metrics an alert reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agent {
    Hub,
    Member,
}

impl Agent {
    pub(crate) const ALL: [Self; 2] = [Self::Hub, Self::Member];

    /// Returns the name of the program, which is also the label `job` of its metrics.
    pub(crate) const fn job(self) -> &'static str {
        match self {
            Self::Hub => "hub-agent",
            Self::Member => "member-agent",
        }
    }

    /// Returns the agent in words.
    const fn title(self) -> &'static str {
        match self {
            Self::Hub => "hub agent",
            Self::Member => "member agent",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Somebody must act now.
    Critical,
    /// Somebody must act on the same day.
    Warning,
    /// Somebody should know.
    Info,
}

impl Severity {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// Row of the table.
///
/// In an expression, `JOB` stands for the selector of the agent's job, such as `job="hub-agent"`. Each expression
/// aggregates by `cluster` and `member`. With one Prometheus for several clusters, these labels tell the clusters
/// apart. Series without one of the labels have the same empty value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Alert {
    pub(crate) name: String,
    /// Value of the label `window`, which tells alerts of one name apart. Empty for an alert whose name is unique.
    #[serde(default)]
    pub(crate) window: String,
    /// Expression for both agents, in place of `hub` and `member`.
    each: Option<String>,
    hub: Option<String>,
    member: Option<String>,
    /// Time for which the expression must be true before the alert fires.
    pub(crate) after: String,
    /// Time for which the alert still fires when the expression is no longer true. Empty for none.
    #[serde(default)]
    pub(crate) keep: String,
    pub(crate) severity: Severity,
    /// One sentence without templates. `AGENT` stands for the agent in words.
    pub(crate) summary: String,
    /// Sentences with Prometheus' templates for labels and value. `AGENT` stands for the agent in words.
    pub(crate) description: String,
    /// Fault codes that usually cause the alert.
    #[serde(deserialize_with = "known_codes")]
    pub(crate) codes: Vec<Code>,
    /// Commands that confirm the alert, for the runbook. `CLUSTER`, `HUB`, `MEMBER`, `AGENT` and other words in
    /// capitals stand for values that the runbook explains.
    #[serde(default)]
    pub(crate) confirm: Vec<String>,
    /// Consequences for users, for the runbook.
    #[serde(default)]
    pub(crate) meaning: String,
    /// Steps to take, in order, for the runbook.
    #[serde(default)]
    pub(crate) steps: Vec<String>,
}

fn known_codes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Code>, D::Error> {
    let ids: Vec<String> = Deserialize::deserialize(deserializer)?;
    ids.iter()
        .map(|id| Code::named(id).ok_or_else(|| serde::de::Error::custom(format!("{id} is no fault code"))))
        .collect()
}

impl Alert {
    /// Returns the expression for this agent.
    pub(crate) fn expression(&self, agent: Agent) -> Option<String> {
        let own = match agent {
            Agent::Hub => &self.hub,
            Agent::Member => &self.member,
        };
        let expression = own.as_ref().or(self.each.as_ref())?;
        Some(expression.replace("JOB", &format!("job=\"{}\"", agent.job())))
    }

    /// Returns the expressions, with the name of the agent's job in place of `JOB`. It is `AGENT` if the alert is one
    /// of both agents.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = String> {
        let job = match (&self.hub, &self.member) {
            (Some(_), None) => Agent::Hub.job(),
            (None, Some(_)) => Agent::Member.job(),
            _ => "AGENT",
        };
        let all = [&self.each, &self.hub, &self.member].into_iter().flatten();
        all.map(move |it| it.replace("JOB", &format!("job=\"{job}\"")))
    }

    /// Returns the summary for this agent.
    fn summary(&self, agent: Agent) -> String {
        self.summary.replace("AGENT", agent.title())
    }

    /// Returns the description for this agent. With several clusters in one Prometheus, it names the member of the
    /// agent.
    fn description(&self, agent: Agent) -> String {
        let named = match agent {
            Agent::Hub => agent.title().to_owned(),
            Agent::Member => format!("{}{{{{ with $labels.member }}}} of {{{{ . }}}}{{{{ end }}}}", agent.title()),
        };
        self.description.replace("AGENT", &named)
    }

    /// Returns the file name of the alert's page in the folder of the runbook.
    pub(crate) fn page(&self) -> String {
        format!("{}.md", self.name)
    }
}

/// Returns all alerts, in the order of the runbook.
pub(crate) fn table() -> impl Iterator<Item = &'static Alert> {
    TABLE.alerts.iter()
}

/// Returns one alert of each name. The alerts of one name have one page in the runbook, with the texts of the first.
pub(crate) fn sections() -> impl Iterator<Item = &'static Alert> {
    let mut names = std::collections::BTreeSet::new();
    table().filter(move |alert| names.insert(&alert.name))
}

/// Returns all recording rules. The member agent exports the metrics that they read.
pub(crate) fn recordings() -> &'static [Recording] {
    &TABLE.recordings
}

/// Rule that records an expression under a new name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) expression: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetnet_core::reasons::Reason;
    use fleetnet_runtime::metrics::{Definition, Kind};
    use std::collections::BTreeSet;

    #[test]
    fn each_alert_has_a_name_of_its_own_and_complete_texts() {
        let names: BTreeSet<_> = table().map(|alert| (&alert.name, &alert.window)).collect();
        assert_eq!(names.len(), table().count());
        assert!(
            sections().all(|alert| alert.window.is_empty() || table().filter(|it| it.name == alert.name).count() > 1)
        );
        for alert in table() {
            let name = &alert.name;
            assert_ne!(alert.each.is_some(), alert.hub.is_some() || alert.member.is_some(), "{name}: one form");
            assert!(name.starts_with("Fleetnet") && name.chars().all(char::is_alphanumeric), "{name}");
            let of_page = [&alert.meaning].into_iter().chain(&alert.steps).filter(|text| !text.is_empty());
            for text in [&alert.summary, &alert.description].into_iter().chain(of_page) {
                assert!(text.ends_with('.') && !text.contains("  ") && !text.contains('\n'), "{name}: {text:?}");
            }
            assert!(!alert.summary.contains("{{") && !alert.meaning.contains("{{"), "{name}");
        }
        for alert in sections() {
            let has_texts = !alert.steps.is_empty() && !alert.confirm.is_empty() && !alert.meaning.is_empty();
            assert!(has_texts, "{} has no meaning, steps or commands", alert.name);
        }
    }

    #[test]
    fn each_expression_reads_the_job_of_its_agent_and_keeps_clusters_apart() {
        for alert in table() {
            for expression in Agent::ALL.into_iter().filter_map(|agent| alert.expression(agent)) {
                assert!(!expression.contains("JOB"), "{}: {expression}", alert.name);
                let is_recorded = expression.contains("destination:");
                // Only agents of fleetnet have the metric of their version, and this alert compares those of both
                // agents.
                let is_of_fleet = alert.name == "FleetnetVersionSkew" && expression.contains("by (fleet)");
                assert!(expression.contains("job=") || is_recorded || is_of_fleet, "{}: {expression}", alert.name);
                assert!(expression.contains("cluster") || is_of_fleet, "{}: {expression}", alert.name);
            }
        }
    }

    /// Returns all metrics of the agents.
    fn definitions() -> impl Iterator<Item = &'static Definition> {
        fleetnet_runtime::metrics::ALL
            .iter()
            .chain(fleetnet_agent::metrics::ALL)
            .chain(hub_agent::metrics::ALL)
            .chain(member_agent::metrics::ALL)
    }

    /// Returns all expressions of alerts and recording rules.
    fn expressions() -> impl Iterator<Item = String> {
        let alerts = table().flat_map(|alert| Agent::ALL.into_iter().filter_map(|agent| alert.expression(agent)));
        alerts.chain(recordings().iter().map(|recording| recording.expression.clone()))
    }

    fn metric(word: &str) -> &str {
        ["_bucket", "_count", "_sum"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word)
    }

    #[test]
    fn selectors_use_labels_and_values_that_the_metrics_have() {
        // A misspelt label or value selects nothing, so the alert would never fire.
        let sources = [
            include_str!("../../../runtime/src/metrics.rs"),
            include_str!("../../../types/src/watch.rs"),
            include_str!("../../../api/src/resources.rs"),
            include_str!("../../../runtime/src/engine/queue.rs"),
            include_str!("../../../runtime/src/engine/outcome.rs"),
            include_str!("../../../runtime/src/engine/writes.rs"),
            include_str!("../../../member-agent/src/latency.rs"),
            include_str!("../../../member-agent/src/stream/client.rs"),
        ];
        let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        let mut checked = 0;
        for expression in expressions() {
            for (before, selector) in expression.split('{').zip(expression.split('{').skip(1)) {
                let name = before.rsplit(|it: char| !(it.is_alphanumeric() || it == '_')).next().expect("a name");
                let Some(definition) = definitions().find(|it| it.name == metric(name)) else {
                    assert!(["up", "process_start_time_seconds"].contains(&name), "{name} in {expression}");
                    continue;
                };
                let selector = selector.split('}').next().expect("the end of a selector");
                for part in selector.split(',').filter(|part| !part.starts_with("job=")) {
                    let (label, values) = part.split_once(['=', '!']).expect("a comparison");
                    let is_bound = label == "le" && matches!(definition.kind, Kind::Histogram(_));
                    assert!(definition.labels.contains(&label) || is_bound, "{name} has no label {label}");
                    for value in values.trim_start_matches(['=', '~']).trim_matches('"').split('|') {
                        let is_known = match (label, definition.kind) {
                            ("le", Kind::Histogram(bounds)) => value.parse().is_ok_and(|value| bounds.contains(&value)),
                            ("reason", _) if definition.name != "fleetnet_slice_stream_ends_total" => {
                                reasons.contains(&value)
                            }
                            ("is_first_import", _) => value == "false",
                            ("kind", _) if value == "Lease" => true,
                            _ => sources.iter().any(|source| source.contains(&format!("\"{value}\""))),
                        };
                        assert!(is_known, "{name} has no {label}={value}");
                        checked += 1;
                    }
                }
            }
        }
        assert!(checked > 40, "selectors have values, for example {checked}");
    }

    #[test]
    fn the_labels_of_a_description_and_of_a_grouping_exist() {
        for alert in table() {
            let expressions: Vec<String> = Agent::ALL.into_iter().filter_map(|agent| alert.expression(agent)).collect();
            let mut grouped = BTreeSet::new();
            for list in expressions.iter().flat_map(|it| it.split("by (").skip(1)) {
                let (list, rest) = list.split_once(')').expect("the end of a list");
                let labels: BTreeSet<&str> = list.split(", ").collect();
                let metrics: Vec<&Definition> = definitions().filter(|it| rest.contains(it.name)).collect();
                for label in &labels {
                    let of_target = ["cluster", "fleet", "member", "pod", "namespace"].contains(label);
                    let of_metric = metrics.iter().any(|it| it.labels.contains(label));
                    assert!(of_target || of_metric, "{}: no metric has the label {label}", alert.name);
                }
                grouped.extend(labels);
            }
            for label in alert.description.split("$labels.").skip(1) {
                let label = label.split(|it: char| !(it.is_alphanumeric() || it == '_')).next().expect("a label");
                let recorded = expressions.iter().any(|it| it.contains("destination:")) && label.starts_with("dest");
                assert!(grouped.contains(label) || recorded, "{}: no result has the label {label}", alert.name);
            }
        }
    }

    #[test]
    fn alerts_that_the_docs_name_exist() {
        let names: BTreeSet<&str> = table().map(|alert| alert.name.as_str()).collect();
        let mut found = 0;
        for page in [
            "docs/how-to/monitoring.md",
            "docs/runbook.md",
            "docs/how-to/install.md",
            "docs/reference/cli.md",
            "deploy/observability/rules_test.yaml",
        ] {
            let text = std::fs::read_to_string(programs::root().join(page)).expect(page);
            for word in text.split(|it: char| !it.is_ascii_alphanumeric()).filter(|it| it.starts_with("Fleetnet")) {
                // `Fleetnet` alone begins a pattern that matches all alerts.
                assert!(word == "Fleetnet" || names.contains(word), "{page}: there is no alert {word}");
                found += 1;
            }
        }
        assert!(found > 100, "pages name alerts, for example {found}");
    }

    #[test]
    fn only_metrics_that_the_agents_export_are_read() {
        let known: BTreeSet<&str> = definitions().map(|definition| definition.name).collect();
        for expression in expressions() {
            let words = expression.split(|it: char| !(it.is_alphanumeric() || it == '_' || it == ':'));
            // `fleet` alone is a label of targets.
            for word in words.filter(|word| word.starts_with("fleet") && *word != "fleet") {
                assert!(known.contains(metric(word)), "{word} in {expression}");
            }
        }
    }
}
