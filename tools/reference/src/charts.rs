//! Pages of the charts: `cargo xtask reference` writes the README.md of each chart from its Chart.yaml and values.yaml.
//!
//! A value is described by the comment above it. Lines of a comment that are followed by an empty comment line describe
//! the whole section, and do not belong to the first value.

use crate::pages::markdown::{code, table, text};
use anyhow::{Context as _, ensure};
use std::path::Path;

/// Folder of the charts, from the root of the work tree.
const FOLDER: &str = "deploy/charts";
const CHARTS: [&str; 3] = ["fleetnet-crds", "fleetnet-hub-agent", "fleetnet-member-agent"];
/// Longest default in a table, in characters. For longer ones, the page refers to values.yaml.
const LONGEST_DEFAULT: usize = 60;

/// Value of a chart.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    /// Path with dots, such as `image.tag`.
    path: String,
    /// Default, as in values.yaml. Empty for a mapping, whose fields are values.
    default: String,
    meaning: String,
}

/// Writes the pages. Replaces files of the same name.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    for chart in CHARTS {
        let path = root.join(FOLDER).join(chart).join("README.md");
        std::fs::write(&path, page(root, chart)?).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn page(root: &Path, chart: &str) -> anyhow::Result<String> {
    let read = |file: &str| {
        let path = root.join(FOLDER).join(chart).join(file);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (metadata, values) = (read("Chart.yaml")?, read("values.yaml")?);
    let field = |key: &str| {
        let line = metadata.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        line.map(|value| value.trim_matches('"')).with_context(|| format!("Chart.yaml of {chart} has no {key}"))
    };
    let rows = entries(&values)?.into_iter().map(|entry| {
        let is_long = entry.default.chars().count() > LONGEST_DEFAULT;
        let default = if is_long { "see `values.yaml`".to_owned() } else { code(&entry.default) };
        vec![code(&entry.path), default, text(&entry.meaning)]
    });
    Ok(format!(
        "# {chart}\n\nGenerated from `Chart.yaml` and `values.yaml` by `cargo xtask reference`. Do not edit.\n\n{}\n\n\
         Kubernetes: `{}`. [How to install](../../../docs/how-to/install.md), \
         [monitoring](../../../docs/how-to/monitoring.md).\n\n## Values\n\n{}\n",
        field("description")?,
        field("kubeVersion")?,
        table(&["value", "default", "meaning"], rows).trim_end(),
    ))
}

/// Returns the values of a `values.yaml` in its order.
fn entries(values: &str) -> anyhow::Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut comment = String::new();
    // Keys of the mappings around the present line, each with its indentation.
    let mut around: Vec<(usize, String)> = Vec::new();
    // Indentation of a key whose value is a list on the lines below it.
    let mut list: Option<usize> = None;
    for line in values.lines() {
        let indentation = line.len() - line.trim_start().len();
        let line = line.trim();
        if let Some(said) = line.strip_prefix('#') {
            // An empty line ends a comment about what follows as a whole.
            comment = if said.is_empty() { String::new() } else { format!("{comment} {}", said.trim()) };
            continue;
        }
        if line.is_empty() {
            comment.clear();
            continue;
        }
        if list.is_some_and(|key| indentation > key) {
            if let Some(entry) = entries.last_mut() {
                entry.default = format!("{} {line}", entry.default);
            }
            continue;
        }
        let (key, value) = line.split_once(':').with_context(|| format!("{line:?} has no key"))?;
        while around.last().is_some_and(|(of_parent, _)| *of_parent >= indentation) {
            around.pop();
        }
        let parents: Vec<&str> = around.iter().map(|(_, key)| key.as_str()).collect();
        let path = [&parents[..], &[key]].concat().join(".");
        around.push((indentation, key.to_owned()));
        let default = value.trim().to_owned();
        list = (default.is_empty() && is_list(values, key, indentation)).then_some(indentation);
        entries.push(Entry { path, default, meaning: std::mem::take(&mut comment) });
    }
    ensure!(!entries.is_empty(), "there are no values");
    Ok(entries.into_iter().filter(|entry| !(entry.default.is_empty() && entry.meaning.is_empty())).collect())
}

/// True if a list begins on the line below the key.
fn is_list(values: &str, key: &str, indentation: usize) -> bool {
    let line = format!("{}{key}:", " ".repeat(indentation));
    let below = values.lines().skip_while(|it| *it != line).nth(1).unwrap_or_default();
    below.trim_start().starts_with("- ")
        || below.trim_start().starts_with('#') && {
            let after =
                values.lines().skip_while(|it| *it != line).skip(1).find(|it| !it.trim_start().starts_with('#'));
            after.is_some_and(|it| it.trim_start().starts_with("- "))
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_the_charts_are_current() {
        for chart in CHARTS {
            let path = programs::root().join(FOLDER).join(chart).join("README.md");
            let committed = std::fs::read_to_string(path).expect("run `cargo xtask reference`");
            let page = page(&programs::root(), chart).expect("a page");
            assert!(committed == page, "README.md of {chart} is not current: run `cargo xtask reference`");
        }
    }

    #[test]
    fn a_value_has_its_path_its_default_and_the_comment_above_it() {
        let values = "# About the file.\n\n# Image of\n# the agent.\nimage:\n  # Its tag.\n  tag: \"\"\n  pull: Never\n\
                      # About a section.\n#\n# A list.\nlist:\n  - a: 1\n    b: 2\nempty: []\n";
        let entry = |path: &str, default: &str, meaning: &str| Entry {
            path: path.to_owned(),
            default: default.to_owned(),
            meaning: meaning.to_owned(),
        };
        let expected = [
            entry("image", "", " Image of the agent."),
            entry("image.tag", "\"\"", " Its tag."),
            entry("image.pull", "Never", ""),
            entry("list", " - a: 1 b: 2", " A list."),
            entry("empty", "[]", ""),
        ];
        assert_eq!(entries(values).expect("values"), expected);
    }
}
