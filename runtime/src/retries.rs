//! What failed and when it may be tried again, per key and target. Pure but for tokio's clock handed in.
//!
//! A failure holds back the same content only: a plan that wants something else may run at once, though its failure then
//! counts on. A success ends it.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::{Backoff, Jitter, wait_as_asked};
use crate::queue::Timers;

/// How a failure is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// May pass by itself: 20 ms doubling to 30 s.
    Ordinary,
    /// 403 and 404: somebody has to act. 1 s doubling to 5 min.
    Slow,
    /// Refused for its content: not sent again to this version of the target.
    Parked,
}

/// A write as failures remember it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Hash of what was asked, without the precondition.
    pub(crate) content: u64,
    /// Version of the target that it was asked for; 0 where it is to be made.
    pub(crate) version: u64,
}

/// Whether a write may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    Now,
    At(Instant),
    /// Not before something changes.
    No,
}

#[derive(Debug)]
pub(crate) struct Retries<K, T> {
    troubles: BTreeMap<K, BTreeMap<T, Trouble>>,
    timers: Timers<K, Instant>,
    jitter: Jitter,
}

#[derive(Debug)]
struct Trouble {
    attempt: Attempt,
    class: Class,
    failures: u32,
    until: Instant,
}

impl<K: Clone + Ord, T: Clone + Ord> Retries<K, T> {
    pub(crate) fn new(jitter: Jitter) -> Self {
        Self { troubles: BTreeMap::new(), timers: Timers::default(), jitter }
    }

    pub(crate) fn may_send(&self, key: &K, target: &T, attempt: Attempt, now: Instant) -> Leave {
        let Some(trouble) = self.troubles.get(key).and_then(|troubles| troubles.get(target)) else {
            return Leave::Now;
        };
        if trouble.attempt.content != attempt.content {
            Leave::Now
        } else if trouble.class == Class::Parked && trouble.attempt.version == attempt.version {
            Leave::No
        } else if trouble.until > now {
            Leave::At(trouble.until)
        } else {
            Leave::Now
        }
    }

    /// Whether a failure is news: the first in a row, or of another kind or another content than the one before.
    pub(crate) fn is_news(&self, key: &K, target: &T, attempt: Attempt, class: Class) -> bool {
        let before = self.troubles.get(key).and_then(|troubles| troubles.get(target));
        before.is_none_or(|trouble| trouble.class != class || trouble.attempt.content != attempt.content)
    }

    /// A write failed. `retry_after` is the least that the server asked for. Returns how long its like is held back.
    pub(crate) fn failed(
        &mut self,
        key: &K,
        target: &T,
        attempt: Attempt,
        class: Class,
        retry_after: Option<Duration>,
        now: Instant,
    ) -> Duration {
        let troubles = self.troubles.entry(key.clone()).or_default();
        let failures = troubles.get(target).map_or(0, |trouble| trouble.failures).saturating_add(1);
        let backoff = if class == Class::Ordinary { Backoff::ORDINARY } else { Backoff::SLOW };
        let asked = retry_after.map_or(Duration::ZERO, |asked| wait_as_asked(asked, &mut self.jitter));
        let wait = backoff.wait(failures, &mut self.jitter).max(asked);
        troubles.insert(target.clone(), Trouble { attempt, class, failures, until: now + wait });
        wait
    }

    pub(crate) fn succeeded(&mut self, key: &K, target: &T) {
        if let Some(troubles) = self.troubles.get_mut(key) {
            troubles.remove(target);
            if troubles.is_empty() {
                self.troubles.remove(key);
            }
        }
    }

    /// What the key waited for has come: 403 and 404 count as never having been.
    pub(crate) fn clear_slow(&mut self, key: &K) {
        if let Some(troubles) = self.troubles.get_mut(key) {
            troubles.retain(|_, trouble| trouble.class != Class::Slow);
            if troubles.is_empty() {
                self.troubles.remove(key);
            }
        }
    }

    /// A key was planned: `wanted` says of each target that it wants whether it was held back, and until when. Forgets
    /// what is not wanted any more once its wait is over, so that a wish that comes and goes is not a way round it.
    pub(crate) fn planned(&mut self, key: &K, wanted: &BTreeMap<T, Option<Instant>>, now: Instant) {
        let Some(troubles) = self.troubles.get_mut(key) else {
            self.timers.set(key, None);
            return;
        };
        troubles.retain(|target, trouble| {
            wanted.contains_key(target) || (trouble.until > now && trouble.class != Class::Parked)
        });
        let unwanted =
            troubles.iter().filter(|(target, _)| !wanted.contains_key(target)).map(|(_, trouble)| trouble.until);
        let next = unwanted.chain(wanted.values().filter_map(|until| *until)).min();
        if troubles.is_empty() {
            self.troubles.remove(key);
        }
        self.timers.set(key, next);
    }

