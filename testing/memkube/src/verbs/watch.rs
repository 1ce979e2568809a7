//! The verb watch: sends the changes since a resourceVersion, and all later changes.
//!
//! A watch has no queue. A watch has a position in the event log of its resource, and reads the log when the client can
//! receive more events. A slow watch ends if the event log drops changes that the watch has not read, as in
//! kube-apiserver.

mod begin;
mod events;

use crate::faults::{Fate, WatchFaults};
use crate::limits;
use crate::registry::ResourceId;
use crate::selector::Selection;
use crate::server::{MemKube, State};
use crate::service::{BoxError, Content, Reply};
use crate::store::{Ended, Stored, Table};
use crate::verbs::encode::Encoder;
use bytes::{Bytes, BytesMut};
use events::Event;
pub(crate) use events::error_line;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Time from the last bookmark of a watch to the end of the watch.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// An open watch.
pub(crate) struct Watch {
    server: MemKube,
    resource: ResourceId,
    /// Namespace of the watch. Empty for all namespaces.
    namespace: String,
    selection: Selection,
    encoder: Encoder,
    /// Initial objects that the watch has not sent.
    initial: VecDeque<Arc<Stored>>,
    /// True until the watch has sent the bookmark after the initial objects.
    end_of_initial: bool,
    /// Revision up to which the watch has read the event log.
    cursor: u64,
    /// Revision that the client already knows when the watch starts. Only newer bookmarks are sent.
    known: u64,
    /// Number of restores from a backup at the start of the watch. The watch ends when the server's number changes.
    incarnation: u64,
    changed: Arc<Notify>,
    /// Cell that gets the event log of the resource when the resource is removed. Empty until then.
    ended: Arc<OnceLock<Ended>>,
    bookmarks: bool,
    next_bookmark: Instant,
    deadline: Instant,
    steps: VecDeque<Step>,
    faults: Option<Box<dyn WatchFaults>>,
    cut: BoxFuture<'static, ()>,
    silence: BoxFuture<'static, ()>,
    silent: bool,
    over: bool,
    _open: Open,
}

/// Next action of a watch. The watch executes its steps in order.
enum Step {
    Say(Bytes),
    /// Wait for this duration. It begins when the watch reaches this step.
    Wait(Duration),
    WaitUntil(Instant),
    Cut,
    FallSilent,
    End,
}

/// Progress of reading the event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    /// The watch has read [`limits::CHANGES_PER_TURN`] changes. The log may have more changes.
    Some,
    /// The watch has read all current changes.
    All,
    /// The watch has read all changes, and the log will have no more changes.
    AllThereWillBe,
}

/// Reason why a watch stopped waiting.
enum Woken {
    Cut,
    FallSilent,
    Deadline,
    Bookmark,
    Waited,
}

/// Entry in the count of open watches. Dropping this value decrements the count.
struct Open(MemKube);

impl Open {
    fn count(server: &MemKube, state: &mut State) -> Self {
        state.watches += 1;
        Self(server.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.0.state.lock().watches -= 1;
    }
}

impl Watch {
    pub(crate) fn into_reply(self: Box<Self>) -> Reply {
        let stream = futures::stream::unfold(self, Self::turn);
        Reply::new(200, Content::Watch(stream.boxed()))
    }

    /// Returns the next chunk of the response, together with the watch. `None` at the end of the watch.
    async fn turn(mut self: Box<Self>) -> Option<(Result<Bytes, BoxError>, Box<Self>)> {
        loop {
            if self.over {
                return None;
            }
            match self.steps.pop_front() {
                Some(Step::Say(bytes)) => {
                    let chunk = self.with_those_that_follow(bytes);
                    return Some((Ok(chunk), self));
                }
                Some(Step::Wait(duration)) => {
                    // If the end of the wait is too late for an `Instant`, it is after the deadline. Then wait until
                    // the deadline, at which the watch ends.
                    let until = Instant::now().checked_add(duration).unwrap_or(self.deadline);
                    self.steps.push_front(Step::WaitUntil(until));
                }
                Some(Step::WaitUntil(until)) => self.wait_until(until).await,
                Some(Step::Cut) => {
                    self.over = true;
                    return Some((Err("connection reset by peer (a fault that was asked for)".into()), self));
                }
                Some(Step::FallSilent) => self.fall_silent().await,
                Some(Step::End) => return None,
                None => self.fill().await,
            }
        }
    }

