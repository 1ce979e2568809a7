//! Calls of the real kubectl.

use crate::helm::Helm;
use crate::limits::{CONTROL_PLANE_START, EVENTUALLY};
pub use crate::outcome::Outcome;
use anyhow::{Context as _, ensure};
use programs::control_plane::{Invocation, Program, locate};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

/// kubectl with the kubeconfig of one cluster.
#[derive(Debug)]
pub struct Kubectl {
    program: Invocation,
    /// Further programs that scripts may call, by name.
    others: Vec<(&'static str, PathBuf)>,
    kubeconfig: PathBuf,
    /// Home directory of kubectl, for its caches.
    home: TempDir,
}

impl Kubectl {
    /// Finds the kubectl program. Its calls use the kubeconfig at this path; the file may be created later.
    pub async fn with(kubeconfig: PathBuf) -> anyhow::Result<Self> {
        let program = tokio::task::spawn_blocking(|| locate(Program::Kubectl)).await??;
        Ok(Self { program, others: Vec::new(), kubeconfig, home: TempDir::with_prefix("fleetnet-kubectl-")? })
    }

    /// Lets scripts call Helm too.
    #[must_use]
    pub fn and_helm(self, helm: &Helm) -> Self {
        self.and("helm", helm.program().to_owned())
    }

    /// Lets scripts call the command line, also as a plugin of kubectl.
    #[must_use]
    pub fn and_cli(self, program: &Path) -> Self {
        self.and("fleetnet", program.to_owned()).and("kubectl-fleetnet", program.to_owned())
    }

    /// Lets scripts call this program by this name.
    fn and(mut self, name: &'static str, program: PathBuf) -> Self {
        self.others.push((name, program));
        self
    }

    /// Runs kubectl with these arguments and this standard input.
    pub async fn run(&self, words: &[&str], input: &str) -> anyhow::Result<Outcome> {
        let mut child = self.command(words).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut stdin = child.stdin.take().context("it was asked for")?;
        stdin.write_all(input.as_bytes()).await?;
        drop(stdin);
        let ended = timeout(EVENTUALLY, child.wait_with_output()).await;
        let output = ended.with_context(|| format!("kubectl {words:?} does not end"))??;
        Ok(Outcome {
            code: output.status.code().context("kubectl was killed")?,
            out: String::from_utf8(output.stdout)?,
            err: String::from_utf8(output.stderr)?,
        })
    }

    /// Runs kubectl with the words of a line as arguments. Fails if kubectl fails or prints a warning. Returns
    /// kubectl's output.
    pub async fn print(&self, line: &str) -> anyhow::Result<String> {
        let outcome = self.run(&line.split_whitespace().collect::<Vec<_>>(), "").await?;
        ensure!(outcome.code == 0 && outcome.err.is_empty(), "{line}: {outcome:?}");
        Ok(outcome.out)
    }

    /// Runs commands as a user types them: with bash, in the project's folder. Returns their output.
    ///
    /// # Errors
    /// If a command fails or prints a warning, or the commands do not end in time.
    pub async fn script(&self, commands: &str) -> anyhow::Result<String> {
        let programs = self.home.path().join("programs");
        fs::create_dir_all(&programs)?;
        let kubectl = (self.program.file.as_path(), self.program.first_argument.unwrap_or_default());
        let others = self.others.iter().map(|(name, file)| (*name, (file.as_path(), "")));
        for (name, (file, first_argument)) in [("kubectl", kubectl)].into_iter().chain(others) {
            let script = format!("#!/bin/sh\nexec '{}' {first_argument} \"$@\"\n", file.display());
            programs::write_script(&programs.join(name), &script)?;
        }
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", commands]).current_dir(programs::root()).env_clear();
        bash.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
        bash.env("HOME", self.home.path()).env("KUBECONFIG", &self.kubeconfig);
        let output = timeout(CONTROL_PLANE_START, bash.stdin(Stdio::null()).kill_on_drop(true).output());
        let output = output.await.with_context(|| format!("these commands do not end: {commands}"))??;
        let (out, err) = (String::from_utf8(output.stdout)?, String::from_utf8_lossy(&output.stderr).into_owned());
        ensure!(output.status.success(), "{commands}: {:?}\n{out}{err}", output.status);
        ensure!(![&out, &err].iter().any(|output| output.contains("Warning:")), "{commands}:\n{out}{err}");
        Ok(out)
    }

    /// Returns the command to start kubectl with these arguments. The caller starts it and reads its output.
    #[must_use]
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program.file);
        command.args(self.program.first_argument).args(words);
        command.env_clear().env("HOME", self.home.path()).env("KUBECONFIG", &self.kubeconfig);
        command.stdout(Stdio::piped()).kill_on_drop(true);
        command
    }
}
