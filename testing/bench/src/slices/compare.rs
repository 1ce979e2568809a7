//! Comparison of the EndpointSlice library's results with the results of another program that measured the same
//! scenario files, such as a program with upstream's `k8s.io/endpointslice`.

use crate::report::{Target, target};
use crate::slices::line::Line;
use crate::slices::outcome;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Smallest number of pods or Services for which the target of a reconcile applies. In smaller scenarios, fixed costs
/// dominate.
const LARGE: usize = 100;
/// Target for the time that the library takes for a reconcile, in percent of the time that the compared program takes.
const SHARE_PERCENT: f64 = 5.0;
/// Target for the time that the library takes to plan the event of one pod, in microseconds.
const EVENT_MICROSECONDS: f64 = 20.0;

/// What to compare.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Lines of the other program; with several of a scenario, their minimum and median count.
    theirs: PathBuf,
    /// Lines of `bench endpointslice` on the same files, as often.
    ours: PathBuf,
    /// The folders of slices that both came to, a list of EndpointSlices in a file for each scenario.
    #[arg(long, num_args = 2, value_names = ["THEIRS", "OURS"])]
    slices: Vec<PathBuf>,
}

/// Scenarios that both programs (the library's bench and the compared program) measured, in the order of the bench's
/// results.
#[derive(Clone, Debug)]
pub struct Comparison(Vec<Row>);

/// One scenario in one mode, with both programs' results.
#[derive(Clone, Debug)]
struct Row {
    line: Line,
    theirs: Times,
    ours: Times,
    their_allocations: f64,
    /// Time until the plan is ready. Only for the event of one pod.
    planning: Option<Times>,
    same_writes: bool,
    /// Two flags. The first is true if both programs published the same endpoints. The second is true if the slices of
    /// both programs have the same numbers of endpoints. `None` if there are no slices to compare.
    same_slices: Option<[bool; 2]>,
}

/// Times of one program for one scenario, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    minimum: f64,
    median: f64,
}

/// Reads both programs' results and compares them.
///
/// # Errors
/// If a file cannot be read, no scenario is in both files, or the slices of a common scenario are missing.
pub fn run(options: &Options) -> anyhow::Result<Comparison> {
    let theirs = by_scenario(read(&options.theirs)?, |line| line.name.clone());
    let ours = read(&options.ours)?;
    let order = ours.clone();
    let ours = by_scenario(ours, |line| (line.name.clone(), line.mode.clone()));
    let mut rows: Vec<Row> = Vec::new();
    for line in order {
        let is_new = !rows.iter().any(|row| row.line.name == line.name && row.line.mode == line.mode);
        let all = (theirs.get(&line.name), ours.get(&(line.name.clone(), line.mode.clone())));
        if let (true, (Some(theirs), Some(ours))) = (is_new, all) {
            let same_slices = same_slices(&line, &options.slices)?;
            rows.push(Row { same_slices, ..Row::of(line, theirs, ours) });
        }
    }
    anyhow::ensure!(!rows.is_empty(), "the files have no scenario in common");
    Ok(Comparison(rows))
}

/// Returns two flags. The first is true if both programs published the same endpoints. The second is true if the slices
/// of both programs have the same numbers of endpoints. `None` if there are no slices to compare.
fn same_slices(line: &Line, folders: &[PathBuf]) -> anyhow::Result<Option<[bool; 2]>> {
    let ([theirs, ours], true) = (folders, line.plans_slices()) else { return Ok(None) };
    let (theirs, ours) = (outcome::read(theirs, &line.name)?, outcome::read(ours, &line.name)?);
    Ok(Some([theirs.endpoints == ours.endpoints, theirs.slice_lengths == ours.slice_lengths]))
}

fn read(file: &Path) -> anyhow::Result<Vec<Line>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    lines.with_context(|| format!("{} is not one line of JSON for each scenario", file.display()))
}

fn by_scenario<K: Ord>(lines: Vec<Line>, key: impl Fn(&Line) -> K) -> BTreeMap<K, Vec<Line>> {
    let mut scenarios: BTreeMap<K, Vec<Line>> = BTreeMap::new();
    for line in lines {
        scenarios.entry(key(&line)).or_default().push(line);
    }
    scenarios
}

