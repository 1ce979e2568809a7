//! Interface between an agent and the engine: the [`Logic`] trait and every type that crosses it.
//!
//! ```text
//! SourceSpec --watch--> Observed --versions--> Change --> Logic::observe --keys to requeue--> Logic::plan --> Request --> writer
//!                                                ^------------- the response to each write, as one more Observed ----'
//! ```

use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};

use fnv::FnvHasher;

use super::write_body::WriteBody;
pub use fleetnet_types::{Change, Event, Observed, Removal, Resource, Severity, Undecodable, WatchState};
use fleetnet_types::{ObjectName, Timestamp, Uid};

/// Agent: a view (in-memory copy) of the objects that it watches, and a pure function from that view to writes.
///
/// The engine owns the only value of this type and calls its methods from a single task, so the value needs no lock. No
/// method may block, read a clock or draw a random number. Time is an argument, and equal calls return equal results.
pub trait Logic: Sized + Send + 'static {
    /// Id of a watched source: one kind in one cluster. The engine handles its sources in the order of this type.
    type Source: Copy + Ord + Debug + Send + Sync + 'static;
    /// Watched object in the compact form that the view keeps.
    type Object: Clone + PartialEq + Debug + Send + 'static;
    /// Unit of planning, like the request of a reconciler: the smallest unit whose writes belong together.
    type Key: Clone + Ord + Debug + Send + 'static;
    /// Data that the agent attaches to a write and gets back in [`WriteEnded::receipt`] once the write is known to be
    /// done.
    type Receipt: Clone + Debug + Send + 'static;
    /// Result of a plan besides its writes: log lines, metrics and state changes. Passed to [`Logic::planned`].
    type Effect: Debug + Send + 'static;
    /// Message of another part of the process, such as a connection to another agent.
    /// [`Infallible`](std::convert::Infallible) if there is none.
    type Message: Debug + Send + 'static;

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

    /// Returns an object that the view did not keep when it observed the object, and has room for now. The engine reads
    /// the object once more, and passes it to [`Logic::observe`]. Called after each change and each such read.
    fn wanted_again(&mut self) -> Option<(Self::Source, ObjectName)> {
        None
    }

    /// Handles a change of a source's watch. Pushes the keys to plan again.
    fn watch(&mut self, source: Self::Source, news: WatchNews, at: Timestamp, requeue: &mut Vec<Self::Key>);

    /// Handles a message of another part of the process. Pushes the keys to plan again.
    fn receive(&mut self, message: Self::Message, at: Timestamp, requeue: &mut Vec<Self::Key>);

    /// Handles a change of the process. Pushes the keys to plan again.
    fn process(&mut self, news: ProcessNews, at: Timestamp, requeue: &mut Vec<Self::Key>);

    /// Plans the writes of a key. The writes are independent of each other and may run in any order and at the same
    /// time.
    ///
    /// Equal calls return equal plans and change nothing. Logs, metrics and state changes go into [`Plan::effect`].
    fn plan(&self, key: &Self::Key, now: Timestamp) -> Plan<Self::Source, Self::Receipt, Self::Effect>;

    /// Applies the effect of a plan, right after planning and before its writes are sent. Also called on a replica that
    /// does not lead, because an effect changes the view and sends no writes.
    fn planned(&mut self, key: &Self::Key, effect: Self::Effect, at: Timestamp);

    /// Returns a key's flow for fair queueing, such as the cluster that caused the work. Flows take turns.
    fn flow(&self, key: &Self::Key) -> Flow;

    /// Handles the start or the end of a write. Pushes the keys to plan again, besides the key of the write. Returns
    /// Kubernetes Events to record.
    fn write(
        &mut self,
        key: &Self::Key,
        news: WriteNews<'_, Self::Source, Self::Receipt>,
        at: Timestamp,
        requeue: &mut Vec<Self::Key>,
    ) -> Vec<Event<Self::Source>>;

    /// Called when another writer starts or stops undoing this key's writes to an object. During such a fight, the
    /// agent repairs the object only once a minute. Pushes the keys to plan again, and returns Kubernetes Events to
    /// record.
    fn fight(
        &mut self,
        key: &Self::Key,
        fight: &Fight<Self::Source>,
        requeue: &mut Vec<Self::Key>,
    ) -> Vec<Event<Self::Source>>;
}

