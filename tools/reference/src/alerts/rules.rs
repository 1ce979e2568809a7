//! Writes the rules as files for Prometheus and as files of the charts.

use super::{Agent, Alert, recordings, table};
use anyhow::Context as _;
use std::fmt::Write as _;
use std::path::Path;

/// Files with rules, from the root of the work tree, each with the agents whose metrics its rules read.
const FILES: [(&str, &[Agent]); 3] = [
    ("deploy/observability/rules.yaml", &Agent::ALL),
    ("deploy/charts/fleetnet-hub-agent/files/rules.yaml", &[Agent::Hub]),
    ("deploy/charts/fleetnet-member-agent/files/rules.yaml", &[Agent::Member]),
];
/// First lines of each file.
const HEADER: &str = "# Generated from the code by `cargo xtask reference`. Do not edit. docs/how-to/monitoring.md describes the rules.\n\
     # Links to the runbook are paths of this repository. Before you use the file, put the address of your copy before docs/runbook/.\n";

/// Writes all files. Replaces files of the same name.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    for (name, text) in files() {
        let path = root.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Returns the files with their texts.
fn files() -> impl Iterator<Item = (&'static str, String)> {
    FILES.into_iter().map(|(name, agents)| {
        let groups: String = agents.iter().map(|agent| group(*agent)).collect();
        (name, format!("{HEADER}groups:\n{groups}"))
    })
}

/// Returns the group of one agent. Each rule is in one group only, so both charts together make no alert fire twice.
fn group(agent: Agent) -> String {
    let mut text = format!("  - name: fleetnet-{}\n    rules:\n", agent.job());
    if agent == Agent::Member {
        for recording in recordings() {
            let _ = write!(
                text,
                "      - record: {}\n        expr: |-\n          {}\n",
                recording.name, recording.expression
            );
        }
    }
    text.extend(table().filter_map(|alert| rule(alert, agent)));
    text
}

/// Returns the rule of an alert; `None` if the alert does not concern this agent.
fn rule(alert: &Alert, agent: Agent) -> Option<String> {
    let expression = alert.expression(agent)?;
    let keep = if alert.keep.is_empty() { String::new() } else { format!("        keep_firing_for: {}\n", alert.keep) };
    let window = if alert.window.is_empty() { String::new() } else { format!("          window: {}\n", alert.window) };
    let codes: Vec<&str> = alert.codes.iter().map(|code| code.id()).collect();
    let codes = if codes.is_empty() { String::new() } else { format!("          codes: {}\n", codes.join(" ")) };
    Some(format!(
        "      - alert: {}\n        expr: |-\n          {expression}\n        for: {}\n{keep}        labels:\n          severity: {}\n          agent: {}\n{window}        \
         annotations:\n          summary: {}\n          description: {}\n{codes}          runbook_url: docs/runbook/{}\n",
        alert.name,
        alert.after,
        alert.severity.as_str(),
        agent.job(),
        quoted(&alert.summary(agent)),
        quoted(&alert.description(agent)),
        alert.page(),
    ))
}

/// Returns a YAML scalar in single quotes.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_with_rules_are_current() {
        for (name, text) in files() {
            let committed = std::fs::read_to_string(programs::root().join(name)).expect("run `cargo xtask reference`");
            assert!(committed == text, "{name} is not current: run `cargo xtask reference`");
        }
    }

    #[test]
    fn the_rules_of_both_charts_together_are_all_rules() {
        let texts: Vec<String> =
            files().map(|(_, text)| text.split_once("groups:\n").expect("groups").1.to_owned()).collect();
        assert_eq!(texts[0], format!("{}{}", texts[1], texts[2]));
    }

    #[test]
    fn a_quote_within_a_text_is_doubled() {
        assert_eq!(quoted("the AGENT's log: {{ $value }}"), "'the AGENT''s log: {{ $value }}'");
    }
}
