//! Implementation of the verbs.
//!
//! Each request except a watch holds the lock of the state from its first read until its commit. So requests are
//! executed one after the other.

mod bind;
mod body;
mod commit;
mod create;
mod definitions;
mod delete;
mod delete_collection;
mod encode;
mod garbage;
mod get;
mod list;
mod namespaces;
mod options;
mod page;
mod patch;
mod replace;
mod review;
mod scale;
mod token;
mod update;
mod watch;

use crate::auth::Verb;
use crate::faults;
use crate::object::Object;
use crate::registry::Subresource;
use crate::server::{MemKube, Settings, State};
use crate::service::{Content, Reply};
use crate::status::Status;
use crate::wire::Request;
use jiff::Timestamp;
use watch::Watch;

/// Result of starting a request: a complete response, or a watch.
pub(crate) enum Begun {
    Done(Reply),
    Watch(Box<Watch>),
}

/// Request in progress, with the state of the server.
pub(crate) struct Work<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) request: &'a Request,
    pub(crate) now: Timestamp,
    pub(crate) settings: Settings,
    pub(crate) namespace_controller: bool,
    pub(crate) dry_run: bool,
    pub(crate) warnings: Vec<String>,
}

/// Minimum resourceVersion that the server must have reached before it executes the request. `None` if the request can
/// run immediately.
pub(crate) fn needed_revision(request: &Request) -> Option<u64> {
    let waits = match request.call.verb {
        Verb::Get | Verb::List | Verb::DeleteCollection => true,
        Verb::Watch => request.query.flag("sendInitialEvents"),
        _ => false,
    };
    if waits { request.query.text("resourceVersion").parse().ok() } else { None }
}

/// Revision of the state that a request reads. A fault can make a read return an older state.
pub(crate) fn seen_revision(server: &MemKube, request: &Request, seen: faults::State) -> u64 {
    let seen = if request.call.verb.writes() { faults::State::Newest } else { seen };
    server.0.state.lock().seen(request, seen)
}

/// Response to a request whose minimum resourceVersion was not reached in time. A watch gets the error as an event.
pub(crate) fn not_fresh(request: &Request, status: &Status) -> Reply {
    match request.call.verb {
        Verb::Watch => Reply::new(200, Content::Json(vec![watch::error_line(status)])),
        _ => Reply::from(status),
    }
}

/// Starts a request. Requests with other verbs than watch also complete here.
pub(crate) fn begin(server: &MemKube, request: Request, seen: faults::State) -> Result<Begun, Status> {
    if request.call.verb == Verb::Watch {
        return Ok(Begun::Watch(Box::new(Watch::begin(server, request, seen)?)));
    }
    let mut state = server.0.state.lock();
    state.user = Some(request.call.user.clone());
    let mut work = Work {
        state: &mut state,
        request: &request,
        now: server.0.clock.now(),
        settings: server.0.settings(),
        namespace_controller: server.0.namespace_controller,
        dry_run: false,
        warnings: Vec::new(),
    };
    let reply = work.perform(seen).unwrap_or_else(|status| Reply::from(&status));
    let warnings = std::mem::take(&mut work.warnings);
    Ok(Begun::Done(reply.with_warnings(warnings)))
}

impl Work<'_> {
    fn perform(&mut self, seen: faults::State) -> Result<Reply, Status> {
        match self.request.call.verb {
            Verb::Get if self.is_about(Subresource::Scale) => self.read_scale(),
            Verb::Update if self.is_about(Subresource::Scale) => self.replace_scale(),
            Verb::Patch if self.is_about(Subresource::Scale) => self.patch_scale(),
            Verb::Create if self.is_about(Subresource::Binding) => self.bind(),
            Verb::Get => self.get(seen),
            Verb::List | Verb::Watch => self.list(seen),
            Verb::Create if !self.request.definition.stored() => self.review(),
            Verb::Create if self.is_about(Subresource::Token) => self.issue_token(),
            Verb::Create => self.create(),
            Verb::Update => self.replace(),
            Verb::Patch => self.patch(),
            Verb::Delete => self.delete(),
            Verb::DeleteCollection => self.delete_collection(),
        }
    }

    /// Lets the faults change an object that is about to be stored.
    fn mutate(&self, object: &mut Object) {
        if let Some(faults) = &self.settings.faults {
            faults.mutate(&self.request.call, object);
        }
    }

    /// True if the request is about this subresource.
    fn is_about(&self, subresource: Subresource) -> bool {
        *self.request.call.target.subresource == *subresource.name()
    }
}
