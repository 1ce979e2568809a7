//! Tests of the list of Services.

use super::*;
use crate::fixture::{NOW, at, conditions, healthy, meta, object, reference, set};
use crate::report::NameToCall;
use crate::snapshot::Listing;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

#[test]
fn a_service_has_its_exporters_importers_and_endpoints() {
    let found = services(&healthy(), &Rows::default());
    assert_eq!(found.verdict, Verdict::Healthy);
    let expected = ServiceRow {
        namespace: "shop".to_owned(),
        name: "app".to_owned(),
        api: Api::Fleet,
        type_: Some("ClusterSetIP".to_owned()),
        exporters: vec!["west".to_owned()],
        importers: vec!["east".to_owned()],
        endpoints: 1,
        conflicts: Vec::new(),
        state: ServiceState::Ready,
        arrived: vec![Arrival { importer: "east".to_owned(), endpoints: 1, missing_exporters: Vec::new() }],
        names_to_call: vec![NameToCall {
            importer: "east".to_owned(),
            api: Api::Fleet,
            name: "shop-app.fleet-system.svc".to_owned(),
            addresses: Vec::new(),
            ports: Vec::new(),
        }],
    };
    assert_eq!(found.services, [expected]);
    let one = |name: &str| Rows { name: Some(name.to_owned()), ..Rows::default() };
    assert_eq!(services(&healthy(), &one("app")).services.len(), 1);
    assert_eq!(services(&healthy(), &one("other")).services, []);
    let other = Rows { namespace: Some("other".to_owned()), ..Rows::default() };
    assert_eq!(services(&healthy(), &other).services, []);
}

#[test]
fn a_conflict_is_a_fault_and_its_endpoints_do_not_count() {
    let mut snapshot = healthy();
    let conflicted = json!({
        "metadata": meta("fleet-member-east", "shop-app"),
        "spec": {"ports": [], "serviceReference": reference("east", "Service", "app")},
        "status": {"conditions": conditions("Conflict", "True", "ConflictFound")},
    });
    let exports = snapshot.hub.internal_exports.objects_mut().expect("they are known");
    exports.push(object("InternalServiceExport", conflicted));
    let slice = json!({"metadata": meta("fleet-member-east", "east-slice"), "spec": crate::fixture::slice_spec()});
    let slices = snapshot.hub.slice_exports.objects_mut().expect("they are known");
    slices.push(object("EndpointSliceExport", slice));
    let found = services(&snapshot, &Rows::default());
    assert_eq!(found.verdict, Verdict::Fault);
    let row = &found.services[0];
    assert_eq!((row.exporters.len(), row.conflicts.as_slice(), row.endpoints), (2, ["east".to_owned()].as_slice(), 1));
    assert_eq!(row.state, ServiceState::NotReady);
    let conflicts = Rows { conflicts: true, ..Rows::default() };
    assert_eq!(services(&snapshot, &conflicts).services.len(), 1);
    assert_eq!(services(&healthy(), &conflicts).services, []);
}

/// Returns the time a number of seconds ago.
fn ago(seconds: i64) -> Time {
    Time(at(NOW) - SignedDuration::from_secs(seconds))
}

/// Removes what the hub agent answered, `seconds` after the request.
type Break = fn(&mut Snapshot, i64);

const BREAKS: [(&str, Break); 6] = [
    ("a claim is not granted", |snapshot, seconds| {
        snapshot.hub.service_imports.objects_mut().unwrap()[0].metadata.annotations = None;
        snapshot.hub.claims.objects_mut().unwrap()[0].metadata.creation_timestamp = Some(ago(seconds));
    }),
    ("an export has no condition", |snapshot, seconds| {
        let export = &mut snapshot.hub.internal_exports.objects_mut().unwrap()[0];
        (export.status, export.metadata.creation_timestamp) = (None, Some(ago(seconds)));
    }),
    ("the outcome of an export is not known", |snapshot, seconds| {
        let export = &mut snapshot.hub.internal_exports.objects_mut().unwrap()[0];
        let condition = &mut export.status.as_mut().unwrap().conditions.as_mut().unwrap()[0];
        (condition.status, condition.last_transition_time) = ("Unknown".to_owned(), ago(seconds));
    }),
    ("an exporter has left", |snapshot, seconds| {
        snapshot.hub.internal_exports.objects_mut().unwrap().clear();
        snapshot.hub.service_imports.objects_mut().unwrap()[0].metadata.creation_timestamp = Some(ago(seconds));
    }),
    ("a ServiceImport has no exporter yet", |snapshot, seconds| {
        snapshot.hub.internal_exports.objects_mut().unwrap().clear();
        let import = &mut snapshot.hub.service_imports.objects_mut().unwrap()[0];
        (import.status, import.metadata.creation_timestamp) = (None, Some(ago(seconds)));
    }),
    ("nobody exports", |snapshot, seconds| {
        snapshot.hub.internal_exports.objects_mut().unwrap().clear();
        snapshot.hub.service_imports.objects_mut().unwrap().clear();
        snapshot.hub.claims.objects_mut().unwrap()[0].metadata.creation_timestamp = Some(ago(seconds));
    }),
];

