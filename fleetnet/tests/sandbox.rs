//! The binary, as a user calls it: `fleetnet sandbox`.

#![allow(clippy::unwrap_used)]

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tokio::time::Instant;

fn sandbox(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetnet"));
    command.arg("sandbox").args(arguments).stdin(Stdio::null()).env_remove("RUST_LOG");
    command
}

fn run(arguments: &[&str]) -> Output {
    sandbox(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// What a run with `--json` told.
fn events(output: &Output) -> Vec<Value> {
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

/// Runs to a verdict and expects it to be good.
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
    for told in [
        "starting a hub and 2 members on memkube",
        "3 clusters and 3 agents run",
        "export work/app of member-1 is valid, without conflict",
        "import work/app in member-2 has 4 slices with 12 endpoints from member-1, member-2",
        "change 4: 10.2.0.104 of member-2",
        "latency member-1 -> member-2: p50 ",
        "passed: all that is exported is imported, and nothing else",
    ] {
        assert!(shown.contains(told), "{told:?} is not in:\n{shown}");
    }
    assert!(!shown.contains('\u{1b}'), "no terminal, no colours:\n{shown}");
    assert_eq!(text(&output.stderr), "");
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
    }
    assert_eq!(of_kind(&events, "arrival").len(), 18);
    let latencies = of_kind(&events, "latency");
    assert_eq!(latencies.len(), 9, "one for each pair of clusters");
    for latency in latencies {
        assert_eq!(latency["samples"], 2, "{latency}");
        assert!(latency["p50_milliseconds"].as_f64().unwrap() > 0.0, "{latency}");
        assert!(latency["p99_milliseconds"].as_f64() >= latency["p50_milliseconds"].as_f64(), "{latency}");
    }
    let imports = of_kind(&events, "import");
    let import = imports.iter().rfind(|import| import["cluster"] == "member-3").unwrap();
    assert_eq!(import["from"], serde_json::json!(["member-1", "member-2", "member-3"]));
    assert_eq!((&import["slices"], &import["endpoints"]), (&6.into(), &18.into()));
}

#[test]
fn a_fleet_of_one_imports_from_itself() {
    let events = passes(&["--members", "1", "--changes", "2"]);
    assert_eq!(of_kind(&events, "change")[1]["writes"]["total"], 3);
}

fn steps(events: &[Value]) -> String {
    of_kind(events, "step").iter().map(|step| format!("{}\n", step["text"].as_str().unwrap())).collect()
}

#[test]
fn nothing_is_lost_while_the_hub_is_down() {
    let steps = steps(&passes(&["--scenario", "hub-down"]));
    assert!(steps.contains("none arrived, and all that was imported is still there"), "{steps}");
    assert!(steps.contains("all changes are everywhere"), "{steps}");
}

#[test]
fn the_successor_of_a_killed_agent_makes_good_what_was_missed() {
    let events = passes(&["--scenario", "agent-killed"]);
    let states: Vec<&Value> = of_kind(&events, "agent").iter().map(|agent| &agent["state"]).collect();
    assert_eq!(states, ["killed", "restarted"]);
    let steps = steps(&events);
    assert!(steps.contains("member-2 has caught up"), "{steps}");
}

#[test]
fn the_second_export_of_other_ports_is_told_of_the_conflict() {
    let events = passes(&["--scenario", "conflict"]);
    let of_second = |export: &&&Value| export["cluster"] == "member-2" && export["service"] == "work/shop";
    let exports = of_kind(&events, "export");
    let conflicts: Vec<&Value> = exports.iter().filter(of_second).map(|export| &export["conflict"]).collect();
    assert!(conflicts.contains(&&Value::Bool(true)), "{conflicts:?}");
    assert_eq!(conflicts.last().unwrap(), &&Value::Bool(false));
    assert!(steps(&events).contains("the conflict is over"));
}

#[test]
fn a_storm_of_changes_arrives_for_fewer_writes_than_one_by_one() {
    let steps = steps(&passes(&["--scenario", "slice-storm"]));
    assert!(steps.contains("400 changes in "), "{steps}");
}

/// Expects a refusal on one line with exit code 2.
fn refuses(arguments: &[&str], named: &str) {
    let output = run(arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
    assert!(error.starts_with("error: ") && error.contains(named), "{arguments:?}: {error}");
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
}

#[test]
fn what_cannot_be_is_refused_on_one_line() {
    refuses(&["--members", "0"], "--members");
    refuses(&["--members", "10000"], "--members");
    refuses(&["--scenario", "flood"], "hub-down, agent-killed, conflict, slice-storm");
    refuses(&["--scenario", "conflict", "--members", "1"], "at least 2");
    refuses(&["--port", "8001"], "--kubeconfigs");
    refuses(&["--changes-per-second", "-1"], "--changes-per-second");
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_and_nothing_is_left() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    std::fs::write(&file, "").unwrap();
    refuses(&["--kubeconfigs", file.to_str().unwrap()], "cannot make this folder");
    refuses(&["--kubeconfigs", file.join("below").to_str().unwrap()], "cannot make this folder");
    refuses(&["--kubeconfigs", scratch.path().join("no/parent").to_str().unwrap()], "cannot make this folder");
    assert_eq!(names(scratch.path()), ["file"]);
}

#[test]
fn a_kubeconfig_that_is_there_already_is_not_touched() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("member-2.kubeconfig"), "mine").unwrap();
    refuses(&["--kubeconfigs", scratch.path().to_str().unwrap()], "member-2.kubeconfig is there already");
    assert_eq!(names(scratch.path()), ["member-2.kubeconfig"]);
    assert_eq!(std::fs::read_to_string(scratch.path().join("member-2.kubeconfig")).unwrap(), "mine");
}

