//! Open stream of one member: sends previews and probes, receives acknowledgements, and repeats the check of the
//! member's rights.

use super::message::{FromStream, Message, Outbox, Shown, StreamEvent};
use super::shared::Shared;
use super::unacknowledged::{Acknowledged, Unacknowledged};
use crate::limits::{
    FINAL_STATUS_TIMEOUT, MESSAGE_BYTES_MAX, PROBE_EVERY, PROBE_TIMEOUT, REVIEW_EVERY, REVIEW_PAUSE, UNREVIEWED_LIFE,
};
use fleetnet_agent::mailbox::Closed;
use fleetnet_core::clocks::{Clock, Probe as Sample};
use fleetnet_proto::v1::{self, SubscribeRequest, SubscribeResponse, subscribe_request, subscribe_response};
use fleetnet_runtime::clock::Clock as WallClock;
use fleetnet_runtime::io::token::claims::Claims;
use fleetnet_runtime::limits::AUDIENCE_TOKEN_LIFE;
use fleetnet_runtime::process::access::Client;
use fleetnet_types::{MemberNamespace, Text, Timestamp};
use futures::future::BoxFuture;
use prost::Message as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Permit, Sender};
use tokio::time::{Instant, sleep_until, timeout};
use tonic::{Code, Status, Streaming};

/// Sender of the responses of a stream.
type Responses = Sender<Result<SubscribeResponse, Status>>;

pub(super) struct Session {
    shared: Arc<Shared>,
    /// Id of the member.
    cluster: String,
    /// Member namespace.
    importer: MemberNamespace,
    token: String,
    outbox: Arc<Outbox>,
    /// Sequence number of the last response.
    sequence: u64,
    unacknowledged: Unacknowledged,
    /// Probe without a reply.
    probe: Option<Probe>,
    probes: u64,
    next_probe: Instant,
    /// Time of the last message of the member.
    last_message: Instant,
    next_review: Instant,
    opened: Instant,
    /// Time of the last positive review.
    granted: Instant,
}

struct Probe {
    number: u64,
    /// Time at which the probe was sent; `None` while the stream takes no message.
    sent: Option<Timestamp>,
    deadline: Instant,
}

/// Event of an open stream.
enum Event<'a> {
    Request(Result<Option<SubscribeRequest>, Status>),
    /// A probe or a preview waits, and the stream takes a message.
    Send(Permit<'a, Result<SubscribeResponse, Status>>),
    /// The member agent closed the stream.
    Gone,
    Closed(Closed),
    Probe,
    Reviewed(Result<(), Status>),
    Review,
    Expired,
    EngineEnded,
}

impl Session {
    pub(super) fn new(
        shared: Arc<Shared>,
        cluster: String,
        importer: MemberNamespace,
        token: String,
        outbox: Arc<Outbox>,
    ) -> Self {
        let now = Instant::now();
        let next_review = next_review(&token, &shared.clock);
        Self {
            shared,
            cluster,
            importer,
            token,
            outbox,
            sequence: 0,
            unacknowledged: Unacknowledged::default(),
            probe: None,
            probes: 0,
            next_probe: now,
            last_message: now,
            next_review,
            opened: now,
            granted: now,
        }
    }

    /// Serves the stream until it ends.
    pub(super) async fn run(mut self, requests: Streaming<SubscribeRequest>, responses: Responses) {
        let metrics = self.shared.metrics.clone();
        metrics.streams.inc();
        self.shared.clocks.begin(&self.cluster, &self.outbox);
        self.tell(StreamEvent::Began).await;
        let status = self.serve(requests, &responses).await;
        self.tell(StreamEvent::Ended(self.last_message.elapsed())).await;
        metrics.streams.dec();
        self.forget();
        tracing::info!(member = self.cluster, code = ?status.code(), why = status.message(), "a slice stream ended");
        if status.code() != Code::Ok {
            metrics.refused(status.code());
            // A member agent that reads nothing does not get the status.
            let _ = timeout(FINAL_STATUS_TIMEOUT, responses.send(Err(status))).await;
        }
    }

