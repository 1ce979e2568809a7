//! Work on a thread that is in another network namespace: [`Inside`].

use crate::shell::namespace_file;
use anyhow::Context as _;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd as _;
use std::thread::JoinHandle;
use tokio::runtime;
use tokio::sync::oneshot;

/// Thread in a network namespace, with a runtime of its own. Its sockets and its child processes are in that namespace.
/// The work ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Inside {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Inside {
    /// Starts the thread in the namespace with this name. `work` runs until it ends, fails or is dropped.
    pub(crate) fn start<F>(namespace: &str, work: F) -> anyhow::Result<Self>
    where
        F: AsyncFnOnce() -> anyhow::Result<()> + Send + 'static,
    {
        let path = namespace_file(namespace);
        let file = File::open(&path).with_context(|| format!("there is no network namespace {path}"))?;
        let (stop, mut stopped) = oneshot::channel();
        let name = namespace.to_owned();
        let body = move || {
            let run = || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
                let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(async {
                    tokio::select! {
                        outcome = work() => outcome,
                        _ = &mut stopped => Ok(()),
                    }
                })
            };
            if let Err(error) = run() {
                eprintln!("the work in {name} has ended: {error:#}");
            }
        };
        let thread = std::thread::Builder::new().name(namespace.to_owned()).spawn(body)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread only drops its tasks now.
            let _ = thread.join();
        }
    }
}
