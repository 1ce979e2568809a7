//! Property test of the tracker over random histories of a controller, other writers, an API server and a slow watch,
//! with requests and responses in any order. The tracker misses no change by other writers, reports no own write, and
//! has no state at the end.

use super::{service, slice_of};
use crate::model::EndpointSlice;
use crate::tracker::{PendingWrite, SliceTracker};
use property::{cases, for_any};
use proptest::collection::vec;
use proptest::prelude::any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Write request of the controller, with or without a response.
struct Request {
    uid: String,
    verb: Verb,
    write: PendingWrite,
    /// Response of the server. `None` until the server has executed the request.
    answer: Option<Result<Option<EndpointSlice>, ()>>,
}

#[derive(Clone, Copy)]
enum Verb {
    Create,
    Update,
    Delete,
}

#[derive(Default)]
struct World {
    tracker: SliceTracker,
    /// Generation of each slice in the API server, by UID.
    server: BTreeMap<String, i64>,
    /// Generation of each slice that the watch has shown, by UID.
    cache: BTreeMap<String, i64>,
    /// Watch events not delivered yet: UID and generation, or `None` for a deletion.
    watch: VecDeque<(String, Option<i64>)>,
    requests: Vec<Request>,
    made: usize,
    /// True if another writer has written since the tracker last requested a plan. The tracker must still request a
    /// plan for this write.
    has_unreported_change: bool,
    others_wrote: bool,
    reported: usize,
    /// Kinds of situations that the history contained, to check that the histories are varied.
    seen: BTreeSet<&'static str>,
}

const EVENT_FIRST: &str = "the watch shows a write before its answer";
const ANSWER_FIRST: &str = "an answer comes before the watch shows the write";
const FAILS: &str = "a write fails";
const RIVAL_BETWEEN: &str = "others write while a request is under way";
const MOVED_ON: &str = "others have changed the slice of an answer since";
const CLASSES: [&str; 5] = [EVENT_FIRST, ANSWER_FIRST, FAILS, RIVAL_BETWEEN, MOVED_ON];

fn shown(uid: &str, generation: i64) -> EndpointSlice {
    slice_of("ns1", "svc1", uid, generation)
}

impl World {
    fn cached(&self) -> Vec<EndpointSlice> {
        self.cache.iter().map(|(uid, generation)| shown(uid, *generation)).collect()
    }

    /// Plans as a controller does: one plan at a time, and none while the cache does not show all own writes.
    fn plan(&mut self, dice: u32) {
        if !self.requests.is_empty() || self.tracker.is_stale(&service(), self.cached()) {
            return;
        }
        for create in 0..dice % 3 {
            let write = self.tracker.begin_create(&service());
            let uid = format!("own-{}-{create}", self.made);
            self.requests.push(Request { uid, verb: Verb::Create, write, answer: None });
        }
        self.made += 1;
        for (at, slice) in self.cached().into_iter().enumerate() {
            let (verb, write) = match (dice >> (2 + 2 * (at % 8))) & 3 {
                1 => (Verb::Update, self.tracker.begin_update(&service(), &slice)),
                2 => (Verb::Delete, self.tracker.begin_delete(&service(), &slice)),
                _ => continue,
            };
            self.requests.push(Request { uid: slice.metadata.uid.to_string(), verb, write, answer: None });
        }
    }

    /// Executes one of the pending requests on the server.
    fn serve(&mut self, dice: usize) {
        let open = self.requests.iter().filter(|request| request.answer.is_none()).count();
        let mut open_requests = self.requests.iter_mut().filter(|request| request.answer.is_none());
        let Some(request) = open_requests.nth(dice % open.max(1)) else { return };
        let (uid, verb) = (request.uid.clone(), request.verb);
        request.answer = Some(match (verb, self.server.get(&uid).copied()) {
            (Verb::Create, _) => Ok(Some(shown(&uid, 1))),
            (Verb::Update, Some(generation)) => Ok(Some(shown(&uid, generation + 1))),
            (Verb::Delete, Some(_)) => Ok(None),
            (_, None) => Err(()),
        });
        if let Some(Ok(stored)) = &request.answer {
            let generation = stored.as_ref().map(|slice| slice.metadata.generation);
            self.store(&uid, generation);
        }
    }

