//! Steps FN316 to FN318, FN321 and FN322: endpoints in the exporting member, before an agent has a part in them.

use super::evidence::{changed, created};
use super::export::{port_text, service};
use super::reach::is_served;
use super::walk::{Walk, in_namespace, is_headless, optional, ready_addresses, settled};
use super::{Found, Site, Stop};
use fleetnet_core::limits::ADDRESSES_MAX;
use k8s_openapi::api::core::v1::{Pod, Service, ServicePort};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;
use std::collections::{BTreeMap, BTreeSet};

/// Type of Services that have no endpoints.
pub(super) const EXTERNAL_NAME: &str = "ExternalName";

/// FN316. A Service whose pods are ready, but not in its slices, is reported by FN318.
pub(super) fn has_ready_endpoints(walk: &Walk<'_>) -> Found {
    let slices = walk.source_slices()?;
    let site = Site::Member(walk.exporter()?);
    let Some(first) = slices.first() else { return Err(Stop::Skipped("there is no EndpointSlice".to_owned())) };
    if slices.iter().any(|slice| has_addresses(slice) && !ready_addresses(slice).is_empty()) {
        return Ok(());
    }
    if !slices.iter().any(|slice| has_addresses(slice)) {
        let value = format!("{}: no cluster can import names of hosts", first.address_type);
        return Err(site.broken(*first, "addressType", value));
    }
    if !ready_pods(walk)?.is_empty() {
        return Err(Stop::Skipped("pods are ready, and no EndpointSlice contains them".to_owned()));
    }
    let endpoints: usize = slices.iter().map(|slice| slice.endpoints.iter().flatten().count()).sum();
    let mut value = format!("0 of {endpoints} ready");
    if let Ok(service) = service(walk)
        && let Some(selector) = selector(service)
        && selected_pods(walk)?.is_some_and(|pods| pods.is_empty())
    {
        let labels: Vec<String> = selector.iter().map(|(name, value)| format!("{name}={value}")).collect();
        value += &format!(", and no pod has the labels of the selector: {}", labels.join(","));
    }
    Err(site.broken(*first, "endpoints", value).at(changed(*first)))
}

/// FN317.
pub(super) fn has_a_source_of_slices(walk: &Walk<'_>) -> Found {
    let service = service(walk)?;
    if has_selector(service) || is_external_name(service) || !walk.source_slices()?.is_empty() {
        return Ok(());
    }
    let site = Site::Member(walk.exporter()?);
    settled(site, created(service))?;
    if let Some(slice) = walk.slices_of_other_clusters()?.first() {
        let value = "this slice comes from another cluster, so it is not exported again";
        return Err(site.broken(*slice, "metadata.labels", value));
    }
    Err(site.broken(service, "spec.selector", "none, and no EndpointSlice").at(created(service)))
}

/// FN318.
pub(super) fn controller_works(walk: &Walk<'_>) -> Found {
    let service = service(walk)?;
    if !has_selector(service) {
        return Err(Stop::Skipped("the Service has no selector".to_owned()));
    }
    let site = Site::Member(walk.exporter()?);
    let slices = walk.source_slices()?;
    if slices.is_empty() {
        settled(site, created(service))?;
        return Err(site.lacks_for::<EndpointSlice>(&walk.service.namespace, walk.service));
    }
    let listed: BTreeSet<&str> = slices.iter().flat_map(|slice| ready_addresses(slice)).collect();
    for pod in ready_pods(walk)? {
        let address = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()).unwrap_or_default();
        let further = pod.status.iter().flat_map(|status| status.pod_ips.iter().flatten()).map(|it| it.ip.as_str());
        if !std::iter::once(address).chain(further).any(|address| listed.contains(address)) {
            let ready = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            let mut ready = ready.into_iter().filter(|condition| condition.type_ == "Ready");
            let since = ready.next().and_then(|ready| ready.last_transition_time.as_ref()).map(|time| time.0);
            settled(site, since.or_else(|| created(pod)))?;
            return Err(site
                .broken(pod, "status.podIP", format!("{address} is not ready in any EndpointSlice"))
                .at(since));
        }
    }
    Ok(())
}

