//! Run of one case on one server.

use super::script::{Action, Call, Case, written_out};
use super::stream::{Events, Taken};
use anyhow::{Context as _, ensure};
use harness::limits;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt as _;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tokio::time::Instant;

/// Response of a server to one call of a case, before normalization.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// HTTP status of the response; 0 for events that are read from an open watch.
    pub code: u16,
    /// Headers of the response that a client can act on, as `name: value`, sorted by name.
    pub headers: Vec<String>,
    /// Body of the response: an object, a text, or an array of events.
    pub body: Value,
    /// Body of the response as bytes.
    pub raw: Vec<u8>,
    /// Time of the response by the server's clock, in seconds since 1970. The time may be up to one second too early,
    /// because the start time of the case is in whole seconds.
    pub at_seconds: i64,
}

/// Responses of a server to a case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseRun {
    /// Time at which the case started by the server's clock, in whole seconds since 1970.
    pub began_seconds: i64,
    /// One response for each call.
    pub answers: Vec<Answer>,
}

/// [`Answer::code`] of a call without a response.
pub const NO_ANSWER: u16 = 1;
/// [`Answer::code`] of a read from an open watch that did not get all requested events.
pub const CUT_SHORT: u16 = 2;
/// Headers that the suite does not compare, because they differ on any two servers or depend on API Priority and
/// Fairness.
const UNSHARED: [&str; 3] = ["audit-id", "x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"];

impl Answer {
    fn none(error: &anyhow::Error) -> Self {
        Self::new(NO_ANSWER, Vec::new(), json!(format!("{error:#}")), Vec::new())
    }

    fn new(code: u16, headers: Vec<String>, body: Value, raw: Vec<u8>) -> Self {
        Self { code, headers, body, raw, at_seconds: 0 }
    }
}

struct Runner<'a> {
    client: &'a Client,
    namespace: &'a str,
    kept: BTreeMap<String, Value>,
    watches: BTreeMap<String, Events>,
}

/// Runs a case on a server. Creates the case's namespace first. The result does not contain the response to this
/// creation.
///
/// # Errors
/// If the namespace cannot be created. Other calls without a response get the code [`NO_ANSWER`].
pub async fn run_case(client: &Client, case: &Case) -> anyhow::Result<CaseRun> {
    let mut runner = Runner { client, namespace: &case.namespace, kept: BTreeMap::new(), watches: BTreeMap::new() };
    let namespace = format!("{{\"metadata\":{{\"name\":\"{}\"}}}}", case.namespace);
    let made = runner.send(&Call::new("POST", "/api/v1/namespaces", &namespace)?).await?;
    ensure!(made.code == 201, "no namespace {}: {made:?}", case.namespace);
    let began_seconds = made.body["metadata"]["creationTimestamp"].as_str().and_then(seconds);
    let began_seconds = began_seconds.with_context(|| format!("not a time, of when it was made: {made:?}"))?;
    let began = Instant::now();
    let mut answers = Vec::new();
    for step in &case.steps {
        let mut answer = runner.step(&step.action, step.code).await.unwrap_or_else(|error| Answer::none(&error));
        if let Some(name) = &step.save {
            runner.kept.insert(name.clone(), answer.body.clone());
        }
        answer.at_seconds = began_seconds + i64::try_from(began.elapsed().as_secs())?;
        answers.push(answer);
    }
    Ok(CaseRun { began_seconds, answers })
}

