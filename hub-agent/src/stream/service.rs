//! A new stream: the hub agent checks who opens it, and then serves it as a [`Session`].

use super::clocks::{Clocks, SteadyClock};
use super::message::{Message, Outbox};
use super::metrics::Metrics;
use super::session::Session;
use super::shared::{Shared, not_accepted};
use crate::limits::{EXPIRED_FOR, HELLO_TIMEOUT, STREAM_RESPONSES, STREAMS_MAX};
use fleetnet_core::names;
use fleetnet_proto::v1::{Hello, SubscribeRequest, SubscribeResponse, subscribe_request};
use fleetnet_proto::{PROTOCOL_VERSION, SliceStream, TOKEN_AUDIENCE};
use fleetnet_runtime::clock::Clock;
use fleetnet_runtime::io::token::claims::Claims;
use fleetnet_runtime::process::access::{Client, Guard};
use fleetnet_runtime::process::admin::connections::Peer;
use fleetnet_runtime::process::reviews::bearer;
use fleetnet_types::Timestamp;
use futures::stream::{BoxStream, StreamExt as _};
use http::header;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::timeout;
use tonic::{Request, Response, Status, Streaming};

/// Service of the slice stream.
#[derive(Clone, Debug)]
pub(crate) struct Service(Arc<Shared>);

impl Service {
    pub(crate) fn new(
        inbox: mpsc::Sender<Message>,
        guard: Guard,
        leads: watch::Receiver<bool>,
        clock: Clock,
        clocks: Arc<Clocks>,
        metrics: Metrics,
    ) -> Self {
        Self(Arc::new(Shared {
            inbox,
            guard,
            leads,
            clock,
            steady: SteadyClock::start(),
            clocks,
            metrics,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        }))
    }

    /// Returns a channel that is true while this replica leads.
    pub(super) fn leads(&self) -> watch::Receiver<bool> {
        self.0.leads.clone()
    }

    async fn open(&self, request: Request<Streaming<SubscribeRequest>>) -> Result<Responses, Status> {
        let shared = &self.0;
        let peer = request.extensions().get::<Peer>().cloned();
        let peer = peer.ok_or_else(|| Status::internal("the listener did not name the client"))?;
        shared.is_serving()?;
        let authorization = request.metadata().as_ref().get(header::AUTHORIZATION);
        let missing = || Status::unauthenticated("the header `authorization` has no bearer token");
        let token = authorization.and_then(bearer).ok_or_else(missing)?.to_owned();
        if !may_be_accepted(Claims::of(&token).as_ref(), shared.clock.now()) {
            return Err(not_accepted());
        }
        let mut requests = request.into_inner();
        let late = |_| Status::deadline_exceeded(format!("no Hello within {HELLO_TIMEOUT:?}"));
        let first = timeout(HELLO_TIMEOUT, requests.message()).await.map_err(late)??;
        let (hello, importer) = read_first(first.unwrap_or_default())?;
        shared.access(Client::Stranger(peer.address), &token, &importer).await?;
        // Only clients with access get a place, so that others cannot take all places.
        let exhausted = |_| Status::resource_exhausted("too many streams; the member agent tries again later");
        let place = Arc::clone(&shared.streams).try_acquire_owned().map_err(exhausted)?;
        shared.is_serving()?; // leadership may be lost meanwhile
        let (responses, sent) = mpsc::channel(STREAM_RESPONSES);
        let outbox = Arc::new(Outbox::default());
        tracing::info!(member = hello.cluster, version = hello.agent_version, "a member opened its slice stream");
        let session = Session::new(Arc::clone(shared), hello.cluster, importer.into(), token, outbox);
        peer.accept(true);
        tokio::spawn(async move {
            session.run(requests, responses).await;
            peer.accept(false);
            drop(place);
        });
        Ok(futures::stream::unfold(sent, |mut sent| async { Some((sent.recv().await?, sent)) }).boxed())
    }
}

