//! Test kit of the engine: a toy agent that copies objects, two simulated servers with faults, and the type `World`
//! that connects them.
//!
//! The test delivers the watch events itself, so the test decides their order.

#![expect(
    clippy::disallowed_types,
    reason = "tests look into what a server or an agent was told, and nothing awaits meanwhile"
)]

use fleetnet_types::ObjectName;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::pending;
use http::{Method, Request as HttpRequest, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tower::BoxError;

use crate::backoff::Jitter;
use crate::clock::Clock;
use crate::engine::leadership::Leadership;
use crate::engine::logic::{
    Change, Event, Fight, Flow, FlowId, Logic, Observed, Plan, ProcessNews, Request, Resource, Severity, Undecodable,
    Urgency, Verb, WatchNews, WatchState, WriteEnd, WriteEnded, WriteNews,
};
use crate::engine::message::{WatchEvent, WatchMessage};
use crate::engine::sources::SourceStatus;
use crate::engine::state::{Engine, Surroundings};
use crate::engine::versions::Mark;
use crate::io::client::Cluster;
use crate::io::events::{self, Recorder};
use crate::io::source::SourceSpec;
use crate::metrics::Metrics;
use crate::process::shutdown::{Shutdown, ShutdownTrigger};
use crate::run::engine_loop::{EngineLoop, Finished, Inputs};
use fleetnet_types::Timestamp;

pub(crate) const START: Timestamp = Timestamp::from_seconds(1_800_000_000);

/// Kinds that the toy agent watches. Member cluster: `Claim`, which requests a copy, and `Local`, which is a copy. Hub:
/// `Copy` and `Namespace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    Claim,
    Copy,
    Local,
    Namespace,
}

impl Source {
    pub(crate) const ALL: [Self; 4] = [Self::Claim, Self::Copy, Self::Local, Self::Namespace];

    pub(crate) fn resource(self) -> Resource {
        let (kind, plural) = match self {
            Self::Claim => ("Claim", "claims"),
            Self::Copy => ("Copy", "copies"),
            Self::Local => ("Local", "locals"),
            Self::Namespace => {
                return Resource { group: "", version: "v1", kind: "Namespace", plural: "namespaces" };
            }
        };
        Resource { group: "toy.io", version: "v1", kind, plural }
    }

    /// Returns the specification of a watch of this kind in this cluster.
    pub(crate) fn spec(self, cluster: &Arc<Cluster>) -> SourceSpec<Copier> {
        SourceSpec::new(self, Arc::clone(cluster), self.resource(), Arc::new(decode))
    }
}

#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Thing {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: u64,
    pub(crate) value: String,
    pub(crate) deleting: bool,
    /// In a `Claim`: true to keep a second copy in the member cluster.
    pub(crate) local: bool,
    /// In a `Claim`: name of the copy, if it differs from the Claim's name.
    pub(crate) into: Option<String>,
    /// In a `Claim`: time at which the toy agent must plan again.
    pub(crate) again: Option<Timestamp>,
    /// In a `Claim`: true if the agent puts the present time into the copy.
    pub(crate) stamped: bool,
}

impl Thing {
    pub(crate) fn claim(name: &str, value: &str) -> Self {
        Self { name: name.to_owned(), uid: format!("claim-{name}"), value: value.to_owned(), ..Self::default() }
    }

    pub(crate) fn observed(self) -> Observed<Self> {
        Observed {
            name: ObjectName::new("ns", self.name.as_str()),
            uid: self.uid.as_str().into(),
            resource_version: self.version,
            object: self,
        }
    }

