//! Tests of a whole agent in one process: watches, Lease, engine and writes, against a server that the test simulates.

#![expect(
    clippy::disallowed_types,
    reason = "tests look into what a server or an agent was told, and nothing awaits meanwhile"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt as _, stream};
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::*;
use crate::engine::sources::SourceStatus;
use crate::io::client::Cluster;
use crate::io::source::SourceSpec;
use crate::limits::LeaseTimes;
use crate::process::listeners::Listeners;
use crate::process::reviews::Reviews;
use crate::test_kit::{Copier, START, Source, failure};

/// Log of the requests to the server: `WATCH claims`, `POST copies/a`, `PUT leases/toy holder`, …
type Log = Arc<Mutex<Vec<String>>>;

fn ends_list(version: &str) -> Value {
    let annotations = json!({"k8s.io/initial-events-end": "true"});
    json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version, "annotations": annotations}}})
}

fn claim() -> Value {
    let metadata = json!({"namespace": "ns", "name": "a", "uid": "w", "resourceVersion": "5"});
    json!({"type": "ADDED", "object": {"metadata": metadata, "spec": {"value": "1"}}})
}

type AnyBody = UnsyncBoxBody<Bytes, std::io::Error>;

/// Returns the response body of a watch that shows these events and then stays open.
fn open_watch(events: &[Value]) -> AnyBody {
    let lines: Vec<Result<Frame<Bytes>, std::io::Error>> =
        events.iter().map(|event| Ok(Frame::data(Bytes::from(format!("{event}\n"))))).collect();
    let frames = futures::StreamExt::chain(stream::iter(lines), stream::pending());
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

fn json_body(body: &Value) -> AnyBody {
    let frames = stream::iter([Ok(Frame::data(Bytes::from(body.to_string())))]);
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

/// Behaviour of the test server that differs from a normal server.
#[derive(Clone, Copy, Default)]
struct Unusual {
    lease_holder: Option<&'static str>,
    copies_hang: bool,
}

fn server(log: &Log, unusual: Unusual) -> kube::Client {
    let log = Arc::clone(log);
    let service = tower::service_fn(move |request: Request<Body>| {
        let log = Arc::clone(&log);
        async move {
            let (parts, body) = request.into_parts();
            let body: Value = serde_json::from_slice(&body.collect().await?.to_bytes()).unwrap_or_default();
            let path = parts.uri.path();
            let watch = parts.uri.query().is_some_and(|query| query.contains("watch=true"));
            let holder = body["spec"]["holderIdentity"].as_str().unwrap_or_default();
            let name = body["metadata"]["name"].as_str().unwrap_or_default();
            let plural = path.trim_start_matches("/apis/toy.io/v1/").replace("namespaces/ns/", "");
            let (line, status, body) = if path.contains("/leases") {
                let mut stored = body.clone();
                stored["metadata"]["resourceVersion"] = json!("1");
                match (&parts.method, unusual.lease_holder) {
                    (&Method::GET, Some(holder)) => {
                        let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 15});
                        let metadata = json!({"name": "toy", "namespace": "ns", "resourceVersion": "1"});
                        ("GET lease".to_owned(), 200, json_body(&json!({"metadata": metadata, "spec": spec})))
                    }
                    (&Method::GET, None) => {
                        let (status, body) = failure(404, "NotFound", "no", ("leases", "toy"));
                        ("GET lease".to_owned(), status, json_body(&body))
                    }
                    (method, _) => (format!("{method} lease [{holder}]"), 200, json_body(&stored)),
                }
            } else if watch {
                let events = if plural == "claims" { vec![claim(), ends_list("9")] } else { vec![ends_list("9")] };
                (format!("WATCH {plural}"), 200, open_watch(&events))
            } else {
                let mut made = body.clone();
                made["metadata"]["uid"] = json!("uid-1");
                made["metadata"]["resourceVersion"] = json!("10");
                (format!("{} {plural}/{name}", parts.method), 201, json_body(&made))
            };
            let hangs = unusual.copies_hang && line.contains("copies/");
            log.lock().expect("no panic").push(line);
            if hangs {
                std::future::pending::<()>().await;
            }
            Ok::<_, kube::Error>(Response::builder().status(status).body(body).expect("a response"))
        }
    });
    kube::Client::new(service, "ns")
}

