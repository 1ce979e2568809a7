//! Tests of the steps about endpoints: which of them are missing, and which only look so.

use super::*;
use crate::fixture::{app, at, built_in, healthy, meta, object, set};
use crate::snapshot::Listing;
use Code::*;
use k8s_openapi::api::core::v1::{Pod, Service};
use serde_json::{Value, json};

const KNOWN: &str = "the listing is known";
/// Indexes of importer and exporter.
const EAST: usize = 0;
const WEST: usize = 1;

/// Returns the causes and notices of an altered fleet, with its verdict.
fn found(alter: impl FnOnce(&mut Snapshot)) -> (Vec<Code>, Verdict) {
    let mut snapshot = healthy();
    alter(&mut snapshot);
    let explanation = explain(&snapshot, &app(), &Filter::default());
    let causes = explanation.pairs.iter().filter_map(|pair| pair.cause.as_ref());
    (causes.chain(&explanation.notices).map(|finding| finding.code).collect(), explanation.verdict)
}

fn nothing_is_carried(snapshot: &mut Snapshot) {
    snapshot.hub.slice_exports = Listing::of(Vec::new());
    snapshot.hub.distributed_slices = Listing::of(Vec::new());
    snapshot.members[EAST].slices = Listing::of(Vec::new());
}

/// Returns a ready pod of the exported Service with these addresses.
fn pod(namespace: &str, addresses: &[&str], change: Value) -> Pod {
    let mut metadata = meta(namespace, "app-1");
    metadata["labels"] = json!({"app": "app"});
    let ips: Vec<Value> = addresses.iter().map(|address| json!({"ip": address})).collect();
    let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2027-01-15T12:00:00Z"}]);
    let mut pod = json!({
        "metadata": metadata, "spec": {"containers": []},
        "status": {"phase": "Running", "podIP": addresses[0], "podIPs": ips, "conditions": ready},
    });
    for (field, value) in change.as_object().into_iter().flatten() {
        let pointer = field.replace('.', "/");
        let (parent, name) = pointer.rsplit_once('/').expect("a path");
        pod.pointer_mut(&format!("/{parent}")).expect("it exists")[name] = value.clone();
    }
    built_in(pod)
}

/// Gives the exporter's Service a selector, and the exporter this pod.
fn select(snapshot: &mut Snapshot, pod: Pod) {
    set(&mut snapshot.members[WEST].services, "/spec", json!({"selector": {"app": "app"}}));
    snapshot.members[WEST].pods = Listing::of(vec![pod]);
}

#[test]
fn a_ready_pod_must_be_ready_in_a_slice_by_one_of_its_addresses() {
    let stale = found(|it| {
        select(it, pod("shop", &["10.1.0.1"], json!({})));
        let endpoint = json!([{"addresses": ["10.1.0.1"], "conditions": {"ready": false}}]);
        set(&mut it.members[WEST].slices, "/endpoints", endpoint);
        nothing_is_carried(it);
    });
    assert_eq!(stale, (vec![FN318], Verdict::Fault));
    // The Service uses the second family of the pod.
    let second = found(|it| select(it, pod("shop", &["fd00::1", "10.1.0.1"], json!({}))));
    assert_eq!(second, (vec![], Verdict::Healthy));
}

#[test]
fn an_import_of_another_service_is_a_fault_only_if_it_is_known_that_nobody_exports_that_one() {
    let other = |imports: Listing<_>| {
        found(|it| {
            set(&mut it.members[EAST].multi_cluster_services, "/spec/serviceImport/name", json!("other"));
            it.hub.claims = Listing::of(Vec::new());
            it.hub.service_imports = imports;
            it.hub.distributed_slices = Listing::of(Vec::new());
            it.members[EAST].slices = Listing::of(Vec::new());
        })
    };
    let status = json!({"type": "ClusterSetIP", "clusters": [{"cluster": "west"}]});
    let exported = object("ServiceImport", json!({"metadata": meta("shop", "other"), "status": status}));
    assert_eq!(other(Listing::of(Vec::new())), (vec![FN413], Verdict::Fault));
    assert_eq!(other(Listing::of(vec![exported])), (vec![], Verdict::Healthy));
    assert_eq!(other(Listing::Unknown("late".to_owned())), (vec![], Verdict::NotKnown));
}

