//! Actions of a user in a member cluster, and functions that wait for a state of the user's objects.

mod mcs;

use crate::eventually;
use crate::fleet::FLEET_SYSTEM;
use crate::routes::Routes;
use fleetnet_api::crd::{MultiClusterService, ServiceExport};
use k8s_openapi::api::core::v1::{Event, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, WatchParams};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// User in one namespace of one cluster.
#[derive(Clone)]
pub struct User {
    client: Client,
    namespace: String,
}

/// Type of an import, as in `spec.type` of a MultiClusterService.
#[derive(Clone, Copy, Debug)]
pub enum Consume {
    /// `spec.type` is omitted, which means LoadBalancer.
    LoadBalancer,
    /// `spec.type: ClusterIP`.
    ClusterIp,
}

impl User {
    /// Returns a user in a namespace of the cluster that the client reaches.
    #[must_use]
    pub fn new(client: Client, namespace: &str) -> Self {
        Self { client, namespace: namespace.to_owned() }
    }

    /// Returns the API for a kind's objects in the user's namespace.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates a Service with port 80 (`http`) and without a selector, so that the test writes its slices.
    pub async fn create_service(&self, name: &str) -> anyhow::Result<Service> {
        self.create_service_with_port(name, 80).await
    }

    /// Creates a Service as [`Self::create_service`] does, with another port.
    pub async fn create_service_with_port(&self, name: &str, port: u16) -> anyhow::Result<Service> {
        self.create(json!({
            "metadata": {"name": name},
            "spec": {"ports": [{"name": "http", "port": port, "targetPort": 8080}]},
        }))
        .await
    }

    /// Creates a slice of a Service with ready endpoints.
    pub async fn create_slice(&self, service: &str, name: &str, addresses: &[&str]) -> anyhow::Result<EndpointSlice> {
        self.create(slice(service, name, addresses)).await
    }

    /// Creates a Service, and its slice `<service>-1` with these endpoints.
    pub async fn serve(&self, service: &str, addresses: &[&str]) -> anyhow::Result<()> {
        self.create_service(service).await?;
        self.create_slice(service, &format!("{service}-1"), addresses).await.map(drop)
    }

    /// Creates a slice as [`Self::create_slice`] does, for pods that listen on another port.
    pub async fn create_slice_with_port(
        &self,
        service: &str,
        name: &str,
        addresses: &[&str],
        port: u16,
    ) -> anyhow::Result<EndpointSlice> {
        let mut slice = slice(service, name, addresses);
        slice["ports"][0]["port"] = json!(port);
        self.create(slice).await
    }

    pub async fn set_endpoints(&self, slice: &str, addresses: &[&str]) -> anyhow::Result<()> {
        self.merge::<EndpointSlice>(slice, json!({"endpoints": endpoints(addresses)})).await
    }

    /// Replaces the content of a slice and keeps its name and UID, as kube-controller-manager does when it reuses a
    /// slice. Annotations and labels of other writers are lost.
    pub async fn recycle_slice(&self, service: &str, name: &str, addresses: &[&str]) -> anyhow::Result<()> {
        let replacement: EndpointSlice = serde_json::from_value(slice(service, name, addresses))?;
        self.api::<EndpointSlice>().replace(name, &PostParams::default(), &replacement).await?;
        Ok(())
    }

    /// Creates a ServiceExport for the Service with this name.
    pub async fn export(&self, service: &str) -> anyhow::Result<ServiceExport> {
        self.create(json!({"metadata": {"name": service}})).await
    }

    /// Creates a Service, its slice `<name>-1` with these endpoints, and a ServiceExport.
    pub async fn export_new(&self, name: &str, addresses: &[&str]) -> anyhow::Result<()> {
        self.serve(name, addresses).await?;
        self.export(name).await.map(drop)
    }

    /// Creates a MultiClusterService with this name that imports a Service of the fleet.
    pub async fn import(&self, name: &str, service: &str, consume: Consume) -> anyhow::Result<MultiClusterService> {
        let mut spec = json!({"serviceImport": {"name": service}});
        if matches!(consume, Consume::ClusterIp) {
            spec["type"] = json!("ClusterIP");
        }
        self.create(json!({"metadata": {"name": name}, "spec": spec})).await
    }

