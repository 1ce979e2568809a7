//! Shutdown request, from SIGTERM, SIGINT or a trigger. Every part of the process can wait for the request.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code after a second signal, as in controller-runtime.
// no limit: an exit code (mark for `cargo xtask tidy`)
const EXIT_CODE_ON_SECOND_SIGNAL: i32 = 1;

/// Receiving side of a shutdown request. Clones share the state.
#[derive(Clone, Debug)]
pub struct Shutdown(CancellationToken);

/// Sending side of a shutdown request. Dropping the trigger without [`ShutdownTrigger::request`] does not request a
/// shutdown. Clones request the same shutdown.
#[derive(Clone, Debug, Default)]
pub struct ShutdownTrigger(CancellationToken);

impl Shutdown {
    /// Returns a shutdown that only the returned trigger can request.
    #[must_use]
    pub fn new() -> (ShutdownTrigger, Shutdown) {
        let token = CancellationToken::new();
        (ShutdownTrigger(token.clone()), Shutdown(token))
    }

    /// Returns a shutdown that SIGTERM or SIGINT requests.
    ///
    /// A second signal ends the process immediately with exit code 1: a user who sends it does not want to wait.
    ///
    /// # Errors
    /// If the signal handlers cannot be installed.
    pub fn on_signals() -> io::Result<Shutdown> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let (trigger, shutdown) = Shutdown::new();
        tokio::spawn(async move {
            let mut next_signal = async || {
                tokio::select! {
                    _ = terminate.recv() => "SIGTERM",
                    _ = interrupt.recv() => "SIGINT",
                }
            };
            let first = next_signal().await;
            tracing::info!(signal = first, "stopping: no new writes start, and writes in flight end first");
            trigger.request();
            let second = next_signal().await;
            tracing::warn!(signal = second, "asked to stop for a second time: ending at once");
            std::process::exit(EXIT_CODE_ON_SECOND_SIGNAL);
        });
        Ok(shutdown)
    }

    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until a stop is requested. Returns immediately if the request was made before. Cancel-safe.
    pub async fn requested(&self) {
        self.0.cancelled().await;
    }
}

impl ShutdownTrigger {
    /// Requests the stop. A second call changes nothing.
    pub fn request(&self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_request_reaches_every_clone_and_latecomers() {
        let (trigger, shutdown) = Shutdown::new();
        let clone = shutdown.clone();
        assert!(!shutdown.is_requested());

        trigger.request();

        shutdown.requested().await;
        clone.requested().await;
        assert!(clone.is_requested());
    }

    #[tokio::test(start_paused = true)]
    async fn a_trigger_dropped_unused_requests_nothing() {
        let (trigger, shutdown) = Shutdown::new();
        drop(trigger);
        let waited = tokio::time::timeout(Duration::from_secs(3_600), shutdown.requested()).await;
        assert!(waited.is_err());
        assert!(!shutdown.is_requested());
    }

    #[tokio::test]
    async fn a_request_survives_its_trigger() {
        let (trigger, shutdown) = Shutdown::new();
        trigger.request();
        drop(trigger);
        assert!(shutdown.requested().now_or_never().is_some());
    }
}
