//! Script: everything that a seed decides.

use crate::disturbances::{self, Disturbance, Kind};
use crate::limits::{ACTION, QUIET_ACTION, QUIET_FAULTS};
use crate::mcs::{self, Manner};
use fastrand::Rng;
use histories::users::{Action, MEMBERS, an_action, prelude};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Script of a run.
#[derive(Clone, Debug)]
pub struct Script {
    pub seed: u64,
    /// Number of replicas of each agent.
    pub replicas: usize,
    /// True if the hub agent has slice streams.
    pub has_streams: bool,
    /// Members, by index, that use no slice stream.
    pub without_stream: BTreeSet<usize>,
    /// True if faults are possible from which agents recover only after minutes.
    pub is_slow: bool,
    /// True if users act only at the beginning, and faults begin only after their changes have arrived. Then agents may
    /// withdraw nothing.
    pub is_quiet: bool,
    /// True if the fleet has a manager, which defines its members.
    pub is_managed: bool,
    /// Steps in the order of their times.
    pub steps: Vec<Step>,
    /// Changes that users make after all faults. They must arrive promptly.
    pub last: Vec<Action>,
    /// The same for users of the standard API. `None` if the members do not use it.
    pub mcs: Option<Vec<mcs::Action>>,
}

/// Step of a script, at a time since the start of the run.
#[derive(Clone, Debug)]
pub struct Step {
    pub at: Duration,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    User(Action),
    Mcs(mcs::Action),
    Fault {
        kind: &'static Kind,
        lasts: Duration,
        disturbance: Arc<dyn Disturbance>,
        /// Random numbers from which the disturbance was made.
        made_from: Rng,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:>7.3} ", self.at.as_secs_f64())?;
        match &self.what {
            What::User(action) => write!(formatter, "user {action:?}"),
            What::Mcs(action) => write!(formatter, "user of the standard API {action:?}"),
            What::Fault { kind, lasts, disturbance, .. } => {
                write!(formatter, "fault {} for {:.0} s: {disturbance:?}", kind.name, lasts.as_secs_f64())
            }
        }
    }
}

/// Kinds of faults that a script may have.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Names of the only kinds; empty for all.
    pub only: Vec<String>,
    /// Names of kinds to leave out.
    pub without: Vec<String>,
}

impl Choice {
    fn has(&self, kind: &Kind) -> bool {
        let is = |names: &[String]| names.iter().any(|name| name == kind.name);
        (self.only.is_empty() || is(&self.only)) && !is(&self.without)
    }
}

