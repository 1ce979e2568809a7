//! Tests of codes with several causes: each has its own evidence and remedy. And of changes under way: none of them
//! looks healthy.

use super::*;
use crate::fixture::{app, at, built_in, conditions, healthy, meta, object, set};
use crate::snapshot::Listing;
use Code::*;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::{Value, json};

const KNOWN: &str = "the listing is known";
/// Indexes of importer and exporter.
const EAST: usize = 0;
const WEST: usize = 1;
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Name of a case, and the change of the healthy fleet.
type Change = (&'static str, fn(&mut Snapshot));
/// Name of a case, the change of the healthy fleet, and a part of the remedy.
type Altered<'a> = (&'a str, &'a dyn Fn(&mut Snapshot), &'a str);

fn altered(alter: impl FnOnce(&mut Snapshot)) -> Explanation {
    let mut snapshot = healthy();
    alter(&mut snapshot);
    explain(&snapshot, &app(), &Filter::default())
}

/// Returns code, evidence and remedy of the cause.
fn cause(explanation: &Explanation) -> (Code, &str, &str) {
    let cause = explanation.pairs[0].cause.as_ref().expect("there is a cause");
    (cause.code, &cause.evidence.value, &cause.remedy)
}

fn nothing_is_carried(snapshot: &mut Snapshot) {
    snapshot.hub.slice_exports = Listing::of(Vec::new());
    snapshot.hub.distributed_slices = Listing::of(Vec::new());
    snapshot.members[EAST].slices = Listing::of(Vec::new());
}

/// Returns a slice in the exporter with these metadata, added to those that each object has.
fn slice(name: &str, more: &Value) -> EndpointSlice {
    let mut metadata = meta("shop", name);
    for (field, value) in more.as_object().into_iter().flatten() {
        metadata[field] = value.clone();
    }
    built_in(json!({"metadata": metadata, "addressType": "IPv4", "endpoints": [{"addresses": ["10.1.0.1"]}]}))
}

