//! Backup and restore of a control plane's etcd, as administrators make them.

use super::{ControlPlane, start, start_api_server, start_etcd};
use crate::limits::PROCESS;
use crate::process::{Ended, Signal};
use anyhow::{Context as _, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::Request;
use kube::Client;
use programs::control_plane::Program;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use tempfile::TempPath;
use tokio::time::timeout;

/// Snapshot of a control plane's etcd.
#[derive(Debug)]
pub struct Backup(TempPath);

/// Revision of etcd after a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// The revision of the snapshot: objects change again with resourceVersions that clients have seen before.
    OfSnapshot,
    /// A revision above all that clients have seen, as documented for the restore of a Kubernetes cluster:
    /// `--bump-revision` and `--mark-compacted`.
    Raised,
}

/// Number of revisions by which [`Revision::Raised`] is above the snapshot. The documentation of etcd proposes this
/// number.
const RAISED_BY: &str = "1000000000";

impl ControlPlane {
    /// Makes a snapshot of etcd, as `etcdctl snapshot save` does.
    pub async fn back_up(&self) -> anyhow::Result<Backup> {
        let context = || format!("etcd of {} sends no snapshot", self.options.name);
        let client = Client::try_from(kube::Config::new(self.etcd_port.url("http").parse()?))?;
        let request = Request::post("/v3/maintenance/snapshot").body(b"{}".to_vec())?;
        let parts = timeout(PROCESS, client.request_text(request)).await.with_context(context)?;
        let mut snapshot = Vec::new();
        for part in parts.with_context(context)?.lines() {
            let part: Value = serde_json::from_str(part).with_context(context)?;
            let blob = part["result"]["blob"].as_str().with_context(|| format!("{}: {part}", context()))?;
            snapshot.extend(BASE64_STANDARD.decode(blob).with_context(context)?);
        }
        let file = tempfile::Builder::new().prefix("backup-").tempfile_in(&self.folder)?;
        tokio::fs::write(file.path(), snapshot).await?;
        Ok(Backup(file.into_temp_path()))
    }

    /// Ends the programs, restores the snapshot with `etcdutl`, and starts the programs again with the same addresses
    /// and certificates. Returns when the API server is ready.
    ///
    /// # Errors
    /// If `etcdutl` rejects the snapshot, or a program does not start.
    pub async fn restore(&mut self, backup: &Backup, revision: Revision) -> anyhow::Result<()> {
        let cleans_up = self.controller_manager.is_some();
        if let Some(process) = self.controller_manager.take() {
            process.end().await?;
        }
        let data = self.folder.join(format!("etcd-{}", self.former.len() + 1));
        self.restore_into(backup, &data, revision).await?;
        let (etcd, etcd_port) = start_etcd(&self.options.name, &data, None).await?;
        // The former etcd runs until the control plane ends, because its supervisor then removes the folder. It has no
        // clients.
        self.former.push(std::mem::replace(&mut self.etcd, etcd));
        self.etcd_port = etcd_port;
        self.api_server.signal(Signal::Kill).await?;
        self.api_server.wait().await?;
        let ready = start_api_server(&self.options, &self.folder, &self.etcd_port, &self.port, &self.tokens).await;
        self.api_server = ready.with_context(|| format!("{} does not start after its restore", self.options.name))?.0;
        if cleans_up {
            self.clean_up().await?;
        }
        Ok(())
    }

    async fn restore_into(&self, backup: &Backup, data: &Path, revision: Revision) -> anyhow::Result<()> {
        let mut arguments: Vec<OsString> = ["snapshot", "restore"].map(OsString::from).to_vec();
        arguments.push(backup.0.as_os_str().to_owned());
        arguments.extend([OsString::from("--data-dir"), data.as_os_str().to_owned()]);
        if revision == Revision::Raised {
            arguments.extend(["--bump-revision", RAISED_BY, "--mark-compacted"].map(OsString::from));
        }
        let etcdutl = start(Program::EtcdUtility, &self.options.name, &self.folder, arguments, None).await?;
        let ended = etcdutl.wait().await?;
        ensure!(ended == Ended::Exited(0), "etcdutl ended with {ended:?}\n{}", etcdutl.log().tail());
        Ok(())
    }
}
