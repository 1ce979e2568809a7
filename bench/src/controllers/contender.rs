//! The two controllers, as processes.

use anyhow::{Context as _, ensure};
use fleetnet_tests::binaries;
use fleetnet_tests::control_plane::ControlPlane;
use fleetnet_tests::endpoints;
use fleetnet_tests::fleet::manifests;
use fleetnet_tests::process::{Ended, Process, Signal};
use serde::Serialize;

/// Writes a second that neither comes near: what is compared is the controllers, not their clients' limiters.
const WRITES_PER_SECOND: &str = "5000";
/// Syncs at once.
const CONCURRENT_SYNCS: &str = "5";

/// Whose controller.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contender {
    /// kube-controller-manager, with the EndpointSlice controller alone.
    KubeControllerManager,
    /// The member agent, with its EndpointSlice controller alone.
    MemberAgent,
}

/// One of them that runs. It ends with this.
pub enum Running {
    /// kube-controller-manager.
    KubeControllerManager(Process),
    /// The member agent.
    MemberAgent(fleetnet_tests::agent::Agent),
}

impl Contender {
    /// Both.
    pub const ALL: [Self; 2] = [Self::KubeControllerManager, Self::MemberAgent];

    /// Starts it; it may not be ready yet.
    ///
    /// # Errors
    /// Where it cannot be started.
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

    /// Gives it its rights, and sees to its program: what is built first must not count as its start.
    ///
    /// # Errors
    /// Where the server refuses, or there is no program to be had.
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
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        match self {
            Self::KubeControllerManager(process) => process.pids()[0],
            Self::MemberAgent(agent) => agent.pid(),
        }
    }

    /// Ends it, gracefully where it knows how.
    ///
    /// # Errors
    /// Where it does not end.
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

    /// Its last lines, for messages of failures.
    #[must_use]
    pub fn tail(&self) -> String {
        match self {
            Self::KubeControllerManager(process) => process.log().tail(),
            Self::MemberAgent(agent) => agent.log().tail(),
        }
    }

    /// What it takes of memory.
    ///
    /// # Errors
    /// Where it is gone.
    pub fn memory(&self) -> anyhow::Result<crate::ground::Memory> {
        crate::ground::memory_of(self.pid())
    }

    /// What it has taken of processors so far.
    ///
    /// # Errors
    /// Where it is gone.
    pub fn processor_time(&self) -> anyhow::Result<std::time::Duration> {
        crate::ground::processor_time(self.pid()).context("processor time")
    }
}
