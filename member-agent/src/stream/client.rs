//! Client of the slice stream: opens one stream after another, with back-off after failures.

use super::connection::Dialer;
use super::message::{Acknowledgements, Message};
use super::session::{End, Session, request};
use crate::limits::{
    MESSAGE_BYTES_MAX, STREAM_CONNECT_TIMEOUT, STREAM_KEEPALIVE_EVERY, STREAM_KEEPALIVE_TIMEOUT, STREAM_REQUESTS,
    STREAM_RETRY_FIRST, STREAM_RETRY_LONGEST, STREAM_STABLE,
};
use crate::metrics::{STREAM_CONNECTED, STREAM_ENDS};
use fleetnet_proto::v1::{Hello, subscribe_request};
use fleetnet_proto::{PROTOCOL_VERSION, SliceStreamClient, TOKEN_AUDIENCE};
use fleetnet_runtime::backoff::{Backoff, Jitter};
use fleetnet_runtime::clock::Clock;
use fleetnet_runtime::engine::leadership::Leadership;
use fleetnet_runtime::errors::with_causes;
use fleetnet_runtime::process::lease;
use fleetnet_runtime::process::token::audience::{self, AudienceToken, AudienceTokenError};
use fleetnet_types::ClusterId;
use futures::stream;
use hyper_util::rt::TokioIo;
use prometheus::{IntCounterVec, IntGauge, Registry};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

/// Metrics of the client.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    connected: IntGauge,
    ends: IntCounterVec,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self { connected: STREAM_CONNECTED.gauge(registry)?, ends: STREAM_ENDS.counters(registry)? })
    }
}

/// Client of the slice stream of one member.
pub(crate) struct Client {
    pub(crate) cluster: ClusterId,
    pub(crate) leadership: watch::Receiver<Leadership>,
    /// Dialer to the hub agent; `None` while the hub has no slice stream.
    pub(crate) dialer: watch::Receiver<Option<Dialer>>,
    /// Client of the hub, which issues the tokens.
    pub(crate) hub: kube::Client,
    pub(crate) clock: Clock,
    pub(crate) inbox: mpsc::Sender<Message>,
    pub(crate) metrics: Metrics,
    pub(crate) jitter: Jitter,
}

/// Reason why a stream was not opened.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error(transparent)]
    Token(#[from] AudienceTokenError),
    #[error("the token is no valid header")]
    MalformedToken,
    #[error("the connection failed: {0}")]
    Connection(String),
    #[error("no answer within {STREAM_CONNECT_TIMEOUT:?}")]
    Timeout,
    #[error("{:?}: {}", .0.code(), .0.message())]
    Refused(tonic::Status),
}

/// Message of a connection that failed, for the MemberAgent.
const NO_CONNECTION: &str = "the connection failed; the log of the member agent has the error";

impl OpenError {
    /// Returns the message for the MemberAgent. The hub agent offers the address. A compromised hub must not learn from
    /// the message what listens in the network of this member, so all failures of a connection have the same text.
    fn for_hub(&self) -> String {
        match self {
            Self::Connection(_) | Self::Timeout => NO_CONNECTION.to_owned(),
            _ => self.to_string(),
        }
    }

    fn reason(&self) -> Reason {
        match self {
            Self::Token(AudienceTokenError::NoServiceAccount(_)) => Reason("no_service_account", "NoServiceAccount"),
            Self::Token(_) | Self::MalformedToken => Reason("token", "TokenFailed"),
            Self::Connection(_) | Self::Timeout => Reason("connection", "ConnectionFailed"),
            Self::Refused(_) => Reason("refused", "Refused"),
        }
    }
}

/// Reason why no stream is open, for the metric and for the MemberAgent.
struct Reason(&'static str, &'static str);

fn reason(end: &End) -> Reason {
    match end {
        End::EngineEnded => Reason("stopped", "Stopped"),
        End::Status(_) => Reason("status", "EndedByHub"),
        End::Closed => Reason("closed", "ConnectionClosed"),
        End::Silent => Reason("silent", "HubSilent"),
        End::Broken(_) => Reason("broken", "MalformedMessage"),
        End::TokenIsOld => Reason("token_renewed", "TokenRenewed"),
        End::Moved => Reason("moved", "AddressChanged"),
        End::NotLeading => Reason("not_leading", "NotLeading"),
    }
}

