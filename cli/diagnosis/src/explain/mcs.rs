//! Objects and steps of the standard API `multicluster.x-k8s.io` only.
//!
//! Both APIs share InternalServiceExports, exported slices and distributed slices. Instead of claims, the hub has
//! MergedServiceImports: one for each Service and member. The finalizer of the member agent on it requests the slices.

pub(super) mod objects;

use super::age::{older_than, settled};
use super::deletion::stays_or_goes;
use super::evidence::changed;
use super::heartbeat::{has, member_agent};
use super::lookup::{decodable, hub_namespace, in_namespace, need};
use super::service_export::{Export, outcome};
use super::step_result::{Site, StepResult, Stop};
use super::text::{port_text, ports_of};
use super::walk::{Walk, service};
use crate::limits::ANSWERED_SECONDS;
use crate::report::Api;
use crate::snapshot::{Listing, Member};
use fleetnet_api::crd::mcs::ServiceImport;
use fleetnet_api::crd::{IpFamily, MemberAgent, MergedServiceImport};
use fleetnet_api::names::{GROUP, MCS_GROUP, labels};
use fleetnet_core::conditions::{READY, VALID};
use fleetnet_core::features::Feature;
use fleetnet_core::names::{member_namespace, merged_import_name};
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Resource, ResourceExt as _};
use objects::{ImportState, import_state, is_ours, is_requested, lists};

impl<'a> Walk<'a> {
    /// Returns the MergedServiceImport of the importer.
    pub(crate) fn merged_import(&self) -> Result<Option<&'a MergedServiceImport>, Stop> {
        let namespace = member_namespace(&self.importer()?.id);
        let listing = &self.snapshot.hub.merged_imports;
        let imports = need(listing, "MergedServiceImports", self.hub())?;
        let found = imports.iter().find(|merged| {
            let reference = &merged.spec.service_reference;
            in_namespace(*merged, &namespace) && self.is_service(&reference.namespace, &reference.name)
        });
        decodable(found, listing, &namespace)
    }

    /// Returns the MergedServiceImport if the importer requests the slices, and the exporter is part of it.
    pub(crate) fn requested_import(&self) -> Result<&'a MergedServiceImport, Stop> {
        let not_requested = || Stop::Skipped("the importer does not request the slices".to_owned());
        let is_live = |merged: &&MergedServiceImport| {
            is_requested(merged) && merged.metadata.deletion_timestamp.is_none() // FN612 reports one that hangs in deletion
        };
        let merged = self.merged_import()?.filter(is_live).ok_or_else(not_requested)?;
        match self.exporter {
            Some(exporter) if !lists(merged, &exporter.id) => {
                Err(Stop::Skipped(format!("{} is no part of the merged import", exporter.id)))
            }
            _ => Ok(merged),
        }
    }

    /// Returns the ServiceImport of the importer.
    pub(crate) fn mcs_import(&self) -> Result<Option<&'a ServiceImport>, Stop> {
        let importer = self.importer()?;
        let imports = need(&importer.mcs_imports, "ServiceImports of multicluster.x-k8s.io", Site::Member(importer))?;
        Ok(self.same_name(imports))
    }
}

/// FN214. An agent that only exports does not announce the feature, but sets conditions of the ServiceExport.
pub(super) fn is_on(walk: &Walk<'_>) -> StepResult {
    let is_missing = |site: Site<'_>, plural: &str, group: &str| {
        Err(site.lacks::<CustomResourceDefinition>("", &format!("{plural}.{group}")))
    };
    if walk.snapshot.hub.merged_imports == Listing::NotDefined {
        return is_missing(walk.hub(), "mergedserviceimports", GROUP);
    }
    for member in walk.members() {
        let is_end = |end: Option<&Member>| end.is_some_and(|end| end.id == member.id);
        if is_end(walk.exporter) && member.mcs_exports == Listing::NotDefined {
            return is_missing(Site::Member(member), "serviceexports", MCS_GROUP);
        }
        if is_end(walk.importer) && member.mcs_imports == Listing::NotDefined {
            return is_missing(Site::Member(member), "serviceimports", MCS_GROUP);
        }
    }
    for member in walk.members() {
        // FN205 reports a missing MemberAgent.
        let Some(agent) = member_agent(walk.snapshot, member)? else { continue };
        let status = agent.status.as_ref().filter(|status| status.version.is_some());
        if status.is_some_and(|status| !has(status.features.as_ref(), Feature::McsApi)) {
            return Err(without_feature(walk, agent, "status.features"));
        }
        let is_importer = walk.importer.is_some_and(|importer| importer.id == member.id);
        let has_conditions = || walk.service_export().is_ok_and(|export| export.condition(VALID).is_some());
        if !has(agent.spec.features.as_ref(), Feature::McsApi) && (is_importer || !has_conditions()) {
            return Err(without_feature(walk, agent, "spec.features"));
        }
    }
    Ok(())
}

