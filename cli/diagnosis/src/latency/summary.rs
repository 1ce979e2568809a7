//! Latency summary of a member, as its MemberAgent has it.

use serde::Deserialize;

/// Latency summary of one member: `spec.latency` of its MemberAgent.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// RFC 3339 time of the summary, by the clock of the member.
    pub update_time: String,
    pub window_seconds: i64,
    /// Upper bounds of all buckets but the last, in milliseconds. The last bucket has no bound.
    pub bounds_milliseconds: Vec<f64>,
    pub origins: Vec<Origin>,
}

/// Samples of changes that one exporting member made.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Origin {
    /// Cluster id of the exporting member.
    pub cluster: String,
    /// Number of samples in the buckets.
    pub count: u64,
    /// Number of samples outside of 0 s to 100 s, which are in no bucket.
    pub clamped: u64,
    /// Number of first imports, which are in no bucket.
    pub first_imports: u64,
    pub sum_milliseconds: f64,
    /// Samples in each bucket, not cumulative. Zeros at the end are omitted.
    pub buckets: Vec<u64>,
}
