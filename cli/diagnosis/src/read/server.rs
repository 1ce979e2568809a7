//! Requests to one API server, with their limits.

use super::Target;
use super::failure::{answered, failure, timed_out};
use crate::limits::{LIST_OBJECTS, MESSAGE_CHARS, PAGE_OBJECTS, REQUESTS_IN_FLIGHT};
use crate::snapshot::{Connection, Listing, Reached, Undecodable};
use fleetnet_api::decode;
use fleetnet_core::model::Kind;
use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::api::ListParams;
use kube::client::Body;
use kube::{Client, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

/// API server with the limits of a reading.
pub(super) struct Server<'a> {
    target: &'a Target,
    request: Duration,
    deadline: Instant,
    in_flight: Semaphore,
    throttled: AtomicBool,
}

/// Reason why a request has no result.
pub(super) enum Problem {
    Status(StatusCode, String),
    Failed(kube::Error),
    TimedOut,
    Malformed(String),
}

/// Page of a list, with the objects as text.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

/// Name of an object, for a message about an object that is not decodable.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    metadata: NamedMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NamedMetadata {
    namespace: String,
    name: String,
}

/// Answer of a server: time of the server and body.
struct Answer {
    now: Option<Timestamp>,
    body: Vec<u8>,
}

impl<'a> Server<'a> {
    pub(super) fn new(target: &'a Target, request: Duration, deadline: Instant) -> Self {
        let in_flight = Semaphore::new(REQUESTS_IN_FLIGHT);
        Self { target, request, deadline, in_flight, throttled: AtomicBool::new(false) }
    }

    /// Asks the server for its version, and returns the state of the connection.
    pub(super) async fn connect(&self) -> Connection {
        let Target { context, server_url, authority, .. } = self.target.clone();
        let mut connection = Connection { context, server_url, authority, ..Connection::default() };
        if let Err(failure) = &self.target.client {
            connection.reached = Reached::No(failure.clone());
            return connection;
        }
        let started = Instant::now();
        let answer = self.send(Request::get("/version").body(Body::empty()).expect("the URL is valid")).await;
        let took = u64::try_from(started.elapsed().as_millis()).ok();
        connection.reached = match answer {
            Ok(answer) => {
                connection.now = answer.now;
                Reached::Yes
            }
            // The server knows the user, so it is reached.
            Err(Problem::Status(StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS, _)) => Reached::Yes,
            Err(Problem::Status(status, detail)) => Reached::No(answered(self.target, status.as_u16(), detail)),
            Err(Problem::TimedOut) => Reached::No(timed_out(self.target, self.request)),
            Err(Problem::Failed(error)) => Reached::No(failure(self.target, &error, self.request).await),
            Err(Problem::Malformed(detail)) => Reached::No(answered(self.target, 200, detail)),
        };
        connection.answer_milliseconds = took.filter(|_| connection.reached == Reached::Yes);
        connection.throttled = self.was_throttled();
        connection
    }

    /// True if the server throttled a request.
    pub(super) fn was_throttled(&self) -> bool {
        self.throttled.load(Ordering::Relaxed)
    }

