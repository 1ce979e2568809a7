//! Changes of objects, as a watch reports them to an agent's view.

use crate::name::{ObjectName, Uid};

/// Change of one object, from a watch, a list or the response to a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<O> {
    /// The object exists and is decodable. The value is its newest known state.
    Applied(O),
    /// An object with this name exists, but the object is undecodable and has no known earlier state. An agent must not
    /// treat the object as absent.
    ///
    /// The watch reports this change once for each undecodable object, and once more if the agent requests a relist of
    /// the kind. A later `Applied` or `Removed` with the same name ends this state.
    Undecodable {
        /// Name of the object.
        name: ObjectName,
    },
    /// The known object with this name is gone. If an object was deleted and created again under the same name, a
    /// `Removed` with the old UID comes before the `Applied` with the new UID.
    Removed {
        /// Name of the object.
        name: ObjectName,
        /// UID of the object. Empty if the UID was undecodable too.
        uid: Uid,
        /// Evidence for the removal.
        how: Removal,
    },
}

/// Evidence for the removal of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The watch reported the deletion, a newer object has the same name, or the server confirmed a delete by this
    /// agent.
    Deleted,
    /// A complete list, at least as new as the known state, does not contain the object.
    Unlisted,
    /// A complete list does not contain the object, but the list is older than the known state: the server was restored
    /// from a backup. So nobody deleted the object.
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

/// Object that exists but fails to decode. The agent continues to use the object's last known state and never treats
/// the object as deleted. Fields that could not be decoded are empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undecodable {
    /// Name of the object.
    pub name: ObjectName,
    /// UID of the object.
    pub uid: Uid,
    /// resourceVersion of the object.
    pub resource_version: u64,
    /// Reason why the object does not decode, for the log.
    pub why: String,
}
