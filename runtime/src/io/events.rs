//! Records Kubernetes Events (core/v1): best effort and bounded. Each Event also becomes a log line and counts in a
//! metric, with the same reason.
//!
//! The recorder posts an Event about a successful write each time, within a limit. Plans and failing writes are
//! repeated, and each repetition requests the same Event again. The recorder then posts only the first of these Events
//! in each [`EVENT_REPEAT_WINDOW`]. Different Events about the objects of one namespace have a maximum rate, so that
//! the owner of the namespace cannot fill the server with Events. The log has those that are not posted.
//!
//! The name of an Event about a failed write is a hash of its content. So if the agent posts the same Event again after
//! a restart, the server responds with 409. Events that do not fit into the queue or that the server denies are dropped
//! and counted.
//!
//! Each cluster has its own queue, so a cluster that does not respond delays only its own Events.

use fleetnet_types::{ObjectName, Text};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use futures::future::join_all;
use http::{Method, StatusCode, header};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::clock::{Clock, to_jiff};
use crate::engine::action::Occasion;
use crate::engine::logic::{Event, Logic, Resource, Severity};
use crate::errors::with_causes;
use crate::io::source::SourceSpec;
use crate::limits::{
    EVENT_BURST, EVENT_MESSAGE_BYTES, EVENT_QUEUE_RECORDS, EVENT_REPEAT_WINDOW, EVENT_REPEATS_MAX, EVENT_SPACING,
    EVENTS_REMEMBERED, WRITE_TIMEOUT,
};
use crate::metrics::Metrics;
use fleetnet_types::Timestamp;

/// Recorder of Kubernetes Events. Puts them into queues without waiting; [`post`] sends them.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// Queue of each cluster, by the cluster's name.
    queues: BTreeMap<String, mpsc::Sender<Posting>>,
    /// Time of the first Event and number of Events, for each group of equal Events of the last
    /// [`EVENT_REPEAT_WINDOW`]. The key is the hash from [`identity`].
    recorded: BTreeMap<u64, (Instant, u32)>,
    /// Time from which each namespace of a cluster may have all its [`EVENT_BURST`] Events again. Later for each Event.
    full_at: BTreeMap<(String, Text), Instant>,
    /// Name of this process in the Events that it posts, such as the host name.
    instance: String,
    clock: Clock,
    metrics: Metrics,
    /// Counter that distinguishes the names of Events from the same microsecond.
    sequence: u64,
}

/// Event on its way to the server.
pub(crate) struct Posting {
    client: kube::Client,
    cluster: String,
    path: String,
    body: Value,
}

impl Recorder {
    /// Returns a recorder for these clusters, and for each of them the queue that [`post`] empties.
    pub(crate) fn new<'a>(
        clusters: impl IntoIterator<Item = &'a str>,
        instance: String,
        clock: Clock,
        metrics: Metrics,
    ) -> (Self, Vec<mpsc::Receiver<Posting>>) {
        let mut queues = BTreeMap::new();
        let mut postings = Vec::new();
        for cluster in clusters {
            queues.entry(cluster.to_owned()).or_insert_with(|| {
                let (queue, of_cluster) = mpsc::channel(EVENT_QUEUE_RECORDS);
                postings.push(of_cluster);
                queue
            });
        }
        let (recorded, full_at) = (BTreeMap::new(), BTreeMap::new());
        (Self { queues, recorded, full_at, instance, clock, metrics, sequence: 0 }, postings)
    }

    /// Records an Event. Drops an Event that was already recorded too often in the last [`EVENT_REPEAT_WINDOW`].
    pub(crate) fn record<L: Logic>(&mut self, spec: &SourceSpec<L>, record: &Event<L::Source>, occasion: Occasion) {
        let identity = identity(spec, record);
        let most = if occasion == Occasion::Done { EVENT_REPEATS_MAX } else { 1 };
        if !self.is_news(identity, most, Instant::now()) {
            return;
        }
        self.log(spec, record);
        if !self.may_post(&spec.cluster.name, &record.name.namespace, Instant::now()) {
            self.metrics.event_withheld(&spec.cluster.name);
            return;
        }
        self.sequence += 1;
        let namespace = if record.name.namespace.is_empty() { "default" } else { &record.name.namespace };
        let now = self.clock.now();
        let name = match occasion {
            Occasion::NotDone => event_name(&record.name.name, identity),
            Occasion::Done | Occasion::Planned => event_name(&record.name.name, self.number(now)),
        };
        let posting = Posting {
            client: spec.cluster.requests.clone(),
            cluster: spec.cluster.name.clone(),
            path: EVENTS.collection_path(Some(namespace)),
            body: event(&spec.resource, namespace, record, &self.instance, now, &name),
        };
        let queue = self.queues.get(&spec.cluster.name);
        if queue.is_none_or(|queue| queue.try_send(posting).is_err()) {
            self.metrics.event_dropped();
        }
    }

    fn is_news(&mut self, identity: u64, most: u32, now: Instant) -> bool {
        if let Some((since, times)) = self.recorded.get_mut(&identity)
            && now.duration_since(*since) < EVENT_REPEAT_WINDOW
        {
            *times += 1;
            return *times <= most;
        }
        if self.recorded.len() >= EVENTS_REMEMBERED {
            self.recorded.retain(|_, (since, _)| now.duration_since(*since) < EVENT_REPEAT_WINDOW);
        }
        if self.recorded.len() >= EVENTS_REMEMBERED
            && let Some(oldest) =
                self.recorded.iter().min_by_key(|(_, (since, _))| *since).map(|(identity, _)| *identity)
        {
            self.recorded.remove(&oldest);
        }
        self.recorded.insert(identity, (now, 1));
        true
    }

    /// True if the agent may post one more Event about the objects of a namespace now.
    fn may_post(&mut self, cluster: &str, namespace: &Text, now: Instant) -> bool {
        // A namespace that may have all its Events is as good as unknown.
        self.full_at.retain(|_, full_at| *full_at > now);
        let full_at = self.full_at.entry((cluster.to_owned(), namespace.clone())).or_insert(now);
        let may_post = *full_at + EVENT_SPACING <= now + EVENT_SPACING * EVENT_BURST;
        if may_post {
            *full_at += EVENT_SPACING;
        }
        may_post
    }

    /// Logs the Event and counts it in the metric, with the same reason.
    fn log<L: Logic>(&self, spec: &SourceSpec<L>, record: &Event<L::Source>) {
        let Event { name: ObjectName { namespace, name }, reason, message, .. } = record;
        let (cluster, kind, namespace, name) = (spec.cluster.name.as_str(), spec.resource.kind, &**namespace, &**name);
        self.metrics.event_recorded(cluster, kind, reason);
        match record.severity {
            Severity::Warning => tracing::warn!(side = cluster, kind, namespace, name, reason, "{message}"),
            Severity::Normal => tracing::info!(side = cluster, kind, namespace, name, reason, "{message}"),
        }
    }

    /// Returns a number for the name of a new Event. No earlier Event has this number, because it consists of the time
    /// and a counter. client-go also uses a number from the time.
    fn number(&self, now: Timestamp) -> u64 {
        now.0.unsigned_abs().wrapping_mul(1000).wrapping_add(self.sequence % 1000)
    }
}

