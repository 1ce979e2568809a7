//! Comparison of the member agent's EndpointSlice controller with kube-controller-manager's controller. Each controller
//! has its own control plane, with the same pods, changes and watches. The bench makes each change in one control plane
//! and then in the other.

pub mod cluster;
pub mod contender;
pub mod report;
pub mod seen;
pub mod steps;

use cluster::Cluster;
use contender::Contender;
use report::Report;
use serde::Serialize;
use steps::Controller;

/// How much there is of everything.
#[derive(Clone, Copy, Debug, clap::Args, Serialize)]
pub struct Size {
    /// Services.
    #[arg(long, default_value_t = 20)]
    pub services: usize,
    /// Pods of each.
    #[arg(long, default_value_t = 50)]
    pub pods: usize,
    /// Times that one pod becomes unready, or ready again.
    #[arg(long, default_value_t = 300)]
    pub flaps: usize,
    /// Times that many pods of one Service change.
    #[arg(long, default_value_t = 60)]
    pub rollouts: usize,
    /// Pods that change in each, 2 ms apart.
    #[arg(long, default_value_t = 30)]
    pub rollout_pods: usize,
    /// Pods in all for the second half of the run, with as many flaps.
    #[arg(long, default_value_t = 10_000)]
    pub many_pods: usize,
}

/// Size of the smoke run, which runs every step in a short time.
pub const SMOKE: Size = Size { services: 2, pods: 4, flaps: 4, rollouts: 2, rollout_pods: 3, many_pods: 12 };

pub async fn measure(size: Size) -> anyhow::Result<Report> {
    let mut controllers = Vec::new();
    for contender in Contender::ALL {
        let cluster = Cluster::start(contender).await?;
        cluster.populate(0..size.services, size.pods).await?;
        controllers.push(Controller::new(cluster));
    }
    steps::both(&mut controllers, size).await
}
