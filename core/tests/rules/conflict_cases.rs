//! Random cases of conflict resolution. A case has exports of one Service and their ServiceImport, as the hub agent
//! finds them when it starts, and events that happen later.

use crate::support::build::{
    BuildService, IntoObject, conflict, in_hub_of, internal_export, named, no_conflict, port, resolved, seconds,
    service, service_import,
};
use crate::support::world::{Who, World};
use fleetnet_core::model::{
    ImportStatus, InternalServiceExport, Kind, Object, PortNumber, PortSetStamp, ServicePort, TargetPort,
};
use fleetnet_core::names;
use fleetnet_types::{ObjectName, Text, Timestamp};
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const CLUSTERS: [&str; 4] = ["member-1", "member-2", "member-3", "member-4"];
/// Time of all events in a case. The time never changes, so the times that the hub agent writes do not depend on the
/// order of events.
pub(crate) const NOW: Timestamp = Timestamp(1_000_000_000);
pub(crate) const PORT_LISTS: usize = 7;

/// Returns the list of ports with the index `which`, from 0 to 6. Lists 0 and 1 are equal for conflict resolution, and
/// so are lists 2 and 3.
pub(crate) fn ports(which: usize) -> Vec<ServicePort> {
    let http = port("http", 80);
    match which {
        0 => vec![http],
        1 => vec![ServicePort { target_port: Some(TargetPort::Number(9090.into())), ..http }],
        2 => vec![http, port("admin", 81)],
        3 => vec![port("admin", 81), http],
        4 => vec![ServicePort { app_protocol: Some("h2c".into()), ..http }],
        5 => vec![ServicePort { protocol: "UDP".into(), ..http }],
        _ => vec![port("http", 81)],
    }
}

/// Fields of ports that conflict resolution compares. Ports of two exports may differ in other fields without a
/// conflict.
pub(crate) type PortSet = BTreeSet<(Text, Text, PortNumber, Option<Text>)>;

pub(crate) fn set_of(ports: &[ServicePort]) -> PortSet {
    let key = |port: &ServicePort| (port.name.clone(), port.protocol.clone(), port.port, port.app_protocol.clone());
    ports.iter().map(key).collect()
}

/// Annotation `ports-offered-since` of an export when the hub agent starts. It has the start time of a port set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stamp {
    None,
    /// Start time of the export's current ports, in seconds.
    Since(i64),
    /// Start time, in seconds, of earlier ports that the export no longer has.
    Stale(i64),
}

/// Export that exists when the hub agent starts.
#[derive(Clone, Debug)]
pub(crate) struct InitialExport {
    pub(crate) cluster: usize,
    /// True if this is the second of two exports of the same cluster.
    pub(crate) second: bool,
    pub(crate) ports: usize,
    pub(crate) stamp: Stamp,
    pub(crate) marked: bool,
    pub(crate) dying: bool,
    pub(crate) created: i64,
    /// Outcome of conflict resolution in the export's status: `Some(true)` for a conflict, `Some(false)` for none. May
    /// be out of date.
    pub(crate) conflict_before: Option<bool>,
}

/// Event that happens to the export of a cluster after the hub agent has started: the export is created or deleted, or
/// gets other ports.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Later {
    Joins { ports: usize },
    Leaves,
    Turns { ports: usize },
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) exports: Vec<InitialExport>,
    /// ServiceImport that exists at the start: the indexes of the clusters in its status, and the index of the list of
    /// ports in its status (see [`ports`]). `None` if there is no ServiceImport.
    pub(crate) import: Option<(Vec<usize>, usize)>,
    /// Events after the start of the hub agent, at most one for each cluster.
    pub(crate) later: BTreeMap<usize, Later>,
}

pub(crate) fn an_initial_export() -> impl Strategy<Value = InitialExport> {
    let stamp = prop_oneof![
        3 => Just(Stamp::None),
        4 => (51..55i64).prop_map(Stamp::Since),
        1 => (51..55i64).prop_map(Stamp::Stale),
    ];
    let rarely = || prop_oneof![5 => Just(false), 1 => Just(true)];
    let mostly_one = prop_oneof![3 => 0..2usize, 2 => 2..4usize, 1 => 4..PORT_LISTS];
    (0..CLUSTERS.len(), rarely(), mostly_one, stamp, rarely(), rarely(), 50..53i64, any::<Option<bool>>()).prop_map(
        |(cluster, second, ports, stamp, unmarked, dying, created, conflict_before)| {
            // A second export, or an export that is being deleted, already has the hub agent's finalizer. A second
            // export also has the annotation `ports-offered-since`.
            let stamp = if second { Stamp::Since(52) } else { stamp };
            InitialExport {
                cluster,
                second,
                ports,
                stamp,
                marked: !unmarked || dying || second,
                dying,
                created,
                conflict_before,
            }
        },
    )
}

pub(crate) fn a_later() -> impl Strategy<Value = Later> {
    prop_oneof![
        (0..PORT_LISTS).prop_map(|ports| Later::Joins { ports }),
        Just(Later::Leaves),
        (0..PORT_LISTS).prop_map(|ports| Later::Turns { ports }),
    ]
}

