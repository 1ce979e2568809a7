//! Tests that the JSON of every event agrees with its documentation.

use super::*;
use crate::sandbox::event::{AgentState, Change, Counts, Ended, Export, Import, Latency, Traffic, Writes};
use chrono::{DateTime, Local};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Documentation of the events for users. Lines that begin with a brace are examples.
const DESCRIPTION: &str = include_str!("../../../../../docs/reference/sandbox-json.md");

fn shown(event: Event) -> Value {
    let at: DateTime<Local> = DateTime::parse_from_rfc3339("2026-03-01T10:00:00.25Z").unwrap().into();
    let line = line(&TimedEvent { at, event });
    assert!(!line.contains('\n'));
    let mut value: Value = serde_json::from_str(&line).unwrap();
    let at_text = value.as_object_mut().unwrap().remove("at").unwrap();
    assert_eq!(DateTime::parse_from_rfc3339(at_text.as_str().unwrap()).unwrap(), at);
    value
}

/// Returns one event of each kind that occurs at the beginning of a run.
fn beginning() -> Vec<Event> {
    let [cluster, service] = ["member-1", "work/app"].map(str::to_owned);
    let clusters = vec!["hub".to_owned(), "member-1".to_owned(), "member-2".to_owned()];
    let from = BTreeSet::from(["member-1".to_owned(), "member-2".to_owned()]);
    let export = Export { valid: Some(true), conflict: None };
    let import = Import { valid: true, from, slices: 4, endpoints: 12, draining: 6, unready: 0 };
    let (agent, why) = ("hub-agent".to_owned(), Some("leader election failed".to_owned()));
    let path = "clusters/member-1.kubeconfig".to_owned();
    let commands =
        ["export KUBECONFIG=clusters/hub.kubeconfig:clusters/member-1.kubeconfig", "fleetnet explain work/app"];
    let commands = commands.map(str::to_owned).to_vec();
    vec![
        Event::Starting { members: 2, servers: "memkube", api: "fleet", scenario: None },
        Event::Page { url: "http://127.0.0.1:38211/6f1d3c9a0b5e47c2a8d94e7f20b3c615/".to_owned() },
        Event::Running { clusters, agents: 3, streams: vec![cluster.clone()] },
        Event::Kubeconfig { cluster: cluster.clone(), path },
        Event::Commands { commands },
        Event::Hub { reachable: false },
        Event::Lease { agent: agent.clone(), held: false },
        Event::Paused { paused: true },
        Event::Export { cluster: cluster.clone(), service: service.clone(), export },
        Event::Import { cluster: cluster.clone(), service: service.clone(), import },
        Event::Gone { what: "export", cluster, service },
        Event::Agent { agent: agent.clone(), state: AgentState::Failed, why },
        Event::Agent { agent: agent.clone(), state: AgentState::Restarted, why: None },
        Event::Agent { agent, state: AgentState::Killed, why: None },
        Event::Step { scenario: "hub-down", text: "the hub comes back".to_owned() },
        Event::Trouble { change: 8, why: "endpointslices.discovery.k8s.io \"app-1\" not found".to_owned() },
    ]
}

