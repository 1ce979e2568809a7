//! Backups of a server's data and their return, as of etcd.

use super::MemKube;
use crate::store::Store;

/// The data of a server at one moment. It shares the objects with the server.
#[derive(Debug)]
pub struct Backup(Store);

impl MemKube {
    /// Its data now.
    #[must_use]
    pub fn backup(&self) -> Backup {
        Backup(self.0.state.lock().store.fork())
    }

    /// Goes back to a backup: objects and resourceVersions are what they were then, and open watches end. The kinds that
    /// are registered stay.
    pub fn restore(&self, backup: &Backup) {
        let mut state = self.0.state.lock();
        state.store.replace_with(&backup.0);
    }
}
