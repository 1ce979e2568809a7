//! Table tests and property tests of `versions.rs`. In the property tests, a simulated server has a random history.
//! Watch events, lists and responses to writes reach `Versions` in any order that a real server can cause.

use std::collections::{BTreeMap, BTreeSet};

use property::{cases, for_any};
use proptest::collection::vec;
use proptest::prelude::{Strategy, prop_oneof};

use super::*;

type Changes = Vec<Change<u64>>;

fn object(name: &str, uid: &str, version: u64) -> Observed<u64> {
    Observed { name: ObjectName::new("ns", name), uid: uid.into(), resource_version: version, object: version }
}

fn removed(name: &str, uid: &str, how: Removal) -> Change<u64> {
    Change::Removed { name: ObjectName::new("ns", name), uid: uid.into(), how }
}

fn applied(version: u64) -> Change<u64> {
    Change::Applied(version)
}

fn undecodable(name: &str) -> Change<u64> {
    Change::Undecodable { name: ObjectName::new("ns", name) }
}

/// Input of one step in the table tests.
#[derive(Clone, Copy, Debug)]
enum Step {
    Seen(&'static str, &'static str, u64),
    Undecodable(&'static str, &'static str, u64),
    Deleted(&'static str, &'static str, u64),
    /// The watch requests a list. Without this step, `ListStarted` is also the request.
    ListRequested,
    ListStarted,
    ListEnded(u64),
    Answered(&'static str, &'static str, u64),
    Gone(&'static str, &'static str),
}

fn changes_of(steps: &[Step]) -> Changes {
    run(&mut Versions::default(), steps)
}

fn run(versions: &mut Versions<u64>, steps: &[Step]) -> Changes {
    let mut changes = Changes::new();
    let mut requested = None;
    for step in steps {
        match *step {
            Step::Seen(name, uid, version) => versions.seen(object(name, uid, version), &mut changes),
            Step::Undecodable(name, uid, resource_version) => {
                let (name, why) = (ObjectName::new("ns", name), String::new());
                let it = Undecodable { name, uid: uid.into(), resource_version, why };
                versions.undecodable(&it, &mut changes);
            }
            Step::Deleted(name, uid, version) => {
                versions.deleted(&ObjectName::new("ns", name), &uid.into(), version, &mut changes);
            }
            Step::ListRequested => requested = Some(versions.progress().mark()),
            Step::ListStarted => {
                versions.list_started(requested.take().unwrap_or_else(|| versions.progress().mark()));
            }
            Step::ListEnded(version) => versions.list_ended(version, &mut changes),
            Step::Answered(name, uid, version) => {
                versions.answered(object(name, uid, version), &mut changes);
            }
            Step::Gone(name, uid) => versions.gone(&ObjectName::new("ns", name), &uid.into(), &mut changes),
        }
    }
    changes
}

use Step::{Answered, Deleted, Gone, ListEnded, ListRequested, ListStarted, Seen, Undecodable as Undecoded};

#[test]
fn a_late_watch_event_is_dropped_after_the_answer_of_an_own_write() {
    let changes = changes_of(&[Seen("a", "1", 10), Answered("a", "1", 12), Seen("a", "1", 11), Seen("a", "1", 12)]);
    assert_eq!(changes, [applied(10), applied(12)]);
}

/// Also rule V10.
#[test]
fn an_answer_that_the_watch_has_passed_is_dropped() {
    let changes = changes_of(&[Seen("a", "1", 10), Seen("a", "1", 13), Answered("a", "1", 12)]);
    assert_eq!(changes, [applied(10), applied(13)]);
}

/// Also rule V10.
#[test]
fn an_answer_does_not_bring_back_what_the_watch_has_shown_to_be_deleted() {
    let changes = changes_of(&[Seen("a", "1", 10), Deleted("a", "1", 14), Answered("a", "1", 12)]);
    assert_eq!(changes, [applied(10), removed("a", "1", Removal::Deleted)]);
}

