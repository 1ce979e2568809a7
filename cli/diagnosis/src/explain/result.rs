//! Steps FN7xx: result.

use super::age::settled;
use super::evidence::{changed, context_flag, slice_changed};
use super::export::namespace_in_hub;
use super::heartbeat::{member_agent, renewed};
use super::lookup::{is_of_another_cluster, need};
use super::membership::hears;
use super::reach;
use super::reach::exported_addresses;
use super::rule::Rule;
use super::service_export::is_by;
use super::step_result::{Site, StepResult, Stop};
use super::text::{difference, listed};
use super::walk::{Walk, service};
use crate::codes::Code::{self, *};
use crate::limits::{SAMPLES_MIN, SLOW_MILLISECONDS, TARGET_MILLISECONDS};
use crate::report::{Api, Evidence};
use crate::snapshot::{Member, Snapshot};
use fleetnet_api::crd::{EndpointSliceExport, MemberAgent};
use fleetnet_core::names::{cluster_of, member_namespace};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::ResourceExt as _;
use std::collections::BTreeSet;

pub(super) const RULES: &[(Code, Rule)] = &[
    (FN701, Rule::Pair(endpoints_are_equal)),
    (FN702, Rule::Pair(exporter_still_exports)),
    (FN703, Rule::Pair(exporter_is_heard)),
    (FN704, Rule::Pair(network)),
    (FN705, Rule::Pair(is_fast)),
    (FN706, Rule::Cluster(server_is_fast)),
    (FN707, Rule::Pair(addresses_are_of_one_cluster)),
    (FN708, Rule::Pair(network)),
    (FN709, Rule::Pair(network)),
    (FN710, Rule::Pair(network)),
    (FN711, Rule::Pair(addresses_have_one_exporter)),
];

/// FN701. Compares, for each address and port, what the exporter has ready with what the importer serves. Compares only
/// what the agents promise: the export is accepted and the claim is granted.
fn endpoints_are_equal(walk: &Walk<'_>) -> StepResult {
    walk.accepted_export()?;
    let site = Site::Member(walk.importer()?);
    let shown = match walk.api {
        Api::Fleet => site.shown(walk.derived_service()?, "endpoints", ""),
        Api::Mcs => {
            walk.requested_import()?;
            let import = walk.mcs_import()?.ok_or_else(|| Stop::Skipped("there is no ServiceImport".to_owned()))?;
            site.shown(import, "endpoints", "")
        }
    };
    let (wanted, served) = (reach::wanted(walk)?, reach::served(walk)?);
    if wanted == served {
        return Ok(());
    }
    // The objects were read one after the other, and each step of the way takes a moment.
    let (sources, imported) = (walk.source_slices()?, walk.imported_slices()?);
    sources.iter().try_for_each(|slice| settled(Site::Member(walk.exporter()?), changed(*slice)))?;
    imported.iter().try_for_each(|slice| settled(site, changed(*slice)))?;
    for slice in walk.distributed_slices()? {
        settled(
            walk.hub(),
            slice_changed(walk.hub(), slice, slice.spec.slice.endpoint_slice_reference.exported_since.as_ref()),
        )?;
    }
    if let Ok(own) = service(walk) {
        settled(Site::Member(walk.exporter()?), changed(own))?;
    }
    if let Ok(derived) = walk.derived_service() {
        settled(site, changed(derived))?;
    }
    if let (Api::Mcs, Some(merged)) = (walk.api, walk.merged_import()?) {
        settled(walk.hub(), changed(merged))?; // the ports may have new names
    }
    Err(Stop::Broken(Box::new(Evidence { value: difference(&wanted, &served), ..shown })))
}

/// FN702.
fn exporter_still_exports(walk: &Walk<'_>) -> StepResult {
    let Some(exporter) = walk.exporter else { return Err(Stop::Skipped("nobody exports the Service".to_owned())) };
    let imported = walk.imported_slices()?;
    let Some(slice) = imported.first() else { return Ok(()) };
    if walk.hub_lists(&exporter.id)? {
        return Ok(());
    }
    // While the namespace of the Service in the hub goes, its ServiceImport is gone already.
    if matches!(namespace_in_hub(walk), Err(Stop::Broken(_) | Stop::Waiting(_))) {
        return Err(Stop::Skipped("FN303 reports it".to_owned()));
    }
    if let (Api::Mcs, Some(merged)) = (walk.api, walk.merged_import()?) {
        settled(walk.hub(), changed(merged))?;
    }
    let value = format!("{} is imported, and the hub does not list {} as an exporter", slice.name_any(), exporter.id);
    Err(Site::Member(walk.importer()?).broken(*slice, "endpoints", value))
}

