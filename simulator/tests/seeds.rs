//! A fixed set of seeds. CI also plays new seeds (`cargo xtask sim --minutes 5`).
//!
//! Marks of faults with the id SIM name this test: each of these bugs must be found (docs/reliability.md).

use simulator::script::Choice;
use simulator::{Script, run};

/// Number of seeds.
const SEEDS: u64 = 24;

#[test]
fn the_fixed_seeds_have_no_finding() {
    for seed in 1..=SEEDS {
        let outcome = run(&Script::of(seed, &Choice::default()), 0);
        let finding = outcome.finding.map(|finding| format!("{}: {}", finding.rule, finding.message));
        assert_eq!(finding, None, "seed {seed}; replay it with: cargo xtask sim --seed {seed}");
    }
}
