//! Executes one write and reports its outcome.
//!
//! Every write has a precondition, so a write may always be repeated. If the outcome of a write is unknown (a timeout,
//! a connection cut after sending, most 5xx), one GET shows whether the server executed the write. After a conflict,
//! one GET fetches the object, so that the next plan uses the new state. Every response also updates the agent's view.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::clock::Clock;
use crate::engine::leadership::Leadership;
use crate::engine::logic::{Logic, Verb};
use crate::engine::outcome::{Outcome, Reread, Seen, WriteResult};
use crate::engine::slots::Target;
use crate::errors::with_causes;
use crate::io::answers::{ApiStatus, Ending, contains, is_replaced_by, never_sent, retry_after};
use crate::io::response::Response;
use crate::io::rivals;
use crate::io::source::SourceSpec;
use crate::limits::{ANSWER_BYTES, READ_AGAIN, WRITE_TIMEOUT};
use fleetnet_types::ObjectName;

/// Sends a write, and afterwards a GET if one is needed. Takes at most two write timeouts. Sends nothing if this
/// process may not write any more at the time of sending.
pub(crate) async fn carry_out<L: Logic>(
    spec: Arc<SourceSpec<L>>,
    name: &ObjectName,
    verb: &Verb,
    clock: Clock,
    leadership: watch::Receiver<Leadership>,
) -> Outcome<L::Object> {
    let begun = Instant::now();
    if !leadership.borrow().may_write() {
        let message = "not sent: this process does not lead any more".to_owned();
        let result = WriteResult::Failed { message, retry_after: None };
        return Outcome { result, is_answered: false, seen: Seen::Nothing, at: clock.now(), took: Duration::ZERO };
    }
    let target = Addressed { spec: &spec, name };
    let restores = spec.cluster.restores.count();
    let answer = target.write(verb).await;
    let is_answered = answer.as_ref().is_ok_and(|answer| answer.status.is_success());
    let (result, seen) = match answer {
        Ok(answer) => target.classify(verb, &answer).await,
        Err(SendError { sent: false, message }) => (WriteResult::Failed { message, retry_after: None }, Seen::Nothing),
        Err(SendError { sent: true, message }) => target.settle(verb, message, None).await,
    };
    target.notice_restore(verb, &seen, restores);
    Outcome { result, is_answered, seen, at: clock.now(), took: begun.elapsed() }
}

/// Fetches an object that another writer and this agent change by turns. Returns the names of the other field managers,
/// for a message to the user.
pub(crate) async fn rivals<L: Logic>(spec: Arc<SourceSpec<L>>, target: &Target<L::Source>) -> String {
    let addressed = Addressed { spec: &spec, name: &target.name };
    match addressed.get().await {
        Ok(answer) if answer.status == StatusCode::NOT_FOUND => "a writer that deletes it".to_owned(),
        Ok(answer) => {
            let object = serde_json::from_slice(&answer.body).unwrap_or_default();
            rivals::of(&object, &spec.cluster.field_manager)
        }
        Err(_) => rivals::of(&Value::Null, ""),
    }
}

/// Reads an object. After a failure, waits before it returns.
pub(crate) async fn read<L: Logic>(spec: Arc<SourceSpec<L>>, name: ObjectName) -> (ObjectName, Reread<L::Object>) {
    let answer = Addressed { spec: &spec, name: &name }.get().await;
    let found = match answer {
        Ok(answer) if answer.status.is_success() => {
            (spec.decode)(&answer.body).map_or(Reread::Undecodable, Reread::Found)
        }
        Ok(answer) if answer.status == StatusCode::NOT_FOUND => Reread::Nothing,
        Ok(_) | Err(_) => {
            sleep(READ_AGAIN).await;
            Reread::Nothing
        }
    };
    (name, found)
}

/// Object that the requests of a write address: its source and its name.
struct Addressed<'a, L: Logic> {
    spec: &'a SourceSpec<L>,
    name: &'a ObjectName,
}

struct Answer {
    status: StatusCode,
    /// Wait time in the response's `Retry-After` header.
    retry_after: Option<Duration>,
    body: Bytes,
}

/// Failure of a request without a response. `sent` is true if the server may have executed the request.
struct SendError {
    sent: bool,
    message: String,
}

