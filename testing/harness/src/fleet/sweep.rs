//! Removal of objects that an earlier test left in a cluster. Finalizers are removed too, because the agents may not
//! run.

use crate::control_plane::ControlPlane;
use crate::fleet::FLEET_SYSTEM;
use anyhow::Context as _;
use fleetnet_api::crds::{Form, all};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind, ResourceExt as _};
use kube::{Api, Client};
use serde_json::json;

/// Removes all objects of our API group, the agents' Leases, and all Services and EndpointSlices outside of the
/// namespace `default`. In `default` the API server has a Service and an EndpointSlice of its own.
pub(super) async fn sweep(control_plane: &ControlPlane) -> anyhow::Result<()> {
    let client = control_plane.admin();
    for definition in all(Form::Full) {
        let spec = definition.spec;
        let stored = spec.versions.iter().find(|version| version.storage).context("a definition stores a version")?;
        let resource = ApiResource {
            group: spec.group.clone(),
            version: stored.name.clone(),
            api_version: format!("{}/{}", spec.group, stored.name),
            kind: spec.names.kind.clone(),
            plural: spec.names.plural.clone(),
        };
        remove_all(&client, &resource, |_| true).await?;
    }
    let not_the_servers_own = |object: &DynamicObject| object.namespace().as_deref() != Some("default");
    remove_all(&client, &built_in("", "Service"), not_the_servers_own).await?;
    remove_all(&client, &built_in("discovery.k8s.io", "EndpointSlice"), not_the_servers_own).await?;
    let of_the_fleet = |object: &DynamicObject| object.namespace().as_deref() == Some(FLEET_SYSTEM);
    remove_all(&client, &built_in("coordination.k8s.io", "Lease"), of_the_fleet).await
}

fn built_in(group: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind))
}

async fn remove_all(
    client: &Client,
    resource: &ApiResource,
    wanted: impl Fn(&DynamicObject) -> bool,
) -> anyhow::Result<()> {
    let everywhere: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let context = || format!("cannot remove what an earlier test left at {}", everywhere.resource_url());
    let objects = everywhere.list(&ListParams::default()).await.with_context(context)?;
    for object in objects.items.iter().filter(|object| wanted(object)) {
        let namespace = object.namespace().unwrap_or_default();
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, resource);
        remove(&api, object).await.with_context(context)?;
    }
    Ok(())
}

/// Removes an object with its finalizers. Succeeds if the object does not exist any more.
async fn remove(api: &Api<DynamicObject>, object: &DynamicObject) -> kube::Result<()> {
    let name = object.name_any();
    if !object.finalizers().is_empty() {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        unless_gone(api.patch_metadata(&name, &PatchParams::default(), &patch).await.map(drop))?;
    }
    unless_gone(api.delete(&name, &DeleteParams::default()).await.map(drop))
}

fn unless_gone(outcome: kube::Result<()>) -> kube::Result<()> {
    match outcome {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        outcome => outcome,
    }
}
