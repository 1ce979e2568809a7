//! Agents that are broken on purpose. A history test that passes with one of them asserts too little.

use fleetnet_core::plan::{Action, Plan};
use std::cell::Cell;

/// Fault that all agents of this thread have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// Agents watch and plan, but write nothing.
    Idle,
    /// Agents lose every tenth create without noticing.
    ForgetsCreates,
}

/// Number of creates of which one is lost.
const LOST_ONE_IN: u32 = 10;

thread_local! {
    static PRESENT: Cell<Option<Sabotage>> = const { Cell::new(None) };
    static CREATES: Cell<u32> = const { Cell::new(0) };
}

/// Breaks the agents of this thread while `work` runs, and repairs them afterwards, even if it panics.
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

/// True while the agents of this thread are broken.
pub(crate) fn is_present() -> bool {
    PRESENT.get().is_some()
}

/// Returns what a broken agent makes of a plan.
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
