//! Tests of the EndpointSlice controller with random histories of a cluster. Pods, Nodes and Services are created,
//! changed and deleted. Writes fail, are delayed or lose their response. Watches lag, the clock steps, the process
//! restarts, the controller becomes active and inactive, and a user edits slices.
//!
//! At the end of a history, all endpoints are published correctly, and the controller has nothing left to write. During
//! a history, no own write removes an endpoint that should exist, and no own write counts as a foreign write.

use super::builders::{Build as _, BuildPod as _, BuildService as _, NAMESPACE, named_port, node, pod, port, service};
use super::oracle;
use super::world::{Cluster, Fate, Guard, MILLISECOND, SECOND, World, slices};
use crate::{Operation, Timing};
use endpointslice::Config;
use endpointslice::model::ClusterIpFamily::{IPv4, IPv6};
use endpointslice::model::{Phase, Pod, Service};
use endpointslice::names::{LABEL_MANAGED_BY, LABEL_SERVICE_NAME};
use fleetnet_runtime::limits::REJECTED_RETRY;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

const PODS: usize = 9;
const SERVICES: [&str; 3] = ["web", "all", "auto"];

/// Seeded random numbers.
#[derive(Clone)]
struct Dice(fastrand::Rng);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound)
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

/// Random history in progress.
struct History {
    world: World,
    dice: Dice,
    /// True if a user also edits slices in this history.
    is_spoiled: bool,
    services_made: usize,
    /// Writes of the present process whose responses arrived.
    answered: Vec<Operation>,
    seen: BTreeMap<&'static str, usize>,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(fastrand::Rng::with_seed(seed));
        let config = Config::default().with_max_endpoints_per_slice(1 + dice.below(4)).expect("a limit of a test");
        let batch_period = dice.of(&[Duration::ZERO, SECOND]);
        let pace = dice.of(&[Duration::ZERO, MILLISECOND * 15]);
        let mut world = World::with(config, Timing { batch_period, pace });
        world.set(node("node-2", "zone-b", "2"));
        let (cluster, server) = (Arc::clone(&world.cluster), world.server.clone());
        world.guard(Guard {
            wanted: Box::new(move || identities(&cluster.lock())),
            shown: Box::new(move || oracle::shown_identities(&slices(&server))),
        });
        let is_spoiled = dice.one_in(2);
        let mut history =
            Self { world, dice, is_spoiled, services_made: 0, answered: Vec::new(), seen: BTreeMap::new() };
        for name in SERVICES {
            history.make_service(name);
        }
        for number in 0..PODS {
            let pod = history.some_pod(number);
            history.world.set(pod);
        }
        history
    }

    fn services(&self) -> Vec<Service> {
        self.world.cluster.lock().services.values().cloned().collect()
    }

    fn service(&self, name: &str) -> Option<Service> {
        self.world.cluster.lock().services.get(&(NAMESPACE.to_owned(), name.to_owned())).cloned()
    }

    fn pod(&self, name: &str) -> Option<Pod> {
        self.world.cluster.lock().pods.get(&(NAMESPACE.to_owned(), name.to_owned())).cloned()
    }

    /// Notes the writes since the last call, and those of them that this process knows to be done.
    fn note_done(&mut self) {
        for done in self.world.done() {
            self.answered.extend(done.is_answered.then_some(done.operation));
            self.note(match done.operation {
                Operation::Create => "creates",
                Operation::Update => "updates",
                Operation::Delete => "deletes",
            });
        }
    }

    fn note(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn step(&mut self) {
        match self.dice.below(20) {
            0..=6 => {
                let number = self.dice.below(PODS);
                let pod = self.some_pod(number);
                self.world.set(pod);
            }
            7 => {
                let number = self.dice.below(PODS);
                self.world.remove_pod(&format!("pod{number}"));
            }
            8 | 9 => self.change_service(),
            10 => self.change_nodes(),
            11 | 12 => self.change_fates(),
            13 => self.world.deliver_responses(),
            14 => {
                let is_paused = self.dice.one_in(2);
                self.world.pause_watch(is_paused);
            }
            15 => self.restart(),
            16 if self.is_spoiled => self.spoil(),
            17 => self.world.collect_garbage(),
            _ => self.pass_time(),
        }
        if !self.dice.one_in(3) {
            self.world.settle();
        }
        let foreign_change = self.world.take_foreign_change();
        assert!(self.is_spoiled || foreign_change.is_none(), "an own write was taken for another's");
    }

    fn some_pod(&mut self, number: usize) -> Pod {
        let labels: &[&[(&str, &str)]] =
            &[&[("foo", "bar")], &[("foo", "bar"), ("tier", "front")], &[("tier", "front")], &[("foo", "other")]];
        let mut pod = pod(number);
        pod.metadata.labels = self.dice.of(labels).iter().copied().collect();
        let mut pod = self.incarnate(pod);
        if self.dice.one_in(3) {
            pod = pod.not_ready();
        }
        if self.dice.one_in(6) {
            pod = pod.terminating();
        }
        let address = format!("10.1.0.{}", 1 + number + 20 * self.dice.below(2));
        let second = format!("2001:db8::{}", 1 + number);
        match self.dice.below(10) {
            0 => pod.with_ips(&[]),
            1 => pod.with_ips(&["127.0.0.1", "<nil>"]),
            2 => pod.with_ips(&[&second, "fe80::1"]),
            3 => pod.with_ips(&["10.1.0.99"]),
            4 => pod.with_ips(&[&address]).in_phase(self.dice.of(&[Phase::Failed, Phase::Succeeded])),
            5 => pod.with_ips(&[&address]).changed_at("2026-04-01T00:00:00Z"),
            _ => pod.with_ips(&[&address, &second]),
        }
    }

    /// Returns the pod with the UID, Node and containers of the existing pod of this name. A new pod gets random
    /// values.
    fn incarnate(&mut self, mut pod: Pod) -> Pod {
        if let Some(known) = self.pod(&pod.metadata.name) {
            (pod.metadata.uid, pod.spec) = (known.metadata.uid, known.spec);
            return pod;
        }
        let pod = pod.on_node(self.dice.of(&["node-1", "node-2", "node-2", "node-3"])).opening("other", 9000);
        let pod = if self.dice.one_in(2) { pod.opening("http", self.dice.of(&[8080, 8081])) } else { pod };
        pod.with_uid(self.dice.of(&["one", "another"]))
    }

    fn make_service(&mut self, name: &'static str) {
        self.services_made += 1;
        let uid = format!("service-{}", self.services_made);
        let service = self.some_service(name).with_uid(&uid);
        self.world.set(service);
    }

    fn some_service(&mut self, name: &str) -> Service {
        let families = self.dice.of(&[&[IPv4][..], &[IPv6], &[IPv4, IPv6], &[IPv6, IPv4]]);
        let ports = self.dice.of(&[
            vec![port("web", 80)],
            vec![port("web", 81)],
            vec![named_port("web", "http")],
            vec![named_port("web", "http"), port("more", 82)],
            vec![],
        ]);
        let mut service = service(name).of_families(families).serving(ports);
        service = match name {
            "all" => service.selecting([("tier", "front")]),
            "auto" => service.annotated("service.kubernetes.io/topology-mode", "Auto"),
            _ => service,
        };
        match self.dice.below(12) {
            0 => service.headless(),
            1 => service.external_name(),
            2 => service.selecting([]),
            3 => service.publishing_not_ready(),
            4 => service.labelled([("team", "a")]),
            5 => service.selecting([("foo", "other")]),
            6 => service.preferring("PreferSameZone"),
            7 => service.preferring("PreferSameNode"),
            _ => service,
        }
    }

    fn change_service(&mut self) {
        let name = self.dice.of(&SERVICES);
        let known = self.service(name);
        match (known, self.dice.below(8)) {
            (None, _) => self.make_service(name),
            (Some(_), 0) => self.world.remove_service(name),
            (Some(_), 1) => {
                self.world.remove_service(name);
                self.make_service(name);
            }
            (Some(known), 2) => self.world.set(known.terminating()),
            (Some(known), _) => {
                let changed = self.some_service(name).with_uid(&known.metadata.uid);
                let is_ending = known.metadata.is_terminating();
                self.world.set(if is_ending { changed.terminating() } else { changed });
            }
        }
    }

    fn change_nodes(&mut self) {
        match self.dice.below(5) {
            0 => self.world.remove_node("node-2"),
            1 => self.world.set(node("node-3", "zone-c", "1")),
            2 => self.world.remove_node("node-3"),
            3 => self.world.set(node("node-1", self.dice.of(&["", "zone-a"]), "4")),
            _ => self.world.set(node("node-2", self.dice.of(&["zone-b", "zone-a"]), "2")),
        }
    }

    fn change_fates(&mut self) {
        let mut dice = self.dice.clone();
        let (fine, bad) = ([Fate::Done; 3], [Fate::Failed, Fate::Unanswered, Fate::Slow, Fate::Rejected]);
        let mostly = self.dice.of(&[&fine[..], &bad, &[Fate::AnsweredLate]].concat());
        self.note(match mostly {
            Fate::Done => "done",
            Fate::Failed => "failed",
            Fate::Unanswered => "unanswered",
            Fate::Slow => "slow",
            Fate::Rejected => "rejected",
            Fate::AnsweredLate => "answered late",
        });
        self.world.writes_are(move |_| if dice.one_in(3) { Fate::Done } else { mostly });
    }

    fn restart(&mut self) {
        match self.dice.below(4) {
            0 => {
                self.note("restarts");
                self.note_done();
                self.world.restart();
                self.answered.clear();
                self.world.take_foreign_change();
            }
            1 => self.world.serve(true),
            _ => {
                self.note("handovers");
                self.world.serve(false);
                self.world.settle();
                if self.dice.one_in(2) {
                    self.world.serve(true);
                }
            }
        }
    }

    fn pass_time(&mut self) {
        if self.dice.one_in(6) {
            self.note("clock steps");
            self.world.step_clock(-3_000);
        }
        let duration = MILLISECOND * u32::try_from(self.dice.below(2_000)).expect("it is small");
        self.world.advance(duration);
    }

    fn spoil(&mut self) {
        let slices = self.world.slices();
        if slices.is_empty() {
            return;
        }
        self.note("spoiled");
        let slice = self.dice.of(&slices);
        let (kind, other) = (self.dice.below(9), self.dice.of(&SERVICES));
        if kind == 0 {
            self.world.delete_slice(&slice.metadata.name);
        } else {
            self.world.edit_slice(&slice.metadata.name, |slice| match kind {
                1 => slice["endpoints"] = json!([]),
                2 => slice["ports"] = json!([]),
                3 => slice["metadata"]["labels"]["extra"] = json!("x"),
                4 => slice["metadata"]["labels"][LABEL_MANAGED_BY] = json!("me"),
                5 => slice["metadata"]["labels"][LABEL_SERVICE_NAME] = json!(other),
                6 => slice["metadata"]["ownerReferences"] = json!([]),
                7 => slice["metadata"]["finalizers"] = json!(["example.com/held"]),
                _ => double(slice),
            });
        }
        self.world.forget_wanted();
    }

    /// Ends the history: removes all faults, and waits until the controller has nothing left to write.
    fn end(&mut self) {
        let ending: Vec<_> = self.services().into_iter().filter(|service| service.metadata.is_terminating()).collect();
        for service in ending {
            self.world.remove_service(&service.metadata.name);
        }
        self.world.writes_are(|_| Fate::Done);
        self.world.pause_watch(false);
        self.world.deliver_responses();
        self.world.collect_garbage();
        self.world.serve(true);
        self.world.advance(REJECTED_RETRY + SECOND * 100);
        self.note_done();
        self.check();
        self.compare_metrics();
        self.world.advance(SECOND * 60);
        assert_eq!(self.world.take_done(), [], "it is settled");
        self.world.restart();
        self.world.advance(SECOND * 5);
        assert_eq!(self.world.take_done(), [], "and a new start finds nothing to do");
    }

    fn check(&mut self) {
        let cluster = self.world.cluster.lock().clone();
        for service in cluster.services.values().filter(|service| oracle::is_served(service)) {
            let slices = self.world.slices_of(&service.metadata.name);
            assert_eq!(oracle::shown_endpoints(&slices), oracle::endpoints(&cluster, service));
            assert!(slices.iter().all(|slice| slice.endpoints.len() <= cluster.max_endpoints_per_slice));
            let families: BTreeSet<_> = slices.iter().map(|slice| slice.address_type.as_str()).collect();
            assert_eq!(families, oracle::families(service));
            let owned = |slice: &endpointslice::model::EndpointSlice| {
                slice.metadata.owner_references.iter().any(|owner| owner.uid == service.metadata.uid)
            };
            assert!(slices.iter().all(owned));
            if slices.len() > 1 {
                self.note("several slices");
            }
        }
    }
}

