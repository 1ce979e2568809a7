//! Tests of pictures of small fleets.

use super::*;
use crate::sandbox::event::{AgentState, Change, Ended, Event, Import, Writes};
use chrono::{TimeDelta, TimeZone as _};
use std::collections::BTreeSet;

fn time() -> DateTime<Local> {
    Local.with_ymd_and_hms(2026, 3, 1, 10, 0, 0).unwrap()
}

fn fleet(members: usize) -> State {
    let mut state = State::default();
    let clusters: Vec<String> = (1..=members).map(|number| format!("member-{number}")).collect();
    state.take(time(), Event::Starting { members: 2, servers: "memkube", api: "fleet", scenario: None });
    let all = std::iter::once("hub".to_owned()).chain(clusters.iter().cloned()).collect();
    state.take(time(), Event::Running { clusters: all, agents: members + 1, streams: Vec::new() });
    for cluster in &clusters {
        let service = "work/app".to_owned();
        let export = Export { valid: Some(true), conflict: Some(false) };
        state.take(time(), Event::Export { cluster: cluster.clone(), service: service.clone(), export });
        let from = BTreeSet::from_iter(clusters.iter().cloned());
        let import = Import { valid: true, from, slices: 2, endpoints: 6, draining: 0, unready: 0 };
        state.take(time(), Event::Import { cluster: cluster.clone(), service, import });
        for destination in &clusters {
            let (origin, destination) = (cluster.clone(), destination.clone());
            state
                .take(time(), Event::Arrival { change: 1, origin, destination, milliseconds: 4.0, slice_stream: None });
        }
    }
    state
}

fn change(number: u32) -> Event {
    Event::Change(Change {
        change: number,
        cluster: "member-1".to_owned(),
        slice: "app-1".to_owned(),
        address: "10.1.0.9".to_owned(),
        arrived: 2,
        importers: 2,
        slowest_milliseconds: Some(4.0),
        with_stream_milliseconds: None,
        without_stream_milliseconds: None,
        writes: Some(Writes {
            total: 5,
            by_cluster: BTreeMap::from([("hub".to_owned(), 3), ("member-1".to_owned(), 2)]),
        }),
    })
}

fn verdict(passed: bool, wrong: &[&str]) -> Event {
    let wrong = wrong.iter().map(|line| (*line).to_owned()).collect();
    Event::Verdict { passed, imported: passed, wrong, scenario: None, api: "fleet" }
}

fn drawn(state: &State, columns: usize, rows: usize) -> Vec<String> {
    draw(state, time() + TimeDelta::seconds(65), Size { columns, rows }, Colours::Without)
}

#[test]
fn a_fleet_of_two_fits_a_small_terminal() {
    let mut state = fleet(2);
    state.take(time(), change(1));
    assert_eq!(
        drawn(&state, 80, 24),
        [
            "fleetnet sandbox   01:05   3 clusters, 3 agents   API fleet   Ctrl-C ends it",
            "",
            "FLEET",
            "hub [agent runs] +--- member-1 [agent runs]",
            "                 +--- member-2 [agent runs]",
            "",
            "EXPORTS",
            "work/app of member-1, member-2 is valid, without conflict",
            "",
            "IMPORTS",
            "work/app in member-1, member-2 has 2 slices with 6 endpoints from member-1, mem…",
            "",
            "LATENCY                 p50 ms   max ms  changes   p99 ms",
            "member-1 -> member-2       4.0      4.0        1        -",
            "member-2 -> member-1       4.0      4.0        1        -",
            "member-1 -> itself         4.0      4.0        1        -",
            "member-2 -> itself         4.0      4.0        1        -",
            "",
            "WHAT HAPPENS   5.0 writes for a change (1 + 2 per importer; hub 3.0, member-1 2…",
            "10:00:00 change 1: member-1/app-1 4.0 ms, 5 writes",
            "",
        ]
    );
}

/// Returns the state of a fleet with lines for every part of the picture. The newest change has number 90.
fn full(members: usize) -> State {
    let mut state = fleet(members);
    let clusters = std::iter::once("hub".to_owned()).chain((1..=members).map(|number| format!("member-{number}")));
    for cluster in clusters {
        let path = format!("clusters/{cluster}.kubeconfig");
        state.take(time(), Event::Kubeconfig { cluster, path });
    }
    (1..=90).for_each(|number| state.take(time(), change(number)));
    state
}

