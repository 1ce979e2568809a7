//! An agent that crashes. A kubelet starts it again, at the end of the disturbance at the latest.

use super::{Disturbance, Kind, a_place};
use crate::world::World;
use fastrand::Rng;
use futures::future::LocalBoxFuture;
use sim::fleet::Place;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("crash", 5, 1..=60, make);

#[derive(Debug)]
struct Crash {
    place: Place,
    /// True to kill all replicas, false to kill the first only.
    is_whole: bool,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    Arc::new(Crash { place: a_place(rng), is_whole: rng.bool() })
}

impl Disturbance for Crash {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let killed = if self.is_whole { world.replicas } else { 1 };
            for replica in 0..killed {
                world.fleet.kill_replica(self.place, replica).await;
            }
            Ok(())
        })
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move { world.start_missing(self.place) })
    }
}
