//! What an agent is, as the engine sees it: the [`Logic`] trait and every type that crosses it.
//!
//! ```text
//! SourceSpec --watch--> Observed --versions--> Change --> Logic::observe --dirty keys--> Logic::plan --> Request --> writer
//!                                                ^------------- the answer to each write, as one more Observed ------'
//! ```

use std::fmt::{self, Debug};
use std::sync::Arc;

pub use crate::change::{Change, Decoder, Observed, Removal, Unreadable};
use crate::client::Cluster;
use crate::clock::Timestamp;
pub use crate::resource::Resource;
pub use crate::watch_state::WatchState;

/// An agent: a view of the objects that it watches, and a pure function from that view to writes.
///
/// The engine owns the one value of this type and calls it from a single task, so nothing in it needs a lock. Nothing
/// here may block, read a clock or draw a random number: time comes in as data, and equal calls give equal results.
pub trait Logic: Sized + Send + 'static {
    /// Names a watch: one kind in one cluster. Small and ordered; the order is the order in which ties are settled.
    type Source: Copy + Ord + Debug + Send + Sync + 'static;
    /// A compact object as the view holds it.
    type Object: Clone + PartialEq + Debug + Send + 'static;
    /// What is planned: the smallest unit whose writes belong together.
    type Key: Clone + Ord + Debug + Send + 'static;
    /// Goes out with a write and is handed back to [`Logic::written`] once that write is known to be done.
    type Receipt: Clone + Debug + Send + 'static;

    /// Takes one change into the view and pushes the keys that must be planned anew. A change that alters nothing that
    /// a plan reads pushes nothing: a settled world is silent.
    fn observe(
        &mut self,
        source: Self::Source,
        change: Change<Self::Object>,
        at: Timestamp,
        dirty: &mut Vec<Self::Key>,
    );

    /// What the view of a source is worth has changed. Called once for each change, never twice with the same state.
    fn watch_state(&mut self, source: Self::Source, state: WatchState, at: Timestamp, dirty: &mut Vec<Self::Key>);

    /// A watch has lost touch with its server, or found it again. What is held stays the best knowledge there is; whoever
    /// vouches for it to others wants to know. At first every watch is in touch.
    fn in_touch(&mut self, _source: Self::Source, _in_touch: bool, _at: Timestamp, _dirty: &mut Vec<Self::Key>) {}

    /// Whether this source is wanted at present. Asked whenever the agent has taken something in or planned, so it may depend
    /// on anything in the view.
    ///
    /// A source that is not wanted is not watched and holds nothing, and readiness does not wait for it. It is
    /// [`WatchState::Unwatched`], from the start or from a call of [`Logic::watch_state`], with which the agent drops what
    /// it holds of the source: nothing of it is told as [`Change::Removed`], for it was not deleted. Wanted again, the source
    /// is [`WatchState::Incomplete`] and is listed anew.
    fn wants(&self, _source: Self::Source) -> bool {
        true
    }

    /// How a source is read: a number that changes when the agent needs all of its objects told once more, since it has let
    /// go of something of them. Asked as [`Logic::wants`] is.
    ///
    /// The source is listed anew then, and what is held is told as [`Change::Applied`] though it has not changed. Until that
    /// list has ended, which [`Logic::read_anew`] tells, the view of the source is worth what it was.
    fn reading(&self, _source: Self::Source) -> u64 {
        0
    }

    /// All of a source has been told once more: [`Logic::reading`] had changed. Pushes the keys that must be planned.
    fn read_anew(&mut self, _source: Self::Source, _at: Timestamp, _dirty: &mut Vec<Self::Key>) {}

    /// What there is to do for a key. The writes are independent of each other and may run in any order and at once.
    fn plan(&mut self, key: &Self::Key, now: Timestamp) -> Plan<Self>;

    /// The fairness lane of a key, such as the cluster that the work comes from: lanes take turns.
    fn lane(&self, key: &Self::Key) -> LaneId;

    /// How many writes of a lane may be in flight at once in one cluster. What a cluster takes in all is limited anyway
    /// ([`crate::limits::IN_FLIGHT_PER_CLUSTER`]).
    fn most_in_flight(&self, _lane: LaneId) -> usize {
        usize::MAX
    }

    /// Called once, before the first plan whose writes are carried out. Until then another may lead: its writes come by the
    /// watches, and plans are made to know what it has left to do.
    fn leads(&mut self, _at: Timestamp, _dirty: &mut Vec<Self::Key>) {}

    /// The wall clock was set by so many microseconds, below zero where it was set back. A time that the view remembers moves by
    /// as much, so that no wait becomes longer or shorter; a time that stands in an object does not.
    fn clock_set(&mut self, _microseconds: i64) {}

    /// The last writes of one that leads and is asked to stop, when all others have ended. They have little time, are tried
    /// once, and give no receipt.
    fn farewell(&mut self, _now: Timestamp) -> Vec<Request<Self>> {
        Vec::new()
    }

    /// A write leaves. What is seen of its target until [`Logic::ended`] may be its doing or another's.
    fn begun(&mut self, _key: &Self::Key, _request: &Request<Self>) {}

    /// It has ended, and what its answer shows is in the view. Called before [`Logic::written`], [`Logic::refused`] and
    /// [`Logic::failed`]. Pushes the keys that must be planned anew, beside the write's own.
    fn ended(
        &mut self,
        _key: &Self::Key,
        _request: &Request<Self>,
        _end: WriteEnd,
        _at: Timestamp,
        _dirty: &mut Vec<Self::Key>,
    ) {
    }

    /// A write was not carried out: called for each try, after [`Logic::ended`]. [`Logic::refused`] and [`Logic::failed`]
    /// are called for the first of a row only.
    fn not_done(&mut self, _key: &Self::Key, _failure: &Refusal<Self::Source>, _at: Timestamp) {}

    /// A write that carried this receipt was carried out, and its answer is already in the view. What to tell users.
    fn written(&mut self, receipt: Self::Receipt, at: Timestamp) -> Vec<EventRecord<Self::Source>>;

    /// The server refused a write for its content (400, 413, 415, 422): it is sent again every 10 minutes, and once it
    /// differs. What to tell users.
    fn refused(&mut self, key: &Self::Key, refusal: &Refusal<Self::Source>) -> Vec<EventRecord<Self::Source>>;

    /// A write was denied (403, 404), or has failed for another reason than its content or what it met; it is tried again
    /// by itself. What to tell users. The status is 0 where the server has given none.
    fn failed(&mut self, _key: &Self::Key, _failure: &Refusal<Self::Source>) -> Vec<EventRecord<Self::Source>> {
        Vec::new()
    }

    /// Somebody else undoes what this key writes to an object, so that it is repaired once a minute only; or that is over. Pushes
    /// the keys that must be planned anew. What to tell users.
    fn fight(
        &mut self,
        _key: &Self::Key,
        _fight: &Fight<Self::Source>,
        _dirty: &mut Vec<Self::Key>,
    ) -> Vec<EventRecord<Self::Source>> {
        Vec::new()
    }

    /// True if the writes of a key say the same at other times, as a heartbeat does: then none of them is a repair of the one
    /// before, whoever else writes to the object in between.
    fn renews(&self, _key: &Self::Key) -> bool {
        false
    }

    /// Whether keys that a change of this source marks dirty forget the slow back-off after 403 and 404. True for what
    /// such refusals wait for, such as Namespaces: one that is made later wakes what was refused for the lack of it.
    fn clears_backoff(&self, _source: Self::Source) -> bool {
        false
    }
}

