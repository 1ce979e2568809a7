//! The program `fleetnet` in a test.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::timeout;

/// Time limit of one command. Long enough for a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// What a command printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ended {
    /// Output as JSON, which must be a document of this kind.
    pub(crate) fn json(&self, kind: &str) -> Value {
        let value: Value = serde_json::from_str(&self.output).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert_eq!((&value["apiVersion"], &value["kind"]), (&"cli.fleetnet/v1".into(), &kind.into()), "{self:?}");
        value
    }

    /// Fails if the exit code is another one.
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.output, self.errors);
        self
    }
}

/// Runs a command with an empty environment.
pub(crate) async fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Ended {
    run_in(Path::new("."), &[], arguments).await
}

/// Runs a command, with these flags and further words.
pub(crate) async fn run_with(verb: &[&str], flags: &[String], more: &[&str]) -> Ended {
    let arguments = verb.iter().chain(more).map(|it| (*it).to_owned());
    run(arguments.chain(flags.iter().cloned())).await
}

/// Runs a command in a folder, with these variables only.
pub(crate) async fn run_in<A: AsRef<OsStr>>(
    folder: &Path,
    variables: &[(&str, &str)],
    arguments: impl IntoIterator<Item = A>,
) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetnet"));
    command.args(arguments).current_dir(folder).env_clear().envs(variables.iter().copied());
    let child = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(LIMIT, child).await.unwrap_or_else(|_| panic!("waited {LIMIT:?} for {command:?}")).unwrap();
    Ended {
        code: output.status.code().unwrap(),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs a command until its output has a text this many times, then interrupts it as Ctrl-C does.
pub(crate) async fn run_for(
    arguments: impl IntoIterator<Item = String>,
    text: &str,
    times: usize,
    limit: Duration,
) -> Ended {
    run_for_in(Path::new("."), &[], arguments, text, times, limit).await
}

/// As [`run_for`], in a folder and with these variables only.
pub(crate) async fn run_for_in(
    folder: &Path,
    variables: &[(&str, &str)],
    arguments: impl IntoIterator<Item = String>,
    text: &str,
    times: usize,
    limit: Duration,
) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetnet"));
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut output = Vec::new();
    let shown = async {
        let mut piece = [0; 1024];
        loop {
            let read = stdout.read(&mut piece).await.unwrap();
            output.extend_from_slice(&piece[..read]);
            if read == 0 || String::from_utf8_lossy(&output).matches(text).count() >= times {
                break;
            }
        }
    };
    timeout(limit, shown).await.unwrap_or_else(|_| panic!("waited {limit:?} for {times} times {text:?}"));
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let ended = timeout(limit, child.wait_with_output()).await.expect("waited for the end after Ctrl-C").unwrap();
    let (code, errors) = (ended.status.code().unwrap(), String::from_utf8(ended.stderr).unwrap());
    let output = String::from_utf8(output).unwrap();
    assert!(output.matches(text).count() >= times, "{output}{errors}");
    Ended { code, output, errors }
}
