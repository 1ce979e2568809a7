//! Tests of the runbook: its pages are current, each alert and each code has its section, and each link leads to one.

use super::sections::{linked, of_alert, of_code};
use super::{CODES, FOLDER, GENERATED, INDEX, index, pages};
use crate::alerts;
use diagnosis::agents::AgentNamespaces;
use diagnosis::codes::{Code, table};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the committed index.
fn committed() -> String {
    std::fs::read_to_string(programs::root().join(INDEX)).expect("run `cargo xtask reference`")
}

#[test]
fn the_runbook_is_current() {
    let present = committed();
    assert!(
        present == index(&present).expect("the line of the generator"),
        "{INDEX} is not current: run `cargo xtask reference`"
    );
    let folder = programs::root().join(FOLDER);
    let found = std::fs::read_dir(&folder).expect("run `cargo xtask reference`").map(|entry| {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).expect("a page"))
    });
    let found: BTreeMap<String, String> = found.collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), pages().keys().collect::<Vec<_>>(), "run `cargo xtask reference`");
    assert!(found == pages(), "{FOLDER} is not current: run `cargo xtask reference`");
}

#[test]
fn what_is_written_by_hand_stays_and_the_rest_is_replaced() {
    let page = index(&format!("# Mine\n\n{GENERATED}\n\nold\n")).expect("a page");
    assert!(page.starts_with(&format!("# Mine\n\n{GENERATED}\n\n## Alerts\n")) && !page.contains("old\n"));
    assert!(index("# Mine\n").is_err(), "a page without the line is never overwritten");
}

#[test]
fn alerts_codes_and_pages_in_a_text_become_links() {
    for (text, expected) in [
        ("See FN107, or FleetnetNoLeader.", "See [FN107](codes.md#fn107), or [FleetnetNoLeader](FleetnetNoLeader.md)."),
        ("FleetnetHubTokenExpiresSoon", "[FleetnetHubTokenExpiresSoon](FleetnetHubTokenExpiresSoon.md)"),
        ("`FN107` in FN101 and FN999", "`FN107` in FN101 and FN999"),
        ("(docs/how-to/install.md), docs/Other", "([install.md](../how-to/install.md)), docs/Other"),
    ] {
        assert_eq!(linked(text, "FN101"), expected);
    }
}

#[test]
fn each_page_of_an_alert_says_when_it_fires_how_to_confirm_it_and_what_to_do() {
    for alert in alerts::sections() {
        let page = of_alert(alert);
        for part in ["## When it fires\n\n", "```promql\n", "## Confirm it\n\n```sh run=", "## What to do\n\n1. "] {
            assert!(page.contains(part), "{} has no {part:?}", alert.name);
        }
        assert!(!page.contains("JOB"), "{page}");
        for command in &alert.confirm {
            assert!(page.contains(command), "{}: {command} is of no known program", alert.name);
        }
    }
    for code in table() {
        let section = of_code(code);
        let texts = code.texts(&AgentNamespaces::default());
        for text in [&*texts.evidence, &*texts.confirm, code.title] {
            assert!(!text.is_empty() && section.contains(text), "{}", code.code);
        }
        assert!(!texts.meaning.is_empty() && !code.remedy.is_empty(), "{}", code.code);
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

/// Returns the anchors of the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings: Vec<String> = page
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| anchor(line.trim_start_matches('#').trim()))
        .collect();
    let anchors: BTreeSet<String> = headings.iter().cloned().collect();
    assert_eq!(anchors.len(), headings.len(), "two headings have one anchor");
    anchors
}

#[test]
fn each_link_leads_to_a_page_and_a_heading_and_each_alert_and_code_has_one() {
    let pages = pages();
    for alert in alerts::table() {
        assert!(pages.contains_key(&alert.page()), "{} has no page", alert.name);
    }
    let of_codes = anchors(&pages[CODES]);
    for code in Code::ALL {
        assert!(of_codes.contains(&code.id().to_lowercase()), "{code} has no section");
    }
    let index = index(&committed()).expect("the line of the generator");
    let of_index = index.split("](runbook/").skip(1);
    let of_pages = pages.values().flat_map(|page| page.split("](").skip(1));
    let is_within = |link: &&str| !link.starts_with("../");
    let links = of_index.chain(of_pages).filter_map(|rest| Some(rest.split_once(')')?.0)).filter(is_within);
    let mut checked = 0;
    for link in links {
        let (page, heading) = link.split_once('#').map_or((link, None), |(page, heading)| (page, Some(heading)));
        let text = pages.get(page).unwrap_or_else(|| panic!("{link} leads to no page"));
        assert!(heading.is_none_or(|heading| anchors(text).contains(heading)), "{link} leads nowhere");
        checked += 1;
    }
    assert!(checked > 100, "pages have links, for example {checked}");
}