    /// Joins a chunk with the chunks that directly follow, so that they are sent together.
    fn with_those_that_follow(&mut self, first: Bytes) -> Bytes {
        if !matches!(self.steps.front(), Some(Step::Say(_))) {
            return first;
        }
        let mut chunk = BytesMut::from(&first[..]);
        while let Some(Step::Say(_)) = self.steps.front() {
            if let Some(Step::Say(bytes)) = self.steps.pop_front() {
                chunk.extend_from_slice(&bytes);
            }
        }
        chunk.freeze()
    }

    /// Adds steps for new changes. If there are no new changes, waits for a change, a bookmark or the end of the watch.
    async fn fill(&mut self) {
        let changed = Arc::clone(&self.changed);
        let notified = changed.notified();
        tokio::pin!(notified);
        // Register for changes before reading the log, so that the watch misses no change.
        notified.as_mut().enable();
        // Collect again if the selectors of the watch matched none of the changes that were read.
        while self.collect() && self.steps.is_empty() {}
        if self.steps.is_empty() {
            let woken = self.wait(notified).await;
            self.handle_wakeup(&woken);
        }
    }

    /// Waits until a time. A bookmark can interrupt the wait. Then the watch adds this step again, and continues to
    /// wait after the bookmark.
    async fn wait_until(&mut self, until: Instant) {
        let woken = self.wait(tokio::time::sleep_until(until)).await;
        if !matches!(woken, Woken::Waited) {
            self.steps.push_front(Step::WaitUntil(until));
        }
        self.handle_wakeup(&woken);
    }

    async fn wait(&mut self, waited: impl Future<Output = ()>) -> Woken {
        let bookmark_at = if self.bookmarks { self.next_bookmark.min(self.deadline) } else { self.deadline };
        tokio::select! {
            biased;
            () = &mut self.cut => Woken::Cut,
            () = &mut self.silence, if !self.silent => Woken::FallSilent,
            () = tokio::time::sleep_until(self.deadline) => Woken::Deadline,
            () = tokio::time::sleep_until(bookmark_at), if self.bookmarks => Woken::Bookmark,
            () = waited => Woken::Waited,
        }
    }

    fn handle_wakeup(&mut self, woken: &Woken) {
        match woken {
            Woken::Cut => self.steps.push_front(Step::Cut),
            Woken::FallSilent => self.steps.push_front(Step::FallSilent),
            Woken::Deadline => self.steps = VecDeque::from([Step::End]),
            Woken::Bookmark => self.bookmark(),
            Woken::Waited => {}
        }
    }

    /// Stops sending. A fault can still end the connection of the watch.
    async fn fall_silent(&mut self) {
        self.silent = true;
        (&mut self.cut).await;
        self.steps.push_front(Step::Cut);
    }

    fn bookmark(&mut self) {
        self.plan_bookmark();
        // Send no bookmark while events wait to be sent. The next bookmark will cover these events.
        if !self.steps.is_empty() || !self.initial.is_empty() {
            return;
        }
        // As in the watch cache of kube-apiserver, only changes of the watched kind advance the revision of a bookmark.
        // Without such a change the watch sends no bookmark.
        let state = self.server.0.state.lock();
        let moved = state.store.table(&self.resource).map_or(0, Table::last).min(self.cursor);
        drop(state);
        if moved > self.known {
            let line = events::line("BOOKMARK", &[self.encoder.bookmark(moved, false)]);
            self.steps.push_back(Step::Say(line));
        }
    }