#[test]
fn a_service_without_the_answer_of_the_hub_agent_waits_for_30_s_and_is_then_a_fault() {
    for (name, break_it) in BREAKS {
        for (seconds, verdict, state) in
            [(29, Verdict::Healthy, ServiceState::Waiting), (30, Verdict::Fault, ServiceState::NotReady)]
        {
            let mut snapshot = healthy();
            break_it(&mut snapshot, seconds);
            let found = services(&snapshot, &Rows::default());
            assert_eq!((found.verdict, found.services[0].state), (verdict, state), "{name}, {seconds} s");
        }
    }
}

#[test]
fn one_old_fault_counts_beside_a_recent_change() {
    for (name, break_it) in &BREAKS[1..] {
        let mut snapshot = healthy();
        break_it(&mut snapshot, 29);
        // A second claim, which the hub has not granted for a long time.
        let claim = json!({"metadata": meta("fleet-member-north", "shop-app"), "spec": {"serviceImportReference": reference("north", "ServiceImport", "app")}});
        snapshot.hub.claims.objects_mut().unwrap().push(object("InternalServiceImport", claim));
        let found = services(&snapshot, &Rows::default());
        assert_eq!(found.services[0].state, ServiceState::NotReady, "{name}");
    }
}

#[test]
fn a_service_whose_objects_were_not_read_is_unknown_unless_it_has_a_conflict() {
    let unknown: [fn(&mut Snapshot); 4] = [
        |snapshot| snapshot.hub.slice_exports = Listing::Unknown("Timeout".to_owned()),
        |snapshot| snapshot.hub.internal_exports = Listing::Unknown("Timeout".to_owned()),
        |snapshot| snapshot.hub.claims = Listing::Unknown("Timeout".to_owned()),
        |snapshot| snapshot.hub.service_imports = Listing::Unknown("Timeout".to_owned()),
    ];
    for hide in unknown {
        for (_, break_it) in BREAKS {
            let mut snapshot = healthy();
            break_it(&mut snapshot, 600);
            hide(&mut snapshot);
            let found = services(&snapshot, &Rows::default());
            assert_eq!(found.verdict, Verdict::NotKnown);
            assert!(found.services.iter().all(|row| row.state == ServiceState::Unknown), "{:?}", found.services);
        }
    }
}

#[test]
fn a_kind_that_was_not_read_is_named() {
    let mut snapshot = healthy();
    snapshot.hub.claims = Listing::Denied("forbidden".to_owned());
    let found = services(&snapshot, &Rows::default());
    assert_eq!(found.verdict, Verdict::NotKnown);
    assert_eq!(found.not_known, ["hub: InternalServiceImports: denied: forbidden"]);
}

/// Makes the endpoints of the exported slice these, at a change `seconds` ago.
fn export_endpoints(snapshot: &mut Snapshot, endpoints: serde_json::Value, seconds: i64) {
    crate::fixture::set_slice(snapshot, "endpoints", endpoints);
    let slice = &mut snapshot.hub.slice_exports.objects_mut().unwrap()[0];
    slice.metadata.creation_timestamp = Some(ago(seconds));
    let export = &mut snapshot.hub.internal_exports.objects_mut().unwrap()[0];
    export.metadata.creation_timestamp = Some(ago(seconds));
}

#[test]
fn a_service_without_endpoints_is_not_ready() {
    for (seconds, verdict, state) in
        [(29, Verdict::Healthy, ServiceState::Waiting), (30, Verdict::Fault, ServiceState::NotReady)]
    {
        let mut snapshot = healthy();
        export_endpoints(&mut snapshot, json!([]), seconds);
        let found = services(&snapshot, &Rows::default());
        let row = &found.services[0];
        assert_eq!((found.verdict, row.state, row.endpoints), (verdict, state, 0), "{seconds} s");
        assert!(row.arrived[0].missing_exporters.is_empty(), "nothing is exported, so nothing is missing");
    }
}

