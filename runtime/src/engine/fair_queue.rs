//! Fair queue of keys. Does no I/O.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::logic::FlowId;

/// Fair queue of keys in flows. Flows take turns, each flow is first in, first out, and a key is in the queue at most
/// once.
#[derive(Debug)]
pub(crate) struct FairQueue<K> {
    flows: BTreeMap<FlowId, VecDeque<K>>,
    /// Flows that have keys, in the order of their turns.
    turns: VecDeque<FlowId>,
    members: BTreeSet<K>,
}

impl<K> Default for FairQueue<K> {
    fn default() -> Self {
        Self { flows: BTreeMap::new(), turns: VecDeque::new(), members: BTreeSet::new() }
    }
}

impl<K: Clone + Ord> FairQueue<K> {
    /// Adds a key at the end of its flow. Returns false if the key is already queued. The key then keeps its place.
    pub(crate) fn push(&mut self, flow: FlowId, key: K) -> bool {
        if !self.members.insert(key.clone()) {
            return false;
        }
        let keys = self.flows.entry(flow).or_default();
        if keys.is_empty() {
            self.turns.push_back(flow);
        }
        keys.push_back(key);
        true
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.members.contains(key)
    }

    /// Removes and returns the first key of the flow whose turn it is. All other flows with keys then have their turns
    /// before this flow. `None` if the queue is empty.
    pub(crate) fn pop(&mut self) -> Option<K> {
        self.pop_from(|_| true).map(|(_, key)| key)
    }

    /// Like [`FairQueue::pop`], but only among the flows for which `may_go` is true. The other flows keep their turns.
    /// Returns the flow and its key.
    pub(crate) fn pop_from(&mut self, may_go: impl Fn(FlowId) -> bool) -> Option<(FlowId, K)> {
        let turn = self.turns.iter().position(|flow| may_go(*flow))?;
        let flow = self.turns.remove(turn)?;
        let keys = self.flows.get_mut(&flow)?;
        let key = keys.pop_front()?;
        if keys.is_empty() {
            self.flows.remove(&flow);
        } else {
            self.turns.push_back(flow);
        }
        self.members.remove(&key);
        Some((flow, key))
    }

    /// True if a flow for which `may_go` is true has a key.
    pub(crate) fn has(&self, may_go: impl Fn(FlowId) -> bool) -> bool {
        self.turns.iter().any(|flow| may_go(*flow))
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use property::{cases, for_any};
    use proptest::collection::vec;
    use proptest::prelude::any;

    use super::*;

    /// Between two turns of a waiting flow, every other flow has at most one turn.
    ///
    /// Also rule Q9.
    #[test]
    fn flows_take_turns() {
        // Use few different keys, so that the same key is pushed more than once.
        for_any(cases(256), 20, &vec((0_u64..5, 0_u16..300), 1..200), |pushes| {
            let mut queue = FairQueue::default();
            let mut flow_of = BTreeMap::new();
            for (flow, key) in &pushes {
                if queue.push(FlowId(*flow), *key) {
                    flow_of.insert(*key, *flow);
                }
            }
            let order: Vec<u16> = std::iter::from_fn(|| queue.pop()).collect();
            assert_eq!(order.len(), flow_of.len());
            for (position, key) in order.iter().enumerate() {
                let ahead_in_flow = order[..position].iter().filter(|other| flow_of[other] == flow_of[key]).count();
                for flow in (0..5).filter(|flow| *flow != flow_of[key]) {
                    let served = order[..position].iter().filter(|other| flow_of[other] == flow).count();
                    assert!(served <= ahead_in_flow + 1, "flow {flow} was served {served} times before {key}");
                }
            }
            let mut of_flow = [0; 5];
            flow_of.values().for_each(|flow| of_flow[usize::try_from(*flow).expect("one of five")] += 1);
            [
                (flow_of.len() < pushes.len(), "a key is pushed twice"),
                (of_flow.iter().all(|count| *count > 0), "all flows wait"),
                (
                    of_flow.iter().max() >= of_flow.iter().min().map(|least| 2 * least).as_ref(),
                    "one flow waits for longer",
                ),
            ]
        });
    }

    /// For any mix of pushes and pops, each pushed key is popped exactly once, and each flow is first in, first out.
    #[test]
    fn nothing_is_lost_and_nothing_comes_twice() {
        for_any(cases(256), 20, &vec((any::<bool>(), 0_u64..4, 0_u16..30), 1..200), |steps| {
            let mut queue = FairQueue::default();
            let mut model: BTreeMap<u64, VecDeque<u16>> = BTreeMap::new();
            let (mut pushed_twice, mut popped_empty, mut two_wait, mut came_back) = (false, false, false, false);
            let mut popped_before = Vec::new();
            for (push, flow, key) in steps {
                let waits = model.values().any(|keys| keys.contains(&key));
                if push {
                    assert_eq!(queue.push(FlowId(flow), key), !waits);
                    if !waits {
                        model.entry(flow).or_default().push_back(key);
                    }
                    pushed_twice |= waits;
                    came_back |= !waits && popped_before.contains(&key);
                } else if let Some(popped) = queue.pop() {
                    let flow = model.values_mut().find(|keys| keys.front() == Some(&popped));
                    assert!(flow.is_some_and(|keys| keys.pop_front() == Some(popped)));
                    popped_before.push(popped);
                } else {
                    assert!(model.values().all(VecDeque::is_empty));
                    popped_empty = true;
                }
                assert_eq!(queue.len(), model.values().map(VecDeque::len).sum::<usize>());
                two_wait |= model.values().filter(|keys| !keys.is_empty()).count() > 1;
            }
            [
                (pushed_twice, "a key is pushed twice"),
                (popped_empty, "nothing is left"),
                (two_wait, "two flows wait"),
                (came_back, "a key comes again"),
            ]
        });
    }
}
