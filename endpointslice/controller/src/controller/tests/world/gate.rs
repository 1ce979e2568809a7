//! Way of the agent's requests to memkube ([`Gate`]): fails and delays writes of slices, and pauses watches.

use super::SECOND;
use crate::writes::Operation;
use bytes::Bytes;
use endpointslice::model::EndpointSlice;
use endpointslice::names::LABEL_SERVICE_NAME;
use fleetnet_runtime::clock::Clock;
use fleetnet_types::Timestamp;
use futures::future::BoxFuture;
use futures::stream;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use memkube::{BoxError, Service};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::watch;
use tokio::time::timeout;

type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Outcome of a write that the controller sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The server executes the write and responds.
    Done,
    /// The request is lost before it reaches the server.
    Failed,
    /// The server executes the write, but its response is lost.
    Unanswered,
    /// The server gets the request only at [`super::World::deliver_responses`].
    Slow,
    /// The server rejects the write for its content.
    Rejected,
    /// The server executes the write, but its response arrives only at [`super::World::deliver_responses`].
    AnsweredLate,
}

/// Request of the agent for a write of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) operation: Operation,
    pub(crate) name: String,
    /// Slice in the request. Null for a delete.
    pub(crate) body: Value,
}

/// Write that succeeded.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) operation: Operation,
    pub(crate) at: Timestamp,
    /// Slice in the response. `None` for a delete.
    pub(crate) after: Option<EndpointSlice>,
    /// True if the agent gets the response.
    pub(crate) is_answered: bool,
}

/// Check that no write of the agent removes an endpoint that was wanted from its begin to its end.
pub(crate) struct Guard {
    pub(crate) wanted: Box<dyn Fn() -> BTreeSet<String> + Send + Sync>,
    pub(crate) shown: Box<dyn Fn() -> BTreeSet<String> + Send + Sync>,
}

struct Flight {
    number: u64,
    service: String,
    slice: String,
    /// Endpoints that were wanted at the begin.
    wanted: BTreeSet<String>,
}

/// Fates of the writes at the gate, and the writes that it has seen.
pub(super) struct Traffic {
    pub(super) fates: Box<dyn FnMut(&Write) -> Fate + Send>,
    pub(super) done: Vec<Done>,
    flights: Vec<Flight>,
    begun: u64,
    pub(super) guard: Option<Arc<Guard>>,
}

/// Service for the requests of the agent. Clones share everything.
#[derive(Clone)]
pub(super) struct Gate {
    server: Service,
    clock: Clock,
    pub(super) traffic: Arc<Mutex<Traffic>>,
    /// Number of the last write that need not wait any more.
    released: Arc<watch::Sender<u64>>,
    pub(super) paused: Arc<watch::Sender<bool>>,
    /// True while no watch sends an event.
    pub(super) held: Arc<watch::Sender<bool>>,
}

impl Gate {
    pub(super) fn new(server: Service, clock: Clock) -> Self {
        let traffic =
            Traffic { fates: Box::new(|_| Fate::Done), done: Vec::new(), flights: Vec::new(), begun: 0, guard: None };
        Self {
            server,
            clock,
            traffic: Arc::new(Mutex::new(traffic)),
            released: Arc::new(watch::Sender::new(0)),
            paused: Arc::new(watch::Sender::new(false)),
            held: Arc::new(watch::Sender::new(true)),
        }
    }

    /// Delivers the writes and responses that wait.
    pub(super) fn release(&self) {
        self.released.send_replace(self.traffic.lock().begun);
    }

    /// Returns the slices of a Service that have a write in flight.
    pub(super) fn flights_of(&self, service: &str) -> Vec<String> {
        let traffic = self.traffic.lock();
        traffic.flights.iter().filter(|flight| flight.service == service).map(|flight| flight.slice.clone()).collect()
    }

    /// Forgets the writes in flight of a process that has ended.
    pub(super) fn forget_flights(&self) {
        self.traffic.lock().flights.clear();
    }

    /// Makes the guard check no write that is in flight now, because another client has changed slices.
    pub(super) fn forget_wanted(&self) {
        self.traffic.lock().flights.iter_mut().for_each(|flight| flight.wanted.clear());
    }

    async fn answer(mut self, request: Request<kube::client::Body>) -> Result<Response<Body>, BoxError> {
        let is_of_slices = request.uri().path().contains("/endpointslices");
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        if is_watch {
            let paused = is_of_slices.then(|| self.paused.subscribe());
            let pauses = paused.into_iter().chain([self.held.subscribe()]).collect();
            return Ok(self.send(request).await?.map(|body| pausable(body, pauses)));
        }
        if is_of_slices && *request.method() != Method::GET {
            return self.write(request).await;
        }
        Ok(self.send(request).await?.map(|body| body.boxed_unsync()))
    }