#[test]
fn a_service_without_ready_endpoints_has_the_remedy_of_its_cause() {
    type Case = (&'static str, fn(&mut Snapshot), &'static str, &'static str);
    let not_ready = |it: &mut Snapshot| {
        set(
            &mut it.members[WEST].slices,
            "/endpoints",
            json!([{"addresses": ["10.1.0.1"], "conditions": {"ready": false}}]),
        );
    };
    fn select(it: &mut Snapshot) {
        set(&mut it.members[WEST].services, "/spec", json!({"selector": {"app": "app"}}));
    }
    fn names(it: &mut Snapshot) {
        set(&mut it.members[WEST].slices, "/addressType", json!("FQDN"));
        set(&mut it.members[WEST].slices, "/endpoints", json!([{"addresses": ["db.example"]}]));
    }
    let cases: &[Case] = &[
        (
            "names",
            names,
            "FQDN: no cluster can import slices of this type, so they are not carried",
            "slices of type FQDN are not carried",
        ),
        (
            "names beside an empty slice",
            |it| {
                names(it);
                let mut empty = slice("app-2", &json!({"labels": {SERVICE_NAME: "app"}}));
                empty.endpoints = Some(Vec::new());
                it.members[WEST].slices.objects_mut().expect(KNOWN).push(empty);
            },
            "0 of 0 ready, and the Service has no selector. Slices of address type FQDN are not carried",
            "Write a ready endpoint to the EndpointSlices",
        ),
        ("no selector", |_| {}, "0 of 1 ready, and the Service has no selector", "Write a ready endpoint"),
        ("no pod", select, "0 of 1 ready, and no pod has the labels of the selector: app=app", "Correct the selector"),
        (
            "pods that are not ready",
            |it| {
                select(it);
                let mut metadata = meta("shop", "app-1");
                metadata["labels"] = json!({"app": "app"});
                it.members[WEST].pods = Listing::of(vec![built_in(json!({"metadata": metadata}))]);
            },
            "0 of 1 ready",
            "`kubectl --context west -n shop describe pods -l app=app` shows why",
        ),
        (
            "unread pods",
            |it| {
                select(it);
                it.members[WEST].pods = Listing::Denied(String::new());
            },
            "0 of 1 ready",
            FN316.entry().remedy,
        ),
    ];
    for (case, alter, value, remedy) in cases {
        let explanation = altered(|it| {
            not_ready(it);
            alter(it);
            nothing_is_carried(it);
        });
        let found = cause(&explanation);
        assert_eq!((found.0, found.1), (FN316, *value), "{case}");
        assert!(found.2.contains(remedy), "{case}: {}", found.2);
    }
}

#[test]
fn slices_that_are_meant_for_the_service_and_lack_its_label_are_named() {
    let without = |slices: Vec<EndpointSlice>| {
        altered(|it| {
            it.members[WEST].slices = Listing::of(slices);
            let more: Service = built_in(json!({"metadata": meta("shop", "app-db"), "spec": {}}));
            it.members[WEST].services.objects_mut().expect(KNOWN).push(more);
            nothing_is_carried(it);
        })
    };
    let foreign = |label: &str| json!({"labels": {SERVICE_NAME: label}});
    let owner = json!([{"apiVersion": "v1", "kind": "Service", "name": "app", "uid": "uid-of-app"}]);
    let label = "kubectl --context west -n shop label --overwrite endpointslices";
    let set_to = "kubernetes.io/service-name=app`.";
    let named: &[(&str, Vec<EndpointSlice>, &str, &str)] = &[
        (
            "no label",
            vec![slice("app-1", &json!({})), slice("app", &json!({}))],
            "missing, so these EndpointSlices do not belong to Service app: app-1, app",
            "app-1 app",
        ),
        (
            "another label",
            vec![slice("app-1", &foreign("web"))],
            "web, so these EndpointSlices do not belong to Service app: app-1",
            "app-1",
        ),
        (
            "the label of a Service with another name",
            vec![slice("app-1", &foreign("app-db"))],
            "app-db, so these EndpointSlices do not belong to Service app: app-1",
            "app-1",
        ),
        (
            "an owner",
            vec![slice("x", &json!({"ownerReferences": owner}))],
            "missing, so these EndpointSlices do not belong to Service app: x",
            "x",
        ),
    ];
    for (case, slices, value, names) in named {
        let explanation = without(slices.clone());
        assert_eq!(
            cause(&explanation),
            (FN317, *value, &*format!("Set the label of the EndpointSlices: `{label} {names} {set_to}")),
            "{case}"
        );
    }
    let deleted = json!({"deletionTimestamp": "2027-01-15T12:09:00Z"});
    for (case, slices) in [
        ("none", vec![]),
        ("another name", vec![slice("web-1", &json!({})), slice("apple-1", &json!({}))]),
        ("a slice of the other Service", vec![slice("app-db-1", &foreign("app-db"))]),
        ("a slice that is meant for the other Service", vec![slice("app-db-1", &json!({}))]),
        ("a slice that is being deleted", vec![slice("app-1", &deleted)]),
    ] {
        let explanation = without(slices);
        assert_eq!(cause(&explanation), (FN317, "none, and no EndpointSlice", FN317.entry().remedy), "{case}");
    }
}

/// Gives the exporter a ServiceExport of the standard API that is not valid for a reason, and no other.
fn only_mcs(snapshot: &mut Snapshot, reason: &str) {
    let mut export =
        json!({"metadata": meta("shop", "app"), "status": {"conditions": conditions("Valid", "False", reason)}});
    (export["apiVersion"], export["kind"]) = (json!("multicluster.x-k8s.io/v1alpha1"), json!("ServiceExport"));
    snapshot.members[WEST].mcs_exports = Listing::of(vec![built_in(export)]);
    snapshot.members[WEST].service_exports = Listing::of(Vec::new());
    snapshot.members[WEST].mcs_imports = Listing::of(Vec::new());
    for agent in snapshot.hub.member_agents.objects_mut().expect(KNOWN) {
        let all = json!(["IPv6", "Headless", "MulticlusterApi"]);
        agent.spec.features = Some(serde_json::from_value(all.clone()).expect("features"));
        agent.status.as_mut().expect(KNOWN).features = Some(serde_json::from_value(all).expect("features"));
    }
    snapshot.hub.internal_exports = Listing::of(Vec::new());
    snapshot.hub.service_imports = Listing::of(Vec::new());
    snapshot.hub.claims = Listing::of(Vec::new());
    snapshot.members[EAST].multi_cluster_services = Listing::of(Vec::new());
    nothing_is_carried(snapshot);
}

#[test]
fn a_service_that_cannot_be_exported_has_the_remedy_of_its_api() {
    let fleet = |reason: &'static str| {
        move |it: &mut Snapshot| {
            let status = conditions("Valid", "False", reason);
            set(&mut it.members[WEST].service_exports, "/status/conditions", status);
        }
    };
    let headless = |it: &mut Snapshot| set(&mut it.members[WEST].services, "/spec", json!({"clusterIP": "None"}));
    let external = |it: &mut Snapshot| set(&mut it.members[WEST].services, "/spec", json!({"type": "ExternalName"}));
    let cases: &[Altered<'_>] = &[
        (
            "headless",
            &|it| {
                fleet("ServiceIneligible")(it);
                headless(it);
            },
            "Set the annotation networking.fleet.azure.com/export-headless",
        ),
        (
            "a type without endpoints",
            &|it| {
                fleet("ServiceIneligible")(it);
                external(it);
            },
            "a Service of type ExternalName has no endpoints",
        ),
        ("ports", &fleet("TooManyPorts"), "at most 1000 ports"),
        ("derived", &fleet("ServiceImported"), "the clusters that run the Service export it"),
        (
            "mcs: a type without endpoints",
            &|it| {
                only_mcs(it, "InvalidServiceType");
                external(it);
            },
            "a Service of type ExternalName has no endpoints",
        ),
        (
            "mcs: a type that has changed since",
            &|it| only_mcs(it, "InvalidServiceType"),
            "a Service of type ExternalName has no endpoints",
        ),
        (
            "mcs: derived",
            &|it| {
                only_mcs(it, "ServiceImported");
                headless(it);
            },
            "the clusters that run the Service export it",
        ),
    ];
    for (case, alter, expected) in cases {
        let explanation = altered(*alter);
        let (code, _, remedy) = cause(&explanation);
        assert_eq!(code, FN304, "{case}");
        assert!(remedy.contains(expected), "{case}: {remedy}");
        let is_mcs = case.starts_with("mcs");
        assert_eq!(explanation.pairs[0].api == Api::Mcs, is_mcs, "{case}");
        assert!(!is_mcs || !remedy.contains("export-headless"), "{case}: {remedy}");
    }
}