#[test]
fn sixty_by_twelve_has_room_for_imports_latencies_and_changes() {
    assert_eq!(
        drawn(&full(2), 60, 12),
        [
            "fleetnet sandbox   01:05   3 clusters, 3 agents   API fleet…",
            "IMPORTS",
            "work/app in member-1, member-2 has 2 slices with 6 endpoint…",
            "LATENCY                 p50 ms   max ms  changes   p99 ms",
            "member-1 -> member-2       4.0      4.0        1        -",
            "member-2 -> member-1       4.0      4.0        1        -",
            "… and 2 more",
            "WHAT HAPPENS   5.0 writes for a change (1 + 2 per importer;…",
            "… 87 before these",
            "10:00:00 change 88: member-1/app-1 4.0 ms, 5 writes",
            "10:00:00 change 89: member-1/app-1 4.0 ms, 5 writes",
            "10:00:00 change 90: member-1/app-1 4.0 ms, 5 writes",
        ]
    );
}

#[test]
fn twenty_members_fit_eighty_by_twenty_four() {
    let mut state = full(20);
    let [origin, destination] = ["member-20", "member-3"].map(str::to_owned);
    state.pairs.remove(&(origin.clone(), destination.clone()));
    state.take(time(), Event::Arrival { change: 1, origin, destination, milliseconds: 40.0, slice_stream: None });
    let drawn = drawn(&state, 80, 24);
    for part in [
        "work/app of 20 clusters is valid, without conflict",
        "work/app in 20 clusters has 2 slices with 6 endpoints from 20 clusters",
        "between clusters            4.0     40.0      381      4.0",
        "LATENCY (slowest)        p50 ms   max ms  changes   p99 ms",
        "member-20 -> member-3      40.0     40.0        1        -",
        "member-1 -> member-2        4.0      4.0        1        -",
        "10:00:00 change 90: member-1/app-1 4.0 ms, 5 writes",
    ] {
        assert!(drawn.iter().any(|line| line == part), "{part:?} is not in {drawn:#?}");
    }
}

#[test]
fn imports_latencies_and_changes_are_the_last_to_go() {
    for (members, columns, rows) in [(2, 40, 6), (20, 40, 6), (2, 30, 3), (20, 30, 3), (2, 200, 7), (20, 80, 12)] {
        let drawn = drawn(&full(members), columns, rows);
        for part in ["work/app in ", " 4.0", "change 90: "] {
            assert!(drawn.iter().any(|line| line.contains(part)), "{members} in {columns}x{rows}: {drawn:#?}");
        }
    }
}

#[test]
fn a_cluster_that_imports_something_else_is_reported_first() {
    let mut state = fleet(20);
    let (cluster, service) = ("member-7".to_owned(), "work/app".to_owned());
    state.take(time(), Event::Import { cluster, service, import: Import::default() });
    let drawn = drawn(&state, 80, 24);
    let at = drawn.iter().position(|line| line == "IMPORTS").unwrap();
    assert_eq!(drawn[at + 1], "work/app in member-7 is not valid yet and has no slices");
    assert!(drawn[at + 2].starts_with("work/app in 19 clusters has 2 slices"), "{drawn:#?}");
}

#[test]
fn agents_that_are_down_are_in_the_headline_until_they_are_back() {
    let mut state = fleet(2);
    let agent = |agent: &str, state| Event::Agent { agent: agent.to_owned(), state, why: None };
    state.take(time(), agent("hub-agent", AgentState::Failed));
    state.take(time(), agent("member-agent of member-1", AgentState::Killed));
    let rest = "3 clusters, 3 agents";
    let both = format!("2 of 3 agents DOWN: hub-agent, member-agent of member-1   {rest}   API fleet");
    assert_eq!(state.headline(), both);
    let size = Size { columns: 200, rows: 24 };
    let painted = draw(&state, time(), size, Colours::With);
    assert!(painted[0].starts_with("\u{1b}[33mfleetnet sandbox") && painted[0].contains("DOWN"), "{painted:?}");
    state.take(time(), agent("member-agent of member-1", AgentState::Restarted));
    let one = format!("1 of 3 agents DOWN: hub-agent   {rest}, restarted 1x   API fleet");
    assert_eq!(state.headline(), one);
    state.take(time(), agent("hub-agent", AgentState::Restarted));
    assert_eq!(state.headline(), format!("{rest}, restarted 2x   API fleet"));
}