fn without_feature(walk: &Walk<'_>, agent: &MemberAgent, field: &str) -> Stop {
    walk.hub().broken(agent, field, format!("without {}", Feature::McsApi.name()))
}

/// Returns the condition `Ready` of a ServiceExport if it is False although its Service is valid.
fn not_ready(export: Export<'_>) -> Option<&Condition> {
    let is_valid = export.condition(VALID).is_none_or(|valid| valid.status != "False");
    export.condition(READY).filter(|ready| ready.status == "False" && is_valid)
}

/// Skips a step whose fault FN319 explains.
pub(super) fn unless_reported(walk: &Walk<'_>) -> StepResult {
    match (walk.api, walk.service_export()) {
        (Api::Mcs, Ok(export)) if not_ready(export).is_some() => {
            Err(Stop::Skipped("FN319 reports why the Service is not exported".to_owned()))
        }
        _ => Ok(()),
    }
}

/// FN319.
pub(super) fn is_exported(walk: &Walk<'_>) -> StepResult {
    let export = walk.service_export()?;
    match not_ready(export) {
        Some(ready) => Err(export.broken_condition(Site::Member(walk.exporter()?), ready)),
        None => Ok(()),
    }
}

/// FN320.
pub(super) fn exports_agree(walk: &Walk<'_>) -> StepResult {
    let export = walk.accepted_export()?;
    match outcome(export, Api::Mcs) {
        Some(conflict) if conflict.status == "True" => Err(walk.hub().broken_condition(export, conflict)),
        _ => Ok(()),
    }
}

/// FN323.
pub(super) fn ports_are_served(walk: &Walk<'_>) -> StepResult {
    let export = walk.accepted_export()?;
    let merged = walk.requested_import()?;
    let part = merged.spec.clusters.iter().find(|part| walk.exporter.is_some_and(|it| it.id == part.cluster));
    let Some(served) = part.and_then(|part| part.ports.as_ref()) else { return Ok(()) };
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    let is_served = |own: &str| served.iter().any(|port| name(&port.own_name) == own);
    let lost = export.spec.ports.iter().find(|port| !is_served(&name(&port.name)));
    let Some(lost) = lost else { return Ok(()) };
    settled(walk.hub(), changed(export))?;
    settled(walk.hub(), changed(merged))?;
    let ports = merged.spec.ports.iter().flatten().map(|port| (port.name.as_deref(), port.port));
    let value = format!(
        "no client reaches port {} of this cluster: the import has {}, from the Service of another exporter",
        port_text(lost.name.as_deref(), lost.port),
        ports_of(ports),
    );
    Err(match service(walk) {
        Ok(own) => Site::Member(walk.exporter()?).broken(own, "spec.ports", value),
        Err(_) => walk.hub().broken(export, "spec.ports", value),
    })
}

