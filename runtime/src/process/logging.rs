//! Structured logs on standard error, as JSON or as text.

pub mod captured;
mod levels;

use std::fmt::{self, Write as _};
use std::io;

use tracing::{Subscriber, field::Field};
use tracing_subscriber::{
    EnvFilter,
    field::MakeExt as _,
    fmt::{
        MakeWriter,
        format::{Writer, debug_fn},
        time::FormatTime,
    },
    util::SubscriberInitExt as _,
};

use crate::clock::{Clock, micro_time};
use levels::levels_for;

/// Environment variable that overrides the levels of `--v`, in the syntax of tracing, such as
/// `info,fleetnet_runtime::io::watch=trace`.
const LEVELS_VARIABLE: &str = "RUST_LOG";
/// The form of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One JSON object on each line.
    #[default]
    Json,
    /// Text for people.
    Text,
}

/// Settings of the log, from the agent's flags.
#[derive(Clone, Copy, Debug)]
pub struct LogSettings<'a> {
    pub format: LogFormat,
    /// Level of klog's `--v`. Values from 2 to 5 change the level of our own crates only.
    /// - 0 and 1: informational, for our own crates.
    /// - 2 and 3: debug, with each write, each latency sample and each skipped item.
    /// - 4 and above: trace, with each watch event, each queued key and each plan.
    /// - Other crates: warnings; from 6 on informational, from 8 on debug.
    pub verbosity: u8,
    /// Rust paths of the agent's crates (such as `member_agent`), whose levels `--v` raises. The runtime's crate is
    /// added.
    pub own_crates: &'a [&'a str],
}

/// Reason why logging cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    #[error("the environment variable {LEVELS_VARIABLE} is malformed: {0}")]
    Levels(#[from] tracing_subscriber::filter::ParseError),
    /// Logging was already set up in this process.
    #[error("logging is set up already: {0}")]
    Already(#[from] tracing_subscriber::util::TryInitError),
}

/// Sets up logging for the whole process, once.
///
/// # Errors
/// If logging is already set up, or `RUST_LOG` is set and malformed.
pub fn init(settings: LogSettings<'_>, clock: &Clock) -> Result<(), LoggingError> {
    let levels = std::env::var(LEVELS_VARIABLE).ok().filter(|levels| !levels.trim().is_empty());
    let levels = levels.unwrap_or_else(|| levels_for(settings.verbosity, settings.own_crates));
    let filter = EnvFilter::try_new(levels)?;
    match settings.format {
        LogFormat::Json => json(filter, clock, io::stderr).try_init()?,
        LogFormat::Text => text(filter, clock, io::stderr).try_init()?,
    }
    Ok(())
}

fn json<W>(filter: EnvFilter, clock: &Clock, writer: W) -> impl Subscriber + Send + Sync + 'static + use<W>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .with_timer(ClockTime(clock.clone()))
        .with_env_filter(filter)
        .with_writer(writer)
        .finish()
}

fn text<W>(filter: EnvFilter, clock: &Clock, writer: W) -> impl Subscriber + Send + Sync + 'static + use<W>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // No colours, because files and programs read a pod's logs.
    tracing_subscriber::fmt()
        .with_ansi(false)
        .fmt_fields(debug_fn(text_field).delimited(" "))
        .with_timer(ClockTime(clock.clone()))
        .with_env_filter(filter)
        .with_writer(writer)
        .finish()
}

/// Writes the field `message` as it is, and any other field as `name=value`.
fn text_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    if field.name() != "message" {
        write!(writer, "{}=", field.name())?;
    }
    write!(OneLine(writer), "{value:?}")
}

/// Writer that escapes characters that end a line, move the cursor or reorder text. Log messages quote text from other
/// clusters, which may contain such characters.
struct OneLine<'a, 'w>(&'a mut Writer<'w>);

impl fmt::Write for OneLine<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|character| match character {
            '\u{2028}' | '\u{2029}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {
                write!(self.0, "{}", character.escape_unicode())
            }
            _ if character.is_control() => write!(self.0, "{}", character.escape_default()),
            _ => self.0.write_char(character),
        })
    }
}

