//! Checks whether the texts of the repository are ready for a release. Pure.

use crate::image::PROGRAMS;
use std::fmt;

/// Requirement of a release that the repository does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) file: String,
    pub(super) what: String,
    pub(super) remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}. {}", self.file, self.what, self.remedy)
    }
}

/// File of the repository: path from the root, and text.
pub(super) type File = (String, String);

fn problem(file: &str, what: String, remedy: &str) -> Problem {
    Problem { file: file.to_owned(), what, remedy: remedy.to_owned() }
}

/// Checks that a version is one of semantic versioning.
pub(super) fn version(version: &str) -> Result<(), String> {
    let numbers: Vec<&str> = version.split('.').collect();
    let is_number =
        |it: &&str| !it.is_empty() && it.chars().all(|it| it.is_ascii_digit()) && (*it == "0" || !it.starts_with('0'));
    if numbers.len() == 3 && numbers.iter().all(is_number) {
        return Ok(());
    }
    Err(format!("{version:?} is no version: write three numbers, such as 0.2.0"))
}

/// Checks the version of the workspace, and its public address, to which alerts and panels link.
pub(super) fn workspace((file, text): &File, version: &str) -> Vec<Problem> {
    let found = text.lines().find_map(|line| line.strip_prefix("version = ")).unwrap_or_default().trim_matches('"');
    let mut problems = Vec::new();
    if found != version {
        let what = format!("the version of the workspace is {found}");
        problems.push(problem(file, what, "Set it to the version of the release"));
    }
    if !text.lines().any(|line| line.starts_with("repository = \"https://")) {
        let remedy = "Set `repository` of the workspace, and `home` and `sources` of the charts, to the address of the repository";
        problems.push(problem(
            file,
            "the workspace has no repository, so no alert links to the runbook".to_owned(),
            remedy,
        ));
    }
    problems
}

/// Checks `version` and `appVersion` of a chart.
pub(super) fn chart((file, text): &File, version: &str) -> Vec<Problem> {
    let value = |key: &str| {
        text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": ")).unwrap_or_default().trim_matches('"')
    };
    let wrong = ["version", "appVersion"].into_iter().filter(|key| value(key) != version);
    wrong
        .map(|key| problem(file, format!("{key} is {:?}", value(key)), "Set it to the version of the release"))
        .collect()
}

/// Checks the tags of images in a manifest or a page.
pub(super) fn tags((file, text): &File, version: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for image in PROGRAMS {
            for rest in line.split(&format!("{image}:")).skip(1) {
                let tag: String = rest.chars().take_while(|it| it.is_ascii_digit() || *it == '.').collect();
                let tag = tag.trim_end_matches('.');
                if tag.contains('.') && tag != version {
                    let what = format!("line {} has the image {image}:{tag}", number + 1);
                    problems.push(problem(file, what, "Set its tag to the version of the release"));
                }
            }
        }
    }
    problems
}

/// Checks the changelog. The section of the release has a date and text, and nothing is left in the section
/// `Unreleased`.
pub(super) fn changelog((file, text): &File, version: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let unreleased = section(text, "Unreleased");
    if unreleased.is_some_and(|(_, body)| !body.is_empty()) {
        let remedy =
            format!("Rename it to `## {version} (YYYY-MM-DD)`, and add an empty section `## Unreleased` above it");
        problems.push(problem(file, "the section Unreleased is not empty".to_owned(), &remedy));
    }
    match section(text, version) {
        None => problems.push(problem(
            file,
            format!("there is no section {version}"),
            "Write what users notice, and what they must do",
        )),
        Some((heading, body)) => {
            if !has_date(heading) {
                problems.push(problem(file, format!("the heading `{heading}` has no date"), "Add it as (YYYY-MM-DD)"));
            }
            if body.is_empty() {
                problems.push(problem(
                    file,
                    format!("the section {version} is empty"),
                    "Write what users notice, and what they must do",
                ));
            }
        }
    }
    problems
}

/// Returns the notes of a release: its section of the changelog.
pub(super) fn notes(changelog: &str, version: &str) -> Option<String> {
    section(changelog, version).map(|(heading, body)| format!("## {heading}\n\n{body}\n"))
}

/// Returns heading and text of the section whose heading begins with this word.
fn section<'a>(changelog: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let mut sections = changelog.split("\n## ").skip(1);
    let section = sections.find(|section| section.split_whitespace().next() == Some(word))?;
    let (heading, body) = section.split_once('\n').unwrap_or((section, ""));
    Some((heading, body.trim()))
}

fn has_date(heading: &str) -> bool {
    let date = heading.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or_default();
    let parts: Vec<&str> = date.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [4, 2, 2] && parts.iter().all(|part| part.chars().all(|it| it.is_ascii_digit()))
}

