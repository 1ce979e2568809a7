//! Tests of the check before a migration: a table of objects for each item.

use super::*;
use crate::fixture::{NOW, conditions, healthy, lease, meta, object, set, set_slice, slice_spec};
use crate::snapshot::{Listing, Reached, Undecodable};
use serde_json::json;

const KNOWN: &str = "the listing is known";
/// Indexes of importer and exporter.
const EAST: usize = 0;
const WEST: usize = 1;
const GROUP: &str = "networking.fleet.azure.com";

fn weight(snapshot: &mut Snapshot, weight: &str) {
    set(
        &mut snapshot.members[WEST].service_exports,
        "/metadata/annotations",
        json!({format!("{GROUP}/weight"): weight}),
    );
}

fn conflict(snapshot: &mut Snapshot, status: &str) {
    set(&mut snapshot.hub.internal_exports, "/status/conditions", conditions("Conflict", status, "ConflictFound"));
}

/// Gives the ServiceImport two ports, and the export the same ones in the other order.
fn ports_in_other_order(snapshot: &mut Snapshot) {
    let port = |name: &str, port: i32| json!({"name": name, "protocol": "TCP", "port": port});
    set(&mut snapshot.hub.service_imports, "/status/ports", json!([port("a", 1), port("b", 2)]));
    set(&mut snapshot.hub.internal_exports, "/spec/ports", json!([port("b", 2), port("a", 1)]));
}

fn exporters_are(snapshot: &mut Snapshot, list: &str) {
    set(&mut snapshot.hub.namespaces, "/metadata/annotations", json!({format!("{GROUP}/exporters"): list}));
}

/// Sets the annotations of the import for an internal load balancer: that of Azure, and perhaps that of the fleet.
fn internal(snapshot: &mut Snapshot, azure: &str, fleet: Option<&str>) {
    let mut annotations = json!({"service.beta.kubernetes.io/azure-load-balancer-internal": azure});
    if let Some(fleet) = fleet {
        annotations[format!("{GROUP}/azure-load-balancer-internal")] = json!(fleet);
    }
    set(&mut snapshot.members[EAST].multi_cluster_services, "/metadata/annotations", annotations);
}

