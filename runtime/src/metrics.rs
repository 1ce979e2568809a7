//! Metrics of the runtime, `fleetnet_…`. Labels are few and fixed: sides (hub or member), kinds, verbs, results.
//!
//! The metrics of the agents are in the `metrics.rs` of `agent`, `member-agent` and `endpointslice`.

mod ages;
mod definition;
mod read;

pub use ages::Ages;
pub use definition::{Definition, Kind};

use std::sync::Arc;
use std::time::Duration;

use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Registry};

use tokio::time::Instant;

use ages::forget;
use fleetnet_types::WatchState;

/// Histogram buckets in seconds for work in memory, from a microsecond to a second. Up to a millisecond the buckets are
/// close to each other, to measure the agent's own share of a change's latency.
const OWN_SECONDS: &[f64] =
    &[1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 1.5e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 1e-2, 5e-2, 0.25, 1.0];
/// Histogram buckets in seconds for a write: from a millisecond on loopback to the timeout of a write and of the GET
/// after it.
const WRITE_SECONDS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0];

const QUEUE_DEPTH: Definition = Definition {
    name: "fleetnet_queue_depth",
    kind: Kind::Gauge,
    labels: &["controller", "queue"],
    help: "Number of keys or writes in a queue of the agent.",
};
const DECODE_DURATION: Definition = Definition {
    name: "fleetnet_decode_duration_seconds",
    kind: Kind::Histogram(OWN_SECONDS),
    labels: &[],
    help: "Time to decode one object of a watch.",
};
const VIEW_DURATION: Definition = Definition {
    name: "fleetnet_view_duration_seconds",
    kind: Kind::Histogram(OWN_SECONDS),
    labels: &[],
    help: "Time to store one watch message in the view.",
};
const PLAN_DURATION: Definition = Definition {
    name: "fleetnet_plan_duration_seconds",
    kind: Kind::Histogram(OWN_SECONDS),
    labels: &["controller"],
    help: "Time to plan one key.",
};
const BROKEN_INVARIANTS: Definition = Definition {
    name: "fleetnet_broken_invariants_total",
    kind: Kind::Counter,
    labels: &["invariant"],
    help: "Number of plans that were dropped because they break an invariant. Each is a bug in this agent.",
};
const OWN_SHARE_DURATION: Definition = Definition {
    name: "fleetnet_own_share_duration_seconds",
    kind: Kind::Histogram(OWN_SECONDS),
    labels: &[],
    help: "Processor time of decoding, viewing and planning together, for each change that leads to a write.",
};
const REACTION_DURATION: Definition = Definition {
    name: "fleetnet_reaction_duration_seconds",
    kind: Kind::Histogram(OWN_SECONDS),
    labels: &[],
    help: "Time from the decoded change to the start of the first write that it leads to.",
};
const WRITE_DURATION: Definition = Definition {
    name: "fleetnet_write_duration_seconds",
    kind: Kind::Histogram(WRITE_SECONDS),
    labels: &["side", "kind", "verb"],
    help: "Time from the start of a write to its outcome.",
};
const WRITES: Definition = Definition {
    name: "fleetnet_writes_total",
    kind: Kind::Counter,
    labels: &["side", "kind", "verb", "result"],
    help: "Number of writes, by result.",
};
const WRITES_SUPPRESSED: Definition = Definition {
    name: "fleetnet_writes_suppressed_total",
    kind: Kind::Counter,
    labels: &["side", "kind", "verb"],
    help: "Number of writes that were skipped because the server already answered the same write of the same object version.",
};
const WATCH_AGE: Definition = Definition {
    name: "fleetnet_watch_age_seconds",
    kind: Kind::Gauge,
    labels: &["controller", "side", "kind"],
    help: "Time since the server last sent anything on a watch.",
};
const WATCH_RESTARTS: Definition = Definition {
    name: "fleetnet_watch_restarts_total",
    kind: Kind::Counter,
    labels: &["side", "kind", "reason"],
    help: "Number of times that a watch was restarted, by reason.",
};
const WATCH_STATE: Definition = Definition {
    name: "fleetnet_watch_state",
    kind: Kind::Gauge,
    labels: &["controller", "side", "kind", "state"],
    help: "1 for the current state of the view of a kind, 0 for all other states.",
};
const UNDECODABLE: Definition = Definition {
    name: "fleetnet_unreadable_objects_total",
    kind: Kind::Counter,
    labels: &["side", "kind"],
    help: "Number of undecodable objects seen. The last decoded state of such an object stays in force.",
};
const LEADER: Definition = Definition {
    name: "fleetnet_leader",
    kind: Kind::Gauge,
    labels: &["lease"],
    help: "1 while this process holds the Lease, else 0.",
};
const OLDEST_UNFINISHED: Definition = Definition {
    name: "fleetnet_oldest_unfinished_change_seconds",
    kind: Kind::Gauge,
    labels: &["controller", "side"],
    help: "Age of the oldest planned write that is not carried out yet, 0 if there is none. A write that fails again and again \
           keeps its age. Waiting for a user, a claim, a replacement or a policy does not count. Only the leader exports it.",
};
const EVENTS: Definition = Definition {
    name: "fleetnet_events_total",
    kind: Kind::Counter,
    labels: &["side", "kind", "reason"],
    help: "Number of Kubernetes Events that the agent emitted and logged, by reason.",
};
const EVENTS_DROPPED: Definition = Definition {
    name: "fleetnet_events_dropped_total",
    kind: Kind::Counter,
    labels: &[],
    help: "Number of Kubernetes Events that were dropped because the queue was full or the server did not accept them.",
};
const EVENTS_WITHHELD: Definition = Definition {
    name: "fleetnet_events_withheld_total",
    kind: Kind::Counter,
    labels: &["side"],
    help: "Number of Kubernetes Events that the agent logged but did not post, because it posts at most 10 a second about the \
           objects of one namespace, after a burst of 50.",
};

