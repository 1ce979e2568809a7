//! Interface between an agent and the engine: the [`Logic`] trait and every type that crosses it.
//!
//! ```text
//! SourceSpec --watch--> Observed --versions--> Change --> Logic::observe --dirty keys--> Logic::plan --> Request --> writer
//!                                                ^------------- the answer to each write, as one more Observed ------'
//! ```

use std::fmt::{self, Debug};
use std::hash::Hasher as _;
use std::sync::Arc;

use fnv::FnvHasher;

use crate::client::Cluster;
pub use crate::decoder::Decoder;
pub use fleetnet_types::{Change, Event, Observed, Removal, Resource, Severity, Undecodable, WatchState};
use fleetnet_types::{ObjectName, Timestamp, Uid};

/// Agent: a view of the objects that it watches, and a pure function from that view to writes.
///
/// The engine owns the one value of this type and calls it from a single task, so nothing in it needs a lock. No method may
/// block, read a clock or draw a random number. Time is an argument, and equal calls return equal results.
pub trait Logic: Sized + Send + 'static {
    /// Identifies a watch: one kind in one cluster. The order of this type settles ties.
    type Source: Copy + Ord + Debug + Send + Sync + 'static;
    /// Compact object, as the view keeps it.
    type Object: Clone + PartialEq + Debug + Send + 'static;
    /// Unit of planning: the smallest unit whose writes belong together.
    type Key: Clone + Ord + Debug + Send + 'static;
    /// Travels with a write and returns in [`Logic::written`] once that write is known to be done.
    type Receipt: Clone + Debug + Send + 'static;
    /// What a plan logs, counts or switches, for [`Logic::planned`].
    type Effect: Debug + Send + 'static;

    /// Takes one change into the view and pushes the keys to plan again.
    ///
    /// A change that alters nothing that a plan reads pushes nothing, so a settled cluster causes no work.
    fn observe(
        &mut self,
        source: Self::Source,
        change: Change<Self::Object>,
        at: Timestamp,
        dirty: &mut Vec<Self::Key>,
    );

    /// Handles a change of the state of a source's view. Called once for each change, never twice in a row with the same state.
    fn watch_state(&mut self, source: Self::Source, state: WatchState, at: Timestamp, dirty: &mut Vec<Self::Key>);

    /// Handles the loss and the return of the connection of a watch. The view stays the best knowledge there is, but an agent
    /// that vouches for it to others must know. At start, every watch counts as connected.
    fn in_touch(&mut self, _source: Self::Source, _in_touch: bool, _at: Timestamp, _dirty: &mut Vec<Self::Key>) {}

    /// True if the agent subscribes to this source at present. Called after each change and each plan, so it may depend on
    /// anything in the view.
    ///
    /// A source without a subscription is not watched, its view is empty, and readiness does not wait for it. Its state is
    /// [`WatchState::Unwatched`], from the start or from a call of [`Logic::watch_state`]. The agent then drops what it has of
    /// the source. No [`Change::Removed`] follows, because nothing was deleted.
    ///
    /// After a new subscription the state is [`WatchState::Incomplete`], and the source is listed again.
    fn wants(&self, _source: Self::Source) -> bool {
        true
    }

    /// Relist epoch of a source. The agent changes this number when it needs all objects again, because it has dropped parts of
    /// them. Called as often as [`Logic::wants`].
    ///
    /// The runtime then lists the source again and emits [`Change::Applied`] also for unchanged objects. The state of the view
    /// stays as it is. [`Logic::read_anew`] reports the end of that list.
    fn reading(&self, _source: Self::Source) -> u64 {
        0
    }

    /// Handles the end of a relist that [`Logic::reading`] requested. Pushes the keys to plan.
    fn read_anew(&mut self, _source: Self::Source, _at: Timestamp, _dirty: &mut Vec<Self::Key>) {}

    /// Plans the writes of a key. The writes are independent of each other and may run in any order and at the same time.
    ///
    /// Equal calls return equal plans and change nothing. What a plan logs, counts or switches is its [`Plan::effect`].
    fn plan(&self, key: &Self::Key, now: Timestamp) -> Plan<Self::Source, Self::Receipt, Self::Effect>;

    /// Applies the effect of a plan, right after the plan was made and before its writes are sent. Also called on a replica that
    /// does not lead: the effect is about the view, not about writes.
    fn planned(&mut self, _key: &Self::Key, _effect: Self::Effect, _at: Timestamp) {}

    /// Flow of a key for fair queueing, such as the cluster that the work comes from. Flows take turns.
    fn lane(&self, key: &Self::Key) -> LaneId;

    /// Most writes of a flow that may be in flight at once in one cluster. A limit for each cluster applies in addition
    /// ([`crate::limits::IN_FLIGHT_PER_CLUSTER`]).
    fn most_in_flight(&self, _lane: LaneId) -> usize {
        usize::MAX
    }

    /// Called once, before the first plan whose writes are executed. Until then another process may lead: its writes arrive by
    /// the watches, and plans only measure the remaining work.
    fn leads(&mut self, _at: Timestamp, _dirty: &mut Vec<Self::Key>) {}

    /// Handles a step of the wall clock, negative if the clock was set back.
    ///
    /// Times that the view remembers move by the same amount, so that no wait becomes longer or shorter. Times in objects do
    /// not move.
    fn clock_set(&mut self, _microseconds: i64) {}

    /// Final writes of a leader that is asked to stop, after all other writes have ended. They have little time, are tried
    /// once, and return no receipt.
    fn farewell(&mut self, _now: Timestamp) -> Vec<Request<Self::Source, Self::Receipt>> {
        Vec::new()
    }

    /// Called when a write is sent. Until [`Logic::ended`], a change of its target may come from this write or from another
    /// process.
    fn begun(&mut self, _key: &Self::Key, _request: &Request<Self::Source, Self::Receipt>) {}

    /// Called when a write has ended and its answer is in the view. Called before [`Logic::written`], [`Logic::refused`] and
    /// [`Logic::failed`]. Pushes the keys to plan again, besides the key of the write.
    fn ended(
        &mut self,
        _key: &Self::Key,
        _request: &Request<Self::Source, Self::Receipt>,
        _end: WriteEnd,
        _at: Timestamp,
        _dirty: &mut Vec<Self::Key>,
    ) {
    }

    /// Called for each failed attempt of a write, after [`Logic::ended`]. [`Logic::refused`] and [`Logic::failed`] are called
    /// only for the first failure of a streak.
    fn not_done(&mut self, _key: &Self::Key, _failure: &Refusal<Self::Source>, _at: Timestamp) {}

    /// Called when a write with this receipt is done and its answer is in the view. Returns Events for users.
    fn written(&mut self, receipt: Self::Receipt, at: Timestamp) -> Vec<Event<Self::Source>>;

    /// Called when the server rejects a write for its content (400, 413, 415, 422). The runtime retries it every 10 minutes,
    /// and when its content changes. Returns Events for users.
    fn refused(&mut self, key: &Self::Key, refusal: &Refusal<Self::Source>) -> Vec<Event<Self::Source>>;

    /// Called when a write is denied (403, 404), or fails for a reason other than its content or a conflict. The runtime
    /// retries it. The status is 0 if there was no answer. Returns Events for users.
    fn failed(&mut self, _key: &Self::Key, _failure: &Refusal<Self::Source>) -> Vec<Event<Self::Source>> {
        Vec::new()
    }

    /// Called when another writer starts or stops undoing what this key writes to an object. During such a fight, the agent
    /// repairs the object only once a minute. Pushes the keys to plan again, and returns Events for users.
    fn fight(
        &mut self,
        _key: &Self::Key,
        _fight: &Fight<Self::Source>,
        _dirty: &mut Vec<Self::Key>,
    ) -> Vec<Event<Self::Source>> {
        Vec::new()
    }

    /// True if repeated writes of a key have the same content at different times, as for a heartbeat. Such a write is not a
    /// repair of the one before, even if another writer changed the object in between.
    fn renews(&self, _key: &Self::Key) -> bool {
        false
    }

    /// True if a change of this source clears the slow back-off (403 and 404) of the keys that it marks. Meant for objects that
    /// such writes wait for, such as Namespaces.
    fn clears_backoff(&self, _source: Self::Source) -> bool {
        false
    }
}

