//! Contents of own writes whose outcome is unknown ([`Lost`]).
//!
//! For such a write, neither the write nor the GET after it had a response. If the server executed the write, a watch
//! or a list shows the written content later. This content then identifies the change as an own write.

use super::alike::Fingerprint;
use crate::limits::{LOST_WRITE_AGE, LOST_WRITES_PER_SLICE};
use fleetnet_types::{ObjectName, Timestamp};
use std::collections::BTreeMap;

/// Own writes of unknown outcome, by slice. No watch or list has shown their content yet.
#[derive(Debug, Default)]
pub(super) struct Lost {
    writes: BTreeMap<ObjectName, Vec<Write>>,
    /// Time at which old writes were last removed.
    tidied: Timestamp,
}

#[derive(Debug)]
struct Write {
    at: Timestamp,
    content: Content,
}

/// Hash of the content in the request of a write; `None` for a delete.
pub(super) type Content = Option<Fingerprint>;

impl Lost {
    /// Records an own write of unknown outcome.
    pub(super) fn note(&mut self, slice: &ObjectName, content: Content, at: Timestamp) {
        self.tidy(at);
        let writes = self.writes.entry(slice.clone()).or_default();
        writes.retain(|write| write.content != content);
        if writes.len() >= LOST_WRITES_PER_SLICE {
            writes.remove(0);
        }
        writes.push(Write { at, content });
    }

    pub(super) fn has(&self, slice: &ObjectName) -> bool {
        self.writes.contains_key(slice)
    }

    /// Returns true if a recorded write has the content that a watch or list now shows for the slice. Then removes this
    /// write and all earlier writes to the slice from the record.
    pub(super) fn sees(&mut self, slice: &ObjectName, content: Content, at: Timestamp) -> bool {
        let Some(writes) = self.writes.get_mut(slice) else { return false };
        let seen = writes.iter().rposition(|write| is_fresh(write.at, at) && write.content == content);
        let Some(seen) = seen else { return false };
        writes.drain(..=seen);
        if writes.is_empty() {
            self.writes.remove(slice);
        }
        true
    }

    fn tidy(&mut self, now: Timestamp) {
        if is_fresh(self.tidied, now) {
            return;
        }
        self.tidied = now;
        self.writes.retain(|_, writes| {
            writes.retain(|write| is_fresh(write.at, now));
            !writes.is_empty()
        });
    }
}

/// True if a write is at most [`LOST_WRITE_AGE`] old. If the clock was set back, a write may seem to be far in the
/// future. Its age is then unknown, so the result is false.
fn is_fresh(at: Timestamp, now: Timestamp) -> bool {
    now.since(at) <= LOST_WRITE_AGE && at.since(now) <= LOST_WRITE_AGE
}

#[cfg(test)]
mod tests;
