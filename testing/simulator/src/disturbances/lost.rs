//! Lost answers: the server executes a request, and the connection ends or stays open without an answer.

use super::{Dice, Disturbance, Kind, Request, Scope};
use fastrand::Rng;
use memkube::faults::{Answer, Fault};
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("lost", 5, 5..=60, make);

#[derive(Debug)]
struct Lost {
    scope: Scope,
    percent: u32,
    dice: Dice,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    Arc::new(Lost { scope: Scope::random(rng), percent: [5, 30, 100][rng.usize(..3)], dice: Dice::new(rng) })
}

impl Disturbance for Lost {
    fn request(&self, request: Request<'_>) -> Option<Fault> {
        if !self.scope.has(request) || !self.dice.hits(self.percent) {
            return None;
        }
        let answer = if self.dice.hits(50) { Answer::Cut } else { Answer::Never };
        Some(Fault { answer, ..Fault::default() })
    }
}
