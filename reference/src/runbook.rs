//! Page `docs/runbook.md`: one section for each alert and each fault code, from their tables.

use crate::alerts::{self, Agent, Alert, Expressions};
use anyhow::Context as _;
use fleetnet_diagnosis::codes::{Code, Entry, Group, table};
use std::fmt::Write as _;
use std::path::Path;

const FILE: &str = "docs/runbook.md";
/// Line between the beginning of the page, which is written by hand, and the generated sections.
const GENERATED: &str = "<!-- The rest of this page is generated. Do not edit it. -->";
/// Reason for which tests do not run the commands that confirm a fault.
const NOT_RUN: &str =
    "<!-- not run: HUB, EXPORTER, IMPORTER and MEMBER stand for contexts of a fleet that has the fault -->";

/// Tests that run the commands of alerts, by program.
const RUN_BY: [(&str, &str); 2] = [
    ("fleetnet ", "<!-- run by guide::the_commands_of_the_page_work_on_a_real_fleet -->"),
    ("kubectl ", "<!-- run by alerts::the_commands_of_the_runbook_work_on_real_api_servers -->"),
];
/// Reason for which tests do not run a command within a sentence.
const NOT_RUN_INLINE: &str = "<!-- not run: it needs a fleet with the fault -->";

/// Writes the page.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let path = root.join(FILE);
    let present = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    std::fs::write(&path, page(&present)?).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the page with the beginning of the present page and new sections.
fn page(present: &str) -> anyhow::Result<String> {
    let (introduction, _) = present.split_once(GENERATED).with_context(|| format!("{FILE} has no line {GENERATED}"))?;
    let alerts: String = alerts::sections().map(of_alert).collect();
    let groups: String = Group::ALL.into_iter().map(of_group).collect();
    let sections = format!("## Alerts\n\n{}{alerts}## Fault codes\n\n{groups}", overview());
    Ok(format!("{introduction}{GENERATED}\n\n{}\n", marked(sections.trim_end())))
}

/// Marks each inline command of the tables, because no test runs it with these words.
fn marked(text: &str) -> String {
    let mut parts = text.split('`');
    let mut marked = parts.next().unwrap_or_default().to_owned();
    while let (Some(code), after) = (parts.next(), parts.next().unwrap_or_default()) {
        let is_command =
            ["fleetnet ", "kubectl "].iter().any(|program| code.starts_with(program)) && !code.contains('\n');
        let mark = if is_command && !after.starts_with("<!--") { NOT_RUN_INLINE } else { "" };
        let _ = write!(marked, "`{code}`{mark}{after}");
    }
    marked
}

/// Returns the table of all alerts.
fn overview() -> String {
    let mut text = "| alert | severity | agent | usual codes |\n|---|---|---|---|\n".to_owned();
    for alert in alerts::sections() {
        let agents = Agent::ALL.into_iter().filter(|agent| alert.expressions.of(*agent).is_some());
        let agents: Vec<&str> = agents.map(Agent::job).collect();
        let name = alert.name;
        let severity = severities(name);
        let _ = writeln!(
            text,
            "| [{name}](#{}) | {severity} | {} | {} |",
            alert.anchor(),
            agents.join(", "),
            links(alert.codes.iter().copied())
        );
    }
    text + "\n"
}

/// Returns the severities of all alerts of this name.
fn severities(name: &str) -> String {
    let mut severities: Vec<&str> =
        alerts::table().filter(|it| it.name == name).map(|it| it.severity.as_str()).collect();
    severities.dedup();
    severities.join(", ")
}

fn of_alert(alert: &Alert) -> String {
    let own = alert.name;
    let mut text = format!(
        "### {own}\n\n**{}** {}\n\n{}Confirm it with:\n\n{}To do:\n\n",
        alert.summary.replace("AGENT", "agent"),
        linked(alert.meaning, own),
        fires_when(alert),
        commands(alert),
    );
    for (number, step) in alert.steps.iter().enumerate() {
        let _ = writeln!(text, "{}. {}", number + 1, linked(step, own));
    }
    if !alert.codes.is_empty() {
        let _ = write!(text, "\nUsual codes: {}.\n", links(alert.codes.iter().copied()));
    }
    if own == "FleetnetHindered" {
        let _ = write!(text, "\n{}", reasons());
    }
    text + "\n"
}

