//! Tests of the changes before a return to Go agents.

use super::*;
use crate::fixture::{NOW, healthy, lease, member_agent, meta, object, set, set_slice, slice_spec};
use crate::snapshot::Listing;
use fleetnet_api::crd::EndpointSliceExport;
use serde_json::{Value, json};

const KNOWN: &str = "the listing is known";
const STOPPED: &str = "the agent has stopped";
const HUB_LEASE: &str = "2bf2b407.hub.networking.fleet.azure.com";
/// Index of the exporter.
const WEST: usize = 1;

/// Change of a snapshot.
type Alter = fn(&mut Snapshot);
type Case = (&'static str, Alter);
/// Change of a snapshot with the objects that are deleted then.
type Removal = (Alter, &'static [(&'static str, &'static str)]);

/// Fleet whose agents have stopped in both members.
fn stopped() -> Snapshot {
    let mut fleet = healthy();
    set(&mut fleet.members[WEST].slices, "/metadata/uid", json!("uid-of-app-1"));
    set_slice(&mut fleet, "endpointSliceReference/exportedSince", json!("2027-01-15T12:03:04.567890Z"));
    let stopped = ["east", "west"].map(|id| {
        let mut agent = member_agent(id);
        agent["spec"]["plannedStopTime"] = json!("2027-01-15T12:09:58.000000Z");
        object("MemberAgent", agent)
    });
    fleet.hub.member_agents = Listing::of(stopped.into());
    fleet
}

fn west(fleet: &Snapshot) -> Rollback {
    of_member(fleet, "west").expect(STOPPED)
}

fn deleted(rollback: &Rollback) -> Vec<(&str, &str)> {
    let deleted = rollback.changes.iter().filter_map(|change| match change {
        Change::Delete { object, .. } => Some((object.kind.as_str(), object.name.as_str())),
        Change::Annotate(_) | Change::Keep { .. } | Change::Revoke(_) => None,
    });
    deleted.collect()
}

fn kept(rollback: &Rollback) -> Vec<&str> {
    let kept = rollback.changes.iter().filter_map(|change| match change {
        Change::Keep { object, .. } => Some(object.name.as_str()),
        Change::Annotate(_) | Change::Delete { .. } | Change::Revoke(_) => None,
    });
    kept.collect()
}

fn annotated(rollback: &Rollback) -> Option<&Annotated> {
    rollback.changes.iter().find_map(|change| match change {
        Change::Annotate(slice) => Some(slice),
        Change::Delete { .. } | Change::Keep { .. } | Change::Revoke(_) => None,
    })
}

#[test]
fn source_slices_get_the_annotations_by_which_go_agents_find_their_exports() {
    let rollback = west(&stopped());
    let annotations = [
        ("networking.fleet.azure.com/fleet-unique-name", "west-shop-app-1-x"),
        ("networking.fleet.azure.com/last-seen-generation", "3"),
        ("networking.fleet.azure.com/last-seen-timestamp", "2027-01-15T12:03:04Z"),
    ];
    let expected = Annotated {
        namespace: "shop".to_owned(),
        name: "app-1".to_owned(),
        uid: "uid-of-app-1".to_owned(),
        annotations: annotations.map(|(key, value)| (key, value.to_owned())).into(),
    };
    assert_eq!(rollback.changes, [Change::Annotate(expected)]);
    assert_eq!(
        rollback.agent.map(|agent| (agent.kind, agent.name)),
        Some(("MemberAgent".to_owned(), "west".to_owned()))
    );
    assert!(!rollback.is_silent);
}

#[test]
fn a_slice_that_has_the_annotations_is_not_written() {
    let mut fleet = stopped();
    let mut annotations = json!(annotated(&west(&fleet)).expect("it is annotated").annotations);
    // Go agents write the time in their time zone.
    annotations["networking.fleet.azure.com/last-seen-timestamp"] = json!("2027-01-15T14:03:04+02:00");
    set(&mut fleet.members[WEST].slices, "/metadata/annotations", annotations.clone());
    assert_eq!(west(&fleet).changes, []);
    annotations["networking.fleet.azure.com/fleet-unique-name"] = json!("another");
    set(&mut fleet.members[WEST].slices, "/metadata/annotations", annotations);
    let again = west(&fleet);
    let again: Vec<&String> = annotated(&again).expect("it is annotated").annotations.values().collect();
    assert_eq!(again, ["west-shop-app-1-x"]);
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
        deleted(&west(&fleet)).iter().map(|it| it.1.to_owned()).collect()
    };
    let extra: Vec<String> = add(|slice| slice["spec"]["addressType"] = json!("IPv6"));
    assert_eq!(extra, ["extra"]);
    // Its source slice is gone.
    let extra: Vec<String> = add(|slice| slice["spec"]["endpointSliceReference"]["uid"] = json!("gone"));
    assert_eq!(extra, ["extra"]);
    // A second export of a slice: the first by name stays.
    let extra: Vec<String> = add(|_| {});
    assert_eq!(extra, ["west-shop-app-1-x"]);
    // Another member's.
    let extra: Vec<String> = add(|slice| slice["metadata"]["namespace"] = json!("fleet-member-east"));
    assert_eq!(extra, [""; 0]);

    let cases: &[Removal] = &[(
        |fleet| set(&mut fleet.hub.internal_exports, "/spec/headless", json!(true)),
        &[("EndpointSliceExport", "west-shop-app-1-x"), ("InternalServiceExport", "shop-app")],
    )];
    for (change, expected) in cases {
        let mut fleet = stopped();
        change(&mut fleet);
        assert_eq!(deleted(&west(&fleet)), *expected);
    }
}

/// Also rule U18.
#[test]
fn exports_and_claims_with_another_name_go_when_go_agents_have_written_their_own() {
    let mut fleet = stopped();
    set(&mut fleet.hub.internal_exports, "/metadata/name", json!("shop-app-1a2b3"));
    assert_eq!((kept(&west(&fleet)), deleted(&west(&fleet))), (vec!["shop-app-1a2b3"], vec![]));
    let mut own = fleet.hub.internal_exports.objects().next().expect("an export").clone();
    own.metadata.name = Some("shop-app".to_owned());
    fleet.hub.internal_exports.objects_mut().expect(KNOWN).push(own.clone());
    assert_eq!(deleted(&west(&fleet)), [("InternalServiceExport", "shop-app-1a2b3")]);
    // The export of another Service has the same joined name.
    own.spec.service_reference.name = "other".to_owned();
    fleet.hub.internal_exports.objects_mut().expect(KNOWN)[1] = own;
    assert_eq!((kept(&west(&fleet)), deleted(&west(&fleet))), (vec!["shop-app-1a2b3", "shop-app"], vec![]));

    let mut fleet = stopped();
    set(&mut fleet.hub.claims, "/metadata/name", json!("shop-app-1a2b3"));
    assert_eq!(kept(&of_member(&fleet, "east").expect(STOPPED)), ["shop-app-1a2b3"]);
    assert_eq!(kept(&west(&fleet)), [""; 0], "the claim is another member's");
    let mut own = fleet.hub.claims.objects().next().expect("a claim").clone();
    own.metadata.name = Some("shop-app".to_owned());
    fleet.hub.claims.objects_mut().expect(KNOWN).push(own);
    assert_eq!(deleted(&of_member(&fleet, "east").expect(STOPPED)), [("InternalServiceImport", "shop-app-1a2b3")]);
}

/// Also rule U18.
#[test]
fn nothing_is_changed_while_an_agent_runs_or_the_cluster_is_another_one() {
    let cases: &[Case] = &[
        ("holds the Lease", |fleet| fleet.members[WEST].agent.leases = lease(HUB_LEASE, "member-agent-7", NOW)),
        ("holds the Lease", |fleet| fleet.members[WEST].agent.leases = lease(HUB_LEASE, "some-pod", NOW)),
        ("sent a heartbeat", |fleet| {
            fleet.hub.member_agents = Listing::of(vec![object("MemberAgent", member_agent("west"))]);
        }),
        ("another UID", |fleet| fleet.members[WEST].cluster_uid = Some("another".to_owned())),
        ("no source slice of the member's exports", |fleet| {
            fleet.hub.member_agents = Listing::of(Vec::new());
            set(&mut fleet.members[WEST].slices, "/metadata/uid", json!("another"));
        }),
        ("its members are east, north", |fleet| fleet.members[WEST].id = "north".to_owned()),
    ];
    for (expected, change) in cases {
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
        // Go agents run already, or one of the two always ran.
        |fleet| fleet.members[WEST].agent.leases = lease(HUB_LEASE, "mcs-controller-manager-1", NOW),
        // The hub has the CRDs of the Go agents, or the command ran before.
        |fleet| fleet.hub.member_agents = Listing::NotDefined,
        |fleet| fleet.hub.member_agents = Listing::of(Vec::new()),
    ];
    for change in harmless {
        let mut fleet = stopped();
        change(&mut fleet);
        let rollback = of_member(&fleet, "west").expect(STOPPED);
        assert!(annotated(&rollback).is_some() && !rollback.is_silent);
    }
}

#[test]
fn a_member_is_silent_if_its_own_record_or_another_list_says_so_and_the_hub_agent_is_fleetnets() {
    let silence = json!({"phase": "Postponed", "phaseTime": NOW, "lastRenewTime": NOW, "count": 1});
    let mut judged = stopped();
    set(&mut judged.hub.member_agents, "/status/silence", silence);
    assert!(of_member(&judged, "east").expect(STOPPED).is_silent);
    assert!(!west(&judged).is_silent, "another member is");
    let mut listed = stopped();
    set(&mut listed.hub.member_agents, "/status/silentMembers", json!([{"cluster": "west", "treatment": "Draining"}]));
    assert!(west(&listed).is_silent);
    listed.hub.agent.leases = lease(HUB_LEASE, "hub-net-controller-manager-1", NOW);
    assert!(!west(&listed).is_silent);
}

#[test]
fn in_the_hub_the_announcements_end_after_the_hub_agent_has_stopped() {
    let lease = |holder: &str| lease(HUB_LEASE, holder, NOW);
    let mut fleet = healthy();
    fleet.hub.agent.leases = lease("hub-agent-1");
    assert!(matches!(of_hub(&fleet), Err(Refused::First(_))));
    fleet.hub.agent.leases = lease("member-agent-1");
    let mut again = member_agent("west");
    again.as_object_mut().expect("an object").remove("status");
    fleet.hub.member_agents =
        Listing::of(vec![object("MemberAgent", member_agent("east")), object("MemberAgent", again)]);
    let rollback = of_hub(&fleet).expect("the hub agent has stopped");
    let [Change::Revoke(agent)] = &rollback.changes[..] else { panic!("{rollback:?}") };
    assert_eq!((agent.name.as_str(), rollback.agent.as_ref()), ("east", None));
    fleet.hub.member_agents = Listing::NotDefined;
    assert_eq!(of_hub(&fleet), Ok(Rollback::default()));
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

/// Adds a MergedServiceImport for east, which imports the Service or not.
fn merge(fleet: &mut Snapshot, is_imported: bool) {
    let mut metadata = meta("fleet-member-east", "shop-app-x");
    if is_imported {
        metadata["finalizers"] = json!(["networking.fleet.azure.com/mergedserviceimport-cleanup"]);
    }
    let reference = json!({"namespace": "shop", "name": "app", "namespacedName": "shop/app"});
    let spec = json!({"serviceReference": reference, "type": "ClusterSetIP", "clusters": [{"cluster": "west"}]});
    let merged = object("MergedServiceImport", json!({"metadata": metadata, "spec": spec}));
    fleet.hub.merged_imports = Listing::of(vec![merged]);
}

#[test]
fn exports_by_the_mcs_api_only_are_deleted_and_its_imports_must_end_before() {
    let mut fleet = stopped();
    set(&mut fleet.hub.internal_exports, "/spec/multicluster", json!({"only": true}));
    let slice = ("EndpointSliceExport", "west-shop-app-1-x");
    assert_eq!(deleted(&west(&fleet)), [slice, ("InternalServiceExport", "shop-app")]);
    set(&mut fleet.hub.internal_exports, "/spec/multicluster", json!({}));
    assert_eq!(deleted(&west(&fleet)), [], "both APIs export it");

    merge(&mut fleet, true);
    for refused in [of_member(&fleet, "east"), of_hub(&fleet)] {
        let Err(Refused::First(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains("east imports shop/app by the standard API") && why.contains("fleetnet/import"), "{why}");
    }
    assert_eq!(deleted(&west(&fleet)), [], "another member imports");
    merge(&mut fleet, false);
    assert_eq!(deleted(&of_member(&fleet, "east").expect(STOPPED)), []);
    assert_eq!(deleted(&of_hub(&fleet).expect(STOPPED)), [("MergedServiceImport", "shop-app-x")]);
    fleet.hub.merged_imports = Listing::NotDefined;
    assert_eq!(deleted(&of_hub(&fleet).expect(STOPPED)), []);
    fleet.hub.merged_imports = Listing::Unknown("Timeout".to_owned());
    assert!(matches!(of_hub(&fleet), Err(Refused::NotKnown(_))));
}
