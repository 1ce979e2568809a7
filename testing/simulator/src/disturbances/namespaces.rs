//! The namespace of users is deleted in one cluster, and created again in the end.

use super::{Disturbance, Kind, a_place};
use crate::users::delete;
use crate::world::{WORK, World};
use fastrand::Rng;
use fleetnet_core::model::Kind as ObjectKind;
use futures::future::LocalBoxFuture;
use kube::api::{DynamicObject, PostParams};
use kube::{Api, ResourceExt as _};
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
            // Agents remove their finalizers from the objects in the namespace, perhaps only once another fault ends.
            // Until then the namespace exists, and nobody can create it again.
            world.later.push(Box::new(move || {
                let (api, namespace) = (api.clone(), namespace.clone());
                Box::pin(async move { exists_again(&api, &namespace).await })
            }));
            Ok(())
        })
    }
}

/// Creates a namespace again. Returns false while the old one is terminating.
pub(super) async fn exists_again(api: &Api<DynamicObject>, namespace: &DynamicObject) -> anyhow::Result<bool> {
    match api.create(&PostParams::default(), namespace).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let found = api.get_opt(&namespace.name_any()).await?;
            Ok(found.is_some_and(|found| found.metadata.deletion_timestamp.is_none()))
        }
        Err(error) => Err(error.into()),
    }
}
