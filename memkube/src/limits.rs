//! All limits of this crate. Tests and simulations can change the limits in [`Limits`].

use std::time::Duration;

/// Bytes of an object as JSON: the largest request that etcd accepts (`--max-request-bytes`).
pub const OBJECT_BYTES: usize = 1_572_864;
/// Bytes of a request body (kube-apiserver's `MaxRequestBodyBytes`).
pub const BODY_BYTES: usize = 3 << 20;
/// Objects in all tables together. It limits memory, as the quota of etcd limits storage.
pub const OBJECTS: usize = 1_000_000;
/// Open watches. It limits memory.
pub const WATCHES: usize = 4096;
/// Changes in the event log of each kind. Watches that start in the past and slow watches read them from there.
pub const LOG_CHANGES: usize = 4096;
/// Bytes of the object states in the event log of each kind.
pub const LOG_BYTES: usize = 2 << 20;
/// Changes that a watch processes before it lets other tasks run.
pub const CHANGES_PER_TURN: usize = 256;
/// Requests in the audit ledger. Its counts have no limit of age.
pub const AUDIT_ENTRIES: usize = 8192;
/// Operations in one JSON patch (kube-apiserver's limit).
pub const JSON_PATCH_OPERATIONS: usize = 10_000;
/// Bytes, as JSON, that all `copy` operations of one JSON patch may copy (kube-apiserver's `JSONPatchMaxCopyBytes`).
/// Each `copy` can double the object, so a limit on the number of operations is not enough.
pub const JSON_PATCH_COPY_BYTES: usize = 3 << 20;
/// Time that a read waits for a resourceVersion that memkube has not reached (kube-apiserver waits as long).
pub const FRESH_WAIT: Duration = Duration::from_secs(3);
/// Time between two bookmarks of a watch that asks for bookmarks.
pub const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// A watch without `timeoutSeconds` ends after one to two times this duration.
pub const WATCH_DURATION_MIN: Duration = Duration::from_secs(1800);
/// Longest duration of a watch, even if the client asks for more. A larger value could overflow the time at which the
/// watch ends.
pub const WATCH_DURATION_MAX: Duration = Duration::from_secs(12 * 3600);
/// Attempts to find a free name for `metadata.generateName`.
pub const GENERATE_NAME_TRIES: usize = 8;
/// Open HTTPS connections. Further connections wait until another one closes.
pub const CONNECTIONS: usize = 4096;
/// Time for a client's TLS handshake.
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time after which a connection without a request is closed. Clients close theirs after 90 s, so they close first.
pub const IDLE: Duration = Duration::from_secs(300);
/// Bytes of the request line and headers together.
pub const HEADER_BYTES: usize = 64 << 10;
/// Time for running requests to end when the HTTPS listener stops.
pub const END_GRACE: Duration = Duration::from_secs(2);
/// Time before the next attempt to accept a connection after the system had none to give (no file handles left).
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Limits that can be set for each server.
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
