//! Functions that watch objects until a condition is true or a deadline has passed. The error shows the last state.

use crate::limits::{EVENTUALLY, POLL};
use crate::running;
use crate::watchdog;
use anyhow::{Context as _, bail};
use fleetnet_api::crd::MemberAgent;
use futures::StreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::WatchParams;
use kube::core::{Resource, ResourceExt as _, WatchEvent};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::panic::Location;
use std::time::Duration;
use tokio::time::Instant;

/// Annotation of the bookmark that ends the initial objects of a watch.
const INITIAL_END: &str = "k8s.io/initial-events-end";

#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    at: Instant,
    after: Duration,
}

impl Deadline {
    /// Returns a deadline after the default time limit ([`EVENTUALLY`]).
    #[must_use]
    #[track_caller]
    pub fn start() -> Self {
        Self::after(EVENTUALLY)
    }

    #[must_use]
    #[track_caller]
    pub fn after(after: Duration) -> Self {
        let place = Location::caller();
        watchdog::waits_for(|| format!("what {place} looks for"));
        Self { at: Instant::now() + after, after }
    }

    /// Waits until the deadline has passed.
    pub async fn passed(&self) {
        tokio::time::sleep_until(self.at).await;
    }

    /// Fails if the deadline has passed.
    pub fn check(&self) -> anyhow::Result<()> {
        if Instant::now() < self.at {
            return Ok(());
        }
        bail!("waited {:?} in vain", self.after)
    }

    /// Pauses before the next look at what a test waits for.
    ///
    /// # Errors
    /// If the deadline has passed. The error says what the last look has shown.
    pub async fn pause<C: Display + Send + Sync + 'static>(&self, shown: impl FnOnce() -> C) -> anyhow::Result<()> {
        self.check().with_context(shown)?;
        tokio::time::sleep(POLL).await;
        Ok(())
    }
}

/// Kind whose objects tests can wait for and show in messages.
pub trait Shown: Clone + Debug + DeserializeOwned + Resource + Serialize {}
impl<K: Clone + Debug + DeserializeOwned + Resource + Serialize> Shown for K {}

/// Waits until an object exists and fulfils `condition`.
///
/// # Errors
/// If `condition` is not true within [`EVENTUALLY`]. The error shows the last state of the object and the last log
/// lines of the agents.
pub async fn object<K: Shown>(
    api: &Api<K>,
    name: &str,
    what: &str,
    mut condition: impl FnMut(&K) -> bool,
) -> anyhow::Result<K> {
    let named = named(name);
    let found = objects(api, &named, what, |objects| objects.values().any(&mut condition)).await?;
    found.into_values().next().context("the condition holds for an object that is there")
}

pub async fn exists<K: Shown>(api: &Api<K>, name: &str) -> anyhow::Result<K> {
    object(api, name, &format!("{name} to be there"), |_| true).await
}

/// Waits for the next renewal of a MemberAgent. `interval` is the time between two looks.
pub async fn renewal(agents: &Api<MemberAgent>, name: &str, interval: Duration) -> anyhow::Result<()> {
    let renewed = async || anyhow::Ok(agents.get(name).await?.spec.renew_time);
    let (before, deadline) = (renewed().await?, Deadline::start());
    while renewed().await? == before {
        deadline.check().with_context(|| format!("no renewal of {name}"))?;
        tokio::time::sleep(interval).await;
    }
    Ok(())
}

pub async fn gone<K: Shown>(api: &Api<K>, name: &str) -> anyhow::Result<()> {
    objects(api, &named(name), &format!("{name} to be gone"), BTreeMap::is_empty).await.map(drop)
}

/// Waits until an object exists and has no finalizers.
pub async fn without_finalizers<K: Shown>(api: &Api<K>, name: &str) -> anyhow::Result<()> {
    let has_none = |object: &K| object.finalizers().is_empty();
    object(api, name, &format!("{name} to have no finalizers"), has_none).await.map(drop)
}

