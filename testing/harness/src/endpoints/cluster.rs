//! Control plane for tests of the EndpointSlice controller, for one test at a time: [`Cluster`].

use super::Workload;
use crate::agent::{Agent, AgentSpec};
use crate::audit::{Ledger, Mark};
use crate::control_plane::{CONTROLLER_MANAGER, ControlPlane, Options};
use crate::eventually::Deadline;
use crate::fleet::{FLEET_SYSTEM, MEMBER_AGENT, manifests, on_free_ports, with_long_leases};
use crate::process::Process;
use crate::turn::Turn;
use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::{Mutex, OnceCell};

/// Namespace of kube-controller-manager's Lease.
const KUBE_SYSTEM: &str = "kube-system";

/// Kind of cluster for tests of the EndpointSlice controller. A test process has one cluster of each kind.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// kube-controller-manager runs, but not its EndpointSlice controller.
    WithoutItsController,
    /// No kube-controller-manager runs until the test starts one.
    WithoutControllerManager,
}

/// Cluster of one kind that the tests of a process share.
struct Shared {
    control_plane: OnceCell<ControlPlane>,
    turn: Mutex<()>,
}

static CLUSTERS: [Shared; 2] =
    [const { Shared { control_plane: OnceCell::const_new(), turn: Mutex::const_new(()) } }; 2];
static TESTS: AtomicU32 = AtomicU32::new(0);

/// Shared cluster, while one test uses it.
#[derive(Debug)]
pub struct Cluster {
    pub control_plane: &'static ControlPlane,
    /// Namespace in the cluster that no other test uses.
    pub namespace: String,
    // Must be the last field: Rust drops the fields in order. So the next test gets the cluster only after all other
    // fields are dropped.
    turn: Turn,
}

impl Cluster {
    /// Waits until no other test uses the cluster of this kind, and returns the cluster. Creates a namespace whose name
    /// begins with `namespace`. The agent has a service account with the rights of `deploy/member-agent.yaml` and
    /// `deploy/endpointslices.yaml`.
    pub async fn take(kind: Kind, namespace: &str) -> anyhow::Result<Self> {
        let shared = &CLUSTERS[kind as usize];
        let turn = Turn::of(&shared.turn).await;
        let control_plane = shared.control_plane.get_or_try_init(|| start(kind)).await?;
        // Grant the agent's rights to EndpointSlices again, because an earlier test may have revoked them.
        manifests::apply(control_plane, manifests::ENDPOINT_SLICES).await?;
        // Delete the agent's Leases, because the agent of an earlier test may have been killed before it could release
        // them.
        let leases: Api<Lease> = Api::namespaced(control_plane.admin(), FLEET_SYSTEM);
        leases.delete_collection(&DeleteParams::default(), &Default::default()).await?;
        let namespace = format!("{namespace}-t{}", TESTS.fetch_add(1, Ordering::Relaxed) + 1);
        control_plane.create_namespace(&namespace).await?;
        Ok(Self { control_plane, namespace, turn })
    }

    /// Creates a Node. Returns a workload in the cluster's namespace that has no Services and pods yet.
    pub async fn workload(&self) -> anyhow::Result<Workload> {
        Workload::begin(self.control_plane.admin(), &self.namespace).await
    }

    /// Starts a member agent that only runs the EndpointSlice controller, with these flags, and waits until the agent
    /// is ready.
    pub async fn serve(&self, flags: &[(&str, &str)]) -> anyhow::Result<Agent> {
        self.agent(flags).await?.start_ready().await
    }

    /// Returns settings for a member agent that only runs the EndpointSlice controller, with these flags.
    pub async fn agent(&self, flags: &[(&str, &str)]) -> anyhow::Result<AgentSpec> {
        let spec = agent(self.control_plane).await?.within(&self.turn);
        Ok(flags.iter().fold(spec, |spec, (flag, value)| spec.flag(flag, value)))
    }

    /// Starts kube-controller-manager with these controllers and a Lease. The next test begins after this process has
    /// ended, so that the next test sees none of its writes.
    pub async fn start_controller_manager(&self, controllers: &[&str]) -> anyhow::Result<Process> {
        let process = self.control_plane.start_elected_controller_manager(controllers).await?;
        self.turn.outlasts(&process);
        Ok(process)
    }

    /// Removes all Leases in kube-system, so that the member agent finds no trace of kube-controller-manager.
    pub async fn forget_controller_manager(&self) -> anyhow::Result<()> {
        self.leases().delete_collection(&DeleteParams::default(), &Default::default()).await?;
        Ok(())
    }

    /// Leaves only a Lease in kube-system, whose holder was a kube-controller-manager that stopped long ago.
    pub async fn controller_manager_is_gone(&self) -> anyhow::Result<()> {
        self.forget_controller_manager().await?;
        create_old_lease(self.control_plane.admin()).await
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.control_plane.admin(), KUBE_SYSTEM)
    }

    /// Returns the present position in the cluster's audit log.
    pub async fn mark(&self) -> anyhow::Result<Mark> {
        self.control_plane.audit().mark().await
    }

    /// Returns a user's writes in the test's namespace after the position `mark`, without Events.
    pub async fn written_by(&self, user: &str, mark: Mark) -> anyhow::Result<Ledger> {
        let ledger = self.control_plane.audit().since(mark).await?.objects();
        Ok(ledger.of_user(user).filter(|entry| entry.namespace == self.namespace))
    }

    /// Checks that the agent made exactly these writes in the test's namespace after the position `mark`, without
    /// Events. Each expected entry is the number of writes, and a line in the text form of [`Ledger`] without the
    /// namespace.
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

/// Creates the Lease of a kube-controller-manager that stopped long ago. So with `--endpointslices=auto`, the agent
/// becomes active.
pub async fn create_old_lease(client: Client) -> anyhow::Result<()> {
    let lease = json!({
        "metadata": {"name": "kube-controller-manager"},
        "spec": {"holderIdentity": "gone", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"},
    });
    let leases: Api<Lease> = Api::namespaced(client, KUBE_SYSTEM);
    leases.create(&PostParams::default(), &serde_json::from_value(lease)?).await.map(drop).context("the old Lease")
}

/// Returns settings for a member agent that only runs the EndpointSlice controller. The agent uses the service account
/// of `deploy/member-agent.yaml`.
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

/// True if the agent's EndpointSlice controller is active: the metric `fleetnet_endpointslices_serving` is 1.
///
/// # Errors
/// If the metric is missing.
pub async fn is_serving(agent: &Agent) -> anyhow::Result<bool> {
    let (_, metrics) = agent.get("/metrics").await?;
    let value = metrics.lines().find_map(|line| line.strip_prefix("fleetnet_endpointslices_serving "));
    match value {
        Some("1") => Ok(true),
        Some("0") => Ok(false),
        _ => bail!("fleetnet_endpointslices_serving is {value:?}\n{metrics}"),
    }
}

/// Waits until [`is_serving`] returns `expected`.
pub async fn serves(agent: &Agent, expected: bool) -> anyhow::Result<()> {
    let deadline = Deadline::start();
    while is_serving(agent).await? != expected {
        deadline.pause(|| format!("it does not serve={expected}\n{}", agent.log().tail())).await?;
    }
    Ok(())
}
