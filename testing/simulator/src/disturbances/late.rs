//! Late requests, answers and watch events: all of these, or some.

use super::{Dice, Disturbance, Kind, Request, Scope};
use fastrand::Rng;
use memkube::faults::{Fate, Fault, WatchedEvent};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const KIND: Kind = Kind::new("late", 6, 10..=120, make);

#[derive(Debug)]
struct Late {
    scope: Scope,
    longest_milliseconds: u64,
    /// What is late; `None` for all of it.
    only: Option<Which>,
    dice: Dice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Requests,
    Answers,
    Events,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let only = [Which::Requests, Which::Answers, Which::Answers, Which::Events].get(rng.usize(..7)).copied();
    let longest_milliseconds = match (only, rng.usize(..3)) {
        // An answer that comes long after the events about the same object shows an old state.
        (Some(Which::Answers), _) | (_, 2) => 9_000,
        (_, 1) => 1_000,
        _ => 50,
    };
    Arc::new(Late { scope: Scope::random(rng), longest_milliseconds, only, dice: Dice::new(rng) })
}

impl Late {
    fn delay(&self, of: Which) -> Duration {
        // Half of all are in time.
        if self.only.is_some_and(|only| only != of) || self.dice.hits(50) {
            Duration::ZERO
        } else {
            Duration::from_millis(self.dice.below(self.longest_milliseconds))
        }
    }
}

impl Disturbance for Late {
    fn request(&self, request: Request<'_>) -> Option<Fault> {
        if !self.scope.has(request) || self.only == Some(Which::Events) {
            return None;
        }
        let (delay_before, delay_after) = (self.delay(Which::Requests), self.delay(Which::Answers));
        Some(Fault { delay_before, delay_after, ..Fault::default() })
    }

    fn event(&self, watch: Request<'_>, _: &WatchedEvent) -> Option<Fate> {
        let are_late = self.only.is_none_or(|only| only == Which::Events);
        (are_late && self.scope.has(watch)).then(|| Fate::Hold(self.delay(Which::Events)))
    }
}
