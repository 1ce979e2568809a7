//! Tests of a watch against a server that the test simulates, request by request, under paused time.

use std::convert::Infallible;

use bytes::Bytes;
use futures::stream;
use http::{Request, Response, header};
use http_body_util::{StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use prometheus::Registry;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use fleetnet_types::{ObjectName, Timestamp};

use super::*;
use crate::engine::logic::{Change, Event as EventOf, Fight, Flow, Plan, ProcessNews, Resource, WatchNews, WriteNews};
use crate::engine::versions::Mark;
use crate::io::client::Cluster;
use crate::io::restores::Restores;
use crate::limits::{RAISED_REVISION, WATCH_CHANNEL_MESSAGES};

/// Agent without behaviour: a watch needs only the types of an agent.
struct TypesOnly;

impl Logic for TypesOnly {
    type Source = u8;
    type Object = String;
    type Key = u8;
    type Receipt = ();
    type Effect = ();
    type Message = Infallible;

    fn observe(&mut self, _: u8, _: Change<String>, _: Timestamp, _: &mut Vec<u8>) {
        unreachable!("watches are tested without an engine");
    }
    fn watch(&mut self, _: u8, _: WatchNews, _: Timestamp, _: &mut Vec<u8>) {
        unreachable!("watches are tested without an engine");
    }
    fn receive(&mut self, message: Infallible, _: Timestamp, _: &mut Vec<u8>) {
        match message {}
    }
    fn process(&mut self, _: ProcessNews, _: Timestamp, _: &mut Vec<u8>) {
        unreachable!("watches are tested without an engine");
    }
    fn plan(&self, _: &u8, _: Timestamp) -> Plan<u8, (), ()> {
        unreachable!("watches are tested without an engine");
    }
    fn planned(&mut self, _: &u8, (): (), _: Timestamp) {
        unreachable!("watches are tested without an engine");
    }
    fn flow(&self, _: &u8) -> Flow {
        unreachable!("watches are tested without an engine");
    }
    fn write(&mut self, _: &u8, _: WriteNews<'_, u8, ()>, _: Timestamp, _: &mut Vec<u8>) -> Vec<EventOf<u8>> {
        unreachable!("watches are tested without an engine");
    }
    fn fight(&mut self, _: &u8, _: &Fight<u8>, _: &mut Vec<u8>) -> Vec<EventOf<u8>> {
        unreachable!("watches are tested without an engine");
    }
}

/// Decoder of the tests for `{"metadata":{…},"value":"…"}`. An object without a value is undecodable.
fn decode(json: &[u8]) -> Result<Observed<String>, Undecodable> {
    let value: Value = serde_json::from_slice(json).unwrap();
    let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default();
    let resource_version = value["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let (name, uid) = (ObjectName::new(text("namespace"), text("name")), text("uid").into());
    match value["value"].as_str() {
        Some(object) => Ok(Observed { name, uid, resource_version, object: object.to_owned() }),
        None => Err(Undecodable { name, uid, resource_version, why: "no value".to_owned() }),
    }
}

fn object(name: &str, version: u64, value: &str) -> Value {
    json!({
        "metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string()},
        "value": value,
    })
}

/// Returns a page of a list at version 100 that continues with this token.
fn page(token: &str, items: Value) -> Value {
    json!({"metadata": {"resourceVersion": "100", "continue": token}, "items": items})
}

fn undecodable_object(name: &str, version: u64) -> Value {
    let mut object = object(name, version, "");
    object.as_object_mut().unwrap().remove("value");
    object
}

fn applied(name: &str, version: u64, value: &str) -> WatchEvent<String> {
    WatchEvent::Applied(decode(object(name, version, value).to_string().as_bytes()).unwrap())
}

fn undecodable(name: &str, version: u64) -> WatchEvent<String> {
    WatchEvent::Undecodable(decode(undecodable_object(name, version).to_string().as_bytes()).unwrap_err())
}

fn deleted(name: &str, version: u64) -> WatchEvent<String> {
    WatchEvent::Deleted {
        name: ObjectName::new("ns", name),
        uid: format!("uid-{name}").into(),
        resource_version: version,
    }
}

type AnyBody = UnsyncBoxBody<Bytes, std::io::Error>;

/// Request that waits until the test sends the response.
struct Received {
    path: String,
    query: String,
    accept: String,
    accept_encoding: String,
    at: Instant,
    answer: oneshot::Sender<Response<AnyBody>>,
}

/// Sending side of a response whose body is still open. Dropping this value ends the body.
struct Open(mpsc::UnboundedSender<Result<Frame<Bytes>, std::io::Error>>);

impl Received {
    fn answer(self, status: u16, body: Value) {
        self.answer_with(Response::builder().status(status), body);
    }

    fn answer_with(self, head: http::response::Builder, body: Value) {
        let open = self.open(head);
        open.send(body.to_string());
    }

    fn watch(self) -> Open {
        self.open(Response::builder())
    }

    fn open(self, head: http::response::Builder) -> Open {
        let (sender, receiver) = mpsc::unbounded_channel();
        let frames = stream::unfold(receiver, |mut receiver: mpsc::UnboundedReceiver<_>| async move {
            receiver.recv().await.map(|frame| (frame, receiver))
        });
        // Sending fails only if the watch has dropped its request in the meantime.
        let _ = self.answer.send(head.body(http_body_util::BodyExt::boxed_unsync(StreamBody::new(frames))).unwrap());
        Open(sender)
    }

    /// Returns the query of the request without `timeoutSeconds`, and the value of `timeoutSeconds`, which is random.
    fn query_and_timeout(&self) -> (String, u64) {
        let (rest, timeout) = self.query.split_once("&timeoutSeconds=").unwrap();
        (rest.to_owned(), timeout.parse().unwrap())
    }

    /// Returns the version after which the requested watch continues.
    fn after(&self) -> u64 {
        let (query, _) = self.query_and_timeout();
        query.strip_prefix("watch=true&allowWatchBookmarks=true&resourceVersion=").unwrap().parse().unwrap()
    }

    fn is_streaming_list(&self) -> bool {
        self.query.contains("sendInitialEvents=true")
    }
}

impl Open {
    fn send(&self, text: impl Into<Bytes>) {
        // Sending fails only if the watch has dropped its request in the meantime.
        let _ = self.0.send(Ok(Frame::data(text.into())));
    }

    fn event(&self, kind: &str, object: &Value) {
        self.send(format!("{}\n", json!({"type": kind, "object": object})));
    }

    fn bookmark(&self, version: u64) {
        self.event("BOOKMARK", &json!({"metadata": {"resourceVersion": version.to_string()}}));
    }

    fn end_list(&self, version: u64) {
        let annotations = json!({"k8s.io/initial-events-end": "true"});
        let metadata = json!({"resourceVersion": version.to_string(), "annotations": annotations});
        self.event("BOOKMARK", &json!({"metadata": metadata}));
    }

    fn error(&self, code: u16, message: &str) {
        self.event("ERROR", &json!({"kind": "Status", "code": code, "message": message}));
    }

    fn end(self) {}

    fn cut(self) {
        let _ = self.0.send(Err(std::io::ErrorKind::ConnectionReset.into()));
    }
}

/// Watch under test, and its server.
struct Fixture {
    received: mpsc::UnboundedReceiver<Received>,
    messages: mpsc::Receiver<WatchMessage<u8, String>>,
    progress: Progress,
    restores: Restores,
    registry: Registry,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Options {
    optional: bool,
    metadata_only: bool,
    namespace: Option<String>,
    name: Option<&'static str>,
    freezes_when_forbidden: bool,
}

impl Fixture {
    fn start() -> Self {
        Self::with(Options::default())
    }

    fn with(options: Options) -> Self {
        let (requests, received) = mpsc::unbounded_channel();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (answer, answered) = oneshot::channel();
            let header = |name: header::HeaderName| request.headers()[name].to_str().unwrap().to_owned();
            let received = Received {
                path: request.uri().path().to_owned(),
                query: request.uri().query().unwrap().to_owned(),
                accept: header(header::ACCEPT),
                accept_encoding: header(header::ACCEPT_ENCODING),
                at: Instant::now(),
                answer,
            };
            // Sending fails only after the test has ended and dropped the receiver.
            let _ = requests.send(received);
            async move { answered.await.map_err(|_| std::io::Error::from(std::io::ErrorKind::ConnectionRefused)) }
        });
        let client = Client::new(service, "default");
        let cluster = Cluster::from_clients("hub", client.clone(), client);
        let restores = cluster.restores.clone();
        let resource = Resource { group: "things.test", version: "v1", kind: "Thing", plural: "things" };
        let spec = SourceSpec::<TypesOnly> {
            namespace: options.namespace,
            name: options.name,
            freezes_when_forbidden: options.freezes_when_forbidden,
            optional: options.optional,
            metadata_only: options.metadata_only,
            ..SourceSpec::new(7, Arc::new(cluster), resource, Arc::new(decode))
        };
        let (out, messages) = mpsc::channel(WATCH_CHANNEL_MESSAGES);
        let registry = Registry::new();
        let metrics = Metrics::new(&registry).unwrap();
        let clock = Clock::virtual_at(Timestamp::from_seconds(1_800_000_000));
        let progress = Progress::default();
        let task = tokio::spawn(watch::<TypesOnly>((Arc::new(spec), progress.clone()), out, metrics, clock, 1));
        Self { received, messages, progress, restores, registry, task }
    }

    async fn next_request(&mut self) -> Received {
        let received = timeout(Duration::from_secs(3_600), self.received.recv()).await;
        received.expect("no wait is that long").expect("the watch runs")
    }

    async fn next_event(&mut self) -> WatchEvent<String> {
        let message = timeout(Duration::from_secs(3_600), self.messages.recv()).await;
        message.expect("no wait is that long").expect("the watch runs").event
    }

    async fn expect_events(&mut self, expected: Vec<WatchEvent<String>>) {
        for event in expected {
            assert_eq!(self.next_event().await, event);
        }
    }

    async fn expect_list(&mut self, objects: Vec<WatchEvent<String>>, resource_version: u64) {
        self.expect_events(vec![WatchEvent::LIST_STARTED]).await;
        self.expect_events(objects).await;
        self.expect_events(vec![WatchEvent::ListEnded { resource_version }]).await;
    }

    async fn expect_failure(&mut self) -> String {
        match self.next_event().await {
            WatchEvent::Failed { message } => message,
            other => panic!("a failure was expected, not {other:?}"),
        }
    }

    /// Responds with `revision` to the check that a watch makes before it resumes. The check compares the server's
    /// revision with the watch's version.
    async fn check_finds(&mut self, revision: u64) {
        let request = self.next_request().await;
        assert_eq!(request.query, "limit=1", "most recent, so without a resourceVersion");
        request.answer(
            200,
            json!({"metadata": {"resourceVersion": revision.to_string(), "continue": "more"}, "items": []}),
        );
    }

    /// Responds to the first list: no objects, at version 100. Returns the watch that follows.
    async fn listed_at_100(&mut self) -> Open {
        let open = self.next_request().await.watch();
        open.end_list(100);
        self.expect_list(vec![], 100).await;
        open
    }

    /// Returns a fixture that has got its first list, and its watch.
    async fn listed() -> (Self, Open) {
        let mut fixture = Self::start();
        let open = fixture.listed_at_100().await;
        (fixture, open)
    }

    /// Responds to the check of a watch that it may resume. Returns the watch, which must continue after this version.
    async fn goes_on_after(&mut self, version: u64) -> Received {
        self.check_finds(version).await;
        let request = self.next_request().await;
        assert_eq!(request.after(), version);
        request
    }

    async fn next_streaming_list(&mut self) -> Received {
        let request = self.next_request().await;
        assert!(request.is_streaming_list(), "{}", request.query);
        request
    }

    /// Sends the new object `a` with version 101.
    async fn takes_a_at_101(&mut self, open: &Open) {
        open.event("ADDED", &object("a", 101, "one"));
        self.expect_events(vec![applied("a", 101, "one")]).await;
    }

    fn metric(&self, name: &str, label: Option<&str>) -> f64 {
        let families = self.registry.gather();
        let family = families.iter().find(|family| family.name() == name);
        let metrics = family.map(|family| family.get_metric()).unwrap_or_default();
        let wanted = metrics
            .iter()
            .find(|metric| label.is_none_or(|label| metric.get_label().iter().any(|pair| pair.value() == label)));
        wanted.map_or(0.0, |metric| metric.get_gauge().get_value() + metric.get_counter().get_value())
    }

    fn restarts(&self, reason: &str) -> f64 {
        self.metric("fleetnet_watch_restarts_total", Some(reason))
    }

    fn age_seconds(&self) -> f64 {
        self.metric("fleetnet_watch_age_seconds", None)
    }

    /// Returns a fixture whose watch at version 100 failed before it reported the own write with version 101.
    async fn unconfirmed() -> Self {
        let mut fixture = Self::start();
        let open = fixture.listed_at_100().await;
        fixture.progress.observed(101);
        open.cut();
        fixture.expect_failure().await;
        fixture
    }
}

/// Begin of a list that was requested after one noticed restore, before anything was observed.
const LIST_AFTER_RESTORE: WatchEvent<String> =
    WatchEvent::ListStarted { requested: Mark { version: 0, tombstones: 0 }, restores: 1 };

#[tokio::test(start_paused = true)]
async fn the_first_list_is_streamed_most_recent_and_the_same_connection_goes_on() {
    let mut fixture = Fixture::start();
    let request = fixture.next_request().await;
    assert_eq!(request.path, "/apis/things.test/v1/things");
    let (query, timeout_seconds) = request.query_and_timeout();
    assert_eq!(
        query,
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion="
    );
    assert!((30..=60).contains(&timeout_seconds));
    assert_eq!((request.accept.as_str(), request.accept_encoding.as_str()), ("application/json", "identity"));

    let open = request.watch();
    open.event("ADDED", &object("b", 90, "one"));
    open.event("ADDED", &object("a", 20, "two"));
    open.end_list(100);
    open.event("MODIFIED", &object("a", 101, "three"));
    open.event("DELETED", &object("b", 102, "one"));

    fixture
        .expect_events(vec![
            WatchEvent::LIST_STARTED,
            applied("b", 90, "one"),
            applied("a", 20, "two"),
            WatchEvent::ListEnded { resource_version: 100 },
            applied("a", 101, "three"),
            deleted("b", 102),
        ])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_message_carries_its_source_and_when_it_was_read() {
    let (mut fixture, open) = Fixture::listed().await;
    tokio::time::advance(Duration::from_secs(3)).await;
    open.event("ADDED", &object("a", 101, "one"));
    let message = fixture.messages.recv().await.unwrap();
    assert_eq!((message.source, message.at), (7, Timestamp::from_seconds(1_800_000_003)));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_and_metadata_only_are_requested_in_watch_and_list() {
    let namespace = Some("fleet".to_owned());
    let mut fixture = Fixture::with(Options { metadata_only: true, namespace, ..Options::default() });
    let request = fixture.next_request().await;
    assert_eq!(request.path, "/apis/things.test/v1/namespaces/fleet/things");
    assert_eq!(request.accept, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    request.answer(422, json!({"message": "no"}));
    let request = fixture.next_request().await;
    assert_eq!(request.path, "/apis/things.test/v1/namespaces/fleet/things");
    assert_eq!(request.accept, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
}

#[tokio::test(start_paused = true)]
async fn one_object_is_requested_by_its_name_in_watch_and_list() {
    let mut fixture = Fixture::with(Options { name: Some("one"), ..Options::default() });
    let request = fixture.next_request().await;
    assert!(request.query.ends_with("&fieldSelector=metadata.name%3Done"), "{}", request.query);
    request.answer(422, json!({"message": "no"}));
    assert_eq!(fixture.next_request().await.query, "limit=500&fieldSelector=metadata.name%3Done");
}

/// Rule V1: An agent lists a kind
/// Then: The agent requests the most recent state. The agent never lists at resourceVersion 0, because the answer may
/// then be old
#[tokio::test(start_paused = true)]
async fn a_server_that_rejects_streaming_lists_is_listed_in_pages_and_then_watched() {
    for status in [400, 422] {
        let mut fixture = Fixture::start();
        fixture.next_request().await.answer(status, json!({"message": "sendInitialEvents is forbidden"}));

        let request = fixture.next_request().await;
        assert_eq!(request.query, "limit=500", "most recent, so without a resourceVersion");
        request.answer(200, page("to/ken=", json!([object("a", 20, "one")])));
        let request = fixture.next_request().await;
        assert_eq!(request.query, "limit=500&continue=to%2Fken%3D");
        request.answer(200, json!({"metadata": {"resourceVersion": "100"}, "items": [object("b", 90, "two")]}));

        fixture.expect_list(vec![applied("a", 20, "one"), applied("b", 90, "two")], 100).await;
        let request = fixture.next_request().await;
        assert_eq!(request.after(), 100);
        let open = request.watch();
        open.event("MODIFIED", &object("a", 101, "three"));
        fixture.expect_events(vec![applied("a", 101, "three")]).await;

        // The server has rejected a streaming list before, so the watch lists in pages again after a 410.
        open.error(410, "too old");
        assert_eq!(fixture.next_request().await.query, "limit=500");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_pages_expire_starts_again() {
    let mut fixture = Fixture::start();
    fixture.next_request().await.answer(400, json!({}));
    let page = page("token", json!([object("a", 20, "one")]));
    fixture.next_request().await.answer(200, page);
    fixture.next_request().await.answer(410, json!({"message": "the continue parameter is too old"}));
    fixture.expect_events(vec![WatchEvent::LIST_STARTED, applied("a", 20, "one")]).await;

    let request = fixture.next_request().await;
    assert_eq!(request.query, "limit=500");
    request.answer(200, json!({"metadata": {"resourceVersion": "200"}, "items": []}));
    fixture.expect_list(vec![], 200).await;
}

/// Rule V3: The server no longer has the version of a watch (410), or sends a line that is not a watch event
/// Then: The agent lists the kind again, after a back-off
#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_is_followed_by_a_list_in_every_form_of_the_error() {
    for by_event in [true, false] {
        let (mut fixture, open) = Fixture::listed().await;
        fixture.takes_a_at_101(&open).await;
        if by_event {
            open.error(410, "too old resource version");
        } else {
            open.end();
            let request = fixture.goes_on_after(101).await;
            request.answer(410, json!({"reason": "Expired"}));
        }

        let request = fixture.next_streaming_list().await;
        let open = request.watch();
        open.event("ADDED", &object("b", 150, "two"));
        open.end_list(200);
        fixture.expect_list(vec![applied("b", 150, "two")], 200).await;
        assert_eq!(fixture.restarts("expired"), 1.0);
    }
}

/// Also rule V3.
#[tokio::test(start_paused = true)]
async fn a_server_that_calls_every_version_too_old_is_not_listed_in_a_tight_loop() {
    let mut fixture = Fixture::start();
    let start = Instant::now();
    for _ in 0..12 {
        let open = fixture.next_request().await.watch();
        open.end_list(100);
        open.error(410, "too old resource version");
        fixture.expect_list(vec![], 100).await;
    }
    fixture.next_request().await;
    assert!(start.elapsed() > Duration::from_secs(45), "{:?}", start.elapsed());
}

/// Rule V6: The server does not end a watch in time, for example because the connection is dead
/// Then: The agent ends the watch 5 s later, and starts a new watch from the last version
#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_does_not_end_is_ended_five_seconds_later_and_goes_on_from_its_version() {
    let mut fixture = Fixture::start();
    let request = fixture.next_request().await;
    let (requested_at, (_, timeout_seconds)) = (request.at, request.query_and_timeout());
    let open = request.watch();
    open.end_list(100);
    open.event("ADDED", &object("a", 101, "one"));
    fixture.next_event().await;
    fixture.next_event().await;
    fixture.next_event().await;

    let message = fixture.expect_failure().await;
    assert!(message.contains("did not end the watch"), "{message}");
    assert_eq!(requested_at.elapsed(), Duration::from_secs(timeout_seconds + 5));
    let _request = fixture.goes_on_after(101).await;
    assert!(requested_at.elapsed() < Duration::from_secs(timeout_seconds + 6));
    assert_eq!(fixture.restarts("silent"), 1.0);
    drop(open);
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_watch_without_an_answer_times_out() {
    let mut fixture = Fixture::start();
    let unanswered = fixture.next_request().await;
    let message = fixture.expect_failure().await;
    assert_eq!(message, "no answer within 20s");
    assert!(fixture.next_request().await.is_streaming_list());
    drop(unanswered);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_move_the_version_and_show_that_the_watch_lives() {
    let (mut fixture, open) = Fixture::listed().await;
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(fixture.age_seconds(), 20.0);

    open.bookmark(500);
    // The watch handles lines in order. When the watch has reported this event, it has also read the bookmark before
    // the event.
    open.event("ADDED", &object("a", 501, "one"));
    fixture.expect_events(vec![applied("a", 501, "one")]).await;
    assert_eq!(fixture.age_seconds(), 0.0);

    open.bookmark(600);
    open.end();
    fixture.goes_on_after(600).await;
}

#[tokio::test(start_paused = true)]
async fn a_failing_watch_grows_old() {
    let mut fixture = Fixture::start();
    fixture.listed_at_100().await.cut();
    fixture.expect_failure().await;
    for _ in 0..6 {
        fixture.next_request().await.answer(500, json!({}));
        fixture.expect_failure().await;
    }
    let age = fixture.age_seconds();
    assert!(age > 0.9, "{age}");
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_is_reported_as_present_and_never_as_deleted() {
    let mut fixture = Fixture::start();
    let open = fixture.next_request().await.watch();
    open.event("ADDED", &undecodable_object("a", 20));
    open.end_list(100);
    open.event("MODIFIED", &undecodable_object("a", 101));
    fixture
        .expect_events(vec![
            WatchEvent::LIST_STARTED,
            undecodable("a", 20),
            WatchEvent::ListEnded { resource_version: 100 },
            undecodable("a", 101),
        ])
        .await;
    // The undecodable event still advances the watch's version, so the next watch starts after version 101. Otherwise,
    // the server would send the event again forever.
    open.end();
    fixture.goes_on_after(101).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_does_not_fail_the_page_that_it_is_in() {
    let mut fixture = Fixture::start();
    fixture.next_request().await.answer(422, json!({}));
    let items = json!([object("a", 20, "one"), undecodable_object("b", 30), object("c", 40, "two")]);
    fixture.next_request().await.answer(200, json!({"metadata": {"resourceVersion": "100"}, "items": items}));
    fixture.expect_list(vec![applied("a", 20, "one"), undecodable("b", 30), applied("c", 40, "two")], 100).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_reported_as_deleted_even_where_its_content_cannot_be_decoded() {
    let (mut fixture, open) = Fixture::listed().await;
    open.event("DELETED", &undecodable_object("a", 101));
    fixture.expect_events(vec![deleted("a", 101)]).await;
}

/// Rule V2: The connection of a watch is cut
/// Then: The agent continues the watch from the last version, without a new list
#[tokio::test(start_paused = true)]
async fn a_cut_neither_loses_the_version_nor_relists() {
    let (mut fixture, open) = Fixture::listed().await;
    fixture.takes_a_at_101(&open).await;
    open.cut();
    fixture.expect_failure().await;

    // The watch keeps its version 101 also after several failures in a row.
    for _ in 0..5 {
        let request = fixture.goes_on_after(101).await;
        request.answer(503, json!({"message": "starting"}));
        assert!(fixture.expect_failure().await.contains("starting"));
    }
    let request = fixture.goes_on_after(101).await;
    request.watch().event("MODIFIED", &object("a", 102, "two"));
    fixture.expect_events(vec![WatchEvent::Resumed, applied("a", 102, "two")]).await;
}

#[tokio::test(start_paused = true)]
async fn an_event_cut_in_its_middle_is_not_reported_and_not_skipped() {
    let (mut fixture, open) = Fixture::listed().await;
    open.send(&b"{\"type\":\"ADDED\",\"object\":{\"metadata\""[..]);
    open.end();
    assert_eq!(fixture.expect_failure().await, "the connection was cut: in the middle of an event");
    fixture.goes_on_after(100).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_cut_starts_again() {
    let mut fixture = Fixture::start();
    let open = fixture.next_request().await.watch();
    open.event("ADDED", &object("b", 90, "one"));
    fixture.expect_events(vec![WatchEvent::LIST_STARTED, applied("b", 90, "one")]).await;
    open.cut();
    fixture.expect_failure().await;

    let request = fixture.next_streaming_list().await;
    request.watch().end_list(100);
    fixture.expect_list(vec![], 100).await;
}

/// Rule V7: A streaming list does not end
/// Then: The agent replaces the unfinished streaming list by a list in pages. The agent's next list of the kind is a
/// streaming list again
#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_ends_unfinished_is_replaced_by_pages_once() {
    let mut fixture = Fixture::start();
    let open = fixture.next_request().await.watch();
    open.event("ADDED", &object("a", 20, "one"));
    fixture.expect_events(vec![WatchEvent::LIST_STARTED, applied("a", 20, "one")]).await;
    open.end();
    assert!(fixture.expect_failure().await.contains("ended before it was complete"));

    let request = fixture.next_request().await;
    assert_eq!(request.query, "limit=500");
    request.answer(200, json!({"metadata": {"resourceVersion": "100"}, "items": [object("a", 20, "one")]}));
    fixture.expect_list(vec![applied("a", 20, "one")], 100).await;
    let request = fixture.next_request().await;
    assert_eq!(request.after(), 100);
    request.watch().error(410, "too old");
    assert!(fixture.next_request().await.is_streaming_list());
}

/// Also rule V7.
#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_stalls_is_replaced_by_pages() {
    let mut fixture = Fixture::start();
    let open = fixture.next_request().await.watch();
    open.event("ADDED", &object("a", 20, "one"));
    fixture.expect_events(vec![WatchEvent::LIST_STARTED, applied("a", 20, "one")]).await;
    assert!(fixture.expect_failure().await.contains("did not end in time"));
    assert_eq!(fixture.next_request().await.query, "limit=500");
    drop(open);
}

/// Rule V8: A page of a list or an event of a watch is too long
/// Then: If a page is too long, the agent requests smaller pages. If an event is too long, the agent lists the kind in
/// pages
#[tokio::test(start_paused = true)]
async fn a_page_that_is_too_long_is_requested_again_in_smaller_pages() {
    let mut fixture = Fixture::start();
    fixture.next_request().await.answer(422, json!({}));
    let first = page("two", json!([object("a", 20, "one")]));
    fixture.next_request().await.answer(200, first);
    // The server sends 11 MiB for the second page, with a limit of 500 objects and again with a limit of 125. A page
    // may have at most 10 MiB, so the watch asks for fewer objects each time. The objects of the first page stay
    // listed.
    let megabyte = Bytes::from(vec![b' '; 1 << 20]);
    for query in ["limit=500&continue=two", "limit=125&continue=two"] {
        let request = fixture.next_request().await;
        assert_eq!(request.query, query);
        let open = request.watch();
        for _ in 0..=10 {
            open.send(megabyte.clone());
        }
    }
    let request = fixture.next_request().await;
    assert_eq!(request.query, "limit=31&continue=two");
    let second = page("three", json!([object("b", 30, "two")]));
    request.answer(200, second);
    let request = fixture.next_request().await;
    assert_eq!(request.query, "limit=31&continue=three");
    request.answer(200, json!({"metadata": {"resourceVersion": "100"}, "items": []}));
    fixture.expect_list(vec![applied("a", 20, "one"), applied("b", 30, "two")], 100).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_too_long_for_a_page_is_reported() {
    let mut fixture = Fixture::start();
    fixture.next_request().await.answer(422, json!({}));
    let megabyte = Bytes::from(vec![b' '; 1 << 20]);
    for objects in [500, 125, 31, 7, 1] {
        let request = fixture.next_request().await;
        assert_eq!(request.query, format!("limit={objects}"));
        let open = request.watch();
        for _ in 0..=10 {
            open.send(megabyte.clone());
        }
    }
    let message = fixture.expect_failure().await;
    assert_eq!(message, "one of the things is longer than 10485760 bytes: make it smaller or delete it");
    assert_eq!(fixture.restarts("page_too_long"), 1.0);
    // The object may have become smaller by now, so the list starts with full pages.
    assert_eq!(fixture.next_request().await.query, "limit=500");
}

/// Also rule V8.
#[tokio::test(start_paused = true)]
async fn an_event_that_is_too_long_is_read_from_a_list_in_pages() {
    let (mut fixture, mut open) = Fixture::listed().await;
    let long = "x".repeat(9 << 20);
    for (version, value) in [(101, long.as_str()), (103, "short")] {
        open.event("MODIFIED", &object("a", version, &long));
        let message = fixture.expect_failure().await;
        assert_eq!(message, "an event is longer than 8388608 bytes; listing in pages instead");

        let request = fixture.next_request().await;
        assert_eq!(request.query, "limit=500");
        let listed = version + 1;
        let items = json!([object("a", version, value)]);
        request.answer(200, json!({"metadata": {"resourceVersion": listed.to_string()}, "items": items}));
        fixture.expect_list(vec![applied("a", version, value)], listed).await;
        let request = fixture.next_request().await;
        assert_eq!(request.after(), listed);
        open = request.watch();
    }
    assert_eq!(fixture.restarts("too_long"), 2.0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ended_in_time_goes_on_at_once() {
    let mut fixture = Fixture::start();
    let request = fixture.next_request().await;
    let (_, timeout_seconds) = request.query_and_timeout();
    let open = request.watch();
    open.end_list(100);
    open.bookmark(150);
    tokio::time::advance(Duration::from_secs(timeout_seconds)).await;
    let ended_at = Instant::now();
    open.end();
    let request = fixture.next_request().await;
    assert_eq!((request.after(), request.at), (150, ended_at));
    assert_eq!(fixture.restarts("ended"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn requests_to_a_server_that_ends_every_watch_at_once_back_off() {
    let mut fixture = Fixture::start();
    let start = Instant::now();
    fixture.listed_at_100().await.end();
    let mut watches = 0;
    while start.elapsed() < Duration::from_secs(60) {
        let request = fixture.next_request().await;
        if request.query == "limit=1" {
            request.answer(200, json!({"metadata": {"resourceVersion": "100"}}));
        } else {
            request.watch().end();
            watches += 1;
        }
    }
    assert!((10..=14).contains(&watches), "{watches}");
}

/// Also rule V4.
#[tokio::test(start_paused = true)]
async fn a_quiet_watch_of_a_server_whose_data_went_back_is_relisted() {
    let (mut fixture, open) = Fixture::listed().await;
    tokio::time::advance(Duration::from_secs(30)).await;
    open.end();
    fixture.check_finds(60).await;
    let request = fixture.next_streaming_list().await;
    request.watch().end_list(61);
    fixture.expect_events(vec![LIST_AFTER_RESTORE, WatchEvent::ListEnded { resource_version: 61 }]).await;
    assert_eq!(fixture.restarts("went_back"), 1.0);
}

/// Also rule V4.
#[tokio::test(start_paused = true)]
async fn a_watch_that_failed_before_it_reported_an_own_write_is_relisted() {
    for (observed, relists) in [(100, false), (101, true)] {
        let (mut fixture, open) = Fixture::listed().await;
        fixture.progress.observed(observed);
        open.cut();
        fixture.expect_failure().await;
        if relists {
            fixture.check_finds(101).await;
            let request = fixture.next_streaming_list().await;
            fixture.progress.observed(160);
            request.watch().end_list(120);
            let requested = Mark { version: 101, tombstones: 0 };
            let events = vec![
                WatchEvent::ListStarted { requested, restores: 0 },
                WatchEvent::ListEnded { resource_version: 120 },
            ];
            fixture.expect_events(events).await;
        } else {
            fixture.goes_on_after(100).await;
        }
        assert_eq!(fixture.restarts("unconfirmed"), f64::from(u8::from(relists)));
    }
}

/// Also rule V4.
#[tokio::test(start_paused = true)]
async fn a_restore_that_one_watch_notices_makes_each_watch_list_again() {
    let (mut fixture, _open) = Fixture::listed().await;
    let noticed = Instant::now();
    fixture.restores.noticed(0);
    let request = fixture.next_streaming_list().await;
    assert_eq!(request.at, noticed, "at once, although its watch is open");
    let open = request.watch();
    open.end_list(120);
    fixture.expect_events(vec![LIST_AFTER_RESTORE, WatchEvent::ListEnded { resource_version: 120 }]).await;
    open.cut();
    fixture.expect_failure().await;
    fixture.check_finds(60).await;
    assert!(fixture.next_request().await.is_streaming_list());
    assert_eq!(fixture.restores.count(), 2, "this watch noticed another restore");
    assert_eq!(fixture.restarts("went_back"), 2.0);
}

/// Also rule V4.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_behind_what_is_known_is_noticed_once_before_it_is_listed() {
    for found in [60, 101 + RAISED_REVISION] {
        let mut fixture = Fixture::unconfirmed().await;
        fixture.check_finds(found).await;
        let request = fixture.next_streaming_list().await;
        let open = request.watch();
        open.end_list(found);
        let started = WatchEvent::ListStarted { requested: Mark { version: 101, tombstones: 0 }, restores: 1 };
        fixture.expect_events(vec![started, WatchEvent::ListEnded { resource_version: found }]).await;
        open.event("ADDED", &object("a", found + 1, "one"));
        fixture.expect_events(vec![applied("a", found + 1, "one")]).await;
        assert_eq!(fixture.restores.count(), 1);
    }
}

/// Also rule V4.
#[tokio::test(start_paused = true)]
async fn a_restore_ends_the_wait_of_a_watch_that_failed() {
    let mut fixture = Fixture::start();
    fixture.listed_at_100().await.cut();
    fixture.expect_failure().await;
    let noticed = Instant::now();
    fixture.restores.noticed(0);
    let request = fixture.next_streaming_list().await;
    assert_eq!(request.at, noticed);
}

/// Rule V4: The server's data went back in time, for example because it was restored from a backup
/// Then: The agent detects the older data when an event has an older version than an earlier event. The agent also
/// requests the server's current revision after a failure, after a watch without events, after a watch that ended
/// early, and before it lists a kind again. If this revision is older than the newest known version of the kind, or
/// higher by 100,000,000 or more (a restore with `--bump-revision`), the agent lists the kind again. It also lists the
/// kind again if the watch failed before it reported an own write. If a write has a conflict or no clear answer, the
/// agent gets the object. If that is older than the object that the write is based on, the agent has detected older
/// data, too. It lists every kind of the server again if it has detected older data anywhere, at once, but no kind more
/// than once a second. Until a kind is listed again, its view is unknown, so the agent removes nothing that depends on
/// it (rule A4). A list that is older than a version that was known before the list was requested replaces everything
/// that was known
#[tokio::test(start_paused = true)]
async fn an_event_older_than_an_earlier_one_shows_that_the_data_went_back() {
    let mut fixture = Fixture::start();
    fixture.listed_at_100().await.event("ADDED", &object("a", 60, "one"));
    let noticed = Instant::now();
    let request = fixture.next_streaming_list().await;
    assert!(request.at > noticed, "so a server that goes back and forth is not listed without pause");
    assert_eq!(fixture.restarts("went_back"), 1.0);
    request.watch().end_list(61);
    fixture.expect_events(vec![LIST_AFTER_RESTORE, WatchEvent::ListEnded { resource_version: 61 }]).await;
}

/// Also rule V4.
#[tokio::test(start_paused = true)]
async fn a_server_that_goes_back_and_forth_is_listed_once_a_second() {
    let mut fixture = Fixture::start();
    let start = Instant::now();
    let mut open = fixture.listed_at_100().await;
    let mut lists = 0;
    while start.elapsed() < Duration::from_secs(60) {
        // This watch notices one restore, another watch the next.
        if lists % 2 == 0 {
            open.event("ADDED", &object("a", 60, "one"));
        } else {
            fixture.restores.noticed(fixture.restores.count());
        }
        let request = fixture.next_streaming_list().await;
        open = request.watch();
        open.end_list(120);
        lists += 1;
    }
    assert!((55..=61).contains(&lists), "{lists}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_only_once_a_check_was_answered() {
    let (mut fixture, open) = Fixture::listed().await;
    tokio::time::advance(Duration::from_secs(30)).await;
    open.end();
    for _ in 0..5 {
        let request = fixture.next_request().await;
        assert_eq!(request.query, "limit=1");
        request.answer(500, json!({"message": "no leader"}));
        assert!(fixture.expect_failure().await.contains("no leader"));
    }
    let unanswered = fixture.next_request().await;
    let requested_at = unanswered.at;
    assert_eq!(fixture.expect_failure().await, "no answer within 20s");
    assert_eq!(requested_at.elapsed(), Duration::from_secs(20));
    drop(unanswered);
    fixture.goes_on_after(100).await;
}

/// Also rule V4.
#[tokio::test(start_paused = true)]
async fn after_a_failure_a_server_whose_data_went_back_is_relisted() {
    for failure in ["cut", "error event", "silence", "no right"] {
        let (mut fixture, open) = Fixture::listed().await;
        fixture.takes_a_at_101(&open).await;
        let mut still_open = None;
        match failure {
            "cut" => open.cut(),
            "error event" => open.error(500, "etcd is away"),
            "silence" => still_open = Some(open),
            _ => {
                open.end();
                fixture.next_request().await.answer(403, json!({}));
            }
        }
        assert!(
            matches!(fixture.next_event().await, WatchEvent::Failed { .. } | WatchEvent::NotServed { .. }),
            "{failure}"
        );
        drop(still_open);
        // With a higher revision, the newest objects are missing too.
        fixture.check_finds(if failure == "cut" { 101 + RAISED_REVISION } else { 90 }).await;

        let request = fixture.next_streaming_list().await;
        request.watch().end_list(95);
        fixture.expect_events(vec![LIST_AFTER_RESTORE, WatchEvent::ListEnded { resource_version: 95 }]).await;
        assert_eq!(fixture.restarts("went_back"), 1.0, "{failure}");
    }
}

/// Also rule V4.
#[tokio::test(start_paused = true)]
async fn after_a_watch_that_ended_early_a_server_whose_data_went_back_is_relisted() {
    let (mut fixture, open) = Fixture::listed().await;
    fixture.takes_a_at_101(&open).await;
    tokio::time::advance(Duration::from_secs(29)).await;
    open.end();
    fixture.check_finds(90).await;
    assert!(fixture.next_request().await.is_streaming_list());
}

/// Rule V5: The server does not have a watched kind (404), or the agent has no right to read the kind (403)
/// Then: The agent retries the request after 1 s, and doubles the wait up to 5 min. After a 404, the agent then lists
/// the kind again. After a 403, the agent continues the watch without a new list. The view keeps the known objects.
/// After a 404, the view also marks the kind as unknown, so the agent removes no object whose removal depends on this
/// kind (rule A4). Exception: for namespaces in the hub, and for pods, Nodes and kube-controller-manager's Lease, a 403
/// has the same effect as a 404. A kind that cannot be read when a restore is detected (rule V4) is unknown until the
/// right returns
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_reported_and_requested_again_after_1_s_to_5_min() {
    for (status, optional) in [(403, false), (404, false), (403, true), (404, true)] {
        let mut fixture = Fixture::with(Options { optional, ..Options::default() });
        let mut requested_at = Vec::new();
        for _ in 0..12 {
            let request = fixture.next_request().await;
            requested_at.push(request.at);
            request.answer(status, json!({"message": "not for you"}));
            let WatchEvent::NotServed { status: reported, message } = fixture.next_event().await else {
                panic!("not reported")
            };
            assert_eq!(reported, status);
            assert!(message.ends_with("not for you"), "{message}");
        }
        let waits: Vec<Duration> = requested_at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!((750..=1_001).contains(&waits[0].as_millis()), "{waits:?}");
        assert!(waits[10] >= Duration::from_secs(225) && waits[10] <= Duration::from_millis(300_001), "{waits:?}");
        let reasons = ["not_served", "absent"].map(|reason| fixture.restarts(reason));
        assert_eq!(reasons, if optional { [0.0, 12.0] } else { [12.0, 0.0] });
    }
}

/// Also rule V5.
#[tokio::test(start_paused = true)]
async fn a_kind_that_vanished_is_listed_when_it_returns_and_a_right_that_vanished_is_not() {
    for (status, freezes_when_forbidden, relists) in [(404, false, true), (403, false, false), (403, true, true)] {
        let mut fixture = Fixture::with(Options { freezes_when_forbidden, ..Options::default() });
        let open = fixture.listed_at_100().await;
        open.bookmark(101);
        open.end();
        fixture.next_request().await.answer(status, json!({}));
        assert!(matches!(fixture.next_event().await, WatchEvent::NotServed { .. }));
        assert_eq!(fixture.next_request().await.is_streaming_list(), relists);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_to_be_left_alone_is_left_alone() {
    let mut fixture = Fixture::start();
    let request = fixture.next_request().await;
    let requested_at = request.at;
    request.answer_with(Response::builder().status(429).header("Retry-After", "7"), json!({}));
    fixture.expect_failure().await;
    let waited = fixture.next_request().await.at - requested_at;
    assert!(waited >= Duration::from_secs(7) && waited < Duration::from_secs(8), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn the_back_off_doubles_and_resets_after_the_first_event_of_a_watch() {
    let (mut fixture, open) = Fixture::listed().await;
    open.cut();
    fixture.expect_failure().await;
    for _ in 0..10 {
        fixture.next_request().await.answer(500, json!({}));
        fixture.expect_failure().await;
    }
    fixture.check_finds(100).await;
    let request = fixture.next_request().await;
    let open = request.watch();
    open.event("ADDED", &object("a", 101, "one"));
    fixture.expect_events(vec![WatchEvent::Resumed, applied("a", 101, "one")]).await;
    let cut_at = Instant::now();
    open.cut();
    fixture.expect_failure().await;
    let waited = fixture.next_request().await.at - cut_at;
    assert!(waited <= Duration::from_millis(21), "{waited:?}");
}

/// Also rule V3.
#[tokio::test(start_paused = true)]
async fn a_line_that_is_no_event_is_followed_by_a_list() {
    let (mut fixture, open) = Fixture::listed().await;
    open.send("<html>\n");
    assert!(fixture.expect_failure().await.starts_with("a watch event is undecodable"));
    assert!(fixture.next_request().await.is_streaming_list());
}

#[tokio::test(start_paused = true)]
async fn an_error_event_other_than_too_old_keeps_the_version() {
    let (mut fixture, open) = Fixture::listed().await;
    open.error(500, "etcd is away");
    assert_eq!(fixture.expect_failure().await, "500: etcd is away");
    fixture.goes_on_after(100).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_waits_for_an_engine_that_is_busy_and_loses_nothing() {
    let (mut fixture, open) = Fixture::listed().await;
    let last = 100 + 3 * u64::try_from(WATCH_CHANNEL_MESSAGES).unwrap();
    for version in 101..=last {
        open.event("MODIFIED", &object("a", version, "one"));
    }
    // 300 s are longer than the timeout of the watch (at most 60 s). The watch must not end while it waits for the
    // engine.
    tokio::time::advance(Duration::from_secs(300)).await;
    for version in 101..=last {
        fixture.expect_events(vec![applied("a", version, "one")]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_with_its_engine() {
    let (fixture, open) = Fixture::listed().await;
    drop(fixture.messages);
    open.event("ADDED", &object("a", 101, "one"));
    fixture.task.await.unwrap();
}
