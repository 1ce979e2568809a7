//! Change of a Service's hints that a user should know: [`HintEvent`].

use crate::model::AddressType;
use crate::plan::ServiceName;
use std::fmt;
use thiserror::Error;

/// Event about hints that a Service got or lost. kube-controller-manager reports missing hints at every sync, so
/// clusters had to suppress these Events (openshift/kubernetes #1513). Here each event reports a change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HintEvent {
    /// Service whose hints changed.
    pub service: ServiceName,
    /// Address type of the slices whose hints changed. Each address type has its own hints.
    pub address_type: AddressType,
    /// Change of the hints of the slices of this address type.
    pub change: HintChange,
}

/// Change of the hints of a Service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HintChange {
    /// The Service has hints now.
    Enabled,
    /// The Service asks for hints but cannot have them now. Also reported when the reason changes.
    Unavailable(NoHintsReason),
    /// The Service no longer asks for hints.
    TurnedOff,
}

/// Reason why a Service that asks for topology hints does not get them. The messages are those of
/// kube-controller-manager.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum NoHintsReason {
    /// A ready Node has no zone or no CPU, or all ready Nodes are in one zone.
    #[error("Insufficient Node information: allocatable CPU or zone not specified on one or more nodes")]
    InsufficientNodes,
    /// The Service has fewer endpoints than the cluster has zones.
    #[error("Insufficient number of endpoints ({endpoints} endpoints, {zones} zones)")]
    TooFewEndpoints {
        /// Number of ready endpoints.
        endpoints: usize,
        /// Number of zones.
        zones: usize,
    },
    /// In every division of the endpoints, the endpoints of one zone would get over 20 % more traffic than an average
    /// endpoint.
    #[error(
        "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold \
         ({endpoints} endpoints, {zones} zones)"
    )]
    Overload {
        /// Number of ready endpoints.
        endpoints: usize,
        /// Number of zones.
        zones: usize,
    },
    /// A ready endpoint has no zone.
    #[error("One or more endpoints do not have a zone specified")]
    EndpointWithoutZone,
}

impl NoHintsReason {
    /// True if both reasons are the same, even with different numbers. So a Service that scales does not cause an
    /// event at each step.
    pub(super) fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// Type of a Kubernetes Event: Normal or Warning.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Severity {
    /// Type `Normal`: the hints are as the user asked.
    Normal,
    /// Type `Warning`: a problem for the user to look at.
    Warning,
}

impl Severity {
    /// Returns the value for the Event's field `type`: `Normal` or `Warning`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl HintEvent {
    /// Returns the type of the Kubernetes Event.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self.change {
            HintChange::Enabled => Severity::Normal,
            HintChange::Unavailable(_) | HintChange::TurnedOff => Severity::Warning,
        }
    }

    /// Returns the reason of the Kubernetes Event, as in kube-controller-manager.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self.change {
            HintChange::Enabled => "TopologyAwareHintsEnabled",
            HintChange::Unavailable(_) | HintChange::TurnedOff => "TopologyAwareHintsDisabled",
        }
    }

    /// Returns the message of the Kubernetes Event, as in kube-controller-manager.
    #[must_use]
    pub fn message(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for HintEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.change {
            HintChange::Enabled => formatter.write_str("Topology Aware Hints has been enabled")?,
            HintChange::TurnedOff => formatter.write_str("Topology Aware Hints has been disabled")?,
            HintChange::Unavailable(why) => write!(formatter, "{why}")?,
        }
        write!(formatter, ", addressType: {}", self.address_type)
    }
}