/// Change of a snapshot.
type Alter = fn(&mut Snapshot);
type Case = (&'static str, Alter);

/// Changes of a healthy fleet, each with the items that they show.
const TO_GO: &[(&[&str], Alter)] = &[
    (&[], |_| {}),
    (&["weight-zero"], |fleet| {
        set(
            &mut fleet.members[WEST].service_exports,
            "/status/conditions",
            conditions("Conflict", "False", "NoConflictFound"),
        );
        weight(fleet, "0");
    }),
    // Go agents do not export the slices before conflict resolution.
    (&[], |fleet| weight(fleet, "0")),
    (&["invalid-weight"], |fleet| weight(fleet, "1.5")),
    (&[], |fleet| weight(fleet, "1000")),
    (&["headless"], |fleet| set(&mut fleet.hub.internal_exports, "/spec/headless", json!(true))),
    (&["ipv6"], |fleet| {
        set_slice(fleet, "addressType", json!("IPv6"));
        set_slice(fleet, "endpoints", json!([{"addresses": ["fd00::1"]}]));
    }),
    (&["name"], |fleet| set(&mut fleet.hub.internal_exports, "/metadata/name", json!("shop-app-1a2b3"))),
    (&["name"], |fleet| set(&mut fleet.hub.claims, "/metadata/name", json!("shop-app-1a2b3"))),
    (&["ports"], |fleet| ports_in_other_order(fleet)),
    (&[], |fleet| {
        ports_in_other_order(fleet);
        conflict(fleet, "True");
    }),
    (&["namespace-lists"], |fleet| exporters_are(fleet, "north, south")),
    (&[], |fleet| exporters_are(fleet, "north, west")),
    (&["internal-load-balancer"], |fleet| internal(fleet, "true", None)),
    (&["internal-load-balancer"], |fleet| internal(fleet, "T", Some("false"))),
    (&[], |fleet| internal(fleet, "true", Some("true"))),
    (&[], |fleet| internal(fleet, "false", None)),
    (&["standard-api"], |fleet| set(&mut fleet.hub.internal_exports, "/spec/multicluster", json!({"only": true}))),
    (&[], |fleet| set(&mut fleet.hub.internal_exports, "/spec/multicluster", json!({}))),
    (&["address"], |fleet| set_slice(fleet, "endpoints", json!([{"addresses": ["127.0.0.1"]}]))),
    (&["source-ranges"], |fleet| {
        let containers = json!([{"name": "agent", "args": ["--source-ranges=west=10.1.0.0/16"]}]);
        set(&mut fleet.members[EAST].agent.deployments, "/spec/template/spec", json!({"containers": containers}));
    }),
    (&["silent"], |fleet| {
        let silence = json!({"phase": "Draining", "phaseTime": NOW, "lastRenewTime": NOW, "count": 1});
        set(&mut fleet.hub.member_agents, "/status/silence", silence);
    }),
    (&["own-slices"], |fleet| {
        fleet.members[WEST].agent.leases = lease("fleetnet-endpointslices", "member-agent-1", NOW);
        fleet.members[WEST].controller_manager = Listing::of(Vec::new());
    }),
    (&[], |fleet| {
        fleet.members[WEST].agent.leases = lease("fleetnet-endpointslices", "member-agent-1", NOW);
    }),
    (&[], |fleet| {
        fleet.members[WEST].agent.leases = lease("fleetnet-endpointslices", "member-agent-1", "2027-01-15T12:00:00Z");
    }),
    (&["several-importers"], |fleet| {
        let both = json!({"MemberClusters": {"fleet-member-east": "east", "fleet-member-west": "west"}});
        let annotations = json!({format!("{GROUP}/service-in-use-by"): both.to_string()});
        set(&mut fleet.hub.service_imports, "/metadata/annotations", annotations);
    }),
    (&["details"], |fleet| set_slice(fleet, "endpoints", json!([{"addresses": ["10.1.0.1"], "zone": "a"}]))),
    (&["details"], |fleet| set_slice(fleet, "endpoints", json!([{"addresses": ["10.1.0.1"], "hostname": "a"}]))),
    (&["details"], |fleet| set_slice(fleet, "drainingEndpoints", json!([{"addresses": ["10.1.0.2"]}]))),
    (&["details"], |fleet| set(&mut fleet.hub.internal_exports, "/spec/sessionAffinity", json!("ClientIP"))),
];

const TO_FLEETNET: &[(&[&str], Alter)] = &[
    (&[], |_| {}),
    (&["weight-zero"], |fleet| weight(fleet, "0")),
    (&[], |fleet| {
        weight(fleet, "0");
        fleet.hub.slice_exports = Listing::of(Vec::new());
    }),
    (&["invalid-weight"], |fleet| weight(fleet, "-1")),
    (&["address"], |fleet| set_slice(fleet, "endpoints", json!([{"addresses": ["169.254.1.1"]}]))),
    (&["ports"], |fleet| {
        ports_in_other_order(fleet);
        conflict(fleet, "True");
    }),
    (&[], |fleet| {
        ports_in_other_order(fleet);
        set(&mut fleet.hub.service_imports, "/status/ports", json!([{"name": "a", "protocol": "TCP", "port": 1}]));
        conflict(fleet, "True");
    }),
    (&[], |fleet| ports_in_other_order(fleet)),
    (&["namespace-lists"], |fleet| exporters_are(fleet, "")),
    (&["internal-load-balancer"], |fleet| internal(fleet, "1", None)),
    (&[], |fleet| internal(fleet, "true", Some("true"))),
    (&["malformed-internal-load-balancer"], |fleet| internal(fleet, "yes", None)),
    (&["malformed-internal-load-balancer"], |fleet| internal(fleet, "false", Some(""))),
    (&[], |fleet| internal(fleet, "yes", Some("true"))),
    (&["ipv6"], |fleet| {
        set(&mut fleet.members[WEST].slices, "/addressType", json!("IPv6"));
        set(&mut fleet.members[WEST].slices, "/endpoints", json!([]));
    }),
    // An imported slice, and a slice of a Service that is not exported.
    (&[], |fleet| set(&mut fleet.members[EAST].slices, "/addressType", json!("IPv6"))),
    (&["session-affinity"], |fleet| {
        set(&mut fleet.members[WEST].services, "/spec/sessionAffinity", json!("ClientIP"));
    }),
    (&["duplicate-slice"], |fleet| {
        let again = json!({"metadata": meta("fleet-member-west", "west-shop-app-1-y"), "spec": slice_spec()});
        fleet.hub.slice_exports.objects_mut().expect(KNOWN).push(object("EndpointSliceExport", again));
    }),
    (&["undecodable"], |fleet| {
        let undecodable = vec![Undecodable { kind: "ServiceExport".to_owned(), ..Undecodable::default() }];
        fleet.members[EAST].service_exports = Listing::Known { objects: Vec::new(), undecodable };
    }),
    (&["definitions"], |fleet| fleet.hub.agent.definitions = Listing::of(Vec::new())),
    (&["traffic-manager"], |fleet| set(&mut fleet.hub.internal_exports, "/spec/type", json!("LoadBalancer"))),
];

fn shown(migration: &Migration) -> Vec<&'static str> {
    migration.items.iter().filter(|item| !item.objects.is_empty()).map(|item| item.id).collect()
}

