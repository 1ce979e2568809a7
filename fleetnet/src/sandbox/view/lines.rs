//! For people without a terminal: a line for each event that says more than those before it.

use crate::sandbox::event::{AgentState, Change, Event, Import, Writes};
use crate::sandbox::observe::told;
use chrono::{DateTime, Local};

/// A line with its time.
pub(super) fn at(at: DateTime<Local>, line: &str) -> String {
    format!("{} {line}", at.format("%H:%M:%S%.3f"))
}

/// The event in words; it may be several lines.
pub(super) fn line(event: &Event) -> Option<String> {
    Some(match event {
        Event::Starting { members, servers, scenario } => {
            let scenario = scenario.map_or_else(String::new, |name| format!(", to play {name}"));
            format!("starting a hub and {} on {servers}{scenario}", plural(u64::from(*members), "member"))
        }
        Event::Running { clusters, agents } => format!("{} clusters and {agents} agents run", clusters.len()),
        Event::Kubeconfig { cluster, path } => format!("{cluster}: kubectl --kubeconfig {}", path.display()),
        Event::Agent { agent, state, why } => {
            let state = match state {
                AgentState::Killed => "was killed",
                AgentState::Restarted => "was started anew",
                AgentState::Failed => "ended by itself",
            };
            format!("{agent} {state}{}", why.as_ref().map_or_else(String::new, |why| format!(": {why}")))
        }
        Event::Export { cluster, service, export } => format!("export {service} of {cluster} {}", told(export)),
        Event::Import { cluster, service, import } => format!("import {service} in {cluster} {}", imported(import)),
        Event::Gone { what, cluster, service } => format!("{what} {service} of {cluster} was deleted"),
        Event::Arrival { .. } => return None,
        Event::Change(change) => changed(change),
        Event::Trouble { why } => format!("no change was made: {why}"),
        Event::Step { scenario, text } => format!("[{scenario}] {text}"),
        Event::Latency { origin, destination, latency } => format!(
            "latency {origin} -> {destination}: p50 {:.1} ms, p99 {:.1} ms of {}",
            latency.p50_milliseconds,
            latency.p99_milliseconds,
            plural(u64::try_from(latency.samples).unwrap_or(u64::MAX), "change"),
        ),
        Event::Cost { changes, writes, details } => {
            let head = format!("{} cost {}", plural(u64::from(*changes), "change"), cost(writes));
            std::iter::once(head).chain(details.iter().map(|line| format!("  {line}"))).collect::<Vec<_>>().join("\n")
        }
        Event::Verdict { passed, wrong, .. } => verdict(*passed, wrong),
    })
}

/// What there is of an import.
pub(super) fn imported(import: &Import) -> String {
    if import.slices == 0 {
        let valid = if import.valid { "valid" } else { "not valid yet" };
        return format!("is {valid} and has nothing");
    }
    let from: Vec<&str> = import.from.iter().map(String::as_str).collect();
    let [slices, endpoints] = [(import.slices, "slice"), (import.endpoints, "endpoint")]
        .map(|(count, word)| plural(u64::try_from(count).unwrap_or(u64::MAX), word));
    format!("has {slices} with {endpoints} from {}", from.join(", "))
}

/// A change and what it came to.
pub(super) fn changed(change: &Change) -> String {
    let Change { change: number, cluster, slice, address, arrived, importers, .. } = change;
    let came = match change.slowest_milliseconds {
        _ if *importers == 0 => "imported by nobody".to_owned(),
        Some(milliseconds) => {
            let importers = plural(u64::try_from(*importers).unwrap_or(u64::MAX), "importer");
            format!("in all {importers} after {milliseconds:.1} ms")
        }
        None => format!("in {arrived} of {importers} importers only"),
    };
    let cost = change.writes.as_ref().map_or_else(String::new, |writes| format!(", for {}", cost(writes)));
    format!("change {number}: {address} of {cluster} ({slice}) is {came}{cost}")
}

/// How it ended.
pub(super) fn verdict(passed: bool, wrong: &[String]) -> String {
    if passed {
        return "passed: all that is exported is imported, and nothing else".to_owned();
    }
    let lines = wrong.iter().map(|line| format!("  {line}"));
    std::iter::once("FAILED:".to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
}

fn cost(writes: &Writes) -> String {
    let parts: Vec<String> = writes.by_cluster.iter().map(|(cluster, times)| format!("{cluster} {times}")).collect();
    format!("{} ({})", plural(writes.total, "write"), parts.join(", "))
}

fn plural(count: u64, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::event::{Export, Latency};
    use std::collections::{BTreeMap, BTreeSet};

    fn check(event: &Event, expected: &str) {
        assert_eq!(line(event).as_deref(), Some(expected));
    }

    #[test]
    fn exports_and_imports_tell_who_and_what() {
        let export = Export { valid: Some(true), conflict: Some(true) };
        let (cluster, service) = ("member-2".to_owned(), "work/app".to_owned());
        check(
            &Event::Export { cluster: cluster.clone(), service: service.clone(), export },
            "export work/app of member-2 is valid, in conflict with another export",
        );
        let from = BTreeSet::from(["member-1".to_owned(), "member-2".to_owned()]);
        let import = Import { valid: true, from, slices: 4, endpoints: 1 };
        check(
            &Event::Import { cluster: cluster.clone(), service: service.clone(), import },
            "import work/app in member-2 has 4 slices with 1 endpoint from member-1, member-2",
        );
        let import = Import::default();
        check(
            &Event::Import { cluster, service, import },
            "import work/app in member-2 is not valid yet and has nothing",
        );
    }

    #[test]
    fn a_change_tells_how_long_it_took_and_what_it_cost() {
        let by_cluster = BTreeMap::from([("hub".to_owned(), 2), ("member-2".to_owned(), 1)]);
        let mut change = Change {
            change: 3,
            cluster: "member-1".to_owned(),
            slice: "app-2".to_owned(),
            address: "10.1.0.103".to_owned(),
            arrived: 2,
            importers: 2,
            slowest_milliseconds: Some(4.26),
            writes: Some(Writes { total: 3, by_cluster }),
        };
        check(
            &Event::Change(change.clone()),
            "change 3: 10.1.0.103 of member-1 (app-2) is in all 2 importers after 4.3 ms, for 3 writes (hub 2, member-2 1)",
        );
        change = Change { arrived: 1, slowest_milliseconds: None, writes: None, ..change };
        check(&Event::Change(change), "change 3: 10.1.0.103 of member-1 (app-2) is in 1 of 2 importers only");
    }

    #[test]
    fn the_end_is_told_whole() {
        let latency = Latency { samples: 1, p50_milliseconds: 4.0, p99_milliseconds: 9.06 };
        let (origin, destination) = ("member-1".to_owned(), "member-2".to_owned());
        check(
            &Event::Latency { origin, destination, latency },
            "latency member-1 -> member-2: p50 4.0 ms, p99 9.1 ms of 1 change",
        );
        check(
            &Event::Verdict { passed: false, imported: false, wrong: vec!["one".to_owned(), "two".to_owned()] },
            "FAILED:\n  one\n  two",
        );
    }
}
