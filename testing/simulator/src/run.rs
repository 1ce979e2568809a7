//! Run of a script, from its first step to its finding.

use crate::coverage::{self, Counts, Coverage, Table};
use crate::disturbances::{Active, Disturbance, Kind};
use crate::limits::{
    ACTION, FORCE_DELETE, FRESHNESS, HEARTBEAT_SECONDS, LAST_CHANGES, LATE, LONGEST_MOMENT, LOOK, PROMPT, QUIET_FAULTS,
    RECOVERY, SILENCE, SILENCE_ENDS, SLOW_FRESHNESS, SLOW_RECOVERY,
};
use crate::mcs;
use crate::oracles::{self, Finding, Watchers};
use crate::script::{Script, What, routing_slices};
use crate::trace::Trace;
use crate::users::act;
use crate::world::{WORK, World, cluster_id};
use anyhow::Context as _;
use fleetnet_core::member::McsApi;
use fleetnet_core::model::{MemberStatus, MembershipAgent, Silence, SilencePhase};
use fleetnet_types::Timestamp;
use futures::FutureExt as _;
use histories::oracle;
use histories::users::{Action, MEMBERS};
use sim::fleet::Place;
use sim::manager::Manager;
use sim::{Fleet, Options};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub finding: Option<Finding>,
    pub coverage: Coverage,
    /// Last lines of the trace.
    pub trace: Vec<String>,
}

/// Plays a script. Keeps the last `lines` lines of its trace. Ends the process if virtual time stands still: then an
/// agent or the simulator makes requests without end in one virtual moment.
///
/// # Panics
/// If the simulator itself fails.
#[must_use]
pub fn run(script: &Script, lines: usize) -> Outcome {
    let seed = script.seed;
    let (_running, ended) = mpsc::channel::<()>();
    let looks = Looks::default();
    let looked = Looks::clone(&looks);
    std::thread::spawn(move || {
        let mut before = 0;
        while ended.recv_timeout(LONGEST_MOMENT) == Err(RecvTimeoutError::Timeout) {
            let count = looked.load(Ordering::Relaxed);
            if count == before {
                eprintln!(
                    "seed {seed}: no virtual time passes for {LONGEST_MOMENT:?}; cargo xtask sim --seed {seed} replays it"
                );
                std::process::exit(STUCK_EXIT_CODE);
            }
            before = count;
        }
    });
    sim::paused(play(&script.fresh(), lines, looks)).unwrap_or_else(|error| panic!("seed {}: {error:?}", script.seed))
}

/// Number of looks at the agents, about one in each virtual second.
type Looks = Arc<AtomicU64>;

/// Exit code of a process with a run that does not end.
const STUCK_EXIT_CODE: i32 = 3;

