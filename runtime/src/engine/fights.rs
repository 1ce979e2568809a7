//! Fights over objects: this agent repairs an object, another writer undoes the repair, and so on. Pure except for
//! readings of tokio's clock.
//!
//! A repair is a write with the same content as our last such write to the object, after a change by another writer.
//! The creation of an object, a change of the object and a change of its status are such writes. A creation after our
//! own deletion is no repair. A source that changes often is no fight, even if others write to the same object: each of
//! those writes has new content.
//!
//! After [`FIGHT_REPAIRS`] repairs of one object, each undone within a minute, the agent waits a minute between
//! repairs. The fight ends when nobody undoes a repair for a minute. In the long run a fight costs one write a minute,
//! even against a slow writer. Writes with new content do not wait.
//!
//! The engine reports a fight when the first repair waits. At that time the object shows the change of the other
//! writer, and its managedFields name that writer.

use fleetnet_types::Uid;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::time::Instant;

use crate::engine::logic::Verb;
use crate::engine::slots::Target;
use crate::limits::{FIGHT_PERIOD, FIGHT_REPAIRS};

/// Stands for the content of a deletion.
// no limit: no other content has this hash
const DELETION: u64 = 0;

/// UID and resourceVersion of the object as the agent knows it. `None` if the object does not exist.
pub(crate) type State = Option<(Uid, u64)>;

/// Id of an object: its source (cluster and kind) and a hash of its name. The hash keeps the id small, because the
/// agent remembers every write for a minute.
type Id<S> = (S, u64);

/// Content of this agent's last writes to an object, and the object's state after these writes.
#[derive(Debug)]
struct Left {
    at: Instant,
    /// Hash of the object's [`State`] after the last write.
    state: u64,
    /// Hashes of the last write of each [`Sort`]. `None` if there was no such write, and for the creation also after
    /// our deletion.
    requested: [Option<u64>; 3],
}

#[derive(Debug)]
struct Fight<K, S> {
    key: K,
    target: Target<S>,
    /// Number of repairs in a row that another writer undid within a minute each, at most [`FIGHT_REPAIRS`].
    repairs: usize,
    /// Time of the last repair.
    last: Instant,
    /// True if another writer has undone the last repair. The next repair then waits.
    is_undone: bool,
    /// True if the start of this fight was reported to the agent.
    is_reported: bool,
}

/// Fight over an object (`target`) whose start or end the engine must report to the agent. `key` is the agent's key
/// whose plan writes the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn<K, S> {
    pub(crate) key: K,
    pub(crate) target: Target<S>,
}

/// Summary of a write that this module compares with later writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requested {
    /// Hash of the write's content without timestamps.
    pub(crate) content: u64,
    pub(crate) sort: Sort,
}

/// Sort of a write. A write of one sort does not repeat a write of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Create,
    /// Change or deletion of the object.
    Change,
    /// Change of the status only.
    Status,
}

impl Requested {
    /// Returns the summary of a write to an object that the agent knows in the state `present`. `timeless` is the hash
    /// of the write's content without timestamps.
    ///
    /// The summary depends on the object's UID. So if the object was created again, the same change counts as new and
    /// not as a repair.
    pub(crate) fn by(verb: &Verb, timeless: u64, present: &State) -> Self {
        let content = match verb {
            Verb::Create { .. } => timeless,
            Verb::Patch { .. } | Verb::Replace { .. } => {
                let mut hasher = DefaultHasher::new();
                (timeless, present.as_ref().map(|(uid, _)| uid)).hash(&mut hasher);
                hasher.finish()
            }
            Verb::Delete { .. } => DELETION,
        };
        let sort = match verb {
            Verb::Create { .. } => Sort::Create,
            Verb::Patch { subresource: Some(_), .. } => Sort::Status,
            Verb::Patch { .. } | Verb::Replace { .. } | Verb::Delete { .. } => Sort::Change,
        };
        Self { content, sort }
    }
}

#[derive(Debug)]
pub(crate) struct Fights<K, S> {
    left: BTreeMap<Id<S>, Left>,
    /// Time and object of each remembered write, oldest first. Used to drop writes older than a minute.
    written: VecDeque<(Instant, Id<S>)>,
    fights: BTreeMap<Id<S>, Fight<K, S>>,
}

