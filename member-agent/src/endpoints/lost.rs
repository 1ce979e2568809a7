//! [`Lost`]: what was asked of slices by writes whose outcome nobody knows.
//!
//! No answer came, and none to the question after it. If such a write was carried out, the watch shows what it asked for,
//! or a later list does: by that it is known to be ours.

use super::alike::Fingerprint;
use fleetnet_core::ids::ObjectName;
use fleetnet_runtime::clock::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// What was asked for longer ago does not come any more: an API server gives up on a write within that time.
const REMEMBERED: Duration = Duration::from_secs(60);
/// So many of one slice are remembered, the latest. Only one write to it is under way at a time, and each waits longer than
/// the one before.
const WRITES_PER_SLICE: usize = 64;

/// Writes that may have been carried out and have not been seen.
#[derive(Debug, Default)]
pub(super) struct Lost {
    writes: BTreeMap<ObjectName, Vec<Write>>,
    /// When old ones were last forgotten.
    tidied: Timestamp,
}

#[derive(Debug)]
struct Write {
    at: Timestamp,
    content: Content,
}

/// What a slice was to say; none if it was to go.
pub(super) type Content = Option<Fingerprint>;

impl Lost {
    /// A slice was asked to become this, or to go, and nobody knows what came of that.
    pub(super) fn note(&mut self, slice: &ObjectName, content: Content, at: Timestamp) {
        self.tidy(at);
        let writes = self.writes.entry(slice.clone()).or_default();
        writes.retain(|write| write.content != content);
        if writes.len() >= WRITES_PER_SLICE {
            writes.remove(0);
        }
        writes.push(Write { at, content });
    }

    /// Whether a slice's writes are among them.
    pub(super) fn has(&self, slice: &ObjectName) -> bool {
        self.writes.contains_key(slice)
    }

    /// A slice is seen so, or gone. True if that was asked for: then it is done, and so is what was asked before.
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

/// What was asked for far ahead of now was asked before the clock went back: nobody knows how long ago.
fn is_fresh(at: Timestamp, now: Timestamp) -> bool {
    now.since(at) <= REMEMBERED && at.since(now) <= REMEMBERED
}

#[cfg(test)]
mod tests;