/// A fairness lane. Lanes that share a number share their turn, so a collision costs fairness and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LaneId(pub u64);

impl LaneId {
    /// The lane of a name, the same in every process (64-bit FNV-1a).
    #[must_use]
    pub fn of(name: &str) -> Self {
        let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, fold))
    }
}

/// The outcome of planning one key.
pub struct Plan<L: Logic> {
    /// Writes, independent of each other. What depends on an outcome appears in a later plan.
    pub writes: Vec<Request<L>>,
    /// Events to record.
    pub events: Vec<EventRecord<L::Source>>,
    /// Plan this key again at that time, whatever happens until then. Replaces the wish of the plan before.
    pub again: Option<Timestamp>,
}

impl<L: Logic> Default for Plan<L> {
    fn default() -> Self {
        Self { writes: Vec::new(), events: Vec::new(), again: None }
    }
}

impl<L: Logic> Clone for Plan<L> {
    fn clone(&self) -> Self {
        Self { writes: self.writes.clone(), events: self.events.clone(), again: self.again }
    }
}

impl<L: Logic> PartialEq for Plan<L>
where
    L::Receipt: PartialEq,
{
    fn eq(&self, other: &Self) -> bool {
        self.writes == other.writes && self.events == other.events && self.again == other.again
    }
}

impl<L: Logic> Debug for Plan<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("writes", &self.writes)
            .field("events", &self.events)
            .field("again", &self.again)
            .finish()
    }
}

/// One write to one object.
pub struct Request<L: Logic> {
    /// Gives the cluster, the resource, and the decoder of the answer.
    pub source: L::Source,
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// What to do.
    pub verb: Verb,
    /// Handed to [`Logic::written`] once the write is known to be done.
    pub receipt: Option<L::Receipt>,
}

impl<L: Logic> Clone for Request<L> {
    fn clone(&self) -> Self {
        Self {
            source: self.source,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            verb: self.verb.clone(),
            receipt: self.receipt.clone(),
        }
    }
}

impl<L: Logic> PartialEq for Request<L>
where
    L::Receipt: PartialEq,
{
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
            && self.namespace == other.namespace
            && self.name == other.name
            && self.verb == other.verb
            && self.receipt == other.receipt
    }
}

impl<L: Logic> Debug for Request<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("source", &self.source)
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("verb", &self.verb)
            .field("receipt", &self.receipt)
            .finish()
    }
}

