//! A cluster that dies, and comes back: its agents are gone for so long that the hub agent judges it silent. Some
//! announce a stop.

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
            if self.is_stopped {
                world.stop_all(self.place).await;
            } else {
                world.kill_all(self.place).await;
            }
            Ok(())
        })
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move { world.start_missing(self.place) })
    }
}
