//! Results of `test connectivity`.

use super::target::{By, Outcome};
use crate::report::{Api, Finding, Verdict};
use serde::Serialize;

/// Result of `test connectivity`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Connectivity {
    pub pairs: Vec<PairResult>,
    pub verdict: Verdict,
}

/// Result of a pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PairResult {
    pub namespace: String,
    pub name: String,
    pub api: Api,
    pub exporter: Option<String>,
    pub importer: Option<String>,
    pub results: Vec<TargetResult>,
    pub left_out: Vec<String>,
    pub not_tested: Vec<String>,
    pub findings: Vec<Finding>,
    pub verdict: Verdict,
}

/// Result of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TargetResult {
    pub by: By,
    pub host: String,
    pub port: u16,
    /// Host and port as a client writes them.
    #[serde(skip)]
    pub address: String,
    pub outcome: Outcome,
    /// Reason why there is no outcome.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl Connectivity {
    /// Returns the result of all pairs. Nothing to test is not known: nobody learns that a connection works.
    #[must_use]
    pub fn of(pairs: Vec<PairResult>) -> Self {
        let verdict = pairs.iter().map(|pair| pair.verdict).max().unwrap_or(Verdict::NotKnown);
        Self { pairs, verdict }
    }
}
