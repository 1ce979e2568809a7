//! Steps FN3xx: export from the exporting member to the hub.

use super::age::{older_than, settled};
use super::deletion::{stays_or_goes, stays_or_goes_with};
use super::evidence::{annotation, changed, created};
use super::lookup::{exporters, hub_namespace, is_headless, ready_addresses};
use super::rights::{is_allowed, is_namespace_required, list_of};
use super::rule::Rule;
use super::service_export::{Export, outcome, outcome_type};
use super::source::{self, EXTERNAL_NAME, is_external_name};
use super::step_result::{Site, StepResult, Stop};
use super::text::{difference, listed, ports_of};
use super::walk::{Walk, namespace, service};
use super::{mcs, reach};
use crate::codes::Code::{self, *};
use crate::limits::ANSWERED_SECONDS;
use crate::report::Api;
use crate::snapshot::Member;
use fleetnet_api::crd::mcs::ServiceExport as McsServiceExport;
use fleetnet_api::crd::{EndpointSliceExport, InternalServiceExport, ServiceExport};
use fleetnet_api::names::annotations;
use fleetnet_core::conditions::{INVALID_SERVICE_TYPE, NO_SERVICE, VALID, WITHDRAWN};
use fleetnet_core::limits::PORTS_MAX;
use fleetnet_core::model::{Address, SliceContent};
use fleetnet_core::reasons::Reason;
use fleetnet_types::ObjectName;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt as _;
use std::collections::BTreeSet;

pub(super) const RULES: &[(Code, Rule)] = &[
    (FN301, Rule::Pair(is_exported)),
    (FN302, Rule::Pair(service_exists)),
    (FN303, Rule::Pair(namespace_in_hub)),
    (FN304, Rule::Pair(is_eligible)),
    (FN305, Rule::Fleet(weight_is_valid)),
    (FN306, Rule::Fleet(weight_is_not_zero)),
    (FN307, Rule::Pair(is_allowed_to_export)),
    (FN308, Rule::Fleet(name_is_free)),
    (FN309, Rule::Fleet(is_not_rejected)),
    (FN310, Rule::Pair(is_written)),
    (FN311, Rule::Pair(is_judged)),
    (FN312, Rule::Fleet(has_no_conflict)),
    (FN313, Rule::Pair(is_not_in_deletion)),
    (FN314, Rule::Pair(slices_are_exported)),
    (FN315, Rule::Pair(slices_are_current)),
    (FN316, Rule::Pair(source::has_ready_endpoints)),
    (FN317, Rule::Pair(source::has_a_source_of_slices)),
    (FN318, Rule::Pair(source::controller_works)),
    (FN319, Rule::Mcs(mcs::is_exported)),
    (FN320, Rule::Mcs(mcs::exports_agree)),
    (FN321, Rule::Pair(source::ports_have_endpoints)),
    (FN322, Rule::Pair(source::all_addresses_are_exported)),
    (FN323, Rule::Mcs(mcs::ports_are_served)),
];

/// FN301.
fn is_exported(walk: &Walk<'_>) -> StepResult {
    let Some(exporter) = walk.exporter else {
        if walk.importer.is_some() {
            return Err(Stop::Skipped("FN402 reports that nobody exports the Service".to_owned()));
        }
        for member in &walk.snapshot.members {
            walk.export_in(member)?;
        }
        let Some(member) = walk.snapshot.members.first() else {
            return Err(Stop::Unknown("no member was read".to_owned()));
        };
        return Err(lacks_export(walk, member));
    };
    let exporter = if walk.is_leftover { walk.exporter()? } else { exporter };
    if walk.export_in(exporter)?.is_some() {
        return Ok(());
    }
    if walk.ends.exporter_is_wanted {
        return Err(lacks_export(walk, exporter));
    }
    Err(Stop::Skipped(format!("{} has no ServiceExport", exporter.id)))
}

fn lacks_export(walk: &Walk<'_>, member: &Member) -> Stop {
    let (site, ObjectName { namespace, name }) = (Site::Member(member), walk.service);
    match walk.api {
        Api::Fleet => site.lacks::<ServiceExport>(namespace, name),
        Api::Mcs => site.lacks::<McsServiceExport>(namespace, name),
    }
}

/// FN302.
fn service_exists(walk: &Walk<'_>) -> StepResult {
    valid_without(walk, &[Reason::ServiceNotFound.as_str(), NO_SERVICE])
}

/// FN303.
pub(super) fn namespace_in_hub(walk: &Walk<'_>) -> StepResult {
    walk.service_export()?;
    if walk.api == Api::Mcs && !is_namespace_required(walk.snapshot) {
        return Err(Stop::Skipped("by default, the standard API needs no namespace in the hub".to_owned()));
    }
    match namespace(walk)? {
        // A server creates no object in a namespace that is being deleted.
        Some(namespace) => stays_or_goes_with(walk.hub(), namespace),
        None => Err(walk.hub().lacks::<Namespace>("", &walk.service.namespace)),
    }
}

