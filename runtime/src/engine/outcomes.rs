//! Consequences of a finished write: stores the response in the agent's view, plans the retry, and requeues the keys
//! that waited for the write.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::fights::{Requested, State};
use crate::engine::logic::{
    Event, Logic, NAMESPACE_TERMINATING, Request, Urgency, Verb, WriteEnd, WriteEnded, WriteFailure, WriteNews,
};
use crate::engine::outcome::{Outcome, Seen, WriteResult};
use crate::engine::retries::{Attempt, Class};
use crate::engine::slots::{ClusterIndex, Target};
use crate::engine::state::{Arrival, Engine};
use crate::io::events::Occasion;
use crate::io::source::SourceSpec;
use crate::limits::{HEARTBEAT_RETRY_AFTER_LONGEST, RETRY_AFTER_LONGEST};
use fleetnet_types::Timestamp;

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
    /// Handles the outcome of a write: stores the object of the response, plans the retry, and requeues keys that
    /// waited.
    pub(crate) fn on_ended(&mut self, mut ended: Ended<L>) {
        let target = Target::of(&ended.request);
        let Some(source) = self.sources.get(&target.source) else {
            return;
        };
        let (spec, cluster) = (Arc::clone(&source.spec), source.cluster);
        self.follow_clock();
        ended.outcome.at = ended.outcome.at.min(self.clock.now());
        self.count(&spec, &ended);
        self.learn_from_answer(&target, &ended);
        let write = (target.clone(), ended.request.verb.as_str());
        let class = self.class_of(&target, &ended);
        let is_new = class.is_some_and(|class| self.retries.is_news(&ended.key, &write, ended.attempt, class));
        self.tell_ended(&spec, &mut ended, is_new);
        match ended.outcome.result {
            WriteResult::Done => self.unfinished.done(&ended.key, &write),
            _ => self.unfinished.failed(&ended.key, &write),
        }
        let waiting = self.slots.end(cluster, &target);
        self.settle_retries(cluster, &write, &ended, class);
        if ended.outcome.result == WriteResult::Done {
            self.note_in_fights(&target, &ended);
        }
        self.requeue(waiting);
        if matches!(ended.request.verb, Verb::Create { .. }) {
            self.made(&ended.key);
        }
        self.requeue([ended.key]);
    }

    /// Tells the agent that a write has ended, and records the Events that the agent returns.
    fn tell_ended(&mut self, spec: &SourceSpec<L>, ended: &mut Ended<L>, is_new: bool) {
        let end = ended.outcome.end();
        let is_done = matches!(end, WriteEnd::Done { .. });
        let failure = failure(spec, ended);
        let news = WriteNews::Ended(WriteEnded {
            end,
            receipt: ended.request.receipt.take().filter(|_| is_done),
            request: &ended.request,
            failure: failure.as_ref(),
            is_reported: is_new && end != WriteEnd::Conflict,
        });
        let occasion = if is_done { Occasion::Done } else { Occasion::NotDone };
        for event in self.tell_write(&ended.key, news, ended.outcome.at) {
            self.record(&event, occasion);
        }
    }

    pub(crate) fn tell_write(
        &mut self,
        key: &L::Key,
        news: WriteNews<'_, L::Source, L::Receipt>,
        at: Timestamp,
    ) -> Vec<Event<L::Source>> {
        let mut keys = Vec::new();
        let events = self.logic.write(key, news, at, &mut keys);
        self.requeue(keys);
        events
    }

    /// Returns the class of a failed write, which decides about the next attempt. `None` if the write is done.
    fn class_of(&self, target: &Target<L::Source>, ended: &Ended<L>) -> Option<Class> {
        match &ended.outcome.result {
            WriteResult::Done => None,
            // After a conflict whose cause is now in the view, the next plan can succeed. If the view did not change,
            // an immediate retry would fail again.
            WriteResult::Conflict { .. } if self.known(target) != ended.known_before => Some(Class::Conflict),
            WriteResult::Rejected { .. } => Some(Class::Rejected),
            WriteResult::Denied { .. } => Some(Class::Denied),
            WriteResult::Conflict { .. } | WriteResult::Failed { .. } => Some(Class::Ordinary),
        }
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
        let Some(source) = self.sources.get_mut(&target.source) else { return };
        let mut news = Vec::new();
        match &ended.outcome.seen {
            Seen::Object(observed) => {
                let is_current = source.versions.answered(observed.clone(), &mut news);
                // Only a response to the write itself proves that the same write would change nothing now. A response
                // to a GET does not.
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
        cluster: ClusterIndex,
        write: &(Target<L::Source>, &'static str),
        ended: &Ended<L>,
        class: Option<Class>,
    ) {
        let Some(class) = class else { return self.retries.succeeded(&ended.key, write) };
        let retry_after = match &ended.outcome.result {
            WriteResult::Failed { retry_after, .. } => *retry_after,
            _ => None,
        };
        let now = Instant::now();
        let own = match self.logic.flow(&ended.key).urgency {
            Urgency::Normal => retry_after,
            Urgency::Heartbeat => retry_after.map(|requested| requested.min(HEARTBEAT_RETRY_AFTER_LONGEST)),
        };
        self.retries.failed(&ended.key, write, ended.attempt, class, own, now);
        if let Some(requested) = retry_after {
            self.slots.pause(cluster, now + requested.min(RETRY_AFTER_LONGEST));
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
