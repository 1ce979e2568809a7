//! Runs one test program, and records which of its tests are running and how long each test takes.

use super::test_program::TestProgram;
use crate::limited;
use crate::stopwatch::{Stopwatch, human};
use anyhow::{Context as _, bail, ensure};
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Time limit for a test program to end after its last test.
const END: Duration = Duration::from_secs(60);
/// Interval at which this command checks whether a silent test program still runs.
const LOOK: Duration = Duration::from_secs(1);
/// Environment variable with the file to which end-to-end tests write their own times. A test's own time excludes the
/// wait for a free fleet.
const TIMES_VARIABLE: &str = "FLEETNET_TEST_TIMES";

/// Settings for the run of a test program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner<'a> {
    /// Number of tests to run in parallel, at least two. With one thread, libtest prints the name of a test when the
    /// test starts, but this command expects the name when the test ends.
    pub(super) threads: usize,
    /// Time without a finished test after which the program is ended.
    pub(super) silence: Duration,
    /// Folder for the times that the tests of each program measure themselves.
    pub(super) times: Option<&'a Path>,
    /// Additional environment variables for the program.
    pub(super) variables: &'a [(&'a str, &'a str)],
}

/// Results of the tests of one program.
#[derive(Debug, Default)]
pub(super) struct Played {
    pub(super) times: BTreeMap<String, Duration>,
    pub(super) failed: Vec<String>,
}

/// Runs these tests of a program.
///
/// # Errors
/// If the program cannot be run, a test hangs, or a test was not run. A failed test is not an error.
pub(super) fn play(program: &TestProgram, tests: &[&str], manner: Manner<'_>) -> anyhow::Result<Played> {
    let name = &program.name;
    println!("\n{name}: {} of {} tests", tests.len(), program.tests.len());
    let mut command = program.command();
    command.args(["--test-threads", &manner.threads.to_string()]).stdout(Stdio::piped());
    command.envs(manner.variables.iter().copied());
    if tests.len() < program.tests.len() {
        command.arg("--exact").args(tests);
    }
    let times = manner.times.map(|folder| folder.join(name));
    if let Some(times) = &times {
        forget(times)?;
        command.env(TIMES_VARIABLE, times);
    }
    let mut child = command.spawn().with_context(|| format!("cannot run {name}"))?;
    let output = child.stdout.take().context("a pipe that was asked for")?;
    let mut progress = Progress::begin(tests, manner.threads);
    let mut played = Played::default();
    follow(&mut child, output, &mut progress, &mut played, manner.silence).with_context(|| name.clone())?;
    let status = limited::wait(&mut child, END)?.with_context(|| format!("{name} does not end after its last test"))?;
    let left = progress.left();
    ensure!(left.is_empty(), "{name} ended ({status}) before these tests did: {}", left.join(", "));
    ensure!(status.success() || !played.failed.is_empty(), "{name} ended with {status}, and no test failed");
    if let Some(times) = times {
        played.times.extend(own_times(&times)?);
    }
    Ok(played)
}

/// Removes a file that an earlier run may have left.
fn forget(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        outcome => outcome.with_context(|| format!("cannot remove {}", path.display())),
    }
}