impl History {
    /// Checks that the gauges match the cluster, and that each write that was answered was counted once.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of a test")]
    fn compare_metrics(&self) {
        let (world, cluster) = (&self.world, self.world.cluster.lock());
        let served: Vec<_> = cluster.services.values().filter(|service| oracle::is_served(service)).collect();
        let endpoints: usize = served.iter().map(|service| oracle::endpoints(&cluster, service).len()).sum();
        let slices: usize = served.iter().map(|service| world.slices_of(&service.metadata.name).len()).sum();
        let fewest: usize = served.iter().map(|service| oracle::fewest_slices(&cluster, service)).sum();
        let mut expected = BTreeMap::from([
            ("endpoints_desired".to_owned(), endpoints),
            ("num_endpoint_slices".to_owned(), slices),
            ("desired_endpoint_slices".to_owned(), fewest),
        ]);
        for value in ["PreferSameZone", "PreferSameNode"] {
            let follows = |service: &&Service| {
                let metadata = &service.metadata;
                let is_auto = metadata.annotations.get("service.kubernetes.io/topology-mode").is_some();
                service.spec.traffic_distribution.as_deref() == Some(value) && !is_auto
            };
            let name = format!("services_count_by_traffic_distribution{{traffic_distribution=\"{value}\"}}");
            expected.insert(name, cluster.services.values().filter(follows).count());
        }
        let found: BTreeMap<_, _> = expected.keys().map(|name| (name.clone(), count(world, name))).collect();
        assert_eq!(found, expected);
        for (operation, name) in
            [(Operation::Create, "create"), (Operation::Update, "update"), (Operation::Delete, "delete")]
        {
            let answered = self.answered.iter().filter(|write| **write == operation).count();
            let counted = count(world, &format!("changes{{operation=\"{name}\"}}"));
            // After a lost response, the engine may find out that the write is done.
            assert!(answered <= counted, "{name}: {answered}, but {counted}");
        }
        assert_eq!(world.metric("syncs{result=\"stale\"}"), None);
    }
}

