//! An agent that restarts and cannot list one kind: its requests about this kind fail.

use super::{Disturbance, Kind, Request, a_place};
use crate::world::{KINDS, World, is_in_hub};
use fastrand::Rng;
use fleetnet_api::resources::resource;
use futures::future::LocalBoxFuture;
use memkube::Status;
use memkube::faults::Fault;
use sim::fleet::Place;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("blind", 5, 20..=90, make);

#[derive(Debug)]
struct Blind {
    place: Place,
    resource: &'static str,
    /// True if the agent stops, so that the next one leads at once. False if it is killed.
    is_stopped: bool,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let place = a_place(rng);
    let watched: Vec<_> = KINDS.into_iter().filter(|kind| place != Place::Hub || is_in_hub(*kind)).collect();
    Arc::new(Blind { place, resource: resource(watched[rng.usize(..watched.len())]).plural, is_stopped: rng.bool() })
}

impl Disturbance for Blind {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            if self.is_stopped {
                world.stop_all(self.place).await;
            } else {
                world.kill_all(self.place).await;
            }
            world.start_missing(self.place)
        })
    }

    fn request(&self, request: Request<'_>) -> Option<Fault> {
        let call = request.call;
        if request.agent != self.place || *call.target.resource != *self.resource || call.verb.writes() {
            return None;
        }
        let status = Status::plain(503, "ServiceUnavailable", "the simulator answers this");
        Some(Fault { refuse: Some(status), ..Fault::default() })
    }
}
