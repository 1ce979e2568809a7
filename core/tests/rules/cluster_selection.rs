//! Tests of cluster selection in the importer: which clusters' endpoints kube-proxy gets.

use crate::support::agent::{View as _, applied, removed};
use crate::support::build::{
    Build, BuildHubSlice, BuildImport, BuildRequest, IntoObject, claim, derived_service, distributed_slice, found,
    member_agent, request, resolved, service_import, slice, slice_export,
};
use crate::support::mcs::{app, import, importing};
use crate::support::server::{made, merge};
use crate::support::view::{blocking_reasons, complete};
use crate::support::world::settings;
use fleetnet_core::features::Features;
use fleetnet_core::member::{self, Direction, Key, McsApi, Planner, Settings, Switch};
use fleetnet_core::model::{
    ClusterSelection, EndpointSlice, HubSlice, Kind, McsServiceImport, MergedCluster, MultiClusterService, Object,
    SilentMember, Treatment, Weights,
};
use fleetnet_core::plan::{Action, Write};
use fleetnet_types::{ClusterId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

const SECOND: i64 = 1_000_000;
const CLUSTERS: [&str; 3] = ["near", "region", "far"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Api {
    Fleet,
    Standard,
}

/// Member-1, which imports `work/app`, with its API server. The writes are executed one by one.
struct Importer {
    view: Planner,
    api: Api,
    now: Timestamp,
    due: BTreeSet<Key>,
    again: BTreeMap<Key, Timestamp>,
    /// Writes that were sent, each with the information if an endpoint was ready then.
    in_flight: Vec<(Key, Write, bool)>,
    /// Number of writes of imported slices.
    writes: usize,
}

fn ids(clusters: &[&str]) -> Vec<ClusterId> {
    clusters.iter().map(|cluster| ClusterId::from(*cluster)).collect()
}

fn selection(results: &[&[&str]], weights: &[(&str, i64)]) -> ClusterSelection {
    let weights = weights.iter().map(|(cluster, weight)| ((*cluster).into(), *weight)).collect();
    ClusterSelection { results: results.iter().map(|result| ids(result)).collect(), weights }
}

fn objects(api: Api, selection: &ClusterSelection) -> Vec<Object> {
    let agent = member_agent("member-1", Features::ALL, Features::ALL).object();
    if api == Api::Standard {
        let clusters = CLUSTERS.map(|cluster| MergedCluster { cluster: cluster.into(), ports: None });
        let mut merged =
            crate::support::mcs::merged(fleetnet_core::model::MergedImport { clusters: clusters.into(), ..import() });
        merged.selection = selection.clone();
        merged.meta.finalizers.ours = true;
        return vec![agent, importing().object(), merged.object()];
    }
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&CLUSTERS));
    let mut claim = claim("member-1", &import);
    claim.status = import.status.clone();
    claim.selection = selection.clone();
    let derived = derived_service("work-app", "work/app").object();
    vec![agent, request.object(), import.object(), claim.object(), derived]
}

fn planner(api: Api, objects: impl IntoIterator<Item = Object>, at: Timestamp) -> Planner {
    let mcs_api = if api == Api::Standard { McsApi::LabelledNamespaces } else { McsApi::Off };
    let cluster_selection = Some(member::ClusterSelection::default());
    let mut view = Planner::new(Settings { mcs_api, routing_slices: true, cluster_selection, ..settings(0) });
    complete(&mut view);
    objects.into_iter().for_each(|object| view.observe(applied(object), at, &mut Vec::new()));
    view
}

impl Importer {
    fn new(api: Api, selection: &ClusterSelection) -> Self {
        let now = Timestamp::from_seconds(1_000_000);
        let view = planner(api, objects(api, selection), now);
        let (due, again) = (view.every_key().into_iter().collect(), BTreeMap::new());
        let mut importer = Self { view, api, now, due, again, in_flight: Vec::new(), writes: 0 };
        importer.settles();
        importer
    }

    /// Returns an importer whose clusters have had these endpoints for long.
    fn settled(api: Api, results: &[&[&str]], ready: &[(&str, usize)]) -> Self {
        let mut importer = Self::new(api, &selection(results, &[]));
        ready.iter().for_each(|(cluster, ready)| importer.ready(cluster, *ready));
        importer.settles();
        importer.passes(1_000);
        importer.writes = 0;
        importer
    }

