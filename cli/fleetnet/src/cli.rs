//! Commands that work on the clusters of a kubeconfig. Each command has its own module.
//!
//! ```text
//! args ──> command ──> contexts (kubeconfigs) ──> connect ──> requests
//!             └──────> output (Safe text only) ──> standard output, standard error
//! ```

pub(crate) mod check;
pub(crate) mod completion;
pub(crate) mod contexts;
pub(crate) mod exit;
pub(crate) mod explain;
pub(crate) mod fleet;
pub(crate) mod gather;
pub(crate) mod join;
pub(crate) mod latency;
pub(crate) mod leave;
pub(crate) mod migrate;
pub(crate) mod objects;
pub(crate) mod output;
pub(crate) mod rotate;
pub(crate) mod services;
pub(crate) mod status;
pub(crate) mod test;
mod unreached;
pub(crate) mod version;
pub(crate) mod view;

use crate::limits::WORKER_THREADS;
use exit::{Exit, Stop};
use std::future::Future;
use std::process::ExitCode;

/// Runs a command to its end and returns the exit code of the process. Prints the error, if there is one.
pub(crate) fn run(command: impl Future<Output = Result<Exit, Stop>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKER_THREADS).enable_all().build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(command);
            // Requests of a time limit that has passed may still run. Their answers are of no use.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(Stop::fault(format!("cannot start the timers and tasks of this process: {error}"))),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(stop) => {
            output::error(&stop.why);
            stop.exit.into()
        }
    }
}
