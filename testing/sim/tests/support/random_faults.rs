//! Random faults for agents' requests and watches.

use memkube::auth::Call;
use memkube::faults::{Answer, Fate, Fault, Faults, WatchFaults, WatchedEvent};
use memkube::status::Status;
use parking_lot::Mutex;
use sim::Fleet;
use sim::server::ADMIN;
use std::sync::Arc;
use std::time::Duration;

/// Longest delay of a request or of a watch event.
const LATE_MILLISECONDS: u64 = 2_000;

/// Random faults of agents' requests. Requests and watch events are delayed, and some writes fail before or after the
/// server executes them. Clones share the faults.
#[derive(Clone)]
pub(crate) struct RandomFaults(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    random: u64,
    /// Number of writes that had each fault of [`KINDS`].
    counts: [usize; 3],
}

/// Faults of a write: the server rejects the write, executes the write and closes the connection, or delays the write.
const KINDS: [&str; 3] = ["rejected", "cut", "late"];

impl RandomFaults {
    /// Returns faults that depend only on the seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State { random: seed, ..State::default() })))
    }

    /// Starts the faults on all servers of a fleet. Watches that are already open have no faults.
    pub(crate) fn start(&self, fleet: &Fleet) {
        for (_, server) in fleet.servers() {
            server.memkube().set_faults(Some(Arc::new(self.clone())));
        }
    }

    /// Returns a random number below `below`.
    pub(crate) fn draw(&self, below: u64) -> u64 {
        let random = &mut self.0.lock().random;
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*random >> 33) % below
    }

    /// Checks that each fault has happened to at least `least` writes.
    ///
    /// # Errors
    /// If a fault happened less often. The message names the counts.
    pub(crate) fn check_counts(&self, least: usize) -> anyhow::Result<()> {
        let counts = self.0.lock().counts;
        anyhow::ensure!(counts.iter().all(|count| *count >= least), "{KINDS:?}: {counts:?}, not {least} of each");
        Ok(())
    }

    fn late(&self) -> Duration {
        // Return no delay for half of the requests.
        if self.draw(2) == 0 { Duration::ZERO } else { Duration::from_millis(self.draw(LATE_MILLISECONDS)) }
    }
}

impl Faults for RandomFaults {
    fn request(&self, call: &Call) -> Fault {
        if !is_of_agents(call) || !call.verb.writes() {
            return Fault::default();
        }
        let refuse = (self.draw(12) == 0).then(|| Status::internal("random faults"));
        let answer = if self.draw(12) == 0 { Answer::Cut } else { Answer::Whole };
        let delay_before = self.late();
        let occurred = [refuse.is_some(), refuse.is_none() && matches!(answer, Answer::Cut), !delay_before.is_zero()];
        for (count, is_so) in self.0.lock().counts.iter_mut().zip(occurred) {
            *count += usize::from(is_so);
        }
        Fault { delay_before, refuse, delay_after: self.late(), answer, ..Fault::default() }
    }

    fn watch(&self, call: &Call) -> Option<Box<dyn WatchFaults>> {
        is_of_agents(call).then(|| Box::new(self.clone()) as Box<dyn WatchFaults>)
    }
}

impl WatchFaults for RandomFaults {
    fn event(&mut self, _: &WatchedEvent) -> Fate {
        Fate::Hold(self.late())
    }
}

/// True for agents' requests, except requests for Leases.
fn is_of_agents(call: &Call) -> bool {
    &*call.user.name != ADMIN && &*call.target.resource != "leases"
}
