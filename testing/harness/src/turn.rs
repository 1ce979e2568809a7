//! Turns: exclusive use of servers that several tests of a process share, one test at a time.

use crate::process::Process;
use crate::watchdog;
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard};

/// Lock for tests that start separate control planes. Only one such test runs at a time, to save memory.
static OWN_SERVERS: Mutex<()> = Mutex::const_new(());

/// Exclusive use of servers by a test. It ends when the last clone of this value is dropped. Agents keep a clone, so it
/// ends only after their processes.
#[derive(Clone, Debug)]
pub struct Turn {
    _guard: Arc<MutexGuard<'static, ()>>,
}

impl Turn {
    /// Waits until this test may start separate control planes, which no other test uses. Tests that stop, restore or
    /// reconfigure servers need them. All other tests share control planes ([`crate::fleet`], [`crate::endpoints`],
    /// [`crate::control_plane::shared`], the real server of the conformance tests).
    pub async fn with_own_servers() -> Self {
        Self::of(&OWN_SERVERS).await
    }

    /// Extends the exclusive use until a process and its supervisor have ended. Both may still run for a moment after
    /// `process` is dropped.
    pub(crate) fn outlasts(&self, process: &Process) {
        let (gone, turn) = (process.gone(), self.clone());
        tokio::spawn(async move {
            gone.await;
            drop(turn);
        });
    }

    /// Waits for the exclusive use of the servers that `mutex` protects. The wait does not count against the test's
    /// time limit.
    pub async fn of(mutex: &'static Mutex<()>) -> Self {
        let _pause = watchdog::pause();
        Self { _guard: Arc::new(mutex.lock().await) }
    }
}
