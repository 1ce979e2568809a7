//! Disturbances of a run. Each file has one disturbance: what it does to requests, watches, servers or agents while it
//! lasts.
//!
//! To add a disturbance, write a file with a `KIND` and add the `KIND` to [`ALL`].

mod answers;
mod backup;
mod blind;
mod clocks;
mod compaction;
mod crash;
mod death;
mod editing;
mod features;
mod held;
mod hostile;
mod kind;
mod late;
mod leave;
mod lost;
mod meddling;
mod namespaces;
mod partition;
mod pause;
mod removal;
mod rights;
mod routing;
mod stale;
mod streams;
mod undecodable;
mod watches;

pub use hostile::FORGED;
pub use kind::{Broken, Disturbance, Kind, Request};
pub(crate) use kind::{Dice, Scope, a_place};

use crate::coverage::{Counts, Table};
use crate::oracles::Watchers;
use crate::world::{World, agent_of};
use fleetnet_runtime::clock::Clock;
use futures::future::BoxFuture;
use memkube::Call;
use memkube::faults::{Answer, Fate, Fault, Faults, WatchFaults, WatchedEvent};
use sim::board::Board;
use sim::fleet::Place;
use std::sync::Arc;

/// All kinds of disturbances.
pub const ALL: &[Kind] = &[
    answers::KIND,
    answers::SLOW,
    backup::KIND,
    blind::KIND,
    clocks::KIND,
    compaction::KIND,
    crash::KIND,
    death::KIND,
    editing::KIND,
    features::KIND,
    held::KIND,
    hostile::KIND,
    late::KIND,
    leave::KIND,
    lost::KIND,
    meddling::KIND,
    namespaces::KIND,
    partition::KIND,
    pause::KIND,
    removal::KIND,
    rights::KIND,
    routing::KIND,
    stale::KIND,
    streams::KIND,
    undecodable::KIND,
    watches::KIND,
];

/// Disturbance that is going on, with the name of its kind.
pub type Ongoing = (&'static str, Arc<dyn Disturbance>);

/// Disturbances that are going on. Clones share them.
#[derive(Clone)]
pub struct Active {
    ongoing: Arc<Board<Vec<Ongoing>>>,
    counts: Counts,
}

impl Active {
    #[must_use]
    pub fn new(counts: Counts) -> Self {
        Self { ongoing: Arc::default(), counts }
    }

    /// Lets the disturbances change the requests to all servers, and the watchers count these requests.
    pub fn attach(&self, world: &World, watchers: &Watchers) {
        for place in world.fleet.places() {
            let (clock, watchers) = (world.fleet.clock().clone(), watchers.clone());
            let on_server = OnServer { place, active: self.clone(), clock, watchers };
            world.server(place).memkube().set_faults(Some(Arc::new(on_server)));
        }
    }

    pub fn add(&self, name: &'static str, disturbance: &Arc<dyn Disturbance>) {
        self.ongoing.change(|all| all.push((name, Arc::clone(disturbance))));
    }

    pub fn remove(&self, disturbance: &Arc<dyn Disturbance>) {
        self.ongoing.change(|all| all.retain(|(_, other)| !Arc::ptr_eq(other, disturbance)));
    }

    /// Returns the names of the kinds that are going on.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.ongoing.read(|ongoing| ongoing.iter().map(|(name, _)| *name).collect())
    }

    /// True if an agent may reach no server now.
    #[must_use]
    pub fn cuts_off(&self) -> bool {
        self.ongoing.read(|ongoing| ongoing.iter().any(|(_, one)| one.cuts_off()))
    }

    fn first<T>(&self, effect: impl Fn(&dyn Disturbance) -> Option<T>) -> Option<T> {
        let found = |ongoing: &Vec<Ongoing>| ongoing.iter().find_map(|(name, one)| Some((*name, effect(&**one)?)));
        let (name, found) = self.ongoing.read(found)?;
        self.counts.add(Table::Faults, name);
        Some(found)
    }
}

/// The disturbances as one server applies them.
struct OnServer {
    place: Place,
    active: Active,
    clock: Clock,
    watchers: Watchers,
}

impl Faults for OnServer {
    fn request(&self, call: &Call) -> Fault {
        let Some(agent) = agent_of(self.place, &call.user) else { return Fault::default() };
        if !self.watchers.requested(self.clock.now(), agent, call) {
            return Fault { answer: Answer::Never, ..Fault::default() };
        }
        let request = Request { agent, server: self.place, call };
        self.active.first(|one| one.request(request)).unwrap_or_default()
    }

    fn watch(&self, call: &Call) -> Option<Box<dyn WatchFaults>> {
        let agent = agent_of(self.place, &call.user)?;
        Some(Box::new(OnWatch { agent, server: self.place, call: call.clone(), active: self.active.clone() }))
    }
}

/// The disturbances as one open watch has them.
struct OnWatch {
    agent: Place,
    server: Place,
    call: Call,
    active: Active,
}

impl OnWatch {
    fn broken(&self, how: Broken) -> BoxFuture<'static, ()> {
        let (agent, server, call, active) = (self.agent, self.server, self.call.clone(), self.active.clone());
        Box::pin(async move {
            let request = Request { agent, server, call: &call };
            let is_broken = |one: &dyn Disturbance| one.breaks(request).filter(|broken| *broken == how);
            let ends = |ongoing: &Vec<Ongoing>| {
                ongoing.iter().find(|(_, one)| is_broken(&**one).is_some()).map(|(name, _)| *name)
            };
            active.ongoing.wait_for(|ongoing| ends(ongoing).is_some()).await;
            active.first(is_broken);
        })
    }
}

impl WatchFaults for OnWatch {
    fn event(&mut self, event: &WatchedEvent) -> Fate {
        let request = Request { agent: self.agent, server: self.server, call: &self.call };
        self.active.first(|one| one.event(request, event)).unwrap_or(Fate::Deliver)
    }

    fn cut(&self) -> BoxFuture<'static, ()> {
        self.broken(Broken::Cut)
    }

    fn silence(&self) -> BoxFuture<'static, ()> {
        self.broken(Broken::Silent)
    }
}
