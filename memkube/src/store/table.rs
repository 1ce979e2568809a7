//! The objects of one resource and what happened to them.

use super::{Change, ChangeKind, Key, Stored};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// The objects of one resource.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(super) objects: BTreeMap<Key, Arc<Stored>>,
    /// The last changes, oldest first.
    log: VecDeque<Change>,
    /// Of the objects in the log.
    log_bytes: usize,
    /// Changes up to this revision may be missing from the log.
    compacted: u64,
    /// Of the last change; where there was none, of the beginning.
    last: u64,
    /// Told of each change.
    changed: Arc<Notify>,
    /// Filled when the table is no more.
    ended: Arc<OnceLock<Ended>>,
}

/// What watches have not read yet of a table that is no more.
#[derive(Debug)]
pub(crate) struct Ended {
    log: VecDeque<Change>,
    compacted: u64,
}

impl Ended {
    /// As [`Table::since`].
    pub(crate) fn since(&self, revision: u64, limit: usize) -> Result<Vec<Change>, TooOld> {
        since(&self.log, self.compacted, revision, limit)
    }
}

/// How much a log remembers.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogLimits {
    pub(super) changes: usize,
    pub(super) bytes: usize,
}

/// The state is older than the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooOld {
    /// The oldest revision from which the log is whole.
    pub(crate) oldest: u64,
}

impl Table {
    /// Without objects, and without a past before a revision.
    pub(super) fn beginning_at(revision: u64) -> Self {
        Self { compacted: revision, last: revision, ..Self::default() }
    }

    /// Told of each change. To miss none, register with it before reading the log.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// The objects at a revision.
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

    /// The changes after a revision, `limit` at most.
    pub(crate) fn since(&self, revision: u64, limit: usize) -> Result<Vec<Change>, TooOld> {
        since(&self.log, self.compacted, revision, limit)
    }

    /// The oldest revision from which the log is whole.
    pub(crate) fn oldest(&self) -> u64 {
        self.compacted
    }

    /// The revision of the last change.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    fn check(&self, revision: u64) -> Result<(), TooOld> {
        check(self.compacted, revision)
    }

    /// Is filled when the table is no more.
    pub(crate) fn ended(&self) -> Arc<OnceLock<Ended>> {
        Arc::clone(&self.ended)
    }

    /// Leaves what happened to the watches.
    pub(super) fn end(self) {
        // It is filled here alone, and a table ends once.
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
        // The last change stays, however large it is: a watch that waits must not miss it.
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
