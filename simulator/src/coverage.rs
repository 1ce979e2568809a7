//! Coverage: how often each event, fault, pair of faults, kind of write and crash point occurred in many runs.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// Counts of what occurred, by name. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

impl Counts {
    pub fn add(&self, name: &str) {
        *self.0.lock().entry(name.to_owned()).or_default() += 1;
    }

    #[must_use]
    pub fn take(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.0.lock())
    }
}

/// Coverage of some runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    pub runs: u64,
    /// Virtual seconds of all runs.
    pub virtual_seconds: u64,
    /// Actions of users.
    pub actions: BTreeMap<String, u64>,
    /// Effects of faults on requests, watches, servers and agents.
    pub faults: BTreeMap<String, u64>,
    /// Pairs of faults that lasted at the same time.
    pub pairs: BTreeMap<String, u64>,
    /// Writes of agents: agent, verb and kind.
    pub writes: BTreeMap<String, u64>,
    /// Last write of an agent before it was killed.
    pub crash_points: BTreeMap<String, u64>,
    /// Situations of the fleets at rest.
    pub situations: BTreeMap<String, u64>,
}

impl Coverage {
    /// Adds the coverage of other runs.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.virtual_seconds += other.virtual_seconds;
        let all = [
            (&mut self.actions, &other.actions),
            (&mut self.faults, &other.faults),
            (&mut self.pairs, &other.pairs),
            (&mut self.writes, &other.writes),
            (&mut self.crash_points, &other.crash_points),
            (&mut self.situations, &other.situations),
        ];
        for (mine, others) in all {
            for (name, count) in others {
                *mine.entry(name.clone()).or_default() += count;
            }
        }
    }

    /// Returns the coverage as tables for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!("{} runs, {:.1} virtual hours\n", self.runs, hours(self.virtual_seconds));
        let all = [
            ("actions of users", &self.actions),
            ("effects of faults", &self.faults),
            ("pairs of faults at the same time", &self.pairs),
            ("writes of agents", &self.writes),
            ("last write before a crash", &self.crash_points),
            ("situations at rest", &self.situations),
        ];
        for (title, counts) in all {
            let _ = writeln!(text, "\n{title} ({}):", counts.len());
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
    use super::Coverage;

    #[test]
    fn coverage_of_several_runs_is_added_by_name() {
        let one = |name: &str| Coverage { runs: 1, actions: [(name.to_owned(), 2)].into(), ..Coverage::default() };
        let mut sum = one("export");
        sum.add(&one("export"));
        sum.add(&one("import"));
        assert_eq!(sum.runs, 3);
        assert_eq!(sum.actions, [("export".to_owned(), 4), ("import".to_owned(), 2)].into());
        assert!(sum.table().contains("       4 export"));
    }
}