/// All metrics of the runtime.
pub const ALL: &[Definition] = &[
    QUEUE_DEPTH,
    DECODE_DURATION,
    VIEW_DURATION,
    PLAN_DURATION,
    BROKEN_INVARIANTS,
    OWN_SHARE_DURATION,
    REACTION_DURATION,
    WRITE_DURATION,
    WRITES,
    WRITES_SUPPRESSED,
    WATCH_AGE,
    WATCH_RESTARTS,
    WATCH_STATE,
    UNDECODABLE,
    LEADER,
    OLDEST_UNFINISHED,
    EVENTS,
    EVENTS_DROPPED,
    EVENTS_WITHHELD,
];

/// Metrics of an engine. Clones share their state.
///
/// The agents of a process share these metrics. Gauges and the time of plans have the label `controller`, the name of
/// the agent that sets them.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
    controller: &'static str,
    plan_duration: Histogram,
}

/// Value of the label `controller` for the agent that handles exports and imports.
const FLEET: &str = "fleet";

struct Inner {
    queue_depth: IntGaugeVec,
    decode_duration: Histogram,
    view_duration: Histogram,
    plan_durations: HistogramVec,
    broken_invariants: IntCounterVec,
    own_share_duration: Histogram,
    reaction_duration: Histogram,
    write_duration: HistogramVec,
    writes: IntCounterVec,
    writes_suppressed: IntCounterVec,
    watch_age: Ages,
    watch_restarts: IntCounterVec,
    watch_state: IntGaugeVec,
    undecodable: IntCounterVec,
    leader: IntGaugeVec,
    oldest_unfinished: Ages,
    events: IntCounterVec,
    events_dropped: IntCounter,
    events_withheld: IntCounterVec,
}

