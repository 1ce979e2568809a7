//! Failed writes and their retry times. A write is identified by its key, its verb and its object. Pure except for
//! readings of tokio's clock.
//!
//! After a failure, all retries of the same write wait for a back-off. Retries with other content wait too, because
//! content with a timestamp differs in each plan. Two exceptions:
//!
//! - The first conflict of a streak causes no delay, because the next plan uses the newest state.
//! - A rejected write (400, 413, 415, 422) delays equal content for the same version of the object by 10 minutes. Other
//!   content, or another version, waits for the back-off only, because the cause of the rejection may be gone.
//!
//! A success ends the streak.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::{Backoff, Jitter, retry_after_wait};
use crate::engine::timers::Timers;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Conflict (409) whose cause is now in the view. The first conflict in a row causes no wait. Further conflicts
    /// wait as [`Class::Ordinary`].
    Conflict,
    /// Failure that may pass by itself. The wait is 20 ms, doubling to 30 s.
    Ordinary,
    /// 403 and 404, which last until somebody acts. The wait is 1 s, doubling to 5 min.
    Denied,
    /// 400, 413, 415 and 422. A write with equal content waits 10 min, other content waits as [`Class::Ordinary`].
    Rejected,
}

/// Summary of a write that failed, for the comparison with later writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Hash of the write's content, without its precondition and without timestamps.
    pub(crate) content: u64,
    /// resourceVersion of the object that the write was planned for. 0 for a create.
    pub(crate) version: u64,
}

#[derive(Debug)]
pub(crate) struct Retries<K, W> {
    troubles: BTreeMap<K, BTreeMap<W, Trouble>>,
    timers: Timers<K, Instant>,
    jitter: Jitter,
}

#[derive(Debug)]
struct Trouble {
    attempt: Attempt,
    class: Class,
    failures: u32,
    /// Time until which no retry of this write is sent.
    until: Instant,
    /// Time until which no retry with equal content for the same version is sent. Not earlier than `until`.
    equal_until: Instant,
}

impl<K: Clone + Ord, W: Clone + Ord> Retries<K, W> {
    pub(crate) fn new(jitter: Jitter) -> Self {
        Self { troubles: BTreeMap::new(), timers: Timers::default(), jitter }
    }

    /// Returns the time until which a write must wait because of earlier failures. `None` if the write may be sent.
    pub(crate) fn delayed_until(&self, key: &K, write: &W, attempt: Attempt, now: Instant) -> Option<Instant> {
        let trouble = self.troubles.get(key)?.get(write)?;
        let until = if trouble.attempt == attempt { trouble.equal_until } else { trouble.until };
        (until > now).then_some(until)
    }

    /// True if the engine must report this failure to the agent: the first failure in a row, or a failure of another
    /// class or content than the one before.
    pub(crate) fn is_news(&self, key: &K, write: &W, attempt: Attempt, class: Class) -> bool {
        let before = self.troubles.get(key).and_then(|troubles| troubles.get(write));
        before.is_none_or(|trouble| trouble.class != class || trouble.attempt.content != attempt.content)
    }

    /// Remembers a failed write and computes the time of its retry. `retry_after` is the shortest wait that the server
    /// asked for.
    pub(crate) fn failed(
        &mut self,
        key: &K,
        write: &W,
        attempt: Attempt,
        class: Class,
        retry_after: Option<Duration>,
        now: Instant,
    ) {
        let troubles = self.troubles.entry(key.clone()).or_default();
        let failures = troubles.get(write).map_or(0, |trouble| trouble.failures).saturating_add(1);
        let requested = retry_after.map_or(Duration::ZERO, |requested| retry_after_wait(requested, &mut self.jitter));
        let wait = match class {
            Class::Conflict if failures == 1 => Duration::ZERO,
            Class::Conflict | Class::Ordinary | Class::Rejected => Backoff::ORDINARY.wait(failures, &mut self.jitter),
            Class::Denied => Backoff::SLOW.wait(failures, &mut self.jitter),
        };
        let until = now + wait.max(requested);
        let equal_until = match class {
            Class::Rejected => until.max(now + Backoff::REJECTED.wait(failures, &mut self.jitter)),
            Class::Conflict | Class::Ordinary | Class::Denied => until,
        };
        troubles.insert(write.clone(), Trouble { attempt, class, failures, until, equal_until });
    }

    pub(crate) fn succeeded(&mut self, key: &K, write: &W) {
        if let Some(troubles) = self.troubles.get_mut(key) {
            troubles.remove(write);
            if troubles.is_empty() {
                self.troubles.remove(key);
            }
        }
    }

    /// Forgets the 403 and 404 failures of a key, because the missing object or right may now exist.
    pub(crate) fn clear_denied(&mut self, key: &K) {
        if let Some(troubles) = self.troubles.get_mut(key) {
            troubles.retain(|_, trouble| trouble.class != Class::Denied);
            if troubles.is_empty() {
                self.troubles.remove(key);
            }
        }
    }

