//! Property tests over random input. They also count the situations (classes) that the input covers.

use super::sabotage;
use proptest::prelude::{ProptestConfig, Strategy};
use proptest::test_runner::RngSeed;

pub(crate) fn cases(number: u32) -> ProptestConfig {
    ProptestConfig {
        cases: number,
        rng_seed: RngSeed::Fixed(20_260_101),
        failure_persistence: None,
        // If the agents are broken on purpose, any failure is enough, so proptest need not search for the smallest
        // failing input.
        max_shrink_iters: if sabotage::is_present() { 0 } else { u32::MAX },
        ..ProptestConfig::default()
    }
}

/// Runs `property` for `number` random inputs. `property` returns the names of the situations that its input covers.
/// Each name in `classes` must occur for at least `least` inputs. Otherwise the test fails, because its inputs cover
/// too little.
pub(crate) fn for_any<S: Strategy>(
    number: u32,
    input: &S,
    (classes, least): (&[&'static str], usize),
    property: impl Fn(S::Value) -> Vec<&'static str>,
) {
    property::for_any(cases(number), least, input, |value| {
        let seen = property(value);
        classes.iter().map(|class| (seen.contains(class), *class)).collect::<Vec<_>>()
    });
}
