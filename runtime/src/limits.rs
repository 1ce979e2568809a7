//! Every limit of this crate: queues, buffers, timeouts, back-off bounds.

use std::time::Duration;

/// Watch messages on their way to the engine. A watch that finds the channel full waits, which slows the server's stream.
pub const WATCH_CHANNEL_MESSAGES: usize = 1024;
/// Watch messages that the engine takes before it plans, so that a burst costs one plan per key and not one per message.
pub const WATCH_MESSAGES_PER_TURN: usize = 256;
/// Keys planned before the engine looks at watches and outcomes again.
pub const PLANS_PER_TURN: usize = 64;
/// Writes in flight at once in one cluster. Each needs a connection (HTTP/1.1), so this also limits sockets.
pub const IN_FLIGHT_PER_CLUSTER: usize = 32;
/// Default ceiling of writes per second in one cluster.
///
/// Far above what an API server executes for one client today (850 per second in a first import). Only plans that fight each
/// other reach it.
pub const WRITES_PER_SECOND_CEILING: u32 = 2_000;
/// Burst above an even rate: the writes of this period may be sent at once.
pub(crate) const WRITE_BURST: Duration = Duration::from_secs(1);
/// Longest duration of a write, or of the GET after it.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer to a write. The largest object in etcd is 1.5 MiB, and its JSON is a little longer.
pub const ANSWER_BYTES: usize = 8 << 20;
/// Longest duration of the final writes of an agent that stops.
pub(crate) const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest wait for writes in flight after a shutdown has begun.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// UIDs per source of objects that this agent deleted and whose `DELETED` event is still to come. The oldest is dropped.
pub const TOMBSTONES_PER_SOURCE: usize = 16_384;
/// Event records per cluster that wait to be posted. Later ones are dropped and counted.
pub const EVENT_QUEUE_RECORDS: usize = 256;
/// Bytes of an Event's message (the API server's limit is 1024).
pub const EVENT_MESSAGE_BYTES: usize = 1024;
/// Period in which equal Events only increase the count of one object. A new Event is posted after it.
pub const EVENT_REPEAT_WINDOW: Duration = Duration::from_secs(600);
/// Most records of one Event in that period if each occurrence is new. Limits Events when another writer keeps undoing our
/// changes.
pub const EVENT_REPEATS_MAX: u32 = 5;
/// Events remembered for that. The oldest is dropped.
pub const EVENTS_REMEMBERED: usize = 1024;

/// First wait after a failure.
pub const BACKOFF_FIRST: Duration = Duration::from_millis(20);
/// Longest wait after failures.
pub const BACKOFF_LONGEST: Duration = Duration::from_secs(30);
/// First wait after 403 and 404. These last until somebody acts, so the retry can be slow.
pub const SLOW_BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// Longest wait after 403 and 404.
pub const SLOW_BACKOFF_LONGEST: Duration = Duration::from_secs(300);
/// Retry period of a write that was rejected for its content (400, 413, 415, 422), less up to a quarter.
pub const REJECTED_RETRY: Duration = Duration::from_secs(600);
/// Number of repairs of one object, each undone within [`FIGHT_PERIOD`], after which repairs become that slow.
pub const FIGHT_REPAIRS: usize = 10;
/// Time between repairs of an object that another writer keeps undoing.
pub const FIGHT_PERIOD: Duration = Duration::from_secs(60);
/// Most writers named in a message about a fight, the latest first.
pub const RIVALS_NAMED: usize = 3;
/// Most fields named for each such writer.
pub const RIVAL_FIELDS_NAMED: usize = 5;
/// Bytes of the quoted name of such a writer. The API server allows 128 characters.
pub const RIVAL_NAME_BYTES: usize = 128;
/// Bytes of a field name in such a message. Longer than every field of the kinds that the agents write.
pub const RIVAL_FIELD_BYTES: usize = 63;
/// GETs in flight per cluster that look up who undoes this agent's writes.
///
/// Each needs a connection (HTTP/1.1), and another writer can start as many fights at once as there are objects. Only the
/// message about the fight waits for the answer.
pub const INQUIRIES_PER_CLUSTER: usize = 4;
/// Longest `Retry-After` that is obeyed. A longer one counts as this.
pub const RETRY_AFTER_LONGEST: Duration = Duration::from_secs(300);

