//! Steps of the conformance suite of `sigs.k8s.io/mcs-api`: what it does before each spec, and what it looks at.

use anyhow::Context as _;
use fleetnet_api::crd::mcs::{ServiceExport, ServiceImport};
use harness::eventually;
use harness::fleet::{Fleet, create_namespace};
use harness::pods::Pods;
use harness::process::Process;
use harness::user::User;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt as _;
use serde_json::{Value, json};

/// Name of the exported Service.
pub(super) const HELLO: &str = "hello";
/// Controllers that the suite needs.
const CONTROLLERS: [&str; 4] =
    ["deployment-controller", "replicaset-controller", "statefulset-controller", "endpointslice-controller"];

/// Cluster of the suite, with controllers and running pods.
pub(super) struct Cluster {
    _controllers: Process,
    _pods: Pods,
}

/// Starts in each member what the suite finds in a real cluster.
pub(super) async fn clusters(fleet: &Fleet) -> anyhow::Result<Vec<Cluster>> {
    let mut clusters = Vec::new();
    for (network, member) in (1..).zip(&fleet.members) {
        let fast = [("--kube-api-qps", "1000"), ("--kube-api-burst", "1000")];
        clusters.push(Cluster {
            _controllers: member.control_plane.start_controller_manager(&CONTROLLERS, &fast).await?,
            _pods: Pods::run(member.control_plane.admin(), network).await?,
        });
    }
    Ok(clusters)
}

/// Namespace of one spec, in all clusters.
pub(super) struct Spec {
    /// Users of the namespace. The first one exports.
    pub(super) users: Vec<User>,
    pub(super) namespace: String,
    /// Cluster ids of the users.
    pub(super) clusters: Vec<String>,
}

fn hello_service() -> Value {
    json!({
        "metadata": {"name": HELLO},
        "spec": {
            "selector": {"app": HELLO},
            "ports": [
                {"name": "tcp", "port": 42, "protocol": "TCP"},
                {"name": "udp", "port": 42, "protocol": "UDP"},
            ],
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10}},
            "ipFamilyPolicy": "PreferDualStack",
        },
    })
}

/// Returns the change of [`hello_service`] that makes it headless.
pub(super) fn headless() -> Value {
    let mut spec = hello_service()["spec"].clone();
    spec["clusterIP"] = "None".into();
    spec["sessionAffinity"] = Value::Null;
    spec["sessionAffinityConfig"] = Value::Null;
    spec
}

fn container(name: &str) -> Value {
    json!({"name": name, "image": "alpine/socat:1.7.4.4", "ports": [{"containerPort": 42}]})
}

