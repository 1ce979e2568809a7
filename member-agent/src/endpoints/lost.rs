//! Contents of own writes whose outcome is unknown ([`Lost`]).
//!
//! Neither the write nor the GET after it was answered. If the server executed the write, a watch or a list shows its content
//! later. That content then identifies the change as our own.

use super::alike::Fingerprint;
use crate::limits::{LOST_WRITE_AGE, LOST_WRITES_PER_SLICE};
use fleetnet_types::{ObjectName, Timestamp};
use std::collections::BTreeMap;

/// Own writes that may have been executed and were not seen yet, by slice.
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

/// Fingerprint of the content that a write asked for; `None` for a delete.
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

    /// Compares a slice's new state with the recorded writes. True if one of them asked for it; that write and those before it
    /// are then forgotten.
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

/// True if a write is recent. A time far in the future dates from before the clock was set back, so the age of that write is
/// unknown.
fn is_fresh(at: Timestamp, now: Timestamp) -> bool {
    now.since(at) <= LOST_WRITE_AGE && at.since(now) <= LOST_WRITE_AGE
}

#[cfg(test)]
mod tests;