    /// Lists a kind in pages. `kind` names the kind in the agents' model, so that the listing shows objects that the
    /// agents cannot decode.
    pub(super) async fn list<K>(
        &self,
        namespace: Option<&str>,
        parameters: &ListParams,
        kind: Option<Kind>,
    ) -> Listing<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        self.list_with(namespace, parameters, kind, |_| {}).await
    }

    /// Lists a kind as [`Self::list`] does, and calls `seen` with the JSON of each object.
    pub(super) async fn list_with<K>(
        &self,
        namespace: Option<&str>,
        parameters: &ListParams,
        kind: Option<Kind>,
        mut seen: impl FnMut(&str),
    ) -> Listing<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let path = K::url_path(&(), namespace);
        let (mut objects, mut undecodable) = (Vec::new(), Vec::new());
        let mut parameters = parameters.clone().limit(PAGE_OBJECTS);
        loop {
            let request = match kube::core::Request::new(path.clone()).list(&parameters) {
                Ok(request) => request.map(Body::from),
                Err(error) => return Listing::Unknown(error.to_string()),
            };
            let answer = match self.send(request).await {
                Ok(answer) => answer,
                Err(problem) => return self.unlisted(problem),
            };
            let page: Page<'_> = match serde_json::from_slice(&answer.body) {
                Ok(page) => page,
                Err(error) => return Listing::Unknown(format!("the answer is malformed: {error}")),
            };
            for item in page.items {
                seen(item.get());
                match decoded::<K>(item.get(), kind) {
                    Ok(object) => objects.push(object),
                    Err(object) => undecodable.push(object),
                }
            }
            if objects.len() > LIST_OBJECTS {
                return Listing::Unknown(format!("the list has more than {LIST_OBJECTS} objects"));
            }
            parameters.continue_token = page.metadata.next.filter(|next| !next.is_empty());
            if parameters.continue_token.is_none() {
                return Listing::Known { objects, undecodable };
            }
        }
    }

    /// Sends a request with a JSON body and decodes the answer.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl serde::Serialize,
    ) -> Result<T, Problem> {
        let body = serde_json::to_vec(body).map_err(|error| Problem::Malformed(error.to_string()))?;
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json").body(Body::from(body));
        let answer = self.send(request.map_err(|error| Problem::Malformed(error.to_string()))?).await?;
        serde_json::from_slice(&answer.body).map_err(|error| Problem::Malformed(error.to_string()))
    }

    /// Converts a problem to a listing that is not known.
    pub(super) fn unlisted<K>(&self, problem: Problem) -> Listing<K> {
        match problem {
            Problem::Status(StatusCode::FORBIDDEN, message) => Listing::Denied(message),
            Problem::Status(StatusCode::NOT_FOUND, _) => Listing::NotDefined,
            Problem::Status(status, message) => Listing::Unknown(format!("HTTP {}: {message}", status.as_u16())),
            Problem::Failed(error) => Listing::Unknown(error.to_string()),
            Problem::TimedOut => Listing::Unknown(format!("no answer within {} s", self.request.as_secs_f64())),
            Problem::Malformed(why) => Listing::Unknown(why),
        }
    }

    async fn send(&self, request: Request<Body>) -> Result<Answer, Problem> {
        let client = self.target.client.as_ref().map_err(|failure| Problem::Malformed(failure.detail.clone()))?;
        let Ok(_permit) = self.in_flight.acquire().await else { return Err(Problem::TimedOut) };
        let left = self.deadline.saturating_duration_since(Instant::now());
        match timeout(self.request.min(left), answer(client, request)).await {
            Ok(Ok((StatusCode::OK | StatusCode::CREATED, answer))) => Ok(answer),
            Ok(Ok((status, answer))) => {
                if status == StatusCode::TOO_MANY_REQUESTS {
                    self.throttled.store(true, Ordering::Relaxed);
                }
                Err(Problem::Status(status, message(&answer.body)))
            }
            Ok(Err(error)) => Err(Problem::Failed(error)),
            Err(_) => Err(Problem::TimedOut),
        }
    }
}

async fn answer(client: &Client, request: Request<Body>) -> kube::Result<(StatusCode, Answer)> {
    let response = client.send(request).await?;
    let date = response.headers().get(header::DATE).and_then(|date| date.to_str().ok());
    let now = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()).map(|date| date.timestamp());
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes().to_vec();
    Ok((status, Answer { now, body }))
}

/// Returns the message of a Status object, or the start of the text.
fn message(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Status {
        message: String,
    }
    match serde_json::from_slice::<Status>(body) {
        Ok(status) => status.message,
        Err(_) => {
            String::from_utf8_lossy(body).lines().next().unwrap_or_default().chars().take(MESSAGE_CHARS).collect()
        }
    }
}

/// Decodes an object as the diagnosis and as the agents do.
fn decoded<K>(json: &str, kind: Option<Kind>) -> Result<K, Undecodable>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let undecodable = |why: String| {
        let Named { metadata } = serde_json::from_str(json).unwrap_or_default();
        let NamedMetadata { namespace, name } = metadata;
        Undecodable { kind: K::kind(&()).into_owned(), namespace, name, why }
    };
    if let Some(Err(error)) = kind.map(|kind| decode::decode(kind, json.as_bytes())) {
        return Err(undecodable(error.why));
    }
    serde_json::from_str(json).map_err(|error| undecodable(error.to_string()))
}

/// Joins two listings. The result is known only if both are.
pub(super) fn joined<K>(one: Listing<K>, two: Listing<K>) -> Listing<K> {
    match (one, two) {
        (
            Listing::Known { mut objects, mut undecodable },
            Listing::Known { objects: others, undecodable: other_undecodable },
        ) => {
            objects.extend(others);
            undecodable.extend(other_undecodable);
            Listing::Known { objects, undecodable }
        }
        (Listing::Known { .. }, other) | (other, _) => other,
    }
}