impl Spec {
    /// Does what the suite does before each spec: makes the namespace, the Deployment, the Service (`change` is a merge
    /// patch of it), and a pod that sends requests.
    pub(super) async fn begin(fleet: &Fleet, name: &str, change: Value) -> anyhow::Result<Self> {
        let namespace = format!("mcs-conformance-{name}");
        let mut users = Vec::new();
        for member in &fleet.members {
            create_namespace(&member.control_plane.admin(), &namespace).await?;
            users.push(User::new(member.control_plane.admin(), &namespace));
        }
        let spec =
            Self { users, namespace, clusters: fleet.members.iter().map(|member| member.cluster_id.clone()).collect() };
        let deployment = json!({
            "metadata": {"name": HELLO},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": HELLO}},
                "template": {"metadata": {"labels": {"app": HELLO}}, "spec": {"containers": [container(HELLO)]}},
            },
        });
        spec.users[0].create::<Deployment>(deployment).await?;
        spec.create_service(0, change).await?;
        for user in &spec.users {
            let pod = json!({"metadata": {"name": "request"}, "spec": {"containers": [container("request")]}});
            user.create::<Pod>(pod).await?;
            let is_running = |pod: &Pod| pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Running");
            eventually::object(&user.api(), "request", "the pod request to run", is_running).await?;
        }
        Ok(spec)
    }

    /// Creates the Service in a cluster. `change` is a merge patch of its spec; a list replaces the ports.
    pub(super) async fn create_service(&self, cluster: usize, change: Value) -> anyhow::Result<Service> {
        let mut service = hello_service();
        let spec = service["spec"].as_object_mut().context("a spec")?;
        for (field, value) in change.as_object().context("a change is an object")? {
            drop(if value.is_null() { spec.remove(field) } else { spec.insert(field.clone(), value.clone()) });
        }
        self.users[cluster].create(service).await
    }

    pub(super) async fn export(&self, cluster: usize, spec: Value) -> anyhow::Result<()> {
        self.users[cluster].export_mcs(HELLO, spec).await.map(drop)
    }

    pub(super) async fn unexport(&self, cluster: usize) -> anyhow::Result<()> {
        self.users[cluster].delete::<ServiceExport>(HELLO).await
    }

    /// Does what the suite does in specs of two clusters: the second export is certainly the younger one.
    pub(super) async fn export_both(&self, first: Value, change: Value, second: Value) -> anyhow::Result<()> {
        self.export(0, first).await?;
        self.imports(0, "to exist", |_| true).await?;
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
        self.create_service(1, change).await?;
        self.export(1, second).await
    }

    /// Waits until the ServiceImport of a cluster fulfils `condition`.
    pub(super) async fn imports(
        &self,
        cluster: usize,
        what: &str,
        condition: impl FnMut(&ServiceImport) -> bool,
    ) -> anyhow::Result<ServiceImport> {
        self.users[cluster].sees_service_import(HELLO, what, condition).await
    }

    /// Waits until the ServiceImports of all clusters fulfil `condition`.
    pub(super) async fn all_import(
        &self,
        what: &str,
        condition: impl Fn(&ServiceImport) -> bool,
    ) -> anyhow::Result<Vec<ServiceImport>> {
        let mut imports = Vec::new();
        for cluster in 0..self.users.len() {
            imports.push(self.imports(cluster, what, &condition).await?);
        }
        Ok(imports)
    }

    /// Waits until no cluster has the ServiceImport.
    pub(super) async fn nobody_imports(&self) -> anyhow::Result<()> {
        for user in &self.users {
            eventually::gone(&user.api::<ServiceImport>(), HELLO).await?;
        }
        Ok(())
    }

    /// Waits until a condition of an export has this status.
    pub(super) async fn shows(&self, cluster: usize, condition: &str, status: &str) -> anyhow::Result<()> {
        let shows_it = |export: &ServiceExport| {
            let conditions = export.status.iter().flat_map(|it| it.conditions.iter().flatten());
            conditions.into_iter().any(|it| it.type_ == condition && it.status == status)
        };
        let what = format!("the export to show {condition}={status}");
        eventually::object(&self.users[cluster].api::<ServiceExport>(), HELLO, &what, shows_it).await.map(drop)
    }

    /// Waits until all exports show a conflict.
    pub(super) async fn conflict(&self) -> anyhow::Result<()> {
        self.shows(0, "Conflict", "True").await?;
        self.shows(1, "Conflict", "True").await
    }
}

/// Returns the ports of a ServiceImport as the suite compares them: `name protocol/number`.
pub(super) fn ports(import: &ServiceImport) -> Vec<String> {
    let shown = |port: &fleetnet_api::crd::mcs::ImportedPort| {
        format!(
            "{} {}/{}",
            port.name.as_deref().unwrap_or_default(),
            port.protocol.as_deref().unwrap_or_default(),
            port.port
        )
    };
    let mut ports: Vec<String> = import.spec.ports.iter().map(shown).collect();
    ports.sort();
    ports
}

/// Returns labels or annotations of a ServiceImport with a name that begins with `test`.
pub(super) fn exported(import: &ServiceImport) -> Vec<String> {
    let all = import.labels().iter().chain(import.annotations());
    all.filter(|(name, _)| name.starts_with("test")).map(|(name, value)| format!("{name}={value}")).collect()
}
