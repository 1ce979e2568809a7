//! Tables of docs/contributors/behaviour.md, from the doc comments of tests:
//!
//! ```text
//! /// Rule S4: The weight of a ServiceExport is 0
//! /// Then: The condition `Valid` stays `True`, and the member agent withdraws the export
//! #[test]
//! fn b8_weight_zero_withdraws_the_slices_too() {
//!
//! /// Also rules S4, S13.
//! #[test]
//! ```
//!
//! The page has a line such as `<!-- rules O1 to O9, O26 -->` above each table. All other lines are written by hand.

use anyhow::{Context as _, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The page, from the root of the work tree.
const PAGE: &str = "docs/contributors/behaviour.md";
const BEGIN: &str = "<!-- rules ";
const END: &str = " -->";
const HEADER: &str = "| | what happens | what the agents do | test |\n|---|---|---|---|\n";

/// Letters and number of a rule, such as `S` and 4.
type Id = (String, u32);

/// Rule of the agents. Its tests are written as `file::test`, and the first one defines it.
#[derive(Debug, Eq, PartialEq)]
struct Rule {
    happens: String,
    then: String,
    tests: Vec<String>,
}

/// Rules that the tests define, and further tests of rules.
#[derive(Debug, Default)]
struct FoundRules {
    rules: BTreeMap<Id, Rule>,
    also: Vec<(Id, String)>,
}

/// Writes the tables of the page.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let path = root.join(PAGE);
    let present = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    fs::write(&path, page(&present, &rules(root)?)?).with_context(|| format!("cannot write {PAGE}"))
}

/// Returns the page with new tables.
fn page(present: &str, rules: &BTreeMap<Id, Rule>) -> anyhow::Result<String> {
    let mut left: BTreeSet<&Id> = rules.keys().collect();
    let (mut page, mut lines) = (String::new(), present.lines().peekable());
    while let Some(line) = lines.next() {
        page.extend([line, "\n"]);
        let Some(range) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END)) else { continue };
        let ranges = range.split(", ").map(|part| {
            let (first, last) = part.split_once(" to ").unwrap_or((part, part));
            Some(rules.range(id(first)?..=id(last)?))
        });
        let ranges: Option<Vec<_>> = ranges.collect();
        let of_table = ranges.with_context(|| format!("{PAGE}: {line} names no rules"))?.into_iter().flatten();
        while lines.next_if(|line| line.is_empty() || line.starts_with('|')).is_some() {}
        page.extend(["\n", HEADER]);
        for (id, rule) in of_table {
            page.push_str(&row(id, rule));
            left.remove(id);
        }
        page.push('\n');
    }
    ensure!(left.is_empty(), "{PAGE} has no table for these rules: {left:?}");
    Ok(format!("{}\n", page.trim_end()))
}

fn row((letters, number): &Id, Rule { happens, then, tests }: &Rule) -> String {
    let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
    format!("| {letters}{number} | {happens} | {then} | {} |\n", tests.join(", "))
}

/// Returns all rules that doc comments in the tree define.
fn rules(root: &Path) -> anyhow::Result<BTreeMap<Id, Rule>> {
    let mut found = FoundRules::default();
    for (path, text) in xtask::texts(root)? {
        if let Some(stem) = path.strip_suffix(".rs").and_then(|path| path.rsplit('/').next()) {
            found.add(stem, &text).with_context(|| path.clone())?;
        }
    }
    found.complete()
}

impl FoundRules {
    /// Adds the rules in the doc comments of a file's functions.
    fn add(&mut self, stem: &str, text: &str) -> anyhow::Result<()> {
        let mut docs = String::new();
        for line in text.lines().map(str::trim) {
            if let Some(doc) = line.strip_prefix("///") {
                docs.extend([doc.trim(), "\n"]);
            } else if let Some(name) = function(line) {
                self.add_docs(&docs, &format!("{stem}::{name}"))?;
                docs.clear();
            } else if line.is_empty() || line.ends_with([';', '}']) {
                docs.clear();
            }
        }
        Ok(())
    }