impl Metrics {
    /// Creates the metrics and registers them. The label `controller` is `fleet`.
    ///
    /// # Errors
    /// If the registry already has a metric of the same name, for example from a second engine.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let inner = Inner {
            queue_depth: QUEUE_DEPTH.gauges(registry)?,
            decode_duration: DECODE_DURATION.histogram(registry)?,
            view_duration: VIEW_DURATION.histogram(registry)?,
            plan_durations: PLAN_DURATION.histograms(registry)?,
            broken_invariants: BROKEN_INVARIANTS.counters(registry)?,
            own_share_duration: OWN_SHARE_DURATION.histogram(registry)?,
            reaction_duration: REACTION_DURATION.histogram(registry)?,
            write_duration: WRITE_DURATION.histograms(registry)?,
            writes: WRITES.counters(registry)?,
            writes_suppressed: WRITES_SUPPRESSED.counters(registry)?,
            watch_age: WATCH_AGE.ages(registry)?,
            watch_restarts: WATCH_RESTARTS.counters(registry)?,
            watch_state: WATCH_STATE.gauges(registry)?,
            undecodable: UNDECODABLE.counters(registry)?,
            leader: LEADER.gauges(registry)?,
            oldest_unfinished: OLDEST_UNFINISHED.ages(registry)?,
            events: EVENTS.counters(registry)?,
            events_dropped: EVENTS_DROPPED.counter(registry)?,
            events_withheld: EVENTS_WITHHELD.counters(registry)?,
        };
        Ok(Self::with(Arc::new(inner), FLEET))
    }

    /// Returns the same metrics for another agent of this process, with this value of the label `controller`.
    #[must_use]
    pub fn of_controller(&self, controller: &'static str) -> Self {
        Self::with(Arc::clone(&self.inner), controller)
    }

    fn with(inner: Arc<Inner>, controller: &'static str) -> Self {
        let plan_duration = inner.plan_durations.with_label_values(&[controller]);
        Self { inner, controller, plan_duration }
    }

    /// Removes the series of this agent that show a present state, because the agent has ended.
    pub fn agent_ended(&self) {
        let Inner { queue_depth, watch_state, watch_age, oldest_unfinished, .. } = &*self.inner;
        forget(queue_depth, self.controller);
        forget(watch_state, self.controller);
        watch_age.forget_with(self.controller);
        oldest_unfinished.forget_with(self.controller);
    }

    /// Returns metrics that nobody scrapes, for tests and simulations.
    #[must_use]
    pub fn unregistered() -> Self {
        Self::new(&Registry::new()).expect("an empty registry takes every name")
    }

    /// Records contact with the server on a watch: an event, a bookmark, a list or a clean end.
    pub fn watch_heard(&self, side: &str, kind: &str) {
        self.inner.watch_age.set(&[self.controller, side, kind], Duration::ZERO);
    }

    pub fn watch_state(&self, side: &str, kind: &str, state: WatchState) {
        for each in WatchState::ALL {
            let value = i64::from(each == state);
            self.inner.watch_state.with_label_values(&[self.controller, side, kind, each.as_str()]).set(value);
        }
    }

    /// Counts a restart of a watch. `reason` is one of a few fixed words, because it is a label.
    pub fn watch_restarted(&self, side: &str, kind: &str, reason: &str) {
        self.inner.watch_restarts.with_label_values(&[side, kind, reason]).inc();
    }

    /// Counts a plan that was dropped because it broke an invariant.
    pub fn broken_invariant(&self, invariant: &str) {
        self.inner.broken_invariants.with_label_values(&[invariant]).inc();
    }

    /// Counts an object that failed to decode.
    pub fn undecodable(&self, side: &str, kind: &str) {
        self.inner.undecodable.with_label_values(&[side, kind]).inc();
    }

    pub fn queue_depth(&self, queue: &str, length: usize) {
        self.inner
            .queue_depth
            .with_label_values(&[self.controller, queue])
            .set(i64::try_from(length).unwrap_or(i64::MAX));
    }

    /// Observes the time to decode one object of a watch.
    pub fn decoded(&self, took: Duration) {
        self.inner.decode_duration.observe(took.as_secs_f64());
    }

    /// Observes the time to store one watch message in the agent's view.
    pub fn viewed(&self, took: Duration) {
        self.inner.view_duration.observe(took.as_secs_f64());
    }

    /// Observes the processor time that the agent spent on a change before its first write.
    pub fn shared(&self, took: Duration) {
        self.inner.own_share_duration.observe(took.as_secs_f64());
    }

    /// Observes the time from a change to the first write of the key that it concerns.
    pub fn reacted(&self, took: Duration) {
        self.inner.reaction_duration.observe(took.as_secs_f64());
    }

    /// Observes the time to plan one key.
    pub fn planned(&self, took: Duration) {
        self.plan_duration.observe(took.as_secs_f64());
    }

    pub fn wrote(&self, side: &str, kind: &str, verb: &str, result: &str, took: Duration) {
        self.inner.writes.with_label_values(&[side, kind, verb, result]).inc();
        self.inner.write_duration.with_label_values(&[side, kind, verb]).observe(took.as_secs_f64());
    }

    /// Counts a write that was skipped, because an equal write has already led to the present version of the object.
    pub fn suppressed(&self, side: &str, kind: &str, verb: &str) {
        self.inner.writes_suppressed.with_label_values(&[side, kind, verb]).inc();
    }

    /// Removes the ages of unfinished changes, which only a leader exports.
    pub(crate) fn no_unfinished(&self) {
        self.inner.oldest_unfinished.forget_with(self.controller);
    }

    /// Sets the metric that shows whether this process holds a Lease.
    pub fn leader(&self, lease: &str, leads: bool) {
        self.inner.leader.with_label_values(&[lease]).set(i64::from(leads));
    }

    /// Sets the start of the oldest planned write to a cluster that is not carried out yet; `None` if there is none.
    pub fn oldest_unfinished(&self, side: &str, since: Option<Instant>) {
        match since {
            Some(since) => self.inner.oldest_unfinished.set(&[self.controller, side], since.elapsed()),
            None => self.inner.oldest_unfinished.hold_at_zero(&[self.controller, side]),
        }
    }

    /// Counts a Kubernetes Event that the agent records.
    pub fn event_recorded(&self, side: &str, kind: &str, reason: &str) {
        self.inner.events.with_label_values(&[side, kind, reason]).inc();
    }

    /// Counts a Kubernetes Event that is not posted, because its namespace has had too many.
    pub fn event_withheld(&self, side: &str) {
        self.inner.events_withheld.with_label_values(&[side]).inc();
    }

    /// Counts a Kubernetes Event that was dropped before it was posted.
    pub fn event_dropped(&self) {
        self.inner.events_dropped.inc();
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

/// Adds the process metrics (CPU, memory, file descriptors, start time) to a registry.
///
/// # Errors
/// If the registry already has the process metrics.
pub fn register_process_metrics(registry: &Registry) -> Result<(), prometheus::Error> {
    registry.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))
}

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;

    use super::*;

    fn exposed(registry: &Registry) -> String {
        TextEncoder::new().encode_to_string(&registry.gather()).expect("text")
    }

    /// Rule V12: An operator reads the metrics of a watch
    /// Then: `fleetnet_watch_age_seconds` grows while the server sends nothing. For each watch, `fleetnet_watch_state`
    /// is 1 for exactly one state
    #[tokio::test(start_paused = true)]
    async fn the_age_of_a_watch_grows_by_itself_until_it_is_heard_again() {
        let registry = Registry::new();
        let metrics = Metrics::new(&registry).expect("metrics");
        metrics.watch_heard("hub", "ServiceImport");
        tokio::time::advance(Duration::from_secs(7)).await;
        assert!(
            exposed(&registry)
                .contains("fleetnet_watch_age_seconds{controller=\"fleet\",kind=\"ServiceImport\",side=\"hub\"} 7\n")
        );
        metrics.watch_heard("hub", "ServiceImport");
        assert!(
            exposed(&registry)
                .contains("fleetnet_watch_age_seconds{controller=\"fleet\",kind=\"ServiceImport\",side=\"hub\"} 0\n")
        );
    }

    /// Also rule V12.
    #[test]
    fn exactly_one_state_of_a_watch_is_set() {
        let registry = Registry::new();
        let metrics = Metrics::new(&registry).expect("metrics");
        metrics.watch_state("hub", "Namespace", WatchState::Incomplete);
        metrics.watch_state("hub", "Namespace", WatchState::Complete);
        let text = exposed(&registry);
        assert!(text.contains(
            "fleetnet_watch_state{controller=\"fleet\",kind=\"Namespace\",side=\"hub\",state=\"complete\"} 1\n"
        ));
        assert!(text.contains(
            "fleetnet_watch_state{controller=\"fleet\",kind=\"Namespace\",side=\"hub\",state=\"incomplete\"} 0\n"
        ));
        assert_eq!(text.matches("fleetnet_watch_state{").count(), 4);
    }

    #[test]
    fn an_agent_that_has_ended_leaves_no_present_state_and_keeps_its_counts() {
        let registry = Registry::new();
        let fleet = Metrics::new(&registry).expect("metrics");
        let other = fleet.of_controller("endpointslice");
        for metrics in [&fleet, &other] {
            metrics.watch_heard("member", "Pod");
            metrics.watch_state("member", "Pod", WatchState::Complete);
            metrics.queue_depth("retry", 3);
            metrics.oldest_unfinished("member", None);
            metrics.suppressed("member", "Pod", "update");
        }
        other.agent_ended();
        let text = exposed(&registry);
        let is_present = |line: &&str| !line.contains("fleetnet_plan_duration_seconds");
        let states =
            |controller: &str| text.lines().filter(is_present).filter(|line| line.contains(controller)).count();
        assert_eq!((states("\"endpointslice\""), states("\"fleet\"")), (0, 7), "{text}");
        assert!(text.contains("fleetnet_writes_suppressed_total{kind=\"Pod\",side=\"member\",verb=\"update\"} 2\n"));
    }

    #[test]
    fn a_registry_takes_the_metrics_of_one_engine_only() {
        let registry = Registry::new();
        let _first = Metrics::new(&registry).expect("metrics");
        assert!(Metrics::new(&registry).is_err());
    }

    #[test]
    fn process_metrics_are_exposed() {
        let registry = Registry::new();
        register_process_metrics(&registry).expect("process metrics");
        assert!(exposed(&registry).contains("process_resident_memory_bytes"));
    }
}