    pub async fn delete<K>(&self, name: &str) -> anyhow::Result<()>
    where
        K: eventually::Shown + kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        self.api::<K>().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Applies a merge patch to an object.
    pub async fn merge<K>(&self, name: &str, patch: Value) -> anyhow::Result<()>
    where
        K: eventually::Shown + kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Applies a merge patch to the status of an object.
    pub async fn merge_status<K>(&self, name: &str, status: Value) -> anyhow::Result<K>
    where
        K: eventually::Shown + kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        let patch = Patch::Merge(json!({"status": status}));
        Ok(self.api::<K>().patch_status(name, &PatchParams::default(), &patch).await?)
    }

    /// Waits until the imported slices of a MultiClusterService's derived Service have exactly these addresses.
    pub async fn sees(&self, name: &str, addresses: &[&str]) -> anyhow::Result<BTreeMap<String, EndpointSlice>> {
        let expected: BTreeSet<&str> = addresses.iter().copied().collect();
        let are_imported = |objects: &BTreeMap<String, EndpointSlice>| {
            let all: Vec<&str> = objects.values().flat_map(addresses_of).collect();
            all.len() == expected.len() && all.iter().all(|address| expected.contains(address))
        };
        self.sees_slices(name, &format!("to have the addresses {expected:?}"), are_imported).await
    }

    /// Waits until a MultiClusterService has no imported slice.
    pub async fn sees_no_slice(&self, name: &str) -> anyhow::Result<()> {
        self.sees_slices(name, "to be gone", BTreeMap::is_empty).await.map(drop)
    }

    /// Waits until the imported slices of a MultiClusterService's derived Service fulfil `condition` together.
    pub async fn sees_slices(
        &self,
        name: &str,
        what: &str,
        condition: impl FnMut(&BTreeMap<String, EndpointSlice>) -> bool,
    ) -> anyhow::Result<BTreeMap<String, EndpointSlice>> {
        let api: Api<EndpointSlice> = Api::namespaced(self.client.clone(), FLEET_SYSTEM);
        let derived = self.derived_name(name);
        let selection = WatchParams::default().labels(&format!("kubernetes.io/service-name={derived}"));
        eventually::objects(&api, &selection, &format!("the slices of {derived} {what}"), condition).await
    }

    /// Waits for the derived Service of a MultiClusterService.
    pub async fn derived_service(&self, name: &str) -> anyhow::Result<Service> {
        let api: Api<Service> = Api::namespaced(self.client.clone(), FLEET_SYSTEM);
        eventually::exists(&api, &self.derived_name(name)).await
    }

    /// Waits until a MultiClusterService has no derived Service any more.
    pub async fn no_derived_service(&self, name: &str) -> anyhow::Result<()> {
        let api: Api<Service> = Api::namespaced(self.client.clone(), FLEET_SYSTEM);
        eventually::gone(&api, &self.derived_name(name)).await
    }

    /// Waits until the derived Service of a MultiClusterService has this port and no other.
    pub async fn sees_derived_port(&self, name: &str, port: i32) -> anyhow::Result<()> {
        let has_it = |service: &Service| {
            let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
            ports.map(|it| it.port).eq([port])
        };
        self.sees_derived(name, &format!("to have the port {port}"), has_it).await.map(drop)
    }

    /// Waits until the derived Service of a MultiClusterService exists and fulfils `condition`.
    pub async fn sees_derived(
        &self,
        name: &str,
        what: &str,
        condition: impl FnMut(&Service) -> bool,
    ) -> anyhow::Result<Service> {
        let api: Api<Service> = Api::namespaced(self.client.clone(), FLEET_SYSTEM);
        let name = self.derived_name(name);
        eventually::object(&api, &name, &format!("{name} {what}"), condition).await
    }

    /// Waits until a MultiClusterService has imported slices, and each of them has this port and no other.
    pub async fn sees_slice_port(&self, name: &str, port: i32) -> anyhow::Result<()> {
        let have_it = |objects: &BTreeMap<String, EndpointSlice>| {
            let mut ports = objects.values().map(|slice| slice.ports.iter().flatten().filter_map(|it| it.port));
            !objects.is_empty() && ports.all(|ports| ports.eq([port]))
        };
        self.sees_slices(name, &format!("to have the port {port}"), have_it).await.map(drop)
    }

    /// Waits until a condition of a ServiceExport has this status and reason.
    pub async fn sees_export(&self, service: &str, condition: &str, status: &str, reason: &str) -> anyhow::Result<()> {
        let has_condition = |export: &ServiceExport| {
            let conditions = export.status.iter().flat_map(|it| it.conditions.iter().flatten());
            conditions.into_iter().any(|it| it.type_ == condition && it.status == status && it.reason == reason)
        };
        let what = format!("the export of {service} to say {condition}={status} ({reason})");
        eventually::object(&self.api::<ServiceExport>(), service, &what, has_condition).await.map(drop)
    }

    /// Waits until the condition `Valid` of a MultiClusterService has this status.
    pub async fn sees_import(&self, name: &str, status: &str) -> anyhow::Result<()> {
        let has_condition = |object: &MultiClusterService| {
            let conditions = object.status.iter().flat_map(|it| it.conditions.iter().flatten());
            conditions.into_iter().any(|it| it.type_ == "Valid" && it.status == status)
        };
        let what = format!("the MultiClusterService {name} to say Valid={status}");
        eventually::object(&self.api::<MultiClusterService>(), name, &what, has_condition).await.map(drop)
    }

    /// Waits for an agent's Event in the user's namespace about an object of this kind, with this reason and a message
    /// that contains `text`. Returns the number of such Events.
    pub async fn sees_event(&self, kind: &str, reason: &str, text: &str) -> anyhow::Result<usize> {
        self.sees_events(kind, reason, text, 1).await
    }

    /// Waits as [`Self::sees_event`] does, until there are at least this many such Events.
    pub async fn sees_events(&self, kind: &str, reason: &str, text: &str, times: usize) -> anyhow::Result<usize> {
        let matches_event = |event: &&Event| {
            event.involved_object.kind.as_deref() == Some(kind)
                && event.reason.as_deref() == Some(reason)
                && event.message.as_deref().is_some_and(|message| message.contains(text))
        };
        let what = format!("an Event about a {kind} with the reason {reason} that says: {text}");
        let are_there = |objects: &BTreeMap<String, Event>| objects.values().filter(matches_event).count() >= times;
        let events = eventually::objects(&self.api::<Event>(), &WatchParams::default(), &what, are_there).await?;
        Ok(events.values().filter(matches_event).count())
    }

    /// Watches the routes (ready endpoints) of a MultiClusterService's derived Service, from now on.
    #[must_use]
    pub fn routes(&self, name: &str) -> Routes {
        Routes::watch(&self.client, FLEET_SYSTEM, &self.derived_name(name))
    }

    fn derived_name(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    /// Creates an object from JSON without `apiVersion` and `kind`.
    pub async fn create<K>(&self, object: Value) -> anyhow::Result<K>
    where
        K: eventually::Shown + kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Ok(self.api::<K>().create(&PostParams::default(), &typed(object)?).await?)
    }
}

/// Returns the addresses of all endpoints in a slice, ready or not.
pub fn addresses_of(slice: &EndpointSlice) -> impl Iterator<Item = &str> {
    slice.endpoints.iter().flatten().flat_map(|endpoint| endpoint.addresses.iter().map(String::as_str))
}

fn slice(service: &str, name: &str, addresses: &[&str]) -> Value {
    json!({
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/service-name": service, "endpointslice.kubernetes.io/managed-by": "end-to-end-test"},
        },
        "addressType": "IPv4",
        "endpoints": endpoints(addresses),
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    })
}

fn endpoints(addresses: &[&str]) -> Value {
    addresses.iter().map(|address| json!({"addresses": [address], "conditions": {"ready": true}})).collect()
}

fn typed<K>(mut object: Value) -> anyhow::Result<K>
where
    K: DeserializeOwned + kube::Resource<DynamicType = ()>,
{
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    Ok(serde_json::from_value(object)?)
}
