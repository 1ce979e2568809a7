//! Kind of disturbance, and what all kinds need.

use crate::world::{KINDS, World};
use fastrand::Rng;
use fleetnet_api::resources::resource;
use futures::future::LocalBoxFuture;
use memkube::Call;
use memkube::faults::{Fate, Fault, WatchedEvent};
use parking_lot::Mutex;
use sim::fleet::Place;
use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Kind of disturbance.
#[derive(Clone, Debug)]
pub struct Kind {
    pub name: &'static str,
    /// Frequency of this kind, relative to the others. 0 for those that only scripts choose, such as `script::lives`.
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
    pub(super) const fn new(
        name: &'static str,
        weight: u32,
        seconds: RangeInclusive<u64>,
        make: fn(&mut Rng) -> Arc<dyn Disturbance>,
    ) -> Self {
        Self { name, weight, seconds, is_slow: false, is_of_streams: false, is_change: false, make }
    }

    pub(super) const fn slow(self) -> Self {
        Self { is_slow: true, ..self }
    }

    pub(super) const fn of_streams(self) -> Self {
        Self { is_of_streams: true, ..self }
    }

    pub(super) const fn changing(self) -> Self {
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
    pub(super) agent: Option<Place>,
    pub(super) server: Option<Place>,
    pub(super) resource: Option<&'static str>,
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
