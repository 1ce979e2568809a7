//! Reads, takes, renews and releases one Lease object (coordination.k8s.io/v1).

use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use kube::{Client, client::Body};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until, timeout};

use super::config::{LeaseConfig, is_earlier_process};
use crate::clock::{Clock, micro_time};
use crate::errors::with_causes;
use crate::limits::{LEASE_BYTES, LEASE_LONGEST, LeaseTimes};

/// One Lease object, and this process's identity as its holder.
pub(super) struct Lease {
    client: Client,
    clock: Clock,
    namespace: String,
    pub(super) name: String,
    identity: String,
    times: LeaseTimes,
    request_timeout: Duration,
    /// Lease as the server last returned it. `None` if it did not exist.
    object: Option<Value>,
    /// Time at which this process first saw the present content of the Lease's `spec`, on its own monotonic clock.
    ///
    /// The expiry counts from this time. The timestamps in the Lease are not used, because other processes may have
    /// wrong clocks.
    seen_at: Instant,
    /// Time at which this process *sent* its last successful write that took or renewed the Lease. `None` if this
    /// process does not hold the Lease.
    acquired_since: Option<Instant>,
    /// Time of the next renewal. `None` if this process does not hold the Lease.
    renewal_due: Option<Instant>,
    /// True if a write got no response but may have reached the server.
    uncertain: bool,
    /// True until this process holds the Lease for the first time. Afterwards another process of its pod is a later
    /// one.
    is_first: bool,
}

/// Reason why a read or write of a Lease failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    /// Another process changed the Lease after this process read it (409).
    #[error("another writer changed it in between")]
    Conflict,
    /// The Lease does not exist.
    #[error("it does not exist")]
    Missing,
    /// The server denied or rejected the request.
    #[error("{status}: {message}{}", remedy(*.status))]
    Failed {
        status: StatusCode,
        /// Message in the server's response.
        message: String,
    },
    /// The server returned no usable response, so the outcome is unknown.
    #[error("{0}")]
    Unanswered(String),
}

fn remedy(status: StatusCode) -> &'static str {
    match status {
        StatusCode::FORBIDDEN => {
            " (grant get, create, update and watch on leases.coordination.k8s.io in that namespace)"
        }
        StatusCode::NOT_FOUND => " (does the namespace exist? --leader-election-namespace names another)",
        _ => "",
    }
}

/// Outcome of a renewal.
pub(super) enum Renewal {
    Renewed,
    /// Another process holds the Lease.
    Taken(String),
    Failed(RecordError),
}

impl Lease {
    pub(super) fn new(config: &LeaseConfig, name: &str, times: LeaseTimes, clock: &Clock) -> Self {
        Self {
            client: config.client.clone(),
            clock: clock.clone(),
            namespace: config.namespace.clone(),
            name: name.to_owned(),
            identity: config.identity.clone(),
            times,
            // Half of the renew deadline of the first Lease, so that a second attempt is possible after a lost
            // response.
            request_timeout: config.times.renew_deadline / 2,
            object: None,
            seen_at: Instant::now(),
            acquired_since: None,
            renewal_due: None,
            uncertain: false,
            is_first: true,
        }
    }