/// FN703.
fn exporter_is_heard(walk: &Walk<'_>) -> StepResult {
    let Some(exporter) = walk.exporter else { return Err(Stop::Skipped("nobody exports the Service".to_owned())) };
    if walk.imported_slices()?.is_empty() || !matches!(hears(walk.snapshot, exporter), Err(Stop::Broken(_))) {
        return Ok(());
    }
    let Some(agent) = member_agent(walk.snapshot, exporter)? else { return Ok(()) };
    let renewed = renewed(agent);
    Err(walk.hub().broken(agent, "spec.renewTime", renewed.to_string()).at(Some(renewed)))
}

/// FN704, FN708, FN709 and FN710.
fn network(_: &Walk<'_>) -> StepResult {
    Err(Stop::Skipped("the pod network cannot be seen: run `fleetnet test connectivity`".to_owned()))
}

/// FN705.
fn is_fast(walk: &Walk<'_>) -> StepResult {
    let importer = walk.importer()?;
    let Some(exporter) = walk.exporter else { return Err(Stop::Skipped("nobody exports the Service".to_owned())) };
    let summary = walk.snapshot.hub.latencies.get(&importer.id).and_then(|summary| summary.as_ref().ok());
    let origin = summary.and_then(|summary| summary.origins.iter().find(|origin| origin.cluster == exporter.id));
    let (Some(summary), Some(origin)) = (summary, origin) else {
        return Err(Stop::Skipped("there are no samples".to_owned()));
    };
    let Ok(histogram) = summary.histogram(origin) else {
        return Err(Stop::Skipped("the samples are inconsistent".to_owned()));
    };
    let slow = histogram.above(TARGET_MILLISECONDS);
    if histogram.count() < SAMPLES_MIN || slow.saturating_mul(100) <= histogram.count() {
        return Ok(());
    }
    let value = format!("{slow} of {} changes took longer than {TARGET_MILLISECONDS} ms", histogram.count());
    match member_agent(walk.snapshot, importer)? {
        Some(agent) => Err(walk.hub().broken(agent, "spec.latency", value)),
        None => Err(walk.hub().lacks::<MemberAgent>("", &importer.id)),
    }
}

/// FN706.
pub(crate) fn server_is_fast(_: &Snapshot, site: Site<'_>) -> StepResult {
    let connection = site.connection();
    let value = match connection.answer_milliseconds {
        _ if connection.throttled => "429 Too Many Requests".to_owned(),
        Some(milliseconds) if milliseconds > SLOW_MILLISECONDS => format!("{milliseconds} ms"),
        Some(_) => return Ok(()),
        None => return Err(Stop::Skipped("the server did not answer".to_owned())),
    };
    Err(Stop::Broken(Box::new(Evidence {
        cluster: site.cluster().to_owned(),
        kind: "Context".to_owned(),
        name: connection.context.clone().unwrap_or_default(),
        field: format!("answer of {}", connection.server_url),
        value,
        command: format!("kubectl{} get --raw /readyz", context_flag(site)),
        ..Evidence::default()
    })))
}

