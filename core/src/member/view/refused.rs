//! Writes that the server rejected for their content, by key. No watch shows a rejection, so the agent reports it here. A
//! condition keeps it over a restart.

use super::{Key, View};

impl View {
    /// Notes that the server rejected a write of a key, and its message.
    pub fn write_refused(&mut self, key: &Key, message: String) {
        self.refused.insert(key.clone(), message);
    }

    /// Forgets the rejection of a key: its write succeeded, or its inputs changed.
    pub fn nothing_refused(&mut self, key: &Key) {
        self.refused.remove(key);
    }

    /// Returns the message of the last rejection of a key.
    pub(crate) fn refused(&self, key: &Key) -> Option<&str> {
        self.refused.get(key).map(String::as_str)
    }
}
