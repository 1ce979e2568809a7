//! Tests of recorded and suppressed Kubernetes Events, and of their form.

use std::sync::Arc;

use super::*;
use crate::engine::logic::Severity;
use crate::io::client::Cluster;
use crate::test_kit::{Copier, START, Source};

/// Returns a client of a server that answers each request with the status `status`.
fn client(status: u16) -> kube::Client {
    let service = tower::service_fn(move |_: http::Request<Body>| async move {
        let response = http::Response::builder().status(status).body(Body::empty());
        Ok::<_, kube::Error>(response.expect("a response"))
    });
    kube::Client::new(service, "default")
}

fn spec() -> SourceSpec<Copier> {
    spec_of("hub", &client(200))
}

fn spec_of(cluster: &str, client: &kube::Client) -> SourceSpec<Copier> {
    Source::Copy.spec(&Arc::new(Cluster::from_clients(cluster, client.clone(), client.clone())))
}

fn record(name: &str, message: &str) -> Event<Source> {
    Event {
        source: Source::Copy,
        name: ObjectName::new("ns", name),
        uid: "uid-1".into(),
        severity: Severity::Warning,
        component: "copier",
        reason: "Refused",
        message: message.to_owned(),
    }
}

/// Returns an Event about the only object in a namespace.
fn record_in(namespace: usize) -> Event<Source> {
    Event { name: ObjectName::new(&*format!("ns{namespace}"), "a"), ..record("a", "no") }
}

fn recorder(metrics: &Metrics) -> (Recorder, mpsc::Receiver<Posting>) {
    let (recorder, mut queues) = recorder_of(&["hub"], metrics);
    (recorder, queues.pop().expect("a queue"))
}

fn recorder_of(clusters: &[&str], metrics: &Metrics) -> (Recorder, Vec<mpsc::Receiver<Posting>>) {
    let clock = Clock::virtual_at(START + Duration::from_micros(999_999));
    Recorder::new(clusters.iter().copied(), "host-1".to_owned(), clock, metrics.clone())
}

fn count(queue: &mut mpsc::Receiver<Posting>) -> usize {
    std::iter::from_fn(|| queue.try_recv().ok()).count()
}

