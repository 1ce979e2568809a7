//! Durations of a run. All of them are virtual.

use std::time::Duration;

/// Time in which users act and faults occur.
pub const ACTION: Duration = Duration::from_mins(10);
/// Time in which users act in a run with quiet users.
pub const QUIET_ACTION: Duration = Duration::from_secs(20);
/// Begin of the faults in a run with quiet users. Until then, all changes of the users arrive ([`FRESHNESS`]).
pub const QUIET_FAULTS: Duration = Duration::from_mins(5);
/// Time between two of the last changes, which users make after all faults.
pub const LAST_CHANGES: Duration = Duration::from_secs(5);
/// Time in which the last changes arrive. A derived Service without exporters stays for 30 s.
pub const PROMPT: Duration = Duration::from_secs(90);
/// Time after the last fault in which the fleet comes to rest. A rejected write is repeated after 10 minutes, and each
/// of a chain of writes can be rejected while faults last. So only the last of them can be due after this time.
pub const SLOW_RECOVERY: Duration = Duration::from_mins(25);
/// The same without faults from which agents recover slowly.
pub const RECOVERY: Duration = Duration::from_mins(6);
/// Time at the end in which no agent may write anything but heartbeats and Leases.
pub const SILENCE: Duration = Duration::from_mins(2);
/// Time between two looks at the agents.
pub const LOOK: Duration = Duration::from_secs(1);
/// Time in which requests arrive that a fault held back until its end.
pub const LATE: Duration = Duration::from_secs(1);
/// Time without a fault after which no importer may write endpoints that their source no longer has. A watch that fell
/// silent is noticed after 85 s (`runtime/src/limits.rs`). Another replica follows a dead leader after 3 s. A failed
/// write is repeated after 30 s.
pub const FRESHNESS: Duration = Duration::from_mins(4);
/// The same after faults from which agents recover slowly: a rejected write is repeated after 10 minutes.
pub const SLOW_FRESHNESS: Duration = Duration::from_mins(20);
/// Most writes of agents to one object in a minute. More are a loop.
pub const WRITES_IN_A_MINUTE: usize = 60;
/// Most requests of the agent of a cluster in a second. More are a loop. Two replicas that start send about a hundred.
pub const REQUESTS_IN_A_SECOND: u32 = 1_000;
/// Number of steps that shrinking tries without success before it stops.
pub const SHRINK_ATTEMPTS: usize = 400;
/// Longest real time in which no virtual second passes. A virtual second takes some milliseconds.
pub const LONGEST_MOMENT: Duration = Duration::from_mins(5);

/// Time until importers use the endpoints of a member as usual that was silent several times.
pub const SILENCE_ENDS: Duration = Duration::from_mins(6);
/// Period of the heartbeats to a fleet manager, in seconds.
pub const HEARTBEAT_SECONDS: u32 = 30;
/// Time that a member has after the deletion of its MemberCluster to remove its finalizers. The flag's default is
/// longer than a run.
pub const FORCE_DELETE: Duration = Duration::from_mins(2);
