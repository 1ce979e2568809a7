//! Tests of migrations: a table of objects for each item, and the changes before a return to Go agents.

use super::*;
use crate::fixture::{NOW, built_in, conditions, healthy, member_agent, meta, object, slice_spec};
use crate::snapshot::{Listing, Reached, Undecodable};
use fleetnet_api::crd::EndpointSliceExport;
use serde_json::{Value, json};

const KNOWN: &str = "the listing is known";
/// Indexes of importer and exporter.
const EAST: usize = 0;
const WEST: usize = 1;
const GROUP: &str = "networking.fleet.azure.com";

/// Sets a field of an object, by JSON pointer.
fn set<K: serde::Serialize + serde::de::DeserializeOwned>(objects: &mut Listing<K>, pointer: &str, value: Value) {
    let object = &mut objects.objects_mut().expect(KNOWN)[0];
    let mut json = serde_json::to_value(&*object).expect("it serializes");
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
    let parent = json.pointer_mut(parent).expect("the parent exists").as_object_mut().expect("an object");
    parent.insert(field.replace("~1", "/"), value);
    *object = serde_json::from_value(json).expect("the object is valid");
}

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

fn slice(snapshot: &mut Snapshot, field: &str, value: Value) {
    set(&mut snapshot.hub.slice_exports, &format!("/spec/{field}"), value);
}

fn exporters_are(snapshot: &mut Snapshot, list: &str) {
    set(&mut snapshot.hub.namespaces, "/metadata/annotations", json!({format!("{GROUP}/exporters"): list}));
}

