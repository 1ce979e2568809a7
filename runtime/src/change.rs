//! What watches and answers tell: [`Observed`] as it is read, [`Change`] as an agent is told it.

use std::sync::Arc;

/// A change to what is held of a source.
#[derive(Clone, Debug, PartialEq)]
pub enum Change<O> {
    /// The object exists and this is its newest known state. Nothing under its name is unreadable any more.
    Applied(O),
    /// An object of this name exists and cannot be read, and nothing is held of it: so it was when the agent started, or
    /// when the object was made. Nothing may be decided by its absence. Told once; an `Applied` or a `Removed` of the name
    /// ends it. Told too of what is held, where all is told once more ([`crate::Logic::reading`]): what the agent let go of it
    /// cannot be read.
    Unreadable {
        /// Namespace; empty for cluster-scoped kinds.
        namespace: Box<str>,
        /// Name.
        name: Box<str>,
    },
    /// The object that was held under this name is gone. An object that was made again under the same name gives a
    /// `Removed` of the old UID and then an `Applied` of the new one.
    Removed {
        /// Namespace; empty for cluster-scoped kinds.
        namespace: Box<str>,
        /// Name.
        name: Box<str>,
        /// UID of the object that is gone; empty for one that could not be read, not even that.
        uid: Box<str>,
        /// How it became known.
        how: Removal,
    },
}

/// How it became known that an object is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The watch said so, a later object has its name, or the server confirmed our own delete.
    Deleted,
    /// A complete list at a version as new as what was held does not have it.
    Unlisted,
    /// A complete list does not have it, but that list is older than what the watch had shown already: the server's
    /// data went back in time (restored from a backup), so the object was not deleted by anybody.
    RolledBack,
}

/// An object as a decoder returns it: the metadata that versions are settled by, and the compact value.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed<O> {
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// resourceVersion as a number (KEP-5504: comparable within one kind of one server).
    pub resource_version: u64,
    /// The compact value.
    pub object: O,
}

impl<O> Observed<O> {
    /// The same object as another type has it.
    pub fn map<P>(self, of: impl FnOnce(O) -> P) -> Observed<P> {
        let Self { namespace, name, uid, resource_version, object } = self;
        Observed { namespace, name, uid, resource_version, object: of(object) }
    }
}

/// Present and unreadable: what is held stays, and it never looks deleted. Fields that could not be read either are
/// empty or 0.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Unreadable {
    /// Namespace, where it could be read.
    pub namespace: Box<str>,
    /// Name, where it could be read.
    pub name: Box<str>,
    /// UID, where it could be read.
    pub uid: Box<str>,
    /// resourceVersion, where it could be read.
    pub resource_version: u64,
    /// What is wrong with it, for the log.
    pub why: String,
}

/// Turns the JSON of one object (full, or metadata only where the source asks for that) into the compact value. It
/// fails only where the metadata cannot be read; a value out of range is the object's to express.
pub type Decoder<O> = Arc<dyn Fn(&[u8]) -> Result<Observed<O>, Unreadable> + Send + Sync>;