#[test]
fn only_live_pods_with_addresses_of_their_own_show_that_pod_networks_overlap() {
    let with = |own: Value, other: Value| {
        found(|it| {
            let target = json!({"kind": "Pod", "name": "app-1"});
            let endpoint = json!([{"addresses": ["10.1.0.1"], "conditions": {"ready": true}, "targetRef": target}]);
            set(&mut it.members[WEST].slices, "/endpoints", endpoint);
            it.members[WEST].pods = Listing::of(vec![pod("shop", &["10.1.0.1"], own)]);
            it.members[EAST].pods = Listing::of(vec![pod("shop", &["10.1.0.1"], other)]);
        })
    };
    let healthy = (vec![], Verdict::Healthy);
    assert_eq!(with(json!({}), json!({})), (vec![FN707], Verdict::Fault));
    for phase in ["Succeeded", "Failed"] {
        assert_eq!(with(json!({}), json!({"status.phase": phase})), healthy, "{phase}");
    }
    assert_eq!(with(json!({}), json!({"metadata.deletionTimestamp": "2027-01-15T12:00:00Z"})), healthy);
    let on_node = json!({"spec.hostNetwork": true});
    assert_eq!(with(json!({}), on_node.clone()), healthy);
    assert_eq!(with(on_node, json!({})), healthy);
}

#[test]
fn a_service_import_that_hangs_in_deletion_is_the_cause_of_a_missing_claim() {
    let hanging = found(|it| {
        let mut metadata = meta("shop", "app");
        metadata["deletionTimestamp"] = json!("2027-01-15T12:01:00Z");
        metadata["finalizers"] = json!(["example.com/never"]);
        it.members[EAST].service_imports = Listing::of(vec![object("ServiceImport", json!({"metadata": metadata}))]);
        it.hub.claims = Listing::of(Vec::new());
        it.hub.distributed_slices = Listing::of(Vec::new());
        it.members[EAST].slices = Listing::of(Vec::new());
    });
    assert_eq!(hanging, (vec![FN612], Verdict::Fault));
}

#[test]
fn a_change_of_either_service_is_waited_for() {
    let changed = |member: usize, now: &str| {
        found(|it| {
            let service: &mut Service = &mut it.members[member].services.objects_mut().expect(KNOWN)[0];
            service.metadata.managed_fields = Some(vec![built_in(json!({"time": "2027-01-15T12:05:00Z"}))]);
            let port = json!([{"name": "other", "port": 81}]);
            set(&mut it.members[member].services, "/spec", json!({"ports": port}));
            it.members[member].connection.now = Some(at(now));
        })
    };
    for (member, code) in [(EAST, FN701), (WEST, FN321)] {
        assert_eq!(changed(member, "2027-01-15T12:05:09Z"), (vec![], Verdict::Healthy));
        assert_eq!(changed(member, "2027-01-15T12:05:10Z"), (vec![code], Verdict::Fault));
    }
}

#[test]
fn a_session_affinity_that_has_just_changed_is_no_notice() {
    let changed = |now: &str| {
        found(|it| {
            let service: &mut Service = &mut it.members[WEST].services.objects_mut().expect(KNOWN)[0];
            service.metadata.managed_fields = Some(vec![built_in(json!({"time": "2027-01-15T12:05:00Z"}))]);
            set(&mut it.members[WEST].services, "/spec", json!({"sessionAffinity": "ClientIP"}));
            it.members[WEST].connection.now = Some(at(now));
        })
    };
    assert_eq!(changed("2027-01-15T12:05:09Z"), (vec![], Verdict::Healthy));
    assert_eq!(changed("2027-01-15T12:05:10Z"), (vec![FN617], Verdict::Healthy));
}

/// Adds a copy of the first slice of a listing, with an IPv6 address.
fn add_six<K: serde::Serialize + serde::de::DeserializeOwned>(slices: &mut Listing<K>, spec: &str) {
    let objects = slices.objects_mut().expect(KNOWN);
    let mut six = serde_json::to_value(&objects[0]).expect("it serializes");
    let name = format!("{}-six", six["metadata"]["name"].as_str().expect("a name"));
    (six["metadata"]["name"], six["metadata"]["uid"]) = (json!(name), json!(format!("uid-of-{name}")));
    let content = six.pointer_mut(spec).expect("the content");
    content["addressType"] = json!("IPv6");
    content["endpoints"] = json!([{"addresses": ["fd00::1"], "conditions": {"ready": true}}]);
    if let Some(reference) = content.get_mut("endpointSliceReference") {
        reference["uid"] = json!("uid-of-app-1-six");
    }
    objects.push(built_in(six));
}

