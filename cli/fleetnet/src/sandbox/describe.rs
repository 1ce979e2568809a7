//! One-line descriptions of objects. Objects with equal content have equal descriptions, so a comparison of expected
//! and actual objects only compares descriptions. Does no I/O.

use fleetnet_api::crd::endpoint_slice_export::{self, EndpointSliceExportSpec};
use fleetnet_api::crd::shared;
use fleetnet_api::names::labels;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{Resource, ResourceExt as _};
use std::collections::BTreeMap;

/// Namespace of the sandbox's Services in each member.
pub(crate) const NAMESPACE: &str = "work";
/// Description of the port of every slice in the sandbox.
const SLICE_PORT: &str = "http 8080/TCP";

/// Kind of an object, and its name as `[namespace/]name`. Names of exported and imported slices end with a hash, which
/// the key omits.
pub(crate) type Key = (&'static str, String);

/// Object that was found in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundObject {
    /// Key of the expected object that the found object must equal.
    pub(crate) key: Key,
    /// Full name of the object.
    pub(crate) name: String,
    pub(crate) description: String,
}

/// Compares the objects that were found in a cluster with the expected objects. Returns the differences as sentences,
/// in which `place` is the name of the cluster.
pub(crate) fn compare(
    place: &str,
    mut expected: BTreeMap<Key, String>,
    found: impl IntoIterator<Item = FoundObject>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for FoundObject { key, name, description } in found {
        match expected.remove(&key) {
            None => wrong.push(format!("{place} has the {} {name}, which should not be there", key.0)),
            Some(should) if should != description => {
                wrong.push(format!("{} {name} in {place} says \"{description}\", not \"{should}\"", key.0));
            }
            Some(_) => {}
        }
    }
    wrong.extend(expected.into_keys().map(|(kind, name)| format!("{place} has no {kind} {name}")));
    wrong
}

/// Returns the name of an exported slice without the hash at its end. The remaining name consists of the cluster,
/// namespace and name of the source slice.
pub(crate) fn source(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(source, _)| source)
}

/// Describes an imported slice that was found.
pub(crate) fn imported_slice(slice: &EndpointSlice) -> String {
    let label = |name| slice.labels().get(name).map_or("nobody", String::as_str);
    let ports = slice.ports.iter().flatten().map(slice_port);
    let content = content(&slice.address_type, ports, slice.endpoints.iter().flatten().map(endpoint));
    let of = (label(labels::SERVICE_NAME), label(labels::MANAGED_BY));
    alive(slice, format!("of {}, managed by {}: {content}", of.0, of.1))
}

/// Describes the imported slice that is expected for these addresses.
pub(crate) fn imported_slice_of(derived: &str, addresses: &[String]) -> String {
    format!("of {derived}, managed by {}: {}", labels::MANAGED_BY_IMPORT, sandbox_content(addresses))
}

/// Describes the imported slice that is expected for these addresses while they are draining.
pub(crate) fn drained_slice_of(derived: &str, addresses: &[String]) -> String {
    let draining: Vec<String> = addresses.iter().map(|it| format!("{it} (not ready) (terminating)")).collect();
    imported_slice_of(derived, &draining)
}

/// Describes the imported slice that is expected if clients reach its cluster at no port.
pub(crate) fn unserved_slice_of(derived: &str) -> String {
    let nothing = content("IPv4", std::iter::empty(), std::iter::empty());
    format!("of {derived}, managed by {}: {nothing}", labels::MANAGED_BY_IMPORT)
}

/// Describes an EndpointSliceExport or EndpointSliceImport that was found.
pub(crate) fn hub_slice<K: Resource>(object: &K, spec: &EndpointSliceExportSpec) -> String {
    let (source, owner) = (&spec.endpoint_slice_reference, &spec.owner_service_reference);
    let endpoints = spec.endpoints.iter().map(|endpoint| endpoint.addresses.join("+"));
    let ports = spec.ports.iter().flatten().map(hub_slice_port);
    let content = content(&format!("{:?}", spec.address_type), ports, endpoints);
    alive(
        object,
        format!("{} of {} in {}: {content}", source.namespaced_name, owner.namespaced_name, source.cluster_id),
    )
}