#[tokio::test(start_paused = true)]
async fn an_event_is_what_kubernetes_expects() {
    let (mut recorder, mut queue) = recorder(&Metrics::unregistered());
    recorder.record(&spec(), &record("a", "no"), Occasion::Planned);
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

/// Rule Q11: An agent emits the same Event again
/// Then: If plans or failed writes cause the Event, the agent emits the same Event at most once in 10 min. If
/// successful writes cause the Event, the agent emits the same Event up to five times in 10 min. If a write fails
/// several times in a row, the agent emits one Event. If the server still has the same Event from before a restart, the
/// server drops the new Event. `fleetnet_events_dropped_total` does not count this new Event
#[tokio::test(start_paused = true)]
async fn the_same_event_is_emitted_once_in_ten_minutes() {
    let (mut recorder, mut queue) = recorder(&Metrics::unregistered());
    let spec = spec();
    for _ in 0..5 {
        recorder.record(&spec, &record("a", "no"), Occasion::Planned);
    }
    assert_eq!(count(&mut queue), 1);
    recorder.record(&spec, &record("a", "no, for another reason"), Occasion::Planned);
    recorder.record(&spec, &record("b", "no"), Occasion::Planned);
    assert_eq!(count(&mut queue), 2);
    tokio::time::advance(EVENT_REPEAT_WINDOW).await;
    recorder.record(&spec, &record("a", "no"), Occasion::Planned);
    assert_eq!(count(&mut queue), 1);
}

/// Rule R13: Another writer undoes an agent's change again and again
/// Then: The agent emits the Event that reports its change at most five times in ten minutes
///
/// Also rule Q11.
#[tokio::test(start_paused = true)]
async fn what_happens_again_is_reported_again_within_a_limit() {
    let (mut recorder, mut queue) = recorder(&Metrics::unregistered());
    let spec = spec();
    for _ in 0..2 * EVENT_REPEATS_MAX {
        recorder.record(&spec, &record("a", "no"), Occasion::Done);
    }
    assert_eq!(count(&mut queue), 5);
    tokio::time::advance(EVENT_REPEAT_WINDOW).await;
    recorder.record(&spec, &record("a", "no"), Occasion::Done);
    assert_eq!(count(&mut queue), 1);
}

/// Rule R12: An agent restarts while a write still fails (rule R11)
/// Then: The Event about the failure has the same name as the Event before the restart. So the server drops the new
/// Event as a duplicate
#[tokio::test(start_paused = true)]
async fn the_event_about_a_failed_write_has_the_same_name_after_a_restart() {
    let emitted_by_a_new_process = |message: &str| {
        let (mut recorder, mut queue) = recorder(&Metrics::unregistered());
        recorder.record(&spec(), &record("a", message), Occasion::NotDone);
        queue.try_recv().expect("an event").body["metadata"]["name"].clone()
    };
    assert_eq!(emitted_by_a_new_process("no"), emitted_by_a_new_process("no"));
    assert_ne!(emitted_by_a_new_process("no"), emitted_by_a_new_process("never"));
}

/// Also rules Q11, R12.
#[tokio::test(start_paused = true)]
async fn what_was_reported_before_a_restart_is_not_dropped() {
    let posting =
        |status| Posting { client: client(status), cluster: "hub".to_owned(), path: "/".to_owned(), body: json!({}) };
    assert_eq!(send(posting(201)).await, Ok(()));
    assert_eq!(send(posting(409)).await, Ok(()));
    assert_eq!(send(posting(403)).await, Err("the server answered 403 Forbidden".to_owned()));
}

/// Rule R4: An agent emits an Event
/// Then: The agent writes one log line, and counts the Event once in `fleetnet_events_total`, with its reason
#[tokio::test(start_paused = true)]
async fn an_event_counts_and_is_logged_with_its_reason() {
    let registry = prometheus::Registry::new();
    let (mut recorder, _queue) = recorder(&Metrics::new(&registry).expect("metrics"));
    let lines = crate::process::logging::lines(|| recorder.record(&spec(), &record("a", "no"), Occasion::Done));
    let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).expect("text");
    assert!(text.contains("fleetnet_events_total{kind=\"Copy\",reason=\"Refused\",side=\"hub\"} 1\n"), "{text}");
    let [line] = &lines[..] else { panic!("one line, not {lines:?}") };
    let fields = ["level", "side", "kind", "namespace", "name", "reason", "message"].map(|field| line[field].as_str());
    assert_eq!(fields, ["WARN", "hub", "Copy", "ns", "a", "Refused", "no"].map(Some));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_answer_delays_only_its_own_events() {
    let silent =
        tower::service_fn(|_: http::Request<Body>| std::future::pending::<Result<http::Response<Body>, kube::Error>>());
    let silent = kube::Client::new(silent, "default");
    let (posted, mut seen) = mpsc::unbounded_channel();
    let answers = tower::service_fn(move |request: http::Request<Body>| {
        // Sending fails only after the test has ended and dropped the receiver.
        let _ = posted.send((request.uri().path().to_owned(), Instant::now()));
        std::future::ready(Ok::<_, kube::Error>(http::Response::new(Body::empty())))
    });
    let registry = prometheus::Registry::new();
    let metrics = Metrics::new(&registry).expect("metrics");
    let (mut recorder, queues) = recorder_of(&["member", "hub", "member"], &metrics);
    let posting = tokio::spawn(post(queues, metrics));
    let (hub, member) = (spec_of("hub", &silent), spec_of("member", &kube::Client::new(answers, "default")));
    // Record more Events for the hub than fit into a queue.
    for number in 0..EVENT_QUEUE_RECORDS + 3 {
        recorder.record(&hub, &record_in(number), Occasion::Planned);
    }
    let recorded = Instant::now();
    recorder.record(&member, &record("b", "no"), Occasion::Planned);
    let seen = timeout(Duration::from_secs(3_600), seen.recv()).await.expect("the member's Event is posted");
    assert_eq!(seen, Some(("/api/v1/namespaces/ns/events".to_owned(), recorded)));
    let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).expect("text");
    assert!(text.contains("fleetnet_events_dropped_total 3\n"), "{text}");
    posting.abort();
}

