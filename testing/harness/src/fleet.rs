//! Fleet of one hub and its members. All tests of a process share the fleet, one test at a time.
//!
//! Leftovers of one test are removed before the next one begins: agents watch whole clusters, so the leftovers would
//! cause writes in another test. Cluster ids and namespaces are new for each test.

pub mod manifests;
mod sweep;

pub use crate::control_plane::create_namespace;
pub use manifests::FLEET_SYSTEM;

use crate::agent::AgentSpec;
use crate::audit::{FleetLedger, FleetMark};
use crate::control_plane::{ControlPlane, Options, SERVICE_ACCOUNT};
use crate::limits::MEMBERS;
use crate::turn::Turn;
use anyhow::{Context as _, ensure};
use fleetnet_api::crds::{Form, all, yaml};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::DeleteParams;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::{Mutex, OnceCell};

/// User name of the hub agent in the hub: the service account of `deploy/hub-agent.yaml`.
pub const HUB_AGENT: &str = "system:serviceaccount:fleet-system:hub-agent";
/// User name of a member agent in its own cluster: the service account of `deploy/member-agent.yaml`.
pub const MEMBER_AGENT: &str = "system:serviceaccount:fleet-system:member-agent";

static HUB: OnceCell<Arc<ControlPlane>> = OnceCell::const_new();
static MEMBER: [OnceCell<Arc<ControlPlane>>; MEMBERS] = [const { OnceCell::const_new() }; MEMBERS];
static TURN: Mutex<()> = Mutex::const_new(());
static TESTS: AtomicU32 = AtomicU32::new(0);

/// Shared fleet, for as long as one test uses it.
#[derive(Debug)]
pub struct Fleet {
    pub hub: Arc<ControlPlane>,
    /// Members in the order of their numbers, which begin at 1.
    pub members: Vec<Member>,
    test: u32,
    // Must be the last field. Rust drops the fields in order, so the next test gets the fleet only after the other
    // fields are dropped.
    turn: Turn,
}

/// Member cluster, as one test uses it.
#[derive(Debug)]
pub struct Member {
    pub control_plane: Arc<ControlPlane>,
    /// Cluster id of the member. In a shared fleet it is new for each test: `member-1-t7`.
    pub cluster_id: String,
    /// Namespace of the member in the hub: `fleet-member-<cluster id>`.
    pub hub_namespace: String,
    /// User name of the member's agent in the hub: the service account of `deploy/hub-member.yaml`.
    pub hub_user: String,
}

impl Fleet {
    /// Waits until no other test uses the shared fleet. Returns the fleet with this number of members. Starts control
    /// planes that do not run yet, in parallel. The fleet has the CRDs, the agents' namespaces and roles, and no
    /// objects of an earlier test.
    pub async fn take(members: usize) -> anyhow::Result<Self> {
        ensure!(members <= MEMBERS, "a fleet has at most {MEMBERS} members, not {members}");
        let turn = Turn::of(&TURN).await;
        let hub = HUB.get_or_try_init(async || start_hub().await.map(Arc::new));
        let members = (0..members).map(async |index| {
            let started = MEMBER[index].get_or_try_init(async || start_member(index).await.map(Arc::new));
            started.await.map(Arc::clone)
        });
        let (hub, members) = futures::future::try_join(hub, futures::future::try_join_all(members)).await?;
        let fleet = Self::of(Arc::clone(hub), members, turn);
        for control_plane in fleet.control_planes() {
            sweep::sweep(control_plane).await?;
        }
        fleet.admitted().await
    }

    /// Starts a fleet that no other test uses, for a test that changes CRDs, roles or servers. The servers end when the
    /// test drops the last reference to them.
    pub async fn own(members: usize) -> anyhow::Result<Self> {
        let turn = Turn::with_own_servers().await;
        let started = futures::future::try_join_all((0..members).map(start_member));
        let (hub, members) = futures::future::try_join(start_hub(), started).await?;
        Self::of(Arc::new(hub), members.into_iter().map(Arc::new).collect(), turn).admitted().await
    }

