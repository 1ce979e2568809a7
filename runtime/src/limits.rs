//! Every limit of this crate in one place: queues, buffers, timeouts, back-off bounds.

use std::time::Duration;

/// Watch messages on their way to the engine. A watch that finds the channel full waits, which holds back the server.
pub const WATCH_CHANNEL_MESSAGES: usize = 1024;
/// Watch messages that the engine takes before it plans, so that a burst costs one plan per key and not one per message.
pub const WATCH_MESSAGES_PER_TURN: usize = 256;
/// Keys planned between two looks at watches and outcomes.
pub const PLANS_PER_TURN: usize = 64;
/// Writes in flight at once in one cluster. Each holds a connection (HTTP/1.1), so this bounds sockets too.
pub const IN_FLIGHT_PER_CLUSTER: usize = 32;
/// The fuse, by default: writes per second in one cluster. Far above what an API server of today carries out for one
/// client (a first import was measured at 850 a second), so it is met only by plans that fight each other.
pub const WRITES_PER_SECOND_CEILING: u32 = 2_000;
/// A write or the GET after it takes at most so long.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The answer to a write is at most so long. The largest object that etcd holds is 1.5 MiB, JSON of it a little more.
pub const ANSWER_BYTES: usize = 8 << 20;
/// The last word of an agent that stops may take so long.
pub(crate) const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes in flight may take so long to end once a shutdown has begun.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// UIDs of objects that we deleted and whose `DELETED` event has not come yet, per source. The oldest is forgotten.
pub const TOMBSTONES_PER_SOURCE: usize = 16_384;
/// Event records waiting to be posted in one cluster. Later ones are dropped and counted.
pub const EVENT_QUEUE_RECORDS: usize = 256;
/// Characters of an event's message (the API server's limit is 1024).
pub const EVENT_MESSAGE_BYTES: usize = 1024;
/// Equal events are counted up on one object for so long, and posted anew after.
pub const EVENT_REPEAT_WINDOW: Duration = Duration::from_secs(600);
/// How often one event is recorded in that time where it is news each time: somebody who undoes what we do makes no flood.
pub const EVENT_REPEATS_MAX: u32 = 5;
/// Events remembered for that; the oldest is forgotten.
pub const EVENTS_REMEMBERED: usize = 1024;

/// First wait after a failure.
pub const BACKOFF_FIRST: Duration = Duration::from_millis(20);
/// Longest wait after failures.
pub const BACKOFF_LONGEST: Duration = Duration::from_secs(30);
/// First wait after 403 and 404: somebody has to act, so there is no hurry.
pub const SLOW_BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// Longest wait after 403 and 404.
pub const SLOW_BACKOFF_LONGEST: Duration = Duration::from_secs(300);
/// A write that was rejected for its content (400, 413, 415, 422) is sent again unchanged after this, less up to a quarter.
pub const REJECTED_RETRY: Duration = Duration::from_secs(600);
/// After so many repairs of one object, each undone within [`FIGHT_PERIOD`], the next ones are that far apart.
pub const FIGHT_REPAIRS: usize = 10;
/// The repairs of an object that somebody else undoes are so far apart.
pub const FIGHT_PERIOD: Duration = Duration::from_secs(60);
/// Of those who undo what this agent writes so many are named, the latest first.
pub const RIVALS_NAMED: usize = 3;
/// So many fields are named of what one of them sets.
pub const RIVAL_FIELDS_NAMED: usize = 5;
/// Bytes of the quoted name of one of them: the API server takes 128 characters.
pub const RIVAL_NAME_BYTES: usize = 128;
/// Bytes of the name of a field that is named: longer than those of every kind that the agents write.
pub const RIVAL_FIELD_BYTES: usize = 63;
/// GETs under way in one cluster that ask who undoes what this agent writes. Each holds a connection (HTTP/1.1), and a writer
/// can begin as many fights at once as there are objects. Nothing waits for the answers but the words about the fight.
pub const INQUIRIES_PER_CLUSTER: usize = 4;
/// A server that asks for more patience than this (Retry-After) is asked again after this.
pub const RETRY_AFTER_LONGEST: Duration = Duration::from_secs(300);

/// The wall clock's offset is taken anew from the system this often.
pub const CLOCK_REBASE_SECONDS: u64 = 10;

/// A TCP and TLS connection is up within this.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A request's answer, and each part of its body, comes within this. Watches have no such limit.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection with nothing to say is probed by TCP after this, and again at the same distance.
pub const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
/// Unanswered probes after which a connection is given up.
pub const TCP_KEEPALIVE_PROBES: u32 = 3;
/// Idle connections are closed after this: less than the idle limit of common load balancers.
pub const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A token file is longer than any token at this size: it is refused.
pub const TOKEN_FILE_BYTES: u64 = 64 << 10;
/// A token is read again from its file when it is used and older than this.
pub const TOKEN_REREAD_AFTER: Duration = Duration::from_secs(10);
/// Reading a token file takes at most so long.
pub const TOKEN_READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Shortest and longest `timeoutSeconds` of a watch: how long a connection that died unnoticed can hide events. Spread,
/// so that the watches of an agent, and of many agents, do not all reconnect at once.
pub const WATCH_TIMEOUT_SECONDS: std::ops::RangeInclusive<u64> = 30..=60;
/// A watch that the server did not end is ended by us this long after its own `timeoutSeconds`.
pub const WATCH_GRACE: Duration = Duration::from_secs(5);
/// A watch that ended sooner than this without a word counts as failed: it would spin otherwise.
pub const WATCH_SHORTEST: Duration = Duration::from_secs(1);
/// Bytes in one watch event. After a longer one the kind is listed in pages.
pub const WATCH_LINE_BYTES: usize = 8 << 20;
/// Objects in one page of a list.
pub const LIST_PAGE_OBJECTS: usize = 500;
/// Bytes in one page of a list, which is in memory whole. A longer page is asked for again with fewer objects. More than
/// [`WATCH_LINE_BYTES`], so that an object that is too long for an event can still be listed. Several kinds are listed at
/// once within the memory that `deploy/` allows (256 Mi).
pub const LIST_PAGE_BYTES: usize = 10 << 20;
/// One page of a list comes within this.
pub const LIST_PAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// The answer that says why a request was refused is read up to this length.
pub const REFUSAL_BYTES: usize = 64 << 10;

/// Connections that the admin server serves at once on each of its addresses. One more closes another: a probe never waits.
pub const ADMIN_CONNECTIONS: usize = 64;
/// The admin server waits this long for a request's head.
pub const ADMIN_HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// An admin connection lives at most so long.
pub const ADMIN_CONNECTION_LIFETIME: Duration = Duration::from_secs(300);
/// The answer to the request for a watch begins within this, and the answer to the check before it is complete; the server
/// may queue a request for up to 15 s.
pub const WATCH_ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Of a server's message about a refused write this much is kept.
pub const REFUSAL_MESSAGE_BYTES: usize = 2048;
/// A plan that wants to be made again at once is made again after this.
pub const AGAIN_SOONEST: Duration = Duration::from_millis(5);
/// A plan that wants to be made again later than this is made again after this.
pub const AGAIN_LATEST: Duration = Duration::from_secs(86_400);
/// The engine sleeps at most so long: a wall clock that was set is noticed by then.
pub const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// Events that wait when the agent stops are posted within this or dropped.
pub const EVENT_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// The answer about a Lease is at most so long.
pub const LEASE_BYTES: usize = 256 << 10;
/// Wait after a connection could not be accepted, most often for want of file descriptors.
pub const ADMIN_ACCEPT_PAUSE: Duration = Duration::from_millis(100);