type Responses = BoxStream<'static, Result<SubscribeResponse, Status>>;

#[tonic::async_trait]
impl SliceStream for Service {
    type SubscribeStream = Responses;

    async fn subscribe(
        &self,
        request: Request<Streaming<SubscribeRequest>>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let opened = self.open(request).await;
        if let Err(status) = &opened {
            self.0.metrics.refused(status.code());
            tracing::debug!(code = ?status.code(), why = status.message(), "a slice stream was refused");
        }
        opened.map(Response::new)
    }
}

/// True if the API server could accept a token with these claims, which nobody has verified yet. So other tokens cost
/// no review.
fn may_be_accepted(claims: Option<&Claims>, now: Timestamp) -> bool {
    let Some(claims) = claims else { return false };
    let expired_for = i64::try_from(EXPIRED_FOR.as_secs()).unwrap_or(i64::MAX);
    let is_expired = |expires: i64| expires.saturating_add(expired_for) <= now.0 / 1_000_000;
    let is_for_streams = claims.audiences.iter().any(|audience| audience == TOKEN_AUDIENCE);
    claims.service_account().is_some()
        && is_for_streams
        && claims.expires_at.is_some_and(|expires| !is_expired(expires))
}

/// Returns the Hello in the first request of a stream, and the member namespace of its member.
pub(crate) fn read_first(request: SubscribeRequest) -> Result<(Hello, String), Status> {
    let Some(subscribe_request::Message::Hello(hello)) = request.message else {
        return Err(Status::invalid_argument("the first request of a stream must be a Hello"));
    };
    let importer = importer(&hello)?;
    Ok((hello, importer))
}

/// Returns the member namespace of the member that says hello.
fn importer(hello: &Hello) -> Result<String, Status> {
    if hello.protocol_version != PROTOCOL_VERSION {
        return Err(Status::failed_precondition(format!(
            "the member agent speaks version {} of the slice stream, and the hub agent version {PROTOCOL_VERSION}; update \
             the older one",
            hello.protocol_version
        )));
    }
    if !names::is_cluster_id(&hello.cluster) {
        return Err(Status::invalid_argument("the cluster id in the Hello is malformed"));
    }
    Ok(names::member_namespace(&hello.cluster).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule J24: A client opens a stream with a token whose claims are not those of a ServiceAccount for the audience
    /// `fleetnet-slice-stream`, or that expired a day ago
    /// Then: The hub agent refuses the stream (UNAUTHENTICATED) without a review
    #[test]
    fn only_a_token_of_a_service_account_for_the_slice_stream_is_reviewed() {
        const EXPIRES: i64 = 1_800_000_000;
        let own = || Claims {
            subject: Some("system:serviceaccount:fleet-member-a:member-agent".to_owned()),
            audiences: vec![TOKEN_AUDIENCE.to_owned()],
            issued_at: None,
            expires_at: Some(EXPIRES),
        };
        let at = |seconds: i64| Timestamp::from_seconds(EXPIRES + seconds);
        let table = [
            ("its own", Some(own()), at(-1), true),
            ("expired by another clock", Some(own()), at(86_399), true),
            ("expired for a day", Some(own()), at(86_400), false),
            ("without a time", Some(Claims { expires_at: None, ..own() }), at(-1), false),
            ("another audience", Some(Claims { audiences: vec!["other".to_owned()], ..own() }), at(-1), false),
            ("no audience", Some(Claims { audiences: Vec::new(), ..own() }), at(-1), false),
            ("a user", Some(Claims { subject: Some("admin".to_owned()), ..own() }), at(-1), false),
            ("nobody", Some(Claims { subject: None, ..own() }), at(-1), false),
            ("no JSON Web Token", None, at(-1), false),
        ];
        for (why, claims, now, is_reviewed) in table {
            assert_eq!(may_be_accepted(claims.as_ref(), now), is_reviewed, "{why}");
        }
    }
}
