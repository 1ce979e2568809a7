//! What a server refused for its content, by the key that wants it. No watch tells that, so the agent does; and it stands in a
//! condition, which remembers it over a restart.

use super::{Key, View};

impl View {
    /// A server refused a write of a key, and says so.
    pub fn write_refused(&mut self, key: &Key, message: String) {
        self.refused.insert(key.clone(), message);
    }

    /// A key wants nothing any more that could be refused: it was written, or its inputs have changed.
    pub fn nothing_refused(&mut self, key: &Key) {
        self.refused.remove(key);
    }

    /// What was refused of a key.
    pub(crate) fn refused(&self, key: &Key) -> Option<&str> {
        self.refused.get(key).map(String::as_str)
    }
}
