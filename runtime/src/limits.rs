//! Every limit of this crate: queues, buffers, timeouts, back-off bounds.

use std::time::Duration;

/// Maximum number of watch messages that wait for the engine. If the channel is full, a watch stops reading, which
/// slows the server's stream.
pub const WATCH_CHANNEL_MESSAGES: usize = 1024;
/// Maximum number of messages of other parts of the process that wait for the engine. If the channel is full, the other
/// part waits.
pub const INBOX_MESSAGES: usize = 1024;
/// Maximum number of watch messages, and of messages of other parts of the process, that the engine handles before it
/// plans. So a burst of messages about one key costs one plan, and not one plan per message.
pub const WATCH_MESSAGES_PER_TURN: usize = 256;
/// Maximum number of keys that the engine plans before it handles watch messages and outcomes of writes again.
pub const PLANS_PER_TURN: usize = 64;
/// Maximum time that the engine plans before it lets other tasks run. Probes and the renewal of the Lease are such
/// tasks.
pub(crate) const TURN: Duration = Duration::from_millis(5);
/// Maximum number of writes in flight at once in one cluster. Each write needs a connection (HTTP/1.1), so this limits
/// sockets too.
pub const IN_FLIGHT_PER_CLUSTER: usize = 32;
/// Default maximum number of writes per second in one cluster.
///
/// An API server executes far fewer writes for one client (850 per second in a first import). Only a bug reaches this
/// maximum, such as plans that undo each other.
pub const WRITES_PER_SECOND_CEILING: u32 = 2_000;
/// Maximum burst of writes, given as a duration: the number of writes that [`WRITES_PER_SECOND_CEILING`] allows in this
/// duration may be sent at once.
pub(crate) const WRITE_BURST: Duration = Duration::from_secs(1);
/// Timeout of a write, and of the GET after a write with an unknown outcome.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of bytes that the agent reads of a response to a write. An object in etcd has at most 1.5 MiB, and
/// its JSON is only a little longer.
pub const ANSWER_BYTES: usize = 8 << 20;
/// Wait before the next attempt to read an object that the view has room for now, after an attempt failed.
pub(crate) const READ_AGAIN: Duration = Duration::from_secs(5);
/// Timeout for the final writes of an agent that stops (`ProcessNews::Stops`).
pub(crate) const STOP_ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of final writes in flight.
pub(crate) const LAST_WRITES_IN_FLIGHT: usize = 16;

/// Longest wait for writes in flight after a shutdown has begun.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of deleted objects per source that the agent remembers until their `DELETED` events arrive. Above
/// this number, the agent forgets the oldest.
pub const TOMBSTONES_PER_SOURCE: usize = 16_384;
/// Maximum number of Kubernetes Events per cluster that wait to be posted. Further Events are dropped and counted.
pub const EVENT_QUEUE_RECORDS: usize = 256;
/// Maximum number of bytes in the message of a Kubernetes Event. The API server has the same limit.
pub const EVENT_MESSAGE_BYTES: usize = 1024;
/// Period in which the agent posts an equal Event only once. Exception: the agent posts an equal Event about a
/// successful write up to [`EVENT_REPEATS_MAX`] times.
pub const EVENT_REPEAT_WINDOW: Duration = Duration::from_secs(600);
/// Maximum number of times that an equal Event about successful writes is posted in [`EVENT_REPEAT_WINDOW`]. Limits the
/// Events of a fight, in which another writer undoes each of our writes.
pub const EVENT_REPEATS_MAX: u32 = 5;
/// Number of Events about objects of one namespace that the agent posts at once.
pub(crate) const EVENT_BURST: u32 = 50;
/// Time after which the agent may post one more Event about objects of a namespace: ten a second. Events that name what
/// others write, such as a name or an address, differ each time, so [`EVENT_REPEAT_WINDOW`] does not limit them.
pub(crate) const EVENT_SPACING: Duration = Duration::from_millis(100);
/// Maximum number of recorded Events that the agent remembers to detect repetitions. Above this number, the agent
/// forgets the oldest.
pub const EVENTS_REMEMBERED: usize = 1024;

