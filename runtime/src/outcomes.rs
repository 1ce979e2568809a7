//! Consequences of a finished write: stores the response in the agent's view, plans the retry, and requeues the keys that waited
//! for the write.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::{Arrival, Engine, target_of};
use crate::events::Occasion;
use crate::fights::{Requested, State};
use crate::limits::RETRY_AFTER_LONGEST;
use crate::logic::{Logic, NAMESPACE_TERMINATING, Request, SourceSpec, Verb, WriteFailure};
use crate::retries::{Attempt, Class};
use crate::slots::{ClusterIndex, Target};
use crate::writer::{Outcome, Seen, WriteResult};

/// Finished write: its outcome, and what the engine knew about the object when the write began.
pub(crate) struct Ended<L: Logic> {
    pub(crate) key: L::Key,
    /// Hash of the write's content, without its precondition.
    pub(crate) content: u64,
    pub(crate) attempt: Attempt,
    pub(crate) requested: Requested,
    pub(crate) known_before: State,
    pub(crate) request: Request<L::Source, L::Receipt>,
    pub(crate) outcome: Outcome<L::Object>,
}

impl<L: Logic> Engine<L> {
    /// Handles the outcome of a write: stores the object of the response, plans the retry, and requeues keys that waited.
    pub(crate) fn on_ended(&mut self, mut ended: Ended<L>) {
        let target = target_of(&ended.request);
        let Some(source) = self.sources.get(&target.source) else {
            return;
        };
        let (spec, cluster) = (Arc::clone(&source.spec), source.cluster);
        self.follow_clock();
        ended.outcome.at = ended.outcome.at.min(self.clock.now());
        self.count(&spec, &ended);
        self.learn_from_answer(&target, &ended);
        let mut keys = Vec::new();
        self.logic.ended(&ended.key, &ended.request, ended.outcome.end(), ended.outcome.at, &mut keys);
        self.requeue(keys);
        if let Some(failure) = failure(&spec, &ended) {
            self.logic.not_done(&ended.key, &failure, ended.outcome.at);
        }
        let write = (target.clone(), ended.request.verb.as_str());
        match ended.outcome.result {
            // fault A17.1: self.unfinished.done(&ended.key, &write) ~> {}
            WriteResult::Done => self.unfinished.done(&ended.key, &write),
            _ => self.unfinished.failed(&ended.key, &write),
        }
        let waiting = self.slots.end(cluster, &target);
        self.settle_retries(&spec, cluster, &target, &ended);
        if ended.outcome.result == WriteResult::Done {
            self.note_in_fights(&target, &ended);
        }
        if ended.outcome.result == WriteResult::Done
            && let Some(receipt) = ended.request.receipt
        {
            for record in self.logic.written(receipt, ended.outcome.at) {
                self.record(&record, Occasion::Done);
            }
        }
        self.requeue(waiting);
        if matches!(ended.request.verb, Verb::Create { .. }) {
            self.made(&ended.key);
        }
        self.requeue([ended.key]);
    }

    fn note_in_fights(&mut self, target: &Target<L::Source>, ended: &Ended<L>) {
        let after = match &ended.outcome.seen {
            Seen::Object(observed) => Some((observed.uid.clone(), observed.resource_version)),
            Seen::Gone | Seen::Nothing => None,
        };
        let states = (&ended.known_before, &after);
        self.fights.written(&ended.key, target, ended.requested, states, Instant::now());
    }

