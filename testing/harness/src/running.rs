//! Agents that run, with the last lines of their logs.

use crate::limits::LOG_LINES_SHOWN;
use parking_lot::Mutex;

/// Function that returns the last lines of a log.
type Tail = Box<dyn Fn() -> String + Send>;

/// Process id of every running agent, with the tail of its log. Messages of failed tests show the tails.
pub(crate) static RUNNING: Mutex<Vec<(i32, Tail)>> = Mutex::new(Vec::new());

/// Returns the last log lines of every running agent, for messages of failed tests.
#[must_use]
pub fn tails() -> String {
    let tails: Vec<String> = RUNNING.lock().iter().map(|(_, tail)| tail()).collect();
    if tails.is_empty() {
        return format!("(no agent runs whose last {LOG_LINES_SHOWN} lines could be shown)");
    }
    tails.join("\n")
}