/// FN409.
pub(super) fn namespace_imports(walk: &Walk<'_>) -> StepResult {
    let importer = walk.importer()?;
    let site = Site::Member(importer);
    let broken = match import_state(importer, walk.service)? {
        ImportState::Labelled(_) | ImportState::AllImport(_) => return Ok(()),
        ImportState::Ends(namespace) => site.broken(namespace, "metadata.deletionTimestamp", "the namespace ends"),
        // The agent imports, so all namespaces do.
        ImportState::NotLabelled(_) if walk.requested_import().is_ok() => return Ok(()),
        ImportState::NotLabelled(namespace) => {
            site.broken(namespace, &format!("metadata.labels[{}]", labels::IMPORT), "not true")
        }
        ImportState::Missing => site.lacks::<Namespace>("", &walk.service.namespace),
        ImportState::Never(namespace) => site.broken(namespace, "metadata.name", "this namespace never imports"),
    };
    // An importer that nobody named has still objects of an earlier import.
    Err(if walk.ends.importer_is_wanted { broken } else { Stop::Skipped("the namespace does not import".to_owned()) })
}

/// FN410.
pub(super) fn is_merged(walk: &Walk<'_>) -> StepResult {
    importing(walk)?;
    let (importer, exporter) = (walk.importer()?, walk.exporter()?);
    let export = walk.accepted_export()?;
    let merged = walk.merged_import()?;
    if merged.is_some_and(|merged| lists(merged, &exporter.id)) {
        return Ok(());
    }
    let since = outcome(export, Api::Mcs).map(|outcome| outcome.last_transition_time.0);
    older_than(ANSWERED_SECONDS, walk.hub(), since)?;
    Err(match merged {
        Some(merged) => {
            let clusters: Vec<&str> = merged.spec.clusters.iter().map(|part| part.cluster.as_str()).collect();
            walk.hub().broken(merged, "spec.clusters", format!("{}, without {}", clusters.join(", "), exporter.id))
        }
        None => {
            let name = merged_import_name(walk.service);
            walk.hub().lacks::<MergedServiceImport>(&hub_namespace(importer), &name).at(since)
        }
    })
}

/// FN411.
pub(super) fn requests_slices(walk: &Walk<'_>) -> StepResult {
    let namespace = importing(walk)?;
    let merged = walk.merged_import()?.ok_or_else(|| Stop::Skipped("there is no MergedServiceImport".to_owned()))?;
    if is_requested(merged) || merged.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    older_than(ANSWERED_SECONDS, walk.hub(), changed(merged))?;
    // Perhaps the namespace has just got its label.
    older_than(ANSWERED_SECONDS, Site::Member(walk.importer()?), changed(namespace))?;
    Err(walk.hub().broken(merged, "metadata.finalizers", "not set by the member agent").at(changed(merged)))
}

/// Returns the namespace of the importer. Skips a step if the namespace does not import: FN409 reports it.
fn importing<'a>(walk: &Walk<'a>) -> Result<&'a Namespace, Stop> {
    match import_state(walk.importer()?, walk.service)? {
        ImportState::Labelled(namespace) | ImportState::AllImport(namespace) => Ok(namespace),
        ImportState::Never(_) | ImportState::NotLabelled(_) | ImportState::Ends(_) | ImportState::Missing => {
            Err(Stop::Skipped("the namespace does not import".to_owned()))
        }
    }
}

/// FN601.
pub(super) fn is_derived(walk: &Walk<'_>) -> StepResult {
    let merged = walk.requested_import()?;
    let Some(name) = walk.derived_name()? else { return Err(Stop::Skipped("the Service is headless".to_owned())) };
    if walk.service_of_importer(&name)?.is_some() {
        return Ok(());
    }
    settled(walk.hub(), changed(merged))?;
    Err(Site::Member(walk.importer()?).lacks::<Service>(&walk.service.namespace, &name))
}

/// FN612.
pub(super) fn is_not_in_deletion(walk: &Walk<'_>) -> StepResult {
    if let Some(import) = walk.mcs_import()?.filter(|import| is_ours(*import)) {
        stays_or_goes(Site::Member(walk.importer()?), import)?;
    }
    match walk.merged_import()? {
        Some(merged) => stays_or_goes(walk.hub(), merged),
        None => Ok(()),
    }
}

