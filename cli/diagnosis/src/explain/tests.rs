//! Tests of the walk: order, waiting, unknown steps, pairs and evidence, and a table of faults in a snapshot.

use super::*;
use crate::fixture::{app, at, built_in, conditions, healthy, meta, object};
use crate::snapshot::{Connection, Failure, FailureClass, Hub, Listing, Reached, Undecodable};
use Code::*;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::ResourceExt as _;
use serde_json::json;
use std::collections::BTreeSet;

const KNOWN: &str = "the listing is known";
/// Indexes of importer and exporter.
const EAST: usize = 0;
const WEST: usize = 1;

fn all(snapshot: &Snapshot) -> Explanation {
    explain(snapshot, &app(), &Filter::default())
}

fn codes(explanation: &Explanation) -> BTreeSet<Code> {
    let causes = explanation.pairs.iter().filter_map(|pair| pair.cause.as_ref());
    causes.chain(&explanation.notices).map(|finding| finding.code).collect()
}

fn outcome(explanation: &Explanation, code: Code) -> Outcome {
    let step = explanation.pairs[0].steps.iter().find(|step| step.code == code);
    step.expect("each code has a step").outcome
}

fn altered(alter: impl FnOnce(&mut Snapshot)) -> Explanation {
    let mut snapshot = healthy();
    alter(&mut snapshot);
    all(&snapshot)
}

/// Sets a condition of the exporter's ServiceExport.
fn export_is(snapshot: &mut Snapshot, type_: &str, status: &str, reason: &str) {
    let export = json!({
        "metadata": meta("shop", "app"), "status": {"conditions": conditions(type_, status, reason)},
    });
    snapshot.members[WEST].service_exports = Listing::of(vec![object("ServiceExport", export)]);
}

fn no_internal_export(snapshot: &mut Snapshot) {
    snapshot.hub.internal_exports = Listing::of(Vec::new());
}

fn no_claim(snapshot: &mut Snapshot) {
    snapshot.hub.claims = Listing::of(Vec::new());
}

fn annotate_namespace(snapshot: &mut Snapshot, name: &str, value: &str) {
    let namespace = &mut snapshot.hub.namespaces.objects_mut().expect(KNOWN)[0];
    namespace.annotations_mut().insert(format!("networking.fleet.azure.com/{name}"), value.to_owned());
}

#[test]
fn a_healthy_fleet_has_one_pair_whose_steps_are_all_ok_or_do_not_apply() {
    let explanation = all(&healthy());
    assert_eq!(codes(&explanation), BTreeSet::new());
    assert_eq!(explanation.verdict, Verdict::Healthy);
    let [pair] = explanation.pairs.as_slice() else { panic!("{:#?}", explanation.pairs) };
    assert_eq!((pair.exporter.as_deref(), pair.importer.as_deref()), (Some("west"), Some("east")));
    assert!(pair.steps.iter().map(|step| step.code).eq(Code::ALL.iter().copied()), "in the order of the codes");
    let others = pair.steps.iter().filter(|step| !matches!(step.outcome, Outcome::Ok | Outcome::Skipped));
    assert_eq!(others.count(), 0, "{:#?}", pair.steps);
    for code in [FN102, FN107, FN201, FN206, FN310, FN314, FN315, FN403, FN501, FN503, FN601, FN605, FN606, FN701] {
        assert_eq!(outcome(&explanation, code), Outcome::Ok, "{code}");
    }
}

/// Code, and the change of the healthy fleet that gives exactly it.
type Case = (Code, fn(&mut Snapshot));

