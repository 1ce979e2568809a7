//! Tests of a session, with a hub agent that the test plays.

use super::*;
use crate::stream::connection::{Dialer, Io};
use crate::stream::{client, client::Client};
use fleetnet_proto::{SliceStream, SliceStreamServer};
use fleetnet_runtime::backoff::Jitter;
use fleetnet_runtime::clock::to_jiff;
use fleetnet_runtime::engine::leadership::Leadership;
use fleetnet_types::Timestamp;
use futures::stream::{self, BoxStream, StreamExt as _};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use memkube::{MemKube, Options, User};
use prometheus::Registry;
use std::time::Duration;
use subscribe_response::Message as Response;
use tokio::io::duplex;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tonic::transport::Server;
use tonic::{Request, Response as Answer};

/// Sequence number of the last message that a scripted hub agent sends at once. It sends the others after a second.
const SOON: u64 = 5; // no limit: it is a position in a script of tests

/// Hub agent that answers each stream with the same messages, reads no requests, and then says nothing.
#[derive(Clone)]
struct Script {
    messages: Vec<SubscribeResponse>,
    /// Status after the messages; `None` to say nothing.
    end: Option<Code>,
}

#[tonic::async_trait]
impl SliceStream for Script {
    type SubscribeStream = BoxStream<'static, Result<SubscribeResponse, Status>>;

    async fn subscribe(
        &self,
        requests: Request<Streaming<SubscribeRequest>>,
    ) -> Result<Answer<Self::SubscribeStream>, Status> {
        let later = |message: &SubscribeResponse| message.sequence > SOON;
        let (later, soon): (Vec<_>, Vec<_>) = self.messages.clone().into_iter().partition(later);
        let later = stream::once(async move {
            sleep(Duration::from_secs(1)).await;
            later
        });
        let end = self.end.map(|code| Err(Status::new(code, "the end")));
        let messages = stream::iter(soon).chain(later.flat_map(stream::iter)).map(Ok);
        let messages = messages.chain(stream::iter(end)).chain(stream::pending());
        let never_read = move |message| {
            let _requests = &requests;
            message
        };
        Ok(Answer::new(messages.map(never_read).boxed()))
    }
}

/// Returns a dialer of a hub agent that answers each stream with these messages.
fn dialer(messages: Vec<SubscribeResponse>) -> Dialer {
    script_dialer(Script { messages, end: None })
}

/// Returns a dialer of a hub agent that ends each stream with this code after its first message.
fn refusing_after_welcome(code: Code) -> Dialer {
    script_dialer(Script { messages: vec![welcome()], end: Some(code) })
}

fn script_dialer(script: Script) -> Dialer {
    Dialer::new("hub".to_owned(), move || {
        let script = script.clone();
        async move {
            let (near, far) = duplex(1 << 16);
            let server = Server::builder().add_service(SliceStreamServer::new(script));
            let incoming = stream::iter([Ok::<_, std::io::Error>(far)]).chain(stream::pending());
            tokio::spawn(server.serve_with_incoming(incoming));
            Ok(Box::new(near) as Box<dyn Io>)
        }
    })
}

/// Returns a client whose hub issues tokens for it.
async fn client(dialer: watch::Receiver<Option<Dialer>>) -> (Client, mpsc::Receiver<Message>) {
    let (inbox, messages) = mpsc::channel(8);
    let clock = Clock::virtual_at(Timestamp::from_seconds(1_800_000_000));
    let of_server = clock.clone();
    let server = MemKube::new(Options::new(Arc::new(move || to_jiff(of_server.now())), 1));
    let mut account = ServiceAccount::default();
    account.metadata.name = Some("agent".to_owned());
    let accounts = Api::namespaced(server.client(User::new("admin")), "default");
    accounts.create(&PostParams::default(), &account).await.expect("a new account");
    let client = Client {
        cluster: "member-1".into(),
        leadership: watch::channel(Leadership::Leading { until: None }).1,
        dialer,
        hub: server.client(User::new("system:serviceaccount:default:agent")),
        clock,
        inbox,
        metrics: client::Metrics::new(&Registry::new()).expect("a new registry"),
        jitter: Jitter::new(1),
    };
    (client, messages)
}

/// Plays these messages to a client. Returns the first messages to the engine, until the end of the stream.
async fn played(messages: Vec<SubscribeResponse>) -> Vec<String> {
    played_with(messages, |_| ()).await
}