    /// Returns a fleet of servers that the caller has started and prepared ([`install_hub`], [`install_member`]). The
    /// cluster id of a member is the name of its control plane.
    pub async fn of_servers(hub: ControlPlane, members: Vec<ControlPlane>) -> anyhow::Result<Self> {
        let turn = Turn::with_own_servers().await;
        let members = members.into_iter().map(|it| Member::new(it.name().to_owned(), Arc::new(it))).collect();
        Self { hub: Arc::new(hub), members, test: next_test(), turn }.admitted().await
    }

    fn of(hub: Arc<ControlPlane>, members: Vec<Arc<ControlPlane>>, turn: Turn) -> Self {
        let test = next_test();
        let members = (1..).zip(members).map(|(number, it)| Member::new(format!("member-{number}-t{test}"), it));
        Self { members: members.collect(), hub, test, turn }
    }

    async fn admitted(self) -> anyhow::Result<Self> {
        for member in &self.members {
            admit(&self.hub, &member.cluster_id).await?;
        }
        Ok(self)
    }

    /// Creates a namespace for users, `<name>-t<number of the test>`, in the hub and every member. Returns its name.
    pub async fn namespace(&self, name: &str) -> anyhow::Result<String> {
        let name = format!("{name}-t{}", self.test);
        for control_plane in self.control_planes() {
            control_plane.create_namespace(&name).await?;
        }
        Ok(name)
    }

    /// Returns settings for the hub agent: as the user [`HUB_AGENT`], on free ports.
    pub async fn hub_agent(&self) -> anyhow::Result<AgentSpec> {
        let hub = self.hub.access(HUB_AGENT).await?;
        Ok(with_long_leases(AgentSpec::new("hub-agent", "hub-agent"))
            .flag("--kubeconfig", hub.write_kubeconfig(self.hub.folder())?)
            .flag("--leader-election-namespace", FLEET_SYSTEM)
            .flag("--metrics-bind-address", FREE)
            .flag("--health-probe-bind-address", FREE)
            .within(&self.turn))
    }

    /// Returns settings for a member's agent: as the user [`MEMBER_AGENT`] in its cluster and as its `hub_user` in the
    /// hub, on free ports.
    pub async fn member_agent(&self, member: &Member) -> anyhow::Result<AgentSpec> {
        let hub = self.hub.access(&member.hub_user).await?;
        let own = member.control_plane.access(MEMBER_AGENT).await?;
        let name = format!("member-agent of {}", member.cluster_id);
        Ok(with_long_leases(on_free_ports(AgentSpec::new("member-agent", &name)))
            .variable("HUB_SERVER_URL", &hub.server_url)
            .variable("HUB_CERTIFICATE_AUTHORITY", hub.authority_base64())
            .variable("CONFIG_PATH", hub.write_token(self.hub.folder())?)
            .variable("MEMBER_CLUSTER_NAME", &member.cluster_id)
            .flag("--kubeconfig", own.write_kubeconfig(member.control_plane.folder())?)
            .flag("--leader-election-namespace", FLEET_SYSTEM)
            .flag("--fleet-system-namespace", FLEET_SYSTEM)
            .within(&self.turn))
    }

    /// Returns the present position in the audit log of every cluster.
    pub async fn mark(&self) -> anyhow::Result<FleetMark> {
        let mut members = Vec::new();
        for member in &self.members {
            members.push(member.control_plane.audit().mark().await?);
        }
        Ok(FleetMark { hub: self.hub.audit().mark().await?, members })
    }

    /// Returns the writes of all users in every cluster after the position `mark`.
    pub async fn since(&self, mark: &FleetMark) -> anyhow::Result<FleetLedger> {
        let mut members = Vec::new();
        for (member, mark) in self.members.iter().zip(&mark.members) {
            members.push(member.control_plane.audit().since(*mark).await?);
        }
        Ok(FleetLedger { hub: self.hub.audit().since(mark.hub).await?, members })
    }

    fn control_planes(&self) -> impl Iterator<Item = &ControlPlane> {
        std::iter::once(&*self.hub).chain(self.members.iter().map(|member| &*member.control_plane))
    }
}

/// Address with port 0: the kernel chooses a free port, and the agent logs the port.
const FREE: &str = "127.0.0.1:0";

