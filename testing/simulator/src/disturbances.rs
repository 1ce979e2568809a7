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
mod late;
mod leave;
mod lost;
mod meddling;
mod namespaces;
mod partition;
mod pause;
mod removal;
mod rights;
mod stale;
mod streams;
mod undecodable;
mod watches;

pub use hostile::FORGED;

use crate::coverage::{Counts, Table};
use crate::oracles::Watchers;
use crate::world::{KINDS, World, agent_of};
use fastrand::Rng;
use fleetnet_api::resources::resource;
use fleetnet_runtime::clock::Clock;
use futures::future::{BoxFuture, LocalBoxFuture};
use memkube::Call;
use memkube::faults::{Answer, Fate, Fault, Faults, WatchFaults, WatchedEvent};
use parking_lot::Mutex;
use sim::board::Board;
use sim::fleet::Place;
use std::fmt::Debug;
use std::ops::RangeInclusive;
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
    stale::KIND,
    streams::KIND,
    undecodable::KIND,
    watches::KIND,
];

/// Kind of disturbance.
#[derive(Clone, Debug)]
pub struct Kind {
    pub name: &'static str,
    /// Frequency of this kind, relative to the others. 0 for the kinds of `script::lives` and `script::leaves`.
    pub weight: u32,
    /// Shortest and longest duration, in seconds.
    pub seconds: RangeInclusive<u64>,
    /// True if agents may recover from it only after minutes.
    pub is_slow: bool,
    /// True if it needs agents that use slice streams.
    pub is_of_streams: bool,
    /// True if it changes objects, so that agents may rightly withdraw endpoints.
    pub is_change: bool,
    /// Makes a disturbance of this kind from random numbers.
    pub make: fn(&mut Rng) -> Arc<dyn Disturbance>,
}

impl Kind {
    const fn new(
        name: &'static str,
        weight: u32,
        seconds: RangeInclusive<u64>,
        make: fn(&mut Rng) -> Arc<dyn Disturbance>,
    ) -> Self {
        Self { name, weight, seconds, is_slow: false, is_of_streams: false, is_change: false, make }
    }

    const fn slow(self) -> Self {
        Self { is_slow: true, ..self }
    }

    const fn of_streams(self) -> Self {
        Self { is_of_streams: true, ..self }
    }

    const fn changing(self) -> Self {
        Self { is_change: true, ..self }
    }
}

/// Request of an agent.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Agent that sends the request.
    pub agent: Place,
    /// Server that receives the request.
    pub server: Place,
    pub call: &'a Call,
}

/// How a disturbance ends an open watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The connection ends.
    Cut,
    /// The connection stays open and delivers nothing more.
    Silent,
}

/// One disturbance. The default of each method has no effect.
pub trait Disturbance: Debug + Send + Sync {
    /// Begins the disturbance.
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        let _ = world;
        Box::pin(async { Ok(()) })
    }

    /// Ends the disturbance, and repairs what does not repair itself. Called again after all disturbances, because a
    /// backup may bring the effects of an earlier disturbance back.
    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        let _ = world;
        Box::pin(async { Ok(()) })
    }

    /// True if the end of the disturbance brings the hub back to an earlier state.
    fn restores_the_hub(&self) -> bool {
        false
    }

    /// True if an agent may reach no server while it lasts.
    fn cuts_off(&self) -> bool {
        false
    }

    /// Returns the fault of a request.
    fn request(&self, request: Request<'_>) -> Option<Fault> {
        let _ = request;
        None
    }

    /// Returns the fate of a watch event.
    fn event(&self, watch: Request<'_>, event: &WatchedEvent) -> Option<Fate> {
        let _ = (watch, event);
        None
    }

    /// Returns how this disturbance breaks open watches.
    fn breaks(&self, watch: Request<'_>) -> Option<Broken> {
        let _ = watch;
        None
    }
}

/// Random numbers of one disturbance. They do not depend on other disturbances, so removing one of these changes
/// nothing.
#[derive(Debug)]
pub(crate) struct Dice(Mutex<Rng>, u64);

impl Dice {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let own = rng.fork();
        let seed = own.get_seed();
        Self(Mutex::new(own), seed)
    }

    /// True in `percent` of 100 cases.
    pub(crate) fn hits(&self, percent: u32) -> bool {
        self.0.lock().u32(..100) < percent
    }

    /// Returns a random number below `below`.
    pub(crate) fn below(&self, below: u64) -> u64 {
        self.0.lock().u64(..below)
    }

    /// True for half of all watches. The answer for one watch does not depend on the order of the questions.
    pub(crate) fn picks(&self, watch: Request<'_>) -> bool {
        let text = format!("{:?} {:?} {}", watch.agent, watch.server, watch.call.target.resource);
        let mixed = text.bytes().fold(self.1, |mixed, byte| mixed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Rng::with_seed(mixed).bool()
    }

    pub(crate) fn fork(&self) -> Rng {
        self.0.lock().fork()
    }
}

/// Some of the agents' requests, chosen at random: those of one agent, to one server, or about one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    agent: Option<Place>,
    server: Option<Place>,
    resource: Option<&'static str>,
}

impl Scope {
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let mut one = |chance: usize| (rng.usize(..chance) == 0).then(|| a_place(rng));
        let (agent, server) = (one(2), one(4));
        let resource = (rng.usize(..3) == 0).then(|| resource(KINDS[rng.usize(..KINDS.len())]).plural);
        Self { agent, server, resource }
    }

    pub(crate) fn has(self, request: Request<'_>) -> bool {
        self.agent.is_none_or(|agent| agent == request.agent)
            && self.server.is_none_or(|server| server == request.server)
            && self.resource.is_none_or(|resource| resource == &*request.call.target.resource)
    }
}

/// Returns a random cluster.
pub(crate) fn a_place(rng: &mut Rng) -> Place {
    match rng.usize(..=histories::users::MEMBERS) {
        0 => Place::Hub,
        number => Place::Member(number - 1),
    }
}

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