/// Like [`played`]. Calls a function with the acknowledgements of the stream when it begins.
async fn played_with(messages: Vec<SubscribeResponse>, begun: impl Fn(&Acknowledgements)) -> Vec<String> {
    let (client, mut messages) = client(watch::Sender::new(Some(dialer(messages))).subscribe()).await;
    let client = tokio::spawn(client.run());
    let mut seen = Vec::new();
    while let Some(message) = timeout(Duration::from_secs(100), messages.recv()).await.expect("the stream ends") {
        let Message::FromStream(FromStream { event: message, stream }) = message else { continue };
        if matches!(message, StreamEvent::Began) {
            begun(&stream);
        }
        let news = format!("{message:?}");
        seen.push(news.split([' ', '(']).next().unwrap_or_default().to_owned());
        if matches!(message, StreamEvent::Ended(_)) {
            break;
        }
    }
    client.abort();
    seen
}

fn response(sequence: u64, message: Response) -> SubscribeResponse {
    SubscribeResponse { sequence, message: Some(message) }
}

fn welcome() -> SubscribeResponse {
    response(1, Response::Welcome(v1::Welcome::default()))
}

fn preview(sequence: u64) -> SubscribeResponse {
    let name = v1::NamespacedName { namespace: "work".to_owned(), name: "app".to_owned() };
    let preview = v1::Preview {
        slice: "app-1".to_owned(),
        owner: Some(name.clone()),
        source: Some(v1::Source { slice: Some(name), ..v1::Source::default() }),
        address_type: v1::AddressType::Ipv4.into(),
        ..v1::Preview::default()
    };
    response(sequence, Response::Preview(preview))
}

/// Rule J17: A message of the stream is missing, repeated or malformed
/// Then: The member agent ends the stream, and opens a new one with back-off
#[tokio::test(start_paused = true)]
async fn a_gap_a_repetition_and_a_malformed_message_end_the_stream() {
    let good = [welcome(), preview(2)];
    let table = [
        ("a gap", preview(4)),
        ("a repetition", preview(2)),
        ("an older message", preview(1)),
        ("an unknown message", SubscribeResponse { sequence: 3, message: None }),
        ("a malformed preview", response(3, Response::Preview(v1::Preview::default()))),
    ];
    for (why, bad) in table {
        let messages: Vec<_> = good.iter().cloned().chain([bad, preview(3), preview(4)]).collect();
        let begun = tokio::time::Instant::now();
        assert_eq!(played(messages).await, ["Began", "Preview", "Ended"], "{why}");
        assert!(begun.elapsed() < Duration::from_secs(1), "{why}: at once");
    }
}