/// Rule V10: Watch events and answers to own writes arrive in the wrong order
/// Then: The view keeps the newest version of each object. A deleted object does not reappear in the view
#[test]
fn a_late_event_does_not_bring_back_what_we_deleted() {
    let changes = changes_of(&[Seen("a", "1", 10), Gone("a", "1"), Seen("a", "1", 11), Deleted("a", "1", 12)]);
    assert_eq!(changes, [applied(10), removed("a", "1", Removal::Deleted)]);
}

#[test]
fn a_late_answer_does_not_bring_back_what_we_deleted() {
    let changes = changes_of(&[Seen("a", "1", 10), Gone("a", "1"), Answered("a", "1", 11)]);
    assert_eq!(changes, [applied(10), removed("a", "1", Removal::Deleted)]);
}

#[test]
fn an_object_made_again_under_its_name_is_a_removal_and_a_new_object() {
    let changes = changes_of(&[Seen("a", "1", 10), Seen("a", "2", 15)]);
    assert_eq!(changes, [applied(10), removed("a", "1", Removal::Deleted), applied(15)]);
}

#[test]
fn late_events_do_not_bring_back_what_an_answer_showed_to_be_replaced() {
    // Case that a property test below found: the second object of the same name is deleted before the watch shows the
    // events of the first object.
    let changes = changes_of(&[
        Answered("a", "1", 3),
        Answered("a", "2", 5),
        Gone("a", "2"),
        Seen("a", "1", 3),
        Deleted("a", "1", 4),
        Seen("a", "2", 5),
        Deleted("a", "2", 6),
    ]);
    let ends = [removed("a", "1", Removal::Deleted), removed("a", "2", Removal::Deleted)];
    assert_eq!(changes, [applied(3), ends[0].clone(), applied(5), ends[1].clone()]);
}

#[test]
fn the_late_end_of_an_earlier_uid_does_not_touch_the_present_one() {
    let changes = changes_of(&[Seen("a", "1", 10), Answered("a", "2", 15), Deleted("a", "1", 12), Seen("a", "2", 15)]);
    assert_eq!(changes, [applied(10), removed("a", "1", Removal::Deleted), applied(15)]);
}

/// Rule V9: A list is complete
/// Then: The agent removes all objects that are not in the list from its view. Exception: an object stays if an own
/// write changed the object after the version of the list. If the name of a listed object is undecodable, the agent
/// removes no object
#[test]
fn a_list_removes_what_it_does_not_have() {
    let changes = changes_of(&[Seen("a", "1", 10), Seen("b", "2", 11), ListStarted, Seen("b", "2", 11), ListEnded(20)]);
    assert_eq!(changes, [applied(10), applied(11), removed("a", "1", Removal::Unlisted)]);
}

#[test]
fn a_list_begun_after_a_write_beats_what_the_write_was_answered_with() {
    let changes = changes_of(&[Answered("a", "1", 10), ListStarted, ListEnded(20)]);
    assert_eq!(changes, [applied(10), removed("a", "1", Removal::Unlisted)]);
}

/// Also rule V9.
#[test]
fn an_own_write_newer_than_the_list_is_kept() {
    let changes = changes_of(&[ListStarted, Answered("a", "1", 30), ListEnded(20), Seen("a", "1", 30)]);
    assert_eq!(changes, [applied(30)]);
}

#[test]
fn a_list_under_way_does_not_bring_back_what_we_deleted_meanwhile() {
    let steps = [Seen("a", "1", 10), ListStarted, Gone("a", "1"), Seen("a", "1", 10), ListEnded(20)];
    let mut versions = Versions::default();
    let changes = run(&mut versions, &steps);
    assert_eq!(changes, [applied(10), removed("a", "1", Removal::Deleted)]);
    assert_eq!(run(&mut versions, &[Deleted("a", "1", 21)]), []);
    assert!(versions.tombstones.by_order.is_empty());
}

#[test]
fn an_answer_does_not_bring_back_what_was_deleted_within_a_streaming_list() {
    let changes =
        changes_of(&[ListStarted, Seen("a", "1", 10), Deleted("a", "1", 12), Answered("a", "1", 11), ListEnded(12)]);
    assert_eq!(changes, [applied(10), removed("a", "1", Removal::Deleted)]);
}