    /// True if both objects are equal except for the resourceVersion.
    fn has_content_of(&self, other: &Self) -> bool {
        Self { version: 0, ..self.clone() } == Self { version: 0, ..other.clone() }
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Observed<Thing>, Undecodable> {
    let undecodable = |why: &str| Undecodable { why: why.to_owned(), ..Undecodable::default() };
    let value: Value = serde_json::from_slice(bytes).map_err(|error| undecodable(&error.to_string()))?;
    let metadata = &value["metadata"];
    let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    let version = text(&metadata["resourceVersion"]).parse().map_err(|_| undecodable("no resourceVersion"))?;
    let thing = Thing {
        name: text(&metadata["name"]),
        uid: text(&metadata["uid"]),
        version,
        value: text(&value["spec"]["value"]),
        deleting: metadata["deletionTimestamp"].is_string(),
        ..Thing::default()
    };
    Ok(thing.observed())
}

/// Key of the last write of the toy agent before it stops, and name of the written object.
const LAST: &str = "last";

/// Value of a `Claim` for which the toy agent plans two writes to one object, which is a bug.
pub(crate) const WRITTEN_TWICE: &str = "written twice";

/// Log of the calls that the toy agent has received from the engine.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) plans: Vec<String>,
    pub(crate) receipts: Vec<String>,
    pub(crate) states: Vec<(Source, WatchState)>,
    pub(crate) rejected: Vec<String>,
    pub(crate) failed: Vec<String>,
    /// Failed writes, with their status.
    pub(crate) not_done: Vec<String>,
    /// Steps of the wall clock, in microseconds.
    pub(crate) clock_set: Vec<i64>,
    /// Calls of `fight`: `… with somebody` for the start of a fight, and `… is over` for its end.
    pub(crate) fights: Vec<String>,
    pub(crate) removed: Vec<String>,
    pub(crate) undecodable: Vec<String>,
    /// Name of the object in each `Applied` change, repetitions included.
    pub(crate) applied: Vec<String>,
    /// Verb and name of each write that was sent.
    pub(crate) begun: Vec<String>,
    pub(crate) ended: Vec<(String, WriteEnd, usize)>,
    /// Number of plans made before each time that the agent started to lead.
    pub(crate) led_after_plans: Vec<usize>,
    /// Number of times that the agent stopped leading.
    pub(crate) followed: usize,
    /// Key that the agent asks to plan when it starts to lead.
    pub(crate) to_plan_when_it_leads: Option<String>,
    /// Sources whose watch has lost its connection (false) or has it again (true).
    pub(crate) connected: Vec<(Source, bool)>,
    /// Messages of other parts of the process.
    pub(crate) received: Vec<String>,
    /// Objects that the agent asks to read again.
    pub(crate) wanted_again: VecDeque<(Source, ObjectName)>,
    /// Content of the agent's last write before it stops, if it has one.
    pub(crate) last_word: Option<&'static str>,
}

/// Toy agent: keeps a copy of each requested object in the hub, and a second one in the member cluster if requested.
#[derive(Default)]
pub(crate) struct Copier {
    things: BTreeMap<(Source, String), Thing>,
    states: BTreeMap<Source, WatchState>,
    record: Arc<Mutex<Record>>,
}

impl Copier {
    /// Returns a toy agent that logs the calls to it here.
    pub(crate) fn recording(record: &Arc<Mutex<Record>>) -> Self {
        Self { record: Arc::clone(record), ..Self::default() }
    }

    fn keys_of(&self, source: Source, name: &str) -> Vec<String> {
        let claims = self.things.iter().filter(|((source, _), _)| *source == Source::Claim).map(|(_, claim)| claim);
        match source {
            Source::Claim | Source::Local => vec![name.to_owned()],
            Source::Namespace => claims.map(|claim| claim.name.clone()).collect(),
            Source::Copy => {
                let into = claims.filter(|claim| claim.into.as_deref() == Some(name)).map(|claim| claim.name.clone());
                into.chain([name.to_owned()]).collect()
            }
        }
    }

    fn ensure(
        &self,
        source: Source,
        name: &str,
        value: &str,
        stamp: Option<Timestamp>,
        writes: &mut Vec<Request<Source, String>>,
    ) {
        let spec = match stamp {
            Some(now) => json!({"value": value, "at": crate::clock::micro_time(now)}),
            None => json!({"value": value}),
        };
        let verb = match self.things.get(&(source, name.to_owned())) {
            None => Verb::Create {
                body: json!({
                    "apiVersion": "toy.io/v1",
                    "kind": source.resource().kind,
                    "metadata": {"namespace": "ns", "name": name},
                    "spec": spec,
                })
                .into(),
            },
            Some(thing) if thing.deleting || thing.value == value => return,
            Some(thing) => {
                Verb::Patch { subresource: None, resource_version: thing.version, body: json!({"spec": spec}).into() }
            }
        };
        let receipt = Some(format!("{name}={value}"));
        writes.push(Request { source, name: ObjectName::new("ns", name), verb, receipt });
    }

