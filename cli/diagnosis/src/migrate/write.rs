//! Writes of a return to Go agents. Each is for the object that was read: if it has changed since, the answer is 409,
//! and an object that is gone is 404.

use super::{Annotated, Change, Object, is_judged};
use fleetnet_api::crd::MemberAgent;
use fleetnet_api::names::{GROUP, VERSION};
use jiff::Timestamp;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

/// Makes a change. `cluster` is the one that has the object: the member for [`Change::Annotate`], and the hub for all
/// others.
pub async fn make(change: Change, cluster: &Client) -> kube::Result<()> {
    match change {
        Change::Keep { .. } => Ok(()),
        Change::Annotate(slice) => annotate(cluster, slice).await,
        Change::Delete { object, .. } => delete(cluster, &object, None).await,
        Change::Revoke(agent) => {
            let status = json!({"features": [], "silentMembers": null, "silence": null, "sliceStream": null});
            let patch = Patch::Merge(json!({"metadata": {"uid": agent.uid}, "status": status}));
            agents(cluster, &agent).patch_status(&agent.name, &PatchParams::default(), &patch).await.map(drop)
        }
    }
}

/// Sends a heartbeat with the announcement of a stop in place of a member agent. Both limits of silence are then 10
/// minutes longer.
pub async fn renew(hub: &Client, agent: &Object, now: Timestamp) -> kube::Result<()> {
    let spec = json!({"renewTime": format!("{now:.6}"), "plannedStopTime": format!("{now:.6}")});
    let patch = Patch::Merge(json!({"metadata": {"uid": agent.uid}, "spec": spec}));
    agents(hub, agent).patch(&agent.name, &PatchParams::default(), &patch).await.map(drop)
}

/// Deletes the MemberAgent of a member. Returns false, and deletes nothing, if the hub agent has judged the member
/// since it was read.
pub async fn forget(hub: &Client, agent: &Object) -> kube::Result<bool> {
    let present = agents(hub, agent).get(&agent.name).await?;
    if present.status.as_ref().is_some_and(is_judged) {
        return Ok(false);
    }
    delete(hub, agent, present.resource_version()).await.map(|()| true)
}

async fn annotate(member: &Client, slice: Annotated) -> kube::Result<()> {
    let api: Api<EndpointSlice> = Api::namespaced(member.clone(), &slice.namespace);
    let patch = Patch::Merge(json!({"metadata": {"uid": slice.uid, "annotations": slice.annotations}}));
    api.patch(&slice.name, &PatchParams::default(), &patch).await.map(drop)
}

async fn delete(hub: &Client, object: &Object, version: Option<String>) -> kube::Result<()> {
    let kind = GroupVersionKind::gvk(GROUP, VERSION, &object.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &object.plural);
    let api: Api<DynamicObject> = Api::namespaced_with(hub.clone(), &object.namespace, &resource);
    let preconditions = Some(Preconditions { uid: Some(object.uid.clone()), resource_version: version });
    let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
    api.delete(&object.name, &parameters).await.map(drop)
}

fn agents(hub: &Client, agent: &Object) -> Api<MemberAgent> {
    Api::namespaced(hub.clone(), &agent.namespace)
}