impl Row {
    fn of(line: Line, theirs: &[Line], ours: &[Line]) -> Self {
        let writes = |line: &Line| (line.creates, line.updates, line.deletes);
        let same_writes = theirs.iter().chain(ours).all(|other| writes(other) == writes(&line));
        let their_allocations = theirs.iter().map(|line| line.allocs_op).fold(f64::INFINITY, f64::min);
        let planning = line.plan_ns_op.map(|_| Times::of(ours.iter().filter_map(|line| line.plan_ns_op)));
        let [theirs, ours] = [theirs, ours].map(|lines| Times::of(lines.iter().map(|line| line.ns_op)));
        Self { theirs, ours, their_allocations, planning, same_writes, same_slices: None, line }
    }

    fn name(&self) -> String {
        format!("{}, {}", self.line.name, self.line.mode)
    }

    fn target(&self) -> Option<Target> {
        let Self { line, ours, theirs, planning, .. } = self;
        if let Some(planning) = planning {
            return Some(target(&format!("{}, µs of planning", self.name()), EVENT_MICROSECONDS, planning.minimum));
        }
        let share = ours.minimum / theirs.minimum * 100.0;
        let name = format!("{}, percent of its time", self.name());
        (line.size >= LARGE).then(|| target(&name, SHARE_PERCENT, share))
    }
}

impl Times {
    fn of(nanoseconds: impl Iterator<Item = f64>) -> Self {
        let mut times: Vec<_> = nanoseconds.map(|time| time / 1e3).collect();
        times.sort_unstable_by(f64::total_cmp);
        let at = |at: usize| times.get(at).copied().unwrap_or(f64::NAN);
        Self { minimum: at(0), median: f64::midpoint(at((times.len().max(1) - 1) / 2), at(times.len() / 2)) }
    }
}

impl Comparison {
    /// Returns a Markdown table of all scenarios.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "| scenario | mode | theirs, µs: minimum / median | ours, µs | of it planning | ratio | allocations: theirs / ours | writes | slices |\n\
             |---|---|---|---|---|---|---|---|---|\n",
        );
        for row in &self.0 {
            let Row { line, theirs, ours, their_allocations, planning, same_writes, same_slices } = row;
            let Line { name, mode, creates, updates, deletes, allocs_op, .. } = line;
            let both = |times: &Times| format!("{} / {}", short(times.minimum), short(times.median));
            let ratios = [theirs.minimum / ours.minimum, theirs.median / ours.median].map(short).join(" / ");
            let writes = format!("{creates} + {updates} + {deletes}{}", if *same_writes { "" } else { " DIFFER" });
            let slices = same_slices.map_or("", |same| if same == [true; 2] { "same" } else { "DIFFER" });
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "| {name} | {mode} | {} | {} | {} | {ratios} | {their_allocations:.0} / {allocs_op:.0} | {writes} | {slices} |",
                both(theirs),
                both(ours),
                planning.as_ref().map(both).unwrap_or_default(),
            );
        }
        text
    }

    /// Compares the results of all scenarios with the targets.
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        let mut targets: Vec<_> = self.0.iter().filter_map(Row::target).collect();
        let mut none_differs = |what: &str, differs: &dyn Fn(&Row) -> bool| {
            let count = u32::try_from(self.0.iter().filter(|row| differs(row)).count()).unwrap_or(u32::MAX);
            targets.push(target(&format!("scenarios whose {what} differ"), 0.0, count.into()));
        };
        none_differs("writes", &|row| !row.same_writes);
        if self.0.iter().any(|row| row.same_slices.is_some()) {
            none_differs("endpoints", &|row| row.same_slices.is_some_and(|[same, _]| !same));
            none_differs("slices' lengths", &|row| row.same_slices.is_some_and(|[_, same]| !same));
        }
        targets
    }
}

