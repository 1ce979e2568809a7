//! Requests to stop the sandbox: Ctrl-C, Ctrl-\, SIGTERM, SIGHUP, or a closed output.

use fleetnet_runtime::process::shutdown::{Shutdown, ShutdownTrigger};
use std::future::Future;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// Two requests to the sandbox: to stop, and to stop without waiting. Clones share both requests.
#[derive(Clone)]
pub(crate) struct Stop {
    trigger: Arc<ShutdownTrigger>,
    requested: Shutdown,
    insisted: Shutdown,
}

impl Stop {
    /// Installs signal handlers. The first signal requests a stop, and the second signal requests a stop without
    /// waiting.
    ///
    /// # Errors
    /// If signal handlers cannot be installed.
    pub(crate) fn on_signals() -> std::io::Result<Self> {
        let (trigger, requested) = Shutdown::new();
        let (insist, insisted) = Shutdown::new();
        let stop = Self { trigger: Arc::new(trigger), requested, insisted };
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        // SIGQUIT (Ctrl-\) is handled too, so that the terminal is restored.
        let mut quit = signal(SignalKind::quit())?;
        let signalled = stop.clone();
        tokio::spawn(async move {
            let mut next = async || {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hang_up.recv() => {}
                    _ = quit.recv() => {}
                }
            };
            next().await;
            signalled.request();
            next().await;
            insist.request();
        });
        Ok(stop)
    }

    pub(crate) fn request(&self) {
        self.trigger.request();
    }

    /// Runs `work`. If a stop is requested before the end of the work, drops the work and returns `None`.
    pub(crate) async fn unless_requested<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        unless(&self.requested, work).await
    }

    /// Runs `work`, which is a part of stopping. If a second signal requests a stop without waiting, drops the work and
    /// returns `None`.
    pub(crate) async fn unless_insisted<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        unless(&self.insisted, work).await
    }
}

async fn unless<T>(shutdown: &Shutdown, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = shutdown.requested() => None,
        done = work => Some(done),
    }
}
