//! Metrics that only the hub agent exports.

use fleetnet_runtime::metrics::{Definition, Kind};

pub(crate) const RENEWAL_AGE: Definition = Definition {
    name: "fleetnet_member_last_renewal_age_seconds",
    kind: Kind::Gauge,
    labels: &["member"],
    help: "Time since the hub agent saw the last heartbeat of the member, on the hub agent's own clock. A renewal in the hub \
           agent's first list counts from its renewTime. Only the leader exports it, and not for members that left or announced \
           a stop.",
};
pub(crate) const CLOCK_OFFSET: Definition = Definition {
    name: "fleetnet_member_clock_offset_seconds",
    kind: Kind::Gauge,
    labels: &["member"],
    help: "Clock of the member minus clock of the hub agent, at the last heartbeat that arrived live. It includes the time that \
           the heartbeat took, as a negative part. Only the leader exports it.",
};

pub(crate) const EXPORTS: Definition = Definition {
    name: "fleetnet_exports",
    kind: Kind::Gauge,
    labels: &["state"],
    help: "Number of exports in the hub by state. accepted: part of the ServiceImport. conflicted: other ports than the accepted \
           exports. denied: the cluster has no right to export. pending: not decided yet.",
};
pub(crate) const IMPORTS: Definition = Definition {
    name: "fleetnet_imports",
    kind: Kind::Gauge,
    labels: &["state"],
    help: "Number of claims in the hub by state. granted: the member imports the Service. pending: the claim waits for an \
           export, for the exclusive claim of another member, or for a right to import.",
};

/// All metrics of this crate.
pub const ALL: &[Definition] = &[RENEWAL_AGE, CLOCK_OFFSET, EXPORTS, IMPORTS];
