//! [`Line`]: what was measured of one scenario, a line of JSON.

use crate::slices::meter::Cost;
use crate::slices::outcome::Outcome;
use endpointslice::plan::WriteCounts;
use serde::{Deserialize, Serialize};

/// What was measured of one scenario. Other programs on the same files print the fields up to `deletes`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Line {
    /// The scenario.
    pub name: String,
    /// How often it was run.
    pub iters: u64,
    /// Processor time of a run, in nanoseconds.
    pub ns_op: f64,
    /// Allocations of a run.
    pub allocs_op: f64,
    /// Bytes allocated by a run.
    pub bytes_op: f64,
    /// Slices created.
    pub creates: usize,
    /// Slices updated.
    pub updates: usize,
    /// Slices deleted.
    pub deletes: usize,
    /// `full`, `incremental` or `selected`; "" on a line of another program.
    pub mode: String,
    /// Of an event, processor time until its plan is there, in nanoseconds; the rest of `ns_op` is writes and their answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_ns_op: Option<f64>,
    /// How many pods there are or, in the mode `selected`, Services.
    pub size: usize,
    /// How many endpoints there are in slices afterwards; in the mode `selected`, how many Services select the pod.
    pub endpoints: usize,
    /// How many of them differ.
    pub distinct_endpoints: usize,
    /// How many endpoints each slice has afterwards, sorted.
    pub slice_lengths: Vec<usize>,
}

impl Line {
    /// The line of a scenario in which nothing is written.
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

    /// The same, with what it came to and the writes that led there.
    #[must_use]
    pub fn after(self, outcome: &Outcome, counts: WriteCounts) -> Self {
        let WriteCounts { creates, updates, deletes } = counts;
        let slice_lengths = outcome.slice_lengths.clone();
        let (endpoints, distinct_endpoints) = (slice_lengths.iter().sum(), outcome.endpoints.len());
        Self { creates, updates, deletes, endpoints, distinct_endpoints, slice_lengths, ..self }
    }

    /// Whether slices come of the scenario.
    #[must_use]
    pub fn plans_slices(&self) -> bool {
        self.mode != "selected"
    }
}
