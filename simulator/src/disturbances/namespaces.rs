//! The namespace of users is deleted in one cluster, and created again in the end.

use super::{Disturbance, Kind, a_place};
use crate::users::delete;
use crate::world::{WORK, World};
use fastrand::Rng;
use fleetnet_core::model::Kind as ObjectKind;
use futures::future::LocalBoxFuture;
use kube::api::PostParams;
use serde_json::json;
use sim::fleet::Place;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("namespaces", 1, 1..=60, make).slow().changing();

#[derive(Debug)]
struct Namespaces {
    place: Place,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    Arc::new(Namespaces { place: a_place(rng) })
}

impl Disturbance for Namespaces {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move { delete(world, self.place, ObjectKind::Namespace, &format!("/{WORK}")).await })
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let namespace = world.object(ObjectKind::Namespace, json!({"metadata": {"name": WORK}}))?;
            let api = world.api(self.place, ObjectKind::Namespace, "");
            // Agents remove their finalizers from the objects in the namespace, perhaps only once another fault ends. Until then
            // the namespace exists, and nobody can create it again.
            world.later.push(Box::new(move || {
                let (api, namespace) = (api.clone(), namespace.clone());
                Box::pin(async move {
                    match api.create(&PostParams::default(), &namespace).await {
                        Ok(_) => Ok(true),
                        Err(kube::Error::Api(status)) if status.code == 409 => {
                            let found = api.get_opt(WORK).await?;
                            Ok(found.is_some_and(|found| found.metadata.deletion_timestamp.is_none()))
                        }
                        Err(error) => Err(error.into()),
                    }
                })
            }));
            Ok(())
        })
    }
}
