//! One watch: lists a kind in a cluster, follows it, and continues after every failure as long as the agent runs.
//!
//! ```text
//!            +--> streaming list --+          +-- cut, silent, failed: back-off, check, then follow on from the same version
//!   start ---+   (server rejects)  +--> follow +-- ended in time: follow on at once; check first if it was quiet or early
//!            +--> list in pages ---+          +-- version too old (410), server's data went back: relist
//! ```
//!
//! Lists return the most recent state, never the cached state of resourceVersion 0. The watch remembers a version when
//! a list has ended, and then the version of each event and bookmark. So after a cut connection, the watch continues
//! without a new list and loses no event. Each watch has its own back-off.
//!
//! The check in the diagram compares the server's revision with the position of the watch. A server that was restored
//! from a backup is behind the position. A watch from the position would miss all changes before the server reaches the
//! position again. The server may also have reached it again, and own writes may be lost. So if a response has shown a
//! write that the watch has not reported, the watch lists again instead of the check.

mod conclude;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod pages;
mod position;
mod wire;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::backoff::Jitter;
use crate::clock::{Clock, ProcessorTime};
use crate::engine::logic::{FlowId, Logic, Observed, Undecodable};
use crate::engine::message::{WatchEvent, WatchMessage};
use crate::engine::versions::Progress;
use crate::errors::with_causes;
use crate::io::source::SourceSpec;
use crate::limits::{LIST_PAGE_OBJECTS, WATCH_ANSWER_TIMEOUT, WATCH_GRACE, WATCH_SHORTEST, WATCH_TIMEOUT_SECONDS};
use crate::metrics::Metrics;

use wire::{ErrorAnswer, Event, LineError, Lines};

/// Runs the watch of one source until the receiver is gone. `seed` is the seed for random timeouts and waits.
pub(crate) async fn watch<L: Logic>(
    (spec, progress): (Arc<SourceSpec<L>>, Progress),
    out: mpsc::Sender<WatchMessage<L::Source, L::Object>>,
    metrics: Metrics,
    clock: Clock,
    seed: u64,
) {
    // All watches of an agent have the same seed. The source's name makes their random waits differ.
    let name = format!("{} {} {:?}", spec.cluster.name, spec.resource, spec.namespace);
    let jitter = Jitter::new(seed ^ FlowId::of(&name).0);
    Watcher::new((&spec, progress), &out, metrics, clock, jitter).run().await;
}

/// Logs a message of a watch, at the level of traces.
pub(crate) fn log<S: Debug, O>(message: &WatchMessage<S, O>) {
    if !tracing::enabled!(tracing::Level::TRACE) {
        return;
    }
    let (read, name) = match &message.event {
        WatchEvent::ListStarted { .. } => ("a list begins", None),
        WatchEvent::Applied(object) => ("present", Some(&object.name)),
        WatchEvent::Undecodable(object) => ("present and undecodable", Some(&object.name)),
        WatchEvent::Deleted { name, .. } => ("deleted", Some(name)),
        WatchEvent::ListEnded { .. } => ("a list is complete", None),
        WatchEvent::NotServed { .. } => ("not served", None),
        WatchEvent::Failed { .. } => ("failed", None),
        WatchEvent::Resumed => ("resumed", None),
        WatchEvent::Response(object) => ("present, by a response to another agent", Some(&object.name)),
        WatchEvent::Gone { name, .. } => ("deleted, by a response to another agent", Some(name)),
    };
    let (namespace, name) = name.map_or(("", ""), |name| (&*name.namespace, &*name.name));
    tracing::trace!(source = ?message.source, read, namespace, name, "read from a watch");
}

struct Watcher<L: Logic> {
    spec: Arc<SourceSpec<L>>,
    /// Progress of the engine with this source.
    progress: Progress,
    out: mpsc::Sender<WatchMessage<L::Source, L::Object>>,
    metrics: Metrics,
    clock: Clock,
    jitter: Jitter,
    /// Version up to which every change has been reported. `None` if the watch must start with a list.
    position: Option<u64>,
    /// Number of restores of the server that any watch had noticed when this watch last requested a list.
    restores: u64,
    /// Time of the last list that followed a restore.
    restore_listed: Option<Instant>,
    /// True if the next list follows a restore, so that its version may be lower than what the engine knew.
    follows_restore: bool,
    /// True until the server rejects a streaming list (`sendInitialEvents`). Lists are then in pages.
    streams_lists: bool,
    /// True if the next list is in pages, because the last streaming list did not end.
    pages_next: bool,
    page_objects: usize,
    /// Failures in a row, since the watch last received an event.
    failures: u32,
    /// Responses with 403 or 404 in a row, since the watch last received an event.
    denials: u32,
    /// True if the engine knows that the connection is lost, and does not know yet that the watch continues.
    lost_touch: bool,
    /// True if the server may have been restored from a backup since the watch last received a version. The watch then
    /// compares the server's revision with its position before it continues.
    unchecked: bool,
}