    /// Drops the clock and the metrics of the member, unless it has a newer stream.
    fn forget(&self) {
        if self.shared.clocks.end(&self.cluster, &self.outbox) {
            self.shared.metrics.forget(&self.cluster);
        }
    }

    /// Sends a message to the engine. Waits while the engine has many messages to handle.
    async fn tell(&self, event: StreamEvent) {
        let message = FromStream { importer: self.importer.clone(), outbox: Arc::clone(&self.outbox), event };
        // Fails only when the engine has ended, which also ends the stream.
        let _ = self.shared.inbox.send(Message::FromStream(message)).await;
    }

    async fn serve(&mut self, mut requests: Streaming<SubscribeRequest>, responses: &Responses) -> Status {
        let welcome = v1::Welcome { agent_version: env!("CARGO_PKG_VERSION").to_owned() };
        match responses.reserve().await {
            Ok(permit) => {
                self.respond(permit, subscribe_response::Message::Welcome(welcome));
            }
            Err(_) => return Status::ok("the member agent closed the stream"),
        }
        let mut review: Option<BoxFuture<'static, Result<(), Status>>> = None;
        loop {
            let event = self.next(&mut requests, responses, &mut review).await;
            let handled = match event {
                Event::Request(Ok(Some(request))) => self.request(request).await,
                Event::Request(Ok(None)) | Event::Gone => Err(Status::ok("the member agent closed the stream")),
                Event::Request(Err(status)) => Err(failure(status)),
                Event::Send(permit) => self.send_next(permit),
                Event::Closed(Closed::Superseded) => Err(Status::aborted(
                    "the member opened a newer slice stream; only one member may have this cluster id",
                )),
                Event::Closed(Closed::Outdated) => {
                    Err(Status::aborted("a preview is not valid any more, because its source slice went back"))
                }
                Event::Closed(Closed::Stopping) | Event::EngineEnded => {
                    Err(Status::unavailable("this replica of the hub agent stops; connect again to reach another one"))
                }
                Event::Probe => self.begin_probe(),
                Event::Review => {
                    review = Some(self.review());
                    Ok(())
                }
                Event::Expired => Err(self.expired()),
                Event::Reviewed(outcome) => {
                    review = None;
                    self.reviewed(outcome)
                }
            };
            if let Err(status) = handled {
                return status;
            }
        }
    }

