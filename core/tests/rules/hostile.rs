//! Tests of a hostile member that writes any object in its own namespace of the hub. The other members must still
//! import the same from one another. Each history runs with and without hostile writes, and both results must be equal.

use crate::histories::{Event, MEMBERS, an_event, happen, prelude};
use crate::oracle::{CLASSES, assert_settled, classes, state};
use crate::support::agent::undecodable_change;
use crate::support::build::{
    Build, BuildHubSlice, BuildImport, BuildNamespace, IntoObject, claim, content, distributed_slice, endpoint,
    in_hub_of, internal_export, member_agent, named, namespace, no_conflict, port, resolved, seconds, service,
    service_import, slice, slice_export,
};
use crate::support::property::for_any;
use crate::support::view::{claimed_hub_view, undecodable};
use crate::support::world::{Who, World};
use fastrand::Rng;
use fleetnet_core::features::Features;
use fleetnet_core::hub::Key;
use fleetnet_core::model::{
    AddressType, ConsumerType, EndpointPort, HubSlice, HubSliceSpec, ImportStatus, Kind, Meta, Object, PortSetStamp,
    Reference, ServicePort, SessionAffinity, SliceContent,
};
use fleetnet_core::names;
use fleetnet_core::plan::Write;
use fleetnet_types::{ClusterId, ObjectName, Text, Uid};
use histories::users::Action;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};
use std::collections::{BTreeMap, BTreeSet};

/// Cluster id of the hostile member. It sorts before the other ids, because some rules prefer the first name.
const HOSTILE: &str = "member-0";
const SECOND_MICROS: i64 = 1_000_000;
const DAY_MICROS: i64 = 86_400_000_000;

const KINDS: [Kind; 5] = [
    Kind::InternalServiceExport,
    Kind::InternalServiceImport,
    Kind::EndpointSliceExport,
    Kind::EndpointSliceImport,
    Kind::MemberAgent,
];

/// Names of the hostile acts. Each act must occur in enough cases.
const ACTS: [&str; 7] = [
    "deletes",
    "leaves an undecodable object",
    "writes an export",
    "writes a claim",
    "writes a slice export",
    "writes a distributed slice",
    "writes a MemberAgent",
];

/// Generator of values that a hostile member writes. Some values are copies from other members' objects, some are
/// nonsense.
struct Hostile {
    random: Rng,
    names: Vec<Text>,
    uids: Vec<Uid>,
    slices: Vec<HubSliceSpec>,
}

