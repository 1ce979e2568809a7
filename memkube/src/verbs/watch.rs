//! Watch: what happened since a resourceVersion, and what happens.
//!
//! A watch has no queue of its own: it holds a place in its table's event log and reads on from there when it is polled.
//! One that reads so slowly that the log forgets what it has not read ends, as a slow watch of kube-apiserver does.

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

/// Before its end a watch says once more where it is.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// A watch that has begun.
pub(crate) struct Watch {
    server: MemKube,
    resource: ResourceId,
    /// Empty: all.
    namespace: String,
    selection: Selection,
    encoder: Encoder,
    /// The objects that there were, as far as they were not sent.
    initial: VecDeque<Arc<Stored>>,
    /// Say when all of them were sent.
    end_of_initial: bool,
    /// What happened up to here was read.
    cursor: u64,
    /// What a bookmark must be newer than: where the watch began, and what had happened by then.
    known: u64,
    /// Of the store when it began; it ends with it.
    incarnation: u64,
    changed: Arc<Notify>,
    /// Filled when its table is no more.
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

/// What a watch does next.
enum Step {
    Say(Bytes),
    /// From when it is this step's turn.
    Wait(Duration),
    WaitUntil(Instant),
    Cut,
    FallSilent,
    End,
}

/// How much of the log was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    /// A turn's worth; there may be more.
    Some,
    /// All that there is now.
    All,
    /// All, and nothing will follow.
    AllThereWillBe,
}

/// Why a watch stopped waiting.
enum Woken {
    Cut,
    FallSilent,
    Deadline,
    Bookmark,
    Waited,
}

/// Counts an open watch for as long as it lives.
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

    /// The next chunk of the answer; none at its end.
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
                    // The watch ends before what is too far away to be told.
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

    /// A chunk and what may be said at once after it, as one.
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

    /// Finds something to do, or waits until there is.
    async fn fill(&mut self) {
        let changed = Arc::clone(&self.changed);
        let notified = changed.notified();
        tokio::pin!(notified);
        // Registered before the log is read, so that no change falls between.
        notified.as_mut().enable();
        // Of what is read in one turn there may be nothing that this watch is to be told.
        while self.collect() && self.steps.is_empty() {}
        if self.steps.is_empty() {
            let woken = self.wait(notified).await;
            self.heed(&woken);
        }
    }

    /// Waits, and goes on with it after what only interrupts.
    async fn wait_until(&mut self, until: Instant) {
        let woken = self.wait(tokio::time::sleep_until(until)).await;
        if !matches!(woken, Woken::Waited) {
            self.steps.push_front(Step::WaitUntil(until));
        }
        self.heed(&woken);
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

    fn heed(&mut self, woken: &Woken) {
        match woken {
            Woken::Cut => self.steps.push_front(Step::Cut),
            Woken::FallSilent => self.steps.push_front(Step::FallSilent),
            Woken::Deadline => self.steps = VecDeque::from([Step::End]),
            Woken::Bookmark => self.bookmark(),
            Woken::Waited => {}
        }
    }

    /// Says nothing more; it can still be cut.
    async fn fall_silent(&mut self) {
        self.silent = true;
        (&mut self.cut).await;
        self.steps.push_front(Step::Cut);
    }

    fn bookmark(&mut self) {
        self.plan_bookmark();
        // What it has not read yet comes first; the next bookmark tells of it.
        if !self.steps.is_empty() || !self.initial.is_empty() {
            return;
        }
        // As in kube-apiserver's cache, a kind moves on with its own changes only, and one that did not has no bookmark.
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
        let next = now + self.server.0.bookmark_interval;
        let last = self.deadline.checked_sub(LAST_BOOKMARK).filter(|last| *last > now);
        self.next_bookmark = last.map_or(next, |last| next.min(last));
    }

    /// Turns what is in the log into steps, a limited number at once. Returns whether there may be more.
    fn collect(&mut self) -> bool {
        let server = self.server.clone();
        let state = server.0.state.lock();
        let ended = self.ended.get().is_some();
        // What is registered now may be another kind of the same name.
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
        // All that is known of the other kinds' changes is that they are none of this kind.
        self.cursor = self.cursor.max(state.store.revision());
        if over { Read::AllThereWillBe } else { Read::All }
    }

    /// Takes an event's fate into the steps.
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
