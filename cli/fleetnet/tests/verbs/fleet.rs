//! Fleet with real agents in a test: the sandbox in its own process, with kubeconfigs.

use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Time limit for the fleet to start and to end. Long enough for a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Running sandbox.
pub(crate) struct Fleet {
    folder: TempDir,
    child: Child,
}

impl Fleet {
    /// Starts a hub and members, and waits until a change of endpoints has arrived in all of them.
    pub(crate) async fn start(members: u16) -> Self {
        Self::start_with(members, "fleet").await
    }

    /// Starts a fleet that uses this API.
    pub(crate) async fn start_with(members: u16, api: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_fleetnet"));
        command.args(["sandbox", "--json", "--api", api, "--members", &members.to_string(), "--kubeconfigs"]);
        command.arg(folder.path());
        let child = command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn();
        let mut child = child.unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let arrived = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if line.contains("\"event\":\"change\"") {
                    return true;
                }
            }
            false
        };
        let arrived = timeout(LIMIT, arrived).await;
        assert!(arrived.expect("waited for a first change of the sandbox"), "the sandbox ended");
        // Read on, so that the sandbox does not wait for its reader.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { folder, child }
    }

    /// Kubeconfig of a cluster.
    pub(crate) fn kubeconfig(&self, cluster: &str) -> PathBuf {
        self.folder.path().join(format!("{cluster}.kubeconfig"))
    }

    /// Returns the flags for the kubeconfigs of these clusters. The first cluster is the hub.
    pub(crate) fn flags(&self, clusters: &[&str]) -> Vec<String> {
        let flags = clusters.iter().map(|cluster| format!("--kubeconfig={}", self.kubeconfig(cluster).display()));
        flags.collect()
    }

    /// Returns a client for a cluster.
    pub(crate) async fn client(&self, cluster: &str) -> kube::Client {
        let config = kube::config::Kubeconfig::read_from(self.kubeconfig(cluster)).unwrap();
        let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap();
        kube::Client::try_from(config).unwrap()
    }

    /// Ends the sandbox.
    pub(crate) async fn end(mut self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id().unwrap()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        let ended = timeout(LIMIT, self.child.wait()).await.expect("waited for the end of the sandbox").unwrap();
        assert_eq!(ended.code(), Some(0));
    }
}