/// What to do with an object. Every verb has its precondition: not there, at this version, of this UID.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// POST of the whole object.
    Create {
        /// The object with apiVersion, kind and metadata.
        body: serde_json::Value,
    },
    /// JSON merge patch. The writer adds `metadata.resourceVersion` as the precondition.
    Patch {
        /// `None`, or `Some("status")`.
        subresource: Option<&'static str>,
        /// The version that the patch was made for, as the view holds it.
        resource_version: u64,
        /// The patch, without the precondition.
        body: serde_json::Value,
    },
    /// PUT of the whole object: for kinds of which everything is held, and none too much. A server takes less for it than
    /// for a patch (kube-apiserver 1.35: 3.1 ms in place of 5.1 ms for an EndpointSlice of 50 endpoints). The writer adds
    /// `metadata.resourceVersion` as the precondition, so that nothing is lost that others wrote meanwhile.
    Replace {
        /// The version that the object was made of, as the view holds it.
        resource_version: u64,
        /// The object with apiVersion, kind and metadata, without what the server alone decides.
        body: serde_json::Value,
    },
    /// DELETE with the UID as the precondition.
    Delete {
        /// UID of the object that is meant.
        uid: Box<str>,
    },
}

impl Verb {
    /// Lower-case name for metrics and logs.
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

/// How a write has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteEnd {
    /// It was carried out. The version of the object that it was answered with, whatever the server has made of what was
    /// asked for; none where it was answered that there is no object any more.
    Done {
        /// resourceVersion.
        version: Option<u64>,
    },
    /// It was not carried out: it met a conflict.
    NotDone,
    /// It was not carried out: the server denied or rejected it.
    Denied,
    /// It failed, and nothing that was asked tells that it was carried out. It may have been.
    Unknown,
}

/// Reason of a refusal whose namespace is being deleted: nothing is created there any more.
pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// A write that the server refused: for its content, in [`Logic::refused`], or otherwise, in [`Logic::failed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal<S> {
    /// Source of the target.
    pub source: S,
    /// Name of the target's cluster.
    pub cluster: String,
    /// Kind of the target.
    pub kind: String,
    /// Namespace of the target; empty for cluster-scoped kinds.
    pub namespace: Box<str>,
    /// Name of the target.
    pub name: Box<str>,
    /// The verb, as [`Verb::as_str`] names it.
    pub verb: &'static str,
    /// HTTP status.
    pub status: u16,
    /// The server's reason, such as `Invalid`, or [`NAMESPACE_TERMINATING`]; may be empty.
    pub reason: String,
    /// The server's message.
    pub message: String,
}

/// A fight over an object: this agent repairs it, and somebody else undoes that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fight<S> {
    /// Source of the object.
    pub source: S,
    /// Name of its cluster.
    pub cluster: String,
    /// Kind of the object.
    pub kind: &'static str,
    /// Namespace of the object; empty for cluster-scoped kinds.
    pub namespace: Box<str>,
    /// Name of the object.
    pub name: Box<str>,
    /// The other side, as far as the object names it: for people. `None` where the fight is over: the last repair has stood for
    /// a minute, or nothing is to be repaired any more.
    pub by: Option<String>,
}

/// A Kubernetes Event (core/v1) to record about an object of a source, in the cluster of that source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord<S> {
    /// Source of the object that the event is about: gives its cluster, apiVersion and kind.
    pub source: S,
    /// Namespace of that object; empty for cluster-scoped kinds (the event then goes to `default`).
    pub namespace: Box<str>,
    /// Name of that object.
    pub name: Box<str>,
    /// UID of that object.
    pub uid: Box<str>,
    /// Normal or Warning.
    pub severity: Severity,
    /// Who says it, as `source.component` of the Event.
    pub component: &'static str,
    /// CamelCase reason.
    pub reason: &'static str,
    /// For people: what happened, why, and what helps.
    pub message: String,
}

/// The type of a Kubernetes Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information.
    Normal,
    /// Something that a user should look at.
    Warning,
}

impl Severity {
    /// As the API spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// How to watch and to address a source.
pub struct SourceSpec<L: Logic> {
    /// The source.
    pub source: L::Source,
    /// Its cluster; `cluster.name` is the label in metrics and logs.
    pub cluster: Arc<Cluster>,
    /// Its kind.
    pub resource: Resource,
    /// The one namespace to watch; `None`: all.
    pub namespace: Option<String>,
    /// The one object to watch; `None`: all. Rights to a list or a watch can be limited to that name.
    pub name: Option<&'static str>,
    /// Absent or forbidden means that a feature is off ([`WatchState::Absent`]), not that the agent cannot work.
    pub optional: bool,
    /// A right that is lost (403) after the view was complete makes it [`WatchState::Unknown`], and it is listed anew when
    /// the right comes back. Otherwise what is held stays the best knowledge there is.
    pub freezes_when_forbidden: bool,
    /// Watch metadata only (PartialObjectMetadata).
    pub metadata_only: bool,
    /// Reads what the watch brings and what the writes are answered with.
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
