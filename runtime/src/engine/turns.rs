//! Loop of the engine: handles inputs, plans keys while this replica leads, and waits for the next input. At the end,
//! waits for the writes in flight.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use tokio::sync::mpsc;
use tokio::task::{JoinError, yield_now};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::engine::logic::{Logic, ProcessNews, Request};
use crate::engine::message::WatchMessage;
use crate::engine::outcomes::Ended;
use crate::engine::state::Engine;
use crate::io::writer;
use crate::limits::{
    DRAIN_TIMEOUT, LAST_WRITES_IN_FLIGHT, LONGEST_SLEEP, PLANS_PER_TURN, STOP_ANNOUNCEMENT_TIMEOUT, TURN,
    WATCH_MESSAGES_PER_TURN,
};
use crate::process::shutdown::Shutdown;
use crate::tasks::unless_panicked;

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

impl<L: Logic> Engine<L> {
    /// Runs the engine's loop until it must stop, then waits for the writes in flight. Returns the agent's logic as it
    /// then is.
    pub(crate) async fn run(mut self, mut inputs: Inputs<L>) -> (L, Finished) {
        let stop = loop {
            if inputs.shutdown.is_requested() {
                break Stop::Requested;
            }
            self.take_what_is_there(&mut inputs);
            let leads = self.leadership.borrow_and_update().may_write();
            if leads {
                self.take_over();
                self.plan_some();
            } else {
                self.step_down();
                self.leave_some_to_leader();
            }
            self.report();
            let now = Instant::now();
            let can_plan = !self.queue.is_empty() && (!leads || self.slots.can_begin(now));
            if can_plan || leads && self.slots.can_reserve_waiting(now) {
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
        if stop == Stop::Requested && drained {
            self.write_last_plans().await;
        }
        (self.logic, Finished { stop, drained })
    }

    /// Handles all finished writes and at most [`WATCH_MESSAGES_PER_TURN`] watch messages before the next plans. So a
    /// burst of messages about one key costs one plan.
    fn take_what_is_there(&mut self, inputs: &mut Inputs<L>) {
        while let Some(ended) = self.writes.try_join_next() {
            self.on_joined(ended);
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
        self.follow_clock();
        let now = Instant::now();
        while let Some(key) = self.again.pop_due(now) {
            self.requeue([key]);
        }
        while let Some(key) = self.retries.pop_due(now) {
            self.requeue([key]);
        }
        let over = self.fights.tidy(now);
        self.fights_are_over(over);
        let reserved = self.slots.reserve_waiting(now);
        self.requeue(reserved);
        for _ in 0..PLANS_PER_TURN {
            // Without a free slot, no write of a plan could begin, and the key would be planned again later.
            if !self.slots.can_begin(now) || now.elapsed() >= TURN {
                break;
            }
            let Some(key) = self.queue.pop() else { break };
            self.plan(&key);
        }
    }

    fn leave_some_to_leader(&mut self) {
        let begun = Instant::now();
        for _ in 0..PLANS_PER_TURN {
            if begun.elapsed() >= TURN {
                break;
            }
            let Some(key) = self.queue.pop() else { break };
            self.leave_to_leader(&key);
        }
    }

    /// Waits for the next input or timer and handles it. Returns a reason to stop the engine's loop, or `None` to
    /// continue.
    async fn wait(&mut self, inputs: &mut Inputs<L>, leads: bool) -> Option<Stop> {
        let next_timer_at = self.next_timer(leads);
        tokio::select! {
            biased;
            () = inputs.shutdown.requested() => {}
            // If the task that renews the Lease has ended, this process must not continue as the leader.
            changed = self.leadership.changed() => if changed.is_err() {
                return Some(Stop::ElectionEnded);
            },
            Some(ended) = self.writes.join_next() => self.on_joined(ended),
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

    fn next_timer(&self, leads: bool) -> Instant {
        let longest = Instant::now() + LONGEST_SLEEP;
        if !leads {
            return longest;
        }
        let now = Instant::now();
        let resume = if self.queue.is_empty() { self.slots.next_resume(now) } else { self.slots.next_free(now) };
        [self.again.next(), self.retries.next(), resume].into_iter().flatten().fold(longest, Instant::min)
    }

    fn on_joined(&mut self, joined: Result<Ended<L>, JoinError>) {
        match unless_panicked(joined) {
            Ok(ended) => self.on_ended(ended),
            Err(error) => tracing::error!(%error, "a write was cancelled"),
        }
    }

    /// Waits for the writes in flight, so that none of them is executed after another process has taken over. Returns
    /// true if all of them have ended.
    async fn drain(&mut self) -> bool {
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        while !self.writes.is_empty() {
            match timeout_at(deadline, self.writes.join_next()).await {
                Ok(Some(joined)) => self.on_joined(joined),
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

    /// Plans the keys of the agent's last writes, and sends these writes if the servers respond in time.
    async fn write_last_plans(&mut self) {
        if self.leads != Some(true) {
            return;
        }
        let (now, mut keys) = (self.clock.now(), Vec::new());
        self.logic.process(ProcessNews::Stops, now, &mut keys);
        let keys: BTreeSet<_> = keys.into_iter().collect();
        let requests: Vec<_> = keys.iter().flat_map(|key| self.logic.plan(key, now).writes).collect();
        let begin = |request: Request<L::Source, L::Receipt>| {
            let source = self.sources.get(&request.source)?;
            Some(writer::carry_out(Arc::clone(&source.spec), request, self.clock.clone(), self.leadership.clone()))
        };
        let writes: Vec<_> = requests.into_iter().filter_map(begin).map(|write| write.map(drop).boxed()).collect();
        let written = stream::iter(writes).buffer_unordered(LAST_WRITES_IN_FLIGHT).collect::<()>();
        if timeout(STOP_ANNOUNCEMENT_TIMEOUT, written).await.is_err() {
            tracing::warn!(
                "the last writes of this agent did not end within {STOP_ANNOUNCEMENT_TIMEOUT:?} and are abandoned"
            );
        }
    }

    fn report(&mut self) {
        for (cluster, (side, reported)) in self.clusters.iter_mut().enumerate() {
            let oldest = self.unfinished.oldest(cluster);
            if oldest != *reported {
                *reported = oldest;
                self.metrics.oldest_unfinished(side, oldest);
            }
        }
        self.metrics.queue_depth("dirty", self.queue.len());
        self.metrics.queue_depth("left_to_leader", self.left_to_leader());
        self.metrics.queue_depth("again", self.again.len());
        self.metrics.queue_depth("retry", self.retries.len());
        self.metrics.queue_depth("slot", self.slots.waiting());
        self.metrics.queue_depth("in_flight", self.slots.in_flight());
    }
}
