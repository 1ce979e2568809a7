//! Fleet of a run: servers, agents and their users, as the other modules see it.

use crate::mcs;
use anyhow::Context as _;
use fleetnet_api::decode::decode;
use fleetnet_api::resources::resource;
use fleetnet_core::model::{Kind, MemberStatus, Object};
use fleetnet_types::Timestamp;
use futures::future::LocalBoxFuture;
use kube::Api;
use kube::api::DynamicObject;
use memkube::User;
use memkube::registry::ResourceId;
use serde_json::Value;
use sim::fleet::{HUB_AGENT, MEMBER_AGENT, Place};
use sim::manager::{Manager, api_resource};
use sim::{Fleet, Server};
use std::collections::BTreeSet;

/// Namespace of users in all clusters.
pub const WORK: &str = "work";

/// Kinds with a namespace that the agents watch, except MemberAgent.
pub const KINDS: [Kind; 9] = [
    Kind::Service,
    Kind::EndpointSlice,
    Kind::ServiceExport,
    Kind::ServiceImport,
    Kind::MultiClusterService,
    Kind::InternalServiceExport,
    Kind::InternalServiceImport,
    Kind::EndpointSliceExport,
    Kind::EndpointSliceImport,
];

/// Action that is repeated until it returns true.
pub type Later = Box<dyn Fn() -> LocalBoxFuture<'static, anyhow::Result<bool>>>;

/// Fleet with its servers and agents.
#[allow(missing_debug_implementations, reason = "it has functions")]
pub struct World {
    pub fleet: Fleet,
    /// Number of replicas of each agent.
    pub replicas: usize,
    /// True if a fault is going on that may cut an agent off from all servers.
    pub is_cut_off: bool,
    /// Number of times that the hub was restored from a backup.
    pub restores: u64,
    /// Actions that were not possible yet.
    pub later: Vec<Later>,
    /// Manager of the fleet, if it has one.
    pub manager: Option<Manager>,
}

impl World {
    /// Starts the replicas of an agent that do not run.
    pub fn start_missing(&mut self, place: Place) -> anyhow::Result<()> {
        for replica in 0..self.replicas {
            if self.fleet.replica(place, replica).is_none() {
                self.fleet.start_replica(place, replica)?;
            }
        }
        Ok(())
    }

    /// Kills all replicas of an agent.
    pub async fn kill_all(&mut self, place: Place) {
        for replica in 0..self.replicas {
            self.fleet.kill_replica(place, replica).await;
        }
    }

    /// Stops all replicas of an agent, and kills those that other faults prevent from a clean stop.
    pub async fn stop_all(&mut self, place: Place) {
        for replica in 0..self.replicas {
            if self.fleet.replica(place, replica).is_some() {
                let _ = self.fleet.stop_replica(place, replica).await;
            }
            self.fleet.kill_replica(place, replica).await;
        }
    }

    /// Repeats the actions that were not possible yet.
    pub async fn retry_later(&mut self) -> anyhow::Result<()> {
        let mut left = Vec::new();
        for action in std::mem::take(&mut self.later) {
            if !action().await? {
                left.push(action);
            }
        }
        self.later = left;
        Ok(())
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.fleet.clock().now()
    }

    #[must_use]
    pub fn server(&self, place: Place) -> &Server {
        match place {
            Place::Hub => &self.fleet.hub,
            Place::Member(index) => &self.fleet.members[index].server,
        }
    }

    /// Returns the API for the objects of a kind, for a user with all rights.
    #[must_use]
    pub fn api(&self, place: Place, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        let client = self.server(place).admin();
        match namespace {
            "" => Api::all_with(client, &api_resource(kind)),
            namespace => Api::namespaced_with(client, namespace, &api_resource(kind)),
        }
    }

    /// Returns an object of a kind from its JSON without `apiVersion` and `kind`.
    pub fn object(&self, kind: Kind, mut json: Value) -> anyhow::Result<DynamicObject> {
        let resource = api_resource(kind);
        json["apiVersion"] = resource.api_version.clone().into();
        json["kind"] = resource.kind.into();
        serde_json::from_value(json).context("an object of a user")
    }

    /// Returns all decodable objects of [`KINDS`] in a cluster.
    #[must_use]
    pub fn objects(&self, place: Place) -> Vec<Object> {
        KINDS.into_iter().flat_map(|kind| self.objects_of_kind(place, kind)).collect()
    }

