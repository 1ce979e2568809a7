//! Tests of the EndpointSlice controller in the member agents of a fleet. In mode `auto`, the Lease of
//! kube-controller-manager determines whether the controller is active. Time is paused, so waits of three minutes cost
//! nothing.

use crate::support::OnMemkube;
use anyhow::Context as _;
use endpointslice_controller::{Mode, Settings};
use fleetnet_core::names::{CONTROLLER_MANAGER_LEASE, KUBE_SYSTEM};
use fleetnet_runtime::clock::micro_time;
use harness::audit::Ledger;
use harness::endpoints::{PodSketch, Workload};
use harness::eventually;
use harness::user::Consume;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams, WatchParams};
use memkube::auth::{Call, Verb};
use memkube::faults::{Answer, Fate, Fault, Faults, WatchFaults, WatchedEvent};
use scenarios::environment::{Backend as _, Environment};
use serde_json::json;
use sim::fleet::{MEMBER_AGENT, Place};
use sim::server::FLEET_SYSTEM;
use sim::{Fleet, Options};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Duration that is longer than the controller waits before it becomes active in mode `auto`.
const LONG: Duration = Duration::from_secs(600);

/// Returns a fleet whose member agents have the EndpointSlice controller in this mode.
async fn fleet(mode: Mode) -> anyhow::Result<Fleet> {
    Fleet::new(Options { endpointslices: Some(Settings::with_mode(mode)), ..Options::members(2) }).await
}

async fn env(mode: Mode) -> anyhow::Result<Environment<OnMemkube>> {
    Environment::on(OnMemkube(fleet(mode).await?)).await
}

/// Creates a Service with one pod in the first member.
async fn workload(env: &Environment<OnMemkube>) -> anyhow::Result<Workload> {
    let workload = Workload::begin(env.members[0].client.clone(), &env.namespace).await?;
    workload.service("app").await?;
    workload.pods("app", &["10.1.0.1"]).await?;
    Ok(workload)
}

async fn another_pod(workload: &Workload) -> anyhow::Result<()> {
    workload.pod(&PodSketch::new("app-1", "app", &["10.1.0.2"])).await.map(drop)
}

/// Waits at most [`LONG`] until a slice has this address.
async fn shows(workload: &Workload, address: &str) -> anyhow::Result<()> {
    let is_shown =
        |slice: &EndpointSlice| slice.endpoints.iter().flatten().any(|endpoint| endpoint.addresses == [address]);
    let selection = WatchParams::default();
    eventually::objects_within(LONG, &workload.user.api::<EndpointSlice>(), &selection, address, |objects| {
        objects.values().any(is_shown)
    })
    .await
    .map(drop)
}

/// Renews the Lease of kube-controller-manager, as kube-controller-manager does every 2 s.
async fn renew_lease(env: &Environment<OnMemkube>) -> anyhow::Result<()> {
    let leases: Api<Lease> = Api::namespaced(env.members[0].client.clone(), KUBE_SYSTEM);
    let renewed = micro_time(env.backend.0.clock().now());
    let spec = json!({"holderIdentity": "it", "leaseDurationSeconds": 15, "renewTime": renewed});
    let lease = json!({"metadata": {"name": CONTROLLER_MANAGER_LEASE}, "spec": spec});
    let renewed = leases.patch(CONTROLLER_MANAGER_LEASE, &PatchParams::default(), &Patch::Merge(&lease)).await;
    if matches!(&renewed, Err(kube::Error::Api(status)) if status.code == 404) {
        leases.create(&PostParams::default(), &serde_json::from_value(lease)?).await?;
        return Ok(());
    }
    renewed?;
    Ok(())
}