#[test]
fn a_tombstone_is_forgotten_with_the_next_list() {
    let mut versions = Versions::default();
    run(&mut versions, &[Seen("a", "1", 10), Gone("a", "1")]);
    assert_eq!(versions.tombstones.by_order.len(), 1);
    run(&mut versions, &[ListStarted, ListEnded(20)]);
    assert!(versions.tombstones.by_order.is_empty());
    assert!(versions.tombstones.order_of.is_empty());
}

#[test]
fn tombstones_are_bounded() {
    let mut versions = Versions::default();
    let mut changes = Changes::new();
    for number in 0..=TOMBSTONES_PER_SOURCE as u64 {
        let uid = number.to_string();
        versions.seen(object("a", &uid, number + 1), &mut changes);
        versions.gone(&ObjectName::new("ns", "a"), &uid.as_str().into(), &mut changes);
    }
    assert_eq!(versions.tombstones.by_order.len(), TOMBSTONES_PER_SOURCE);
    assert_eq!(versions.tombstones.order_of.len(), TOMBSTONES_PER_SOURCE);
    assert!(!versions.tombstones.has(&"0".into()));
}

#[test]
fn an_undecodable_object_never_looks_deleted() {
    let steps = [Seen("a", "1", 10), Undecoded("a", "1", 11), ListStarted, Undecoded("a", "1", 11), ListEnded(20)];
    assert_eq!(changes_of(&steps), [applied(10)]);
}

#[test]
fn an_undecodable_object_of_another_uid_removes_the_stored_one() {
    let changes = changes_of(&[Seen("a", "1", 10), Undecoded("a", "2", 15)]);
    assert_eq!(changes, [applied(10), removed("a", "1", Removal::Deleted), undecodable("a")]);
}

#[test]
fn a_new_undecodable_object_is_reported_once_and_kept_through_lists() {
    let listed = [ListStarted, Undecoded("a", "1", 10), ListEnded(20)];
    let mut versions = Versions::default();
    assert_eq!(run(&mut versions, &listed), [undecodable("a")]);
    assert_eq!(run(&mut versions, &[Undecoded("a", "1", 21)]), []);
    assert_eq!(run(&mut versions, &[ListStarted, Undecoded("a", "1", 21), ListEnded(30)]), []);
    assert_eq!(run(&mut versions, &[ListStarted, Undecoded("", "", 0), ListEnded(40)]), [], "that list proves nothing");
    assert_eq!((versions.len(), versions.known(&ObjectName::new("ns", "a"))), (0, None));
}

#[test]
fn an_undecodable_object_ends_when_it_can_be_decoded_or_is_deleted_or_not_listed_any_more() {
    let deleted = removed("a", "1", Removal::Deleted);
    let table: [(&str, &[Step], Change<u64>); 5] = [
        ("repaired", &[Seen("a", "1", 12)], applied(12)),
        ("made anew", &[Seen("a", "2", 12)], applied(12)),
        ("deleted", &[Deleted("a", "1", 12)], deleted),
        ("unlisted", &[ListStarted, ListEnded(20)], removed("a", "1", Removal::Unlisted)),
        ("from a backup", &[Seen("b", "3", 40), ListStarted, ListEnded(20)], removed("a", "1", Removal::RolledBack)),
    ];
    for (case, steps, expected) in table {
        let mut versions = Versions::default();
        run(&mut versions, &[Undecoded("a", "1", 10)]);
        let changes = run(&mut versions, steps);
        assert!(changes.contains(&expected), "{case}: {changes:?}");
        let later = run(&mut versions, &[ListStarted, ListEnded(90)]);
        assert!(!later.contains(&expected), "{case}: once, not {later:?}");
    }
}

#[test]
fn neither_a_late_answer_nor_the_end_of_another_ends_an_undecodable_object() {
    let steps = [ListStarted, Undecoded("a", "2", 12), Answered("a", "2", 11), Deleted("a", "1", 9), ListEnded(20)];
    assert_eq!(changes_of(&steps), [undecodable("a")]);
    assert_eq!(changes_of(&[Undecoded("a", "2", 12), Answered("a", "2", 13)]), [undecodable("a"), applied(13)]);
}

