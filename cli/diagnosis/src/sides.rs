//! Endpoints of a Service by exporter and importer, and the sides of a conflict.

mod absent;

pub(crate) use absent::is_left_out;

use crate::explain::{Filter, Walk, is_by, is_ready, is_service, member_of, outcome, pairs_of};
use crate::order::natural;
use crate::report::{Api, ConflictSide, EndpointCount};
use crate::snapshot::Snapshot;
use absent::{Absence, absent, exported};
use fleetnet_api::crd::InternalServiceExport;
use fleetnet_api::crd::internal_service_export::SessionAffinity;
use fleetnet_api::crd::shared::ServicePort;
use fleetnet_types::ObjectName;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;
use std::collections::BTreeMap;

/// Returns the endpoints that each importer has of each exporter, of those importers whose slices were read. If a pair
/// uses both APIs, the API with more endpoints counts, because both carry the same endpoints.
#[must_use]
pub fn endpoints(snapshot: &Snapshot, service: &ObjectName) -> Vec<EndpointCount> {
    let mut counts: BTreeMap<(String, String), EndpointCount> = BTreeMap::new();
    // Many importers have the same exporter, and its slices are decoded once.
    let mut contents = BTreeMap::new();
    for ends in &pairs_of(snapshot, service, &Filter::default()) {
        let walk = Walk::new(snapshot, service, ends);
        let (Some(exporter), Some(importer), Ok(slices)) = (walk.exporter, walk.importer, walk.imported_slices())
        else {
            continue;
        };
        let of_exporter = contents.entry((walk.api, &exporter.id, walk.is_leftover)).or_insert_with(|| exported(&walk));
        let count = with_absent(count(&importer.id, &exporter.id, &slices), absent(&walk, of_exporter, &slices));
        let whole = |count: &EndpointCount| count.ready + count.draining + count.not_ready;
        let known = counts.entry((importer.id.clone(), exporter.id.clone())).or_insert_with(|| count.clone());
        if whole(&count) > whole(known) {
            *known = count;
        }
    }
    let mut counts: Vec<EndpointCount> = counts.into_values().collect();
    counts
        .sort_by(|one, two| natural(&one.importer, &two.importer).then_with(|| natural(&one.exporter, &two.exporter)));
    counts
}

fn count(importer: &str, exporter: &str, slices: &[&EndpointSlice]) -> EndpointCount {
    let (importer, exporter) = (importer.to_owned(), exporter.to_owned());
    let mut count = EndpointCount { importer, exporter, ..EndpointCount::default() };
    for endpoint in slices.iter().flat_map(|slice| slice.endpoints.iter().flatten()) {
        let is_terminating = endpoint.conditions.as_ref().and_then(|it| it.terminating).unwrap_or(false);
        *match (is_ready(endpoint), is_terminating) {
            (true, _) => &mut count.ready,
            (false, true) => &mut count.draining,
            (false, false) => &mut count.not_ready,
        } += 1;
    }
    count
}

fn with_absent(mut count: EndpointCount, (number, absence): (usize, Absence)) -> EndpointCount {
    *match absence {
        Absence::Withdrawn => &mut count.withdrawn,
        Absence::NotSelected => &mut count.not_selected,
        Absence::Missing => &mut count.missing,
    } = number;
    count
}