/// Reads the output of a test program until it ends.
fn follow(
    child: &mut Child,
    output: ChildStdout,
    progress: &mut Progress<'_>,
    played: &mut Played,
    silence: Duration,
) -> anyhow::Result<()> {
    let (lines, stopwatch) = (lines(output), Stopwatch::start());
    let mut last = Duration::ZERO;
    loop {
        match lines.recv_timeout(LOOK) {
            Ok(line) => {
                println!("{line}");
                if let Some((test, passed)) = outcome(&line) {
                    last = stopwatch.elapsed();
                    played.times.insert(test.to_owned(), progress.ended(test, last));
                    if !passed {
                        played.failed.push(test.to_owned());
                    }
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            // The program has ended, so stop reading. A child process that it left behind still keeps its output open.
            Err(RecvTimeoutError::Timeout) if child.try_wait().is_ok_and(|ended| ended.is_some()) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                if stopwatch.elapsed().saturating_sub(last) > silence {
                    child.kill().context("cannot end it")?;
                    let running = progress.running(stopwatch.elapsed());
                    bail!("no test has ended for {}. These have begun and not ended: {running}", human(silence));
                }
            }
        }
    }
}

/// Returns a channel with the lines that a test program prints, until it ends.
fn lines(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = sync_channel(1);
    std::thread::spawn(move || {
        let lines = BufReader::new(output).split(b'\n').map_while(Result::ok);
        for line in lines {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Parses a line that reports the end of a test. Returns the test, and true if it passed. An ignored test did not pass.
fn outcome(line: &str) -> Option<(&str, bool)> {
    let (test, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let test = test.strip_suffix(" - should panic").unwrap_or(test);
    match outcome {
        "ok" => Some((test, true)),
        _ if outcome.starts_with("FAILED") || outcome.starts_with("ignored") => Some((test, false)),
        _ => None,
    }
}

/// Tests of a program that are running or waiting. libtest reports only the end of each test. But it starts the tests
/// in order, and starts the next test as soon as a running test ends. So this command knows which tests run.
struct Progress<'a> {
    waiting: VecDeque<&'a str>,
    /// Tests that are running, with their start times.
    running: Vec<(&'a str, Duration)>,
}

impl<'a> Progress<'a> {
    fn begin(tests: &[&'a str], threads: usize) -> Self {
        let (running, waiting) = tests.split_at(threads.min(tests.len()));
        Self {
            waiting: waiting.iter().copied().collect(),
            running: running.iter().map(|test| (*test, Duration::ZERO)).collect(),
        }
    }

    /// Records the end of a test and returns its duration.
    fn ended(&mut self, test: &str, now: Duration) -> Duration {
        let Some(index) = self.running.iter().position(|(running, _)| *running == test) else {
            self.waiting.retain(|waiting| *waiting != test);
            return Duration::ZERO;
        };
        let (_, began) = self.running.remove(index);
        self.running.extend(self.waiting.pop_front().map(|next| (next, now)));
        now.saturating_sub(began)
    }

    fn running(&self, now: Duration) -> String {
        let running = self.running.iter();
        let running = running.map(|(test, began)| format!("\n  {test}, {} ago", human(now.saturating_sub(*began))));
        running.collect()
    }

    /// Returns all tests that have not ended, running or not.
    fn left(&self) -> Vec<&'a str> {
        self.running.iter().map(|(test, _)| *test).chain(self.waiting.iter().copied()).collect()
    }
}

/// Reads the times that tests measured themselves, from lines of `<seconds> <test>`. Adds up the times if a test has
/// several lines.
fn own_times(path: &Path) -> anyhow::Result<BTreeMap<String, Duration>> {
    let mut times = BTreeMap::new();
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    for line in text.lines() {
        let (seconds, test) = line.split_once(' ').with_context(|| format!("{line:?} is not a time of a test"))?;
        let time = Duration::try_from_secs_f64(seconds.parse()?).context(seconds.to_owned())?;
        *times.entry(test.to_owned()).or_default() += time;
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::{Progress, outcome, own_times};
    use std::collections::BTreeMap;
    use std::time::Duration;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_test_s_time_runs_from_the_end_of_the_one_that_made_room_for_it() {
        let mut progress = Progress::begin(&["a", "b", "c", "d"], 2);
        assert_eq!(progress.ended("b", seconds(3)), seconds(3));
        assert_eq!(progress.ended("c", seconds(5)), seconds(2));
        assert_eq!(progress.running(seconds(9)), "\n  a, 9.0 s ago\n  d, 4.0 s ago");
        assert_eq!(progress.left(), ["a", "d"]);
        assert_eq!(progress.ended("a", seconds(10)), seconds(10));
        assert_eq!(progress.ended("d", seconds(11)), seconds(6));
        assert!(progress.left().is_empty());
    }

    #[test]
    fn only_the_end_of_a_test_is_an_outcome() {
        assert_eq!(outcome("test rules::a ... ok"), Some(("rules::a", true)));
        assert_eq!(outcome("test rules::a ... FAILED"), Some(("rules::a", false)));
        assert_eq!(outcome("test rules::a - should panic ... ok"), Some(("rules::a", true)));
        assert_eq!(outcome("test rules::a ... ignored, too slow"), Some(("rules::a", false)));
        for line in
            ["running 3 tests", "test rules::a has been running for over 60 seconds", "test result: ok. 3 passed"]
        {
            assert_eq!(outcome(line), None, "{line}");
        }
    }

    #[test]
    fn the_parts_of_a_test_s_time_add_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("times");
        assert_eq!(own_times(&file).expect("no times"), BTreeMap::new());
        std::fs::write(&file, "1.500 a::b\n2.000 c\n0.250 a::b\n").expect("written");
        let times = [("a::b".to_owned(), Duration::from_millis(1750)), ("c".to_owned(), seconds(2))];
        assert_eq!(own_times(&file).expect("times"), times.into());
    }
}
