//! [`Asked`]: what slices were asked to become, until they are seen so.
//!
//! Own writes and those of others are seen on the same ways: answers, watches, lists. What tells them apart is that ours
//! were asked for. A sync may be over before the last of its writes is seen (a pod that flaps needs none in the end), and so
//! may its Service; a write whose answer is lost is seen by the watch. So what was asked for is remembered on its own.

use super::alike::Fingerprint;
use endpointslice::model::EndpointSlice;
use fleetnet_core::ids::ObjectName;
use fleetnet_runtime::clock::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// What was asked for longer ago does not come any more: a write takes at most 20 s, with the question what came of it.
const REMEMBERED: Duration = Duration::from_secs(60);
/// So many wishes for one slice are remembered, the latest. Only one write to it is under way at a time, but nobody tells
/// which: while it is, every plan asks for something newer.
const WISHES_PER_SLICE: usize = 4096;

/// What slices were asked to become and have not been seen as yet.
#[derive(Debug, Default)]
pub(super) struct Asked {
    wishes: BTreeMap<ObjectName, Vec<Wish>>,
    /// When old wishes were last forgotten.
    tidied: Timestamp,
}

#[derive(Debug)]
struct Wish {
    at: Timestamp,
    content: Wished,
}

/// What a slice is to say; none if it is to go.
pub(super) type Wished = Option<Fingerprint>;

impl Asked {
    /// A slice is asked to become this, or to go.
    pub(super) fn note(&mut self, slice: &ObjectName, content: Wished, at: Timestamp) {
        self.tidy(at);
        let wishes = self.wishes.entry(slice.clone()).or_default();
        wishes.retain(|wish| wish.content != content);
        if wishes.len() >= WISHES_PER_SLICE {
            wishes.remove(0);
        }
        wishes.push(Wish { at, content });
    }

    /// A slice is seen in this state. True if that was asked for: then it is done, and so is what was asked before.
    pub(super) fn sees(&mut self, name: &ObjectName, slice: &EndpointSlice, at: Timestamp) -> bool {
        if !self.wishes.contains_key(name) {
            return false;
        }
        let says = Fingerprint::of(slice);
        self.settle(name, at, |content| content.map_or(slice.metadata.is_terminating(), |content| content == says))
    }

    /// A slice is gone. True if that was asked for.
    pub(super) fn sees_gone(&mut self, name: &ObjectName, at: Timestamp) -> bool {
        self.settle(name, at, |content| content.is_none())
    }

    fn settle(&mut self, name: &ObjectName, at: Timestamp, is_seen: impl Fn(Wished) -> bool) -> bool {
        let Some(wishes) = self.wishes.get_mut(name) else { return false };
        let seen = wishes.iter().rposition(|wish| is_fresh(wish.at, at) && is_seen(wish.content));
        let Some(seen) = seen else { return false };
        wishes.drain(..=seen);
        if wishes.is_empty() {
            self.wishes.remove(name);
        }
        true
    }

    fn tidy(&mut self, now: Timestamp) {
        if is_fresh(self.tidied, now) {
            return;
        }
        self.tidied = now;
        self.wishes.retain(|_, wishes| {
            wishes.retain(|wish| is_fresh(wish.at, now));
            !wishes.is_empty()
        });
    }
}

/// What was asked for far ahead of now was asked before the clock went back: nobody knows how long ago.
fn is_fresh(at: Timestamp, now: Timestamp) -> bool {
    now.since(at) <= REMEMBERED && at.since(now) <= REMEMBERED
}

#[cfg(test)]
mod tests;