/// Returns the healthy fleet with an importer as Go agents can have it.
fn fleet() -> Snapshot {
    let mut fleet = healthy();
    set(&mut fleet.members[EAST].multi_cluster_services, "/spec/type", json!("LoadBalancer"));
    fleet
}

/// Rule U19: A user runs `fleetnet migrate check`
/// Then: The command lists the objects whose traffic or behaviour changes with the other agents
/// ([migration.md](../how-to/migration.md)). What could not be read is not known, and never fine
///
/// Also rule M27.
#[test]
fn each_item_is_shown_by_its_objects_alone() {
    for (direction, cases) in [(Direction::ToGo, TO_GO), (Direction::ToFleetnet, TO_FLEETNET)] {
        for (number, (expected, change)) in cases.iter().enumerate() {
            let mut fleet = fleet();
            change(&mut fleet);
            let migration = check(&fleet, direction);
            assert_eq!(shown(&migration), *expected, "{direction:?}, case {number}");
            let changes_traffic =
                migration.items.iter().any(|it| !it.objects.is_empty() && it.impact == Impact::Traffic);
            let verdict = if changes_traffic { Verdict::Fault } else { Verdict::Healthy };
            assert_eq!(migration.verdict, verdict, "{direction:?}, case {number}: {:?}", migration.not_known);
        }
    }
}

#[test]
fn a_shared_import_becomes_a_load_balancer() {
    let migration = check(&healthy(), Direction::ToGo);
    assert_eq!(shown(&migration), ["cluster-ip"]);
    let evidence = &migration.items.iter().find(|item| item.id == "cluster-ip").expect("it exists").objects[0];
    assert_eq!((&*evidence.cluster, &*evidence.kind, &*evidence.name), ("east", "MultiClusterService", "app"));
}

#[test]
fn each_item_has_a_case_and_complete_texts() {
    for (items, cases) in [(to_go::ITEMS, TO_GO), (to_fleetnet::ITEMS, TO_FLEETNET)] {
        for item in items {
            let is_shown = cases.iter().any(|(shown, _)| shown.contains(&item.id)) || item.id == "cluster-ip";
            assert!(is_shown, "no case shows {}", item.id);
            for text in [item.effect, item.remedy] {
                assert!(text.ends_with('.') && !text.contains("  "), "{}: {text:?}", item.id);
            }
        }
    }
}

/// Also rule U19.
#[test]
fn what_could_not_be_read_is_not_known_and_never_fine() {
    let cases: &[Case] = &[
        ("west: ServiceExports could not be read: slow", |fleet| {
            fleet.members[WEST].service_exports = Listing::Unknown("slow".to_owned());
        }),
        ("west: this user may not read Leases", |fleet| {
            fleet.members[WEST].agent.leases = Listing::Denied(String::new());
        }),
        ("hub: MemberAgents could not be read: slow", |fleet| {
            fleet.hub.member_agents = Listing::Unknown("slow".to_owned());
        }),
        ("hub: this user may not read EndpointSliceExports", |fleet| {
            fleet.hub.slice_exports = Listing::Denied(String::new());
        }),
        ("east: no kubeconfig context leads to this cluster", |fleet| {
            fleet.members[EAST].connection.reached = Reached::NotAsked;
            fleet.members[EAST].multi_cluster_services = Listing::NotAsked;
        }),
    ];
    for (expected, change) in cases {
        let mut fleet = fleet();
        change(&mut fleet);
        let migration = check(&fleet, Direction::ToGo);
        assert_eq!(migration.not_known, [*expected]);
        assert_eq!(migration.verdict, Verdict::NotKnown);
        assert!(migration.items.iter().any(|item| item.outcome == Outcome::Unknown));
    }
}

/// Also rule U19.
#[test]
fn before_a_takeover_unread_objects_are_not_known_and_a_hub_without_the_kinds_of_fleetnet_is_fine() {
    let cases: &[Case] = &[
        ("hub: this user may not read CustomResourceDefinitions", |fleet| {
            fleet.hub.agent.definitions = Listing::Denied(String::new());
        }),
        ("east: this user may not read MultiClusterServices", |fleet| {
            fleet.members[EAST].multi_cluster_services = Listing::Denied(String::new());
        }),
    ];
    for (expected, change) in cases {
        let mut fleet = fleet();
        change(&mut fleet);
        let migration = check(&fleet, Direction::ToFleetnet);
        assert_eq!(
            (migration.not_known.as_slice(), migration.verdict),
            (&[(*expected).to_owned()][..], Verdict::NotKnown)
        );
    }
    let mut fleet = fleet();
    fleet.hub.member_agents = Listing::NotDefined;
    assert_eq!(check(&fleet, Direction::ToFleetnet).verdict, Verdict::Healthy);
    assert_eq!(check(&fleet, Direction::ToGo).verdict, Verdict::Healthy);
}