/// Adds an EndpointSliceExport of the Service from `north`, with these addresses.
fn north_exports(snapshot: &mut Snapshot, service: &str, addresses: &Value) {
    let mut spec = crate::fixture::slice_spec();
    spec["endpoints"] = json!([{"addresses": addresses}]);
    spec["ownerServiceReference"] =
        json!({"namespace": "shop", "name": service, "namespacedName": format!("shop/{service}")});
    let metadata = meta("fleet-member-north", "north-shop-app-1-x");
    let export = object("EndpointSliceExport", json!({"metadata": metadata, "spec": spec}));
    snapshot.hub.slice_exports.objects_mut().expect(KNOWN).push(export);
    let exports = snapshot.hub.internal_exports.objects_mut().expect(KNOWN);
    let mut north = exports[0].clone();
    (north.metadata.namespace, north.spec.service_reference.name) =
        (Some("fleet-member-north".to_owned()), service.to_owned());
    exports.push(north);
}

#[test]
fn an_address_that_two_clusters_export_is_a_notice_whoever_wrote_the_slices() {
    let from_west = |alter: &dyn Fn(&mut Snapshot)| {
        let mut snapshot = healthy();
        alter(&mut snapshot);
        explain(&snapshot, &app(), &Filter { from: Some("west".to_owned()), ..Filter::default() })
    };
    let notices = |explanation: &Explanation| -> Vec<Code> { explanation.notices.iter().map(|it| it.code).collect() };
    let shared = from_west(&|it| north_exports(it, "app", &json!(["10.1.0.9", "10.1.0.1"])));
    assert_eq!((shared.verdict, notices(&shared)), (Verdict::Healthy, vec![FN711]));
    let evidence = &shared.notices[0].evidence;
    assert_eq!((&*evidence.namespace, &*evidence.value), ("fleet-member-west", "also exported by north: 10.1.0.1"));
    for (case, service, address) in [("another address", "app", "10.1.0.2"), ("another Service", "other", "10.1.0.1")] {
        let explanation = from_west(&|it| north_exports(it, service, &json!([address])));
        assert_eq!((explanation.verdict, notices(&explanation)), (Verdict::Healthy, vec![]), "{case}");
    }
    let left = from_west(&|it| {
        north_exports(it, "app", &json!(["10.1.0.1"]));
        it.hub.internal_exports.objects_mut().expect(KNOWN).pop();
    });
    assert_eq!(notices(&left), [], "north exports the Service no more");
    let moving = from_west(&|it| {
        north_exports(it, "app", &json!(["10.1.0.1"]));
        it.hub.connection.now = Some(at("2027-01-15T12:00:09Z"));
    });
    assert_eq!(notices(&moving), []);
    // Pods with the same address are a fault.
    let pods = from_west(&|it| {
        north_exports(it, "app", &json!(["10.1.0.1"]));
        let target = json!({"kind": "Pod", "name": "app-1"});
        let endpoints = json!([{"addresses": ["10.1.0.1"], "conditions": {"ready": true}, "targetRef": target}]);
        set(&mut it.members[WEST].slices, "/endpoints", endpoints);
        let mut north = it.members[WEST].clone();
        north.id = "north".to_owned();
        (north.service_exports, north.services) = (Listing::of(Vec::new()), Listing::of(Vec::new()));
        it.members.push(north);
    });
    assert_eq!((pods.pairs[0].cause.as_ref().map(|it| it.code), notices(&pods)), (Some(FN707), vec![]));
}