    fn remove(&self, source: Source, name: &str, writes: &mut Vec<Request<Source, String>>) {
        let wanted_by_another = self.things.values().any(|claim| claim.into.as_deref() == Some(name));
        if !wanted_by_another && let Some(thing) = self.things.get(&(source, name.to_owned())) {
            let verb = Verb::Delete { uid: thing.uid.as_str().into() };
            writes.push(Request { source, name: ObjectName::new("ns", name), verb, receipt: None });
        }
    }
}

/// Effect of each plan of the toy agent, so that the test sees that the plan was made.
#[derive(Debug)]
pub(crate) struct Planned;

impl Logic for Copier {
    type Source = Source;
    type Object = Thing;
    type Key = String;
    type Receipt = String;
    type Effect = Planned;
    /// Name of a key to plan.
    type Message = String;

    fn observe(&mut self, source: Source, change: Change<Thing>, _at: Timestamp, requeue: &mut Vec<String>) {
        let name = match change {
            Change::Applied(thing) => {
                let name = thing.name.clone();
                lock(&self.record).applied.push(name.clone());
                let before = self.things.insert((source, name.clone()), thing.clone());
                if before.is_some_and(|before| before.has_content_of(&thing)) {
                    return;
                }
                name
            }
            Change::Undecodable { name, .. } => {
                lock(&self.record).undecodable.push(name.name.to_string());
                name.name.to_string()
            }
            Change::Removed { name, uid, .. } => {
                lock(&self.record).removed.push(uid.to_string());
                self.things.remove(&(source, name.name.to_string()));
                name.name.to_string()
            }
        };
        requeue.extend(self.keys_of(source, &name));
    }

    fn wanted_again(&mut self) -> Option<(Source, ObjectName)> {
        lock(&self.record).wanted_again.pop_front()
    }

    fn watch(&mut self, source: Source, news: WatchNews, _at: Timestamp, requeue: &mut Vec<String>) {
        match news {
            WatchNews::State(state) => {
                lock(&self.record).states.push((source, state));
                self.states.insert(source, state);
                requeue.extend(self.things.keys().map(|(_, name)| name.clone()));
            }
            WatchNews::Connected(is_connected) => lock(&self.record).connected.push((source, is_connected)),
            WatchNews::Listing(_) | WatchNews::Restored => {}
        }
    }

    fn receive(&mut self, message: String, _at: Timestamp, requeue: &mut Vec<String>) {
        lock(&self.record).received.push(message.clone());
        requeue.push(message);
    }

    fn process(&mut self, news: ProcessNews, _at: Timestamp, requeue: &mut Vec<String>) {
        let mut record = lock(&self.record);
        match news {
            ProcessNews::Leads => {
                let plans = record.plans.len();
                record.led_after_plans.push(plans);
                requeue.extend(record.to_plan_when_it_leads.take());
            }
            ProcessNews::Follows => record.followed += 1,
            ProcessNews::ClockSet { microseconds } => record.clock_set.push(microseconds),
            ProcessNews::Stops => requeue.extend(record.last_word.map(|_| LAST.to_owned())),
        }
    }

    fn plan(&self, key: &String, now: Timestamp) -> Plan<Source, String, Planned> {
        let mut plan = Plan { effect: Some(Planned), renews: key == "beat", ..Plan::default() };
        if key == LAST
            && let Some(value) = lock(&self.record).last_word
        {
            self.ensure(Source::Copy, LAST, value, None, &mut plan.writes);
            return plan;
        }
        match self.things.get(&(Source::Claim, key.clone())) {
            Some(claim) => {
                let stamp = claim.stamped.then_some(now);
                self.ensure(Source::Copy, claim.into.as_deref().unwrap_or(key), &claim.value, stamp, &mut plan.writes);
                if claim.local {
                    self.ensure(Source::Local, key, &claim.value, stamp, &mut plan.writes);
                }
                plan.again = claim.again;
                if claim.value == WRITTEN_TWICE {
                    plan.writes.extend(plan.writes.clone());
                }
            }
            None if self.states.get(&Source::Claim) == Some(&WatchState::Complete) => {
                self.remove(Source::Copy, key, &mut plan.writes);
                self.remove(Source::Local, key, &mut plan.writes);
            }
            None => {}
        }
        plan
    }

    fn planned(&mut self, key: &String, Planned: Planned, _at: Timestamp) {
        lock(&self.record).plans.push(key.clone());
    }