#[test]
fn each_fault_gives_exactly_its_code() {
    let cases: &[Case] = &[
        (FN104, |it| it.members[WEST].service_exports = Listing::Denied("forbidden".to_owned())),
        (FN105, |it| it.hub.slice_exports = Listing::NotDefined),
        (FN107, |it| it.hub.agent.deployments = Listing::of(Vec::new())),
        (FN201, |it| it.hub.namespaces.objects_mut().expect(KNOWN).retain(|it| it.name_any() != "fleet-member-west")),
        (FN205, |it| {
            it.hub.member_agents.objects_mut().expect(KNOWN).retain(|agent| agent.name_any() != "west");
            no_internal_export(it);
            it.hub.slice_exports = Listing::of(Vec::new());
            it.members[WEST].hub_secret = Listing::of(Vec::new());
            it.hub.accounts = Listing::NotAsked;
        }),
        (FN211, |it| it.hub.member_agents.objects_mut().expect(KNOWN)[WEST].status = None),
        (FN303, |it| it.hub.namespaces.objects_mut().expect(KNOWN).retain(|it| it.name_any() != "shop")),
        (FN302, |it| export_is(it, "Valid", "False", "ServiceNotFound")),
        (FN304, |it| export_is(it, "Valid", "False", "TooManyPorts")),
        (FN305, |it| export_is(it, "Valid", "False", "ServiceExportInvalidWeightAnnotation")),
        (FN306, |it| export_is(it, "Withdrawn", "True", "WeightIsZero")),
        (FN307, |it| annotate_namespace(it, "exporters", "north, south")),
        (FN308, |it| export_is(it, "Valid", "False", "NameHeldByAnother")),
        (FN309, |it| export_is(it, "Valid", "False", "WriteRefused")),
        (FN310, no_internal_export),
        (FN311, |it| it.hub.internal_exports.objects_mut().expect(KNOWN)[0].status = None),
        (FN314, |it| it.hub.slice_exports = Listing::of(Vec::new())),
        (FN401, |it| it.members[EAST].multi_cluster_services = Listing::of(Vec::new())),
        (FN403, no_claim),
        (FN404, |it| annotate_namespace(it, "importers", "")),
        (FN501, |it| it.hub.distributed_slices = Listing::of(Vec::new())),
        (FN506, |it| {
            let undecodable = Undecodable {
                kind: "EndpointSliceExport".to_owned(),
                namespace: "fleet-member-west".to_owned(),
                name: "west-shop-app-2-x".to_owned(),
                why: "spec is not an object".to_owned(),
            };
            let objects = it.hub.slice_exports.known().expect(KNOWN).to_vec();
            it.hub.slice_exports = Listing::Known { objects, undecodable: vec![undecodable] };
        }),
        (FN601, |it| it.members[EAST].services = Listing::of(Vec::new())),
        (FN605, |it| it.members[EAST].slices = Listing::of(Vec::new())),
        (FN607, |it| {
            let ranges = ("networking.fleet.azure.com/source-ranges".to_owned(), "10.2.0.0/16".to_owned());
            it.hub.namespaces.objects_mut().expect(KNOWN)[1].annotations_mut().extend([ranges]);
            it.hub.distributed_slices.objects_mut().expect(KNOWN)[0].spec.slice.endpoints.clear();
            it.members[EAST].slices.objects_mut().expect(KNOWN)[0].endpoints = None;
        }),
        (FN611, |it| {
            let mut disputed = conditions("Disputed", "True", "WritesUndone");
            disputed[0]["message"] = "another writer".into();
            let export = &mut it.hub.internal_exports.objects_mut().expect(KNOWN)[0];
            let all = export.status.as_mut().and_then(|status| status.conditions.as_mut()).expect(KNOWN);
            all.push(built_in(disputed[0].clone()));
        }),
    ];
    for (code, alter) in cases {
        let mut snapshot = healthy();
        alter(&mut snapshot);
        // FN401 needs a member that is asked to import.
        let to = (*code == FN401).then(|| "east".to_owned());
        let explanation = explain(&snapshot, &app(), &Filter { from: None, to });
        assert_eq!(codes(&explanation), BTreeSet::from([*code]), "{code}: {:#?}", explanation.pairs[0].cause);
    }
}

