//! Rule of a step.

use super::step_result::{Site, StepResult};
use super::walk::Walk;
use crate::snapshot::{Member, Snapshot};

/// Rule of a step.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// Rule for the hub and for each member of the pair.
    Cluster(fn(&Snapshot, Site<'_>) -> StepResult),
    /// Rule for each member of the pair.
    Member(fn(&Snapshot, &Member) -> StepResult),
    /// Rule for the pair.
    Pair(fn(&Walk<'_>) -> StepResult),
    /// Rule for a pair of the fleet's API.
    Fleet(fn(&Walk<'_>) -> StepResult),
    /// Rule for a pair of the standard API.
    Mcs(fn(&Walk<'_>) -> StepResult),
}
