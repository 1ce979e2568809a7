//! Fault codes of the results of a pair. The first step that fails is the cause: address, Service, name.

use super::{By, Connectivity, Outcome, Outcomes, Pair, PairResult, Target, TargetResult};
use crate::codes::Code::{self, *};
use crate::explain::{finding_for, listed};
use crate::report::{Evidence, Finding, Verdict};
use fleetnet_types::ObjectName;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the results of all pairs, with the faults that they show. `outcomes` has the results of each importer.
#[must_use]
pub fn judge(pairs: &[Pair], outcomes: &BTreeMap<String, Outcomes>) -> Connectivity {
    let none = Outcomes::new();
    let of_importer = |pair: &Pair| pair.importer.as_ref().and_then(|importer| outcomes.get(importer)).unwrap_or(&none);
    let judged = pairs.iter().map(|pair| {
        let siblings = pairs.iter().filter(|other| {
            (&other.namespace, &other.name) == (&pair.namespace, &pair.name)
                && (other.api, &other.importer) == (pair.api, &pair.importer)
        });
        result(pair, &siblings.collect::<Vec<_>>(), of_importer(pair))
    });
    Connectivity::of(judged.collect())
}

/// Drops failures of endpoints that are gone since the targets were read: a pod that has ended is no fault of the
/// network.
pub fn drop_gone(outcomes: &mut Outcomes, newer: &[Pair], importer: &str) {
    let of_importer = || newer.iter().filter(|pair| pair.importer.as_deref() == Some(importer));
    for (target, outcome) in outcomes.iter_mut().filter(|(target, it)| target.by == By::Address && it.has_failed()) {
        let endpoint = (target.host.clone(), target.port);
        if !of_importer().any(|pair| pair.endpoints.contains(&endpoint)) {
            *outcome = Outcome::NotTested("the endpoint has ended in the meantime".to_owned());
        }
    }
}

fn result(pair: &Pair, siblings: &[&Pair], outcomes: &Outcomes) -> PairResult {
    let results: Vec<TargetResult> = pair.targets.iter().map(|target| target_result(target, outcomes)).collect();
    let findings = findings(pair, siblings, outcomes);
    let is_complete = pair.not_tested.is_empty() && results.iter().all(|it| it.outcome == Outcome::Connected);
    let verdict = match () {
        () if !findings.is_empty() => Verdict::Fault,
        () if is_complete => Verdict::Healthy,
        // Also a Service that does not connect while addresses of another exporter fail.
        () => Verdict::NotKnown,
    };
    PairResult {
        namespace: pair.namespace.clone(),
        name: pair.name.clone(),
        api: pair.api,
        exporter: pair.exporter.clone(),
        importer: pair.importer.clone(),
        results,
        left_out: pair.left_out.clone(),
        not_tested: pair.not_tested.clone(),
        findings,
        verdict,
    }
}

fn target_result(target: &Target, outcomes: &Outcomes) -> TargetResult {
    let outcome = outcomes.get(target).cloned();
    let outcome = outcome.unwrap_or_else(|| Outcome::NotTested("there is no result".to_owned()));
    let detail = match &outcome {
        Outcome::NotTested(why) => why.clone(),
        _ => String::new(),
    };
    let (host, address) = (target.host.clone(), target.address());
    TargetResult { by: target.by, host, port: target.port, address, outcome, detail }
}

fn findings(pair: &Pair, siblings: &[&Pair], outcomes: &Outcomes) -> Vec<Finding> {
    if let Some(overlap) = &pair.overlap {
        // Nobody knows whose pods answered.
        return vec![overlap.clone()];
    }
    let by = |by: By| tried(pair, outcomes, by);
    let addresses = by(By::Address);
    let with = |object: &Evidence, value: String| Evidence { value, ..object.clone() };
    let failures = [
        (FN704, &pair.objects.imported, Outcome::is_blocked as fn(&Outcome) -> bool),
        (FN708, &pair.objects.source, |outcome: &Outcome| *outcome == Outcome::Refused),
    ];
    let of_addresses = failures.into_iter().filter_map(|(code, object, is_failure)| {
        let failed: Vec<_> = addresses.iter().copied().filter(|(_, outcome)| is_failure(outcome)).collect();
        let value = format!("{} of {} addresses: {}", failed.len(), addresses.len(), shown(&failed));
        (!failed.is_empty()).then(|| fault(pair, code, &with(object, value)))
    });
    let found: Vec<Finding> = of_addresses.collect();
    if !found.is_empty() {
        return found;
    }
    // A Service leads to the endpoints of all exporters.
    let all_connect = |names: &BTreeSet<String>| {
        let of_port = siblings.iter().flat_map(|pair| tried(pair, outcomes, By::Address));
        let mut of_port = of_port.filter(|(target, _)| !target.port_names.is_disjoint(names)).peekable();
        of_port.peek().is_some() && of_port.all(|(_, outcome)| *outcome == Outcome::Connected)
    };
    let services = by(By::Service);
    let broken: Vec<_> =
        services.iter().copied().filter(|(it, outcome)| outcome.has_failed() && all_connect(&it.port_names)).collect();
    if !broken.is_empty() {
        let value = format!("{}, and all {} addresses connect", shown(&broken), addresses.len());
        return vec![fault(pair, FN709, &with(&pair.objects.service, value))];
    }
    let has_service = pair.targets.iter().any(|target| target.by == By::Service);
    let leads = |names: &BTreeSet<String>| {
        let mut of_port = services.iter().filter(|(target, _)| !target.port_names.is_disjoint(names));
        if has_service { of_port.any(|(_, it)| **it == Outcome::Connected) } else { all_connect(names) }
    };
    let names: Vec<_> =
        by(By::Name).into_iter().filter(|(it, outcome)| outcome.has_failed() && leads(&it.port_names)).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let other = if has_service { "the address of the Service connects" } else { "the addresses connect" };
    vec![fault(pair, FN710, &with(&pair.objects.service, format!("{}, and {other}", shown(&names))))]
}

/// Returns the targets of this kind that have an outcome.
fn tried<'a>(pair: &'a Pair, outcomes: &'a Outcomes, by: By) -> Vec<(&'a Target, &'a Outcome)> {
    let of_kind = pair.targets.iter().filter(|target| target.by == by);
    let tried = of_kind.filter_map(|target| Some((target, outcomes.get(target)?)));
    tried.filter(|(_, outcome)| !matches!(outcome, Outcome::NotTested(_))).collect()
}

/// Returns the first results as text, with the number of the others.
fn shown(results: &[(&Target, &Outcome)]) -> String {
    let texts: Vec<String> =
        results.iter().map(|(target, outcome)| format!("{} {}", target.address(), outcome.word())).collect();
    listed(texts.iter().map(String::as_str))
}

fn fault(pair: &Pair, code: Code, evidence: &Evidence) -> Finding {
    finding_for(code, evidence, &ObjectName::new(pair.namespace.as_str(), pair.name.as_str()))
}
