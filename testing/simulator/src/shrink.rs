//! Shrinking: removes steps from a script as long as the run ends with a finding of the same rule.

use crate::limits::SHRINK_ATTEMPTS;
use crate::run::run;
use crate::script::Script;

/// Returns the numbers of the steps that are left of a script with this finding.
///
/// First removes large parts, then smaller parts, as delta debugging does.
#[must_use]
pub fn shrink(script: &Script, rule: &str, mut progress: impl FnMut(usize)) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..script.steps.len()).collect();
    let mut attempts = 0;
    let mut size = kept.len().div_ceil(2).max(1);
    loop {
        let mut begin = 0;
        let mut is_smaller = false;
        while begin < kept.len() && attempts < SHRINK_ATTEMPTS {
            let end = (begin + size).min(kept.len());
            let rest: Vec<usize> = kept[..begin].iter().chain(&kept[end..]).copied().collect();
            let outcome = run(&script.keeping(&rest), 0);
            attempts += 1;
            if outcome.finding.as_ref().is_some_and(|finding| finding.rule == rule) {
                (kept, is_smaller) = (rest, true);
                progress(kept.len());
            } else {
                begin = end;
            }
        }
        if attempts >= SHRINK_ATTEMPTS || (size == 1 && !is_smaller) {
            return kept;
        }
        size = (size / 2).max(1);
    }
}