/// Returns the value of a counter; 0 if the counter has no series yet.
fn count(world: &World, metric: &str) -> usize {
    let value = world.metric(metric).unwrap_or_default().to_string();
    value.parse().unwrap_or_else(|error| panic!("{metric} is {value}: {error}"))
}

fn double(slice: &mut serde_json::Value) {
    let Some(endpoints) = slice["endpoints"].as_array_mut() else { return };
    endpoints.extend(endpoints.first().cloned());
}

/// Returns the endpoints that all Services should have now. Omits Services that are being deleted, because the
/// controller creates no slices for them.
fn identities(cluster: &Cluster) -> BTreeSet<String> {
    let staying = cluster.services.values().filter(|service| !service.metadata.is_terminating());
    staying.flat_map(|service| oracle::identities(cluster, service)).collect()
}

/// Runs the histories of these seeds. Returns how often each kind of step occurred.
fn run(seeds: std::ops::Range<u64>) -> BTreeMap<&'static str, usize> {
    let mut seen = BTreeMap::new();
    for seed in seeds {
        let ended = std::panic::catch_unwind(|| {
            let mut history = History::new(seed);
            for step in 0..40 {
                history.step();
                if step % 8 == 7 {
                    history.world.pause_watch(false);
                    history.world.deliver_responses();
                }
            }
            history.end();
            history.seen
        });
        let Ok(history) = ended else { panic!("the history of seed {seed}") };
        for (what, count) in history {
            *seen.entry(what).or_default() += count;
        }
    }
    seen
}