/// Wait after the first failure of a request.
pub const BACKOFF_FIRST: Duration = Duration::from_millis(20);
/// Longest wait after repeated failures of a request.
pub const BACKOFF_LONGEST: Duration = Duration::from_secs(30);
/// Wait after the first of several responses with 403 or 404 in a row. These failures last until somebody acts, so the
/// retries can be slow.
pub const SLOW_BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// Longest wait after repeated responses with 403 or 404.
pub const SLOW_BACKOFF_LONGEST: Duration = Duration::from_secs(300);
/// Wait before the retry of a write that was rejected for its content (400, 413, 415, 422). Jitter shortens the wait by
/// up to a quarter.
pub const REJECTED_RETRY: Duration = Duration::from_secs(600);
/// Number of repairs of one object after which the agent repairs it only once in each [`FIGHT_PERIOD`]. A repair writes
/// the same content again after another writer has changed it. Only repairs that are undone within [`FIGHT_PERIOD`]
/// count.
pub const FIGHT_REPAIRS: usize = 10;
/// Time between repairs of an object that another writer keeps undoing.
pub const FIGHT_PERIOD: Duration = Duration::from_secs(60);
/// Maximum number of writers that a message about a fight names, the latest first. In a fight, another writer undoes
/// what this agent writes to an object.
pub const RIVALS_NAMED: usize = 3;
/// Maximum number of fields for each writer in a message about a fight, in which that writer undoes this agent's
/// writes.
pub const RIVAL_FIELDS_NAMED: usize = 5;
/// Maximum number of bytes of a writer's name in a message about a fight, in which that writer undoes this agent's
/// writes. The API server allows 128 characters.
pub const RIVAL_NAME_BYTES: usize = 128;
/// Maximum length in bytes of a field name in a message about another writer that undoes this agent's writes. All
/// fields of the kinds that the agents write have shorter names.
pub const RIVAL_FIELD_BYTES: usize = 63;
/// Maximum number of GETs in flight per cluster that look up the other writer of a fight. In a fight, this writer
/// undoes the agent's writes to an object.
///
/// Each GET needs a connection (HTTP/1.1), and another writer can start many fights at once, one for each object. A
/// slow GET delays only the message about the fight.
pub const INQUIRIES_PER_CLUSTER: usize = 4;
/// Longest `Retry-After` that the agent obeys. For a longer value, the agent waits only this time.
pub const RETRY_AFTER_LONGEST: Duration = Duration::from_secs(300);
/// Longest `Retry-After` in an answer to a heartbeat that the agent obeys: 15 s. A member is silent after 60 s without
/// a heartbeat. With the period of 10 s, a healthy member whose hub asks for a longer wait still renews in time.
pub const HEARTBEAT_RETRY_AFTER_LONGEST: Duration = Duration::from_secs(15);

/// Period after which the agent reads the system clock again to compute the offset of its wall clock.
pub const CLOCK_REBASE_SECONDS: u64 = 10;

/// Longest time to establish a TCP and TLS connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for a response to a request, and for each part of the response's body. Watches have no such timeout.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle time after which TCP probes a connection, and the time between probes.
pub const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
/// Number of TCP probes without a reply after which a connection is closed.
pub const TCP_KEEPALIVE_PROBES: u32 = 3;
/// Time after which idle connections in the pool are closed. Less than the idle limit of common load balancers.
pub const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Life of a token for another audience than the API server, in the request for it: one hour, as the kubelet asks for.
pub const AUDIENCE_TOKEN_LIFE: Duration = Duration::from_secs(3_600);

/// Maximum number of bytes of a token file that the agent reads. Every real token is shorter.
pub const TOKEN_FILE_BYTES: u64 = 64 << 10;
/// Age of a token after which the agent reads the token file again before it uses the token.
pub const TOKEN_REREAD_AFTER: Duration = Duration::from_secs(10);
/// Longest time to read a token file.
pub const TOKEN_READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Life of a token that the agent requests, so that an outage of the hub of some weeks locks no member out. The hub may
/// grant less.
pub const TOKEN_LIFE: Duration = Duration::from_hours(30 * 24);
/// Time between two renewals of a token, unless a third of its life is shorter. Three renewals a day cost nothing. A
/// renewal revokes no token: a stolen token is of use until it expires, and it can request the next one until its
/// ServiceAccount is deleted.
pub const TOKEN_RENEWAL_EVERY: Duration = Duration::from_hours(8);
/// Shortest time between two renewals. The kubelet takes up to two minutes to update the token file.
pub const TOKEN_RENEWAL_SOONEST: Duration = Duration::from_mins(3);
/// Wait after the first failure to renew a token.
pub const TOKEN_RENEWAL_RETRY_FIRST: Duration = Duration::from_secs(30);
/// Longest wait after failures to renew a token: after an outage, the token is renewed within ten minutes.
pub const TOKEN_RENEWAL_RETRY_LONGEST: Duration = Duration::from_mins(10);

