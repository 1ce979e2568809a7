//! Counts of what occurred in a run.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Occurrences that a run counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Table {
    /// Actions of users.
    Actions,
    /// Effects of faults on requests, watches, servers and agents.
    Faults,
    /// Pairs of faults that lasted at the same time.
    Pairs,
    /// Actions of users, each with a fault that lasted.
    ActionsDuringFaults,
    /// Changes that a rule of the simulator looked at, by rule. For a rule about the fleet at rest: how often it was
    /// checked.
    Rules,
    /// Writes of agents: agent, verb and kind.
    Writes,
    /// Last write of an agent before it was killed.
    CrashPoints,
    /// Situations of the fleets at rest.
    Situations,
    /// Phases of silent members.
    Phases,
}

impl Table {
    pub(super) const ALL: [Self; 9] = [
        Self::Actions,
        Self::Faults,
        Self::Pairs,
        Self::ActionsDuringFaults,
        Self::Rules,
        Self::Writes,
        Self::CrashPoints,
        Self::Situations,
        Self::Phases,
    ];

    /// Returns what the table is about, for people.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Actions => "actions of users",
            Self::Faults => "effects of faults",
            Self::Pairs => "pairs of faults at the same time",
            Self::ActionsDuringFaults => "actions of users during faults",
            Self::Rules => "changes that rules looked at",
            Self::Writes => "writes of agents",
            Self::CrashPoints => "last write before a crash",
            Self::Situations => "situations at rest",
            Self::Phases => "phases of silent members",
        }
    }
}

/// Returns the name of the begin of a fault in [`Table::Faults`].
#[must_use]
pub fn begin(fault: &str) -> String {
    format!("begin {fault}")
}

/// Returns the name of two faults in [`Table::Pairs`].
#[must_use]
pub fn pair(one: &str, other: &str) -> String {
    let (first, second) = if other < one { (other, one) } else { (one, other) };
    format!("{first} + {second}")
}

/// Returns the name of an action in [`Table::ActionsDuringFaults`].
#[must_use]
pub fn during(action: &str, fault: &str) -> String {
    format!("{action} + {fault}")
}

/// Counts by name, for each table.
pub(super) type Tables = BTreeMap<Table, BTreeMap<String, u64>>;

/// Counts of what occurred in a run. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Counts(Arc<Mutex<Tables>>);

impl Counts {
    pub fn add(&self, table: Table, name: &str) {
        *self.0.lock().entry(table).or_default().entry(name.to_owned()).or_default() += 1;
    }

    #[must_use]
    pub fn take(&self) -> Tables {
        std::mem::take(&mut self.0.lock())
    }
}
