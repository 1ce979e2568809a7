//! Calls of the real Helm.

use crate::fleet::manifests;
use crate::limits::EVENTUALLY;
use crate::outcome::Outcome;
use crate::watchdog;
use anyhow::{Context as _, ensure};
use kube::core::DynamicObject;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

/// Helm, in the folder of the charts.
#[derive(Debug)]
pub struct Helm {
    program: PathBuf,
    /// Home directory of Helm, for its caches and its configuration.
    home: TempDir,
}

impl Helm {
    /// Finds Helm. The first call builds Helm, and the clock of the test stops for that time.
    pub async fn find() -> anyhow::Result<Self> {
        let _pause = watchdog::pause();
        let program = tokio::task::spawn_blocking(programs::helm::locate).await??;
        Ok(Self { program, home: TempDir::with_prefix("fleetnet-helm-")? })
    }

    /// Returns the path of Helm's executable.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Runs Helm with these arguments in `deploy/charts`. Helm knows no cluster.
    pub async fn run(&self, words: &[&str]) -> anyhow::Result<Outcome> {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(programs::root().join("deploy/charts"));
        command.env_clear().env("HOME", self.home.path()).stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout(EVENTUALLY, command.output());
        let output = output.await.with_context(|| format!("helm {words:?} does not end"))??;
        Ok(Outcome {
            code: output.status.code().context("Helm was killed")?,
            out: String::from_utf8(output.stdout)?,
            err: String::from_utf8(output.stderr)?,
        })
    }

    /// Renders a chart for the namespace `fleet-system`, as YAML.
    ///
    /// # Errors
    /// If Helm fails or prints a warning.
    pub async fn template(&self, chart: &str, values: &[&str]) -> anyhow::Result<String> {
        let words = ["template", "release", chart, "--namespace", crate::fleet::FLEET_SYSTEM];
        let outcome = self.run(&[&words[..], values].concat()).await?;
        ensure!(outcome.code == 0 && outcome.err.is_empty(), "helm template {chart} {values:?}: {}", outcome.err);
        Ok(outcome.out)
    }

    /// Returns the objects that a chart renders for the namespace `fleet-system`.
    pub async fn objects(&self, chart: &str, values: &[&str]) -> anyhow::Result<Vec<DynamicObject>> {
        manifests::objects(&self.template(chart, values).await?)
    }
}
