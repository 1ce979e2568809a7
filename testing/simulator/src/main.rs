//! Program `simulator`, which `cargo xtask sim` runs.

use clap::Parser;
use fleetnet_runtime::clock::Clock;
use serde::{Deserialize, Serialize};
use simulator::coverage::Coverage;
use simulator::script::Choice;
use simulator::{Outcome, Script, run, shrink};
use std::panic::AssertUnwindSafe;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::time::Instant;

/// Plays whole fleets from seeds: random users, random faults, and the real agents on servers in memory. Prints what
/// each run found, what occurred and what never did. Exit code 1 if a seed has a finding, if a run failed, or if no
/// seed was played.
#[derive(Clone, Debug, Parser)]
#[command(version)]
struct Args {
    /// Play this seed, and print its script and its trace.
    #[arg(long, conflicts_with_all = ["seeds", "minutes", "shrink"])]
    seed: Option<u64>,
    /// Play this number of seeds, in a process for each processor.
    #[arg(long)]
    seeds: Option<u64>,
    /// Play new seeds for this number of minutes, in a process for each processor.
    #[arg(long)]
    minutes: Option<u64>,
    /// First seed of --seeds and --minutes. The default is 1 for --seeds, and the time for --minutes.
    #[arg(long)]
    first: Option<u64>,
    /// Remove steps from the script of this seed as long as its finding stays, and print what is left.
    #[arg(long)]
    shrink: Option<u64>,
    /// With --seed: play only the steps with these numbers, from 0, for example `1,4,5`.
    #[arg(long, value_delimiter = ',')]
    keep: Option<Vec<usize>>,
    /// Number of lines of the trace to print.
    #[arg(long, default_value_t = 4_000)]
    trace: usize,
    /// Only these kinds of faults, separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// All kinds of faults but these, separated by commas.
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// Go on after a finding.
    #[arg(long)]
    all: bool,
    /// Findings are no reason for exit code 1.
    #[arg(long)]
    report: bool,
    /// Distance between two seeds of a process, and JSON as output. Only for the processes that this program starts.
    #[arg(long, hide = true)]
    stride: Option<u64>,
}

/// Findings and coverage of one process.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Report {
    coverage: Coverage,
    /// Lowest and highest seed that was played.
    seeds: Option<(u64, u64)>,
    /// Lines about each seed with a finding.
    findings: Vec<String>,
    /// Lines about each run that did not end in a result.
    failures: Vec<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    // A panic of an agent is a finding, and a panic of the simulator is reported with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    let begun = Instant::now();
    let report = match (args.seed, args.shrink, args.stride) {
        (Some(seed), ..) => replay(&args, seed),
        (None, Some(seed), _) => smaller(&args, seed),
        (None, None, Some(stride)) => {
            println!("{}", serde_json::to_string(&some(&args, stride, begun)).unwrap_or_default());
            return ExitCode::SUCCESS;
        }
        (None, None, None) => in_parallel(&args),
    };
    print!("{}", report.coverage.text());
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    let rate = report.coverage.runs as f64 * 60.0 / begun.elapsed().as_secs_f64();
    let seeds = report.seeds.map_or_else(String::new, |(first, last)| format!("seeds {first} to {last}, "));
    let (findings, failures) = (report.findings.len(), report.failures.len());
    println!("\n{seeds}{rate:.1} a minute, {findings} with a finding, {failures} failed");
    report.findings.iter().chain(&report.failures).for_each(|line| println!("{line}"));
    if report.is_good(args.report) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Report {
    fn add(&mut self, other: Self) {
        self.coverage.add(&other.coverage);
        self.findings.extend(other.findings);
        self.failures.extend(other.failures);
        other.seeds.into_iter().for_each(|seeds| self.add_seeds(seeds));
    }

    /// True if all runs ended, and have no finding or may have one. Without a run, nothing is known.
    fn is_good(&self, may_find: bool) -> bool {
        self.coverage.runs > 0 && self.failures.is_empty() && (may_find || self.findings.is_empty())
    }

    fn add_seeds(&mut self, (first, last): (u64, u64)) {
        let (lowest, highest) = self.seeds.unwrap_or((first, last));
        self.seeds = Some((lowest.min(first), highest.max(last)));
    }
}

/// Plays one seed, and prints its script and its trace.
fn replay(args: &Args, seed: u64) -> Report {
    let whole = script(args, seed);
    let script = args.keep.as_ref().map_or_else(|| whole.clone(), |kept| whole.keeping(kept));
    print_script(&script);
    let mut report = Report::default();
    if let Some(outcome) = play(args, &script, args.trace, &mut report) {
        outcome.trace.iter().for_each(|line| println!("{line}"));
    }
    report
}

/// Shrinks the script of a seed, and prints what is left.
fn smaller(args: &Args, seed: u64) -> Report {
    let script = script(args, seed);
    let mut report = Report::default();
    let Some(finding) = play(args, &script, 0, &mut report).and_then(|outcome| outcome.finding) else { return report };
    let kept = shrink::shrink(&script, finding.rule, |left| eprintln!("{left} steps are left"));
    let list: Vec<String> = kept.iter().map(ToString::to_string).collect();
    let keep = list.join(",");
    let smallest = script.keeping(&kept);
    print_script(&smallest);
    let mut report = Report::default();
    play(args, &smallest, 0, &mut report);
    println!("replay it: cargo xtask sim --seed {seed} --keep {keep}{}", chosen(args));
    report
}

