//! Watches of the members. They keep the [`World`] (the observed state) up to date. Changes of the `World` become
//! events of the sandbox.

use super::describe;
use super::describe::NAMESPACE;
use super::event::{Event, Export, Import};
use super::fleet::Fleet;
use super::observe::{Fact, Kind, Slice, World};
use super::view::Stage;
use crate::args::Api as SandboxApi;
use crate::limits::{ANNOUNCE, WATCH_AGAIN, WATCH_SECONDS};
use fleetnet_api::crd::{MultiClusterService, ServiceExport, mcs};
use fleetnet_api::names::labels::{MCS_SERVICE_NAME, SERVICE_NAME};
use fleetnet_core::conditions::{CONFLICT, READY, VALID};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{EndpointConditions, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{ResourceExt as _, WatchParams};
use kube::core::{NamespaceResourceScope, WatchEvent};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use sim::server::FLEET_SYSTEM;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::sync::watch::Sender;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Annotation of the bookmark after the initial objects of a watch.
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// Watches of a fleet's members. They end when this value is dropped.
pub(crate) struct Watches {
    world: Arc<Sender<World>>,
    announced: Arc<Mutex<Announced>>,
    _tasks: JoinSet<()>,
}

impl Watches {
    /// Starts the watches of all members.
    pub(crate) fn open(fleet: &Fleet, stage: &Stage) -> Self {
        let world = Arc::new(Sender::new(World::new(fleet.api, fleet.member_names())));
        let mut tasks = JoinSet::new();
        for (index, member) in fleet.members.iter().enumerate() {
            let client = member.server.admin();
            let look = |kind| Look { member: index, kind, world: Arc::clone(&world) };
            let of_users = Place::all(&client, NAMESPACE);
            match fleet.api {
                SandboxApi::Fleet => {
                    tasks.spawn(follow(of_users.clone(), look(Kind::Export), |it: &ServiceExport| {
                        export(it.status.as_ref().and_then(|status| status.conditions.as_deref()))
                    }));
                    tasks.spawn(follow(of_users, look(Kind::Import), |it: &MultiClusterService| {
                        import(it.status.as_ref().and_then(|status| status.conditions.as_deref()), VALID)
                    }));
                }
                SandboxApi::Mcs => {
                    tasks.spawn(follow(of_users.clone(), look(Kind::Export), |it: &mcs::ServiceExport| {
                        export(it.status.as_ref().and_then(|status| status.conditions.as_deref()))
                    }));
                    tasks.spawn(follow(of_users, look(Kind::Import), |it: &mcs::ServiceImport| {
                        import(it.status.as_ref().and_then(|status| status.conditions.as_deref()), READY)
                    }));
                }
            }
            let imported = match fleet.api {
                SandboxApi::Fleet => Place::all(&client, FLEET_SYSTEM),
                // The namespace also has the exported Services and their slices.
                SandboxApi::Mcs => Place { selector: MCS_SERVICE_NAME, ..Place::all(&client, NAMESPACE) },
            };
            tasks.spawn(follow(imported.clone(), look(Kind::Derived), |derived: &Service| {
                Fact::Derived(describe::derived_service(derived))
            }));
            tasks.spawn(follow(imported, look(Kind::Slice), |slice: &EndpointSlice| {
                let derived = slice.labels().get(SERVICE_NAME).cloned().unwrap_or_default();
                let addresses = slice.endpoints.iter().flatten().flat_map(|it| it.addresses.clone()).collect();
                let (draining, unready) = not_ready(slice);
                Fact::Slice(Slice {
                    derived,
                    addresses,
                    draining,
                    unready,
                    description: describe::imported_slice(slice),
                })
            }));
        }
        let announced = Arc::default();
        tasks.spawn(announce_changes(Arc::clone(&world), Arc::clone(&announced), stage.clone()));
        Self { world, announced, _tasks: tasks }
    }

    /// Waits until `so` returns true for the observed state. Returns false if this does not happen within `limit`.
    pub(crate) async fn see(&self, limit: Duration, so: impl FnMut(&World) -> bool) -> bool {
        let mut world = self.world.subscribe();
        timeout(limit, world.wait_for(so)).await.is_ok_and(|seen| seen.is_ok())
    }

    /// Sends events about changes of the observed state now, without the delay [`ANNOUNCE`].
    pub(crate) async fn announce(&self, stage: &Stage) {
        announce(&self.world, &self.announced, stage).await;
    }

    /// Calls `at` with the current observed state. `at` must not block.
    pub(crate) fn look<T>(&self, at: impl FnOnce(&World) -> T) -> T {
        at(&self.world.borrow())
    }

    /// Calls `how` to change the observed state, for example to record arrivals of an endpoint. This change causes no
    /// event.
    pub(crate) fn instruct<T>(&self, how: impl FnOnce(&mut World) -> T) -> T {
        let mut result = None;
        self.world.send_if_modified(|world| {
            result = Some(how(world));
            false
        });
        result.expect("the closure is called once, always")
    }
}

/// Part of the observed state that one watch updates: a kind in one member.
struct Look {
    member: usize,
    kind: Kind,
    world: Arc<Sender<World>>,
}

impl Look {
    fn learn(&self, name: &str, fact: Option<Fact>) {
        let at = Instant::now();
        self.world.send_modify(|world| world.learn(self.member, self.kind, name, fact, at));
    }

    fn keep_only(&self, names: &BTreeSet<String>) {
        self.world.send_modify(|world| world.keep_only(self.member, self.kind, names));
    }
}

/// Objects that a watch includes.
#[derive(Clone)]
struct Place {
    client: Client,
    namespace: &'static str,
    /// Label selector; empty for all objects.
    selector: &'static str,
}

impl Place {
    fn all(client: &Client, namespace: &'static str) -> Self {
        Self { client: client.clone(), namespace, selector: "" }
    }
}

/// Watches all objects of a kind until this future is dropped. Restarts a broken watch.
async fn follow<K>(place: Place, look: Look, fact: fn(&K) -> Fact)
where
    K: Clone + Debug + DeserializeOwned + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let api: Api<K> = Api::namespaced(place.client, place.namespace);
    let all = WatchParams::default().initial_events().timeout(WATCH_SECONDS).labels(place.selector);
    loop {
        if let Ok(events) = api.watch(&all, "").await {
            let mut events = events.boxed();
            // Names of the objects that the watch has listed so far. `None` once a bookmark shows that the initial list
            // is complete.
            let mut initial = Some(BTreeSet::new());
            while let Some(Ok(event)) = events.next().await {
                match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        let name = object.name_any();
                        look.learn(&name, Some(fact(&object)));
                        initial.iter_mut().for_each(|names| _ = names.insert(name.clone()));
                    }
                    WatchEvent::Deleted(object) => look.learn(&object.name_any(), None),
                    WatchEvent::Bookmark(bookmark) if bookmark.metadata.annotations.contains_key(INITIAL_END) => {
                        initial.take().iter().for_each(|names| look.keep_only(names));
                    }
                    WatchEvent::Bookmark(_) => {}
                    WatchEvent::Error(_) => break,
                }
            }
        }
        sleep(WATCH_AGAIN).await;
    }
}

