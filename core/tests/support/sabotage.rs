//! Agents that are broken on purpose. A history test that passes with such agents asserts too little.

use fleetnet_core::plan::{Action, Plan};
use std::cell::Cell;

/// Fault of all agents in this thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// Agents watch and plan, but write nothing.
    Idle,
    /// Agents lose every tenth create, and treat the lost creates as done.
    ForgetsCreates,
}

/// Interval of lost creates: each create whose number is a multiple of this constant is lost.
const LOST_ONE_IN: u32 = 10;

thread_local! {
    static PRESENT: Cell<Option<Sabotage>> = const { Cell::new(None) };
    static CREATES: Cell<u32> = const { Cell::new(0) };
}

/// Breaks the agents of this thread while `work` runs, and repairs the agents afterwards, even if `work` panics.
pub(crate) fn with<R>(sabotage: Sabotage, work: impl FnOnce() -> R) -> R {
    struct Repair;
    impl Drop for Repair {
        fn drop(&mut self) {
            PRESENT.set(None);
        }
    }
    PRESENT.set(Some(sabotage));
    CREATES.set(0);
    let _repair = Repair;
    work()
}

pub(crate) fn is_present() -> bool {
    PRESENT.get().is_some()
}

/// Removes from a plan the writes that the broken agents of this thread do not make.
pub(super) fn break_plan(mut plan: Plan) -> Plan {
    match PRESENT.get() {
        None => {}
        Some(Sabotage::Idle) => plan.writes.clear(),
        Some(Sabotage::ForgetsCreates) => plan.writes.retain(|write| {
            let is_create = matches!(write.action, Action::Create(_));
            let number = CREATES.get() + u32::from(is_create);
            CREATES.set(number);
            !is_create || !number.is_multiple_of(LOST_ONE_IN)
        }),
    }
    plan
}