#[test]
fn a_change_is_waited_for_by_the_clock_of_the_server() {
    let created = "2027-01-15T12:00:00Z";
    for (now, expected) in [("2027-01-15T12:00:29Z", Outcome::Waiting), ("2027-01-15T12:00:30Z", Outcome::Broken)] {
        let explanation = altered(|it| {
            no_internal_export(it);
            it.hub.slice_exports = Listing::of(Vec::new());
            it.members[WEST].connection.now = Some(at(now));
        });
        assert_eq!(outcome(&explanation, FN310), expected, "the export is valid since {created}, and it is {now}");
    }
    for (now, expected) in [("2027-01-15T12:00:09Z", Outcome::Waiting), ("2027-01-15T12:00:10Z", Outcome::Broken)] {
        let explanation = altered(|it| {
            it.members[EAST].slices = Listing::of(Vec::new());
            it.hub.connection.now = Some(at(now));
        });
        assert_eq!(outcome(&explanation, FN605), expected, "the slice is distributed since {created}, and it is {now}");
    }
}

#[test]
fn a_change_of_endpoints_on_its_way_is_waited_for() {
    let changed = |it: &mut Snapshot, now: &str| {
        let slice = &mut it.members[WEST].slices.objects_mut().expect(KNOWN)[0];
        slice.metadata.managed_fields = Some(vec![built_in(json!({"time": "2027-01-15T12:05:00Z"}))]);
        slice.endpoints.as_mut().expect(KNOWN)[0].addresses = vec!["10.1.0.2".to_owned()];
        it.members[WEST].connection.now = Some(at(now));
    };
    let explanation = altered(|it| changed(it, "2027-01-15T12:05:09Z"));
    assert_eq!(codes(&explanation), BTreeSet::new());
    assert_eq!([FN315, FN701].map(|code| outcome(&explanation, code)), [Outcome::Waiting; 2]);
    let explanation = altered(|it| changed(it, "2027-01-15T12:05:10Z"));
    assert_eq!(codes(&explanation), BTreeSet::from([FN315]));
}

#[test]
fn an_agent_that_runs_outside_of_its_deployment_is_no_fault_and_pods_that_wait_are_one() {
    let without_pods = |it: &mut Snapshot| {
        it.members[WEST].agent.deployments.objects_mut().expect(KNOWN)[0].status = None;
    };
    assert_eq!(codes(&altered(without_pods)), BTreeSet::new(), "the hub hears the agent");
    let explanation = altered(|it| {
        without_pods(it);
        let mut pod = meta("fleet-system", "member-agent-1");
        pod["labels"] = json!({"app.kubernetes.io/name": "member-agent"});
        it.members[WEST].agent.pods = Listing::of(vec![built_in(json!({"metadata": pod}))]);
    });
    assert_eq!(codes(&explanation), BTreeSet::from([FN107]));
}

#[test]
fn a_go_hub_agent_does_not_answer_and_a_terminating_exporter_is_not_silent() {
    let explanation = altered(|it| {
        it.hub.member_agents.objects_mut().expect(KNOWN)[WEST].status = None;
        let lease = meta("fleet-system", "2bf2b407.hub.networking.fleet.azure.com");
        it.hub.agent.deployments = Listing::NotDefined;
        it.hub.agent.leases =
            Listing::of(vec![built_in(json!({"metadata": lease, "spec": {"holderIdentity": "host_1"}}))]);
    });
    assert_eq!(codes(&explanation), BTreeSet::new());
    let explanation = altered(|it| {
        let namespaces = it.hub.namespaces.objects_mut().expect(KNOWN);
        namespaces[1].metadata.deletion_timestamp = Some(Time(at("2027-01-15T12:00:00Z")));
    });
    assert_eq!(codes(&explanation), BTreeSet::from([FN213]));
    assert_eq!(outcome(&explanation, FN703), Outcome::Ok);
}

#[test]
fn without_a_clock_a_change_counts_as_old() {
    let explanation = altered(|it| {
        it.members[EAST].slices = Listing::of(Vec::new());
        it.hub.connection.now = None;
    });
    assert_eq!(outcome(&explanation, FN605), Outcome::Broken);
}