/// Number of histories of each of two threads, unless the environment has another number.
const HISTORIES: u64 = 100;

/// `FLEETNET_SLICE_HISTORIES=500` plays 1,000 histories, for a longer search.
fn histories() -> u64 {
    std::env::var("FLEETNET_SLICE_HISTORIES").map_or(HISTORIES, |number| number.parse().expect("a number"))
}

#[test]
fn whatever_happens_everything_is_published_and_nothing_is_lost_on_the_way() {
    let threads: Vec<_> =
        (0..2).map(|half| std::thread::spawn(move || run(half * histories()..(half + 1) * histories()))).collect();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for thread in threads {
        for (what, count) in thread.join().expect("every history ends well") {
            *seen.entry(what).or_default() += count;
        }
    }
    println!("{seen:?}");
    for (what, least) in [
        ("creates", 1_000),
        ("updates", 1_000),
        ("deletes", 300),
        ("failed", 60),
        ("unanswered", 60),
        ("slow", 60),
        ("rejected", 60),
        ("answered late", 60),
        ("restarts", 60),
        ("handovers", 80),
        ("clock steps", 80),
        ("spoiled", 100),
        ("several slices", 120),
    ] {
        assert!(seen.get(what).is_some_and(|count| *count >= least), "{what}: {seen:?}");
    }
}