/// Puts all admin ports of a member agent on free ports.
#[must_use]
pub fn on_free_ports(spec: AgentSpec) -> AgentSpec {
    spec.flag("--hub-metrics-bind-address", FREE)
        .flag("--hub-health-probe-bind-address", FREE)
        .flag("--member-metrics-bind-address", FREE)
        .flag("--member-health-probe-bind-address", FREE)
        .flag("--metrics-bind-address", FREE)
        .flag("--health-probe-bind-address", FREE)
}

/// Gives an agent Leases of 60 s. With the default flags, an agent does not lead for a while if its API server does not
/// respond for 2 s. On a busy machine the API server may need longer.
#[must_use]
pub fn with_long_leases(spec: AgentSpec) -> AgentSpec {
    spec.flag("--leader-election-lease-duration", "60s").flag("--leader-election-renew-deadline", "50s")
}

/// Returns the number of the next test.
fn next_test() -> u32 {
    TESTS.fetch_add(1, Ordering::Relaxed) + 1
}

impl Member {
    fn new(cluster_id: String, control_plane: Arc<ControlPlane>) -> Self {
        let hub_namespace = format!("fleet-member-{cluster_id}");
        Self { control_plane, hub_user: hub_user(&cluster_id), cluster_id, hub_namespace }
    }
}

/// Returns the user name of a member's agent in the hub.
#[must_use]
pub fn hub_user(cluster_id: &str) -> String {
    format!("{SERVICE_ACCOUNT}fleet-member-{cluster_id}:member-agent")
}

/// Starts a hub with the CRDs, the manifests of `deploy/` for the hub agent, and the controllers of
/// [`ControlPlane::clean_up`].
pub async fn start_hub() -> anyhow::Result<ControlPlane> {
    let mut hub = ControlPlane::start(Options { name: "hub".to_owned(), ..Options::default() }).await?;
    install_hub(&hub).await?;
    hub.clean_up().await?;
    Ok(hub)
}

/// Applies the CRDs and the manifests of `deploy/` for the hub agent.
pub async fn install_hub(hub: &ControlPlane) -> anyhow::Result<()> {
    apply_definitions(hub).await?;
    for manifest in [manifests::HUB_AGENT, manifests::HUB_ADMISSION, manifests::HUB_FLOW_CONTROL] {
        manifests::apply(hub, manifest).await?;
    }
    Ok(())
}

/// Starts the member cluster with this index, from 0, with the CRDs, the manifests of `deploy/` for the member agent,
/// and the controllers of [`ControlPlane::clean_up`]. Its Services can have addresses of both families.
pub async fn start_member(index: usize) -> anyhow::Result<ControlPlane> {
    let options = Options { name: format!("member-{}", index + 1), dual_stack: true, ..Options::default() };
    let mut member = ControlPlane::start(options).await?;
    install_member(&member).await?;
    member.clean_up().await?;
    Ok(member)
}

/// Applies the CRDs and the manifests of `deploy/` for the member agent.
pub async fn install_member(member: &ControlPlane) -> anyhow::Result<()> {
    apply_definitions(member).await?;
    for manifest in [manifests::MEMBER_AGENT, manifests::MEMBER_ADMISSION, manifests::MEMBER_FLOW_CONTROL] {
        manifests::apply(member, manifest).await?;
    }
    Ok(())
}

/// Removes the Deployment of the agent with this name. The agent runs as a process, so the Deployment must make no
/// pods, and the diagnosis must miss none.
pub async fn remove_deployment(cluster: &ControlPlane, agent: &str) -> anyhow::Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(cluster.admin(), FLEET_SYSTEM);
    let removed = deployments.delete(agent, &DeleteParams::default()).await;
    removed.map(drop).with_context(|| format!("no Deployment {agent} in {}", cluster.name()))
}

/// Creates a member's namespace in the hub and gives the member's agent access to it.
pub async fn admit(hub: &ControlPlane, cluster_id: &str) -> anyhow::Result<()> {
    manifests::apply(hub, &manifests::of_member(cluster_id)).await
}

async fn apply_definitions(control_plane: &ControlPlane) -> anyhow::Result<()> {
    let documents: Vec<String> = all(Form::Full).iter().map(yaml).collect();
    control_plane.apply_definitions(&documents).await.context("the definitions cannot be installed")
}