/// Returns a problem if the work tree has changes that are not committed. `status` is the output of
/// `git status --porcelain`.
pub(super) fn work_tree(status: &str) -> Vec<Problem> {
    let changes = status.lines().count();
    if changes == 0 {
        return Vec::new();
    }
    vec![problem(
        "work tree",
        format!("{changes} files are changed or new"),
        "Commit them: the images name the commit they are made of",
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(problems: &[Problem]) -> Vec<String> {
        problems.iter().map(ToString::to_string).collect()
    }

    fn file(text: &str) -> File {
        ("F".to_owned(), text.to_owned())
    }

    #[test]
    fn a_version_has_three_numbers() {
        for good in ["0.1.0", "1.0.10", "10.20.30"] {
            assert_eq!(version(good), Ok(()), "{good}");
        }
        for wrong in ["", "1", "1.0", "v1.0.0", "1.0.0-rc1", "1.0.01", "1..0", "1.0.0.0"] {
            assert!(version(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_version_of_the_workspace_is_that_of_the_release() {
        let address = "repository = \"https://git.example.com/fleetnet\"\n";
        let workspace_file = file(&format!("[workspace.package]\nversion = \"0.1.0\"\n{address}"));
        assert_eq!(workspace(&workspace_file, "0.1.0"), []);
        let problems = texts(&workspace(&workspace_file, "0.2.0"));
        assert_eq!(problems, ["F: the version of the workspace is 0.1.0. Set it to the version of the release"]);
        let problems = texts(&workspace(&file("version = \"0.1.0\"\n"), "0.1.0"));
        assert!(problems.len() == 1 && problems[0].starts_with("F: the workspace has no repository"), "{problems:?}");
    }

    #[test]
    fn a_chart_has_the_version_twice() {
        assert_eq!(chart(&file("version: 0.2.0\nappVersion: \"0.2.0\"\n"), "0.2.0"), []);
        let problems = texts(&chart(&file("version: 0.1.0\n"), "0.2.0"));
        assert_eq!(
            problems,
            [
                "F: version is \"0.1.0\". Set it to the version of the release",
                "F: appVersion is \"\". Set it to the version of the release"
            ]
        );
    }

    #[test]
    fn a_tag_of_an_image_is_the_version() {
        let text = "image: hub-agent:0.1.0\nskopeo docker://example.com/member-agent:0.2.0.\nhub-agent: 2 replicas, hub-agent:8080\n";
        let problems = texts(&tags(&file(text), "0.2.0"));
        assert_eq!(problems, ["F: line 1 has the image hub-agent:0.1.0. Set its tag to the version of the release"]);
    }

    #[test]
    fn the_changelog_has_a_section_with_date_and_text_and_nothing_unreleased() {
        for (text, expected) in [
            ("# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-11-23)\n\n- It works.\n", &[][..]),
            ("# Changelog\n\n## 0.2.0 (2026-11-23)\n\n- It works.\n", &[]),
            ("# Changelog\n\n## Unreleased\n\n- It works.\n", &["Unreleased is not empty", "no section 0.2.0"]),
            ("# Changelog\n\n## 0.2.0\n\n- It works.\n", &["has no date"]),
            ("# Changelog\n\n## 0.2.0 (soon)\n\n", &["has no date", "0.2.0 is empty"]),
            ("# Changelog\n\n## 0.2.0 (2026-1-1)\n\n- It works.\n", &["has no date"]),
            ("# Changelog\n\n## 0.1.0 (2026-11-23)\n\n- It works.\n", &["no section 0.2.0"]),
        ] {
            let problems = changelog(&file(text), "0.2.0");
            assert_eq!(problems.len(), expected.len(), "{text}: {problems:?}");
            for (problem, expected) in problems.iter().zip(expected) {
                assert!(problem.what.contains(expected), "{text}: {problem}");
            }
        }
    }

    #[test]
    fn the_notes_are_the_section_of_the_release() {
        let text = "# Changelog\n\n## 0.2.0 (2026-11-23)\n\n- New.\n\n### Fixed\n\n- Old.\n\n## 0.1.0 (2026-01-01)\n\n- First.\n";
        let expected = "## 0.2.0 (2026-11-23)\n\n- New.\n\n### Fixed\n\n- Old.\n";
        assert_eq!(notes(text, "0.2.0").as_deref(), Some(expected));
        assert_eq!(notes(text, "0.3.0"), None);
    }

    #[test]
    fn changes_that_are_not_committed_are_a_problem() {
        assert_eq!(work_tree(""), []);
        assert_eq!(work_tree(" M a\n?? b\n")[0].what, "2 files are changed or new");
    }
}
