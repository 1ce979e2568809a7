//! Tests of random histories in which agents announce other features, or stop announcing features. Meanwhile users make
//! a Service headless and back, change the type of imports, and create and delete slices, and agents crash.
//!
//! At the end every importer has everything that exporter, hub and importer all support. Agents write for a peer only
//! what the peer announced, and a restart writes nothing. The test also counts which situations its random cases cover,
//! and fails if one of them is rare.

use crate::fleet::{derived, request_of};
use crate::support::build::{
    BuildRequest, IntoObject, content, in_hub_of, member_agent, named, request, service, service_export, slice,
};
use crate::support::property::cases;
use crate::support::world::{Who, World, cluster_id};
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::model::{
    AddressType, Announcement, ConsumerType, Endpoint, EndpointSlice, Kind, Object, Service, ServiceExport,
    SessionAffinity, SliceContent,
};
use fleetnet_types::WatchState;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};
use proptest::test_runner::TestRunner;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

const STICKY: SessionAffinity = SessionAffinity::ClientIp { timeout_seconds: 60 };
/// Number of members. The first member exports, the others import.
const MEMBERS: usize = 3;
const IMPORTERS: std::ops::Range<usize> = 1..MEMBERS;
/// Time in microseconds after which no agent waits any more.
const LONG_MICROS: i64 = 600_000_000;

#[derive(Clone, Debug)]
enum Step {
    /// The hub agent announces these features to a member. `None`: a Go hub agent, which announces nothing.
    HubSays(usize, Option<Features>),
    MemberSays(usize, Option<Features>),
    /// The MemberAgent of a member is deleted. The next announcement creates it again.
    Vanishes(usize),
    Headless(bool),
    Consumer(usize, ConsumerType),
    /// The exporter's slice with this index is created (`true`) or deleted (`false`).
    Slice(usize, bool),
    Crash(usize),
    Pass(i64),
}

fn any_features() -> impl Strategy<Value = Features> {
    let some = prop::collection::btree_set(prop::sample::select(Feature::ALL.to_vec()), 0..6);
    prop_oneof![Just(Features::ALL), Just(Features::NONE), some.prop_map(|set| set.into_iter().collect())]
}

fn a_step() -> impl Strategy<Value = Step> {
    let word = || option::weighted(0.9, any_features());
    let consumer = prop_oneof![3 => Just(ConsumerType::LoadBalancer), 1 => Just(ConsumerType::ClusterIp)];
    prop_oneof![
        3 => (0..MEMBERS, word()).prop_map(|(member, word)| Step::HubSays(member, word)),
        4 => (0..MEMBERS, word()).prop_map(|(member, word)| Step::MemberSays(member, word)),
        2 => (0..MEMBERS).prop_map(Step::Vanishes),
        2 => any::<bool>().prop_map(Step::Headless),
        3 => (IMPORTERS, consumer).prop_map(|(member, consumer)| Step::Consumer(member, consumer)),
        2 => (0..SLICES, any::<bool>()).prop_map(|(slice, stands)| Step::Slice(slice, stands)),
        2 => (0..=MEMBERS).prop_map(Step::Crash),
        2 => prop_oneof![Just(30_000_000), Just(90_000_000)].prop_map(Step::Pass),
    ]
}

const SLICES: usize = 3;

/// Returns the content of a slice that uses every feature. Slices 0 and 2 have IPv4 addresses, slice 1 has IPv6
/// addresses.
fn rich(index: usize) -> SliceContent {
    let is_six = index == 1;
    let endpoint = |last: usize, zone: Option<&str>| {
        let address = if is_six { format!("fd00::{last:x}") } else { format!("10.0.0.{last}") };
        let plain = content(&[&*address]).endpoints.remove(0);
        Endpoint { hostname: Some(format!("db-{last}").into()), zone: zone.map(Into::into), ..plain }
    };
    let first = index * 10;
    SliceContent {
        address_type: if is_six { AddressType::IPv6 } else { AddressType::IPv4 },
        endpoints: vec![endpoint(first + 1, Some("z-1")), endpoint(first + 2, Some("z-2"))],
        draining: vec![endpoint(first + 7, None)],
        ..content(&[])
    }
}

