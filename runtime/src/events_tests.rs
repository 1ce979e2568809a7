//! What is recorded, what is left out, and what an Event looks like.

use std::sync::Arc;

use super::*;
use crate::client::Cluster;
use crate::logic::Severity;
use crate::toy::{Copier, START, Source, decode};

fn spec() -> SourceSpec<Copier> {
    let service =
        tower::service_fn(|_: http::Request<Body>| async { Ok::<_, kube::Error>(http::Response::new(Body::empty())) });
    let client = kube::Client::new(service, "default");
    SourceSpec {
        source: Source::Copy,
        cluster: Arc::new(Cluster::from_clients("hub", client.clone(), client)),
        resource: Source::Copy.resource(),
        namespace: None,
        name: None,
        freezes_when_forbidden: false,
        optional: false,
        metadata_only: false,
        decode: std::sync::Arc::new(decode),
    }
}

fn record(name: &str, message: &str) -> EventRecord<Source> {
    EventRecord {
        source: Source::Copy,
        namespace: "ns".into(),
        name: name.into(),
        uid: "uid-1".into(),
        severity: Severity::Warning,
        component: "copier",
        reason: "Refused",
        message: message.to_owned(),
    }
}

fn recorder(metrics: &Metrics) -> (Recorder, mpsc::Receiver<Posting>) {
    Recorder::new("host-1".to_owned(), Clock::virtual_at(START + Duration::from_micros(999_999)), metrics.clone())
}

fn count(queue: &mut mpsc::Receiver<Posting>) -> usize {
    std::iter::from_fn(|| queue.try_recv().ok()).count()
}

#[tokio::test(start_paused = true)]
async fn an_event_is_what_kubernetes_expects() {
    let (mut recorder, mut queue) = recorder(&Metrics::unregistered());
    recorder.record(&spec(), &record("a", "no"));
    let posting = queue.recv().await.expect("an event");
    assert_eq!(posting.path, "/api/v1/namespaces/ns/events");
    assert_eq!(
        posting.body,
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "a.18fae276cf4ec619", "namespace": "ns"},
            "involvedObject": {"apiVersion": "toy.io/v1", "kind": "Copy", "namespace": "ns", "name": "a", "uid": "uid-1"},
            "type": "Warning",
            "reason": "Refused",
            "message": "no",
            "source": {"component": "copier", "host": "host-1"},
            "reportingComponent": "copier",
            "reportingInstance": "host-1",
            "firstTimestamp": "2027-01-15T08:00:00Z",
            "lastTimestamp": "2027-01-15T08:00:00Z",
            "count": 1,
        })
    );
}

#[tokio::test(start_paused = true)]
async fn the_same_is_said_once_in_ten_minutes() {
    let (mut recorder, mut queue) = recorder(&Metrics::unregistered());
    let spec = spec();
    for _ in 0..5 {
        recorder.record(&spec, &record("a", "no"));
    }
    assert_eq!(count(&mut queue), 1);
    recorder.record(&spec, &record("a", "no, for another reason"));
    recorder.record(&spec, &record("b", "no"));
    assert_eq!(count(&mut queue), 2);
    tokio::time::advance(EVENT_REPEAT_WINDOW).await;
    recorder.record(&spec, &record("a", "no"));
    assert_eq!(count(&mut queue), 1);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_dropped_and_counted() {
    let registry = prometheus::Registry::new();
    let metrics = Metrics::new(&registry).expect("metrics");
    let (mut recorder, mut queue) = recorder(&metrics);
    for number in 0..EVENT_QUEUE_RECORDS + 3 {
        recorder.record(&spec(), &record(&format!("a{number}"), "no"));
    }
    assert_eq!(count(&mut queue), EVENT_QUEUE_RECORDS);
    let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).expect("text");
    assert!(text.contains("fleetnet_events_dropped_total 3\n"));
}

#[tokio::test(start_paused = true)]
async fn the_memory_of_what_was_said_is_bounded() {
    let (mut recorder, mut queue) = recorder(&Metrics::unregistered());
    let spec = spec();
    for number in 0..3 * EVENTS_REMEMBERED {
        recorder.record(&spec, &record(&format!("a{number}"), "no"));
        count(&mut queue);
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    assert_eq!(recorder.recorded.len(), EVENTS_REMEMBERED);
}

#[tokio::test(start_paused = true)]
async fn events_of_one_microsecond_have_names_of_their_own() {
    let now = START;
    let names: std::collections::BTreeSet<String> = (0..1000).map(|sequence| event_name("a", now, sequence)).collect();
    assert_eq!(names.len(), 1000);
}

#[tokio::test(start_paused = true)]
async fn names_and_messages_are_cut_to_what_the_server_takes() {
    let name = event_name(&format!("{}.{}", "a".repeat(235), "b".repeat(17)), START, 0);
    assert_eq!(name, format!("{}.18fae27693b40000", "a".repeat(235)));
    let message = shortened(&"é".repeat(1_000), EVENT_MESSAGE_BYTES);
    assert_eq!(message, format!("{}…", "é".repeat(510)));
}