/// FN613.
pub(super) fn shows_import(walk: &Walk<'_>) -> StepResult {
    let merged = walk.requested_import()?;
    let site = Site::Member(walk.importer()?);
    let derived = match walk.derived_name()? {
        // FN601 reports that there is none, and FN614 that another writer made it.
        Some(_) => Some(walk.derived_service()?),
        None => None,
    };
    let since = derived.and_then(changed).max(changed(merged));
    let Some(import) = walk.mcs_import()? else {
        settled(site, since)?;
        return Err(site.lacks::<ServiceImport>(&walk.service.namespace, &walk.service.name).at(since));
    };
    if !is_ours(import) {
        return Err(Stop::Skipped("FN614 reports that another writer made it".to_owned()));
    }
    let addresses = derived.and_then(|derived| derived.spec.as_ref()?.cluster_ips.clone()).unwrap_or_default();
    let shown = import.spec.ips.clone().unwrap_or_default();
    let families = merged.spec.properties.ip_families.clone().unwrap_or_default();
    let is_of = |family: &IpFamily, address: &str| address.contains(':') == (*family == IpFamily::IPv6);
    let is_usable = |address: &&String| families.is_empty() || families.iter().any(|family| is_of(family, address));
    let usable: Vec<&String> = addresses.iter().filter(is_usable).collect();
    // Without a family of all exporters, the ServiceImport shows the addresses of families that some exporters have.
    let is_right = if usable.is_empty() {
        shown.iter().all(|address| addresses.contains(address))
    } else {
        shown.iter().eq(usable)
    };
    if !is_right {
        settled(site, since)?;
        let value = format!("{}, the derived Service has {}", shown.join(", "), addresses.join(", "));
        return Err(site.broken(import, "spec.ips", value).at(changed(import)));
    }
    let clusters = || import.status.iter().flat_map(|status| status.clusters.iter().flatten());
    let missing = merged.spec.clusters.iter().find(|part| !clusters().any(|shown| shown.cluster == part.cluster));
    match missing {
        Some(missing) => {
            settled(site, since)?;
            Err(site.broken(import, "status.clusters", format!("without {}", missing.cluster)).at(changed(import)))
        }
        None => Ok(()),
    }
}

/// FN614.
pub(super) fn names_are_free(walk: &Walk<'_>) -> StepResult {
    walk.requested_import()?;
    let site = Site::Member(walk.importer()?);
    let field = format!("metadata.labels[{}]", labels::WRITER);
    if let Some(name) = walk.derived_name()?
        && let Some(service) = walk.service_of_importer(&name)?.filter(|service| !is_ours(*service))
    {
        return Err(site.broken(service, &field, writer(service)));
    }
    match walk.mcs_import()?.filter(|import| !is_ours(*import)) {
        Some(import) => Err(site.broken(import, &field, writer(import))),
        None => Ok(()),
    }
}

fn writer<K: Resource>(object: &K) -> String {
    object.labels().get(labels::WRITER).cloned().unwrap_or_else(|| "another writer made this object".to_owned())
}

/// Returns the name that a port of the exporter has in the importer. `None` if clients do not reach the exporter at
/// this port, because its export conflicts with an older one.
pub(super) fn served_name<'a>(walk: &Walk<'a>, own: &'a str) -> Result<Option<&'a str>, Stop> {
    let merged = walk.requested_import()?;
    let part = walk.exporter.and_then(|exporter| merged.spec.clusters.iter().find(|it| it.cluster == exporter.id));
    let Some(served) = part.and_then(|part| part.ports.as_ref()) else { return Ok(Some(own)) };
    let served = served.iter().find(|port| port.own_name.as_deref().unwrap_or_default() == own);
    Ok(served.map(|port| port.name.as_deref().unwrap_or_default()))
}

/// True if clients reach the exporter at one of these ports, or there are none. FN320 reports the conflict of other
/// slices.
pub(super) fn is_served<'a>(walk: &Walk<'a>, ports: impl Iterator<Item = &'a str>) -> Result<bool, Stop> {
    let mut ports = ports.peekable();
    if ports.peek().is_none() {
        return Ok(true);
    }
    for port in ports {
        if served_name(walk, port)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
