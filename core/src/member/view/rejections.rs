//! Rejections: writes whose content a server rejected. The view records the last rejection of each key. No watch shows a
//! rejection, so the writer reports each rejection to the view. After a restart, only a condition on the user's object shows
//! the rejection.

use super::{Key, View};

impl View {
    /// Records that a server rejected a write of this key. `message` is the text for the user.
    pub fn write_rejected(&mut self, key: &Key, message: String) {
        self.rejections.insert(key.clone(), message);
    }

    /// Drops the recorded rejection of a key, because the write succeeded or would have other content now.
    pub fn forget_rejection(&mut self, key: &Key) {
        self.rejections.remove(key);
    }

    /// Returns the message about the last rejected write of a key; `None` if no rejection is recorded.
    pub(crate) fn rejection(&self, key: &Key) -> Option<&str> {
        self.rejections.get(key).map(String::as_str)
    }
}
