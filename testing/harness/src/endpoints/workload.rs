//! [`Workload`]: Services and pods that a test creates, and functions that wait for the Services' slices.

use super::describe;
use crate::eventually;
use crate::routes::Routes;
use crate::user::User;
use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, PostParams, WatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// EndpointSlices by `<namespace>/<name>`.
type Slices = BTreeMap<String, EndpointSlice>;

/// Services and pods of a user in one namespace.
pub struct Workload {
    pub user: User,
    /// Name of the Node that the pods run on.
    node: String,
    client: Client,
    namespace: String,
}

/// Pod to create, with the status that its kubelet would report.
#[derive(Clone, Debug)]
pub struct PodSketch {
    name: String,
    app: String,
    addresses: Vec<String>,
    ready: bool,
}

impl PodSketch {
    /// Returns a ready pod with the label `app: <app>` and these IPv4 or IPv6 addresses.
    #[must_use]
    pub fn new(name: &str, app: &str, addresses: &[&str]) -> Self {
        let addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
        Self { name: name.to_owned(), app: app.to_owned(), addresses, ready: true }
    }

    /// Makes the pod not ready.
    #[must_use]
    pub fn unready(self) -> Self {
        Self { ready: false, ..self }
    }
}

impl Workload {
    /// Creates a Node, `node-<namespace>`. Returns a workload that has no Services and pods yet.
    pub async fn begin(client: Client, namespace: &str) -> anyhow::Result<Self> {
        let (user, node) = (User::new(client.clone(), namespace), format!("node-{namespace}"));
        let workload = Self { user, node, client, namespace: namespace.to_owned() };
        let node: Node = serde_json::from_value(json!({"metadata": {"name": workload.node}}))?;
        Api::all(workload.client.clone()).create(&PostParams::default(), &node).await?;
        Ok(workload)
    }

    /// Creates a Service with port 80 (`http`) and target port 8080. The Service selects pods whose label `app` has the
    /// Service's name.
    pub async fn service(&self, name: &str) -> anyhow::Result<Service> {
        self.service_with(name, json!({})).await
    }

    /// Creates a Service as [`Self::service`] does, with this merge patch of its spec. Null removes a field.
    pub async fn service_with(&self, name: &str, spec: Value) -> anyhow::Result<Service> {
        let mut service = json!({
            "metadata": {"name": name},
            "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
        });
        for (field, value) in spec.as_object().context("a spec is an object")? {
            service["spec"][field] = value.clone();
        }
        self.user.create(service).await
    }

    /// Creates a pod and writes its status.
    pub async fn pod(&self, pod: &PodSketch) -> anyhow::Result<Pod> {
        let made = self.user.create::<Pod>(json!({
            "metadata": {"name": pod.name, "labels": {"app": pod.app}},
            "spec": {"nodeName": self.node, "containers": [{"name": "main", "image": "main"}]},
        }));
        made.await?;
        self.report(pod).await
    }

    /// Creates ready pods `<service>-0`, `<service>-1` and so on with these addresses. The Service selects these pods.
    pub async fn pods(&self, service: &str, addresses: &[&str]) -> anyhow::Result<()> {
        for (index, address) in addresses.iter().enumerate() {
            self.pod(&PodSketch::new(&format!("{service}-{index}"), service, &[address])).await?;
        }
        Ok(())
    }

    /// Writes the status of an existing pod, in place of its kubelet.
    pub async fn report(&self, pod: &PodSketch) -> anyhow::Result<Pod> {
        let addresses: Vec<Value> = pod.addresses.iter().map(|address| json!({"ip": address})).collect();
        let ready = if pod.ready { "True" } else { "False" };
        let status = json!({
            "phase": "Running", "podIP": pod.addresses.first(), "podIPs": addresses,
            "conditions": [{"type": "Ready", "status": ready}],
        });
        self.user.merge_status(&pod.name, status).await
    }

    /// Removes a pod at once, without grace period.
    pub async fn remove_pod(&self, name: &str) -> anyhow::Result<()> {
        self.user.api::<Pod>().delete(name, &DeleteParams::default().grace_period(0)).await?;
        Ok(())
    }

    /// Deletes every slice in the namespace, as a user can do by hand.
    pub async fn delete_slices(&self) -> anyhow::Result<()> {
        let slices = self.user.api::<EndpointSlice>();
        slices.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        Ok(())
    }

    /// Returns the present slices of a Service.
    pub async fn slices(&self, service: &str) -> anyhow::Result<Vec<EndpointSlice>> {
        let labels = format!("kubernetes.io/service-name={service}");
        Ok(self.user.api::<EndpointSlice>().list(&ListParams::default().labels(&labels)).await?.items)
    }

    /// Returns the only slice of a Service.
    ///
    /// # Errors
    /// If the Service has no slice or more than one.
    pub async fn slice(&self, service: &str) -> anyhow::Result<EndpointSlice> {
        let mut slices = self.slices(service).await?;
        let slice = slices.pop().filter(|_| slices.is_empty());
        slice.with_context(|| format!("{service} has one slice"))
    }

    /// Waits until the slices of a Service are these, in the text form of [`describe::slices`].
    pub async fn sees(&self, service: &str, expected: &[&str]) -> anyhow::Result<Slices> {
        self.sees_all(service, &format!("slices\n    {}", expected.join("\n    ")), |objects| {
            describe::slices(objects.values()) == expected
        })
        .await
    }

    /// Waits until all slices of a Service together fulfil a condition.
    pub async fn sees_all(
        &self,
        service: &str,
        what: &str,
        condition: impl FnMut(&Slices) -> bool,
    ) -> anyhow::Result<Slices> {
        let selection = WatchParams::default().labels(&format!("kubernetes.io/service-name={service}"));
        eventually::objects(&self.user.api(), &selection, &format!("{service} to have {what}"), condition).await
    }

    /// Waits until the controller has handled all earlier changes. For this, creates a Service with the name `marker`
    /// and waits for its slice.
    pub async fn settle(&self, marker: &str) -> anyhow::Result<()> {
        self.service(marker).await?;
        self.sees(marker, &["IPv4 no ports: nobody"]).await.map(drop)
    }

    /// Watches the routes (ready endpoints) of a Service from now on.
    #[must_use]
    pub fn routes(&self, service: &str) -> Routes {
        Routes::watch(&self.client, &self.namespace, service)
    }
}