/// Returns the number of endpoints that are terminating, and of the others that are not ready.
fn not_ready(slice: &EndpointSlice) -> (usize, usize) {
    let conditions = || slice.endpoints.iter().flatten().filter_map(|endpoint| endpoint.conditions.as_ref());
    let is_draining = |conditions: &&EndpointConditions| conditions.terminating == Some(true);
    let draining = conditions().filter(is_draining).count();
    let unready = conditions().filter(|it| !is_draining(it) && it.ready == Some(false)).count();
    (draining, unready)
}

fn export(conditions: Option<&[Condition]>) -> Fact {
    Fact::Export(Export { valid: condition(conditions, VALID), conflict: condition(conditions, CONFLICT) })
}

fn import(conditions: Option<&[Condition]>, name: &str) -> Fact {
    Fact::Import(condition(conditions, name) == Some(true))
}

fn condition(conditions: Option<&[Condition]>, name: &str) -> Option<bool> {
    let found = conditions?.iter().find(|condition| condition.type_ == name)?;
    match found.status.as_str() {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

/// Sends events about changes of the observed state. Waits a short time between a change and its event, so that several
/// quick changes lead to one event.
async fn announce_changes(world: Arc<Sender<World>>, announced: Arc<Mutex<Announced>>, stage: Stage) {
    let mut changes = world.subscribe();
    while changes.changed().await.is_ok() {
        sleep(ANNOUNCE).await;
        announce(&world, &announced, &stage).await;
    }
}

async fn announce(world: &Sender<World>, announced: &Mutex<Announced>, stage: &Stage) {
    let mut announced = announced.lock().await;
    let (exports, imports) = {
        let world = world.borrow();
        (world.exports(), world.imports())
    };
    for event in announced.news(exports, imports) {
        stage.emit(event).await;
    }
}

/// Exports and imports as in the last events that the sandbox sent.
#[derive(Default)]
struct Announced {
    exports: BTreeMap<(String, String), Export>,
    imports: BTreeMap<(String, String), Import>,
}

impl Announced {
    fn news(
        &mut self,
        exports: BTreeMap<(String, String), Export>,
        imports: BTreeMap<(String, String), Import>,
    ) -> Vec<Event> {
        let mut news = Vec::new();
        for ((cluster, service), export) in &exports {
            if self.exports.get(&(cluster.clone(), service.clone())) != Some(export) {
                let (cluster, service, export) = (cluster.clone(), service.clone(), export.clone());
                news.push(Event::Export { cluster, service, export });
            }
        }
        for ((cluster, service), import) in &imports {
            if self.imports.get(&(cluster.clone(), service.clone())) != Some(import) {
                let (cluster, service, import) = (cluster.clone(), service.clone(), import.clone());
                news.push(Event::Import { cluster, service, import });
            }
        }
        for (cluster, service) in self.exports.keys().filter(|key| !exports.contains_key(key)).cloned() {
            news.push(Event::Gone { what: "export", cluster, service });
        }
        for (cluster, service) in self.imports.keys().filter(|key| !imports.contains_key(key)).cloned() {
            news.push(Event::Gone { what: "import", cluster, service });
        }
        *self = Self { exports, imports };
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_and_removals_are_reported() {
        let key = |cluster: &str| (cluster.to_owned(), "work/app".to_owned());
        let export = Export { valid: Some(true), conflict: None };
        let exports = BTreeMap::from([(key("member-1"), export.clone()), (key("member-2"), export)]);
        let imports = BTreeMap::from([(key("member-1"), Import::default())]);
        let mut announced = Announced::default();
        assert_eq!(announced.news(exports.clone(), imports.clone()).len(), 3);
        assert_eq!(announced.news(exports.clone(), imports), []);
        let mut fewer = exports;
        fewer.remove(&key("member-1"));
        let gone = |what, (cluster, service)| Event::Gone { what, cluster, service };
        assert_eq!(
            announced.news(fewer, BTreeMap::new()),
            [gone("export", key("member-1")), gone("import", key("member-1"))]
        );
    }
}
