//! Command `fleetnet check`: checks of the installation and of the members.

use super::contexts::{ClusterFlags, HEADING};
use super::exit::{Exit, Stop};
use super::fleet::{Breadth, Fleet};
use super::output::names::ends;
use super::output::progress::Progress;
use super::output::safe::Safe;
use super::output::{Format, OutputFlags, Paint, Report};
use super::unreached::Unreached;
use super::view::{View, ViewFlags, members, show};
use diagnosis::check::Stage;
use diagnosis::codes::Group;
use diagnosis::read::Scope;
use diagnosis::report::{Check, CheckResult, CheckRow, NotReached, Verdict};
use serde_json::{Map, Value, json};

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Only checks that make sense before the agents are installed.
    #[arg(long)]
    pre: bool,

    /// Exit with 1 also for notices: what degrades the fleet and is no fault.
    #[arg(long)]
    strict: bool,

    /// Format of the output.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: CheckFormat,

    /// Use no colours. The environment variable NO_COLOR does the same.
    #[arg(long, help_heading = HEADING, hide_short_help = true)]
    no_color: bool,

    #[command(flatten)]
    view: ViewFlags,

    #[command(flatten)]
    clusters: ClusterFlags,
}

/// Format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum CheckFormat {
    /// Lines for people.
    #[default]
    Table,
    /// Lines for people, with each check that is ok or does not apply.
    Wide,
    /// Only what is not ok.
    Short,
    /// One JSON document with `apiVersion: cli.fleetnet/v1` and a `kind`.
    Json,
    /// The same document as YAML.
    Yaml,
    /// Only the codes of faults.
    Name,
}

impl CheckFormat {
    fn general(self) -> Format {
        match self {
            Self::Table | Self::Short => Format::Table,
            Self::Wide => Format::Wide,
            Self::Json => Format::Json,
            Self::Yaml => Format::Yaml,
            Self::Name => Format::Name,
        }
    }
}

struct Shown {
    check: Check,
    not_reached: Vec<NotReached>,
    /// True to show only what is not ok.
    is_short: bool,
    /// True if a notice counts as a fault.
    is_strict: bool,
}

impl Report for Shown {
    fn kind(&self) -> &'static str {
        self.check.kind
    }

    fn document(&self) -> Map<String, Value> {
        let mut document = members(&self.check);
        document.insert("notReached".to_owned(), json!(self.not_reached));
        document
    }

    fn lines(&self, format: Format, _has_headers: bool, paint: Paint) -> Safe {
        let mut text = Safe::default();
        let mut unreached = Unreached::new(&self.not_reached);
        for block in self.blocks(format, &mut unreached) {
            push_block(&mut text, &block, format != Format::Wide && !self.is_short, paint);
        }
        for line in unreached.lines("checks") {
            push_sign(&mut text, CheckResult::Unknown, paint);
            text.push(&Safe::line(&format!(" {line}")));
            text.push_own("\n");
        }
        text.push_own(match self.check.verdict {
            // A warning can be a change that is still under way.
            Verdict::Healthy if self.has_warning() => "No check failed, and some have warnings: ‼\n",
            Verdict::Healthy => "All checks are ok: √\n",
            Verdict::NotKnown => "Some checks could not be made: ?\n",
            Verdict::Fault => "Some checks failed: ×\n",
        });
        text
    }

    fn names(&self) -> Vec<String> {
        let rows = self.check.categories.iter().flat_map(|category| &category.checks);
        let mut names: Vec<String> =
            rows.filter(|row| row.result == CheckResult::Error).map(|row| format!("code/{}", row.code)).collect();
        names.sort();
        names.dedup();
        names
    }
}

impl View for Shown {
    fn verdict(&self) -> Verdict {
        match self.check.verdict {
            Verdict::Healthy if self.is_strict && self.has_warning() => Verdict::Fault,
            verdict => verdict,
        }
    }
}

/// Categories with equal results, in one block.
#[derive(Debug)]
struct Block<'a> {
    group: Group,
    clusters: Vec<String>,
    rows: Vec<&'a CheckRow>,
    /// Number of checks that are ok.
    ok: usize,
}

impl Shown {
    fn has_warning(&self) -> bool {
        let mut rows = self.check.categories.iter().flat_map(|category| &category.checks);
        rows.any(|row| row.result == CheckResult::Warning)
    }