impl Hostile {
    /// Returns a generator that can copy values from all objects in the hub.
    fn new(world: &World, seed: u64) -> Self {
        let mut names: BTreeSet<Text> = ["work-app", "work-web", "member-1", "x.y", "X Y"].map(Text::from).into();
        let mut uids: BTreeSet<Uid> = ["", "forged"].map(Uid::from).into();
        let mut slices = Vec::new();
        for object in world.hub.all() {
            names.insert(object.meta().name.name.clone());
            uids.insert(object.meta().uid.clone());
            match object {
                Object::EndpointSliceExport(slice) | Object::EndpointSliceImport(slice) => {
                    uids.insert(slice.spec.reference.uid.clone());
                    slices.push(slice.spec.clone());
                }
                Object::InternalServiceExport(export) => drop(uids.insert(export.reference.uid.clone())),
                Object::InternalServiceImport(claim) => drop(uids.insert(claim.reference.uid.clone())),
                _ => {}
            }
        }
        Self {
            random: Rng::with_seed(seed),
            names: names.into_iter().collect(),
            uids: uids.into_iter().collect(),
            slices,
        }
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.random.usize(..from.len())].clone()
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.random.usize(..many) == 0
    }

    fn owner(&mut self) -> ObjectName {
        named(self.pick(&[
            "work/app",
            "work/app",
            "work/app",
            "work/web",
            "other/app",
            "/",
            "fleet-member-member-2/app",
        ]))
    }

    fn cluster(&mut self) -> ClusterId {
        ClusterId::from(self.pick(&["member-0", "member-1", "member-2", "", "fleet-member-member-1"]))
    }

    fn ports(&mut self) -> Vec<ServicePort> {
        let mut nonsense = port("-j ACCEPT", -5);
        nonsense.protocol = "ICMP".into();
        let of_others = vec![port("http", 80)];
        self.pick(&[of_others.clone(), of_others, vec![port("http", 81)], vec![nonsense], Vec::new()])
    }

    fn content(&mut self) -> SliceContent {
        let pool = ["10.0.0.1", "10.1.0.2", "127.0.0.1", "nonsense", "fd00::1"];
        let mut made = content(&[]);
        for _ in 0..self.random.usize(..4) {
            made.endpoints.push(endpoint(self.pick(&pool)));
            made.draining.push(endpoint(self.pick(&pool)));
        }
        made.address_type =
            self.pick(&[AddressType::IPv4, AddressType::IPv4, AddressType::IPv6, AddressType::Other("FQDN".into())]);
        if self.one_in(3) {
            let nonsense =
                EndpointPort { name: "x".into(), protocol: "".into(), port: Some(70_000.into()), app_protocol: None };
            made.ports.push(nonsense);
        }
        made
    }

    fn reference(&mut self) -> Reference {
        let source = self.owner();
        let uids = self.uids.clone();
        Reference {
            cluster: self.cluster(),
            source,
            uid: self.pick(&uids),
            resource_version: "7".into(),
            generation: self.pick(&[-1, 0, 1, i64::MAX]),
            exported_since: self.pick(&[None, Some(seconds(1)), Some(seconds(i64::MAX / 1_000_000))]),
        }
    }

    /// Returns the spec of a slice, which may copy the reference and the owner of another member's slice.
    fn slice(&mut self) -> HubSliceSpec {
        let mut spec =
            HubSliceSpec { reference: self.reference(), owner: self.owner(), content: self.content().into() };
        if !self.slices.is_empty() && !self.one_in(3) {
            let slices = self.slices.clone();
            let of_other = self.pick(&slices);
            spec.reference = of_other.reference;
            spec.owner = of_other.owner;
            if self.one_in(2) {
                spec.content = of_other.content;
            }
        }
        spec
    }

    fn status(&mut self) -> ImportStatus {
        let clusters = self.cluster();
        self.pick(&[ImportStatus::default(), resolved(&["member-1"]), resolved(&[&clusters])])
    }

    /// Returns an object for the hostile member's namespace, with random finalizers, annotations and status.
    fn object(&mut self) -> Object {
        let kind = self.pick(&KINDS);
        let names = self.names.clone();
        let name = in_hub_of(HOSTILE, &self.pick(&names));
        let mut object = match kind {
            Kind::InternalServiceExport => {
                let mut export = internal_export(HOSTILE, &service("work/app"));
                export.reference = self.reference();
                export.ports = self.ports();
                export.headless = self.one_in(4);
                export.session_affinity =
                    self.pick(&[SessionAffinity::None, SessionAffinity::ClientIp { timeout_seconds: -1 }]);
                export.conditions = if self.one_in(2) { vec![no_conflict("work/app")] } else { Vec::new() };
                let ports = names::export_fingerprint(&export.ports, export.import_type());
                export.stamp = (!self.one_in(3)).then_some(PortSetStamp { since: seconds(0), ports });
                export.object()
            }
            Kind::InternalServiceImport => {
                let mut claim = claim(HOSTILE, &service_import("work/app"));
                claim.reference = self.reference();
                claim.consumer_type = self.pick(&[ConsumerType::LoadBalancer, ConsumerType::ClusterIp]);
                claim.status = self.status();
                claim.object()
            }
            Kind::MemberAgent => {
                member_agent(&self.cluster(), self.pick(&[Features::ALL, Features::NONE]), Features::ALL).object()
            }
            _ => {
                let mut made = slice_export(HOSTILE, &slice("work/app-0")).created(seconds(0));
                made.spec = self.slice();
                let is_export = kind == Kind::EndpointSliceExport;
                if is_export { Object::EndpointSliceExport(made) } else { Object::EndpointSliceImport(made) }
            }
        };
        let ours = self.one_in(2);
        let meta = object.meta_mut();
        meta.name = name;
        meta.finalizers.ours = ours;
        object
    }

    /// Makes the hostile member write or delete an object, or leave an undecodable object. Returns the name of this act
    /// in [`ACTS`].
    fn act(&mut self, world: &mut World) -> &'static str {
        let object = self.object();
        let (kind, name) = (object.kind(), object.meta().name.clone());
        match self.random.usize(..6) {
            0 => {
                world.delete(Who::Hub, kind, &name);
                "deletes"
            }
            1 => {
                world.hub_agent.notify(undecodable_change(kind, name));
                "leaves an undecodable object"
            }
            _ => {
                world.create(Who::Hub, object.clone());
                world.edit(Who::Hub, kind, &name, |stored| overwrite(stored, object));
                match kind {
                    Kind::InternalServiceExport => "writes an export",
                    Kind::InternalServiceImport => "writes a claim",
                    Kind::EndpointSliceExport => "writes a slice export",
                    Kind::EndpointSliceImport => "writes a distributed slice",
                    _ => "writes a MemberAgent",
                }
            }
        }
    }
}