    fn made(&mut self, key: &L::Key) {
        if let Some(count) = self.creating.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.creating.remove(key);
            }
        }
    }

    fn learn_from_answer(&mut self, target: &Target<L::Source>, ended: &Ended<L>) {
        // Ignore a response for an unsubscribed source: its view is empty and has no version to compare with.
        let Some(source) = self.sources.get_mut(&target.source).filter(|source| source.is_wanted()) else {
            return;
        };
        let mut news = Vec::new();
        match &ended.outcome.seen {
            Seen::Object(observed) => {
                let is_current = source.versions.answered(observed.clone(), &mut news);
                // Only a response to the write itself proves that the same write would change nothing now. A response to a GET
                // does not.
                if is_current && ended.outcome.result == WriteResult::Done && ended.outcome.is_answered {
                    source.versions.remember_echo(&target.name, ended.content);
                }
            }
            Seen::Gone => {
                let meant = match &ended.request.verb {
                    Verb::Delete { uid } => Some(uid),
                    Verb::Create { .. } | Verb::Patch { .. } | Verb::Replace { .. } => {
                        ended.known_before.as_ref().map(|(uid, _)| uid)
                    }
                };
                if let Some(uid) = meant {
                    source.versions.gone(&target.name, uid, &mut news);
                }
            }
            Seen::Nothing => {}
        }
        self.learn(target.source, news, Arrival { at: ended.outcome.at, decoding: Duration::ZERO });
    }

    fn settle_retries(
        &mut self,
        spec: &SourceSpec<L>,
        cluster: ClusterIndex,
        target: &Target<L::Source>,
        ended: &Ended<L>,
    ) {
        let (now, write) = (Instant::now(), (target.clone(), ended.request.verb.as_str()));
        let (class, retry_after) = match &ended.outcome.result {
            WriteResult::Done => return self.retries.succeeded(&ended.key, &write),
            // After a conflict whose cause is now in the view, the next plan can succeed. If the view did not change, an
            // immediate retry would fail again.
            // fault Q4.2: self.known(target) != ended.known_before ~> true
            WriteResult::Conflict { .. } if self.known(target) != ended.known_before => (Class::Conflict, None),
            WriteResult::Conflict { .. } => (Class::Ordinary, None),
            // fault Q3.3: Class::Rejected ~> Class::Ordinary
            WriteResult::Rejected { .. } => (Class::Rejected, None),
            WriteResult::Denied { .. } => (Class::Denied, None),
            WriteResult::Failed { retry_after, .. } => (Class::Ordinary, *retry_after),
        };
        let is_news = self.retries.is_news(&ended.key, &write, ended.attempt, class);
        self.retries.failed(&ended.key, &write, ended.attempt, class, retry_after, now);
        if let Some(requested) = retry_after {
            // fault Q5.2: self.slots.pause(cluster, now + requested.min(RETRY_AFTER_LONGEST)) ~>
            // fault Q5.3: requested.min(RETRY_AFTER_LONGEST) ~> requested
            self.slots.pause(cluster, now + requested.min(RETRY_AFTER_LONGEST));
        }
        // fault Q11.4: is_news ~> true
        if is_news {
            self.report_failure(spec, ended);
        }
    }

    /// Asks the agent for the Events about a write that failed, and records them.
    fn report_failure(&mut self, spec: &SourceSpec<L>, ended: &Ended<L>) {
        let records = match &ended.outcome.result {
            WriteResult::Rejected { status, reason, message } => {
                self.logic.rejected(&ended.key, &write_failure(spec, ended, *status, reason, message))
            }
            WriteResult::Denied { status, reason, message } => {
                self.logic.failed(&ended.key, &write_failure(spec, ended, *status, reason, message))
            }
            WriteResult::Failed { message, .. } => {
                self.logic.failed(&ended.key, &write_failure(spec, ended, 0, "", message))
            }
            WriteResult::Done | WriteResult::Conflict { .. } => Vec::new(),
        };
        for record in records {
            self.record(&record, Occasion::NotDone);
        }
    }

    fn count(&self, spec: &SourceSpec<L>, ended: &Ended<L>) {
        let (cluster, kind) = (spec.cluster.name.as_str(), spec.resource.kind);
        let (verb, result) = (ended.request.verb.as_str(), &ended.outcome.result);
        self.metrics.wrote(cluster, kind, verb, result.as_str(), ended.outcome.took);
        let (namespace, name) = (&*ended.request.name.namespace, &*ended.request.name.name);
        // A macro, because tracing needs the level of each log line at compile time.
        macro_rules! log {
            ($level:ident, $($why:ident,)? $text:literal) => {
                tracing::$level!(side = cluster, kind, namespace, name, verb, $($why,)? $text)
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
}

/// Returns the description of a failed write for the agent. `None` if the write succeeded.
fn failure<L: Logic>(spec: &SourceSpec<L>, ended: &Ended<L>) -> Option<WriteFailure<L::Source>> {
    match &ended.outcome.result {
        WriteResult::Done => None,
        WriteResult::Conflict { message } => Some(write_failure(spec, ended, 409, "", message)),
        WriteResult::Rejected { status, reason, message } => Some(write_failure(spec, ended, *status, reason, message)),
        WriteResult::Denied { status, reason, message } => Some(write_failure(spec, ended, *status, reason, message)),
        WriteResult::Failed { message, .. } => Some(write_failure(spec, ended, 0, "", message)),
    }
}

fn write_failure<L: Logic>(
    spec: &SourceSpec<L>,
    ended: &Ended<L>,
    status: u16,
    reason: &str,
    message: &str,
) -> WriteFailure<L::Source> {
    WriteFailure {
        source: spec.source,
        cluster: spec.cluster.name.clone(),
        kind: spec.resource.kind.to_owned(),
        name: ended.request.name.clone(),
        verb: ended.request.verb.as_str(),
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}