/// Describes the EndpointSliceExport or EndpointSliceImport that is expected for these addresses.
pub(crate) fn hub_slice_of(cluster: &str, service: &str, slice: &str, addresses: &[String]) -> String {
    let (slice, service) = (full_name(slice), full_name(service));
    format!("{slice} of {service} in {cluster}: {}", sandbox_content(addresses))
}

/// Describes a derived Service that was found.
pub(crate) fn derived_service(service: &Service) -> String {
    let label = |name| service.labels().get(name).map_or("", String::as_str);
    let of = match service.labels().get(labels::MCS_SERVICE_NAME) {
        Some(imported) => (service.metadata.namespace.as_deref().unwrap_or_default(), imported.as_str()),
        None => (label(labels::MULTI_CLUSTER_SERVICE_NAMESPACE), label(labels::MULTI_CLUSTER_SERVICE_NAME)),
    };
    let spec = service.spec.clone().unwrap_or_default();
    let ports = spec.ports.iter().flatten().map(|port| {
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        service_port(port.name.as_deref(), port.port, protocol, port.target_port.as_ref(), port.app_protocol.as_deref())
    });
    let service_type = spec.type_.as_deref().unwrap_or("ClusterIP");
    alive(service, format!("{service_type} for {}/{}: {}", of.0, of.1, list(ports)))
}

/// Describes the derived Service that is expected for a port with this description.
pub(crate) fn derived_service_of(service: &str, port: &str) -> String {
    format!("ClusterIP for {}: {port}", full_name(service))
}

/// Describes the ports of a Service in the hub.
pub(crate) fn hub_ports(ports: &[shared::ServicePort]) -> String {
    list(ports.iter().map(|port| {
        let protocol = port.protocol.unwrap_or_default().name();
        service_port(port.name.as_deref(), port.port, protocol, port.target_port.as_ref(), port.app_protocol.as_deref())
    }))
}

/// Describes the only port of a Service in the sandbox.
pub(crate) fn sandbox_port(port: u16) -> String {
    format!("http {port}/TCP to 8080")
}

/// Describes the only port of a Service that the standard API imports. It has no target port, because each cluster has
/// its own.
pub(crate) fn merged_port(port: u16) -> String {
    format!("http {port}/TCP to {port}")
}

/// Adds a remark to a description if the object is being deleted.
pub(crate) fn alive<K: Resource>(object: &K, description: String) -> String {
    if object.meta().deletion_timestamp.is_some() { format!("{description} (is being deleted)") } else { description }
}

