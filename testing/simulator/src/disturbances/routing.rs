//! A member agent that starts again with routing slices on, or without them.

use super::{Disturbance, Kind};
use crate::world::World;
use fastrand::Rng;
use futures::future::LocalBoxFuture;
use histories::users::MEMBERS;
use sim::fleet::Place;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("routing", 0, 1..=5, make);

#[derive(Debug)]
struct Routing {
    member: usize,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    Arc::new(Routing { member: rng.usize(..MEMBERS) })
}

impl Disturbance for Routing {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            world.kill_all(Place::Member(self.member)).await;
            world.fleet.toggle_routing_slices(self.member);
            Ok(())
        })
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move { world.start_missing(Place::Member(self.member)) })
    }
}
