//! Tasks of this process that have ended.

use std::panic::resume_unwind;

use tokio::task::JoinError;

/// Resumes the panic of a task. An agent that goes on without one of its parts looks like an agent that has nothing to do.
///
/// # Errors
/// The task was cancelled.
pub(crate) fn unless_panicked<T>(joined: Result<T, JoinError>) -> Result<T, JoinError> {
    joined.map_err(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(cancelled) => cancelled,
    })
}
