//! Actions on the sandbox's fleet (Services, exports, imports, changes of endpoints), and the state expected after
//! them.

mod live;
mod user;

use super::describe::full_name;
use super::event::{Change, Event, Export};
use super::fleet::Fleet;
use super::hub;
use super::measure::{ByStream, Ledger, Samples, milliseconds};
use super::observe::{Expected, World, address};
use super::view::Stage;
use super::watches::Watches;
use crate::args::{Api, Options};
use crate::limits::{ARRIVAL, DIFFERENCES_MAX, LAST_LOOK, SET_UP, STEP, WATCH_AGAIN};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep};
use user::User;

/// Name of the Service that every member exports and imports.
pub(crate) const SERVICE: &str = "app";
/// Number of slices of [`SERVICE`] in each member.
const SLICES: u16 = 2;
/// Number of endpoints in each slice of [`SERVICE`].
const ENDPOINTS: u16 = 3;
/// Lowest number of an endpoint that a change creates. Each change replaces the last endpoint of a slice by an endpoint
/// with a new number.
const FIRST_CHANGING: u16 = 100;
/// Default changes per second without `--once`, slow enough for a person to follow.
const UNHURRIED: f64 = 2.0;
/// Default changes per second with `--once`.
const HURRIED: f64 = 20.0;
/// Time without writes after which a change counts as complete, so that the sandbox can count the writes of the change.
const QUIET: Duration = Duration::from_millis(10);
/// Time for which the sandbox waits for missing writes of a change that has arrived. The hub agent writes an object at
/// most a second after a preview without an acknowledgement.
const LATE_WRITES: Duration = Duration::from_millis(1500);
/// Time without writes after which the whole fleet counts as settled.
const SETTLED: Duration = Duration::from_millis(100);

/// Expected conditions of an export without problems: valid, without a conflict.
pub(crate) const WELL: Export = Export { valid: Some(true), conflict: Some(false) };

/// Fleet, with the state that is expected after all actions so far.
pub(crate) struct Scene<'a> {
    pub(crate) fleet: &'a Fleet,
    /// Watches of the members, which keep the observed state.
    pub(crate) watches: &'a Watches,
    stage: &'a Stage,
    pub(crate) expected: Expected,
    interval: Duration,
    pause: Duration,
    patience: Duration,
    /// Number of changes that were started.
    changes: u32,
    /// Number of changes that reached all importers. Only the writes of these changes are added to `cost`. All other
    /// changes are counted in `lost`.
    counted: u32,
    cost: Ledger,
    lost: u32,
    pairs: BTreeMap<(usize, usize), Samples>,
    by_stream: ByStream,
    /// Verdict of this run, once it is known: true if the run has passed.
    pub(crate) verdict: Option<bool>,
}

impl<'a> Scene<'a> {
    /// Returns a scene of a fleet that has no Services, exports or imports yet.
    pub(crate) fn new(options: &Options, fleet: &'a Fleet, watches: &'a Watches, stage: &'a Stage) -> Self {
        let usual = if options.once { HURRIED } else { UNHURRIED };
        let interval = Duration::from_secs_f64(1.0 / options.changes_per_second.unwrap_or(usual));
        let pause = if options.once { Duration::ZERO } else { STEP };
        let (expected, cost, pairs) = (Expected::new(fleet.api), Ledger::default(), BTreeMap::new());
        let (changes, counted, lost) = (0, 0, 0);
        Self {
            fleet,
            watches,
            stage,
            expected,
            interval,
            pause,
            patience: ARRIVAL,
            changes,
            counted,
            cost,
            lost,
            pairs,
            by_stream: ByStream::default(),
            verdict: None,
        }
    }

