//! Workloads of tests: servers, clients and their results.

use crate::http;
use crate::image::client::CONTROL_PORT;
use crate::image::result::Totals;
use crate::network::{OUTSIDE, OUTSIDE_ADDRESS};
use crate::shell::process_in;
use anyhow::{Context as _, ensure};
use fleetnet_api::crd::mcs::ServiceImport;
use harness::binaries;
use harness::eventually::{self, Deadline};
use harness::limits::EVENTUALLY;
use harness::process::Process;
use harness::user::User;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Settings of a Deployment of servers.
#[derive(Clone, Copy, Debug)]
pub struct Servers<'a> {
    pub name: &'a str,
    pub replicas: u32,
    /// Seconds that the preStop hook sleeps. `None` for no hook.
    pub pre_stop: Option<u32>,
    /// Seconds until the first probe of readiness.
    pub probe_delay: u32,
}

impl Servers<'_> {
    /// Creates the Deployment, and waits until all its pods are ready.
    pub async fn create(self, user: &User) -> anyhow::Result<()> {
        self.create_with(user, &json!({})).await
    }

    /// Creates the Deployment as [`Self::create`] does, with more fields of its container.
    pub async fn create_with(self, user: &User, more: &Value) -> anyhow::Result<()> {
        let Self { name, replicas, pre_stop, probe_delay } = self;
        let lifecycle = pre_stop.map(|seconds| json!({"preStop": {"sleep": {"seconds": seconds}}}));
        let container = json!({
            "name": "server", "image": "serve", "lifecycle": lifecycle,
            "readinessProbe": {
                "httpGet": {"port": 8080, "path": "/ready"}, "periodSeconds": 1, "initialDelaySeconds": probe_delay,
            },
        });
        let container = with(container, more);
        user.create::<Deployment>(json!({
            "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container]},
            }},
        }))
        .await?;
        self.are_rolled_out(user).await
    }

    /// Creates the Service of the servers, of both families: HTTP and UDP at port 80, TCP at port 81, and HTTP at port
    /// 8080, which is also the port of the pods.
    pub async fn create_service(self, user: &User) -> anyhow::Result<Service> {
        self.create_service_with(user, &json!({})).await
    }

    /// Creates the Service of the servers as [`Self::create_service`] does, with more fields of its spec.
    pub async fn create_service_with(self, user: &User, more: &Value) -> anyhow::Result<Service> {
        let spec = json!({"ipFamilyPolicy": "PreferDualStack", "selector": {"app": self.name}, "ports": [
            {"name": "http", "port": 80, "targetPort": 8080},
            {"name": "tcp", "port": 81, "targetPort": 8081},
            {"name": "udp", "protocol": "UDP", "port": 80, "targetPort": 8080},
            {"name": "direct", "port": 8080},
        ]});
        let spec = with(spec, more);
        user.create(json!({"metadata": {"name": self.name}, "spec": spec})).await
    }

    /// Changes the number of pods to `replicas`, and waits until there are as many pods and all are ready.
    pub async fn scale(self, user: &User) -> anyhow::Result<()> {
        user.merge::<Deployment>(self.name, json!({"spec": {"replicas": self.replicas}})).await?;
        self.are_rolled_out(user).await
    }

    /// Deletes the Deployment and the Service. Their pods end later.
    pub async fn delete(self, user: &User) -> anyhow::Result<()> {
        user.delete::<Service>(self.name).await?;
        user.delete::<Deployment>(self.name).await
    }

    /// Replaces all pods by a rolling update, and waits until the old ones are gone.
    pub async fn roll(self, user: &User, version: u32) -> anyhow::Result<()> {
        let template = json!({"metadata": {"annotations": {"version": version.to_string()}}});
        user.merge::<Deployment>(self.name, json!({"spec": {"template": template}})).await?;
        self.are_rolled_out(user).await
    }

    /// Waits until all pods are ready and no pods of an older version exist.
    async fn are_rolled_out(self, user: &User) -> anyhow::Result<()> {
        let replicas = i32::try_from(self.replicas)?;
        let is_complete = |deployment: &Deployment| {
            let Some(status) = &deployment.status else { return false };
            let counts = [status.replicas, status.updated_replicas, status.ready_replicas];
            status.observed_generation == deployment.metadata.generation
                && counts.map(Option::unwrap_or_default) == [replicas; 3]
        };
        let what = format!("the rollout of {}", self.name);
        eventually::object(&user.api::<Deployment>(), self.name, &what, is_complete).await?;
        let selection = kube::api::WatchParams::default().labels(&format!("app={}", self.name));
        let what = format!("the old pods of {} to be gone", self.name);
        let wanted = usize::try_from(self.replicas)?;
        eventually::objects(&user.api::<Pod>(), &selection, &what, |pods| pods.len() == wanted).await.map(drop)
    }
}

