//! Turns: exclusive use of servers that several tests of a process share, one test at a time.

use crate::process::Process;
use crate::watchdog;
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard};

/// Lock for tests that start separate control planes. Only one such test runs at a time, to save memory.
static OWN_SERVERS: Mutex<()> = Mutex::const_new(());

/// Turn of a test. The turn ends when its last clone is dropped. Agents keep a clone, so the turn outlasts their processes.
#[derive(Clone, Debug)]
pub struct Turn {
    _guard: Arc<MutexGuard<'static, ()>>,
}

impl Turn {
    /// Waits for the turn to start control planes that no other test uses, for tests that stop, restore or reconfigure servers.
    /// All other tests share control planes ([`crate::fleet`], [`crate::endpoints`], [`crate::control_plane::shared`],
    /// [`crate::conformance::servers::real`]).
    pub async fn with_own_servers() -> Self {
        Self::of(&OWN_SERVERS).await
    }

    /// Extends the turn until a process and its supervisor have ended. Both may still run for a moment after `process` is
    /// dropped.
    pub(crate) fn outlasts(&self, process: &Process) {
        let (gone, turn) = (process.gone(), self.clone());
        tokio::spawn(async move {
            gone.await;
            drop(turn);
        });
    }

    /// Waits for the turn to use what `mutex` protects. The wait does not count against the test's time limit.
    pub(crate) async fn of(mutex: &'static Mutex<()>) -> Self {
        let _pause = watchdog::pause();
        Self { _guard: Arc::new(mutex.lock().await) }
    }
}