    /// Returns the blocks to show. Checks that are unknown because their cluster was not reached are counted only.
    fn blocks<'a>(&'a self, format: Format, unreached: &mut Unreached<'_>) -> Vec<Block<'a>> {
        let mut blocks: Vec<Block<'a>> = Vec::new();
        for category in &self.check.categories {
            let mut rows: Vec<&CheckRow> = category.checks.iter().collect();
            rows.retain(|row| {
                let is_unreached = row.result == CheckResult::Unknown && unreached.takes(&row.detail);
                format == Format::Wide || row.result > CheckResult::Skipped && !is_unreached
            });
            let ok = category.checks.iter().filter(|row| row.result == CheckResult::Ok).count();
            if rows.is_empty() && (self.is_short || ok == 0) {
                continue;
            }
            let is_same = |block: &&mut Block<'_>| (block.group, &block.rows, block.ok) == (category.group, &rows, ok);
            match blocks.iter_mut().find(is_same) {
                Some(block) => block.clusters.push(category.cluster.clone()),
                None => {
                    blocks.push(Block { group: category.group, clusters: vec![category.cluster.clone()], rows, ok });
                }
            }
        }
        blocks
    }
}

fn push_block(text: &mut Safe, block: &Block<'_>, has_number: bool, paint: Paint) {
    let number = if block.clusters.len() > 3 { format!(" ({} clusters)", block.clusters.len()) } else { String::new() };
    let title = Safe::line(&format!("{}{number}: {}", ends(&block.clusters), block.group.title()));
    text.push(&title);
    text.push(&Safe::block(&format!("\n{}\n", "-".repeat(title.width()))));
    block.rows.iter().for_each(|row| push_row(text, row, paint));
    if has_number && block.ok > 0 {
        push_sign(text, CheckResult::Ok, paint);
        let each = if block.clusters.len() > 1 { " in each" } else { "" };
        text.push(&Safe::line(&format!(" {} checks ok{each}", block.ok)));
        text.push_own("\n");
    }
    text.push_own("\n");
}

/// Adds the sign of a result.
pub(super) fn push_sign(text: &mut Safe, result: CheckResult, paint: Paint) {
    let (sign, colour) = match result {
        CheckResult::Ok => ("√", "\x1b[32m"),
        CheckResult::Skipped => ("–", ""),
        CheckResult::Warning => ("‼", "\x1b[33m"),
        CheckResult::Unknown => ("?", "\x1b[33m"),
        CheckResult::Error => ("×", "\x1b[31m"),
    };
    let is_painted = paint == Paint::Colours && !colour.is_empty();
    text.push_own(if is_painted { colour } else { "" });
    text.push_own(sign);
    text.push_own(if is_painted { "\x1b[0m" } else { "" });
}

