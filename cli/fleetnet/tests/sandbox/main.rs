//! Tests of the command `fleetnet sandbox`, called as a user does.

#![allow(clippy::unwrap_used)]

mod browser;
mod endings;
#[cfg(feature = "real")]
mod packets;
mod page;
mod pictures;
mod pods;
mod terminal;
mod usage_errors;
mod verdict;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Time limit for a sandbox in a test. Long enough for a busy machine.
const LIMIT: Duration = Duration::from_secs(300);

/// Timer that kills a sandbox after [`LIMIT`], so that its test fails instead of waiting.
struct Limit {
    passed: Arc<AtomicBool>,
    _running: SyncSender<()>,
}

impl Limit {
    fn of(child: &Child) -> Self {
        let (passed, pid) = (Arc::new(AtomicBool::new(false)), pid(child));
        let ((running, ended), is_passed) = (sync_channel(0), Arc::clone(&passed));
        std::thread::spawn(move || {
            if ended.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                is_passed.store(true, Ordering::Relaxed);
                kill_process(pid, Signal::KILL).unwrap();
            }
        });
        Self { passed, _running: running }
    }

    /// Fails if the time limit has passed. `what` names the event that the test waited for.
    fn check(&self, what: &str) {
        assert!(!self.passed.load(Ordering::Relaxed), "waited for {what}; it was killed after {LIMIT:?}");
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

fn sandbox(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetnet"));
    command.arg("sandbox").args(arguments).stdin(Stdio::null()).env_remove("RUST_LOG");
    command
}

fn run(arguments: &[&str]) -> Output {
    output(sandbox(arguments).stdout(Stdio::piped()))
}

fn output(command: &mut Command) -> Output {
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let limit = Limit::of(&child);
    let output = child.wait_with_output().unwrap();
    limit.check(&format!("the end of {command:?}"));
    output
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Returns the events that a run with `--json` printed.
fn events(output: &Output) -> Vec<Value> {
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

/// Runs the sandbox until its verdict, which must be `passed`. Returns the events of the run.
fn passes(arguments: &[&str]) -> Vec<Value> {
    let output = run(&[&["--once", "--json"], arguments].concat());
    let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {shown}");
    let events = events(&output);
    let verdict = &events.last().unwrap();
    assert_eq!((&verdict["event"], &verdict["passed"]), (&"verdict".into(), &true.into()), "{shown}");
    assert_eq!(verdict["imported"], true, "{shown}");
    events
}

#[test]
fn once_ends_well_and_tells_in_lines_what_happened() {
    let output = run(&["--once", "--changes", "4"]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}{}", text(&output.stderr));
    for part in [
        "starting a hub and 2 members on memkube, with the API fleet",
        "3 clusters and 3 agents run",
        "a change costs 1 write + 2 per importer; each except member-2 has a slice stream",
        "slice stream: p50 with stream ",
        "export work/app of member-1 is valid, without conflict",
        "import work/app in member-2 has 4 slices with 12 endpoints from member-1, member-2",
        "change 4: 10.2.0.104 of member-2",
        "latency member-1 -> member-2: p50 ",
        "latency member-2 -> itself: p50 ",
        "passed: exports, imports, derived Services, imported slices, and the hub are exactly as they should be (API fleet)",
    ] {
        assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
    }
    assert!(!shown.contains('\u{1b}'), "no terminal, no colours:\n{shown}");
    assert_eq!(text(&output.stderr), "");
}

/// Returns the lines without their times, and with `#` for each number or address.
fn without_numbers(lines: &str) -> Vec<String> {
    let number = regex::Regex::new(r"\d[\d.]*").unwrap();
    let rest = lines.lines().map(|line| line.split_once(' ').map_or(line, |(_, rest)| rest));
    rest.map(|line| number.replace_all(line, "#").into_owned()).collect()
}

#[test]
fn the_readme_has_lines_that_it_prints() {
    const README: &str = include_str!("../../../../README.md");
    let (_, sample) = README.split_once("With `--once`, the sandbox makes 10 changes").unwrap();
    let sample = without_numbers(sample.split("```").nth(1).unwrap().strip_prefix("text\n").unwrap());
    let output = run(&["--once"]);
    let shown = without_numbers(text(&output.stdout));
    assert!(sample.len() > 10, "{sample:#?}");
    for line in sample.iter().filter(|line| *line != "…") {
        assert!(shown.contains(line), "{line:?} is not in {shown:#?}");
    }
}

#[test]
fn a_change_costs_one_export_and_two_writes_for_each_importer() {
    let events = passes(&["--members", "3", "--changes", "6"]);
    assert_eq!(of_kind(&events, "running")[0]["agents"], 4);
    let changes = of_kind(&events, "change");
    assert_eq!(changes.len(), 6);
    for change in changes {
        assert_eq!(change["arrived"], 3, "{change}");
        assert_eq!(change["writes"]["total"], 7, "{change}");
        assert_eq!(change["writes"]["by_cluster"]["hub"], 4, "{change}");
        for member in ["member-1", "member-2", "member-3"] {
            assert_eq!(change["writes"]["by_cluster"][member], 1, "{change}");
        }
        for latency in ["with_stream_milliseconds", "without_stream_milliseconds"] {
            assert!(change[latency].as_f64().is_some_and(|it| it > 0.0), "{change}");
        }
    }
    assert_eq!(of_kind(&events, "running")[0]["streams"], serde_json::json!(["member-1", "member-2"]));
    let arrivals = of_kind(&events, "arrival");
    assert_eq!(arrivals.len(), 18);
    for arrival in arrivals {
        assert_eq!(arrival["slice_stream"], arrival["destination"] != "member-3", "{arrival}");
    }
    let streams = of_kind(&events, "slice_stream");
    let samples = |way: &str| streams[0][way]["samples"].as_u64();
    assert_eq!((samples("with_stream"), samples("without_stream")), (Some(12), Some(6)), "{streams:?}");
    let latencies = of_kind(&events, "latency");
    assert_eq!(latencies.len(), 9, "one for each pair of clusters");
    for latency in latencies {
        assert_eq!(latency["samples"], 2, "{latency}");
        assert!(latency["p50_milliseconds"].as_f64().unwrap() > 0.0, "{latency}");
        assert!(latency["p99_milliseconds"].is_null(), "two samples have no 99th percentile: {latency}");
        assert!(latency["max_milliseconds"].as_f64() >= latency["p50_milliseconds"].as_f64(), "{latency}");
    }
    let imports = of_kind(&events, "import");
    let import = imports.iter().rfind(|import| import["cluster"] == "member-3").unwrap();
    assert_eq!(import["from"], serde_json::json!(["member-1", "member-2", "member-3"]));
    assert_eq!((&import["slices"], &import["endpoints"]), (&6.into(), &18.into()));
}

#[test]
fn a_fleet_of_one_imports_from_itself() {
    let events = passes(&["--members", "1", "--changes", "2"]);
    let change = of_kind(&events, "change")[1];
    assert_eq!(change["writes"]["total"], 3);
    assert!(change["with_stream_milliseconds"].is_f64() && change["without_stream_milliseconds"].is_null(), "{change}");
}

fn steps(events: &[Value]) -> String {
    of_kind(events, "step").iter().map(|step| format!("{}\n", step["text"].as_str().unwrap())).collect()
}

#[test]
fn nothing_is_lost_while_the_hub_is_down() {
    let events = passes(&["--scenario", "hub-down"]);
    let hub: Vec<&Value> = of_kind(&events, "hub").iter().map(|hub| &hub["reachable"]).collect();
    assert_eq!(hub, [false, true]);
    let leases: Vec<&Value> = of_kind(&events, "lease").iter().map(|lease| &lease["held"]).collect();
    assert_eq!(leases, [false, true], "the hub agent waits for its Lease");
    assert_eq!(events.last().unwrap()["scenario"], "hub-down");
    let steps = steps(&events);
    assert!(steps.contains("none arrived, and all imports stay as they were"), "{steps}");
    assert!(steps.contains("all changes are everywhere"), "{steps}");
}

#[test]
fn the_successor_of_a_killed_agent_makes_good_what_was_missed() {
    let events = passes(&["--scenario", "agent-killed"]);
    let states: Vec<&Value> = of_kind(&events, "agent").iter().map(|agent| &agent["state"]).collect();
    assert_eq!(states, ["killed", "restarted"]);
    let leases: Vec<(&Value, &Value)> =
        of_kind(&events, "lease").iter().map(|it| (&it["agent"], &it["held"])).collect();
    let agent = &Value::from("member-agent of member-2");
    assert_eq!(leases, [(agent, &Value::Bool(false)), (agent, &Value::Bool(true))]);
    let steps = steps(&events);
    assert!(steps.contains("member-2 has caught up"), "{steps}");
}

#[test]
fn the_second_export_of_other_ports_shows_the_conflict() {
    let events = passes(&["--scenario", "conflict"]);
    let of_second = |export: &&&Value| export["cluster"] == "member-2" && export["service"] == "work/shop";
    let exports = of_kind(&events, "export");
    let conflicts: Vec<&Value> = exports.iter().filter(of_second).map(|export| &export["conflict"]).collect();
    assert!(conflicts.contains(&&Value::Bool(true)), "{conflicts:?}");
    assert_eq!(conflicts.last().unwrap(), &&Value::Bool(false));
    assert!(steps(&events).contains("the conflict is over"));
}

#[test]
fn a_storm_of_changes_arrives_for_no_more_writes_than_one_by_one() {
    let steps = steps(&passes(&["--scenario", "slice-storm"]));
    // The scenario makes 400 changes, 10 of each of 40 slices. A change costs 5 writes: 1 for the export, and 2 for
    // each of 2 importers. The agents may skip all changes of a slice except the last one, so the cost is between 40 *
    // 5 and 400 * 5 writes.
    let cost = |line: &str| -> Option<u64> {
        let (_, cost) = line.strip_prefix("400 changes in ")?.split_once(" ms, for ")?;
        cost.strip_suffix(" writes of 2000 one by one")?.parse().ok()
    };
    let costs: Vec<u64> = steps.lines().filter_map(cost).collect();
    assert!(matches!(costs[..], [200..=2000]), "{steps}");
}

#[test]
fn by_the_mcs_api_all_members_import_and_a_change_costs_the_same_writes() {
    let events = passes(&["--api", "multicluster", "--members", "3", "--changes", "6"]);
    assert_eq!(of_kind(&events, "starting")[0]["api"], "multicluster");
    let changes = of_kind(&events, "change");
    assert_eq!(changes.len(), 6);
    for change in changes {
        assert_eq!((&change["arrived"], &change["writes"]["total"]), (&3.into(), &7.into()), "{change}");
    }
    let imports = of_kind(&events, "import");
    let import = imports.iter().rfind(|import| import["cluster"] == "member-3").unwrap();
    assert_eq!((&import["valid"], &import["slices"], &import["endpoints"]), (&true.into(), &6.into(), &18.into()));
}

#[test]
fn by_the_mcs_api_both_exports_show_the_conflict_and_the_older_one_decides() {
    let events = passes(&["--api", "multicluster", "--scenario", "conflict"]);
    for cluster in ["member-1", "member-2"] {
        let of_cluster = |export: &&&Value| export["cluster"] == cluster && export["service"] == "work/shop";
        let exports = of_kind(&events, "export");
        let conflicts: Vec<&Value> = exports.iter().filter(of_cluster).map(|export| &export["conflict"]).collect();
        assert!(conflicts.contains(&&Value::Bool(true)), "{cluster}: {conflicts:?}");
        assert_eq!(conflicts.last().unwrap(), &&Value::Bool(false));
    }
    let steps = steps(&events);
    assert!(steps.contains("clients reach only member-1") && steps.contains("the conflict is over"), "{steps}");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Sandbox of a test that runs until it is stopped.
struct Running {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    limit: Limit,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = sandbox(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let limit = Limit::of(&child);
        Self { child, output, limit }
    }

    /// Reads lines of the sandbox's output until a line contains `part`. Returns this line.
    fn until(&mut self, part: &str) -> String {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            let read = self.output.read_line(&mut line).unwrap();
            self.limit.check(part);
            assert!(read > 0, "it ended before it told {part:?}");
        }
        line
    }

    /// Sends a signal to the sandbox. Returns its exit code and standard error.
    fn end(self, signal: Signal) -> (Option<i32>, String) {
        let (code, _, errors) = self.end_with_output(signal);
        (code, errors)
    }

    /// Sends a signal to the sandbox. Returns its exit code, the rest of its output, and standard error.
    fn end_with_output(mut self, signal: Signal) -> (Option<i32>, String, String) {
        kill_process(pid(&self.child), signal).unwrap();
        // Read the rest of the output, so that the process never blocks on a full pipe.
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).unwrap();
        let output = self.child.wait_with_output().unwrap();
        self.limit.check(&format!("its end after {signal:?}"));
        (output.status.code(), text(&rest).to_owned(), text(&output.stderr).to_owned())
    }
}
