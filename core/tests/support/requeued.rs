//! Changes of an agent's view, one at a time: each key whose plan such a change changes must be requeued. So a rule
//! that reads a value without noting it, and a change without its effects, fail a test.

use super::agent::{KindChange, View, applied, name_of, removed, undecodable_change};
use super::view::{SEEN, complete};
use fleetnet_core::model::{Kind, Object, Stored};
use fleetnet_core::plan::Plan;
use fleetnet_types::{Change, ObjectName, Timestamp, WatchState};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Change of a view, as a watch delivers it.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all are the large one")]
pub(crate) enum Step {
    Changed(KindChange),
    State(Kind, WatchState),
}

impl Step {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Changed((kind, _)) | Self::State(kind, _) => *kind,
        }
    }

    /// Delivers the change to a view at the time `at`.
    pub(crate) fn happen<V: View>(self, view: &mut V, at: Timestamp, requeue: &mut Vec<V::Key>) {
        match self {
            Self::Changed(change) => view.observe(change, at, requeue),
            Self::State(kind, state) => view.watched(kind, state, at, requeue),
        }
    }
}

/// Message about the number of keys that were requeued although their plans stayed the same. The number is exact, so a
/// rule that requeues more keys than before is seen.
pub(crate) const NEEDLESS: &str = "another number of keys is requeued than before, although their plans stay the same";

/// View whose keys are all planned, and what a test must know about it.
pub(crate) struct Settled<V: View> {
    pub(crate) view: V,
    /// View without objects, to build the same view again.
    empty: V,
    /// Time at which all keys are planned.
    pub(crate) now: Timestamp,
    /// Keys beside those of the objects, such as those of objects that do not exist yet.
    pub(crate) further: Vec<V::Key>,
    /// True if the plan of a key may change with a kind, and the key is not requeued: something else asks again.
    pub(crate) asks_again: fn(&V::Key, Kind) -> bool,
    /// True if the view keeps something of earlier states of a kind, for a while.
    pub(crate) remembers: fn(Kind) -> bool,
    /// How often a change has requeued a key whose plan stayed the same.
    needless: Cell<usize>,
}

impl<V: View> Settled<V> {
    /// Fills the view `empty` with these objects, and plans all keys at the time `now`.
    pub(crate) fn new(empty: V, objects: &[Object], further: Vec<V::Key>, now: Timestamp) -> Self {
        let mut view = empty.clone();
        complete(&mut view);
        for object in objects {
            view.observe(applied(object.clone()), SEEN, &mut Vec::new());
        }
        let mut settled =
            Self { view, empty, now, further, asks_again: |_, _| false, remembers: |_| false, needless: Cell::new(0) };
        for key in settled.keys(&settled.view) {
            settled.view.decide_and_record(&key, now);
        }
        settled
    }

    fn keys(&self, view: &V) -> BTreeSet<V::Key> {
        view.every_key().into_iter().chain(self.further.iter().cloned()).collect()
    }

    fn plans(&self, view: &V, keys: BTreeSet<V::Key>) -> BTreeMap<V::Key, Plan> {
        let of_objects: BTreeSet<V::Key> = view.every_key().into_iter().collect();
        let plan = |key: V::Key| {
            let mut plan = view.decide(&key, self.now);
            if plan.writes.is_empty() && (self.further.contains(&key) || !of_objects.contains(&key)) {
                plan.again = None; // without any object of the key, nothing is planned again
            }
            (key, plan)
        };
        keys.into_iter().map(plan).collect()
    }

    /// Asserts for each path that each of its steps requeues every key whose plan it changes. After the last step, the
    /// view must be the one from before. Returns how often a key was requeued whose plan stayed the same.
    #[must_use]
    pub(crate) fn assert_requeued(&self, paths: impl IntoIterator<Item = Vec<Step>>) -> usize {
        self.needless.set(0);
        let plans = self.plans(&self.view, self.keys(&self.view));
        for path in paths {
            let (mut view, mut before) = (self.view.clone(), plans.clone());
            let is_forgetful = !path.iter().any(|step| (self.remembers)(step.kind()));
            let mut undecodable = BTreeSet::new();
            for step in &path {
                before = self.follow(&mut view, step, before, &path);
                match step {
                    Step::Changed((kind, Change::Undecodable { name })) => drop(undecodable.insert((*kind, name))),
                    Step::Changed((kind, change)) => drop(undecodable.remove(&(*kind, name_of(change)))),
                    Step::State(..) => {}
                }
                if is_forgetful {
                    assert_same(&view, &self.rebuilt(&view, &undecodable), &path);
                }
            }
            if is_forgetful {
                assert_same(&view, &self.view, &path);
                let is_other = |(key, plan): &(&V::Key, &Plan)| !is_same(plans.get(*key), plan);
                assert_eq!(before.iter().find(is_other), None, "the plans are the same after {path:#?}");
            }
        }
        self.needless.get()
    }

    /// Returns a new view that receives the objects of `view` and the states of its watches.
    fn rebuilt(&self, view: &V, undecodable: &BTreeSet<(Kind, &ObjectName)>) -> V {
        let mut replay = self.empty.clone();
        complete(&mut replay);
        for kind in V::KINDS {
            replay.watched(*kind, view.watches().state(*kind), SEEN, &mut Vec::new());
        }
        let decoded = view.objects().into_iter().map(applied);
        let undecodable = undecodable.iter().map(|(kind, name)| undecodable_change(*kind, (*name).clone()));
        decoded.chain(undecodable).for_each(|change| replay.observe(change, SEEN, &mut Vec::new()));
        replay
    }