/// Returns the log of a new server, and a client of it.
fn serving(unusual: Unusual) -> (Log, kube::Client) {
    let log = Log::default();
    let client = server(&log, unusual);
    (log, client)
}

fn spec(client: &kube::Client, source: Source) -> SourceSpec<Copier> {
    source.spec(&Arc::new(Cluster::from_clients("hub", client.clone(), client.clone())))
}

fn process() -> ProcessContext {
    let (clock, metrics) = (Clock::virtual_at(START), Metrics::unregistered());
    ProcessContext { identity: "toy-0".to_owned(), clock, metrics }
}

fn runner_of(logic: Copier, sources: Vec<SourceSpec<Copier>>) -> Runner<Copier> {
    process().runner(logic, sources)
}

fn runner(client: &kube::Client) -> Runner<Copier> {
    runner_of(Copier::default(), vec![spec(client, Source::Claim), spec(client, Source::Copy)])
}

fn manager() -> Manager {
    process().manager()
}

fn lease(client: &kube::Client) -> LeaseConfig {
    LeaseConfig {
        client: client.clone(),
        namespace: "ns".to_owned(),
        names: vec!["toy".to_owned()],
        identity: "toy_1".to_owned(),
        times: LeaseTimes {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        },
    }
}

/// Runs these agents for this time, until they stop on request.
async fn run_for(manager: Manager, duration: Duration) {
    let (trigger, shutdown) = Shutdown::new();
    let running = tokio::spawn(manager.run(shutdown));
    sleep(duration).await;
    trigger.request();
    running.await.expect("no panic").expect("a clean end");
}

fn lines(log: &Log) -> Vec<String> {
    log.lock().expect("no panic").clone()
}

#[tokio::test(start_paused = true)]
async fn an_agent_watches_leads_writes_and_releases_its_lease_at_the_end() {
    let (log, client) = serving(Unusual::default());
    let runner = runner(&client);
    let status = runner.status();
    let (trigger, shutdown) = Shutdown::new();
    let running = tokio::spawn(manager().with_agent(runner).with_lease(lease(&client)).run(shutdown));
    sleep(Duration::from_secs(1)).await;
    assert!(status.borrow().len() == 2 && status.borrow().iter().all(SourceStatus::is_settled));
    trigger.request();
    running.await.expect("no panic").expect("a clean end");
    let lines = lines(&log);
    let writes: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.starts_with("GET")).collect();
    let of =
        |line: &str| writes.iter().position(|other| *other == line).unwrap_or_else(|| panic!("{line}: {writes:?}"));
    assert!(of("POST lease [toy_1]") < of("POST copies/a"), "{writes:?}");
    assert!(writes.contains(&"WATCH claims") && writes.contains(&"WATCH copies"), "{writes:?}");
    assert_eq!(writes.last(), Some(&"PUT lease []"), "{writes:?}");
    assert_eq!(writes.iter().filter(|line| line.contains("copies/a")).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_lead_watches_and_writes_nothing() {
    let (log, client) = serving(Unusual { lease_holder: Some("another"), ..Unusual::default() });
    let runner = runner(&client);
    let status = runner.status();
    let (trigger, shutdown) = Shutdown::new();
    let running = tokio::spawn(manager().with_agent(runner).with_lease(lease(&client)).run(shutdown));
    sleep(Duration::from_secs(14)).await;
    assert!(status.borrow().len() == 2 && status.borrow().iter().all(SourceStatus::is_settled));
    trigger.request();
    running.await.expect("no panic").expect("a clean end");
    let written = lines(&log).into_iter().filter(|line| !line.starts_with("GET") && !line.starts_with("WATCH")).count();
    assert_eq!(written, 0);
}

/// Also rule K11.
#[tokio::test(start_paused = true)]
async fn a_task_beside_the_agents_knows_who_leads_and_ends_before_the_leases_are_released() {
    for (lease_holder, begins) in [(None, true), (Some("another"), false)] {
        let (log, client) = serving(Unusual { lease_holder, ..Unusual::default() });
        let guard = end_of_task(Arc::clone(&log));
        let of_task = Arc::clone(&log);
        let task = |mut leadership: watch::Receiver<Leadership>| {
            let task = async move {
                assert!(crate::process::lease::leads(&mut leadership).await);
                of_task.lock().expect("no panic").push("task".to_owned());
                std::future::pending::<()>().await;
                drop(guard);
            };
            task.boxed()
        };
        let manager = manager().with_agent(runner(&client)).with_lease(lease(&client)).with_task(task);
        // Between two renewals: a renewal that the stop cuts off would make the release of the Lease uncertain.
        run_for(manager, Duration::from_secs(13)).await;
        assert_eq!(lines(&log).contains(&"task".to_owned()), begins);
        let lines = lines(&log);
        let at = |line: &str| lines.iter().position(|other| other == line);
        assert!(at("end of task").is_some() && (!begins || at("end of task") < at("PUT lease []")), "{lines:?}");
    }
}

/// Value that adds the line `end of task` to the log when it is dropped.
fn end_of_task(log: Log) -> impl Send {
    struct Guard(Log);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.lock().expect("no panic").push("end of task".to_owned());
        }
    }
    Guard(log)
}

