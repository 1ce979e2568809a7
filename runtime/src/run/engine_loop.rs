//! Loop of the engine: passes inputs to the engine, carries out its actions, and lets it plan. At the end, waits for
//! the writes in flight.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet, yield_now};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::clock::Clock;
use crate::engine::action::{Action, InquiryOf, SentOf};
use crate::engine::leadership::Leadership;
use crate::engine::logic::{Logic, Request};
use crate::engine::message::WatchMessage;
use crate::engine::outcome::{Outcome, Reread};
use crate::engine::state::Engine;
use crate::io::events::Recorder;
use crate::io::source::SourceSpec;
use crate::io::{watch as watches, writer};
use crate::limits::{
    DRAIN_TIMEOUT, LAST_WRITES_IN_FLIGHT, LONGEST_SLEEP, PLANS_PER_TURN, STOP_ANNOUNCEMENT_TIMEOUT, TURN,
    WATCH_MESSAGES_PER_TURN,
};
use crate::process::shutdown::Shutdown;
use crate::tasks::unless_panicked;
use fleetnet_types::ObjectName;

/// Inputs of the engine from outside: watch messages, messages of other parts of the process, and the stop request.
pub(crate) struct Inputs<L: Logic> {
    pub(crate) messages: mpsc::Receiver<WatchMessage<L::Source, L::Object>>,
    pub(crate) inbox: mpsc::Receiver<L::Message>,
    pub(crate) shutdown: Shutdown,
}

/// Reason why an agent stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Requested,
    ElectionEnded,
    WatchesEnded,
}

/// Result of the engine's loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    pub stop: Stop,
    /// True if no write of this agent is in flight any more, so that the Leases may be released.
    pub drained: bool,
}

/// Write that has ended, with its outcome.
type Written<L> = (Box<SentOf<L>>, Outcome<<L as Logic>::Object>);

/// Task that owns an engine and its requests.
pub(crate) struct EngineLoop<L: Logic> {
    engine: Engine<L>,
    specs: BTreeMap<L::Source, Arc<SourceSpec<L>>>,
    recorder: Recorder,
    clock: Clock,
    leadership: watch::Receiver<Leadership>,
    writes: JoinSet<Written<L>>,
    inquiries: JoinSet<(InquiryOf<L>, String)>,
    rereads: JoinSet<(ObjectName, Reread<L::Object>)>,
}

impl<L: Logic> EngineLoop<L> {
    pub(crate) fn new(
        engine: Engine<L>,
        specs: &[Arc<SourceSpec<L>>],
        recorder: Recorder,
        clock: Clock,
        leadership: watch::Receiver<Leadership>,
    ) -> Self {
        let specs = specs.iter().map(|spec| (spec.source, Arc::clone(spec))).collect();
        let (writes, inquiries, rereads) = (JoinSet::new(), JoinSet::new(), JoinSet::new());
        Self { engine, specs, recorder, clock, leadership, writes, inquiries, rereads }
    }

    /// Runs until the engine must stop, then waits for the writes in flight. Returns the agent's logic as it then is.
    pub(crate) async fn run(mut self, mut inputs: Inputs<L>) -> (L, Finished) {
        let stop = loop {
            if inputs.shutdown.is_requested() {
                break Stop::Requested;
            }
            self.take_what_is_there(&mut inputs);
            let leads = self.leadership.borrow_and_update().may_write();
            if leads {
                self.engine.take_over();
                self.plan_some();
            } else {
                self.engine.step_down();
                self.leave_some_to_leader();
            }
            self.engine.report();
            if self.engine.can_plan(leads, Instant::now()) {
                // Let the tasks of writes and watches run before the next pass of this loop. On a single thread, they
                // would not run otherwise.
                yield_now().await;
                continue;
            }
            if let Some(stop) = self.wait(&mut inputs, leads).await {
                break stop;
            }
        };
        let drained = self.drain().await;
        if stop == Stop::Requested && drained && self.engine.is_leading() {
            self.write_last_plans().await;
        }
        (self.engine.into_logic(), Finished { stop, drained })
    }

    /// Carries out the actions that the engine wants.
    fn act(&mut self) {
        while let Some(action) = self.engine.next_action() {
            match action {
                Action::Write(sent) => {
                    let Some(spec) = self.specs.get(&sent.request.source).map(Arc::clone) else { continue };
                    let (clock, leadership) = (self.clock.clone(), self.leadership.clone());
                    self.writes.spawn(async move {
                        let request = &sent.request;
                        let outcome = writer::carry_out(spec, &request.name, &request.verb, clock, leadership).await;
                        (sent, outcome)
                    });
                }
                Action::Inquire(inquiry) => {
                    let Some(spec) = self.specs.get(&inquiry.turn.target.source).map(Arc::clone) else { continue };
                    self.inquiries.spawn(async move {
                        let rivals = writer::rivals(spec, &inquiry.turn.target).await;
                        (inquiry, rivals)
                    });
                }
                Action::Read(source, name) => {
                    let Some(spec) = self.specs.get(&source) else { continue };
                    self.rereads.spawn(writer::read(Arc::clone(spec), name));
                }
                Action::Record(event, occasion) => {
                    let Some(spec) = self.specs.get(&event.source) else { continue };
                    self.recorder.record(spec, &event, occasion);
                }
            }
        }
    }

