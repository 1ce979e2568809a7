//! Interface between an agent and the engine: the [`Logic`] trait and every type that crosses it.
//!
//! ```text
//! SourceSpec --watch--> Observed --versions--> Change --> Logic::observe --keys to requeue--> Logic::plan --> Request --> writer
//!                                                ^------------- the response to each write, as one more Observed ----'
//! ```

use std::fmt::{self, Debug};
use std::hash::Hasher as _;
use std::sync::Arc;

use fnv::FnvHasher;

use crate::client::Cluster;
pub use crate::decoder::Decoder;
use crate::write_body::WriteBody;
pub use fleetnet_types::{Change, Event, Observed, Removal, Resource, Severity, Undecodable, WatchState};
use fleetnet_types::{ObjectName, Timestamp, Uid};

/// Agent: a view (in-memory copy) of the objects that it watches, and a pure function from that view to writes.
///
/// The engine owns the only value of this type and calls its methods from a single task, so the value needs no lock. No method
/// may block, read a clock or draw a random number. Time is an argument, and equal calls return equal results.
pub trait Logic: Sized + Send + 'static {
    /// Id of a watched source: one kind in one cluster. The engine handles its sources in the order of this type.
    type Source: Copy + Ord + Debug + Send + Sync + 'static;
    /// Watched object in the compact form that the view keeps.
    type Object: Clone + PartialEq + Debug + Send + 'static;
    /// Unit of planning, like the request of a reconciler: the smallest unit whose writes belong together.
    type Key: Clone + Ord + Debug + Send + 'static;
    /// Data that the agent attaches to a write and gets back in [`Logic::written`] once the write is known to be done.
    type Receipt: Clone + Debug + Send + 'static;
    /// Result of a plan besides its writes: log lines, metrics and state changes. Passed to [`Logic::planned`].
    type Effect: Debug + Send + 'static;

    /// Stores one change in the view and pushes the keys to plan again.
    ///
    /// Pushes no key if no plan depends on the change. So a cluster in which nothing relevant changes causes no work.
    fn observe(
        &mut self,
        source: Self::Source,
        change: Change<Self::Object>,
        at: Timestamp,
        requeue: &mut Vec<Self::Key>,
    );

    /// Handles a change of a source's state (complete, absent, unknown and so on). Called once for each change, never twice in
    /// a row with the same state.
    fn watch_state(&mut self, source: Self::Source, state: WatchState, at: Timestamp, requeue: &mut Vec<Self::Key>);

    /// Handles the loss and the return of a watch's connection. The view does not change, but may be outdated while the
    /// connection is lost. An agent that reports its view to other clusters must consider this. At start, every watch counts as
    /// connected.
    fn in_touch(&mut self, _source: Self::Source, _in_touch: bool, _at: Timestamp, _requeue: &mut Vec<Self::Key>) {}

    /// Called when a list of a source starts and when the list ends. Changes in between come from the list, so they may be old.
    fn listing(&mut self, _source: Self::Source, _is_listing: bool, _at: Timestamp) {}

    /// True if the agent subscribes to this source at present. The engine calls this after each change and each plan, so the
    /// result may depend on the view.
    ///
    /// A source without a subscription is not watched, and readiness does not wait for it. Its state is
    /// [`WatchState::Unwatched`], from the start or from a call of [`Logic::watch_state`]. In this call, the agent removes the
    /// objects of the source from its view. The engine reports no [`Change::Removed`] for these objects, because nobody deleted
    /// them.
    ///
    /// After a new subscription the state is [`WatchState::Incomplete`], and the source is listed again.
    fn wants(&self, _source: Self::Source) -> bool {
        true
    }

    /// Returns the relist epoch of a source. The agent changes this number when it needs all objects again, because it has
    /// dropped parts of them. The engine calls this as often as [`Logic::wants`].
    ///
    /// After a change of the number, the runtime lists the source again, and emits [`Change::Applied`] also for unchanged
    /// objects. The state of the view does not change. [`Logic::relisted`] reports the end of that list.
    fn reading(&self, _source: Self::Source) -> u64 {
        0
    }

    /// Handles the end of a relist that [`Logic::reading`] requested. Pushes the keys to plan.
    fn relisted(&mut self, _source: Self::Source, _at: Timestamp, _requeue: &mut Vec<Self::Key>) {}

    /// Plans the writes of a key. The writes are independent of each other and may run in any order and at the same time.
    ///
    /// Equal calls return equal plans and change nothing. Logs, metrics and state changes go into [`Plan::effect`].
    fn plan(&self, key: &Self::Key, now: Timestamp) -> Plan<Self::Source, Self::Receipt, Self::Effect>;

    /// Applies the effect of a plan, right after planning and before its writes are sent. Also called on a replica that does not
    /// lead, because an effect changes the view and sends no writes.
    fn planned(&mut self, _key: &Self::Key, _effect: Self::Effect, _at: Timestamp) {}

    /// Returns a key's flow for fair queueing, such as the cluster that caused the work. Flows take turns.
    fn flow(&self, key: &Self::Key) -> FlowId;

    /// Returns the maximum number of writes of a flow that may be in flight at once in one cluster. The limit per cluster applies
    /// in addition ([`crate::limits::IN_FLIGHT_PER_CLUSTER`]).
    fn most_in_flight(&self, _flow: FlowId) -> usize {
        usize::MAX
    }

    /// Called once when this replica starts to lead, before the first plan whose writes are sent. Until then, another replica may
    /// lead. This replica sees the writes of that leader through its watches, and does not send the writes of its own plans.
    fn leads(&mut self, _at: Timestamp, _requeue: &mut Vec<Self::Key>) {}

    /// Handles a step of the wall clock in microseconds, negative if the clock was set back.
    ///
    /// The agent moves the times that it remembers by the same amount, so that no wait becomes longer or shorter. Times in
    /// objects do not move.
    fn clock_set(&mut self, _microseconds: i64) {}

    /// Returns the final writes of a leader that must stop. The engine calls this after all other writes have ended. The engine
    /// sends each final write once, with a short timeout, and does not call [`Logic::written`] for it.
    fn announce_stop(&mut self, _now: Timestamp) -> Vec<Request<Self::Source, Self::Receipt>> {
        Vec::new()
    }

    /// Called when a write is sent. Until [`Logic::ended`], a change of the written object may come from this write or from
    /// another process.
    fn begun(&mut self, _key: &Self::Key, _request: &Request<Self::Source, Self::Receipt>) {}

    /// Called when a write has ended and the response is in the view, before [`Logic::written`], [`Logic::rejected`] and
    /// [`Logic::failed`]. Pushes the keys to plan again, besides the key of the write.
    fn ended(
        &mut self,
        _key: &Self::Key,
        _request: &Request<Self::Source, Self::Receipt>,
        _end: WriteEnd,
        _at: Timestamp,
        _requeue: &mut Vec<Self::Key>,
    ) {
    }

    /// Called for each failed attempt of a write, after [`Logic::ended`]. [`Logic::rejected`] and [`Logic::failed`] are called
    /// only for the first of several equal failures in a row.
    fn not_done(&mut self, _key: &Self::Key, _failure: &WriteFailure<Self::Source>, _at: Timestamp) {}

    /// Called when a write is done and the response is in the view. `receipt` is the data that the plan attached to the write.
    /// Returns Kubernetes Events to record.
    fn written(&mut self, receipt: Self::Receipt, at: Timestamp) -> Vec<Event<Self::Source>>;

    /// Called when the server rejects a write for its content (400, 413, 415, 422). The runtime retries the write every 10
    /// minutes, and when its content changes. Returns Kubernetes Events to record.
    fn rejected(&mut self, key: &Self::Key, failure: &WriteFailure<Self::Source>) -> Vec<Event<Self::Source>>;

    /// Called when a write is denied (403, 404), or fails for a reason other than its content or a conflict. The runtime retries
    /// the write. The status is 0 if there was no response. Returns Kubernetes Events to record.
    fn failed(&mut self, _key: &Self::Key, _failure: &WriteFailure<Self::Source>) -> Vec<Event<Self::Source>> {
        Vec::new()
    }

    /// Called when another writer starts or stops undoing this key's writes to an object. During such a fight, the agent
    /// repairs the object only once a minute. Pushes the keys to plan again, and returns Kubernetes Events to record.
    fn fight(
        &mut self,
        _key: &Self::Key,
        _fight: &Fight<Self::Source>,
        _requeue: &mut Vec<Self::Key>,
    ) -> Vec<Event<Self::Source>> {
        Vec::new()
    }

    /// True if a key writes the same content at intervals, as a heartbeat does. Such a write does not count as a repair of the
    /// previous write, even if another writer changed the object in between.
    fn renews(&self, _key: &Self::Key) -> bool {
        false
    }

    /// True if a change of this source ends the slow back-off (after 403 and 404) of the keys that the change requeues. For kinds
    /// whose absence causes such failures, such as Namespaces.
    fn clears_backoff(&self, _source: Self::Source) -> bool {
        false
    }
}

