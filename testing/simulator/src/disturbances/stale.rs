//! Lists and watches of an older state, as from an API server whose watch cache lags behind. A get of one object shows
//! the newest state, as in Kubernetes.

use super::{Dice, Disturbance, Kind, Request, Scope};
use fastrand::Rng;
use memkube::Verb;
use memkube::faults::{Fault, State};
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("stale", 4, 10..=120, make);

/// Most revisions that a read is behind.
const BEHIND: u64 = 60;

#[derive(Debug)]
struct Stale {
    scope: Scope,
    dice: Dice,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    Arc::new(Stale { scope: Scope::random(rng), dice: Dice::new(rng) })
}

impl Disturbance for Stale {
    fn request(&self, request: Request<'_>) -> Option<Fault> {
        let is_read = matches!(request.call.verb, Verb::List | Verb::Watch) && self.scope.has(request);
        is_read.then(|| Fault { state: State::Behind(self.dice.below(BEHIND)), ..Fault::default() })
    }
}
