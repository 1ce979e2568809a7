//! A property over random input, with a count of what the input made happen.

use super::sabotage;
use proptest::prelude::{ProptestConfig, Strategy};
use proptest::test_runner::{RngSeed, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeMap;

pub(crate) fn cases(number: u32) -> ProptestConfig {
    ProptestConfig {
        cases: number,
        rng_seed: RngSeed::Fixed(20_260_101),
        failure_persistence: None,
        // With agents that are broken on purpose any failure will do.
        max_shrink_iters: if sabotage::is_present() { 0 } else { u32::MAX },
        ..ProptestConfig::default()
    }
}

/// Runs `property` for that many inputs. It returns the classes that its case belongs to; each of `classes` must be seen in
/// at least `least` cases, so that a property that asserts nothing of interest fails.
pub(crate) fn for_any<S: Strategy>(
    number: u32,
    input: &S,
    (classes, least): (&[&'static str], usize),
    property: impl Fn(S::Value) -> Vec<&'static str>,
) {
    let seen: RefCell<BTreeMap<&'static str, usize>> = RefCell::default();
    let outcome = TestRunner::new(cases(number)).run(input, |value| {
        for class in property(value) {
            *seen.borrow_mut().entry(class).or_default() += 1;
        }
        Ok(())
    });
    assert!(outcome.is_ok(), "{}", outcome.err().map(|error| error.to_string()).unwrap_or_default());
    let seen = seen.into_inner();
    let seldom: Vec<_> = classes.iter().filter(|class| seen.get(*class).is_none_or(|count| *count < least)).collect();
    assert!(seldom.is_empty(), "seen in fewer than {least} of {number} cases: {seldom:?} of {seen:?}");
}
