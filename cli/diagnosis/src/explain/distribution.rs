//! Steps FN5xx: distribution of slices in the hub.

use super::age::settled;
use super::evidence::{changed, context_flag, created, quoted, slice_changed};
use super::heartbeat::{has, member_agent};
use super::lookup::{hub_namespace, in_namespace, optional};
use super::pairs::{exclusive_holder, in_use_by};
use super::reach;
use super::reach::exported_addresses;
use super::rule::Rule;
use super::step_result::{StepResult, Stop};
use super::text::difference;
use super::walk::Walk;
use crate::codes::Code::{self, *};
use crate::report::{Api, Evidence};
use crate::snapshot::{Member, Undecodable};
use fleetnet_api::crd::{AddressType, EndpointSliceExport, EndpointSliceImport};
use fleetnet_api::names::{GROUP, annotations};
use fleetnet_core::features::Feature;
use fleetnet_core::ranges::{self, SourceRanges};
use fleetnet_core::reasons::Reason;
use k8s_openapi::api::core::v1::{Event, ResourceQuota};
use kube::ResourceExt as _;
use std::collections::BTreeSet;

pub(super) const RULES: &[(Code, Rule)] = &[
    (FN501, Rule::Pair(is_distributed)),
    (FN502, Rule::Pair(is_the_only_holder)),
    (FN503, Rule::Pair(is_current)),
    (FN504, Rule::Pair(supports_ipv6)),
    (FN505, Rule::Pair(is_not_refused)),
    (FN506, Rule::Pair(is_decodable)),
];

/// FN501. Says nothing about slices for which FN502, FN504 or FN505 has a cause.
fn is_distributed(walk: &Walk<'_>) -> StepResult {
    for export in missing(walk)? {
        if other_holder(walk, export).is_some() || !importer_accepts(walk, export)? || refusal(walk, export)?.is_some()
        {
            continue;
        }
        settled(walk.hub(), created(export))?;
        let stop = walk.hub().lacks::<EndpointSliceImport>(&hub_namespace(walk.importer()?), &export.name_any());
        return Err(stop.at(changed(export)));
    }
    Ok(())
}

/// FN502.
fn is_the_only_holder(walk: &Walk<'_>) -> StepResult {
    for export in missing(walk)? {
        if let Some(other) = other_holder(walk, export) {
            let value = format!("also exported by {}", other.namespace().unwrap_or_default());
            return Err(walk.hub().broken(export, "spec.endpointSliceReference", value).at(created(export)));
        }
    }
    Ok(())
}

/// FN503.
fn is_current(walk: &Walk<'_>) -> StepResult {
    walk.accepted_export()?;
    let distributed = walk.distributed_slices()?;
    for export in walk.slice_exports()? {
        let Some(slice) = distributed.iter().find(|slice| is_distributed_from(slice, export)) else { continue };
        let left_out = outside_of_ranges(walk, export);
        let (Some(mut wanted), Some(found)) = (reach::of_export(export), reach::of_distributed(slice)) else {
            continue;
        };
        for endpoint in &mut wanted.endpoints {
            endpoint.addresses.retain(|address| !left_out.contains(address.to_string().as_str()));
        }
        let (wanted, found) = (reach::ready(&wanted), reach::ready(&found));
        if wanted != found {
            settled(
                walk.hub(),
                slice_changed(walk.hub(), export, export.spec.endpoint_slice_reference.exported_since.as_ref()),
            )?;
            return Err(walk.hub().broken(*slice, "spec.endpoints", difference(&wanted, &found)).at(changed(export)));
        }
    }
    Ok(())
}

/// Returns the addresses of an exported slice that are outside of the source ranges of its member in the hub.
pub(super) fn outside_of_ranges<'a>(walk: &Walk<'_>, export: &'a EndpointSliceExport) -> BTreeSet<&'a str> {
    let namespaces = walk.snapshot.hub.namespaces.known().unwrap_or_default();
    let namespace = namespaces.iter().find(|namespace| Some(namespace.name_any()) == export.namespace());
    let annotation = namespace.and_then(|namespace| namespace.annotations().get(annotations::SOURCE_RANGES));
    let Some(SourceRanges::Within(ranges)) = annotation.map(|written| SourceRanges::of(written)) else {
        return BTreeSet::new();
    };
    let is_within = |address: &&str| {
        address.parse().is_ok_and(|address| ranges.iter().any(|range| ranges::contains(range, address)))
    };
    exported_addresses(export).into_iter().filter(|address| !is_within(address)).collect()
}

