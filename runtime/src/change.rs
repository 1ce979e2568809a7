//! Input from watches and answers: [`Observed`] as the runtime reads it, [`Change`] as the agent receives it.

use std::sync::Arc;

/// Change to the view of a source.
#[derive(Clone, Debug, PartialEq)]
pub enum Change<O> {
    /// The object exists and this is its newest known state. It ends an earlier [`Change::Unreadable`] of the same name.
    Applied(O),
    /// An object of this name exists but does not decode, and the view has no earlier state of it. No decision may rely on its
    /// absence.
    ///
    /// Emitted once, until an `Applied` or a `Removed` of the same name. A forced relist ([`crate::Logic::reading`]) also emits
    /// it for known objects that do not decode now, because the agent may have dropped parts of them.
    Unreadable {
        /// Namespace; empty for cluster-scoped kinds.
        namespace: Box<str>,
        name: Box<str>,
    },
    /// The known object of this name is gone. If an object was deleted and created again under the same name, a `Removed` of
    /// the old UID precedes the `Applied` of the new one.
    Removed {
        /// Namespace; empty for cluster-scoped kinds.
        namespace: Box<str>,
        name: Box<str>,
        /// UID of the object that is gone. Empty if the UID itself was not readable.
        uid: Box<str>,
        /// How the runtime learned of it.
        how: Removal,
    },
}

/// How the runtime learned that an object is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The watch reported it, a newer object has its name, or the server confirmed a delete of this agent.
    Deleted,
    /// A complete list, at least as new as the known version, does not contain it.
    Unlisted,
    /// A complete list does not contain it, but that list is older than what the watch had already shown. The server's data
    /// went back in time (restored from a backup), so nobody deleted the object.
    RolledBack,
}

/// Object as a decoder returns it: the metadata that decides between versions, and the compact value.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed<O> {
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: Box<str>,
    pub name: Box<str>,
    pub uid: Box<str>,
    /// resourceVersion as a number (KEP-5504: comparable within one kind of one server).
    pub resource_version: u64,
    /// Object as the view keeps it.
    pub object: O,
}

impl<O> Observed<O> {
    /// Returns the same object with a value of another type.
    pub fn map<P>(self, of: impl FnOnce(O) -> P) -> Observed<P> {
        let Self { namespace, name, uid, resource_version, object } = self;
        Observed { namespace, name, uid, resource_version, object: of(object) }
    }
}

/// Object that exists but does not decode. Its known state stays, and it never looks deleted.
///
/// Fields that were not readable either are empty or 0.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Unreadable {
    pub namespace: Box<str>,
    pub name: Box<str>,
    pub uid: Box<str>,
    pub resource_version: u64,
    /// Reason, for the log.
    pub why: String,
}

/// Turns the JSON of one object into the compact value. The JSON has metadata only if the source asks for that.
///
/// Fails only if the metadata does not decode. A value out of range is for the object type to express.
pub type Decoder<O> = Arc<dyn Fn(&[u8]) -> Result<Observed<O>, Unreadable> + Send + Sync>;