pub(crate) fn a_case() -> impl Strategy<Value = Case> {
    let named_by = prop::collection::btree_set(0..CLUSTERS.len(), 0..4);
    let import = prop::option::weighted(0.8, (named_by.prop_map(|named| named.into_iter().collect()), 0..4usize));
    let later = prop::collection::btree_map(0..CLUSTERS.len(), a_later(), 0..4);
    let exports = prop::collection::vec(an_initial_export(), 1..6);
    (exports, import, later, prop::bool::weighted(0.25)).prop_map(|(mut exports, mut import, later, go_loses)| {
        if go_loses {
            import = Some((vec![0], 0));
            exports.splice(0..0, what_go_accepted_and_an_older_one());
        }
        let mut names = BTreeSet::new();
        let exports: Vec<InitialExport> =
            exports.into_iter().filter(|initial| names.insert((initial.cluster, initial.second))).collect();
        let mut case = Case { exports, import, later };
        let before = case.clone();
        case.later.retain(|cluster, later| !is_a_race(&before, *cluster, *later));
        case
    })
}

/// Returns two exports. A Go hub agent accepted the first export, which has no annotation `ports-offered-since`. Our
/// hub agent wrote this annotation to the second export, with an older time, so the first export loses. Only the
/// ServiceImport shows that the ports of the first export are as old as the export itself.
fn what_go_accepted_and_an_older_one() -> [InitialExport; 2] {
    let accepted = InitialExport {
        cluster: 0,
        second: false,
        ports: 0,
        stamp: Stamp::None,
        marked: true,
        dying: false,
        created: 53,
        conflict_before: Some(false),
    };
    let older =
        InitialExport { cluster: 1, ports: 2, stamp: Stamp::Since(51), created: 50, conflict_before: None, ..accepted };
    [accepted, older]
}

/// True if the outcome of conflict resolution depends on the order of two events. There are two such cases:
///
/// - A cluster creates an export again. The create succeeds only after the old export with this name is gone.
/// - An export had other ports when the agent started, and then gets the ports that a Go hub agent had accepted. The
///   agent may see the export for the first time before or after this change.
pub(crate) fn is_a_race(case: &Case, cluster: usize, later: Later) -> bool {
    let first = || case.exports.iter().filter(|initial| initial.cluster == cluster && !initial.second);
    let turned = match later {
        Later::Joins { .. } => return first().next().is_some(),
        Later::Leaves => return false,
        Later::Turns { ports } => ports,
    };
    let Some((_, shown)) = case.import.as_ref().filter(|(clusters, _)| clusters.contains(&cluster)) else {
        return false;
    };
    let alike = |one: usize, other: usize| set_of(&ports(one)) == set_of(&ports(other));
    alike(turned, *shown) && first().any(|initial| initial.stamp == Stamp::None && !alike(initial.ports, *shown))
}

pub(crate) fn name_of(cluster: usize, second: bool) -> ObjectName {
    in_hub_of(CLUSTERS[cluster], if second { "work-app-zzzzz" } else { "work-app" })
}

pub(crate) fn stamped(since: i64, ports: &[ServicePort]) -> Option<PortSetStamp> {
    Some(PortSetStamp { since: seconds(since), ports: names::ports_fingerprint(ports) })
}

pub(crate) fn object_of(initial: &InitialExport) -> InternalServiceExport {
    let mut export = internal_export(CLUSTERS[initial.cluster], &service("work/app").ports(&ports(initial.ports)));
    export.meta.name = name_of(initial.cluster, initial.second);
    export.meta.finalizers.ours = initial.marked;
    export.stamp = match initial.stamp {
        Stamp::None => None,
        Stamp::Since(since) => stamped(since, &ports(initial.ports)),
        Stamp::Stale(since) => stamped(since, &[port("earlier", 1)]),
    };
    export
}

/// Returns a hub with the objects of a case. Its hub agent has not listed the objects yet.
pub(crate) fn hub_of(case: &Case) -> World {
    let mut world = World::new(0);
    world.tick_micros = 0;
    world.now = NOW;
    for initial in &case.exports {
        let name = name_of(initial.cluster, initial.second);
        world.create(Who::Hub, object_of(initial).object());
        world.edit(Who::Hub, Kind::InternalServiceExport, &name, |object| {
            let Object::InternalServiceExport(export) = object else { return };
            export.meta.created = seconds(initial.created);
            let condition =
                initial.conflict_before.map(|yes| if yes { conflict("work/app") } else { no_conflict("work/app") });
            export.conditions = condition.into_iter().collect();
        });
        if initial.dying {
            world.delete(Who::Hub, Kind::InternalServiceExport, &name);
        }
    }
    if let Some((clusters, shown)) = &case.import {
        let clusters: Vec<&str> = clusters.iter().map(|cluster| CLUSTERS[*cluster]).collect();
        let status = ImportStatus { ports: ports(*shown), ..resolved(&clusters) };
        world.create(Who::Hub, service_import("work/app").object());
        world.edit(Who::Hub, Kind::ServiceImport, &named("work/app"), |object| {
            let Object::ServiceImport(import) = object else { return };
            import.status = if clusters.is_empty() { ImportStatus::default() } else { status };
        });
    }
    world
}

pub(crate) fn happen(world: &mut World, cluster: usize, later: Later) {
    let name = name_of(cluster, false);
    match later {
        Later::Joins { ports: which } => {
            let export = internal_export(CLUSTERS[cluster], &service("work/app").ports(&ports(which)));
            world.create(Who::Hub, export.object());
        }
        Later::Leaves => world.delete(Who::Hub, Kind::InternalServiceExport, &name),
        Later::Turns { ports: which } => {
            world.edit(Who::Hub, Kind::InternalServiceExport, &name, |object| {
                let Object::InternalServiceExport(export) = object else { return };
                export.ports = ports(which);
            });
        }
    }
}