#[test]
fn what_was_not_read_is_unknown_and_no_later_fault_is_certain() {
    let explanation = altered(|it| {
        it.members[WEST] = Member { id: "west".to_owned(), connection: Connection::default(), ..Member::default() };
    });
    assert_eq!(codes(&explanation), BTreeSet::new());
    assert_eq!(explanation.verdict, Verdict::NotKnown);
    assert_eq!(outcome(&explanation, FN102), Outcome::Unknown);

    let explanation = altered(|it| {
        it.members[WEST].service_exports = Listing::Unknown("no answer within 5 s".to_owned());
        it.members[EAST].slices = Listing::of(Vec::new());
    });
    assert_eq!(codes(&explanation), BTreeSet::from([FN605]), "the fault is shown");
    assert_eq!(explanation.verdict, Verdict::Fault);
    assert!(explanation.pairs[0].earlier_unknown, "an earlier step may be the cause");
}

/// Takes away what the role of deploy/viewer.yaml does not grant.
fn as_viewer(snapshot: &mut Snapshot) {
    let denied = || "forbidden".to_owned();
    snapshot.hub.agent.missing_rights = Listing::Denied(denied());
    for member in &mut snapshot.members {
        member.hub_secret = Listing::Denied(denied());
        member.agent.missing_rights = Listing::Denied(denied());
        member.missing_hub_rights = Listing::Denied(denied());
    }
}

#[test]
fn without_secrets_and_rights_a_viewer_sees_a_healthy_fleet_and_certain_faults() {
    let healthy = altered(as_viewer);
    assert_eq!(healthy.verdict, Verdict::Healthy);
    assert_eq!([FN110, FN203, FN204].map(|code| outcome(&healthy, code)), [Outcome::Skipped, Outcome::Ok, Outcome::Ok]);
    let fault = altered(|it| {
        as_viewer(it);
        export_is(it, "Valid", "False", "ServiceExportInvalidWeightAnnotation");
    });
    assert_eq!((codes(&fault), fault.verdict), (BTreeSet::from([FN305]), Verdict::Fault));
    let silent = altered(|it| {
        as_viewer(it);
        it.hub.member_agents.objects_mut().expect(KNOWN).retain(|agent| agent.name_any() != "west");
        no_internal_export(it);
        it.hub.slice_exports = Listing::of(Vec::new());
    });
    assert_eq!([FN203, FN204].map(|code| outcome(&silent, code)), [Outcome::Unknown; 2]);
    assert_eq!(codes(&silent), BTreeSet::from([FN205]), "the fault is shown");
    assert_eq!(silent.verdict, Verdict::Fault);
    assert!(silent.pairs[0].earlier_unknown, "the token may be the cause");
    let stopped = altered(|it| {
        as_viewer(it);
        it.hub.member_agents.objects_mut().expect(KNOWN)[WEST].spec.planned_stop_time =
            Some(MicroTime(at("2027-01-15T12:09:00Z")));
    });
    assert_eq!(codes(&stopped), BTreeSet::from([FN207]));
    assert!(!stopped.pairs[0].earlier_unknown, "the stop is the cause, whatever the token is");
}

#[test]
fn the_first_broken_step_is_the_cause_and_the_others_are_still_shown() {
    let explanation = altered(|it| {
        it.members[EAST].services = Listing::of(Vec::new());
        annotate_namespace(it, "exporters", "");
    });
    assert_eq!(codes(&explanation), BTreeSet::from([FN307]));
    assert_eq!(outcome(&explanation, FN601), Outcome::Broken);
    assert_eq!(explanation.verdict, Verdict::Fault);
}

#[test]
fn a_notice_is_no_cause_and_occurs_once() {
    let explanation = altered(|it| {
        it.hub.connection.throttled = true;
        it.members.push(Member { id: "north".to_owned(), ..it.members[EAST].clone() });
    });
    assert_eq!(explanation.pairs.len(), 2);
    assert_eq!(explanation.notices.iter().map(|it| it.code).collect::<Vec<_>>(), [FN706]);
    assert!(explanation.notices[0].evidence.value.contains("429"));
}

