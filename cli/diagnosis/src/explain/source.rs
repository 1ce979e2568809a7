//! Steps FN316 to FN318, FN321 and FN322: endpoints in the exporting member, before an agent has a part in them.

use super::age::settled;
use super::evidence::{changed, context_flag, created, quoted};
use super::lookup::{in_namespace, is_headless, is_of_another_cluster, need, optional, ready_addresses};
use super::reach::{is_served, of_slice};
use super::step_result::{Site, StepResult, Stop};
use super::text::{listed, port_text};
use super::walk::{Walk, service};
use crate::limits::LISTED;
use crate::snapshot::Member;
use fleetnet_api::names::labels;
use fleetnet_core::carried::carried;
use fleetnet_core::limits::ADDRESSES_MAX;
use k8s_openapi::api::core::v1::{Pod, Service, ServicePort};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;
use std::collections::{BTreeMap, BTreeSet};

/// Type of Services that have no endpoints.
pub(super) const EXTERNAL_NAME: &str = "ExternalName";

/// FN316. A Service whose pods are ready, but not in its slices, is reported by FN318.
pub(super) fn has_ready_endpoints(walk: &Walk<'_>) -> StepResult {
    let slices = walk.source_slices()?;
    let site = Site::Member(walk.exporter()?);
    let Some(first) = slices.first() else { return Err(Stop::Skipped("there is no EndpointSlice".to_owned())) };
    let (carried, others): (Vec<&EndpointSlice>, Vec<&EndpointSlice>) = slices.iter().partition(|it| is_carried(it));
    if carried.iter().any(|slice| !ready_addresses(slice).is_empty()) {
        return Ok(());
    }
    let Some(empty) = carried.first() else {
        let type_ = &first.address_type;
        let value = format!("{type_}: no cluster can import slices of this type, so they are not carried");
        let remedy = format!(
            "Create EndpointSlices of address type IPv4 or IPv6 for the Service: slices of type {type_} are not carried to other \
             clusters."
        );
        return Err(site.broken(*first, "addressType", value).with_remedy(remedy));
    };
    if !ready_pods(walk)?.is_empty() {
        return Err(Stop::Skipped("pods are ready, and no EndpointSlice contains them".to_owned()));
    }
    let endpoints: usize = carried.iter().map(|slice| slice.endpoints.iter().flatten().count()).sum();
    let mut value = format!("0 of {endpoints} ready");
    let pods = selected_pods(walk)?;
    let selector = service(walk).ok().and_then(selector).map(labels_of);
    let remedy = match (&selector, pods.as_deref()) {
        (Some(selector), Some([])) => {
            value += &format!(", and no pod has the labels of the selector: {selector}");
            Some(
                "Correct the selector of the Service or the labels of its pods, or start pods with these labels."
                    .to_owned(),
            )
        }
        (Some(selector), Some(_)) => Some(why_not_ready(walk, site, selector)),
        (Some(_), None) => None,
        (None, _) => {
            value += ", and the Service has no selector";
            Some(
                "Write a ready endpoint to the EndpointSlices: without a selector, Kubernetes does not change them."
                    .to_owned(),
            )
        }
    };
    if let Some(other) = others.first() {
        value += &format!(". Slices of address type {} are not carried", other.address_type);
    }
    let stop = site.broken(*empty, "endpoints", value).at(changed(*empty));
    Err(match remedy {
        Some(remedy) => stop.with_remedy(remedy),
        None => stop,
    })
}

fn why_not_ready(walk: &Walk<'_>, site: Site<'_>, selector: &str) -> String {
    let (context, namespace) = (context_flag(site), quoted(&walk.service.namespace));
    format!(
        "Make the pods of the Service ready: `kubectl{context} -n {namespace} describe pods -l {}` shows why they are not.",
        quoted(selector)
    )
}

/// FN317.
pub(super) fn has_a_source_of_slices(walk: &Walk<'_>) -> StepResult {
    let service = service(walk)?;
    if has_selector(service) || is_external_name(service) || !walk.source_slices()?.is_empty() {
        return Ok(());
    }
    let exporter = walk.exporter()?;
    let site = Site::Member(exporter);
    settled(site, created(service))?;
    if let Some(slice) = walk.slices_of_other_clusters()?.first() {
        let value = "this slice comes from another cluster, so it is not exported again";
        let remedy = "Create EndpointSlices with endpoints of this cluster, or delete the ServiceExport.";
        return Err(site.broken(*slice, "metadata.labels", value).with_remedy(remedy));
    }
    let unlabelled = unlabelled_slices(exporter, service)?;
    match unlabelled.first() {
        Some(first) => {
            settled(site, changed(*first))?;
            Err(without_label(site, service, &unlabelled))
        }
        None => Err(site.broken(service, "spec.selector", "none, and no EndpointSlice").at(created(service))),
    }
}