    fn add_docs(&mut self, docs: &str, test: &str) -> anyhow::Result<()> {
        for paragraph in docs.split("\n\n").map(|lines| lines.trim().replace('\n', " ")) {
            let rule = paragraph.strip_prefix("Rule ").and_then(|rule| rule.split_once(": "));
            if let Some((id, text)) = rule.and_then(|(name, text)| Some((id(name)?, text))) {
                let parts = text.split_once(" Then: ");
                let (happens, then) = parts.with_context(|| format!("{test}: rule {id:?} has no `Then: …`"))?;
                let rule = Rule { happens: happens.to_owned(), then: then.to_owned(), tests: vec![test.to_owned()] };
                ensure!(self.rules.insert(id.clone(), rule).is_none(), "{test}: another test defines rule {id:?}");
            } else if let Some(rules) = paragraph.strip_prefix("Also rule") {
                for name in rules.trim_start_matches('s').trim_end_matches('.').split(',') {
                    let id = id(name.trim()).with_context(|| format!("{test}: {name} is no rule"))?;
                    self.also.push((id, test.to_owned()));
                }
            }
        }
        Ok(())
    }

    /// Returns the rules with all their tests.
    fn complete(self) -> anyhow::Result<BTreeMap<Id, Rule>> {
        let Self { mut rules, also } = self;
        for (id, test) in also {
            let rule = rules.get_mut(&id).with_context(|| format!("{test}: no test defines rule {id:?}"))?;
            if !rule.tests.contains(&test) {
                rule.tests.push(test);
            }
        }
        Ok(rules)
    }
}

/// Returns the letters and the number of a rule.
fn id(text: &str) -> Option<Id> {
    let (letters, number) = text.split_at(text.find(|letter: char| letter.is_ascii_digit())?);
    let is_name = !letters.is_empty() && letters.chars().all(|letter| letter.is_ascii_uppercase());
    is_name.then(|| Some((letters.to_owned(), number.parse().ok()?)))?
}

/// Returns the name of the function that begins in a line.
fn function(line: &str) -> Option<&str> {
    let code = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ").trim_start_matches("async ");
    code.strip_prefix("fn ")?.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::{FoundRules, PAGE, id, page, rules};

    const TESTS: &str = "/// What it is.\n///\n/// Rule S4: The weight\n/// is 0.\n/// Then: It ends.\n#[test]\nfn a_weight() \
                         {\n}\n\n/// Also rules S4, S10.\n#[expect(\n    x\n)]\npub(crate) async fn another() {\n}\n\n/// Rule \
                         S10: It comes. Then: It goes.\n#[test]\nfn a_third() {\n}\n";

    #[test]
    fn the_tables_of_the_page_are_current() {
        let root = programs::root();
        let present = std::fs::read_to_string(root.join(PAGE)).expect("the page");
        let wanted = page(&present, &rules(&root).expect("rules")).expect("a page");
        assert!(present == wanted, "{PAGE} is not current: run `cargo xtask reference`");
    }

    #[test]
    fn rules_and_their_tests_come_from_doc_comments() {
        let mut found = FoundRules::default();
        found.add("weights", TESTS).expect("rules");
        let rules = found.complete().expect("all defined");
        let present = "# Rules\n\n<!-- rules S1 to S20 -->\n\n| old |\n\nMore.\n";
        let wanted = "# Rules\n\n<!-- rules S1 to S20 -->\n\n| | what happens | what the agents do | test |\n|---|---|---|---|\n\
                      | S4 | The weight is 0. | It ends. | `weights::a_weight`, `weights::another` |\n\
                      | S10 | It comes. | It goes. | `weights::a_third`, `weights::another` |\n\nMore.\n";
        assert_eq!(page(present, &rules).expect("a page"), wanted);
        assert!(page("# Rules\n\n<!-- rules S1 to S9 -->\n", &rules).is_err(), "S10 has no table");
    }

    #[test]
    fn what_is_no_rule_is_an_error() {
        let rule = "/// Rule S4: It comes\n/// Then: It goes\nfn a() {\n";
        for text in ["/// Rule S4: It comes\nfn a() {\n", "/// Also rule 4.\nfn a() {\n", &rule.repeat(2)] {
            assert!(FoundRules::default().add("a", text).is_err(), "{text}");
        }
        let mut found = FoundRules::default();
        found.add("a", "/// Also rule S9.\nfn a() {\n").expect("a name");
        assert!(found.complete().is_err(), "no test defines it");
        assert_eq!(id("MC14"), Some(("MC".to_owned(), 14)));
        assert_eq!([id("MC"), id("14"), id("m1"), id("M1.2")], [None, None, None, None]);
    }
}
