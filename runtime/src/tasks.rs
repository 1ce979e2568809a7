//! Results of this process's tasks that have ended.

use std::panic::resume_unwind;

use tokio::task::JoinError;

/// Resumes the panic of a task. Otherwise, an agent that has lost a task would look like an idle agent.
///
/// # Errors
/// If the task was cancelled.
pub(crate) fn unless_panicked<T>(joined: Result<T, JoinError>) -> Result<T, JoinError> {
    joined.map_err(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(cancelled) => cancelled,
    })
}