/// Returns the expression of an alert, to look at its values in Prometheus.
fn fires_when(alert: &Alert) -> String {
    let expressions = match alert.expressions {
        Expressions::Hub(it) | Expressions::Member(it) | Expressions::Each(it) => vec![it],
        Expressions::Both(hub, member) => vec![hub, member],
    };
    let job = match alert.expressions {
        Expressions::Hub(_) => Agent::Hub.job(),
        Expressions::Member(_) => Agent::Member.job(),
        Expressions::Each(_) | Expressions::Both(..) => "AGENT",
    };
    let after = if alert.after == "0m" { String::new() } else { format!(" for {}", alert.after) };
    let windows: Vec<&str> =
        alerts::table().filter(|it| it.name == alert.name && !it.window.is_empty()).map(|it| it.window).collect();
    let windows = match windows.as_slice() {
        [] => String::new(),
        [first, rest @ ..] => format!(" (window {first}; `deploy/observability/rules.yaml` has {})", rest.join(", ")),
    };
    let expressions: String = expressions
        .into_iter()
        .map(|it| format!("```promql\n{}\n```\n\n", it.replace("JOB", &format!("job=\"{job}\""))))
        .collect();
    format!("Fires when this has a value{after}{windows}:\n\n{expressions}")
}

/// Returns the commands that confirm an alert: one block for each program, because different tests run them.
fn commands(alert: &Alert) -> String {
    let blocks = RUN_BY.into_iter().filter_map(|(program, marker)| {
        let lines: Vec<&str> = alert.confirm.iter().copied().filter(|it| it.starts_with(program)).collect();
        (!lines.is_empty()).then(|| format!("{marker}\n```sh\n{}\n```\n\n", lines.join("\n")))
    });
    blocks.collect()
}

/// Returns the text with links for names of alerts, fault codes and pages, but not for `own` and not within backquotes.
fn linked(text: &str, own: &str) -> String {
    let parts = text
        .split('`')
        .enumerate()
        .map(|(number, part)| if number % 2 == 1 { part.to_owned() } else { pages(&sections_linked(part, own)) });
    parts.collect::<Vec<_>>().join("`")
}

