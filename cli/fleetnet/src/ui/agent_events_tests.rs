//! Tests of the agents' Events.

use super::*;
use crate::limits::UI_LINES;
use crate::ui::state::State;
use diagnosis::Snapshot;
use fleetnet_types::ObjectName;
use serde_json::{Value, json};

/// Fields of an Event with their values.
type Fields<'a> = &'a [(&'a str, Value)];

fn event(change: Fields<'_>) -> Event {
    let about = json!({"kind": "ServiceExport", "namespace": "shop", "name": "web"});
    let mut event = json!({
        "metadata": {"creationTimestamp": "2027-01-15T12:00:00Z"}, "involvedObject": about, "type": "Warning",
        "reason": "ConflictFound", "message": "the ports differ", "lastTimestamp": "2027-01-15T12:00:05Z",
    });
    for (field, value) in change {
        event[*field] = value.clone();
    }
    serde_json::from_value(event).unwrap()
}

fn line(side: &Side, change: Fields<'_>) -> AgentEvent {
    AgentEvent::of(side, &event(change)).unwrap()
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
    Read { side, events: Some(events.iter().cloned().collect()), why: None }
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
    let failed = Read { side: Side::Hub, events: None, why: Some("late".to_owned()) };
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