#[test]
fn a_port_that_is_taken_is_refused_and_nothing_is_left() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("configs");
    refuses(&["--kubeconfigs", folder.to_str().unwrap(), "--port", &port], &format!("127.0.0.1:{port}"));
    assert_eq!(names(scratch.path()), Vec::<String>::new());
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A sandbox that runs until it is told to stop.
struct Running {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = sandbox(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// Reads on until a line has this in it.
    fn until(&mut self, part: &str) {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended before it told {part:?}");
        }
    }

    /// Signals it, and tells its exit code and what it complained of.
    fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        // It is never blocked on a pipe that nobody reads.
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).unwrap();
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), text(&output.stderr).to_owned())
    }
}

#[test]
fn an_interrupt_ends_it_at_any_point() {
    for told in ["\"starting\"", "\"running\"", "\"change\""] {
        let mut running = Running::start(&["--json", "--members", "3"]);
        running.until(told);
        assert_eq!(running.end(Signal::INT), (Some(0), String::new()), "after {told}");
    }
    let mut running = Running::start(&["--json", "--once", "--scenario", "hub-down"]);
    running.until("the hub is cut off");
    assert_eq!(running.end(Signal::INT), (Some(130), String::new()), "no verdict, so no 0");
    let mut running = Running::start(&["--json"]);
    running.until("\"change\"");
    assert_eq!(running.end(Signal::TERM), (Some(0), String::new()));
}

#[test]
fn an_interrupt_takes_the_kubeconfigs_and_the_ports_with_it() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("configs");
    for told in ["\"starting\"", "\"change\""] {
        let mut running = Running::start(&["--json", "--kubeconfigs", folder.to_str().unwrap()]);
        running.until(told);
        assert_eq!(names(&folder), ["hub.kubeconfig", "member-1.kubeconfig", "member-2.kubeconfig"]);
        let kubeconfig = std::fs::read_to_string(folder.join("hub.kubeconfig")).unwrap();
        assert_eq!(running.end(Signal::INT), (Some(0), String::new()), "after {told}");
        assert_eq!(names(scratch.path()), Vec::<String>::new(), "after {told}");
        if let Some((_, address)) = kubeconfig.split_once("https://") {
            let address = address.split(['"', '\n']).next().unwrap();
            assert!(TcpStream::connect(address).is_err(), "{address} is still open");
        }
    }
}

