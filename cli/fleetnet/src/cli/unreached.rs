//! Lines about clusters that were not reached: one for all steps of a cluster that are unknown for this reason.

use super::output::names::ends;
use diagnosis::report::NotReached;
use std::collections::BTreeMap;

/// Clusters that were not reached, with the number of steps or checks of each that are unknown for this reason.
#[derive(Debug, Default)]
pub(super) struct Unreached<'a> {
    clusters: &'a [NotReached],
    counts: BTreeMap<&'a str, usize>,
}

impl<'a> Unreached<'a> {
    pub(super) fn new(clusters: &'a [NotReached]) -> Self {
        Self { clusters, counts: BTreeMap::new() }
    }

    /// Counts an unknown step. Returns true if its reason is that a cluster was not reached.
    pub(super) fn takes(&mut self, detail: &str) -> bool {
        let is_of =
            |it: &&NotReached| detail.strip_prefix(it.cluster.as_str()).is_some_and(|rest| rest.starts_with(": "));
        let Some(found) = self.clusters.iter().find(is_of) else { return false };
        *self.counts.entry(&found.cluster).or_default() += 1;
        true
    }

    /// Returns one line for each reason. `noun` names what was counted.
    pub(super) fn lines(&self, noun: &str) -> Vec<String> {
        let mut reasons: Vec<(&NotReached, Vec<String>, usize)> = Vec::new();
        for it in self.clusters {
            let Some(count) = self.counts.get(it.cluster.as_str()) else { continue };
            match reasons.iter_mut().find(|(first, ..)| (&first.why, first.remedy) == (&it.why, it.remedy)) {
                Some((_, clusters, sum)) => {
                    clusters.push(it.cluster.clone());
                    *sum += count;
                }
                None => reasons.push((it, vec![it.cluster.clone()], *count)),
            }
        }
        let line = |(it, clusters, count): &(&NotReached, Vec<String>, usize)| {
            format!("{}: {}, so {count} {noun} are unknown: {}", ends(clusters), it.why, it.remedy)
        };
        reasons.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_one_line_with_its_clusters_and_the_remedy() {
        let not_reached =
            |cluster: &str, why: &str, remedy| NotReached { cluster: cluster.to_owned(), why: why.to_owned(), remedy };
        let clusters = [
            not_reached("a", "no context", "add"),
            not_reached("ab", "no context", "add"),
            not_reached("c", "late", "wait"),
        ];
        let mut unreached = Unreached::new(&clusters);
        assert!(unreached.takes("a: no context") && unreached.takes("ab: no context") && unreached.takes("ab: else"));
        assert!(!unreached.takes("d: no context") && !unreached.takes("abc: no context") && !unreached.takes("a"));
        assert_eq!(unreached.lines("steps"), ["a, ab: no context, so 3 steps are unknown: add"]);
        assert!(unreached.takes("c: late"));
        assert_eq!(unreached.lines("checks")[1], "c: late, so 1 checks are unknown: wait");
    }
}