/// Returns the fault that the slices meant for a Service do not have its label.
fn without_label(site: Site<'_>, service: &Service, slices: &[&EndpointSlice]) -> Stop {
    let (namespace, name) = (service.namespace().unwrap_or_default(), service.name_any());
    let names: Vec<String> = slices.iter().map(|slice| slice.name_any()).collect();
    let label = slices[0].labels().get(labels::SERVICE_NAME).map_or("missing", String::as_str);
    let all = listed(names.iter().map(String::as_str));
    let value = format!("{label}, so these EndpointSlices do not belong to Service {name}: {all}");
    let in_command: Vec<String> = names.iter().take(LISTED).map(|name| quoted(name)).collect();
    let remedy = format!(
        "Set the label of the EndpointSlices: `kubectl{} -n {} label --overwrite endpointslices {} {}`.",
        context_flag(site),
        quoted(&namespace),
        in_command.join(" "),
        quoted(&format!("{}={name}", labels::SERVICE_NAME)),
    );
    site.broken(slices[0], &format!("metadata.labels[{}]", labels::SERVICE_NAME), value).with_remedy(remedy)
}

/// Returns the slices that are meant for a Service, by their owner or their name, and do not have its label.
fn unlabelled_slices<'a>(exporter: &'a Member, service: &Service) -> Result<Vec<&'a EndpointSlice>, Stop> {
    let site = Site::Member(exporter);
    let (namespace, own) = (service.namespace().unwrap_or_default(), service.name_any());
    let services = need(&exporter.services, "Services", site)?;
    let others: Vec<String> = services
        .iter()
        .filter(|it| in_namespace(*it, &namespace))
        .map(|it| it.name_any())
        .filter(|it| *it != own)
        .collect();
    let is_meant = |slice: &&EndpointSlice| {
        let name = slice.name_any();
        let label = slice.labels().get(labels::SERVICE_NAME);
        // The slice `app-db-1` is one of Service `app-db`, and not one of Service `app`.
        let is_of_other = others
            .iter()
            .any(|other| is_named_after(&name, other) && label.map_or(other.len() > own.len(), |label| label == other));
        is_owned_by(slice, service) || is_named_after(&name, &own) && !is_of_other
    };
    let has_other_label = |slice: &&EndpointSlice| slice.labels().get(labels::SERVICE_NAME) != Some(&own);
    let slices = need(&exporter.slices, "EndpointSlices", site)?.iter();
    let own_slices = slices.filter(|slice| {
        in_namespace(*slice, &namespace) && slice.metadata.deletion_timestamp.is_none() && !is_of_another_cluster(slice)
    });
    Ok(own_slices.filter(has_other_label).filter(is_meant).collect())
}

/// True if a slice has the name of a Service, as Kubernetes and people name slices.
fn is_named_after(slice: &str, service: &str) -> bool {
    slice.strip_prefix(service).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn is_owned_by(slice: &EndpointSlice, service: &Service) -> bool {
    let is_service = |kind: &str, uid: &str| kind == "Service" && service.metadata.uid.as_deref() == Some(uid);
    slice.metadata.owner_references.iter().flatten().any(|owner| is_service(&owner.kind, &owner.uid))
}

/// FN318.
pub(super) fn controller_works(walk: &Walk<'_>) -> StepResult {
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
pub(super) fn ports_have_endpoints(walk: &Walk<'_>) -> StepResult {
    let service = service(walk)?;
    let mut ready = walk.source_slices()?;
    ready.retain(|slice| is_carried(slice) && !ready_addresses(slice).is_empty());
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
pub(super) fn all_addresses_are_exported(walk: &Walk<'_>) -> StepResult {
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

/// True if the agents carry slices of this address type. FN506 reports a slice that they cannot decode.
fn is_carried(slice: &EndpointSlice) -> bool {
    of_slice(slice).is_none_or(|content| carried(&content, None).is_some())
}

/// Returns a selector as kubectl writes it.
fn labels_of(selector: &BTreeMap<String, String>) -> String {
    let labels: Vec<String> = selector.iter().map(|(name, value)| format!("{name}={value}")).collect();
    labels.join(",")
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