/// Formats a number with two decimals if it is below 10, with one decimal below 100, and otherwise without decimals.
fn short(value: f64) -> String {
    let decimals = match value {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use endpointslice::model::EndpointSlice;
    use serde_json::{from_value, json};
    use std::sync::Arc;

    /// Returns a slice of endpoints with these addresses.
    fn slice(name: &str, addresses: &[&str]) -> Arc<EndpointSlice> {
        let endpoints: Vec<_> = addresses.iter().map(|address| json!({"addresses": [address]})).collect();
        let slice = json!({"metadata": {"name": name}, "addressType": "IPv4", "endpoints": endpoints, "ports": []});
        Arc::new(from_value(slice).unwrap())
    }

    fn line(ns_op: f64) -> Line {
        Line { name: "noop-100".into(), size: 100, ns_op, allocs_op: 5.0, ..Line::default() }
    }

    /// Runs a comparison of two programs with these times and slices. Returns the table, and the targets that were
    /// missed.
    fn compare(
        [theirs, ours]: [&[Line]; 2],
        [their_slices, our_slices]: [&[Arc<EndpointSlice>]; 2],
    ) -> (String, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, lines, slices) in [("theirs", theirs, their_slices), ("ours", ours, our_slices)] {
            let text: Vec<_> = lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
            outcome::write(&path(name), "noop-100", slices).unwrap();
            fs::write(path(&format!("{name}.json")), text.join("\n")).unwrap();
        }
        let slices = vec![path("theirs"), path("ours")];
        let options = Options { theirs: path("theirs.json"), ours: path("ours.json"), slices };
        let comparison = run(&options).unwrap();
        let missed = comparison.targets().into_iter().filter(|target| !target.met).map(|target| target.name);
        (comparison.markdown().lines().skip(2).collect(), missed.collect())
    }

    #[test]
    fn several_lines_of_a_scenario_count_by_their_minimum_and_median() {
        let theirs = [line(50_000.0), line(40_000.0), line(90_000.0)];
        let ours = [line(1_000.0), line(4_000.0), line(2_000.0), line(2_000.0)];
        let full: Vec<_> = ours.map(|line| Line { mode: "full".into(), ..line }).into();
        let (row, missed) = compare([&theirs, &full], [&[], &[]]);
        assert_eq!(row, "| noop-100 | full | 40.0 / 50.0 | 1.00 / 2.00 |  | 40.0 / 25.0 | 5 / 5 | 0 + 0 + 0 | same |");
        assert_eq!(missed, Vec::<String>::new());
    }

    #[test]
    fn more_than_a_twentieth_of_their_time_is_a_miss() {
        let (_, missed) = compare([&[line(19_000.0)], &[line(1_000.0)]], [&[], &[]]);
        assert_eq!(missed, ["noop-100, , percent of its time"]);
    }

    #[test]
    fn endpoints_may_be_in_other_slices_but_not_be_others_or_in_slices_of_other_lengths() {
        let lines = [&[line(20_000.0)][..], &[line(1_000.0)]];
        let theirs = [slice("web-1", &["10.0.0.1", "10.0.0.2"]), slice("web-2", &["10.0.0.3"])];
        let elsewhere = [slice("web-1", &["10.0.0.3"]), slice("web-2", &["10.0.0.2", "10.0.0.1"])];
        assert_eq!(compare(lines, [&theirs, &elsewhere]).1, Vec::<String>::new());
        let other = [slice("web-1", &["10.0.0.1", "10.0.0.2"]), slice("web-2", &["10.0.0.4"])];
        assert_eq!(compare(lines, [&theirs, &other]).1, ["scenarios whose endpoints differ"]);
        let in_one = [slice("web-1", &["10.0.0.1", "10.0.0.2", "10.0.0.3"])];
        let (row, missed) = compare(lines, [&theirs, &in_one]);
        assert_eq!(missed, ["scenarios whose slices' lengths differ"]);
        assert!(row.ends_with("| DIFFER |"), "{row}");
    }

    #[test]
    fn other_writes_are_a_miss() {
        let ours = Line { updates: 1, ..line(1_000.0) };
        let (row, missed) = compare([&[line(20_000.0)], &[ours]], [&[], &[]]);
        assert_eq!(missed, ["scenarios whose writes differ"]);
        assert!(row.contains("| 0 + 1 + 0 DIFFER |"), "{row}");
    }
}
