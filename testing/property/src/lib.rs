//! Property tests over random input that also count what the input covers.
//!
//! A property that holds only for trivial inputs shows nothing. So each property here names the classes of cases that
//! it is about, and fails if one of them is too rare. The message names the seed that replays the failure.

use proptest::prelude::{ProptestConfig, Strategy};
use proptest::test_runner::{RngSeed, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

/// Returns a proptest configuration with this number of cases. It stores no failures between runs, because a failure
/// names its seed.
#[must_use]
pub fn cases(number: u32) -> ProptestConfig {
    ProptestConfig { cases: number, failure_persistence: None, ..ProptestConfig::default() }
}

/// Runs `property` for random inputs.
///
/// `property` returns pairs: true if the case belongs to a class, and the name of the class. Each class must occur in
/// at least `least` cases.
///
/// # Panics
///
/// If the property panics for an input, or a class is too rare. Both messages have the seed.
pub fn for_any<S: Strategy, C: IntoIterator<Item = (bool, &'static str)>>(
    config: ProptestConfig,
    least: usize,
    input: &S,
    property: impl Fn(S::Value) -> C,
) {
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().hash_one(()),
    };
    let (number, config) = (config.cases, ProptestConfig { rng_seed: RngSeed::Fixed(seed), ..config });
    let seen: RefCell<BTreeMap<&'static str, usize>> = RefCell::default();
    let outcome = TestRunner::new(config).run(input, |value| {
        for (is_so, class) in property(value) {
            *seen.borrow_mut().entry(class).or_default() += usize::from(is_so);
        }
        Ok(())
    });
    let replay = format!("PROPTEST_RNG_SEED={seed} replays it, unless the property has a seed of its own");
    assert!(outcome.is_ok(), "{}\n{replay}", outcome.err().map(|error| error.to_string()).unwrap_or_default());
    let seen = seen.into_inner();
    let seldom: Vec<_> = seen.iter().filter(|(_, count)| **count < least).map(|(class, _)| class).collect();
    assert!(seldom.is_empty(), "seen in fewer than {least} of {number} cases: {seldom:?} of {seen:?}\n{replay}");
}

#[cfg(test)]
mod tests {
    use super::{cases, for_any};
    use proptest::prelude::any;
    use std::panic::{UnwindSafe, catch_unwind};

    /// Runs a property that must fail, and returns its message.
    fn failure(property: impl FnOnce() + UnwindSafe) -> String {
        *catch_unwind(property).expect_err("it fails").downcast::<String>().expect("with a message")
    }

    #[test]
    fn a_property_whose_classes_all_occur_passes() {
        for_any(cases(64), 5, &any::<u8>(), |number| [(number < 128, "low"), (number >= 128, "high")]);
    }

    #[test]
    fn a_class_that_never_occurs_fails_with_its_name_the_counts_and_the_seed() {
        let failure = failure(|| {
            for_any(cases(64), 5, &any::<u8>(), |number| [(number < 128, "low"), (u32::from(number) > 255, "huge")]);
        });
        assert!(failure.contains(r#"fewer than 5 of 64 cases: ["huge"] of {"huge": 0, "low": "#), "{failure}");
        assert!(failure.contains("PROPTEST_RNG_SEED="), "{failure}");
    }

    #[test]
    fn a_case_that_fails_is_shown_as_small_as_can_be_with_the_seed() {
        let failure = failure(|| {
            for_any(cases(64), 0, &any::<u8>(), |number| {
                assert!(number < 7, "too many");
                []
            });
        });
        assert!(failure.contains("too many") && failure.contains("minimal failing input: 7"), "{failure}");
        assert!(failure.contains("PROPTEST_RNG_SEED="), "{failure}");
    }
}