/// Also rule V9.
#[test]
fn a_list_with_an_object_without_a_readable_name_removes_nothing() {
    let changes = changes_of(&[Seen("a", "1", 10), ListStarted, Undecoded("", "", 0), ListEnded(20)]);
    assert_eq!(changes, [applied(10)]);
}

#[test]
fn a_server_that_went_back_in_time_wins_and_is_reported() {
    let steps = [
        Seen("kept", "1", 10),
        Seen("changed", "2", 20),
        Seen("changed", "2", 90),
        Seen("younger", "3", 80),
        Seen("deleted", "4", 30),
        Gone("deleted", "4"),
        ListStarted,
        Seen("kept", "1", 10),
        Seen("changed", "2", 20),
        Seen("deleted", "4", 30),
        ListEnded(60),
    ];
    let mut versions = Versions::default();
    let changes = run(&mut versions, &steps);
    assert_eq!(changes[6..], [applied(20), applied(30), removed("younger", "3", Removal::RolledBack)]);
    assert_eq!(run(&mut versions, &[Seen("changed", "2", 61)]), [applied(61)], "and the watch goes on from there");
}

/// Also rule V4.
#[test]
fn a_list_older_than_an_own_write_shows_that_the_server_went_back() {
    let changes =
        changes_of(&[Seen("a", "1", 10), Answered("b", "2", 30), ListStarted, Seen("a", "1", 10), ListEnded(20)]);
    assert_eq!(changes, [applied(10), applied(30), removed("b", "2", Removal::RolledBack)]);
}

/// Also rule V4.
#[test]
fn a_list_after_a_restore_shows_other_content_in_the_version_that_is_known() {
    let listed = |follows_restore: &dyn Fn(&mut Versions<u64>)| {
        let (mut versions, mut changes) = (Versions::default(), Vec::new());
        run(&mut versions, &[Seen("a", "1", 57), Answered("b", "2", 58), ListStarted]);
        follows_restore(&mut versions);
        versions.answered(object("b", "2", 59), &mut Vec::new());
        for (name, uid, version) in [("a", "1", 57), ("b", "2", 59)] {
            versions.seen(object(name, uid, version), &mut changes);
        }
        versions.list_ended(60, &mut changes);
        changes
    };
    assert_eq!(listed(&|_| {}), []);
    assert_eq!(
        listed(&Versions::list_follows_restore),
        [applied(57)],
        "an answer since then is of the restored server"
    );
}

#[test]
fn a_list_requested_before_an_own_write_was_answered_may_be_older() {
    let steps = [ListRequested, Answered("a", "1", 30), ListStarted, ListEnded(20), Seen("a", "1", 30)];
    assert_eq!(changes_of(&steps), [applied(30)]);
}

#[test]
fn a_response_is_ahead_of_the_watch_until_the_watch_reports_the_write() {
    for (steps, is_ahead) in [
        (&[Seen("a", "1", 20)][..], false),
        (&[Answered("a", "1", 30)], true),
        (&[Answered("a", "1", 30), Seen("a", "1", 30)], false),
        (&[Answered("a", "1", 30), ListStarted, Seen("a", "1", 30), ListEnded(35)], false),
        (&[Seen("a", "1", 20), Gone("a", "1")], true),
        (&[Seen("a", "1", 20), Gone("a", "1"), Deleted("a", "1", 21)], false),
        (&[Seen("a", "1", 20), Gone("a", "1"), ListStarted, ListEnded(35)], false),
        (&[Answered("a", "1", 30), ListStarted, ListEnded(25)], false),
    ] {
        let mut versions = Versions::default();
        run(&mut versions, steps);
        assert_eq!(versions.progress().is_ahead_of(versions.passed), is_ahead, "{steps:?}");
    }
}