    fn flow(&self, key: &String) -> Flow {
        let name = key.split('-').next().unwrap_or_default();
        let urgency = if name == "heartbeat" { Urgency::Heartbeat } else { Urgency::Normal };
        Flow { urgency, ..FlowId::of(name).into() }
    }

    fn write(
        &mut self,
        key: &String,
        news: WriteNews<'_, Source, String>,
        _at: Timestamp,
        _requeue: &mut Vec<String>,
    ) -> Vec<Event<Source>> {
        let mut record = lock(&self.record);
        let name = |request: &Request<Source, String>| format!("{} {}", request.verb.as_str(), request.name.name);
        let WriteEnded { request, end, receipt, failure, is_reported } = match news {
            WriteNews::Begun(request) => {
                record.begun.push(name(request));
                return Vec::new();
            }
            WriteNews::Ended(ended) => ended,
        };
        let reported = record.applied.len();
        record.ended.push((name(request), end, reported));
        record.receipts.extend(receipt);
        let Some(failure) = failure else { return Vec::new() };
        record.not_done.push(format!("{key} {}: {}", failure.verb, failure.status));
        if !is_reported {
            return Vec::new();
        }
        if end != WriteEnd::Rejected {
            record.failed.push(format!("{key} {}: {}", failure.verb, failure.status));
            return Vec::new();
        }
        record.rejected.push(format!("{key}: {} {}", failure.status, failure.reason));
        vec![Event {
            source: Source::Claim,
            name: ObjectName::new("ns", key.as_str()),
            uid: format!("claim-{key}").into(),
            severity: Severity::Warning,
            component: "copier",
            reason: "CopyRefused",
            message: failure.message.clone(),
        }]
    }