impl Client {
    /// Opens one stream after another while this process leads, until the engine has ended.
    pub(crate) async fn run(mut self) {
        let backoff = Backoff::new(STREAM_RETRY_FIRST, STREAM_RETRY_LONGEST);
        let mut failures = 0;
        while !self.inbox.is_closed() && self.dialer.wait_for(Option::is_some).await.is_ok() {
            if !lease::leads(&mut self.leadership).await {
                return;
            }
            // The address may have changed meanwhile.
            let Some(dialer) = self.dialer.borrow_and_update().clone() else { continue };
            let begun = Instant::now();
            let is_planned = match self.open(&dialer).await {
                Ok((session, renew_after)) => {
                    tracing::info!(side = "hub", address = dialer.address, "the slice stream is open");
                    self.metrics.connected.set(1);
                    let end = session.run(self.stop(renew_after)).await;
                    self.metrics.connected.set(0);
                    self.ended(&reason(&end), &end).await;
                    tracing::info!(side = "hub", address = dialer.address, why = %end, "the slice stream ended");
                    // A stream that ends again and again soon after its start is a failure too.
                    if begun.elapsed() >= STREAM_STABLE {
                        failures = 0;
                    }
                    matches!(end, End::TokenIsOld | End::Moved | End::NotLeading | End::EngineEnded)
                }
                Err(error) => {
                    self.ended(&error.reason(), &error.for_hub()).await;
                    tracing::warn!(
                        side = "hub",
                        address = dialer.address,
                        %error,
                        "the slice stream was not opened; changes arrive as objects meanwhile"
                    );
                    false
                }
            };
            if !is_planned {
                failures += 1;
                let wait = backoff.wait(failures, &mut self.jitter);
                tokio::select! {
                    () = self.inbox.closed() => return,
                    // Another server may be better.
                    changed = self.dialer.changed() => match changed {
                        Ok(()) => failures = 0,
                        Err(_) => return,
                    },
                    () = sleep(wait) => {}
                }
            }
        }
    }

    /// Counts why no stream is open, and tells it to the engine.
    async fn ended(&self, Reason(metric, reason): &Reason, why: &impl ToString) {
        self.metrics.ends.with_label_values(&[metric]).inc();
        // Fails only when the engine has ended, which also ends this client.
        let _ = self.inbox.send(Message::NotConnected { reason, message: why.to_string() }).await;
    }

    /// Waits until the open stream must be replaced.
    async fn stop(&mut self, renew_after: Duration) -> End {
        tokio::select! {
            () = sleep(renew_after) => End::TokenIsOld,
            () = lease::no_longer_leads(&mut self.leadership) => End::NotLeading,
            changed = self.dialer.changed() => match changed {
                Ok(()) => End::Moved,
                Err(_) => std::future::pending().await,
            },
        }
    }

    async fn open(&self, dialer: &Dialer) -> Result<(Session, Duration), OpenError> {
        let AudienceToken { token, renew_after } = audience::request(&self.hub, TOKEN_AUDIENCE, &self.clock).await?;
        let bearer = MetadataValue::try_from(format!("Bearer {token}")).map_err(|_| OpenError::MalformedToken)?;
        timeout(STREAM_CONNECT_TIMEOUT, self.subscribe(dialer, bearer))
            .await
            .map_err(|_| OpenError::Timeout)?
            .map(|session| (session, renew_after))
    }

    async fn subscribe(&self, dialer: &Dialer, mut bearer: MetadataValue<Ascii>) -> Result<Session, OpenError> {
        bearer.set_sensitive(true);
        let channel = connect(dialer).await.map_err(|error| OpenError::Connection(with_causes(&error)))?;
        let (requests, sent) = mpsc::channel(STREAM_REQUESTS);
        let hello = Hello {
            protocol_version: PROTOCOL_VERSION,
            cluster: self.cluster.to_string(),
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let first = stream::iter([request(subscribe_request::Message::Hello(hello))]);
        let later = stream::unfold(sent, |mut sent| async { Some((sent.recv().await?, sent)) });
        let mut call = Request::new(stream::StreamExt::chain(first, later));
        call.metadata_mut().insert("authorization", bearer);
        let mut client = SliceStreamClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let responses = client.subscribe(call).await.map_err(OpenError::Refused)?.into_inner();
        let acknowledgements = Arc::new(Acknowledgements::default());
        Ok(Session {
            responses,
            requests,
            acknowledgements,
            inbox: self.inbox.clone(),
            clock: self.clock.clone(),
            probe: None,
        })
    }
}

async fn connect(dialer: &Dialer) -> Result<Channel, tonic::transport::Error> {
    let dialer = dialer.clone();
    let connector = service_fn(move |_| {
        let dialed = dialer.dial();
        async move { dialed.await.map(TokioIo::new) }
    });
    // The dialer has the address and does TLS, so the address here is only a header.
    Endpoint::from_static("http://slice-stream.fleetnet")
        .http2_keep_alive_interval(STREAM_KEEPALIVE_EVERY)
        .keep_alive_timeout(STREAM_KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .connect_with_connector(connector)
        .await
}
