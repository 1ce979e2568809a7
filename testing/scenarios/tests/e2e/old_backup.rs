//! Tests of a hub whose etcd is restored from an older snapshot while agents run, on real control planes.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::{
    EndpointSliceExport, EndpointSliceImport, InternalServiceExport, InternalServiceImport, MultiClusterService,
    ServiceExport, ServiceImport,
};
use harness::agent::Agent;
use harness::control_plane::{ControlPlane, Revision};
use harness::eventually::{self, Deadline, Shown};
use harness::fleet::{Fleet, manifests};
use harness::gate::GateProxy;
use harness::run;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Longest time for which the hub may have objects again that were deleted after the snapshot.
const BACK: Duration = Duration::from_secs(60);
/// Number of changes between the snapshot and the restore. Each change has two writes to the hub, so the hub's revision
/// is far below what agents have seen, even when the restored servers have written their own objects.
const CHANGES: u8 = 100;

/// Fleet of two members, with these Services of the first one. The second one imports them.
///
/// - `kept` has other endpoints after the snapshot.
/// - `withdrawn` is exported at the snapshot only.
/// - `unwanted` is imported at the snapshot only.
/// - `new` is exported and imported only after the snapshot.
struct Scene {
    exporter: User,
    importer: User,
    agents: Vec<Agent>,
    /// Way to the slice stream of the hub agent.
    _gate: GateProxy,
    fleet: Fleet,
}

impl Scene {
    async fn start(with_streams: bool) -> anyhow::Result<Self> {
        let fleet = Fleet::own(2).await?;
        let namespace = fleet.namespace("backup").await?;
        let user = |index: usize| User::new(fleet.members[index].control_plane.admin(), &namespace);
        let (gate, mut hub_agent) = (GateProxy::start_shut().await?, fleet.hub_agent().await?);
        if with_streams {
            manifests::apply(&fleet.hub, manifests::SLICE_STREAM).await?;
            hub_agent = hub_agent
                .flag("--slice-stream-bind-address", "127.0.0.1:0")
                .flag("--slice-stream-advertise-address", gate.address());
        }
        let hub_agent = hub_agent.start_ready().await?;
        if with_streams {
            gate.open_to(hub_agent.slice_stream_address().await?);
        }
        let mut agents = vec![hub_agent];
        for member in &fleet.members {
            let agent = fleet.member_agent(member).await?.start_ready().await?;
            agent.metrics_have(&format!("fleetnet_slice_stream_connected {}", u8::from(with_streams))).await?;
            agents.push(agent);
        }
        let scene = Self { exporter: user(0), importer: user(1), agents, _gate: gate, fleet };
        for (name, address) in [("kept", "10.1.0.1"), ("withdrawn", "10.1.0.2"), ("unwanted", "10.1.0.3")] {
            scene.share(name, address).await?;
        }
        Ok(scene)
    }

    /// Exports and imports a new Service with one endpoint, and waits until it has arrived.
    async fn share(&self, name: &str, address: &str) -> anyhow::Result<()> {
        self.exporter.export_new(name, &[address]).await?;
        self.importer.import(name, name, Consume::ClusterIp).await?;
        self.importer.sees(name, &[address]).await.map(drop)
    }

    /// Changes everything that the snapshot has.
    async fn churn(&self) -> anyhow::Result<()> {
        for number in 1..=CHANGES {
            let address = format!("10.2.0.{number}");
            self.exporter.set_endpoints("kept-1", &[&address]).await?;
            self.importer.sees("kept", &[&address]).await?;
        }
        self.exporter.delete::<ServiceExport>("withdrawn").await?;
        self.importer.sees_no_slice("withdrawn").await?;
        self.importer.delete::<MultiClusterService>("unwanted").await?;
        eventually::gone(&self.importer.api::<MultiClusterService>(), "unwanted").await?;
        self.share("new", "10.1.0.4").await?;
        let is_left = |line: &String| {
            let is_import = line.starts_with("InternalServiceImport ") || line.starts_with("EndpointSliceImport ");
            line.contains("withdrawn") && !line.starts_with("InternalServiceImport ")
                || line.contains("unwanted") && is_import
        };
        // With slice streams, the distributed slices follow later than the imported slices.
        let last = format!("\"10.2.0.{CHANGES}\"");
        let is_last =
            |line: &String| line.starts_with("EndpointSliceImport ") && line.contains("-kept-") && line.contains(&last);
        let is_new = |present: &BTreeSet<String>| !present.iter().any(is_left) && present.iter().any(is_last);
        self.hub_is("as users changed it", is_new).await.map(drop)
    }

    fn hub(&mut self) -> anyhow::Result<&mut ControlPlane> {
        Arc::get_mut(&mut self.fleet.hub).context("nobody else uses the hub")
    }

