//! Results of this process's tasks that have ended.

use std::panic::resume_unwind;

use tokio::task::JoinError;

/// Resumes the panic of a task. Without that, an agent that has lost a part looks like an agent that has nothing to do.
///
/// # Errors
/// The task was cancelled.
pub(crate) fn unless_panicked<T>(joined: Result<T, JoinError>) -> Result<T, JoinError> {
    joined.map_err(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(cancelled) => cancelled,
    })
}