/// Reason why a list or a watch ended.
enum End {
    /// The engine has dropped the receiver.
    EngineGone,
    /// The server ended the watch, and the last line was complete.
    InTime {
        /// True if the watch received at least one event or bookmark.
        heard: bool,
        /// True if the server ended the watch before its timeout.
        early: bool,
        /// True if the watch lasted less than [`WATCH_SHORTEST`].
        soon: bool,
    },
    /// The server no longer has the version to continue from (410).
    Expired,
    /// The server's versions are lower than before: its data went back in time.
    WentBack,
    /// Another watch of the server has noticed that its data went back in time.
    Restored,
    /// The server does not support `sendInitialEvents`.
    StreamingRejected,
    NotServed {
        status: u16,
        message: String,
    },
    Failed {
        reason: &'static str,
        message: String,
        retry_after: Option<Duration>,
    },
}

impl End {
    fn failed(reason: &'static str, message: impl Into<String>) -> Self {
        End::Failed { reason, message: message.into(), retry_after: None }
    }

    fn no_answer() -> Self {
        End::failed("no_answer", format!("no answer within {WATCH_ANSWER_TIMEOUT:?}"))
    }
}

/// Established watch request.
struct Connection {
    lines: Lines,
    /// Time at which the server should end the watch, by its `timeoutSeconds`.
    due: Instant,
    timeout_seconds: u64,
    /// Time at which the initial list ended and live changes began. `None` during the initial list.
    live_since: Option<Instant>,
    /// True if an event or bookmark has arrived since the watch was established.
    heard: bool,
}

impl<L: Logic> Watcher<L> {
    fn new(
        (spec, progress): (&Arc<SourceSpec<L>>, Progress),
        out: &mpsc::Sender<WatchMessage<L::Source, L::Object>>,
        metrics: Metrics,
        clock: Clock,
        jitter: Jitter,
    ) -> Self {
        Self {
            spec: Arc::clone(spec),
            progress,
            out: out.clone(),
            metrics,
            clock,
            jitter,
            position: None,
            restores: 0,
            restore_listed: None,
            follows_restore: false,
            streams_lists: true,
            pages_next: false,
            page_objects: LIST_PAGE_OBJECTS,
            failures: 0,
            denials: 0,
            lost_touch: false,
            unchecked: false,
        }
    }

    async fn run(mut self) {
        loop {
            let end = self.list_and_follow().await;
            match self.after(end).await {
                Some(wait) if wait.is_zero() => tokio::task::yield_now().await,
                Some(wait) => tokio::select! {
                    () = sleep(wait) => {}
                    () = self.spec.cluster.restores.noticed_since(self.restores) => {}
                },
                None => return,
            }
        }
    }

    async fn list_and_follow(&mut self) -> End {
        self.drop_doubtful_position().await;
        if let Err(end) = self.check_revision().await {
            return end;
        }
        let by_pages = !self.streams_lists || self.pages_next;
        if self.position.is_none()
            && by_pages
            && let Err(end) = self.list_by_pages().await
        {
            return end;
        }
        let mut connection = match self.connect().await {
            Ok(connection) => connection,
            Err(end) => return end,
        };
        let end = loop {
            if let Err(end) = self.take_one(&mut connection).await {
                break end;
            }
        };
        if connection.live_since.is_some_and(|since| connection.heard || since.elapsed() >= WATCH_SHORTEST) {
            self.failures = 0;
            self.denials = 0;
        }
        end
    }

    /// Opens the watch: from the known version, or with a streaming list if no version is known.
    async fn connect(&mut self) -> Result<Connection, End> {
        let timeout_seconds = self.spread_timeout_seconds();
        let request = match self.position {
            Some(after) => wire::watch_request(&self.spec, after, timeout_seconds),
            None => wire::streaming_list_request(&self.spec, timeout_seconds),
        };
        let due = Instant::now() + Duration::from_secs(timeout_seconds);
        let requested = self.progress.mark();
        let response = timeout(WATCH_ANSWER_TIMEOUT, self.spec.cluster.watches.send(request))
            .await
            .map_err(|_| End::no_answer())?
            .map_err(|error| End::failed("unreachable", with_causes(&error)))?;
        if !response.status().is_success() {
            return Err(self.end_of_error(ErrorAnswer::read(response).await));
        }
        self.heard();
        if self.position.is_none() {
            self.emit(WatchEvent::ListStarted { requested, restores: self.restores }).await?;
        } else if std::mem::take(&mut self.lost_touch) {
            self.emit(WatchEvent::Resumed).await?;
        }
        let live_since = self.position.map(|_| Instant::now());
        Ok(Connection { lines: Lines::new(response.into_body()), due, timeout_seconds, live_since, heard: false })
    }

    fn spread_timeout_seconds(&mut self) -> u64 {
        self.jitter.among(WATCH_TIMEOUT_SECONDS)
    }

    fn end_of_error(&self, error_answer: ErrorAnswer) -> End {
        let ErrorAnswer { status, message, retry_after } = error_answer;
        match status {
            StatusCode::GONE => End::Expired,
            StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => End::NotServed { status: status.as_u16(), message },
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY
                if self.position.is_none() && self.streams_lists && !self.pages_next =>
            {
                End::StreamingRejected
            }
            _ => End::Failed { reason: "refused", message, retry_after },
        }
    }

