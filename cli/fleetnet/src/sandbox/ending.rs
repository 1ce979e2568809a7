//! Ending of a run of the sandbox.

use crate::args::Options;
use fleetnet_agent::flags::exit_with_error;

/// Exit code that shells give to a program ended by Ctrl-C.
pub(super) const INTERRUPTED: u8 = 130;

/// Outcome of a run of the sandbox that had no internal error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The fleet reached the expected state.
    Passed,
    /// An agent failed, or the final state differs from the expected state.
    Failed,
    /// The user stopped the sandbox. Its exit code says if a verdict was missing.
    Stopped(u8),
    /// The sandbox cannot run with these options. The reason was printed.
    UsageError,
}

impl Ending {
    /// Returns the ending of a run that the user stopped. `verdict` is true if the run had passed already, false if it
    /// had failed, and `None` if it had no verdict yet.
    pub(super) fn stopped(options: &Options, verdict: Option<bool>) -> Self {
        Self::Stopped(match verdict {
            Some(true) => 0,
            Some(false) => 1,
            None if options.once || options.scenario.is_some() => INTERRUPTED,
            None => 0,
        })
    }
}

/// Returns the value. Prints an error on one line, and returns `None`.
pub(super) fn prepared_or_explained<T>(prepared: anyhow::Result<T>) -> Option<T> {
    let explain = |why: &anyhow::Error| {
        exit_with_error(&format!("{why:#}"));
    };
    prepared.inspect_err(explain).ok()
}