/// Remedy for a Service of type ExternalName.
const WITHOUT_ENDPOINTS: &str = "Delete the ServiceExport, or give the Service another type: a Service of type ExternalName has no \
                                 endpoints that can be exported.";

/// FN304.
fn is_eligible(walk: &Walk<'_>) -> StepResult {
    let eligible = [Reason::ServiceIneligible, Reason::ServiceImported, Reason::TooManyPorts].map(Reason::as_str);
    let reasons = [&eligible[..], &[INVALID_SERVICE_TYPE]].concat();
    let Err(stop) = valid_without(walk, &reasons) else { return Ok(()) };
    let reason = walk.service_export()?.condition(VALID).map(|valid| valid.reason.as_str());
    let remedy = match (reason, service(walk)) {
        (_, Ok(service)) if is_external_name(service) => {
            let stop = Site::Member(walk.exporter()?).broken(service, "spec.type", EXTERNAL_NAME);
            return Err(stop.with_remedy(WITHOUT_ENDPOINTS));
        }
        (Some(INVALID_SERVICE_TYPE), _) => WITHOUT_ENDPOINTS.to_owned(),
        (Some(reason), _) if reason == Reason::ServiceImported.as_str() => {
            "Delete the ServiceExport: the clusters that run the Service export it.".to_owned()
        }
        (Some(reason), _) if reason == Reason::TooManyPorts.as_str() => {
            format!("Export a Service with at most {PORTS_MAX} ports.")
        }
        // By the standard API, a headless Service needs no annotation.
        (_, Ok(service)) if walk.api == Api::Fleet && is_headless(service) => format!(
            "Set the annotation {} of the ServiceExport to \"true\". If it is set, upgrade the hub agent.",
            annotations::EXPORT_HEADLESS
        ),
        _ => return Err(stop),
    };
    Err(stop.with_remedy(remedy))
}

/// FN305.
fn weight_is_valid(walk: &Walk<'_>) -> StepResult {
    valid_without(walk, &[Reason::ServiceExportInvalidWeightAnnotation.as_str()])
}

/// FN306.
fn weight_is_not_zero(walk: &Walk<'_>) -> StepResult {
    let export = walk.service_export()?;
    let site = Site::Member(walk.exporter()?);
    match export.condition(WITHDRAWN) {
        Some(withdrawn) if withdrawn.status == "True" && withdrawn.reason == Reason::WeightIsZero.as_str() => {
            Err(export.broken_condition(site, withdrawn))
        }
        _ => Ok(()),
    }
}

/// FN307.
fn is_allowed_to_export(walk: &Walk<'_>) -> StepResult {
    let exporter = walk.exporter()?;
    if let Some(namespace) = namespace(walk)?
        && !is_allowed(walk.snapshot, Some(namespace), annotations::EXPORTERS, &exporter.id)
    {
        let list = list_of(namespace, annotations::EXPORTERS);
        return Err(walk.hub().broken(namespace, &annotation(annotations::EXPORTERS), list));
    }
    valid_without(walk, &[Reason::ExporterNotAllowed.as_str()])
}

/// FN308.
fn name_is_free(walk: &Walk<'_>) -> StepResult {
    valid_without(walk, &[Reason::NameHeldByAnother.as_str()])
}

/// FN309.
fn is_not_rejected(walk: &Walk<'_>) -> StepResult {
    valid_without(walk, &[Reason::WriteRefused.as_str()])
}

/// FN310.
fn is_written(walk: &Walk<'_>) -> StepResult {
    let export = walk.service_export()?;
    if export.meta().deletion_timestamp.is_some() {
        return Err(Stop::Skipped("the ServiceExport is being deleted".to_owned()));
    }
    let exporter = walk.exporter()?;
    if walk.internal_export()?.is_some() {
        return Ok(());
    }
    mcs::unless_reported(walk)?;
    let valid = export.condition(VALID);
    if valid.is_some_and(|valid| valid.status == "False") {
        return Err(Stop::Skipped("the ServiceExport is not valid".to_owned()));
    }
    let since = valid.map_or_else(|| export.created(), |valid| Some(valid.last_transition_time.0));
    older_than(ANSWERED_SECONDS, Site::Member(exporter), since)?;
    Err(match valid {
        None => export.broken(Site::Member(exporter), "status.conditions[Valid]", "missing").at(since),
        Some(_) => walk.hub().lacks_for::<InternalServiceExport>(&hub_namespace(exporter), walk.service).at(since),
    })
}

/// FN311.
fn is_judged(walk: &Walk<'_>) -> StepResult {
    let Some(export) = walk.internal_export()? else { return Err(not_written()) };
    let conflict = outcome(export, walk.api);
    if conflict.is_some_and(|conflict| conflict.status != "Unknown") {
        return Ok(());
    }
    mcs::unless_reported(walk)?;
    let since = conflict.map_or_else(|| created(export), |conflict| Some(conflict.last_transition_time.0));
    older_than(ANSWERED_SECONDS, walk.hub(), since)?;
    Err(match conflict {
        Some(conflict) => walk.hub().broken_condition(export, conflict),
        None => {
            let field = format!("status.conditions[{}]", outcome_type(walk.api));
            walk.hub().broken(export, &field, "missing").at(since)
        }
    })
}