    /// Waits for the next event.
    async fn next<'a>(
        &mut self,
        requests: &mut Streaming<SubscribeRequest>,
        responses: &'a Responses,
        review: &mut Option<BoxFuture<'static, Result<(), Status>>>,
    ) -> Event<'a> {
        let (outbox, is_reviewing) = (&self.outbox, review.is_some());
        let is_probing = self.probe.as_ref().is_some_and(|probe| probe.sent.is_none());
        let send = async {
            if !is_probing {
                outbox.ready().await;
            }
            responses.reserve().await.map_or(Event::Gone, Event::Send)
        };
        let reviewed = async {
            match review {
                Some(review) => Event::Reviewed(review.await),
                None => std::future::pending().await,
            }
        };
        let expires = self.expires();
        let probe_at = self.probe.as_ref().map_or(self.next_probe, |probe| probe.deadline);
        tokio::select! {
            biased;
            () = self.shared.inbox.closed() => Event::EngineEnded,
            closed = outbox.closed() => Event::Closed(closed),
            () = responses.closed() => Event::Gone,
            () = sleep_until(expires) => Event::Expired,
            request = requests.message() => Event::Request(request),
            () = sleep_until(probe_at) => Event::Probe,
            event = reviewed => event,
            () = sleep_until(self.next_review), if !is_reviewing => Event::Review,
            event = send => event,
        }
    }

    async fn request(&mut self, request: SubscribeRequest) -> Result<(), Status> {
        self.last_message = Instant::now();
        let bytes = request.encoded_len();
        match request.message {
            Some(subscribe_request::Message::Acknowledgement(v1::Acknowledgement { slice, generation })) => {
                self.shared.metrics.passed("received", "acknowledgement", bytes);
                let slice = Text::from(slice);
                let shown = self.unacknowledged.acknowledged(&slice, generation)?;
                if let Acknowledged::Last(took) = shown {
                    self.shared.metrics.acknowledged(&self.cluster, took);
                }
                if shown != Acknowledged::Nothing {
                    self.tell(StreamEvent::Acknowledged { slice, generation }).await;
                }
                Ok(())
            }
            Some(subscribe_request::Message::ProbeReply(reply)) => {
                self.shared.metrics.passed("received", "probe_reply", bytes);
                self.probe_reply(reply)
            }
            Some(subscribe_request::Message::Hello(_)) => Err(Status::invalid_argument("a second Hello")),
            None => Err(Status::invalid_argument("a request of an unknown type; update the hub agent")),
        }
    }

    fn probe_reply(&mut self, reply: v1::ProbeReply) -> Result<(), Status> {
        let sent = self.probe.as_ref().filter(|probe| probe.number == reply.number).and_then(|probe| probe.sent);
        let Some(sent) = sent else {
            return Err(Status::invalid_argument("a reply to a probe that was not sent"));
        };
        (self.probe, self.next_probe) = (None, Instant::now() + PROBE_EVERY);
        let arrived = self.shared.steady.now();
        let (received, replied) = (Timestamp(reply.received_micros), Timestamp(reply.sent_micros));
        let sample = Sample { sent, received, replied, arrived };
        if let Some(clock) = self.shared.clocks.observe(&self.cluster, &self.outbox, sample) {
            let wall = self.shared.steady.compared_with_wall(&self.shared.clock);
            self.shared.metrics.clock(&self.cluster, clock.compared_with(wall));
        }
        Ok(())
    }

    /// Begins a probe, or ends the stream because the last one has no reply.
    fn begin_probe(&mut self) -> Result<(), Status> {
        if self.probe.is_some() {
            return Err(Status::deadline_exceeded(format!("no reply to a probe within {PROBE_TIMEOUT:?}")));
        }
        self.probes += 1;
        self.probe = Some(Probe { number: self.probes, sent: None, deadline: Instant::now() + PROBE_TIMEOUT });
        Ok(())
    }

    /// Sends the probe, or else the preview that has waited longest.
    fn send_next(&mut self, permit: Permit<'_, Result<SubscribeResponse, Status>>) -> Result<(), Status> {
        if let Some(probe) = self.probe.as_mut().filter(|probe| probe.sent.is_none()) {
            probe.sent = Some(self.shared.steady.now());
            let message = v1::Probe { number: probe.number };
            self.respond(permit, subscribe_response::Message::Probe(message));
            return Ok(());
        }
        let Some((slice, Shown { spec, traceparent }, since)) = self.outbox.take() else { return Ok(()) };
        self.unacknowledged.check(&slice)?;
        let Some(mut message) = v1::Preview::new(&slice, &spec) else { return Ok(()) };
        message.traceparent = traceparent.as_ref().map(ToString::to_string).unwrap_or_default();
        let clock = self.shared.clocks.compared(&spec.reference.cluster, &self.cluster, self.shared.steady.now());
        message.exporter_clock = clock.map(|Clock { offset_micros, uncertainty_micros }| v1::Clock {
            offset_micros,
            uncertainty_micros: uncertainty_micros.unsigned_abs(),
        });
        // If the preview is too long, the object follows after a second.
        if self.respond(permit, subscribe_response::Message::Preview(message)) {
            self.unacknowledged.sent(slice, spec.reference.generation, since);
        }
        Ok(())
    }

    /// Sends a message. Returns false if it is too long.
    fn respond(
        &mut self,
        permit: Permit<'_, Result<SubscribeResponse, Status>>,
        message: subscribe_response::Message,
    ) -> bool {
        let kind = match &message {
            subscribe_response::Message::Welcome(_) => "welcome",
            subscribe_response::Message::Preview(_) => "preview",
            subscribe_response::Message::Probe(_) => "probe",
        };
        let response = SubscribeResponse { sequence: self.sequence + 1, message: Some(message) };
        let bytes = response.encoded_len();
        if bytes > MESSAGE_BYTES_MAX {
            return false;
        }
        self.sequence += 1;
        self.shared.metrics.passed("sent", kind, bytes);
        permit.send(Ok(response));
        true
    }

    fn review(&self) -> BoxFuture<'static, Result<(), Status>> {
        let (shared, token, importer) = (Arc::clone(&self.shared), self.token.clone(), self.importer.clone());
        // Reviews of open streams come first, so that nobody can delay the end of a stream with forged tokens.
        Box::pin(async move { shared.access(Client::Accepted, &token, &importer).await })
    }

    /// Returns the time at which the stream ends, unless a review is positive before.
    fn expires(&self) -> Instant {
        let unreviewed = self.granted + UNREVIEWED_LIFE;
        unreviewed.min(self.opened + AUDIENCE_TOKEN_LIFE)
    }

    fn expired(&self) -> Status {
        if self.granted.elapsed() >= UNREVIEWED_LIFE {
            return Status::unavailable(format!(
                "the hub's API server has not reviewed the token for {UNREVIEWED_LIFE:?}"
            ));
        }
        Status::unauthenticated(format!("the stream is {AUDIENCE_TOKEN_LIFE:?} old; open a new one with a new token"))
    }

    /// Handles the outcome of a review. Without an outcome, the stream lives for some minutes, but not longer than its
    /// token.
    fn reviewed(&mut self, outcome: Result<(), Status>) -> Result<(), Status> {
        self.next_review = next_review(&self.token, &self.shared.clock);
        match outcome {
            Err(status) if status.code() == Code::Unavailable => {
                let left = left(&self.token, &self.shared.clock);
                if left.is_some_and(|left| !left.is_zero()) { Ok(()) } else { Err(status) }
            }
            Ok(()) => {
                self.granted = Instant::now();
                Ok(())
            }
            refused => refused,
        }
    }
}

