//! A cluster that dies, and comes back: its agents are gone for so long that the hub agent judges it silent. Some announce a stop.

use super::{Disturbance, Kind};
use crate::world::World;
use fastrand::Rng;
use futures::future::LocalBoxFuture;
use histories::users::MEMBERS;
use sim::fleet::Place;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("death", 0, 30..=900, make);

#[derive(Debug)]
struct Death {
    place: Place,
    is_stopped: bool,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    Arc::new(Death { place: Place::Member(rng.usize(..MEMBERS)), is_stopped: rng.usize(..4) == 0 })
}

impl Disturbance for Death {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            for replica in 0..world.replicas {
                if self.is_stopped && world.fleet.replica(self.place, replica).is_some() {
                    // Other faults may prevent a clean stop.
                    let _ = world.fleet.stop_replica(self.place, replica).await;
                }
                world.fleet.kill_replica(self.place, replica).await;
            }
            Ok(())
        })
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move { world.start_missing(self.place) })
    }
}
