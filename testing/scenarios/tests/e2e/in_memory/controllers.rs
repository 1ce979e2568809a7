//! Tests of `--controllers`: each part of the member agent runs in a separate process, and makes only the writes of
//! this part.

use anyhow::Context as _;
use fleetnet_api::crd::{EndpointSliceExport, EndpointSliceImport, ServiceImport};
use harness::agent::AgentSpec;
use harness::endpoints::Workload;
use harness::fleet::create_namespace;
use harness::in_memory::{AGENT, Server, hub_agent, member_agent, member_agent_of};
use harness::process::Ended;
use harness::user::{Consume, User};
use harness::{eventually, run};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::WatchParams;
use kube::core::ResourceExt as _;
use serde_json::json;
use std::collections::BTreeMap;

/// Namespace of the users.
const WORK: &str = "work";
const MEMBER_LEASES: [&str; 2] =
    ["2bf2b407.hub.networking.fleet.azure.com", "2bf2b407.member.networking.fleet.azure.com"];
const MCS_LEASES: [&str; 2] =
    ["2bf2b407.mcs.hub.networking.fleet.azure.com", "2bf2b407.mcs.member.networking.fleet.azure.com"];

/// Writes of one process: in the member cluster, and in the hub.
type Written = [Vec<String>; 2];

/// Hub, and a member that imports a Service that it exports.
struct Clusters {
    own: Server,
    hub: Server,
    user: User,
}

impl Clusters {
    async fn start() -> anyhow::Result<Self> {
        let (own, hub) = (Server::start("member").await?, Server::start("hub").await?);
        for client in [own.admin(), hub.admin()] {
            create_namespace(&client, WORK).await?;
        }
        let user = User::new(own.admin(), WORK);
        Ok(Self { own, hub, user })
    }

    /// Creates objects for which each part of the member agent must make writes.
    async fn all_is_requested(&self) -> anyhow::Result<()> {
        self.user.export_new("app", &["10.1.0.1"]).await?;
        self.user.import("app", "app", Consume::LoadBalancer).await?;
        self.selects("web").await
    }

    /// Creates a Service that selects a pod, for the EndpointSlice controller.
    async fn selects(&self, name: &str) -> anyhow::Result<()> {
        let workload = Workload::begin(self.own.admin(), WORK).await?;
        workload.service(name).await?;
        workload.pods(name, &["10.1.0.7"]).await
    }

    /// Runs a process with these parts until `sees` returns, and stops the process. Returns the writes of the process.
    async fn runs(&self, parts: &str, sees: impl AsyncFn() -> anyhow::Result<()>) -> anyhow::Result<Written> {
        let before = [self.own.written(), self.hub.written()];
        let spec = member_agent_of(&self.own, &self.hub);
        let agent = spec.flag("--controllers", parts).flag("--endpointslices", "on").start_ready().await?;
        sees().await.with_context(|| agent.log().tail())?;
        assert_eq!(agent.terminate().await?, Ended::Exited(0), "{parts}");
        let [of_own, of_hub] = before;
        Ok([since(&of_own, self.own.written()), since(&of_hub, self.hub.written())])
    }
}

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Returns the writes between two counts, as lines with the number of writes.
fn since(before: &BTreeMap<String, u64>, now: BTreeMap<String, u64>) -> Vec<String> {
    let new = now.into_iter().map(|(name, count)| (count - before.get(&name).copied().unwrap_or_default(), name));
    let seen = new.filter(|(count, _)| *count > 0);
    // The line of heartbeats has no number, because the number depends on how long the process ran.
    let shown = seen.map(|(count, name)| if name.contains("memberagents") { name } else { format!("{count} {name}") });
    shown.map(|line| line.replace(".networking.fleet.azure.com", "").replace(".discovery.k8s.io", "")).collect()
}

