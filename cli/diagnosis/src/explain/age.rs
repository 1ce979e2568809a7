//! Age of a change.

use super::step_result::{Site, StepResult, Stop};
use crate::limits::SETTLED_SECONDS;
use jiff::Timestamp;

/// Fails with `Waiting` if a change is younger than this number of seconds, by the clock of its cluster. A change
/// without a time, or by an unknown clock, counts as old.
pub(crate) fn older_than(seconds: i64, site: Site<'_>, changed: Option<Timestamp>) -> StepResult {
    match age(site, changed) {
        Some(age) if age < seconds => Err(Stop::Waiting(format!("the change is {age} s old"))),
        Some(_) | None => Ok(()),
    }
}

/// Fails with `Waiting` if a change is younger than 10 s.
pub(crate) fn settled(site: Site<'_>, changed: Option<Timestamp>) -> StepResult {
    older_than(SETTLED_SECONDS, site, changed)
}

/// Returns the age of a change in seconds, by the clock of its cluster.
pub(crate) fn age(site: Site<'_>, changed: Option<Timestamp>) -> Option<i64> {
    Some(site.connection().now?.duration_since(changed?).as_secs())
}
