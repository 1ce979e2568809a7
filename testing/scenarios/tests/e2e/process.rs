//! Tests of the harness's processes, each of which runs under a supervisor.

use anyhow::Context as _;
use harness::eventually::Deadline;
use harness::process::{Ended, Process, Signal, Spec};
use harness::run;
use std::path::Path;

fn shell(script: &str) -> Spec {
    Spec {
        name: "shell".to_owned(),
        file: Path::new("/bin/sh").to_path_buf(),
        arguments: vec!["-c".into(), script.into()],
        environment: Vec::new(),
        scratch: None,
    }
}

fn is_line(word: &str) -> impl FnMut(&str) -> Option<()> {
    move |line| (line == word).then_some(())
}

#[test]
fn a_line_is_found_whether_it_came_before_or_comes_later() -> anyhow::Result<()> {
    run(async {
        let process = Process::start(shell("echo one; sleep 0.05; echo two >&2; exec sleep 1000")).await?;
        process.log().find("two", is_line("two")).await?;
        process.log().find("one", is_line("one")).await?;
        assert_eq!(process.log().lines(), ["one", "two"]);
        process.end().await
    })
}

#[test]
fn a_line_that_never_comes_is_reported_as_soon_as_the_process_has_ended() -> anyhow::Result<()> {
    run(async {
        let process = Process::start(shell("echo something else")).await?;
        let error = process.log().find("where it listens", is_line("x")).await.err().context("no error")?.to_string();
        assert_eq!(error, "shell ended and did not say where it listens\n--- last lines of shell\n    something else");
        process.end().await
    })
}

#[test]
fn a_kill_takes_what_the_process_had_started_with_it() -> anyhow::Result<()> {
    run(async {
        let process = Process::start(shell("sleep 1000 & echo $!; wait")).await?;
        let child: i32 = process.log().find("its child", |line| line.parse().ok()).await?;
        process.signal(Signal::Kill).await?;
        assert_eq!(process.wait().await?, Ended::Killed(9));
        // The log is complete when its last writers have closed their output: the child and the supervisor. `end` ends
        // both.
        let log = process.log().clone();
        process.end().await?;
        log.ended().await?;
        // The child closes its output before it has ended, so wait until the child has ended too.
        let deadline = Deadline::start();
        while Path::new(&format!("/proc/{child}")).exists() && !zombie(child) {
            deadline.pause(|| format!("the child {child} still runs")).await?;
        }
        Ok(())
    })
}

fn zombie(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

#[test]
fn a_missing_program_is_named() -> anyhow::Result<()> {
    run(async {
        let missing = Spec { file: Path::new("/no/such/program").to_path_buf(), ..shell("") };
        let error = Process::start(missing).await.err().context("no error")?.to_string();
        assert!(error.contains("cannot start /no/such/program"), "{error}");
        Ok(())
    })
}
