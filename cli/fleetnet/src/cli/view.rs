//! Views of a fleet: shown once, again and again (`--watch`), or until the fleet is healthy (`--wait`).

use super::contexts::{HEADING, duration};
use super::exit::{Exit, Stop};
use super::output::progress::Progress;
use super::output::safe::Safe;
use super::output::{self, Format, OutputFlags, Paint, Report};
use crate::limits::POLL;
use diagnosis::report::Verdict;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::signal::unix::SignalKind;
use tokio::time::Instant;

/// Options of a view.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct ViewFlags {
    /// Show the view again and again until Ctrl-C [default interval: 2s].
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, require_equals = true, default_missing_value = "2s",
          value_parser = duration, help_heading = HEADING, hide_short_help = true)]
    pub(crate) watch: Option<Duration>,

    /// Wait until nothing is wrong, then show the view [default time limit: 5m].
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "5m",
          conflicts_with = "watch", value_parser = duration, help_heading = HEADING, hide_short_help = true)]
    pub(crate) wait: Option<Duration>,

    /// Time limit for reading all clusters once.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration, help_heading = HEADING,
          hide_short_help = true)]
    pub(crate) timeout: Duration,
}

/// Report about the state of a fleet.
pub(crate) trait View: Report {
    /// Summary of the state.
    fn verdict(&self) -> Verdict;
    /// True if the agents may still react to a change. `--wait` then waits, although nothing is wrong yet.
    fn is_waiting(&self) -> bool {
        false
    }
    /// What could not be read. It is printed to standard error for people, and is part of the JSON.
    fn not_known(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Returns the exit code of a view. A fault that was found counts more than something that could not be read.
pub(crate) fn exit_of(view: &dyn View, remarks: &[String]) -> Exit {
    match view.verdict() {
        Verdict::Fault => Exit::Fault,
        Verdict::NotKnown => Exit::Incomplete,
        Verdict::Healthy if !remarks.is_empty() => Exit::Incomplete,
        Verdict::Healthy => Exit::Healthy,
    }
}

/// Shows a view once, repeatedly or when it is healthy. `read` makes the view anew each time.
///
/// # Errors
/// If standard output cannot be written to.
pub(crate) async fn show<V: View>(
    flags: ViewFlags,
    output: OutputFlags,
    remarks: &[String],
    progress: Progress,
    read: impl AsyncFn(&Progress) -> V,
) -> Result<Exit, Stop> {
    if let Some(interval) = flags.watch {
        return watch(interval, output, remarks, progress, read).await;
    }
    let end = flags.wait.map(|limit| Instant::now() + limit);
    loop {
        let view = read(&progress).await;
        let exit = exit_of(&view, remarks);
        let is_done = exit == Exit::Healthy && !view.is_waiting();
        if end.is_none_or(|end| is_done || Instant::now() >= end) {
            drop(progress);
            print(&view, output, remarks)?;
            let has_timed_out = end.is_some() && !is_done;
            return Ok(if has_timed_out { Exit::Timeout } else { exit });
        }
        progress.step("waiting until nothing is wrong");
        tokio::time::sleep(POLL).await;
    }
}

/// Shows a view again and again until Ctrl-C. The exit code is that of the last view.
async fn watch<V: View>(
    interval: Duration,
    output: OutputFlags,
    remarks: &[String],
    progress: Progress,
    read: impl AsyncFn(&Progress) -> V,
) -> Result<Exit, Stop> {
    // One listener for the whole time: a signal during a reading counts too.
    let signal = tokio::signal::unix::signal(SignalKind::interrupt());
    let mut interrupts =
        signal.map_err(|error| Stop::fault(format!("signal handlers cannot be installed: {error}")))?;
    let mut exit = Exit::Healthy;
    loop {
        tokio::select! {
            biased;
            _ = interrupts.recv() => return Ok(exit),
            view = read(&progress) => {
                exit = exit_of(&view, remarks);
                output::print_again(&view, output)?;
            }
        }
        tokio::select! {
            biased;
            _ = interrupts.recv() => return Ok(exit),
            () = tokio::time::sleep(interval) => {}
        }
    }
}

/// View with the contexts that the user named and that could not be read.
struct Remarked<'a> {
    view: &'a dyn View,
    remarks: &'a [String],
}

impl Report for Remarked<'_> {
    fn kind(&self) -> &'static str {
        self.view.kind()
    }

    fn document(&self) -> Map<String, Value> {
        let mut document = self.view.document();
        if !self.remarks.is_empty() {
            document.insert("contextsNotRead".to_owned(), json!(self.remarks));
        }
        document
    }

    fn lines(&self, format: Format, has_headers: bool, paint: Paint) -> Safe {
        self.view.lines(format, has_headers, paint)
    }

    fn names(&self) -> Vec<String> {
        self.view.names()
    }
}

fn print(view: &dyn View, output: OutputFlags, remarks: &[String]) -> Result<(), Stop> {
    output::print(&Remarked { view, remarks }, output)?;
    for text in view.not_known().iter().chain(remarks) {
        output::note(&format!("not known: {text}"));
    }
    Ok(())
}

/// Returns a time span for people, such as `3s`, `5m` and `2d`.
pub(crate) fn span(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{}s", seconds.max(0)),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Returns a number, or a dash if it is not known.
pub(crate) fn number(value: Option<i64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| value.to_string())
}

/// Returns a result of the diagnosis as the members of a JSON document, without `apiVersion` and `kind`.
pub(crate) fn members(result: &impl serde::Serialize) -> Map<String, Value> {
    let value = serde_json::to_value(result).unwrap_or_default();
    let mut members = value.as_object().cloned().unwrap_or_default();
    members.remove("apiVersion");
    members.remove("kind");
    members
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn spans_have_one_unit() {
        let table =
            [(-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (7_199, "119m"), (7_200, "2h"), (172_800, "2d")];
        for (seconds, shown) in table {
            assert_eq!(span(seconds), shown);
        }
    }
}
