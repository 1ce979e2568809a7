//! [`Cluster`]: a control plane for a test at a time.

use super::Workload;
use crate::agent::{Agent, AgentSpec};
use crate::audit::{Ledger, Mark};
use crate::control_plane::{CONTROLLER_MANAGER, ControlPlane, Options};
use crate::eventually::Deadline;
use crate::fleet::{FLEET_SYSTEM, MEMBER_AGENT, manifests, on_free_ports, over, with_long_leases};
use crate::limits::POLL;
use crate::process::Process;
use crate::proxy::Line;
use crate::turn::Turn;
use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::DeleteParams;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::{Mutex, OnceCell};

/// What kind of cluster; there is one of each in a process.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// kube-controller-manager collects garbage and sees to Endpoints, and leaves EndpointSlices to others.
    WithoutItsController,
    /// There is no kube-controller-manager until the test starts one.
    WithoutControllerManager,
}

/// A cluster of one kind.
struct Shared {
    control_plane: OnceCell<ControlPlane>,
    turn: Mutex<()>,
}

static CLUSTERS: [Shared; 2] =
    [const { Shared { control_plane: OnceCell::const_new(), turn: Mutex::const_new(()) } }; 2];
static TESTS: AtomicU32 = AtomicU32::new(0);

/// A cluster, for as long as a test has it.
#[derive(Debug)]
pub struct Cluster {
    /// Its control plane.
    pub control_plane: &'static ControlPlane,
    /// A namespace that no other test uses.
    pub namespace: String,
    // The last field: the next test's turn comes when all else of this one is gone.
    turn: Turn,
}

impl Cluster {
    /// Takes the cluster of that kind, with a namespace whose name begins with this. The agent's account is there and has
    /// the rights of `deploy/member-agent.yaml` and `deploy/endpointslices.yaml`.
    ///
    /// # Errors
    /// Where the control plane cannot be started.
    pub async fn take(kind: Kind, namespace: &str) -> anyhow::Result<Self> {
        let shared = &CLUSTERS[kind as usize];
        let turn = Turn::of(&shared.turn).await;
        let control_plane = shared.control_plane.get_or_try_init(|| start(kind)).await?;
        // A test before may have taken them away.
        manifests::apply(control_plane, manifests::ENDPOINT_SLICES).await?;
        // The agent of a test before had no time to give them back.
        let leases: Api<Lease> = Api::namespaced(control_plane.admin(), FLEET_SYSTEM);
        leases.delete_collection(&DeleteParams::default(), &Default::default()).await?;
        let namespace = format!("{namespace}-t{}", TESTS.fetch_add(1, Ordering::Relaxed) + 1);
        control_plane.create_namespace(&namespace).await?;
        Ok(Self { control_plane, namespace, turn })
    }

    /// Its namespace with a Node.
    ///
    /// # Errors
    /// Where the server refuses.
    pub async fn workload(&self) -> anyhow::Result<Workload> {
        Workload::begin(self.control_plane.admin(), &self.namespace).await
    }

    /// Starts an agent that only makes EndpointSlices, with flags, and waits until it is ready.
    ///
    /// # Errors
    /// Where it cannot be started or does not become ready.
    pub async fn serve(&self, flags: &[(&str, &str)]) -> anyhow::Result<Agent> {
        self.agent(flags).await?.start_ready().await
    }

    /// How to start such an agent.
    ///
    /// # Errors
    /// Where its kubeconfig cannot be written.
    pub async fn agent(&self, flags: &[(&str, &str)]) -> anyhow::Result<AgentSpec> {
        let spec = agent(self.control_plane).await?.within(&self.turn);
        Ok(flags.iter().fold(spec, |spec, (flag, value)| spec.flag(flag, value)))
    }

    /// The same over a proxy, whose line tells what this agent writes: replicas are one user.
    ///
    /// # Errors
    /// Where its kubeconfig cannot be written or no proxy can be had.
    pub async fn agent_over(&self, line: &Line, flags: &[(&str, &str)]) -> anyhow::Result<AgentSpec> {
        let (access, proxy) = over(Some(line), self.control_plane.access(MEMBER_AGENT).await?).await?;
        let kubeconfig = access.write_kubeconfig(self.control_plane.folder())?;
        Ok(self.agent(flags).await?.flag("--kubeconfig", kubeconfig).keep(proxy))
    }

