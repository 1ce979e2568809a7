//! `fleetnet test connectivity` in fleets with real traffic, called as a user does. The tests of disturbances use it.

use anyhow::{Context as _, ensure};
use harness::binaries;
use harness::eventually;
use harness::limits::EVENTUALLY;
use harness::user::User;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::WatchParams;
use packets::Fleet;
use packets::workload;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::Command;
use tokio::time::timeout;

/// Label of the pods that the command creates.
const PODS: &str = "app.kubernetes.io/name=fleetnet-connectivity";

/// The command, for one exporter and one importer of a fleet.
pub(crate) struct Connectivity {
    program: PathBuf,
    kubeconfigs: Vec<PathBuf>,
    exporter: String,
    importer: String,
    /// User of the importer, in the namespace of the Services.
    user: User,
    namespace: String,
}

impl Connectivity {
    /// Returns the command for the members with these indices.
    pub(crate) async fn new(fleet: &Fleet, namespace: &str, exporter: usize, importer: usize) -> anyhow::Result<Self> {
        let id = |index: usize| fleet.servers.members[index].cluster_id.clone();
        let members = fleet.servers.members.iter().map(|member| &member.control_plane);
        let mut kubeconfigs = Vec::new();
        for (index, server) in std::iter::once(&fleet.servers.hub).chain(members).enumerate() {
            // The contexts of all servers have the same name.
            let text = std::fs::read_to_string(server.admin_kubeconfig()?)?;
            let mut config: Value = serde_json::from_str(&text)?;
            let name = format!("cluster-{index}");
            (config["current-context"], config["contexts"][0]["name"]) = (json!(name), json!(name));
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, config.to_string())?;
            kubeconfigs.push(path);
        }
        let program = binaries::find("fleetnet").await?;
        let user = fleet.user(importer, namespace);
        Ok(Self {
            program,
            kubeconfigs,
            exporter: id(exporter),
            importer: id(importer),
            user,
            namespace: namespace.to_owned(),
        })
    }

    fn command(&self, service: &str, more: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        let service = format!("{}/{service}", self.namespace);
        command.args([
            "test",
            "connectivity",
            &service,
            "--from",
            &self.exporter,
            "--to",
            &self.importer,
            "-o",
            "json",
        ]);
        command.args(self.kubeconfigs.iter().map(|path| format!("--kubeconfig={}", path.display()))).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs the command, which must find this fault, or none. Its pod is gone afterwards. Returns the output.
    pub(crate) async fn gives(&self, service: &str, fault: Option<&str>, more: &[&str]) -> anyhow::Result<Value> {
        let output = timeout(EVENTUALLY, self.command(service, more).output()).await??;
        let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let shown = || format!("{service}, expected {fault:?}: {text}\n{errors}");
        let expected = if fault.is_some() { 1 } else { 0 };
        ensure!(output.status.code() == Some(expected), "{:?}: {}", output.status, shown());
        let result: Value = serde_json::from_str(&text)?;
        let findings = &result["pairs"][0]["findings"];
        ensure!(findings[0]["code"].as_str() == fault, "{}", shown());
        self.pods(true).await.with_context(shown)?;
        Ok(result)
    }

    /// Interrupts the command while its pod runs. The pod is deleted, and nothing is known.
    pub(crate) async fn is_interrupted(&self, service: &str) -> anyhow::Result<()> {
        let child = self.command(service, &[]).spawn()?;
        self.pods(false).await?;
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).context("the command has a pid")?;
        kill_process(pid, Signal::INT)?;
        let output = timeout(EVENTUALLY, child.wait_with_output()).await??;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.code() == Some(3) && text.contains("interrupted"), "{:?}: {text}", output.status);
        self.pods(true).await
    }

    /// Waits until the command has a pod, or none.
    async fn pods(&self, are_gone: bool) -> anyhow::Result<()> {
        let selection = WatchParams::default().labels(PODS);
        let what = if are_gone { "the pod of the command to be gone" } else { "the pod of the command" };
        let pods = self.user.api::<Pod>();
        eventually::objects(&pods, &selection, what, |pods| pods.is_empty() == are_gone).await.map(drop)
    }
}

/// Exports a Service of the pods `app` whose port has no listener.
pub(crate) async fn export_wrong_port(
    exporter: &User,
    exporting: &str,
    importer: &User,
    name: &str,
    app: &str,
) -> anyhow::Result<()> {
    let spec = json!({"selector": {"app": app}, "ports": [{"name": "http", "port": 80, "targetPort": 9}]});
    exporter.create::<Service>(json!({"metadata": {"name": name}, "spec": spec})).await?;
    workload::export(exporter, exporting, importer, name).await.map(drop)
}

/// Outcomes of a result, by the way of the connection.
pub(crate) fn outcomes(result: &Value, by: &str) -> Vec<String> {
    let results = result["pairs"][0]["results"].as_array().into_iter().flatten();
    results.filter(|it| it["by"] == by).filter_map(|it| it["outcome"].as_str().map(str::to_owned)).collect()
}
