//! Planner of an agent: the plans of its keys, and the keys to plan again after a change of its view.

use crate::model::{Kind, Object};
use crate::plan::Plan;
use crate::reads::{Reads, Recorded, ViewValue};
use crate::watches::Watches;
use fleetnet_types::{Change, Timestamp, WatchState};
use std::collections::BTreeSet;
use std::hash::Hash;
use std::ops::{Deref, DerefMut};

/// View of an agent, with the rules that plan its keys.
pub trait Rules: Sized {
    type Key: Clone + Ord + Hash;
    /// Value of the view that a plan can read.
    type Value: ViewValue;
    /// Result that the view stores, and that is computed from other values of the view.
    type Result: Clone + Ord + Hash;

    /// Stores a change of an object.
    fn apply(&mut self, kind: Kind, change: Change<Object>, at: Timestamp) -> EffectsOf<Self>;

    fn watches(&mut self) -> &mut Watches;

    fn plan(&self, reads: &Reads<Self::Value>, key: &Self::Key, now: Timestamp) -> Plan;

    /// True if the view has an object of a key. Without one the plan is empty, and any such object requeues the key.
    fn has(&self, reads: &Reads<Self::Value>, key: &Self::Key) -> bool;

    /// Computes a result, and stores it in the view. Returns the values that it was computed from; `None` if the view
    /// has no object of the result.
    fn compute(&mut self, result: &Self::Result, at: Timestamp) -> (Option<Reads<Self::Value>>, EffectsOf<Self>);
}

/// Consequences of a change.
#[derive(Debug)]
pub struct Effects<K, V, R> {
    /// Values that changed.
    pub(crate) values: Vec<V>,
    /// Keys of an object that appeared or changed. Perhaps no plan has read that it was absent.
    pub(crate) keys: Vec<K>,
    /// Results to compute for an object that appeared or changed. Perhaps none has read that it was absent.
    pub(crate) results: Vec<R>,
}

pub(crate) type EffectsOf<V> = Effects<<V as Rules>::Key, <V as Rules>::Value, <V as Rules>::Result>;

impl<K, V, R> Default for Effects<K, V, R> {
    fn default() -> Self {
        Self::of([])
    }
}

impl<K, V, R> Effects<K, V, R> {
    /// Returns the effects of a change of these values.
    pub(crate) fn of(values: impl IntoIterator<Item = V>) -> Self {
        Self { values: values.into_iter().collect(), keys: Vec::new(), results: Vec::new() }
    }
}

/// Computed from the view, and computed again after a value that it read changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Computed<K, R> {
    Plan(K),
    Result(R),
}

/// View of an agent, with the values that each plan read.
#[derive(Clone, Debug)]
pub struct Planner<V: Rules> {
    pub(crate) view: V,
    pub(crate) recorded: Recorded<V::Value, Computed<V::Key, V::Result>>,
}

/// Values that a plan read, for [`Planner::planned`].
#[derive(Debug)]
pub struct ReadValues<V>(Reads<V>);

/// Two planners are equal if they have the same view. Which values the last plans read does not count.
impl<V: Rules + PartialEq> PartialEq for Planner<V> {
    fn eq(&self, other: &Self) -> bool {
        self.view == other.view
    }
}

impl<V: Rules> Deref for Planner<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.view
    }
}

/// Only for records that requeue nothing.
impl<V: Rules> DerefMut for Planner<V> {
    fn deref_mut(&mut self) -> &mut V {
        &mut self.view
    }
}

impl<V: Rules> From<V> for Planner<V> {
    fn from(view: V) -> Self {
        Self { view, recorded: Recorded::default() }
    }
}

impl<V: Rules> Planner<V> {
    /// Stores a change of an object, which the agent saw at the time `at`. Appends to `requeue` the keys of an object
    /// that appeared or changed, and those whose last plan read a value that changed.
    pub fn apply(&mut self, kind: Kind, change: Change<Object>, at: Timestamp, requeue: &mut Vec<V::Key>) {
        let effects = self.view.apply(kind, change, at);
        self.changed(effects, at, requeue);
    }

    /// Stores the newest state of an object, which the agent saw at the time `at`.
    pub fn applied(&mut self, object: Object, at: Timestamp, requeue: &mut Vec<V::Key>) {
        self.apply(object.kind(), Change::Applied(object), at, requeue);
    }

    /// Stores the new state of a watch. Returns the values that changed.
    pub(crate) fn set_watch_state(&mut self, kind: Kind, state: WatchState, at: Timestamp) -> Vec<V::Value> {
        self.recorded.watch_state(self.view.watches(), kind, state, at)
    }

    /// Returns the number of recorded reads.
    #[cfg(test)]
    pub(crate) fn number_of_reads(&self) -> usize {
        self.recorded.number_of_reads()
    }

    /// Takes the recorded reads, for tests of their size.
    #[cfg(test)]
    pub(crate) fn take_reads(&mut self) -> impl Sized + use<V> {
        std::mem::take(&mut self.recorded)
    }

    pub fn plan(&self, key: &V::Key, now: Timestamp) -> Plan {
        self.plan_and_reads(key, now).0
    }

    /// Plans a key. Also returns the values that the plan read, for [`Planner::planned`].
    pub fn plan_and_reads(&self, key: &V::Key, now: Timestamp) -> (Plan, ReadValues<V::Value>) {
        with_reads(|reads| self.view.plan(reads, key, now))
    }

    /// Stores which values the last plan of a key read. After one of them changes, the key is requeued.
    pub fn planned(&mut self, key: &V::Key, ReadValues(reads): ReadValues<V::Value>) {
        let exists = self.view.has(&reads, key);
        self.recorded.keep(&Computed::Plan(key.clone()), exists.then_some(reads));
    }

    /// Requeues the keys that a change concerns: its own, and those whose last plan read a value that changed. Computes
    /// the results again that read such a value.
    pub(crate) fn changed(&mut self, effects: EffectsOf<V>, at: Timestamp, requeue: &mut Vec<V::Key>) {
        let Effects { mut values, mut keys, results } = effects;
        let mut results = BTreeSet::from_iter(results);
        while !(values.is_empty() && results.is_empty()) {
            for computed in values.drain(..).flat_map(|value| self.recorded.of(&value)) {
                match computed {
                    Computed::Plan(key) => keys.push(key.clone()),
                    Computed::Result(result) => drop(results.insert(result.clone())),
                }
            }
            for result in std::mem::take(&mut results) {
                let (reads, effects) = self.view.compute(&result, at);
                self.recorded.keep(&Computed::Result(result), reads);
                values.extend(effects.values);
                keys.extend(effects.keys);
                results.extend(effects.results);
            }
        }
        keys.sort_unstable();
        keys.dedup();
        requeue.extend(keys);
    }
}

/// Makes a plan. Also returns the values that the plan read.
pub(crate) fn with_reads<V>(plan: impl FnOnce(&Reads<V>) -> Plan) -> (Plan, ReadValues<V>) {
    let reads = Reads::default();
    let plan = plan(&reads);
    (plan, ReadValues(reads))
}
