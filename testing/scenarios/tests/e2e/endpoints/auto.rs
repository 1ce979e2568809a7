//! Tests of `--endpointslices=auto` while a kube-controller-manager starts and stops. `beside.rs` tests that the agent
//! writes no slices while another controller is active. The tests use two clusters, so that they can run at the same
//! time.

use anyhow::{Context as _, ensure};
use harness::audit::{Ledger, Mark};
use harness::endpoints::{Cluster, Kind, PodSketch, Workload, is_serving, serves};
use harness::eventually::{self, Deadline};
use harness::fleet::MEMBER_AGENT;
use harness::limits::POLL;
use harness::process::Process;
use harness::routes::Routes;
use harness::run;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Time without activity of another controller after which the agent's controller becomes active
/// (`--endpointslices-takeover-after`).
pub(super) const AFTER: Duration = Duration::from_secs(10);
pub(super) const AUTO: [(&str, &str); 2] = [("--endpointslices", "auto"), ("--endpointslices-takeover-after", "10s")];
/// User name of kube-controller-manager's EndpointSlice controller.
const THEIRS: &str = "system:serviceaccount:kube-system:endpointslice-controller";
/// Name of kube-controller-manager's Lease.
const LEASE: &str = "kube-controller-manager";

/// Cluster with kube-controller-manager, which has created the slices of two Services.
pub(super) struct Setup {
    pub(super) cluster: Cluster,
    pub(super) workload: Workload,
    leases: Api<Lease>,
}

impl Setup {
    pub(super) async fn create(namespace: &str) -> anyhow::Result<(Self, Process)> {
        let cluster = Cluster::take(Kind::WithoutControllerManager, namespace).await?;
        let workload = cluster.workload().await?;
        let leases = Api::namespaced(cluster.control_plane.admin(), "kube-system");
        let setup = Self { cluster, workload, leases };
        // Remove the Lease of an earlier test. Otherwise the agent would wait until this Lease expires.
        setup.cluster.forget_controller_manager().await?;
        let controller_manager = setup.start_controller_manager().await?;
        for (service, addresses) in [("web", &["10.1.0.1", "10.1.0.2"]), ("api", &["10.1.1.1", "10.1.1.2"])] {
            setup.workload.service(service).await?;
            setup.workload.pods(service, addresses).await?;
        }
        setup.workload.sees("web", &["IPv4 http 8080/TCP: 10.1.0.1 ready web-0, 10.1.0.2 ready web-1"]).await?;
        setup.workload.sees("api", &["IPv4 http 8080/TCP: 10.1.1.1 ready api-0, 10.1.1.2 ready api-1"]).await?;
        Ok((setup, controller_manager))
    }

    async fn start_controller_manager(&self) -> anyhow::Result<Process> {
        self.cluster.start_controller_manager(&["endpointslice-controller"]).await
    }

    /// Returns the time of the last renewal of kube-controller-manager's Lease; `None` if nobody has renewed it.
    async fn renewal(&self) -> anyhow::Result<Option<MicroTime>> {
        Ok(renewal(&self.leases.get(LEASE).await?))
    }

    /// Waits until kube-controller-manager renews its Lease again.
    pub(super) async fn renewed(&self) -> anyhow::Result<()> {
        let before = self.renewal().await?;
        let what = format!("a renewal after {before:?}");
        eventually::object(&self.leases, LEASE, &what, |lease| renewal(lease) > before).await.map(drop)
    }

    /// Returns two ledgers of writes to slices after the position `mark`: first of the agent, then of
    /// kube-controller-manager.
    pub(super) async fn writes(&self, mark: Mark) -> anyhow::Result<[Ledger; 2]> {
        let (ours, theirs) =
            (self.cluster.written_by(MEMBER_AGENT, mark).await?, self.cluster.written_by(THEIRS, mark).await?);
        Ok([ours, theirs])
    }

