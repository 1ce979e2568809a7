//! One hub and its members, shared by all tests of a process; a test at a time has it for itself.
//!
//! What a test left behind is swept away before the next one begins: agents watch whole clusters, so the leftovers of one
//! test would cost writes in another. Cluster ids and namespaces are fresh for each test.

mod roles;
mod sweep;

use crate::agent::{self, AgentSpec};
use crate::audit::{FleetLedger, FleetMark};
use crate::control_plane::{ControlPlane, Options};
use crate::limits::MEMBERS;
use anyhow::{Context as _, ensure};
use fleetnet_api::crds::{Form, all, yaml};
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// The identity of the hub agent, in the hub.
pub const HUB_AGENT: &str = "hub-agent";
/// The identity of a member agent in its own cluster; in the hub it is `member-agent-<number>`.
pub const MEMBER_AGENT: &str = "member-agent";
/// The namespace of the fleet's own objects in every cluster.
pub const FLEET_SYSTEM: &str = "fleet-system";

static HUB: OnceCell<ControlPlane> = OnceCell::const_new();
static MEMBER: [OnceCell<ControlPlane>; MEMBERS] = [const { OnceCell::const_new() }; MEMBERS];
static TURN: Mutex<()> = Mutex::const_new(());
static TESTS: AtomicU32 = AtomicU32::new(0);

/// The fleet, for as long as a test has it.
#[derive(Debug)]
pub struct Fleet {
    /// The hub.
    pub hub: &'static ControlPlane,
    /// The members, in order of their numbers, which begin at 1.
    pub members: Vec<Member>,
    test: u32,
    // The last field: the next test's turn comes when all else of this one is gone.
    _turn: MutexGuard<'static, ()>,
}

/// A member cluster as one test knows it.
#[derive(Debug)]
pub struct Member {
    /// Its control plane.
    pub control_plane: &'static ControlPlane,
    /// Its name in the fleet, fresh for each test: `member-1-t7`.
    pub cluster_id: String,
    /// Its namespace in the hub: `fleet-member-<cluster id>`.
    pub hub_namespace: String,
    /// The identity of its agent in the hub: `member-agent-1`.
    pub hub_user: String,
}

impl Fleet {
    /// Takes a fleet of that many members. Control planes that do not run yet are started, all at once; the CRDs, the
    /// namespaces and the roles of the agents are there; nothing of an earlier test is.
    ///
    /// # Errors
    /// Where a control plane cannot be started or swept, or more than [`MEMBERS`] are asked for.
    pub async fn take(members: usize) -> anyhow::Result<Self> {
        ensure!(members <= MEMBERS, "a fleet has at most {MEMBERS} members, not {members}");
        let turn = TURN.lock().await;
        agent::none_left().await;
        let hub = HUB.get_or_try_init(|| start_hub(MEMBERS));
        let started = (0..members).map(|index| MEMBER[index].get_or_try_init(move || start_member(index)));
        let (hub, control_planes) = futures::future::try_join(hub, futures::future::try_join_all(started)).await?;
        let test = TESTS.fetch_add(1, Ordering::Relaxed) + 1;
        let members = control_planes.into_iter().enumerate().map(|(index, it)| Member::new(index, it, test)).collect();
        let fleet = Self { hub, members, test, _turn: turn };
        for control_plane in fleet.control_planes() {
            sweep::sweep(control_plane).await?;
        }
        for member in &fleet.members {
            admit(hub, &member.hub_namespace, &member.hub_user).await?;
        }
        Ok(fleet)
    }

    /// Makes a namespace for user objects, `<name>-t<number of the test>`, in the hub and every member, and tells its name.
    ///
    /// # Errors
    /// Where a server refuses.
    pub async fn namespace(&self, name: &str) -> anyhow::Result<String> {
        let name = format!("{name}-t{}", self.test);
        for control_plane in self.control_planes() {
            control_plane.create_namespace(&name).await?;
        }
        Ok(name)
    }

    /// How to start the hub agent: as [`HUB_AGENT`], on free ports.
    ///
    /// # Errors
    /// Where its kubeconfig cannot be written.
    pub fn hub_agent(&self) -> anyhow::Result<AgentSpec> {
        Ok(AgentSpec::new("hub-agent", "hub-agent")
            .flag("--kubeconfig", self.hub.kubeconfig(HUB_AGENT)?)
            .flag("--leader-election-namespace", FLEET_SYSTEM)
            .flag("--metrics-bind-address", FREE)
            .flag("--health-probe-bind-address", FREE))
    }

