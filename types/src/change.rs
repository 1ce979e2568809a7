//! Changes of objects, from a watch to a view.

use crate::name::{ObjectName, Uid};

/// Change of one object of a kind, as an agent learns of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<O> {
    /// The object exists, and this is its newest known state. It is decodable.
    Applied(O),
    /// An object of this name exists, but it is undecodable and no state of it is known. Nothing may depend on its absence.
    /// An `Applied` or `Removed` of the name ends this.
    ///
    /// This comes once for each object, and again for each known object in a list that the agent requested.
    Undecodable {
        /// Name of the object.
        name: ObjectName,
    },
    /// The known object of this name is gone. If an object was deleted and created again under the same name, a `Removed` of
    /// the old UID comes before the `Applied` of the new one.
    Removed {
        /// Name of the object.
        name: ObjectName,
        /// UID of the object. Empty if it was undecodable too.
        uid: Uid,
        /// How the removal became known.
        how: Removal,
    },
}

/// How the removal of an object became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The watch reported it, a newer object has its name, or the server confirmed a delete of this agent.
    Deleted,
    /// A complete list, at least as new as the known state, does not contain the object.
    Unlisted,
    /// A complete list does not contain the object, but is older than what the watch had shown. The server was restored from
    /// a backup, so nobody deleted the object.
    RolledBack,
}

/// Decoded object: its version and its compact value.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed<O> {
    /// Name of the object.
    pub name: ObjectName,
    /// UID of the object.
    pub uid: Uid,
    /// Resource version as a number (KEP-5504: comparable within one kind of one server).
    pub resource_version: u64,
    /// Compact value.
    pub object: O,
}

impl<O> Observed<O> {
    /// Converts the compact value.
    pub fn map<P>(self, convert: impl FnOnce(O) -> P) -> Observed<P> {
        let Self { name, uid, resource_version, object } = self;
        Observed { name, uid, resource_version, object: convert(object) }
    }
}

/// Object that exists but fails to decode. Its last known state stays in force, and it never counts as deleted. Fields that
/// could not be decoded are empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undecodable {
    /// Name of the object.
    pub name: ObjectName,
    /// UID of the object.
    pub uid: Uid,
    /// Resource version of the object.
    pub resource_version: u64,
    /// Reason, for the log.
    pub why: String,
}