/// Replaces everything in an object that a writer can change, including the status.
fn overwrite(stored: &mut Object, by: Object) {
    let mut meta = stored.meta().clone();
    meta.finalizers.clone_from(&by.meta().finalizers);
    *stored = by;
    *stored.meta_mut() = meta;
}

/// Returns all objects, without the objects of the hostile member, and without the hub's ServiceImports outside the
/// namespace `work`.
fn others(world: &World) -> BTreeMap<String, Object> {
    let mut state = state(world);
    let prefix = format!("{}/", names::member_namespace(HOSTILE));
    state.retain(|name, _| !name.contains(&prefix));
    state.retain(|name, _| !name.starts_with("hub ServiceImport") || name.contains(" work/"));
    state
}

/// Returns the objects of [`others`] without what the hostile member legitimately adds: its slices, and its entries in
/// the lists of exporters and importers.
fn distributed_from_others(world: &World) -> BTreeMap<String, Object> {
    let hostile = |cluster: &ClusterId| &**cluster == HOSTILE;
    let mut theirs = BTreeSet::new();
    let mut state = others(world);
    for object in state.values() {
        if let Object::EndpointSliceImport(slice) = object
            && hostile(&slice.spec.reference.cluster)
        {
            theirs.insert(slice.meta.name.name.clone());
        }
    }
    state.retain(|_, object| match object {
        Object::EndpointSliceImport(slice) => !hostile(&slice.spec.reference.cluster),
        Object::EndpointSlice(slice) => !theirs.contains(&slice.meta.name.name),
        _ => true,
    });
    for object in state.values_mut() {
        match object {
            Object::ServiceImport(import) => {
                import.status.clusters.retain(|cluster| !hostile(cluster));
                import.claims.importers.retain(|_, cluster| !hostile(cluster));
            }
            Object::InternalServiceImport(claim) => claim.status.clusters.retain(|cluster| !hostile(cluster)),
            _ => {}
        }
    }
    // A ServiceImport that has no other exporter than the hostile member is not compared: it does not exist in the
    // fleet without hostile acts.
    state.retain(|_, object| !matches!(object, Object::ServiceImport(import) if import.status.clusters.is_empty()));
    state
}

/// Returns a fleet in which steps take no time: only events advance the clock.
fn world() -> World {
    let mut world = World::new(MEMBERS);
    world.tick_micros = 0;
    world.run();
    world
}

/// True for events that have the same effect with and without the hostile member. `Run` makes a fixed number of steps,
/// and `Meddle` deletes an object by index. Both have another effect if the hostile member causes additional steps and
/// objects.
fn of_honest(event: &Event) -> bool {
    !matches!(event, Event::Run { .. } | Event::User(Action::Meddle { .. }))
}

