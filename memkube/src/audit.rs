//! The audit ledger: who asked for what and what came of it, as an API server's audit log has it, in memory.

use crate::auth::{Call, PathCall, Verb};
use jiff::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A request that was answered, or began to be: a watch is entered when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it was answered.
    pub at: Timestamp,
    /// What was asked for. The name is that of the object also where the path does not have it, as in a create.
    pub call: Call,
    /// The HTTP status of the answer, which the client may never have got.
    pub code: u16,
}

/// A request that was about no resource and was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathEntry {
    /// When it was answered.
    pub at: Timestamp,
    /// What was asked for.
    pub call: PathCall,
    /// The HTTP status of the answer, which the client may never have got.
    pub code: u16,
}

/// What is counted for ever.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// The user's name.
    pub user: Arc<str>,
    /// What they did.
    pub verb: Verb,
    /// `services`, `leases.coordination.k8s.io`, with `/status` behind for a subresource.
    pub resource: String,
    /// The HTTP status of the answer.
    pub code: u16,
}

/// The entries of one server.
#[derive(Debug)]
pub(crate) struct Ledger {
    entries: VecDeque<Entry>,
    paths: VecDeque<PathEntry>,
    entries_max: usize,
    forgotten: u64,
    counts: BTreeMap<Kind, u64>,
}

impl Ledger {
    pub(crate) fn new(entries_max: usize) -> Self {
        Self { entries: VecDeque::new(), paths: VecDeque::new(), entries_max, forgotten: 0, counts: BTreeMap::new() }
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

    pub(crate) fn enter_path(&mut self, entry: PathEntry) {
        if self.paths.len() >= self.entries_max {
            self.paths.pop_front();
        }
        self.paths.push_back(entry);
    }

    pub(crate) fn snapshot(&self) -> Audit {
        Audit {
            entries: self.entries.iter().cloned().collect(),
            paths: self.paths.iter().cloned().collect(),
            forgotten: self.forgotten,
            counts: self.counts.clone(),
        }
    }
}

/// What the ledger held at one moment.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The last requests, oldest first.
    pub entries: Vec<Entry>,
    /// The last requests that were about no resource, oldest first. They are neither counted nor among the entries.
    pub paths: Vec<PathEntry>,
    /// Entries before these that were forgotten.
    pub forgotten: u64,
    /// All requests ever, the forgotten ones too.
    pub counts: BTreeMap<Kind, u64>,
}

impl Audit {
    /// How many writes `user` made that were accepted (status below 300).
    #[must_use]
    pub fn writes_of(&self, user: &str) -> u64 {
        let written = |kind: &Kind| &*kind.user == user && kind.verb.writes() && kind.code < 300;
        let counts = self.counts.iter().filter(|(kind, _)| written(kind));
        counts.map(|(_, count)| count).sum()
    }
}