fn end() -> Vec<Event> {
    let [origin, destination] = ["member-1", "member-2"].map(str::to_owned);
    let hub_and_members = |hub, each| BTreeMap::from([("hub", hub), ("member-1", each), ("member-2", each)]);
    let writes = |total, hub, each| {
        let by_cluster = hub_and_members(hub, each).into_iter().map(|(name, times)| (name.to_owned(), times)).collect();
        Writes { total, by_cluster }
    };
    let change = Change {
        change: 7,
        cluster: origin.clone(),
        slice: "app-1".to_owned(),
        address: "10.1.0.107".to_owned(),
        arrived: 2,
        importers: 2,
        slowest_milliseconds: Some(8.632),
        with_stream_milliseconds: Some(5.215),
        without_stream_milliseconds: Some(8.632),
        writes: Some(writes(5, 3, 1)),
    };
    let lost = Change {
        change: 8,
        arrived: 1,
        slowest_milliseconds: None,
        without_stream_milliseconds: None,
        writes: Some(writes(3, 1, 1)),
        ..change.clone()
    };
    let latency = Latency { samples: 5, p50_milliseconds: 7.4, p99_milliseconds: None, max_milliseconds: 9.1 };
    let details = vec!["10 patch endpointsliceexports in hub by member-agent of member-1".to_owned()];
    let clusters = ["hub", "member-1", "member-2"].map(str::to_owned).to_vec();
    let ended =
        Ended { seconds: 32, compared: true, differences: Vec::new(), clusters, kubeconfigs: 3, interrupted: None };
    let interrupted = Ended { interrupted: Some("hub-down"), ..ended.clone() };
    let wrong = vec!["fleet-system of member-2 has no Service work-app".to_owned()];
    vec![
        Event::Arrival {
            change: 7,
            origin: origin.clone(),
            destination: destination.clone(),
            milliseconds: 7.412,
            slice_stream: Some(false),
        },
        Event::Change(change),
        Event::Change(lost),
        Event::Latency { origin, destination, latency },
        Event::SliceStream {
            with_stream: Some(Latency { p50_milliseconds: 5.2, ..latency }),
            without_stream: Some(latency),
        },
        Event::Cost { changes: 10, lost: 0, writes: writes(50, 30, 10), details },
        Event::Verdict { passed: true, imported: true, wrong: Vec::new(), scenario: None, api: "fleet" },
        Event::Verdict { passed: false, imported: false, wrong, scenario: Some("hub-down"), api: "fleet" },
        Event::Ended(ended),
        Event::Ended(interrupted),
    ]
}

/// Returns the events of `--packets`.
fn requests() -> Vec<Event> {
    let by_name = |counts: &[(&str, u64)]| counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    let command = "kubectl --kubeconfig clusters/member-3.kubeconfig exec -n work client -- curl -s \
                   http://app.work.svc.clusterset.local";
    let traffic = Traffic {
        service: "work/app".to_owned(),
        exporters: vec!["member-1".to_owned(), "member-2".to_owned()],
        importer: "member-3".to_owned(),
        address: "10.96.222.193".to_owned(),
        client: "work/client".to_owned(),
        requests_per_second: 200,
        command: Some(command.to_owned()),
    };
    let second = Counts {
        requests: 200,
        lost: 3,
        lost_by_kind: by_name(&[("refused", 2), ("timeout", 1)]),
        answers_by_cluster: by_name(&[("member-1", 93), ("member-2", 104)]),
    };
    let all = Counts {
        requests: 2348,
        answers_by_cluster: by_name(&[("member-1", 1195), ("member-2", 1153)]),
        ..Counts::default()
    };
    vec![
        Event::Kubeconfig { cluster: "fleet".to_owned(), path: "clusters/fleet.kubeconfig".to_owned() },
        Event::Traffic(traffic),
        Event::Requests { requests_per_second: 200, lost_so_far: 5, counts: second },
        Event::Rollout { cluster: "member-1".to_owned(), passed: true, counts: all },
    ]
}

#[test]
fn every_event_is_described_with_an_example_that_is_true() {
    let examples = DESCRIPTION.lines().filter(|line| line.starts_with('{'));
    let described: Vec<Value> = examples
        .map(|line| {
            let mut value: Value = serde_json::from_str(line).unwrap();
            assert!(value.as_object_mut().unwrap().remove("at").is_some(), "{line}");
            value
        })
        .collect();
    let all: Vec<Value> = beginning().into_iter().chain(end()).chain(requests()).map(shown).collect();
    for event in &all {
        assert!(described.contains(event), "no example in docs/reference/sandbox-json.md: {event}");
    }
    assert_eq!(described.len(), all.len(), "an example of docs/reference/sandbox-json.md is of no event");
}

#[test]
fn every_field_of_every_event_is_described() {
    for event in beginning().into_iter().chain(end()).chain(requests()).map(shown) {
        let kind = event["event"].as_str().unwrap().to_owned();
        let heading = format!("### `{kind}`");
        let (_, section) = DESCRIPTION.split_once(&heading).unwrap_or_else(|| panic!("{heading} is missing"));
        let section = section.split("\n### ").next().unwrap();
        for field in event.as_object().unwrap().keys().filter(|field| *field != "event") {
            assert!(section.contains(&format!("| `{field}` |")), "{field} of {kind} is not described");
        }
    }
}
