//! Start of a watch.

use super::{Open, Step, Watch, error_line};
use crate::faults;
use crate::limits;
use crate::selector::Selection;
use crate::server::{MemKube, State};
use crate::status::Status;
use crate::store::Stored;
use crate::verbs::encode::Encoder;
use crate::verbs::options::{ListOptions, Wanted};
use crate::wire::Request;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Start position and initial objects of a watch.
struct Begin {
    initial: VecDeque<Arc<Stored>>,
    end_of_initial: bool,
    cursor: u64,
    /// Error to send if the event log starts after the requested resourceVersion. After the error, the watch ends.
    /// `None` if the log is long enough.
    too_old: Option<Status>,
}

impl Watch {
    pub(crate) fn begin(server: &MemKube, request: Request, seen: faults::State) -> Result<Self, Status> {
        let options = ListOptions::of(&request.query, true)?;
        let faults = server.0.settings().faults.and_then(|faults| faults.watch(&request.call));
        let mut state = server.0.state.lock();
        let selection = Selection::of(&request, &state)?;
        if state.watches >= server.0.limits.watches {
            return Err(Status::too_many_requests(1));
        }
        let resource = request.resource();
        let registered = state.registry.get(&resource).ok_or_else(Status::no_such_resource)?;
        let encoder = Encoder::new(registered, request.version(), request.form, server.0.clock.now());
        let begin = Begin::of(&state, &request, &options, &selection, seen);
        let duration = duration(&options, &mut state);
        let table = state.store.table_or_new(&resource);
        let (changed, ended, told) = (table.changed(), table.ended(), table.last());
        let incarnation = state.store.incarnation();
        // Dropping this value decrements the count of watches. So the count is correct for every return from this
        // function.
        let open = Open::count(server, &mut state);
        drop(state);
        let deadline = Instant::now() + duration;
        let mut watch = Self {
            namespace: request.namespace().to_owned(),
            resource,
            selection,
            encoder,
            initial: begin.initial,
            end_of_initial: begin.end_of_initial,
            cursor: begin.cursor,
            known: begin.cursor.max(told),
            incarnation,
            changed,
            ended,
            bookmarks: options.bookmarks,
            next_bookmark: deadline,
            deadline,
            steps: VecDeque::new(),
            cut: faults.as_ref().map_or_else(|| Box::pin(std::future::pending()) as _, |faults| faults.cut()),
            silence: faults.as_ref().map_or_else(|| Box::pin(std::future::pending()) as _, |faults| faults.silence()),
            faults,
            silent: false,
            over: false,
            server: server.clone(),
            _open: open,
        };
        if let Some(status) = begin.too_old {
            watch.steps.extend([Step::Say(error_line(&status)), Step::End]);
        }
        watch.plan_bookmark();
        Ok(watch)
    }
}

impl Begin {
    fn of(state: &State, request: &Request, options: &ListOptions, selection: &Selection, seen: faults::State) -> Self {
        let with_initial = match (options.send_initial_events, options.wanted) {
            (Some(sends), _) => sends,
            (None, Wanted::Newest | Wanted::Any) => true,
            (None, _) => false,
        };
        if with_initial {
            return Self::with_initial(state, request, options, selection, seen);
        }
        let past = state.past(request, seen).map_or(state.store.revision(), |past| past.revision);
        let cursor = match options.wanted {
            Wanted::Newest | Wanted::Any => past,
            Wanted::NotOlderThan(revision) | Wanted::Exactly(revision) => revision,
        };
        let oldest = state.store.table(&request.resource()).map_or(0, |table| table.oldest());
        let too_old =
            (cursor < oldest).then(|| Status::expired(format!("too old resource version: {cursor} ({oldest})")));
        Self { initial: VecDeque::new(), end_of_initial: false, cursor, too_old }
    }

    fn with_initial(
        state: &State,
        request: &Request,
        options: &ListOptions,
        selection: &Selection,
        seen: faults::State,
    ) -> Self {
        let namespace = request.namespace();
        let past = state.past(request, seen);
        let here = |stored: &&Arc<Stored>| namespace.is_empty() || stored.key.namespace() == namespace;
        let matching = |stored: &&Arc<Stored>| selection.matches(stored);
        let (initial, cursor) = match &past {
            Some(past) => (past.objects.values().filter(here).filter(matching).cloned().collect(), past.revision),
            None => {
                let all = state.store.list(&request.resource(), namespace);
                (all.filter(matching).cloned().collect(), state.store.revision())
            }
        };
        // kube-apiserver sends the bookmark after the initial objects also if the client did not set
        // `sendInitialEvents`.
        Self { initial, end_of_initial: options.bookmarks, cursor, too_old: None }
    }
}

/// Duration of a watch.
fn duration(options: &ListOptions, state: &mut State) -> Duration {
    options.timeout_seconds.map_or_else(
        || {
            let spread = limits::WATCH_DURATION_MIN.as_secs();
            limits::WATCH_DURATION_MIN + Duration::from_secs(state.random.below(spread))
        },
        |seconds| Duration::from_secs(seconds).min(limits::WATCH_DURATION_MAX),
    )
}
