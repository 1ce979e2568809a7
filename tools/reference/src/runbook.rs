//! The runbook: `docs/runbook.md` with its tables, one page of `docs/runbook/` for each alert, and
//! `docs/runbook/codes.md` for the fault codes. Their texts come from the tables of alerts and codes.
//!
//! `sections.rs` writes the text of one alert and of one code.

mod links;
mod sections;
#[cfg(test)]
mod tests;

use links::{CODES, links};

use crate::alerts::{self, Agent};
use anyhow::Context as _;
use diagnosis::codes::Group;
use sections::{of_alert, of_group};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Page with the tables.
const INDEX: &str = "docs/runbook.md";
/// Folder of all other pages.
const FOLDER: &str = "docs/runbook";
/// Line between the beginning of the index, which is written by hand, and the generated tables.
const GENERATED: &str = "<!-- The rest of this page is generated. Do not edit it. -->";
/// Line below the title of each page of [`FOLDER`].
const ORIGIN: &str = "Generated from the code by `cargo xtask reference`. Do not edit. \
     [All alerts and codes](../runbook.md), with the first steps and the words in capitals.";

/// Writes all pages. Removes pages of alerts that no longer exist.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let path = root.join(INDEX);
    let present = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    std::fs::write(&path, index(&present)?).with_context(|| format!("cannot write {}", path.display()))?;
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let pages = pages();
    for entry in std::fs::read_dir(&folder)? {
        let entry = entry?;
        if !entry.file_name().to_str().is_some_and(|name| pages.contains_key(name)) {
            std::fs::remove_file(entry.path()).with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
    }
    for (name, text) in pages {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Returns the index with the beginning of the present one and new tables.
fn index(present: &str) -> anyhow::Result<String> {
    let (introduction, _) =
        present.split_once(GENERATED).with_context(|| format!("{INDEX} has no line {GENERATED}"))?;
    let codes: String = Group::ALL.into_iter().map(codes).collect();
    let tables = format!("## Alerts\n\n{}## Fault codes\n\n{codes}", overview());
    Ok(format!("{introduction}{GENERATED}\n\n{}\n", tables.trim_end()))
}

/// Returns the pages of [`FOLDER`] by file name.
fn pages() -> BTreeMap<String, String> {
    let page = |title: &str, body: &str| format!("# {title}\n\n{ORIGIN}\n\n{}\n", body.trim_end());
    let groups: String = Group::ALL.into_iter().map(of_group).collect();
    let of_alerts = alerts::sections().map(|alert| (alert.page(), page(&alert.name, &of_alert(alert))));
    of_alerts.chain([(CODES.to_owned(), page("Fault codes", &groups))]).collect()
}

/// Returns the table of all alerts.
fn overview() -> String {
    let mut text = "| alert | severity | agent | usual codes |\n|---|---|---|---|\n".to_owned();
    for alert in alerts::sections() {
        let agents = Agent::ALL.into_iter().filter(|agent| alert.expression(*agent).is_some());
        let agents: Vec<&str> = agents.map(Agent::job).collect();
        let name = &alert.name;
        let _ = writeln!(
            text,
            "| [{name}](runbook/{}) | {} | {} | {} |",
            alert.page(),
            severities(name),
            agents.join(", "),
            links("runbook/", alert.codes.iter().copied())
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

/// Returns the table of the codes of a group.
fn codes(group: Group) -> String {
    let row = |entry: &diagnosis::codes::Entry| format!("| {} | {} |\n", links("runbook/", [entry.code]), entry.title);
    let rows: String = group.entries().iter().map(row).collect();
    format!("### {}\n\n| code | fault |\n|---|---|\n{rows}\n", group.title())
}
