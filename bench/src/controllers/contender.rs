//! Processes of the two controllers.

use anyhow::{Context as _, ensure};
use fleetnet_tests::binaries;
use fleetnet_tests::control_plane::ControlPlane;
use fleetnet_tests::endpoints;
use fleetnet_tests::fleet::manifests;
use fleetnet_tests::process::{Ended, Process, Signal};
use serde::Serialize;

/// Client limit in writes per second. Neither controller reaches it, so the limiters do not affect the comparison.
const WRITES_PER_SECOND: &str = "5000";
/// Parallel syncs of each controller.
const CONCURRENT_SYNCS: &str = "5";

/// Controller to measure.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contender {
    /// kube-controller-manager with only the EndpointSlice controller.
    KubeControllerManager,
    /// Member agent with only the EndpointSlice controller.
    MemberAgent,
}

/// Running controller. Dropping it ends the process.
pub enum Running {
    KubeControllerManager(Process),
    MemberAgent(fleetnet_tests::agent::Agent),
}

impl Contender {
    pub const ALL: [Self; 2] = [Self::KubeControllerManager, Self::MemberAgent];

    /// Starts the controller, without waiting until it is ready.
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

    /// Grants the controller its rights and prepares its program, so that a build does not count as start time.
    pub async fn admit(self, control_plane: &ControlPlane) -> anyhow::Result<()> {
        if self == Self::MemberAgent {
            binaries::of_agent("member-agent").await?;
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

    /// Stops the process, gracefully if it supports that.
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

    /// Returns the last lines of output, for error messages.
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

    /// Returns the processor time of the process so far.
    pub fn processor_time(&self) -> anyhow::Result<std::time::Duration> {
        crate::environment::processor_time(self.pid()).context("processor time")
    }
}