    fn fight(&mut self, key: &String, fight: &Fight<Source>, _requeue: &mut Vec<String>) -> Vec<Event<Source>> {
        let Fight { cluster, kind, name, by, .. } = fight;
        let end = by.as_ref().map_or_else(|| "is over".to_owned(), |by| format!("with {by}"));
        lock(&self.record).fights.push(format!("{key}: {cluster} {kind} {name} {end}"));
        Vec::new()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fault of a simulated server.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Responds with this status, headers and body, and does not execute the request.
    Answer(u16, &'static [(&'static str, &'static str)], Value),
    /// Does not execute the request and never responds.
    Hang,
    /// Executes the request and never responds.
    DoAndHang,
    /// Does not execute the request and closes the connection.
    Cut,
    /// Executes the request and closes the connection without a response.
    DoAndCut,
    /// Executes the request and responds with 500.
    DoAndFail,
    /// Accepts no connection.
    Refuse,
    /// Executes the request at once and responds after this duration.
    Late(Duration),
    /// Waits for this duration, then behaves as the enclosed fault says.
    After(Duration, Box<Fault>),
    /// Drops `spec.value` of a written object, as a server does if the CRD has no such field.
    Prune,
    /// Keeps a deleted object, as if the object had a finalizer, and returns the object.
    Linger,
}

impl Fault {
    /// Responds with a failure as [`failure`] returns it.
    pub(crate) fn failure(code: u16, reason: &str, message: &str, about: (&str, &str)) -> Self {
        let (status, body) = failure(code, reason, message, about);
        Self::Answer(status, &[], body)
    }

    /// Responds with a failure about the object `copies/a`.
    pub(crate) fn of_copy_a(code: u16, reason: &str, message: &str) -> Self {
        Self::failure(code, reason, message, ("copies", "a"))
    }
}

/// Simulated API server in memory. Clones share their state.
#[derive(Clone)]
pub(crate) struct Server(Arc<Mutex<State>>);

struct State {
    revision: u64,
    uids: u64,
    objects: BTreeMap<String, Value>,
    /// Watch events that the test has not yet delivered to the engine.
    events: VecDeque<(Source, WatchEvent<Thing>)>,
    log: Vec<(Duration, String)>,
    /// Number of GETs that wait for a response now, and the highest such number so far.
    gets: (usize, usize),
    faults: Vec<(Method, String, usize, Fault)>,
    begun: Instant,
}

impl Server {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            revision: 100,
            uids: 0,
            objects: BTreeMap::new(),
            events: VecDeque::new(),
            log: Vec::new(),
            gets: (0, 0),
            faults: Vec::new(),
            begun: Instant::now(),
        })))
    }

    pub(crate) fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: HttpRequest<Body>| server.clone().handle(request));
        kube::Client::new(service, "default")
    }

    /// Applies the fault to the next `times` requests of this method to a path that contains this text.
    pub(crate) fn fault(&self, method: Method, path: &str, times: usize, fault: Fault) {
        lock(&self.0).faults.push((method, path.to_owned(), times, fault));
    }

    pub(crate) fn heal(&self) {
        lock(&self.0).faults.clear();
    }

    /// Returns the requests so far: `POST copies/a = value`, `PATCH copies/a@version = value`, `DELETE copies/a uid`,
    /// `GET  copies/a`.
    pub(crate) fn log(&self) -> Vec<String> {
        lock(&self.0).log.iter().map(|(_, line)| line.clone()).collect()
    }

    /// Returns each line of the log after its time, in milliseconds since the start.
    pub(crate) fn timed_log(&self) -> Vec<(u128, String)> {
        lock(&self.0).log.iter().map(|(at, line)| (at.as_millis(), line.clone())).collect()
    }

    /// Returns the times of the requests so far, in milliseconds since the start.
    pub(crate) fn times(&self) -> Vec<u128> {
        self.timed_log().into_iter().map(|(at, _)| at).collect()
    }

    pub(crate) fn forget_log(&self) {
        lock(&self.0).log.clear();
    }

    pub(crate) fn value(&self, path: &str) -> Option<String> {
        lock(&self.0).objects.get(path).map(|object| object["spec"]["value"].as_str().unwrap_or_default().to_owned())
    }

    /// Creates or changes an object as another client does. Returns the new version.
    pub(crate) fn put(&self, source: Source, name: &str, value: &str) -> u64 {
        let mut state = lock(&self.0);
        let path = path_of(source, name);
        let object = match state.objects.get(&path) {
            Some(object) => {
                let mut object = object.clone();
                object["spec"]["value"] = json!(value);
                object
            }
            None => json!({"metadata": {"name": name, "uid": state.next_uid()}, "spec": {"value": value}}),
        };
        state.store(source, &path, object);
        state.revision
    }

    /// Deletes an object as another client does.
    pub(crate) fn delete(&self, source: Source, name: &str) {
        lock(&self.0).remove(source, &path_of(source, name));
    }

    /// Removes and returns the watch events that the test has not delivered yet.
    pub(crate) fn take_events(&self) -> Vec<(Source, WatchEvent<Thing>)> {
        lock(&self.0).events.drain(..).collect()
    }

    pub(crate) fn revision(&self) -> u64 {
        lock(&self.0).revision
    }

    /// Returns the highest number of GETs in flight at once.
    pub(crate) fn most_gets(&self) -> usize {
        lock(&self.0).gets.1
    }

    async fn handle(self, request: HttpRequest<Body>) -> Result<Response<Full<Bytes>>, BoxError> {
        let get = usize::from(request.method() == Method::GET);
        {
            let (now, most) = &mut lock(&self.0).gets;
            *now += get;
            *most = (*most).max(*now);
        }
        let answer = self.clone().answer(request).await;
        lock(&self.0).gets.0 -= get;
        answer
    }

    async fn answer(self, request: HttpRequest<Body>) -> Result<Response<Full<Bytes>>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = parts.uri.path().to_owned();
        let fault = lock(&self.0).note(&parts.method, &path, &body);
        let carried_out = |fault| lock(&self.0).carry_out(&parts.method, &path, &body, fault);
        let cut = |kind: std::io::ErrorKind| Err(BoxError::from(std::io::Error::from(kind)));
        let fault = match fault {
            Some(Fault::After(delay, fault)) => {
                sleep(delay).await;
                Some(*fault)
            }
            fault => fault,
        };
        match fault {
            None => respond(carried_out(None)),
            Some(Fault::Answer(status, headers, body)) => {
                let mut response = respond((status, body))?;
                for (name, value) in headers {
                    response.headers_mut().insert(*name, http::HeaderValue::from_static(value));
                }
                Ok(response)
            }
            Some(Fault::Hang) => pending().await,
            Some(Fault::DoAndHang) => {
                carried_out(None);
                pending().await
            }
            Some(Fault::Cut) => cut(std::io::ErrorKind::ConnectionReset),
            Some(Fault::DoAndCut) => {
                carried_out(None);
                cut(std::io::ErrorKind::ConnectionReset)
            }
            Some(Fault::DoAndFail) => {
                carried_out(None);
                respond(failure(500, "InternalError", "the server broke", ("", "")))
            }
            Some(Fault::Refuse) => cut(std::io::ErrorKind::ConnectionRefused),
            Some(Fault::Late(delay)) => {
                let answer = carried_out(None);
                sleep(delay).await;
                respond(answer)
            }
            Some(Fault::After(..)) => unreachable!("it is taken apart above"),
            Some(fault @ (Fault::Prune | Fault::Linger)) => respond(carried_out(Some(fault))),
        }
    }
}