    /// Updates the remembered failures after a key was planned. `wanted` has each planned write, and the time until
    /// which the write must wait, if any.
    ///
    /// Forgets a write that is no longer planned, but only after its back-off. A plan that drops a write and adds it
    /// again therefore cannot avoid the back-off.
    pub(crate) fn planned(&mut self, key: &K, wanted: &BTreeMap<W, Option<Instant>>, now: Instant) {
        let mut next = wanted.values().filter_map(|until| *until).min();
        if let Some(troubles) = self.troubles.get_mut(key) {
            troubles.retain(|write, trouble| wanted.contains_key(write) || trouble.until > now);
            let unwanted = troubles.iter().filter(|(write, _)| !wanted.contains_key(write));
            next = unwanted.map(|(_, trouble)| trouble.until).chain(next).min();
            if troubles.is_empty() {
                self.troubles.remove(key);
            }
        }
        self.timers.set(key, next);
    }

    /// Removes and returns a key whose retry is due. `None` if no retry is due now.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<K> {
        self.timers.pop_due(now)
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.timers.next()
    }

    pub(crate) fn len(&self) -> usize {
        self.timers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Attempt = Attempt { content: 1, version: 10 };
    const B: Attempt = Attempt { content: 2, version: 10 };
    const ALL: [Class; 4] = [Class::Conflict, Class::Ordinary, Class::Denied, Class::Rejected];

    fn retries() -> Retries<&'static str, &'static str> {
        Retries::new(Jitter::new(7))
    }

    /// Returns the time that a write must still wait before it is retried.
    fn wait(retries: &Retries<&'static str, &'static str>, attempt: Attempt, now: Instant) -> Duration {
        retries.delayed_until(&"key", &"write", attempt, now).map_or(Duration::ZERO, |until| until - now)
    }

    fn fail(retries: &mut Retries<&'static str, &'static str>, attempt: Attempt, class: Class, now: Instant) {
        retries.failed(&"key", &"write", attempt, class, None, now);
    }

    fn milliseconds(range: std::ops::RangeInclusive<u64>) -> std::ops::RangeInclusive<Duration> {
        Duration::from_millis(*range.start())..=Duration::from_millis(*range.end())
    }

    /// Rule Q1: A write is denied (403, 404)
    /// Then: The agent retries the write after 1 s, and doubles the wait up to 5 min
    #[test]
    fn a_failure_delays_its_write_whatever_the_content() {
        let table = [(Class::Ordinary, 15..=20), (Class::Denied, 750..=1_000)];
        for (class, expected) in table {
            let now = Instant::now();
            let mut retries = retries();
            fail(&mut retries, A, class, now);
            let equal = wait(&retries, A, now);
            assert!(milliseconds(expected).contains(&equal), "{class:?}: {equal:?}");
            assert_eq!(wait(&retries, B, now), equal, "{class:?}");
            assert_eq!(wait(&retries, A, now + equal), Duration::ZERO, "{class:?}");
            assert_eq!(retries.delayed_until(&"other", &"write", A, now), None, "another key");
            assert_eq!(retries.delayed_until(&"key", &"other", A, now), None, "another write");
        }
    }

    /// Rule Q4: A write conflicts (409)
    /// Then: The agent sends one GET. After the first conflict, if the GET shows a new version of the object, the agent
    /// plans the key again at once. In all other cases, the agent retries the write with the back-off of rule A8
    #[test]
    fn only_the_first_conflict_in_a_row_delays_nothing() {
        let now = Instant::now();
        let mut retries = retries();
        fail(&mut retries, A, Class::Conflict, now);
        assert_eq!(wait(&retries, A, now), Duration::ZERO);
        retries.planned(&"key", &BTreeMap::from([("write", None)]), now);
        fail(&mut retries, B, Class::Conflict, now);
        assert!(milliseconds(30..=40).contains(&wait(&retries, A, now)));
        retries.succeeded(&"key", &"write");
        fail(&mut retries, A, Class::Conflict, now);
        assert_eq!(wait(&retries, A, now), Duration::ZERO, "a success began a new row");

        for class in [Class::Ordinary, Class::Denied, Class::Rejected] {
            let mut retries = self::retries();
            fail(&mut retries, A, class, now);
            fail(&mut retries, A, Class::Conflict, now);
            assert!(milliseconds(30..=40).contains(&wait(&retries, A, now)), "not the first failure: {class:?}");
        }
    }

    /// Rule Q3: A write is rejected for its content (400, 413, 415, 422)
    /// Then: The agent retries the same content after 10 min. Content that differs only by a time counts as the same
    /// content. The agent retries different content with the back-off of rule A8
    #[test]
    fn a_rejected_write_waits_ten_minutes_and_other_content_or_another_version_for_the_back_off() {
        let now = Instant::now();
        let mut retries = retries();
        fail(&mut retries, A, Class::Rejected, now);
        assert!(milliseconds(450_000..=600_000).contains(&wait(&retries, A, now)));
        for other in [B, Attempt { version: 11, ..A }] {
            assert!(milliseconds(15..=20).contains(&wait(&retries, other, now)), "{other:?}");
        }
        for _ in 0..20 {
            fail(&mut retries, B, Class::Rejected, now);
        }
        assert!(milliseconds(22_500..=30_000).contains(&wait(&retries, A, now)), "many contents in a row");
        assert!(milliseconds(450_000..=600_000).contains(&wait(&retries, B, now)));
    }

    /// Also rule A8.
    #[test]
    fn other_content_continues_the_count_and_success_resets_it() {
        let now = Instant::now();
        let mut retries = retries();
        for _ in 0..5 {
            fail(&mut retries, A, Class::Ordinary, now);
        }
        fail(&mut retries, B, Class::Ordinary, now);
        assert!(milliseconds(480..=640).contains(&wait(&retries, A, now)));
        retries.succeeded(&"key", &"write");
        fail(&mut retries, B, Class::Ordinary, now);
        assert!(milliseconds(15..=20).contains(&wait(&retries, A, now)));
    }

    /// Also rule R11.
    #[test]
    fn a_failure_is_reported_once_until_it_ends_or_changes() {
        let now = Instant::now();
        let mut retries = retries();
        assert!(retries.is_news(&"key", &"write", A, Class::Denied));
        for _ in 0..3 {
            fail(&mut retries, A, Class::Denied, now);
            assert!(!retries.is_news(&"key", &"write", A, Class::Denied));
        }
        assert!(retries.is_news(&"key", &"write", A, Class::Rejected), "of another class");
        assert!(retries.is_news(&"key", &"write", B, Class::Denied), "of another content");
        assert!(retries.is_news(&"key", &"other", A, Class::Denied), "of another write");
        retries.succeeded(&"key", &"write");
        assert!(retries.is_news(&"key", &"write", A, Class::Denied), "it had gone well in between");
    }

    /// Rule Q2: A write was denied because its namespace did not exist, and the namespace is created
    /// Then: The agent retries the denied write at once. Other failed writes of the same key keep their back-off
    #[test]
    fn a_namespace_that_is_made_ends_the_wait_of_what_was_denied_and_of_nothing_else() {
        let now = Instant::now();
        for class in ALL {
            let mut retries = retries();
            fail(&mut retries, A, class, now);
            let before = wait(&retries, A, now);
            retries.clear_denied(&"key");
            let expected = if class == Class::Denied { Duration::ZERO } else { before };
            assert_eq!(wait(&retries, A, now), expected, "{class:?}");
        }
    }

    #[test]
    fn a_key_is_due_when_its_earliest_wait_is_over() {
        let now = Instant::now();
        let mut retries = retries();
        retries.failed(&"key", &"far", A, Class::Denied, None, now);
        retries.failed(&"key", &"near", A, Class::Ordinary, None, now);
        let until_of = |write| retries.delayed_until(&"key", &write, A, now).expect("it failed");
        let (far, near) = (until_of("far"), until_of("near"));
        retries.planned(&"key", &BTreeMap::from([("far", Some(far)), ("near", Some(near))]), now);
        assert_eq!(retries.next(), Some(near));
        assert_eq!(retries.pop_due(near), Some("key"));
        assert_eq!(retries.pop_due(far), None, "planned again, it says anew what it waits for");
    }

    #[test]
    fn a_key_is_due_also_when_what_it_waits_for_is_no_failure() {
        let now = Instant::now();
        let mut retries = retries();
        let minute = now + Duration::from_secs(60);
        retries.planned(&"key", &BTreeMap::from([("write", Some(minute))]), now);
        assert_eq!(retries.pop_due(minute), Some("key"));
    }

    #[test]
    fn a_write_that_is_dropped_and_wanted_again_does_not_get_around_the_back_off() {
        for class in [Class::Ordinary, Class::Denied, Class::Rejected] {
            let now = Instant::now();
            let mut retries = retries();
            fail(&mut retries, A, class, now);
            let until = now + wait(&retries, B, now);
            retries.planned(&"key", &BTreeMap::new(), now);
            assert_eq!(retries.delayed_until(&"key", &"write", B, now), Some(until), "{class:?}");
            assert_eq!(retries.pop_due(until), Some("key"), "{class:?}");
            retries.planned(&"key", &BTreeMap::new(), until);
            assert!(retries.troubles.is_empty(), "{class:?}");
            assert_eq!(retries.next(), None, "{class:?}");
        }
    }

    /// Rule Q5: A response of the server contains `Retry-After`
    /// Then: The agent sends no write to the cluster of this server until the time of `Retry-After` has passed, but for
    /// 5 min at most. Heartbeats do not wait (Q13)
    #[test]
    fn the_retry_after_of_the_server_is_obeyed() {
        for class in ALL {
            let now = Instant::now();
            let mut retries = retries();
            retries.failed(&"key", &"write", A, class, Some(Duration::from_secs(7)), now);
            assert!(milliseconds(7_000..=7_700).contains(&wait(&retries, B, now)), "{class:?}");
        }
    }
}
