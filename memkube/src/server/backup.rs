//! Backup and restore of a server's data, as with an etcd snapshot.

use super::MemKube;
use crate::store::Store;

/// Data of a server at one moment. The backup shares the stored objects with the server.
#[derive(Debug)]
pub struct Backup(Store);

impl MemKube {
    /// Returns a backup of the current data.
    #[must_use]
    pub fn backup(&self) -> Backup {
        Backup(self.0.state.lock().store.fork())
    }

    /// Restores a backup: its objects and resourceVersions replace all objects of the server, and open watches end. Registered
    /// kinds do not change.
    pub fn restore(&self, backup: &Backup) {
        let mut state = self.0.state.lock();
        state.store.replace_with(&backup.0);
    }
}
