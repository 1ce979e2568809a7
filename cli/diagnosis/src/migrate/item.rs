//! Item of the tables: a difference between the agents, and the finder of objects that show it.

use crate::explain::{Site, Stop};
use crate::report::{Evidence, Impact};
use crate::snapshot::{Member, Snapshot};

/// Difference between the agents that objects of a fleet can show.
pub(super) struct Item {
    /// Name for programs.
    pub(super) id: &'static str,
    pub(super) impact: Impact,
    /// Agents whose change has the effect.
    pub(super) agents: &'static str,
    pub(super) effect: &'static str,
    pub(super) remedy: &'static str,
    pub(super) find: Find,
}

/// Finder of the objects that show an item.
#[derive(Clone, Copy)]
pub(super) enum Find {
    /// In the hub.
    Hub(fn(&Snapshot) -> Result<Vec<Evidence>, Stop>),
    /// In each member.
    Member(fn(&Snapshot, &Member) -> Result<Vec<Evidence>, Stop>),
    /// In the hub and in each member.
    Cluster(fn(&Snapshot, Site<'_>) -> Result<Vec<Evidence>, Stop>),
}