/// Change of a snapshot.
type Alter = fn(&mut Snapshot);
/// Change of a snapshot with the objects that are deleted then.
type Removal = (Alter, &'static [(&'static str, &'static str)]);
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
        slice(fleet, "addressType", json!("IPv6"));
        slice(fleet, "endpoints", json!([{"addresses": ["fd00::1"]}]));
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
    (&["address"], |fleet| slice(fleet, "endpoints", json!([{"addresses": ["127.0.0.1"]}]))),
    (&["silent"], |fleet| {
        let silence = json!({"phase": "Draining", "phaseTime": NOW, "lastRenewTime": NOW, "count": 1});
        set(&mut fleet.hub.member_agents, "/status/silence", silence);
    }),
    (&["own-slices"], |fleet| {
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
    (&["details"], |fleet| slice(fleet, "endpoints", json!([{"addresses": ["10.1.0.1"], "zone": "a"}]))),
    (&["details"], |fleet| slice(fleet, "endpoints", json!([{"addresses": ["10.1.0.1"], "hostname": "a"}]))),
    (&["details"], |fleet| slice(fleet, "drainingEndpoints", json!([{"addresses": ["10.1.0.2"]}]))),
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
    (&["address"], |fleet| slice(fleet, "endpoints", json!([{"addresses": ["169.254.1.1"]}]))),
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

/// Lease of an agent.
fn lease(name: &str, holder: &str, renewed: &str) -> Listing<k8s_openapi::api::coordination::v1::Lease> {
    let renewed = renewed.replace('Z', ".000000Z");
    let spec = json!({"holderIdentity": holder, "renewTime": renewed});
    Listing::of(vec![built_in(json!({"metadata": meta("fleet-system", name), "spec": spec}))])
}

fn shown(migration: &Migration) -> Vec<&'static str> {
    migration.items.iter().filter(|item| !item.objects.is_empty()).map(|item| item.id).collect()
}

/// Returns the healthy fleet with an importer as Go agents can have it.
fn fleet() -> Snapshot {
    let mut fleet = healthy();
    set(&mut fleet.members[EAST].multi_cluster_services, "/spec/type", json!("LoadBalancer"));
    fleet
}

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

#[test]
fn what_could_not_be_read_is_not_known_and_never_fine() {
    let cases: &[Case] = &[
        ("west: ServiceExports could not be read: slow", |fleet| {
            fleet.members[WEST].service_exports = Listing::Unknown("slow".to_owned());
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

/// Fleet whose exporter has stopped its agent.
fn stopped() -> Snapshot {
    let mut fleet = fleet();
    set(&mut fleet.members[WEST].slices, "/metadata/uid", json!("uid-of-app-1"));
    set(&mut fleet.members[WEST].slices, "/metadata/resourceVersion", json!("7"));
    slice(&mut fleet, "endpointSliceReference/exportedSince", json!("2027-01-15T12:03:04.567890Z"));
    fleet
}

fn deleted(changes: &[Change]) -> Vec<(&str, &str)> {
    let deleted = changes.iter().filter_map(|change| match change {
        Change::Delete(deleted) => Some((deleted.kind.as_str(), deleted.name.as_str())),
        Change::Annotate(_) => None,
    });
    deleted.collect()
}

#[test]
fn source_slices_get_the_annotations_by_which_go_agents_find_their_exports() {
    let changes = of_member(&stopped(), "west").expect("the agent has stopped");
    let annotations = [
        ("networking.fleet.azure.com/fleet-unique-name", "west-shop-app-1-x"),
        ("networking.fleet.azure.com/last-seen-generation", "3"),
        ("networking.fleet.azure.com/last-seen-timestamp", "2027-01-15T12:03:04Z"),
    ];
    let expected = Annotated {
        namespace: "shop".to_owned(),
        name: "app-1".to_owned(),
        resource_version: "7".to_owned(),
        annotations: annotations.map(|(key, value)| (key, value.to_owned())).into(),
    };
    assert_eq!(changes[0], Change::Annotate(expected));
    assert_eq!(deleted(&changes), [("MemberAgent", "west")], "other members keep theirs");
}

#[test]
fn a_slice_that_has_the_annotations_is_not_written() {
    let mut fleet = stopped();
    let Change::Annotate(first) = of_member(&fleet, "west").expect("the agent has stopped").remove(0) else {
        panic!("the slice is annotated first")
    };
    let mut annotations = json!(first.annotations);
    set(&mut fleet.members[WEST].slices, "/metadata/annotations", annotations.clone());
    let again = of_member(&fleet, "west").expect("the agent has stopped");
    assert_eq!((again.len(), deleted(&again)), (1, vec![("MemberAgent", "west")]));
    annotations["networking.fleet.azure.com/fleet-unique-name"] = json!("another");
    set(&mut fleet.members[WEST].slices, "/metadata/annotations", annotations);
    let Change::Annotate(again) = of_member(&fleet, "west").expect("the agent has stopped").remove(0) else {
        panic!("the slice is annotated first")
    };
    assert_eq!(again.annotations.into_values().collect::<Vec<_>>(), ["west-shop-app-1-x"]);
}

#[test]
fn what_go_agents_do_not_continue_is_deleted() {
    let slice_with = |change: fn(&mut Value)| {
        let mut slice = json!({"metadata": meta("fleet-member-west", "extra"), "spec": slice_spec()});
        change(&mut slice);
        object::<EndpointSliceExport>("EndpointSliceExport", slice)
    };
    let add = |change: fn(&mut Value)| {
        let mut fleet = stopped();
        fleet.hub.slice_exports.objects_mut().expect(KNOWN).push(slice_with(change));
        deleted(&of_member(&fleet, "west").expect("the agent has stopped")).iter().map(|it| it.1.to_owned()).collect()
    };
    let extra: Vec<String> = add(|slice| slice["spec"]["addressType"] = json!("IPv6"));
    assert_eq!(extra, ["extra", "west"]);
    // Its source slice is gone.
    let extra: Vec<String> = add(|slice| slice["spec"]["endpointSliceReference"]["uid"] = json!("gone"));
    assert_eq!(extra, ["extra", "west"]);
    // A second export of a slice: the first by name stays.
    let extra: Vec<String> = add(|_| {});
    assert_eq!(extra, ["west-shop-app-1-x", "west"]);
    // Another member's.
    let extra: Vec<String> = add(|slice| slice["metadata"]["namespace"] = json!("fleet-member-east"));
    assert_eq!(extra, ["west"]);

    let cases: &[Removal] = &[
        (
            |fleet| set(&mut fleet.hub.internal_exports, "/spec/headless", json!(true)),
            &[
                ("EndpointSliceExport", "west-shop-app-1-x"),
                ("InternalServiceExport", "shop-app"),
                ("MemberAgent", "west"),
            ],
        ),
        (
            |fleet| set(&mut fleet.hub.internal_exports, "/metadata/name", json!("shop-app-1a2b3")),
            &[("InternalServiceExport", "shop-app-1a2b3"), ("MemberAgent", "west")],
        ),
    ];
    for (change, expected) in cases {
        let mut fleet = stopped();
        change(&mut fleet);
        assert_eq!(deleted(&of_member(&fleet, "west").expect("the agent has stopped")), *expected);
    }
    let mut fleet = stopped();
    set(&mut fleet.hub.claims, "/metadata/name", json!("shop-app-1a2b3"));
    let expected = [("InternalServiceImport", "shop-app-1a2b3"), ("MemberAgent", "east")];
    assert_eq!(deleted(&of_member(&fleet, "east").expect("the agent has stopped")), expected);
}

#[test]
fn nothing_is_changed_while_an_agent_runs_or_the_member_is_silent_or_unknown() {
    const HUB_LEASE: &str = "2bf2b407.hub.networking.fleet.azure.com";
    let first: &[Case] = &[
        ("holds the Lease", |fleet| fleet.members[WEST].agent.leases = lease(HUB_LEASE, "member-agent-7", NOW)),
        ("holds the Lease", |fleet| fleet.members[WEST].agent.leases = lease(HUB_LEASE, "some-pod", NOW)),
        ("until fleetnet status shows Ready", |fleet| {
            let silence = json!({"phase": "Postponed", "phaseTime": NOW, "lastRenewTime": NOW, "count": 1});
            let mut agent = member_agent("west");
            agent["status"]["silence"] = silence;
            fleet.hub.member_agents = Listing::of(vec![object("MemberAgent", agent)]);
        }),
        ("until fleetnet status shows Ready", |fleet| {
            let listed = json!([{"cluster": "west", "treatment": "Draining"}]);
            set(&mut fleet.hub.member_agents, "/status/silentMembers", listed);
        }),
        ("its members are east, north", |fleet| fleet.members[WEST].id = "north".to_owned()),
    ];
    for (expected, change) in first {
        let mut fleet = stopped();
        change(&mut fleet);
        let Err(Refused::First(why)) = of_member(&fleet, "west") else { panic!("{expected}") };
        assert!(why.contains(expected), "{why}");
    }
    let not_known: &[Alter] = &[
        |fleet| fleet.members[WEST].slices = Listing::NotAsked,
        |fleet| fleet.members[WEST].agent.leases = Listing::Denied(String::new()),
        |fleet| fleet.hub.slice_exports = Listing::Unknown("slow".to_owned()),
        |fleet| fleet.hub.internal_exports = Listing::Unknown("slow".to_owned()),
        |fleet| fleet.hub.claims = Listing::Unknown("slow".to_owned()),
        |fleet| fleet.hub.member_agents = Listing::Unknown("slow".to_owned()),
    ];
    for change in not_known {
        let mut fleet = stopped();
        change(&mut fleet);
        assert!(matches!(of_member(&fleet, "west"), Err(Refused::NotKnown(_))));
    }
    let harmless: &[Alter] = &[
        |fleet| fleet.members[WEST].agent.leases = lease(HUB_LEASE, "", NOW),
        |fleet| fleet.members[WEST].agent.leases = lease(HUB_LEASE, "member-agent-7", "2027-01-15T12:08:00Z"),
        // The hub is a member of its own fleet.
        |fleet| fleet.members[WEST].agent.leases = lease(HUB_LEASE, "hub-agent-7", NOW),
        |fleet| fleet.members[WEST].agent.leases = lease("another", "member-agent-7", NOW),
    ];
    for change in harmless {
        let mut fleet = stopped();
        change(&mut fleet);
        assert!(of_member(&fleet, "west").is_ok());
    }
}

#[test]
fn in_the_hub_the_announcements_go_after_the_hub_agent_has_stopped() {
    let lease = |holder: &str| lease("2bf2b407.hub.networking.fleet.azure.com", holder, NOW);
    let mut fleet = fleet();
    fleet.hub.agent.leases = lease("hub-agent-1");
    assert!(matches!(of_hub(&fleet), Err(Refused::First(_))));
    fleet.hub.agent.leases = lease("member-agent-1");
    let mut again = member_agent("west");
    again.as_object_mut().expect("an object").remove("status");
    fleet.hub.member_agents =
        Listing::of(vec![object("MemberAgent", member_agent("east")), object("MemberAgent", again)]);
    assert_eq!(deleted(&of_hub(&fleet).expect("the hub agent has stopped")), [("MemberAgent", "east")]);
}

#[test]
fn the_go_form_has_ready_ipv4_addresses_and_ports_only() {
    let is_go = |change: fn(&mut Value)| {
        let mut slice = json!({"metadata": meta("fleet-member-west", "extra"), "spec": slice_spec()});
        change(&mut slice);
        is_go_form(&object::<EndpointSliceExport>("EndpointSliceExport", slice).spec)
    };
    assert!(is_go(|_| {}));
    assert!(!is_go(|slice| slice["spec"]["addressType"] = json!("IPv6")));
    assert!(!is_go(|slice| slice["spec"]["endpoints"][0]["zone"] = json!("a")));
    assert!(!is_go(|slice| slice["spec"]["endpoints"][0]["hostname"] = json!("a")));
    assert!(!is_go(|slice| slice["spec"]["drainingEndpoints"] = json!([{"addresses": ["10.1.0.9"]}])));
}
