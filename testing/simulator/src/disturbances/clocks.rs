//! A cluster whose clock is wrong, for a while or until the end. Somebody sets the clock while the agents run, or the
//! agents restart with it.

use super::{Disturbance, Kind, a_place};
use crate::world::World;
use fastrand::Rng;
use futures::future::LocalBoxFuture;
use parking_lot::Mutex;
use sim::fleet::Place;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("clocks", 3, 5..=240, make);

#[derive(Debug)]
struct Clocks {
    place: Place,
    seconds_ahead: i64,
    /// True if the agents restart when the clock changes.
    restarts: bool,
    /// True if nobody sets the clock right again.
    stays: bool,
    is_wrong: Mutex<bool>,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let seconds_ahead = [-3_600, -70, -5, 5, 70, 3_600][rng.usize(..6)];
    let (restarts, stays) = (rng.bool(), rng.usize(..3) == 0);
    Arc::new(Clocks { place: a_place(rng), seconds_ahead, restarts, stays, is_wrong: Mutex::new(false) })
}

impl Clocks {
    async fn change(&self, world: &mut World, seconds: i64) -> anyhow::Result<()> {
        world.fleet.move_own_clock(self.place, seconds * 1_000_000);
        if self.restarts {
            for replica in 0..world.replicas {
                world.fleet.kill_replica(self.place, replica).await;
            }
            world.start_missing(self.place)?;
        }
        Ok(())
    }
}

impl Disturbance for Clocks {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        *self.is_wrong.lock() = !self.stays;
        Box::pin(self.change(world, self.seconds_ahead))
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let was_wrong = std::mem::take(&mut *self.is_wrong.lock());
            if was_wrong { self.change(world, -self.seconds_ahead).await } else { Ok(()) }
        })
    }
}
