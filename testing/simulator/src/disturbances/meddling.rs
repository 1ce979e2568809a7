//! Somebody deletes objects of the agents in one cluster: one object, or all objects of a kind. Agents write them
//! again.

use super::{Dice, Disturbance, Kind, a_place};
use crate::users::delete;
use crate::world::World;
use fastrand::Rng;
use futures::future::LocalBoxFuture;
use sim::fleet::Place;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("meddling", 4, 1..=5, make).changing();

#[derive(Debug)]
struct Meddling {
    place: Place,
    /// True to delete all objects of the kind.
    is_whole: bool,
    dice: Dice,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    Arc::new(Meddling { place: a_place(rng), is_whole: rng.bool(), dice: Dice::new(rng) })
}

impl Disturbance for Meddling {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let all = world.objects_of_agents(self.place);
            let Some(first) = self.dice.fork().choice(&all).cloned() else { return Ok(()) };
            let same = |object: &&fleetnet_core::model::Object| {
                object.kind() == first.kind() && (self.is_whole || object.meta().name == first.meta().name)
            };
            for object in all.iter().filter(same) {
                let name = &object.meta().name;
                delete(world, self.place, object.kind(), &format!("{}/{}", name.namespace, name.name)).await?;
            }
            Ok(())
        })
    }
}
