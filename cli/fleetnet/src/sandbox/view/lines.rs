//! View for people without a terminal: one line for each event with new information.

use super::requests;
use crate::limits::CLUSTERS_NAMED;
use crate::sandbox::event::HUB;
use crate::sandbox::event::{AgentState, Change, Ended, Event, Import, Latency, Writes};
use crate::sandbox::observe::export_state;
use chrono::{DateTime, Local};

/// Expected cost of a change, as text.
pub(super) const PRICE: &str = "a change costs 1 write + 2 per importer";

/// Returns the line with its time in front.
pub(super) fn at(at: DateTime<Local>, line: &str) -> String {
    format!("{} {line}", at.format("%H:%M:%S%.3f"))
}

/// Describes an event in words, on one or more lines. `None` for an event without new information.
pub(super) fn line(event: &Event) -> Option<String> {
    Some(match event {
        Event::Starting { members, servers, api, scenario } => {
            let scenario = scenario.map_or_else(String::new, |name| format!(", with the scenario {name}"));
            let members = plural(u64::from(*members), "member");
            format!("starting a hub and {members} on {servers}, with the API {api}{scenario}")
        }
        Event::Page { url } => format!("{PAGE} {url}"),
        Event::Running { clusters, agents, streams } => {
            let count = clusters.len();
            let streams = with_streams(clusters, streams);
            format!("{count} clusters and {agents} agents run; each member exports and imports; {PRICE}; {streams}")
        }
        Event::Kubeconfig { cluster, path } => format!("{cluster}: kubectl --kubeconfig {path}"),
        Event::Commands { commands } => {
            let lines = commands.iter().map(|command| format!("  {command}"));
            std::iter::once("in another shell:".to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
        }
        Event::Hub { reachable } => {
            format!("the hub is {}", if *reachable { "reachable again" } else { "unreachable" })
        }
        Event::Lease { agent, held: false } => format!("{agent} waits for its Lease"),
        Event::Lease { agent, held: true } => format!("{agent} holds its Lease"),
        Event::Paused { paused } => format!("changes {}", if *paused { "pause" } else { "go on" }),
        Event::Agent { agent, state, why } => {
            let state = match state {
                AgentState::Killed => "was killed",
                AgentState::Restarted => "was restarted",
                AgentState::Failed => "ended by itself",
            };
            format!("{agent} {state}{}", why.as_ref().map_or_else(String::new, |why| format!(": {why}")))
        }
        Event::Export { cluster, service, export } => format!("export {service} of {cluster} {}", export_state(export)),
        Event::Import { cluster, service, import } => format!("import {service} in {cluster} {}", imported(import)),
        Event::Gone { what, cluster, service } => format!("{what} {service} of {cluster} was deleted"),
        Event::Arrival { .. } => return None,
        Event::Change(change) => changed(change),
        Event::Trouble { change, why } => format!("change {change} was not made: {why}"),
        Event::Step { scenario, text } => format!("[{scenario}] {text}"),
        Event::Latency { origin, destination, latency } => {
            let p99 = latency.p99_milliseconds.map_or_else(String::new, |p99| format!("p99 {p99:.1} ms, "));
            format!(
                "latency {}: p50 {:.1} ms, {p99}max {:.1} ms of {}",
                pair(origin, destination),
                latency.p50_milliseconds,
                latency.max_milliseconds,
                plural(u64::try_from(latency.samples).unwrap_or(u64::MAX), "change"),
            )
        }
        Event::SliceStream { with_stream, without_stream } => {
            let p50 = |latency: &Option<Latency>| latency.map(|it| it.p50_milliseconds);
            format!("slice stream: p50 {}", by_stream(p50(with_stream), p50(without_stream)))
        }
        Event::Cost { changes, lost, writes, details } => {
            let lost = if *lost > 0 { format!(", {lost} did not arrive and are not counted") } else { String::new() };
            let head = format!("{} cost {}{lost}", plural(u64::from(*changes), "change"), cost(writes));
            std::iter::once(head).chain(details.iter().map(|line| format!("  {line}"))).collect::<Vec<_>>().join("\n")
        }
        Event::Traffic(traffic) => requests::traffic(traffic),
        Event::Requests { requests_per_second, lost_so_far, counts } => {
            requests::second(*requests_per_second, *lost_so_far, counts)
        }
        Event::Rollout { cluster, passed, counts } => requests::rollout(cluster, *passed, counts),
        Event::Verdict { passed, wrong, scenario, api, .. } => verdict(*passed, wrong, *scenario, api),
        Event::Ended(ended) => end(ended),
    })
}

/// Says what the address after it is.
pub(super) const PAGE: &str = "the same in a browser:";

/// Describes an event in few words, for a terminal with few columns. Returns the full description if there is no
/// shorter description.
pub(super) fn short(event: &Event) -> Option<String> {
    let Event::Change(change) = event else { return line(event) };
    let Change { change: number, cluster, slice, arrived, importers, .. } = change;
    let came = match change.slowest_milliseconds {
        _ if *importers == 0 => "imported by nobody".to_owned(),
        Some(milliseconds) => format!("{milliseconds:.1} ms"),
        None => format!("in {arrived} of {importers} importers only"),
    };
    let cost = change.writes.as_ref().map_or_else(String::new, |writes| format!(", {}", plural(writes.total, "write")));
    Some(format!("change {number}: {cluster}/{slice} {came}{cost}"))
}

/// Describes a pair of clusters: the exporting and the importing cluster.
pub(super) fn pair(origin: &str, destination: &str) -> String {
    if origin == destination { format!("{origin} -> itself") } else { format!("{origin} -> {destination}") }
}

/// Describes an import.
pub(super) fn imported(import: &Import) -> String {
    let from: Vec<&str> = import.from.iter().map(String::as_str).collect();
    imported_from(import, &from.join(", "))
}

/// Describes an import. `from` describes its exporting clusters.
pub(super) fn imported_from(import: &Import, from: &str) -> String {
    if import.slices == 0 {
        let valid = if import.valid { "valid" } else { "not valid yet" };
        return format!("is {valid} and has no slices");
    }
    let [slices, endpoints] = [(import.slices, "slice"), (import.endpoints, "endpoint")]
        .map(|(count, word)| plural(u64::try_from(count).unwrap_or(u64::MAX), word));
    format!("has {slices} with {endpoints}{} from {from}", conditions(import))
}

/// Describes the conditions of imported endpoints; empty if all are ready.
fn conditions(import: &Import) -> String {
    let Import { endpoints, draining, unready, .. } = *import;
    if draining + unready == 0 {
        return String::new();
    }
    let ready = endpoints.saturating_sub(draining + unready);
    let others = [(draining, "draining"), (unready, "not ready")].into_iter().filter(|(count, _)| *count > 0);
    let others: String = others.map(|(count, word)| format!(", {count} {word}")).collect();
    format!(" ({ready} ready{others})")
}

pub(super) fn changed(change: &Change) -> String {
    let Change { change: number, cluster, slice, address, arrived, importers, .. } = change;
    let came = match change.slowest_milliseconds {
        _ if *importers == 0 => "imported by nobody".to_owned(),
        Some(milliseconds) => {
            let importers = plural(u64::try_from(*importers).unwrap_or(u64::MAX), "importer");
            let by_stream = match (change.with_stream_milliseconds, change.without_stream_milliseconds) {
                (with @ Some(_), without @ Some(_)) => format!(" ({})", by_stream(with, without)),
                _ => String::new(),
            };
            format!("in all {importers} after {milliseconds:.1} ms{by_stream}")
        }
        None => format!("in {arrived} of {importers} importers only"),
    };
    let cost = change.writes.as_ref().map_or_else(String::new, |writes| format!(", for {}", cost(writes)));
    format!("change {number}: {address} of {cluster} ({slice}) is {came}{cost}")
}

/// Says which members have a slice stream. `clusters` begins with the hub.
fn with_streams(clusters: &[String], streams: &[String]) -> String {
    let without: Vec<&str> = clusters.iter().skip(1).filter(|it| !streams.contains(it)).map(String::as_str).collect();
    let except = if without.is_empty() { String::new() } else { format!(" except {}", without.join(", ")) };
    format!("each{except} has a slice stream")
}

/// Describes latencies with a slice stream and without one.
fn by_stream(with: Option<f64>, without: Option<f64>) -> String {
    let parts = [("with", with), ("without", without)].into_iter();
    let parts = parts.filter_map(|(word, latency)| Some(format!("{word} stream {:.1} ms", latency?)));
    parts.collect::<Vec<_>>().join(", ")
}

pub(super) fn verdict(passed: bool, wrong: &[String], scenario: Option<&str>, api: &str) -> String {
    let scenario = scenario.map_or_else(String::new, |name| format!("scenario {name}, "));
    let run = format!("({scenario}API {api})");
    if passed {
        return format!(
            "passed: exports, imports, derived Services, imported slices, and the hub are exactly as they should be {run}"
        );
    }
    let lines = wrong.iter().map(|line| format!("  {line}"));
    std::iter::once(format!("FAILED {run}:")).chain(lines).collect::<Vec<_>>().join("\n")
}

/// Describes the end of a run that a user has stopped.
pub(super) fn end(ended: &Ended) -> String {
    let Ended { seconds, compared, differences, clusters, kubeconfigs, interrupted } = ended;
    let state = match (compared, differences.len(), interrupted) {
        (false, ..) => "",
        (true, 0, _) => ": exports and imports were as they should be",
        (true, _, None) => ": exports and imports were not as the sandbox made them",
        (true, _, Some(_)) => ": exports and imports were not yet as the sandbox made them",
    };
    let interrupted = interrupted
        .map_or_else(String::new, |name| format!("; the scenario {name} was interrupted, so it has no verdict"));
    let counts = [(clusters.len(), "cluster"), (*kubeconfigs, "kubeconfig")];
    let removed: Vec<String> =
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| many(count, word)).collect();
    let removed = if removed.is_empty() { String::new() } else { format!("; removed {}", removed.join(" and ")) };
    let head = format!("ended after {seconds} s{state}{interrupted}{removed}");
    // Differences of a scenario that has not ended are no faults.
    let listed = differences.iter().filter(|_| ended.interrupted.is_none());
    std::iter::once(head).chain(listed.map(|line| format!("  {line}"))).collect::<Vec<_>>().join("\n")
}

