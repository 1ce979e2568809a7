//! Tests of the agents' Events.

use super::*;
use crate::limits::UI_LINES;
use crate::ui::state::State;
use diagnosis::Snapshot;
use fleetnet_types::ObjectName;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Fields of an Event with their values.
type Fields<'a> = &'a [(&'a str, Value)];

fn event(change: Fields<'_>) -> Event {
    let about = json!({"kind": "ServiceExport", "namespace": "shop", "name": "web"});
    let mut event = json!({
        "metadata": {"creationTimestamp": "2027-01-15T12:00:00Z"}, "involvedObject": about, "type": "Warning",
        "reason": "ConflictFound", "message": "the ports differ", "lastTimestamp": "2027-01-15T12:00:05Z",
        "source": {"component": "serviceexport-controller"},
    });
    for (field, value) in change {
        event[*field] = value.clone();
    }
    serde_json::from_value(event).unwrap()
}

fn line(side: &Side, change: Fields<'_>) -> AgentEvent {
    AgentEvent::of(side, &event(change), later()).unwrap()
}

/// Returns the time of a reading after all Events.
fn later() -> Timestamp {
    "2027-01-15T13:00:00Z".parse().unwrap()
}

/// Returns the line of an Event this number of seconds after 12:00.
fn at(side: &Side, second: i64) -> AgentEvent {
    let time = Timestamp::from_second(1_800_014_400 + second).unwrap().to_string();
    line(side, &[("lastTimestamp", json!(time)), ("message", json!(second.to_string()))])
}

fn west() -> Side {
    Side::Member("west".to_owned())
}

fn read(side: Side, events: &[AgentEvent]) -> Read {
    Read { side, events: Some(events.iter().cloned().collect()), why: None, took: None }
}

#[test]
fn an_event_is_a_line_with_the_time_of_its_last_occurrence() {
    let shown: Value = serde_json::to_value(line(&west(), &[])).unwrap();
    assert_eq!(
        shown,
        json!({
            "time": "2027-01-15T12:00:05.000Z", "cluster": "west", "kind": "ServiceExport", "namespace": "shop",
            "name": "web", "reason": "ConflictFound", "text": "the ports differ", "tone": "warning",
        })
    );
    let series = json!({"count": 7, "lastObservedTime": "2027-01-15T12:00:09.500000Z"});
    let table: [(Fields<'_>, &str, &str, &str); 5] = [
        (&[("type", json!("Normal"))], "12:00:05.000", "the ports differ", "plain"),
        (&[("count", json!(3))], "12:00:05.000", "the ports differ (3 times)", "warning"),
        (&[("series", series)], "12:00:09.500", "the ports differ (7 times)", "warning"),
        (&[("lastTimestamp", Value::Null)], "12:00:00.000", "the ports differ", "warning"),
        (&[("message", json!("<b>\u{202e}"))], "12:00:05.000", "<b>\u{202e}", "warning"),
    ];
    for (change, time, text, tone) in table {
        let shown: Value = serde_json::to_value(line(&Side::Hub, change)).unwrap();
        let expected = (json!(format!("2027-01-15T{time}Z")), json!(text), json!(tone));
        assert_eq!((shown["time"].clone(), shown["text"].clone(), shown["tone"].clone()), expected, "{change:?}");
    }
    let long = line(&Side::Hub, &[("message", json!("x".repeat(1 << 20)))]);
    assert_eq!(long.change.text.len(), UI_EVENT_BYTES);
}

#[test]
fn a_cluster_that_is_not_read_keeps_its_events_and_an_event_is_new_once() {
    let [one, two, three] = [1, 2, 3].map(|second| at(&west(), second));
    let hub = at(&Side::Hub, 2);
    let first = AgentEvents::default()
        .after(vec![read(west(), &[one, two.clone()]), read(Side::Hub, std::slice::from_ref(&hub))]);
    assert_eq!(first.since(&AgentEvents::default()).len(), 3);
    let failed = Read { side: Side::Hub, events: None, why: Some("late".to_owned()), took: None };
    let second = first.after(vec![read(west(), &[two.clone(), three.clone()]), failed]);
    assert_eq!(second.not_read, ["hub: late"]);
    assert_eq!(second.since(&first), [&three], "an Event that has expired is no news");
    let third = second.after(vec![read(west(), &[two, three]), read(Side::Hub, &[hub])]);
    assert_eq!((third.since(&second).len(), third.not_read.len()), (0, 0));
    assert_eq!(third.after(Vec::new()).since(&AgentEvents::default()).len(), 0, "the members have left");
}

#[test]
fn the_events_of_a_service_are_the_last_ones_about_its_objects() {
    let objects = Objects::of(&Snapshot::default(), &ObjectName::new("shop", "web"));
    let other =
        line(&west(), &[("involvedObject", json!({"kind": "ServiceExport", "namespace": "shop", "name": "db"}))]);
    let all = [at(&west(), 1), at(&west(), 3), other];
    let events = AgentEvents::default().after(vec![read(west(), &all), read(Side::Hub, &[at(&Side::Hub, 2)])]);
    let texts = |events: &AgentEvents, max| {
        events.about(&objects, max).iter().map(|it| it.change.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&events, 9), ["3", "2", "1"]);
    assert_eq!(texts(&events, 2), ["3", "2"]);
    let of_version = |version: &str| {
        let metadata = json!({"resourceVersion": version});
        line(&west(), &[("metadata", metadata), ("message", json!(version))])
    };
    let same_second = [of_version("9"), of_version("10")];
    let events = AgentEvents::default().after(vec![read(west(), &same_second)]);
    assert_eq!(texts(&events, 2), ["10", "9"], "the resourceVersion orders the Events of one second");
}

#[test]
fn each_new_event_is_one_line_of_what_happens_and_old_ones_fill_at_most_half_of_it() {
    let many: Vec<AgentEvent> = (0..500).map(|second| at(&west(), second)).collect();
    let events = Arc::new(AgentEvents::default().after(vec![read(west(), &many)]));
    let mut state = State::default();
    (0..2).for_each(|_| state.take_events(Arc::clone(&events)));
    assert_eq!(state.lines.len(), UI_LINES / 2);
    assert_eq!(*state.lines.back().unwrap().text, serde_json::to_string(&many[499]).unwrap());
    let next = Arc::new(events.after(vec![read(west(), &[at(&west(), 499), at(&west(), 500)])]));
    state.take_events(next);
    assert_eq!(state.lines.len(), UI_LINES / 2 + 1);
}

#[test]
fn only_events_of_an_agent_are_lines() {
    let source = |component: &str| ("source", json!({ "component": component }));
    let reporter = |component: &str| ("reportingComponent", json!(component));
    let table = [
        (vec![source("hub-agent")], true),
        (vec![source(""), reporter("serviceimport-controller")], true),
        (vec![source("endpoint-slice-controller")], false),
        (vec![source("kubectl"), reporter("kubectl")], false),
        (vec![("source", Value::Null)], false),
    ];
    for (change, is_line) in table {
        assert_eq!(AgentEvent::of(&west(), &event(&change), later()).is_some(), is_line, "{change:?}");
    }
}

/// Returns the texts in double quotes after `COMPONENT: &str = ` in the source files below a folder.
fn components_in(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(components_in(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(path).unwrap();
            let values = text.split("COMPONENT: &str = \"").skip(1).filter_map(|rest| rest.split('"').next());
            found.extend(values.map(str::to_owned));
        }
    }
    found
}

#[test]
fn the_components_are_those_of_the_agents() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["core/src", "hub-agent/src", "member-agent/src"];
    let found: BTreeSet<String> = folders.iter().flat_map(|folder| components_in(&root.join(folder))).collect();
    assert_eq!(found, COMPONENTS.map(str::to_owned).into());
}

#[test]
fn an_event_from_the_future_has_the_time_of_its_first_reading() {
    let forged = event(&[("lastTimestamp", json!("2099-01-01T00:00:00Z")), ("message", json!("forged"))]);
    let at_reading = |second: i64| {
        let read = Timestamp::from_second(1_800_014_400 + second).unwrap();
        AgentEvent::of(&west(), &forged, read).unwrap()
    };
    let first = AgentEvents::default().after(vec![read(west(), &[at_reading(1)])]);
    let second = first.after(vec![read(west(), &[at_reading(3), at(&west(), 2)])]);
    assert_eq!(second.since(&first), [&at(&west(), 2)], "the forged Event is known");
    let objects = Objects::of(&Snapshot::default(), &ObjectName::new("shop", "web"));
    let texts: Vec<&str> = second.about(&objects, 9).iter().map(|it| it.change.text.as_str()).collect();
    assert_eq!(texts, ["2", "forged"]);
}

#[test]
fn the_pause_depends_on_the_slowest_answer() {
    let seconds = Duration::from_secs;
    let table: [(&[Option<u64>], u64); 4] =
        [(&[], 5), (&[Some(0)], 5), (&[Some(0), Some(1)], 20), (&[Some(0), None], 5)];
    for (took, pause) in table {
        let read = |took: &Option<u64>| Read { took: took.map(seconds), ..read(west(), &[]) };
        assert_eq!(pause_after(&took.iter().map(read).collect::<Vec<_>>(), seconds(5)), seconds(pause), "{took:?}");
    }
}

#[test]
fn a_namespace_keeps_its_newest_events() {
    let other = line(&west(), &[("involvedObject", json!({"namespace": "db"})), ("message", json!("other"))]);
    let all = [0, 1, 2].map(|second| at(&west(), second + 60)).into_iter().chain([other]);
    let texts: Vec<String> = newest(all.collect(), 2).into_iter().map(|it| it.change.text).collect();
    assert_eq!(texts, ["other", "61", "62"]);
}

/// Returns a client of a server with this number of pages. Each page has one Event.
fn server_of(pages: usize) -> Client {
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| async move {
        let query = request.uri().query().unwrap_or_default();
        let page =
            query.split_once("continue=").and_then(|(_, rest)| rest.split('&').next()?.parse().ok()).unwrap_or(1);
        let namespace = json!({"kind": "ServiceExport", "namespace": page.to_string(), "name": "web"});
        let next = if page < pages { (page + 1).to_string() } else { String::new() };
        let list = json!({
            "kind": "EventList", "apiVersion": "v1", "metadata": {"continue": next},
            "items": [event(&[("involvedObject", namespace)])],
        });
        Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::from(list.to_string().into_bytes())))
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn further_pages_are_read_up_to_a_limit() {
    let clock = Clock::virtual_at(fleetnet_types::Timestamp(1_800_100_000_000_000));
    for (pages, namespaces, is_whole) in [(1, 1, true), (UI_EVENTS_PAGES, UI_EVENTS_PAGES, true), (99, 4, false)] {
        let (events, why) = of_cluster(&server_of(pages), &west(), &clock).await.unwrap();
        let found: BTreeSet<&str> = events.iter().map(|it| it.change.namespace.as_str()).collect();
        assert_eq!((found.len(), why.is_none()), (namespaces, is_whole), "{pages} pages");
    }
}