/// End of a fault that lasts.
type End = (Duration, &'static Kind, Arc<dyn Disturbance>);

struct Run {
    world: World,
    start: Timestamp,
    active: Active,
    watchers: Watchers,
    trace: Trace,
    counts: Counts,
    /// True if faults have begun in a run with quiet users.
    has_begun: bool,
    has_mcs_api: bool,
    looks: Looks,
}

async fn play(script: &Script, lines: usize, looks: Looks) -> anyhow::Result<Outcome> {
    let mut run = Run::new(script, lines, looks).await?;
    run.steps(script).await?;
    if run.watchers.found().is_none() {
        run.trace.add(run.world.now(), || "=== all faults are over ===".to_owned());
        run.advance_by(if script.is_slow { SLOW_RECOVERY } else { RECOVERY }).await?;
        run.silence_ends().await?;
        run.check_rest(oracles::SETTLED).await?;
        run.check_silence().await?;
        run.last_changes(script).await?;
    }
    let Run { world, start, watchers, trace, counts, .. } = run;
    let coverage = Coverage { runs: 1, virtual_seconds: world.now().since(start).as_secs(), tables: counts.take() };
    Ok(Outcome { finding: watchers.found(), coverage, trace: trace.lines() })
}

/// Makes the fleet of a script, without agents.
async fn world_of(script: &Script) -> anyhow::Result<World> {
    let (seed, slice_streams, without_stream) = (script.seed, script.has_streams, script.without_stream.clone());
    let mut options = Options { seed, slice_streams, without_stream, ..Options::members(MEMBERS) };
    if script.is_managed {
        options.membership.agents = MembershipAgent::ALL.to_vec();
        options.force_delete = Some(FORCE_DELETE);
    }
    if script.mcs.is_some() {
        options.mcs_api = McsApi::LabelledNamespaces;
        options.routing_slices = routing_slices(script.seed);
    }
    let fleet = Fleet::new(options).await?;
    let manager = Manager::new(fleet.hub.admin());
    if script.is_managed {
        manager.install().await?;
        for index in 0..MEMBERS {
            manager.admit(&cluster_id(index), HEARTBEAT_SECONDS).await?;
        }
    }
    for namespace in [WORK, mcs::NAMESPACE] {
        fleet.make_namespace(namespace).await?;
    }
    let manager = script.is_managed.then_some(manager);
    Ok(World { fleet, replicas: script.replicas, is_cut_off: false, restores: 0, later: Vec::new(), manager })
}

impl Run {
    async fn new(script: &Script, lines: usize, looks: Looks) -> anyhow::Result<Self> {
        let mut world = world_of(script).await?;
        let start = world.now();
        let counts = Counts::default();
        let trace = Trace::new(start, lines);
        let freshness = if script.is_slow { SLOW_FRESHNESS } else { FRESHNESS };
        let watchers = Watchers::new(start, freshness, counts.clone(), trace.clone());
        let active = Active::new(counts.clone());
        watchers.attach(&world);
        active.attach(&world, &watchers);
        for place in world.fleet.places() {
            world.fleet.set_own_clock(place, 0);
            world.start_missing(place)?;
        }
        Ok(Self {
            world,
            start,
            active,
            watchers,
            trace,
            counts,
            has_begun: false,
            has_mcs_api: script.mcs.is_some(),
            looks,
        })
    }

    /// Makes all steps, and ends all faults.
    async fn steps(&mut self, script: &Script) -> anyhow::Result<()> {
        let mut ends: Vec<End> = Vec::new();
        let mut steps = script.steps.iter().peekable();
        loop {
            ends.sort_by_key(|(at, ..)| *at);
            let next_step = steps.peek().map(|step| step.at);
            let next_end = ends.first().map(|(at, ..)| *at);
            let Some(at) = next_step.into_iter().chain(next_end).min() else { break };
            if script.is_quiet && at >= QUIET_FAULTS && !self.has_begun {
                self.advance_to(self.start + QUIET_FAULTS).await?;
                self.has_begun = true;
                self.watchers.forbid_withdrawals();
            }
            self.advance_to(self.start + at).await?;
            if self.watchers.found().is_some() {
                return Ok(());
            }
            if next_end == Some(at) {
                let (_, kind, disturbance) = ends.remove(0);
                self.end(kind, &disturbance).await.with_context(|| format!("end of {}", kind.name))?;
            } else if let Some(step) = steps.next() {
                self.trace.add(self.world.now(), || format!("=== {step}"));
                match &step.what {
                    What::User(action) => {
                        self.count_action(action);
                        act(&self.world, action).await.with_context(|| format!("{action:?}"))?;
                    }
                    What::Mcs(action) => {
                        mcs::act(&self.world, *action).await.with_context(|| format!("{action:?}"))?;
                    }
                    What::Fault { kind, lasts, disturbance, .. } => {
                        self.begin(kind, disturbance).await.with_context(|| format!("begin of {}", kind.name))?;
                        ends.push((at + *lasts, kind, Arc::clone(disturbance)));
                    }
                }
            }
        }
        self.advance_to(self.start + ACTION).await?;
        for step in &script.steps {
            if let What::Fault { disturbance, .. } = &step.what {
                disturbance.end(&mut self.world).await?;
            }
        }
        Ok(())
    }

    fn count_action(&self, action: &Action) {
        let name = action.name();
        self.counts.add(Table::Actions, &name);
        for fault in self.active.names() {
            self.counts.add(Table::ActionsDuringFaults, &coverage::during(&name, fault));
        }
    }

    async fn begin(&mut self, kind: &'static Kind, disturbance: &Arc<dyn Disturbance>) -> anyhow::Result<()> {
        let name = kind.name;
        if kind.is_change {
            self.watchers.allow_withdrawals();
        }
        for other in self.active.names() {
            self.counts.add(Table::Pairs, &coverage::pair(name, other));
        }
        let running: Vec<(Place, usize)> = self.running();
        self.watchers.set_calm(self.world.now(), false);
        disturbance.begin(&mut self.world).await?;
        self.counts.add(Table::Faults, &coverage::begin(name));
        let now = self.running();
        for (place, _) in running.iter().filter(|one| !now.contains(one)) {
            if let Some(write) = self.watchers.last_write_of(*place) {
                self.counts.add(Table::CrashPoints, &write);
            }
        }
        self.active.add(name, disturbance);
        Ok(())
    }

    async fn end(&mut self, kind: &'static Kind, disturbance: &Arc<dyn Disturbance>) -> anyhow::Result<()> {
        self.trace.add(self.world.now(), || format!("=== end of {}: {disturbance:?}", kind.name));
        self.active.remove(disturbance);
        self.world.is_cut_off = self.active.cuts_off();
        self.watchers.late_until(self.world.now() + LATE);
        disturbance.end(&mut self.world).await?;
        if disturbance.restores_the_hub() {
            self.watchers.restored();
        }
        let is_calm = self.active.names().is_empty();
        self.watchers.set_calm(self.world.now(), is_calm);
        Ok(())
    }

    fn running(&self) -> Vec<(Place, usize)> {
        self.world.fleet.replicas().map(|(place, replica, ..)| (place, replica)).collect()
    }

    async fn advance_by(&mut self, duration: Duration) -> anyhow::Result<()> {
        self.advance_to(self.world.now() + duration).await
    }

    /// Lets time pass until `end`, or until there is a finding.
    async fn advance_to(&mut self, end: Timestamp) -> anyhow::Result<()> {
        while self.watchers.found().is_none() {
            let left = end.since(self.world.now());
            if left.is_zero() {
                break;
            }
            tokio::time::sleep(left.min(LOOK)).await;
            self.looks.fetch_add(1, Ordering::Relaxed);
            self.watchers.passed(self.world.now());
            self.still_run();
            self.world.retry_later().await?;
        }
        Ok(())
    }

    /// Finds agents that have ended by themselves. No fault of a server or of a network ends an agent.
    fn still_run(&self) {
        for (place, _, agent, _) in self.world.fleet.replicas() {
            if let Some(Some(ended)) = agent.ended().now_or_never() {
                self.watchers.find(oracles::ENDS, self.world.now(), format!("the agent of {place:?} ended: {ended:?}"));
            }
        }
    }

    /// Makes the last changes, and checks that they arrive promptly.
    async fn last_changes(&mut self, script: &Script) -> anyhow::Result<()> {
        self.watchers.allow_withdrawals();
        for action in script.mcs.iter().flatten() {
            self.trace.add(self.world.now(), || format!("=== last user of the standard API {action:?}"));
            mcs::act(&self.world, *action).await.with_context(|| format!("{action:?}"))?;
        }
        for action in &script.last {
            if self.watchers.found().is_some() {
                return Ok(());
            }
            self.trace.add(self.world.now(), || format!("=== last user {action:?}"));
            act(&self.world, action).await.with_context(|| format!("{action:?}"))?;
            self.advance_by(LAST_CHANGES).await?;
        }
        self.advance_by(PROMPT).await?;
        self.check_rest(oracles::PROMPT).await
    }

    /// Checks the fleet at rest.
    async fn check_rest(&mut self, rule: &'static str) -> anyhow::Result<()> {
        if self.watchers.found().is_some() {
            return Ok(());
        }
        self.counts.add(Table::Rules, rule);
        let fleet = self.world.at_rest();
        let checked = catch_unwind(AssertUnwindSafe(|| {
            oracle::assert_settled(&fleet);
            oracle::assert_grace_is_over(&fleet);
        }));
        let now = self.world.now();
        if let Err(panic) = checked {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            self.watchers.find(rule, now, text.unwrap_or_else(|| "the oracle fails".to_owned()));
            return Ok(());
        }
        for class in oracle::classes(&fleet) {
            self.counts.add(Table::Situations, class);
        }
        if let Some(why) = mcs::check(&self.world).err().filter(|_| self.has_mcs_api) {
            self.watchers.find(rule, now, why);
        }
        Ok(())
    }

    /// Waits until importers use the endpoints of all members as usual. If a member was silent several times, this
    /// takes up to 5 minutes.
    async fn silence_ends(&mut self) -> anyhow::Result<()> {
        let end = self.world.now() + SILENCE_ENDS;
        let is_over = |status: &MemberStatus| {
            let is_returned = |silence: Silence| silence.phase == SilencePhase::Returned;
            status.silent_members.is_empty() && status.silence.is_none_or(is_returned)
        };
        while !self.world.member_statuses().iter().all(is_over) && self.watchers.found().is_none() {
            let now = self.world.now();
            if now >= end {
                let what = "a member counts as silent although it sends heartbeats".to_owned();
                self.watchers.find(oracles::SETTLED, now, what);
            }
            self.advance_by(LOOK).await?;
        }
        Ok(())
    }

    /// Checks that a fleet at rest stays as it is.
    async fn check_silence(&mut self) -> anyhow::Result<()> {
        self.counts.add(Table::Rules, oracles::SILENCE);
        let now = self.world.now();
        // Half an hour after a silence, the hub agent removes its record.
        let has_record = self.world.member_statuses().iter().any(|status| status.silence.is_some());
        self.advance_by(SILENCE).await?;
        let last = self.watchers.last_write().filter(|(at, _)| *at > now);
        if let Some((at, what)) = last.filter(|(_, what)| !has_record || !what.contains("patch memberagents")) {
            self.watchers.find(oracles::SILENCE, at, format!("a fleet at rest is written to: {what}"));
        }
        Ok(())
    }
}
