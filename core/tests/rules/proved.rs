//! Proof that the history tests can fail: each of them fails with agents that are broken on purpose.

use crate::support::sabotage::{self, Sabotage};
use crate::{blocked, conflicts, edited, events_once, fidelity, flips, histories, hostile};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the names and functions of all history tests.
fn histories() -> Vec<(&'static str, fn())> {
    [
        conflicts::HISTORIES,
        edited::HISTORIES,
        fidelity::HISTORIES,
        flips::HISTORIES,
        blocked::HISTORIES,
        histories::HISTORIES,
        hostile::HISTORIES,
        events_once::HISTORIES,
    ]
    .concat()
}

fn passes(history: fn(), broken: Sabotage) -> bool {
    sabotage::with(broken, || catch_unwind(AssertUnwindSafe(history)).is_ok())
}

fn assert_all_fail(broken: Sabotage) {
    let passed: Vec<&str> =
        histories().into_iter().filter(|(_, history)| passes(*history, broken)).map(|(name, _)| name).collect();
    assert_eq!(passed, Vec::<&str>::new(), "these pass with agents that are {broken:?}: they assert too little");
}

#[test]
fn every_history_fails_with_agents_that_do_nothing() {
    assert_all_fail(Sabotage::Idle);
}

#[test]
fn every_history_fails_with_agents_that_forget_every_tenth_create() {
    assert_all_fail(Sabotage::ForgetsCreates);
}