pub(crate) fn path_of(source: Source, name: &str) -> String {
    source.resource().object_path("ns", name)
}

pub(crate) fn failure(code: u16, reason: &str, message: &str, (kind, name): (&str, &str)) -> (u16, Value) {
    let details = json!({"kind": kind, "name": name});
    let status = json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message, "details": details});
    (code, status)
}

fn respond((status, body): (u16, Value)) -> Result<Response<Full<Bytes>>, BoxError> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = StatusCode::from_u16(status)?;
    Ok(response)
}

fn source_of(path: &str) -> Source {
    let has = |source: &Source| path.contains(&format!("/{}", source.resource().plural));
    Source::ALL.into_iter().find(has).unwrap_or(Source::Claim)
}

impl State {
    fn next_uid(&mut self) -> String {
        self.uids += 1;
        format!("uid-{}", self.uids)
    }

    fn note(&mut self, method: &Method, path: &str, body: &Value) -> Option<Fault> {
        let plural = source_of(path).resource().plural;
        let last = path.rsplit('/').next().unwrap_or_default();
        let version = body["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let value = body["spec"]["value"].as_str().unwrap_or_default();
        let line = match *method {
            Method::POST if path.ends_with("/events") => {
                format!(
                    "POST event {}: {}",
                    body["reason"].as_str().unwrap_or_default(),
                    body["message"].as_str().unwrap_or_default()
                )
            }
            Method::POST => {
                format!("POST {plural}/{} = {value}", body["metadata"]["name"].as_str().unwrap_or_default())
            }
            Method::PATCH => format!("PATCH {plural}/{last}@{version} = {value}"),
            Method::DELETE => {
                format!("DELETE {plural}/{last} {}", body["preconditions"]["uid"].as_str().unwrap_or_default())
            }
            _ => format!("{method} {plural}/{last}"),
        };
        self.log.push((self.begun.elapsed(), line));
        let full = if *method == Method::POST {
            format!("{path}/{}", body["metadata"]["name"].as_str().unwrap_or_default())
        } else {
            path.to_owned()
        };
        let index =
            self.faults.iter().position(|(of, part, times, _)| of == method && full.contains(part) && *times > 0)?;
        self.faults[index].2 -= 1;
        Some(self.faults[index].3.clone())
    }

    fn carry_out(&mut self, method: &Method, path: &str, body: &Value, fault: Option<Fault>) -> (u16, Value) {
        let source = source_of(path);
        let plural = source.resource().plural;
        let last = path.rsplit('/').next().unwrap_or_default();
        let prune = matches!(fault, Some(Fault::Prune));
        match *method {
            Method::POST if path.ends_with("/events") => (201, json!({})),
            Method::POST => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default();
                let path = format!("{path}/{name}");
                if self.objects.contains_key(&path) {
                    return failure(409, "AlreadyExists", "it already exists", (plural, name));
                }
                let mut object = body.clone();
                object["metadata"]["uid"] = json!(self.next_uid());
                if prune {
                    object["spec"] = json!({});
                }
                (201, self.store(source, &path, object))
            }
            _ => {
                let Some(object) = self.objects.get(path).cloned() else {
                    return failure(404, "NotFound", "not found", (plural, last));
                };
                match *method {
                    Method::PATCH => self.patch(source, path, object, body, prune),
                    Method::DELETE => self.delete(source, path, object, body, matches!(fault, Some(Fault::Linger))),
                    _ => (200, object),
                }
            }
        }
    }

