//! Coverage: what occurred in many runs, and how often.

mod counts;

use counts::Tables;
pub use counts::{Counts, Table, begin, during, pair};

use crate::{disturbances, oracles};
use fleetnet_core::model::SilencePhase;
use histories::oracle::CLASSES;
use histories::users::Action;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Returns the names that a table can have. Nobody knows all writes of agents that are possible, so of these a table
/// has what occurred, and [`Table::CrashPoints`] can have those.
fn possible(table: Table, tables: &Tables) -> BTreeSet<String> {
    let faults = || disturbances::ALL.iter().map(|kind| kind.name);
    let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    match table {
        Table::Actions => owned(Action::NAMES),
        Table::Faults => faults().map(begin).collect(),
        Table::Pairs => faults().flat_map(|one| faults().map(move |other| pair(one, other))).collect(),
        Table::ActionsDuringFaults => {
            Action::NAMES.iter().flat_map(|action| faults().map(move |fault| during(action, fault))).collect()
        }
        Table::Rules => oracles::counted().map(str::to_owned).collect(),
        Table::CrashPoints => tables.get(&Table::Writes).into_iter().flat_map(BTreeMap::keys).cloned().collect(),
        Table::Situations => owned(CLASSES),
        Table::Phases => owned(&SilencePhase::ALL.map(SilencePhase::name)),
        Table::Writes => BTreeSet::new(),
    }
}

/// Number of names that never occurred, of each table, in the text for people.
const NEVER_SHOWN: usize = 30; // no limit: for people

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

    /// Returns the names of a table that never occurred.
    #[must_use]
    fn never(&self, table: Table) -> Vec<String> {
        let occurred = |name: &String| self.tables.get(&table).is_some_and(|counts| counts.contains_key(name));
        possible(table, &self.tables).into_iter().filter(|name| !occurred(name)).collect()
    }

    /// Returns the coverage as tables for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{} runs, {:.1} virtual hours\n", self.runs, hours(self.virtual_seconds));
        for table in Table::ALL {
            let counts = self.tables.get(&table).into_iter().flatten().collect::<Vec<_>>();
            let _ = writeln!(text, "\n{} ({}):", table.title(), counts.len());
            for line in counts.chunks(3) {
                let cells = line.iter().map(|(name, count)| format!("{count:>8} {name:<42}"));
                let _ = writeln!(text, "{}", cells.collect::<String>().trim_end());
            }
            let never = self.never(table);
            if !never.is_empty() {
                let more = if never.len() > NEVER_SHOWN { ", …" } else { "" };
                let names = never.iter().take(NEVER_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
                let _ = writeln!(text, "never ({}): {names}{more}", never.len());
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
    use super::*;

    #[test]
    fn the_text_lists_what_never_occurred() {
        let counts = Counts::default();
        for kind in disturbances::ALL.iter().filter(|kind| kind.name != "backup") {
            counts.add(Table::Faults, &begin(kind.name));
        }
        counts.add(Table::Writes, "member agent Created Service");
        let coverage = Coverage { runs: 1, virtual_seconds: 0, tables: counts.take() };
        let text = coverage.text();
        for line in ["never (1): begin backup\n", "never (1): member agent Created Service\n"] {
            assert!(text.contains(line), "{text}");
        }
        let never = coverage.never(Table::Pairs);
        for name in ["backup + crash", "crash + crash"] {
            assert!(never.contains(&name.to_owned()), "{never:?}");
        }
        assert!(text.contains(", …\n"), "too many pairs to list all");
        assert_eq!(coverage.never(Table::Rules).len(), oracles::counted().count());
    }

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
