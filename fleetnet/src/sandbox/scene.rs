//! What is played on a fleet: Services, exports and imports, changes of endpoints, and what should come of them.

mod user;

use super::event::{Change, Event, Export};
use super::eyes::Eyes;
use super::fleet::Fleet;
use super::hub;
use super::measure::{Ledger, Samples, milliseconds};
use super::observe::{Expected, World, address, full_name};
use super::view::Stage;
use crate::args::Options;
use crate::limits::{ARRIVAL, DIFFERENCES_TOLD, PATIENCE, SET_UP, STEP, WATCH_AGAIN};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep};
use user::User;

/// The Service that every member exports and imports.
pub(crate) const SERVICE: &str = "app";
/// Its slices in each member.
const SLICES: u16 = 2;
/// The endpoints of a slice.
const ENDPOINTS: u16 = 3;
/// The last of these is another with each change; the first of them all has this number.
const FIRST_CHANGING: u16 = 100;
/// Changes in each second, where nobody asks for others: so that one can follow them.
const UNHURRIED: f64 = 2.0;
/// The same with `--once`, where nobody watches.
const HURRIED: f64 = 20.0;
/// A change that has arrived is counted once nothing was written for so long.
const QUIET: Duration = Duration::from_millis(10);
/// A fleet has settled once nothing was written for so long.
const SETTLED: Duration = Duration::from_millis(100);

/// An export as it should be.
pub(crate) const WELL: Export = Export { valid: Some(true), conflict: Some(false) };

/// A fleet, what was done in it, and what should be.
pub(crate) struct Scene<'a> {
    /// The clusters and agents.
    pub(crate) fleet: &'a Fleet,
    /// What they show.
    pub(crate) eyes: &'a Eyes,
    stage: &'a Stage,
    /// What they should show.
    pub(crate) expected: Expected,
    interval: Duration,
    pause: Duration,
    patience: Duration,
    /// Changes that were begun.
    changes: u32,
    /// Those that arrived, what they cost, and those that did not.
    counted: u32,
    cost: Ledger,
    lost: u32,
    pairs: BTreeMap<(usize, usize), Samples>,
}

impl<'a> Scene<'a> {
    /// A fleet in which nothing was done yet.
    pub(crate) fn new(options: &Options, fleet: &'a Fleet, eyes: &'a Eyes, stage: &'a Stage) -> Self {
        let usual = if options.once { HURRIED } else { UNHURRIED };
        let interval = Duration::from_secs_f64(1.0 / options.changes_per_second.unwrap_or(usual));
        let pause = if options.once { Duration::ZERO } else { STEP };
        let (expected, cost, pairs) = (Expected::default(), Ledger::default(), BTreeMap::new());
        let (changes, counted, lost) = (0, 0, 0);
        Self { fleet, eyes, stage, expected, interval, pause, patience: ARRIVAL, changes, counted, cost, lost, pairs }
    }

    /// Makes [`SERVICE`] in every member, exports and imports it everywhere. What is still wrong after a while is told.
    ///
    /// # Errors
    /// Where a server refuses; so of all that follows.
    pub(crate) async fn set(&mut self) -> anyhow::Result<Vec<String>> {
        for member in 0..self.members() {
            self.create_service(member, SERVICE, 80).await?;
            for slice in 0..SLICES {
                let addresses =
                    (0..ENDPOINTS).map(|endpoint| address(member, slice * ENDPOINTS + endpoint + 1)).collect();
                self.create_slice(member, SERVICE, &slice_name(slice), addresses).await?;
            }
            self.export(member, SERVICE).await?;
        }
        for member in 0..self.members() {
            self.import(member, SERVICE).await?;
        }
        let wrong = self.all_as_expected(SET_UP).await;
        // What the agents still have to say of the beginning is not to be counted with the first change.
        self.quiet(SETTLED).await?;
        Ok(wrong)
    }

    /// How many members there are.
    pub(crate) fn members(&self) -> usize {
        self.fleet.members.len()
    }