/// Change of a source's watch, for [`Logic::watch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchNews {
    /// The state of the view of this source has changed: it is complete, absent, unknown and so on.
    State(WatchState),
    /// The watch has lost its connection (false) or has it again (true). The view does not change, but may be outdated
    /// while the connection is lost. An agent that reports its view to other clusters must consider this. At start,
    /// every watch counts as connected.
    Connected(bool),
    /// A list of the source starts (true) or ends (false). Changes in between come from the list, so they may be old.
    Listing(bool),
    /// The server was restored from a backup, and the view of this source is from before.
    Restored,
}

/// Change of the agent's process, for [`Logic::process`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessNews {
    /// This replica starts to lead: from now on, the writes of its plans are sent. Until now, another replica may have
    /// led. This replica saw the writes of that leader through its watches.
    Leads,
    /// This replica does not lead any more, and may lead again later. Another replica may lead meanwhile.
    Follows,
    /// The wall clock was set by this many microseconds, negative if it was set back. The agent moves the times that it
    /// remembers by the same amount, so that no wait becomes longer or shorter. Times in objects do not move.
    ClockSet { microseconds: i64 },
    /// The process stops, and all writes have ended. The engine plans the keys that the agent pushes once more, and
    /// sends the writes of these last plans once, with a short timeout. It does not report their outcome.
    Stops,
}

/// Start or end of a write, for [`Logic::write`].
#[derive(Debug)]
pub enum WriteNews<'a, S, R> {
    /// The write is sent. Until it ends, a change of the written object may come from this write or from another
    /// process.
    Begun(&'a Request<S, R>),
    /// The write has ended, and the object of the response is in the view.
    Ended(WriteEnded<'a, S, R>),
}

/// Write that has ended, successfully or not.
#[derive(Debug)]
pub struct WriteEnded<'a, S, R> {
    /// Request that was sent. Its receipt is in `receipt`.
    pub request: &'a Request<S, R>,
    pub end: WriteEnd,
    /// Receipt of the request if the write is done, otherwise `None`.
    pub receipt: Option<R>,
    /// Description of the failure, `None` if the write is done.
    pub failure: Option<&'a WriteFailure<S>>,
    /// True if the failure is the first of several equal failures in a row, so that users must hear of it. Conflicts
    /// are never reported.
    pub is_reported: bool,
}

/// Flow of a key, and the maximum number of writes of this flow that may be in flight at once in one cluster. The limit
/// per cluster applies in addition ([`crate::limits::IN_FLIGHT_PER_CLUSTER`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    pub id: FlowId,
    pub most_in_flight: usize,
    pub urgency: Urgency,
}

/// Urgency of the writes of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgency {
    /// The writes wait while the server asks for a pause (`Retry-After`).
    #[default]
    Normal,
    /// The writes show that this process lives. An answer to another write never holds them back.
    Heartbeat,
}

impl From<FlowId> for Flow {
    /// Returns a flow without a limit of its own.
    fn from(id: FlowId) -> Self {
        Self { id, most_in_flight: usize::MAX, urgency: Urgency::Normal }
    }
}

/// Flow of fair queueing. Two flows with the same number share their turns, so a collision of hashes costs fairness
/// only.
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
    /// Writes of the plan, independent of each other. A write that depends on the outcome of another write belongs to a
    /// later plan.
    pub writes: Vec<Request<S, R>>,
    pub events: Vec<Event<S>>,
    /// Time at which to plan this key again even without a change. Replaces the time that the previous plan set, also
    /// if this value is `None`.
    pub again: Option<Timestamp>,
    /// Effect of the plan on the agent, passed to [`Logic::planned`].
    pub effect: Option<E>,
    /// True if the plan writes the same content at intervals, as a heartbeat does. Such a write does not count as a
    /// repair of the previous write, even if another writer changed the object in between.
    pub renews: bool,
}

