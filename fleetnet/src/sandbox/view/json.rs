//! View for machines: one JSON object per line.

use super::Told;
use crate::sandbox::event::Event;
use chrono::SecondsFormat;
use serde::Serialize;

#[derive(Serialize)]
struct Line<'a> {
    at: String,
    #[serde(flatten)]
    event: &'a Event,
}

/// Returns an event with its time as one line of JSON, without a newline.
pub(super) fn line(told: &Told) -> String {
    let at = told.at.to_rfc3339_opts(SecondsFormat::Millis, false);
    serde_json::to_string(&Line { at, event: &told.event })
        .expect("events are of strings, numbers and lists of these, and so are JSON")
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
