//! Tests of the metrics' text form, and of the change of the metrics by each call.

use super::*;
use crate::model::{AddressType, EndpointPort, EndpointSlice};
use crate::plan::{Draft, GroupStats, Stats};
use prometheus::TextEncoder;
use std::sync::Arc;

fn service(name: &str, traffic_distribution: Option<&str>) -> Service {
    let mut service = Service::default();
    service.metadata.namespace = "ns".into();
    service.metadata.name = name.into();
    service.spec.traffic_distribution = traffic_distribution.map(Into::into);
    service
}

/// Returns a plan for one address type with one list of ports. `added` of the endpoints are new, and `creates` slices
/// are to be created.
fn family(address_type: AddressType, endpoints: usize, slices: usize, added: usize, creates: usize) -> FamilyPlan {
    let ports: Arc<[EndpointPort]> = Arc::default();
    let draft = Draft { address_type, creates: vec![EndpointSlice::default(); creates], ..Draft::default() };
    let groups = vec![GroupStats { ports, endpoints, slices }];
    FamilyPlan { draft, stats: Stats { added, removed: 1, groups }, ..FamilyPlan::default() }
}

fn plan(families: Vec<FamilyPlan>) -> Plan {
    Plan { families, ..Plan::default() }
}

/// Returns the result of a plan whose creates all succeeded.
fn carried_out(plan: &Plan) -> Applied<std::io::Error> {
    let drafts = || plan.families.iter().map(|family| &family.draft);
    Applied {
        written: drafts().flat_map(|draft| draft.creates.iter().cloned().map(Written::Created)).collect(),
        completed: drafts().map(|draft| draft.address_type.clone()).collect(),
        ..Applied::default()
    }
}

fn metrics() -> (Registry, Metrics) {
    let registry = Registry::new();
    let metrics = Metrics::new(&registry, &Config::default()).unwrap();
    (registry, metrics)
}

/// Returns the lines of the metrics' text form that contain one of these words.
fn lines(registry: &Registry, words: &[&str]) -> Vec<String> {
    let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
    text.lines().filter(|line| words.iter().any(|word| line.contains(word))).map(str::to_owned).collect()
}

#[test]
fn the_exposition_is_that_of_kube_controller_manager() {
    let (registry, mut metrics) = metrics();
    let service = service("svc", Some("PreferClose"));
    let plan = plan(vec![family(AddressType::IPv4, 250, 3, 127, 2)]);
    metrics.planned(&service, &plan);
    metrics.applied(&service, &plan, &carried_out(&plan));
    metrics.synced(SyncResult::Success);
    metrics.synced(SyncResult::Stale);
    metrics.synced(SyncResult::Error);
    let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
    assert_eq!(text, include_str!("exposition.txt"));
}

#[test]
fn metrics_of_two_controllers_do_not_mix() {
    let (registry, _metrics) = metrics();
    assert!(Metrics::new(&registry, &Config::default()).is_err());
}

