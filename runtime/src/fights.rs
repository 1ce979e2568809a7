//! Fights over objects: this agent repairs an object, somebody else undoes that, and so on. Pure but for tokio's clock
//! handed in.
//!
//! A repair is a write that asks for what our last write to the object asked for, after a change by somebody else. So a source
//! that changes often is no fight, whoever else writes to the same object: each of those writes asks for something new. After
//! [`FIGHT_REPAIRS`] repairs of one object within a minute the next ones are a minute apart, until a repair stands for a
//! minute. Writes that ask for something new do not wait.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::time::Instant;

use crate::limits::{FIGHT_PERIOD, FIGHT_REPAIRS};
use crate::logic::Verb;
use crate::slots::Target;

/// UID and version of what is held of an object; none where there is none.
pub(crate) type State = Option<(Box<str>, u64)>;

/// An object, in few bytes: it is remembered of each write for a minute.
type Id<S> = (S, u64);

/// What our last writes to an object asked for, and what they left behind.
#[derive(Debug)]
struct Left {
    at: Instant,
    /// Hash of the state.
    state: u64,
    /// Content of the last write to the object itself, and to its status.
    asked: [Option<u64>; 2],
}

#[derive(Debug)]
struct Fight<K, S> {
    key: K,
    target: Target<S>,
    /// The latest repairs, [`FIGHT_REPAIRS`] at most.
    repairs: VecDeque<Instant>,
    /// They were so many that the next must wait.
    is_damped: bool,
    /// The last repair was undone.
    is_undone: bool,
}

/// What repairs have come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn<K, S> {
    pub(crate) key: K,
    pub(crate) target: Target<S>,
}

/// A write, as fights see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Hash of what is asked for, without times.
    pub(crate) content: u64,
    /// Only the status is written.
    pub(crate) is_status: bool,
}

impl Asked {
    /// Summary of a write with that content to an object in that state. A change counts with the UID of its object, so the
    /// same change of an object that was made again is no repair.
    pub(crate) fn by(verb: &Verb, timeless: u64, held: &State) -> Self {
        let content = match verb {
            Verb::Create { .. } => timeless,
            Verb::Patch { .. } | Verb::Replace { .. } => {
                let mut hasher = DefaultHasher::new();
                (timeless, held.as_ref().map(|(uid, _)| uid)).hash(&mut hasher);
                hasher.finish()
            }
            Verb::Delete { .. } => 0,
        };
        Self { content, is_status: matches!(verb, Verb::Patch { subresource: Some(_), .. }) }
    }
}

#[derive(Debug)]
pub(crate) struct Fights<K, S> {
    left: BTreeMap<Id<S>, Left>,
    /// When what is remembered in `left` was written, oldest first.
    written: VecDeque<(Instant, Id<S>)>,
    fights: BTreeMap<Id<S>, Fight<K, S>>,
}

impl<K, S> Default for Fights<K, S> {
    fn default() -> Self {
        Self { left: BTreeMap::new(), written: VecDeque::new(), fights: BTreeMap::new() }
    }
}

impl<K: Clone, S: Copy + Ord> Fights<K, S> {
    /// Until when a write waits because it is one more repair in a fight.
    pub(crate) fn held_until(
        &mut self,
        target: &Target<S>,
        asked: Asked,
        held: &State,
        now: Instant,
    ) -> Option<Instant> {
        let id = id_of(target);
        let is_repair = self.is_repair(&id, asked, held);
        let fight = self.fights.get_mut(&id).filter(|fight| is_repair && fight.is_damped)?;
        fight.is_undone = true;
        let next = *fight.repairs.back()? + FIGHT_PERIOD;
        (next > now).then_some(next)
    }

    /// A write was carried out on what was held before, and left the object in another state. Returns a fight that it began.
    pub(crate) fn written(
        &mut self,
        key: &K,
        target: &Target<S>,
        asked: Asked,
        (before, after): (&State, &State),
        now: Instant,
    ) -> Option<Turn<K, S>> {
        let id = id_of(target);
        let is_repair = self.is_repair(&id, asked, before);
        let left = self.left.entry(id).or_insert(Left { at: now, state: 0, asked: [None; 2] });
        (left.at, left.state) = (now, hash(after));
        left.asked[usize::from(asked.is_status)] = Some(asked.content);
        self.written.push_back((now, id));
        if is_repair { self.repaired(id, key, target, now) } else { None }
    }

    fn is_repair(&self, id: &Id<S>, asked: Asked, held: &State) -> bool {
        self.left.get(id).is_some_and(|left| {
            left.asked[usize::from(asked.is_status)] == Some(asked.content) && left.state != hash(held)
        })
    }

    fn repaired(&mut self, id: Id<S>, key: &K, target: &Target<S>, now: Instant) -> Option<Turn<K, S>> {
        let fight = self.fights.entry(id).or_insert_with(|| Fight {
            key: key.clone(),
            target: target.clone(),
            repairs: VecDeque::new(),
            is_damped: false,
            is_undone: false,
        });
        fight.is_undone = false;
        fight.repairs.push_back(now);
        if fight.repairs.len() > FIGHT_REPAIRS {
            fight.repairs.pop_front();
        }
        let is_fight = fight.repairs.len() == FIGHT_REPAIRS
            && fight.repairs.front().is_some_and(|first| now.duration_since(*first) < FIGHT_PERIOD);
        if fight.is_damped || !is_fight {
            return None;
        }
        fight.is_damped = true;
        Some(Turn { key: fight.key.clone(), target: fight.target.clone() })
    }

