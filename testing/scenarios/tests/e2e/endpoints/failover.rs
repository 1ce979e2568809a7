//! Tests of two replicas of the member agent with `--endpointslices=auto`, after kube-controller-manager has stopped.

use anyhow::{Context as _, ensure};
use harness::agent::Agent;
use harness::endpoints::{Cluster, Kind, PodSketch, Workload, is_serving, serves};
use harness::eventually::{self, Deadline};
use harness::fleet::{FLEET_SYSTEM, MEMBER_AGENT};
use harness::routes::Routes;
use harness::run;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use tokio::sync::watch;

/// Name of the Lease whose holder runs the active EndpointSlice controller.
const LEASE: &str = "fleetnet-endpointslices";
/// Flags of the replicas. 30 s after the last renewal by a killed leader, its Lease expires, and the controller of
/// another replica becomes active. The actions of the test in these 30 s take much less time, even on a busy machine.
const FLAGS: [(&str, &str); 6] = [
    ("--endpointslices", "auto"),
    ("--endpointslices-takeover-after", "15s"),
    ("--max-endpoints-per-slice", "2"),
    ("--leader-election-lease-duration", "30s"),
    ("--leader-election-renew-deadline", "10s"),
    ("--leader-election-retry-period", "500ms"),
];
/// Addresses of pods that are ready all the time.
const STEADY: [&str; 4] = ["10.1.0.1:8080", "10.1.0.3:8080", "10.1.0.5:8080", "10.1.0.6:8080"];
/// Addresses of pods that alternate between ready and not ready. The pods are in two of the three slices.
const RESTLESS: [&str; 2] = ["10.1.0.2:8080", "10.1.0.4:8080"];

/// Pods of the test. Two of them alternate between ready and not ready.
struct Pods<'a>(&'a Workload);

impl Pods<'_> {
    async fn report(&self, restless: usize, is_ready: bool) -> anyhow::Result<()> {
        let (number, address) = [(1, "10.1.0.2"), (3, "10.1.0.4")][restless];
        let pod = PodSketch::new(&format!("web-{number}"), "web", &[address]);
        self.0.report(&if is_ready { pod } else { pod.unready() }).await.map(drop)
    }

    /// Changes the readiness of the first of the two pods until `stop` is true. Publishes the number of changes in
    /// `changes`.
    async fn flap(&self, changes: &watch::Sender<usize>, stop: &watch::Sender<bool>) -> anyhow::Result<()> {
        while !*stop.borrow() {
            let change = *changes.borrow() + 1;
            self.report(0, change.is_multiple_of(2)).await?;
            changes.send_replace(change);
        }
        Ok(())
    }
}

/// Returns the expected addresses. `restless` says for each of the two changing pods if the pod is ready.
fn routed(restless: [bool; 2]) -> Vec<&'static str> {
    let ready = RESTLESS.into_iter().zip(restless).filter(|(_, is_ready)| *is_ready);
    STEADY.into_iter().chain(ready.map(|(address, _)| address)).collect()
}

async fn lease(cluster: &Cluster) -> anyhow::Result<LeaseSpec> {
    let leases: Api<Lease> = Api::namespaced(cluster.control_plane.admin(), FLEET_SYSTEM);
    eventually::exists(&leases, LEASE).await?.spec.context("a Lease says who holds it")
}

/// Waits until `count` more changes of readiness have been made.
async fn more(changes: &watch::Sender<usize>, count: usize) -> anyhow::Result<()> {
    let enough = *changes.borrow() + count;
    let (mut seen, deadline) = (changes.subscribe(), Deadline::start());
    tokio::select! {
        seen = seen.wait_for(|changes| *changes >= enough) => { seen?; Ok(()) }
        () = deadline.passed() => deadline.check(),
    }
}

/// True if the first of the two changing pods is ready in its slice.
async fn is_published(workload: &Workload) -> anyhow::Result<bool> {
    let slices = workload.slices("web").await?;
    let mut endpoints = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten());
    let of_it = endpoints.find(|endpoint| endpoint.addresses == ["10.1.0.2"]).context("it has an endpoint")?;
    Ok(of_it.conditions.as_ref().and_then(|conditions| conditions.ready) == Some(true))
}

