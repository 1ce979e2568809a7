//! Late requests, answers and watch events.

use super::{Dice, Disturbance, Kind, Request, Scope};
use fastrand::Rng;
use memkube::faults::{Fate, Fault, WatchedEvent};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const KIND: Kind =
    Kind { name: "late", weight: 6, seconds: 10..=120, make, is_slow: false, is_change: false };

#[derive(Debug)]
struct Late {
    scope: Scope,
    longest_milliseconds: u64,
    dice: Dice,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let longest_milliseconds = [50, 1_000, 9_000][rng.usize(..3)];
    Arc::new(Late { scope: Scope::random(rng), longest_milliseconds, dice: Dice::new(rng) })
}

impl Late {
    fn delay(&self) -> Duration {
        // Half of all are in time.
        if self.dice.hits(50) {
            Duration::ZERO
        } else {
            Duration::from_millis(self.dice.below(self.longest_milliseconds))
        }
    }
}

impl Disturbance for Late {
    fn request(&self, request: Request<'_>) -> Option<Fault> {
        let late = || Fault { delay_before: self.delay(), delay_after: self.delay(), ..Fault::default() };
        self.scope.has(request).then(late)
    }

    fn event(&self, watch: Request<'_>, _: &WatchedEvent) -> Option<Fate> {
        self.scope.has(watch).then(|| Fate::Hold(self.delay()))
    }
}