/// Returns the time until a token expires; `None` for a token that does not say when.
fn left(token: &str, clock: &WallClock) -> Option<Duration> {
    let expires = Claims::of(token)?.expires_at?;
    let micros = expires.saturating_mul(1_000_000).saturating_sub(clock.now().0);
    Some(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
}

/// Returns the time of the next review: soon after the token expires, at the latest.
fn next_review(token: &str, clock: &WallClock) -> Instant {
    Instant::now() + left(token, clock).map_or(REVIEW_EVERY, |left| left.clamp(REVIEW_PAUSE, REVIEW_EVERY))
}

/// Returns the status with which a stream ends after its requests failed.
fn failure(status: Status) -> Status {
    match status.code() {
        // The connection broke: nobody gets the status.
        Code::Unknown | Code::Unavailable | Code::Cancelled => Status::ok("the connection to the member agent broke"),
        Code::OutOfRange | Code::ResourceExhausted => Status::resource_exhausted(status.message()),
        Code::Internal => Status::invalid_argument(status.message()),
        _ => status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also rule J14.
    #[tokio::test(start_paused = true)]
    async fn a_token_is_reviewed_each_minute_and_soon_after_it_expires() {
        // Its payload is {"exp":1800000030}.
        let token = "e30.eyJleHAiOjE4MDAwMDAwMzB9.x";
        for (now, token, wait) in [
            (1_800_000_000, "static", 60),
            (1_799_996_430, token, 60),
            (1_800_000_000, token, 30),
            (1_800_000_027, token, 10),
            (1_800_003_630, token, 10),
        ] {
            let clock = WallClock::virtual_at(Timestamp::from_seconds(now));
            assert_eq!((next_review(token, &clock) - Instant::now()).as_secs(), wait, "{token} at {now}");
        }
    }
}