impl<K, S> Default for Fights<K, S> {
    fn default() -> Self {
        Self { left: BTreeMap::new(), written: VecDeque::new(), fights: BTreeMap::new() }
    }
}

impl<K: Clone, S: Copy + Ord> Fights<K, S> {
    /// Returns the time until which a write must wait, or `None` if the write may be sent now. Only a repair waits, and
    /// only after another writer has undone [`FIGHT_REPAIRS`] repairs of this object.
    pub(crate) fn delayed_until(
        &mut self,
        target: &Target<S>,
        requested: Requested,
        present: &State,
        now: Instant,
    ) -> Option<Instant> {
        let id = id_of(target);
        let is_repair = self.is_repair(&id, requested, present);
        let fight = self.fights.get_mut(&id).filter(|fight| is_repair && fight.repairs == FIGHT_REPAIRS)?;
        fight.is_undone = true;
        let next = fight.last + FIGHT_PERIOD;
        (next > now).then_some(next)
    }

    /// Returns the fight over this object if the engine must now report that the fight has begun. That is once in each
    /// fight, when the first repair waits.
    pub(crate) fn begun(&mut self, target: &Target<S>) -> Option<Turn<K, S>> {
        let fight = self.fights.get_mut(&id_of(target)).filter(|fight| fight.is_undone && !fight.is_reported)?;
        fight.is_reported = true;
        Some(Turn { key: fight.key.clone(), target: fight.target.clone() })
    }

    /// Remembers a write of this agent that succeeded, with the object's state before and after it.
    pub(crate) fn written(
        &mut self,
        key: &K,
        target: &Target<S>,
        requested: Requested,
        (before, after): (&State, &State),
        now: Instant,
    ) {
        let id = id_of(target);
        let is_repair = self.is_repair(&id, requested, before);
        let left = self.left.entry(id).or_insert(Left { at: now, state: 0, requested: [None; 3] });
        (left.at, left.state) = (now, hash(after));
        left.requested[requested.sort as usize] = Some(requested.content);
        if requested.sort == Sort::Create {
            left.requested[Sort::Change as usize] = None; // changes of the object before do not count
        }
        if requested.content == DELETION {
            left.requested[Sort::Create as usize] = None;
        }
        self.written.push_back((now, id));
        if is_repair {
            self.repaired(id, key, target, now);
        }
    }

    fn is_repair(&self, id: &Id<S>, requested: Requested, present: &State) -> bool {
        self.left.get(id).is_some_and(|left| {
            // The removal of our finalizer leaves no object, but another writer deleted it.
            let is_changed = requested.sort == Sort::Create || left.state != hash(present);
            left.requested[requested.sort as usize] == Some(requested.content) && is_changed
        })
    }

    fn repaired(&mut self, id: Id<S>, key: &K, target: &Target<S>, now: Instant) {
        let begins = || Fight {
            key: key.clone(),
            target: target.clone(),
            repairs: 0,
            last: now,
            is_undone: false,
            is_reported: false,
        };
        let fight = self.fights.entry(id).or_insert_with(begins);
        fight.repairs = FIGHT_REPAIRS.min(fight.repairs + 1);
        (fight.last, fight.is_undone) = (now, false);
    }