    /// Waits for one line of the watch and sends its content to the engine.
    async fn take_one(&mut self, connection: &mut Connection) -> Result<(), End> {
        let line = tokio::select! {
            biased;
            () = self.spec.cluster.restores.noticed_since(self.restores) => return Err(End::Restored),
            line = timeout_at(connection.due + WATCH_GRACE, connection.lines.next()) => line,
        };
        let line = match line {
            Ok(line) => line.map_err(|error| self.broken(&error))?,
            Err(_) => return Err(self.overdue(connection)),
        };
        let Some(line) = line else {
            return Err(self.ended(connection));
        };
        self.heard();
        let event = wire::parse_event(&line).map_err(|why| {
            // The event cannot be parsed, so its change is lost. Clear the position, so that the watch starts with a
            // new list.
            self.position = None;
            End::failed("malformed", format!("a watch event is undecodable: {why}"))
        })?;
        self.take(event, connection).await
    }

    async fn take(&mut self, event: Event<'_>, connection: &mut Connection) -> Result<(), End> {
        match event {
            Event::Applied(json) => {
                let (begun, working) = (Instant::now(), ProcessorTime::now());
                let decoded = (self.spec.decode)(json);
                let decoding = working.elapsed();
                self.metrics.decoded(begun.elapsed());
                self.applied(decoded, decoding, connection).await
            }
            Event::Deleted { name, uid, resource_version } => {
                self.advance(resource_version, connection)?;
                self.emit(WatchEvent::Deleted { name, uid, resource_version }).await
            }
            Event::Bookmark { resource_version, ends_list: true } if connection.live_since.is_none() => {
                connection.live_since = Some(Instant::now());
                self.listed(resource_version).await
            }
            Event::Bookmark { resource_version, .. } => self.advance(resource_version, connection),
            Event::Error { code: 410, .. } => Err(End::Expired),
            Event::Error { code, message } => Err(End::failed("error", format!("{code}: {message}"))),
        }
    }

    async fn applied(
        &mut self,
        decoded: Result<Observed<L::Object>, Undecodable>,
        decoding: Duration,
        connection: &mut Connection,
    ) -> Result<(), End> {
        match decoded {
            Ok(observed) => {
                self.advance(observed.resource_version, connection)?;
                self.send(decoding, WatchEvent::Applied(observed)).await
            }
            Err(undecodable) => {
                if undecodable.resource_version > 0 {
                    self.advance(undecodable.resource_version, connection)?;
                }
                self.send(decoding, WatchEvent::Undecodable(undecodable)).await
            }
        }
    }

    /// Handles the regular end of a watch: the server ended the response after a complete line.
    fn ended(&mut self, connection: &Connection) -> End {
        match connection.live_since {
            Some(since) => {
                self.heard();
                let early = Instant::now() < connection.due;
                End::InTime { heard: connection.heard, early, soon: since.elapsed() < WATCH_SHORTEST }
            }
            None => self.unfinished("the streaming list ended before it was complete"),
        }
    }

    fn overdue(&mut self, connection: &Connection) -> End {
        if connection.live_since.is_none() {
            return self.unfinished("the streaming list did not end in time");
        }
        let seconds = connection.timeout_seconds;
        End::failed("silent", format!("the server did not end the watch after the {seconds} s that it was asked for"))
    }

    /// Handles a response that ended within a line, or an event that is too long to read.
    fn broken(&mut self, error: &LineError) -> End {
        match error {
            LineError::Cut(_) => End::failed("cut", error.to_string()),
            LineError::TooLong => {
                // A watch from the same version would receive the same long event forever, and a streaming list would
                // send the same object. So list in pages, because a page may have more bytes than an event.
                self.position = None;
                self.pages_next = true;
                End::failed("too_long", format!("{error}; listing in pages instead"))
            }
        }
    }

    /// Handles a streaming list that did not end, because the server is slow or does not support streaming lists. In
    /// both cases, the next list is in pages, which arrive one by one.
    fn unfinished(&mut self, message: &str) -> End {
        self.pages_next = true;
        End::failed("list_unfinished", format!("{message}; listing in pages instead"))
    }

    async fn emit(&self, event: WatchEvent<L::Object>) -> Result<(), End> {
        self.send(Duration::ZERO, event).await
    }

    async fn send(&self, decoding: Duration, event: WatchEvent<L::Object>) -> Result<(), End> {
        let message = WatchMessage { source: self.spec.source, at: self.clock.now(), decoding, event };
        self.out.send(message).await.map_err(|_| End::EngineGone)
    }

    fn heard(&self) {
        self.metrics.watch_heard(&self.spec.cluster.name, self.spec.label);
    }

    fn restarted(&self, reason: &'static str) {
        self.metrics.watch_restarted(&self.spec.cluster.name, self.spec.label, reason);
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