#[test]
fn a_pods_change_is_an_importers_with_one_write_more_than_that_of_a_slice() -> anyhow::Result<()> {
    sim::paused(async {
        let env = env(Mode::On).await?;
        let workload = workload(&env).await?;
        env.user(0).export("app").await?;
        env.user(1).import("app", "app", Consume::ClusterIp).await?;
        env.user(1).sees("app", &["10.1.0.1"]).await?;

        let mark = env.backend.mark().await?;
        another_pod(&workload).await?;
        let begun = Instant::now();
        env.user(1).sees("app", &["10.1.0.1", "10.1.0.2"]).await?;
        assert_eq!(begun.elapsed(), Duration::ZERO, "nothing on the way of a change waits");
        let [from, to] = [0, 1].map(|member| &env.members[member].hub_namespace);
        let once = |writes: &[String]| writes.iter().map(|write| (write.clone(), 1)).collect::<BTreeMap<_, usize>>();
        assert_eq!(
            env.ledger(&mark).await?,
            [
                once(&[
                    format!("patch endpointsliceexports in {from} by member-agent"),
                    format!("patch endpointsliceimports in {to} by hub-agent"),
                ]),
                once(&[format!("update endpointslices in {} by member-agent", env.namespace)]),
                once(&["patch endpointslices in fleet-system by member-agent".to_owned()]),
            ]
        );

        let slice = workload.slice("app").await?.metadata;
        let annotations = slice.annotations.unwrap_or_default();
        let others: Vec<_> = annotations.keys().filter(|key| !key.starts_with("endpoints.kubernetes.io/")).collect();
        assert!(others.is_empty(), "an exported slice gets no annotation of the fleet: {others:?}");
        assert_eq!(slice.finalizers, None);
        Ok(())
    })
}

/// Fault that suppresses watch events of slices in users' namespaces.
struct NoSliceEvents;

impl Faults for NoSliceEvents {
    fn watch(&self, call: &Call) -> Option<Box<dyn WatchFaults>> {
        let is_meant = &*call.target.resource == "endpointslices" && &*call.user.name == MEMBER_AGENT;
        is_meant.then(|| Box::new(NoSliceEvents) as Box<dyn WatchFaults>)
    }
}

impl WatchFaults for NoSliceEvents {
    fn event(&mut self, event: &WatchedEvent) -> Fate {
        if &*event.namespace == FLEET_SYSTEM { Fate::Deliver } else { Fate::Lose }
    }
}

#[test]
fn an_exported_services_change_does_not_wait_for_the_watch_of_its_slice() -> anyhow::Result<()> {
    sim::paused(async {
        let fleet = fleet(Mode::On).await?;
        fleet.members[0].server.memkube().set_faults(Some(Arc::new(NoSliceEvents)));
        let env = Environment::on(OnMemkube(fleet)).await?;
        let workload = workload(&env).await?;
        env.user(0).export("app").await?;
        env.user(1).import("app", "app", Consume::ClusterIp).await?;
        env.user(1).sees("app", &["10.1.0.1"]).await?;
        sleep(Duration::from_secs(1)).await;
        another_pod(&workload).await?;
        let begun = Instant::now();
        env.user(1).sees("app", &["10.1.0.1", "10.1.0.2"]).await?;
        assert_eq!(begun.elapsed(), Duration::ZERO, "the answer to the write is enough");
        Ok(())
    })
}

#[test]
fn auto_serves_once_kube_controller_manager_is_silent_for_three_minutes_and_stops_when_it_is_back() -> anyhow::Result<()>
{
    sim::paused(async {
        let env = env(Mode::Auto).await?;
        let workload = workload(&env).await?;
        sleep(Duration::from_secs(600)).await;
        assert!(workload.slices("app").await?.is_empty(), "without a Lease, nobody can tell");
        for _ in 0..150 {
            renew_lease(&env).await?;
            sleep(Duration::from_secs(2)).await;
        }
        let silent_since = Instant::now() - Duration::from_secs(2);
        assert!(workload.slices("app").await?.is_empty(), "five minutes in which it was at work");
        let entries = env.backend.0.members[0].server.memkube().audit().entries;
        let for_pods = entries.iter().filter(|entry| &*entry.call.target.resource == "pods");
        let by_agent = for_pods.filter(|entry| &*entry.call.user.name == MEMBER_AGENT).count();
        assert_eq!(by_agent, 0, "nobody watches pods for nothing");

        shows(&workload, "10.1.0.1").await?;
        let waited = silent_since.elapsed().as_secs();
        assert!((180..=182).contains(&waited), "{waited} s");

        renew_lease(&env).await?;
        sleep(Duration::from_millis(100)).await;
        let mark = env.backend.mark().await?;
        another_pod(&workload).await?;
        sleep(Duration::from_secs(150)).await;
        let ledger = env.backend.since(&mark).await?.objects();
        assert_eq!(ledger.clusters().map(Ledger::count).sum::<usize>(), 0, "{ledger}");
        let metrics = env.backend.0.agent(Place::Member(0)).context("it runs")?.metrics()?;
        assert!(metrics.contains("fleetnet_endpointslices_serving 0\n"), "{metrics}");

        shows(&workload, "10.1.0.2").await?;
        Ok(())
    })
}