#[test]
fn both_address_types_count() {
    let dual = plan(vec![family(AddressType::IPv4, 150, 2, 0, 0), family(AddressType::IPv6, 50, 1, 0, 0)]);
    let (registry, mut metrics) = metrics();
    metrics.planned(&service("svc", None), &dual);
    let found = lines(&registry, &["_desired ", "_endpoint_slices "]);
    let found: Vec<_> = found.iter().filter(|line| !line.starts_with('#')).map(String::as_str).collect();
    let expected = [
        "endpoint_slice_controller_desired_endpoint_slices 3",
        "endpoint_slice_controller_endpoints_desired 200",
        "endpoint_slice_controller_num_endpoint_slices 3",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_service_that_lost_an_address_type_or_is_gone_counts_no_more() {
    let (registry, mut metrics) = metrics();
    let service = service("svc", Some("PreferSameNode"));
    let v4 = || family(AddressType::IPv4, 150, 2, 0, 0);
    metrics.planned(&service, &plan(vec![v4(), family(AddressType::IPv6, 50, 1, 0, 0)]));
    metrics.planned(&service, &plan(vec![v4()]));
    let endpoints = |registry: &Registry| lines(registry, &["controller_endpoints_desired "]).pop().unwrap();
    assert_eq!(endpoints(&registry), "endpoint_slice_controller_endpoints_desired 150");
    metrics.forget("ns", "svc");
    assert_eq!(endpoints(&registry), "endpoint_slice_controller_endpoints_desired 0");
    let services = lines(&registry, &["services_count_by_traffic_distribution{"]);
    assert_eq!(
        services,
        [
            r#"endpoint_slice_controller_services_count_by_traffic_distribution{traffic_distribution="PreferSameNode"} 0"#
        ]
    );
}

/// Cases from kube-controller-manager's `TestReconcileTopology` and `TestReconcile_TrafficDistribution`. Columns:
/// `trafficDistribution`, topology annotation, and the expected labels `topology` and `traffic_distribution`.
#[test]
fn changed_slices_are_counted_by_what_their_hints_follow() {
    let cases = [
        (Some("PreferClose"), "Disabled", "Disabled", "PreferClose"),
        (Some("PreferClose"), "Auto", "Auto", ""),
        (Some("PreferFar"), "", "Disabled", ""),
        (None, "", "Disabled", ""),
    ];
    for (value, mode, topology, traffic_distribution) in cases {
        let (registry, mut metrics) = metrics();
        let mut service = service("svc", value);
        service.metadata.annotations.insert(crate::names::ANNOTATION_TOPOLOGY_HINTS, mode);
        let plan = plan(vec![family(AddressType::IPv4, 1, 1, 1, 1)]);
        metrics.planned(&service, &plan);
        metrics.applied(&service, &plan, &carried_out(&plan));
        let found = lines(&registry, &["changed_per_sync_sum", "services_count_by_traffic_distribution{"]);
        let prefix = "endpoint_slice_controller";
        let labels = format!(r#"topology="{topology}",traffic_distribution="{traffic_distribution}""#);
        let mut expected = vec![format!("{prefix}_endpointslices_changed_per_sync_sum{{{labels}}} 1")];
        if !traffic_distribution.is_empty() {
            let labels = format!(r#"traffic_distribution="{traffic_distribution}""#);
            expected.push(format!("{prefix}_services_count_by_traffic_distribution{{{labels}}} 1"));
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn an_address_type_that_failed_counts_its_writes_only() {
    let (registry, metrics) = metrics();
    let service = service("svc", None);
    let plan = plan(vec![family(AddressType::IPv4, 200, 2, 200, 2)]);
    let written = vec![Written::Created(EndpointSlice::default()), Written::Deleted(Arc::default())];
    metrics.applied(&service, &plan, &Applied::<std::io::Error> { written, ..Applied::default() });
    let changes = [
        r#"endpoint_slice_controller_changes{operation="create"} 1"#,
        r#"endpoint_slice_controller_changes{operation="delete"} 1"#,
    ];
    assert_eq!(lines(&registry, &["_changes{"]), changes);
    assert_eq!(lines(&registry, &["endpointslices_changed_per_sync"]), [""; 0]);
}

#[test]
fn slices_that_are_not_created_for_a_service_that_goes_are_counted_as_changed() {
    let (registry, metrics) = metrics();
    let suppressed = FamilyPlan { suppressed_creates: 3, ..family(AddressType::IPv4, 0, 0, 0, 0) };
    let plan = plan(vec![suppressed]);
    metrics.applied(&service("svc", None), &plan, &carried_out(&plan));
    let sums = lines(&registry, &["changed_per_sync_sum"]);
    assert_eq!(sums.len(), 1);
    assert!(sums[0].ends_with(" 3"), "{}", sums[0]);
}
