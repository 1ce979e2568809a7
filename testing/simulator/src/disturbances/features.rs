//! A peer of another version: an agent's announcement has fewer features for a while. The agent restores it with its
//! next renewal.

use super::{Disturbance, Kind};
use crate::users::{delete, merge};
use crate::world::{World, hub_namespace};
use fastrand::Rng;
use fleetnet_core::model::Kind as ObjectKind;
use futures::future::LocalBoxFuture;
use histories::users::MEMBERS;
use serde_json::json;
use sim::fleet::Place;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("features", 2, 1..=80, make).changing();

const ALL: [&str; 6] = ["IPv6", "DrainingEndpoints", "EndpointDetails", "Headless", "SessionAffinity", "SilentMembers"];

#[derive(Debug)]
enum Change {
    Member(Vec<&'static str>),
    Hub(Vec<&'static str>),
    Deleted,
}

#[derive(Debug)]
struct Features {
    member: usize,
    change: Change,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let mut some = || ALL.into_iter().filter(|_| rng.bool()).collect();
    let (first, second) = (some(), some());
    let change = match rng.usize(..3) {
        0 => Change::Member(first),
        1 => Change::Hub(second),
        _ => Change::Deleted,
    };
    Arc::new(Features { member: rng.usize(..MEMBERS), change })
}

impl Disturbance for Features {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let path = format!("{}/member-{}", hub_namespace(self.member), self.member + 1);
            let of = |features: &[&str]| json!({"version": "0.0.1", "features": features});
            match &self.change {
                Change::Member(features) => {
                    let patch = json!({"spec": of(features)});
                    merge(world, Place::Hub, ObjectKind::MemberAgent, &path, "", patch).await
                }
                Change::Hub(features) => {
                    let patch = json!({"status": of(features)});
                    merge(world, Place::Hub, ObjectKind::MemberAgent, &path, "status", patch).await
                }
                Change::Deleted => delete(world, Place::Hub, ObjectKind::MemberAgent, &path).await,
            }
        })
    }
}