/// Flow of fair queueing. Flows with the same number share their turns, so a collision costs fairness only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LaneId(pub u64);

impl LaneId {
    /// Returns the flow of a name. The number is the same in every process (64-bit FNV-1a).
    #[must_use]
    pub fn of(name: &str) -> Self {
        let mut hasher = FnvHasher::default();
        hasher.write(name.as_bytes());
        Self(hasher.finish())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plan<S, R, E> {
    /// Writes, independent of each other. A write that depends on an outcome belongs to a later plan.
    pub writes: Vec<Request<S, R>>,
    pub events: Vec<Event<S>>,
    /// Time at which to plan this key again in any case. Replaces the time of the previous plan.
    pub again: Option<Timestamp>,
    /// Passed to [`Logic::planned`].
    pub effect: Option<E>,
}

impl<S, R, E> Default for Plan<S, R, E> {
    fn default() -> Self {
        Self { writes: Vec::new(), events: Vec::new(), again: None, effect: None }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Request<S, R> {
    /// Source of the target: gives the cluster, the resource, and the decoder of the answer.
    pub source: S,
    pub name: ObjectName,
    pub verb: Verb,
    /// Passed to [`Logic::written`] once the write is known to be done.
    pub receipt: Option<R>,
}

/// Operation on an object. Every verb has a precondition: absent, at this version, or of this UID.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// POST of the whole object.
    Create {
        /// Object with apiVersion, kind and metadata.
        body: serde_json::Value,
    },
    /// JSON merge patch. The writer adds `metadata.resourceVersion` as the precondition.
    Patch {
        /// `None`, or `Some("status")`.
        subresource: Option<&'static str>,
        /// Version in the view that the patch was computed from.
        resource_version: u64,
        /// Patch without the precondition.
        body: serde_json::Value,
    },
    /// PUT of the whole object, for kinds whose objects are kept in full. The writer adds `metadata.resourceVersion` as the
    /// precondition, so no concurrent change is lost.
    ///
    /// Cheaper for the server than a patch: kube-apiserver 1.35 takes 3.1 ms in place of 5.1 ms for an EndpointSlice of 50
    /// endpoints.
    Replace {
        /// Version in the view that the object was computed from.
        resource_version: u64,
        /// Object with apiVersion, kind and metadata, without the fields that only the server sets.
        body: serde_json::Value,
    },
    /// DELETE with the UID as the precondition.
    Delete { uid: Uid },
}

impl Verb {
    /// Returns the lower-case name for metrics and logs.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Patch { subresource: None, .. } => "patch",
            Self::Patch { subresource: Some(_), .. } => "patch_status",
            Self::Replace { .. } => "update",
            Self::Delete { .. } => "delete",
        }
    }
}

/// Outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteEnd {
    /// The server executed it. The version is that of the object in the answer, after all changes by the server. `None` if the
    /// answer shows that the object no longer exists.
    Done { version: Option<u64> },
    /// Not executed because of a conflict.
    NotDone,
    /// Not executed: the server denied or rejected it.
    Denied,
    /// Failed without proof that the server executed it. The server may have executed it.
    Unknown,
}

