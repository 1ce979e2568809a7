//! Rules that must be true of a fleet. Each file has one rule, which looks at each commit of each server. What must be
//! true in the end is in `histories::oracle`.
//!
//! To add a rule, write a file with a type that implements [`Oracle`], and add it to [`all`].

mod claims;
mod distribution;
mod duplicates;
mod endpoints;
mod foreign;
mod grace;
mod judgements;
mod leaders;
mod loops;
mod mcs;
mod memberships;
mod oracle;
mod rights;
#[cfg(test)]
mod support;
mod withdrawn;

pub use oracle::{Oracle, Seen};

use crate::coverage::{Counts, Table};
use crate::limits::REQUESTS_IN_A_SECOND;
use crate::mcs::concerns;
use crate::trace::Trace;
use crate::world::{World, agent_of, kind_of, replica_of};
use fleetnet_api::decode::decode;
use fleetnet_core::model::Object;
use fleetnet_runtime::clock::Clock;
use fleetnet_types::Timestamp;
use memkube::auth::{Call, Verb};
use memkube::observe::{Commit, Observer};
use memkube::store::{ChangeKind, Stored};
use parking_lot::Mutex;
use sim::fleet::Place;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// Rules that also look at the objects of the standard API.
const GENERAL: [&str; 3] = ["leaders", "loops", "mcs"];

/// Returns all rules.
fn all() -> Vec<(&'static str, Box<dyn Oracle>)> {
    vec![
        ("claims", Box::new(claims::OneExclusive::default())),
        ("distribution", Box::new(distribution::OnlyToImporters::default())),
        ("duplicates", Box::new(duplicates::OnlyOnce::default())),
        ("endpoints", Box::new(endpoints::OnlyLive::default())),
        ("foreign", Box::new(foreign::OnlyOwn::default())),
        ("grace", Box::new(grace::GracePeriod::default())),
        ("judgements", Box::new(judgements::OnlyOverdue::default())),
        ("leaders", Box::new(leaders::OnlyLeaders)),
        ("loops", Box::new(loops::NoLoop::default())),
        ("memberships", Box::new(memberships::Answered::default())),
        ("rights", Box::new(rights::OnlyAllowed::default())),
        ("mcs", Box::new(mcs::Unchanged::default())),
        ("withdrawn", Box::new(withdrawn::NothingLive::default())),
    ]
}

/// The fleet at rest after all faults is as its users want it.
pub const SETTLED: &str = "settled";
/// The same soon after the last changes.
pub const PROMPT: &str = "prompt";
/// Nobody writes to a fleet at rest.
pub const SILENCE: &str = "silence";
/// No agent panics or ends by itself.
pub const ENDS: &str = "ends";
/// No agent sends requests without end.
pub const REQUESTS: &str = "requests";

/// Returns the names of the rules that [`Table::Rules`] counts: those about each change, and those about the fleet at
/// rest.
pub fn counted() -> impl Iterator<Item = &'static str> {
    all().into_iter().map(|(name, _)| name).chain([SETTLED, PROMPT, SILENCE])
}

/// Violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub rule: &'static str,
    pub at: Timestamp,
    pub message: String,
}

/// Begin of the name of the Lease that decides between the replicas of an agent.
const FIRST_LEASE: &str = "2bf2b407.hub.";

/// The rules, and what they found. Clones share both.
#[derive(Clone)]
pub struct Watchers(Arc<Mutex<State>>);

