//! Limits of the command `fleetnet`.

use std::time::Duration;

/// Maximum number of members in a sandbox on memkube. Every member imports from all members, so the number of imported
/// slices grows with the square of the number of members.
pub(crate) const MEMBERS_MAX: u16 = 50;
/// Maximum number of members in a sandbox on real control planes (`--real`, `--packets`). Each member needs an etcd and
/// a kube-apiserver.
pub(crate) const REAL_MEMBERS_MAX: u16 = 5;
/// Largest value of `--changes`.
pub(crate) const CHANGES_MAX: u32 = 10_000;
/// Largest value of `--requests-per-second`. At a higher rate, the client would use a source port again while conntrack
/// still remembers its last connection, so a request could go to a pod that is gone.
pub(crate) const REQUESTS_MAX: u32 = 500;
/// Time after which a request of `--packets` without an answer is lost.
#[cfg(feature = "real")]
pub(crate) const ANSWER: Duration = Duration::from_secs(2);
/// The same time with `--once`: a pod that is gone never answers, and a pod of a busy machine may be slow.
#[cfg(feature = "real")]
pub(crate) const ANSWER_ONCE: Duration = Duration::from_secs(10);
/// Interval of the lines about requests.
#[cfg(feature = "real")]
pub(crate) const REQUESTS_REPORT: Duration = Duration::from_secs(1);
/// Time limit of the requests by which `status` looks for members. Most kubeconfigs have contexts that do not answer,
/// and nobody waits long for a table.
pub(crate) const REACHABLE: Duration = Duration::from_secs(2);
/// Number of threads of the sandbox. With two threads, one thread can draw the terminal view while the other thread
/// runs the agents.
pub(crate) const WORKER_THREADS: usize = 2;
/// Maximum number of events in the queue of the output (terminal, lines or JSON). Senders of events wait while the
/// queue is full.
pub(crate) const EVENT_QUEUE: usize = 1024;
/// Number of keys that wait for the sandbox. More keys are dropped.
pub(crate) const KEY_QUEUE: usize = 8;
/// Number of observations that wait for the stand-in of a member's Deployment controller, scheduler and kubelet. Its
/// watches wait while the queue is full.
pub(crate) const OBSERVATION_QUEUE: usize = 256;
/// Time between two frames of the terminal view.
pub(crate) const FRAME: Duration = Duration::from_millis(100);
/// Delay of events about changes of exports and imports, so that several quick changes lead to one event.
pub(crate) const ANNOUNCE: Duration = Duration::from_millis(50);
/// Delay before a broken watch is restarted.
pub(crate) const WATCH_AGAIN: Duration = Duration::from_millis(100);
/// Timeout of the sandbox's watches, in seconds. The server ends a watch after this time.
pub(crate) const WATCH_SECONDS: u32 = 290;
/// Time limit for agents to become ready and for the first imports. Long enough for a busy machine.
pub(crate) const SET_UP: Duration = Duration::from_secs(60);
/// Time limit for a change to reach all importers.
pub(crate) const ARRIVAL: Duration = Duration::from_secs(20);
/// Time limit for a change to reach all importers in an interactive sandbox. A user may have deleted the importing
/// objects. The change then never arrives, so this limit is shorter than [`ARRIVAL`].
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// Time limit for the last change to arrive before the sandbox ends on request.
pub(crate) const LAST_LOOK: Duration = Duration::from_secs(1);
/// Number of pairs of clusters whose latency the terminal view lists in a large fleet: the slowest ones.
pub(crate) const PAIRS_LISTED: usize = 10;
/// Time limit for an agent to stop on request.
pub(crate) const STOP: Duration = Duration::from_secs(8);
/// Delay before an agent that ended by itself is restarted.
pub(crate) const RESTART: Duration = Duration::from_secs(1);
/// Pause after each step of a scenario in an interactive sandbox, so that people can read about the step.
pub(crate) const STEP: Duration = Duration::from_millis(1500);
/// Maximum number of latency samples for each pair of clusters. The oldest samples are dropped.
pub(crate) const SAMPLES: usize = 1000;
/// Minimum number of samples for which the 99th percentile is shown. With fewer samples, the 99th percentile would be
/// the largest sample.
pub(crate) const PERCENTILE_SAMPLES: usize = 100;
/// Maximum number of differences that a verdict lists. Of further differences, the verdict shows only the number.
pub(crate) const DIFFERENCES_MAX: usize = 20;
/// Time limit for the fleet to reach the expected state after the last change has arrived.
pub(crate) const SETTLES: Duration = Duration::from_secs(5);
/// Maximum number of clusters that the terminal view lists by name. For more clusters, the view shows only their
/// number.
pub(crate) const CLUSTERS_NAMED: usize = 3;
/// Number of recent changes and steps that the terminal view keeps.
pub(crate) const REMEMBERED: usize = 100;
/// Number of requests that memkube records individually. The number is small, because the sandbox needs only the counts
/// of requests.
pub(crate) const AUDIT_ENTRIES: usize = 16;
/// Time between two looks at a cluster while a command waits. A heartbeat comes every 10 seconds.
pub(crate) const POLL: Duration = Duration::from_millis(500);
/// Time limit for the hub's controller to write a token into a Secret. It takes less than a second on an idle server.
pub(crate) const TOKEN_WAIT: Duration = Duration::from_secs(30);
/// Number of attempts to write an object that others change at the same time.
pub(crate) const APPLY_TRIES: usize = 5;
/// Maximum number of objects that an item of `migrate check` lists. Of further objects, the item shows only the number.
pub(crate) const OBJECTS_LISTED: usize = 3;
/// Maximum number of lines of the log of one container in an archive. The newest lines count.
pub(crate) const LOG_LINES: i64 = 50_000;
/// Maximum number of imported Services that `test connectivity` tests without a name. Each one needs a pod in each
/// importer.
pub(crate) const SERVICES_TESTED: usize = 10;
/// Time that a pod of `test connectivity` has beyond the time limit of the command. Then the kubelet ends it, if the
/// command was killed.
pub(crate) const POD_MARGIN: Duration = Duration::from_secs(30);
/// Maximum size of the log of a pod of `test connectivity`: 1 MiB. A line for each target takes less than 300 bytes.
pub(crate) const POD_LOG_BYTES: i64 = 1 << 20;
/// Number of attempts to delete a pod of `test connectivity`.
pub(crate) const DELETE_TRIES: usize = 3;
/// Time for one connection of `test connectivity --from-here`. The first repetition of a lost packet comes after 1 s.
pub(crate) const CONNECT: Duration = Duration::from_secs(3);
/// Maximum number of connections of `test connectivity --from-here` at once.
pub(crate) const CONNECTIONS_AT_ONCE: usize = 32;
/// Interval of the page of the sandbox: 1 s. Its clusters are in this process, so a reading is quick.
pub(crate) const UI_SANDBOX_INTERVAL: Duration = Duration::from_secs(1);
/// Time after which the page looks for the members again: 30 s, so that a new member appears soon. The search asks all
/// contexts of the kubeconfigs.
pub(crate) const UI_FIND_AGAIN: Duration = Duration::from_secs(30);
/// Number of lines that `What happens` keeps for a page that connects: 200, about five screens.
pub(crate) const UI_LINES: usize = 200;
/// Number of seconds whose requests a page gets that connects: 120, as many as the page shows.
pub(crate) const UI_REQUESTS: usize = 120;
/// Time after which a page gets the documents of a reading although nothing has changed: 20 s. After 30 s without
/// documents, it says that its data is old.
pub(crate) const UI_REPEAT: Duration = Duration::from_secs(20);
/// Number of bytes of messages for which a page gets a second: 4 MiB. A browser takes about 0.7 s for the 23 MB of
/// 1,000 Services that 100 members export and import.
pub(crate) const UI_BYTES_PER_SECOND: usize = 4 << 20;
/// Age of a reading above which no page gets it: 10 s. A page that connects then waits for the next reading.
pub(crate) const UI_OLD: Duration = Duration::from_secs(10);
/// Time after which a browser connects again: 2 s, so that a lost connection is hardly seen. After a restart of the
/// command, the page has another address.
pub(crate) const UI_RECONNECT_MILLISECONDS: u32 = 2_000;
/// Maximum number of open connections to the page: 32. A browser opens 6.
pub(crate) const UI_CONNECTIONS: usize = 32;
/// Time for a browser to send the header of a request: 10 s. It also closes connections without a request.
pub(crate) const UI_HEADER: Duration = Duration::from_secs(10);
/// Time after which a browser that takes no bytes is dropped: 30 s. Without it, a browser that stopped without closing
/// its connection would count as a reader for 15 minutes, until TCP gives up.
pub(crate) const UI_STALL: Duration = Duration::from_secs(30);
/// Maximum size of the header of a request: 16 KiB. Browsers send less than 2 KiB.
pub(crate) const UI_HEADER_BYTES: usize = 16 << 10;
/// Pause after a connection could not be accepted, for example because the process has too many open files.
pub(crate) const UI_ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time for which pages share an answer about a Service: 1 s, because each page asks every 2 s.
pub(crate) const UI_ANSWER_AGE: Duration = Duration::from_secs(1);
/// Number of Services whose last answers are kept: 8. An answer about many pairs has some megabytes.
pub(crate) const UI_ANSWERS: usize = 8;
/// Maximum number of readings of a Service at once: 2. Each reading lists all slices in the hub.
pub(crate) const UI_READINGS: usize = 2;
/// Maximum number of ways of changes in an answer about a Service: 800. Each one has a kilobyte.
pub(crate) const UI_WAYS: usize = 800;
/// Number of Events in an answer about a Service: the last 20.
pub(crate) const UI_SERVICE_EVENTS: usize = 20;
/// Number of intervals between two readings of the agents' Events: 5. The servers look at all their Events each time.
pub(crate) const UI_EVENTS_INTERVALS: u32 = 5;
/// Duration of the pause after a reading of Events, as a multiple of the time of the slowest answer: 20.
pub(crate) const UI_EVENTS_REST: u32 = 20;
/// Time for the Events of one cluster: 2 s. The Events of a cluster that does not answer are left out.
pub(crate) const UI_EVENTS_TIME: Duration = Duration::from_secs(2);
/// Number of Events in one page of a list: 500, as in other lists of the diagnosis.
pub(crate) const UI_EVENTS: u32 = 500;
/// Maximum number of pages of one list of Events: 4. The agents write few Events, so 2,000 are those of a large fleet.
pub(crate) const UI_EVENTS_PAGES: usize = 4;
/// Maximum number of Events about the objects of one namespace in a cluster: the newest 50. It bounds the memory, and
/// no namespace can push those of all others out of `What happens`.
pub(crate) const UI_EVENTS_NAMESPACE: usize = 50;
/// Maximum size of a text of an Event: 1,024 bytes, the limit of API servers for the message of an Event.
pub(crate) const UI_EVENT_BYTES: usize = 1_024;
/// Number of pairs above which an answer has no steps that are ok or skipped: 400. A pair has 98 steps.
pub(crate) const UI_PAIRS: usize = 400;