#[test]
fn a_listed_object_that_was_deleted_before_the_request_shows_that_the_server_went_back() {
    // The server was restored from a backup with a higher version, before the watch reported the deletion.
    let restored = [Seen("a", "1", 10), Gone("a", "1"), ListRequested, ListStarted, Seen("a", "1", 10), ListEnded(90)];
    assert_eq!(changes_of(&restored), [applied(10), removed("a", "1", Removal::Deleted), applied(10)]);
    let deleted_meanwhile =
        [Seen("a", "1", 10), ListRequested, Gone("a", "1"), ListStarted, Seen("a", "1", 10), ListEnded(90)];
    assert_eq!(changes_of(&deleted_meanwhile), [applied(10), removed("a", "1", Removal::Deleted)]);
}

#[test]
fn a_listed_state_wins_over_a_newer_stored_state_unless_that_is_newer_than_the_list() {
    // The server's data went back in time: the list shows the object at version 50, and the known version is 90. Since
    // then, new writes have advanced the server to version 120, so the version of the list is not lower than 90.
    let changes = changes_of(&[Seen("a", "1", 90), ListStarted, Seen("a", "1", 50), ListEnded(120)]);
    assert_eq!(changes, [applied(90), applied(50)]);
}

#[test]
fn an_object_that_becomes_undecodable_stays_as_it_was_and_is_not_gone() {
    let table: [&[Step]; 2] =
        [&[ListStarted, Undecoded("a", "1", 11), ListEnded(20)], &[ListStarted, Undecoded("", "", 0), ListEnded(20)]];
    for (number, steps) in table.iter().enumerate() {
        let mut versions = Versions::default();
        run(&mut versions, &[Seen("a", "1", 10)]);
        assert_eq!(run(&mut versions, steps), [], "{number}");
        assert_eq!(versions.len(), 1, "what was known of it stays");
        assert_eq!(run(&mut versions, &[Seen("a", "1", 12)]), [applied(12)], "{number}");
    }
    let mut versions = Versions::default();
    run(&mut versions, &[Seen("a", "1", 10)]);
    let gone = run(&mut versions, &[ListStarted, ListEnded(9)]);
    assert_eq!(gone, [removed("a", "1", Removal::RolledBack)], "what is gone is gone");
}

#[test]
fn an_echo_is_known_for_the_version_that_it_was_answered_with_alone() {
    let mut versions = Versions::default();
    run(&mut versions, &[Answered("a", "1", 10)]);
    let a = ObjectName::new("ns", "a");
    versions.remember_echo(&a, 7);
    versions.remember_echo(&a, 8);
    assert!(versions.echoed(&a, 7) && versions.echoed(&a, 8));
    run(&mut versions, &[Seen("a", "1", 10)]);
    assert!(versions.echoed(&a, 7), "the echo in the watch is the same version");
    run(&mut versions, &[Seen("a", "1", 11)]);
    assert!(!versions.echoed(&a, 7));
}

/// Step in a random history of a server, its watch and a client that writes.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// Another client creates, changes or deletes an object.
    Make(usize),
    Change(usize),
    Delete(usize),
    /// The server executes an own write. The response arrives later, at an `Answer`.
    OwnMake(usize),
    OwnChange(usize),
    OwnDelete(usize),
    Get(usize),
    Answer(usize),
    /// The watch, or the list that is arriving, delivers its next event.
    Bring,
    /// The watch breaks and requests a list. The content of the list is the server's state at the next `Bring`.
    Relist,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let name = || 0..NAMES.len();
    let one = prop_oneof![
        2 => name().prop_map(Move::Make),
        2 => name().prop_map(Move::Change),
        2 => name().prop_map(Move::Delete),
        2 => name().prop_map(Move::OwnMake),
        3 => name().prop_map(Move::OwnChange),
        2 => name().prop_map(Move::OwnDelete),
        1 => name().prop_map(Move::Get),
        6 => name().prop_map(Move::Answer),
        9 => proptest::strategy::Just(Move::Bring),
        1 => proptest::strategy::Just(Move::Relist),
    ];
    vec(one, 1..120)
}

#[derive(Clone, Debug)]
enum WatchEvent {
    Applied(usize, String, u64),
    Deleted(usize, String, u64),
}