    async fn send<B>(&mut self, request: Request<B>) -> Result<Response<memkube::Body>, BoxError>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        tower::Service::call(&mut self.server, request).await
    }

    async fn write(mut self, request: Request<kube::client::Body>) -> Result<Response<Body>, BoxError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
        let operation = match head.method {
            Method::POST => Operation::Create,
            Method::PUT => Operation::Update,
            _ => Operation::Delete,
        };
        let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
        let body_of_write = if operation == Operation::Delete { Value::Null } else { sent };
        let name = body_of_write["metadata"]["name"].as_str().map(str::to_owned);
        let name = name.or_else(|| head.uri.path().rsplit('/').next().map(str::to_owned)).unwrap_or_default();
        let write = Write { operation, name, body: body_of_write };
        let (number, fate) = self.begin(&write);
        let request = Request::from_parts(head, Full::new(body));
        let result = self.carry_out(request, write.operation, (number, fate)).await;
        self.traffic.lock().flights.retain(|flight| flight.number != number);
        result
    }

    fn begin(&self, write: &Write) -> (u64, Fate) {
        let mut traffic = self.traffic.lock();
        traffic.begun += 1;
        let number = traffic.begun;
        let service = write.body["metadata"]["labels"][LABEL_SERVICE_NAME].as_str().unwrap_or_default().to_owned();
        let wanted = traffic.guard.as_ref().map(|guard| (guard.wanted)()).unwrap_or_default();
        traffic.flights.push(Flight { number, service, slice: write.name.clone(), wanted });
        (number, (traffic.fates)(write))
    }

    async fn carry_out(
        &mut self,
        request: Request<Full<Bytes>>,
        operation: Operation,
        (number, fate): (u64, Fate),
    ) -> Result<Response<Body>, BoxError> {
        match fate {
            Fate::Failed => return Err("the connection was reset".into()),
            Fate::Rejected => return Ok(rejection()),
            Fate::Slow => self.wait(number).await,
            Fate::Done | Fate::Unanswered | Fate::AnsweredLate => {}
        }
        let guard = self.traffic.lock().guard.clone();
        let before = guard.as_ref().map(|guard| (guard.shown)()).unwrap_or_default();
        let response = self.send(request).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        // Somebody else may have deleted the slice. Then the agent counts the delete as done.
        let is_gone = operation == Operation::Delete && head.status == StatusCode::NOT_FOUND;
        if head.status.is_success() || is_gone {
            let after = serde_json::from_slice(&body).ok().filter(|_| operation != Operation::Delete);
            let is_answered = fate != Fate::Unanswered;
            self.traffic.lock().done.push(Done { operation, at: self.clock.now(), after, is_answered });
            if let Some(guard) = guard {
                self.check(&guard, number, &before);
            }
        }
        match fate {
            Fate::Unanswered => return Err("no answer came".into()),
            Fate::AnsweredLate => self.wait(number).await,
            _ => {}
        }
        Ok(Response::from_parts(head, full(body)))
    }

    fn check(&self, guard: &Guard, number: u64, before: &BTreeSet<String>) {
        let (after, wanted) = ((guard.shown)(), (guard.wanted)());
        let traffic = self.traffic.lock();
        let flight = traffic.flights.iter().find(|flight| flight.number == number);
        let lost = |it: &&String| wanted.contains(*it) && flight.is_some_and(|flight| flight.wanted.contains(*it));
        let lost: Vec<_> = before.difference(&after).filter(lost).collect();
        assert!(lost.is_empty(), "an own write took away {lost:?}");
    }

    async fn wait(&self, number: u64) {
        let mut released = self.released.subscribe();
        // The agent gives up a request earlier.
        drop(timeout(SECOND * 60, released.wait_for(|released| *released >= number)).await);
    }
}

impl tower::Service<Request<kube::client::Body>> for Gate {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

fn full(body: Bytes) -> Body {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}

fn rejection() -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Invalid", "code": 422,
        "message": "it is not to our taste",
    });
    let response = Response::builder().status(422).header("content-type", "application/json");
    response.body(full(status.to_string().into())).expect("a response")
}

/// Returns the body with pauses while one of `pauses` is true.
fn pausable(body: memkube::Body, pauses: Vec<watch::Receiver<bool>>) -> Body {
    let frames = stream::unfold((body, pauses), |(mut body, mut pauses)| async move {
        let frame: Result<Frame<Bytes>, BoxError> = body.frame().await?;
        for pause in &mut pauses {
            // The sender lives as long as the world.
            drop(pause.wait_for(|is_paused| !is_paused).await);
        }
        Some((frame, (body, pauses)))
    });
    StreamBody::new(frames).boxed_unsync()
}
