//! Objects of a fleet manager, which defines members: InternalMemberCluster and MemberCluster.

use super::{Condition, Meta};
use crate::variants::variants;
use fleetnet_types::{Text, Timestamp};

/// InternalMemberCluster: request of a fleet manager to a member, to join or to leave the fleet, and the answers of the
/// member's agents. Each member has one, in its member namespace and with its cluster id as the name. Another group of
/// APIs defines the kind, and many fleets do not have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalMemberCluster {
    pub meta: Meta,
    pub state: MembershipState,
    /// Time between two heartbeats of an agent.
    pub heartbeat_micros: i64,
    /// `status.agentStatus`, in order.
    pub agents: Vec<AgentStatus>,
}

/// `spec.state` of an InternalMemberCluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MembershipState {
    Join,
    Leave,
    /// A state that this version does not know.
    Other,
}

/// Agent that has an entry in `status.agentStatus` of an InternalMemberCluster. This agent does the work of two Go
/// agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MembershipAgent {
    ServiceExportImport,
    MultiClusterService,
}

// The names are the types of the agents in `status.agentStatus`.
variants!(MembershipAgent, name: ServiceExportImport = "ServiceExportImportAgent",
    MultiClusterService = "MultiClusterServiceAgent");

/// Entry of one agent in `status.agentStatus` of an InternalMemberCluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentStatus {
    Known {
        agent: MembershipAgent,
        /// Condition `Joined`; `None` if the entry has none.
        joined: Option<Condition>,
        heartbeat: Option<Timestamp>,
    },
    /// Entry of another agent, as JSON.
    Other(Text),
}

/// MemberCluster: a member of the fleet, as its manager sees it. Of its fields, only the time of its deletion counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberCluster {
    pub meta: Meta,
    /// Time at which a user deleted it; `None` while the member belongs to the fleet.
    pub deleted: Option<Timestamp>,
}
