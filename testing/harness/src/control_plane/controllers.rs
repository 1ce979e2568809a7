//! kube-controller-manager for a test's control plane.

use super::{CONTROLLER_MANAGER, ControlPlane, start};
use crate::process::Process;
use programs::control_plane::Program;
use std::ffi::OsString;

/// Flags for leader election. The Lease of 10 s is long enough for a process that gets no processor time for some
/// seconds.
const ELECTION: [&str; 4] = [
    "--leader-elect=true",
    "--leader-elect-lease-duration=10s",
    "--leader-elect-renew-deadline=8s",
    "--leader-elect-retry-period=300ms",
];
/// Controllers that collect garbage (objects whose owners do not exist) and empty namespaces that are being deleted.
const CLEANERS: [&str; 2] = ["namespace-controller", "garbage-collector-controller"];

impl ControlPlane {
    /// Starts the controllers that finish the deletion of namespaces and collect garbage, as in every real cluster. The
    /// controllers end with the control plane. Call this function only if the control plane runs no other controllers,
    /// and after the CRDs are applied: the garbage collector looks for new kinds only every 30 s.
    pub async fn clean_up(&mut self) -> anyhow::Result<()> {
        self.controller_manager = Some(self.start_cleaners().await?);
        Ok(())
    }

    /// Starts the controllers of [`ControlPlane::clean_up`]. The controllers end when the returned process is dropped.
    pub async fn start_cleaners(&self) -> anyhow::Result<Process> {
        // Raise the default limit of 20 requests a second: emptying a namespace takes two requests for each kind.
        let unhurried = [("--kube-api-qps", "1000"), ("--kube-api-burst", "1000")];
        self.start_controller_manager(&CLEANERS, &unhurried).await
    }

    /// Starts kube-controller-manager with these controllers, as installers do: with a Lease in kube-system, and with a
    /// service account for each controller. The user [`CONTROLLER_MANAGER`] must be among the users of the control
    /// plane.
    pub async fn start_elected_controller_manager(&self, controllers: &[&str]) -> anyhow::Result<Process> {
        let mut arguments = self.controller_manager_arguments(&controllers.join(","));
        arguments.extend(ELECTION.map(OsString::from));
        arguments.push("--use-service-account-credentials=true".into());
        arguments.extend([OsString::from("--kubeconfig"), self.kubeconfig(CONTROLLER_MANAGER).await?.into_os_string()]);
        start(Program::ControllerManager, self.name(), &self.folder, arguments, None).await
    }

    /// Starts kube-controller-manager with these controllers and additional flags. The process has the rights of the
    /// admin, and no Lease.
    pub async fn start_controller_manager(
        &self,
        controllers: &[&str],
        more: &[(&str, &str)],
    ) -> anyhow::Result<Process> {
        let mut arguments = self.controller_manager_arguments(&controllers.join(","));
        arguments.push("--leader-elect=false".into());
        arguments.extend(more.iter().map(|(flag, value)| OsString::from(format!("{flag}={value}"))));
        arguments.extend([OsString::from("--kubeconfig"), self.admin_kubeconfig()?.into_os_string()]);
        start(Program::ControllerManager, self.name(), &self.folder, arguments, None).await
    }

    fn controller_manager_arguments(&self, controllers: &str) -> Vec<OsString> {
        vec![
            // Open no port, because no test sends requests to kube-controller-manager.
            "--secure-port=0".into(),
            format!("--controllers={controllers}").into(),
            // kube-controller-manager needs these files to fill Secrets for tokens: the key that signs the tokens, and
            // the certificate authority that it adds to the Secrets.
            "--service-account-private-key-file".into(),
            self.folder.join("certificates/apiserver.key").into_os_string(),
            "--root-ca-file".into(),
            self.folder.join("certificates/apiserver.crt").into_os_string(),
        ]
    }
}