/// Joins descriptions to one text, separated by commas.
pub(crate) fn list(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

fn sandbox_content(addresses: &[String]) -> String {
    content("IPv4", std::iter::once(SLICE_PORT.to_owned()), addresses.iter().cloned())
}

fn content(address_type: &str, ports: impl Iterator<Item = String>, endpoints: impl Iterator<Item = String>) -> String {
    format!("{address_type} {} at {}", list(ports), list(endpoints))
}

/// Describes an endpoint of an imported slice. An endpoint without conditions is ready.
fn endpoint(endpoint: &Endpoint) -> String {
    let conditions = endpoint.conditions.clone().unwrap_or_default();
    let mut description = endpoint.addresses.join("+");
    let odd = [
        (conditions.ready == Some(false), " (not ready)"),
        (conditions.serving == Some(false), " (not serving)"),
        (conditions.terminating == Some(true), " (terminating)"),
    ];
    odd.iter().filter(|(is, _)| *is).for_each(|(_, what)| description.push_str(what));
    description
}

fn slice_port(port: &EndpointPort) -> String {
    port_of_slice(port.name.as_deref(), port.port, port.protocol.as_deref(), port.app_protocol.as_deref())
}

fn hub_slice_port(port: &endpoint_slice_export::EndpointPort) -> String {
    port_of_slice(port.name.as_deref(), port.port, port.protocol.as_deref(), port.app_protocol.as_deref())
}

fn port_of_slice(name: Option<&str>, port: Option<i32>, protocol: Option<&str>, application: Option<&str>) -> String {
    let port = port.map_or_else(|| "any".to_owned(), |port| port.to_string());
    let application = application.map_or_else(String::new, |application| format!(" {application}"));
    format!("{} {port}/{}{application}", name.unwrap_or_default(), protocol.unwrap_or("TCP"))
}

fn service_port(
    name: Option<&str>,
    port: i32,
    protocol: &str,
    target: Option<&IntOrString>,
    application: Option<&str>,
) -> String {
    let target = match target {
        Some(IntOrString::Int(number)) => number.to_string(),
        Some(IntOrString::String(name)) => name.clone(),
        None => port.to_string(),
    };
    let application = application.map_or_else(String::new, |application| format!(" {application}"));
    format!("{} {port}/{protocol} to {target}{application}", name.unwrap_or_default())
}

/// Returns a Service's name as `namespace/name`, as events show it.
pub(crate) fn full_name(service: &str) -> String {
    format!("{NAMESPACE}/{service}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn slice(change: Value) -> String {
        let mut slice = json!({
            "metadata": {
                "name": "member-1-work-app-1-3e778",
                "labels": {"kubernetes.io/service-name": "work-app", labels::MANAGED_BY: labels::MANAGED_BY_IMPORT},
            },
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            "endpoints": [{"addresses": ["10.1.0.1"], "conditions": {}}, {"addresses": ["10.1.0.2"]}],
        });
        slice.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        imported_slice(&serde_json::from_value(slice).unwrap())
    }

    #[test]
    fn an_imported_slice_that_differs_in_anything_that_matters_has_another_description() {
        let good = imported_slice_of("work-app", &["10.1.0.1".to_owned(), "10.1.0.2".to_owned()]);
        assert_eq!(slice(json!({})), good);
        assert!(good.ends_with(": IPv4 http 8080/TCP at 10.1.0.1, 10.1.0.2"), "{good}");
        for change in [
            json!({"addressType": "IPv6"}),
            json!({"ports": [{"name": "http", "port": 8081, "protocol": "TCP"}]}),
            json!({"ports": [{"name": "http", "port": 8080, "protocol": "UDP"}]}),
            json!({"ports": [{"name": "web", "port": 8080, "protocol": "TCP"}]}),
            json!({"ports": []}),
            json!({"endpoints": [{"addresses": ["10.1.0.1"]}]}),
            json!({"endpoints": [{"addresses": ["10.1.0.1"], "conditions": {"ready": false}}, {"addresses": ["10.1.0.2"]}]}),
            json!({"endpoints": [{"addresses": ["10.1.0.1"], "conditions": {"terminating": true}}, {"addresses": ["10.1.0.2"]}]}),
            json!({"metadata": {"name": "x", "labels": {"kubernetes.io/service-name": "work-app"}}}),
            json!({"metadata": {"name": "x", "labels": {labels::MANAGED_BY: labels::MANAGED_BY_IMPORT}}}),
        ] {
            assert_ne!(slice(change.clone()), good, "{change}");
        }
    }

    #[test]
    fn the_description_of_a_derived_service_has_its_type_its_ports_and_its_origin() {
        let service = |port: u16| {
            let labels = json!({
                labels::MULTI_CLUSTER_SERVICE_NAME: "app", labels::MULTI_CLUSTER_SERVICE_NAMESPACE: "work",
            });
            let ports = json!([{"name": "http", "port": port, "targetPort": 8080, "protocol": "TCP"}]);
            let service = json!({
                "metadata": {"name": "work-app", "labels": labels}, "spec": {"type": "ClusterIP", "ports": ports},
            });
            derived_service(&serde_json::from_value(service).unwrap())
        };
        assert_eq!(service(80), "ClusterIP for work/app: http 80/TCP to 8080");
        assert_eq!(service(80), derived_service_of("app", &sandbox_port(80)));
        assert_ne!(service(81), derived_service_of("app", &sandbox_port(80)));
    }

    #[test]
    fn what_is_missing_too_much_or_different_is_reported() {
        let key = |name: &str| ("Thing", name.to_owned());
        let found = |name: &str, description: &str| FoundObject {
            key: key(source(name)),
            name: name.to_owned(),
            description: description.to_owned(),
        };
        let expected =
            BTreeMap::from([(key("a"), "1".to_owned()), (key("b"), "2".to_owned()), (key("c"), "3".to_owned())]);
        let all = [found("a-0", "1"), found("b-0", "2"), found("c-0", "3")];
        assert_eq!(compare("here", expected.clone(), all), Vec::<String>::new());
        assert_eq!(
            compare("here", expected, [found("a-0", "1"), found("a-1", "1"), found("b-0", "4")]),
            [
                "here has the Thing a-1, which should not be there",
                "Thing b-0 in here says \"4\", not \"2\"",
                "here has no Thing c",
            ]
        );
    }
}