/// FN504.
fn supports_ipv6(walk: &Walk<'_>) -> StepResult {
    walk.accepted_export()?;
    let ipv6 = "IPv6".to_owned();
    let source = walk.source_slices().unwrap_or_default().into_iter().find(|slice| slice.address_type == ipv6);
    if source.is_some() && !hub_accepts(walk, &ipv6) {
        return Err(without_ipv6(walk, walk.exporter()?, "status.features"));
    }
    for export in missing(walk)? {
        if !importer_accepts(walk, export)? {
            return Err(without_ipv6(walk, walk.importer()?, "spec.features"));
        }
    }
    Ok(())
}

/// FN505.
fn is_not_refused(walk: &Walk<'_>) -> StepResult {
    for export in missing(walk)? {
        match refusal(walk, export)? {
            Some(Refusal::Quota(quota, value)) => return Err(walk.hub().broken(quota, "status.used", value)),
            Some(Refusal::Event(event)) => {
                let time = event.last_timestamp.as_ref().map(|time| time.0);
                return Err(walk.hub().broken(event, "message", event.message.clone().unwrap_or_default()).at(time));
            }
            None => {}
        }
    }
    Ok(())
}

/// FN506.
fn is_decodable(walk: &Walk<'_>) -> StepResult {
    let hub = &walk.snapshot.hub;
    let namespaces: Vec<String> =
        walk.members().map(hub_namespace).chain([walk.service.namespace.to_string()]).collect();
    let mut undecodable = hub.internal_exports.undecodable().chain(hub.claims.undecodable());
    let slices = hub.slice_exports.undecodable().chain(hub.distributed_slices.undecodable());
    let imports = hub.service_imports.undecodable().chain(hub.merged_imports.undecodable());
    let others = imports.chain(hub.member_agents.undecodable()).chain(slices);
    match undecodable.by_ref().chain(others).find(|object| namespaces.contains(&object.namespace)) {
        Some(object) => Err(broken(walk, object)),
        None => Ok(()),
    }
}

fn broken(walk: &Walk<'_>, object: &Undecodable) -> Stop {
    let Undecodable { kind, namespace, name, why } = object;
    let context = context_flag(walk.hub());
    Stop::Broken(Box::new(Evidence {
        cluster: "hub".to_owned(),
        kind: kind.clone(),
        namespace: namespace.clone(),
        name: name.clone(),
        field: String::new(),
        value: why.clone(),
        command: format!(
            "kubectl{context} -n {} get {}.{GROUP} {} -o yaml",
            quoted(namespace),
            kind.to_lowercase(),
            quoted(name)
        ),
        ..Evidence::default()
    }))
}

/// Returns the accepted exporter's slices that the hub does not distribute to the importer. Skips the step if the
/// importer does not request them, or has no granted claim.
fn missing<'a>(walk: &Walk<'a>) -> Result<Vec<&'a EndpointSliceExport>, Stop> {
    walk.accepted_export()?;
    let namespace = hub_namespace(walk.importer()?);
    match walk.api {
        Api::Fleet => is_granted(walk, &namespace)?,
        Api::Mcs => walk.requested_import().map(drop)?,
    }
    let (distributed, mut exports) = (walk.distributed_slices()?, walk.slice_exports()?);
    let undecodable = &walk.snapshot.hub.distributed_slices;
    exports.retain(|export| {
        !distributed.iter().any(|slice| is_distributed_from(slice, export))
            && !undecodable.undecodable().any(|it| it.namespace == namespace && it.name == export.name_any())
    });
    Ok(exports)
}

/// Skips a step that needs a granted claim.
fn is_granted(walk: &Walk<'_>, namespace: &str) -> StepResult {
    let not_granted = || Stop::Skipped("the claim is not granted".to_owned());
    walk.claim()?.ok_or_else(not_granted)?;
    let Some(import) = walk.hub_import()? else { return Ok(()) };
    let is_granted = in_use_by(import).member_clusters.contains_key(namespace);
    let is_held = exclusive_holder(walk.snapshot, import).is_some_and(|holder| holder != namespace);
    if !is_granted && is_held { Err(not_granted()) } else { Ok(()) }
}