/// Forbids the member agents to list or watch a resource while the returned flag is set. For Leases, leader election
/// still works, because it needs only the right to get them.
fn forbid(env: &Environment<OnMemkube>, resource: &'static str) -> Arc<AtomicBool> {
    let forbidden = Arc::new(AtomicBool::new(false));
    let is_forbidden = Arc::clone(&forbidden);
    let allows = move |call: &Call| {
        &*call.target.resource != resource
            || &*call.user.name != MEMBER_AGENT
            || !matches!(call.verb, Verb::List | Verb::Watch)
            || !is_forbidden.load(Ordering::Relaxed)
    };
    env.backend.0.members[0].server.memkube().set_policy(Arc::new(allows));
    forbidden
}

/// Duration after which an agent has noticed that it lost a right. It is longer than an open watch lasts, plus the wait
/// before the agent retries a denied watch.
const NOTICED: Duration = Duration::from_secs(400);

#[test]
fn an_agent_without_the_right_to_read_pods_writes_nothing_until_it_has_it_again() -> anyhow::Result<()> {
    sim::paused(async {
        let env = env(Mode::On).await?;
        let workload = workload(&env).await?;
        shows(&workload, "10.1.0.1").await?;
        let forbidden = forbid(&env, "pods");
        forbidden.store(true, Ordering::Relaxed);
        sleep(NOTICED).await;
        let mark = env.backend.mark().await?;
        workload.delete_slices().await?;
        another_pod(&workload).await?;
        sleep(NOTICED).await;
        let ledger = env.backend.since(&mark).await?.objects();
        assert_eq!(ledger.clusters().map(Ledger::count).sum::<usize>(), 0, "of pods as they were: {ledger}");
        forbidden.store(false, Ordering::Relaxed);
        shows(&workload, "10.1.0.2").await
    })
}

#[test]
fn a_lease_that_may_not_be_read_any_more_does_not_count_as_silent() -> anyhow::Result<()> {
    sim::paused(async {
        let env = env(Mode::Auto).await?;
        renew_lease(&env).await?;
        let workload = workload(&env).await?;
        let forbidden = forbid(&env, "leases");
        let renew = async |times: usize| {
            for _ in 0..times {
                renew_lease(&env).await?;
                sleep(Duration::from_secs(2)).await;
            }
            anyhow::Ok(())
        };
        renew(30).await?;
        forbidden.store(true, Ordering::Relaxed);
        renew(300).await?;
        assert!(workload.slices("app").await?.is_empty(), "ten minutes in which nobody could tell");
        Ok(())
    })
}

/// Fault: the server executes creates of slices, but does not respond.
struct Silent;

impl Faults for Silent {
    fn request(&self, call: &Call) -> Fault {
        let is_meant = call.verb == Verb::Create && &*call.target.resource == "endpointslices";
        let is_meant = is_meant && &*call.user.name == MEMBER_AGENT;
        Fault { answer: if is_meant { Answer::Never } else { Answer::Whole }, ..Fault::default() }
    }
}

#[test]
fn no_more_writes_of_slices_are_under_way_than_concurrent_service_endpoint_syncs_allows() -> anyhow::Result<()> {
    sim::paused(async {
        for concurrent_syncs in [1, 2, 5] {
            let settings = Settings { concurrent_syncs, ..Settings::with_mode(Mode::On) };
            let fleet = Fleet::new(Options { endpointslices: Some(settings), ..Options::members(1) }).await?;
            fleet.members[0].server.memkube().set_faults(Some(Arc::new(Silent)));
            let env = Environment::on(OnMemkube(fleet)).await?;
            let workload = Workload::begin(env.members[0].client.clone(), &env.namespace).await?;
            for number in 0..8 {
                let name = format!("app-{number}");
                workload.service(&name).await?;
                workload.pods(&name, &["10.1.0.1"]).await?;
            }
            // Wait 5 s, so that the requests without a response are still in flight: they fail after 10 s.
            sleep(Duration::from_secs(5)).await;
            let slices =
                async || Ok::<_, kube::Error>(workload.user.api::<EndpointSlice>().list(&Default::default()).await?);
            assert_eq!(slices().await?.items.len(), concurrent_syncs);

            env.backend.0.members[0].server.memkube().set_faults(None);
            sleep(LONG).await;
            assert_eq!(slices().await?.items.len(), 8);
        }
        Ok(())
    })
}
