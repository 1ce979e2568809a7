//! Another controller whose finalizer holds the objects of one kind in one cluster, so that a deletion of them does not
//! end. Perhaps somebody also deletes those that agents created.

use super::{Dice, Disturbance, Kind, a_place};
use crate::users::delete;
use crate::world::World;
use fastrand::Rng;
use fleetnet_core::model::Kind as ObjectKind;
use futures::future::LocalBoxFuture;
use kube::api::{Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::json;
use sim::fleet::Place;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("held", 5, 10..=150, make).changing();

const FINALIZER: &str = "example.com/held";

#[derive(Debug)]
struct HeldObjects {
    place: Place,
    deletes: bool,
    dice: Dice,
    /// Kind of the objects, which exist when the disturbance begins.
    kind: Mutex<Option<ObjectKind>>,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    Arc::new(HeldObjects { place: a_place(rng), deletes: rng.bool(), dice: Dice::new(rng), kind: Mutex::default() })
}

/// Removes the finalizer from all objects of the hub. After a restore, objects have it whose controller is gone.
pub(super) async fn release_hub(world: &World) -> anyhow::Result<()> {
    let kinds: BTreeSet<ObjectKind> = world.objects(Place::Hub).iter().map(|object| object.kind()).collect();
    for kind in kinds {
        set(world, Place::Hub, kind, false).await?;
    }
    Ok(())
}

/// Adds the finalizer to all objects, or removes it.
async fn set(world: &World, place: Place, kind: ObjectKind, is_held: bool) -> anyhow::Result<()> {
    for object in world.api(place, kind, "").list(&Default::default()).await? {
        let (Some(namespace), Some(name)) = (object.metadata.namespace, object.metadata.name) else { continue };
        let mut finalizers = object.metadata.finalizers.unwrap_or_default();
        let had = finalizers.len();
        finalizers.retain(|finalizer| finalizer != FINALIZER);
        if is_held && object.metadata.deletion_timestamp.is_none() {
            finalizers.push(FINALIZER.to_owned());
        }
        if had == finalizers.len() {
            continue;
        }
        let patch = json!({"metadata": {"finalizers": finalizers}});
        let api = world.api(place, kind, &namespace);
        match api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
            // The object is gone, or is being deleted since the list.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 422) => {}
            answer => drop(answer?),
        }
    }
    Ok(())
}

impl Disturbance for HeldObjects {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let mut kinds: Vec<ObjectKind> = world.objects(self.place).iter().map(|object| object.kind()).collect();
            kinds.dedup();
            let Some(kind) = self.dice.fork().choice(kinds) else { return Ok(()) };
            *self.kind.lock() = Some(kind);
            set(world, self.place, kind, true).await?;
            let ours = world.objects_of_agents(self.place);
            for object in ours.iter().filter(|object| self.deletes && object.kind() == kind) {
                let name = &object.meta().name;
                delete(world, self.place, kind, &format!("{}/{}", name.namespace, name.name)).await?;
            }
            Ok(())
        })
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let kind = *self.kind.lock();
            match kind {
                Some(kind) => set(world, self.place, kind, false).await,
                None => Ok(()),
            }
        })
    }
}