#[test]
fn endpoints_of_a_family_that_the_derived_service_lacks_are_not_compared() {
    let dual = |families: Value, imported: bool| {
        found(|it| {
            add_six(&mut it.members[WEST].slices, "");
            add_six(&mut it.hub.slice_exports, "/spec");
            add_six(&mut it.hub.distributed_slices, "/spec");
            add_six(&mut it.members[EAST].slices, "");
            if !imported {
                set_last(&mut it.members[EAST].slices, "/endpoints", json!([]));
            }
            let spec = json!({"ipFamilies": families, "ports": [{"name": "http", "port": 80}]});
            set(&mut it.members[EAST].services, "/spec", spec);
        })
    };
    for imported in [true, false] {
        assert_eq!(dual(json!(["IPv4"]), imported), (vec![], Verdict::Healthy), "{imported}");
    }
    assert_eq!(dual(json!(["IPv4", "IPv6"]), true), (vec![], Verdict::Healthy));
    assert_eq!(dual(json!(["IPv4", "IPv6"]), false), (vec![FN701], Verdict::Fault));
}

/// Sets a field of the last object of a listing.
fn set_last<K: serde::Serialize + serde::de::DeserializeOwned>(objects: &mut Listing<K>, pointer: &str, value: Value) {
    objects.objects_mut().expect(KNOWN).reverse();
    set(objects, pointer, value);
    objects.objects_mut().expect(KNOWN).reverse();
}

#[test]
fn an_export_that_is_not_valid_has_one_fault() {
    let mut snapshot = healthy();
    let valid = crate::fixture::conditions("Valid", "False", "ServiceNotFound");
    set(&mut snapshot.members[WEST].service_exports, "/status/conditions", valid);
    snapshot.hub.internal_exports = Listing::of(Vec::new());
    let explanation = explain(&snapshot, &app(), &Filter::default());
    let broken = explanation.pairs[0].steps.iter().filter(|step| step.outcome == Outcome::Broken);
    assert_eq!(broken.map(|step| step.code).collect::<Vec<_>>(), [FN302]);
}

#[test]
fn a_remedy_has_the_names_of_the_member_and_of_the_service() {
    let remedy = |missing: &str| {
        let mut snapshot = healthy();
        let namespaces = snapshot.hub.namespaces.objects_mut().expect(KNOWN);
        namespaces.retain(|namespace| namespace.metadata.name.as_deref() != Some(missing));
        let explanation = explain(&snapshot, &app(), &Filter::default());
        explanation.pairs[0].cause.as_ref().expect("a fault").remedy.clone()
    };
    let member = remedy("fleet-member-west");
    assert!(member.contains("`fleetnet join west`"), "{member}");
    let service = remedy("shop");
    assert!(service.contains("namespace shop in the hub"), "{service}");
}

/// Sets the endpoints of the exported slice, in the exporter and in the hub.
fn export_two(snapshot: &mut Snapshot) {
    let endpoints = json!([{"addresses": ["10.1.0.1"]}, {"addresses": ["10.1.0.2"]}]);
    set(&mut snapshot.members[WEST].slices, "/endpoints", endpoints.clone());
    set(&mut snapshot.hub.slice_exports, "/spec/endpoints", endpoints.clone());
    set(&mut snapshot.hub.distributed_slices, "/spec/endpoints", endpoints);
}

#[test]
fn endpoints_beyond_the_limit_of_the_importer_have_their_cause() {
    let with = |argument: &str| {
        found(|it| {
            export_two(it);
            let containers = json!({"containers": [{"name": "agent", "args": [argument]}]});
            set(&mut it.members[EAST].agent.deployments, "/spec/template/spec", containers);
        })
    };
    assert_eq!(with("--max-imported-endpoints=1"), (vec![FN618], Verdict::Fault));
    let whole_slice = found(|it| {
        let slices = it.hub.distributed_slices.objects_mut().expect(KNOWN);
        let mut more = slices[0].clone();
        more.metadata.name = Some("west-shop-app-2-x".to_owned());
        slices.push(more);
        let containers = json!({"containers": [{"name": "agent", "args": ["--max-imported-slices=1"]}]});
        set(&mut it.members[EAST].agent.deployments, "/spec/template/spec", containers);
    });
    assert_eq!(whole_slice, (vec![FN618], Verdict::Fault), "a slice that is missing");
    let all_imported = found(|it| {
        export_two(it);
        let endpoints = json!([{"addresses": ["10.1.0.1"]}, {"addresses": ["10.1.0.2"]}]);
        set(&mut it.members[EAST].slices, "/endpoints", endpoints);
        let containers = json!({"containers": [{"name": "agent", "args": ["--max-imported-endpoints=1"]}]});
        set(&mut it.members[EAST].agent.deployments, "/spec/template/spec", containers);
    });
    assert_eq!(all_imported, (Vec::new(), Verdict::Healthy), "another agent imported them");
    for argument in ["--max-imported-endpoints=2", "--max-imported-endpoints=0", "--max-imported-slices=1", "--v=1"] {
        assert_eq!(with(argument), (vec![FN701], Verdict::Fault), "{argument}");
    }
}

