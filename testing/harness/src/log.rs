//! Output of a process under test, collected line by line.

use crate::limits::{EVENTUALLY, LOG_LINES, LOG_LINES_SHOWN};
use crate::watchdog;
use anyhow::{Context as _, bail};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::sync::watch;

/// Last output lines of a process. Clones share the same lines.
#[derive(Clone, Debug)]
pub struct Log {
    name: Arc<str>,
    lines: Arc<watch::Sender<Lines>>,
}

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<String>,
    /// Number of lines that were dropped. The kept lines follow these lines.
    dropped: usize,
    ended: bool,
}

impl Log {
    /// Starts to collect the lines of `source`, until it ends.
    pub fn collect(name: &str, source: impl AsyncRead + Send + Unpin + 'static) -> Self {
        let log = Self { name: name.into(), lines: Arc::new(watch::Sender::new(Lines::default())) };
        let lines = Arc::clone(&log.lines);
        tokio::spawn(async move {
            let mut source = BufReader::new(source);
            let mut line = Vec::new();
            while matches!(source.read_until(b'\n', &mut line).await, Ok(count) if count > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                lines.send_modify(|lines| lines.push(text));
            }
            lines.send_modify(|lines| lines.ended = true);
        });
        log
    }

    /// Waits for a line for which `find` returns a value, and returns the value. Checks also the lines before this
    /// call.
    ///
    /// # Errors
    /// If no such line appears within [`EVENTUALLY`] or before the log ends. The error shows the last lines.
    pub async fn find<T>(&self, what: &str, mut find: impl FnMut(&str) -> Option<T>) -> anyhow::Result<T> {
        watchdog::waits_for(|| format!("{} to say {what}", self.name));
        let mut seen = 0;
        let mut found = None;
        let mut receiver = self.lines.subscribe();
        let search = receiver.wait_for(|lines| {
            let skip = seen - lines.dropped.min(seen);
            found = lines.kept.iter().skip(skip).find_map(|line| find(line));
            seen = lines.dropped + lines.kept.len();
            found.is_some() || lines.ended
        });
        let outcome = tokio::time::timeout(EVENTUALLY, search).await.map(drop);
        let late = outcome.is_err();
        match found {
            Some(found) => Ok(found),
            None if late => bail!("{} did not say {what} in {EVENTUALLY:?}\n{}", self.name, self.tail()),
            None => bail!("{} ended and did not say {what}\n{}", self.name, self.tail()),
        }
    }

    /// Waits until the process has closed its output.
    pub async fn ended(&self) -> anyhow::Result<()> {
        watchdog::waits_for(|| format!("{} to close its output", self.name));
        let mut receiver = self.lines.subscribe();
        let ended = receiver.wait_for(|lines| lines.ended);
        tokio::time::timeout(EVENTUALLY, ended)
            .await
            .map(drop)
            .with_context(|| format!("{} has not closed its output in {EVENTUALLY:?}", self.name))
    }

    /// Returns all kept lines.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lines.borrow().kept.iter().cloned().collect()
    }

    /// Returns the last lines under a heading, for messages of failures.
    #[must_use]
    pub fn tail(&self) -> String {
        let lines = self.lines.borrow();
        let shown = lines.kept.iter().skip(lines.kept.len().saturating_sub(LOG_LINES_SHOWN));
        let mut text = format!("--- last lines of {}", self.name);
        for line in shown {
            text.push_str("\n    ");
            text.push_str(line);
        }
        text
    }
}

impl Lines {
    fn push(&mut self, line: String) {
        if self.kept.len() == LOG_LINES {
            self.kept.pop_front();
            self.dropped += 1;
        }
        self.kept.push_back(line);
    }
}