/// FN312.
fn has_no_conflict(walk: &Walk<'_>) -> StepResult {
    let Some(export) = walk.internal_export()? else { return Err(not_written()) };
    let Some(conflict) = outcome(export, Api::Fleet).filter(|conflict| conflict.status == "True") else {
        return Ok(());
    };
    let mut stop = walk.hub().broken_condition(export, conflict);
    if let (Stop::Broken(evidence), Some(import)) = (&mut stop, walk.hub_import()?) {
        let status = import.status.iter().flat_map(|status| status.import.ports.iter().flatten());
        evidence.value += &format!(
            ". {} exports {}, and {} has {}",
            walk.exporter()?.id,
            ports_of(export.spec.ports.iter().map(|port| (port.name.as_deref(), port.port))),
            listed(exporters(import)),
            ports_of(status.map(|port| (port.name.as_deref(), port.port))),
        );
    }
    Err(stop)
}

/// FN313.
fn is_not_in_deletion(walk: &Walk<'_>) -> StepResult {
    let member = Site::Member(walk.exporter()?);
    match walk.service_export() {
        Ok(Export::Fleet(export)) => stays_or_goes(member, export)?,
        Ok(Export::Mcs(export)) => stays_or_goes(member, export)?,
        Err(_) => {}
    }
    let Some(export) = walk.internal_export()? else { return Ok(()) };
    stays_or_goes(walk.hub(), export)?;
    // A ServiceExport of the standard API has no finalizer.
    if walk.api == Api::Mcs && walk.export_in(walk.exporter()?)?.is_none() {
        settled(walk.hub(), changed(export))?;
        let value = "the exporter has no ServiceExport of multicluster.x-k8s.io";
        return Err(walk.hub().broken(export, "spec.multicluster", value));
    }
    Ok(())
}

/// FN314.
fn slices_are_exported(walk: &Walk<'_>) -> StepResult {
    walk.accepted_export()?;
    let (exporter, exported) = (walk.exporter()?, walk.slice_exports()?);
    let listing = &walk.snapshot.hub.slice_exports;
    for slice in walk.source_slices()? {
        if ready_addresses(slice).is_empty() || !super::distribution::hub_accepts(walk, &slice.address_type) {
            continue;
        }
        if export_of(slice, &exported).is_some() {
            continue;
        }
        let namespace = hub_namespace(exporter);
        if listing.undecodable().any(|it| it.namespace == namespace && it.name.contains(&slice.name_any())) {
            continue;
        }
        settled(Site::Member(exporter), changed(slice))?;
        let what = format!("none for EndpointSlice {}", slice.name_any());
        return Err(walk.hub().lacks_of_kind::<EndpointSliceExport>(&namespace, what));
    }
    Ok(())
}

/// FN315.
fn slices_are_current(walk: &Walk<'_>) -> StepResult {
    walk.accepted_export()?;
    let (exporter, exported) = (walk.exporter()?, walk.slice_exports()?);
    for slice in walk.source_slices()? {
        let Some(export) = export_of(slice, &exported) else { continue };
        let (Some(own), Some(in_hub)) = (reach::of_slice(slice), reach::of_export(export)) else { continue };
        let addresses = |content: &SliceContent| -> BTreeSet<Address> {
            content.endpoints.iter().flat_map(|endpoint| endpoint.addresses.iter().cloned()).collect()
        };
        let has_same_addresses = addresses(&own) == addresses(&in_hub);
        let (own, in_hub) = (reach::ready(&own), reach::ready(&in_hub));
        // FN608 reports further ports.
        if has_same_addresses && own.is_subset(&in_hub) {
            continue;
        }
        settled(Site::Member(exporter), changed(slice))?;
        return Err(walk.hub().broken(export, "spec.endpoints", difference(&own, &in_hub)).at(changed(export)));
    }
    Ok(())
}

/// Fails if the condition `Valid` of the ServiceExport is not true for one of these reasons.
fn valid_without(walk: &Walk<'_>, reasons: &[&str]) -> StepResult {
    let export = walk.service_export()?;
    let site = Site::Member(walk.exporter()?);
    match export.condition(VALID) {
        Some(valid) if valid.status != "True" && reasons.contains(&valid.reason.as_str()) => {
            Err(export.broken_condition(site, valid))
        }
        _ => Ok(()),
    }
}

/// Returns the export of a source slice.
pub(crate) fn export_of<'a>(
    slice: &EndpointSlice,
    exported: &[&'a EndpointSliceExport],
) -> Option<&'a EndpointSliceExport> {
    let uid = slice.metadata.uid.as_deref()?;
    exported.iter().find(|export| export.spec.endpoint_slice_reference.uid == uid).copied()
}

fn not_written() -> Stop {
    Stop::Skipped("there is no InternalServiceExport".to_owned())
}
