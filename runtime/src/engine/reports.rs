//! Metrics, log lines and states of views that the engine shows.

use std::fmt::Debug;
use std::time::Duration;

use fleetnet_types::{ObjectName, Timestamp, Undecodable};
use tokio::sync::watch;
use tokio::time::Instant;

use super::invariants::Broken;
use super::logic::NAMESPACE_TERMINATING;
use super::outcome::{Outcome, WriteResult};
use super::queue::OldestChange;
use super::sent::Sent;
use super::source_info::SourceInfo;
use super::sources::{SourceStatus, Sources};
use super::writes::Writes;
use crate::limits::BROKEN_INVARIANT_DELAY;
use crate::metrics::Metrics;

/// Metrics, states and log lines about the work of the engine.
pub(crate) struct Reports {
    metrics: Metrics,
    status: watch::Sender<Vec<SourceStatus>>,
    /// Name of each cluster, with the reported start of its oldest unfinished write.
    oldest: Vec<(String, Option<Instant>)>,
}

impl Reports {
    pub(crate) fn new(metrics: Metrics, status: watch::Sender<Vec<SourceStatus>>, sides: &[String]) -> Self {
        Self { metrics, status, oldest: sides.iter().map(|side| (side.clone(), None)).collect() }
    }

    pub(crate) const fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Shows the states of all views.
    pub(crate) fn states<S: Copy + Ord + Debug, O: Clone>(&self, sources: &Sources<S, O>) {
        let mut statuses = Vec::new();
        for (info, state) in sources.states() {
            self.metrics.watch_state(&info.side, info.label, state);
            let SourceInfo { side, resource, optional, .. } = info;
            let (cluster, resource, optional) = (side.clone(), *resource, *optional);
            statuses.push(SourceStatus { cluster, resource, optional, state });
        }
        self.status.send_replace(statuses);
    }

    pub(crate) fn undecodable<S>(&self, info: &SourceInfo<S>, undecodable: &Undecodable) {
        let (side, kind) = (&info.side, info.resource.kind);
        self.metrics.undecodable(side, kind);
        tracing::warn!(
            side,
            kind,
            namespace = &*undecodable.name.namespace,
            name = &*undecodable.name.name,
            why = undecodable.why,
            "an object is undecodable: its last decoded state stays in force. Repair or delete the object"
        );
    }

    pub(crate) fn clock_set(microseconds: i64) {
        #[allow(clippy::cast_precision_loss, reason = "for people")]
        let seconds = microseconds as f64 / 1e6;
        tracing::warn!(seconds, "the wall clock jumped by {seconds:+.1} s: times written before differ by that much");
    }

    pub(crate) fn broken_invariant(&self, key: &impl Debug, broken: &Broken) {
        let invariant = broken.invariant.as_str();
        tracing::error!(
            ?key,
            invariant,
            "bug in this agent: {broken}. The plan is dropped, and the key is planned again after \
             {BROKEN_INVARIANT_DELAY:?}. Report this line. If the object must change now, change it by hand"
        );
        self.metrics.broken_invariant(invariant);
    }

    /// Shows the latency of a plan that has sent a write.
    pub(crate) fn reacted(&self, change: OldestChange, planning: Duration, now: Timestamp) {
        self.metrics.shared(change.spent + planning);
        self.metrics.reacted(now.since(change.at));
    }

    /// Shows that a fight has begun or is over. `by` is the name of the other writer, or `None` if the fight is over.
    pub(crate) fn fight<S>(info: &SourceInfo<S>, name: &ObjectName, by: Option<&str>) {
        let (side, kind, namespace, name) = (&info.side, info.resource.kind, &*name.namespace, &*name.name);
        match by {
            None => tracing::info!(
                side,
                kind,
                namespace,
                name,
                "no other writer undoes the agent's writes to this object any more"
            ),
            Some(by) => tracing::warn!(
                side,
                kind,
                namespace,
                name,
                by,
                "another writer undoes the agent's writes to this object, so the agent repairs it once a minute only; \
                 stop that writer (the audit log has its requests)"
            ),
        }
    }

    /// Counts and logs a write that has ended.
    pub(crate) fn wrote<K, S, R, O>(&self, info: &SourceInfo<S>, sent: &Sent<K, S, R>, outcome: &Outcome<O>) {
        let (side, kind) = (info.side.as_str(), info.resource.kind);
        let (verb, result) = (sent.request.verb.as_str(), &outcome.result);
        self.metrics.wrote(side, kind, verb, result.as_str(), outcome.took);
        let (namespace, name) = (&*sent.request.name.namespace, &*sent.request.name.name);
        // A macro, because tracing needs the level of each log line at compile time.
        macro_rules! log {
            ($level:ident, $($why:ident,)? $text:literal) => {
                tracing::$level!(side, kind, namespace, name, verb, $($why,)? $text)
            };
        }
        match result {
            WriteResult::Done => log!(debug, "written"),
            WriteResult::Conflict { message: why } => {
                log!(debug, why, "the object has changed since the plan: its key is planned again");
            }
            WriteResult::Rejected { message: why, .. } => log!(
                error,
                why,
                "a write was rejected for its content; the agent retries every 10 minutes, and when the content changes"
            ),
            WriteResult::Denied { reason, message: why, .. } if reason == NAMESPACE_TERMINATING => {
                log!(info, why, "nothing is created in a namespace that is being deleted");
            }
            WriteResult::Denied { message: why, .. } => {
                log!(warn, why, "a write was denied; check the agent's role, and that the namespace and the CRD exist");
            }
            WriteResult::Failed { message: why, .. } => log!(warn, why, "a write failed; the agent retries"),
        }
    }

    /// Shows that this replica begins to lead: it has no unfinished writes yet.
    pub(crate) fn leads(&self) {
        self.oldest.iter().for_each(|(side, _)| self.metrics.oldest_unfinished(side, None));
    }

    /// Shows no unfinished writes, because another replica leads.
    pub(crate) fn step_down(&mut self) {
        self.oldest.iter_mut().for_each(|(_, reported)| *reported = None);
        self.metrics.no_unfinished();
    }

    /// Shows the oldest unfinished write of each cluster, and the lengths of the queues.
    pub(crate) fn queues<K: Clone + Ord, S: Copy + Ord>(
        &mut self,
        writes: &Writes<K, S>,
        depths: impl IntoIterator<Item = (&'static str, usize)>,
    ) {
        for (cluster, (side, reported)) in self.oldest.iter_mut().enumerate() {
            let oldest = writes.oldest_unfinished(cluster);
            if oldest != *reported {
                *reported = oldest;
                self.metrics.oldest_unfinished(side, oldest);
            }
        }
        for (queue, length) in depths.into_iter().chain(writes.depths()) {
            self.metrics.queue_depth(queue, length);
        }
    }
}
