//! What the agents' identities may do: no more than production grants them, so that a missing right is found here.

use crate::control_plane::ControlPlane;
use anyhow::Context as _;
use fleetnet_api::names::GROUP;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::PostParams;
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;

const ALL: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];
const READ: &[&str] = &["get", "list", "watch"];
const NO_DELETE: &[&str] = &["get", "list", "watch", "create", "update", "patch"];

/// The hub agent, in the whole hub.
pub(super) async fn bind_hub_agent(hub: &ControlPlane, user: &str) -> anyhow::Result<()> {
    let rules = json!([
        rule(GROUP, &["*"], ALL),
        rule("", &["namespaces"], READ),
        rule("", &["events"], NO_DELETE),
        rule("coordination.k8s.io", &["leases"], NO_DELETE),
    ]);
    bind_everywhere(hub, user, rules).await
}

/// A member agent, in the whole of its own cluster.
pub(super) async fn bind_member_agent(member: &ControlPlane, user: &str) -> anyhow::Result<()> {
    let rules = json!([
        rule(GROUP, &["*"], ALL),
        rule("", &["services"], ALL),
        rule("", &["namespaces"], READ),
        rule("discovery.k8s.io", &["endpointslices"], ALL),
        rule("", &["events"], NO_DELETE),
        rule("coordination.k8s.io", &["leases"], NO_DELETE),
    ]);
    bind_everywhere(member, user, rules).await
}

/// A member agent in the hub: its own namespace and nothing else.
pub(super) async fn bind_member_in_hub(hub: &ControlPlane, namespace: &str, user: &str) -> anyhow::Result<()> {
    let rules = json!([rule(GROUP, &["*"], &["*"]), rule("", &["events"], NO_DELETE)]);
    let role = json!({"metadata": {"name": user}, "rules": rules});
    let binding = binding(user, "Role");
    create::<Role>(&in_namespace(hub, namespace), role).await?;
    create::<RoleBinding>(&in_namespace(hub, namespace), binding).await
}

async fn bind_everywhere(control_plane: &ControlPlane, user: &str, rules: Value) -> anyhow::Result<()> {
    let role = json!({"metadata": {"name": user}, "rules": rules});
    create::<ClusterRole>(&Api::all(control_plane.admin()), role).await?;
    create::<ClusterRoleBinding>(&Api::all(control_plane.admin()), binding(user, "ClusterRole")).await
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// Binds the role of the user's own name.
fn binding(user: &str, role_kind: &str) -> Value {
    json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

fn in_namespace<K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>>(
    control_plane: &ControlPlane,
    namespace: &str,
) -> Api<K> {
    Api::namespaced(control_plane.admin(), namespace)
}

async fn create<K: Clone + Debug + DeserializeOwned + Resource + Serialize>(
    api: &Api<K>,
    value: Value,
) -> anyhow::Result<()> {
    let object: K = serde_json::from_value(value)?;
    let made = api.create(&PostParams::default(), &object).await;
    made.map(drop).with_context(|| format!("cannot make a role at {}", api.resource_url()))
}