    /// Drops remembered writes older than a minute. Returns the fights that are over and whose start was reported.
    pub(crate) fn tidy(&mut self, now: Instant) -> Vec<Turn<K, S>> {
        let mut over = Vec::new();
        self.fights.retain(|_, fight| {
            let stood = now.duration_since(fight.last);
            // A fight ends when nobody has undone a repair for [`FIGHT_PERIOD`]. If the last repair was undone, the
            // agent repairs again one period later. Nobody may undo that repair for one more period, so the fight lasts
            // at least two periods.
            let ends = stood >= FIGHT_PERIOD * if fight.is_undone { 2 } else { 1 };
            if ends && fight.is_reported {
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
    (target.source, hash(&(&target.name.namespace, &target.name.name)))
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::write_body::WriteBody;
    use fleetnet_types::ObjectName;
    use std::time::Duration;

    const THIS: Requested = Requested { content: 1, sort: Sort::Change };
    const OTHER: Requested = Requested { content: 2, sort: Sort::Change };
    const STATUS: Requested = Requested { content: 1, sort: Sort::Status };
    const SECOND: Duration = Duration::from_secs(1);

    type Of = Fights<&'static str, u8>;

    fn target(name: &str) -> Target<u8> {
        Target { source: 0, name: ObjectName::new("ns", name) }
    }

    fn at(version: u64) -> State {
        Some(("uid".into(), version))
    }

    /// Simulates a write of the agent that changes the object from this version to the next one.
    fn write(fights: &mut Of, requested: Requested, version: u64, now: Instant) {
        fights.written(&"key", &target("a"), requested, (&at(version), &at(version + 1)), now);
    }

    /// Simulates ten repairs, each undone by another writer after the time `apart`. Returns the time of the last
    /// repair.
    fn fight(fights: &mut Of, from: Instant, apart: Duration) -> Instant {
        write(fights, THIS, 0, from);
        for round in 1..=10 {
            let now = from + apart * u32::try_from(round).expect("few");
            assert_eq!(fights.delayed_until(&target("a"), THIS, &at(2 * round), now), None, "{round}");
            assert_eq!(fights.begun(&target("a")), None, "{round}");
            write(fights, THIS, 2 * round, now);
            assert_eq!(fights.tidy(now), []);
        }
        from + apart * 10
    }

    fn turn() -> Turn<&'static str, u8> {
        Turn { key: "key", target: target("a") }
    }

    /// Also rule A12.
    #[test]
    fn the_eleventh_repair_waits_for_a_minute_and_something_new_does_not() {
        for apart in [Duration::from_millis(1), SECOND, SECOND * 7, SECOND * 59] {
            let (mut fights, now) = (Of::default(), Instant::now());
            let last = fight(&mut fights, now, apart);
            assert_eq!(fights.delayed_until(&target("a"), THIS, &at(30), last), Some(last + SECOND * 60), "{apart:?}");
            assert_eq!(
                fights.delayed_until(&target("a"), THIS, &None, last),
                Some(last + SECOND * 60),
                "deleted by another"
            );
            assert_eq!(fights.delayed_until(&target("a"), THIS, &at(21), last), None, "as we left it");
            assert_eq!(fights.delayed_until(&target("a"), OTHER, &at(30), last), None, "something new");
            assert_eq!(
                fights.delayed_until(&target("a"), STATUS, &at(30), last),
                None,
                "of its status nothing was repaired"
            );
            assert_eq!(fights.delayed_until(&target("b"), THIS, &at(30), last), None, "another object");
        }
    }

    #[test]
    fn a_fight_is_reported_once_when_its_first_repair_waits() {
        let (mut fights, now) = (Of::default(), Instant::now());
        let last = fight(&mut fights, now, SECOND);
        assert_eq!(fights.begun(&target("a")), None, "the tenth repair stands");
        fights.delayed_until(&target("a"), THIS, &at(30), last);
        assert_eq!(fights.begun(&target("b")), None);
        assert_eq!(fights.begun(&target("a")), Some(turn()));
        assert_eq!(fights.begun(&target("a")), None);
    }

    /// Returns the summary of the agent's deletion of an object in the state `present`.
    fn deletion(present: &State) -> Requested {
        Requested::by(&Verb::Delete { uid: "uid".into() }, 3, present)
    }

    /// Plays an object that the agent creates again each second after it disappeared. `between` is the agent's own last
    /// write to it. Returns the number of creations that were not delayed.
    fn creations(between: Requested) -> u32 {
        let (mut fights, now) = (Of::default(), Instant::now());
        let create = Requested::by(&Verb::Create { body: WriteBody::from(serde_json::json!({})) }, 3, &None);
        let undelayed = (0..30).take_while(|round| {
            let (at_once, version) = (now + SECOND * *round, u64::from(2 * round));
            if fights.delayed_until(&target("a"), create, &None, at_once).is_some() {
                return false;
            }
            fights.written(&"key", &target("a"), create, (&None, &at(version)), at_once);
            fights.written(&"key", &target("a"), between, (&at(version), &None), at_once);
            true
        });
        undelayed.count().try_into().expect("few")
    }

    /// Rule A12: Another writer undoes an agent's write again and again
    /// Then: The agent makes the first ten repairs at once, if each repair is undone within a minute. Then the agent
    /// repairs the object once a minute, however slow the other writer is. To create an object again is also a repair,
    /// unless the agent deleted it. A renewal of a Lease or MemberAgent does not count as a repair
    #[test]
    fn a_creation_is_a_repair_unless_the_agent_deleted_the_object() {
        assert_eq!(creations(THIS), 11, "the agent removed its finalizer, another deleted the object");
        assert_eq!(creations(deletion(&at(0))), 30, "the agent deleted the object");
    }

    /// Also rule A12.
    #[test]
    fn an_object_that_the_agent_makes_and_deletes_again_and_again_is_no_fight_although_others_change_it() {
        let (mut fights, now) = (Of::default(), Instant::now());
        let create = Requested::by(&Verb::Create { body: WriteBody::from(serde_json::json!({})) }, 3, &None);
        for round in 0..30 {
            let at_once = now + SECOND * round;
            let changed_by_another = at(100 + u64::from(round));
            let delete = deletion(&changed_by_another);
            assert_eq!(fights.delayed_until(&target("a"), create, &None, at_once), None, "{round}");
            fights.written(&"key", &target("a"), create, (&None, &at(u64::from(round))), at_once);
            assert_eq!(fights.delayed_until(&target("a"), delete, &changed_by_another, at_once), None, "{round}");
            fights.written(&"key", &target("a"), delete, (&changed_by_another, &None), at_once);
        }
    }

    #[test]
    fn a_repair_that_stays_for_a_minute_resets_the_count() {
        let (mut fights, now) = (Of::default(), Instant::now());
        for round in 0..100 {
            let at = now + SECOND * 60 * round;
            assert!(fights.tidy(at).is_empty());
            write(&mut fights, THIS, u64::from(2 * round), at);
            assert_eq!(fights.begun(&target("a")), None, "{round}");
        }
    }

    #[test]
    fn own_writes_in_between_are_no_change_by_others() {
        let (mut fights, now) = (Of::default(), Instant::now());
        for version in 0..100 {
            let requested = if version % 2 == 0 { THIS } else { STATUS };
            write(&mut fights, requested, version, now);
            assert_eq!(fights.delayed_until(&target("a"), requested, &at(version + 1), now), None, "{version}");
        }
    }

    #[test]
    fn a_fight_is_over_once_when_a_repair_has_stood_for_a_minute() {
        let (mut fights, now) = (Of::default(), Instant::now());
        let last = fight(&mut fights, now, SECOND);
        fights.delayed_until(&target("a"), THIS, &at(30), last);
        fights.begun(&target("a"));
        let last = last + SECOND * 60;
        write(&mut fights, THIS, 30, last);
        assert_eq!(fights.tidy(last + SECOND * 59), []);
        assert_eq!(fights.tidy(last + SECOND * 60), [turn()]);
        assert_eq!(fights.tidy(last + SECOND * 61), []);
    }

    #[test]
    fn a_fight_without_a_waiting_repair_ends_unreported() {
        let (mut fights, now) = (Of::default(), Instant::now());
        let last = fight(&mut fights, now, SECOND);
        assert_eq!(fights.tidy(last + SECOND * 60), []);
        assert_eq!(fights.fights.len(), 0);
    }

    /// Also rule A12.
    #[test]
    fn one_whose_repair_was_undone_goes_on_for_a_minute_more() {
        let (mut fights, now) = (Of::default(), Instant::now());
        let last = fight(&mut fights, now, SECOND);
        fights.delayed_until(&target("a"), THIS, &at(30), last);
        fights.begun(&target("a"));
        assert_eq!(fights.tidy(last + SECOND * 119), []);
        assert_eq!(fights.delayed_until(&target("a"), THIS, &at(30), last + SECOND * 119), None, "its minute is over");
        assert_eq!(fights.tidy(last + SECOND * 120), [turn()]);
    }

    #[test]
    fn nothing_is_remembered_for_longer_than_a_minute_but_fights() {
        let (mut fights, now) = (Of::default(), Instant::now());
        let last = fight(&mut fights, now, SECOND);
        for number in 0..1_000 {
            let target = target(&format!("w-{number}"));
            fights.written(&"key", &target, THIS, (&None, &at(1)), last);
        }
        fights.delayed_until(&target("a"), THIS, &at(30), last);
        fights.tidy(last + SECOND * 60);
        assert_eq!((fights.left.len(), fights.fights.len()), (1, 1));
        fights.tidy(last + SECOND * 120);
        fights.tidy(last + SECOND * 180);
        assert_eq!((fights.left.len(), fights.written.len(), fights.fights.len()), (0, 0, 0));
    }
}
