//! Writes that a server rejected for their content, by key. No watch shows a rejection, so the agent reports it here. A
//! condition keeps it over a restart.

use super::{Key, View};

impl View {
    /// Records that a server rejected a write of this key, with its message.
    pub fn write_rejected(&mut self, key: &Key, message: String) {
        self.rejections.insert(key.clone(), message);
    }

    /// Forgets the rejection of a key, because its write succeeded or its inputs changed.
    pub fn forget_rejection(&mut self, key: &Key) {
        self.rejections.remove(key);
    }

    /// Returns the server's message for the last rejected write of a key.
    pub(crate) fn rejection(&self, key: &Key) -> Option<&str> {
        self.rejections.get(key).map(String::as_str)
    }
}
