//! Comparison of the simulated engine ([`World`]) with the real engine on memkube. The same events of a cluster with
//! the same troubles give the same slices, and cost the same writes.

use super::builders::NAMESPACE;
use super::world::{Fate, NOON, SECOND, World};
use crate::takeover::Mode;
use crate::{EndpointsAgent, Object, Operation, Settings, Timing};
use endpointslice::Config;
use endpointslice::model::EndpointSlice;
use fleetnet_runtime::clock::{self, Clock};
use fleetnet_runtime::engine::leadership::Leadership;
use fleetnet_runtime::io::client::Cluster;
use fleetnet_runtime::manager::{Finished, ProcessContext};
use fleetnet_runtime::metrics::Metrics;
use fleetnet_runtime::process::shutdown::Shutdown;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use memkube::auth::Call;
use memkube::clock::TokioClock;
use memkube::faults::{Answer, Fate as EventFate, Fault, Faults, WatchFaults, WatchedEvent};
use memkube::observe::{Commit, Observer};
use memkube::registry::ResourceId;
use memkube::store::ChangeKind;
use memkube::{MemKube, Options, Status, User};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Number of histories, and of steps in each.
const HISTORIES: u64 = 24;
const STEPS: usize = 25;
const PODS: usize = 6;
const SERVICES: [&str; 2] = ["web", "all"];
/// User of the agent.
const AGENT: &str = "agent";
/// Time in which troubles last.
const TROUBLE: Duration = Duration::from_millis(30);
/// Time after each step in which both engines come to rest.
const REST: Duration = SECOND.saturating_mul(30);

/// Trouble of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    None,
    /// The server executes no write.
    Failed,
    /// The answers to writes are lost.
    Unanswered,
    /// The answers to writes arrive after the events of the watch.
    AnsweredLate,
    /// The events of the watch arrive after the answers to writes.
    SeenLate,
}

const TROUBLES: [Trouble; 5] =
    [Trouble::None, Trouble::Failed, Trouble::Unanswered, Trouble::AnsweredLate, Trouble::SeenLate];

/// Trouble and commits of the real server. Clones share both.
#[derive(Clone, Debug)]
struct Hook {
    trouble: Arc<Mutex<Trouble>>,
    commits: Arc<Mutex<Vec<Operation>>>,
}

impl Faults for Hook {
    fn request(&self, call: &Call) -> Fault {
        if *call.user.name != *AGENT || !call.verb.writes() || &*call.target.resource != "endpointslices" {
            return Fault::default();
        }
        match *self.trouble.lock() {
            Trouble::None | Trouble::SeenLate => Fault::default(),
            Trouble::Failed => {
                let refuse = Status::plain(503, "ServiceUnavailable", "no write is executed");
                Fault { refuse: Some(refuse), ..Fault::default() }
            }
            Trouble::Unanswered => Fault { answer: Answer::Cut, ..Fault::default() },
            Trouble::AnsweredLate => Fault { delay_after: TROUBLE, ..Fault::default() },
        }
    }

    fn watch(&self, call: &Call) -> Option<Box<dyn WatchFaults>> {
        let is_of_slices = *call.user.name == *AGENT && &*call.target.resource == "endpointslices";
        is_of_slices.then(|| Box::new(self.clone()) as Box<dyn WatchFaults>)
    }
}

impl WatchFaults for Hook {
    fn event(&mut self, _: &WatchedEvent) -> EventFate {
        match *self.trouble.lock() {
            Trouble::SeenLate => EventFate::Hold(TROUBLE),
            _ => EventFate::Deliver,
        }
    }
}

impl Observer for Hook {
    fn committed(&self, commit: &Commit<'_>) {
        if &*commit.resource.plural == "endpointslices" && commit.user.is_some_and(|user| *user.name == *AGENT) {
            self.commits.lock().push(match commit.change.kind {
                ChangeKind::Added => Operation::Create,
                ChangeKind::Modified => Operation::Update,
                ChangeKind::Deleted => Operation::Delete,
            });
        }
    }
}

/// Real server with the real engine.
struct Real {
    server: MemKube,
    hook: Hook,
    settings: Settings,
    /// The running agent. Dropping this value aborts it.
    running: JoinSet<Finished>,
}

