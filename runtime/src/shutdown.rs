//! The wish to stop: from SIGTERM or SIGINT, or from whoever holds the trigger, to everything that runs.

use std::io;

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// The exit code of a process that was told twice to stop, as controller-runtime has it.
const EXIT_CODE_ON_SECOND_SIGNAL: i32 = 1;

/// Tells whether a stop was asked for. Clones see the same.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// Asks for a stop. Dropping it without [`ShutdownTrigger::request`] asks for nothing.
#[derive(Debug)]
pub struct ShutdownTrigger(watch::Sender<bool>);

impl Shutdown {
    /// A shutdown that its trigger, and nothing else, requests.
    #[must_use]
    pub fn new() -> (ShutdownTrigger, Shutdown) {
        let (sender, receiver) = watch::channel(false);
        (ShutdownTrigger(sender), Shutdown(receiver))
    }

    /// A shutdown that SIGTERM or SIGINT requests. A second signal ends the process at once with exit code 1: whoever
    /// sends it does not want to wait for the rest.
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
            tracing::info!(signal = first, "stopping: nothing new is begun, what is under way is ended first");
            trigger.request();
            let second = next_signal().await;
            tracing::warn!(signal = second, "asked to stop for a second time: ending at once");
            std::process::exit(EXIT_CODE_ON_SECOND_SIGNAL);
        });
        Ok(shutdown)
    }

    /// Whether a stop was asked for.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once a stop was asked for; at once if it already was. Cancel-safe.
    pub async fn requested(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|requested| *requested).await.is_err() {
            // The trigger is gone unused, so nobody can ask any more.
            std::future::pending::<()>().await;
        }
    }
}

impl ShutdownTrigger {
    /// Asks everything that holds the [`Shutdown`] to stop. Asking again changes nothing.
    pub fn request(&self) {
        self.0.send_replace(true);
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
