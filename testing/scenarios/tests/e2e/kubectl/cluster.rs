//! memkube over HTTPS, and the real kubectl with a kubeconfig for it.

use anyhow::{Context as _, ensure};
use harness::kubectl::{Kubectl, Outcome};
use harness::limits::EVENTUALLY;
use memkube::clock::TokioClock;
use memkube::serve::{self, Https};
use memkube::{MemKube, Options, User};
use std::process::Stdio;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

/// User name in the kubeconfig.
const USER: &str = "admin";

/// Simulated cluster with kubectl, for one test.
pub(crate) struct Cluster {
    pub(crate) server: MemKube,
    https: Https,
    kubectl: Kubectl,
    _folder: TempDir,
}

/// Step of a test: a kubectl command, its standard input, its exit code, and its output (standard output for code 0,
/// standard error otherwise). The other stream must be empty.
pub(crate) type Step<'a> = (&'a str, &'a str, i32, &'a str);

impl Cluster {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let folder = TempDir::with_prefix("fleetnet-kubeconfig-")?;
        let kubectl = Kubectl::with(folder.path().join("kubeconfig")).await?;
        let clock = TokioClock::starting_at("2026-01-01T00:00:00Z".parse()?);
        let server = MemKube::new(Options::new(Arc::new(clock), 1));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let options = serve::Options { name: "it".to_owned(), seed: [1; 32], users: vec![User::new(USER)] };
        let https = Https::start(&server, listener, options)?;
        let kubeconfig = https.kubeconfig(USER).context("the user was given")?;
        tokio::fs::write(folder.path().join("kubeconfig"), kubeconfig).await?;
        Ok(Self { server, https, kubectl, _folder: folder })
    }

    /// Starts a cluster, and creates the CRDs of the fleet with kubectl.
    pub(crate) async fn with_definitions() -> anyhow::Result<Self> {
        let cluster = Self::start().await?;
        let definitions = programs::root().join("deploy/crds");
        let outcome = cluster.kubectl.run(&["create", "-f", &definitions.display().to_string()], "").await?;
        ensure!(outcome.code == 0, "{outcome:?}");
        Ok(cluster)
    }

    /// Runs kubectl with the words of a line as arguments.
    pub(crate) async fn run(&self, line: &str, input: &str) -> anyhow::Result<Outcome> {
        self.kubectl.run(&line.split_whitespace().collect::<Vec<_>>(), input).await
    }

    /// Runs kubectl, which must succeed. Returns its output.
    pub(crate) async fn print(&self, line: &str) -> anyhow::Result<String> {
        self.kubectl.print(line).await
    }

    /// Runs steps, one after the other, and checks their results.
    pub(crate) async fn walk(&self, steps: &[Step<'_>]) -> anyhow::Result<()> {
        for &(line, input, code, output) in steps {
            let (out, err) = if code == 0 { (output, "") } else { ("", output) };
            let expected = Outcome { code, out: out.to_owned(), err: err.to_owned() };
            let outcome = self.run(line, input).await?;
            ensure!(outcome == expected, "kubectl {line}\n  it said     {outcome:?}\n  expected was {expected:?}");
        }
        Ok(())
    }

    /// Starts a kubectl that runs until the returned value is dropped.
    pub(crate) fn follow(&self, line: &str) -> anyhow::Result<Following> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut child = self.kubectl.command(&words).stdin(Stdio::null()).stderr(Stdio::inherit()).spawn()?;
        let lines = BufReader::new(child.stdout.take().context("it was asked for")?).lines();
        Ok(Following { child, lines })
    }

    /// Shuts the server down gracefully.
    pub(crate) async fn end(self) {
        self.https.end().await;
    }
}

/// Running kubectl, for example one with `--watch`.
pub(crate) struct Following {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Following {
    /// Returns the next line of kubectl's output.
    pub(crate) async fn line(&mut self) -> anyhow::Result<String> {
        let line = timeout(EVENTUALLY, self.lines.next_line()).await.context("kubectl says nothing more")??;
        line.context("kubectl has ended")
    }

    /// Waits until kubectl ends. Returns its exit code, and the lines that the test has not read.
    pub(crate) async fn end(mut self) -> anyhow::Result<(i32, Vec<String>)> {
        let mut rest = Vec::new();
        while let Some(line) = timeout(EVENTUALLY, self.lines.next_line()).await.context("kubectl goes on")?? {
            rest.push(line);
        }
        let status = timeout(EVENTUALLY, self.child.wait()).await.context("kubectl does not end")??;
        Ok((status.code().context("kubectl was killed")?, rest))
    }
}
