//! kube-controller-manager beside a control plane.

use super::{CONTROLLER_MANAGER, ControlPlane, start};
use crate::process::Process;
use std::ffi::OsString;
use xtask::controlplane::Program;

/// Lease duration, renew deadline and retry period under a Lease: long enough for a process that gets no processor time for
/// some seconds.
const ELECTION: [&str; 4] = [
    "--leader-elect=true",
    "--leader-elect-lease-duration=10s",
    "--leader-elect-renew-deadline=8s",
    "--leader-elect-retry-period=300ms",
];
/// Controllers that empty deleted namespaces and delete objects without owners.
const CLEANERS: [&str; 2] = ["namespace-controller", "garbage-collector-controller"];

impl ControlPlane {
    /// Starts kube-controller-manager to finish the deletion of namespaces and to collect garbage, as in every cluster. It ends
    /// with the control plane, which was started without controllers. Call this after the CRDs are applied: the garbage
    /// collector looks for new kinds only every 30 s.
    pub async fn clean_up(&mut self) -> anyhow::Result<()> {
        self.controller_manager = Some(self.start_cleaners().await?);
        Ok(())
    }

    /// The same for as long as the process is kept.
    pub async fn start_cleaners(&self) -> anyhow::Result<Process> {
        // By default its clients are limited to 20 requests a second, and a namespace costs two requests for each kind.
        let unhurried = [("--kube-api-qps", "1000"), ("--kube-api-burst", "1000")];
        self.start_controller_manager(&CLEANERS, &unhurried).await
    }

    /// Starts another kube-controller-manager, with controllers by upstream's names, as installers start it. It works under its
    /// Lease in kube-system, and each controller under its own service account. The control plane must have been started with
    /// the user [`CONTROLLER_MANAGER`].
    pub async fn start_elected_controller_manager(&self, controllers: &[&str]) -> anyhow::Result<Process> {
        let mut arguments = self.controller_manager_arguments(&controllers.join(","));
        arguments.extend(ELECTION.map(OsString::from));
        arguments.push("--use-service-account-credentials=true".into());
        arguments.extend([OsString::from("--kubeconfig"), self.kubeconfig(CONTROLLER_MANAGER).await?.into_os_string()]);
        start(Program::ControllerManager, &self.name, &self.folder, arguments, None).await
    }

    /// Starts another kube-controller-manager, with controllers by upstream's names and more flags. It works as the admin and
    /// without a Lease.
    pub async fn start_controller_manager(
        &self,
        controllers: &[&str],
        more: &[(&str, &str)],
    ) -> anyhow::Result<Process> {
        let mut arguments = self.controller_manager_arguments(&controllers.join(","));
        arguments.push("--leader-elect=false".into());
        arguments.extend(more.iter().map(|(flag, value)| OsString::from(format!("{flag}={value}"))));
        arguments.extend([OsString::from("--kubeconfig"), self.admin_kubeconfig()?.into_os_string()]);
        start(Program::ControllerManager, &self.name, &self.folder, arguments, None).await
    }

    fn controller_manager_arguments(&self, controllers: &str) -> Vec<OsString> {
        vec![
            // It needs no port, because nobody sends it requests.
            "--secure-port=0".into(),
            format!("--controllers={controllers}").into(),
            // Key that signs the tokens that it puts into Secrets, and the authority that it adds.
            "--service-account-private-key-file".into(),
            self.folder.join("certificates/apiserver.key").into_os_string(),
            "--root-ca-file".into(),
            self.folder.join("certificates/apiserver.crt").into_os_string(),
        ]
    }
}