/// Also rule K5.
#[tokio::test(start_paused = true)]
async fn an_agent_whose_writes_may_still_land_lets_its_lease_expire() {
    let (log, client) = serving(Unusual { copies_hang: true, ..Unusual::default() });
    run_for(manager().with_agent(runner(&client)).with_lease(lease(&client)), Duration::from_secs(1)).await;
    assert!(lines(&log).contains(&"POST copies/a".to_owned()));
    assert!(!lines(&log).contains(&"PUT lease []".to_owned()), "{:?}", lines(&log));
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_lease_leads_at_once() {
    let (log, client) = serving(Unusual::default());
    run_for(manager().with_agent(runner(&client)), Duration::from_secs(1)).await;
    assert!(lines(&log).contains(&"POST copies/a".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn settings_of_the_lease_that_contradict_each_other_end_the_agent_with_the_reason() {
    let (_log, client) = serving(Unusual::default());
    let wrong = LeaseConfig {
        times: LeaseTimes { duration: Duration::from_secs(2), ..LeaseTimes::default() },
        ..lease(&client)
    };
    let (_trigger, shutdown) = Shutdown::new();
    let error = manager().with_agent(runner(&client)).with_lease(wrong).run(shutdown).await.expect_err("not possible");
    assert!(error.to_string().contains("lease duration"), "{error}");
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "a decoder that panics")]
async fn a_watch_that_panics_takes_the_agent_with_it() {
    let (_log, client) = serving(Unusual::default());
    let broken = SourceSpec { decode: Arc::new(|_| panic!("a decoder that panics")), ..spec(&client, Source::Claim) };
    let (_trigger, shutdown) = Shutdown::new();
    drop(manager().with_agent(runner_of(Copier::default(), vec![broken])).run(shutdown).await);
}

/// Rule V11: An agent writes an object of a kind that another agent of the same process watches too: the EndpointSlice
/// controller writes a slice of an exported Service
/// Then: The other agent sees the object in the answer at once, before its own watch shows the object. Its own watch
/// shows the same state later, and that is no change
#[tokio::test(start_paused = true)]
async fn an_agent_sees_the_responses_to_the_writes_of_another_agent_before_its_watch_shows_them() {
    let (log, client) = serving(Unusual::default());
    let record = Arc::default();
    let second = runner_of(Copier::recording(&record), vec![spec(&client, Source::Copy)]);
    assert!(second.response_sink(Source::Claim).is_none(), "it does not watch that kind");
    let copies = SourceSpec { response_sink: second.response_sink(Source::Copy), ..spec(&client, Source::Copy) };
    let first = runner_of(Copier::default(), vec![spec(&client, Source::Claim), copies]);
    let manager = manager().with_agent(first).with_agent(second).with_lease(lease(&client));
    run_for(manager, Duration::from_secs(1)).await;
    assert_eq!(record.lock().expect("no panic").applied, ["a"], "the watch of this server shows no copy");
    let of_lease = |line: &&String| line.contains("lease [");
    assert_eq!(lines(&log).iter().filter(of_lease).collect::<Vec<_>>(), ["POST lease [toy_1]", "PUT lease []"]);
}

/// Also rule K5.
#[tokio::test(start_paused = true)]
async fn a_lease_is_kept_while_a_write_of_any_agent_may_still_land() {
    let (log, client) = serving(Unusual { copies_hang: true, ..Unusual::default() });
    let idle = runner_of(Copier::default(), vec![spec(&client, Source::Copy)]);
    let manager = manager().with_agent(runner(&client)).with_agent(idle).with_lease(lease(&client));
    run_for(manager, Duration::from_secs(1)).await;
    assert!(!lines(&log).contains(&"PUT lease []".to_owned()), "{:?}", lines(&log));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_ends_takes_the_others_with_it() {
    let (log, client) = serving(Unusual::default());
    let (_trigger, shutdown) = Shutdown::new();
    let ends = |_, _| async {
        sleep(Duration::from_secs(3)).await;
        Finished { stop: Stop::WatchesEnded, drained: true }
    };
    let manager = manager().with_agent(runner(&client)).with(ends).with_lease(lease(&client));
    let ended = timeout(Duration::from_secs(60), manager.run(shutdown)).await.expect("the other agent ends too");
    assert!(matches!(ended, Err(RunError::Ended)), "{ended:?}");
    assert_eq!(lines(&log).last().map(String::as_str), Some("PUT lease []"));
}

/// Rule K14: Clients flood the addresses of metrics, probes or the slice stream
/// Then: A thread of its own serves all clients, so the engine, the watches and the Lease go on. Reviews of tokens run
/// on the engine's thread, at most 20 a second. The agent encodes metrics at most once a second, and keeps at most 8
/// texts of them for clients that read slowly. A connection ends after 60 s, or after 100 requests. If the engine's
/// thread is stuck for 30 s, `/healthz` answers 503
#[tokio::test(start_paused = true)]
async fn while_clients_block_the_thread_of_the_listeners_the_engine_writes_and_renews_its_lease() {
    let (blocked, is_blocked) = oneshot::channel();
    let (release, released) = std::sync::mpsc::sync_channel(1);
    let listeners = Listeners::start().expect("a thread");
    let client = tokio::spawn(listeners.run(async move {
        let _ = blocked.send(());
        released.recv_timeout(Duration::from_secs(20))
    }));
    is_blocked.await.expect("it is served");

    let (log, server) = serving(Unusual::default());
    run_for(manager().with_agent(runner(&server)).with_lease(lease(&server)), Duration::from_secs(60)).await;
    let lines = lines(&log);
    let count = |line: &str| lines.iter().filter(|other| *other == line).count();
    assert!(count("POST copies/a") >= 1 && count("PUT lease [toy_1]") >= 25, "{lines:?}");

    assert!(!client.is_finished(), "the client blocked its thread all the time");
    release.send(()).expect("it waits");
    assert_eq!(client.await.expect("no panic"), Ok(()));
}

/// Also rule K14.
#[tokio::test]
async fn a_review_for_a_client_of_the_listeners_uses_connections_of_the_engine_s_runtime() {
    let runtime = tokio::runtime::Handle::current().id();
    let service = tower::service_fn(move |_: Request<Body>| async move {
        assert_eq!(tokio::runtime::Handle::current().id(), runtime);
        let body = json!({"metadata": {}, "spec": {}, "status": {"authenticated": true, "user": {"username": "a"}}});
        Ok::<_, kube::Error>(Response::new(Body::from(body.to_string().into_bytes())))
    });
    let reviews = Reviews::new(kube::Client::new(service, "default"));
    let listeners = Listeners::start().expect("a thread");
    let user = listeners.run(async move { reviews.user("token", None).await }).await.expect("an answer");
    assert_eq!(user.and_then(|user| user.username).as_deref(), Some("a"));
}

/// Also rule K14.
#[tokio::test]
async fn a_task_of_the_listeners_ends_with_its_future() {
    let listeners = Listeners::start().expect("a thread");
    let (alive, ended) = oneshot::channel::<()>();
    let (begun, has_begun) = oneshot::channel();
    let task = tokio::spawn(listeners.run(async move {
        let _ = begun.send(());
        std::future::pending::<()>().await;
        drop(alive);
    }));
    has_begun.await.expect("it begins");
    task.abort();
    assert!(timeout(Duration::from_secs(20), ended).await.expect("it ends").is_err());
}
