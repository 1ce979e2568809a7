//! Check: the steps about access and membership, for each cluster of the fleet.

use crate::codes::{Class, Code, Group};
use crate::explain::{Rule, Site, StepResult, Stop, filled, hears, open_namespaces, rules, slice_maker, text};
use crate::report::{API_VERSION, Category, Check, CheckResult, CheckRow, Verdict};
use crate::snapshot::{Member, Snapshot};

/// Codes that apply before anything is installed: access of the user to the clusters.
const BEFORE_INSTALLATION: [Code; 3] = [Code::FN101, Code::FN102, Code::FN103];

/// Time at which the checks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before the installation: only the access to the clusters is checked.
    BeforeInstallation,
    Installed,
}

/// Checks the hub and all members. A member without a kubeconfig context is checked from the hub alone.
#[must_use]
pub fn check(snapshot: &Snapshot, stage: Stage) -> Check {
    let mut categories = vec![category(snapshot, Group::Access, Site::Hub(&snapshot.hub), stage)];
    for member in &snapshot.members {
        categories.push(category(snapshot, Group::Access, Site::Member(member), stage));
        if stage == Stage::Installed {
            categories.push(category(snapshot, Group::Membership, Site::Member(member), stage));
        }
    }
    let worst = categories.iter().flat_map(|category| &category.checks).map(|row| row.result).max();
    let verdict = match worst {
        Some(CheckResult::Error) => Verdict::Fault,
        Some(CheckResult::Unknown) => Verdict::NotKnown,
        Some(CheckResult::Ok | CheckResult::Skipped | CheckResult::Warning) | None => Verdict::Healthy,
    };
    Check { api_version: API_VERSION, kind: "Check", categories, verdict }
}

fn category(snapshot: &Snapshot, group: Group, site: Site<'_>, stage: Stage) -> Category {
    let applies = |code: Code| code.group() == group || group == Group::Access && code == Code::FN706;
    let in_stage = |code: &Code| stage == Stage::Installed || BEFORE_INSTALLATION.contains(code);
    let checks = rules()
        .filter(|(code, _)| applies(*code) && in_stage(code))
        .filter_map(|(code, rule)| Some(row(code, run(snapshot, site, code, rule)?, || good(snapshot, site, code))));
    Category { group, cluster: site.cluster().to_owned(), checks: checks.collect() }
}

/// Runs a rule for one cluster; `None` if the rule is about a pair of clusters.
fn run(snapshot: &Snapshot, site: Site<'_>, code: Code, rule: Rule) -> Option<StepResult> {
    match (rule, site) {
        (Rule::Cluster(rule), site) => Some(rule(snapshot, site)),
        (Rule::Member(rule), Site::Member(member)) => Some(rule(snapshot, member)),
        (Rule::Pair(_), Site::Member(member)) if code == Code::FN206 => Some(silent(snapshot, member)),
        (Rule::Pair(_), Site::Hub(_)) if code == Code::FN111 => Some(open_namespaces(snapshot, |_| true)),
        (Rule::Member(_), Site::Hub(_)) | (Rule::Pair(_) | Rule::Fleet(_) | Rule::Mcs(_), _) => None,
    }
}

fn silent(snapshot: &Snapshot, member: &Member) -> StepResult {
    hears(snapshot, member)
}

/// Returns what a check found if it is ok; empty if the title says all.
fn good(snapshot: &Snapshot, site: Site<'_>, code: Code) -> String {
    match (code, site) {
        (Code::FN112, Site::Member(member)) => {
            slice_maker(snapshot, member).map_or_else(String::new, |maker| format!("by {}", maker.name()))
        }
        _ => String::new(),
    }
}

fn row(code: Code, found: StepResult, good: impl FnOnce() -> String) -> CheckRow {
    let entry = code.entry();
    let remedy = match &found {
        Err(Stop::Broken(evidence)) => filled(entry.remedy, evidence),
        _ => entry.remedy.to_owned(),
    };
    let (result, detail) = match found {
        Ok(()) => (CheckResult::Ok, good()),
        Err(Stop::Skipped(why)) => (CheckResult::Skipped, why),
        Err(Stop::Waiting(why)) => (CheckResult::Warning, why),
        Err(Stop::Unknown(why)) => (CheckResult::Unknown, why),
        Err(Stop::Broken(evidence)) => {
            let result = match entry.class {
                Class::Fault => CheckResult::Error,
                Class::Notice => CheckResult::Warning,
                Class::NotKnown => CheckResult::Unknown,
            };
            (result, text(&evidence))
        }
    };
    let needs_hint = matches!(result, CheckResult::Warning | CheckResult::Error)
        || (entry.class == Class::NotKnown && result == CheckResult::Unknown);
    CheckRow { code, title: entry.title, result, detail, hint: if needs_hint { remedy } else { String::new() } }
}

#[cfg(test)]
mod tests;