fn cost(writes: &Writes) -> String {
    let parts: Vec<(String, u64)> =
        writes.by_cluster.iter().map(|(cluster, times)| (cluster.clone(), *times)).collect();
    let parts = by_cluster(&parts, |times| times.to_string());
    let parts = if parts.is_empty() { String::new() } else { format!(" ({parts})") };
    format!("{}{parts}", plural(writes.total, "write"))
}

/// Lists numbers by cluster. In a large fleet, all members share one part.
pub(super) fn by_cluster<T: Copy + std::iter::Sum<T>>(counts: &[(String, T)], show: impl Fn(T) -> String) -> String {
    let (hub, mut members): (Vec<_>, Vec<_>) = counts.iter().partition(|(cluster, _)| cluster == HUB);
    let mut parts: Vec<String> = hub.iter().map(|(cluster, count)| format!("{cluster} {}", show(*count))).collect();
    if members.len() > CLUSTERS_NAMED {
        let sum = members.iter().map(|(_, count)| *count).sum();
        parts.push(format!("{} members {}", members.len(), show(sum)));
    } else {
        members.sort_by_key(|(cluster, _)| natural(cluster));
        parts.extend(members.into_iter().map(|(cluster, count)| format!("{cluster} {}", show(*count))));
    }
    parts.join(", ")
}

