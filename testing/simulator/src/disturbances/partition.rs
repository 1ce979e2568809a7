//! A network that drops everything in one direction, or in both, between one agent and one server.

use super::{Broken, Disturbance, Kind, Request, a_place};
use fastrand::Rng;
use memkube::faults::{Answer, Fault};
use sim::fleet::Place;
use sim::partition::NEVER;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("partition", 4, 3..=120, make);

#[derive(Clone, Copy, Debug)]
enum Direction {
    Requests,
    Answers,
}

#[derive(Debug)]
struct Partition {
    agent: Place,
    server: Place,
    direction: Direction,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let agent = a_place(rng);
    let server = if rng.bool() { agent } else { Place::Hub };
    let direction = if rng.bool() { Direction::Requests } else { Direction::Answers };
    Arc::new(Partition { agent, server, direction })
}

impl Partition {
    fn has(&self, request: Request<'_>) -> bool {
        self.agent == request.agent && self.server == request.server
    }
}

impl Disturbance for Partition {
    fn cuts_off(&self) -> bool {
        true
    }

    fn request(&self, request: Request<'_>) -> Option<Fault> {
        let fault = match self.direction {
            Direction::Requests => Fault { delay_before: NEVER, ..Fault::default() },
            Direction::Answers => Fault { answer: Answer::Never, ..Fault::default() },
        };
        self.has(request).then_some(fault)
    }

    fn breaks(&self, watch: Request<'_>) -> Option<Broken> {
        self.has(watch).then_some(Broken::Silent)
    }
}