impl WatchEvent {
    fn version(&self) -> u64 {
        match self {
            WatchEvent::Applied(.., version) | WatchEvent::Deleted(.., version) => *version,
        }
    }
}

#[derive(Debug)]
enum Pending {
    Object(String, u64),
    Gone(String),
}

#[derive(Debug, Default)]
enum Watch {
    #[default]
    Live,
    Requested(Mark),
    /// The server has answered, but the agent does not know yet that a list begins.
    Answered(Mark, Items, u64),
    /// Listed objects that are not yet delivered, and the version of the list.
    Listing(Items, u64),
}

/// Listed objects (index of the name in [`NAMES`], UID, version).
type Items = Vec<(usize, String, u64)>;

#[derive(Default)]
struct World {
    revision: u64,
    uids: u64,
    objects: BTreeMap<usize, (String, u64)>,
    log: Vec<WatchEvent>,
    brought: usize,
    watch: Watch,
    pending: BTreeMap<usize, Pending>,
    versions: Versions<u64>,
    /// Objects and versions as an agent sees them, built only from the reported changes.
    view: BTreeMap<String, u64>,
    ended: BTreeSet<String>,
    /// True if the server was restored from a backup. Objects may then return to older states.
    is_restored: bool,
    /// Names of the situations that this history contained. The test checks that each situation occurs in enough
    /// histories.
    seen: BTreeSet<&'static str>,
}

const LISTS_MEANWHILE: &str = "a list begins while an answer is under way";
const LATE_ANSWER: &str = "an answer comes after newer news";
const LATE_END: &str = "a deletion is answered after it was seen";
const ECHO: &str = "a watch tells what an answer told before";
const LISTED_AWAY: &str = "a list tells that something is gone";
const MADE_AGAIN: &str = "an object is made again under its name";
const GOES_ON: &str = "a watch goes on after a restore";
const HAPPENS: [&str; 6] = [LISTS_MEANWHILE, LATE_ANSWER, LATE_END, ECHO, LISTED_AWAY, MADE_AGAIN];

impl World {
    fn note(&mut self, happens: bool, what: &'static str) {
        if happens {
            self.seen.insert(what);
        }
    }

    fn play(&mut self, one: Move) {
        match one {
            Move::Make(name) => drop(self.make(name)),
            Move::Change(name) => drop(self.change(name)),
            Move::Delete(name) => drop(self.delete(name)),
            Move::OwnMake(name) => self.own(name, |world| world.make(name)),
            Move::OwnChange(name) => self.own(name, |world| world.change(name)),
            Move::OwnDelete(name) => self.own(name, |world| world.delete(name)),
            Move::Get(name) => self.own(name, |world| {
                let known = world.versions.known(&ObjectName::new("ns", NAMES[name])).map(|(uid, _)| uid.to_string());
                let found = world.objects.get(&name).map(|(uid, version)| Pending::Object(uid.clone(), *version));
                found.or(known.map(Pending::Gone))
            }),
            Move::Answer(name) => self.answer(name),
            Move::Bring => self.bring(),
            Move::Relist => self.relist(),
        }
    }

    fn make(&mut self, name: usize) -> Option<Pending> {
        if self.objects.contains_key(&name) {
            return None;
        }
        self.uids += 1;
        let was_there = self.log.iter().any(|event| matches!(event, WatchEvent::Deleted(other, ..) if *other == name));
        self.note(was_there, MADE_AGAIN);
        self.put(name, format!("uid-{}", self.uids))
    }

    fn change(&mut self, name: usize) -> Option<Pending> {
        let (uid, _) = self.objects.get(&name)?.clone();
        self.put(name, uid)
    }

    fn put(&mut self, name: usize, uid: String) -> Option<Pending> {
        self.revision += 1;
        self.objects.insert(name, (uid.clone(), self.revision));
        self.log.push(WatchEvent::Applied(name, uid.clone(), self.revision));
        Some(Pending::Object(uid, self.revision))
    }

    fn delete(&mut self, name: usize) -> Option<Pending> {
        let (uid, _) = self.objects.remove(&name)?;
        self.revision += 1;
        self.log.push(WatchEvent::Deleted(name, uid.clone(), self.revision));
        Some(Pending::Gone(uid))
    }