/// Returns the part of a slice for an agent that supports these features; `None` if the agent gets no slice.
fn reduced_for(content: &SliceContent, known_features: &dyn Fn(Feature) -> bool) -> Option<SliceContent> {
    if content.address_type == AddressType::IPv6 && !known_features(Feature::IPv6) {
        return None;
    }
    let mut reduced = content.clone();
    if !known_features(Feature::DrainingEndpoints) {
        reduced.draining.clear();
    }
    if !known_features(Feature::EndpointDetails) {
        for endpoint in reduced.endpoints.iter_mut().chain(&mut reduced.draining) {
            (endpoint.hostname, endpoint.zone) = (None, None);
        }
    }
    Some(reduced)
}

/// Fleet in which member-1 exports `work/app` and the other members import it, with the latest announcements of all
/// agents.
struct Fleet {
    world: World,
    hub: [Option<Features>; MEMBERS],
    members: [Option<Features>; MEMBERS],
    session_affinity: SessionAffinity,
    headless: bool,
    slices: [bool; SLICES],
}

fn sorted(mut all: Vec<SliceContent>) -> Vec<SliceContent> {
    all.sort_by_key(|content| format!("{content:?}"));
    all
}

impl Fleet {
    fn new(seed: u64) -> Self {
        let mut fleet = Self {
            world: World::new(MEMBERS).in_any_order(seed),
            hub: [Some(Features::ALL); MEMBERS],
            members: [Some(Features::ALL); MEMBERS],
            // In half of the cases the Service has no session affinity. Then a change of features does not change the
            // status of a claim. So the agents must update the slices because of the features alone.
            session_affinity: if seed.is_multiple_of(2) { STICKY } else { SessionAffinity::None },
            headless: false,
            slices: [false; SLICES],
        };
        (0..MEMBERS).for_each(|member| fleet.say(member));
        fleet.make_service();
        let export = ServiceExport { headless: true, ..service_export("work/app") };
        fleet.world.create(Who::Member(0), export.object());
        (0..2).for_each(|index| fleet.set_slice(index, true));
        for importer in IMPORTERS {
            // In a third of the cases all members first request LoadBalancer. Then a member without the exclusive claim
            // waits without an import. A member that first requests ClusterIP keeps its import when it requests
            // LoadBalancer later.
            let consumer = if seed.is_multiple_of(3) { ConsumerType::LoadBalancer } else { ConsumerType::ClusterIp };
            let request = request("work/app").consumed_as(consumer);
            fleet.world.create(Who::Member(importer), request.object());
        }
        fleet
    }

    /// Writes the current announcements of hub and member to the member's MemberAgent, and creates the MemberAgent if
    /// it is missing.
    fn say(&mut self, member: usize) {
        let word = |announced: Option<Features>| {
            announced.map_or_else(Announcement::default, |it| Announcement::new("1.2.3", it))
        };
        let (announced, answered) = (word(self.members[member]), word(self.hub[member]));
        let cluster = cluster_id(member);
        self.world.create(Who::Hub, member_agent(&cluster, Features::NONE, Features::NONE).object());
        self.world.edit(Who::Hub, Kind::MemberAgent, &in_hub_of(&cluster, &cluster), |object| {
            let Object::MemberAgent(agent) = object else { return };
            (agent.member, agent.status.announcement) = (announced, answered);
        });
    }

    /// Renews the MemberAgents that exist, as the member agents do every 10 s. The hub agent counts gained features at
    /// a renewal.
    fn renew(&mut self) {
        let now = self.world.now;
        for member in 0..MEMBERS {
            let cluster = cluster_id(member);
            self.world.edit(Who::Hub, Kind::MemberAgent, &in_hub_of(&cluster, &cluster), |object| {
                let Object::MemberAgent(agent) = object else { return };
                agent.renewed = Some(now);
            });
        }
    }

