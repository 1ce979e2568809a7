//! Changes of objects, as a watch reports them to an agent's view.

use crate::name::{ObjectName, Uid};

/// Change of one object, as an agent learns of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<O> {
    /// The object exists, and this is its newest known state. It is decodable.
    Applied(O),
    /// An object of this name exists, but it is undecodable and no earlier state of it is known. Nothing may depend on its
    /// absence. An `Applied` or `Removed` of the name ends this.
    ///
    /// Reported once for each such object, and again for each known object in a list that the agent requested.
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
        /// Way in which the removal became known.
        how: Removal,
    },
}

/// Way in which the removal of an object became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The watch reported it, a newer object has its name, or the server confirmed a delete of this agent.
    Deleted,
    /// A complete list, at least as new as the known state, does not contain the object.
    Unlisted,
    /// A complete list does not contain the object, but is older than what the watch had shown: the server was restored from a
    /// backup. So nobody deleted the object.
    RolledBack,
}

/// Decoded object with its name, UID and version.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed<O> {
    /// Name of the object.
    pub name: ObjectName,
    /// UID of the object.
    pub uid: Uid,
    /// resourceVersion as a number (KEP-5504: comparable within one kind of one server).
    pub resource_version: u64,
    /// Object in the compact form that the agent's view keeps.
    pub object: O,
}

impl<O> Observed<O> {
    /// Converts the object to another type.
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
    /// resourceVersion of the object.
    pub resource_version: u64,
    /// Reason why it does not decode, for the log.
    pub why: String,
}
