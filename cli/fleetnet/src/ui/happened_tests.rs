//! Tests of the changes between two readings.

use super::*;
use diagnosis::report::{API_VERSION, HubStatus, MemberState, ServiceState, Verdict};

fn member(id: &str) -> MemberStatus {
    MemberStatus {
        member: id.to_owned(),
        state: MemberState::Ready,
        version: Some("0.1.0".to_owned()),
        heard_seconds: Some(3),
        clock_milliseconds: None,
        exports: Some(1),
        endpoints: Some(6),
        imports: Some(1),
        exported_slices: None,
        imported_slices: None,
        slice_stream: None,
        slices_made_by: None,
        cluster_uid: None,
    }
}

fn row() -> ServiceRow {
    let arrival = |importer: &str| Arrival { importer: importer.to_owned(), endpoints: 6, missing_exporters: vec![] };
    ServiceRow {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        api: Api::Fleet,
        type_: None,
        exporters: vec!["west".to_owned()],
        importers: vec!["east".to_owned()],
        endpoints: 6,
        conflicts: Vec::new(),
        state: ServiceState::Ready,
        arrived: vec![arrival("east")],
        names_to_call: Vec::new(),
    }
}

/// Returns a healthy fleet.
fn seen() -> Seen {
    let hub = HubStatus {
        server: "https://hub.test".to_owned(),
        reached: true,
        version: Some("0.1.0".to_owned()),
        leader: Some("hub-agent-1".to_owned()),
        replicas: Some((2, 2)),
    };
    let members = ["east", "west"].map(member).into();
    let (api_version, verdict, not_known) = (API_VERSION, Verdict::Healthy, Vec::new());
    let status = Status { api_version, kind: "Status", members, hub, verdict, not_known: Vec::new() };
    let services = Services { api_version, kind: "ServiceList", services: vec![row()], verdict, not_known };
    Seen { is_hub_reached: Some(true), status: Some(status), services: Some(services) }
}

fn status(seen: &mut Seen) -> &mut Status {
    seen.status.as_mut().unwrap()
}

fn rows(seen: &mut Seen) -> &mut Vec<ServiceRow> {
    &mut seen.services.as_mut().unwrap().services
}

/// Cluster, reason, text and tone of a line.
type Shown = (&'static str, &'static str, &'static str, Tone);
/// Change of a fleet, with the line for the change and the line for the way back.
type Case = (fn(&mut Seen), Shown, Shown);

const CASES: [Case; 12] = [
    (
        |it| it.is_hub_reached = Some(false),
        ("hub", "Unreachable", "the hub does not answer", Tone::Bad),
        ("hub", "Reachable", "the hub answers again", Tone::Good),
    ),
    (
        |it| status(it).hub.leader = None,
        ("hub", "Leader", "there is no leader, before: hub-agent-1", Tone::Warning),
        ("hub", "Leader", "the leader is hub-agent-1, before: none", Tone::Plain),
    ),
    (
        |it| status(it).members.push(member("north")),
        ("north", "Joined", "a new member, its state is Ready", Tone::Good),
        ("north", "Left", "the fleet has no such member any more", Tone::Warning),
    ),
    (
        |it| status(it).members[0].state = MemberState::Silent,
        ("east", "State", "the state is Silent, before: Ready", Tone::Bad),
        ("east", "State", "the state is Ready, before: Silent", Tone::Good),
    ),
    (
        |it| status(it).members[1].version = Some("0.2.0".to_owned()),
        ("west", "Version", "the version is 0.2.0, before: 0.1.0", Tone::Plain),
        ("west", "Version", "the version is 0.1.0, before: 0.2.0", Tone::Plain),
    ),
    (
        |it| rows(it).clear(),
        ("hub", "Disappeared", "no cluster exports or imports it any more", Tone::Warning),
        ("hub", "Appeared", "a new Service, exported by west, imported by east", Tone::Good),
    ),
    (
        |it| rows(it)[0].state = ServiceState::NotReady,
        ("hub", "State", "the state is NotReady, before: Ready", Tone::Bad),
        ("hub", "State", "the state is Ready, before: NotReady", Tone::Good),
    ),
    (
        |it| rows(it)[0].endpoints = 0,
        ("hub", "Endpoints", "ready endpoints: 0, before: 6", Tone::Bad),
        ("hub", "Endpoints", "ready endpoints: 6, before: 0", Tone::Good),
    ),
    (
        |it| rows(it)[0].exporters.push("north".to_owned()),
        ("north", "Exported", "the cluster exports the Service", Tone::Good),
        ("north", "NotExported", "the cluster exports the Service no more", Tone::Warning),
    ),
    (
        |it| rows(it)[0].importers.push("north".to_owned()),
        ("north", "Imported", "the cluster imports the Service", Tone::Good),
        ("north", "NotImported", "the cluster imports the Service no more", Tone::Warning),
    ),
    (
        |it| rows(it)[0].conflicts.push("west".to_owned()),
        ("west", "Conflict", "the export is in conflict with another one", Tone::Bad),
        ("west", "NoConflict", "the conflict of the export is over", Tone::Good),
    ),
    (
        |it| rows(it)[0].arrived[0].missing_exporters.push("west".to_owned()),
        ("east", "Missing", "the cluster has no endpoints of west", Tone::Bad),
        ("east", "Arrived", "the cluster misses no endpoints of west any more", Tone::Good),
    ),
];

#[test]
fn each_change_is_one_line_and_so_is_the_way_back() {
    for (change, there, back) in CASES {
        let (old, mut new) = (seen(), seen());
        change(&mut new);
        for (changes, expected) in [(changes(&old, &new), there), (changes(&new, &old), back)] {
            let shown: Vec<(&str, &str, &str, Tone)> =
                changes.iter().map(|it| (it.cluster.as_str(), &*it.reason, it.text.as_str(), it.tone)).collect();
            assert_eq!(shown, [expected]);
        }
    }
}

#[test]
fn what_changes_all_the_time_and_what_was_not_read_is_no_change() {
    let (old, mut new) = (seen(), seen());
    status(&mut new).members[0].heard_seconds = Some(4);
    rows(&mut new)[0].arrived[0].endpoints = 5;
    assert_eq!(changes(&old, &new), []);
    assert_eq!(changes(&Seen::default(), &seen()), []);
    let mut unread = seen();
    (unread.status, unread.services) = (None, None);
    assert_eq!(changes(&old, &unread), []);
    // An importer that was not read says nothing about its endpoints.
    let mut unread = seen();
    rows(&mut unread)[0].arrived.clear();
    assert_eq!(changes(&old, &unread), []);
}

#[test]
fn a_line_names_its_object() {
    let mut new = seen();
    rows(&mut new)[0].endpoints = 4;
    let line = changes(&seen(), &new).remove(0);
    let expected = serde_json::json!({
        "cluster": "hub", "kind": "Service", "namespace": "shop", "name": "web", "reason": "Endpoints",
        "text": "ready endpoints: 4, before: 6", "tone": "plain",
    });
    assert_eq!(serde_json::to_value(line).unwrap(), expected);
}