impl<S, R, E> Default for Plan<S, R, E> {
    fn default() -> Self {
        Self { writes: Vec::new(), events: Vec::new(), again: None, effect: None, renews: false }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Request<S, R> {
    /// Source of the object to write. Determines the cluster, the resource and the decoder of the response.
    pub source: S,
    pub name: ObjectName,
    pub verb: Verb,
    /// Data returned in [`WriteEnded::receipt`] once the write is known to be done.
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
    /// PUT of the whole object, for kinds whose objects the view keeps in full. The writer adds
    /// `metadata.resourceVersion` as the precondition, so no concurrent change is lost.
    ///
    /// A PUT is cheaper for the server than a patch: kube-apiserver 1.35 takes 3.1 ms instead of 5.1 ms for an
    /// EndpointSlice of 50 endpoints.
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

    /// Returns the version of the object that the write is based on; `None` if it has no such precondition.
    pub(crate) const fn resource_version(&self) -> Option<u64> {
        match self {
            Self::Patch { resource_version, .. } | Self::Replace { resource_version, .. } => Some(*resource_version),
            Self::Create { .. } | Self::Delete { .. } => None,
        }
    }

    /// Returns a hash of the write's content, without its precondition. The hash is the same in every process.
    pub(crate) fn content(&self) -> u64 {
        self.hash_with(WriteBody::content)
    }

    /// Returns a hash of the write's content that ignores timestamps: two plans that differ only in the time have equal
    /// hashes.
    pub(crate) fn timeless_content(&self) -> u64 {
        self.hash_with(WriteBody::timeless)
    }

    fn hash_with(&self, hash_of: impl Fn(&WriteBody) -> u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.as_str().hash(&mut hasher);
        match self {
            Self::Create { body } | Self::Patch { body, .. } | Self::Replace { body, .. } => {
                hash_of(body).hash(&mut hasher);
            }
            Self::Delete { uid } => uid.hash(&mut hasher),
        }
        hasher.finish()
    }
}

/// Outcome of a write, as the agent sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteEnd {
    /// The server executed the write. `version` is the resourceVersion of the object in the response, after all changes
    /// by the server. `None` if the response shows that the object no longer exists.
    Done { version: Option<u64> },
    /// The server did not execute the write, because the object has changed (409).
    Conflict,
    /// The server rejected the write for its content (400, 413, 415, 422), and did not execute it. The runtime retries
    /// the write every 10 minutes, and when its content changes.
    Rejected,
    /// The server denied the write, or does not have the kind or the namespace (403, 404), and did not execute it.
    Denied,
    /// The write failed, but the server may have executed it.
    Unknown,
}

/// Reason of a denied create in a namespace that is being deleted.
pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// Failed write, for [`WriteEnded`]. The status is 0 if there was no response.
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

impl<S> WriteFailure<S> {
    /// True if the write failed because the namespace of the object is being deleted.
    #[must_use]
    pub fn is_of_terminating_namespace(&self) -> bool {
        self.reason == NAMESPACE_TERMINATING
    }
}

/// Fight with another writer: this agent repairs an object, and the other writer undoes each repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fight<S> {
    pub source: S,
    pub cluster: String,
    pub kind: &'static str,
    pub name: ObjectName,
    /// Name of the other writer, taken from the object's managedFields. `None` if the fight is over: nobody has undone
    /// the last repair for a minute, or there is nothing left to repair.
    pub by: Option<String>,
}

impl<S> Fight<S> {
    /// Returns the message to the user. `None` if the fight is over.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        let by = self.by.as_ref()?;
        Some(format!(
            "another writer undoes the agent's writes to {} {} of cluster {}, so the agent repairs it once a minute \
             only: {by}. Stop that writer",
            self.kind, self.name, self.cluster
        ))
    }
}
