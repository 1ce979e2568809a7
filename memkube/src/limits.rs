//! Every limit of this crate in one place. [`Limits`] has those that a test or a simulation may want otherwise.

use std::time::Duration;

/// An object is at most so long as JSON: what etcd accepts in one request (`--max-request-bytes`).
pub const OBJECT_BYTES: usize = 1_572_864;
/// A request's body is at most so long (kube-apiserver's `MaxRequestBodyBytes`).
pub const BODY_BYTES: usize = 3 << 20;
/// Objects in all tables together; etcd's quota plays this part in a cluster.
pub const OBJECTS: usize = 1_000_000;
/// Watches open at once.
pub const WATCHES: usize = 4096;
/// Changes remembered per kind, for watches that begin in the past and for those that read slowly.
pub const LOG_CHANGES: usize = 4096;
/// Bytes of objects remembered per kind beside those that are there.
pub const LOG_BYTES: usize = 2 << 20;
/// Changes that a watch takes in one turn.
pub const CHANGES_PER_TURN: usize = 256;
/// Requests remembered in the audit ledger; its counts are kept for ever.
pub const AUDIT_ENTRIES: usize = 8192;
/// Operations in one JSON patch (kube-apiserver's limit).
pub const JSON_PATCH_OPERATIONS: usize = 10_000;
/// What all `copy` operations of one JSON patch copy is together at most so long as JSON (kube-apiserver's
/// `JSONPatchMaxCopyBytes`). Each may double the object, so that their number alone bounds nothing.
pub const JSON_PATCH_COPY_BYTES: usize = 3 << 20;
/// A read waits so long for a resourceVersion that has not come yet.
pub const FRESH_WAIT: Duration = Duration::from_secs(3);
/// Between two bookmarks of a watch that asks for them.
pub const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// A watch that does not say how long it wants to last ends after one to two times this.
pub const WATCH_DURATION_MIN: Duration = Duration::from_secs(1800);
/// A watch lasts at most so long, however long it wants to: its end can then be told as a time.
pub const WATCH_DURATION_MAX: Duration = Duration::from_secs(12 * 3600);
/// Tries for a free name for `metadata.generateName`.
pub const GENERATE_NAME_TRIES: usize = 8;
/// Connections over HTTPS at once; those that are more wait to be taken.
pub const CONNECTIONS: usize = 4096;
/// A client that has connected takes at most so long for the TLS handshake.
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// A connection without a request is closed after this; longer than clients keep theirs (90 s), so that they close first.
pub const IDLE: Duration = Duration::from_secs(300);
/// The line and headers of a request are together at most so long.
pub const HEADER_BYTES: usize = 64 << 10;
/// Requests that run when HTTPS is ended have so long to be answered.
pub const END_GRACE: Duration = Duration::from_secs(2);
/// Before the next try where the system has no connection to give (no file handles left).
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The limits that can be given to a server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// See [`OBJECT_BYTES`].
    pub object_bytes: usize,
    /// See [`BODY_BYTES`].
    pub body_bytes: usize,
    /// See [`OBJECTS`].
    pub objects: usize,
    /// See [`WATCHES`].
    pub watches: usize,
    /// See [`LOG_CHANGES`].
    pub log_changes: usize,
    /// See [`LOG_BYTES`].
    pub log_bytes: usize,
    /// See [`AUDIT_ENTRIES`].
    pub audit_entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            object_bytes: OBJECT_BYTES,
            body_bytes: BODY_BYTES,
            objects: OBJECTS,
            watches: WATCHES,
            log_changes: LOG_CHANGES,
            log_bytes: LOG_BYTES,
            audit_entries: AUDIT_ENTRIES,
        }
    }
}