    pub(crate) fn objects_of_kind(&self, place: Place, kind: Kind) -> Vec<Object> {
        let stored = self.server(place).memkube().peek_all(&resource_id(kind));
        stored.into_iter().filter_map(|object| decode(kind, &serde_json::to_vec(&object).ok()?).ok()).collect()
    }

    /// Returns the objects in a cluster that agents created.
    #[must_use]
    pub fn objects_of_agents(&self, place: Place) -> Vec<Object> {
        let ours = |object: &Object| match object {
            Object::Service(service) => service.derived_from.is_some(),
            Object::EndpointSlice(slice) => slice.imported,
            Object::ServiceExport(_) | Object::MultiClusterService(_) => false,
            _ => true,
        };
        self.objects(place).into_iter().filter(ours).collect()
    }

    /// Returns the status of each MemberAgent.
    #[must_use]
    pub fn member_statuses(&self) -> Vec<MemberStatus> {
        let agents = self.objects_of_kind(Place::Hub, Kind::MemberAgent).into_iter();
        agents.filter_map(|it| if let Object::MemberAgent(agent) = it { Some(agent.status) } else { None }).collect()
    }

    /// Returns the objects of the whole fleet, as the oracle of a fleet at rest reads them. The standard API has a
    /// check of its own.
    #[must_use]
    pub fn at_rest(&self) -> histories::fleet::Fleet {
        let cluster = |mut objects: Vec<Object>| {
            objects.retain(|object| !mcs::concerns(object));
            histories::fleet::Cluster::new(objects, BTreeSet::new())
        };
        let members = (0..self.fleet.members.len()).map(|index| cluster(self.objects(Place::Member(index))));
        let mut in_hub = self.objects(Place::Hub);
        for kind in [Kind::Namespace, Kind::MemberAgent] {
            in_hub.extend(self.objects_of_kind(Place::Hub, kind));
        }
        histories::fleet::Fleet { hub: cluster(in_hub), members: members.collect() }
    }
}

/// Returns the place of the agent that makes a request to the server at `server`; `None` for other users.
#[must_use]
pub fn agent_of(server: Place, user: &User) -> Option<Place> {
    match (server, &*user.name) {
        (Place::Hub, HUB_AGENT) => Some(Place::Hub),
        (Place::Member(index), MEMBER_AGENT) => Some(Place::Member(index)),
        (Place::Hub, name) => {
            let index =
                (0..histories::users::MEMBERS).find(|index| *name == sim::fleet::hub_user(&hub_namespace(*index)));
            index.map(Place::Member)
        }
        _ => None,
    }
}

/// Returns the replica of an agent that makes a request.
#[must_use]
pub fn replica_of(user: &User) -> Option<usize> {
    user.groups.iter().find_map(|group| group.strip_prefix(sim::fleet::REPLICA)?.parse().ok())
}

/// Returns the cluster id of a member.
#[must_use]
pub fn cluster_id(index: usize) -> String {
    format!("member-{}", index + 1)
}

/// Returns the member with this cluster id.
pub(crate) fn member(cluster: &str) -> Option<Place> {
    let number: usize = cluster.strip_prefix("member-")?.parse().ok()?;
    Some(Place::Member(number.checked_sub(1)?))
}

/// Returns the namespace of a member in the hub.
#[must_use]
pub fn hub_namespace(index: usize) -> String {
    fleetnet_core::names::member_namespace(&cluster_id(index)).to_string()
}

/// True if objects of this kind are in the hub, perhaps also in members.
#[must_use]
pub fn is_in_hub(kind: Kind) -> bool {
    !matches!(kind, Kind::Service | Kind::EndpointSlice | Kind::ServiceExport | Kind::MultiClusterService)
}

/// Returns the resource of a kind, for memkube.
#[must_use]
pub fn resource_id(kind: Kind) -> ResourceId {
    let resource = resource(kind);
    ResourceId::new(resource.group, resource.plural)
}

/// Returns the kind of a resource; `None` if no rule checks it.
#[must_use]
pub fn kind_of(id: &ResourceId) -> Option<Kind> {
    // SystemNamespace has the resource of Namespace, which comes first.
    Kind::ALL.into_iter().find(|kind| *kind != Kind::MemberCluster && resource_id(*kind) == *id)
}
