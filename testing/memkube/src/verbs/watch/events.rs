//! Conversion of changes to watch events.

use crate::faults::WatchedEvent;
use crate::registry::Registered;
use crate::selector::Selection;
use crate::status::Status;
use crate::store::{Change, ChangeKind, Stored};
use crate::verbs::encode::Encoder;
use bytes::{Bytes, BytesMut};

/// Watch event that is not sent yet.
pub(super) struct Event {
    /// Event in the form that faults receive.
    pub(super) watched: WatchedEvent,
    /// Encoded event, as a line of JSON.
    pub(super) line: Bytes,
}

impl Event {
    /// Returns the event for an object that existed when the watch started.
    pub(super) fn initial(encoder: &Encoder, registered: Option<&Registered>, stored: &Stored) -> Self {
        Self::new(ChangeKind::Added, stored, stored.header.revision, &encoder.object(registered, stored))
    }

    /// Returns the event for a change, or `None` if the selectors of the watch do not match the change.
    ///
    /// The event is `ADDED` for an object that starts to match the selectors, and `DELETED` for an object that no
    /// longer matches.
    pub(super) fn of(
        encoder: &Encoder,
        registered: Option<&Registered>,
        selection: &Selection,
        change: &Change,
    ) -> Option<Self> {
        let was_seen = change.before.as_ref().is_some_and(|before| selection.matches(before));
        let is_seen = change.kind != ChangeKind::Deleted && selection.matches(&change.after);
        let after = || encoder.object(registered, &change.after);
        let (kind, object) = match (was_seen, is_seen) {
            (false, false) => return None,
            (false, true) => (ChangeKind::Added, after()),
            (true, true) => (ChangeKind::Modified, after()),
            (true, false) if change.kind == ChangeKind::Deleted => (ChangeKind::Deleted, after()),
            (true, false) => {
                // The event contains the last state that matched the selectors, with the resourceVersion of the change.
                let before = change.before.as_ref()?;
                (ChangeKind::Deleted, encoder.object(registered, &before.at_revision(change.revision)))
            }
        };
        Some(Self::new(kind, &change.after, change.revision, &object))
    }

    fn new(kind: ChangeKind, stored: &Stored, revision: u64, object: &[Bytes]) -> Self {
        let name = match kind {
            ChangeKind::Added => "ADDED",
            ChangeKind::Modified => "MODIFIED",
            ChangeKind::Deleted => "DELETED",
        };
        Self {
            watched: WatchedEvent {
                kind,
                namespace: stored.key.namespace().into(),
                name: stored.key.name().into(),
                revision,
            },
            line: line(name, object),
        }
    }
}

/// Encodes an `ERROR` event.
pub(crate) fn error_line(status: &Status) -> Bytes {
    line("ERROR", &[status.to_json().to_string().into()])
}

/// Encodes an event as a line of JSON.
pub(super) fn line(kind: &str, object: &[Bytes]) -> Bytes {
    let length: usize = object.iter().map(Bytes::len).sum();
    let mut line = BytesMut::with_capacity(length + 40);
    line.extend_from_slice(br#"{"type":""#);
    line.extend_from_slice(kind.as_bytes());
    line.extend_from_slice(br#"","object":"#);
    for chunk in object {
        line.extend_from_slice(chunk);
    }
    line.extend_from_slice(b"}\n");
    line.freeze()
}