    fn make_service(&mut self) {
        let (session_affinity, headless) = (self.session_affinity, self.headless);
        let app = Service { session_affinity, headless, ..service("work/app") };
        self.world.create(Who::Member(0), app.object());
    }

    fn set_slice(&mut self, index: usize, stands: bool) {
        if std::mem::replace(&mut self.slices[index], stands) == stands {
            return;
        }
        let slice = EndpointSlice { content: rich(index), ..slice(&format!("work/app-{index}")) };
        if stands {
            self.world.create(Who::Member(0), slice.object());
        } else {
            self.world.delete(Who::Member(0), Kind::EndpointSlice, &slice.meta.name);
        }
    }

    fn happen(&mut self, step: &Step) {
        match *step {
            Step::HubSays(member, word) => {
                self.hub[member] = word;
                self.say(member);
            }
            Step::MemberSays(member, word) => {
                self.members[member] = word;
                self.say(member);
            }
            Step::Vanishes(member) => {
                let cluster = cluster_id(member);
                (self.hub[member], self.members[member]) = (None, None);
                self.world.delete(Who::Hub, Kind::MemberAgent, &in_hub_of(&cluster, &cluster));
            }
            // `clusterIP: None` is immutable, so the user deletes the Service and creates it again.
            Step::Headless(headless) if headless != self.headless => {
                self.headless = headless;
                self.world.delete(Who::Member(0), Kind::Service, &named("work/app"));
                self.make_service();
            }
            Step::Headless(_) => {}
            Step::Consumer(member, consumer) => {
                self.world.edit(Who::Member(member), Kind::MultiClusterService, &named("work/app"), |object| {
                    let Object::MultiClusterService(request) = object else { return };
                    request.consumer_type = consumer;
                });
            }
            Step::Slice(index, stands) => self.set_slice(index, stands),
            Step::Crash(who) => {
                let who = self.world.everyone()[who];
                self.world.restart(who);
            }
            Step::Pass(micros) => drop(self.world.run_for(micros)),
        }
    }

    fn hub_understands(&self, feature: Feature) -> bool {
        self.hub[0].is_some_and(|hub| hub.has(feature))
    }

    fn member_understands(&self, member: usize, feature: Feature) -> bool {
        self.members[member].is_some_and(|announced| announced.has(feature))
    }

    /// True if both the hub and the importer support the feature.
    fn known_features(&self, importer: usize, feature: Feature) -> bool {
        self.hub_understands(feature) && self.member_understands(importer, feature)
    }

    fn imported(&self, importer: usize) -> Vec<SliceContent> {
        let slice = |object: &Object| match object {
            Object::EndpointSlice(slice) if slice.imported => Some(slice.content.clone()),
            _ => None,
        };
        sorted(self.world.members[importer].cluster.list(Kind::EndpointSlice).filter_map(slice).collect())
    }

