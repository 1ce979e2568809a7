//! The network of slice streams breaks, is stuck, is slow, or is down, for one member or for all.

use super::{Disturbance, Kind};
use crate::world::World;
use fastrand::Rng;
use futures::future::LocalBoxFuture;
use sim::stream::Condition;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const KIND: Kind = Kind::new("streams", 4, 1..=120, make).of_streams();

#[derive(Clone, Copy, Debug)]
enum Effect {
    Cut,
    CutAndDown,
    Stuck,
    Slow(Duration),
}

#[derive(Debug)]
struct Streams {
    /// Member, or all members.
    member: Option<usize>,
    effect: Effect,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let effect = match rng.u8(..4) {
        0 => Effect::Cut,
        1 => Effect::CutAndDown,
        2 => Effect::Stuck,
        _ => Effect::Slow(Duration::from_millis(rng.u64(1..20_000))),
    };
    Arc::new(Streams { member: rng.bool().then(|| rng.usize(..3)), effect })
}

impl Streams {
    fn set(&self, world: &World, condition: Condition, is_cut: bool) {
        for (index, member) in world.fleet.members.iter().enumerate() {
            if self.member.is_none_or(|of| of == index) {
                world.fleet.streams.set(&member.name, condition);
                if is_cut {
                    world.fleet.streams.cut(&member.name);
                }
            }
        }
    }
}

impl Disturbance for Streams {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        let fine = Condition::default();
        match self.effect {
            Effect::Cut => self.set(world, fine, true),
            Effect::CutAndDown => self.set(world, Condition { is_down: true, ..fine }, true),
            Effect::Stuck => self.set(world, Condition { is_stuck: true, ..fine }, false),
            Effect::Slow(delay) => self.set(world, Condition { delay, ..fine }, false),
        }
        Box::pin(async { Ok(()) })
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        self.set(world, Condition::default(), false);
        Box::pin(async { Ok(()) })
    }
}