impl Runner<'_> {
    async fn step(&mut self, action: &Action, code: Option<u16>) -> anyhow::Result<Answer> {
        match action {
            Action::Send(call) => self.send(call).await,
            Action::Await(call) => {
                let deadline = Instant::now() + limits::EVENTUALLY;
                loop {
                    let answer = self.send(call).await?;
                    if Some(answer.code) == code || Instant::now() > deadline {
                        return Ok(answer);
                    }
                    tokio::time::sleep(limits::POLL).await;
                }
            }
            Action::Watch(call) => {
                let response = self.request(call).await?;
                if !response.status().is_success() {
                    return whole(response).await;
                }
                let (code, headers) = (response.status().as_u16(), shown(response.headers()));
                let Taken { events, raw, .. } = Events::new(response.into_body()).rest(limits::EVENTUALLY).await;
                Ok(Answer::new(code, headers, Value::Array(events), raw))
            }
            Action::Open(name, call) => {
                let response = self.request(call).await?;
                if !response.status().is_success() {
                    return whole(response).await;
                }
                let (code, headers) = (response.status().as_u16(), shown(response.headers()));
                self.watches.insert(name.clone(), Events::new(response.into_body()));
                Ok(Answer::new(code, headers, Value::Null, Vec::new()))
            }
            Action::Read(watch, count) => Ok(read(self.watch(watch)?.take(*count, limits::EVENTUALLY / 3).await)),
            Action::ReadUntil(watch, name) => Ok(read(self.watch(watch)?.until(name, limits::EVENTUALLY / 3).await)),
        }
    }

    fn watch(&mut self, name: &str) -> anyhow::Result<&mut Events> {
        self.watches.get_mut(name).with_context(|| format!("no watch {name} is open"))
    }

    async fn send(&self, call: &Call) -> anyhow::Result<Answer> {
        whole(self.request(call).await?).await
    }

    async fn request(&self, call: &Call) -> anyhow::Result<Response<Body>> {
        let mut request = Request::builder().method(call.method).uri(self.filled(&call.path)?);
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        let body = self.filled(&call.body)?;
        let answer = self.client.send(request.body(Body::from(body.into_bytes()))?).await;
        answer.map_err(|error| anyhow::anyhow!("{} {}: no answer: {error}", call.method, call.path))
    }

    /// Replaces `{ns}` by the case's namespace, `${kept.field}` by a field of the stored response `kept`, and
    /// `{repeat:x:3}` by `xxx`.
    fn filled(&self, text: &str) -> anyhow::Result<String> {
        let mut text = written_out(text, self.namespace);
        while let Some(start) = text.find("${") {
            let end = start + text[start..].find('}').context("${ without an end")?;
            let value = self.kept_value(&text[start + 2..end])?;
            text.replace_range(start..=end, &value);
        }
        while let Some(start) = text.find("{repeat:") {
            let end = start + text[start..].find('}').context("{repeat: without an end")?;
            let (what, count) = text[start + 8..end].split_once(':').context("{repeat:<text>:<count>}")?;
            let repeated = what.repeat(count.parse()?);
            text.replace_range(start..=end, &repeated);
        }
        Ok(text)
    }

    fn kept_value(&self, reference: &str) -> anyhow::Result<String> {
        let (name, path) = reference.split_once('.').unwrap_or((reference, ""));
        let kept = self.kept.get(name).with_context(|| format!("nothing is kept as {name}"))?;
        let pointer = if path.is_empty() { String::new() } else { format!("/{}", path.replace('.', "/")) };
        // A field that the stored response lacks becomes an empty text, so the next call's response shows the
        // difference.
        Ok(match kept.pointer(&pointer) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        })
    }
}

fn read(taken: Taken) -> Answer {
    let Taken { events, raw, whole } = taken;
    Answer::new(if whole { 0 } else { CUT_SHORT }, Vec::new(), Value::Array(events), raw)
}

async fn whole(response: Response<Body>) -> anyhow::Result<Answer> {
    let (code, headers) = (response.status().as_u16(), shown(response.headers()));
    let bytes = response.into_body().collect().await.map_err(|error| anyhow::anyhow!("the body broke: {error}"))?;
    let bytes = bytes.to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
    Ok(Answer::new(code, headers, body, bytes.to_vec()))
}

fn shown(headers: &HeaderMap) -> Vec<String> {
    let of_connection = [CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING];
    let shared = headers.iter().filter(|(name, _)| !UNSHARED.contains(&name.as_str()) && !of_connection.contains(name));
    let mut shown: Vec<String> =
        shared.map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))).collect();
    // Use a stable sort, so that headers with the same name keep their order.
    shown.sort_by(|one, other| one.split(':').next().cmp(&other.split(':').next()));
    shown
}

/// Parses a time into seconds since 1970; `None` if the text is no time.
pub(super) fn seconds(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_second)
}
