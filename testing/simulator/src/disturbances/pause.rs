//! An agent whose process stops for a while with requests on their way, and then goes on or is killed. Its requests
//! reach the servers only after the pause, also those of a killed agent: late writes of a leader that is no longer the
//! leader.

use super::{Disturbance, Kind, a_place};
use crate::world::World;
use fastrand::Rng;
use futures::future::LocalBoxFuture;
use parking_lot::Mutex;
use sim::connection::Connection;
use sim::fleet::Place;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("pause", 5, 3..=60, make);

#[derive(Debug)]
struct Pause {
    place: Place,
    /// The replica that stops. With one replica, that one.
    replica: usize,
    is_killed: bool,
    /// True if the process stops with its next write on the way.
    is_at_write: bool,
    held: Mutex<Vec<(usize, Connection)>>,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let (place, is_killed, is_at_write) = (a_place(rng), rng.bool(), rng.bool());
    let replica = rng.usize(..2); // no limit: one of two replicas
    Arc::new(Pause { place, replica, is_killed, is_at_write, held: Mutex::default() })
}

impl Disturbance for Pause {
    fn cuts_off(&self) -> bool {
        true
    }

    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let chosen = self.replica.min(world.replicas - 1);
            let is_chosen = |place, replica| place == self.place && replica == chosen;
            let of_place = world.fleet.replicas().filter(|(place, replica, ..)| is_chosen(*place, *replica));
            for (_, replica, _, connection) in of_place {
                if self.is_at_write {
                    connection.hold_at_next_write();
                } else {
                    connection.hold();
                }
                self.held.lock().push((replica, connection.clone()));
            }
            Ok(())
        })
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let held = std::mem::take(&mut *self.held.lock());
            for (replica, connection) in held {
                if self.is_killed {
                    world.fleet.kill_replica(self.place, replica).await;
                }
                connection.release();
            }
            world.start_missing(self.place)
        })
    }
}
