//! Captures log lines for tests: [`Captured`].

use std::io::{self, Write};
#[expect(clippy::disallowed_types, reason = "tracing writes in plain functions, which cannot await a lock")]
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, set_default};
use tracing_subscriber::{EnvFilter, Registry};

use super::levels::levels_for;

/// Log lines of this thread, captured while this value exists, at one verbosity. For tests.
#[derive(Debug)]
pub struct Captured {
    lines: Lines,
    _guard: DefaultGuard,
}

#[derive(Clone, Debug, Default)]
#[expect(clippy::disallowed_types, reason = "as above")]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Second tracing subscriber of the process, which is never used. With a single subscriber, tracing decides only once
/// for each log statement whether the statement is enabled: in the first thread that reaches the statement. That thread
/// may belong to a test without a subscriber.
static SECOND: OnceLock<Dispatch> = OnceLock::new();

impl Captured {
    /// Starts to capture this thread's log lines. `verbosity` is a value of the flag `--v`. `own_crates` are the crates
    /// whose log level this flag raises.
    ///
    /// # Panics
    /// If a name of a crate is malformed.
    #[must_use]
    pub fn at(verbosity: u8, own_crates: &[&str]) -> Self {
        SECOND.get_or_init(|| Dispatch::new(Registry::default()));
        let lines = Lines::default();
        let (writer, filter) = (lines.clone(), EnvFilter::new(levels_for(verbosity, own_crates)));
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .with_env_filter(filter)
            .with_writer(move || writer.clone())
            .finish();
        Self { lines, _guard: set_default(subscriber) }
    }

    /// Returns the lines logged since the last call: level, message and fields.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.lines.lock());
        String::from_utf8_lossy(&bytes).lines().map(|line| line.trim().to_owned()).collect()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