#[test]
fn twenty_members_need_less_than_256_mebibytes_and_say_something_at_once() {
    let begun = Instant::now();
    let mut running = Running::start(&["--json", "--members", "20"]);
    running.until("\"starting\"");
    assert!(begun.elapsed() < Duration::from_secs(2), "the first words came after {:?}", begun.elapsed());
    running.until("\"event\":\"change\"");
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kibibytes < 256 * 1024, "{line}");
    assert_eq!(running.end(Signal::INT), (Some(0), String::new()));
}

/// Runs on a terminal of its own until a picture has this in it, and tells all that was written to the terminal.
fn on_a_terminal(until: &str, environment: &[(&str, &str)]) -> String {
    let mut keyboard = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap());
    grantpt(&keyboard).unwrap();
    unlockpt(&keyboard).unwrap();
    let name = ptsname(&keyboard, Vec::new()).unwrap().into_string().unwrap();
    let screen = File::options().read(true).write(true).open(name).unwrap();
    let mut command = sandbox(&["--changes-per-second", "20"]);
    let mut child = command
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .envs(environment.iter().copied())
        .stdout(screen)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Its copy of the screen would keep the terminal open.
    drop(command);
    let (mut written, mut piece, mut asked) = (Vec::new(), [0; 4096], false);
    // The end is an error here: the last who had the screen open is gone.
    while let Ok(bytes @ 1..) = keyboard.read(&mut piece) {
        written.extend_from_slice(&piece[..bytes]);
        if !asked && String::from_utf8_lossy(&written).contains(until) {
            let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
            kill_process(pid, Signal::INT).unwrap();
            asked = true;
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    String::from_utf8(written).unwrap()
}

#[test]
fn a_terminal_shows_a_live_picture_and_is_given_back() {
    let written = on_a_terminal("change 3:", &[]);
    let (before, after) = written.split_once("\u{1b}[?25h\u{1b}[?1049l").expect("the first screen comes back");
    assert!(before.starts_with("\u{1b}[?1049h\u{1b}[?25l"), "{before:?}");
    for part in ["\u{1b}[1mEXPORTS\u{1b}[0m", "\u{1b}[1mIMPORTS\u{1b}[0m", "member-1 -> member-2"] {
        assert!(before.contains(part), "{part:?} is not in {before:?}");
    }
    assert!(after.contains("writes for a change") && !after.contains('\u{1b}'), "{after:?}");
}

#[test]
fn no_color_is_respected() {
    let written = on_a_terminal("change 1:", &[("NO_COLOR", "1")]);
    assert!(written.contains("EXPORTS"));
    assert!(!written.contains("\u{1b}[1m") && !written.contains("\u{1b}[32m"), "{written:?}");
}

/// An imported slice that nobody exports, as a broken agent might leave it behind.
fn foreign_slice() -> EndpointSlice {
    let slice = serde_json::json!({
        "metadata": {"name": "foreign", "labels": {"kubernetes.io/service-name": "work-app"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.9.9.9"]}],
    });
    serde_json::from_value(slice).unwrap()
}

#[test]
fn what_is_imported_wrongly_is_told_and_ends_it_with_1() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().to_str().unwrap();
    let slowly = ["--once", "--json", "--changes", "30", "--changes-per-second", "10", "--kubeconfigs", folder];
    let mut running = Running::start(&slowly);
    running.until("\"event\":\"change\"");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let kubeconfig = Kubeconfig::read_from(scratch.path().join("member-2.kubeconfig")).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let slices = Api::namespaced(kube::Client::try_from(config).unwrap(), "fleet-system");
        slices.create(&PostParams::default(), &foreign_slice()).await.unwrap();
    });
    running.until("\"event\":\"cost\"");
    let mut verdict = String::new();
    running.output.read_line(&mut verdict).unwrap();
    let verdict: Value = serde_json::from_str(&verdict).unwrap();
    assert_eq!((&verdict["passed"], &verdict["imported"]), (&false.into(), &false.into()));
    let wrong = "work/app in member-2 has 13 endpoints of 12: missing none, outdated 10.9.9.9";
    assert_eq!(verdict["wrong"], serde_json::json!([wrong]));
    assert_eq!(running.child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_reader_that_goes_away_ends_it() {
    let mut running = Running::start(&["--json"]);
    running.until("\"change\"");
    let Running { child, output } = running;
    drop(output);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}