impl Script {
    /// Returns the script of a seed.
    #[must_use]
    pub fn of(seed: u64, choice: &Choice) -> Self {
        let mut rng = Rng::with_seed(seed);
        let (replicas, has_streams) = (rng.usize(1..=2), rng.bool());
        let without_stream = (0..MEMBERS).filter(|_| has_streams && rng.usize(..6) == 0).collect();
        let (is_slow, is_quiet) = (rng.usize(..4) == 0, rng.usize(..3) == 0);
        let mut steps: Vec<Step> = Vec::new();
        let first = prelude(&mut rng).into_iter().flatten();
        steps.extend(first.map(|action| Step { at: Duration::ZERO, what: What::User(action) }));
        // A manager has random numbers of its own, so that the other faults of a seed stay.
        let mut of_manager = Rng::with_seed(seed.rotate_left(32)); // no limit: another seed
        let is_managed = named("leave").is_some_and(|leave| choice.has(leave)) && of_manager.usize(..4) == 0;
        let mut users = Users::new(&mut rng);
        let (actions, faults) = (rng.usize(10..60), if rng.usize(..8) == 0 { 0 } else { rng.usize(1..14) });
        for _ in 0..actions {
            let (at, action) =
                (a_time(&mut rng, Duration::ZERO, if is_quiet { QUIET_ACTION } else { ACTION }), users.next());
            let (again, after) = (undone(&action, &mut rng), a_time(&mut rng, Duration::ZERO, AGAIN));
            steps.push(Step { at, what: What::User(action) });
            steps.extend(again.map(|action| Step { at: at + after, what: What::User(action) }));
        }
        // In most runs with quiet users, nothing changes objects, so that agents may withdraw nothing until the end. In
        // some of these runs, the hub goes back to a state from before the last changes of users.
        let is_still = is_quiet && rng.usize(..3) > 0;
        let is_restored = is_still && rng.usize(..3) == 0;
        // Users delete objects and create them again at once, and in a run with quiet users they change only what the
        // imports of the first Service do not depend on.
        for _ in 0..if is_restored { 0 } else { rng.usize(..8) } {
            let (at, again) = (a_time(&mut rng, Duration::ZERO, ACTION), a_time(&mut rng, Duration::ZERO, AGAIN));
            let pair = if is_quiet { beside(&mut rng) } else { flip(&mut rng) };
            let [first, second] = pair;
            let again = if is_quiet { a_time(&mut rng, at, ACTION) } else { at + again };
            steps.push(Step { at, what: What::User(first) });
            steps.push(Step { at: again, what: What::User(second) });
        }
        let last = (0..rng.usize(1..8)).map(|_| users.next()).collect();
        let may = |kind: &&Kind| {
            let is_possible = (is_slow || !kind.is_slow) && (has_streams || !kind.is_of_streams);
            choice.has(kind) && is_possible && !(is_still && kind.is_change)
        };
        let kinds: Vec<&'static Kind> = disturbances::ALL.iter().filter(may).collect();
        let mcs = mcs_users(seed, if is_quiet { QUIET_ACTION } else { ACTION });
        if is_restored && let Some(backup) = named("backup").filter(|kind| choice.has(kind)) {
            let of_both = steps.iter().chain(mcs.iter().flat_map(|users| &users.steps));
            steps.push(an_old_backup(backup, of_both, &mut rng));
        }
        for _ in 0..if is_restored { 0 } else { faults } {
            // Draws the numbers also without a kind, so that a choice of kinds changes no times.
            let from = if is_quiet { QUIET_FAULTS } else { Duration::ZERO };
            let (at, mut own) = (a_time(&mut rng, from, ACTION), rng.fork());
            let at = begin_near_action(from, &steps, &mut own).unwrap_or(at);
            let blind = named("blind").filter(|blind| may(blind) && is_still && own.bool());
            if let Some(kind) = blind.or_else(|| weighted(&kinds, &mut own)) {
                let lasts = duration(kind, at, &steps, &mut own);
                let made_from = own.clone();
                let disturbance = (kind.make)(&mut own);
                steps.push(Step { at, what: What::Fault { kind, lasts, disturbance, made_from } });
            }
        }
        if !is_restored {
            steps.extend(lives(seed, may).into_iter().chain(restarts(seed, may).filter(|_| mcs.is_some())));
            steps.extend(leaves(&mut of_manager, may).filter(|_| is_managed));
        }
        let mcs = mcs.map(|users| {
            steps.extend(users.steps);
            users.last
        });
        steps.sort_by_key(|step| step.at);
        Self { seed, replicas, has_streams, without_stream, is_slow, is_quiet, is_managed, steps, last, mcs }
    }

    /// Returns the same script, whose disturbances have drawn no random numbers yet.
    #[must_use]
    pub(crate) fn fresh(&self) -> Self {
        let mut script = self.clone();
        for step in &mut script.steps {
            if let What::Fault { kind, disturbance, made_from, .. } = &mut step.what {
                *disturbance = (kind.make)(&mut made_from.clone());
            }
        }
        script
    }

    /// Returns the script with only the steps of these numbers, from 0.
    #[must_use]
    pub fn keeping(&self, kept: &[usize]) -> Self {
        let steps = kept.iter().filter_map(|number| self.steps.get(*number).cloned()).collect();
        Self { steps, ..self.clone() }
    }
}

/// Users of the standard API in a run.
struct McsUsers {
    steps: Vec<Step>,
    /// Changes after all faults.
    last: Vec<mcs::Action>,
}