    /// Executes `write`, an own write to this object, and stores its response for later. Does nothing while another own
    /// write to the object has no response, because the engine sends one write at a time to an object.
    fn own(&mut self, name: usize, write: impl FnOnce(&mut Self) -> Option<Pending>) {
        if !self.pending.contains_key(&name)
            && let Some(answer) = write(self)
        {
            self.pending.insert(name, answer);
        }
    }

    fn answer(&mut self, name: usize) {
        let mut changes = Changes::new();
        match self.pending.remove(&name) {
            Some(Pending::Object(uid, version)) => {
                let is_late = self.ended.contains(&uid) || self.view.get(&uid) > Some(&version);
                self.note(is_late, LATE_ANSWER);
                self.versions.answered(object(NAMES[name], &uid, version), &mut changes);
            }
            Some(Pending::Gone(uid)) => {
                self.note(self.ended.contains(&uid), LATE_END);
                self.versions.gone(&ObjectName::new("ns", NAMES[name]), &uid.as_str().into(), &mut changes);
            }
            None => {}
        }
        self.learn(changes);
    }

    fn bring(&mut self) {
        let mut changes = Changes::new();
        match &mut self.watch {
            Watch::Live => {
                if let Some(event) = self.log.get(self.brought).cloned() {
                    self.brought += 1;
                    match event {
                        WatchEvent::Applied(name, uid, version) => {
                            if self.view.get(&uid) == Some(&version) {
                                self.seen.insert(ECHO);
                            }
                            self.versions.seen(object(NAMES[name], &uid, version), &mut changes);
                        }
                        WatchEvent::Deleted(name, uid, version) => {
                            self.versions.deleted(
                                &ObjectName::new("ns", NAMES[name]),
                                &uid.as_str().into(),
                                version,
                                &mut changes,
                            );
                        }
                    }
                }
            }
            Watch::Requested(requested) => {
                let items = self.objects.iter().map(|(name, (uid, version))| (*name, uid.clone(), *version)).collect();
                self.brought = self.log.len();
                self.watch = Watch::Answered(*requested, items, self.revision);
            }
            Watch::Answered(requested, items, version) => {
                self.versions.list_started(*requested);
                self.watch = Watch::Listing(std::mem::take(items), *version);
            }
            Watch::Listing(items, version) => match items.pop() {
                Some((name, uid, version)) => self.versions.seen(object(NAMES[name], &uid, version), &mut changes),
                None => {
                    self.versions.list_ended(*version, &mut changes);
                    if changes.iter().any(|change| matches!(change, Change::Removed { .. })) {
                        self.seen.insert(LISTED_AWAY);
                    }
                    self.watch = Watch::Live;
                }
            },
        }
        self.learn(changes);
    }

    fn relist(&mut self) {
        self.note(!self.pending.is_empty(), LISTS_MEANWHILE);
        self.watch = Watch::Requested(self.versions.progress().mark());
    }

    /// Restores the server from a backup, with versions that go on from `revision`. A server that is restored answers
    /// no request from before the restore. The watch requests a list, or goes on from a version that is in the backup.
    fn restore(&mut self, backup: Backup, revision: u64) {
        self.is_restored = true;
        self.pending.clear();
        self.objects = backup.objects;
        self.revision = revision;
        let passed = self.versions.passed;
        let is_checked = passed <= backup.revision && !self.versions.progress().is_ahead_of(passed);
        let goes_on = matches!(self.watch, Watch::Live) && is_checked;
        if goes_on {
            let is_in_backup = |event: &WatchEvent| event.version() <= backup.revision;
            self.log = self.log.drain(self.brought..).filter(is_in_backup).collect();
            self.brought = 0;
        } else {
            self.relist();
        }
        self.note(goes_on, GOES_ON);
    }