    /// How to start a member's agent: as [`MEMBER_AGENT`] in its cluster and as its `hub_user` in the hub, on free ports.
    ///
    /// # Errors
    /// Where its kubeconfig or its token cannot be written.
    pub fn member_agent(&self, member: &Member) -> anyhow::Result<AgentSpec> {
        let hub = self.hub.access(&member.hub_user)?;
        let name = format!("member-agent of {}", member.cluster_id);
        Ok(AgentSpec::new("member-agent", &name)
            .variable("HUB_SERVER_URL", &hub.server_url)
            .variable("HUB_CERTIFICATE_AUTHORITY", hub.authority_base64())
            .variable("CONFIG_PATH", self.hub.token_file(&member.hub_user)?)
            .variable("MEMBER_CLUSTER_NAME", &member.cluster_id)
            .flag("--kubeconfig", member.control_plane.kubeconfig(MEMBER_AGENT)?)
            .flag("--leader-election-namespace", FLEET_SYSTEM)
            .flag("--fleet-system-namespace", FLEET_SYSTEM)
            .flag("--hub-metrics-bind-address", FREE)
            .flag("--hub-health-probe-bind-address", FREE)
            .flag("--member-metrics-bind-address", FREE)
            .flag("--member-health-probe-bind-address", FREE)
            .flag("--metrics-bind-address", FREE)
            .flag("--health-probe-bind-address", FREE))
    }

    /// A mark in every audit log.
    ///
    /// # Errors
    /// As [`crate::audit::Audit::mark`].
    pub async fn mark(&self) -> anyhow::Result<FleetMark> {
        let mut members = Vec::new();
        for member in &self.members {
            members.push(member.control_plane.audit().mark().await?);
        }
        Ok(FleetMark { hub: self.hub.audit().mark().await?, members })
    }

    /// What was written since a mark, by whomever.
    ///
    /// # Errors
    /// As [`crate::audit::Audit::since`].
    pub async fn since(&self, mark: &FleetMark) -> anyhow::Result<FleetLedger> {
        let mut members = Vec::new();
        for (member, mark) in self.members.iter().zip(&mark.members) {
            members.push(member.control_plane.audit().since(*mark).await?);
        }
        Ok(FleetLedger { hub: self.hub.audit().since(mark.hub).await?, members })
    }

    fn control_planes(&self) -> impl Iterator<Item = &'static ControlPlane> {
        std::iter::once(self.hub).chain(self.members.iter().map(|member| member.control_plane))
    }
}

/// A port that the kernel chooses; the agent says in its log which.
const FREE: &str = "127.0.0.1:0";

impl Member {
    fn new(index: usize, control_plane: &'static ControlPlane, test: u32) -> Self {
        let number = index + 1;
        let cluster_id = format!("member-{number}-t{test}");
        let hub_namespace = format!("fleet-member-{cluster_id}");
        Self { control_plane, cluster_id, hub_namespace, hub_user: hub_user(index) }
    }
}

/// The identity in the hub of the agent of the member of that index, from 0.
#[must_use]
pub fn hub_user(index: usize) -> String {
    format!("{MEMBER_AGENT}-{}", index + 1)
}

/// Starts a hub with the definitions, [`FLEET_SYSTEM`] and users for the agents of that many members; the hub agent's
/// roles are bound.
///
/// # Errors
/// Where the control plane cannot be started or furnished.
pub async fn start_hub(members: usize) -> anyhow::Result<ControlPlane> {
    let users = std::iter::once(HUB_AGENT.to_owned()).chain((0..members).map(hub_user)).collect();
    let hub = ControlPlane::start(Options { name: "hub".to_owned(), users, ..Options::default() }).await?;
    furnish(&hub).await?;
    roles::bind_hub_agent(&hub, HUB_AGENT).await?;
    Ok(hub)
}

/// Starts the member of that index, from 0, with the definitions, [`FLEET_SYSTEM`] and its agent's roles.
///
/// # Errors
/// Where the control plane cannot be started or furnished.
pub async fn start_member(index: usize) -> anyhow::Result<ControlPlane> {
    let users = vec![MEMBER_AGENT.to_owned()];
    let options = Options { name: format!("member-{}", index + 1), users, ..Options::default() };
    let member = ControlPlane::start(options).await?;
    furnish(&member).await?;
    roles::bind_member_agent(&member, MEMBER_AGENT).await?;
    Ok(member)
}

/// Makes a member's namespace in the hub and lets its agent in.
///
/// # Errors
/// Where the hub refuses.
pub async fn admit(hub: &ControlPlane, hub_namespace: &str, hub_user: &str) -> anyhow::Result<()> {
    hub.create_namespace(hub_namespace).await?;
    roles::bind_member_in_hub(hub, hub_namespace, hub_user).await
}

async fn furnish(control_plane: &ControlPlane) -> anyhow::Result<()> {
    let documents: Vec<String> = all(Form::Full).iter().map(yaml).collect();
    control_plane.apply_definitions(&documents).await.context("the definitions cannot be installed")?;
    control_plane.create_namespace(FLEET_SYSTEM).await
}