/// Range of the `timeoutSeconds` of a watch. If a connection dies without an error, the watch shows no events until
/// this timeout.
///
/// The agent chooses a random value in this range. So the watches of an agent, and of many agents, do not all reconnect
/// at once.
pub const WATCH_TIMEOUT_SECONDS: std::ops::RangeInclusive<u64> = 30..=60;
/// Extra time after a watch's `timeoutSeconds`. If the server has not ended the watch by then, the agent ends it.
pub const WATCH_GRACE: Duration = Duration::from_secs(5);
/// Number of versions that a server cannot have written while a watch was interrupted. If the server is ahead by as
/// many, it was restored from a backup with a higher revision: the documented number for this is 1,000,000,000
/// (`etcdutl --bump-revision`).
pub const RAISED_REVISION: u64 = 100_000_000;
/// Shortest time between two lists of a kind that follow restores. The data of a server can seem to go back and forth,
/// for example if a load balancer sends requests to a replica that lags.
pub const RESTORE_PAUSE: Duration = Duration::from_secs(1);
/// Shortest normal duration of a watch. A watch that ends sooner without any event counts as failed, so the agent waits
/// before the next one.
pub const WATCH_SHORTEST: Duration = Duration::from_secs(1);
/// Maximum number of bytes in a watch event. After a longer event, the watch lists the kind in pages.
pub const WATCH_LINE_BYTES: usize = 8 << 20;
/// Maximum number of objects in one page of a list.
pub const LIST_PAGE_OBJECTS: usize = 500;
/// Maximum number of bytes in a page of a list. The agent requests a longer page again with fewer objects.
///
/// More than [`WATCH_LINE_BYTES`], so that an object that is too long for a watch event can still be listed. Not much
/// more, because a whole page is in memory, and several kinds are listed at once within the memory limit in `deploy/`
/// (256 Mi).
pub const LIST_PAGE_BYTES: usize = 10 << 20;
/// Maximum number of bytes in the token that continues a list with its next page. Real tokens have a few hundred bytes.
/// In a query, one byte of the token can become 3 bytes, and a URI has at most 64 KiB.
pub const CONTINUE_TOKEN_BYTES: usize = 16 << 10;
/// Timeout to receive one page of a list.
pub const LIST_PAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of bytes of an error response that the agent reads.
pub const ERROR_BODY_BYTES: usize = 64 << 10;