fn sections_linked(text: &str, own: &str) -> String {
    let words = text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric()).map(|piece| {
        let word = piece.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let is_section =
            alerts::sections().any(|alert| alert.name == word) || Code::ALL.iter().any(|code| code.id() == word);
        if is_section && word != own {
            format!("[{word}](#{}){}", word.to_lowercase(), &piece[word.len()..])
        } else {
            piece.to_owned()
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
            Some((name, after)) if name.chars().all(|it| it.is_ascii_lowercase() || it == '-') => {
                let _ = write!(linked, "[{name}.md]({name}.md){after}");
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
    let lines: String = rows.into_iter().map(|(name, codes)| format!("| `{name}` | {} |\n", links(codes))).collect();
    format!("| reason | codes |\n|---|---|\n{lines}")
}

fn links(codes: impl IntoIterator<Item = Code>) -> String {
    let links = codes.into_iter().map(|code| format!("[{code}](#{})", code.id().to_lowercase()));
    let links: Vec<String> = links.collect();
    if links.is_empty() { "–".to_owned() } else { links.join(", ") }
}

fn of_group(group: Group) -> String {
    let sections: String = group.entries().iter().map(of_code).collect();
    format!("### {}\n\n{sections}", group.title())
}

fn of_code(entry: &Entry) -> String {
    let Entry { code, title, meaning, evidence, confirm, remedy, reasons, is_notice } = entry;
    let (meaning, remedy) = (linked(meaning, code.id()), linked(remedy, code.id()));
    let mut text = format!("#### {code}\n\n**{title}.** {meaning}\n\n");
    if *is_notice {
        text += "This is a notice: it is never the only cause of missing endpoints.\n\n";
    }
    let _ = write!(
        text,
        "Evidence: {evidence}. Confirm it with:\n\n{NOT_RUN}\n```sh\n{confirm}\n```\n\nRemedy: {remedy}\n\n"
    );
    let mut also: Vec<String> = Vec::new();
    if !reasons.is_empty() {
        let reasons: Vec<String> = reasons.iter().map(|reason| format!("`{}`", reason.as_str())).collect();
        also.push(format!("Reasons in conditions and Events: {}.", reasons.join(", ")));
    }
    let alerts = alerts::sections().filter(|alert| alert.codes.contains(code));
    let alerts: Vec<String> = alerts.map(|alert| format!("[{}](#{})", alert.name, alert.anchor())).collect();
    if !alerts.is_empty() {
        also.push(format!("Alerts: {}.", alerts.join(", ")));
    }
    if !also.is_empty() {
        let _ = write!(text, "{}\n\n", also.join(" "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_runbook_is_current() {
        let committed = std::fs::read_to_string(programs::root().join(FILE)).expect("run `cargo xtask reference`");
        assert!(
            committed == page(&committed).expect("the line of the generator"),
            "{FILE} is not current: run `cargo xtask reference`"
        );
    }

    #[test]
    fn what_is_written_by_hand_stays_and_the_rest_is_replaced() {
        let page = page(&format!("# Mine\n\n{GENERATED}\n\nold\n")).expect("a page");
        assert!(page.starts_with(&format!("# Mine\n\n{GENERATED}\n\n## Alerts\n")) && !page.contains("old\n"));
        assert!(super::page("# Mine\n").is_err(), "a page without the line is never overwritten");
    }

    #[test]
    fn only_commands_without_a_mark_are_marked() {
        let marked = marked(
            "Set `x`. Run `fleetnet leave <member>`. Run `fleetnet status`<!-- run by a test -->.\n```sh\nkubectl get x\n```\n",
        );
        assert_eq!(
            marked,
            format!(
                "Set `x`. Run `fleetnet leave <member>`{NOT_RUN_INLINE}. Run `fleetnet status`<!-- run by a test -->.\n```sh\nkubectl get x\n```\n"
            )
        );
    }

    #[test]
    fn alerts_codes_and_pages_in_a_text_become_links() {
        for (text, expected) in [
            ("See FN107, or FleetnetNoLeader.", "See [FN107](#fn107), or [FleetnetNoLeader](#fleetnetnoleader)."),
            ("FleetnetHubTokenExpiresSoon", "[FleetnetHubTokenExpiresSoon](#fleetnethubtokenexpiressoon)"),
            ("`FN107` in FN101 and FN999", "`FN107` in FN101 and FN999"),
            ("(docs/install.md), docs/Other", "([install.md](install.md)), docs/Other"),
        ] {
            assert_eq!(linked(text, "FN101"), expected);
        }
    }

    #[test]
    fn each_section_of_an_alert_says_when_it_fires_how_to_confirm_it_and_what_to_do() {
        for alert in alerts::table() {
            let section = of_alert(alert);
            for part in ["Fires when", "```promql\n", "Confirm it with:\n\n<!-- run by ", "To do:\n\n1. "] {
                assert!(section.contains(part), "{} has no {part:?}", alert.name);
            }
            assert!(!section.contains("JOB"), "{section}");
            for command in alert.confirm {
                assert!(section.contains(command), "{}: {command} is of no known program", alert.name);
            }
        }
        for code in table() {
            let section = of_code(code);
            for text in [code.evidence, code.confirm, code.title] {
                assert!(!text.is_empty() && section.contains(text), "{}", code.code);
            }
            assert!(!code.meaning.is_empty() && !code.remedy.is_empty(), "{}", code.code);
        }
    }

    /// Returns the anchor that GitHub makes of a heading: lower case, without punctuation, with hyphens in place of spaces.
    fn anchor(heading: &str) -> String {
        let kept = heading.to_lowercase();
        kept.chars()
            .filter(|it| it.is_alphanumeric() || " -_".contains(*it))
            .map(|it| if it == ' ' { '-' } else { it })
            .collect()
    }

    #[test]
    fn each_link_within_the_page_leads_to_a_heading_and_each_alert_and_code_has_one() {
        let present = std::fs::read_to_string(programs::root().join(FILE)).expect("the page");
        let page = page(&present).expect("the line of the generator");
        let headings: Vec<String> = page
            .lines()
            .filter(|line| line.starts_with('#'))
            .map(|line| anchor(line.trim_start_matches('#').trim()))
            .collect();
        let anchors: BTreeSet<&String> = headings.iter().collect();
        assert_eq!(anchors.len(), headings.len(), "two headings have one anchor");
        for alert in alerts::table() {
            assert!(anchors.contains(&alert.anchor()), "{} has no section", alert.name);
        }
        for code in Code::ALL {
            assert!(anchors.contains(&code.id().to_lowercase()), "{code} has no section");
        }
        for link in page.split("](#").skip(1) {
            let link = link.split_once(')').expect("the end of a link").0.to_owned();
            assert!(anchors.contains(&link), "{link} leads nowhere");
        }
    }
}