/// Waits until the set of objects that a watch selects fulfils `condition`. The keys are `<namespace>/<name>`, or
/// `<name>` for cluster-scoped objects.
pub async fn objects<K: Shown>(
    api: &Api<K>,
    selection: &WatchParams,
    what: &str,
    condition: impl FnMut(&BTreeMap<String, K>) -> bool,
) -> anyhow::Result<BTreeMap<String, K>> {
    objects_within(EVENTUALLY, api, selection, what, condition).await
}

/// Waits as [`objects`] does, with another time limit.
pub async fn objects_within<K: Shown>(
    limit: Duration,
    api: &Api<K>,
    selection: &WatchParams,
    what: &str,
    mut condition: impl FnMut(&BTreeMap<String, K>) -> bool,
) -> anyhow::Result<BTreeMap<String, K>> {
    watchdog::waits_for(|| what.to_owned());
    let mut objects = BTreeMap::new();
    match tokio::time::timeout(limit, follow(api, selection, &mut objects, &mut condition)).await {
        Ok(()) => Ok(objects),
        Err(_) => bail!("waited {limit:?} for {what}\n{}\n{}", shown(api, &objects), running::tails()),
    }
}

/// Waits until the kind of a CRD can be used. For a moment after the CRD is established, the server may still reject
/// requests because it prepares the storage.
pub async fn usable(client: &Client, definition: &str) -> anyhow::Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let what = format!("the definition {definition} to be established");
    let is_established = |definition: &CustomResourceDefinition| {
        let conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
    };
    let definition = object(&api, definition, &what, is_established).await?;
    let deadline = Deadline::start();
    for version in definition.spec.versions.iter().filter(|version| version.served) {
        let CustomResourceDefinition { spec, .. } = &definition;
        let path = format!("/apis/{}/{}/{}?limit=1", spec.group, version.name, spec.names.plural);
        while let Err(error) = client.request_text(http::Request::get(&path).body(Vec::new())?).await {
            deadline.pause(|| format!("{path} cannot be listed: {error}")).await?;
        }
    }
    Ok(())
}

fn named(name: &str) -> WatchParams {
    WatchParams::default().fields(&format!("metadata.name={name}"))
}

/// Follows a watch until the condition is met. Starts the watch again when the watch ends.
async fn follow<K: Shown>(
    api: &Api<K>,
    selection: &WatchParams,
    objects: &mut BTreeMap<String, K>,
    condition: &mut impl FnMut(&BTreeMap<String, K>) -> bool,
) {
    let parameters = selection.clone().initial_events();
    loop {
        if let Ok(events) = api.watch(&parameters, "").await {
            objects.clear();
            let mut complete = false;
            let mut events = events.boxed();
            while let Some(Ok(event)) = events.next().await {
                match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        objects.insert(key(&object), object);
                    }
                    WatchEvent::Deleted(object) => {
                        objects.remove(&key(&object));
                    }
                    WatchEvent::Bookmark(bookmark) => {
                        complete |= bookmark.metadata.annotations.contains_key(INITIAL_END);
                    }
                    WatchEvent::Error(_) => break,
                }
                if complete && condition(objects) {
                    return;
                }
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

fn key<K: Resource>(object: &K) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}

fn shown<K: Shown>(api: &Api<K>, objects: &BTreeMap<String, K>) -> String {
    if objects.is_empty() {
        return format!("nothing that was asked for is there at {}", api.resource_url());
    }
    let mut text = format!("at {} there is", api.resource_url());
    for object in objects.values() {
        let mut value = serde_json::to_value(object).unwrap_or_default();
        if let Some(metadata) = value.pointer_mut("/metadata").and_then(|metadata| metadata.as_object_mut()) {
            metadata.remove("managedFields");
        }
        text.push('\n');
        text.push_str(&serde_json::to_string_pretty(&value).unwrap_or_default());
    }
    text
}
