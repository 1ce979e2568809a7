//! Second thread of an agent's process, for everything that clients can cause without authentication: connections, TLS,
//! probes, metrics and slice streams. The engine, the watches and the Lease stay on the first thread, so that no client
//! takes their time.
//!
//! Code on this thread reaches the first thread only through channels with a limit, and through the reviews of tokens,
//! whose rate is limited ([`crate::process::access`]). Simulated fleets have one runtime for both.

use std::future::Future;
use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::limits::{LISTENERS_NICENESS, LIVENESS_EVERY, LIVENESS_STUCK};
use crate::tasks::unless_panicked;

/// Name of the thread.
const NAME: &str = "listeners";

/// Handle of the thread. The thread and its tasks end when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Listeners {
    runtime: Handle,
    _end: Arc<DropGuard>,
}

impl Listeners {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system refuses a further thread, or its timers and sockets.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, end) = (runtime.handle().clone(), CancellationToken::new());
        let ended = end.clone();
        std::thread::Builder::new().name(NAME.to_owned()).spawn(move || {
            // Ignores the error: with an equal share of the processor, the threads are still apart.
            let _ = rustix::process::nice(LISTENERS_NICENESS);
            runtime.block_on(ended.cancelled());
            // Does not wait for a file that is read.
            runtime.shutdown_background();
        })?;
        Ok(Self { runtime: handle, _end: Arc::new(end.drop_guard()) })
    }

    /// Runs a task on the thread. Sockets of the task belong to this thread. The task ends when the returned future is
    /// dropped.
    pub fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send + 'static {
        let runtime = self.runtime.clone();
        async move {
            let mut running = JoinSet::new();
            running.spawn_on(task, &runtime);
            match running.join_next().await.map(unless_panicked) {
                Some(Ok(output)) => output,
                // The thread has ended, so the process ends too.
                Some(Err(_)) | None => std::future::pending().await,
            }
        }
    }

    /// Returns the runtime of the thread.
    #[must_use]
    pub const fn runtime(&self) -> &Handle {
        &self.runtime
    }
}

/// Liveness of the thread that starts it, as another thread sees it.
#[derive(Clone, Debug)]
pub struct Liveness(watch::Receiver<Instant>);

impl Liveness {
    /// Starts a task on the present runtime that shows again and again that its thread is not stuck.
    #[must_use]
    pub fn start() -> Self {
        let last = watch::Sender::new(Instant::now());
        let liveness = Self(last.subscribe());
        tokio::spawn(async move {
            while !last.is_closed() {
                last.send_replace(Instant::now());
                sleep(LIVENESS_EVERY).await;
            }
        });
        liveness
    }

    /// True if the thread is not stuck.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.0.borrow().elapsed() < LIVENESS_STUCK
    }
}
