//! A member that is lost for good: its agents are gone, and somebody deletes its MemberCluster, if the fleet has a
//! manager, and its namespace in the hub. Later, it joins again.

use super::namespaces::exists_again;
use super::{Disturbance, Kind};
use crate::limits::HEARTBEAT_SECONDS;
use crate::users::delete;
use crate::world::{World, cluster_id, hub_namespace};
use anyhow::Context as _;
use fastrand::Rng;
use fleetnet_core::model::Kind as ObjectKind;
use futures::future::LocalBoxFuture;
use histories::users::MEMBERS;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use serde_json::json;
use sim::fleet::{MEMBER_ACCOUNT, Place};
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("removal", 0, 10..=300, make).slow().changing();

#[derive(Debug)]
struct Removal {
    member: usize,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    Arc::new(Removal { member: rng.usize(..MEMBERS) })
}

impl Disturbance for Removal {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            world.kill_all(Place::Member(self.member)).await;
            if let Some(manager) = &world.manager {
                manager.dismiss(&cluster_id(self.member)).await?;
            }
            delete(world, Place::Hub, ObjectKind::Namespace, &format!("/{}", hub_namespace(self.member))).await
        })
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let name = hub_namespace(self.member);
            let namespace = world.object(ObjectKind::Namespace, json!({"metadata": {"name": name}}))?;
            let (api, hub) = (world.api(Place::Hub, ObjectKind::Namespace, ""), world.fleet.hub.clone());
            let (manager, member) = (world.manager.clone(), cluster_id(self.member));
            // The hub agent removes the finalizers in the namespace, perhaps only once another fault ends.
            world.later.push(Box::new(move || {
                let (api, hub, namespace, name) = (api.clone(), hub.clone(), namespace.clone(), name.clone());
                let (manager, member) = (manager.clone(), member.clone());
                Box::pin(async move {
                    if !exists_again(&api, &namespace).await? {
                        return Ok(false);
                    }
                    let accounts: Api<ServiceAccount> = Api::namespaced(hub.admin(), &name);
                    if accounts.get_opt(MEMBER_ACCOUNT).await?.is_none() {
                        hub.make_service_account(&name, MEMBER_ACCOUNT).await.context("the account of a member")?;
                    }
                    if let Some(manager) = manager {
                        manager.forget(&member).await?;
                        manager.admit(&member, HEARTBEAT_SECONDS).await?;
                    }
                    Ok(true)
                })
            }));
            world.start_missing(Place::Member(self.member))
        })
    }
}
