//! Explain: the way of a Service from each exporter to each importer, step by step.
//!
//! | file | steps |
//! |---|---|
//! | `access.rs` … `result.rs` | one function for each code, in the file of its group or in `mcs.rs` |
//! | `rule.rs`, `step_result.rs` | rule of a step, and its result |
//! | `installed.rs` | agent of a cluster: its namespace, Deployment, pods and Leases |
//! | `heartbeat.rs` | heartbeats and features of agents |
//! | `slice_maker.rs` | which program makes the EndpointSlices of a member |
//! | `source.rs` | endpoints in the exporter, before an agent has a part in them |
//! | `mcs.rs` | objects and steps of the standard API only |
//! | `pairs.rs` | the pairs of exporters and importers, by each API |
//! | `walk.rs` | objects of one pair, as the steps need them |
//! | `service_export.rs`, `mcs/objects.rs` | objects of an export, and of the standard API |
//! | `lookup.rs`, `deletion.rs`, `age.rs` | objects in listings, their deletion and their age |
//! | `rights.rs` | rights of members in a namespace of the hub |
//! | `reach.rs` | addresses and ports that clients reach |
//! | `evidence.rs`, `text.rs` | evidence of a fault, with the command that shows it again, and its texts |
//!
//! Invariants:
//!
//! - The steps run in the order of their codes. The first broken step is the cause.
//! - Something that could not be read is unknown, never broken.
//! - A step is broken only if it explains a difference of endpoints, an unwanted condition or a refused request.

mod access;
mod age;
mod claim;
mod deletion;
mod distribution;
mod evidence;
mod export;
mod heartbeat;
mod import;
mod installed;
mod lookup;
mod mcs;
mod membership;
mod pairs;
mod reach;
mod result;
mod rights;
mod rule;
mod service_export;
mod slice_maker;
mod source;
mod step_result;
mod text;
mod walk;

pub(crate) use access::{definitions_are_current, open_namespaces};
pub(crate) use age::age;
pub(crate) use evidence::{annotation, changed, created, quoted, written};
pub(crate) use export::export_of;
pub(crate) use heartbeat::{clock_of, clock_offset, has_foreign_owner, member_agent_of, renewed};
pub(crate) use installed::{
    agent, arguments, elsewhere, holder, is_elsewhere, is_expired, is_held_by_member_agent, is_of_go_agents,
    ready as ready_replicas,
};
pub(crate) use lookup::{
    exporters, imports, is_headless, is_imported, is_ready, is_service, member_of, named, need, ready_endpoints,
};
pub(crate) use mcs::objects::{imports_by_mcs_api, is_ours, is_requested};
pub(crate) use membership::{has_objects, hears};
pub use pairs::Filter;
pub(crate) use pairs::{in_use_by, of as pairs_of};
pub(crate) use reach::{
    distributed as distributed_reach, of_export as of_slice_export, of_service, of_slice, ready as ready_reach,
};
pub(crate) use result::addresses_are_of_one_cluster;
pub(crate) use rights::{are_rights_enforced, is_allowed};
pub(crate) use rule::Rule;
pub(crate) use service_export::{is_by, of_export, outcome};
pub(crate) use slice_maker::slice_maker;
pub(crate) use step_result::{Site, StepResult, Stop};
pub(crate) use text::listed;
pub(crate) use walk::{Ends, Walk};

use crate::codes::{Class, Code};
use crate::report::{API_VERSION, Api, Evidence, Explanation, Finding, Outcome, Pair, Step, Verdict};
use crate::snapshot::{Member, Snapshot};
use fleetnet_core::names::cluster_of;
use fleetnet_types::ObjectName;
use step_result::worst;

/// Returns the rules of all codes, in the order of the codes.
pub(crate) fn rules() -> impl Iterator<Item = (Code, Rule)> {
    [access::RULES, membership::RULES, export::RULES, claim::RULES, distribution::RULES, import::RULES, result::RULES]
        .into_iter()
        .flatten()
        .copied()
}

/// Explains why the endpoints of a Service do or do not arrive in its importers.
#[must_use]
pub fn explain(snapshot: &Snapshot, service: &ObjectName, filter: &Filter) -> Explanation {
    let ends = pairs::of(snapshot, service, filter);
    let not_known = pairs::not_known(snapshot, &ends, filter);
    let mut notices: Vec<Finding> = Vec::new();
    let pairs: Vec<Pair> = ends
        .iter()
        .map(|ends| {
            let walk = Walk::new(snapshot, service, ends);
            let (pair, of_pair) = pair(&walk);
            for notice in of_pair {
                if !notices.contains(&notice) {
                    notices.push(notice);
                }
            }
            pair
        })
        .collect();
    let of_others = if not_known.is_empty() { Verdict::Healthy } else { Verdict::NotKnown };
    let verdict = pairs.iter().map(|pair| pair.verdict).fold(of_others, Verdict::max);
    Explanation {
        api_version: API_VERSION,
        kind: "Explanation",
        namespace: service.namespace.to_string(),
        name: service.name.to_string(),
        pairs,
        notices,
        verdict,
        not_known,
    }
}

