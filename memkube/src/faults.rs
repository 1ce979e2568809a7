//! Faults on request: asked once per request, once per object that is about to be stored, and once per event of each watch.
//! Without them nothing fails.

use crate::auth::{Call, PathCall};
use crate::object::Object;
use crate::status::Status;
use crate::store::ChangeKind;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// Decides what goes wrong. It is asked after routing and before authorization, so that it sees refused requests too.
pub trait Faults: Send + Sync + 'static {
    /// What befalls this request. For a watch it is what befalls its beginning.
    fn request(&self, call: &Call) -> Fault {
        let _ = call;
        Fault::default()
    }

    /// What befalls this request, which is about no resource: discovery, OpenAPI, version, health, and methods that no
    /// resource has. Such requests see the present whatever [`Fault::state`] says.
    fn path(&self, call: &PathCall) -> Fault {
        let _ = call;
        Fault::default()
    }

    /// Alters an object that this create, replace or patch is about to store, as a mutating webhook does. It must leave an
    /// object of the kind.
    fn mutate(&self, call: &Call, object: &mut Object) {
        let _ = (call, object);
    }

    /// What befalls this watch once it has begun.
    fn watch(&self, call: &Call) -> Option<Box<dyn WatchFaults>> {
        let _ = call;
        None
    }
}

/// What befalls a request. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct Fault {
    /// It waits so long before it takes effect.
    pub delay_before: Duration,
    /// It is answered with this and takes no effect.
    pub refuse: Option<Status>,
    /// It takes effect and the answer waits so long.
    pub delay_after: Duration,
    /// What the client gets of the answer.
    pub answer: Answer,
    /// Reads and the beginning of watches see the state of the past.
    pub state: State,
}

/// What the client gets of an answer, once the request has taken effect.
#[derive(Clone, Debug, Default)]
pub enum Answer {
    /// All of it.
    #[default]
    Whole,
    /// Another: a write that took effect and says that it did not.
    Replaced(Box<Status>),
    /// The connection ends without an answer.
    Cut,
    /// Nothing ever, as behind a half-open connection. The request takes effect.
    Never,
}

/// Which state a read sees: that of an API server whose cache lags behind.
///
/// - A get, a list and the first events of a watch are those of that state, and a list says its resourceVersion.
/// - What must not be older than a resourceVersion (`resourceVersion=5` of a get, of a list, and of a watch that sends
///   initial events) is never older: it waits for the state to come so far, as kube-apiserver waits for its cache, and is
///   answered 504 after [`crate::limits::FRESH_WAIT`].
/// - What names its state sees it: further pages, and `resourceVersionMatch=Exact` once the state has come so far.
/// - A watch from a resourceVersion begins there, and whatever a watch began with, what follows is told at once: events
///   are held back by [`WatchFaults::event`].
/// - Writes are of the newest state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The newest.
    #[default]
    Newest,
    /// That of this resourceVersion, or the oldest that the event log still has.
    At(u64),
    /// That of so many revisions ago, or the oldest that the event log still has.
    Behind(u64),
}

/// An event on its way to one watch.
#[derive(Clone, Debug)]
pub struct WatchedEvent {
    /// What the watch is told.
    pub kind: ChangeKind,
    /// Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// The object's.
    pub name: Arc<str>,
    /// Of the change.
    pub revision: u64,
}

/// What befalls one watch.
pub trait WatchFaults: Send + 'static {
    /// What befalls this event. Events that follow wait for it.
    fn event(&mut self, event: &WatchedEvent) -> Fate {
        let _ = event;
        Fate::Deliver
    }

    /// When it is done, the watch is cut off, whatever it was doing.
    fn cut(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    /// When it is done, the watch says nothing more and stays open.
    fn silence(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// What befalls an event.
#[derive(Clone, Debug)]
pub enum Fate {
    /// It arrives.
    Deliver,
    /// It never arrives; those after it do.
    Lose,
    /// It arrives this often more.
    Repeat(usize),
    /// It, and what follows, arrives so much later.
    Hold(Duration),
    /// The watch ends with an `ERROR` event in its place.
    Fail(Box<Status>),
    /// The connection breaks in its place.
    Cut,
    /// The watch says nothing from here on and stays open.
    Silence,
}
