//! A compaction of etcd. Watches and lists that continue from an earlier version get 410.

use super::{Broken, Dice, Disturbance, Kind, Request, a_place};
use crate::world::World;
use fastrand::Rng;
use futures::future::LocalBoxFuture;
use sim::fleet::Place;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("compaction", 3, 1..=10, make);

#[derive(Debug)]
struct Compaction {
    place: Place,
    dice: Dice,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    Arc::new(Compaction { place: a_place(rng), dice: Dice::new(rng) })
}

impl Disturbance for Compaction {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async {
            world.server(self.place).memkube().compact();
            Ok(())
        })
    }

    fn breaks(&self, watch: Request<'_>) -> Option<Broken> {
        // A watch that ends now cannot continue from where it was.
        (watch.server == self.place && self.dice.picks(watch)).then_some(Broken::Cut)
    }
}
