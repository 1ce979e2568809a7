//! Tests of properties that every plan has, over random histories.

use crate::histories::{Event, History, Truth, hints, history};
use endpointslice::model::EndpointSlice;
use endpointslice::plan::{Plan, Update, WriteCounts};
use endpointslice::ports::PortKey;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

const CASES: u32 = 2_000;

/// Returns every endpoint in these slices as text: address type, ports, pod, addresses and conditions.
fn union<'a>(slices: impl Iterator<Item = &'a EndpointSlice>) -> BTreeSet<String> {
    let endpoints = slices.flat_map(|slice| slice.endpoints.iter().map(move |endpoint| (slice, endpoint)));
    let lines = endpoints.map(|(slice, endpoint)| {
        let pod = endpoint.target_ref.as_ref().map_or("", |target| &target.name);
        let ports = PortKey::from(&slice.ports[..]);
        format!("{} {ports:?} {pod} {} {:?}", slice.address_type, endpoint.addresses.join(" "), endpoint.conditions)
    });
    let lines: Vec<_> = lines.collect();
    let union: BTreeSet<_> = lines.iter().cloned().collect();
    assert_eq!(union.len(), lines.len(), "an endpoint in two slices");
    union
}

/// Returns the endpoints that a plan without existing slices would publish.
fn wanted(truth: &Truth) -> BTreeSet<String> {
    let plan = truth.without_slices().plan(&mut hints());
    union(plan.families.iter().flat_map(|family| &family.draft.creates))
}

fn limits_are_respected(truth: &Truth, plan: &Plan) {
    let max = truth.config.max_endpoints_per_slice();
    for family in &plan.families {
        assert!(family.draft.creates.iter().all(|slice| slice.endpoints.len() <= max));
        for Update { before, after, .. } in &family.draft.updates {
            assert!(after.endpoints.len() <= max.max(before.endpoints.len()), "{before:?} {after:?}");
        }
        let mut opened: BTreeMap<String, usize> = BTreeMap::new();
        for Update { before, after, .. } in family.draft.updates.iter().filter(|it| only_grew(it)) {
            assert!(after.endpoints.len() > before.endpoints.len());
            *opened.entry(format!("{:?}", PortKey::from(&after.ports[..]))).or_default() += 1;
        }
        assert!(opened.values().all(|count| *count <= 1), "{opened:?}");
    }
}

/// True if an update only adds endpoints to a slice that needed no other change.
fn only_grew(update: &Update) -> bool {
    let Update { before, after, recycled } = update;
    let same_metadata = before.metadata.labels == after.metadata.labels;
    !recycled
        && same_metadata
        && after.endpoints.len() > before.endpoints.len()
        && after.endpoints.starts_with(&before.endpoints)
}

/// Number of random histories that contained each kind of situation, to check that the histories are varied.
#[derive(Debug, Default)]
struct Coverage {
    not_served: u32,
    without_endpoints: u32,
    with_endpoints: u32,
    two_or_more_slices: u32,
    changed_by_others: u32,
    cut_off: u32,
}

fn check(history: &History, coverage: &RefCell<Coverage>) -> TestCaseResult {
    let mut truth = Truth::new(history);
    let (mut changed_by_others, mut cut_off) = (false, false);
    for event in &history.events {
        let plan = truth.plan(&mut hints());
        changed_by_others |= matches!(event, Event::Edit(..)) && !truth.slices.is_empty();
        let WriteCounts { creates, updates, deletes } = plan.counts();
        cut_off |= matches!(event, Event::Write(count) if *count > 0 && *count < creates + updates + deletes);
        assert_eq!(plan.to_string(), truth.plan(&mut hints()).to_string());
        limits_are_respected(&truth, &plan);
        match event {
            Event::Pod(number, shape) => drop(truth.set_pod(*number, *shape)),
            Event::NoPod(number) => drop(truth.remove_pod(*number)),
            Event::Service(change) => truth.change_service(*change),
            Event::Write(count) => drop(truth.write(&plan, *count)),
            Event::Edit(at, edit) => drop(truth.edit(*at, *edit)),
        }
    }
    let plan = truth.plan(&mut hints());
    truth.write(&plan, usize::MAX);
    proptest::prop_assert!(
        truth.plan(&mut hints()).is_empty(),
        "a settled world costs no write: {}",
        truth.plan(&mut hints())
    );
    let served = !truth.service.spec.selector.is_empty() && !truth.service.metadata.is_terminating();
    if served {
        let live = truth.slices.values().filter(|slice| !slice.metadata.is_terminating());
        proptest::prop_assert_eq!(union(live.map(|slice| &**slice)), wanted(&truth));
    }
    let (filled, mut coverage) = (wanted(&truth).len(), coverage.borrow_mut());
    coverage.not_served += u32::from(!served);
    coverage.without_endpoints += u32::from(served && filled == 0);
    coverage.with_endpoints += u32::from(served && filled > 0);
    coverage.two_or_more_slices += u32::from(served && truth.slices.len() > 1);
    coverage.changed_by_others += u32::from(changed_by_others);
    coverage.cut_off += u32::from(cut_off);
    Ok(())
}

#[test]
fn plans_settle_hold_limits_and_publish_every_endpoint_once() {
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let coverage = RefCell::new(Coverage::default());
    if let Err(failure) = runner.run(&history(), |history| check(&history, &coverage)) {
        panic!("{failure}");
    }
    let coverage = coverage.into_inner();
    let Coverage { not_served, without_endpoints, with_endpoints, two_or_more_slices, changed_by_others, cut_off } =
        coverage;
    let least = [not_served, without_endpoints, with_endpoints, two_or_more_slices, changed_by_others, cut_off];
    assert!(least.into_iter().all(|count| count >= CASES / 200), "{coverage:?}");
}