    fn patch(&mut self, source: Source, path: &str, mut object: Value, body: &Value, prune: bool) -> (u16, Value) {
        if object["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] {
            return failure(409, "Conflict", "the object has been modified", (source.resource().plural, ""));
        }
        if prune || object["spec"]["value"] == body["spec"]["value"] {
            // As on a real server, a patch that changes nothing keeps the resourceVersion.
            return (200, object);
        }
        object["spec"]["value"] = body["spec"]["value"].clone();
        (200, self.store(source, path, object))
    }

    fn delete(&mut self, source: Source, path: &str, mut object: Value, body: &Value, linger: bool) -> (u16, Value) {
        if object["metadata"]["uid"] != body["preconditions"]["uid"] {
            return failure(409, "Conflict", "the UID in the precondition differs", (source.resource().plural, ""));
        }
        if linger {
            object["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
            object["metadata"]["finalizers"] = json!(["toy.io/keep"]);
            return (200, self.store(source, path, object));
        }
        self.remove(source, path);
        (200, json!({"kind": "Status", "status": "Success"}))
    }

    fn store(&mut self, source: Source, path: &str, mut object: Value) -> Value {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        let observed = decode(object.to_string().as_bytes()).expect("what is stored can be read");
        self.events.push_back((source, WatchEvent::Applied(observed)));
        object
    }

    fn remove(&mut self, source: Source, path: &str) {
        if let Some(object) = self.objects.remove(path) {
            self.revision += 1;
            let resource_version = self.revision;
            let Observed { name, uid, .. } = decode(object.to_string().as_bytes()).expect("as stored");
            self.events.push_back((source, WatchEvent::Deleted { name, uid, resource_version }));
        }
    }
}

/// State of a process that leads without Leases.
pub(crate) const LEADING: Leadership = Leadership::Leading { until: None };

/// Engine with the toy agent and two simulated servers. Time is virtual and moves only in [`World::pass`].
pub(crate) struct World {
    pub(crate) hub: Server,
    pub(crate) member: Server,
    pub(crate) record: Arc<Mutex<Record>>,
    pub(crate) leadership: watch::Sender<Leadership>,
    pub(crate) status: watch::Receiver<Vec<SourceStatus>>,
    pub(crate) trigger: ShutdownTrigger,
    pub(crate) engine: JoinHandle<Finished>,
    pub(crate) metrics: prometheus::Registry,
    messages: mpsc::Sender<WatchMessage<Source, Thing>>,
    pub(crate) inbox: mpsc::Sender<String>,
    pub(crate) clock: Clock,
    claim_version: u64,
}

impl World {
    /// Returns a world whose engine leads and has complete and empty views.
    pub(crate) async fn new() -> Self {
        let mut world = Self::start(LEADING);
        world.complete().await;
        world.pass(1).await;
        world
    }

    /// Returns a world as [`World::new`] does, in which the agent has created the copy `a` with the value 1.
    pub(crate) async fn with_copy_of_a() -> Self {
        let mut world = Self::new().await;
        world.claim_and_pass("a", "1", 1).await;
        world
    }

    /// Returns a world whose engine does not lead and has complete and empty views.
    pub(crate) async fn following() -> Self {
        let mut world = Self::start(Leadership::Waiting { holder: None });
        world.complete().await;
        world
    }

    pub(crate) fn start(leadership: Leadership) -> Self {
        let (hub, member) = (Server::new(), Server::new());
        Self::start_on(hub, member, leadership)
    }