/// Returns a hash of the fields that make two Events equal: object, component, severity, reason and message. The hash
/// is the same in each process.
fn identity<L: Logic>(spec: &SourceSpec<L>, record: &Event<L::Source>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let about = (&spec.cluster.name, spec.resource.kind, &*record.uid, &record.name.namespace, &record.name.name);
    (about, record.component, record.severity.as_str(), record.reason, &record.message).hash(&mut hasher);
    hasher.finish()
}

/// Posts the queued Events, one after the other in each cluster, until the recorder is gone and the queues are empty.
pub(crate) async fn post(postings: Vec<mpsc::Receiver<Posting>>, metrics: Metrics) {
    join_all(postings.into_iter().map(|of_cluster| post_in_order(of_cluster, &metrics))).await;
}

async fn post_in_order(mut postings: mpsc::Receiver<Posting>, metrics: &Metrics) {
    while let Some(posting) = postings.recv().await {
        let cluster = posting.cluster.clone();
        if let Err(why) = timeout(WRITE_TIMEOUT, send(posting)).await.unwrap_or_else(|_| Err("timed out".to_owned())) {
            metrics.event_dropped();
            tracing::debug!(side = cluster, why, "a Kubernetes Event was not recorded");
        }
    }
}

async fn send(posting: Posting) -> Result<(), String> {
    let request = http::Request::builder()
        .method(Method::POST)
        .uri(posting.path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
        .body(Body::from(posting.body.to_string().into_bytes()))
        .map_err(|error| error.to_string())?;
    let response = posting.client.send(request).await.map_err(|error| with_causes(&error))?;
    match response.status() {
        // 409: an Event of this name exists. The name depends on the content, so the same Event was posted before.
        status if status.is_success() || status == StatusCode::CONFLICT => Ok(()),
        status => Err(format!("the server answered {status}")),
    }
}

const EVENTS: Resource = Resource { group: "", version: "v1", kind: "Event", plural: "events" };

fn event<S>(about: &Resource, namespace: &str, record: &Event<S>, instance: &str, now: Timestamp, name: &str) -> Value {
    let since_second = Duration::from_micros(now.0.rem_euclid(1_000_000).unsigned_abs());
    let seconds = to_jiff(now - since_second).to_string();
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": about.api_version(),
            "kind": about.kind,
            "namespace": &*record.name.namespace,
            "name": &*record.name.name,
            "uid": &*record.uid,
        },
        "type": record.severity.as_str(),
        "reason": record.reason,
        "message": shortened(&record.message, EVENT_MESSAGE_BYTES),
        "source": {"component": record.component, "host": instance},
        "reportingComponent": record.component,
        "reportingInstance": instance,
        "firstTimestamp": seconds,
        "lastTimestamp": seconds,
        "count": 1,
    })
}

/// Returns a name as client-go forms it: the object's name, a dot, and a number in hex. A name has at most 253
/// characters (RFC 1123 subdomain).
fn event_name(about: &str, number: u64) -> String {
    let suffix = format!(".{number:x}");
    let cut = about.floor_char_boundary(about.len().min(253 - suffix.len()));
    format!("{}{suffix}", about[..cut].trim_end_matches(['.', '-']))
}

/// Returns a text, cut to a number of bytes.
#[must_use]
pub fn shortened(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let dots = "…";
    format!("{}{dots}", &text[..text.floor_char_boundary(bytes - dots.len())])
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