/// Applies the same event to two fleets, the second with hostile acts. Asserts that all objects of `outcome` are equal
/// in both. Returns the names of the hostile acts.
fn play(
    worlds: &mut [World; 2],
    event: &Event,
    seed: u64,
    acts: usize,
    outcome: impl Fn(&World) -> BTreeMap<String, Object>,
) -> BTreeSet<&'static str> {
    worlds[1].now = worlds[1].now.plus_micros(SECOND_MICROS);
    worlds[0].now = worlds[1].now;
    let mut hostile = Hostile::new(&worlds[1], seed);
    let done = (0..acts).map(|_| hostile.act(&mut worlds[1])).collect();
    worlds[1].run();
    for world in worlds.iter_mut() {
        world.now = world.now.plus_micros(SECOND_MICROS);
        happen(world, event);
        world.run();
    }
    let [without, with] = worlds.each_ref().map(outcome);
    for (name, object) in &without {
        assert_eq!(with.get(name), Some(object), "{name} after {event:?}");
    }
    let more: Vec<&String> = with.keys().filter(|name| !without.contains_key(*name)).collect();
    assert_eq!(more, Vec::<&String>::new(), "after {event:?}");
    done
}

/// Asserts that the fleet without hostile acts reaches the state that its users requested. Otherwise the comparison of
/// both fleets would prove nothing. Returns the names of the situations that this fleet shows.
fn settled(worlds: [World; 2]) -> Vec<&'static str> {
    let [mut without, _] = worlds;
    without.run_for(DAY_MICROS);
    assert_settled(&without);
    classes(&without)
}

/// Returns the names of what must occur in tests of [`established`] fleets: all hostile acts, and the situations that
/// such a fleet can have. It has no conflicts and no waiting claims.
fn established_and_acts() -> Vec<&'static str> {
    let established = ["endpoints are imported", "two exporters are accepted", "two importers share"];
    [&established[..], &ACTS].concat()
}

/// Returns a fleet in which exports and imports of `work/app` stay, while later events change their slices.
fn established() -> World {
    let mut world = world();
    let consumers = [(0, 1), (1, 0), (2, 1)];
    for (member, _) in consumers {
        happen(&mut world, &Event::User(Action::MakeService { member, app: 0, ports: 0 }));
        happen(&mut world, &Event::User(Action::SetSlice { member, app: 0, slice: 0, endpoints: vec![1, 2] }));
        happen(&mut world, &Event::User(Action::Export { member, app: 0 }));
    }
    world.run();
    for (member, consumer) in consumers {
        happen(&mut world, &Event::User(Action::CreateRequest { member, name: 0, app: 0, consumer }));
    }
    world.run();
    world
}

fn a_change_of_slices() -> impl Strategy<Value = Event> {
    let (member, slice) = (0..MEMBERS, 0..2usize);
    let endpoints = prop::collection::vec(1..5u8, 0..3);
    let (m, s) = (member, slice);
    prop_oneof![
        6 => (m.clone(), s.clone(), endpoints)
            .prop_map(|(member, slice, endpoints)| Event::User(Action::SetSlice { member, app: 0, slice, endpoints })),
        1 => (m.clone(), s.clone()).prop_map(|(member, slice)| Event::User(Action::TouchSlice { member, app: 0, slice })),
        2 => (m, s).prop_map(|(member, slice)| Event::User(Action::DeleteSlice { member, app: 0, slice })),
        2 => (0..=MEMBERS).prop_map(|who| Event::Crash { who }),
        1 => Just(Event::Pass { seconds: 90 }),
    ]
}

/// Rule T28: A hostile member writes every object that its rights allow
/// Then: The other members import the same slices from each other as in a fleet without the hostile member
#[test]
fn whatever_a_hostile_member_writes_importers_get_the_same_from_the_others() {
    for_any(
        30,
        &prop::collection::vec((a_change_of_slices(), any::<u64>(), 0..6usize), 1..12),
        (&established_and_acts(), 3),
        |events| {
            let mut worlds = [established(), established()];
            let done: BTreeSet<_> = events
                .iter()
                .flat_map(|(event, seed, acts)| play(&mut worlds, event, *seed, *acts, distributed_from_others))
                .collect();
            settled(worlds).into_iter().chain(done).collect()
        },
    );
}

