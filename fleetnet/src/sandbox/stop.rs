//! The wish to stop: Ctrl-C, Ctrl-\, SIGTERM, SIGHUP, or a reader of our output that has gone.

use fleetnet_runtime::shutdown::{Shutdown, ShutdownTrigger};
use std::future::Future;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// Tells whether somebody wants us to stop, and whether they do not want to wait for it. Clones are the same wish.
#[derive(Clone)]
pub(crate) struct Stop {
    trigger: Arc<ShutdownTrigger>,
    requested: Shutdown,
    insisted: Shutdown,
}

impl Stop {
    /// A stop that the usual signals ask for; a second one insists.
    ///
    /// # Errors
    /// If the signal handlers cannot be installed.
    pub(crate) fn on_signals() -> std::io::Result<Self> {
        let (trigger, requested) = Shutdown::new();
        let (insist, insisted) = Shutdown::new();
        let stop = Self { trigger: Arc::new(trigger), requested, insisted };
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        // Who quits by Ctrl-\ wants their terminal back too.
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

    /// Asks for it.
    pub(crate) fn request(&self) {
        self.trigger.request();
    }

    /// What `work` comes to; none where a stop was asked for first, and then the work is dropped where it stands.
    pub(crate) async fn unless_requested<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        unless(&self.requested, work).await
    }

    /// The same for the work of stopping itself.
    pub(crate) async fn unless_insisted<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        unless(&self.insisted, work).await
    }
}

async fn unless<T>(wish: &Shutdown, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = wish.requested() => None,
        done = work => Some(done),
    }
}
