//! Calls of programs of the machine.

use crate::limits::COMMAND;
use anyhow::{Context as _, ensure};
use harness::process::Spec;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Runs a program with this input, and returns its output.
///
/// # Errors
/// If the program fails, or has not ended within [`COMMAND`].
pub(crate) async fn run(words: &[&str], input: &str) -> anyhow::Result<String> {
    let called = words.join(" ");
    let (program, arguments) = words.split_first().context("a command has a program")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().with_context(|| format!("cannot run `{called}`"))?;
    let mut feed = child.stdin.take().context("a pipe that was asked for is not there")?;
    let ended = async {
        feed.write_all(input.as_bytes()).await?;
        drop(feed);
        child.wait_with_output().await
    };
    let output = tokio::time::timeout(COMMAND, ended).await;
    let output = output.with_context(|| format!("`{called}` has not ended in {COMMAND:?}"))??;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{called}` failed ({}): {}\n{input}", output.status, errors.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs commands of `ip` in a network namespace; `None` for the namespace of this process.
pub(crate) async fn ip(namespace: Option<&str>, commands: &[String]) -> anyhow::Result<()> {
    let mut words = vec!["ip"];
    words.extend(namespace.iter().flat_map(|namespace| ["-n", *namespace]));
    words.extend(["-batch", "-"]);
    run(&words, &(commands.join("\n") + "\n")).await.map(drop)
}

/// Runs a program in a network namespace with this input.
pub(crate) async fn run_in(namespace: &str, words: &[&str], input: &str) -> anyhow::Result<()> {
    let enter = format!("--net={}", namespace_file(namespace));
    run(&[&["nsenter", &enter], words].concat(), input).await.map(drop)
}

/// Returns a process in a network namespace. Its environment is empty except for PATH.
pub(crate) fn process_in(namespace: &str, name: String, program: PathBuf, more: Vec<OsString>) -> Spec {
    let enter = format!("--net={}", namespace_file(namespace)).into();
    let arguments = [enter, program.into_os_string()].into_iter().chain(more).collect();
    Spec { name, file: "nsenter".into(), arguments, environment: Vec::new(), scratch: None }
}

/// Makes a network namespace with this name.
pub(crate) async fn add_namespace(name: &str) -> anyhow::Result<()> {
    run(&["ip", "netns", "add", name], "").await?;
    ip(Some(name), &["link set lo up".to_owned()]).await
}

/// Returns the file that stands for a network namespace.
pub(crate) fn namespace_file(name: &str) -> String {
    format!("/run/netns/{name}")
}