    fn store(&mut self, uid: &str, generation: Option<i64>) {
        match generation {
            Some(generation) => _ = self.server.insert(uid.to_owned(), generation),
            None => _ = self.server.remove(uid),
        }
        self.watch.push_back((uid.to_owned(), generation));
    }

    /// Records the kind of situation in which a response arrives, such as before its watch event.
    fn note(&mut self, uid: &str, answer: Option<&Result<Option<EndpointSlice>, ()>>) {
        let Some(Ok(stored)) = answer else {
            self.seen.insert(FAILS);
            return;
        };
        let result_generation = stored.as_ref().map(|slice| slice.metadata.generation);
        let is_on_its_way =
            self.watch.iter().any(|(other, generation)| other == uid && *generation == result_generation);
        self.seen.insert(if is_on_its_way { ANSWER_FIRST } else { EVENT_FIRST });
        if self.server.get(uid).copied() != result_generation {
            self.seen.insert(MOVED_ON);
        }
    }

    /// Delivers one of the responses to the controller.
    fn answer(&mut self, dice: usize) {
        let answered: Vec<_> = (0..self.requests.len()).filter(|at| self.requests[*at].answer.is_some()).collect();
        let Some(at) = answered.get(dice % answered.len().max(1)) else { return };
        let Request { write, answer, uid, .. } = self.requests.swap_remove(*at);
        self.note(&uid, answer.as_ref());
        let plan_again = match answer {
            Some(Ok(Some(slice))) => self.tracker.stored(write, &slice),
            Some(Ok(None)) => self.tracker.removed(write),
            // After a failure the controller plans again in any case.
            _ => {
                let _ = self.tracker.failed(write);
                true
            }
        };
        self.count_report(plan_again);
    }

    /// Delivers the next watch event to the controller.
    fn event(&mut self) {
        let Some((uid, generation)) = self.watch.pop_front() else { return };
        let plan_again = if let Some(generation) = generation {
            self.cache.insert(uid.clone(), generation);
            self.tracker.changed(&shown(&uid, generation))
        } else {
            let last = self.cache.remove(&uid).unwrap_or(1);
            self.tracker.deleted(&shown(&uid, last))
        };
        self.count_report(plan_again);
    }

    fn count_report(&mut self, plan_again: bool) {
        if plan_again {
            self.reported += 1;
            self.has_unreported_change = false;
        }
    }

    /// Makes a write as another writer does.
    fn rival(&mut self, dice: usize) {
        let picked = self.server.iter().nth(dice / 3 % self.server.len().max(1));
        let picked = picked.map(|(uid, generation)| (uid.clone(), *generation));
        match (dice % 3, picked) {
            (1, Some((uid, generation))) => self.store(&uid, Some(generation + 1)),
            (2, Some((uid, _))) => self.store(&uid, None),
            _ => {
                self.made += 1;
                self.store(&format!("foreign-{}", self.made), Some(1));
            }
        }
        (self.has_unreported_change, self.others_wrote) = (true, true);
        if !self.requests.is_empty() {
            self.seen.insert(RIVAL_BETWEEN);
        }
    }

    fn settle(&mut self) {
        while !self.requests.is_empty() || !self.watch.is_empty() {
            self.serve(0);
            self.event();
            self.answer(0);
        }
    }
}

#[test]
fn whatever_overtakes_what() {
    let input = (vec((0..100_u8, any::<u32>()), 0..120), any::<bool>());
    for_any(cases(256), 10, &input, |(steps, has_rivals)| {
        let mut world = World::default();
        for (step, dice) in steps {
            match step {
                0..=19 => world.plan(dice),
                20..=44 => world.serve(dice as usize),
                45..=64 => world.answer(dice as usize),
                65..=89 => world.event(),
                _ if has_rivals => world.rival(dice as usize),
                _ => {}
            }
        }
        world.settle();
        assert!(!world.has_unreported_change, "foreign writes must be reported");
        assert!(world.others_wrote || world.reported == 0, "own writes must not be reported");
        assert!(!world.tracker.is_stale(&service(), world.cached()), "everything is there");
        for uid in world.server.keys().cloned().collect::<Vec<_>>() {
            world.store(&uid, None);
        }
        world.settle();
        assert!(world.tracker.is_empty(), "all slices are gone");
        CLASSES.map(|class| (world.seen.contains(class), class))
    });
}