fn is_distributed_from(slice: &EndpointSliceImport, export: &EndpointSliceExport) -> bool {
    slice.spec.slice.endpoint_slice_reference.uid == export.spec.endpoint_slice_reference.uid
}

/// Returns the export of another member with the same name or the same source slice.
fn other_holder<'a>(walk: &Walk<'a>, export: &EndpointSliceExport) -> Option<&'a EndpointSliceExport> {
    walk.snapshot.hub.slice_exports.objects().find(|other| {
        let same_source = other.spec.endpoint_slice_reference.uid == export.spec.endpoint_slice_reference.uid
            && other.spec.owner_service_reference == export.spec.owner_service_reference;
        other.namespace() != export.namespace() && (other.name_any() == export.name_any() || same_source)
    })
}

/// True if the hub agent accepts slices of this address type from the exporter.
pub(super) fn hub_accepts(walk: &Walk<'_>, address_type: &str) -> bool {
    match address_type {
        "IPv4" => true,
        "IPv6" => {
            walk.exporter().ok().and_then(|exporter| member_agent(walk.snapshot, exporter).ok().flatten()).is_some_and(
                |agent| has(agent.status.as_ref().and_then(|status| status.features.as_ref()), Feature::IPv6),
            )
        }
        _ => false,
    }
}

fn importer_accepts(walk: &Walk<'_>, export: &EndpointSliceExport) -> Result<bool, Stop> {
    if export.spec.address_type == AddressType::IPv4 {
        return Ok(true);
    }
    let agent = member_agent(walk.snapshot, walk.importer()?)?;
    Ok(agent.is_some_and(|agent| has(agent.spec.features.as_ref(), Feature::IPv6)))
}

fn without_ipv6(walk: &Walk<'_>, member: &Member, field: &str) -> Stop {
    match member_agent(walk.snapshot, member) {
        Ok(Some(agent)) => walk.hub().broken(agent, field, "without IPv6"),
        Ok(None) => walk.hub().lacks::<fleetnet_api::crd::MemberAgent>(&hub_namespace(member), &member.id),
        Err(stop) => stop,
    }
}

/// Object that shows why the hub refuses a distributed slice.
enum Refusal<'a> {
    Quota(&'a ResourceQuota, String),
    Event(&'a Event),
}

fn refusal<'a>(walk: &Walk<'a>, export: &EndpointSliceExport) -> Result<Option<Refusal<'a>>, Stop> {
    let hub = &walk.snapshot.hub;
    let namespace = hub_namespace(walk.importer()?);
    let resource = format!("count/endpointsliceimports.{GROUP}");
    for quota in hub.quotas.objects().filter(|quota| in_namespace(*quota, &namespace)) {
        let Some(status) = &quota.status else { continue };
        let of = |amounts: &Option<std::collections::BTreeMap<String, _>>| -> Option<u64> {
            let amount: &k8s_openapi::apimachinery::pkg::api::resource::Quantity = amounts.as_ref()?.get(&resource)?;
            amount.0.parse().ok()
        };
        if let (Some(hard), Some(used)) = (of(&status.hard), of(&status.used))
            && used >= hard
        {
            return Ok(Some(Refusal::Quota(quota, format!("{used} of {hard} {resource}"))));
        }
    }
    let Ok(events) = optional(&hub.events, "Events") else { return Ok(None) };
    let refused = [Reason::WriteRefused, Reason::WriteDenied].map(Reason::as_str);
    let is_about = |event: &&Event| {
        let about = &event.involved_object;
        about.kind.as_deref() == Some("EndpointSliceExport")
            && about.name == export.metadata.name
            && about.namespace == export.metadata.namespace
            && event.reason.as_deref().is_some_and(|reason| refused.contains(&reason))
    };
    Ok(events
        .iter()
        .filter(is_about)
        .max_by_key(|event| event.last_timestamp.as_ref().map(|time| time.0))
        .map(Refusal::Event))
}
