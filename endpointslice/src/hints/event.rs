//! [`HintEvent`]: what a user should know about the hints of a Service.

use crate::model::AddressType;
use crate::plan::ServiceName;
use std::fmt;
use thiserror::Error;

/// Hints of a Service have come or gone. Upstream tells at every sync that there are none, which clusters had to silence
/// (openshift/kubernetes #1513); here an event is a change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HintEvent {
    /// The Service.
    pub service: ServiceName,
    /// The address type of the slices: those of the other type have hints of their own.
    pub address_type: AddressType,
    /// What has happened.
    pub change: HintChange,
}

/// What has happened to hints.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HintChange {
    /// There are hints now.
    Enabled,
    /// The Service asks for hints, but cannot have them now, or not for the reason that was told before.
    Refused(Refusal),
    /// The Service does not ask for them any more.
    TurnedOff,
}

/// Why a Service that asks for hints does not get them. The texts are kube-controller-manager's.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum Refusal {
    /// A Node that is ready has no zone or no processors, or all that are ready are in one zone.
    #[error("Insufficient Node information: allocatable CPU or zone not specified on one or more nodes")]
    InsufficientNodes,
    /// Not every zone can have an endpoint.
    #[error("Insufficient number of endpoints ({endpoints} endpoints, {zones} zones)")]
    TooFewEndpoints {
        /// How many endpoints are ready.
        endpoints: usize,
        /// How many zones there are.
        zones: usize,
    },
    /// However endpoints are shared out, those of one zone would get more than 20 % beyond their part.
    #[error(
        "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold \
         ({endpoints} endpoints, {zones} zones)"
    )]
    Overload {
        /// How many endpoints are ready.
        endpoints: usize,
        /// How many zones there are.
        zones: usize,
    },
    /// An endpoint that is ready has no zone.
    #[error("One or more endpoints do not have a zone specified")]
    EndpointWithoutZone,
}

impl Refusal {
    /// Whether it is for the same reason, with whatever numbers: a Service that scales is not refused anew at each step.
    pub(super) fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// The `type` of an event in the API.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Severity {
    /// As the user wanted it.
    Normal,
    /// Something for the user to look at.
    Warning,
}

impl Severity {
    /// Its name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl HintEvent {
    /// Its severity.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self.change {
            HintChange::Enabled => Severity::Normal,
            HintChange::Refused(_) | HintChange::TurnedOff => Severity::Warning,
        }
    }

    /// Its reason, as kube-controller-manager has it.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self.change {
            HintChange::Enabled => "TopologyAwareHintsEnabled",
            HintChange::Refused(_) | HintChange::TurnedOff => "TopologyAwareHintsDisabled",
        }
    }

    /// Its message, as kube-controller-manager has it.
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
            HintChange::Refused(why) => write!(formatter, "{why}")?,
        }
        write!(formatter, ", addressType: {}", self.address_type)
    }
}
