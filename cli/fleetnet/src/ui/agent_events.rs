//! Kubernetes Events of the agents about the fleet's objects, in all clusters.
//!
//! The Events have a task of their own, so that nothing else waits for them. A cluster whose Events cannot be read, for
//! example because a right is missing, is left out.

use super::happened::Change;
use super::side::Side;
use super::source::Finder;
use super::visits::Visits;
use crate::cli::output::table::Tone;
use crate::limits::{UI_EVENT_BYTES, UI_EVENTS, UI_EVENTS_NAMESPACE, UI_EVENTS_PAGES, UI_EVENTS_REST, UI_EVENTS_TIME};
use diagnosis::objects::Objects;
use fleetnet_runtime::clock::{Clock, to_jiff};
use fleetnet_runtime::errors::with_causes;
use fleetnet_runtime::io::events::shortened;
use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// Values of `source.component` of the agents' Events about the fleet's objects. A test compares them with the agents.
const COMPONENTS: [&str; 11] = [
    "endpointsliceexport-controller",
    "endpointsliceimport-controller",
    "hub-agent",
    "internalserviceexport-controller",
    "internalserviceimport-controller",
    "member-agent",
    "multicluster-serviceexport-controller",
    "multicluster-serviceimport-controller",
    "multiclusterservice-controller",
    "serviceexport-controller",
    "serviceimport-controller",
];

/// Event of an agent, as a line of the page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct AgentEvent {
    #[serde(serialize_with = "in_rfc_3339")]
    time: Timestamp,
    /// resourceVersion, which orders the Events of one second.
    #[serde(skip)]
    version: u64,
    #[serde(flatten)]
    change: Change,
}

fn in_rfc_3339<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{time:.3}"))
}

impl AgentEvent {
    /// Returns an Event that was read at this time as a line. `None` if no agent wrote it, as far as it says so.
    /// Everybody who may create Events can write any text and time, so texts are cut, and a later time does not count.
    fn of(side: &Side, event: &Event, read: Timestamp) -> Option<Self> {
        let source = event.source.as_ref().and_then(|source| source.component.as_deref());
        let components = [source, event.reporting_component.as_deref()];
        if !components.into_iter().flatten().any(|component| COMPONENTS.contains(&component)) {
            return None;
        }
        let last = event.last_timestamp.as_ref().or(event.first_timestamp.as_ref()).map(|time| time.0);
        let precise = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref());
        let precise = precise.or(event.event_time.as_ref()).map(|time| time.0);
        let created = event.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let text = |text: &Option<String>| shortened(text.as_deref().unwrap_or_default(), UI_EVENT_BYTES);
        let message = text(&event.message);
        let times = event.series.as_ref().and_then(|series| series.count).or(event.count).unwrap_or(1);
        let about = &event.involved_object;
        let change = Change {
            cluster: side.name().to_owned(),
            kind: Cow::Owned(text(&about.kind)),
            namespace: text(&about.namespace),
            name: text(&about.name),
            reason: Cow::Owned(text(&event.reason)),
            text: if times > 1 { format!("{message} ({times} times)") } else { message },
            tone: if event.type_.as_deref() == Some("Warning") { Tone::Warning } else { Tone::Plain },
        };
        let version = event.metadata.resource_version.as_ref().and_then(|version| version.parse().ok());
        Some(Self { time: last.max(precise).or(created)?.min(read), version: version.unwrap_or_default(), change })
    }
}

/// Keeps the newest Events about the objects of each namespace.
fn newest(events: BTreeSet<AgentEvent>, max: usize) -> BTreeSet<AgentEvent> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut is_kept = |event: &AgentEvent| {
        let number = numbers.entry(event.change.namespace.clone()).or_default();
        *number += 1;
        *number <= max
    };
    events.into_iter().rev().filter(|event| is_kept(event)).collect()
}

/// Result of a reading of one cluster.
struct Read {
    side: Side,
    /// `None` if the Events were not read.
    events: Option<BTreeSet<AgentEvent>>,
    /// Reason why not all Events were read.
    why: Option<String>,
    /// Time that the answer took. `None` without an answer.
    took: Option<Duration>,
}

/// Events of the agents that the clusters had at the last reading. Kubernetes keeps them for an hour.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentEvents {
    clusters: BTreeMap<Side, BTreeSet<AgentEvent>>,
    /// Clusters whose Events were not all read, with the reason.
    pub(super) not_read: Vec<String>,
}

impl AgentEvents {
    /// Returns the Events after a reading. A cluster that was not read this time keeps its Events. A known Event keeps
    /// its time: a time in the future became that of the reading, and it must not move on with each reading.
    fn after(&self, read: Vec<Read>) -> Self {
        let mut next = Self::default();
        for Read { side, events, why, .. } in read {
            next.not_read.extend(why.map(|why| format!("{}: {why}", side.name())));
            let earlier = self.clusters.get(&side).cloned().unwrap_or_default();
            let events = match events {
                Some(events) => {
                    let times: BTreeMap<_, _> = earlier.iter().map(|it| ((it.version, &it.change), it.time)).collect();
                    let time = |it: &AgentEvent| times.get(&(it.version, &it.change)).copied().unwrap_or(it.time);
                    events.into_iter().map(|it| AgentEvent { time: time(&it), ..it }).collect()
                }
                None => earlier,
            };
            next.clusters.insert(side, events);
        }
        next
    }