/// Walks one pair. Returns it with the notices of its steps.
fn pair(walk: &Walk<'_>) -> (Pair, Vec<Finding>) {
    let (mut steps, mut notices, mut cause) = (Vec::new(), Vec::new(), None);
    let mut is_unknown = false;
    for (code, rule) in rules() {
        let found = run(walk, rule);
        let has_fault = cause.as_ref().is_some_and(is_fault);
        if let Err(Stop::Broken(evidence)) = &found {
            let finding = finding_for(code, evidence, walk.service);
            if code.entry().is_notice() {
                notices.push(finding);
            } else if !has_fault {
                is_unknown |= !is_fault(&finding);
                cause = Some(finding);
            }
        }
        is_unknown |= !has_fault && matches!(found, Err(Stop::Unknown(_)));
        steps.push(step(code, found));
    }
    let has_fault = cause.as_ref().is_some_and(is_fault);
    let verdict = match is_unknown {
        _ if has_fault => Verdict::Fault,
        true => Verdict::NotKnown,
        false => Verdict::Healthy,
    };
    let [exporter, importer] = [walk.exporter, walk.importer].map(|member| member.map(|member| member.id.clone()));
    let earlier_unknown = is_unknown && has_fault;
    (Pair { api: walk.api, exporter, importer, steps, cause, earlier_unknown, verdict }, notices)
}

fn is_fault(finding: &Finding) -> bool {
    finding.code.entry().class == Class::Fault
}

/// Runs a rule for all clusters of the pair that it applies to.
fn run(walk: &Walk<'_>, rule: Rule) -> StepResult {
    match rule {
        Rule::Pair(rule) => rule(walk),
        Rule::Fleet(rule) => of_api(walk, Api::Fleet, rule),
        Rule::Mcs(rule) => of_api(walk, Api::Mcs, rule),
        Rule::Cluster(rule) => {
            let members = walk.members().map(Site::Member);
            worst(std::iter::once(Site::Hub(&walk.snapshot.hub)).chain(members).map(|site| rule(walk.snapshot, site)))
        }
        Rule::Member(rule) => worst(walk.members().map(|member| rule(walk.snapshot, member))),
    }
}

/// True if the step of a code is broken.
pub(crate) fn is_broken(walk: &Walk<'_>, code: Code) -> bool {
    rules().any(|(own, rule)| own == code && matches!(run(walk, rule), Err(Stop::Broken(_))))
}

/// Runs a rule if the pair is one of its API.
fn of_api(walk: &Walk<'_>, api: Api, rule: fn(&Walk<'_>) -> StepResult) -> StepResult {
    if walk.api == api { rule(walk) } else { Err(Stop::Skipped(format!("only for {}", api.group()))) }
}

/// True if the namespace of the member in the hub is terminating.
pub(crate) fn is_terminating(snapshot: &Snapshot, member: &Member) -> bool {
    matches!(membership::namespace_stays(snapshot, member), Err(Stop::Broken(_)))
}

/// Returns the fault or notice of a code, with its texts.
pub(crate) fn finding(code: Code, evidence: &Evidence) -> Finding {
    let entry = code.entry();
    Finding {
        code,
        title: entry.title,
        reasons: entry.reasons.iter().map(|reason| reason.as_str()).collect(),
        evidence: evidence.clone(),
        remedy: filled(evidence.remedy.as_deref().unwrap_or(entry.remedy), evidence),
    }
}

/// Returns the fault or notice of a code about a Service, whose name the remedy has.
pub(crate) fn finding_for(code: Code, evidence: &Evidence, service: &ObjectName) -> Finding {
    let mut finding = finding(code, evidence);
    for (placeholder, name) in [("<namespace>", &service.namespace), ("<name>", &service.name)] {
        finding.remedy = finding.remedy.replace(placeholder, name);
    }
    finding
}

/// Returns a remedy with the names that the evidence has in the place of its placeholders.
pub(crate) fn filled(remedy: &str, evidence: &Evidence) -> String {
    let names = [evidence.namespace.as_str(), evidence.name.as_str()];
    let by_namespace = names.into_iter().find_map(cluster_of);
    let member = by_namespace.map_or_else(|| evidence.cluster.clone(), |id| id.to_string());
    if member == "hub" { remedy.to_owned() } else { remedy.replace("<member>", &member) }
}

fn step(code: Code, found: StepResult) -> Step {
    let (outcome, detail) = match found {
        Ok(()) => (Outcome::Ok, String::new()),
        Err(Stop::Broken(evidence)) => (Outcome::Broken, text(&evidence)),
        Err(Stop::Waiting(why)) => (Outcome::Waiting, why),
        Err(Stop::Skipped(why)) => (Outcome::Skipped, why),
        Err(Stop::Unknown(why)) => (Outcome::Unknown, why),
    };
    Step { code, title: code.entry().title, outcome, detail }
}

/// Returns the evidence on one line: cluster, object, field and value.
pub fn text(evidence: &Evidence) -> String {
    let Evidence { cluster, kind, namespace, name, field, value, .. } = evidence;
    let slash = if namespace.is_empty() || name.is_empty() { "" } else { "/" };
    let colon = if field.is_empty() { "" } else { " " };
    format!("{cluster}: {kind} {namespace}{slash}{name}{colon}{field}: {value}")
}

#[cfg(test)]
mod cause_tests;
#[cfg(test)]
mod endpoint_tests;
#[cfg(test)]
mod tests;