/// Adds a check. Its title says what was found, or what is right if no fault was found.
fn push_row(text: &mut Safe, row: &CheckRow, paint: Paint) {
    push_sign(text, row.result, paint);
    let title = match row.result {
        CheckResult::Warning | CheckResult::Error => row.title,
        CheckResult::Ok | CheckResult::Skipped | CheckResult::Unknown => row.code.entry().ok,
    };
    let is_told = row.result == CheckResult::Ok && !row.detail.is_empty();
    let detail = if is_told { format!(": {}", row.detail) } else { String::new() };
    text.push(&Safe::line(&format!(" {} {title}{detail}", row.code)));
    text.push_own("\n");
    if row.result > CheckResult::Skipped {
        for part in [&row.detail, &row.hint] {
            if !part.is_empty() {
                text.push_own("    ");
                text.push(&Safe::line(part));
                text.push_own("\n");
            }
        }
    }
}

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    let progress = Progress::new(options.clusters.verbose);
    let breadth = if options.pre { Breadth::BeforeInstallation } else { Breadth::All };
    let fleet = Fleet::find(&options.clusters, breadth, options.view.timeout, &progress).await?;
    let stage = if options.pre { Stage::BeforeInstallation } else { Stage::Installed };
    let is_short = options.output == CheckFormat::Short;
    let output = OutputFlags { output: options.output.general(), no_headers: false, no_color: options.no_color };
    let read = async |progress: &Progress| {
        let snapshot = fleet.snapshot(&Scope::Check, progress).await;
        let (check, not_reached) = (diagnosis::check(&snapshot, stage), snapshot.not_reached());
        Shown { check, not_reached, is_short, is_strict: options.strict }
    };
    show(options.view, output, &fleet.remarks(), progress, read).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::render;
    use crate::cli::view::exit_of;
    use diagnosis::Code;
    use diagnosis::report::Category;

    fn shown(is_short: bool) -> Shown {
        let row = |code, result, detail: &str, hint: &str| CheckRow {
            code,
            title: "a title",
            result,
            detail: detail.to_owned(),
            hint: hint.to_owned(),
        };
        let checks = vec![
            row(Code::FN102, CheckResult::Ok, "", ""),
            row(Code::FN105, CheckResult::Skipped, "does not apply", ""),
            row(Code::FN106, CheckResult::Warning, "older", "upgrade"),
            row(Code::FN107, CheckResult::Error, "0 ready\x1b", "image"),
            row(Code::FN108, CheckResult::Unknown, "timeout", ""),
        ];
        let ok = Category {
            group: Group::Membership,
            cluster: "west".to_owned(),
            checks: vec![row(Code::FN203, CheckResult::Ok, "", "")],
        };
        let first = Category { group: Group::Access, cluster: "hub".to_owned(), checks };
        let (api_version, kind) = (diagnosis::report::API_VERSION, "Check");
        Shown {
            check: Check { api_version, kind, categories: vec![first, ok], verdict: Verdict::Fault },
            not_reached: Vec::new(),
            is_short,
            is_strict: false,
        }
    }

    fn text(is_short: bool, output: Format) -> String {
        render(&shown(is_short), OutputFlags { output, ..OutputFlags::default() }, Paint::Plain).to_string()
    }

    #[test]
    fn each_check_has_a_sign_its_code_and_a_hint() {
        assert_eq!(
            text(false, Format::Table),
            format!(
                "\
hub: Access and installation
----------------------------
‼ FN106 a title
    older
    upgrade
× FN107 a title
    0 ready\\u{{1b}}
    image
? FN108 {}
    timeout
√ 1 checks ok

west: Membership
----------------
√ 1 checks ok

Some checks failed: ×
",
                Code::FN108.entry().ok
            )
        );
        assert!(text(false, Format::Wide).contains(&format!(
            "√ FN102 {}\n– FN105 {}\n",
            Code::FN102.entry().ok,
            Code::FN105.entry().ok
        )));
        assert!(!text(true, Format::Table).contains('√') && !text(true, Format::Table).contains("west"));
        assert_eq!(text(false, Format::Name), "code/FN107\n");
        let json: Value = serde_json::from_str(&text(false, Format::Json)).unwrap();
        assert_eq!((&json["kind"], &json["categories"][0]["checks"][3]["result"]), (&"Check".into(), &"error".into()));
    }

    #[test]
    fn clusters_with_equal_results_are_one_block_and_each_that_was_not_reached_has_one_line() {
        let mut view = shown(false);
        let ok = view.check.categories.remove(1);
        let id = |number: usize| format!("member-{number}");
        view.check.categories = (1..=20).map(|number| Category { cluster: id(number), ..ok.clone() }).collect();
        let why = "no kubeconfig context leads to this cluster";
        let unknown =
            CheckRow { result: CheckResult::Unknown, detail: format!("member-20: {why}"), ..ok.checks[0].clone() };
        view.check.categories[19].checks = vec![unknown];
        view.check.verdict = Verdict::NotKnown;
        view.not_reached = vec![NotReached { cluster: id(20), why: why.to_owned(), remedy: "add it" }];
        let text = render(&view, OutputFlags::default(), Paint::Plain).to_string();
        assert_eq!(
            text,
            "\
member-1 … member-19 (19 clusters): Membership
----------------------------------------------
√ 1 checks ok in each

? member-20: no kubeconfig context leads to this cluster, so 1 checks are unknown: add it
Some checks could not be made: ?
"
        );
        let wide = OutputFlags { output: Format::Wide, ..OutputFlags::default() };
        assert!(render(&view, wide, Paint::Plain).to_string().contains("? FN203 "));
    }

    #[test]
    fn a_warning_has_exit_code_1_only_if_the_user_is_strict() {
        let mut view = shown(false);
        view.check.verdict = Verdict::Healthy;
        assert_eq!(exit_of(&view, &[]), Exit::Healthy);
        let end = |view: &Shown| render(view, OutputFlags::default(), Paint::Plain).to_string();
        assert!(end(&view).ends_with("\nNo check failed, and some have warnings: ‼\n"), "{}", end(&view));
        view.is_strict = true;
        assert_eq!(exit_of(&view, &[]), Exit::Fault);
        view.check.categories.clear();
        assert_eq!(exit_of(&view, &[]), Exit::Healthy);
        assert_eq!(end(&view), "All checks are ok: √\n");
    }
}