#[test]
fn an_importer_without_the_endpoints_of_an_exporter_is_a_fault() {
    let cases: [(&str, Break); 4] = [
        ("no imported slice", |snapshot, _| snapshot.members[0].slices = Listing::of(Vec::new())),
        ("an imported slice without endpoints", |snapshot, _| {
            crate::fixture::set(&mut snapshot.members[0].slices, "/endpoints", json!([]));
        }),
        ("only endpoints that are not ready", |snapshot, _| {
            let endpoints = json!([{"addresses": ["10.1.0.1"], "conditions": {"ready": false}}]);
            crate::fixture::set(&mut snapshot.members[0].slices, "/endpoints", endpoints);
        }),
        ("an imported slice without ports", |snapshot, _| {
            crate::fixture::set(&mut snapshot.members[0].slices, "/ports", json!([]));
        }),
    ];
    for (name, break_it) in cases {
        for (seconds, state) in [(29, ServiceState::Waiting), (30, ServiceState::NotReady)] {
            let mut snapshot = healthy();
            export_endpoints(&mut snapshot, json!([{"addresses": ["10.1.0.1"]}]), seconds);
            break_it(&mut snapshot, seconds);
            let row = services(&snapshot, &Rows::default()).services.remove(0);
            let expected =
                Arrival { importer: "east".to_owned(), endpoints: 0, missing_exporters: vec!["west".to_owned()] };
            assert_eq!((row.state, row.arrived), (state, vec![expected]), "{name}, {seconds} s");
        }
    }
}

#[test]
fn an_importer_that_was_not_read_has_no_endpoints_and_no_names() {
    let mut snapshot = healthy();
    snapshot.members[0].slices = Listing::NotAsked;
    snapshot.members[0].multi_cluster_services = Listing::NotAsked;
    let found = services(&snapshot, &Rows::default());
    let row = &found.services[0];
    assert_eq!((found.verdict, row.state, row.arrived.len()), (Verdict::NotKnown, ServiceState::Ready, 0));
    assert!(row.names_to_call.is_empty());
}

#[test]
fn a_new_import_of_an_old_export_waits_for_its_endpoints() {
    for (seconds, state) in [(29, ServiceState::Waiting), (30, ServiceState::NotReady)] {
        let mut snapshot = healthy();
        snapshot.members[0].slices = Listing::of(Vec::new());
        snapshot.hub.claims.objects_mut().unwrap()[0].metadata.creation_timestamp = Some(ago(seconds));
        assert_eq!(services(&snapshot, &Rows::default()).services[0].state, state, "{seconds} s");
    }
}

#[test]
fn an_importer_that_was_not_read_is_named_because_nobody_knows_its_endpoints() {
    let denied = |snapshot: &mut Snapshot| snapshot.members[0].slices = Listing::Denied("forbidden".to_owned());
    let no_context = |snapshot: &mut Snapshot| snapshot.members[0].connection.reached = Reached::NotAsked;
    let not_named = |snapshot: &mut Snapshot| snapshot.members[0].connection.reached = Reached::NotNamed;
    let no_member = |snapshot: &mut Snapshot| snapshot.members.retain(|member| member.id != "east");
    for (hide, expected) in [
        (&denied as &dyn Fn(&mut Snapshot), "east: EndpointSlices: denied: forbidden"),
        (&no_context, "east: no kubeconfig context leads to this cluster"),
        (&not_named, "east: not asked, because no context on the command line leads to this cluster"),
        (&no_member, "east: no kubeconfig context leads to this cluster"),
    ] {
        let mut snapshot = healthy();
        hide(&mut snapshot);
        let found = services(&snapshot, &Rows::default());
        assert_eq!((found.verdict, found.not_known), (Verdict::NotKnown, vec![expected.to_owned()]));
        let others = Rows { name: Some("other".to_owned()), ..Rows::default() };
        assert_eq!(services(&snapshot, &others).verdict, Verdict::Healthy, "it imports none of these");
    }
}

#[test]
fn endpoints_without_a_port_count_only_if_the_service_has_none_or_is_headless() {
    let port = || json!([{"port": 80, "targetPort": "htttp"}]);
    for (ports, headless, state) in [
        (json!([]), false, ServiceState::Ready),
        (port(), false, ServiceState::NotReady),
        (port(), true, ServiceState::Ready),
    ] {
        let mut snapshot = healthy();
        set(&mut snapshot.hub.internal_exports, "/spec/ports", ports);
        set(&mut snapshot.hub.internal_exports, "/spec/headless", json!(headless));
        set(&mut snapshot.hub.slice_exports, "/spec/ports", json!([]));
        set(&mut snapshot.members[0].slices, "/ports", json!([]));
        let found = services(&snapshot, &Rows::default());
        assert_eq!((found.services[0].state, found.services[0].endpoints > 0), (state, state == ServiceState::Ready));
    }
}

#[test]
fn a_member_whose_namespace_in_the_hub_is_missing_is_a_fault() {
    let mut snapshot = healthy();
    let namespaces = snapshot.hub.namespaces.objects_mut().unwrap();
    namespaces.retain(|it| it.metadata.name.as_deref() != Some("fleet-member-west"));
    snapshot.hub.internal_exports = Listing::of(Vec::new());
    let found = services(&snapshot, &Rows { name: Some("other".to_owned()), ..Rows::default() });
    let expected = vec!["west: fleet-member-west is missing in the hub (FN201)".to_owned()];
    assert_eq!((found.verdict, found.not_known), (Verdict::Fault, expected));
}