impl Real {
    fn new(settings: Settings, seed: u64) -> Self {
        let server = MemKube::new(Options::new(Arc::new(TokioClock::starting_at(clock::to_jiff(NOON))), seed));
        let hook = Hook { trouble: Arc::new(Mutex::new(Trouble::None)), commits: Arc::default() };
        server.set_faults(Some(Arc::new(hook.clone())));
        server.observe(Some(Arc::new(hook.clone())));
        Self { server, hook, settings, running: JoinSet::new() }
    }

    /// Starts the agent. Aborts the agent that runs, as if its process was killed.
    fn start(&mut self) {
        self.running.abort_all();
        let client = self.server.client(User::new(AGENT));
        let cluster = Arc::new(Cluster::from_clients("member", client.clone(), client));
        let registry = prometheus::Registry::new();
        let metrics = Metrics::new(&registry).expect("a registry of its own");
        let process = ProcessContext { identity: AGENT.to_owned(), clock: Clock::virtual_at(NOON), metrics };
        let agent = EndpointsAgent::new(self.settings.clone(), cluster, &registry).expect("a registry of its own");
        self.running.spawn(async move {
            let (_stop, stopped) = Shutdown::new();
            let (_leadership, leads) = watch::channel(Leadership::Leading { until: None });
            agent.run(process, leads, stopped).await
        });
    }

    /// Returns the API for the objects of a kind, for a user with all rights.
    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let group = if kind == "EndpointSlice" { "discovery.k8s.io" } else { "" };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        let client = self.server.client(User::new("admin"));
        match kind {
            "Namespace" | "Node" => Api::all_with(client, &resource),
            _ => Api::namespaced_with(client, NAMESPACE, &resource),
        }
    }

    fn slices(&self) -> Vec<EndpointSlice> {
        let stored = self.server.peek_all(&ResourceId::new("discovery.k8s.io", "endpointslices"));
        stored.iter().map(read).collect()
    }
}

fn read<T: serde::de::DeserializeOwned>(object: &impl serde::Serialize) -> T {
    let json = serde_json::to_string(object).expect("objects can be written");
    serde_json::from_str(&json).expect("objects can be read")
}

/// One history in both.
struct Both {
    dice: fastrand::Rng,
    world: World,
    real: Real,
    seen: BTreeMap<String, usize>,
}

impl Both {
    async fn new(seed: u64) -> Self {
        let mut dice = fastrand::Rng::with_seed(seed);
        let config = Config::default().with_max_endpoints_per_slice([2, 100][dice.usize(..2)]).expect("a limit");
        let timing = Timing::with_batch_period([Duration::ZERO, SECOND][dice.usize(..2)]);
        let settings = Settings { config: config.clone(), timing, ..Settings::with_mode(Mode::On) };
        let mut both = Self {
            dice,
            world: World::unready(config, timing),
            real: Real::new(settings, seed),
            seen: BTreeMap::new(),
        };
        both.create("Namespace", NAMESPACE, json!({})).await;
        both.world.serve(true);
        both.real.start();
        tokio::time::sleep(SECOND).await;
        for number in 1..=2 {
            both.node(number).await;
        }
        both
    }

    /// Shows the present state of an object to the controller in the world.
    fn show(&mut self, kind: &str, object: &DynamicObject) {
        match kind {
            "Service" => self.world.set(Object::Service(read(object))),
            "Pod" => self.world.set(Object::Pod(read(object))),
            "Node" => self.world.set(Object::Node(read(object))),
            _ => {}
        }
    }

    async fn exists(&self, kind: &str, name: &str) -> bool {
        self.real.api(kind).get_opt(name).await.expect("memkube answers").is_some()
    }

    async fn create(&mut self, kind: &str, name: &str, content: Value) {
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        json_patch::merge(&mut object, &content);
        let object = serde_json::from_value(object).expect("an object");
        let made = self.real.api(kind).create(&PostParams::default(), &object).await;
        self.show(kind, &made.expect("memkube creates it"));
    }