/// FN707. Only addresses of pods: two clusters may list the same address outside of all clusters on purpose, which
/// FN711 reports. The other cluster is the importer, whose own pods get the requests, or another exporter of the
/// Service.
pub(crate) fn addresses_are_of_one_cluster(walk: &Walk<'_>) -> StepResult {
    let exporter = walk.exporter()?;
    let of_slices = |member: &Member, slices: Vec<&EndpointSlice>| -> BTreeSet<String> {
        slices.into_iter().flat_map(|slice| pod_addresses(member, slice)).collect()
    };
    let own = of_slices(exporter, walk.source_slices()?);
    for other in walk.snapshot.members.iter().filter(|other| other.id != exporter.id) {
        let is_importer = walk.importer.is_some_and(|importer| importer.id == other.id);
        let is_asked =
            |slice: &&EndpointSlice| !is_of_another_cluster(slice) && (is_importer || walk.is_slice_of_service(slice));
        let mut of_other = of_slices(other, other.slices.objects().filter(is_asked).collect());
        if is_importer {
            let pods = other.pods.objects().filter(|pod| is_live(pod) && !is_on_host_network(pod));
            of_other.extend(pods.filter_map(|pod| pod.status.as_ref()?.pod_ip.clone()));
        }
        let both: Vec<&str> = own.intersection(&of_other).map(String::as_str).collect();
        let has_one = |slice: &&&EndpointSlice| pod_addresses(exporter, slice).any(|it| both.contains(&it.as_str()));
        if let Some(slice) = walk.source_slices()?.iter().find(has_one) {
            let value = format!("pods of {} have the same addresses: {}", other.id, listed(both.iter().copied()));
            return Err(Site::Member(exporter).broken(*slice, "endpoints", value));
        }
    }
    Ok(())
}

/// FN711. A notice, because one backend may be behind both clusters. The hub shows it, also for clusters that were not
/// read.
fn addresses_have_one_exporter(walk: &Walk<'_>) -> StepResult {
    if matches!(addresses_are_of_one_cluster(walk), Err(Stop::Broken(_))) {
        return Err(Stop::Skipped("FN707 reports it".to_owned()));
    }
    let (own, namespace) = (walk.slice_exports()?, member_namespace(&walk.exporter()?.id));
    let exports = need(&walk.snapshot.hub.internal_exports, "InternalServiceExports", walk.hub())?;
    let of_service = exports.iter().filter(|export| {
        let reference = &export.spec.service_reference;
        walk.is_service(&reference.namespace, &reference.name) && is_by(export, walk.api)
    });
    let exporters: BTreeSet<String> = of_service.filter_map(|export| export.namespace()).collect();
    let is_of_other = |slice: &&EndpointSliceExport| {
        slice.namespace().is_some_and(|other| *other != *namespace && exporters.contains(&other))
    };
    let addresses: BTreeSet<&str> = own.iter().flat_map(|slice| exported_addresses(slice)).collect();
    let (mut both, mut clusters) = (BTreeSet::new(), BTreeSet::new());
    for slice in walk.slice_exports_of_all()?.filter(is_of_other) {
        let shared: Vec<&str> = exported_addresses(slice).intersection(&addresses).copied().collect();
        if !shared.is_empty() {
            settled(walk.hub(), changed(slice))?;
            clusters.extend(slice.namespace().as_deref().and_then(cluster_of));
            both.extend(shared);
        }
    }
    let is_shared = |slice: &&&EndpointSliceExport| !exported_addresses(slice).is_disjoint(&both);
    let Some(slice) = own.iter().find(is_shared) else { return Ok(()) };
    settled(walk.hub(), changed(*slice))?;
    let clusters: Vec<String> = clusters.iter().map(ToString::to_string).collect();
    let [clusters, both] = [listed(clusters.iter().map(String::as_str)), listed(both.iter().copied())];
    Err(walk.hub().broken(*slice, "spec.endpoints", format!("also exported by {clusters}: {both}")))
}

/// Returns the addresses of the pods in a slice, without those that pods share with their node.
fn pod_addresses<'a>(member: &'a Member, slice: &'a EndpointSlice) -> impl Iterator<Item = String> + 'a {
    let is_own = move |endpoint: &&Endpoint| {
        let Some(target) = endpoint.target_ref.as_ref().filter(|it| it.kind.as_deref() == Some("Pod")) else {
            return false;
        };
        let is_target =
            |pod: &&Pod| pod.metadata.name == target.name && pod.metadata.namespace == slice.metadata.namespace;
        !member.pods.objects().find(is_target).is_some_and(is_on_host_network)
    };
    let endpoints = slice.endpoints.iter().flatten().filter(is_own);
    endpoints.flat_map(|endpoint| endpoint.addresses.iter().cloned())
}

/// True for a pod that has not ended: the address of an ended pod may belong to another one.
fn is_live(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    !matches!(phase, Some("Succeeded" | "Failed")) && pod.metadata.deletion_timestamp.is_none()
}

fn is_on_host_network(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true)
}
