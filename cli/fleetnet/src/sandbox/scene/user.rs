//! Writes that a user makes in a member: Services, slices, exports and imports.

use crate::args::Api as SandboxApi;
use crate::sandbox::describe::NAMESPACE;
use fleetnet_api::crd::{MultiClusterService, ServiceExport, mcs};
use fleetnet_api::names::annotations::LAST_CHANGE_TRIGGER_TIME;
use fleetnet_runtime::clock::{Clock, to_jiff};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;

/// User in [`NAMESPACE`] of one member.
pub(super) struct User(Client);

impl User {
    pub(super) fn of(client: Client) -> Self {
        Self(client)
    }

    /// Creates a Service without a selector, because the sandbox itself writes the slices of the Service.
    pub(super) async fn create_service(&self, name: &str, port: u16) -> anyhow::Result<()> {
        self.create::<Service>(json!({"metadata": {"name": name}, "spec": {"ports": ports(port)}})).await
    }

    pub(super) async fn set_port(&self, name: &str, port: u16) -> anyhow::Result<()> {
        self.merge::<Service>(name, json!({"spec": {"ports": ports(port)}})).await
    }

    pub(super) async fn create_slice(&self, service: &str, name: &str, addresses: &[String]) -> anyhow::Result<()> {
        let slice = json!({
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/service-name": service},
                "annotations": trigger_time(),
            },
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            "endpoints": endpoints(addresses),
        });
        self.create::<EndpointSlice>(slice).await
    }

    pub(super) async fn set_endpoints(&self, slice: &str, addresses: &[String]) -> anyhow::Result<()> {
        let patch = json!({"metadata": {"annotations": trigger_time()}, "endpoints": endpoints(addresses)});
        self.merge::<EndpointSlice>(slice, patch).await
    }

    pub(super) async fn export(&self, service: &str, api: SandboxApi) -> anyhow::Result<()> {
        let export = json!({"metadata": {"name": service}});
        match api {
            SandboxApi::Fleet => self.create::<ServiceExport>(export).await,
            SandboxApi::Mcs => self.create::<mcs::ServiceExport>(export).await,
        }
    }

    /// Creates a MultiClusterService of type ClusterIP, so that all members can import the same Service.
    pub(super) async fn import(&self, service: &str) -> anyhow::Result<()> {
        let spec = json!({"serviceImport": {"name": service}, "type": "ClusterIP"});
        self.create::<MultiClusterService>(json!({"metadata": {"name": service}, "spec": spec})).await
    }

    async fn create<K>(&self, object: Value) -> anyhow::Result<()>
    where
        K: Clone + Debug + DeserializeOwned + Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize,
    {
        let object: K = serde_json::from_value(object)?;
        Api::<K>::namespaced(self.0.clone(), NAMESPACE).create(&PostParams::default(), &object).await?;
        Ok(())
    }

    async fn merge<K>(&self, name: &str, patch: Value) -> anyhow::Result<()>
    where
        K: Clone + Debug + DeserializeOwned + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let api = Api::<K>::namespaced(self.0.clone(), NAMESPACE);
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }
}

/// Returns an error as a sentence. For an error response of a server, returns only the message.
pub(super) fn describe_error(error: &anyhow::Error) -> String {
    match error.downcast_ref() {
        Some(kube::Error::Api(status)) => status.message.clone(),
        _ => format!("{error:#}"),
    }
}

fn ports(port: u16) -> Value {
    json!([{"name": "http", "port": port, "targetPort": 8080, "protocol": "TCP"}])
}

/// Returns the annotation with the time of a change of endpoints, as kube-controller-manager writes it.
fn trigger_time() -> Value {
    json!({LAST_CHANGE_TRIGGER_TIME: format!("{:.6}", to_jiff(Clock::system().now()))})
}

fn endpoints(addresses: &[String]) -> Value {
    addresses.iter().map(|address| json!({"addresses": [address], "conditions": {"ready": true}})).collect()
}