/// Returns an object with these fields in place of its own, or beside them.
#[must_use]
pub fn with(mut object: Value, more: &Value) -> Value {
    for (field, value) in more.as_object().into_iter().flatten() {
        object[field] = value.clone();
    }
    object
}

/// Returns the first address of a Service.
///
/// # Errors
/// If the Service has no address.
pub fn cluster_ip(service: &Service) -> anyhow::Result<&str> {
    service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()).context("a Service has an address")
}

/// Exports a Service of the cluster `exporting` over the standard API. Returns the IPv4 address of the import in the
/// importer.
pub async fn export(exporter: &User, exporting: &str, importer: &User, service: &str) -> anyhow::Result<String> {
    exporter.export_mcs(service, json!({})).await?;
    imported_address(importer, service, &[exporting]).await
}

/// Waits until the import of a Service of these clusters is ready. Returns its IPv4 address.
pub async fn imported_address(importer: &User, service: &str, exporting: &[&str]) -> anyhow::Result<String> {
    let import: ServiceImport = importer.sees_ready_import(service, exporting).await?;
    let mut addresses = import.spec.ips.into_iter().flatten();
    addresses.find(|address| !address.contains(':')).context("a ready import has an IPv4 address")
}

/// Running client.
#[derive(Clone, Debug)]
pub struct Client {
    name: String,
    control: SocketAddr,
    /// Process of a client that is not in a pod.
    _process: Option<Arc<Process>>,
}

impl Client {
    /// Creates a pod with a client that sends requests at this rate, and waits until it runs.
    pub async fn create(user: &User, name: &str, target: &str, more: &[&str]) -> anyhow::Result<Self> {
        let arguments: Vec<String> =
            [format!("--target={target}")].into_iter().chain(more.iter().map(|it| (*it).to_owned())).collect();
        user.create::<Pod>(pod(name, json!({"name": "client", "image": "client", "args": arguments}))).await?;
        let is_running = |pod: &Pod| address(pod).is_some();
        let pod =
            eventually::object(&user.api::<Pod>(), name, &format!("the client {name} to run"), is_running).await?;
        let address = address(&pod).context("a pod that runs has an address")?;
        Ok(Self { name: name.to_owned(), control: (address, CONTROL_PORT).into(), _process: None })
    }

    /// Starts a client outside of all clusters. Clients that run at the same time need different control ports, below
    /// those from which clients send.
    pub async fn outside(name: &str, target: &str, control_port: u16, more: &[&str]) -> anyhow::Result<Self> {
        let own = ["client".to_owned(), format!("--target={target}"), format!("--control-port={control_port}")];
        let arguments = own.into_iter().chain(more.iter().map(|it| (*it).to_owned())).map(OsString::from).collect();
        let name = name.to_owned();
        let spec = process_in(OUTSIDE, name.clone(), binaries::find("packets").await?, arguments);
        let process = Process::start(spec).await?;
        Ok(Self { name, control: (OUTSIDE_ADDRESS, control_port).into(), _process: Some(Arc::new(process)) })
    }

    /// Returns the counts so far.
    pub async fn totals(&self) -> anyhow::Result<Totals> {
        self.ask("GET", "/result").await
    }

    /// Stops the client, and returns the counts after its last request.
    pub async fn stop(&self) -> anyhow::Result<Totals> {
        self.ask("POST", "/stop").await
    }

    /// Waits until the counts fulfil `condition`.
    pub async fn counts(&self, what: &str, condition: impl Fn(&Totals) -> bool) -> anyhow::Result<Totals> {
        let deadline = Deadline::start();
        loop {
            // The client opens its port a moment after its start.
            let shown = match self.totals().await {
                Ok(totals) if condition(&totals) => return Ok(totals),
                Ok(totals) => format!("{totals:?}"),
                Err(error) => format!("{error:#}"),
            };
            deadline.pause(|| format!("{} waits for {what}: {shown}", self.name)).await?;
        }
    }

    async fn ask(&self, method: &str, path: &str) -> anyhow::Result<Totals> {
        let (status, body) = http::call(method, self.control, path, EVENTUALLY).await?;
        ensure!(status == 200, "{} answers {status} {body}", self.name);
        serde_json::from_str(&body).with_context(|| body)
    }
}

/// Returns a pod with one container that does not start again.
fn pod(name: &str, container: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [container], "restartPolicy": "Never"}})
}

/// Returns the address of a pod that runs.
fn address(pod: &Pod) -> Option<IpAddr> {
    let status = pod.status.as_ref()?;
    if status.phase.as_deref() != Some("Running") {
        return None;
    }
    status.pod_ip.as_ref()?.parse().ok()
}