/// Returns the users of the standard API, in half of the runs. They have random numbers of their own, so that they
/// change no other step of a seed. So have the users who use both APIs.
fn mcs_users(seed: u64, until: Duration) -> Option<McsUsers> {
    let mut rng = Rng::with_seed(seed.rotate_left(16)); // no limit: another seed
    if !rng.bool() {
        return None;
    }
    let mut of_fleet = Rng::with_seed(seed.rotate_left(8)); // no limit: another seed
    let manner = Manner::any(&mut of_fleet);
    let step = |at, action| Step { at, what: What::Mcs(action) };
    let mut steps: Vec<Step> = mcs::prelude(manner).into_iter().map(|action| step(Duration::ZERO, action)).collect();
    for _ in 0..rng.usize(3..25) {
        let at = a_time(&mut rng, Duration::ZERO, until);
        steps.extend(mcs::actions(manner, &mut rng, &mut of_fleet).map(|action| step(at, action)));
    }
    let last = (0..rng.usize(1..4)).flat_map(|_| {
        let actions: Vec<_> = mcs::actions(manner, &mut rng, &mut of_fleet).collect();
        actions
    });
    let last = last.collect();
    Some(McsUsers { steps, last })
}

/// Returns up to two requests of a fleet manager to leave.
fn leaves(rng: &mut Rng, may: impl Fn(&&Kind) -> bool) -> impl Iterator<Item = Step> {
    let count = rng.usize(..=2); // no limit: most runs have one or two
    (0..count).filter_map(move |_| a_late_fault("leave", &may, rng.fork()))
}

/// Returns the deaths and removals of members, in a quarter of the runs. They have random numbers of their own, so that
/// they change no other fault of a seed.
fn lives(seed: u64, may: impl Fn(&&Kind) -> bool) -> Vec<Step> {
    let mut rng = Rng::with_seed(!seed);
    let count = if rng.usize(..4) == 0 { rng.usize(1..=4) } else { 0 };
    let step = move |_| {
        let mut own = rng.fork();
        let name = if own.usize(..4) == 0 { "removal" } else { "death" };
        a_late_fault(name, &may, own)
    };
    (0..count).filter_map(step).collect()
}

/// Returns the members, by index, that begin with routing slices if members use the standard API.
pub(crate) fn routing_slices(seed: u64) -> BTreeSet<usize> {
    let mut rng = Rng::with_seed(seed.rotate_left(24)); // no limit: another seed
    (0..MEMBERS).filter(|_| rng.bool()).collect()
}

/// Returns up to two restarts of agents with routing slices on, or without them. They have random numbers of their own.
fn restarts(seed: u64, may: impl Fn(&&Kind) -> bool) -> impl Iterator<Item = Step> {
    let mut rng = Rng::with_seed(seed.rotate_left(40)); // no limit: another seed
    let count = rng.usize(..=2); // no limit: most runs have one or two
    (0..count).filter_map(move |_| a_late_fault("routing", &may, rng.fork()))
}

/// Returns a fault of this name that begins after the changes of quiet users have arrived, if the script may have it.
fn a_late_fault(name: &str, may: impl Fn(&&Kind) -> bool, mut rng: Rng) -> Option<Step> {
    let at = a_time(&mut rng, QUIET_FAULTS, ACTION);
    let kind = named(name).filter(may)?;
    let lasts = duration(kind, at, &[], &mut rng);
    let made_from = rng.clone();
    let disturbance = (kind.make)(&mut rng);
    Some(Step { at, what: What::Fault { kind, lasts, disturbance, made_from } })
}

