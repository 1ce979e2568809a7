//! The list of faults: what each of them changes, and the test that must see it.

use anyhow::Context as _;
use serde::Deserialize;

/// Where the list is, from the root.
pub(crate) const PATH: &str = "core/tests/mutants.yaml";

/// A fault that can be planted.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutant {
    /// The rule of docs/behaviour.md that it takes out, and which of its faults it is: `S4.1`.
    pub(crate) id: String,
    /// What is wrong then, in few words.
    pub(crate) fault: String,
    /// The file that it changes, from the root.
    pub(crate) file: String,
    /// What stands there, exactly once.
    pub(crate) old: String,
    /// What takes its place; nothing where it is left out.
    #[serde(default)]
    pub(crate) new: String,
    /// The test that must fail, as `file::test`; one of the same package.
    pub(crate) test: String,
}

impl Mutant {
    /// The rule that it takes out.
    pub(crate) fn rule(&self) -> &str {
        self.id.split_once('.').map_or(&self.id, |(rule, _)| rule)
    }

    /// Whether an id or a rule on the command line means it.
    pub(crate) fn is_named_by(&self, id: &str) -> bool {
        self.id == id || self.rule() == id
    }

    /// The folder of its package.
    pub(crate) fn folder(&self) -> &str {
        self.file.split('/').next().unwrap_or_default()
    }

    /// The text of its file with the fault in it; `None` where what it changes does not stand there exactly once.
    pub(crate) fn applied(&self, text: &str) -> Option<String> {
        let once = text.matches(&self.old).count() == 1 && self.old != self.new;
        once.then(|| text.replacen(&self.old, &self.new, 1))
    }
}

/// Reads the list.
///
/// # Errors
/// Where it is not one.
pub(crate) fn parse(text: &str) -> anyhow::Result<Vec<Mutant>> {
    serde_saphyr::from_str(text).with_context(|| format!("{PATH} is not a list of faults"))
}

#[cfg(test)]
mod tests {
    use super::{Mutant, parse};

    fn mutant() -> Mutant {
        let text = "- id: S4.1\n  fault: it adds\n  file: core/src/a.rs\n  old: |-\n    1 -\n        2\n  \
                    new: 1 + 2\n  test: sums::a_sum_is_right\n";
        parse(text).expect("a list").remove(0)
    }

    #[test]
    fn a_fault_is_one_exact_change() {
        let mutant = mutant();
        assert_eq!(mutant.applied("f(1 -\n    2)").as_deref(), Some("f(1 + 2)"));
        assert_eq!(mutant.applied("f(1 - 2)"), None, "it is not there");
        assert_eq!(mutant.applied("1 -\n    2, 1 -\n    2"), None, "it is there twice");
        let same = Mutant { new: mutant.old.clone(), ..mutant };
        assert_eq!(same.applied("f(1 -\n    2)"), None, "it changes nothing");
    }

    #[test]
    fn a_fault_is_named_by_itself_or_by_its_rule() {
        let mutant = mutant();
        assert_eq!((mutant.rule(), mutant.folder()), ("S4", "core"));
        assert_eq!(["S4.1", "S4", "S4.2", "S"].map(|id| mutant.is_named_by(id)), [true, true, false, false]);
    }
}