    /// Starts kube-controller-manager under its Lease, with controllers by upstream's names. The next test has to wait until
    /// the process has ended, also if this test drops it: what it still writes would be taken for the work of others.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub async fn start_controller_manager(&self, controllers: &[&str]) -> anyhow::Result<Process> {
        let process = self.control_plane.start_elected_controller_manager(controllers).await?;
        self.turn.outlasts(&process);
        Ok(process)
    }

    /// That there has never been a kube-controller-manager, as far as anybody can tell.
    ///
    /// # Errors
    /// Where the server refuses.
    pub async fn forget_controller_manager(&self) -> anyhow::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.control_plane.admin(), "kube-system");
        leases.delete_collection(&DeleteParams::default(), &Default::default()).await?;
        Ok(())
    }

    /// A mark in the audit log.
    ///
    /// # Errors
    /// As [`crate::audit::Audit::mark`].
    pub async fn mark(&self) -> anyhow::Result<Mark> {
        self.control_plane.audit().mark().await
    }

    /// What a user wrote in the test's namespace since a mark, Events apart.
    ///
    /// # Errors
    /// As [`crate::audit::Audit::since`].
    pub async fn written_by(&self, user: &str, mark: Mark) -> anyhow::Result<Ledger> {
        let ledger = self.control_plane.audit().since(mark).await?.objects();
        Ok(ledger.of_user(user).filter(|entry| entry.namespace == self.namespace))
    }

    /// That the agent wrote exactly this in the test's namespace since a mark, Events apart: the lines of [`Ledger`],
    /// without the namespace.
    ///
    /// # Errors
    /// Where it wrote something else.
    pub async fn agent_wrote(&self, mark: Mark, expected: &[(usize, &str)]) -> anyhow::Result<()> {
        let written = self.written_by(MEMBER_AGENT, mark).await?;
        let namespace = &self.namespace;
        let expected = expected.iter().map(|(count, what)| (format!("{what} in {namespace} by member-agent"), *count));
        ensure!(
            written.counts() == expected.clone().collect(),
            "not {:?} but\n{written}",
            expected.collect::<Vec<_>>()
        );
        Ok(())
    }
}

/// How to start a member agent that only makes EndpointSlices, under the account of `deploy/member-agent.yaml`.
///
/// # Errors
/// Where its kubeconfig cannot be written.
pub async fn agent(control_plane: &ControlPlane) -> anyhow::Result<AgentSpec> {
    let name = format!("member-agent of {}", control_plane.name());
    Ok(with_long_leases(on_free_ports(AgentSpec::new("member-agent", &name)))
        .flag("--kubeconfig", control_plane.kubeconfig(MEMBER_AGENT).await?)
        .flag("--leader-election-namespace", FLEET_SYSTEM)
        .flag("--controllers", "endpointslice"))
}

async fn start(kind: Kind) -> anyhow::Result<ControlPlane> {
    let options = match kind {
        Kind::WithoutItsController => {
            let controllers =
                ["garbage-collector-controller", "endpoints-controller", "endpointslice-mirroring-controller"];
            Options {
                name: "the cluster without an EndpointSlice controller".to_owned(),
                controllers: controllers.map(str::to_owned).to_vec(),
                dual_stack: true,
                ..Options::default()
            }
        }
        Kind::WithoutControllerManager => Options {
            name: "the cluster without kube-controller-manager".to_owned(),
            users: vec![CONTROLLER_MANAGER.to_owned()],
            ..Options::default()
        },
    };
    let control_plane = ControlPlane::start(options).await?;
    manifests::apply(&control_plane, manifests::MEMBER_AGENT).await.context("the agent's manifest")?;
    Ok(control_plane)
}

/// Whether an agent makes the slices of its cluster now, as its metrics say.
///
/// # Errors
/// Where they do not say.
pub async fn is_serving(agent: &Agent) -> anyhow::Result<bool> {
    let (_, metrics) = agent.get("/metrics").await?;
    let said = metrics.lines().find_map(|line| line.strip_prefix("fleetnet_endpointslices_serving "));
    match said {
        Some("1") => Ok(true),
        Some("0") => Ok(false),
        _ => bail!("fleetnet_endpointslices_serving is {said:?}\n{metrics}"),
    }
}

/// Waits until that is so or is not so.
///
/// # Errors
/// If that does not come.
pub async fn serves(agent: &Agent, expected: bool) -> anyhow::Result<()> {
    let deadline = Deadline::start();
    while is_serving(agent).await? != expected {
        deadline.check().with_context(|| format!("it does not serve={expected}\n{}", agent.log().tail()))?;
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}