/// Plays seeds in a process for each processor.
fn in_parallel(args: &Args) -> Report {
    let now = u64::try_from(Clock::system().now().0 / 1_000_000).unwrap_or(1);
    let first = args.first.unwrap_or(if args.minutes.is_some() { now } else { 1 });
    let jobs = available_parallelism().map_or(1, |jobs| u64::try_from(jobs.get()).unwrap_or(1));
    let seeds = args.seeds.unwrap_or(if args.minutes.is_some() { u64::MAX / 2 } else { jobs });
    println!("seeds from {first}");
    let children: Vec<Child> = (0..jobs)
        .filter(|job| *job < seeds)
        .map(|job| {
            let mut command = Command::new(std::env::current_exe().expect("this program"));
            command.args(["--stride", &jobs.to_string(), "--first", &(first + job).to_string()]);
            command.args(["--seeds", &(seeds.saturating_sub(job).div_ceil(jobs)).to_string()]);
            command.args(args.minutes.iter().flat_map(|minutes| ["--minutes".to_owned(), minutes.to_string()]));
            command.args(args.only.iter().map(|name| format!("--only={name}")));
            command.args(args.without.iter().map(|name| format!("--without={name}")));
            command.args(args.all.then_some("--all"));
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a process of this program starts")
        })
        .collect();
    let mut report = Report::default();
    for child in children {
        let output = child.wait_with_output().expect("the output of a process");
        match serde_json::from_slice::<Report>(&output.stdout) {
            Ok(one) => report.add(one),
            Err(error) => report.failures.push(format!("a process ended with {}: {error}", output.status)),
        }
    }
    report
}

/// Plays the seeds of one process.
fn some(args: &Args, stride: u64, begun: Instant) -> Report {
    let mut report = Report::default();
    let limit = args.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    for number in 0..args.seeds.unwrap_or(1) {
        let is_late = limit.is_some_and(|limit| begun.elapsed() >= limit);
        let has_bad = !report.findings.is_empty() || !report.failures.is_empty();
        if is_late || (has_bad && !args.all) {
            break;
        }
        play(args, &script(args, args.first.unwrap_or(1) + number * stride), 0, &mut report);
    }
    report
}

fn script(args: &Args, seed: u64) -> Script {
    Script::of(seed, &Choice { only: args.only.clone(), without: args.without.clone() })
}

/// Returns the arguments that choose the kinds of faults.
fn chosen(args: &Args) -> String {
    let only = args.only.iter().map(|name| format!(" --only {name}"));
    only.chain(args.without.iter().map(|name| format!(" --without {name}"))).collect()
}

fn print_script(script: &Script) {
    let slow = if script.is_slow { ", slow faults" } else { "" };
    let quiet = if script.is_quiet { ", quiet users" } else { "" };
    let streams = match (script.has_streams, &script.without_stream) {
        (false, _) => String::new(),
        (true, none) if none.is_empty() => ", slice streams".to_owned(),
        (true, some) => format!(", slice streams except in the members with index {some:?}"),
    };
    println!("seed {}: {} replicas{streams}{slow}{quiet}", script.seed, script.replicas);
    script.steps.iter().for_each(|step| println!("  {step}"));
    script.last.iter().for_each(|action| println!("     last user {action:?}"));
}

/// Plays a script, and adds its coverage and its finding to the report. Returns `None` if the simulator failed.
fn play(args: &Args, script: &Script, lines: usize, report: &mut Report) -> Option<Outcome> {
    let seed = script.seed;
    report.add_seeds((seed, seed));
    match std::panic::catch_unwind(AssertUnwindSafe(|| run(script, lines))) {
        Ok(outcome) => {
            report.coverage.add(&outcome.coverage);
            if let Some(finding) = &outcome.finding {
                if args.stride.is_some() {
                    // The report of this process comes much later, or not at all if a later run does not end.
                    eprintln!("seed {seed}: {}: {}", finding.rule, finding.message);
                }
                report.findings.push(format!(
                    "seed {seed}: {}: {}\n  cargo xtask sim --seed {seed}{} replays it, --shrink {seed} makes it smaller",
                    finding.rule,
                    finding.message,
                    chosen(args)
                ));
            }
            Some(outcome)
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map_or("a panic", String::as_str);
            report.failures.push(format!("seed {seed}: the simulator failed: {text}"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Report;

    #[test]
    fn a_report_is_good_only_if_runs_ended_and_failures_are_never_allowed() {
        let report = |runs, findings: &[&str], failures: &[&str]| {
            let [findings, failures] =
                [findings, failures].map(|lines| lines.iter().map(ToString::to_string).collect());
            let mut report = Report { findings, failures, ..Report::default() };
            report.coverage.runs = runs;
            report
        };
        for (what, report, by_default, with_report) in [
            ("a run", report(1, &[], &[]), true, true),
            ("no run", report(0, &[], &[]), false, false),
            ("a finding", report(1, &["found"], &[]), false, true),
            ("a failure", report(1, &[], &["failed"]), false, false),
            ("both", report(1, &["found"], &["failed"]), false, false),
        ] {
            assert_eq!([report.is_good(false), report.is_good(true)], [by_default, with_report], "{what}");
        }
    }
}