/// Sort key of a cluster's name, by which `member-2` is before `member-10`.
pub(super) fn natural(name: &str) -> (String, u64) {
    let text = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    (text.to_owned(), name[text.len()..].parse().unwrap_or_default())
}

fn many(count: usize, word: &str) -> String {
    plural(u64::try_from(count).unwrap_or(u64::MAX), word)
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
        let import = Import { valid: true, from: from.clone(), slices: 4, endpoints: 1, draining: 0, unready: 0 };
        check(
            &Event::Import { cluster: cluster.clone(), service: service.clone(), import },
            "import work/app in member-2 has 4 slices with 1 endpoint from member-1, member-2",
        );
        let import = Import { valid: true, from, slices: 4, endpoints: 12, draining: 6, unready: 1 };
        check(
            &Event::Import { cluster: cluster.clone(), service: service.clone(), import },
            "import work/app in member-2 has 4 slices with 12 endpoints (5 ready, 6 draining, 1 not ready) from member-1, member-2",
        );
        let import = Import::default();
        check(
            &Event::Import { cluster, service, import },
            "import work/app in member-2 is not valid yet and has no slices",
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
            with_stream_milliseconds: None,
            without_stream_milliseconds: Some(4.26),
            writes: Some(Writes { total: 3, by_cluster }),
        };
        check(
            &Event::Change(change.clone()),
            "change 3: 10.1.0.103 of member-1 (app-2) is in all 2 importers after 4.3 ms, for 3 writes (hub 2, member-2 1)",
        );
        assert_eq!(short(&Event::Change(change.clone())).as_deref(), Some("change 3: member-1/app-2 4.3 ms, 3 writes"));
        change.with_stream_milliseconds = Some(2.0);
        check(
            &Event::Change(change.clone()),
            "change 3: 10.1.0.103 of member-1 (app-2) is in all 2 importers after 4.3 ms (with stream 2.0 ms, without stream 4.3 ms), for 3 writes (hub 2, member-2 1)",
        );
        change = Change { arrived: 1, slowest_milliseconds: None, writes: None, ..change };
        check(&Event::Change(change.clone()), "change 3: 10.1.0.103 of member-1 (app-2) is in 1 of 2 importers only");
        assert_eq!(
            short(&Event::Change(change.clone())).as_deref(),
            Some("change 3: member-1/app-2 in 1 of 2 importers only")
        );
        let (arrived, importers, writes) = (0, 0, Some(Writes::default()));
        change = Change { arrived, importers, writes, ..change };
        check(&Event::Change(change), "change 3: 10.1.0.103 of member-1 (app-2) is imported by nobody, for 0 writes");
    }

    #[test]
    fn the_end_is_printed_in_full() {
        let mut latency = Latency { samples: 1, p50_milliseconds: 4.0, p99_milliseconds: None, max_milliseconds: 9.06 };
        let (origin, destination) = ("member-1".to_owned(), "member-2".to_owned());
        check(
            &Event::Latency { origin: origin.clone(), destination, latency },
            "latency member-1 -> member-2: p50 4.0 ms, max 9.1 ms of 1 change",
        );
        latency = Latency { samples: 100, p99_milliseconds: Some(8.0), ..latency };
        check(
            &Event::Latency { origin: origin.clone(), destination: origin, latency },
            "latency member-1 -> itself: p50 4.0 ms, p99 8.0 ms, max 9.1 ms of 100 changes",
        );
        check(
            &Event::SliceStream { with_stream: Some(latency), without_stream: None },
            "slice stream: p50 with stream 4.0 ms",
        );
        let writes = Writes { total: 5, by_cluster: BTreeMap::from([("hub".to_owned(), 5)]) };
        check(
            &Event::Cost { changes: 1, lost: 2, writes, details: Vec::new() },
            "1 change cost 5 writes (hub 5), 2 did not arrive and are not counted",
        );
        check(
            &Event::Verdict {
                passed: false,
                imported: false,
                wrong: vec!["one".to_owned(), "two".to_owned()],
                scenario: Some("hub-down"),
                api: "fleet",
            },
            "FAILED (scenario hub-down, API fleet):\n  one\n  two",
        );
        let mut ended = Ended { seconds: 7, ..Ended::default() };
        check(&Event::Ended(ended.clone()), "ended after 7 s");
        ended.compared = true;
        ended.clusters = vec!["hub".to_owned(), "member-1".to_owned()];
        check(
            &Event::Ended(ended.clone()),
            "ended after 7 s: exports and imports were as they should be; removed 2 clusters",
        );
        (ended.kubeconfigs, ended.differences) = (2, vec!["one".to_owned()]);
        check(
            &Event::Ended(ended.clone()),
            "ended after 7 s: exports and imports were not as the sandbox made them; removed 2 clusters and 2 kubeconfigs\n  one",
        );
        ended = Ended { interrupted: Some("hub-down"), compared: true, clusters: Vec::new(), kubeconfigs: 0, ..ended };
        check(
            &Event::Ended(ended),
            "ended after 7 s: exports and imports were not yet as the sandbox made them; the scenario hub-down was interrupted, so it has no verdict",
        );
    }

    #[test]
    fn members_are_in_natural_order_and_share_a_part_in_a_large_fleet() {
        let mut names = vec!["member-10", "hub", "member-2", "member-1"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["hub", "member-1", "member-2", "member-10"]);
        let counts = |members: u64| -> Vec<(String, u64)> {
            std::iter::once(("hub".to_owned(), 4)).chain((1..=members).map(|it| (format!("member-{it}"), 1))).collect()
        };
        assert_eq!(by_cluster(&counts(2), |it| it.to_string()), "hub 4, member-1 1, member-2 1");
        assert_eq!(by_cluster(&counts(20), |it| it.to_string()), "hub 4, 20 members 20");
    }

    #[test]
    fn members_with_a_slice_stream_are_named_by_those_without() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let clusters = names(&["hub", "member-1", "member-2"]);
        assert_eq!(with_streams(&clusters, &names(&["member-1"])), "each except member-2 has a slice stream");
        assert_eq!(with_streams(&clusters[..2], &names(&["member-1"])), "each has a slice stream");
    }

    #[test]
    fn what_is_down_or_waits_is_named() {
        check(&Event::Hub { reachable: false }, "the hub is unreachable");
        check(&Event::Lease { agent: "hub-agent".to_owned(), held: false }, "hub-agent waits for its Lease");
        check(
            &Event::Commands { commands: vec!["export KUBECONFIG=a:b".to_owned()] },
            "in another shell:\n  export KUBECONFIG=a:b",
        );
    }
}