    /// Handles all finished writes and at most [`WATCH_MESSAGES_PER_TURN`] watch messages before the next plans. So a
    /// burst of messages about one key costs one plan.
    fn take_what_is_there(&mut self, inputs: &mut Inputs<L>) {
        while let Some(written) = self.writes.try_join_next() {
            self.on_written(written);
        }
        while let Some(answer) = self.inquiries.try_join_next() {
            self.on_inquired(answer);
        }
        while let Some(read) = self.rereads.try_join_next() {
            self.on_reread(read);
        }
        let begun = Instant::now();
        for _ in 0..WATCH_MESSAGES_PER_TURN {
            if begun.elapsed() >= TURN {
                break;
            }
            let Ok(message) = inputs.messages.try_recv() else { break };
            self.on_watch(message);
        }
        for _ in 0..WATCH_MESSAGES_PER_TURN {
            if begun.elapsed() >= TURN {
                break;
            }
            let Ok(message) = inputs.inbox.try_recv() else { break };
            self.on_message(message);
        }
    }

    fn plan_some(&mut self) {
        let now = Instant::now();
        self.engine.requeue_due(now);
        self.act();
        for _ in 0..PLANS_PER_TURN {
            if now.elapsed() >= TURN || !self.engine.plan_next(now) {
                break;
            }
            self.act();
        }
    }

    fn leave_some_to_leader(&mut self) {
        let begun = Instant::now();
        for _ in 0..PLANS_PER_TURN {
            if begun.elapsed() >= TURN || !self.engine.leave_next_to_leader() {
                break;
            }
        }
    }

    /// Waits for the next input or timer and handles it. Returns a reason to stop the engine's loop, or `None` to
    /// continue.
    async fn wait(&mut self, inputs: &mut Inputs<L>, leads: bool) -> Option<Stop> {
        let now = Instant::now();
        let timer = if leads { self.engine.next_timer(now) } else { None };
        let next_timer_at = timer.unwrap_or(now + LONGEST_SLEEP).min(now + LONGEST_SLEEP);
        tokio::select! {
            biased;
            () = inputs.shutdown.requested() => {}
            // If the task that renews the Lease has ended, this process must not continue as the leader.
            changed = self.leadership.changed() => if changed.is_err() {
                return Some(Stop::ElectionEnded);
            },
            Some(written) = self.writes.join_next() => self.on_written(written),
            Some(answer) = self.inquiries.join_next() => self.on_inquired(answer),
            Some(read) = self.rereads.join_next() => self.on_reread(read),
            message = inputs.messages.recv() => match message {
                Some(message) => self.on_watch(message),
                None if inputs.shutdown.is_requested() => {}
                None => return Some(Stop::WatchesEnded),
            },
            Some(message) = inputs.inbox.recv() => self.on_message(message),
            () = sleep_until(next_timer_at) => {}
        }
        None
    }

    fn on_watch(&mut self, message: WatchMessage<L::Source, L::Object>) {
        watches::log(&message);
        self.engine.on_watch(message);
        self.act();
    }

    fn on_message(&mut self, message: L::Message) {
        self.engine.on_message(message);
        self.act();
    }

    fn on_written(&mut self, joined: Result<Written<L>, JoinError>) {
        match unless_panicked(joined) {
            Ok((sent, outcome)) => self.engine.on_written(*sent, outcome),
            Err(error) => tracing::error!(%error, "a write was cancelled"),
        }
        self.act();
    }

    fn on_inquired(&mut self, joined: Result<(InquiryOf<L>, String), JoinError>) {
        match unless_panicked(joined) {
            Ok((inquiry, by)) => self.engine.on_inquired(inquiry, by),
            Err(error) => tracing::error!(%error, "a look at an object was cancelled"),
        }
        self.act();
    }

    fn on_reread(&mut self, joined: Result<(ObjectName, Reread<L::Object>), JoinError>) {
        self.engine.on_reread(unless_panicked(joined).ok());
        self.act();
    }

    /// Waits for the writes in flight, so that none of them is executed after another process has taken over. Returns
    /// true if all of them have ended.
    async fn drain(&mut self) -> bool {
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        while !self.writes.is_empty() {
            match timeout_at(deadline, self.writes.join_next()).await {
                Ok(Some(joined)) => self.on_written(joined),
                Ok(None) => break,
                Err(_) => {
                    tracing::warn!(
                        left = self.writes.len(),
                        "writes did not end within {DRAIN_TIMEOUT:?} and are abandoned"
                    );
                    self.writes.abort_all();
                    return false;
                }
            }
        }
        true
    }

    /// Sends the agent's last writes, if the servers respond in time.
    async fn write_last_plans(&mut self) {
        let requests = self.engine.last_requests();
        let begin = |request: Request<L::Source, L::Receipt>| {
            let (clock, leadership) = (self.clock.clone(), self.leadership.clone());
            let spec = Arc::clone(self.specs.get(&request.source)?);
            Some(async move { writer::carry_out(spec, &request.name, &request.verb, clock, leadership).await })
        };
        let writes: Vec<_> = requests.into_iter().filter_map(begin).map(|write| write.map(drop).boxed()).collect();
        let written = stream::iter(writes).buffer_unordered(LAST_WRITES_IN_FLIGHT).collect::<()>();
        if timeout(STOP_ANNOUNCEMENT_TIMEOUT, written).await.is_err() {
            tracing::warn!(
                "the last writes of this agent did not end within {STOP_ANNOUNCEMENT_TIMEOUT:?} and are abandoned"
            );
        }
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
