//! Audit ledger in memory: the requests to the server and their status codes, like the audit log of kube-apiserver.

use crate::auth::{Call, Verb};
use jiff::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Audit entry of a request to a resource. A watch is recorded when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Time of the response.
    pub at: Timestamp,
    /// The request. `call.target.name` is the name of the object, also for a create, whose path contains no name.
    pub call: Call,
    /// HTTP status of the response. A fault may have prevented the client from receiving this response.
    pub code: u16,
}

/// Key of [`Audit::counts`]. Requests with the same key are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    pub user: Arc<str>,
    pub verb: Verb,
    /// Resource and group, for example `services` or `leases.coordination.k8s.io`. A subresource follows after a slash.
    pub resource: String,
    pub code: u16,
}

/// Audit ledger of a running server. [`Audit`] is a copy of this ledger for callers outside the crate.
#[derive(Debug)]
pub(crate) struct Ledger {
    entries: VecDeque<Entry>,
    entries_max: usize,
    forgotten: u64,
    counts: BTreeMap<Kind, u64>,
}

impl Ledger {
    pub(crate) fn new(entries_max: usize) -> Self {
        Self { entries: VecDeque::new(), entries_max, forgotten: 0, counts: BTreeMap::new() }
    }

    pub(crate) fn enter(&mut self, entry: Entry) {
        let mut resource = entry.call.qualified_resource();
        if !entry.call.target.subresource.is_empty() {
            resource = format!("{resource}/{}", entry.call.target.subresource);
        }
        let kind = Kind { user: Arc::clone(&entry.call.user.name), verb: entry.call.verb, resource, code: entry.code };
        *self.counts.entry(kind).or_default() += 1;
        if self.entries.len() >= self.entries_max {
            self.entries.pop_front();
            self.forgotten += 1;
        }
        self.entries.push_back(entry);
    }

    pub(crate) fn snapshot(&self) -> Audit {
        Audit {
            entries: self.entries.iter().cloned().collect(),
            forgotten: self.forgotten,
            counts: self.counts.clone(),
        }
    }
}

/// Copy of the audit ledger at one moment.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The last requests, oldest first. [`Limits::audit_entries`](crate::limits::Limits) limits their number.
    pub entries: Vec<Entry>,
    /// Number of requests that the server has dropped from `entries`.
    pub forgotten: u64,
    /// Number of requests by user, verb, resource and status, including the requests that were dropped from `entries`.
    pub counts: BTreeMap<Kind, u64>,
}
