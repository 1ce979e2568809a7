//! Results about the endpoints of one Service: their number for each pair, and the way of the last change of a slice.

use super::Api;
use serde::Serialize;

/// Endpoints of one exporter in one importer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointCount {
    pub importer: String,
    pub exporter: String,
    pub ready: usize,
    /// Endpoints that are terminating. Clients use them only if no other endpoint is ready.
    pub draining: usize,
    pub not_ready: usize,
    /// Ready endpoints of the exporter that the importer does not have, because the export has weight 0 or the exporter
    /// is silent.
    pub withdrawn: usize,
    /// Ready endpoints of the exporter that the importer does not have, because a rule or a limit excludes them. The
    /// list of codes is in `cli/diagnosis/src/sides/absent.rs`.
    pub not_selected: usize,
    /// Ready endpoints of the exporter that the importer does not have, without one of these causes.
    pub missing: usize,
}

/// Way of the last change of one source slice from its exporter to one importer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Way {
    pub api: Api,
    pub exporter: String,
    pub importer: String,
    /// Name of the source slice.
    pub slice: String,
    /// One for each [`Point`], in their order.
    pub steps: Vec<WayStep>,
    /// Time from the first step with a known time to the last step. `None` if that is not known, or until the last step
    /// is done.
    pub whole: Option<Span>,
}

/// Point on the way of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Point {
    /// The endpoints changed: annotation `last-change-trigger-time` of the source slice.
    Changed,
    /// The exporter's agent saw the change: `exportedSince` of the EndpointSliceExport.
    Seen,
    /// The exporter's agent wrote the EndpointSliceExport.
    Exported,
    /// The hub agent wrote the EndpointSliceImport.
    Distributed,
    /// The importer's agent wrote the imported slice.
    Imported,
}

/// State of a step of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WayState {
    Done,
    /// The object has an earlier change, or does not exist.
    NotYet,
    /// The change makes no difference to clients of the importer, so its agent writes nothing.
    NotNeeded,
    /// The object does not have the change, and a rule, a limit, a weight of 0 or a silent exporter explains it. The
    /// agents may never write it.
    LeftOut,
    /// The object could not be read, or does not show which change it has.
    Unknown,
}

/// Step of a way.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WayStep {
    pub point: Point,
    /// Cluster whose clock gives the time: a cluster id, or `hub`.
    pub cluster: String,
    pub state: WayState,
    /// Time in RFC 3339, with a fraction if it is more precise than a second. Of an object, it is the time of its last
    /// write. `None` if it is not known.
    pub time: Option<String>,
    /// Time since the last earlier step with a known time. `None` if that is not known, if the clocks differ, or if the
    /// last write of the object is not that of the change.
    pub since: Option<Span>,
    /// True if `time` cannot be compared with that of the earlier step, because the clocks of the two differ.
    pub clocks_differ: bool,
}

/// Limits of a time span. The times of objects have only whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    pub at_least_milliseconds: f64,
    pub at_most_milliseconds: f64,
    /// True if the ends were measured by the clocks of two clusters. The difference between them is less than 2 s, as
    /// far as it is known.
    pub by_two_clocks: bool,
}
