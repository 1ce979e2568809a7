//! Faults for tests and simulations: a hook that changes requests, stored objects and watch events.
//!
//! Without [`Faults`] in [`crate::Options`], nothing fails.

use crate::auth::{Call, PathCall};
use crate::object::Object;
use crate::status::Status;
use crate::store::ChangeKind;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// Faults that a test injects. The server calls these methods after routing and before authorization. So they also get
/// requests that the [`crate::auth::Policy`] denies.
pub trait Faults: Send + Sync + 'static {
    /// Returns the fault of a request. For a watch, this fault affects only the start of the watch.
    fn request(&self, call: &Call) -> Fault {
        let _ = call;
        Fault::default()
    }

    /// Returns the fault of a request that is not about a resource: discovery, OpenAPI, version, health, and unknown
    /// methods. [`Fault::state`] has no effect on such requests.
    fn path(&self, call: &PathCall) -> Fault {
        let _ = call;
        Fault::default()
    }

    /// Changes an object that a create, replace or patch is about to store, as a mutating webhook does. The changed
    /// object must still be valid for its kind.
    fn mutate(&self, call: &Call, object: &mut Object) {
        let _ = (call, object);
    }

    /// Returns the faults of the events of a watch, or `None` if there are none.
    fn watch(&self, call: &Call) -> Option<Box<dyn WatchFaults>> {
        let _ = call;
        None
    }
}

/// Fault of a request. The default has no effect.
#[derive(Clone, Debug, Default)]
pub struct Fault {
    /// Time that the request waits before the server executes it.
    pub delay_before: Duration,
    /// Response to a request that the server does not execute; `None` to execute the request.
    pub refuse: Option<Status>,
    /// Time from the execution of the request to the response.
    pub delay_after: Duration,
    /// Response that the client receives after the server has executed the request.
    pub answer: Answer,
    /// State that a read, or the start of a watch, returns.
    pub state: State,
}

/// Response that the client receives after the server has executed the request.
#[derive(Clone, Debug, Default)]
pub enum Answer {
    /// The unchanged response.
    #[default]
    Whole,
    /// Another status, for example an error for a write that took effect.
    Replaced(Box<Status>),
    /// No response: the connection ends.
    Cut,
    /// No response, and the connection stays open, as with a half-open connection.
    Never,
}

/// State that a read returns. An older state simulates an API server whose watch cache lags behind.
///
/// - A get, a list and the initial events of a watch return this state. A list has the resourceVersion of this state.
/// - A read with a minimum resourceVersion waits until this state has reached the minimum, as kube-apiserver waits for
///   its cache. After [`crate::limits::FRESH_WAIT`] the response is 504. Such reads are a get or list with
///   `resourceVersion=5`, and a watch that sends initial events.
/// - A request for one exact resourceVersion gets the state at that resourceVersion. Such requests are the second and
///   later pages of a list, and a list with `resourceVersionMatch=Exact`. The latter also waits until this state has
///   reached the resourceVersion.
/// - A watch from a resourceVersion starts at that resourceVersion.
/// - All later events of a watch are sent immediately. [`WatchFaults::event`] can delay them.
/// - Writes always apply to the newest state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Newest,
    /// State at this resourceVersion. If the event log starts later, the oldest state in the event log.
    At(u64),
    /// State this many revisions ago. If the event log starts later, the oldest state in the event log.
    Behind(u64),
}

/// Event that the server is about to send to a watch.
#[derive(Clone, Debug)]
pub struct WatchedEvent {
    /// Type of the event that the watch sends.
    pub kind: ChangeKind,
    /// Namespace of the object. Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// resourceVersion of the change.
    pub revision: u64,
}

/// Faults of one watch.
pub trait WatchFaults: Send + 'static {
    /// Decides how the server handles an event. Later events of the watch wait until this event is handled.
    fn event(&mut self, event: &WatchedEvent) -> Fate {
        let _ = event;
        Fate::Deliver
    }

    /// Returns a future. When the future completes, the server ends the connection of the watch immediately.
    fn cut(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    /// Returns a future. When the future completes, the watch sends nothing more but stays open.
    fn silence(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// Fault of a watch event.
#[derive(Clone, Debug)]
pub enum Fate {
    /// The event is sent.
    Deliver,
    /// The event is never sent. Later events are sent.
    Lose,
    /// The event is sent this many additional times.
    Repeat(usize),
    /// The event and all later events are delayed by this time.
    Hold(Duration),
    /// The watch sends an `ERROR` event instead of this event, and ends.
    Fail(Box<Status>),
    /// The connection ends instead of sending the event.
    Cut,
    /// The watch sends nothing more, including this event, but stays open.
    Silence,
}