    /// Waits until the fleet's objects in the hub fulfil `condition`, for [`BACK`] at most.
    async fn hub_is(
        &self,
        what: &str,
        condition: impl Fn(&BTreeSet<String>) -> bool,
    ) -> anyhow::Result<BTreeSet<String>> {
        let deadline = Deadline::after(BACK);
        loop {
            let present = match objects(&self.fleet.hub).await {
                Ok(present) if condition(&present) => return Ok(present),
                // The server reads its storage again after the restore.
                Err(error) if !is_too_early(&error) => return Err(error),
                present => present,
            };
            deadline.pause(|| format!("the hub is not {what}: {present:#?}")).await?;
        }
    }

    fn ended(&self) -> Vec<&Agent> {
        self.agents.iter().filter(|agent| agent.ended().is_some()).collect()
    }
}

/// True if an API server answered that it cannot answer yet.
fn is_too_early(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 429)
}

/// Returns the names of the fleet's objects in the hub, and the addresses of each slice.
async fn objects(hub: &ControlPlane) -> anyhow::Result<BTreeSet<String>> {
    async fn of<K>(hub: &ControlPlane, details: fn(&K) -> String) -> anyhow::Result<Vec<String>>
    where
        K: Shown + kube::Resource<DynamicType = ()>,
    {
        let all = Api::<K>::all(hub.admin()).list(&Default::default()).await?;
        let line = |object: &K| {
            let namespace = object.namespace().unwrap_or_default();
            format!("{} {namespace}/{}{}", K::kind(&()), object.name_any(), details(object))
        };
        Ok(all.iter().map(line).collect())
    }
    let (exports, imports) =
        (of::<InternalServiceExport>(hub, |_| String::new()), of::<InternalServiceImport>(hub, |_| String::new()));
    let slices = (
        of::<EndpointSliceExport>(hub, |slice| format!(" {:?}", slice.spec.endpoints)),
        of::<EndpointSliceImport>(hub, |slice| format!(" {:?}", slice.spec.slice.endpoints)),
    );
    let services = of::<ServiceImport>(hub, |_| String::new());
    let (exports, imports, exported, imported, services) =
        tokio::try_join!(exports, imports, slices.0, slices.1, services)?;
    Ok([exports, imports, exported, imported, services].into_iter().flatten().collect())
}

async fn newest_revision(hub: &ControlPlane) -> anyhow::Result<u64> {
    let namespaces = Api::<Namespace>::all(hub.admin()).list(&ListParams::default().limit(1)).await?;
    Ok(namespaces.metadata.resource_version.context("a list has a revision")?.parse()?)
}

async fn the_newest_state_wins_after_the_hub_went_back(revision: Revision, with_streams: bool) -> anyhow::Result<()> {
    let mut scene = Scene::start(with_streams).await?;
    let backup = scene.fleet.hub.back_up().await?;
    let at_snapshot = objects(&scene.fleet.hub).await?;
    scene.churn().await?;
    let newest = objects(&scene.fleet.hub).await?;
    ensure!(newest != at_snapshot, "the changes are in the hub");
    let last = format!("10.2.0.{CHANGES}:8080");
    let mut routes = [("kept", last.as_str()), ("new", "10.1.0.4:8080")]
        .map(|(name, address)| (name, address, scene.importer.routes(name)));
    for (_, address, routes) in &mut routes {
        routes.are(&[*address]).await?;
    }

    let before = newest_revision(&scene.fleet.hub).await?;
    scene.hub()?.restore(&backup, revision).await?;
    let back = Instant::now() + BACK;
    let restored = newest_revision(&scene.fleet.hub).await?;
    ensure!((restored < before) == (revision == Revision::OfSnapshot), "the revision was {before}, and is {restored}");
    let wanted = format!("as before its restore: {newest:#?}");
    scene.hub_is(&wanted, |present| *present == newest).await?;
    let importer = async {
        scene.importer.sees_no_slice("withdrawn").await?;
        eventually::gone(&scene.importer.api::<MultiClusterService>(), "unwanted").await
    };
    timeout_at(back, importer).await.context("the importer has what users deleted")??;

    // Later changes arrive, and what is still exported was there at each moment.
    scene.share("later", "10.1.0.5").await?;
    for (name, address, routes) in &routes {
        routes.always_had(&[*address]).with_context(|| format!("endpoints of {name} were withdrawn"))?;
    }
    let ended = scene.ended();
    ensure!(ended.is_empty(), "agents ended: {ended:?}");
    Ok(())
}

/// Also rule V4.
#[test]
fn the_newest_state_wins_after_a_restore_with_a_higher_revision() -> anyhow::Result<()> {
    run(the_newest_state_wins_after_the_hub_went_back(Revision::Raised, false))
}

/// Also rule V4.
#[test]
fn the_newest_state_wins_after_a_restore_with_the_revision_of_the_snapshot() -> anyhow::Result<()> {
    run(the_newest_state_wins_after_the_hub_went_back(Revision::OfSnapshot, false))
}

#[test]
fn the_newest_state_wins_after_a_restore_also_over_slice_streams() -> anyhow::Result<()> {
    run(the_newest_state_wins_after_the_hub_went_back(Revision::OfSnapshot, true))
}
