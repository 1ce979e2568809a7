//! Coverage: what occurred in many runs, and how often.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
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
    /// Changes that a rule of the simulator looked at, by rule. For a rule about the fleet at rest: how often it was checked.
    Rules,
    /// Writes of agents: agent, verb and kind.
    Writes,
    /// Last write of an agent before it was killed.
    CrashPoints,
    /// Situations of the fleets at rest.
    Situations,
}

impl Table {
    /// Returns what the table is about, for people.
    fn title(self) -> &'static str {
        match self {
            Self::Actions => "actions of users",
            Self::Faults => "effects of faults",
            Self::Pairs => "pairs of faults at the same time",
            Self::ActionsDuringFaults => "actions of users during faults",
            Self::Rules => "changes that rules looked at",
            Self::Writes => "writes of agents",
            Self::CrashPoints => "last write before a crash",
            Self::Situations => "situations at rest",
        }
    }
}

/// Counts by name, for each table.
type Tables = BTreeMap<Table, BTreeMap<String, u64>>;

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

/// Coverage of some runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    pub runs: u64,
    /// Virtual seconds of all runs.
    pub virtual_seconds: u64,
    pub tables: Tables,
}

impl Coverage {
    /// Adds the coverage of other runs.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.virtual_seconds += other.virtual_seconds;
        for (table, others) in &other.tables {
            let mine = self.tables.entry(*table).or_default();
            for (name, count) in others {
                *mine.entry(name.clone()).or_default() += count;
            }
        }
    }

    /// Returns the coverage as tables for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{} runs, {:.1} virtual hours\n", self.runs, hours(self.virtual_seconds));
        for (table, counts) in &self.tables {
            let _ = writeln!(text, "\n{} ({}):", table.title(), counts.len());
            for line in counts.iter().collect::<Vec<_>>().chunks(3) {
                let cells = line.iter().map(|(name, count)| format!("{count:>8} {name:<42}"));
                let _ = writeln!(text, "{}", cells.collect::<String>().trim_end());
            }
        }
        text
    }
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn hours(seconds: u64) -> f64 {
    seconds as f64 / 3600.0
}

#[cfg(test)]
mod tests {
    use super::{Coverage, Table};

    #[test]
    fn coverage_of_several_runs_is_added_by_name() {
        let one = |name: &str| Coverage {
            runs: 1,
            virtual_seconds: 0,
            tables: [(Table::Actions, [(name.to_owned(), 2)].into())].into(),
        };
        let mut sum = one("export");
        sum.add(&one("export"));
        sum.add(&one("import"));
        assert_eq!(sum.runs, 3);
        assert_eq!(sum.tables[&Table::Actions], [("export".to_owned(), 4), ("import".to_owned(), 2)].into());
        assert!(sum.text().contains("       4 export"));
    }
}