    /// Starts the next process, with the same objects.
    fn restarts(&mut self) {
        assert_eq!(self.in_flight, []);
        self.view = planner(self.api, self.view.objects(), self.now);
        (self.due, self.again) = (self.view.every_key().into_iter().collect(), BTreeMap::new());
        self.settles_without_check();
    }

    fn sees(&mut self, object: Object) {
        let mut requeue = Vec::new();
        self.view.observe(applied(object), self.now, &mut requeue);
        self.due.extend(requeue);
    }

    fn distributed(&self, cluster: &str, number: usize) -> HubSlice {
        let source = slice(&format!("work/app-{number}")).uid(&format!("uid-of-{cluster}-{number}"));
        let distributed = distributed_slice("member-1", &slice_export(cluster, &source)).marked();
        self.view.distributed_slices.get(&distributed.meta.name).cloned().unwrap_or(distributed)
    }

    /// Gives a slice of a cluster this number of ready endpoints.
    fn slice_ready(&mut self, cluster: &str, number: usize, ready: usize) {
        let place = CLUSTERS.iter().position(|it| *it == cluster).expect("one of the clusters");
        let all: Vec<String> = (1..=ready).map(|pod| format!("10.{place}.{number}.{pod}")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let before = self.distributed(cluster, number);
        let (generation, version) = (before.spec.reference.generation + 1, before.meta.resource_version + 1);
        self.sees(Object::EndpointSliceImport(before.with_addresses(&all, generation).version(version)));
    }

    fn ready(&mut self, cluster: &str, ready: usize) {
        self.slice_ready(cluster, 1, ready);
    }

    fn withdraws(&mut self, cluster: &str, number: usize) {
        let mut slice = self.distributed(cluster, number);
        slice.meta.deleting = true;
        slice.meta.resource_version += 1;
        self.sees(Object::EndpointSliceImport(slice));
    }

    fn silent(&mut self, clusters: &[&str], version: u64) {
        let mut agent = member_agent("member-1", Features::ALL, Features::ALL).version(version);
        let silent = |cluster: &&str| SilentMember { cluster: (*cluster).into(), treatment: Treatment::Draining };
        agent.status.silent_members = clusters.iter().map(silent).collect();
        self.sees(agent.object());
    }

    /// Plans a key that is due, and sends its writes. Returns false if none is due.
    fn plans(&mut self) -> bool {
        let is_free = |key: &&Key| !self.in_flight.iter().any(|(busy, ..)| busy == *key);
        let Some(key) = self.due.iter().find(is_free).cloned() else { return false };
        self.due.remove(&key);
        let plan = self.view.decide_and_record(&key, self.now);
        match plan.again {
            Some(again) => drop(self.again.insert(key.clone(), again)),
            None => drop(self.again.remove(&key)),
        }
        for write in plan.writes {
            if let Key::SliceImport(slice) = &key {
                let mut requeue = Vec::new();
                self.view.slice_write_begun(slice, self.now, &mut requeue);
                self.due.extend(requeue);
            }
            self.in_flight.push((key.clone(), write, self.has_ready()));
        }
        true
    }

    /// Executes a write that was sent, and checks that clients lost nothing.
    fn executes(&mut self, index: usize) {
        let (key, write, had_ready) = self.in_flight.remove(index);
        let was_served = !self.bound().is_empty();
        self.writes += usize::from(write.kind() == Kind::EndpointSlice);
        let mut objects = self.view.objects().into_iter();
        let present = objects.find(|object| object.kind() == write.kind() && object.meta().name == write.at);
        let mut requeue = Vec::new();
        let change = match (write.action, present) {
            (Action::Create(desired), None) => {
                let mut object = made(&write.at, &desired);
                object.meta_mut().uid = format!("uid-{}", write.at).into();
                object.meta_mut().resource_version = 1;
                Some(applied(object))
            }
            (Action::Patch { patch, resource_version }, Some(mut object))
                if object.meta().resource_version == resource_version =>
            {
                merge(&mut object, patch);
                object.meta_mut().resource_version += 1;
                let meta = object.meta();
                let is_gone = meta.deleting && meta.finalizers == fleetnet_core::model::Finalizers::default();
                Some(if is_gone {
                    removed(object.kind(), meta.name.clone(), meta.uid.clone())
                } else {
                    applied(object)
                })
            }
            (Action::Delete { .. }, Some(object)) => {
                Some(removed(object.kind(), object.meta().name.clone(), object.meta().uid.clone()))
            }
            _ => None, // a conflict
        };
        change.into_iter().for_each(|change| self.view.observe(change, self.now, &mut requeue));
        if let Key::SliceImport(slice) = &key {
            self.view.slice_write_ended(slice, self.now, &mut requeue);
        }
        self.due.extend(requeue);
        self.due.insert(key);
        if was_served && had_ready {
            self.assert_served();
        }
    }

    /// If the view has a ready endpoint, kube-proxy has one.
    fn assert_served(&self) {
        let slices = self.bound_slices();
        assert!(!self.bound().is_empty() || !self.has_ready(), "no endpoint is bound: {slices:?}");
    }

    fn has_ready(&self) -> bool {
        let mut live = self.view.distributed_slices.iter().filter(|it| !it.meta.deleting);
        live.any(|it| !it.spec.content.endpoints.is_empty())
    }

    fn settles(&mut self) {
        self.settles_without_check();
        self.assert_served();
    }

    fn settles_without_check(&mut self) {
        for _ in 0..10_000 {
            if self.in_flight.is_empty() {
                if !self.plans() {
                    return;
                }
            } else {
                self.executes(0);
            }
        }
        panic!("it never ends: {:?}", self.due);
    }

    /// Lets time pass, without a plan.
    fn waits(&mut self, seconds: i64) {
        self.now = self.now.plus_micros(seconds * SECOND);
        let now = self.now;
        self.due.extend(self.again.extract_if(.., |_, again| *again <= now).map(|(key, _)| key));
    }

    fn passes(&mut self, seconds: i64) {
        let until = self.now.plus_micros(seconds * SECOND);
        while let Some(at) = self.again.values().copied().filter(|at| *at <= until).min() {
            self.now = self.now.max(at);
            let due = self.again.extract_if(.., |_, again| *again <= at).map(|(key, _)| key);
            self.due.extend(due);
            self.settles();
        }
        self.now = until;
    }

    fn bound_slices(&self) -> Vec<&EndpointSlice> {
        self.view.slices.iter().filter(|it| it.imported && it.service.is_some() && !it.meta.deleting).collect()
    }

    /// Returns the number of endpoints of each cluster that kube-proxy has.
    fn bound(&self) -> BTreeMap<&str, usize> {
        let mut bound = BTreeMap::new();
        for endpoint in self.bound_slices().into_iter().flat_map(|it| &it.content.endpoints) {
            let address = endpoint.addresses[0].to_string();
            let place = address.split('.').nth(1).and_then(|part| part.parse::<usize>().ok());
            *bound.entry(CLUSTERS[place.expect("an address of these tests")]).or_default() += 1;
        }
        bound
    }
}

fn counts<const N: usize>(expected: [(&'static str, usize); N]) -> BTreeMap<&'static str, usize> {
    expected.into()
}

const BOTH: [Api; 2] = [Api::Fleet, Api::Standard];

/// Rule CS14: A Service has cluster selectors, so an importer has results: lists of exporting clusters, the best first
/// Then: kube-proxy gets the ready endpoints of the first result that has some. All exporting clusters are the last
/// result. Gateways and DNS servers get all endpoints by the standard API
#[test]
fn the_first_result_with_ready_endpoints_is_bound() {
    let results: [&[&str]; 2] = [&["near"], &["near", "region"]];
    for api in BOTH {
        for (ready, expected) in [
            ([1, 2, 3], counts([("near", 1)])),
            ([0, 2, 3], counts([("region", 2)])),
            ([0, 0, 3], counts([("far", 3)])),
            ([0, 0, 0], counts([])),
        ] {
            let mut importer = Importer::new(api, &selection(&results, &[]));
            CLUSTERS.iter().zip(ready).for_each(|(cluster, ready)| importer.ready(cluster, ready));
            importer.settles();
            importer.passes(1_000);
            assert_eq!(importer.bound(), expected, "{api:?} {ready:?}");
            let standard = importer.view.slices.iter().filter(|it| it.mcs.is_some());
            let of_gateways: usize = standard.map(|it| it.content.endpoints.len()).sum();
            assert_eq!(of_gateways, if api == Api::Standard { ready.iter().sum() } else { 0 });
        }
    }
}

/// Rule CS15: The active result loses its last ready endpoint, its export, or the contact of its clusters with the hub
/// Then: The next result that has ready endpoints is bound at once. The endpoints of the former result stay until then,
/// so that no port is without endpoints. One Service with n slices costs 2 n writes
#[test]
fn a_failover_binds_the_next_result_before_it_unbinds_the_last_one() {
    type Loss = fn(&mut Importer);
    let losses: [(Loss, &str); 4] = [
        (|it| it.ready("near", 0), "no endpoint is ready"),
        (|it| it.withdraws("near", 1), "the export is withdrawn"),
        (|it| it.silent(&["near"], 9), "the cluster is silent"),
        (
            |it| {
                it.ready("near", 0);
                it.withdraws("near", 1);
            },
            "both",
        ),
    ];
    for api in BOTH {
        for (loss, why) in losses {
            let mut importer = Importer::settled(api, &[&["near"]], &[("near", 2), ("far", 3)]);
            assert_eq!(importer.bound(), counts([("near", 2)]));
            loss(&mut importer);
            importer.settles(); // each write is checked
            assert_eq!(importer.bound(), counts([("far", 3)]), "{api:?} {why}");
        }
    }
}

/// Also rule CS15.
#[test]
fn a_switch_of_a_service_costs_two_writes_for_each_slice() {
    for (api, writes_of_standard_slices) in BOTH.into_iter().zip([0, 3]) {
        let mut importer = Importer::new(api, &selection(&[&["near"]], &[]));
        let each = |importer: &mut Importer, cluster: &str, ready: usize| {
            (1..=3).for_each(|number| importer.slice_ready(cluster, number, ready));
        };
        ["near", "far"].iter().for_each(|cluster| each(&mut importer, cluster, 2));
        importer.settles();
        importer.passes(1_000);
        importer.writes = 0;
        each(&mut importer, "near", 0);
        importer.settles();
        assert_eq!(importer.bound(), counts([("far", 6)]));
        assert_eq!(importer.writes - writes_of_standard_slices, 6, "{api:?}");
        importer.writes = 0;
        importer.restarts();
        assert_eq!(importer.writes, 0);
    }
}

/// Rule CS16: The agent restarts
/// Then: What is bound stays bound, without a write. The strength of a better result is unknown then, so it is active
/// once it has not grown for 5 minutes
#[test]
fn a_restart_writes_nothing_and_goes_on() {
    for api in BOTH {
        let mut importer = Importer::settled(api, &[&["near"]], &[("near", 2), ("far", 3)]);
        importer.restarts();
        assert_eq!(importer.writes, 0);
        importer.ready("near", 0);
        importer.settles();
        importer.ready("near", 2);
        importer.settles();
        assert_eq!(importer.bound(), counts([("near", 2), ("far", 3)]));
        let writes = importer.writes;
        importer.restarts();
        assert_eq!(importer.writes, writes);
        importer.passes(299);
        assert_eq!(importer.bound(), counts([("near", 2), ("far", 3)]));
        importer.passes(1);
        assert_eq!(importer.bound(), counts([("near", 2)]), "{api:?}");
    }
}

/// Rule CS20: A port of an imported Service gets another result
/// Then: The member agent emits an Event `ClusterFailover` or `ClusterFailback` on the ServiceImport or the
/// MultiClusterService, and counts it in `fleetnet_cluster_selection_switches_total`. Other selectors are no failover
#[test]
fn failovers_and_failbacks_are_reported_once() {
    for (api, namespace) in BOTH.into_iter().zip(["fleet-system", "work"]) {
        let mut importer = Importer::settled(api, &[&["near"]], &[("near", 3), ("far", 3)]);
        let reported = |importer: &mut Importer| -> Vec<(Direction, Vec<ClusterId>)> {
            importer.settles();
            let switches = importer.view.switches();
            let is_of_app = |it: &Switch| &*it.namespace == namespace && it.service == app() && &*it.port == "http";
            assert!(switches.iter().all(is_of_app), "{switches:?}");
            switches.into_iter().map(|it| (it.direction, it.clusters.into_iter().collect())).collect()
        };
        assert_eq!(reported(&mut importer), []);
        importer.ready("near", 0);
        assert_eq!(reported(&mut importer), [(Direction::Failover, ids(&["far", "near"]))]);
        importer.ready("near", 3);
        assert_eq!(reported(&mut importer), []);
        importer.passes(30);
        assert_eq!(reported(&mut importer), [(Direction::Failback, ids(&["near"]))]);
    }
}

/// Rule CS17: A better result has ready endpoints again
/// Then: Its clusters are bound too. Once it has held two thirds of its former strength for the time of
/// `--failback-after` (30 s), the others are unbound. Each loss within 30 minutes doubles the time, up to 5 minutes
#[test]
fn a_failback_waits_for_two_thirds_of_the_former_strength() {
    for api in BOTH {
        let mut importer = Importer::settled(api, &[&["near"]], &[("near", 3), ("far", 3)]);
        importer.ready("near", 0);
        importer.settles();
        importer.ready("near", 1);
        importer.settles();
        importer.passes(60);
        assert_eq!(importer.bound(), counts([("near", 1), ("far", 3)]));
        importer.ready("near", 2);
        importer.settles();
        importer.passes(29);
        assert_eq!(importer.bound(), counts([("near", 2), ("far", 3)]));
        importer.passes(1);
        assert_eq!(importer.bound(), counts([("near", 2)]), "{api:?}");
    }
}

/// Rule CS19: The exports of a Service have weights, or the importer's user declares weights (annotation
/// `networking.fleet.azure.com/weights`), which win
/// Then: kube-proxy gets so many endpoints of each chosen cluster that each gets its share of the connections, and at
/// least one of each cluster whose weight is not 0. A cluster with weight 0 gets none, even if no other cluster has
/// endpoints. Of a cluster with too many endpoints, each importer takes others. If the annotation is malformed, the
/// weights stay as they are
#[test]
fn weights_split_the_endpoints() {
    type Case = &'static [(&'static str, i64)];
    let table: [(Case, [usize; 3], [usize; 3]); 9] = [
        (&[("near", 80), ("region", 20), ("far", 0)], [20, 20, 20], [20, 5, 0]),
        (&[("near", 80), ("region", 20), ("far", 0)], [4, 20, 20], [4, 1, 0]),
        (&[("near", 80), ("region", 20), ("far", 0)], [20, 2, 20], [8, 2, 0]),
        (&[("near", 50), ("region", 50), ("far", 0)], [20, 3, 0], [3, 3, 0]),
        (&[("near", 999), ("region", 1), ("far", 0)], [20, 20, 0], [20, 1, 0]),
        (&[("near", 10)], [20, 20, 0], [20, 2, 0]),
        (&[("near", 0), ("region", 0)], [20, 20, 0], [0, 0, 0]),
        (&[("near", 0)], [20, 1, 1], [0, 1, 1]),
        (&[("near", 1), ("region", 1), ("far", 1)], [3, 2, 7], [2, 2, 2]),
    ];
    for api in BOTH {
        for (weights, ready, expected) in table {
            let mut importer = Importer::new(api, &selection(&[], weights));
            CLUSTERS.iter().zip(ready).for_each(|(cluster, ready)| importer.ready(cluster, ready));
            importer.settles_without_check();
            let bound = CLUSTERS.map(|cluster| importer.bound().get(cluster).copied().unwrap_or_default());
            assert_eq!(bound, expected, "{api:?} {weights:?} {ready:?}");
            importer.writes = 0;
            importer.restarts();
            assert_eq!(importer.writes, 0);
        }
    }
}

/// Also rule CS19.
#[test]
fn malformed_weights_stay_as_they_are_and_are_reported() {
    for (api, kind) in BOTH.into_iter().zip(["MultiClusterService", "ServiceImport"]) {
        let mut importer = Importer::new(api, &selection(&[], &[]));
        CLUSTERS.iter().for_each(|cluster| importer.ready(cluster, 4));
        importer.settles();
        let ranked = |importer: &mut Importer, weights: &Weights| {
            let object = importer.view.objects().into_iter().find_map(|object| match object {
                Object::MultiClusterService(it) if api == Api::Fleet => {
                    Some(Object::MultiClusterService(MultiClusterService { weights: weights.clone(), ..it }))
                }
                Object::McsServiceImport(it) if api == Api::Standard => {
                    Some(Object::McsServiceImport(McsServiceImport { weights: weights.clone(), ..it }))
                }
                _ => None,
            });
            let mut object = object.expect("the Service is imported");
            object.meta_mut().resource_version += 1;
            importer.sees(object);
            importer.settles_without_check();
        };
        ranked(&mut importer, &Ok([("near".into(), 1), ("region".into(), 1), ("far".into(), 0)].into()));
        let split = counts([("near", 4), ("region", 4)]);
        assert_eq!(importer.bound(), split, "{api:?}");
        ranked(&mut importer, &Err("it is no JSON".into()));
        assert_eq!(importer.bound(), split, "{api:?}");
        let slice = importer.bound_slices()[0].meta.name.clone();
        let plan = importer.view.plan(&Key::SliceImport(slice), importer.now);
        let message = format!(
            "the annotation networking.fleet.azure.com/weights of {kind} work/app in cluster member-1 is malformed: it is no JSON. The \
             weights of the clusters stay as they are. Correct the annotation"
        );
        assert_eq!(blocking_reasons(&plan), [("WeightsInvalid", &*message)]);
        ranked(&mut importer, &Ok([].into()));
        assert_eq!(importer.bound(), counts([("near", 4), ("region", 4), ("far", 4)]));
    }
}

/// Rule CS18: A result loses its last ready endpoint while the write that unbinds the others is on its way
/// Then: The endpoints of the result stay until the others are bound again
#[test]
fn an_endpoint_that_is_being_unbound_does_not_count_as_bound() {
    for (api, order) in BOTH.into_iter().zip([0, 1]) {
        let mut importer = Importer::settled(api, &[&["near"]], &[("near", 3), ("far", 3)]);
        importer.ready("near", 0);
        importer.settles();
        importer.ready("near", 3);
        importer.settles();
        importer.waits(30);
        while importer.plans() {}
        assert_eq!(importer.in_flight.len(), 1, "the slice of far is emptied");
        importer.ready("near", 0);
        while importer.plans() {}
        while !importer.in_flight.is_empty() {
            importer.executes(order.min(importer.in_flight.len() - 1));
        }
        importer.settles();
        assert_eq!(importer.bound(), counts([("far", 3)]), "{api:?}");
    }
}

/// Also rule CS15.
#[test]
fn in_any_order_of_writes_no_port_loses_its_last_endpoint() {
    let step = (0..3_usize, 1..3_usize, 0..4_usize, 0..40_i64, 0..12_u32, 0..8_usize);
    let histories = proptest::collection::vec(step, 1..60);
    property::for_any(property::cases(200), 10, &histories, |steps| {
        let api = BOTH[steps.len() % 2];
        let mut importer = Importer::settled(api, &[&["near"], &["region"]], &[("near", 2), ("region", 2), ("far", 2)]);
        let (mut failovers, mut version) = (0, 10);
        for (place, number, ready, seconds, what, order) in steps {
            let cluster = CLUSTERS[place];
            version += 1;
            match what {
                0 => importer.silent(&[cluster], version),
                1 => importer.silent(&[], version),
                2..4 => importer.waits(seconds * 10),
                _ => importer.slice_ready(cluster, number, ready),
            }
            for turn in 0..order {
                if turn % 2 == 0 || !importer.plans() {
                    let number = importer.in_flight.len();
                    if number > 0 {
                        importer.executes((turn * 7 + order) % number);
                    }
                }
            }
            let bound = importer.bound();
            failovers += usize::from(!bound.is_empty() && !bound.contains_key("near"));
        }
        importer.settles();
        importer.passes(1_000);
        [(failovers > 0, "failover"), (api == Api::Standard, "standard API")]
    });
}
