//! Selection of tests by the flags `--only` and `--shard`.

use anyhow::{Context as _, ensure};
use fnv::FnvHasher;
use std::hash::Hasher as _;
use std::str::FromStr;

/// The tests that are asked for. A test is named as `program::path::of::test`.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Selection {
    /// Run only the tests whose name contains this. A name is the program's with the test's path:
    /// `e2e::bad_answers::a_hub_that_…`. Where it begins with a program of integration tests, only that is built.
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
    /// Run only the tests of part I of N, from 1. Each test is in one part, in the same one every time.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
}

/// One of several parts into which all names of tests are divided, such as part 2 of 3. A name is in the same part
/// every time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Shard {
    index: u64,
    count: u64,
}

impl Selection {
    /// True if a test of a program is selected.
    pub(super) fn has(&self, program: &str, test: &str) -> bool {
        let name = format!("{program}::{test}");
        self.only.as_ref().is_none_or(|only| name.contains(only)) && self.shard.is_none_or(|shard| shard.has(&name))
    }

    /// Returns the name of the test program with which the pattern of `--only` begins, if there is one.
    pub(super) fn program(&self) -> Option<&str> {
        Some(self.only.as_ref()?.split_once("::")?.0)
    }

    /// True if the run also includes the steps that are no tests: `tidy` and the examples in docs.
    pub(super) fn has_the_rest(&self) -> bool {
        self.only.is_none() && self.shard.is_none_or(|shard| shard.index == 0)
    }

    /// Describes the selection for messages.
    pub(super) fn description(&self) -> String {
        let only = self.only.as_ref().map(|only| format!("--only {only}"));
        let shard = self.shard.map(|Shard { index, count }| format!("--shard {}/{count}", index + 1));
        only.into_iter().chain(shard).collect::<Vec<_>>().join(" ")
    }
}

impl Shard {
    pub(crate) fn has(self, name: &str) -> bool {
        Self::hash(name) % self.count == self.index
    }

    /// Hashes a name (FNV-1a of 64 bits): the same on every machine and with every version of Rust.
    pub(crate) fn hash(text: &str) -> u64 {
        let mut hasher = FnvHasher::default();
        hasher.write(text.as_bytes());
        hasher.finish()
    }
}

impl FromStr for Shard {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (index, count) = text.split_once('/').context("it is not I/N")?;
        let (index, count): (u64, u64) = (index.parse()?, count.parse()?);
        ensure!((1..=count).contains(&index), "I is from 1 to N");
        Ok(Self { index: index - 1, count })
    }
}

#[cfg(test)]
mod tests {
    use super::{Selection, Shard};

    #[test]
    fn a_pattern_is_looked_for_in_the_whole_name() {
        let selection = Selection { only: Some("rules::claims::a".to_owned()), shard: None };
        assert!(selection.has("rules", "claims::a_claim_is_fair"));
        assert!(!selection.has("rules", "claims::no_claim_is_lost"));
        assert!(!selection.has("ledger", "claims::a_claim_is_fair"));
        assert!(!selection.has_the_rest());
    }

    #[test]
    fn each_test_is_in_one_part_and_only_the_first_part_has_what_has_no_name() {
        let parts = ["1/3", "2/3", "3/3"].map(|part| Selection { only: None, shard: part.parse().ok() });
        for number in 0..100 {
            let test = format!("test_{number}");
            assert_eq!(parts.iter().filter(|part| part.has("rules", &test)).count(), 1, "{test}");
        }
        assert_eq!(parts.each_ref().map(Selection::has_the_rest), [true, false, false]);
        assert_eq!(parts[1].description(), "--shard 2/3");
        // Known value from the FNV reference. The hash must never change, because a test must belong to the same part
        // on every machine.
        assert_eq!(Shard::hash("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn an_impossible_part_is_rejected() {
        for text in ["", "1", "0/2", "3/2", "1/0", "a/b"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
