//! Fleet manager, which defines the members of a fleet in the hub: small definitions of its kinds, and what it writes.
//! It works with simulated and with real API servers.

use fleetnet_api::resources::resource;
use fleetnet_core::model::Kind;
use fleetnet_core::names::member_namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// Kinds of the manager, with their scopes.
const KINDS: [(Kind, &str); 2] = [(Kind::InternalMemberCluster, "Namespaced"), (Kind::MemberCluster, "Cluster")];

/// Finalizer of the manager on a MemberCluster.
const FINALIZER: &str = "example.com/manager";

/// Returns small definitions of the manager's kinds, with a status subresource.
#[must_use]
pub fn definitions() -> [CustomResourceDefinition; 2] {
    KINDS.map(|(kind, scope)| {
        let resource = resource(kind);
        let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let schema = json!({ "type": "object", "properties": { "spec": free, "status": free } });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{}.{}", resource.plural, resource.group) },
            "spec": {
                "group": resource.group,
                "names": {
                    "kind": resource.kind, "plural": resource.plural, "singular": resource.kind.to_lowercase(),
                },
                "scope": scope,
                "versions": [{
                    "name": resource.version,
                    "served": true,
                    "storage": true,
                    "subresources": { "status": {} },
                    "schema": { "openAPIV3Schema": schema },
                }],
            },
        });
        serde_json::from_value(definition).expect("a definition")
    })
}

/// Manager of the fleet of a hub.
#[derive(Clone)]
#[allow(missing_debug_implementations, reason = "a client has none")]
pub struct Manager(Client);

impl Manager {
    /// Returns the manager in this hub, which must have its definitions.
    #[must_use]
    pub fn new(hub: Client) -> Self {
        Self(hub)
    }

    /// Creates the definitions of the manager's kinds, on a simulated server.
    pub async fn install(&self) -> kube::Result<()> {
        for definition in definitions() {
            Api::all(self.0.clone()).create(&PostParams::default(), &definition).await?;
        }
        Ok(())
    }

    /// Defines a member, which shall join and send heartbeats at this period. Keeps what is already defined.
    pub async fn admit(&self, cluster_id: &str, heartbeat_seconds: u32) -> kube::Result<()> {
        self.create(&self.members(), Kind::MemberCluster, cluster_id, json!({}), &[FINALIZER]).await?;
        let spec = json!({ "state": "Join", "heartbeatPeriodSeconds": heartbeat_seconds });
        self.create(&self.memberships(cluster_id), Kind::InternalMemberCluster, cluster_id, spec, &[]).await
    }

    /// Asks a member for `state`: `Join` or `Leave`. Does nothing without an InternalMemberCluster.
    pub async fn ask(&self, cluster_id: &str, state: &str) -> kube::Result<()> {
        let patch = Patch::Merge(json!({ "spec": { "state": state } }));
        absent(self.memberships(cluster_id).patch(cluster_id, &PatchParams::default(), &patch).await)
    }

    /// Removes a member from the fleet. Its MemberCluster is being deleted until [`Self::forget`], and its namespace in
    /// the hub stays.
    pub async fn dismiss(&self, cluster_id: &str) -> kube::Result<()> {
        absent(self.members().delete(cluster_id, &DeleteParams::default()).await)
    }

    /// Lets the MemberCluster of a member go whose namespace in the hub is gone.
    pub async fn forget(&self, cluster_id: &str) -> kube::Result<()> {
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        absent(self.members().patch(cluster_id, &PatchParams::default(), &patch).await)
    }

    /// Returns the InternalMemberCluster of a member.
    pub async fn membership(&self, cluster_id: &str) -> kube::Result<Option<DynamicObject>> {
        self.memberships(cluster_id).get_opt(cluster_id).await
    }

    /// Returns the API for the InternalMemberCluster of a member.
    #[must_use]
    pub fn memberships(&self, cluster_id: &str) -> Api<DynamicObject> {
        let namespace = member_namespace(cluster_id);
        Api::namespaced_with(self.0.clone(), &namespace, &api_resource(Kind::InternalMemberCluster))
    }

    fn members(&self) -> Api<DynamicObject> {
        Api::all_with(self.0.clone(), &api_resource(Kind::MemberCluster))
    }

    async fn create(
        &self,
        api: &Api<DynamicObject>,
        kind: Kind,
        name: &str,
        spec: Value,
        finalizers: &[&str],
    ) -> kube::Result<()> {
        let mut object = DynamicObject::new(name, &api_resource(kind)).data(json!({ "spec": spec }));
        object.metadata.finalizers = Some(finalizers.iter().map(ToString::to_string).collect());
        match api.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            made => made.map(drop),
        }
    }
}

/// Maps the answer that an object does not exist to success.
fn absent<T>(answer: kube::Result<T>) -> kube::Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        answer => answer.map(drop),
    }
}

/// Returns the resource of a kind, for the client.
#[must_use]
pub fn api_resource(kind: Kind) -> ApiResource {
    let resource = resource(kind);
    let gvk = GroupVersionKind::gvk(resource.group, resource.version, resource.kind);
    ApiResource::from_gvk_with_plural(&gvk, resource.plural)
}
