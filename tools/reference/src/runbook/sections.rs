//! Text of one alert and of one fault code.

use super::{CODES, links};
use crate::alerts::{self, Alert};
use diagnosis::agents::AgentNamespaces;
use diagnosis::codes::{Code, Entry, Group, Texts, table};
use std::fmt::Write as _;

/// Reason for which tests do not run the commands that confirm a fault.
const NOT_RUN: &str = "HUB, EXPORTER, IMPORTER and MEMBER stand for contexts of a fleet that has the fault";

/// Tests that run the commands of alerts, by program.
const RUN_BY: [(&str, &str); 2] = [
    ("fleetnet ", "guide::the_commands_of_the_page_work_on_a_real_fleet"),
    ("kubectl ", "alerts::the_commands_of_the_runbook_work_on_real_api_servers"),
];

/// Returns the text of an alert's page.
pub(super) fn of_alert(alert: &Alert) -> String {
    let own = alert.name.as_str();
    let mut text = format!(
        "**{}** {}\n\n## When it fires\n\n{}## Confirm it\n\n{}## What to do\n\n",
        alert.summary.replace("AGENT", "agent"),
        linked(&alert.meaning, own),
        fires_when(alert),
        commands(alert),
    );
    for (number, step) in alert.steps.iter().enumerate() {
        let _ = writeln!(text, "{}. {}", number + 1, linked(step, own));
    }
    if !alert.codes.is_empty() {
        let _ = write!(text, "\nUsual codes: {}.\n", links("", alert.codes.iter().copied()));
    }
    if own == "FleetnetHindered" {
        let _ = write!(text, "\n{}", reasons());
    }
    text + "\n"
}

/// Returns the expression of an alert, to look at its values in Prometheus.
fn fires_when(alert: &Alert) -> String {
    let after = if alert.after == "0m" { String::new() } else { format!(" for {}", alert.after) };
    let windows: Vec<&str> = alerts::table()
        .filter(|it| it.name == alert.name && !it.window.is_empty())
        .map(|it| it.window.as_str())
        .collect();
    let windows = match windows.as_slice() {
        [] => String::new(),
        [first, rest @ ..] => format!(" (window {first}; `deploy/observability/rules.yaml` has {})", rest.join(", ")),
    };
    let expressions: String = alert.expressions().map(|it| format!("```promql\n{it}\n```\n\n")).collect();
    format!("Fires when this has a value{after}{windows}:\n\n{expressions}")
}

/// Returns the commands that confirm an alert: one block for each program, because different tests run them.
fn commands(alert: &Alert) -> String {
    let blocks = RUN_BY.into_iter().filter_map(|(program, test)| {
        let lines: Vec<&str> = alert.confirm.iter().map(String::as_str).filter(|it| it.starts_with(program)).collect();
        (!lines.is_empty()).then(|| format!("```sh run={test}\n{}\n```\n\n", lines.join("\n")))
    });
    blocks.collect()
}

/// Returns the text with links for names of alerts, fault codes and pages, but not for `own` and not within backquotes.
pub(super) fn linked(text: &str, own: &str) -> String {
    let parts = text
        .split('`')
        .enumerate()
        .map(|(number, part)| if number % 2 == 1 { part.to_owned() } else { pages(&sections_linked(part, own)) });
    parts.collect::<Vec<_>>().join("`")
}

fn sections_linked(text: &str, own: &str) -> String {
    let words = text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric()).map(|piece| {
        let word = piece.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let of_alert = alerts::sections().find(|alert| alert.name == word).map(Alert::page);
        let is_code = Code::ALL.iter().any(|code| code.id() == word);
        let target = of_alert.or_else(|| is_code.then(|| format!("{CODES}#{}", word.to_lowercase())));
        match target.filter(|_| word != own) {
            Some(target) => format!("[{word}]({target}){}", &piece[word.len()..]),
            None => piece.to_owned(),
        }
    });
    words.collect()
}

/// Returns the text with links for pages of `docs/`.
fn pages(text: &str) -> String {
    let mut parts = text.split("docs/");
    let mut linked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(".md") {
            Some((name, after)) if name.chars().all(|it| it.is_ascii_lowercase() || it == '-' || it == '/') => {
                let file = name.rsplit('/').next().unwrap_or(name);
                let _ = write!(linked, "[{file}.md](../{name}.md){after}");
            }
            _ => linked.extend(["docs/", part]),
        }
    }
    linked
}

/// Returns the table of the reasons with their codes.
fn reasons() -> String {
    let mut rows: Vec<(&str, Vec<Code>)> = Vec::new();
    for entry in table() {
        for reason in entry.reasons {
            match rows.iter_mut().find(|(name, _)| *name == reason.as_str()) {
                Some((_, codes)) => codes.push(entry.code),
                None => rows.push((reason.as_str(), vec![entry.code])),
            }
        }
    }
    rows.sort_unstable();
    let lines: String =
        rows.into_iter().map(|(name, codes)| format!("| `{name}` | {} |\n", links("", codes))).collect();
    format!("| reason | codes |\n|---|---|\n{lines}")
}

/// Returns the sections of the codes of a group.
pub(super) fn of_group(group: Group) -> String {
    let sections: String = group.entries().iter().map(of_code).collect();
    format!("## {}\n\n{sections}", group.title())
}

pub(super) fn of_code(entry: &Entry) -> String {
    let Entry { code, title, remedy, reasons, .. } = entry;
    // The namespaces of the manifests and of the guides.
    let Texts { meaning, evidence, confirm } = entry.texts(&AgentNamespaces::default());
    let (meaning, remedy) = (linked(&meaning, code.id()), linked(remedy, code.id()));
    let mut text = format!("### {code}\n\n**{title}.** {meaning}\n\n");
    if entry.is_notice() {
        text += "This is a notice: it is never the only cause of missing endpoints.\n\n";
    }
    let _ = write!(
        text,
        "Evidence: {evidence}. Confirm it with:\n\n```sh not-run=\"{NOT_RUN}\"\n{confirm}\n```\n\nRemedy: {remedy}\n\n"
    );
    let mut also: Vec<String> = Vec::new();
    if !reasons.is_empty() {
        let reasons: Vec<String> = reasons.iter().map(|reason| format!("`{}`", reason.as_str())).collect();
        also.push(format!("Reasons in conditions and Events: {}.", reasons.join(", ")));
    }
    let alerts = alerts::sections().filter(|alert| alert.codes.contains(code));
    let alerts: Vec<String> = alerts.map(|alert| format!("[{}]({})", alert.name, alert.page())).collect();
    if !alerts.is_empty() {
        also.push(format!("Alerts: {}.", alerts.join(", ")));
    }
    if !also.is_empty() {
        let _ = write!(text, "{}\n\n", also.join(" "));
    }
    text
}