#[tokio::test(start_paused = true)]
async fn the_memory_of_reported_events_is_bounded() {
    let (mut recorder, mut queue) = recorder(&Metrics::unregistered());
    let spec = spec();
    for number in 0..3 * EVENTS_REMEMBERED {
        recorder.record(&spec, &record(&format!("a{number}"), "no"), Occasion::Planned);
        count(&mut queue);
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    assert_eq!(recorder.recorded.len(), EVENTS_REMEMBERED);
}

#[tokio::test(start_paused = true)]
async fn events_of_one_microsecond_have_names_of_their_own() {
    let (mut recorder, _queue) = recorder(&Metrics::unregistered());
    let mut next = || {
        recorder.sequence += 1;
        event_name("a", recorder.number(START))
    };
    let names: std::collections::BTreeSet<String> = (0..1000).map(|_| next()).collect();
    assert_eq!(names.len(), 1000);
}

#[tokio::test(start_paused = true)]
async fn names_and_messages_are_cut_to_what_the_server_takes() {
    let name = event_name(&format!("{}.{}", "a".repeat(235), "b".repeat(17)), 0x18fa_e276_93b4_0000);
    assert_eq!(name, format!("{}.18fae27693b40000", "a".repeat(235)));
    let message = shortened(&"é".repeat(1_000), EVENT_MESSAGE_BYTES);
    assert_eq!(message, format!("{}…", "é".repeat(510)));
}

/// Rule Q12: Many different Events concern the objects of one namespace
/// Then: In each cluster, the agent posts at most 50 of them at once, and then 10 a second. The log has all of them.
/// `fleetnet_events_withheld_total` counts those that are not posted
#[tokio::test(start_paused = true)]
async fn different_events_about_one_namespace_have_a_burst_of_50_and_then_10_a_second() {
    let registry = prometheus::Registry::new();
    let metrics = Metrics::new(&registry).expect("metrics");
    let (mut recorder, mut queues) = recorder_of(&["hub", "member"], &metrics);
    let (hub, member) = (spec(), spec_of("member", &client(200)));
    let mut number = 0;
    let mut flood = |recorder: &mut Recorder, events: usize| {
        for _ in 0..events {
            number += 1;
            recorder.record(&hub, &record("a", &format!("no {number}")), Occasion::Planned);
        }
    };
    let posted = |queues: &mut Vec<mpsc::Receiver<Posting>>| queues.iter_mut().map(count).collect::<Vec<_>>();
    flood(&mut recorder, 200);
    assert_eq!(posted(&mut queues), [50, 0]);
    for _ in 0..20 {
        tokio::time::advance(Duration::from_secs(1)).await;
        flood(&mut recorder, 200);
        assert_eq!(posted(&mut queues), [10, 0]);
    }
    // Another namespace, and the namespace of this name in another cluster.
    let other = Event { name: ObjectName::new("other", "a"), ..record("a", "no") };
    recorder.record(&hub, &other, Occasion::Planned);
    recorder.record(&member, &record("a", "no"), Occasion::Planned);
    assert_eq!(posted(&mut queues), [1, 1]);
    tokio::time::advance(Duration::from_secs(5)).await;
    flood(&mut recorder, 200);
    assert_eq!(posted(&mut queues), [50, 0], "a burst again");
    let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).expect("text");
    let withheld = 150 + 20 * 190 + 150;
    assert!(text.contains(&format!("fleetnet_events_withheld_total{{side=\"hub\"}} {withheld}\n")), "{text}");
    assert!(text.contains("fleetnet_events_total{kind=\"Copy\",reason=\"Refused\",side=\"hub\"} 4401\n"), "{text}");
}