    /// Asserts that an importer has every part of the export that both hub and importer support. Returns the names of
    /// the situations that this importer shows.
    fn assert_imported(&self, importer: usize) -> BTreeSet<&'static str> {
        let request = request_of(&self.world, importer, "work/app").expect("it is there");
        let derived = request.derived_label.as_ref().and_then(|name| derived(&self.world, importer, name));
        let may_import = !self.headless || self.known_features(importer, Feature::Headless);
        assert!(may_import || derived.is_none(), "{importer}: nothing is derived of what is not understood");
        let waits = request.consumer_type == ConsumerType::LoadBalancer && derived.is_none();
        let Some(derived) = derived else {
            assert!(!may_import || waits, "{importer}: many may import it");
            assert_eq!(self.imported(importer), [], "{importer}: nothing is left");
            return [if may_import { "waits for another" } else { "headless is not understood" }].into();
        };
        let known_features = |feature| self.known_features(importer, feature);
        let exported: Vec<SliceContent> = (0..SLICES).filter(|index| self.slices[*index]).map(rich).collect();
        let reduced = exported.iter().filter_map(|content| reduced_for(content, &known_features));
        assert_eq!(self.imported(importer), sorted(reduced.collect()), "{importer}");
        assert_eq!(derived.headless, self.headless, "{importer}");
        let sticky = self.session_affinity == STICKY;
        let affinity = sticky && known_features(Feature::SessionAffinity);
        assert_eq!(derived.session_affinity, if affinity { STICKY } else { SessionAffinity::None }, "{importer}");
        let six = known_features(Feature::IPv6) && self.slices[1];
        assert!(derived.dual_stack || !six, "{importer}");
        let covered = [
            ("headless is imported", self.headless),
            ("IPv6 arrives", six),
            ("IPv6 stays away", self.slices[1] && !known_features(Feature::IPv6)),
            ("IPv6 was taken back", derived.dual_stack && !known_features(Feature::IPv6)),
            ("draining arrives", !exported.is_empty() && known_features(Feature::DrainingEndpoints)),
            ("draining stays away", !exported.is_empty() && !known_features(Feature::DrainingEndpoints)),
            ("details arrive", !exported.is_empty() && known_features(Feature::EndpointDetails)),
            ("details stay away", !exported.is_empty() && !known_features(Feature::EndpointDetails)),
            ("affinity arrives", affinity),
            ("affinity stays away", sticky && !affinity),
            ("only the importer understands", self.hub[0].is_none() && self.members[importer] == Some(Features::ALL)),
            ("of type LoadBalancer", request.consumer_type == ConsumerType::LoadBalancer),
        ];
        covered.into_iter().filter_map(|(class, seen)| seen.then_some(class)).collect()
    }

    fn assert_one_holds_the_load_balancer(&self) {
        let request =
            IMPORTERS.map(|importer| (importer, request_of(&self.world, importer, "work/app").expect("it is there")));
        let asks: Vec<_> = request.filter(|(_, request)| request.consumer_type == ConsumerType::LoadBalancer).collect();
        let may =
            asks.iter().filter(|(importer, _)| !self.headless || self.known_features(*importer, Feature::Headless));
        let shares = |importer: usize| {
            self.world.hub.list(Kind::InternalServiceImport).any(|object| match object {
                Object::InternalServiceImport(claim) => {
                    claim.meta.name.namespace.ends_with(&cluster_id(importer))
                        && claim.consumer_type == ConsumerType::ClusterIp
                }
                _ => false,
            })
        };
        // Members with the exclusive claim: they import, and have no shared claim. A member that waits for the
        // exclusive claim may also import, but through a shared claim.
        let holds = asks.iter().filter(|(importer, request)| request.derived_label.is_some() && !shares(*importer));
        assert_eq!(holds.count(), may.count().min(1));
    }

    /// Deletes the CRD of MemberAgent with all MemberAgents, and restores the CRD later. Each agent sees both changes
    /// at another time, and some agents restart meanwhile. Asserts that agents write nothing because of these changes.
    fn assert_a_lost_definition_takes_nothing_back(&mut self, seed: u64) {
        let mark = self.world.ledger.len();
        for member in 0..MEMBERS {
            let cluster = cluster_id(member);
            self.world.delete(Who::Hub, Kind::MemberAgent, &in_hub_of(&cluster, &cluster));
        }
        let everyone = self.world.everyone();
        let restarts = |who: usize| (seed >> who).is_multiple_of(3);
        for (index, who) in everyone.iter().enumerate() {
            if restarts(index) {
                self.world.restart(*who);
                self.world.not_served(*who, Kind::MemberAgent, WatchState::Absent);
            } else {
                self.world.not_served(*who, Kind::MemberAgent, WatchState::Unknown);
            }
        }
        self.world.run_for(LONG_MICROS);
        assert_eq!(self.world.lines_since(mark), Vec::<String>::new(), "it is gone");
        for (index, who) in everyone.iter().enumerate() {
            self.world.relist(*who, Kind::MemberAgent);
            self.world.run_for(60_000_000);
            if index < MEMBERS {
                self.say(index);
            }
        }
        self.world.run_for(LONG_MICROS);
        assert_eq!(self.world.lines_since(mark), Vec::<String>::new(), "it is back");
    }

    /// Asserts that no object in the hub uses a feature that the writer or the reader of the object did not announce.
    fn assert_nothing_unannounced_is_written(&self) {
        for object in self.world.hub.all() {
            let name = &object.meta().name;
            let member = (0..MEMBERS).find(|member| name.namespace.ends_with(&cluster_id(*member)));
            let importer = |feature| member.is_some_and(|member| self.member_understands(member, feature));
            let hub = |feature| self.hub_understands(feature);
            match object {
                Object::EndpointSliceExport(slice) => {
                    let content = &slice.spec.content;
                    assert_eq!(reduced_for(content, &hub).as_ref(), Some(&**content), "{name}");
                }
                Object::EndpointSliceImport(slice) => {
                    let content = &slice.spec.content;
                    assert_eq!(reduced_for(content, &importer).as_ref(), Some(&**content), "{name}");
                }
                Object::InternalServiceExport(export) => {
                    assert!(!export.headless || hub(Feature::Headless), "{name}");
                    assert!(
                        export.session_affinity == SessionAffinity::None || hub(Feature::SessionAffinity),
                        "{name}"
                    );
                }
                Object::InternalServiceImport(claim) => {
                    let status = &claim.status;
                    assert!(!status.is_headless() || importer(Feature::Headless), "{name}");
                    let none = status.session_affinity == SessionAffinity::None;
                    assert!(none || importer(Feature::SessionAffinity), "{name}");
                }
                _ => {}
            }
        }
    }
}