    /// Returns the Events that an earlier state does not have, oldest first.
    pub(super) fn since<'a>(&'a self, earlier: &'a Self) -> Vec<&'a AgentEvent> {
        let is_known =
            |side: &Side, event: &AgentEvent| earlier.clusters.get(side).is_some_and(|it| it.contains(event));
        let all = self.clusters.iter().flat_map(|(side, events)| events.iter().map(move |event| (side, event)));
        let mut events: Vec<&AgentEvent> = all.filter(|(side, event)| !is_known(side, event)).map(|it| it.1).collect();
        events.sort();
        events
    }

    /// Returns the last Events about the objects of a Service, newest first.
    pub(super) fn about(&self, objects: &Objects, max: usize) -> Vec<&AgentEvent> {
        let mut events: Vec<&AgentEvent> = Vec::new();
        for (side, of_cluster) in &self.clusters {
            let member = match side {
                Side::Hub => None,
                Side::Member(id) => Some(id.as_str()),
            };
            let is_about = |event: &&AgentEvent| objects.contain(member, &event.change.namespace, &event.change.name);
            events.extend(of_cluster.iter().filter(is_about));
        }
        events.sort_by(|one, two| two.cmp(one));
        events.truncate(max);
        events
    }
}

/// Reads the Events again and again while a page is connected. After a reading, waits for this interval, and long
/// enough that the readings take a small part of the time: each one makes a server look at all its Events. Neither the
/// search for the clusters nor a cluster that does not answer makes the pause longer.
pub(super) async fn keep_reading_events(
    finder: Arc<Finder>,
    events: watch::Sender<Arc<AgentEvents>>,
    visits: Visits,
    interval: Duration,
    clock: Clock,
) {
    loop {
        visits.any().await;
        let mut pause = interval;
        if let Ok(clusters) = finder.clusters().await {
            let read = read(clusters.clients(), &clock).await;
            pause = pause_after(&read, interval);
            events.send_modify(|events| *events = Arc::new(events.after(read)));
        }
        sleep(pause).await;
    }
}

/// Returns the pause after a reading.
fn pause_after(read: &[Read], interval: Duration) -> Duration {
    read.iter().filter_map(|read| read.took).map(|took| took * UI_EVENTS_REST).fold(interval, Duration::max)
}

async fn read(clients: Vec<(Side, &Client)>, clock: &Clock) -> Vec<Read> {
    join_all(clients.into_iter().map(|(side, client)| async {
        let begun = Instant::now();
        match timeout(UI_EVENTS_TIME, of_cluster(client, &side, clock)).await {
            Ok(Ok((events, why))) => Read { side, events: Some(events), why, took: Some(begun.elapsed()) },
            Ok(Err(why)) => Read { side, events: None, why: Some(why), took: Some(begun.elapsed()) },
            Err(_) => {
                let why = format!("no answer within {} s", UI_EVENTS_TIME.as_secs());
                Read { side, events: None, why: Some(why), took: None }
            }
        }
    }))
    .await
}

/// Lists the Events about the fleet's objects in a cluster. If there are more than the limit, says so.
async fn of_cluster(
    client: &Client,
    side: &Side,
    clock: &Clock,
) -> Result<(BTreeSet<AgentEvent>, Option<String>), String> {
    let api: Api<Event> = Api::all(client.clone());
    let (mut events, mut why) = (BTreeSet::new(), None);
    for version in side.api_versions() {
        let mut next = ListParams::default().fields(&format!("involvedObject.apiVersion={version}")).limit(UI_EVENTS);
        for page in 1..=UI_EVENTS_PAGES {
            let list = api.list(&next).await.map_err(|error| text_of(&error))?;
            let read = to_jiff(clock.now());
            events.extend(list.items.iter().filter_map(|event| AgentEvent::of(side, event, read)));
            let Some(token) = list.metadata.continue_.filter(|token| !token.is_empty()) else { break };
            next = next.continue_token(&token);
            if page == UI_EVENTS_PAGES {
                let number = UI_EVENTS_PAGES * UI_EVENTS as usize;
                why = Some(format!("there are more than {number} Events, and the others were not read"));
            }
        }
    }
    Ok((newest(events, UI_EVENTS_NAMESPACE), why))
}

/// Returns the reason of a failed list.
fn text_of(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => "this user may not list Events".to_owned(),
        kube::Error::Api(status) => status.message.clone(),
        _ => with_causes(error),
    }
}

#[cfg(test)]
#[path = "agent_events_tests.rs"]
mod tests;