    /// Applies a step and plans the keys that it requeues. Returns the plan of every key.
    fn follow(
        &self,
        view: &mut V,
        step: &Step,
        before: BTreeMap<V::Key, Plan>,
        path: &[Step],
    ) -> BTreeMap<V::Key, Plan> {
        let mut requeue = Vec::new();
        step.clone().happen(view, SEEN, &mut requeue);
        let requeue: BTreeSet<V::Key> = requeue.into_iter().collect();
        let keys = self.keys(view).into_iter().chain(before.keys().cloned()).chain(requeue.iter().cloned()).collect();
        let mut after = self.plans(view, keys);
        for (key, plan) in &after {
            assert!(
                is_same(before.get(key), plan) || requeue.contains(key) || (self.asks_again)(key, step.kind()),
                "{key:?} is not requeued by {step:#?} of {path:#?}: its plan was {:#?}, and is {plan:#?}",
                before.get(key)
            );
        }
        let is_needless = |key: &&V::Key| is_same(before.get(key), &after[*key]);
        self.needless.set(self.needless.get() + requeue.iter().filter(is_needless).count());
        for key in requeue {
            if view.decide_and_record(&key, self.now).preview.is_some() {
                after.insert(key.clone(), view.decide(&key, self.now));
            }
        }
        after
    }
}

/// True if a plan is the one from before. A key that did not exist before had an empty plan.
fn is_same(before: Option<&Plan>, plan: &Plan) -> bool {
    before.map_or_else(|| *plan == Plan::default(), |before| before == plan)
}

/// Asserts that two views are the same. A failure shows the first lines that differ.
fn assert_same<V: View>(view: &V, expected: &V, path: &[Step]) {
    if view == expected {
        return;
    }
    let (view, expected) = (format!("{view:#?}"), format!("{expected:#?}"));
    let mut lines = view.lines().zip(expected.lines()).enumerate();
    let (number, _) = lines.find(|(_, (one, other))| one != other).expect("views that differ are printed differently");
    let around = |text: &str| text.lines().skip(number.saturating_sub(5)).take(12).collect::<Vec<_>>().join("\n");
    panic!("after {path:#?}\nthe view has\n{}\nand not\n{}", around(&view), around(&expected));
}

/// Returns the paths of an object that exists: it changes to each of these states and back, it goes and comes back, and
/// it becomes undecodable meanwhile.
pub(crate) fn paths_of(object: &Object, states: impl IntoIterator<Item = Object>) -> Vec<Vec<Step>> {
    let back = || Step::Changed(applied(object.clone()));
    let (kind, meta) = (object.kind(), object.meta());
    let undecodable = || Step::Changed(undecodable_change(kind, meta.name.clone()));
    let gone = || Step::Changed(removed(kind, meta.name.clone(), meta.uid.clone()));
    let mut paths = vec![
        vec![gone(), back()],
        vec![undecodable(), back()],
        vec![undecodable(), gone(), back()],
        vec![gone(), undecodable(), back()],
    ];
    paths.extend(states.into_iter().map(|state| vec![Step::Changed(applied(state)), back()]));
    paths
}

/// Returns the paths of an object that does not exist: it comes and goes in each of these states.
pub(crate) fn paths_of_new(states: impl IntoIterator<Item = Object>) -> Vec<Vec<Step>> {
    let path = |object: Object| {
        let (kind, name, uid) = (object.kind(), object.meta().name.clone(), object.meta().uid.clone());
        let undecodable = Step::Changed(undecodable_change(kind, name.clone()));
        let gone = || Step::Changed(removed(kind, name.clone(), uid.clone()));
        let present = || Step::Changed(applied(object.clone()));
        [vec![present(), gone()], vec![undecodable, present(), gone()]]
    };
    states.into_iter().flat_map(path).collect()
}

/// Returns the paths of all watches: each is listed again, or its kind is not served any more.
pub(crate) fn paths_of_watches<V: View>() -> Vec<Vec<Step>> {
    let path = |kind: Kind, states: &[WatchState]| {
        states.iter().map(|state| Step::State(kind, *state)).chain([Step::State(kind, WatchState::Complete)]).collect()
    };
    let paths = V::KINDS.iter().flat_map(|kind| {
        [
            path(*kind, &[WatchState::Incomplete]),
            path(*kind, &[WatchState::Unknown]),
            path(*kind, &[WatchState::Absent, WatchState::Incomplete]),
        ]
    });
    paths.collect()
}

/// Returns the states of an object after each of these changes, and after changes that objects of all kinds can have.
pub(crate) fn states_of<T: Stored>(object: &T, changes: &[fn(&mut T)]) -> Vec<T> {
    let changes_of_all: [fn(&mut T); 5] = [
        |it| it.meta_mut().generation += 1,
        |it| it.meta_mut().deleting = !it.meta().deleting,
        |it| it.meta_mut().finalizers.ours = !it.meta().finalizers.ours,
        |it| it.meta_mut().finalizers.others.push("example.com/other".into()),
        |it| {
            let meta = it.meta_mut(); // created again
            (meta.uid, meta.created) = ("uid-of-another".into(), meta.created.plus_micros(-500_000));
        },
    ];
    let state = |change: &fn(&mut T)| {
        let mut state = object.clone();
        change(&mut state);
        state
    };
    changes_of_all.iter().chain(changes).map(state).collect()
}
