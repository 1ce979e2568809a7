//! Addresses and ports that clients reach: those that an exporter has ready, and those that an importer serves.

use super::lookup::{is_headless, named, need};
use super::mcs::objects::lists;
use super::step_result::{Site, Stop};
use super::walk::Walk;
use crate::report::Api;
use fleetnet_api::crd::{EndpointSliceExport, EndpointSliceImport};
use fleetnet_api::decode::decode;
use fleetnet_core::carried::carried;
use fleetnet_core::model::{AddressType, EndpointPort, Kind, MergedCluster, Object, SliceContent};
use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde::Serialize;
use std::collections::BTreeSet;

/// Addresses with their ports, as texts such as `10.1.0.1:8080 (http)`. Slices without ports have addresses only.
pub(super) type Reach = BTreeSet<String>;

/// Returns what a client reaches of the exporter's EndpointSlices if all agents have done their work.
pub(super) fn wanted(walk: &Walk<'_>) -> Result<Reach, Stop> {
    let part = part(walk)?;
    let exporter = walk.exporter()?;
    let services = need(&exporter.services, "Services", Site::Member(exporter))?;
    let service = named(services, &walk.service.namespace, &walk.service.name);
    // An importer without an address of this family has no use for its endpoints. FN609 reports if it has no other.
    let derived = derived(walk)?;
    let mut reach = Reach::new();
    for slice in walk.source_slices()?.into_iter().filter(|slice| has_family(derived, &slice.address_type)) {
        if let Some(content) = of_slice(slice).and_then(|content| of_service(content, service)) {
            reach.extend(carried(&content, part.as_ref()).iter().flat_map(ready));
        }
    }
    Ok(reach)
}

/// Returns what a client of the derived Service reaches in the importer's EndpointSlices. A headless Service has no
/// derived Service.
pub(super) fn served(walk: &Walk<'_>) -> Result<Reach, Stop> {
    let derived = derived(walk)?;
    let mut reach = Reach::new();
    for slice in walk.imported_slices()? {
        let content = of_slice(slice).and_then(|content| of_service(content, derived));
        reach.extend(content.iter().flat_map(ready));
    }
    Ok(reach)
}

/// Returns the derived Service. A headless Service has none.
fn derived<'a>(walk: &Walk<'a>) -> Result<Option<&'a Service>, Stop> {
    match walk.derived_service() {
        Ok(derived) => Ok(Some(derived)),
        Err(Stop::Skipped(_)) => Ok(None),
        Err(stop) => Err(stop),
    }
}

/// Returns what a distributed slice brings to clients of the importer.
pub(crate) fn distributed(walk: &Walk<'_>, slice: &EndpointSliceImport) -> Result<Reach, Stop> {
    let part = part(walk)?;
    let content = of_distributed(slice).and_then(|content| carried(&content, part.as_ref()));
    Ok(content.iter().flat_map(ready).collect())
}

/// Returns the ready addresses of an EndpointSlice with their ports; nothing for a slice that the agents cannot decode.
pub(crate) fn of_slice(slice: &EndpointSlice) -> Option<SliceContent> {
    match object(Kind::EndpointSlice, slice)? {
        Object::EndpointSlice(slice) => Some(slice.content),
        _ => None,
    }
}

pub(crate) fn of_export(slice: &EndpointSliceExport) -> Option<SliceContent> {
    match object(Kind::EndpointSliceExport, slice)? {
        Object::EndpointSliceExport(slice) => Some((*slice.spec.content).clone()),
        _ => None,
    }
}

pub(super) fn of_distributed(slice: &EndpointSliceImport) -> Option<SliceContent> {
    match object(Kind::EndpointSliceImport, slice)? {
        Object::EndpointSliceImport(slice) => Some((*slice.spec.content).clone()),
        _ => None,
    }
}

/// Decodes an object as the agents do.
fn object<K: Serialize>(kind: Kind, object: &K) -> Option<Object> {
    decode(kind, &serde_json::to_vec(object).ok()?).ok()
}

/// Returns the exporter's part of the merged import; `None` by the fleet's API.
fn part(walk: &Walk<'_>) -> Result<Option<MergedCluster>, Stop> {
    if walk.api == Api::Fleet {
        return Ok(None);
    }
    let exporter = walk.exporter()?;
    let merged = walk.merged_import()?.filter(|merged| lists(merged, &exporter.id));
    let Some(Object::MergedServiceImport(merged)) = merged.and_then(|merged| object(Kind::MergedServiceImport, merged))
    else {
        return Err(Stop::Skipped(format!("{} is no part of the merged import", exporter.id)));
    };
    Ok(merged.import.clusters.iter().find(|part| *part.cluster == *exporter.id).cloned())
}

/// Reduces a slice to the ports and families of its Service, because kube-proxy finds endpoints by the name of the
/// port. Without a Service, without ports or in a headless Service, clients reach the slice as it is. `None` if the
/// Service has none of its ports.
pub(crate) fn of_service(mut content: SliceContent, service: Option<&Service>) -> Option<SliceContent> {
    let family = match &content.address_type {
        AddressType::IPv4 => "IPv4",
        AddressType::IPv6 => "IPv6",
        AddressType::Other(other) => other,
    };
    if !has_family(service, family) {
        return None;
    }
    let spec = with_address(service).and_then(|service| service.spec.as_ref());
    let ports = spec.and_then(|spec| spec.ports.as_ref()).filter(|ports| !ports.is_empty());
    let Some(ports) = ports else { return Some(content) };
    content.ports.retain(|port| ports.iter().any(|own| is_served(own, &port.name, &port.protocol)));
    (!content.ports.is_empty()).then_some(content)
}

/// True if a port of a slice is this port of its Service.
pub(super) fn is_served(own: &ServicePort, name: &str, protocol: &str) -> bool {
    own.name.as_deref().unwrap_or_default() == name && own.protocol.as_deref().unwrap_or("TCP") == protocol
}

/// True if a Service has addresses of this family, as far as it says so.
fn has_family(service: Option<&Service>, family: &str) -> bool {
    let families = with_address(service).and_then(|service| service.spec.as_ref()?.ip_families.as_ref());
    families.is_none_or(|families| families.is_empty() || families.iter().any(|it| it == family))
}

/// Returns a Service that kube-proxy serves.
fn with_address(service: Option<&Service>) -> Option<&Service> {
    service.filter(|service| !is_headless(service))
}

/// Returns the ready addresses of a slice with their ports.
pub(crate) fn ready(content: &SliceContent) -> Reach {
    let addresses = content.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
    let addresses = addresses.map(|address| match content.address_type {
        AddressType::IPv6 if !content.ports.is_empty() => format!("[{address}]"),
        _ => address.to_string(),
    });
    let with_ports = |address: String| {
        let of_port = |port: &EndpointPort| {
            let number = port.port.map_or_else(|| "all".to_owned(), |number| number.to_string());
            let name = if port.name.is_empty() { String::new() } else { format!(" ({})", port.name) };
            let protocol = if &*port.protocol == "TCP" { String::new() } else { format!("/{}", port.protocol) };
            format!("{address}:{number}{protocol}{name}")
        };
        match content.ports.is_empty() {
            true => vec![address],
            false => content.ports.iter().map(of_port).collect(),
        }
    };
    addresses.flat_map(with_ports).collect()
}

pub(super) fn exported_addresses(export: &EndpointSliceExport) -> BTreeSet<&str> {
    export.spec.endpoints.iter().flat_map(|endpoint| endpoint.addresses.iter().map(String::as_str)).collect()
}
