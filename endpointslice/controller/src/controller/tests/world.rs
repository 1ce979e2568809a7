//! Cluster of memkube with the controller in the real engine ([`World`]). Time is virtual.

mod gate;
mod looking;
mod spy;

use super::builders::{NAMESPACE, node, pod, service};
use crate::serving::Serving;
use crate::settings::Settings;
use crate::{Mode, Object, Timing};
use bytes::Bytes;
use endpointslice::Config;
use endpointslice::model::{EndpointSlice, Metadata, Node, Pod, Service};
use fleetnet_runtime::clock::{Clock, to_jiff};
use fleetnet_runtime::engine::leadership::Leadership;
use fleetnet_runtime::io::client::Cluster as Server;
use fleetnet_runtime::manager::ProcessContext;
use fleetnet_runtime::metrics::Metrics;
use fleetnet_types::Timestamp;
use futures::FutureExt as _;
use gate::Gate;
pub(crate) use gate::{Done, Fate, Guard, Write};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
pub(crate) use looking::slices;
use memkube::auth::Call;
use memkube::faults::Faults;
use memkube::strategy::{Context, Strategy};
use memkube::{MemKube, Options, Status, User};
use parking_lot::Mutex;
use serde_json::{Value, json};
use spy::Seen;
use spy::Spy;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::{JoinHandle, yield_now};

/// Virtual time at which the tests start.
pub(crate) const NOON: Timestamp = Timestamp::from_seconds(1_800_000_000);
pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// Number of times that all tasks run until nothing is left to do at the present time.
const TURNS: usize = 600;
/// User of the agent, and its name.
const AGENT: &str = "agent";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces";

/// Objects of the users.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) services: BTreeMap<(String, String), Service>,
    pub(crate) pods: BTreeMap<(String, String), Pod>,
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) max_endpoints_per_slice: usize,
}

/// Cluster with the controller.
pub(crate) struct World {
    runtime: Runtime,
    pub(crate) server: MemKube,
    gate: Gate,
    clock: Clock,
    /// Metadata of the object that a request of a test writes.
    written: Arc<Mutex<Value>>,
    webhook: Hook,
    pub(crate) cluster: Arc<Mutex<Cluster>>,
    pub(crate) config: Config,
    timing: Timing,
    leadership: watch::Sender<Leadership>,
    pub(crate) seen: Arc<Mutex<Seen>>,
    registry: prometheus::Registry,
    running: JoinHandle<()>,
}

/// Kind whose objects are as a test writes them: also their UIDs and times, which a server chooses.
struct AsWritten(Arc<Mutex<Value>>);

impl Strategy for AsWritten {
    fn prepare_for_create(&self, _: &mut Context<'_>, object: &mut memkube::object::Object) -> Result<(), Status> {
        object.insert("metadata".to_owned(), self.0.lock().clone());
        Ok(())
    }

    fn prepare_for_update(
        &self,
        _: &mut Context<'_>,
        _: &mut memkube::object::Object,
        _: &memkube::object::Object,
    ) -> Result<(), Status> {
        Ok(())
    }

    /// A write removes no object that is being deleted. Only a delete does.
    fn keeps_deleted(&self, _: &memkube::object::Object) -> bool {
        !self.0.lock().is_null()
    }
}

/// Change of each written slice, if there is one.
type Hook = Arc<Mutex<Option<fn(&mut Value)>>>;

struct Webhook(Hook);

impl Faults for Webhook {
    fn mutate(&self, call: &Call, object: &mut memkube::object::Object) {
        let webhook = self.0.lock().filter(|_| &*call.target.resource == "endpointslices");
        if let Some(change) = webhook {
            let mut slice = Value::Object(std::mem::take(object));
            change(&mut slice);
            let Value::Object(changed) = slice else { panic!("the webhook made no object") };
            *object = changed;
        }
    }
}

impl World {
    /// Returns a cluster with the Node node-1, which has no zone. The controller is active and ready.
    pub(crate) fn new() -> Self {
        Self::with(Config::default(), Timing::default())
    }