#[test]
fn a_filter_limits_the_pairs_and_names_what_is_missing() {
    let filter =
        |from: Option<&str>, to: Option<&str>| Filter { from: from.map(str::to_owned), to: to.map(str::to_owned) };
    let explanation = explain(&healthy(), &app(), &filter(Some("east"), None));
    assert_eq!(codes(&explanation), BTreeSet::from([FN301]), "east is to export, and has no ServiceExport");
    let explanation = explain(&healthy(), &app(), &filter(None, Some("west")));
    assert_eq!(codes(&explanation), BTreeSet::from([FN401]), "west is to import, and has no MultiClusterService");
    let explanation = explain(&healthy(), &app(), &filter(None, Some("nowhere")));
    assert_eq!(explanation.verdict, Verdict::Fault);
}

#[test]
fn a_service_that_nobody_knows_is_not_exported() {
    let name = ObjectName { namespace: "shop".into(), name: "typo".into() };
    let explanation = explain(&healthy(), &name, &Filter::default());
    assert_eq!(codes(&explanation), BTreeSet::from([FN301]));
}

#[test]
fn a_service_that_is_exported_and_not_imported_is_healthy() {
    let explanation = altered(|it| {
        it.members[EAST].multi_cluster_services = Listing::of(Vec::new());
        no_claim(it);
        it.hub.distributed_slices = Listing::of(Vec::new());
        it.hub.service_imports.objects_mut().expect(KNOWN)[0].metadata.annotations = None;
    });
    assert_eq!(explanation.verdict, Verdict::Healthy);
    assert_eq!(explanation.pairs[0].importer, None);
}

#[test]
fn endpoints_of_a_cluster_that_left_are_reported_although_nothing_else_is_known_of_it() {
    let explanation = altered(|it| {
        it.members.remove(WEST);
        it.hub.namespaces.objects_mut().expect(KNOWN).retain(|it| it.name_any() != "fleet-member-west");
        no_internal_export(it);
        it.hub.slice_exports = Listing::of(Vec::new());
        it.hub.service_imports.objects_mut().expect(KNOWN)[0].status = None;
    });
    assert_eq!(codes(&explanation), BTreeSet::from([FN702]));
}

#[test]
fn a_silent_exporter_is_fn703_while_its_endpoints_are_imported_and_fn206_otherwise() {
    let silent = |it: &mut Snapshot| {
        let agent = &mut it.hub.member_agents.objects_mut().expect(KNOWN)[WEST];
        agent.metadata.managed_fields = None;
        agent.spec.renew_time.0 = at("2027-01-15T12:08:00Z");
    };
    assert_eq!(codes(&altered(silent)), BTreeSet::from([FN703]));
    let explanation = altered(|it| {
        silent(it);
        it.members[EAST].slices = Listing::of(Vec::new());
    });
    assert_eq!(codes(&explanation), BTreeSet::from([FN206]));
}

#[test]
fn the_evidence_names_the_field_the_time_and_a_command_that_shows_it() {
    let explanation = altered(|it| {
        let export = &mut it.members[WEST].service_exports.objects_mut().expect(KNOWN)[0];
        export.metadata.deletion_timestamp = Some(Time(at("2027-01-15T12:05:00Z")));
        export.metadata.finalizers = Some(vec!["a/b".to_owned()]);
    });
    let cause = explanation.pairs[0].cause.as_ref().expect("there is a cause");
    let expected = Evidence {
        cluster: "west".to_owned(),
        kind: "ServiceExport".to_owned(),
        namespace: "shop".to_owned(),
        name: "app".to_owned(),
        field: "metadata.finalizers".to_owned(),
        value: "a/b".to_owned(),
        time: Some("2027-01-15T12:05:00Z".to_owned()),
        command: "kubectl --context west -n shop get serviceexports.networking.fleet.azure.com app -o yaml".to_owned(),
        remedy: None,
    };
    assert_eq!((cause.code, &cause.evidence), (FN313, &expected));
    assert_eq!(cause.remedy, FN313.entry().remedy);
}

#[test]
fn the_evidence_about_a_secret_does_not_show_the_token() {
    let explanation = altered(|it| {
        it.hub.member_agents.objects_mut().expect(KNOWN).retain(|agent| agent.name_any() != "west");
        it.members[WEST].hub_secret.objects_mut().expect(KNOWN)[0].url = "https://old:6443/".to_owned();
    });
    let cause = explanation.pairs[0].cause.as_ref().expect("there is a cause");
    assert_eq!(cause.code, FN204);
    let get = "kubectl --context west -n fleet-system get secrets fleetnet-hub -o jsonpath='{.data.url}' | base64 -d";
    assert_eq!(cause.evidence.command, get);
}