/// Also rules J6, J8.
#[tokio::test(start_paused = true)]
async fn a_stream_that_a_leading_hub_agent_ends_is_told_as_such() {
    for (code, expected) in [(Code::Aborted, StreamEnd::ByHub), (Code::Unavailable, StreamEnd::Other)] {
        let (client, mut messages) = client(watch::Sender::new(Some(refusing_after_welcome(code))).subscribe()).await;
        let client = tokio::spawn(client.run());
        let mut told = None;
        while told.is_none() {
            let message = timeout(Duration::from_secs(100), messages.recv()).await.expect("the stream ends");
            if let Some(Message::FromStream(FromStream { event: StreamEvent::Ended(end), .. })) = message {
                told = Some(end);
            }
        }
        assert_eq!(told, Some(expected), "{code:?}");
        client.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_messages_ends_after_half_a_minute() {
    let begun = tokio::time::Instant::now();
    assert_eq!(played(vec![welcome(), preview(2)]).await, ["Began", "Preview", "Ended"]);
    assert_eq!(begun.elapsed().as_secs(), STREAM_SILENCE.as_secs());
}

/// Rule J13: Clocks of members are wrong
/// Then: The hub agent measures the clock of each member with a probe each 10 s. The probe with the shortest round trip
/// of the last minute counts. A preview has the clock of the exporter compared with that of the importer, and the
/// importer corrects a latency sample by it. The hub agent uses a clock for this that nobody can set, so its own wall
/// clock does not matter. A probe that contradicts earlier ones replaces them. A member agent answers a probe before it
/// sends acknowledgements
#[tokio::test(start_paused = true)]
async fn a_probe_is_answered_although_many_acknowledgements_wait() {
    // The hub agent takes no request, and probes after a second.
    let probe = response(SOON + 1, Response::Probe(v1::Probe { number: 1 }));
    let messages = [welcome()].into_iter().chain((2..=SOON).map(preview)).chain([probe]).collect();
    let begun = tokio::time::Instant::now();
    let seen = played_with(messages, |acknowledgements| {
        (0..10_000).for_each(|number| _ = acknowledgements.put(&format!("{number:0250}").into(), 1));
    });
    assert_eq!(seen.await.last_chunk(), Some(&["Preview".to_owned(), "Ended".to_owned()]));
    assert_eq!(begun.elapsed(), STREAM_SILENCE + Duration::from_secs(1), "the stream is open until nothing arrives");
}

/// Rule J30: The hub agent offers a slice stream at an address that cannot be reached, or whose host is not in
/// `--slice-stream-hosts` of the member agent
/// Then: The report in the MemberAgent has the same text for all failures of a connection; only the log of the member
/// agent has the error. The member agent does not connect to other hosts than those of the flag. Without the flag, it
/// connects to any host
#[tokio::test(start_paused = true)]
async fn a_report_does_not_show_what_listens_at_an_address() {
    use std::io::ErrorKind::{ConnectionRefused, HostUnreachable, InvalidData};
    let fails =
        |kind: std::io::ErrorKind| Dialer::new("10.0.0.1:22".to_owned(), move || async move { Err(kind.into()) });
    let hangs = Dialer::new("10.0.0.1:22".to_owned(), std::future::pending);
    for dialer in [fails(ConnectionRefused), fails(HostUnreachable), fails(InvalidData), hangs] {
        let server = watch::Sender::new(Some(dialer));
        let (client, mut messages) = client(server.subscribe()).await;
        let client = tokio::spawn(client.run());
        let Some(Message::NotConnected { reason, message }) = messages.recv().await else {
            panic!("no stream is open")
        };
        let expected = "the connection failed; the log of the member agent has the error";
        assert_eq!((reason, &*message), ("ConnectionFailed", expected));
        client.abort();
    }
}

/// Also rule J18.
#[tokio::test(start_paused = true)]
async fn another_server_is_tried_at_once() {
    let refusing = Dialer::new("old".to_owned(), || async { Err(std::io::ErrorKind::ConnectionRefused.into()) });
    let server = watch::Sender::new(Some(refusing));
    let (client, mut messages) = client(server.subscribe()).await;
    let client = tokio::spawn(client.run());
    for _ in 0..10 {
        assert!(matches!(messages.recv().await, Some(Message::NotConnected { reason: "ConnectionFailed", .. })));
    }
    sleep(Duration::from_millis(10)).await;
    let begun = tokio::time::Instant::now();
    server.send_replace(Some(dialer(vec![welcome()])));
    assert!(matches!(messages.recv().await, Some(Message::FromStream(FromStream { event: StreamEvent::Began, .. }))));
    assert!(begun.elapsed() < Duration::from_millis(10), "{:?}", begun.elapsed());
    client.abort();
}

#[tokio::test(start_paused = true)]
async fn only_a_leader_has_a_stream() {
    let server = watch::Sender::new(Some(dialer(vec![welcome()])));
    let (mut client, mut messages) = client(server.subscribe()).await;
    let state = watch::Sender::new(Leadership::Waiting { holder: None });
    client.leadership = state.subscribe();
    let client = tokio::spawn(client.run());
    let minutes = Duration::from_mins(10);
    assert!(timeout(minutes, messages.recv()).await.is_err(), "a replica that does not lead opens no stream");
    state.send_replace(Leadership::Leading { until: None });
    assert!(matches!(messages.recv().await, Some(Message::FromStream(FromStream { event: StreamEvent::Began, .. }))));
    state.send_replace(Leadership::Waiting { holder: None });
    assert!(matches!(
        messages.recv().await,
        Some(Message::FromStream(FromStream { event: StreamEvent::Ended(_), .. }))
    ));
    assert!(matches!(messages.recv().await, Some(Message::NotConnected { reason: "NotLeading", .. })));
    assert!(timeout(minutes, messages.recv()).await.is_err(), "it opens no other one");
    client.abort();
}
