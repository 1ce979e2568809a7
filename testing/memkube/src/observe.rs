//! Observer of the changes of a server, for simulations that check each change.

use crate::auth::User;
use crate::registry::ResourceId;
use crate::store::Change;

/// Receives each change of a server's objects, before any client can see the change.
pub trait Observer: Send + Sync + 'static {
    /// The server is locked during this call, so the call must not use the server.
    fn committed(&self, commit: &Commit<'_>);
}

/// Change of an object, with its cause.
#[derive(Clone, Copy, Debug)]
pub struct Commit<'a> {
    pub resource: &'a ResourceId,
    pub change: &'a Change,
    /// User of the request that changed the object. `None` for a change by the namespace controller or by the garbage
    /// collector.
    pub user: Option<&'a User>,
}