const CASES: u32 = 240;
const CLASSES: usize = 14;

/// Also rules F1, F7, F8, U5, U6, U7, U13, U14.
#[test]
fn whatever_is_announced_and_withdrawn_all_end_with_what_all_support() {
    let seen: RefCell<BTreeMap<&str, usize>> = RefCell::default();
    let steps = prop::collection::vec((a_step(), any::<bool>()), 1..14);
    let outcome = TestRunner::new(cases(CASES)).run(&(steps, any::<u64>()), |(steps, seed)| {
        let mut fleet = Fleet::new(seed);
        for (step, settles) in &steps {
            fleet.happen(step);
            if *settles {
                fleet.world.run();
            } else {
                (0..7).for_each(|_| _ = fleet.world.step());
            }
        }
        fleet.world.run_for(LONG_MICROS);
        fleet.renew();
        fleet.world.run_for(LONG_MICROS);
        for class in IMPORTERS.flat_map(|importer| fleet.assert_imported(importer)) {
            *seen.borrow_mut().entry(class).or_default() += 1;
        }
        fleet.assert_one_holds_the_load_balancer();
        fleet.assert_nothing_unannounced_is_written();

        fleet.assert_a_lost_definition_takes_nothing_back(seed);

        let mark = fleet.world.ledger.len();
        fleet.world.restart_all();
        fleet.world.run_for(LONG_MICROS);
        assert_eq!(fleet.world.lines_since(mark), Vec::<String>::new());
        Ok(())
    });
    assert!(outcome.is_ok(), "{}", outcome.err().map(|error| error.to_string()).unwrap_or_default());
    let seen = seen.into_inner();
    assert_eq!(seen.len(), CLASSES, "every class is seen: {seen:#?}");
    assert!(seen.values().all(|count| *count >= 10), "and not by chance: {seen:#?}");
}

/// Tests of this file that run random histories. `proved.rs` also runs these tests with broken agents, and asserts that
/// each test then fails.
pub(crate) const HISTORIES: &[(&str, fn())] = &[(
    "whatever_is_announced_and_withdrawn_all_end_with_what_all_support",
    whatever_is_announced_and_withdrawn_all_end_with_what_all_support,
)];