#[test]
fn the_hub_at_the_same_url_in_another_spelling_is_no_fault() {
    let explanation = altered(|it| {
        it.hub.member_agents.objects_mut().expect(KNOWN).retain(|agent| agent.name_any() != "west");
        it.hub.accounts = Listing::NotAsked;
        it.members[WEST].hub_secret.objects_mut().expect(KNOWN)[0].url = "https://HUB.example:6443/".to_owned();
    });
    assert_eq!(outcome(&explanation, FN204), Outcome::Ok);
}

/// Nobody knows if such a member imports or exports the Service, so the fleet is not healthy for sure.
#[test]
fn a_member_that_is_in_no_pair_and_could_not_be_read_is_not_known() {
    let denied = || "denied: may not list multiclusterservices".to_owned();
    let failure = Failure { class: FailureClass::Tcp, host: String::new(), port: None, detail: "refused".to_owned() };
    // Each row: where the other member was reached, its MultiClusterServices, the filter, and the expected text.
    let of = |from: Option<&str>, to: Option<&str>| Filter { from: from.map(str::to_owned), to: to.map(str::to_owned) };
    let table = [
        (Reached::Yes, Listing::of(Vec::new()), of(None, None), None),
        (Reached::Yes, Listing::NotDefined, of(None, None), None),
        (Reached::Yes, Listing::Denied(denied()), of(None, None), Some("north: multiclusterservices: denied: ")),
        (
            Reached::Yes,
            Listing::Unknown(denied()),
            of(Some("west"), None),
            Some("north: multiclusterservices: denied: "),
        ),
        (Reached::Yes, Listing::Denied(denied()), of(None, Some("east")), None),
        (Reached::Yes, Listing::Denied(denied()), of(Some("west"), Some("east")), None),
        (Reached::No(failure.clone()), Listing::NotAsked, of(None, None), Some("north: not reached (TCP): refused")),
        (Reached::No(failure), Listing::NotAsked, of(Some("west"), Some("east")), None),
        (Reached::NotAsked, Listing::NotAsked, of(None, None), None),
    ];
    for (reached, multi_cluster_services, filter, expected) in table {
        let mut snapshot = healthy();
        snapshot.members.push(Member {
            id: "north".to_owned(),
            connection: Connection { reached, ..Connection::default() },
            service_exports: Listing::of(Vec::new()),
            mcs_exports: Listing::NotDefined,
            mcs_imports: Listing::NotDefined,
            multi_cluster_services,
            ..Member::default()
        });
        let explanation = explain(&snapshot, &app(), &filter);
        let wanted = if expected.is_some() { Verdict::NotKnown } else { Verdict::Healthy };
        assert_eq!(explanation.verdict, wanted, "{:?}", explanation.not_known);
        assert_eq!(explanation.not_known.len(), expected.iter().count());
        assert!(explanation.not_known.iter().zip(expected).all(|(text, wanted)| text.starts_with(wanted)));
    }
}

#[test]
fn an_unreachable_hub_gives_one_pair_that_is_not_known() {
    let mut snapshot = healthy();
    snapshot.hub = Hub::default();
    let explanation = all(&snapshot);
    assert_eq!(explanation.verdict, Verdict::NotKnown);
    assert_eq!(codes(&explanation), BTreeSet::new());
    assert_eq!(snapshot.hub.connection.reached, Reached::NotAsked);
    assert_eq!(explanation.pairs.len(), 1);
}

#[test]
fn an_explanation_serializes_with_ids_and_words() {
    let json = serde_json::to_value(altered(no_internal_export)).expect("it serializes");
    assert_eq!(json["apiVersion"], "cli.fleetnet/v1");
    assert_eq!(json["kind"], "Explanation");
    assert_eq!(json["verdict"], "fault");
    let cause = &json["pairs"][0]["cause"];
    assert_eq!((&cause["code"], &cause["reasons"][0]), (&json!("FN310"), &json!("WriteDenied")));
    assert_eq!(json["pairs"][0]["steps"][0]["outcome"], "ok");
}