/// Asserts that the controller publishes changes, and that each of several consecutive changes costs one write.
async fn at_work(cluster: &Cluster, pods: &Pods<'_>, routes: &mut Routes) -> anyhow::Result<()> {
    let mark = cluster.mark().await?;
    for is_ready in [false, true, false, true] {
        pods.report(1, is_ready).await?;
        routes.are(&routed([true, is_ready])).await?;
    }
    cluster.agent_wrote(mark, &[(4, "update endpointslices")]).await
}

/// True if the agent has tried to write an object. Its renewals of Leases and its Events do not count.
async fn has_written(agent: &Agent) -> anyhow::Result<bool> {
    let (_, metrics) = agent.get("/metrics").await?;
    Ok(metrics.lines().any(|line| line.starts_with("fleetnet_writes_total{")))
}

#[test]
fn a_replica_takes_over_from_one_killed_while_pods_change_and_makes_each_write_once() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::take(Kind::WithoutControllerManager, "failover").await?;
        cluster.controller_manager_is_gone().await?;
        let workload = cluster.workload().await?;
        let addresses = ["10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4", "10.1.0.5", "10.1.0.6"];
        // Create the pods before the Service, so that the controller sees all pods at once. Otherwise the time of each
        // pod would decide which slice contains the pod.
        workload.pods("web", &addresses).await?;
        workload.service("web").await?;
        let leader = cluster.serve(&FLAGS).await?;
        serves(&leader, true).await?;
        workload.sees_all("web", "three slices", |objects| objects.len() == 3).await?;
        let (pods, mut routes) = (Pods(&workload), workload.routes("web"));
        routes.are(&routed([true, true])).await?;
        let of_leader = lease(&cluster).await?;

        let replica = cluster.serve(&FLAGS).await?;
        at_work(&cluster, &pods, &mut routes).await?;
        ensure!(is_serving(&leader).await? && !is_serving(&replica).await?, "one of the two serves");

        let mark = cluster.mark().await?;
        let (changes, stop) = (watch::Sender::new(0), watch::Sender::new(false));
        let kill = async {
            more(&changes, 20).await?;
            ensure!(has_written(&leader).await? && !has_written(&replica).await?, "only the leader writes");
            leader.kill().await?;
            let killed_at = *changes.borrow();
            more(&changes, 20).await?;
            stop.send_replace(true);
            anyhow::Ok(killed_at)
        };
        let ((), killed_at) = tokio::try_join!(pods.flap(&changes, &stop), kill)?;
        // Requests of the killed replica may reach the server after the replica has ended. The call of `mark` waits
        // until these requests have a response.
        let nobody = cluster.mark().await?;
        let of_killed = cluster.written_by(MEMBER_AGENT, mark).await?;
        assert!((1..=killed_at + 1).contains(&of_killed.count()), "{killed_at} changes:\n{of_killed}");
        let is_ready = !is_published(&workload).await?;
        pods.report(0, is_ready).await?;
        pods.report(1, false).await?;
        let early = cluster.written_by(MEMBER_AGENT, nobody).await?;
        let waits = early.count() == 0 && !has_written(&replica).await? && !is_serving(&replica).await?;
        ensure!(waits, "it waits\n{}", replica.log().tail());

        routes.are(&routed([is_ready, false])).await?;
        serves(&replica, true).await?;
        let of_replica = lease(&cluster).await?;
        assert_ne!(of_leader.holder_identity, of_replica.holder_identity);
        assert_eq!(of_replica.lease_transitions, of_leader.lease_transitions.map(|transitions| transitions + 1));
        workload.settle("marker").await?;
        let caught_up = [(1, "create endpointslices"), (2, "update endpointslices")];
        cluster.agent_wrote(nobody, &caught_up).await.context("a write for each slice that is not as it should be")?;
        let written = cluster.written_by(MEMBER_AGENT, nobody).await?;
        let mut verbs: Vec<&str> = written.0.iter().map(|entry| entry.verb.as_str()).collect();
        verbs.dedup();
        assert_eq!(verbs, ["update", "create"], "the slices that it took over, and then the one of the marker");
        pods.report(0, true).await?;
        pods.report(1, true).await?;
        routes.are(&routed([true, true])).await?;
        at_work(&cluster, &pods, &mut routes).await.context("the replica")?;

        routes.always_had(&STEADY)?;
        routes.no_repeated_event()
    })
}
