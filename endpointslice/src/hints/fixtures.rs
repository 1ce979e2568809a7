//! Builders of small objects for the tests of hints.

use crate::model::{
    Addresses, Allocatable, Conditions, Endpoint, EndpointSlice, Hints, Metadata, Node, NodeStatus, Readiness, Service,
};
use crate::names::LABEL_ZONE;
use crate::plan::{Draft, Update};
use std::sync::Arc;

/// Returns a ready Node in this zone; "" for no zone.
pub(super) fn node(zone: &str, cpu: &str) -> Node {
    let mut metadata = Metadata::default();
    if !zone.is_empty() {
        metadata.labels.insert(LABEL_ZONE, zone);
    }
    let readiness = Readiness { is_ready: true, since: None };
    Node { metadata, status: NodeStatus { readiness, allocatable: Allocatable { cpu: Some(cpu.into()) } } }
}

pub(super) fn unready(mut node: Node) -> Node {
    node.status.readiness.is_ready = false;
    node
}

pub(super) fn control_plane(mut node: Node) -> Node {
    node.metadata.labels.insert("node-role.kubernetes.io/control-plane", "");
    node
}

/// Returns one Node for each zone, with the given thousandths of a CPU.
pub(super) fn nodes(milli_by_zone: &[(&str, u32)]) -> Vec<Node> {
    milli_by_zone.iter().map(|(zone, milli)| node(zone, &format!("{milli}m"))).collect()
}

/// Returns a Service with the topology annotation under its old name.
pub(super) fn annotated(mode: &str) -> Service {
    let mut service = Service::default();
    service.metadata.namespace = "ns".into();
    service.metadata.name = "svc".into();
    service.metadata.annotations.insert(crate::names::ANNOTATION_TOPOLOGY_HINTS, mode);
    service
}

pub(super) fn preferring(traffic_distribution: Option<&str>) -> Service {
    let mut service = Service::default();
    service.metadata.namespace = "ns".into();
    service.metadata.name = "svc".into();
    service.spec.traffic_distribution = traffic_distribution.map(Into::into);
    service
}

/// Returns a ready endpoint in this zone; "" for no zone.
pub(super) fn in_zone(zone: &str) -> Endpoint {
    Endpoint {
        addresses: Addresses::One("10.1.2.3".into()),
        conditions: Conditions { ready: Some(true), ..Conditions::default() },
        zone: (!zone.is_empty()).then(|| zone.into()),
        ..Endpoint::default()
    }
}

pub(super) fn with_readiness(ready: Option<bool>, mut endpoint: Endpoint) -> Endpoint {
    endpoint.conditions.ready = ready;
    endpoint
}

pub(super) fn on_node(node: &str, mut endpoint: Endpoint) -> Endpoint {
    endpoint.node_name = Some(node.into());
    endpoint
}

pub(super) fn hinted(zones: &[&str], nodes: &[&str], mut endpoint: Endpoint) -> Endpoint {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
    endpoint.hints = Some(Arc::new(Hints { for_zones: texts(zones), for_nodes: texts(nodes) }));
    endpoint
}

pub(super) fn slice(endpoints: Vec<Endpoint>) -> EndpointSlice {
    EndpointSlice { endpoints, ..EndpointSlice::default() }
}

/// Returns a draft of a plan. Each argument is a list of slices, and each slice is a list of endpoints.
pub(super) fn draft(creates: Vec<Vec<Endpoint>>, updates: Vec<Vec<Endpoint>>, unchanged: Vec<Vec<Endpoint>>) -> Draft {
    Draft {
        creates: creates.into_iter().map(slice).collect(),
        updates: updates.into_iter().map(|endpoints| Update::of(&Arc::default(), endpoints)).collect(),
        unchanged: unchanged.into_iter().map(|endpoints| Arc::new(slice(endpoints))).collect(),
        ..Draft::default()
    }
}

/// Returns an endpoint's hints as text: zones, then Nodes after an `@`; `-` for no hints.
pub(super) fn shown(endpoint: &Endpoint) -> String {
    let Some(hints) = &endpoint.hints else { return "-".to_owned() };
    let names = |names: &[crate::Text]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>().join("+");
    let (zones, nodes) = (names(&hints.for_zones), names(&hints.for_nodes));
    if nodes.is_empty() { zones } else { format!("{zones}@{nodes}") }
}

fn shown_slice(slice: &EndpointSlice) -> String {
    slice.endpoints.iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// Returns the hints of the slices to create, to update and to leave unchanged, each slice as one text.
pub(super) fn shown_draft(draft: &Draft) -> [Vec<String>; 3] {
    [
        draft.creates.iter().map(shown_slice).collect(),
        draft.updates.iter().map(|update| shown_slice(&update.after)).collect(),
        draft.unchanged.iter().map(|slice| shown_slice(slice)).collect(),
    ]
}
