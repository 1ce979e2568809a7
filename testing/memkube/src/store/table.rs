//! Objects and event log of one resource.

use super::{Change, ChangeKind, Key, Stored};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// Objects and event log of one resource.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(super) objects: BTreeMap<Key, Arc<Stored>>,
    /// Event log: the last changes, oldest first.
    log: VecDeque<Change>,
    /// Size of all objects in the log, in bytes.
    log_bytes: usize,
    /// Changes up to this revision may have been dropped from the log.
    compacted: u64,
    /// Revision of the last change. Before the first change, the revision at which the log starts.
    last: u64,
    /// Notified after each change.
    changed: Arc<Notify>,
    /// Cell that gets the event log when the table is removed. Empty until then.
    ended: Arc<OnceLock<Ended>>,
}

/// Event log of a removed table, for watches that have not read all of the log.
#[derive(Debug)]
pub(crate) struct Ended {
    log: VecDeque<Change>,
    compacted: u64,
}

impl Ended {
    /// Returns at most `limit` changes after a revision, as [`Table::since`] does.
    pub(crate) fn since(&self, revision: u64, limit: usize) -> Result<Vec<Change>, TooOld> {
        since(&self.log, self.compacted, revision, limit)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LogLimits {
    pub(super) changes: usize,
    pub(super) bytes: usize,
}

/// Error: the requested revision is older than the event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooOld {
    /// Oldest revision whose later changes are all in the log.
    pub(crate) oldest: u64,
}

impl Table {
    /// Returns an empty table whose log starts at a revision.
    pub(super) fn beginning_at(revision: u64) -> Self {
        Self { compacted: revision, last: revision, ..Self::default() }
    }

    /// Notifier of changes. A reader that must not miss a change registers with the notifier first, and then reads the
    /// log.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// Returns the objects at a revision.
    pub(crate) fn at(&self, revision: u64) -> Result<BTreeMap<Key, Arc<Stored>>, TooOld> {
        self.check(revision)?;
        let mut objects = self.objects.clone();
        for change in self.log.iter().rev().take_while(|change| change.revision > revision) {
            match &change.before {
                Some(before) => objects.insert(before.key.clone(), Arc::clone(before)),
                None => objects.remove(&change.after.key),
            };
        }
        Ok(objects)
    }

    /// Returns at most `limit` changes after a revision.
    pub(crate) fn since(&self, revision: u64, limit: usize) -> Result<Vec<Change>, TooOld> {
        since(&self.log, self.compacted, revision, limit)
    }

    /// Oldest revision whose later changes are all in the log.
    pub(crate) fn oldest(&self) -> u64 {
        self.compacted
    }

    /// Revision of the last change.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    fn check(&self, revision: u64) -> Result<(), TooOld> {
        check(self.compacted, revision)
    }

    /// Cell that gets the event log when the table is removed. Empty until then.
    pub(crate) fn ended(&self) -> Arc<OnceLock<Ended>> {
        Arc::clone(&self.ended)
    }

    /// Removes the table. Watches can still read its event log.
    pub(super) fn end(self) {
        // Only this function sets the cell, once for each table, so this cannot fail.
        let _ = self.ended.set(Ended { log: self.log, compacted: self.compacted });
        self.changed.notify_waiters();
    }

    pub(super) fn record(&mut self, change: Change, limits: LogLimits) {
        self.last = change.revision;
        match change.kind {
            ChangeKind::Deleted => self.objects.remove(&change.after.key),
            _ => self.objects.insert(change.after.key.clone(), Arc::clone(&change.after)),
        };
        self.log_bytes += change.after.json.len();
        self.log.push_back(change);
        // Keep the last change even if it exceeds the limit, because a waiting watch must not miss this change.
        while self.log.len() > limits.changes || (self.log_bytes > limits.bytes && self.log.len() > 1) {
            let Some(forgotten) = self.log.pop_front() else {
                break;
            };
            self.log_bytes -= forgotten.after.json.len();
            self.compacted = forgotten.revision;
        }
        self.changed.notify_waiters();
    }

    pub(super) fn fork(&self) -> Self {
        Self {
            objects: self.objects.clone(),
            log: self.log.clone(),
            log_bytes: self.log_bytes,
            compacted: self.compacted,
            last: self.last,
            changed: Arc::default(),
            ended: Arc::default(),
        }
    }

    pub(super) fn compact(&mut self, revision: u64) {
        self.log.clear();
        self.log_bytes = 0;
        self.compacted = revision;
    }
}

fn check(compacted: u64, revision: u64) -> Result<(), TooOld> {
    if revision < compacted { Err(TooOld { oldest: compacted }) } else { Ok(()) }
}

fn since(log: &VecDeque<Change>, compacted: u64, revision: u64, limit: usize) -> Result<Vec<Change>, TooOld> {
    check(compacted, revision)?;
    let begin = log.partition_point(|change| change.revision <= revision);
    Ok(log.range(begin..).take(limit).cloned().collect())
}