/// Fields that two exports of a Service must share, with their values as text.
type Field = (&'static str, fn(&InternalServiceExport, Api) -> String);

const FIELDS: [Field; 3] = [("ports", ports), ("type", type_), ("session affinity", session_affinity)];

/// Returns the sides of the conflicts of a Service: for each exporter, the fields in which the exports differ, and the
/// outcome. Empty without a conflict.
#[must_use]
pub fn conflicts(snapshot: &Snapshot, service: &ObjectName) -> Vec<ConflictSide> {
    Api::ALL.into_iter().flat_map(|api| conflicts_by(snapshot, service, api)).collect()
}

fn conflicts_by(snapshot: &Snapshot, service: &ObjectName, api: Api) -> Vec<ConflictSide> {
    let of_service = snapshot.hub.internal_exports.objects().filter(|export| {
        let reference = &export.spec.service_reference;
        is_service(service, &reference.namespace, &reference.name) && is_by(export, api)
    });
    let mut exports: Vec<(String, &InternalServiceExport)> =
        of_service.filter_map(|export| Some((member_of(export.namespace())?, export))).collect();
    if !exports.iter().any(|(_, export)| outcome(export, api).is_some_and(|it| it.status == "True")) {
        return Vec::new();
    }
    exports.sort_by(|(one, _), (two, _)| natural(one, two));
    let differs = |field: fn(&InternalServiceExport, Api) -> String| {
        let mut values = exports.iter().map(|(_, export)| field(export, api));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let fields: Vec<Field> = FIELDS.into_iter().filter(|(_, field)| differs(*field)).collect();
    let sides = exports.iter().flat_map(|(cluster, export)| {
        let of_fields = fields.iter().map(|(what, field)| (*what, field(export, api)));
        let rows = of_fields.chain(std::iter::once(("outcome", outcome_text(export, api))));
        rows.map(|(what, value)| ConflictSide { cluster: cluster.clone(), what, value }).collect::<Vec<_>>()
    });
    sides.collect()
}

/// Returns the outcome of an export as text.
fn outcome_text(export: &InternalServiceExport, api: Api) -> String {
    match outcome(export, api) {
        Some(conflict) if conflict.status == "True" && conflict.message.is_empty() => "in conflict".to_owned(),
        Some(conflict) if conflict.status == "True" => format!("in conflict: {}", conflict.message),
        Some(conflict) if conflict.status == "False" => "accepted".to_owned(),
        _ => "not decided yet".to_owned(),
    }
}

/// Returns the ports as text, such as `http 80/TCP to 8080`. By the standard API, target ports may differ.
fn ports(export: &InternalServiceExport, api: Api) -> String {
    let mut ports: Vec<String> = export.spec.ports.iter().map(|port| port_text(port, api)).collect();
    ports.sort();
    if ports.is_empty() { "none".to_owned() } else { ports.join(", ") }
}

fn port_text(port: &ServicePort, api: Api) -> String {
    let protocol = port.protocol.unwrap_or_default().name();
    let target = match &port.target_port {
        Some(IntOrString::Int(target)) if api == Api::Fleet => format!(" to {target}"),
        Some(IntOrString::String(target)) if api == Api::Fleet => format!(" to {target}"),
        _ => String::new(),
    };
    let application = port.app_protocol.as_ref().map_or_else(String::new, |it| format!(" ({it})"));
    let name = port.name.as_deref().unwrap_or_default();
    format!("{name} {}/{protocol}{target}{application}", port.port).trim_start().to_owned()
}

fn type_(export: &InternalServiceExport, _: Api) -> String {
    if export.spec.headless == Some(true) { "Headless" } else { "ClusterSetIP" }.to_owned()
}

fn session_affinity(export: &InternalServiceExport, _: Api) -> String {
    let spec = &export.spec;
    let timeout = spec.session_affinity_config.as_ref().and_then(|it| it.client_ip.as_ref()?.timeout_seconds);
    match (spec.session_affinity.unwrap_or_default(), timeout) {
        (SessionAffinity::None, _) => "None".to_owned(),
        (SessionAffinity::ClientIP, None) => "ClientIP".to_owned(),
        (SessionAffinity::ClientIP, Some(seconds)) => format!("ClientIP for {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{app, conditions, healthy, meta, object, reference, set};
    use serde_json::{Value, json};

    /// Returns an export of `shop/app` with this port.
    fn export(cluster: &str, port: u16, conflict: &str) -> InternalServiceExport {
        let ports: Value = json!([{"name": "http", "port": port, "protocol": "TCP", "targetPort": 8080}]);
        object(
            "InternalServiceExport",
            json!({
                "metadata": meta(&format!("fleet-member-{cluster}"), "shop-app"),
                "spec": {"ports": ports, "serviceReference": reference(cluster, "Service", "app")},
                "status": {"conditions": conditions("Conflict", conflict, "")},
            }),
        )
    }

    #[test]
    fn endpoints_are_counted_by_pair_and_by_state() {
        let mut snapshot = healthy();
        let states = json!([
            {"addresses": ["10.1.0.1"], "conditions": {"ready": true}},
            {"addresses": ["10.1.0.2"]},
            {"addresses": ["10.1.0.3"], "conditions": {"ready": false, "serving": true, "terminating": true}},
            {"addresses": ["10.1.0.4"], "conditions": {"ready": false}},
        ]);
        set(&mut snapshot.members[0].slices, "/endpoints", states);
        let (importer, exporter) = ("east".to_owned(), "west".to_owned());
        let expected =
            EndpointCount { importer, exporter, ready: 2, draining: 1, not_ready: 1, ..EndpointCount::default() };
        assert_eq!(endpoints(&snapshot, &app()), [expected]);
        snapshot.members[0].slices = crate::snapshot::Listing::Unknown("late".to_owned());
        assert_eq!(endpoints(&snapshot, &app()), [], "slices that were not read are no zeros");
    }

    #[test]
    fn endpoints_that_an_importer_does_not_have_are_counted_by_cause() {
        let silent = |it: &mut Snapshot, treatment: &str| {
            let members = json!([{"cluster": "west", "treatment": treatment}]);
            set(&mut it.hub.member_agents, "/status/silentMembers", members);
        };
        type Case = (&'static str, fn(&mut Snapshot, &dyn Fn(&mut Snapshot, &str)), [usize; 3]);
        let cases: [Case; 7] = [
            ("nothing explains it", |_, _| {}, [0, 0, 1]),
            ("the exporter is silent", |it, silent| silent(it, "Withdrawn"), [1, 0, 0]),
            ("the exporter is draining", |it, silent| silent(it, "Draining"), [0, 0, 1]),
            (
                "the weight is 0",
                |it, _| {
                    let withdrawn = conditions("Withdrawn", "True", "WeightIsZero");
                    set(&mut it.members[1].service_exports, "/status/conditions", withdrawn);
                },
                [1, 0, 0],
            ),
            (
                "a conflict",
                |it, _| {
                    let conflict = conditions("Conflict", "True", "ConflictFound");
                    set(&mut it.members[1].service_exports, "/status/conditions", conflict.clone());
                    set(&mut it.hub.internal_exports, "/status/conditions", conflict);
                },
                [0, 1, 0],
            ),
            (
                "ranges in the hub",
                |it, _| {
                    let ranges = json!({"networking.fleet.azure.com/source-ranges": "10.9.0.0/16"});
                    let namespaces = it.hub.namespaces.objects_mut().expect("known");
                    let west =
                        namespaces.iter_mut().find(|it| it.name_any() == "fleet-member-west").expect("it exists");
                    west.metadata.annotations = serde_json::from_value(ranges).expect("annotations");
                },
                [0, 1, 0],
            ),
            (
                "the exporter was not read, and the hub has its last state",
                |it, silent| {
                    it.members[1].slices = crate::snapshot::Listing::Unknown("late".to_owned());
                    silent(it, "Withdrawn");
                },
                [1, 0, 0],
            ),
        ];
        for (name, alter, expected) in cases {
            let mut snapshot = healthy();
            snapshot.members[0].slices = crate::snapshot::Listing::of(Vec::new());
            alter(&mut snapshot, &silent);
            let counts = endpoints(&snapshot, &app());
            let found: Vec<[usize; 3]> = counts.iter().map(|it| [it.withdrawn, it.not_selected, it.missing]).collect();
            assert_eq!(found, [expected], "{name}");
        }
    }

    #[test]
    fn a_conflict_has_each_side_with_what_differs() {
        let mut snapshot = healthy();
        assert_eq!(conflicts(&snapshot, &app()), []);
        let exports = snapshot.hub.internal_exports.objects_mut().expect("known");
        *exports = vec![export("west", 80, "False"), export("east", 81, "True")];
        let sides = conflicts(&snapshot, &app());
        let shown: Vec<(&str, &str, &str)> =
            sides.iter().map(|it| (it.cluster.as_str(), it.what, it.value.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("east", "ports", "http 81/TCP to 8080"),
                ("east", "outcome", "in conflict"),
                ("west", "ports", "http 80/TCP to 8080"),
                ("west", "outcome", "accepted"),
            ]
        );
    }
}
