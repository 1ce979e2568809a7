//! All limits of this crate. Tests and simulations can change the limits in [`Limits`].

use std::time::Duration;

/// Maximum size of an object as JSON, in bytes: the maximum size of a request to etcd (`--max-request-bytes`).
pub const OBJECT_BYTES: usize = 1_572_864;
/// Maximum size of a request body, in bytes (kube-apiserver's `MaxRequestBodyBytes`).
pub const BODY_BYTES: usize = 3 << 20;
/// Maximum number of objects of all kinds together. The limit protects the memory, as etcd's quota protects its
/// storage.
pub const OBJECTS: usize = 1_000_000;
/// Maximum number of open watches. The limit protects the memory.
pub const WATCHES: usize = 4096;
/// Maximum number of changes in the event log of each kind. Slow watches, and watches that start at an earlier
/// resourceVersion, read this log.
pub const LOG_CHANGES: usize = 4096;
/// Maximum size of all object states in the event log of each kind, in bytes.
pub const LOG_BYTES: usize = 2 << 20;
/// Maximum number of changes that a watch processes before it lets other tasks run.
pub const CHANGES_PER_TURN: usize = 256;
/// Maximum number of requests in the audit ledger; older requests are dropped. The ledger's counts still include
/// dropped requests.
pub const AUDIT_ENTRIES: usize = 8192;
/// Maximum time that a read waits until memkube has reached the requested resourceVersion (kube-apiserver waits as
/// long).
pub const FRESH_WAIT: Duration = Duration::from_secs(3);
/// Time between two bookmarks of a watch with `allowWatchBookmarks`.
pub const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// Minimum duration of a watch without `timeoutSeconds`. The watch ends after a random time between this duration and
/// twice this duration.
pub const WATCH_DURATION_MIN: Duration = Duration::from_secs(1800);
/// Maximum duration of a watch, even if the client requests a longer watch. A larger value could overflow the time at
/// which the watch ends.
pub const WATCH_DURATION_MAX: Duration = Duration::from_secs(12 * 3600);
/// Maximum number of attempts to find a free name for `metadata.generateName`.
pub const GENERATE_NAME_TRIES: usize = 8;
/// Maximum number of open HTTPS connections. Further connections wait until an open connection closes.
pub const CONNECTIONS: usize = 4096;
/// Life of a token of a ServiceAccount in seconds, if the request names none.
pub const TOKEN_SECONDS: i64 = 3600;
/// Minimum life of a token of a ServiceAccount, in seconds.
pub const TOKEN_SECONDS_MIN: i64 = 600;
/// Time limit of a client's TLS handshake.
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time after which the server closes a connection without a request. Clients close idle connections after 90 s, so
/// clients close first.
pub const IDLE: Duration = Duration::from_secs(300);
/// Maximum size of the request line and the headers together, in bytes.
pub const HEADER_BYTES: usize = 64 << 10;
/// Maximum time that running requests have to complete when the HTTPS listener stops.
pub const END_GRACE: Duration = Duration::from_secs(2);
/// Pause after the operating system could not accept a connection, for example because no file handles are left. Then
/// the server tries again.
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