    pub(crate) fn with(config: Config, timing: Timing) -> Self {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let clock = runtime.block_on(async { Clock::virtual_at(NOON) });
        let mut options = Options::new(Arc::new(|| to_jiff(NOON)), 1);
        options.garbage_collector = false;
        let server = MemKube::new(options);
        let (written, webhook) = (Arc::new(Mutex::new(Value::Null)), Arc::default());
        server.wrap_rules(|definition, strategy| match definition.plural.as_str() {
            "services" | "pods" | "nodes" => Box::new(AsWritten(Arc::clone(&written))),
            _ => strategy,
        });
        server.set_faults(Some(Arc::new(Webhook(Arc::clone(&webhook)))));
        let gate = Gate::new(server.service(User::new(AGENT)), clock.clone());
        let cluster = Cluster { max_endpoints_per_slice: config.max_endpoints_per_slice(), ..Cluster::default() };
        let running = runtime.spawn(async {});
        let mut world = Self {
            runtime,
            server,
            gate,
            clock,
            written,
            webhook,
            cluster: Arc::new(Mutex::new(cluster)),
            config,
            timing,
            leadership: watch::Sender::new(Leadership::Leading { until: None }),
            seen: Arc::default(),
            registry: prometheus::Registry::new(),
            running,
        };
        for namespace in [NAMESPACE, "elsewhere"] {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            world.must(Method::POST, "/api/v1/namespaces", &object);
        }
        world.set(node("node-1", "", ""));
        world.restart();
        world.settle();
        world
    }

    /// Returns a settled cluster with the Service web, whose first writes [`World::take_done`] does not return.
    pub(crate) fn with_web() -> Self {
        Self::with_web_and([])
    }

    /// Returns a settled cluster as [`World::with_web`] does, with the pods 1 and 2 of the Service.
    pub(crate) fn with_web_and_two_pods() -> Self {
        Self::with_web_and([pod(1), pod(2)])
    }

    fn with_web_and(pods: impl IntoIterator<Item = Pod>) -> Self {
        let mut world = Self::new();
        world.set(service("web"));
        world.set_all_and_settle(pods);
        world.take_done();
        world
    }

