//! Result of a step, and the cluster that it is about.

use crate::report::Evidence;
use crate::snapshot::{Hub, Member};

/// Reason why a step is not ok.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    Broken(Box<Evidence>),
    Waiting(String),
    Skipped(String),
    Unknown(String),
}

/// Result of a step.
pub(crate) type StepResult = Result<(), Stop>;

/// One cluster in a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Site<'a> {
    Hub(&'a Hub),
    Member(&'a Member),
}

/// Returns the result that matters most: broken, unknown, waiting, ok, skipped.
pub(super) fn worst(found: impl Iterator<Item = StepResult>) -> StepResult {
    let rank = |found: &StepResult| match found {
        Err(Stop::Broken(_)) => 0,
        Err(Stop::Unknown(_)) => 1,
        Err(Stop::Waiting(_)) => 2,
        Ok(()) => 3,
        Err(Stop::Skipped(_)) => 4,
    };
    found.min_by_key(rank).unwrap_or_else(|| Err(Stop::Skipped("no member takes part".to_owned())))
}
