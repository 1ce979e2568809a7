//! Latency samples of writes.

use fleetnet_types::{ClusterId, ObjectName, Timestamp};

/// Latency sample to observe when a write is done, or the report of such samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sample {
    /// Time from the export of a slice to its import.
    SliceImported {
        /// Cluster id of the exporting member.
        origin: ClusterId,
        /// True if neither the imported slice nor the distributed slice records an observed generation. Then this
        /// sample counts as the first of the slice, unless the agent remembers an earlier one.
        first: bool,
        /// Start of the measured time; `None` means no sample.
        exported_since: Option<Timestamp>,
    },
    /// Time from the change of a Service to the outcome of conflict resolution for this change.
    ServiceExported { service: ObjectName },
    /// No sample: the write was a heartbeat that changed the latency summary.
    LatencyReported,
}