impl<L: Logic> Addressed<'_, L> {
    async fn write(&self, verb: &Verb) -> Result<Answer, SendError> {
        let resource = &self.spec.resource;
        match verb {
            Verb::Create { body } => {
                let path = resource.collection_path(Some(&self.name.namespace));
                self.send(Method::POST, path, Some(("application/json", body.json()))).await
            }
            Verb::Patch { subresource, resource_version, body } => {
                let mut path = resource.object_path(&self.name.namespace, &self.name.name);
                if let Some(subresource) = subresource {
                    path = format!("{path}/{subresource}");
                }
                let body = body.json_at(*resource_version);
                self.send(Method::PATCH, path, Some(("application/merge-patch+json", body))).await
            }
            Verb::Replace { resource_version, body } => {
                let path = resource.object_path(&self.name.namespace, &self.name.name);
                let body = body.json_at(*resource_version);
                self.send(Method::PUT, path, Some(("application/json", body))).await
            }
            Verb::Delete { uid } => {
                let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": &**uid}});
                let path = resource.object_path(&self.name.namespace, &self.name.name);
                self.send(Method::DELETE, path, Some(("application/json", encode(&options)))).await
            }
        }
    }

    async fn get(&self) -> Result<Answer, SendError> {
        self.send(Method::GET, self.spec.resource.object_path(&self.name.namespace, &self.name.name), None).await
    }

    async fn send(
        &self,
        method: Method,
        path: String,
        body: Option<(&'static str, Vec<u8>)>,
    ) -> Result<Answer, SendError> {
        let mut request = http::Request::builder().method(method).uri(path).header(header::ACCEPT, self.accept());
        if let Some((content_type, _)) = &body {
            request = request.header(header::CONTENT_TYPE, *content_type);
        }
        let body = body.map_or_else(Body::empty, |(_, bytes)| Body::from(bytes));
        let request = request.body(body).map_err(|error| SendError { sent: false, message: error.to_string() })?;
        let exchange = async {
            let response = self
                .spec
                .cluster
                .requests
                .send(request)
                .await
                .map_err(|error| SendError { sent: !never_sent(&error), message: with_causes(&error) })?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, ANSWER_BYTES)
                .collect()
                .await
                .map_err(|error| SendError { sent: true, message: with_causes(&*error) })?;
            Ok(Answer { status: parts.status, retry_after: retry_after(&parts.headers), body: body.to_bytes() })
        };
        let no_answer = || SendError { sent: true, message: format!("no answer within {WRITE_TIMEOUT:?}") };
        timeout(WRITE_TIMEOUT, exchange).await.unwrap_or_else(|_| Err(no_answer()))
    }

    fn accept(&self) -> &'static str {
        if self.spec.metadata_only {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        } else {
            "application/json"
        }
    }

    async fn classify(&self, verb: &Verb, answer: &Answer) -> (WriteResult, Seen<L::Object>) {
        if answer.status.is_success() {
            return self.classify_success(verb, answer);
        }
        let status_object = ApiStatus::read(answer.status.as_u16(), &answer.body);
        let retry_after = answer.retry_after.or(status_object.retry_after());
        match answer.status.as_u16() {
            404 if self.is_about_the_object(&status_object) => match verb {
                Verb::Delete { .. } => (WriteResult::Done, Seen::Gone),
                Verb::Patch { .. } | Verb::Replace { .. } => (denied(&status_object, 404), Seen::Gone),
                Verb::Create { .. } => (denied(&status_object, 404), Seen::Nothing),
            },
            409 => (WriteResult::Conflict { message: status_object.text() }, self.look().await.0),
            status @ (400 | 413 | 415 | 422) => (
                WriteResult::Rejected { status, message: status_object.text(), reason: status_object.reason },
                Seen::Nothing,
            ),
            status @ (403..=406) => (denied(&status_object, status), Seen::Nothing),
            429 => (WriteResult::Failed { message: status_object.text(), retry_after }, Seen::Nothing),
            // A server that responds with 503 and Retry-After has not executed the request, so no GET is needed to find
            // out.
            503 if answer.retry_after.is_some() => {
                (WriteResult::Failed { message: status_object.text(), retry_after }, Seen::Nothing)
            }
            408 | 500.. => self.settle(verb, status_object.text(), retry_after).await,
            _ => (WriteResult::Failed { message: status_object.text(), retry_after }, Seen::Nothing),
        }
    }

    fn classify_success(&self, verb: &Verb, answer: &Answer) -> (WriteResult, Seen<L::Object>) {
        let end = Ending::read(&answer.body);
        let gone = match verb {
            Verb::Delete { .. } => !end.lingers(),
            Verb::Create { .. } | Verb::Patch { .. } | Verb::Replace { .. } => end.is_final(),
        };
        if let Some(sink) = &self.spec.response_sink {
            match verb {
                Verb::Delete { uid } if gone => sink.show(Response::Gone { name: self.name, uid }),
                _ if gone => {}
                _ => sink.show(Response::Object(&answer.body)),
            }
        }
        if gone {
            return (WriteResult::Done, Seen::Gone);
        }
        match (self.spec.decode)(&answer.body) {
            Ok(observed) => (WriteResult::Done, Seen::Object(observed)),
            Err(undecodable) => {
                let message = format!("done, but the answer is undecodable: {}", undecodable.why);
                (WriteResult::Failed { message, retry_after: None }, Seen::Nothing)
            }
        }
    }

    /// Sends a GET to find out whether the server executed a write whose outcome is unknown.
    async fn settle(
        &self,
        verb: &Verb,
        message: String,
        retry_after: Option<Duration>,
    ) -> (WriteResult, Seen<L::Object>) {
        let (seen, found) = self.look().await;
        let done = match (verb, &seen) {
            (Verb::Delete { .. }, Seen::Gone) => true,
            (Verb::Delete { uid }, Seen::Object(observed)) => observed.uid != *uid || Ending::of(&found).lingers(),
            (Verb::Patch { resource_version, body, .. }, Seen::Object(observed)) => {
                observed.resource_version != *resource_version && contains(&found, body)
            }
            (Verb::Replace { resource_version, body }, Seen::Object(observed)) => {
                observed.resource_version != *resource_version && is_replaced_by(&found, body)
            }
            (Verb::Create { body }, Seen::Object(_)) => contains(&found, body),
            (_, Seen::Gone | Seen::Nothing) => false,
        };
        let result = if done {
            WriteResult::Done
        } else {
            WriteResult::Failed { message: format!("outcome unknown ({message})"), retry_after }
        };
        (result, seen)
    }

    /// Notices a restore of the server from a backup. A GET shows the newest state. If it is older than the state that
    /// the write is based on, the server was restored. A watch may have missed this, if later writes had raised the
    /// revision before it connected.
    fn notice_restore(&self, verb: &Verb, seen: &Seen<L::Object>, restores: u64) {
        let (Some(known), Seen::Object(observed)) = (verb.resource_version(), seen) else { return };
        if observed.resource_version < known {
            tracing::warn!(
                side = self.spec.cluster.name,
                kind = self.spec.resource.kind,
                object = %self.name,
                "the object is older than before (was the server restored from a backup?): listing again"
            );
            self.spec.cluster.restores.noticed(restores);
        }
    }

    /// Sends one GET. Returns the object's state and its JSON.
    async fn look(&self) -> (Seen<L::Object>, Value) {
        let nothing = (Seen::Nothing, Value::Null);
        let Ok(answer) = self.get().await else { return nothing };
        if answer.status.is_success() {
            let Ok(observed) = (self.spec.decode)(&answer.body) else {
                return nothing;
            };
            return (Seen::Object(observed), serde_json::from_slice(&answer.body).unwrap_or_default());
        }
        if answer.status == StatusCode::NOT_FOUND
            && self.is_about_the_object(&ApiStatus::read(answer.status.as_u16(), &answer.body))
        {
            return (Seen::Gone, Value::Null);
        }
        nothing
    }

    /// True if a 404 means that the object itself is missing, not its kind or namespace.
    fn is_about_the_object(&self, status: &ApiStatus) -> bool {
        status.reason == "NotFound"
            && status.details.name == *self.name.name
            && [self.spec.resource.plural, self.spec.resource.kind, ""].contains(&status.details.kind.as_str())
    }
}

fn denied(status_object: &ApiStatus, status: u16) -> WriteResult {
    WriteResult::Denied { status, reason: status_object.reason().to_owned(), message: status_object.text() }
}

fn encode(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