/// Returns the only fault of a run: while users act, the hub is backed up, and it is restored when their changes have
/// arrived. The backup is newer than each import, export and conflict that ended: docs/contributors/reliability.md says
/// why.
fn an_old_backup<'a>(kind: &'static Kind, steps: impl Iterator<Item = &'a Step>, rng: &mut Rng) -> Step {
    let ends = |step: &&Step| match step.what {
        What::User(
            Action::DeleteRequest { .. }
            | Action::Retarget { .. }
            | Action::DeleteService { .. }
            | Action::ChangeServiceType { .. }
            | Action::ChangePorts { .. }
            | Action::Unexport { .. },
        ) => true,
        What::Mcs(action) => action.ends_something(),
        What::User(_) | What::Fault { .. } => false,
    };
    let last = steps.filter(ends).map(|step| step.at).max().unwrap_or_default();
    let at = a_time(rng, last, last.max(QUIET_ACTION) + SHORTLY_BEFORE);
    let lasts = QUIET_FAULTS - at + a_time(rng, Duration::ZERO, SOON_AFTER);
    let made_from = rng.fork();
    let disturbance = (kind.make)(&mut made_from.clone());
    Step { at, what: What::Fault { kind, lasts, disturbance, made_from } }
}

/// Longest time after which users undo what they did.
const AGAIN: Duration = Duration::from_secs(3);
/// Longest time between an action of users and the begin or end of a fault that begins or ends soon after it.
const SOON_AFTER: Duration = Duration::from_secs(25);
/// Longest time between the begin of a fault and the action of users that it meets.
const SHORTLY_BEFORE: Duration = Duration::from_secs(2);

/// Returns an action that undoes another. Users often create again what they have just deleted, and sometimes delete
/// what they have just created.
fn undone(action: &Action, rng: &mut Rng) -> Option<Action> {
    let drawn = rng.usize(..4);
    let (often, sometimes) = (drawn < 2, drawn == 2);
    let (is_undone, inverse) = match *action {
        Action::DeleteService { member, app } => (often, Action::MakeService { member, app, ports: 0 }),
        Action::Unexport { member, app } => (often, Action::Export { member, app }),
        Action::DeleteSlice { member, app, slice } => {
            (often, Action::SetSlice { member, app, slice, endpoints: vec![1, 3] })
        }
        Action::DeleteRequest { member, name } => (often, Action::CreateRequest { member, name, app: 0, consumer: 1 }),
        Action::MakeService { member, app, .. } => (sometimes, Action::DeleteService { member, app }),
        Action::Export { member, app } => (sometimes, Action::Unexport { member, app }),
        Action::SetSlice { member, app, slice, .. } => (sometimes, Action::DeleteSlice { member, app, slice }),
        Action::CreateRequest { member, name, .. } => (sometimes, Action::DeleteRequest { member, name }),
        _ => return None,
    };
    is_undone.then_some(inverse)
}

/// Returns a deletion in a random member, and the action that creates the same again.
fn flip(rng: &mut Rng) -> [Action; 2] {
    let (member, app) = (rng.usize(..MEMBERS), 0);
    match rng.usize(..4) {
        0 => [Action::DeleteService { member, app }, Action::MakeService { member, app, ports: 0 }],
        1 => [Action::Unexport { member, app }, Action::Export { member, app }],
        2 => {
            let endpoints = vec![1, 4];
            [Action::DeleteSlice { member, app, slice: 0 }, Action::SetSlice { member, app, slice: 0, endpoints }]
        }
        _ => [
            Action::DeleteRequest { member, name: 0 },
            Action::CreateRequest { member, name: 0, app: 0, consumer: rng.usize(..2) },
        ],
    }
}

/// Returns two actions that the first import of the first Service does not depend on: a second MultiClusterService
/// beside the first one comes and goes.
fn beside(rng: &mut Rng) -> [Action; 2] {
    let (member, name) = (rng.usize(..MEMBERS), 1);
    let made = Action::CreateRequest { member, name, app: 0, consumer: rng.usize(..2) };
    [made, if rng.bool() { Action::DeleteRequest { member, name } } else { Action::Retarget { member, name, app: 1 } }]
}

