//! A fixed set of seeds. CI also plays new seeds (`cargo xtask sim --minutes 5`).

use simulator::script::Choice;
use simulator::{Script, run};

/// Number of seeds.
const SEEDS: u64 = 24;
/// Number of seeds that are played twice.
const AGAIN: u64 = 8;

/// Also rule A1.
#[test]
fn the_fixed_seeds_have_no_finding() {
    for seed in 1..=SEEDS {
        let outcome = run(&Script::of(seed, &Choice::default()), 0);
        let finding = outcome.finding.map(|finding| format!("{}: {}", finding.rule, finding.message));
        assert_eq!(finding, None, "seed {seed}; replay it with: cargo xtask sim --seed {seed}");
    }
}

/// A seed decides everything: requests and watch events come in the same order each time.
#[test]
fn a_script_that_is_played_again_gives_the_same_trace() {
    const { assert!(sim::IS_REPEATABLE, "RUSTFLAGS hides the flags in .cargo/config.toml; unset it") };
    for seed in 1..=AGAIN {
        let script = Script::of(seed, &Choice::default());
        let [first, second] = [(); 2].map(|()| run(&script, usize::MAX).trace);
        let differs = first.iter().zip(&second).find(|(first, second)| first != second);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}