    fn plan_bookmark(&mut self) {
        let now = Instant::now();
        let next = now + limits::BOOKMARK_INTERVAL;
        let last = self.deadline.checked_sub(LAST_BOOKMARK).filter(|last| *last > now);
        self.next_bookmark = last.map_or(next, |last| next.min(last));
    }

    /// Reads changes of the event log and adds a step for each event, up to a limit. Returns true if the log may have
    /// more changes.
    fn collect(&mut self) -> bool {
        let server = self.server.clone();
        let state = server.0.state.lock();
        let ended = self.ended.get().is_some();
        // If the watched resource was removed, another resource may have its name now. Do not use the strategy of that
        // resource.
        let registered = state.registry.get(&self.resource).filter(|_| !ended);
        if state.store.incarnation() != self.incarnation || (registered.is_none() && !ended) {
            self.steps.push_back(Step::End);
            return false;
        }
        let mut found = Vec::new();
        while let Some(stored) = self.initial.pop_front() {
            found.push(Event::initial(&self.encoder, registered, &stored));
            if found.len() >= limits::CHANGES_PER_TURN {
                break;
            }
        }
        let (mut end, mut read) = (None, Read::All);
        if self.initial.is_empty() && found.len() < limits::CHANGES_PER_TURN {
            if std::mem::take(&mut self.end_of_initial) {
                end = Some(events::line("BOOKMARK", &[self.encoder.bookmark(self.cursor, true)]));
            } else {
                read = self.read_log(&state, &mut found);
            }
        }
        drop(state);
        found.into_iter().for_each(|event| self.tell(event));
        self.steps.extend(end.map(Step::Say));
        self.steps.extend((read == Read::AllThereWillBe).then_some(Step::End));
        read == Read::Some
    }

    fn read_log(&mut self, state: &State, found: &mut Vec<Event>) -> Read {
        let ended = self.ended.get();
        let changes = match (ended, state.store.table(&self.resource)) {
            (Some(ended), _) => ended.since(self.cursor, limits::CHANGES_PER_TURN),
            (None, Some(table)) => table.since(self.cursor, limits::CHANGES_PER_TURN),
            (None, None) => return Read::All,
        };
        let Ok(changes) = changes else { return Read::AllThereWillBe };
        let over = ended.is_some() && changes.is_empty();
        let registered = state.registry.get(&self.resource).filter(|_| ended.is_none());
        let more = changes.len() == limits::CHANGES_PER_TURN;
        for change in &changes {
            let here = self.namespace.is_empty() || change.after.key.namespace() == self.namespace;
            if here {
                found.extend(Event::of(&self.encoder, registered, &self.selection, change));
            }
            self.cursor = change.revision;
        }
        if more {
            return Read::Some;
        }
        // The log has no later changes of this kind, so continue after the last change of any kind.
        self.cursor = self.cursor.max(state.store.revision());
        if over { Read::AllThereWillBe } else { Read::All }
    }

    /// Adds the step that sends an event. A fault can delay, repeat or drop the event.
    fn tell(&mut self, event: Event) {
        let fate = match &mut self.faults {
            None => Fate::Deliver,
            Some(faults) => faults.event(&event.watched),
        };
        match fate {
            Fate::Deliver => self.steps.push_back(Step::Say(event.line)),
            Fate::Lose => {}
            Fate::Repeat(times) => {
                let lines = std::iter::repeat_n(event.line, times + 1);
                self.steps.extend(lines.map(Step::Say));
            }
            Fate::Hold(duration) => self.steps.extend([Step::Wait(duration), Step::Say(event.line)]),
            Fate::Fail(status) => {
                self.steps.extend([Step::Say(error_line(&status)), Step::End]);
            }
            Fate::Cut => self.steps.push_back(Step::Cut),
            Fate::Silence => self.steps.push_back(Step::FallSilent),
        }
    }
}
