//! Trace: what happened in one run, line by line, with virtual times since the start.

use fleetnet_types::Timestamp;
use parking_lot::Mutex;
use std::sync::Arc;

/// Lines of a run. Clones share the lines.
#[derive(Clone, Debug)]
pub struct Trace(Arc<Mutex<Lines>>);

#[derive(Debug)]
struct Lines {
    start: Timestamp,
    lines: Vec<String>,
    /// The oldest lines are dropped above this number.
    most: usize,
}

impl Trace {
    /// Returns a trace that keeps the last `most` lines.
    #[must_use]
    pub fn new(start: Timestamp, most: usize) -> Self {
        Self(Arc::new(Mutex::new(Lines { start, lines: Vec::new(), most })))
    }

    /// Adds a line. `text` makes it only if the trace keeps lines.
    pub fn add(&self, at: Timestamp, text: impl FnOnce() -> String) {
        let mut lines = self.0.lock();
        if lines.most == 0 {
            return;
        }
        let since = at.since(lines.start);
        let line = format!("{:>4}.{:03} {}", since.as_secs(), since.subsec_millis(), text());
        if lines.lines.len() >= lines.most {
            lines.lines.remove(0);
        }
        lines.lines.push(line);
    }

    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().lines.clone()
    }
}
