//! The real kubectl.

use crate::limits::EVENTUALLY;
use anyhow::{Context as _, ensure};
use std::path::PathBuf;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;
use xtask::controlplane::{Invocation, Program, locate};

/// A kubectl that uses one cluster.
#[derive(Debug)]
pub struct Kubectl {
    program: Invocation,
    kubeconfig: PathBuf,
    /// Its caches.
    home: TempDir,
}

/// What kubectl said.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Outcome {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Kubectl {
    /// With a kubeconfig, which may still have to be written.
    ///
    /// # Errors
    /// Where the program is not to be had.
    pub async fn with(kubeconfig: PathBuf) -> anyhow::Result<Self> {
        let program = tokio::task::spawn_blocking(|| locate(Program::Kubectl)).await??;
        Ok(Self { program, kubeconfig, home: TempDir::with_prefix("fleetnet-kubectl-")? })
    }

    /// Runs it with arguments.
    ///
    /// # Errors
    /// Where it does not end.
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

    /// Runs it with the words of a line, which must succeed, and gives what it printed.
    ///
    /// # Errors
    /// Where it fails, or complains.
    pub async fn print(&self, line: &str) -> anyhow::Result<String> {
        let outcome = self.run(&line.split_whitespace().collect::<Vec<_>>(), "").await?;
        ensure!(outcome.code == 0 && outcome.err.is_empty(), "{line}: {outcome:?}");
        Ok(outcome.out)
    }

    /// The process, not started yet; what it prints is to be read from it.
    #[must_use]
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program.file);
        command.args(self.program.first_argument).args(words);
        command.env_clear().env("HOME", self.home.path()).env("KUBECONFIG", &self.kubeconfig);
        command.stdout(Stdio::piped()).kill_on_drop(true);
        command
    }
}
