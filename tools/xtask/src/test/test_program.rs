//! Test programs that Cargo builds, and their tests.

use anyhow::{Context as _, ensure};
use programs::cargo;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Test program that Cargo built.
#[derive(Debug)]
pub(super) struct TestProgram {
    /// Name of the target in Cargo, for example `rules` or `e2e`.
    pub(super) name: String,
    /// Folder of the program's package, in which its tests run.
    folder: PathBuf,
    executable: PathBuf,
    /// Paths of the program's tests, in the order in which they start.
    pub(super) tests: Vec<String>,
}

/// Builds the test programs of these targets of the workspace. Builds nothing without targets.
///
/// # Errors
/// If the targets do not compile.
pub(super) fn build(targets: &[&str]) -> anyhow::Result<Vec<TestProgram>> {
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    let mut command =
        cargo::command(&["test", "--workspace", "--no-run", "--quiet", "--message-format=json-render-diagnostics"]);
    command.args(["--features", cargo::FEATURES]).args(targets).stderr(Stdio::inherit());
    let output = command.output().context("cannot call cargo")?;
    ensure!(output.status.success(), "the tests do not compile");
    let messages = String::from_utf8(output.stdout).context("cargo's messages are not text")?;
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let programs =
        messages.filter(|message| message["profile"]["test"] == true).filter_map(|message| program(&message));
    programs.map(TestProgram::listed).collect()
}

fn program(message: &Value) -> Option<TestProgram> {
    let (name, manifest) = (message["target"]["name"].as_str()?, Path::new(message["manifest_path"].as_str()?));
    let (folder, executable) = (manifest.parent()?.to_owned(), message["executable"].as_str()?.into());
    Some(TestProgram { name: name.to_owned(), folder, executable, tests: Vec::new() })
}

impl TestProgram {
    /// Returns a command that runs the program as Cargo does.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder).stdin(Stdio::null());
        command
    }

    fn listed(mut self) -> anyhow::Result<Self> {
        let context = || format!("{} does not list its tests", self.executable.display());
        let output = self.command().args(["--list", "--format", "terse"]).output().with_context(context)?;
        ensure!(output.status.success(), context());
        let tests = String::from_utf8(output.stdout).with_context(context)?;
        self.tests = tests.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect();
        Ok(self)
    }
}