#[test]
fn a_slice_of_a_member_whose_id_begins_with_that_of_the_exporter_is_not_of_the_exporter() {
    let mut snapshot = healthy();
    let mut other = snapshot.members[WEST].clone();
    other.id = "west-shop".to_owned();
    snapshot.members.push(other);
    let slices = snapshot.members[EAST].slices.objects_mut().expect(KNOWN);
    let mut more = slices[0].clone();
    more.metadata.name = Some("west-shop-shop-app-1-x".to_owned());
    more.endpoints.as_mut().expect(KNOWN)[0].addresses = vec!["10.9.0.1".to_owned()];
    slices.push(more);
    let of_west = Filter { from: Some("west".to_owned()), ..Filter::default() };
    let explanation = explain(&snapshot, &app(), &of_west);
    assert_eq!(explanation.verdict, Verdict::Healthy, "{:?}", explanation.pairs);
}

#[test]
fn a_distribution_of_a_new_change_is_waited_for() {
    let codes = |since: &str| {
        let mut snapshot = healthy();
        set(&mut snapshot.hub.slice_exports, "/spec/endpointSliceReference/exportedSince", json!(since));
        set(&mut snapshot.hub.slice_exports, "/spec/endpoints", json!([{"addresses": ["10.1.0.2"]}]));
        set(&mut snapshot.members[WEST].slices, "/endpoints", json!([{"addresses": ["10.1.0.2"]}]));
        outcome(&snapshot, FN503)
    };
    for (since, expected) in [
        ("2027-01-15T12:09:59.900000Z", Outcome::Waiting),
        ("2027-01-15T12:10:00.900000Z", Outcome::Waiting),
        ("2027-01-15T12:09:49.000000Z", Outcome::Broken),
        // A clock that is an hour ahead.
        ("2027-01-15T13:10:00.000000Z", Outcome::Broken),
    ] {
        assert_eq!(codes(since), expected, "{since}");
    }
}

/// Returns the outcome of a step between exporter and importer.
fn outcome(snapshot: &Snapshot, code: Code) -> Outcome {
    let explanation = explain(snapshot, &app(), &Filter::default());
    explanation.pairs[0].steps.iter().find(|step| step.code == code).expect("a step").outcome
}

#[test]
fn an_import_of_a_new_change_is_waited_for() {
    for (since, expected) in
        [("2027-01-15T12:09:59.900000Z", Outcome::Waiting), ("2027-01-15T12:09:49.000000Z", Outcome::Broken)]
    {
        let mut snapshot = healthy();
        export_two(&mut snapshot);
        set(&mut snapshot.hub.distributed_slices, "/spec/endpointSliceReference/exportedSince", json!(since));
        assert_eq!(outcome(&snapshot, FN701), expected, "{since}");
        let observed = json!({"networking.fleet.azure.com/last-observed-generation": "2"});
        set(&mut snapshot.members[EAST].slices, "/metadata/annotations", observed);
        assert_eq!(outcome(&snapshot, FN606), expected, "{since}");
    }
}

#[test]
fn an_export_that_ends_with_its_namespace_in_the_hub_is_reported_once() {
    let mut snapshot = healthy();
    set(&mut snapshot.hub.service_imports, "/status/clusters", json!([]));
    assert_eq!(outcome(&snapshot, FN702), Outcome::Broken);
    for (deleted, of_namespace) in
        [("2027-01-15T12:09:57Z", Outcome::Waiting), ("2027-01-15T12:09:00Z", Outcome::Broken)]
    {
        set(&mut snapshot.hub.namespaces, "/metadata/deletionTimestamp", json!(deleted));
        let outcomes = [FN303, FN702].map(|code| outcome(&snapshot, code));
        assert_eq!(outcomes, [of_namespace, Outcome::Skipped], "{deleted}");
    }
}
