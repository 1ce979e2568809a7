//! Bad weather, for agents alone.

use memkube::auth::Call;
use memkube::faults::{Answer, Fate, Fault, Faults, WatchFaults, WatchedEvent};
use memkube::status::Status;
use parking_lot::Mutex;
use sim::Fleet;
use sim::server::ADMIN;
use std::sync::Arc;
use std::time::Duration;

/// What is late is not later.
const LATE_MILLISECONDS: u64 = 2_000;

/// Whatever agents ask for is late, some of it fails before it takes effect and some of it after, and what they are told
/// by watches is late too. Clones are the same weather.
#[derive(Clone)]
pub(crate) struct Weather(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    random: u64,
    /// How often each of [`BEFALLS`] happened to a write.
    counts: [usize; 3],
}

/// What can happen to a write: it is refused, or carried out and its connection is cut, or it is late.
const BEFALLS: [&str; 3] = ["refused", "cut", "late"];

impl Weather {
    /// It depends on the seed alone.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State { random: seed, ..State::default() })))
    }

    /// At all servers of a fleet, from now on. Watches that are open stay as they are.
    pub(crate) fn begins(&self, fleet: &Fleet) {
        for (_, server) in fleet.servers() {
            server.memkube().set_faults(Some(Arc::new(self.clone())));
        }
    }

    /// A number below that one.
    pub(crate) fn draw(&self, below: u64) -> u64 {
        let random = &mut self.0.lock().random;
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*random >> 33) % below
    }

    /// That each kind of fault has met so many writes at least.
    ///
    /// # Errors
    /// Names the counts where one has not.
    pub(crate) fn befell(&self, least: usize) -> anyhow::Result<()> {
        let counts = self.0.lock().counts;
        anyhow::ensure!(counts.iter().all(|count| *count >= least), "{BEFALLS:?}: {counts:?}, not {least} of each");
        Ok(())
    }

    fn late(&self) -> Duration {
        // Half of it comes in time.
        if self.draw(2) == 0 { Duration::ZERO } else { Duration::from_millis(self.draw(LATE_MILLISECONDS)) }
    }
}

impl Faults for Weather {
    fn request(&self, call: &Call) -> Fault {
        if !is_of_agents(call) || !call.verb.writes() {
            return Fault::default();
        }
        let refuse = (self.draw(12) == 0).then(|| Status::internal("bad weather"));
        let answer = if self.draw(12) == 0 { Answer::Cut } else { Answer::Whole };
        let delay_before = self.late();
        let befalls = [refuse.is_some(), refuse.is_none() && matches!(answer, Answer::Cut), !delay_before.is_zero()];
        for (count, is_so) in self.0.lock().counts.iter_mut().zip(befalls) {
            *count += usize::from(is_so);
        }
        Fault { delay_before, refuse, delay_after: self.late(), answer, ..Fault::default() }
    }

    fn watch(&self, call: &Call) -> Option<Box<dyn WatchFaults>> {
        is_of_agents(call).then(|| Box::new(self.clone()) as Box<dyn WatchFaults>)
    }
}

impl WatchFaults for Weather {
    fn event(&mut self, _: &WatchedEvent) -> Fate {
        Fate::Hold(self.late())
    }
}

/// Leases apart.
fn is_of_agents(call: &Call) -> bool {
    &*call.user.name != ADMIN && &*call.target.resource != "leases"
}