    pub(crate) fn start_on(hub: Server, member: Server, leadership: Leadership) -> Self {
        let clock = Clock::virtual_at(START);
        let registry = prometheus::Registry::new();
        let metrics = Metrics::new(&registry).expect("an empty registry");
        let record = Arc::new(Mutex::new(Record::default()));
        let logic = Copier::recording(&record);
        let cluster =
            |name: &str, server: &Server| Arc::new(Cluster::from_clients(name, server.client(), server.client()));
        let clusters = [cluster("hub", &hub), cluster("member", &member)];
        let spec = |source: Source| {
            let cluster = &clusters[usize::from(matches!(source, Source::Claim | Source::Local))];
            Arc::new(SourceSpec {
                freezes_when_forbidden: source == Source::Local,
                optional: source == Source::Namespace,
                ends_denials: source == Source::Namespace,
                ..source.spec(cluster)
            })
        };
        let names = clusters.iter().map(|cluster| cluster.name.as_str());
        let (recorder, postings) = Recorder::new(names, "toy-0".to_owned(), clock.clone(), metrics.clone());
        tokio::spawn(events::post(postings, metrics.clone()));
        let status = watch::Sender::new(Vec::new());
        let leadership = watch::Sender::new(leadership);
        let jitter = Jitter::new(1);
        let surroundings = Surroundings { clock: clock.clone(), metrics, jitter, status: status.clone() };
        let specs: Vec<_> = Source::ALL.into_iter().map(spec).collect();
        let engine = Engine::new(logic, specs.iter().map(|spec| spec.info()).collect(), surroundings);
        let engine = EngineLoop::new(engine, &specs, recorder, clock.clone(), leadership.subscribe());
        let (messages, received) = mpsc::channel(10_000);
        let (trigger, shutdown) = Shutdown::new();
        let (inbox, incoming) = mpsc::channel(10_000);
        let inputs = Inputs { messages: received, inbox: incoming, shutdown };
        let engine = tokio::spawn(async move { engine.run(inputs).await.1 });
        let status = status.subscribe();
        let metrics = registry;
        Self {
            hub,
            member,
            record,
            leadership,
            status,
            trigger,
            engine,
            metrics,
            messages,
            inbox,
            clock,
            claim_version: 0,
        }
    }

    pub(crate) async fn send(&self, source: Source, event: WatchEvent<Thing>) {
        let message = WatchMessage { source, at: self.clock.now(), decoding: Duration::ZERO, event };
        self.messages.send(message).await.expect("the engine runs");
    }

    /// Sends an empty list for every source, so that all views are complete.
    pub(crate) async fn complete(&mut self) {
        for source in Source::ALL {
            self.send(source, WatchEvent::LIST_STARTED).await;
            self.send(source, WatchEvent::ListEnded { resource_version: 1 }).await;
        }
    }

    /// Sends this `Claim` to the engine as a watch event, with the next version.
    pub(crate) async fn claim_thing(&mut self, claim: Thing) {
        self.claim_version += 1;
        let version = self.claim_version + 1;
        self.send(Source::Claim, WatchEvent::Applied(Thing { version, ..claim }.observed())).await;
    }

    pub(crate) async fn claim(&mut self, name: &str, value: &str) {
        self.claim_thing(Thing::claim(name, value)).await;
    }

    pub(crate) async fn claim_and_pass(&mut self, name: &str, value: &str, milliseconds: u64) {
        self.claim(name, value).await;
        self.pass(milliseconds).await;
    }

    pub(crate) async fn unclaim_and_pass(&mut self, name: &str, milliseconds: u64) {
        self.unclaim(name).await;
        self.pass(milliseconds).await;
    }

    pub(crate) async fn unclaim(&mut self, name: &str) {
        self.claim_version += 1;
        let (name, uid) = (ObjectName::new("ns", name), format!("claim-{name}").into());
        let resource_version = self.claim_version + 1;
        self.send(Source::Claim, WatchEvent::Deleted { name, uid, resource_version }).await;
    }

    /// Delivers to the engine the watch events of both servers since the last call.
    pub(crate) async fn bring_events(&self) {
        for (source, event) in self.hub.take_events().into_iter().chain(self.member.take_events()) {
            self.send(source, event).await;
        }
    }

    pub(crate) async fn bring_events_and_pass(&self, milliseconds: u64) {
        self.bring_events().await;
        self.pass(milliseconds).await;
    }

    /// Advances virtual time by this many milliseconds, and runs everything that is due in this time.
    pub(crate) async fn pass(&self, milliseconds: u64) {
        sleep(Duration::from_millis(milliseconds)).await;
    }

    pub(crate) fn plans(&self) -> usize {
        lock(&self.record).plans.len()
    }

    pub(crate) fn receipts(&self) -> Vec<String> {
        lock(&self.record).receipts.clone()
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        lock(&self.record)
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        let families = self.metrics.gather();
        let family = families.iter().find(|family| family.name() == name);
        let sum: f64 =
            family.map_or(0.0, |family| family.get_metric().iter().map(|m| m.get_counter().get_value()).sum());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of a test")]
        let sum = sum as u64;
        sum
    }
}

impl<O> WatchEvent<O> {
    /// Begin of a list that was requested before anything was observed.
    pub(crate) const LIST_STARTED: Self =
        Self::ListStarted { requested: Mark { version: 0, tombstones: 0 }, restores: 0 };
}