/// Maximum number of open connections on each address of the admin server. A further connection closes an older one, so
/// a probe never waits.
pub const ADMIN_CONNECTIONS: usize = 64;
/// Time that an HTTP client has to send the head of its request to the admin server.
pub const ADMIN_HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for the TLS handshake of a client of a server of this process.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which the API server's grant of access to the metrics is used without another review. As in
/// controller-runtime.
pub(crate) const REVIEW_GRANT_TTL: Duration = Duration::from_secs(60);
/// Time for which the API server's denial of access to the metrics is used. Shorter than for a grant, because somebody
/// may just have granted the right.
pub(crate) const REVIEW_DENIAL_TTL: Duration = Duration::from_secs(10);
/// Time for which a grant is used while the API server does not answer. Metrics are needed most at such a time, and few
/// minutes hardly matter after a right was removed.
pub(crate) const REVIEW_GRANT_STALE: Duration = Duration::from_secs(300);
/// Shortest time between two reviews. Every client in the pod network can cause reviews, and this limits their load on
/// the API server to two requests each 50 ms.
pub(crate) const REVIEW_SPACING: Duration = Duration::from_millis(50);
/// Maximum number of tokens whose review is cached. A cluster has a few clients that read metrics.
pub(crate) const REVIEWED_TOKENS: usize = 64;
/// Maximum number of bytes of the file with a certificate or its key. A chain of certificates has a few kilobytes.
pub(crate) const CERTIFICATE_FILE_BYTES: u64 = 1 << 20;
/// Maximum number of bytes of the authorities of a certificate, as in the CRD of MemberAgent.
pub(crate) const AUTHORITIES_BYTES: usize = 65_536;
/// Time after which the files of a certificate are read again, at the next connection. As for token files.
pub const CERTIFICATE_REREAD_AFTER: Duration = Duration::from_secs(10);
/// Lifetime of a connection to the admin server. Also the longest time for which a client that reads slowly keeps an
/// answer in memory.
pub const ADMIN_CONNECTION_LIFETIME: Duration = Duration::from_secs(60);
/// Maximum number of requests on one connection to the admin server. Prometheus and the kubelet send one or few.
pub(crate) const ADMIN_REQUESTS: usize = 100;
/// Time for which all clients get the same text of the metrics: encoding those of a large fleet takes milliseconds.
pub(crate) const METRICS_FRESH: Duration = Duration::from_secs(1);
/// Maximum number of texts of the metrics in memory. One has about 3 MB in a fleet of 1,000 members, and clients that
/// read slowly keep older ones.
pub(crate) const METRICS_TEXTS: usize = 8;
/// Shortest time between two TLS handshakes of all clients: 100 a second. One takes about a millisecond, and members
/// that lost a hub agent of 1,000 members are back in 10 s.
pub(crate) const HANDSHAKE_SPACING: Duration = Duration::from_millis(10);
/// Niceness of the thread that serves clients. If there is too little processor time, the engine gets three times as
/// much as it.
pub(crate) const LISTENERS_NICENESS: i32 = 5;
/// Time between two updates that show that the engine's thread is not stuck.
pub(crate) const LIVENESS_EVERY: Duration = Duration::from_secs(1);
/// Time without such an update after which the engine's thread counts as stuck. The longest work between two awaits is
/// to decode a page of a list, which takes less than a second.
pub(crate) const LIVENESS_STUCK: Duration = Duration::from_secs(30);
/// Timeout for the first byte of a watch response. Also the timeout for the request before a watch that reads the
/// server's revision. The server may queue a request for up to 15 s.
pub const WATCH_ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum number of bytes that the agent keeps of the server's message about a failed write.
pub const ERROR_MESSAGE_BYTES: usize = 2048;
/// Shortest delay that a plan can set for the next plan of its key.
pub const AGAIN_SOONEST: Duration = Duration::from_millis(5);
/// Delay before the engine plans a key again after a plan of the key broke an invariant. Such a bug seldom disappears,
/// so the retry is slow: two log lines a minute.
pub const BROKEN_INVARIANT_DELAY: Duration = Duration::from_secs(30);
/// Longest delay that a plan can set for the next plan of its key.
pub const AGAIN_LATEST: Duration = Duration::from_secs(86_400);
/// Longest sleep of the engine. The engine checks the wall clock after each sleep, so it notices a step of the wall
/// clock within this time.
pub const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// Time in which an agent that stops posts its queued Kubernetes Events. Events that are not posted in time are
/// dropped.
pub const EVENT_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of bytes of a response about a Lease that the agent reads.
pub const LEASE_BYTES: usize = 256 << 10;
/// Default durations of the Lease that decides between the replicas of an agent. A replica takes over at most 3 s after
/// the last renewal of a leader that was killed.
pub const LEASE_TIMES: LeaseTimes = LeaseTimes {
    duration: Duration::from_secs(3),
    renew_deadline: Duration::from_secs(2),
    retry_period: Duration::from_millis(500),
};
/// Durations of the other Leases of an agent, which keep only agents of another kind away. As in client-go, but renewed
/// less often.
pub(crate) const OTHER_LEASES: LeaseTimes = LeaseTimes {
    duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(4),
};
/// Expiry of a Lease whose holder promises more than a clock can have.
pub(crate) const LEASE_LONGEST: Duration = Duration::from_hours(24 * 365);
/// Time after which a candidate watches a Lease again if it has no right to watch it.
pub const LEASE_WATCH_RETRY: Duration = Duration::from_mins(1);
/// Time after which a candidate watches a Lease again when the watch has ended or failed.
pub const LEASE_WATCH_PAUSE: Duration = Duration::from_secs(1);
/// Factor for the jitter of a candidate for a Lease, as in client-go. The candidate tries again after 1 to 1 + 1.2 =
/// 2.2 retry periods.
pub(crate) const LEASE_RETRY_JITTER: f64 = 1.2;
/// Pause of the admin server after it failed to accept a connection, most often because of too few file descriptors.
pub const ADMIN_ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Durations of a leader election. The default is that of the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// Time without a renewal after which other processes may take the Lease.
    pub duration: Duration,
    /// Time without a renewal after which a leader stops writing. Shorter than `duration`.
    pub renew_deadline: Duration,
    /// Time between two renewals, and the shortest time between two attempts to acquire.
    pub retry_period: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        LEASE_TIMES
    }
}