    /// The name of a member.
    pub(crate) fn name(&self, member: usize) -> &'a str {
        &self.fleet.members[member].name
    }

    /// Tells a step of a scenario, and leaves people the time to look.
    pub(crate) async fn step(&self, scenario: &'static str, text: String) {
        self.eyes.announce(self.stage).await;
        self.stage.tell(Event::Step { scenario, text }).await;
        sleep(self.pause).await;
    }

    /// Waits until all is as it should be; what is still wrong after `limit` is told.
    pub(crate) async fn all_as_expected(&self, limit: Duration) -> Vec<String> {
        self.eyes.see(limit, |world| world.differences(&self.expected).next().is_none()).await;
        self.differences()
    }

    /// What is wrong in the members now.
    pub(crate) fn differences(&self) -> Vec<String> {
        shortened(self.eyes.look(|world| world.differences(&self.expected).collect()))
    }

    /// What is wrong in the hub, which may be a moment behind the members: what still is after `limit`.
    ///
    /// # Errors
    /// Where it does not answer.
    pub(crate) async fn hub_differences(&self, limit: Duration) -> anyhow::Result<Vec<String>> {
        let (client, names) = (self.fleet.hub.admin(), self.fleet.member_names());
        let until = Instant::now() + limit;
        loop {
            let wrong = hub::differences(&client, &self.expected, &names).await?;
            if wrong.is_empty() || Instant::now() >= until {
                return Ok(shortened(wrong));
            }
            sleep(WATCH_AGAIN).await;
        }
    }

    /// Makes a Service with one port.
    pub(crate) async fn create_service(&mut self, member: usize, service: &str, port: u16) -> anyhow::Result<()> {
        self.user(member).create_service(service, port).await?;
        self.expected.ports.insert((member, service.to_owned()), port);
        Ok(())
    }

    /// Changes that port.
    pub(crate) async fn set_port(&mut self, member: usize, service: &str, port: u16) -> anyhow::Result<()> {
        self.user(member).set_port(service, port).await?;
        self.expected.ports.insert((member, service.to_owned()), port);
        Ok(())
    }

    /// Makes a slice of a Service.
    pub(crate) async fn create_slice(
        &mut self,
        member: usize,
        service: &str,
        slice: &str,
        addresses: Vec<String>,
    ) -> anyhow::Result<()> {
        self.user(member).create_slice(service, slice, &addresses).await?;
        self.expected.endpoints.insert((member, service.to_owned(), slice.to_owned()), addresses);
        Ok(())
    }

    /// Replaces the endpoints of a slice.
    pub(crate) async fn set_endpoints(
        &mut self,
        member: usize,
        service: &str,
        slice: &str,
        addresses: Vec<String>,
    ) -> anyhow::Result<()> {
        self.user(member).set_endpoints(slice, &addresses).await?;
        self.expected.endpoints.insert((member, service.to_owned(), slice.to_owned()), addresses);
        Ok(())
    }

    /// Exports a Service, in the hope of no conflict.
    pub(crate) async fn export(&mut self, member: usize, service: &str) -> anyhow::Result<()> {
        self.user(member).export(service).await?;
        self.expected.exports.insert((member, service.to_owned()), WELL);
        Ok(())
    }

    /// Imports a Service.
    pub(crate) async fn import(&mut self, member: usize, service: &str) -> anyhow::Result<()> {
        self.user(member).import(service).await?;
        self.expected.imports.insert((member, service.to_owned()));
        Ok(())
    }

    /// Makes that many changes, one after the other. The first that does not arrive is told, and is the last.
    pub(crate) async fn make_changes(&mut self, changes: u32) -> anyhow::Result<Vec<String>> {
        let mut ticks = self.ticks();
        for _ in 0..changes {
            ticks.tick().await;
            if let Some(wrong) = self.make_change().await? {
                return Ok(vec![wrong]);
            }
        }
        Ok(Vec::new())
    }

    /// Makes changes until it is dropped. Somebody may play with the objects meanwhile: what then goes wrong is told, and
    /// we go on.
    pub(crate) async fn change_for_ever(&mut self) {
        self.patience = PATIENCE;
        let mut ticks = self.ticks();
        loop {
            ticks.tick().await;
            if let Err(error) = self.make_change().await {
                self.stage.tell(Event::Trouble { change: self.changes, why: user::told(&error) }).await;
            }
        }
    }

    fn ticks(&self) -> Interval {
        let mut ticks = interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    }

    /// The next member in turn gets another endpoint: tells its address, and what is wrong if it does not arrive anywhere.
    async fn make_change(&mut self) -> anyhow::Result<Option<String>> {
        let before = self.fleet.ledger().await?;
        let begun = Instant::now();
        let (member, slice, address) = self.begin_change().await?;
        let importers = self.importers_of(member);
        let all = |world: &World| world.arrived(&address) >= importers;
        self.eyes.see(self.patience, all).await;
        let arrivals = self.eyes.instruct(|world| world.take_arrivals(&address));
        let took: BTreeMap<usize, f64> =
            arrivals.into_iter().map(|(member, at)| (member, milliseconds(at.duration_since(begun)))).collect();
        self.note_arrivals(member, &took).await;
        let arrived = took.len();
        let cost = self.cost_since(&before).await?;
        if arrived < importers {
            // What it cost is not what a change costs.
            self.lost += 1;
        } else {
            self.counted += 1;
            self.cost.join(&cost);
        }
        let slowest_milliseconds = (arrived == importers).then(|| took.values().copied().fold(0.0, f64::max));
        let cluster = self.name(member).to_owned();
        let writes = Some(cost.sums());
        let wrong = (arrived < importers).then(|| {
            format!("change {}: {address} of {cluster} is in {arrived} of {importers} importers", self.changes)
        });
        let change =
            Change { change: self.changes, cluster, slice, address, arrived, importers, slowest_milliseconds, writes };
        self.stage.tell(Event::Change(change)).await;
        Ok(wrong)
    }

    /// Puts a new endpoint in the place of an old one, and does not wait for it: member, slice and address.
    pub(crate) async fn begin_change(&mut self) -> anyhow::Result<(usize, String, String)> {
        let turn = usize::try_from(self.changes)?;
        let member = turn % self.members();
        self.begin_change_in(member).await
    }

    /// The same in a given member.
    pub(crate) async fn begin_change_in(&mut self, member: usize) -> anyhow::Result<(usize, String, String)> {
        let round = self.changes / u32::try_from(self.members())?;
        self.changes += 1;
        let slice = slice_name(u16::try_from(round % u32::from(SLICES))?);
        let number = FIRST_CHANGING + u16::try_from(self.changes % u32::from(u16::MAX - FIRST_CHANGING))?;
        let changed = address(member, number);
        let key = (member, SERVICE.to_owned(), slice.clone());
        let mut addresses = self.expected.endpoints.get(&key).cloned().unwrap_or_default();
        addresses.pop();
        addresses.push(changed.clone());
        self.eyes.instruct(|world| world.await_arrivals(&changed));
        let made = self.set_endpoints(member, SERVICE, &slice, addresses).await;
        if made.is_err() {
            self.eyes.instruct(|world| world.take_arrivals(&changed));
        }
        made.map(|()| (member, slice, changed))
    }

    /// What agents wrote since an older reading of the ledgers, once they are done.
    pub(crate) async fn cost_since(&self, before: &Ledger) -> anyhow::Result<Ledger> {
        Ok(self.quiet(QUIET).await?.since(before))
    }

    /// The ledgers, once nothing was written for so long.
    async fn quiet(&self, quiet: Duration) -> anyhow::Result<Ledger> {
        let mut last = self.fleet.ledger().await?;
        loop {
            sleep(quiet).await;
            let now = self.fleet.ledger().await?;
            if now == last {
                return Ok(now);
            }
            last = now;
        }
    }

    /// How many members import [`SERVICE`] now: somebody may have deleted an import.
    pub(crate) fn importers(&self) -> usize {
        let service = full_name(SERVICE);
        self.eyes.look(|world| world.imports().keys().filter(|(_, imported)| *imported == service).count())
    }

    /// The same for a change in `member`: somebody may have deleted its export.
    fn importers_of(&self, member: usize) -> usize {
        let exported = self.eyes.look(|world| world.export(member, SERVICE).is_some());
        if exported { self.importers() } else { 0 }
    }

    /// Tells latencies, costs and the verdict.
    pub(crate) async fn summarise(&self, wrong: &[String]) {
        for ((origin, destination), samples) in &self.pairs {
            let [origin, destination] = [*origin, *destination].map(|member| self.name(member).to_owned());
            if let Some(latency) = samples.latency() {
                self.stage.tell(Event::Latency { origin, destination, latency }).await;
            }
        }
        if self.counted + self.lost > 0 {
            let (writes, details) = (self.cost.sums(), self.cost.lines());
            self.stage.tell(Event::Cost { changes: self.counted, lost: self.lost, writes, details }).await;
        }
        self.eyes.announce(self.stage).await;
        let (passed, imported) = (wrong.is_empty(), self.differences().is_empty());
        self.stage.tell(Event::Verdict { passed, imported, wrong: wrong.to_vec() }).await;
    }

    async fn note_arrivals(&mut self, origin: usize, took: &BTreeMap<usize, f64>) {
        for (destination, milliseconds) in took {
            self.pairs.entry((origin, *destination)).or_default().add(*milliseconds);
            let (change, milliseconds) = (self.changes, *milliseconds);
            let [origin, destination] = [origin, *destination].map(|member| self.name(member).to_owned());
            self.stage.tell(Event::Arrival { change, origin, destination, milliseconds }).await;
        }
    }

    fn user(&self, member: usize) -> User {
        User::of(self.fleet.members[member].server.admin())
    }
}

/// The first of them, and how many more there are.
fn shortened(mut wrong: Vec<String>) -> Vec<String> {
    if wrong.len() > DIFFERENCES_TOLD {
        let more = wrong.len() - DIFFERENCES_TOLD;
        wrong.truncate(DIFFERENCES_TOLD);
        wrong.push(format!("and {more} differences more"));
    }
    wrong
}

fn slice_name(index: u16) -> String {
    format!("{SERVICE}-{}", index + 1)
}

#[cfg(test)]
#[path = "scene_tests.rs"]
mod tests;