    async fn patch(&mut self, kind: &str, name: &str, change: Value) {
        let patched = self.real.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(change)).await;
        self.show(kind, &patched.expect("memkube changes it"));
    }

    async fn patch_status(&mut self, kind: &str, name: &str, status: Value) {
        let change = Patch::Merge(json!({"status": status}));
        let patched = self.real.api(kind).patch_status(name, &PatchParams::default(), &change).await;
        self.show(kind, &patched.expect("memkube changes it"));
    }

    /// Deletes an object. A pod that runs on a Node stays as terminating, until it is deleted again without a grace
    /// period.
    async fn delete(&mut self, kind: &str, name: &str, grace_period_seconds: Option<u32>) {
        let options = DeleteParams { grace_period_seconds, ..DeleteParams::default() };
        drop(self.real.api(kind).delete(name, &options).await.expect("memkube deletes it"));
        match self.real.api(kind).get_opt(name).await.expect("memkube answers") {
            Some(left) => self.show(kind, &left),
            None => self.forget(kind, name),
        }
    }

    fn forget(&mut self, kind: &str, name: &str) {
        match kind {
            "Service" => self.world.remove_service(name),
            "Pod" => self.world.remove_pod(name),
            _ => self.world.remove_node(name),
        }
    }

    async fn node(&mut self, number: usize) {
        let name = format!("node-{number}");
        let zone = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": self.of(&["zone-a", "zone-b"])}}});
        if !self.exists("Node", &name).await {
            self.create("Node", &name, zone).await;
            self.patch_status("Node", &name, json!({"allocatable": {"cpu": "2"}})).await;
        } else if number == 2 && self.dice.usize(..4) == 0 {
            self.delete("Node", &name, None).await;
        } else {
            self.patch("Node", &name, zone).await;
        }
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.dice.usize(..choices.len())].clone()
    }

    async fn pod(&mut self) {
        let number = self.dice.usize(..PODS);
        let name = format!("pod{number}");
        let present = self.real.api("Pod").get_opt(&name).await.expect("memkube answers");
        let Some(present) = present else {
            let port = self.of(&[8080, 8081]);
            let pod = json!({
                "metadata": {"labels": {"foo": "bar", "tier": self.of(&["front", "back"])}},
                "spec": {
                    "nodeName": self.of(&["node-1", "node-2"]),
                    "containers": [{"name": "main", "image": "main", "ports": [{"name": "http", "containerPort": port}]}],
                },
            });
            self.create("Pod", &name, pod).await;
            return self.status(number).await;
        };
        if present.metadata.deletion_timestamp.is_some() {
            return self.delete("Pod", &name, Some(0)).await;
        }
        match self.dice.usize(..6) {
            0 => self.delete("Pod", &name, None).await,
            1 => {
                let tier = self.of(&["front", "back"]);
                self.patch("Pod", &name, json!({"metadata": {"labels": {"tier": tier}}})).await;
            }
            _ => self.status(number).await,
        }
    }

    async fn status(&mut self, number: usize) {
        let address = format!("10.1.0.{}", 1 + number + 20 * self.dice.usize(..2));
        let ips = if self.dice.usize(..6) == 0 {
            json!([])
        } else {
            json!([{"ip": address}, {"ip": format!("2001:db8::{number}")}])
        };
        let status = json!({
            "phase": self.of(&["Running", "Running", "Running", "Failed"]),
            "podIPs": ips,
            "conditions": [{"type": "Ready", "status": self.of(&["True", "False"])}],
        });
        self.patch_status("Pod", &format!("pod{number}"), status).await;
    }

    async fn service(&mut self) {
        let name = self.of(&SERVICES);
        if !self.exists("Service", name).await {
            let selector = if name == "all" { json!({"foo": "bar"}) } else { json!({"tier": "front"}) };
            let target = self.of(&[json!(80), json!("http")]);
            let content = json!({"spec": {
                "clusterIP": "None",
                "selector": selector,
                "ports": [{"name": "web", "port": 80, "protocol": "TCP", "targetPort": target}],
            }});
            return self.create("Service", name, content).await;
        }
        match self.dice.usize(..5) {
            0 => self.delete("Service", name, None).await,
            1 => {
                let target = self.of(&[json!(80), json!("http")]);
                let ports = json!([{"name": "web", "port": 80, "protocol": "TCP", "targetPort": target}]);
                self.patch("Service", name, json!({"spec": {"ports": ports}})).await;
            }
            2 => {
                let selector = self.of(&[json!({"foo": null, "tier": "front"}), json!({"foo": "bar", "tier": null})]);
                self.patch("Service", name, json!({"spec": {"selector": selector}})).await;
            }
            3 => {
                let publishes = self.dice.bool();
                self.patch("Service", name, json!({"spec": {"publishNotReadyAddresses": publishes}})).await;
            }
            _ => {
                let team = self.of(&["a", "b"]);
                self.patch("Service", name, json!({"metadata": {"labels": {"team": team}}})).await;
            }
        }
    }

    /// Somebody edits or deletes a slice, in both.
    async fn spoil(&mut self) {
        let slices = self.world.server.slices();
        if slices.is_empty() {
            return;
        }
        let slice = self.of(&slices).metadata.name.to_string();
        let change = match self.dice.usize(..4) {
            0 => json!({"endpoints": []}),
            1 => json!({"ports": []}),
            2 => json!({"metadata": {"labels": {"extra": "x"}}}),
            _ => {
                self.world.delete_slice(&slice);
                return drop(
                    self.real.api("EndpointSlice").delete(&slice, &DeleteParams::default()).await.expect("it exists"),
                );
            }
        };
        self.world.edit_slice(&slice, |slice| json_patch::merge(slice, &change));
        let change = Patch::Merge(change);
        self.real.api("EndpointSlice").patch(&slice, &PatchParams::default(), &change).await.expect("it exists");
    }

    async fn step(&mut self) {
        let trouble = self.of(&TROUBLES);
        *self.real.hook.trouble.lock() = trouble;
        self.world.pause_watch(trouble == Trouble::SeenLate);
        self.world.writes_are(move |_| match trouble {
            Trouble::None | Trouble::SeenLate => Fate::Done,
            Trouble::Failed => Fate::Failed,
            Trouble::Unanswered => Fate::Unanswered,
            Trouble::AnsweredLate => Fate::AnsweredLate,
        });
        let what = match self.dice.usize(..12) {
            0..=5 => {
                self.pod().await;
                "pod"
            }
            6..=8 => {
                self.service().await;
                "service"
            }
            9 => {
                let number = 1 + self.dice.usize(..2);
                self.node(number).await;
                "node"
            }
            10 => {
                self.spoil().await;
                "spoiled"
            }
            _ => {
                self.real.start();
                self.world.restart();
                "restart"
            }
        };
        self.world.collect_garbage(); // as memkube does
        self.world.settle();
        self.world.advance(TROUBLE);
        tokio::time::sleep(TROUBLE).await;
        let what = format!("{what} with {trouble:?}");
        self.compare_slices(&what);
        *self.real.hook.trouble.lock() = Trouble::None;
        self.world.writes_are(|_| Fate::Done);
        self.world.pause_watch(false);
        self.world.deliver_responses();
        self.world.advance(REST);
        tokio::time::sleep(REST).await;
        self.compare_slices(&what);
        self.compare_commits(what);
    }

    fn compare_slices(&self, what: &str) {
        assert_eq!(shown(&self.real.slices()), shown(&self.world.server.slices()), "{what}");
    }

    /// Compares the writes that changed a slice since the last comparison.
    fn compare_commits(&mut self, what: String) {
        let sorted = |mut operations: Vec<Operation>| {
            operations.sort_by_key(|operation| format!("{operation:?}"));
            operations
        };
        let of_real = sorted(std::mem::take(&mut *self.real.hook.commits.lock()));
        assert_eq!(of_real, sorted(self.world.take_done()), "{what}");
        if !of_real.is_empty() {
            *self.seen.entry(what).or_default() += 1;
        }
    }
}

/// Returns the slices as text, without values that differ between two servers: versions and times.
fn shown(slices: &[EndpointSlice]) -> BTreeSet<String> {
    let shown = |slice: &EndpointSlice| {
        let mut slice = serde_json::to_value(slice).expect("slices can be written");
        for field in ["uid", "resourceVersion", "generation", "creationTimestamp", "annotations"] {
            slice["metadata"].as_object_mut().map(|metadata| metadata.remove(field));
        }
        slice.to_string()
    };
    slices.iter().map(shown).collect()
}

#[test]
fn the_simulated_engine_and_the_real_one_write_the_same() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..HISTORIES {
        runtime.block_on(async {
            let mut both = Both::new(seed).await;
            for _ in 0..STEPS {
                both.step().await;
            }
            for (what, count) in &both.seen {
                *seen.entry(what.clone()).or_default() += count;
            }
        });
    }
    for (what, least) in [("pod", 10), ("service", 8), ("spoiled", 1), ("node", 1)] {
        for trouble in TROUBLES {
            let what = format!("{what} with {trouble:?}");
            assert!(seen.get(&what).is_some_and(|count| *count >= least), "{what}: {seen:?}");
        }
    }
}
