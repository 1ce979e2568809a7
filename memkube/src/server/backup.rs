//! Backup and restore of a server's data, as with an etcd snapshot.

use super::MemKube;
use crate::store::Store;

/// Distance of the first resourceVersion after [`MemKube::restore_bumped`] from the last one before.
const BUMP: u64 = 1_000_000_000;

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

    /// Restores a backup as [`MemKube::restore`] does, and raises the resourceVersion of the server above each one that a client
    /// has seen, as `etcdutl snapshot restore --bump-revision --mark-compacted` does. Watches from earlier versions get 410.
    pub fn restore_bumped(&self, backup: &Backup) {
        let mut state = self.0.state.lock();
        let revision = state.store.revision();
        state.store.replace_with(&backup.0);
        state.store.bump(revision + BUMP);
    }
}
