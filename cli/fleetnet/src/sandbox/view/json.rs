//! View for machines: one JSON object per line.

use crate::sandbox::event::{Event, TimedEvent};
use chrono::SecondsFormat;
use serde::Serialize;

#[derive(Serialize)]
struct JsonLine<'a> {
    at: String,
    #[serde(flatten)]
    event: &'a Event,
}

/// Returns an event with its time as one line of JSON, without a newline.
pub(super) fn line(timed: &TimedEvent) -> String {
    let at = timed.at.to_rfc3339_opts(SecondsFormat::Millis, false);
    serde_json::to_string(&JsonLine { at, event: &timed.event })
        .expect("events are of strings, numbers and lists of these, and so are JSON")
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