/// Source of timestamps for log lines: the process's own clock, so the logs of a simulation show simulated time.
struct ClockTime(Clock);

impl FormatTime for ClockTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        writer.write_str(&micro_time(self.0.now()))
    }
}

#[cfg(test)]
pub(crate) use tests::lines;

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the doubles are plain functions, which cannot await a lock")]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;
    use fleetnet_types::Timestamp;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Lines {
        fn read(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }

        fn writer(&self) -> impl Fn() -> Lines + Send + Sync + 'static + use<> {
            let lines = self.clone();
            move || lines.clone()
        }
    }

    fn clock() -> Clock {
        Clock::virtual_at(Timestamp::from_seconds(1_800_000_000))
    }

    /// Returns the lines that a function logs, parsed from JSON.
    pub(crate) fn lines(tell: impl FnOnce()) -> Vec<Value> {
        let lines = Lines::default();
        let filter = EnvFilter::try_new(levels_for(0, &[])).unwrap();
        tracing::subscriber::with_default(json(filter, &clock(), lines.writer()), tell);
        lines.read().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns what a function logs as text, with the levels of `verbosity`.
    fn text_of(verbosity: u8, tell: impl FnOnce()) -> String {
        let lines = Lines::default();
        let filter = EnvFilter::try_new(levels_for(verbosity, &["member_agent"])).unwrap();
        tracing::subscriber::with_default(text(filter, &clock(), lines.writer()), tell);
        lines.read()
    }

    #[tokio::test(start_paused = true)]
    async fn a_json_line_holds_time_level_message_and_fields() {
        let expected = json!({
            "timestamp": "2027-01-15T08:00:00.000000Z", "level": "INFO", "message": "listed",
            "side": "hub", "kind": "Thing", "target": "fleetnet_runtime::process::logging::tests",
        });
        assert_eq!(lines(|| tracing::info!(side = "hub", kind = "Thing", "listed")), [expected]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_text_line_is_plain() {
        assert_eq!(
            text_of(0, || tracing::warn!(side = "hub", "gone")),
            "2027-01-15T08:00:00.000000Z  WARN fleetnet_runtime::process::logging::tests: gone side=\"hub\"\n"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn text_of_others_cannot_start_a_line_of_the_log() {
        let port = "web\n2027-01-15T08:00:00.000000Z  INFO forged\r\u{1b}[2J\u{2028}\u{202e}ü";
        let shown = r"web\n2027-01-15T08:00:00.000000Z  INFO forged\r\u{1b}[2J\u{2028}\u{202e}ü";
        assert_eq!(
            text_of(0, || tracing::warn!(why = port, shown = %port, "port {port} conflicts")),
            format!(
                "2027-01-15T08:00:00.000000Z  WARN fleetnet_runtime::process::logging::tests: port {shown} conflicts \
                 why=\"{shown}\" shown={shown}\n"
            )
        );
    }

    #[tokio::test(start_paused = true)]
    async fn verbosity_raises_our_own_crates_and_others_much_later() {
        let shown = |verbosity: u8| {
            let text = text_of(verbosity, || {
                tracing::info!(target: "member_agent::export", "own info");
                tracing::debug!("own debug");
                tracing::trace!(target: "member_agent", "own trace");
                tracing::warn!(target: "hyper", "other warn");
                tracing::info!(target: "hyper", "other info");
                tracing::debug!(target: "hyper", "other debug");
            });
            let words = |line: &str| line.rsplit_once(": ").unwrap().1.to_owned();
            text.lines().map(words).collect::<Vec<_>>()
        };
        let ordinary = ["own info", "other warn"];
        assert_eq!(shown(0), ordinary);
        assert_eq!(shown(1), ordinary);
        assert_eq!(shown(2), ["own info", "own debug", "other warn"]);
        assert_eq!(shown(4), ["own info", "own debug", "own trace", "other warn"]);
        assert_eq!(shown(6), ["own info", "own debug", "own trace", "other warn", "other info"]);
        assert_eq!(shown(8), ["own info", "own debug", "own trace", "other warn", "other info", "other debug"]);
    }
}
