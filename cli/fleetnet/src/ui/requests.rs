//! Requests of a client, which the page shows if there is one: only in `fleetnet sandbox --packets`.

use serde::Serialize;
use std::collections::BTreeMap;

/// Client, and the Service to which it sends requests.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Traffic<'a> {
    /// Service, as `namespace/name`.
    pub(crate) service: &'a str,
    pub(crate) exporters: &'a [String],
    pub(crate) importer: &'a str,
    /// Pod of the client, as `namespace/name`.
    pub(crate) client: &'a str,
    pub(crate) requests_per_second: u32,
}

/// Requests that had their outcome in one second.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Requests<'a> {
    pub(crate) time: String,
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    pub(crate) lost_by_kind: &'a BTreeMap<String, u64>,
    pub(crate) answers_by_cluster: &'a BTreeMap<String, u64>,
}