/// Also rule T28.
#[test]
fn a_member_that_may_neither_export_nor_import_changes_nothing_whatever_it_writes() {
    for_any(
        30,
        &(prop::collection::vec((an_event(), any::<u64>(), 0..6usize), 1..25), any::<u64>()),
        (&[CLASSES, &ACTS].concat(), 3),
        |(events, seed)| {
            let mut worlds = [world(), world()];
            for world in &mut worlds {
                let honest = "member-1,member-2,member-3";
                let annotated = namespace("work").exported_from_by(honest).imported_from_by(honest);
                world.create(Who::Hub, annotated.object());
                world.run();
            }
            let prelude = prelude(seed).into_iter().map(|event| (event, seed, 3));
            let honest = prelude.chain(events).filter(|(event, ..)| of_honest(event));
            let done: BTreeSet<_> =
                honest.flat_map(|(event, seed, acts)| play(&mut worlds, &event, seed, acts, others)).collect();
            settled(worlds).into_iter().chain(done).collect()
        },
    );
}

/// The member that exports a slice waits until all importers have lost it. So an importer must not delay this without
/// end.
///
/// Rule T41: The exporting member deletes a slice, and an importer prevents the write of its replacement: it makes its
/// distributed slice undecodable, or keeps the finalizer of a deleted one
/// Then: The hub agent removes the importer's distributed slice at most 60 s after the deletion of the export.
/// Otherwise the importer could keep the export of another member for ever. A replacement that the hub agent can write
/// is awaited without this limit
#[test]
fn an_importer_that_keeps_or_hides_its_slice_delays_the_removal_of_another_by_a_minute_at_most() {
    let [going, stays] =
        ["work/app-0", "work/app-1"].map(|name| slice_export("member-1", &slice(name).uid(name)).marked());
    let going = HubSlice { deleted: Some(seconds(10)), ..going.with_addresses(&["10.0.0.1"], 1) }.deleting();
    let stays = stays.with_addresses(&["10.0.0.2"], 1);
    let removed = distributed_slice(HOSTILE, &HubSlice { deleted: None, ..going.clone() });
    let removed = HubSlice { meta: Meta { deleting: false, ..removed.meta }, ..removed }.marked();
    let emptied = distributed_slice(HOSTILE, &stays).with_addresses(&[], 1).marked();
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&[HOSTILE]);
    let key =
        Key::DistributedSlice { slice: removed.meta.name.name.clone(), importer: removed.meta.name.member_namespace() };
    let of = |replacement: &HubSlice| {
        let exports = [going.clone(), stays.clone()].map(Object::EndpointSliceExport);
        let distributed_slices = [removed.clone(), replacement.clone()].map(Object::EndpointSliceImport);
        claimed_hub_view(exports.into_iter().chain(distributed_slices).chain([import.clone().object()]))
    };
    let delete = [Write::delete(Kind::EndpointSliceImport, &removed.meta)];
    let open = of(&emptied).plan(&key, seconds(1_000));
    assert_eq!((open.writes.len(), open.again), (0, None), "the hub agent repairs the replacement, and is not late");

    let mut hidden = of(&emptied);
    undecodable(&mut hidden, Kind::EndpointSliceImport, &emptied.meta.name);
    for (case, view) in [("hidden", hidden), ("kept", of(&emptied.clone().deleting()))] {
        let waiting = view.plan(&key, seconds(69));
        assert_eq!((waiting.writes.len(), waiting.again), (0, Some(seconds(70))), "{case}");
        assert_eq!(view.plan(&key, seconds(70)).writes, delete, "{case}");
    }
}

/// Tests of this file that run random histories. `proved.rs` also runs these tests with broken agents, and asserts that
/// each test then fails.
pub(crate) const HISTORIES: &[(&str, fn())] = &[
    (
        "whatever_a_hostile_member_writes_importers_get_the_same_from_the_others",
        whatever_a_hostile_member_writes_importers_get_the_same_from_the_others,
    ),
    (
        "a_member_that_may_neither_export_nor_import_changes_nothing_whatever_it_writes",
        a_member_that_may_neither_export_nor_import_changes_nothing_whatever_it_writes,
    ),
];
