//! Limits of the bench.

use std::time::Duration;

/// Maximum number of parallel requests of one client of the bench. Agents have the same limit.
pub const IN_FLIGHT_PER_CLUSTER: usize = 32;
/// Time limit for a measured first import.
pub const IMPORT: Duration = Duration::from_secs(300);
/// More time for each copy of a slice that a simulated fleet distributes. Two cores make some hundred copies a second.
pub const COPY: Duration = Duration::from_millis(10);
/// Time limit for one measured change. A change that no watch shows within this time counts as not observed, for
/// example because a later change of the same slice replaced it.
pub const CHANGE: Duration = Duration::from_secs(10);
/// Lifetime of the bench's watches in seconds, longer than any run.
pub const WATCH_SECONDS: u32 = 7_200;
/// Time without writes after which the agents of a fleet count as settled.
pub const QUIET: Duration = Duration::from_secs(2);
/// Time after which an agent encodes its metrics again. Longer than a second, for which all clients get the same text.
pub const METRICS: Duration = Duration::from_millis(1_100);
/// Time limit for the agents of a fleet to settle.
pub const SETTLED: Duration = Duration::from_secs(60);
/// Maximum number of endpoints of a slice. The addresses of a slice in the bench differ only in the last octet, so a
/// slice cannot have many more than 250.
pub const ENDPOINTS: usize = 250;
/// Interval at which members renew their heartbeats. Member agents have the same interval.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// Interval between two requests to `/healthz`.
pub const PROBE_INTERVAL: Duration = Duration::from_millis(5);
/// Time limit of a request to `/healthz`.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which the measurement of scale checks if all copies have arrived.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Time at the end of the soak in which agents must not write.
pub const SILENCE: Duration = Duration::from_secs(60);
/// Time limit for all changes of the soak to arrive.
pub const SOAK_ARRIVAL: Duration = Duration::from_secs(120);
/// Time of the soak before and after its changes.
pub const SOAK_MARGIN: Duration = Duration::from_secs(900);
/// Number of heartbeats whose cost is measured.
pub const HEARTBEATS: u32 = 500;
/// Rate of these heartbeats in heartbeats per second: ten times that of 100 members, so that their cost is well above
/// the noise.
pub const HEARTBEAT_RATE: u32 = 100;
/// Number of changes that a simulated server keeps for watches. With the defaults of memkube, a watch that falls behind
/// by a quarter of a second would have to list all objects again.
pub const LOG_CHANGES: usize = 400_000;
/// Size of these changes in bytes.
pub const LOG_BYTES: usize = 512 << 20;
/// Maximum number of requests of a slice stream of the bench that wait for the connection.
pub const STREAM_REQUESTS: usize = 64;
/// Time limit of the measurement of slice streams.
pub const STREAM: Duration = Duration::from_secs(3_600);
/// Time limit until importers use the right endpoints of a member that died or returned.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(150);
/// Time limit of the measurement of members that die.
pub const DEATHS: Duration = Duration::from_secs(3_600);
/// Time limit of the measurement of scale, for all its fleets.
pub const SCALE: Duration = Duration::from_secs(7_200);
/// Time limit of the measurement of requests. 200 rolling updates of each kind take three hours.
pub const REQUESTS: Duration = Duration::from_secs(6 * 3_600);
/// Interval at which counts of clients and imported addresses are read.
pub const REQUESTS_CHECK: Duration = Duration::from_millis(100);
/// Time without a lost request after which no more is lost because of a dead cluster. It is longer than any pause
/// between two losses.
pub const REQUESTS_AFTER_DEATH: Duration = Duration::from_secs(20);
/// Time for which a client sends requests to measure what a way costs.
pub const REQUESTS_OVERHEAD: Duration = Duration::from_secs(10);
/// Time from the start of a rolling update until an agent is killed.
pub const REQUESTS_BEFORE_KILL: Duration = Duration::from_secs(2);