/// Change of a snapshot.
type Change = fn(&mut Snapshot);

/// Makes each listing of a snapshot unknown, one at a time.
const NOT_READ: &[Change] = &[
    |it| it.hub.namespaces = Listing::Unknown(String::new()),
    |it| it.hub.member_agents = Listing::Unknown(String::new()),
    |it| it.hub.internal_exports = Listing::Unknown(String::new()),
    |it| it.hub.claims = Listing::Unknown(String::new()),
    |it| it.hub.slice_exports = Listing::Unknown(String::new()),
    |it| it.hub.distributed_slices = Listing::Unknown(String::new()),
    |it| it.hub.service_imports = Listing::Unknown(String::new()),
    |it| it.hub.events = Listing::Unknown(String::new()),
    |it| it.hub.quotas = Listing::Unknown(String::new()),
    |it| it.hub.accounts = Listing::Unknown(String::new()),
    |it| it.hub.agent.deployments = Listing::Unknown(String::new()),
    |it| it.hub.agent.leases = Listing::Unknown(String::new()),
    |it| it.hub.agent.definitions = Listing::Unknown(String::new()),
    |it| it.hub.agent.missing_rights = Listing::Unknown(String::new()),
    |it| it.hub.connection.now = None,
    |it| it.members[WEST].agent.deployments = Listing::Unknown(String::new()),
    |it| it.members[WEST].agent.leases = Listing::Unknown(String::new()),
    |it| it.members[WEST].hub_secret = Listing::Unknown(String::new()),
    |it| it.members[WEST].service_exports = Listing::Unknown(String::new()),
    |it| it.members[WEST].services = Listing::Unknown(String::new()),
    |it| it.members[WEST].slices = Listing::Unknown(String::new()),
    |it| it.members[WEST].pods = Listing::Unknown(String::new()),
    |it| it.members[WEST].connection.now = None,
    |it| it.members[WEST].cluster_uid = None,
    |it| it.members[EAST].multi_cluster_services = Listing::Unknown(String::new()),
    |it| it.members[EAST].service_imports = Listing::Unknown(String::new()),
    |it| it.members[EAST].services = Listing::Unknown(String::new()),
    |it| it.members[EAST].slices = Listing::Unknown(String::new()),
    |it| it.members[EAST].events = Listing::Unknown(String::new()),
    |it| it.members[EAST].connection.now = None,
];

#[test]
fn listings_that_were_not_read_are_never_a_fault() {
    for first in NOT_READ {
        for second in NOT_READ {
            let mut snapshot = healthy();
            first(&mut snapshot);
            second(&mut snapshot);
            let explanation = all(&snapshot);
            assert_eq!(codes(&explanation), BTreeSet::new(), "{:#?}", explanation.pairs[0].cause);
        }
    }
}

#[test]
fn times_at_the_end_of_the_calendar_do_not_stop_the_diagnosis() {
    for time in ["9999-12-30T22:00:00Z", "0001-01-01T00:00:00Z"] {
        let mut snapshot = healthy();
        for agent in snapshot.hub.member_agents.objects_mut().expect(KNOWN) {
            agent.spec.renew_time.0 = at(time);
        }
        let mut lease = json!({"metadata": meta("fleet-system", "2bf2b407.member.networking.fleet.azure.com")});
        lease["spec"] = json!({"holderIdentity": "member-agent_a_b", "renewTime": "2027-01-15T12:09:55.000000Z"});
        snapshot.members[WEST].agent.leases = Listing::of(vec![built_in(lease)]);
        snapshot.hub.latencies.insert("east".to_owned(), Ok(crate::latency::Summary::default()));
        let explanation = all(&snapshot);
        assert_eq!(explanation.notices.iter().map(|it| it.code).collect::<BTreeSet<_>>(), BTreeSet::from([FN212]));
        let matrix = crate::latency::latency(&snapshot, &crate::latency::Options::default());
        assert!(matrix.cells.is_empty());
    }
}