    /// Returns the time at which this process stops leading without another renewal. `None` if this process does not
    /// hold the Lease.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.acquired_since.map(|since| since + self.times.renew_deadline)
    }

    /// Returns the time at which the Lease expires for this process. `None` if no other process holds it.
    pub(super) fn expires_at(&self) -> Option<Instant> {
        self.named()?;
        let promised = self.spec("leaseDurationSeconds").and_then(Value::as_u64).filter(|seconds| *seconds > 0);
        let duration = promised.map_or(self.times.duration, Duration::from_secs);
        // A time that no clock can have is never reached.
        Some(self.seen_at.checked_add(duration).unwrap_or_else(|| self.seen_at + LEASE_LONGEST))
    }

    /// Forgets that this process holds the Lease.
    pub(super) fn lose(&mut self) {
        (self.acquired_since, self.renewal_due) = (None, None);
    }

    /// True if the Lease has no holder.
    pub(super) fn is_free(&self) -> bool {
        self.holder().is_none()
    }

    /// Reads the Lease from the server.
    pub(super) async fn look(&mut self) -> Result<(), RecordError> {
        let request = self.request(Method::GET, &self.object_path(), Body::empty());
        match self.send(request).await {
            Ok(object) => self.see(Some(object)),
            Err(RecordError::Missing) => self.see(None),
            Err(error) => return Err(error),
        }
        // This read shows whether the server executed the last write.
        self.uncertain = false;
        Ok(())
    }

    /// Returns the identity of another process that holds the Lease. `None` if the Lease is free, expired or held by
    /// this process, or by an earlier process in its pod.
    ///
    /// The Lease has expired if this process has seen no change of it for the lease duration that the holder wrote.
    pub(super) fn other_holder(&self) -> Option<&str> {
        let holder = self.named()?;
        if self.is_first && is_earlier_process(holder, &self.identity) {
            return None;
        }
        let expired = self.expires_at()? <= Instant::now();
        (!expired).then_some(holder)
    }

    /// Returns the other process that the Lease names as its holder, also if the Lease has expired.
    pub(super) fn named(&self) -> Option<&str> {
        self.holder().filter(|holder| *holder != self.identity)
    }

    /// Returns the resourceVersion of the Lease at the last read. `None` if the Lease did not exist.
    pub(super) fn version(&self) -> Option<&str> {
        self.object.as_ref()?.get("metadata")?.get("resourceVersion")?.as_str()
    }

    /// Writes this process into the Lease as its holder. Call this only if the last `look` found no other holder.
    pub(super) async fn take(&mut self) -> Result<(), RecordError> {
        let sent_at = Instant::now();
        let now = micro_time(self.clock.now());
        let ours = self.holder() == Some(&self.identity);
        let transitions = self.spec("leaseTransitions").and_then(Value::as_i64).unwrap_or(0);
        let mut changes = Map::new();
        changes.insert("holderIdentity".to_owned(), json!(self.identity));
        changes.insert("leaseDurationSeconds".to_owned(), json!(whole_seconds(self.times.duration)));
        changes.insert("renewTime".to_owned(), json!(now));
        if !ours {
            changes.insert("acquireTime".to_owned(), json!(now));
            let transitions = if self.object.is_some() { transitions.saturating_add(1) } else { 0 };
            changes.insert("leaseTransitions".to_owned(), json!(transitions));
        }
        self.write(changes).await?;
        self.acquired_since = Some(sent_at);
        self.is_first = false;
        self.renewal_due = Some(sent_at + self.times.retry_period);
        Ok(())
    }

    /// Renews the Lease when its renewal is due. This process must hold the Lease. The next attempt after a failed one
    /// is due after `retry`.
    pub(super) async fn renew_when_due(&mut self, retry: Duration) -> Renewal {
        if let Some(due) = self.renewal_due {
            sleep_until(due).await;
        }
        self.renewal_due = Some(Instant::now() + retry);
        match self.take().await {
            Ok(()) => return Renewal::Renewed,
            // Another process changed or deleted the Lease, or an earlier write of this process succeeded but its
            // response was lost. The read below shows which of these happened.
            Err(RecordError::Conflict | RecordError::Missing) => {}
            Err(error) => return Renewal::Failed(error),
        }
        if let Err(error) = self.look().await {
            return Renewal::Failed(error);
        }
        match self.named().map(str::to_owned) {
            Some(other) => {
                self.lose();
                Renewal::Taken(other)
            }
            None => match self.take().await {
                Ok(()) => Renewal::Renewed,
                Err(error) => Renewal::Failed(error),
            },
        }
    }

    /// Releases the Lease, so that the next candidate need not wait until it expires. Writes nothing if this process
    /// does not hold the Lease.
    pub(super) async fn release(&mut self) -> Result<(), RecordError> {
        if self.uncertain {
            self.look().await?;
        }
        match self.write_released().await {
            Err(RecordError::Conflict) => {
                self.look().await?;
                self.write_released().await
            }
            result => result,
        }
    }

    async fn write_released(&mut self) -> Result<(), RecordError> {
        if self.holder() != Some(&self.identity) {
            return Ok(());
        }
        let now = micro_time(self.clock.now());
        let mut changes = Map::new();
        changes.insert("holderIdentity".to_owned(), json!(""));
        changes.insert("leaseDurationSeconds".to_owned(), json!(1));
        changes.insert("renewTime".to_owned(), json!(now));
        changes.insert("acquireTime".to_owned(), json!(now));
        self.lose();
        self.write(changes).await
    }

    /// Writes the Lease with these changes in its `spec`. All other fields keep their values, also fields that other
    /// writers set.
    async fn write(&mut self, changes: Map<String, Value>) -> Result<(), RecordError> {
        let (method, path, mut object) = match &self.object {
            Some(object) => (Method::PUT, self.object_path(), object.clone()),
            None => (Method::POST, self.collection_path(), self.new_object()),
        };
        match object.get_mut("spec").and_then(Value::as_object_mut) {
            Some(spec) => spec.extend(changes),
            None => object["spec"] = Value::Object(changes),
        }
        let request = self.request(method, &path, Body::from(object.to_string().into_bytes()));
        self.uncertain = true;
        let answer = self.send(request).await;
        if !matches!(answer, Err(RecordError::Unanswered(_))) {
            self.uncertain = false;
        }
        self.see(Some(answer?));
        Ok(())
    }

    /// Stores the Lease as the server has it.
    pub(super) fn see(&mut self, object: Option<Value>) {
        let spec = |object: &Option<Value>| object.as_ref().map(|object| object["spec"].clone());
        if spec(&object) != spec(&self.object) {
            self.seen_at = Instant::now();
        }
        self.object = object;
    }

    /// Returns the identity of the Lease's holder, if there is one.
    fn holder(&self) -> Option<&str> {
        self.spec("holderIdentity").and_then(Value::as_str).filter(|holder| !holder.is_empty())
    }

    fn spec(&self, field: &str) -> Option<&Value> {
        self.object.as_ref()?.get("spec")?.get(field)
    }

    fn new_object(&self) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": self.namespace, "name": self.name},
        })
    }

    fn collection_path(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    fn object_path(&self) -> String {
        format!("{}/{}", self.collection_path(), self.name)
    }

    fn request(&self, method: Method, path: &str, body: Body) -> Result<Request<Body>, RecordError> {
        Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|error| RecordError::Unanswered(format!("{path} is not a valid path: {error}")))
    }

    async fn send(&self, request: Result<Request<Body>, RecordError>) -> Result<Value, RecordError> {
        let request = request?;
        let creates = request.method() == Method::POST;
        let answer = async {
            let response = self.client.send(request).await.map_err(|error| with_causes(&error))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), LEASE_BYTES).collect().await;
            Ok((status, body.map_err(|error| error.to_string())?.to_bytes()))
        };
        let timed_out = |_| Err(format!("no answer within {:?}", self.request_timeout));
        let (status, body) =
            timeout(self.request_timeout, answer).await.unwrap_or_else(timed_out).map_err(RecordError::Unanswered)?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        classify(status, body, creates)
    }
}

fn classify(status: StatusCode, body: Value, creates: bool) -> Result<Value, RecordError> {
    let message = || body["message"].as_str().unwrap_or("the server gave no reason").to_owned();
    match status {
        _ if status.is_success() && body.is_object() => Ok(body),
        _ if status.is_success() => Err(RecordError::Unanswered("the answer is not an object".to_owned())),
        StatusCode::CONFLICT => Err(RecordError::Conflict),
        // On a create, 404 means that the namespace is missing.
        StatusCode::NOT_FOUND if !creates => Err(RecordError::Missing),
        _ if status.is_server_error() => Err(RecordError::Unanswered(format!("{status}: {}", message()))),
        _ => Err(RecordError::Failed { status, message: message() }),
    }
}

/// Returns the duration in seconds, rounded up. A lease duration that is rounded down would let other processes take
/// the Lease too early.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