/// Rule A14: A member agent runs only one controller (`--controllers`)
/// Then: The controller works in the same way as in an agent that runs all controllers. The agent uses the Leases of
/// the Go manager that this controller replaces, and writes no objects of the other controllers. With
/// `--enable-networking-features=false`, it runs no controller: it only sends heartbeats to a fleet manager, for these
/// controllers, and needs no kind of Services and slices. With `--enable-v1beta1-apis=false`, it ignores the fleet
/// manager
#[test]
fn each_controller_alone_does_its_work_and_nothing_else() -> anyhow::Result<()> {
    run(async {
        let clusters = Clusters::start().await?;
        let (user, own, hub) = (&clusters.user, &clusters.own, &clusters.hub);
        let _hub_agent = hub_agent(hub).start_ready().await?;
        clusters.all_is_requested().await?;
        let distributed: Api<EndpointSliceImport> = Api::namespaced(hub.admin(), "fleet-member-member-1");
        let are_distributed = async |count: usize| {
            let are_there = |objects: &BTreeMap<String, EndpointSliceImport>| objects.len() == count;
            eventually::objects(&distributed, &WatchParams::default(), "slices to be distributed", are_there).await
        };

        let slices: Api<EndpointSliceExport> = Api::namespaced(hub.admin(), "fleet-member-member-1");
        let exports = async || {
            let is_there = |objects: &BTreeMap<String, EndpointSliceExport>| objects.len() == 1;
            eventually::objects(&slices, &WatchParams::default(), "a slice to be exported", is_there).await?;
            user.sees_export("app", "Conflict", "False", "NoConflictFound").await
        };
        let exported = clusters.runs("export", exports).await?;
        let in_hub = ["1 create endpointsliceexports", "1 create internalserviceexports"];
        assert_eq!(exported[0], ["1 patch serviceexports", "2 patch serviceexports/status"]);
        assert_eq!(exported[1], [&in_hub[..], &["create memberagents", "patch memberagents"]].concat());
        assert_eq!(own.holders().await?.into_keys().collect::<Vec<_>>(), MEMBER_LEASES);

        let sees_claim = async || {
            eventually::exists(&user.api::<ServiceImport>(), "app").await?;
            user.sees_import("app", "Unknown").await
        };
        let writes = clusters.runs("multiclusterservice", sees_claim).await?;
        let request =
            ["1 create serviceimports", "1 patch multiclusterservices", "1 patch multiclusterservices/status"];
        assert_eq!(writes, [owned(&request), vec![]]);
        let leases = [&MEMBER_LEASES[..], &MCS_LEASES].concat();
        assert!(own.holders().await?.into_keys().all(|name| leases.contains(&&*name)));

        let claims = async || {
            are_distributed(1).await?;
            let shows = |import: &ServiceImport| {
                import
                    .status
                    .as_ref()
                    .and_then(|status| status.import.clusters.as_ref())
                    .is_some_and(|clusters| !clusters.is_empty())
            };
            eventually::object(&user.api::<ServiceImport>(), "app", "its exporters to be shown", shows).await.map(drop)
        };
        let claimed = clusters.runs("import", claims).await?;
        let in_hub = ["1 create internalserviceimports", "patch memberagents"];
        assert_eq!(claimed, [owned(&["1 patch serviceimports/status"]), owned(&in_hub)]);

        let derives = async || user.sees_import("app", "True").await;
        let derived = clusters.runs("multiclusterservice", derives).await?;
        let request = ["1 create services", "1 patch multiclusterservices", "1 patch multiclusterservices/status"];
        assert_eq!(derived, [owned(&request), vec![]]);

        let imports = async || user.sees("app", &["10.1.0.1"]).await.map(drop);
        let imported = clusters.runs("import", imports).await?;
        let in_hub = ["1 patch endpointsliceimports", "patch memberagents"];
        assert_eq!(imported, [owned(&["1 create endpointslices"]), owned(&in_hub)]);

        let makes = async || slices_of(user, "web").await.map(drop);
        let made = clusters.runs("endpointslice", makes).await?;
        assert_eq!(made, [owned(&["1 create endpointslices"]), vec![]]);
        Ok(())
    })
}

/// Waits until a Service in the users' namespace has slices, and returns them.
async fn slices_of(user: &User, service: &str) -> anyhow::Result<Vec<EndpointSlice>> {
    let of_service = WatchParams::default().labels(&format!("kubernetes.io/service-name={service}"));
    let what = format!("slices of {service} to be there");
    let slices =
        eventually::objects(&user.api::<EndpointSlice>(), &of_service, &what, |objects| !objects.is_empty()).await?;
    Ok(slices.into_values().collect())
}

/// Returns settings for a process that runs only the EndpointSlice controller.
fn controller(own: &Server) -> AgentSpec {
    member_agent(own).flag("--controllers", "endpointslice").flag("--endpointslices", "on")
}

#[test]
fn slices_carry_the_name_of_their_manager_and_those_of_another_stay() -> anyhow::Result<()> {
    run(async {
        let clusters = Clusters::start().await?;
        let user = &clusters.user;
        clusters.selects("web").await?;
        let spec = json!({
            "metadata": {"name": "web-other", "labels": {
                "kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            }},
            "addressType": "IPv4", "endpoints": [{"addresses": ["10.9.0.9"]}], "ports": [],
        });
        let other = user.create::<EndpointSlice>(spec).await?;
        let agent = controller(&clusters.own).flag("--endpointslices-managed-by", "slices.example.com").start().await?;
        let of_agent = WatchParams::default().labels("endpointslice.kubernetes.io/managed-by=slices.example.com");
        let what = "a slice of the manager to be there";
        let made =
            eventually::objects(&user.api::<EndpointSlice>(), &of_agent, what, |objects| objects.len() == 1).await;
        let made = made.with_context(|| agent.log().tail())?;
        assert_eq!(made.into_values().flat_map(|slice| slice.endpoints).flatten().count(), 1);
        assert_eq!(agent.terminate().await?, Ended::Exited(0));
        let slice = user.api::<EndpointSlice>().get("web-other").await?;
        assert_eq!(slice.resource_version(), other.resource_version(), "{AGENT} has written to it");
        Ok(())
    })
}