    /// Creates [`SERVICE`] in every member, exports the Service from every member, and imports it in every member.
    /// Returns the differences from the expected state that remain after a time limit.
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
        let mut wrong = self.all_as_expected(SET_UP).await;
        wrong.extend(self.closed_streams(SET_UP).await?);
        // Wait for the last writes of the first imports, so that these writes do not count for the first change.
        self.quiet(SETTLED).await?;
        Ok(wrong)
    }

    /// Waits until all slice streams are open, at most for `limit`. Returns a sentence if they are not.
    async fn closed_streams(&self, limit: Duration) -> anyhow::Result<Option<String>> {
        let until = Instant::now() + limit;
        while !self.fleet.are_streams_open().await? {
            if Instant::now() >= until {
                return Ok(Some(format!("not all slice streams are open after {limit:?}")));
            }
            sleep(WATCH_AGAIN).await;
        }
        Ok(None)
    }

    pub(crate) fn members(&self) -> usize {
        self.fleet.members.len()
    }

    pub(crate) fn name(&self, member: usize) -> &'a str {
        &self.fleet.members[member].name
    }

    /// Sends the event about a step of a scenario, and pauses so that people can read about the step.
    pub(crate) async fn step(&self, scenario: &'static str, text: String) {
        self.watches.announce(self.stage).await;
        self.stage.emit(Event::Step { scenario, text }).await;
        sleep(self.pause).await;
    }

    /// Waits until all members are in the expected state, at most for `limit`. Returns the differences that remain.
    pub(crate) async fn all_as_expected(&self, limit: Duration) -> Vec<String> {
        self.watches.see(limit, |world| world.differences(&self.expected).next().is_none()).await;
        self.differences()
    }

    /// Returns the current differences of the members from the expected state.
    pub(crate) fn differences(&self) -> Vec<String> {
        shortened(self.watches.look(|world| world.differences(&self.expected).collect()))
    }

    /// Waits until the hub is in the expected state, at most for `limit`. Returns the differences that remain. The hub
    /// may be slightly behind the members.
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

    pub(crate) async fn create_service(&mut self, member: usize, service: &str, port: u16) -> anyhow::Result<()> {
        self.user(member).create_service(service, port).await?;
        self.expected.ports.insert((member, service.to_owned()), port);
        Ok(())
    }

    pub(crate) async fn set_port(&mut self, member: usize, service: &str, port: u16) -> anyhow::Result<()> {
        self.user(member).set_port(service, port).await?;
        self.expected.ports.insert((member, service.to_owned()), port);
        Ok(())
    }

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

    /// Exports a Service from a member, and expects no conflict. By the standard API, all members then import the
    /// Service.
    pub(crate) async fn export(&mut self, member: usize, service: &str) -> anyhow::Result<()> {
        self.user(member).export(service, self.fleet.api).await?;
        self.expected.exports.insert((member, service.to_owned()), WELL);
        if self.fleet.api == Api::Mcs {
            let importers = 0..self.members();
            self.expected.imports.extend(importers.map(|importer| (importer, service.to_owned())));
        }
        Ok(())
    }

    /// Imports a Service into a member. By the standard API, the member does so without a request.
    pub(crate) async fn import(&mut self, member: usize, service: &str) -> anyhow::Result<()> {
        if self.fleet.api == Api::Fleet {
            self.user(member).import(service).await?;
            self.expected.imports.insert((member, service.to_owned()));
        }
        Ok(())
    }

    /// Changes endpoints this number of times, one change after the other. Stops at the first change that does not
    /// reach all importers, and returns a sentence about it.
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

    fn ticks(&self) -> Interval {
        let mut ticks = interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    }

    /// Changes an endpoint in the next member, and waits until the change reaches all importers. If this takes longer
    /// than the time limit, returns a sentence about the change.
    async fn make_change(&mut self) -> anyhow::Result<Option<String>> {
        let are_streams_open = self.fleet.are_streams_open().await?;
        let before = self.fleet.ledger().await?;
        let begun = Instant::now();
        let (member, slice, address) = self.begin_change().await?;
        let importers = self.importers_of(member);
        let all = |world: &World| world.arrived(&address) >= importers;
        self.watches.see(self.patience, all).await;
        let arrivals = self.watches.instruct(|world| world.take_arrivals(&address));
        let took: BTreeMap<usize, f64> =
            arrivals.into_iter().map(|(member, at)| (member, milliseconds(at.duration_since(begun)))).collect();
        let (with_stream, without_stream) = self.note_arrivals(member, &took, are_streams_open).await.latencies();
        let arrived = took.len();
        let usual_writes = if arrived < importers || importers == 0 { 0 } else { 1 + 2 * u64::try_from(importers)? };
        let cost = self.cost_of_change(&before, usual_writes).await?;
        if arrived < importers {
            // The writes of a change that did not reach all importers are not part of the cost.
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
        let change = Change {
            change: self.changes,
            cluster,
            slice,
            address,
            arrived,
            importers,
            slowest_milliseconds,
            with_stream_milliseconds: with_stream.map(|it| it.p50_milliseconds),
            without_stream_milliseconds: without_stream.map(|it| it.p50_milliseconds),
            writes,
        };
        self.stage.emit(Event::Change(change)).await;
        Ok(wrong)
    }

    /// Replaces an endpoint in the next member. Does not wait for importers. Returns the member, the slice and the new
    /// address.
    pub(crate) async fn begin_change(&mut self) -> anyhow::Result<(usize, String, String)> {
        let turn = usize::try_from(self.changes)?;
        let member = turn % self.members();
        self.begin_change_in(member).await
    }

    /// Replaces an endpoint in this member. Does not wait for importers. Returns the member, the slice and the new
    /// address.
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
        self.watches.instruct(|world| world.await_arrivals(&changed));
        let made = self.set_endpoints(member, SERVICE, &slice, addresses).await;
        if made.is_err() {
            self.watches.instruct(|world| world.take_arrivals(&changed));
        }
        made.map(|()| (member, slice, changed))
    }

    /// Waits until the whole fleet has settled. Returns the agents' writes since `before`.
    pub(crate) async fn cost_since(&self, before: &Ledger) -> anyhow::Result<Ledger> {
        Ok(self.quiet(SETTLED).await?.since(before))
    }

    /// Waits until the agents stop writing, and then for missing writes, because objects lag behind the slice streams.
    /// Returns the writes since `before`. `usual` is the expected number.
    async fn cost_of_change(&self, before: &Ledger, usual: u64) -> anyhow::Result<Ledger> {
        let until = Instant::now() + LATE_WRITES;
        loop {
            let cost = self.quiet(QUIET).await?.since(before);
            if cost.sums().total >= usual || Instant::now() >= until {
                return Ok(cost);
            }
        }
    }

    /// Waits until the agents have not written for the time `quiet`. Returns their writes so far.
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

    /// Returns the number of members that import [`SERVICE`] now. Users may have deleted some imports.
    pub(crate) fn importers(&self) -> usize {
        let service = full_name(SERVICE);
        self.watches.look(|world| world.imports().keys().filter(|(_, imported)| *imported == service).count())
    }

    /// Returns the number of members that import the Service from `member`. Returns 0 if a user deleted the export of
    /// `member`.
    fn importers_of(&self, member: usize) -> usize {
        let exported = self.watches.look(|world| world.export(member, SERVICE).is_some());
        if exported { self.importers() } else { 0 }
    }

    /// Sends the events about latencies, costs and the verdict of a run.
    pub(crate) async fn summarise(&mut self, wrong: &[String], options: &Options) {
        self.figures().await;
        self.watches.announce(self.stage).await;
        let (passed, imported) = (wrong.is_empty(), self.differences().is_empty());
        let scenario = options.scenario.map(|scenario| scenario.name());
        let api = options.api.name();
        self.stage.emit(Event::Verdict { passed, imported, wrong: wrong.to_vec(), scenario, api }).await;
        self.verdict = Some(passed);
    }

    /// Compares the members with what the sandbox made, after a short time for the last change. Returns true, and the
    /// differences.
    pub(crate) async fn last_look(&self) -> (bool, Vec<String>) {
        self.watches.see(LAST_LOOK, |world| world.own_differences(&self.expected).next().is_none()).await;
        (true, shortened(self.watches.look(|world| world.own_differences(&self.expected).collect())))
    }

    /// Sends the events about latencies and costs.
    pub(crate) async fn figures(&self) {
        for ((origin, destination), samples) in &self.pairs {
            let [origin, destination] = [*origin, *destination].map(|member| self.name(member).to_owned());
            if let Some(latency) = samples.latency() {
                self.stage.emit(Event::Latency { origin, destination, latency }).await;
            }
        }
        let (with_stream, without_stream) = self.by_stream.latencies();
        if with_stream.is_some() || without_stream.is_some() {
            self.stage.emit(Event::SliceStream { with_stream, without_stream }).await;
        }
        if self.counted + self.lost > 0 {
            let (writes, details) = (self.cost.sums(), self.cost.lines());
            self.stage.emit(Event::Cost { changes: self.counted, lost: self.lost, writes, details }).await;
        }
    }

    /// Records the latencies of a change. Returns them apart for importers with a slice stream and without one.
    async fn note_arrivals(&mut self, origin: usize, took: &BTreeMap<usize, f64>, are_streams_open: bool) -> ByStream {
        let mut by_stream = ByStream::default();
        for (destination, milliseconds) in took {
            let slice_stream = are_streams_open.then(|| self.fleet.has_stream(*destination));
            let (change, milliseconds) = (self.changes, *milliseconds);
            self.pairs.entry((origin, *destination)).or_default().add(milliseconds);
            for latencies in [&mut by_stream, &mut self.by_stream] {
                latencies.add(slice_stream, milliseconds);
            }
            let [origin, destination] = [origin, *destination].map(|member| self.name(member).to_owned());
            self.stage.emit(Event::Arrival { change, origin, destination, milliseconds, slice_stream }).await;
        }
        by_stream
    }

    fn user(&self, member: usize) -> User {
        User::of(self.fleet.members[member].server.admin())
    }
}

/// Keeps only the first differences, and adds the number of omitted differences.
fn shortened(mut wrong: Vec<String>) -> Vec<String> {
    if wrong.len() > DIFFERENCES_MAX {
        let more = wrong.len() - DIFFERENCES_MAX;
        wrong.truncate(DIFFERENCES_MAX);
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