/// Reason of a denied create in a namespace that is being deleted.
pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// Write that the server did not execute: rejected for its content in [`Logic::refused`], otherwise in [`Logic::failed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal<S> {
    /// Source of the target.
    pub source: S,
    /// Name of the target's cluster.
    pub cluster: String,
    /// Kind of the target.
    pub kind: String,
    pub name: ObjectName,
    /// Verb, as in [`Verb::as_str`].
    pub verb: &'static str,
    pub status: u16,
    /// Reason of the server, such as `Invalid`, or [`NAMESPACE_TERMINATING`]; may be empty.
    pub reason: String,
    /// Message of the server.
    pub message: String,
}

/// Conflict with another writer: this agent repairs an object, and the other writer undoes each repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fight<S> {
    pub source: S,
    pub cluster: String,
    pub kind: &'static str,
    pub name: ObjectName,
    /// Name of the other writer, as far as the object tells, for people. `None` if the fight is over: the last repair has
    /// lasted for a minute, or there is nothing left to repair.
    pub by: Option<String>,
}

/// How to watch and address a source.
pub struct SourceSpec<L: Logic> {
    pub source: L::Source,
    /// Cluster; `cluster.name` is the label in metrics and logs.
    pub cluster: Arc<Cluster>,
    pub resource: Resource,
    /// Only namespace to watch. `None` watches all.
    pub namespace: Option<String>,
    /// Only object to watch. `None` watches all. RBAC can limit list and watch to that name.
    pub name: Option<&'static str>,
    /// True if an absent or forbidden kind only disables a feature ([`WatchState::Absent`]). Otherwise the agent cannot work
    /// without it.
    pub optional: bool,
    /// True if a lost permission (403) makes a complete view [`WatchState::Unknown`] and the source is listed again once the
    /// permission returns. Otherwise the view stays the best knowledge there is.
    pub freezes_when_forbidden: bool,
    /// Watches metadata only (PartialObjectMetadata).
    pub metadata_only: bool,
    /// Decodes watch events and answers to writes.
    pub decode: Decoder<L::Object>,
}

impl<L: Logic> Debug for SourceSpec<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceSpec")
            .field("source", &self.source)
            .field("resource", &self.resource)
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("optional", &self.optional)
            .field("metadata_only", &self.metadata_only)
            .finish_non_exhaustive()
    }
}