#[test]
fn a_change_that_is_lost_does_not_lower_the_average() {
    let mut state = fleet(2);
    state.take(time(), change(1));
    let Event::Change(arrived) = change(2) else { unreachable!() };
    let (slowest_milliseconds, writes) = (None, Some(Writes::default()));
    state.take(time(), Event::Change(Change { arrived: 0, slowest_milliseconds, writes, ..arrived }));
    let left = last(&state);
    let expected = "5.0 writes for a change, 1 lost (1 + 2 per importer; hub 3.0, member-1 2.0)";
    assert_eq!(left.last().map(String::as_str), Some(expected));
}

#[test]
fn latencies_with_and_without_a_slice_stream_are_side_by_side_and_stay_at_the_end() {
    let mut state = State::default();
    let mut arrives = |destination: &str, milliseconds, slice_stream| {
        let [origin, destination] = ["member-1", destination].map(str::to_owned);
        state.take(time(), Event::Arrival { change: 1, origin, destination, milliseconds, slice_stream });
        last(&state)
    };
    let first = arrives("member-1", 4.0, Some(true));
    assert!(!first.iter().any(|line| line.contains("stream")), "nothing to compare with: {first:#?}");
    arrives("member-3", 99.0, None);
    assert_eq!(
        arrives("member-2", 7.0, Some(false))[..3],
        [
            "LATENCY                 p50 ms   max ms  changes   p99 ms",
            "with slice stream          4.0      4.0        1        -",
            "without stream             7.0      7.0        1        -",
        ]
    );
}

#[test]
fn a_large_fleet_is_cut_to_any_terminal() {
    let mut state = fleet(20);
    (1..=90).for_each(|number| state.take(time(), change(number)));
    for (columns, rows) in [(80, 24), (200, 60), (20, 10), (1, 1), (80, 3), (0, 0)] {
        let drawn = drawn(&state, columns, rows);
        assert!(drawn.len() <= rows, "{columns}x{rows}: {} lines", drawn.len());
        assert!(drawn.iter().all(|line| line.chars().count() <= columns), "{columns}x{rows}: {drawn:#?}");
    }
    let drawn = drawn(&state, 80, 24);
    assert!(drawn.iter().any(|line| line.starts_with("… and ") && line.ends_with(" more")), "{drawn:#?}");
    let newest = drawn.iter().rfind(|line| line.contains("change ")).unwrap();
    assert!(newest.contains("change 90:"), "the newest is shown last: {drawn:#?}");
}

#[test]
fn colours_are_used_only_where_they_are_wanted() {
    let mut state = fleet(1);
    state.take(time(), verdict(false, &["it"]));
    let size = Size { columns: 80, rows: 24 };
    let plain = draw(&state, time(), size, Colours::Without);
    assert!(plain.iter().all(|line| !line.contains('\u{1b}')));
    let painted = draw(&state, time(), size, Colours::With);
    assert_eq!(painted[1], "\u{1b}[33mFAILED (API fleet):\u{1b}[0m");
    assert_eq!(painted.len(), plain.len());
}

#[test]
fn rows_are_shared_by_need() {
    assert_eq!(share(&[2, 3, 4], 20), [2, 3, 4]);
    assert_eq!(share(&[2, 30, 40], 20), [2, 9, 9]);
    assert_eq!(share(&[30, 1, 40], 5), [2, 1, 2]);
    assert_eq!(share(&[5, 5], 0), [0, 0]);
}

#[test]
fn the_end_leaves_the_figures_on_the_screen() {
    let mut state = fleet(1);
    state.take(time(), change(1));
    state.take(time(), verdict(true, &[]));
    let ended = Ended { seconds: 9, ..Ended::default() };
    state.take(time(), Event::Ended(ended));
    let left = last(&state);
    assert_eq!(left.len(), 5);
    assert_eq!(left[4], "ended after 9 s");
    assert_eq!(left[1], "member-1 -> itself       4.0      4.0        1        -");
    assert_eq!(left[2], "5.0 writes for a change (1 + 2 per importer; hub 3.0, member-1 2.0)");
    assert!(left[3].starts_with("passed"));
}