    fn learn(&mut self, changes: Changes) {
        if self.is_restored {
            return;
        }
        for change in changes {
            match change {
                Change::Applied(version) => {
                    let uid = self.uid_at(version);
                    assert!(!self.ended.contains(&uid), "{uid} came back at {version}");
                    let before = self.view.insert(uid.clone(), version);
                    assert!(before < Some(version), "{uid} went back from {before:?} to {version}");
                }
                Change::Undecodable { name, .. } => panic!("{name} can be read"),
                Change::Removed { uid, how, .. } => {
                    let exists = self.objects.values().any(|(existing, _)| **existing == *uid);
                    assert!(!exists, "{uid} was removed and exists");
                    assert_ne!(how, Removal::RolledBack, "time never went back");
                    assert!(self.view.remove(&*uid).is_some(), "{uid} was removed and not held");
                    self.ended.insert(uid.to_string());
                }
            }
        }
    }

    fn uid_at(&self, version: u64) -> String {
        let at = |event: &WatchEvent| match event {
            WatchEvent::Applied(_, uid, at) if *at == version => Some(uid.clone()),
            _ => None,
        };
        self.log.iter().find_map(at).expect("every version was written")
    }

    fn settle(&mut self) {
        (0..NAMES.len()).for_each(|name| self.answer(name));
        while !(matches!(self.watch, Watch::Live) && self.brought == self.log.len()) {
            self.bring();
        }
    }
}

#[derive(Clone)]
struct Backup {
    objects: BTreeMap<usize, (String, u64)>,
    revision: u64,
}

/// Runs 2,000 random histories. `end` delivers the remaining events and responses. Each kind of situation occurs in at
/// least 100 histories.
fn histories_end_in_the_newest_state(end: impl Fn(&mut World)) {
    for_any(cases(2_000), 100, &moves(), |history| {
        let mut world = World::default();
        history.into_iter().for_each(|one| world.play(one));
        end(&mut world);
        let newest: BTreeMap<String, u64> = world.objects.values().cloned().collect();
        assert_eq!(world.view, newest);
        assert_eq!(world.versions.len(), newest.len());
        for (name, (uid, version)) in &world.objects {
            let known = world.versions.known(&ObjectName::new("ns", NAMES[*name]));
            assert_eq!(known.map(|(uid, version)| (&**uid, version)), Some((uid.as_str(), *version)));
        }
        HAPPENS.map(|what| (world.seen.contains(what), what))
    });
}

/// Any interleaving of watch events, lists and responses ends in the newest state. Before the end, no object returns to
/// an older version, reappears after its deletion, or is removed while it exists.
#[test]
fn every_order_of_observations_ends_in_the_newest_state() {
    histories_end_in_the_newest_state(World::settle);
}

/// Like the property above, but all responses to writes arrive last.
///
/// Also rule V10.
#[test]
fn answers_that_come_last_change_nothing() {
    histories_end_in_the_newest_state(|world| {
        world.relist();
        for _ in 0..200 {
            world.bring();
        }
        world.settle();
    });
}

/// After the server is restored from a backup, the known objects are those of the server. The backup is made after the
/// first moves, and the restore comes after the next moves. Then the last moves follow.
///
/// Also rule V4.
#[test]
fn after_a_restore_the_newest_state_of_the_server_wins() {
    for is_bumped in [false, true] {
        for_any(cases(2_000), 20, &(moves(), moves(), moves()), |(first, next, last)| {
            let mut world = World::default();
            first.into_iter().for_each(|one| world.play(one));
            let backup = Backup { objects: world.objects.clone(), revision: world.revision };
            next.into_iter().for_each(|one| world.play(one));
            let revision = if is_bumped { world.revision + 1_000 } else { backup.revision };
            world.restore(backup, revision);
            last.into_iter().for_each(|one| world.play(one));
            world.settle();
            let known = |(name, known): (&ObjectName, &KnownObject)| {
                (name.name.to_string(), known.uid.to_string(), known.version)
            };
            let of_server =
                |(name, (uid, version)): (&usize, &(String, u64))| (NAMES[*name].to_owned(), uid.clone(), *version);
            let known: BTreeSet<_> = world.versions.known.iter().map(known).collect();
            assert_eq!(known, world.objects.iter().map(of_server).collect());
            [GOES_ON].map(|what| (world.seen.contains(what), what))
        });
    }
}