    /// Takes a key whose wait is over.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<K> {
        self.timers.pop_due(now)
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Number of keys that wait for a time.
    pub(crate) fn len(&self) -> usize {
        self.timers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Attempt = Attempt { content: 1, version: 10 };
    const B: Attempt = Attempt { content: 2, version: 10 };

    fn retries() -> Retries<&'static str, &'static str> {
        Retries::new(Jitter::new(7))
    }

    #[test]
    fn the_same_content_waits_and_other_content_may_run_at_once() {
        let now = Instant::now();
        let mut retries = retries();
        let wait = retries.failed(&"key", &"target", A, Class::Ordinary, None, now);
        assert_eq!(retries.may_send(&"key", &"target", A, now), Leave::At(now + wait));
        assert_eq!(retries.may_send(&"key", &"target", B, now), Leave::Now);
        assert_eq!(retries.may_send(&"key", &"target", A, now + wait), Leave::Now);
        assert_eq!(retries.may_send(&"other", &"target", A, now), Leave::Now);
    }

    #[test]
    fn other_content_counts_on_and_success_starts_anew() {
        let now = Instant::now();
        let mut retries = retries();
        for _ in 0..5 {
            retries.failed(&"key", &"target", A, Class::Ordinary, None, now);
        }
        let sixth = retries.failed(&"key", &"target", B, Class::Ordinary, None, now);
        assert!(sixth >= Duration::from_millis(480) && sixth <= Duration::from_millis(640), "{sixth:?}");
        retries.succeeded(&"key", &"target");
        let first = retries.failed(&"key", &"target", B, Class::Ordinary, None, now);
        assert!(first <= Duration::from_millis(20), "{first:?}");
    }

    #[test]
    fn a_failure_is_news_once_until_it_ends_or_is_another() {
        let now = Instant::now();
        let mut retries = retries();
        assert!(retries.is_news(&"key", &"target", A, Class::Slow));
        for _ in 0..3 {
            retries.failed(&"key", &"target", A, Class::Slow, None, now);
            assert!(!retries.is_news(&"key", &"target", A, Class::Slow));
        }
        assert!(retries.is_news(&"key", &"target", A, Class::Parked), "of another kind");
        assert!(retries.is_news(&"key", &"target", B, Class::Slow), "of another content");
        assert!(retries.is_news(&"key", &"other", A, Class::Slow), "of another object");
        retries.succeeded(&"key", &"target");
        assert!(retries.is_news(&"key", &"target", A, Class::Slow), "it had gone well in between");
    }

    #[test]
    fn what_was_refused_is_not_sent_again_to_the_same_version() {
        let now = Instant::now();
        let mut retries = retries();
        let wait = retries.failed(&"key", &"target", A, Class::Parked, None, now);
        let next_year = now + Duration::from_secs(31_536_000);
        assert_eq!(retries.may_send(&"key", &"target", A, next_year), Leave::No);
        assert_eq!(retries.may_send(&"key", &"target", B, now), Leave::Now);
        let changed = Attempt { content: 1, version: 11 };
        assert_eq!(retries.may_send(&"key", &"target", changed, now), Leave::At(now + wait));
        assert!(wait >= Duration::from_millis(750));
    }

    #[test]
    fn what_waits_for_a_namespace_is_woken_and_other_failures_are_not() {
        let now = Instant::now();
        let mut retries = retries();
        retries.failed(&"key", &"target", A, Class::Slow, None, now);
        let wait = retries.failed(&"key", &"other", A, Class::Ordinary, None, now);
        retries.clear_slow(&"key");
        assert_eq!(retries.may_send(&"key", &"target", A, now), Leave::Now);
        assert_eq!(retries.may_send(&"key", &"other", A, now), Leave::At(now + wait));
    }

    #[test]
    fn a_key_is_due_when_its_earliest_wait_is_over() {
        let now = Instant::now();
        let mut retries = retries();
        let long = retries.failed(&"key", &"far", A, Class::Slow, None, now);
        let short = retries.failed(&"key", &"near", A, Class::Ordinary, None, now);
        retries.planned(&"key", &BTreeMap::from([("far", Some(now + long)), ("near", Some(now + short))]), now);
        assert_eq!(retries.next(), Some(now + short));
        assert_eq!(retries.pop_due(now + short), Some("key"));
        assert_eq!(retries.pop_due(now + long), None, "planned again, it says anew what it waits for");
    }

    #[test]
    fn a_wish_that_comes_and_goes_is_no_way_round_the_wait() {
        let now = Instant::now();
        let mut retries = retries();
        let wait = retries.failed(&"key", &"target", A, Class::Ordinary, None, now);
        retries.planned(&"key", &BTreeMap::new(), now);
        assert_eq!(retries.may_send(&"key", &"target", A, now), Leave::At(now + wait));
        assert_eq!(retries.pop_due(now + wait), Some("key"));
        retries.planned(&"key", &BTreeMap::new(), now + wait);
        assert!(retries.troubles.is_empty());
        assert_eq!(retries.next(), None);
    }

    #[test]
    fn what_was_refused_and_is_not_wanted_any_more_is_forgotten() {
        let now = Instant::now();
        let mut retries = retries();
        retries.failed(&"key", &"target", A, Class::Parked, None, now);
        retries.planned(&"key", &BTreeMap::new(), now);
        assert!(retries.troubles.is_empty());
    }

    #[test]
    fn what_the_server_asks_for_is_obeyed() {
        let now = Instant::now();
        let mut retries = retries();
        let wait = retries.failed(&"key", &"target", A, Class::Ordinary, Some(Duration::from_secs(7)), now);
        assert!(wait >= Duration::from_secs(7) && wait <= Duration::from_millis(7_700));
    }
}