    /// Forgets what is long ago. Returns the fights that are over.
    pub(crate) fn tidy(&mut self, now: Instant) -> Vec<Turn<K, S>> {
        let mut over = Vec::new();
        self.fights.retain(|_, fight| {
            let stood = fight.repairs.back().map_or(FIGHT_PERIOD, |last| now.duration_since(*last));
            // One that was undone is repaired when its time has come, if it is still wanted.
            let ends = stood >= FIGHT_PERIOD * if fight.is_undone { 2 } else { 1 };
            if ends && fight.is_damped {
                over.push(Turn { key: fight.key.clone(), target: fight.target.clone() });
            }
            !ends
        });
        while let Some((at, id)) =
            self.written.front().copied().filter(|(at, _)| now.duration_since(*at) >= FIGHT_PERIOD)
        {
            self.written.pop_front();
            if self.fights.contains_key(&id) {
                self.written.push_back((now, id));
            } else if self.left.get(&id).is_some_and(|left| left.at <= at) {
                self.left.remove(&id);
            }
        }
        over
    }
}

fn id_of<S: Copy>(target: &Target<S>) -> Id<S> {
    (target.source, hash(&(&target.namespace, &target.name)))
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const THIS: Asked = Asked { content: 1, is_status: false };
    const OTHER: Asked = Asked { content: 2, is_status: false };
    const STATUS: Asked = Asked { content: 1, is_status: true };
    const SECOND: Duration = Duration::from_secs(1);

    type Of = Fights<&'static str, u8>;

    fn target(name: &str) -> Target<u8> {
        Target { source: 0, namespace: "ns".into(), name: name.into() }
    }

    fn at(version: u64) -> State {
        Some(("uid".into(), version))
    }

    /// Writes on what is held at a version; the answer has the next one. True if that begins a fight.
    fn write(fights: &mut Of, asked: Asked, version: u64, now: Instant) -> bool {
        fights.written(&"key", &target("a"), asked, (&at(version), &at(version + 1)), now).is_some()
    }

    /// Ten repairs, a second apart, each undone by another. Returns the time of the last.
    fn fight(fights: &mut Of, from: Instant) -> Instant {
        assert!(!write(fights, THIS, 0, from));
        let begun =
            (1..=10).map(|round| write(fights, THIS, 2 * round, from + SECOND * u32::try_from(round).expect("few")));
        assert_eq!(begun.collect::<Vec<_>>(), [false, false, false, false, false, false, false, false, false, true]);
        from + SECOND * 10
    }

    #[test]
    fn the_eleventh_repair_waits_for_a_minute_and_something_new_does_not() {
        let (mut fights, now) = (Of::default(), Instant::now());
        let last = fight(&mut fights, now);
        assert_eq!(fights.held_until(&target("a"), THIS, &at(30), last), Some(last + SECOND * 60));
        assert_eq!(fights.held_until(&target("a"), THIS, &None, last), Some(last + SECOND * 60), "deleted by another");
        assert_eq!(fights.held_until(&target("a"), THIS, &at(21), last), None, "as we left it");
        assert_eq!(fights.held_until(&target("a"), OTHER, &at(30), last), None, "something new");
        assert_eq!(fights.held_until(&target("a"), STATUS, &at(30), last), None, "of its status nothing was repaired");
        assert_eq!(fights.held_until(&target("b"), THIS, &at(30), last), None, "another object");
    }

    #[test]
    fn a_repair_every_seven_seconds_is_no_fight() {
        let (mut fights, now) = (Of::default(), Instant::now());
        for round in 0..100 {
            let at = now + SECOND * 7 * round;
            assert!(!write(&mut fights, THIS, u64::from(2 * round), at), "{round}");
            assert!(fights.tidy(at).is_empty());
        }
    }

    #[test]
    fn own_writes_in_between_are_no_change_by_others() {
        let (mut fights, now) = (Of::default(), Instant::now());
        for version in 0..100 {
            let asked = if version % 2 == 0 { THIS } else { STATUS };
            assert!(!write(&mut fights, asked, version, now));
        }
    }

    #[test]
    fn a_fight_is_over_once_when_a_repair_has_stood_for_a_minute() {
        let (mut fights, now) = (Of::default(), Instant::now());
        let last = fight(&mut fights, now);
        assert_eq!(fights.tidy(last + SECOND * 59), []);
        assert_eq!(fights.tidy(last + SECOND * 60), [Turn { key: "key", target: target("a") }]);
        assert_eq!(fights.tidy(last + SECOND * 61), []);
    }

    #[test]
    fn one_whose_repair_was_undone_goes_on_for_a_minute_more() {
        let (mut fights, now) = (Of::default(), Instant::now());
        let last = fight(&mut fights, now);
        fights.held_until(&target("a"), THIS, &at(30), last);
        assert_eq!(fights.tidy(last + SECOND * 119), []);
        assert_eq!(fights.held_until(&target("a"), THIS, &at(30), last + SECOND * 119), None, "its minute is over");
        assert_eq!(fights.tidy(last + SECOND * 120), [Turn { key: "key", target: target("a") }]);
    }

    #[test]
    fn nothing_is_remembered_for_longer_than_a_minute_but_fights() {
        let (mut fights, now) = (Of::default(), Instant::now());
        let last = fight(&mut fights, now);
        for number in 0..1_000 {
            let target = target(&format!("w-{number}"));
            fights.written(&"key", &target, THIS, (&None, &at(1)), last);
        }
        fights.held_until(&target("a"), THIS, &at(30), last);
        fights.tidy(last + SECOND * 60);
        assert_eq!((fights.left.len(), fights.fights.len()), (1, 1));
        fights.tidy(last + SECOND * 120);
        fights.tidy(last + SECOND * 180);
        assert_eq!((fights.left.len(), fights.written.len(), fights.fights.len()), (0, 0, 0));
    }
}
