//! Watches that repeat events, end, expire or fall silent. An event that a broken watch did not deliver is lost.

use super::{Broken, Dice, Disturbance, Kind, Request, Scope};
use fastrand::Rng;
use memkube::Status;
use memkube::faults::{Fate, WatchedEvent};
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("watches", 6, 1..=60, make);

#[derive(Debug)]
struct Watches {
    scope: Scope,
    /// End of open watches when the disturbance begins.
    first: Option<Broken>,
    percent: u32,
    dice: Dice,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let first = [None, Some(Broken::Cut), Some(Broken::Silent)][rng.usize(..3)];
    let percent = [2, 10, 50][rng.usize(..3)];
    Arc::new(Watches { scope: Scope::random(rng), first, percent, dice: Dice::new(rng) })
}

impl Disturbance for Watches {
    fn event(&self, watch: Request<'_>, _: &WatchedEvent) -> Option<Fate> {
        if !self.scope.has(watch) || !self.dice.hits(self.percent) {
            return None;
        }
        Some(match self.dice.below(4) {
            0 => Fate::Repeat(1),
            1 => Fate::Cut,
            2 => Fate::Silence,
            _ => Fate::Fail(Box::new(Status::plain(410, "Expired", "the simulator answers this"))),
        })
    }

    fn breaks(&self, watch: Request<'_>) -> Option<Broken> {
        self.first.filter(|_| self.scope.has(watch) && self.dice.picks(watch))
    }
}