/// Flow of fair queueing. Two flows with the same number share their turns, so a collision of hashes costs fairness only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FlowId(pub u64);

impl FlowId {
    /// Returns the flow with this name. Its number is the same in every process (64-bit FNV-1a).
    #[must_use]
    pub fn of(name: &str) -> Self {
        let mut hasher = FnvHasher::default();
        hasher.write(name.as_bytes());
        Self(hasher.finish())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plan<S, R, E> {
    /// Writes of the plan, independent of each other. A write that depends on the outcome of another write belongs to a later
    /// plan.
    pub writes: Vec<Request<S, R>>,
    pub events: Vec<Event<S>>,
    /// Time at which to plan this key again even without a change. Replaces the time that the previous plan set, also if this
    /// value is `None`.
    pub again: Option<Timestamp>,
    /// Effect of the plan on the agent, passed to [`Logic::planned`].
    pub effect: Option<E>,
}

impl<S, R, E> Default for Plan<S, R, E> {
    fn default() -> Self {
        Self { writes: Vec::new(), events: Vec::new(), again: None, effect: None }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Request<S, R> {
    /// Source of the object to write. Determines the cluster, the resource and the decoder of the response.
    pub source: S,
    pub name: ObjectName,
    pub verb: Verb,
    /// Data passed to [`Logic::written`] once the write is known to be done.
    pub receipt: Option<R>,
}

/// Operation of a write. Each operation has a precondition: the object is absent, is at this version, or has this UID.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// POST of the whole object. Fails if the object exists.
    Create {
        /// Object with apiVersion, kind and metadata.
        body: WriteBody,
    },
    /// JSON merge patch. The writer adds `metadata.resourceVersion` as the precondition.
    Patch {
        /// Subresource to patch: `None`, or `Some("status")`.
        subresource: Option<&'static str>,
        /// resourceVersion of the object from which the plan computed the patch.
        resource_version: u64,
        /// Merge patch without `metadata.resourceVersion`.
        body: WriteBody,
    },
    /// PUT of the whole object, for kinds whose objects the view keeps in full. The writer adds `metadata.resourceVersion` as the
    /// precondition, so no concurrent change is lost.
    ///
    /// A PUT is cheaper for the server than a patch: kube-apiserver 1.35 takes 3.1 ms instead of 5.1 ms for an EndpointSlice of
    /// 50 endpoints.
    Replace {
        /// resourceVersion of the object from which the plan computed the new object.
        resource_version: u64,
        /// Object with apiVersion, kind and metadata, without the fields that only the server sets.
        body: WriteBody,
    },
    /// DELETE with the UID as the precondition.
    Delete { uid: Uid },
}

impl Verb {
    /// Returns the verb in lower case, for metrics and logs.
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

/// Outcome of a write, as the agent sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteEnd {
    /// The server executed the write. `version` is the resourceVersion of the object in the response, after all changes by the
    /// server. `None` if the response shows that the object no longer exists.
    Done { version: Option<u64> },
    /// The server did not execute the write, because of a conflict (409).
    NotDone,
    /// The server denied or rejected the write, and did not execute it.
    Denied,
    /// The write failed, but the server may have executed it.
    Unknown,
}

/// Reason of a denied create in a namespace that is being deleted.
pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// Failed write, for [`Logic::not_done`], [`Logic::rejected`] and [`Logic::failed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteFailure<S> {
    /// Source of the object to write.
    pub source: S,
    /// Name of the object's cluster.
    pub cluster: String,
    /// Kind of the object.
    pub kind: String,
    pub name: ObjectName,
    /// Verb of the write, as in [`Verb::as_str`].
    pub verb: &'static str,
    pub status: u16,
    /// Reason in the server's response, such as `Invalid`, or [`NAMESPACE_TERMINATING`]; may be empty.
    pub reason: String,
    /// Message in the server's response.
    pub message: String,
}

/// Fight with another writer: this agent repairs an object, and the other writer undoes each repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fight<S> {
    pub source: S,
    pub cluster: String,
    pub kind: &'static str,
    pub name: ObjectName,
    /// Name of the other writer, taken from the object's managedFields. `None` if the fight is over: nobody has undone the last
    /// repair for a minute, or there is nothing left to repair.
    pub by: Option<String>,
}

/// Description of a source: how to watch its objects and how to address them in writes.
pub struct SourceSpec<L: Logic> {
    pub source: L::Source,
    /// Cluster of the source. `cluster.name` is the label and field `side` in metrics and logs.
    pub cluster: Arc<Cluster>,
    pub resource: Resource,
    /// Namespace to watch. `None` watches all namespaces.
    pub namespace: Option<String>,
    /// Name of the one object to watch. `None` watches all objects. With a name, RBAC can limit list and watch to this object.
    pub name: Option<&'static str>,
    /// True if the agent works without this kind: when it is absent or forbidden, only a feature is disabled
    /// ([`WatchState::Absent`]).
    pub optional: bool,
    /// True if the loss of the permission to watch (403) makes a complete view [`WatchState::Unknown`]. The source is then listed
    /// again when the permission returns. If false, the complete view stays in use.
    pub freezes_when_forbidden: bool,
    /// True to watch metadata only (PartialObjectMetadata).
    pub metadata_only: bool,
    /// Decodes the objects in watch events and in responses to writes.
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