#[test]
fn a_change_under_way_is_never_healthy_without_a_step_that_waits() {
    let cases: &[Change] = &[
        ("the export is not written", |it| {
            it.hub.internal_exports = Listing::of(Vec::new());
            nothing_is_carried(it);
        }),
        ("the export is not judged", |it| {
            it.hub.internal_exports.objects_mut().expect(KNOWN)[0].status = None;
            nothing_is_carried(it);
        }),
        ("the slice is not exported", nothing_is_carried),
        ("the claim is not written", |it| {
            it.hub.claims = Listing::of(Vec::new());
            it.hub.distributed_slices = Listing::of(Vec::new());
            it.members[EAST].slices = Listing::of(Vec::new());
        }),
        ("the slice is not distributed", |it| {
            it.hub.distributed_slices = Listing::of(Vec::new());
            it.members[EAST].slices = Listing::of(Vec::new());
        }),
        ("the derived Service is not made", |it| {
            it.members[EAST].services = Listing::of(Vec::new());
            it.members[EAST].slices = Listing::of(Vec::new());
        }),
        ("the slice is not imported", |it| it.members[EAST].slices = Listing::of(Vec::new())),
    ];
    for (case, alter) in cases {
        for (now, verdict) in [("2027-01-15T12:00:05Z", Verdict::Healthy), ("2027-01-15T12:00:40Z", Verdict::Fault)] {
            let explanation = altered(|it| {
                alter(it);
                it.hub.connection.now = Some(at(now));
                it.members.iter_mut().for_each(|member| member.connection.now = Some(at(now)));
            });
            assert_eq!(explanation.verdict, verdict, "{case}, at {now}");
            let waits = explanation.pairs[0].steps.iter().any(|step| step.outcome == Outcome::Waiting);
            assert!(waits || verdict == Verdict::Fault, "{case}, at {now}: the pair would be called ok");
        }
    }
}
