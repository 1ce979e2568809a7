//! Processes of the two EndpointSlice controllers that are compared.

use anyhow::{Context as _, ensure};
use harness::binaries;
use harness::control_plane::ControlPlane;
use harness::endpoints;
use harness::fleet::manifests;
use harness::process::{Ended, Process, Signal};
use serde::Serialize;

/// Client limit in writes per second. Neither controller reaches it, so their rate limiters do not affect the
/// comparison.
const WRITES_PER_SECOND: &str = "5000";
/// Number of Services that each controller syncs in parallel, as the value of a flag.
const CONCURRENT_SYNCS: &str = "5";

/// EndpointSlice controller to measure.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contender {
    /// kube-controller-manager that runs only its EndpointSlice controller.
    KubeControllerManager,
    /// Member agent that runs only its EndpointSlice controller.
    MemberAgent,
}

/// Running controller. Dropping the value ends the process.
pub enum Running {
    KubeControllerManager(Process),
    MemberAgent(harness::agent::Agent),
}

impl Contender {
    pub const ALL: [Self; 2] = [Self::KubeControllerManager, Self::MemberAgent];

    /// Starts the controller's process, without waiting until it is ready.
    pub async fn start(self, control_plane: &ControlPlane) -> anyhow::Result<Running> {
        match self {
            Self::KubeControllerManager => {
                let flags = [
                    ("--kube-api-qps", WRITES_PER_SECOND),
                    ("--kube-api-burst", WRITES_PER_SECOND),
                    ("--concurrent-service-endpoint-syncs", CONCURRENT_SYNCS),
                    ("--endpointslice-updates-batch-period", "0"),
                ];
                let process = control_plane.start_controller_manager(&["endpointslice-controller"], &flags).await?;
                Ok(Running::KubeControllerManager(process))
            }
            Self::MemberAgent => {
                let agent = endpoints::agent(control_plane)
                    .await?
                    .flag("--endpointslices", "on")
                    .flag("--concurrent-service-endpoint-syncs", CONCURRENT_SYNCS)
                    .flag("--leader-elect", "false");
                Ok(Running::MemberAgent(agent.start().await?))
            }
        }
    }

    /// Grants the controller its rights, and builds its program before the measurement. So the time of the build is not
    /// part of the measured start time.
    pub async fn admit(self, control_plane: &ControlPlane) -> anyhow::Result<()> {
        if self == Self::MemberAgent {
            binaries::find("member-agent").await?;
            manifests::apply(control_plane, manifests::MEMBER_AGENT).await?;
            manifests::apply(control_plane, manifests::ENDPOINT_SLICES).await?;
        }
        Ok(())
    }
}

impl Running {
    #[must_use]
    pub fn pid(&self) -> i32 {
        match self {
            Self::KubeControllerManager(process) => process.pids()[0],
            Self::MemberAgent(agent) => agent.pid(),
        }
    }

    /// Stops the controller's process with a signal to terminate, and waits until the process has ended.
    pub async fn stop(self) -> anyhow::Result<()> {
        match &self {
            Self::KubeControllerManager(process) => {
                process.signal(Signal::Term).await?;
                process.wait().await?;
            }
            Self::MemberAgent(agent) => {
                let ended = agent.terminate().await?;
                ensure!(ended == Ended::Exited(0), "the agent ended with {ended:?}");
            }
        }
        Ok(())
    }

    /// Returns the last lines of the controller's output, for error messages.
    #[must_use]
    pub fn tail(&self) -> String {
        match self {
            Self::KubeControllerManager(process) => process.log().tail(),
            Self::MemberAgent(agent) => agent.log().tail(),
        }
    }

    pub fn memory(&self) -> anyhow::Result<crate::environment::Memory> {
        crate::environment::memory_of(self.pid())
    }

    /// Returns the processor time that the controller's process has used.
    pub fn processor_time(&self) -> anyhow::Result<std::time::Duration> {
        crate::environment::processor_time(self.pid()).context("processor time")
    }
}
