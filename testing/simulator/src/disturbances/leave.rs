//! The fleet manager asks a member to leave the fleet, and later to join it again. Only in fleets with a manager.

use super::{Disturbance, Kind};
use crate::world::{World, cluster_id};
use fastrand::Rng;
use futures::future::LocalBoxFuture;
use histories::users::MEMBERS;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("leave", 0, 1..=300, make).changing();

#[derive(Debug)]
struct Leave {
    member: usize,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    Arc::new(Leave { member: rng.usize(..MEMBERS) })
}

impl Leave {
    async fn ask(&self, world: &World, state: &str) -> anyhow::Result<()> {
        let Some(manager) = &world.manager else { return Ok(()) };
        Ok(manager.ask(&cluster_id(self.member), state).await?)
    }
}

impl Disturbance for Leave {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(self.ask(world, "Leave"))
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(self.ask(world, "Join"))
    }
}
