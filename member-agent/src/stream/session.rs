//! Open stream: passes previews to the engine, answers probes, and sends acknowledgements. A message that is missing,
//! repeated or malformed ends the stream.

use super::message::{Acknowledgements, FromStream, Message, StreamEvent};
use crate::limits::STREAM_SILENCE;
use fleetnet_core::clocks::Clock as MemberClock;
use fleetnet_core::member::StreamEnd;
use fleetnet_proto::v1::{self, SubscribeRequest, SubscribeResponse, subscribe_request, subscribe_response};
use fleetnet_runtime::clock::Clock;
use fleetnet_types::{Timestamp, Traceparent};
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc::{self, Permit};
use tokio::time::{Instant, sleep_until};
use tonic::{Code, Status, Streaming};

/// Reason why a stream ended.
#[derive(Debug)]
pub(super) enum End {
    /// The engine has ended, and so does the process.
    EngineEnded,
    /// The hub agent ended the stream.
    Status(Status),
    /// The hub agent closed the stream without a status.
    Closed,
    /// No message arrived for a long time, although the hub agent sends probes.
    Silent,
    /// A message is missing or repeated, or is malformed.
    Broken(String),
    /// The token must be replaced.
    TokenIsOld,
    /// The address of the hub agent changed.
    Moved,
    /// This process does not lead any more.
    NotLeading,
}

impl fmt::Display for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EngineEnded => formatter.write_str("the agent stops"),
            Self::Status(status) => write!(formatter, "{:?}: {}", status.code(), status.message()),
            Self::Closed => formatter.write_str("the hub agent closed the stream"),
            Self::Silent => write!(formatter, "no message arrived for {STREAM_SILENCE:?}"),
            Self::Broken(why) => formatter.write_str(why),
            Self::TokenIsOld => formatter.write_str("the token is replaced"),
            Self::Moved => formatter.write_str("the address of the hub agent changed"),
            Self::NotLeading => formatter.write_str("this replica does not lead any more"),
        }
    }
}

/// Stream that the hub agent has accepted.
pub(super) struct Session {
    pub(super) responses: Streaming<SubscribeResponse>,
    pub(super) requests: mpsc::Sender<SubscribeRequest>,
    pub(super) acknowledgements: Arc<Acknowledgements>,
    pub(super) inbox: mpsc::Sender<Message>,
    pub(super) clock: Clock,
    /// Probe without a reply.
    pub(super) probe: Option<Probe>,
}

/// Probe of the hub agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    number: u64,
    received: Timestamp,
}

#[allow(clippy::large_enum_variant, reason = "an event lives for one turn of the loop")]
enum Event<'a> {
    Response(Result<Option<SubscribeResponse>, Status>),
    /// The reply to a probe or an acknowledgement waits, and the stream takes a request.
    Send(Permit<'a, SubscribeRequest>),
    End(End),
}

impl Session {
    /// Serves the stream until it ends, or until `stop` is ready.
    pub(super) async fn run(mut self, stop: impl Future<Output = End>) -> End {
        self.tell(StreamEvent::Began).await;
        let end = self.serve(stop).await;
        // A hub agent ends a stream with ABORTED only while it leads.
        let is_by_hub = matches!(&end, End::Status(status) if status.code() == Code::Aborted);
        self.tell(StreamEvent::Ended(if is_by_hub { StreamEnd::ByHub } else { StreamEnd::Other })).await;
        end
    }

    async fn tell(&self, event: StreamEvent) {
        // Fails only when the engine has ended, which also ends the stream.
        let message = FromStream { stream: Arc::clone(&self.acknowledgements), event };
        let _ = self.inbox.send(Message::FromStream(message)).await;
    }

    async fn serve(&mut self, stop: impl Future<Output = End>) -> End {
        let mut stop = std::pin::pin!(stop);
        let (mut sequence, mut silent_at) = (0, Instant::now() + STREAM_SILENCE);
        loop {
            let (acknowledgements, requests) = (Arc::clone(&self.acknowledgements), self.requests.clone());
            let is_probed = self.probe.is_some();
            let send = async {
                if !is_probed {
                    acknowledgements.ready().await;
                }
                requests.reserve().await.map_or(Event::End(End::Closed), Event::Send)
            };
            let event = tokio::select! {
                biased;
                () = self.inbox.closed() => Event::End(End::EngineEnded),
                end = &mut stop => Event::End(end),
                event = send => event,
                response = self.responses.message() => Event::Response(response),
                () = sleep_until(silent_at) => Event::End(End::Silent),
            };
            match event {
                Event::End(end) => return end,
                Event::Response(Err(status)) => return End::Status(status),
                Event::Response(Ok(None)) => return End::Closed,
                Event::Response(Ok(Some(response))) => {
                    silent_at = Instant::now() + STREAM_SILENCE;
                    if let Err(why) = self.response(response, &mut sequence).await {
                        return End::Broken(why);
                    }
                }
                Event::Send(permit) => {
                    if let Some(message) = self.next_request() {
                        permit.send(request(message));
                    }
                }
            }
        }
    }

    /// Returns the reply to a probe, or else the acknowledgement that has waited longest.
    fn next_request(&mut self) -> Option<subscribe_request::Message> {
        if let Some(Probe { number, received }) = self.probe.take() {
            let sent_micros = self.clock.now().0;
            let reply = v1::ProbeReply { number, received_micros: received.0, sent_micros };
            return Some(subscribe_request::Message::ProbeReply(reply));
        }
        let (slice, generation, _) = self.acknowledgements.take()?;
        let slice = slice.to_string();
        Some(subscribe_request::Message::Acknowledgement(v1::Acknowledgement { slice, generation }))
    }

    async fn response(&mut self, response: SubscribeResponse, sequence: &mut u64) -> Result<(), String> {
        let received = self.clock.now();
        *sequence += 1;
        if response.sequence != *sequence {
            return Err(format!("message {} arrived in place of message {sequence}", response.sequence));
        }
        match response.message {
            Some(subscribe_response::Message::Welcome(_)) => {}
            Some(subscribe_response::Message::Preview(preview)) => {
                let exporter = preview.exporter_clock.map(clock);
                let traceparent = Traceparent::read(&preview.traceparent).map(Box::new);
                let (slice, spec) = preview.into_model().map_err(|malformed| malformed.to_string())?;
                self.tell(StreamEvent::Preview { slice, spec, exporter, traceparent }).await;
            }
            Some(subscribe_response::Message::Probe(probe)) => {
                self.probe = Some(Probe { number: probe.number, received });
            }
            // A later version has more messages. This one cannot know what they mean for the previews.
            None => return Err("a message of an unknown type; update the member agent".to_owned()),
        }
        Ok(())
    }
}

pub(super) fn request(message: subscribe_request::Message) -> SubscribeRequest {
    SubscribeRequest { message: Some(message) }
}

fn clock(clock: v1::Clock) -> MemberClock {
    let v1::Clock { offset_micros, uncertainty_micros } = clock;
    MemberClock { offset_micros, uncertainty_micros: i64::try_from(uncertainty_micros).unwrap_or(i64::MAX) }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
