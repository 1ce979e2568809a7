//! Tests of a session, with a hub agent that the test plays.

use super::*;
use crate::stream::client::Tokens;
use crate::stream::connection::{Dialer, Io};
use crate::stream::{client, client::Client};
use fleetnet_proto::{SliceStream, SliceStreamServer};
use fleetnet_runtime::backoff::Jitter;
use fleetnet_types::Timestamp;
use futures::stream::{self, BoxStream, StreamExt as _};
use prometheus::Registry;
use std::time::Duration;
use subscribe_response::Message as Response;
use tokio::io::duplex;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::transport::Server;
use tonic::{Request, Response as Answer};

/// Hub agent that answers each stream with the same messages, and then says nothing.
#[derive(Clone)]
struct Script(Vec<SubscribeResponse>);

#[tonic::async_trait]
impl SliceStream for Script {
    type SubscribeStream = BoxStream<'static, Result<SubscribeResponse, Status>>;

    async fn subscribe(
        &self,
        _: Request<Streaming<SubscribeRequest>>,
    ) -> Result<Answer<Self::SubscribeStream>, Status> {
        let messages = stream::iter(self.0.clone().into_iter().map(Ok)).chain(stream::pending());
        Ok(Answer::new(messages.boxed()))
    }
}

/// Plays these messages to a client. Returns the first messages to the engine, until the end of the stream.
async fn played(messages: Vec<SubscribeResponse>) -> Vec<String> {
    let dialer = Dialer::new("hub".to_owned(), move || {
        let script = Script(messages.clone());
        async move {
            let (near, far) = duplex(1 << 16);
            let server = Server::builder().add_service(SliceStreamServer::new(script));
            let incoming = stream::iter([Ok::<_, std::io::Error>(far)]).chain(stream::pending());
            tokio::spawn(server.serve_with_incoming(incoming));
            Ok(Box::new(near) as Box<dyn Io>)
        }
    });
    let (inbox, mut messages) = mpsc::channel(8);
    let client = Client {
        cluster: "member-1".into(),
        dialer: watch::Sender::new(Some(dialer)).subscribe(),
        tokens: Tokens::Fixed("token".to_owned()),
        clock: Clock::virtual_at(Timestamp(1_000_000)),
        inbox,
        metrics: client::Metrics::new(&Registry::new()).expect("a new registry"),
        jitter: Jitter::new(1),
    };
    let client = tokio::spawn(client.run());
    let mut seen = Vec::new();
    while let Some(message) = timeout(Duration::from_secs(100), messages.recv()).await.expect("the stream ends") {
        let Message::FromStream(FromStream { news: message, .. }) = message else { continue };
        let news = format!("{message:?}");
        seen.push(news.split([' ', '(']).next().unwrap_or_default().to_owned());
        if matches!(message, News::Ended) {
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

fn retraction(sequence: u64) -> SubscribeResponse {
    response(sequence, Response::Retraction(v1::Retraction { slice: "app-1".to_owned() }))
}

#[tokio::test(start_paused = true)]
async fn a_gap_a_repetition_and_a_malformed_message_end_the_stream() {
    let good = [welcome(), retraction(2)];
    let table = [
        ("a gap", retraction(4)),
        ("a repetition", retraction(2)),
        ("an older message", retraction(1)),
        ("an unknown message", SubscribeResponse { sequence: 3, message: None }),
        ("a malformed preview", response(3, Response::Preview(v1::Preview::default()))),
    ];
    for (why, bad) in table {
        let messages: Vec<_> = good.iter().cloned().chain([bad, retraction(3), retraction(4)]).collect();
        let begun = tokio::time::Instant::now();
        assert_eq!(played(messages).await, ["Began", "Retraction", "Ended"], "{why}");
        assert!(begun.elapsed() < Duration::from_secs(1), "{why}: at once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_messages_ends_after_half_a_minute() {
    let begun = tokio::time::Instant::now();
    assert_eq!(played(vec![welcome(), retraction(2)]).await, ["Began", "Retraction", "Ended"]);
    assert_eq!(begun.elapsed().as_secs(), STREAM_SILENCE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_probe_shows_the_member_its_own_clock() {
    let clock = v1::Clock { offset_micros: -7, uncertainty_micros: u64::MAX };
    let probe = |sequence, clock| response(sequence, Response::Probe(v1::Probe { number: sequence, clock }));
    let messages = vec![welcome(), probe(2, None), probe(3, Some(clock))];
    assert_eq!(played(messages).await, ["Began", "Clock", "Ended"]);
}
