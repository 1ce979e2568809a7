//! Result of one measured scenario, printed as a line of JSON.

use crate::slices::meter::Cost;
use crate::slices::outcome::Outcome;
use endpointslice::plan::WriteCounts;
use serde::Serialize;

/// Result of one measured scenario. Other programs that measure the same files print the fields up to `deletes`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ScenarioResult {
    /// Name of the scenario.
    pub name: String,
    /// Number of runs that were timed.
    pub iters: u64,
    /// Processor time of one run in nanoseconds.
    pub ns_op: f64,
    /// Number of allocations in one run.
    pub allocs_op: f64,
    /// Bytes allocated in one run.
    pub bytes_op: f64,
    pub creates: usize,
    pub updates: usize,
    pub deletes: usize,
    /// Mode of the measurement: `full` (a reconcile), `incremental` (an event of one pod) or `selected` (the search for
    /// the Services that select a pod).
    pub mode: String,
    /// Processor time from a pod's event until its plan is ready, in nanoseconds. The remaining part of `ns_op` is for
    /// writes and their responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_ns_op: Option<f64>,
    /// Number of pods in the scenario. In the mode `selected`, which measures the search for the Services that select a
    /// pod: number of Services.
    pub size: usize,
    /// Number of endpoints in the resulting slices. In the mode `selected`, which measures the search for the Services
    /// that select a pod: number of these Services.
    pub endpoints: usize,
    /// Number of distinct endpoints in the resulting slices.
    pub distinct_endpoints: usize,
    /// Number of endpoints in each resulting slice, sorted.
    pub slice_lengths: Vec<usize>,
}

impl ScenarioResult {
    /// Returns the result of a scenario without writes.
    #[must_use]
    pub fn of(name: &str, mode: &str, size: usize, cost: Cost) -> Self {
        Self {
            name: name.to_owned(),
            mode: mode.to_owned(),
            size,
            iters: cost.iterations,
            ns_op: cost.nanoseconds,
            allocs_op: cost.allocations,
            bytes_op: cost.bytes,
            ..Self::default()
        }
    }

    /// Adds the resulting slices and the numbers of writes.
    #[must_use]
    pub fn after(self, outcome: &Outcome, counts: WriteCounts) -> Self {
        let WriteCounts { creates, updates, deletes } = counts;
        let slice_lengths = outcome.slice_lengths.clone();
        let (endpoints, distinct_endpoints) = (slice_lengths.iter().sum(), outcome.endpoints.len());
        Self { creates, updates, deletes, endpoints, distinct_endpoints, slice_lengths, ..self }
    }
}