#[test]
fn nothing_looks_well_while_the_hub_is_down_or_an_agent_waits() {
    let mut state = fleet(2);
    let size = Size { columns: 200, rows: 40 };
    let painted = |state: &State| draw(state, time(), size, Colours::With);
    state.take(time(), Event::Hub { reachable: false });
    let down = painted(&state);
    assert!(down[0].starts_with("\u{1b}[33mfleetnet sandbox   00:00   HUB DOWN"), "{down:#?}");
    assert!(down.iter().any(|line| line.contains("EXPORTS   as before the hub was down")), "{down:#?}");
    let exports = down.iter().find(|line| line.contains("work/app of member-1")).unwrap();
    assert!(!exports.contains("\u{1b}[32m"), "{exports:?} is green");
    assert!(down.iter().any(|line| line.contains("hub DOWN for 0 s +-/  member-1 [agent runs]")), "{down:#?}");

    state.take(time(), Event::Hub { reachable: true });
    let lease = |held| Event::Lease { agent: "hub-agent".to_owned(), held };
    state.take(time(), lease(false));
    assert!(!state.is_well() && state.headline().starts_with("waits for its Lease: hub-agent"), "{}", state.headline());
    state.take(time(), lease(true));
    assert!(state.is_well());
    assert!(painted(&state)[0].starts_with("\u{1b}[1mfleetnet sandbox"));
}

#[test]
fn draining_endpoints_are_counted_and_not_green() {
    let mut state = fleet(2);
    let from = BTreeSet::from(["member-1".to_owned()]);
    let import = Import { valid: true, from, slices: 2, endpoints: 12, draining: 6, unready: 0 };
    let (cluster, service) = ("member-1".to_owned(), "work/app".to_owned());
    state.take(time(), Event::Import { cluster, service, import });
    let painted = draw(&state, time(), Size { columns: 200, rows: 40 }, Colours::With);
    let line = painted.iter().find(|line| line.contains("work/app in member-1")).unwrap();
    assert!(line.contains("12 endpoints (6 ready, 6 draining) from member-1"), "{line}");
    assert!(line.starts_with("\u{1b}[33m"), "{line:?}");
}

#[test]
fn the_legend_takes_the_place_of_the_changes() {
    let mut state = full(2);
    (state.has_keys, state.has_legend) = (true, true);
    let drawn = drawn(&state, 120, 50);
    assert!(drawn[0].ends_with("q ends it, ? shows all keys"), "{drawn:#?}");
    assert!(drawn.contains(&"LEGEND".to_owned()) && !drawn.iter().any(|line| line.contains("WHAT HAPPENS")));
    assert!(drawn.iter().any(|line| line.starts_with("draining ")), "{drawn:#?}");
}

#[test]
fn a_large_fleet_has_one_line_for_its_members() {
    let mut state = fleet(20);
    assert_eq!(legend::fleet(&state, time()), [(true, "hub [agent runs] --- 20 members (all agents run)".to_owned())]);
    let (agent, killed) = ("member-agent of member-7".to_owned(), AgentState::Killed);
    state.take(time(), Event::Agent { agent, state: killed, why: None });
    assert_eq!(
        legend::fleet(&state, time()),
        [(false, "hub [agent runs] --- 20 members (not well: member-7)".to_owned())]
    );
}

#[test]
fn kubectl_users_find_the_first_commands_first() {
    let mut state = full(2);
    let commands = vec!["export KUBECONFIG=a:b".to_owned(), "fleetnet explain work/app".to_owned()];
    state.take(time(), Event::Commands { commands });
    let drawn = drawn(&state, 120, 60);
    let at = drawn.iter().position(|line| line == "KUBECTL").unwrap();
    assert_eq!(drawn[at + 1..at + 3], ["export KUBECONFIG=a:b", "fleetnet explain work/app"]);
}

#[test]
fn the_address_of_the_page_is_whole_at_each_width() {
    let url = "http://127.0.0.1:38211/6f1d3c9a0b5e47c2a8d94e7f20b3c615/";
    let heading = "the same in a browser:";
    let mut state = full(2);
    state.take(time(), Event::Page { url: url.to_owned() });
    let table = [
        ((80, 24), vec![format!("{heading} {url}")]),
        ((79, 24), vec![format!("{heading} {url}")]),
        ((78, 24), vec![heading.to_owned(), url.to_owned()]),
        ((60, 12), vec![heading.to_owned(), url.to_owned()]),
        ((40, 24), vec![heading.to_owned(), url[..40].to_owned(), url[40..].to_owned()]),
    ];
    for ((columns, rows), expected) in table {
        let drawn = drawn(&state, columns, rows);
        assert_eq!(drawn[1..=expected.len()], expected, "{columns} x {rows}: {drawn:#?}");
    }
}