    /// Sends a request as a user with all rights. The agent does nothing meanwhile. Returns the status and the object.
    fn request(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let _time = self.runtime.enter();
        let body = Full::<Bytes>::from(if body.is_null() { Vec::new() } else { body.to_string().into_bytes() });
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request = request.body(body).expect("a request");
        let mut service = self.server.service(User::new("admin"));
        let answer = tower::Service::call(&mut service, request).now_or_never().expect("memkube answers at once");
        let answer = answer.expect("the connection holds");
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().now_or_never().expect("at once").expect("a body").to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    fn must(&self, method: Method, path: &str, body: &Value) -> Value {
        let (status, answer) = self.request(method.clone(), path, body);
        assert!(status < 300, "{method} {path}: {answer}");
        answer
    }

    /// Writes an object as it is, in place of the present one.
    fn write(&self, (plural, kind): (&str, &str), metadata: &Metadata, mut object: Value) {
        let place = path(plural, &metadata.namespace);
        let path = format!("{place}/{}", metadata.name);
        (object["apiVersion"], object["kind"]) = (json!("v1"), json!(kind));
        object["metadata"]["resourceVersion"].take();
        *self.written.lock() = object["metadata"].clone();
        let (status, present) = self.request(Method::GET, &path, &Value::Null);
        let is_same = |field: &str| present["metadata"][field] == object["metadata"][field];
        if status == 200 && is_same("uid") && is_same("deletionTimestamp") {
            self.must(Method::PUT, &path, &object);
            return;
        }
        if status == 200 {
            self.delete(plural, &metadata.namespace, &metadata.name);
        }
        *self.written.lock() = object["metadata"].clone();
        self.must(Method::POST, &place, &object);
    }

    fn delete(&self, plural: &str, namespace: &str, name: &str) {
        *self.written.lock() = Value::Null;
        self.request(Method::DELETE, &format!("{}/{name}", path(plural, namespace)), &Value::Null);
    }

    /// Creates or changes a Service, pod or Node.
    pub(crate) fn set(&mut self, object: impl Into<Object>) {
        let full = |metadata: &Metadata| (metadata.namespace.to_string(), metadata.name.to_string());
        let mut cluster = self.cluster.lock();
        match object.into() {
            Object::Service(service) => {
                self.write(("services", "Service"), &service.metadata, json(&service));
                cluster.services.insert(full(&service.metadata), service);
            }
            Object::Pod(pod) => {
                self.write(("pods", "Pod"), &pod.metadata, json(&pod));
                cluster.pods.insert(full(&pod.metadata), pod);
            }
            Object::Node(node) => {
                self.write(("nodes", "Node"), &node.metadata, json(&node));
                cluster.nodes.insert(node.metadata.name.to_string(), node);
            }
            Object::EndpointSlice(_) => panic!("tests make slices with `make_slice`"),
        }
    }

    /// Makes a pod or a Node undecodable.
    pub(crate) fn make_undecodable(&mut self, name: &str) {
        let cluster = self.cluster.lock();
        if let Some(pod) = cluster.pods.get(&(NAMESPACE.to_owned(), name.to_owned())) {
            let object = json!({"metadata": pod.metadata, "spec": "nonsense"});
            self.write(("pods", "Pod"), &pod.metadata, object);
        } else {
            let Some(node) = cluster.nodes.get(name) else { return };
            let object = json!({"metadata": node.metadata, "status": "nonsense"});
            self.write(("nodes", "Node"), &node.metadata, object);
        }
    }

    pub(crate) fn set_all<O: Into<Object>>(&mut self, objects: impl IntoIterator<Item = O>) {
        objects.into_iter().for_each(|object| self.set(object));
    }

    pub(crate) fn remove_service(&mut self, name: &str) {
        self.cluster.lock().services.remove(&(NAMESPACE.to_owned(), name.to_owned()));
        self.delete("services", NAMESPACE, name);
    }

    pub(crate) fn remove_pod(&mut self, name: &str) {
        self.cluster.lock().pods.remove(&(NAMESPACE.to_owned(), name.to_owned()));
        self.delete("pods", NAMESPACE, name);
    }

    pub(crate) fn remove_node(&mut self, name: &str) {
        self.cluster.lock().nodes.remove(name);
        self.delete("nodes", "", name);
    }

    pub(crate) fn set_and_settle(&mut self, object: impl Into<Object>) {
        self.set(object);
        self.settle();
    }

    pub(crate) fn set_all_and_settle<O: Into<Object>>(&mut self, objects: impl IntoIterator<Item = O>) {
        self.set_all(objects);
        self.settle();
    }

    pub(crate) fn remove_pod_and_settle(&mut self, name: &str) {
        self.remove_pod(name);
        self.settle();
    }

    /// Creates a slice as another client does.
    pub(crate) fn make_slice(&mut self, slice: &EndpointSlice) {
        let metadata = &slice.metadata;
        let mut object = serde_json::to_value(slice).expect("slices can be written");
        (object["apiVersion"], object["kind"]) = (json!("discovery.k8s.io/v1"), json!("EndpointSlice"));
        object["metadata"]["deletionTimestamp"].take();
        self.must(Method::POST, &format!("{SLICES}/{}/endpointslices", metadata.namespace), &object);
        if metadata.is_terminating() {
            self.delete_slice(&metadata.name);
        }
    }

    /// Changes a slice as another client does.
    pub(crate) fn edit_slice(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let path = format!("{SLICES}/{NAMESPACE}/endpointslices/{name}");
        let mut slice = self.must(Method::GET, &path, &Value::Null);
        change(&mut slice);
        self.must(Method::PUT, &path, &slice);
    }

    /// Deletes a slice as another client does.
    pub(crate) fn delete_slice(&mut self, name: &str) {
        self.must(Method::DELETE, &format!("{SLICES}/{NAMESPACE}/endpointslices/{name}"), &Value::Null);
    }

    /// Deletes the slices of deleted Services, as the garbage collector does.
    pub(crate) fn collect_garbage(&mut self) {
        let owners: BTreeSet<_> =
            self.cluster.lock().services.values().map(|service| service.metadata.uid.clone()).collect();
        for slice in self.slices() {
            let owner = slice.metadata.owner_references.first();
            if owner.is_some_and(|owner| !owners.contains(&owner.uid)) {
                self.delete_slice(&slice.metadata.name);
            }
        }
        self.forget_wanted();
    }

    /// Makes the [`Guard`] check no write that is in flight now, because another client has changed slices.
    pub(crate) fn forget_wanted(&self) {
        self.gate.forget_wanted();
    }

    /// Sets the outcome of each write from now on.
    pub(crate) fn writes_are(&mut self, fate: impl FnMut(&Write) -> Fate + Send + 'static) {
        self.gate.traffic.lock().fates = Box::new(fate);
    }

    /// Installs a webhook that changes each written slice, or removes it.
    pub(crate) fn webhook(&mut self, webhook: Option<fn(&mut Value)>) {
        *self.webhook.lock() = webhook;
    }

    pub(crate) fn guard(&mut self, guard: Guard) {
        self.gate.traffic.lock().guard = Some(Arc::new(guard));
    }

    /// Pauses or resumes the watch of slices. Responses to the controller's writes still arrive.
    pub(crate) fn pause_watch(&mut self, is_paused: bool) {
        self.gate.paused.send_replace(is_paused);
    }

    /// Runs everything that is due now. The virtual time does not advance.
    pub(crate) fn settle(&mut self) {
        self.run();
        self.seen.lock().planned.clear();
    }

    /// Shows the agent all changes since the last run at once. So the number of its writes does not depend on the order
    /// of its tasks.
    fn run(&mut self) {
        self.runtime.block_on(async {
            take_turns().await;
            self.gate.held.send_replace(false);
            take_turns().await;
            self.gate.held.send_replace(true);
        });
        assert!(!self.running.is_finished(), "the agent has ended");
    }

    /// Delivers the requests and responses of all writes in flight.
    pub(crate) fn deliver_responses(&mut self) {
        self.runtime.block_on(async { self.gate.release() });
        self.settle();
    }

    /// Delivers the requests and responses of all writes in flight. Later writes get their responses at once.
    pub(crate) fn let_writes_end(&mut self) {
        self.writes_are(|_| Fate::Done);
        self.deliver_responses();
    }

    /// Advances the virtual time. Runs all timers that end in this time, in order.
    pub(crate) fn advance(&mut self, duration: Duration) {
        self.run();
        self.runtime.block_on(async {
            self.gate.held.send_replace(false);
            tokio::time::sleep(duration).await;
        });
        self.settle();
    }

    pub(crate) fn now(&self) -> Timestamp {
        let _time = self.runtime.enter();
        self.clock.now()
    }

    /// Sets the wall clock forward or back by this number of milliseconds.
    pub(crate) fn step_clock(&mut self, milliseconds: i64) {
        self.clock.set_by(milliseconds * 1_000);
    }

    /// Kills the agent's process, and starts it again.
    pub(crate) fn restart(&mut self) {
        self.running.abort();
        self.runtime.block_on(take_turns());
        self.gate.forget_flights();
        self.registry = prometheus::Registry::new();
        *self.seen.lock() = Seen::default();
        let time = self.runtime.enter();
        let client = kube::Client::new(self.gate.clone(), "default");
        let server = Arc::new(Server::from_clients("member", client.clone(), client));
        let metrics = Metrics::new(&self.registry).expect("a registry of its own");
        let process = ProcessContext { identity: AGENT.to_owned(), clock: self.clock.clone(), metrics };
        let (config, timing) = (self.config.clone(), self.timing);
        let settings = Settings { config, timing, concurrent_syncs: 1_000, ..Settings::with_mode(Mode::On) };
        let serving = Serving::new(&settings, &self.registry).expect("a registry of its own");
        let spy = Spy { serving, seen: Arc::clone(&self.seen) };
        self.running = self.runtime.spawn(spy.run(settings, server, process, self.leadership.subscribe()));
        drop(time);
    }

    /// Makes the controller active or inactive.
    pub(crate) fn serve(&mut self, serves: bool) {
        let leads = Leadership::Leading { until: None };
        self.leadership.send_replace(if serves { leads } else { Leadership::Waiting { holder: None } });
        self.settle();
    }
}

/// Lets all tasks run until nothing is left to do at the present time.
async fn take_turns() {
    for _ in 0..TURNS {
        yield_now().await;
    }
}

fn json(object: &impl serde::Serialize) -> Value {
    serde_json::to_value(object).expect("objects can be written")
}

/// Returns the path of a kind of the core group.
fn path(plural: &str, namespace: &str) -> String {
    if namespace.is_empty() { format!("/api/v1/{plural}") } else { format!("/api/v1/namespaces/{namespace}/{plural}") }
}