/// Period after which the offset of the wall clock is read from the system again.
pub const CLOCK_REBASE_SECONDS: u64 = 10;

/// Longest time to establish a TCP and TLS connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for an answer, and for each part of its body. Watches have no such limit.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which TCP probes an idle connection, and the time between probes.
pub const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
/// Unanswered probes after which a connection is closed.
pub const TCP_KEEPALIVE_PROBES: u32 = 3;
/// Time after which idle connections are closed. Less than the idle limit of common load balancers.
pub const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Size of a token file above which it is not read: longer than any token.
pub const TOKEN_FILE_BYTES: u64 = 64 << 10;
/// Age after which a token is read from its file again at its next use.
pub const TOKEN_REREAD_AFTER: Duration = Duration::from_secs(10);
/// Longest time to read a token file.
pub const TOKEN_READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Shortest and longest `timeoutSeconds` of a watch. It bounds how long a connection that died silently can hide events.
///
/// A range, so that the watches of an agent, and of many agents, do not all reconnect at once.
pub const WATCH_TIMEOUT_SECONDS: std::ops::RangeInclusive<u64> = 30..=60;
/// Time after its own `timeoutSeconds` after which the agent ends a watch that the server did not end.
pub const WATCH_GRACE: Duration = Duration::from_secs(5);
/// Shortest regular watch. One that ends sooner without any event counts as failed; otherwise it would spin.
pub const WATCH_SHORTEST: Duration = Duration::from_secs(1);
/// Bytes in one watch event. After a longer one the kind is listed in pages.
pub const WATCH_LINE_BYTES: usize = 8 << 20;
/// Objects in one page of a list.
pub const LIST_PAGE_OBJECTS: usize = 500;
/// Bytes in one page of a list, which is in memory as a whole. A longer page is requested again with fewer objects.
///
/// More than [`WATCH_LINE_BYTES`], so that an object that is too long for an event can still be listed. Several kinds are
/// listed at once within the memory limit in `deploy/` (256 Mi).
pub const LIST_PAGE_BYTES: usize = 10 << 20;
/// Longest time to receive one page of a list.
pub const LIST_PAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes that are read of an error answer.
pub const REFUSAL_BYTES: usize = 64 << 10;

/// Connections that the admin server serves at once on each of its addresses. One more closes another, so a probe never waits.
pub const ADMIN_CONNECTIONS: usize = 64;
/// Longest wait of the admin server for the head of a request.
pub const ADMIN_HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest life of an admin connection.
pub const ADMIN_CONNECTION_LIFETIME: Duration = Duration::from_secs(300);
/// Longest wait for the first byte of a watch, and for the check before it. The server may queue a request for up to 15 s.
pub const WATCH_ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes that are kept of a server's message about a failed write.
pub const REFUSAL_MESSAGE_BYTES: usize = 2048;
/// Shortest time until a plan is made again on its own request.
pub const AGAIN_SOONEST: Duration = Duration::from_millis(5);
/// Time after which a key is planned again whose plan broke an invariant. Such a bug seldom goes away by itself, so that it costs
/// two log lines a minute.
pub const BROKEN_INVARIANT_DELAY: Duration = Duration::from_secs(30);
/// Longest time until a plan is made again on its own request.
pub const AGAIN_LATEST: Duration = Duration::from_secs(86_400);
/// Longest sleep of the engine, so that a step of the wall clock is noticed by then.
pub const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// Longest time to post the Events that wait when the agent stops. The rest is dropped.
pub const EVENT_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of an answer about a Lease.
pub const LEASE_BYTES: usize = 256 << 10;
/// Most jitter of a candidate for a Lease, in retry periods, as in client-go: it tries again after 1 to 1 + this periods.
pub(crate) const LEASE_RETRY_JITTER: f64 = 1.2;
/// Wait after a failed accept, most often for lack of file descriptors.
pub const ADMIN_ACCEPT_PAUSE: Duration = Duration::from_millis(100);