/// FN321. Kubernetes writes no port to a slice if the pods have no port of the name in `targetPort`.
pub(super) fn ports_have_endpoints(walk: &Walk<'_>) -> Found {
    let service = service(walk)?;
    let mut ready = walk.source_slices()?;
    ready.retain(|slice| has_addresses(slice) && !ready_addresses(slice).is_empty());
    if ready.is_empty() {
        return Err(Stop::Skipped("no endpoint is ready".to_owned()));
    }
    if is_headless(service) {
        return Err(Stop::Skipped("clients of a headless Service choose the port".to_owned()));
    }
    let has = |own: &ServicePort| {
        let mut ports = ready.iter().flat_map(|slice| slice.ports.iter().flatten());
        ports.any(|port| {
            is_served(own, port.name.as_deref().unwrap_or_default(), port.protocol.as_deref().unwrap_or("TCP"))
        })
    };
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let Some(port) = ports.into_iter().find(|port| !has(port)) else { return Ok(()) };
    let site = Site::Member(walk.exporter()?);
    ready.iter().try_for_each(|slice| settled(site, changed(*slice)))?;
    settled(site, changed(service))?;
    let target = match &port.target_port {
        Some(IntOrString::String(name)) => format!("targetPort {name}"),
        Some(IntOrString::Int(number)) => format!("targetPort {number}"),
        None => "no targetPort".to_owned(),
    };
    let value = format!("no EndpointSlice with ready endpoints has this port ({target})");
    let field = format!("spec.ports[{}]", port_text(port.name.as_deref(), port.port));
    Err(site.broken(service, &field, value))
}

/// FN322.
pub(super) fn all_addresses_are_exported(walk: &Walk<'_>) -> Found {
    walk.service_export()?;
    let has_more = |slice: &&EndpointSlice| {
        let mut endpoints = slice.endpoints.iter().flatten();
        endpoints.any(|endpoint| endpoint.addresses.len() > ADDRESSES_MAX)
    };
    match walk.source_slices()?.into_iter().find(has_more) {
        Some(slice) => {
            let value = format!(
                "an endpoint has more than {ADDRESSES_MAX} addresses, and the first {ADDRESSES_MAX} are exported"
            );
            Err(Site::Member(walk.exporter()?).broken(slice, "endpoints[].addresses", value))
        }
        None => Ok(()),
    }
}

/// True if clusters can import slices of this type: others than `FQDN`.
fn has_addresses(slice: &EndpointSlice) -> bool {
    ["IPv4", "IPv6"].contains(&slice.address_type.as_str())
}

pub(super) fn is_external_name(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some(EXTERNAL_NAME)
}

fn has_selector(service: &Service) -> bool {
    selector(service).is_some()
}

fn selector(service: &Service) -> Option<&BTreeMap<String, String>> {
    service.spec.as_ref()?.selector.as_ref().filter(|selector| !selector.is_empty())
}

/// Returns the pods that the Service selects; `None` if pods were not read.
fn selected_pods<'a>(walk: &Walk<'a>) -> Result<Option<Vec<&'a Pod>>, Stop> {
    let (service, exporter) = (service(walk)?, walk.exporter()?);
    let Ok(pods) = optional(&exporter.pods, "Pods") else { return Ok(None) };
    let Some(selector) = selector(service) else { return Ok(Some(Vec::new())) };
    let is_selected = |pod: &&Pod| {
        in_namespace(*pod, &walk.service.namespace)
            && selector.iter().all(|(key, value)| pod.labels().get(key) == Some(value))
            && pod.metadata.deletion_timestamp.is_none()
    };
    Ok(Some(pods.iter().filter(is_selected).collect()))
}

/// Returns the ready pods that the Service selects; none if pods were not read.
fn ready_pods<'a>(walk: &Walk<'a>) -> Result<Vec<&'a Pod>, Stop> {
    let is_ready = |pod: &&Pod| {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    Ok(selected_pods(walk)?.into_iter().flatten().filter(is_ready).collect())
}