    /// Makes a pod of the Service `web` ready or not ready.
    async fn report(&self, is_ready: bool) -> anyhow::Result<()> {
        let pod = PodSketch::new("web-1", "web", &["10.1.0.2"]);
        self.workload.report(&if is_ready { pod } else { pod.unready() }).await.map(drop)
    }
}

/// Returns the time since a Lease was renewed. kube-controller-manager runs on this machine, so the renewal has the
/// time of the same clock.
fn age(renewal: &MicroTime) -> anyhow::Result<Duration> {
    #[expect(clippy::disallowed_methods, reason = "kube-controller-manager writes the time of day")]
    let now = Timestamp::now();
    Ok(now.duration_since(renewal.0).try_into()?)
}

fn renewal(lease: &Lease) -> Option<MicroTime> {
    lease.spec.as_ref()?.renew_time.clone()
}

/// Watch of the Service `web`. One of its pods alternates between ready and not ready.
pub(super) struct Flapping {
    routes: Routes,
    is_ready: bool,
    pub(super) changes: usize,
}

impl Flapping {
    pub(super) fn watch(workload: &Workload) -> Self {
        Self { routes: workload.routes("web"), is_ready: true, changes: 0 }
    }

    /// Changes the readiness of the pod, and waits until the pod's slice shows the change.
    pub(super) async fn change(&mut self, setup: &Setup) -> anyhow::Result<()> {
        self.is_ready = !self.is_ready;
        self.changes += 1;
        setup.report(self.is_ready).await?;
        let both = ["10.1.0.1:8080", "10.1.0.2:8080"];
        self.routes.are(if self.is_ready { &both } else { &both[..1] }).await
    }
}

#[test]
fn auto_takes_over_from_a_kube_controller_manager_and_hands_back_and_no_endpoint_is_lost() -> anyhow::Result<()> {
    run(async {
        let (setup, controller_manager) = Setup::create("takeover").await?;
        let agent = setup.cluster.serve(&AUTO).await?;
        let mut web = Flapping::watch(&setup.workload);
        let mut api = setup.workload.routes("api");
        let all_of_api = ["10.1.1.1:8080", "10.1.1.2:8080"];
        api.are(&all_of_api).await?;
        web.change(&setup).await?;
        web.change(&setup).await?;

        let mark = setup.cluster.mark().await?;
        controller_manager.end().await?;
        let (ended, last_renewal) = (Instant::now(), setup.renewal().await?);
        let age = age(last_renewal.as_ref().context("kube-controller-manager has renewed its Lease")?)?;
        serves(&agent, true).await?;
        let silence = ended.elapsed() + age;
        ensure!(silence >= AFTER, "it took over {silence:?} after the last renewal");
        web.change(&setup).await.context("the agent serves")?;
        let [ours, theirs] = setup.writes(mark).await?;
        assert_eq!((ours.count(), theirs.count()), (1, 0), "all was as it should be but for the change:\n{ours}");

        let (mark, before) = (setup.cluster.mark().await?, web.changes);
        let _controller_manager = setup.start_controller_manager().await?;
        let deadline = Deadline::start();
        while is_serving(&agent).await? {
            deadline.check().context("kube-controller-manager is back, and the agent goes on")?;
            web.change(&setup).await?;
            sleep(POLL).await;
        }
        ensure!(setup.renewal().await? > last_renewal, "nobody told it to stop\n{}", agent.log().tail());
        let [while_it_stopped, _] = setup.writes(mark).await?;
        for _ in 0..4 {
            web.change(&setup).await.context("kube-controller-manager serves")?;
        }
        let [ours, theirs] = setup.writes(mark).await?;
        assert_eq!(ours, while_it_stopped, "who has stopped writes nothing more");
        assert!(theirs.count() >= 4, "{theirs}");
        assert_eq!(ours.count() + theirs.count(), web.changes - before, "one write for each change:\n{ours}{theirs}");

        web.routes.always_had(&["10.1.0.1:8080"])?;
        api.always_had(&all_of_api)?;
        Ok(())
    })
}
