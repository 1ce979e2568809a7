//! Progress of long work, on standard error: a spinner on a terminal, else a line for each step.

use super::note;
use super::safe::Safe;
use crate::limits::FRAME;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Progress of one command. Dropping it removes the spinner.
#[derive(Debug)]
pub(crate) struct Progress {
    spinner: Option<ProgressBar>,
    is_verbose: bool,
    /// True if not even warnings are printed.
    is_quiet: bool,
}

impl Progress {
    /// Returns the progress of a command. Without a terminal, steps are printed only if the user asked for them (`-v`).
    pub(crate) fn new(verbosity: u8) -> Self {
        let target = ProgressDrawTarget::stderr();
        let spinner = (!target.is_hidden()).then(|| {
            let spinner = ProgressBar::with_draw_target(None, target).with_style(ProgressStyle::default_spinner());
            spinner.enable_steady_tick(FRAME);
            spinner
        });
        Self { spinner, is_verbose: verbosity > 0, is_quiet: false }
    }

    /// Returns the progress of work in the background. It prints nothing.
    pub(crate) fn quiet() -> Self {
        Self { spinner: None, is_verbose: false, is_quiet: true }
    }

    /// Shows what the command does now.
    pub(crate) fn step(&self, text: &str) {
        match &self.spinner {
            Some(spinner) => spinner.set_message(Safe::line(text).to_string()),
            None if self.is_verbose => note(text),
            None => {}
        }
    }

    /// Prints a line that stays.
    pub(crate) fn note(&self, text: &str) {
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| note(text)),
            None if self.is_quiet => {}
            None => note(text),
        }
    }

    /// Prints a line that stays if the user asked for more (`-v`).
    pub(crate) fn detail(&self, text: &str) {
        if self.is_verbose {
            self.note(text);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}
