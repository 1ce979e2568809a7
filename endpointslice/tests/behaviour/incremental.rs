//! The incremental mode makes the plans that the full one makes.

use crate::histories::{Event, History, SliceChange, Truth, hints, history};
use endpointslice::plan::FamilyPlan;
use endpointslice::{Incremental, Plan};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};
use std::cell::RefCell;
use std::sync::Arc;

const CASES: u32 = 10_000;

/// How many histories had what.
#[derive(Debug, Default)]
struct Coverage {
    histories: u32,
    two_or_more_slices: u32,
    recycling: u32,
    dual_stack: u32,
    two_or_more_port_groups: u32,
    plans: u64,
    full_plans: u64,
}

/// What one history had.
#[derive(Debug, Default)]
struct Seen {
    two_or_more_slices: bool,
    recycling: bool,
    dual_stack: bool,
    two_or_more_port_groups: bool,
}

impl Seen {
    fn note(&mut self, truth: &Truth, plan: &Plan) {
        self.two_or_more_slices |= truth.slices.values().filter(|slice| !slice.endpoints.is_empty()).count() > 1;
        self.dual_stack |= plan.families.len() > 1;
        for family in &plan.families {
            self.recycling |= family.draft.updates.iter().any(|update| update.recycled);
            let groups = family.stats.groups.iter().filter(|group| group.endpoints > 0);
            self.two_or_more_port_groups |= groups.count() > 1;
        }
    }
}

impl Coverage {
    fn add(&mut self, seen: &Seen, plans: u64, full_plans: u64) {
        self.histories += 1;
        self.two_or_more_slices += u32::from(seen.two_or_more_slices);
        self.recycling += u32::from(seen.recycling);
        self.dual_stack += u32::from(seen.dual_stack);
        self.two_or_more_port_groups += u32::from(seen.two_or_more_port_groups);
        self.plans += plans;
        self.full_plans += full_plans;
    }
}

/// Whether two plans are the same but for the slices that stay as they are, which the incremental mode does not look at.
fn same(one: &Plan, other: &Plan) -> bool {
    let same_family = |(one, other): (&FamilyPlan, &FamilyPlan)| {
        let updates = one.draft.updates.iter().zip(&other.draft.updates);
        one.draft.address_type == other.draft.address_type
            && one.draft.creates == other.draft.creates
            && one.draft.updates.len() == other.draft.updates.len()
            && updates.into_iter().all(|(one, other)| {
                Arc::ptr_eq(&one.before, &other.before) && one.after == other.after && one.recycled == other.recycled
            })
            && one.draft.deletes == other.draft.deletes
            && one.suppressed_creates == other.suppressed_creates
            && one.stats == other.stats
    };
    one.families.len() == other.families.len()
        && one.families.iter().zip(&other.families).all(same_family)
        && one.unsupported == other.unsupported
        && one.skipped == other.skipped
}

fn happen(truth: &mut Truth, state: &mut Incremental, event: &Event, plan: &Plan) {
    match event {
        Event::Pod(number, shape) => state.set_pod(&truth.set_pod(*number, *shape), &truth.nodes),
        Event::NoPod(number) => state.remove_pod(&truth.remove_pod(*number)),
        Event::Service(change) => {
            truth.change_service(*change);
            state.set_service(Arc::new(truth.service.clone()), truth.pods.values(), &truth.nodes);
        }
        Event::Write(count) => show(state, truth.write(plan, *count)),
        Event::Edit(at, edit) => show(state, truth.edit(*at, *edit)),
    }
}

fn show(state: &mut Incremental, changes: Vec<SliceChange>) {
    for change in changes {
        match change {
            Ok(slice) => state.set_slice(slice),
            Err(name) => state.remove_slice(&name),
        }
    }
}

fn check(history: &History, coverage: &RefCell<Coverage>) -> TestCaseResult {
    let mut truth = Truth::new(history);
    let mut state = Incremental::new(Arc::new(truth.service.clone()), Arc::new(truth.config.clone()));
    truth.pods.values().for_each(|pod| state.set_pod(pod, &truth.nodes));
    let (mut seen, mut plans) = (Seen::default(), 0);
    let mut last = truth.plan();
    let whole = Event::Write(usize::MAX);
    for event in [&whole].into_iter().chain(&history.events).chain([&whole, &whole]) {
        happen(&mut truth, &mut state, event, &last);
        last = truth.plan();
        plans += 1;
        let incremental = state.plan(None, &mut hints());
        proptest::prop_assert!(same(&incremental, &last), "after {event:?}: {incremental:#?}\nnot {last:#?}");
        seen.note(&truth, &last);
    }
    coverage.borrow_mut().add(&seen, plans, state.full_plans());
    Ok(())
}

#[test]
fn over_random_histories_an_incremental_plan_is_the_full_plan() {
    let coverage = RefCell::new(Coverage::default());
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    if let Err(failure) = runner.run(&history(), |history| check(&history, &coverage)) {
        panic!("{failure}");
    }
    let coverage = coverage.into_inner();
    println!("{coverage:?}");
    let fifth = coverage.histories / 5;
    assert!(coverage.two_or_more_slices >= fifth && coverage.recycling >= fifth, "{coverage:?}");
    assert!(coverage.dual_stack >= fifth && coverage.two_or_more_port_groups >= fifth, "{coverage:?}");
    assert!(coverage.full_plans * 2 <= coverage.plans, "mostly it is not the full plan that is compared: {coverage:?}");
}