/// Returns a time near an action of users, for half of the faults that begin at `from` or later. If a fault begins
/// shortly before the action, it meets what agents write because of the action. If it begins soon after the action,
/// agents wait for each other or for a timer.
fn begin_near_action(from: Duration, steps: &[Step], rng: &mut Rng) -> Option<Duration> {
    let which = rng.usize(..4);
    let action = an_action_of_users(steps, |at| at >= from, rng);
    let (before, after) = (a_time(rng, Duration::ZERO, SHORTLY_BEFORE), a_time(rng, Duration::ZERO, SOON_AFTER));
    match which {
        0 => Some(action?.saturating_sub(before).max(from)),
        1 => Some(action? + after),
        _ => None,
    }
}

/// Returns the time of a random action of users; `None` if there is no action at such a time. Draws one number in both
/// cases.
fn an_action_of_users(steps: &[Step], is_wanted: impl Fn(Duration) -> bool, rng: &mut Rng) -> Option<Duration> {
    let is_action = |step: &&Step| matches!(step.what, What::User(_)) && is_wanted(step.at);
    let acted: Vec<Duration> = steps.iter().filter(is_action).map(|step| step.at).collect();
    let drawn = usize::try_from(rng.u64(..)).unwrap_or_default();
    acted.get(drawn.checked_rem(acted.len())?).copied()
}

/// Returns a random duration of a fault that begins at `at`. A third of the faults end soon after an action of users,
/// because that is when agents act on what they learnt while the fault lasted.
fn duration(kind: &Kind, at: Duration, steps: &[Step], rng: &mut Rng) -> Duration {
    let longest = Duration::from_secs(*kind.seconds.end());
    let ends_soon_after = rng.usize(..3) == 0;
    let action = an_action_of_users(steps, |acted| acted > at && acted < at + longest, rng);
    if let Some(action) = action.filter(|_| ends_soon_after) {
        let lasts = action - at + a_time(rng, Duration::ZERO, SOON_AFTER);
        return lasts.max(Duration::from_secs(*kind.seconds.start()));
    }
    Duration::from_millis(rng.u64(kind.seconds.start() * 1_000..=kind.seconds.end() * 1_000))
}

fn a_time(rng: &mut Rng, from: Duration, to: Duration) -> Duration {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(rng.u64(micros(from)..micros(to)))
}

/// Returns the kind of faults with this name.
fn named(name: &str) -> Option<&'static Kind> {
    disturbances::ALL.iter().find(|kind| kind.name == name)
}

fn weighted(kinds: &[&'static Kind], rng: &mut Rng) -> Option<&'static Kind> {
    let sum: u32 = kinds.iter().map(|kind| kind.weight).sum();
    if sum == 0 {
        return None;
    }
    let mut drawn = rng.u32(..sum);
    kinds.iter().copied().find(|kind| {
        let is_this = drawn < kind.weight;
        drawn = drawn.saturating_sub(kind.weight);
        is_this
    })
}

/// Random actions of users.
struct Users(TestRunner);

impl Users {
    fn new(rng: &mut Rng) -> Self {
        let seed: [u8; 32] = std::array::from_fn(|_| rng.u8(..));
        Self(TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &seed)))
    }

    fn next(&mut self) -> Action {
        an_action().new_tree(&mut self.0).expect("the strategy rejects nothing").current()
    }
}

#[cfg(test)]
mod tests {
    use super::{Choice, Script};

    #[test]
    fn a_seed_gives_the_same_script_each_time() {
        for seed in 0..50 {
            let lines = |script: Script| script.steps.iter().map(ToString::to_string).collect::<Vec<_>>();
            let choice = Choice::default();
            assert_eq!(lines(Script::of(seed, &choice)), lines(Script::of(seed, &choice)));
        }
    }

    #[test]
    fn a_fault_that_is_left_out_changes_no_other_step_of_users() {
        let users = |choice: &Choice| {
            let script = Script::of(7, choice);
            let lines = script.steps.iter().map(ToString::to_string).filter(|line| line.contains(" user "));
            lines.collect::<Vec<_>>()
        };
        let without = Choice { without: vec!["crash".to_owned(), "late".to_owned()], ..Choice::default() };
        assert_eq!(users(&Choice::default()), users(&without));
    }
}
