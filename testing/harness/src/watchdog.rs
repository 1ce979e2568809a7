//! Time limit for each test. A test that exceeds the limit fails, and the message shows the test's latest waits.
//!
//! The limit does not count the time in which the test waits for the exclusive use of servers ([`crate::turn`]), or for
//! a build by Cargo. If a test blocks its thread, the whole process ends.

use crate::limits::{STUCK, WAITS_SHOWN, WATCH};
use crate::running;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::{Arc, Once};
use std::time::Duration;
use tokio::time::Instant;

/// Tests that run now.
static RUNNING: Mutex<Vec<Arc<Watched>>> = Mutex::new(Vec::new());
/// Environment variable with the file to which each test adds its time, as `<seconds> <name>`, for `cargo xtask test`.
const TIMES_VARIABLE: &str = "FLEETNET_TEST_TIMES";

tokio::task_local! {
    static WATCHED: Arc<Watched>;
}

/// Running test, with its clock and its waits.
struct Watched {
    name: String,
    limit: Duration,
    state: Mutex<State>,
}

struct State {
    clock: Clock,
    /// Waits of the test: the start and the description of each wait, the latest last.
    waits: VecDeque<(Instant, String)>,
}

/// Clock of a test. It stops while the test waits for the exclusive use of servers or for a build.
#[derive(Debug)]
struct Clock {
    pauses: usize,
    before: Duration,
    since: Instant,
}

impl Clock {
    fn started(now: Instant) -> Self {
        Self { pauses: 0, before: Duration::ZERO, since: now }
    }

    fn elapsed(&self, now: Instant) -> Duration {
        let since = if self.pauses == 0 { now.duration_since(self.since) } else { Duration::ZERO };
        self.before + since
    }

    fn pause(&mut self, now: Instant) {
        self.before = self.elapsed(now);
        self.pauses += 1;
    }

    fn go_on(&mut self, now: Instant) {
        self.pauses = self.pauses.saturating_sub(1);
        self.since = now;
    }
}

impl Watched {
    fn elapsed(&self) -> Duration {
        self.state.lock().clock.elapsed(Instant::now())
    }

    /// Returns the latest waits of the test, for messages.
    fn waits(&self) -> String {
        let (now, state) = (Instant::now(), self.state.lock());
        let shown = state.waits.iter().rev();
        let shown =
            shown.map(|(since, what)| format!("  {:.1} s ago: {what}\n", now.duration_since(*since).as_secs_f64()));
        shown.collect()
    }

    fn complaint(&self) -> String {
        format!(
            "{} takes longer than {:?}. It began to wait, the last first:\n{}{}",
            self.name,
            self.limit,
            self.waits(),
            running::tails()
        )
    }
}

/// Runs a test within its time limit.
///
/// # Panics
/// After the limit, with the waits of the test in the message.
pub(crate) async fn watched<T>(limit: Duration, test: impl Future<Output = T>) -> T {
    static GUARD: Once = Once::new();
    GUARD.call_once(guard);
    let name = std::thread::current().name().unwrap_or("a test without a name").to_owned();
    let state = State { clock: Clock::started(Instant::now()), waits: VecDeque::new() };
    let watched = Arc::new(Watched { name, limit, state: Mutex::new(state) });
    let _registered = Registered::new(&watched);
    WATCHED.scope(Arc::clone(&watched), within_limit(&watched, test)).await
}

async fn within_limit<T>(watched: &Watched, test: impl Future<Output = T>) -> T {
    let mut test = std::pin::pin!(test);
    loop {
        match tokio::time::timeout(WATCH, &mut test).await {
            Ok(ended) => return ended,
            Err(_) => assert!(watched.elapsed() <= watched.limit, "{}", watched.complaint()),
        }
    }
}

/// Records a wait of the current test. Does nothing outside of a test.
pub(crate) fn waits_for(what: impl FnOnce() -> String) {
    // An error means that no test runs here: the bench and the sandbox use the harness too.
    let _ = WATCHED.try_with(|watched| {
        let mut state = watched.state.lock();
        if state.waits.len() == WAITS_SHOWN {
            state.waits.pop_front();
        }
        state.waits.push_back((Instant::now(), what()));
    });
}

/// Pause of the current test's clock. The clock continues when this value is dropped.
pub struct Pause(Option<Arc<Watched>>);

/// Stops the clock of the current test until the returned value is dropped.
#[must_use]
pub fn pause() -> Pause {
    let watched = WATCHED.try_with(Arc::clone).ok();
    if let Some(watched) = &watched {
        watched.state.lock().clock.pause(Instant::now());
    }
    Pause(watched)
}

impl Drop for Pause {
    fn drop(&mut self) {
        if let Some(watched) = &self.0 {
            watched.state.lock().clock.go_on(Instant::now());
        }
    }
}

/// Entry in the list of running tests, until the value is dropped.
struct Registered(Arc<Watched>);

impl Registered {
    fn new(watched: &Arc<Watched>) -> Self {
        RUNNING.lock().push(Arc::clone(watched));
        Self(Arc::clone(watched))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        RUNNING.lock().retain(|running| !Arc::ptr_eq(running, &self.0));
        let Some(path) = std::env::var_os(TIMES_VARIABLE) else { return };
        let line = format!("{:.3} {}\n", self.0.elapsed().as_secs_f64(), self.0.name);
        let file = std::fs::File::options().create(true).append(true).open(&path);
        if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
            eprintln!("the time of a test cannot be written to {}: {error}", path.display());
        }
    }
}

/// Starts a thread that ends the process if a test blocks its own thread, because such a test cannot notice its time
/// limit.
fn guard() {
    let stuck = || RUNNING.lock().iter().find(|watched| watched.elapsed() > watched.limit + STUCK).cloned();
    std::thread::spawn(move || {
        loop {
            std::thread::park_timeout(WATCH);
            if let Some(watched) = stuck() {
                // Write to standard error directly: the test framework keeps the output of `eprintln` until the test
                // ends.
                let _ = writeln!(std::io::stderr(), "{}", watched.complaint());
                std::process::exit(STUCK_EXIT_CODE);
            }
        }
    });
}

/// Exit code with which a test program ends if tests have failed.
const STUCK_EXIT_CODE: i32 = 101;

#[cfg(test)]
mod tests {
    use super::{Clock, pause, waits_for, watched};
    use std::future::pending;
    use std::time::Duration;
    use tokio::time::{Instant, sleep};

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "0.5 s ago: a ship\n  2.5 s ago: a train")]
    async fn a_test_beyond_its_limit_fails_and_shows_its_waits() {
        watched(2 * SECOND, async {
            waits_for(|| "a train".to_owned());
            sleep(2 * SECOND).await;
            waits_for(|| "a ship".to_owned());
            pending::<()>().await;
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_limit_does_not_run_while_a_test_waits_for_its_turn() {
        let ended = watched(2 * SECOND, async {
            sleep(SECOND).await;
            {
                let _pause = pause();
                sleep(100 * SECOND).await;
            }
            sleep(SECOND / 2).await;
            "ended"
        });
        assert_eq!(ended.await, "ended");
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_stops_until_its_last_pause_is_over() {
        let mut clock = Clock::started(Instant::now());
        sleep(SECOND).await;
        clock.pause(Instant::now());
        sleep(SECOND).await;
        clock.pause(Instant::now());
        clock.go_on(Instant::now());
        assert_eq!(clock.elapsed(Instant::now()), SECOND);
        clock.go_on(Instant::now());
        sleep(2 * SECOND).await;
        assert_eq!(clock.elapsed(Instant::now()), 3 * SECOND);
    }
}
