//! Normalization of times. The suite does not compare times exactly, but checks that they are plausible.

use super::super::run::{CaseRun, seconds};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Tolerance for comparing two clocks in whole seconds, and for the duration of a request.
const SLACK_SECONDS: i64 = 2;
/// Greatest plausible age of an object on a server that was started for the conformance suite.
const OLDEST_SECONDS: i64 = 3_600;

/// Times found in the responses of a case so far.
#[derive(Default)]
pub(super) struct Times {
    began_seconds: i64,
    /// Time of the current response, in seconds.
    now_seconds: i64,
    /// First creationTimestamp seen for each UID.
    created: BTreeMap<String, String>,
    /// UIDs of objects that the case created.
    own: BTreeSet<String>,
    /// First deletionTimestamp seen for each pair of UID and grace period.
    deleted: BTreeMap<(String, i64), String>,
}

impl Times {
    pub(super) fn of(run: &CaseRun) -> Self {
        let mut times = Self { began_seconds: run.began_seconds, ..Self::default() };
        for answer in run.answers.iter().filter(|answer| answer.code == 201) {
            times.own.extend(answer.body["metadata"]["uid"].as_str().map(str::to_owned));
        }
        times
    }

    /// Sets the response time for the next call of [`Self::form`] or [`Self::stamp`].
    pub(super) fn at(&mut self, seconds: i64) {
        self.now_seconds = seconds;
    }

    /// Returns the placeholder for a time. The placeholder says if the time is implausible, and if it has microseconds.
    pub(super) fn form(&self, text: &str, with_micros: bool) -> &'static str {
        match seconds(text) {
            Some(at) if at > self.now_seconds + SLACK_SECONDS => "<time to come>",
            Some(at) if at < self.began_seconds - OLDEST_SECONDS => "<time long ago>",
            _ if with_micros => "<time with micros>",
            _ => "<time>",
        }
    }

    /// Replaces an object's creationTimestamp and deletionTimestamp by placeholders. Times of a dry run are not
    /// recorded.
    pub(super) fn stamp(&mut self, meta: &Value, written: &mut Map<String, Value>, dry_run: bool) {
        let Some(uid) = meta["uid"].as_str() else { return };
        if let Some(created) = meta["creationTimestamp"].as_str() {
            written.insert("creationTimestamp".to_owned(), json!(self.creation(uid, created)));
        }
        if let Some(deleted) = meta["deletionTimestamp"].as_str() {
            let grace = meta["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
            written.insert("deletionTimestamp".to_owned(), json!(self.deletion(uid, deleted, grace, dry_run)));
        }
    }

    fn creation(&mut self, uid: &str, created: &str) -> &'static str {
        let first = self.created.entry(uid.to_owned()).or_insert_with(|| created.to_owned());
        if first != created {
            return "<created at another time than before>";
        }
        match seconds(created) {
            Some(at) if self.own.contains(uid) && at < self.began_seconds => "<created before the case>",
            Some(at) if at > self.now_seconds + SLACK_SECONDS => "<created in time to come>",
            Some(_) => "<created>",
            None => "<created at no time>",
        }
    }

    fn deletion(&mut self, uid: &str, deleted: &str, grace_seconds: i64, dry_run: bool) -> &'static str {
        let about = (uid.to_owned(), grace_seconds);
        if self.deleted.get(&about).is_some_and(|first| first != deleted) {
            return "<deleted at another time than before>";
        }
        if !dry_run {
            self.deleted.insert(about, deleted.to_owned());
        }
        let created = self.created.get(uid).and_then(|created| seconds(created)).unwrap_or(self.began_seconds);
        match seconds(deleted).map(|at| at - grace_seconds) {
            Some(deleted) if deleted < created.max(self.began_seconds) => "<deleted before the case>",
            Some(deleted) if deleted > self.now_seconds + SLACK_SECONDS => "<deleted in time to come>",
            Some(_) => "<deleted>",
            None => "<deleted at no time>",
        }
    }
}