struct State {
    rules: Vec<(&'static str, Box<dyn Oracle>)>,
    found: Option<Finding>,
    calm: Calm,
    freshness: Duration,
    may_withdraw: bool,
    counts: Counts,
    trace: Trace,
    /// Time of the last write request of an agent, also of one that the server refused, and what it writes.
    last_write: Option<(Timestamp, String)>,
    /// Last write of each agent.
    last_of: BTreeMap<Place, String>,
    /// Replica that holds the Lease of each agent, and since when.
    leaders: BTreeMap<Place, (usize, Timestamp)>,
    /// Last write of the Lease that decides between the replicas of each agent.
    renewed: BTreeMap<Place, Timestamp>,
    /// Begin of a second, and the number of requests of each agent since then.
    requests: (Timestamp, BTreeMap<Place, u32>),
    /// Time until which requests that were held back arrive.
    late_until: Timestamp,
}

/// Clock that stops while a fault lasts.
#[derive(Clone, Copy, Debug)]
struct Calm {
    passed: Duration,
    /// Begin of the present time without faults; `None` while a fault lasts.
    since: Option<Timestamp>,
}

impl Calm {
    fn at(self, now: Timestamp) -> Duration {
        self.passed + self.since.map_or(Duration::ZERO, |since| now.since(since))
    }
}

impl Watchers {
    #[must_use]
    pub fn new(start: Timestamp, freshness: Duration, counts: Counts, trace: Trace) -> Self {
        let calm = Calm { passed: Duration::ZERO, since: Some(start) };
        let state = State {
            rules: all(),
            found: None,
            calm,
            freshness,
            may_withdraw: true,
            counts,
            trace,
            last_write: None,
            last_of: BTreeMap::new(),
            leaders: BTreeMap::new(),
            renewed: BTreeMap::new(),
            requests: (start, BTreeMap::new()),
            late_until: Timestamp(0),
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Lets the rules look at each change of all servers.
    pub fn attach(&self, world: &World) {
        for place in world.fleet.places() {
            let on_server = OnServer { place, clock: world.fleet.clock().clone(), watchers: self.clone() };
            world.server(place).memkube().observe(Some(Arc::new(on_server)));
        }
    }

    /// Lets the rules look at the fleet at this time.
    pub fn passed(&self, now: Timestamp) {
        let State { rules, found, calm, freshness, .. } = &mut *self.0.lock();
        for (rule, oracle) in rules {
            if let Err(message) = oracle.passed(calm.at(now), *freshness) {
                found.get_or_insert(Finding { rule, at: now, message });
            }
        }
    }

    /// Counts a request of an agent. Returns false after a finding: the run ends, and the request gets no answer. An
    /// agent that sends requests in an endless loop would not let time pass otherwise.
    pub fn requested(&self, now: Timestamp, agent: Place, call: &Call) -> bool {
        let State { requests: (since, counts), found, last_write, .. } = &mut *self.0.lock();
        if is_write(call) {
            let (verb, resource, at) = (call.verb.name(), call.qualified_resource(), &call.target);
            *last_write =
                Some((now, format!("the agent of {agent:?}: {verb} {resource} {}/{}", at.namespace, at.name)));
        }
        if now.since(*since) >= Duration::from_secs(1) {
            (*since, *counts) = (now, BTreeMap::new());
        }
        let count = counts.entry(agent).or_default();
        *count += 1;
        if *count > REQUESTS_IN_A_SECOND {
            let message = format!("the agent of {agent:?} sent {count} requests in a second");
            found.get_or_insert(Finding { rule: REQUESTS, at: now, message });
        }
        found.is_none()
    }

    /// Sets whether a fault lasts.
    pub fn set_calm(&self, now: Timestamp, is_calm: bool) {
        let calm = &mut self.0.lock().calm;
        if is_calm == calm.since.is_none() {
            *calm = Calm { passed: calm.at(now), since: is_calm.then_some(now) };
        }
    }

    /// The hub was restored from a backup.
    pub fn restored(&self) {
        let state = &mut *self.0.lock();
        // A Lease from the backup names a holder from before.
        state.renewed.remove(&Place::Hub);
        state.rules.iter_mut().for_each(|(_, rule)| rule.restored());
    }

    /// Until this time, requests that were held back arrive.
    pub fn late_until(&self, time: Timestamp) {
        self.0.lock().late_until = time;
    }

    /// From now on, agents must withdraw no endpoint.
    pub fn forbid_withdrawals(&self) {
        self.0.lock().may_withdraw = false;
    }

    /// From now on, agents may withdraw endpoints again.
    pub fn allow_withdrawals(&self) {
        self.0.lock().may_withdraw = true;
    }

    /// Records a finding, unless there is one already.
    pub fn find(&self, rule: &'static str, at: Timestamp, message: String) {
        let found = &mut self.0.lock().found;
        found.get_or_insert(Finding { rule, at, message });
    }

    #[must_use]
    pub fn found(&self) -> Option<Finding> {
        self.0.lock().found.clone()
    }

    /// Returns the last write request of an agent, and its time.
    #[must_use]
    pub fn last_write(&self) -> Option<(Timestamp, String)> {
        self.0.lock().last_write.clone()
    }

    /// Returns the last write of the agent of a cluster.
    #[must_use]
    pub fn last_write_of(&self, place: Place) -> Option<String> {
        self.0.lock().last_of.get(&place).cloned()
    }
}

/// The rules as they look at one server.
struct OnServer {
    place: Place,
    clock: Clock,
    watchers: Watchers,
}

impl OnServer {
    /// Stores who holds a Lease.
    fn lease(&self, commit: &Commit<'_>) {
        let holder = commit.user.and_then(|user| Some((agent_of(self.place, user)?, replica_of(user)?)));
        let Some((agent, replica)) = holder.filter(|(agent, _)| *agent == self.place) else { return };
        let [before, after] = [commit.change.before.as_ref(), Some(&commit.change.after)]
            .map(|state| state.map(|state| leaders::LeaseHolder::of(&state.decode())).unwrap_or_default());
        let at = self.clock.now();
        let state = &mut *self.watchers.0.lock();
        if commit.change.after.key.name().starts_with(FIRST_LEASE)
            && let Some(renewed) = state.renewed.insert(agent, at)
            && let Err(message) = leaders::may_follow(&before, &after, at.since(renewed))
        {
            let message = format!("the Lease of the agent of {agent:?}: {message}");
            state.found.get_or_insert(Finding { rule: "leaders", at, message });
        }
        if after.holder.is_empty() {
            state.leaders.remove(&agent);
        } else if state.leaders.get(&agent).is_none_or(|(leader, _)| *leader != replica) {
            state.leaders.insert(agent, (replica, at));
        }
    }
}

impl Observer for OnServer {
    fn committed(&self, commit: &Commit<'_>) {
        if &*commit.resource.plural == "leases" {
            return self.lease(commit);
        }
        let Some(kind) = kind_of(commit.resource) else { return };
        let at = self.clock.now();
        let decoded = |stored: &Stored| decode(kind, &stored.json).ok();
        let before = commit.change.before.as_deref().and_then(decoded);
        let is_deleted = commit.change.kind == ChangeKind::Deleted;
        let after = if is_deleted { None } else { decoded(&commit.change.after) };
        let agent = commit.user.and_then(|user| agent_of(self.place, user));
        let mut state = self.watchers.0.lock();
        let State { rules, found, calm, freshness, may_withdraw, counts, trace, last_of, leaders, late_until, .. } =
            &mut *state;
        let what = || {
            let who = agent.map_or_else(
                || commit.user.map_or_else(|| "a controller".to_owned(), |user| user.name.to_string()),
                |agent| format!("agent of {agent:?}"),
            );
            let key = &commit.change.after.key;
            format!("{who}: {:?} {kind:?} {}/{} in {:?}", commit.change.kind, key.namespace(), key.name(), self.place)
        };
        trace.add(at, || format!("{} {}", what(), summary(after.as_ref().or(before.as_ref()))));
        if let Some(agent) = agent {
            let side = if agent == Place::Hub { "hub agent" } else { "member agent" };
            let write = format!("{side} {:?} {kind:?}", commit.change.kind);
            counts.add(Table::Writes, &write);
            last_of.insert(agent, write);
        }
        if let (Some(Object::MemberAgent(before)), Some(Object::MemberAgent(after))) = (&before, &after)
            && let Some(silence) = after.status.silence
            && before.status.silence.is_none_or(|before| before.phase != silence.phase)
        {
            counts.add(Table::Phases, silence.phase.name());
        }
        let seen = Seen {
            at,
            calm: calm.at(at),
            freshness: *freshness,
            may_withdraw: *may_withdraw,
            server: self.place,
            agent,
            replica: commit.user.and_then(replica_of),
            leader: agent.and_then(|agent| leaders.get(&agent).copied()),
            is_late: at <= *late_until,
            kind,
            before: before.as_ref(),
            after: after.as_ref(),
            json: &commit.change.after.json,
            json_before: commit.change.before.as_deref().map(|stored| &*stored.json),
        };
        let is_of_mcs_api = seen.newest().is_some_and(concerns);
        for (rule, oracle) in rules.iter_mut().filter(|(rule, _)| !is_of_mcs_api || GENERAL.contains(rule)) {
            match oracle.committed(&seen) {
                Ok(true) => counts.add(Table::Rules, rule),
                Ok(false) => {}
                Err(message) => {
                    found.get_or_insert(Finding { rule, at, message });
                }
            }
        }
    }
}

/// Resources that agents write at rest, or that a create does not store: Leases, and questions about users and tokens.
const NOT_AT_REST: [&str; 5] =
    ["leases", "selfsubjectreviews", "serviceaccounts", "subjectaccessreviews", "tokenreviews"];

/// Resources and subresources of heartbeats.
const HEARTBEATS: [(&str, &str); 2] = [("memberagents", ""), ("internalmemberclusters", "status")];

/// True for a request that changes an object, apart from those that agents send at rest.
fn is_write(call: &Call) -> bool {
    let is_read = matches!(call.verb, Verb::Get | Verb::List | Verb::Watch);
    // The hub agent answers a heartbeat, in the status, only if something changed. A fleet manager gets heartbeats in
    // the status.
    let is_heartbeat =
        HEARTBEATS.contains(&(&*call.target.resource, &*call.target.subresource)) && call.verb == Verb::Patch;
    !is_read && !is_heartbeat && !NOT_AT_REST.contains(&&*call.target.resource)
}

/// Returns the content of an object that matters for the rules, in one line.
fn summary(object: Option<&Object>) -> String {
    let Some(object) = object else { return "undecodable".to_owned() };
    let deleting = if object.meta().deleting { " deleting" } else { "" };
    let addresses = |content: &fleetnet_core::model::SliceContent| {
        let addresses = content.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
        addresses.map(ToString::to_string).collect::<Vec<_>>().join(",")
    };
    let content = match object {
        Object::EndpointSlice(slice) => addresses(&slice.content),
        Object::EndpointSliceExport(slice) | Object::EndpointSliceImport(slice) => addresses(&slice.spec.content),
        Object::ServiceImport(import) => {
            format!("clusters {:?} claims {:?}", import.status.clusters, import.claims.importers.keys())
        }
        Object::InternalServiceImport(claim) => {
            format!("{:?} granted {}", claim.consumer_type, !claim.status.clusters.is_empty())
        }
        Object::Service(service) => format!("{:?}", service.service_type),
        Object::MultiClusterService(request) => format!("{} {:?}", request.import_name, request.consumer_type),
        _ => String::new(),
    };
    format!("[{content}]{deleting}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use memkube::auth::Target;

    /// docs/contributors/reliability.md has the planted bugs, each with the rule that it breaks. `xtask` compares its
    /// table with the bugs.
    #[test]
    fn each_rule_has_a_planted_bug() {
        let folder = std::fs::read_dir(programs::root().join("testing/bugs")).expect("the folder of the bugs");
        let bugs: Vec<String> =
            folder.map(|entry| std::fs::read_to_string(entry.expect("a bug").path()).expect("its text")).collect();
        for rule in counted().chain([REQUESTS]) {
            let finds = format!("finds: {rule}, seed ");
            assert!(bugs.iter().any(|bug| bug.contains(&finds)), "no planted bug breaks the rule {rule}");
        }
    }

    fn call(verb: Verb, path: &str) -> Call {
        let empty: Arc<str> = "".into();
        let (resource, subresource) = path.split_once('/').unwrap_or((path, ""));
        let target = Target {
            group: Arc::clone(&empty),
            version: "v1".into(),
            resource: resource.into(),
            subresource: subresource.into(),
            namespace: "work".into(),
            name: empty,
        };
        Call { user: memkube::User::new("agent"), verb, target }
    }

    fn watchers(start: Timestamp) -> Watchers {
        Watchers::new(start, Duration::ZERO, Counts::default(), Trace::new(start, 0))
    }

    #[test]
    fn an_agent_that_sends_requests_without_a_pause_is_found() {
        let start = Timestamp::from_seconds(1_800_000_000);
        let (watchers, read) = (watchers(start), call(Verb::List, "services"));
        let all = |at: Timestamp, count: u32| (0..count).all(|_| watchers.requested(at, Place::Hub, &read));
        assert!(all(start, REQUESTS_IN_A_SECOND));
        let later = start + Duration::from_secs(1);
        assert!(all(later, REQUESTS_IN_A_SECOND), "another second");
        assert!(watchers.requested(later, Place::Member(0), &read), "another agent");
        assert!(!watchers.requested(later, Place::Hub, &read));
        assert_eq!(watchers.found().map(|found| found.rule), Some(REQUESTS));
        assert!(!watchers.requested(later, Place::Member(0), &read), "the run ends");
    }

    #[test]
    fn silence_ends_with_each_request_to_write_except_heartbeats_leases_and_reviews() {
        let start = Timestamp::from_seconds(1_800_000_000);
        for (verb, resource, is_write) in [
            (Verb::Patch, "endpointslices", true),
            (Verb::Create, "events", true),
            (Verb::Delete, "services", true),
            (Verb::List, "services", false),
            (Verb::Watch, "services", false),
            (Verb::Patch, "memberagents", false),
            (Verb::Patch, "memberagents/status", true),
            (Verb::Patch, "internalmemberclusters/status", false),
            (Verb::Patch, "internalmemberclusters", true),
            (Verb::Update, "leases", false),
            (Verb::Create, "tokenreviews", false),
        ] {
            let watchers = watchers(start);
            watchers.requested(start, Place::Hub, &call(verb, resource));
            assert_eq!(watchers.last_write().is_some(), is_write, "{verb:?} {resource}");
        }
    }
}
