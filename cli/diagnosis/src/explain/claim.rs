//! Steps FN4xx: claim of the importing member in the hub.

use super::age::older_than;
use super::deletion::stays_or_goes_with;
use super::evidence::{annotation, changed, created};
use super::heartbeat::{has, member_agent};
use super::lookup::{exporters, hub_namespace, named, need};
use super::mcs;
use super::pairs::exclusive_holder;
use super::rights::{are_rights_enforced, is_allowed, list_of};
use super::rule::Rule;
use super::step_result::{Site, StepResult, Stop};
use super::walk::{Walk, namespace};
use crate::codes::Code::{self, *};
use crate::limits::ANSWERED_SECONDS;
use fleetnet_api::crd::{
    InternalServiceImport, MultiClusterService, MultiClusterServiceType, ServiceImport, ServiceImportType,
};
use fleetnet_api::names::annotations;
use fleetnet_core::features::Feature;
use fleetnet_core::reasons::Reason;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;

pub(super) const RULES: &[(Code, Rule)] = &[
    (FN401, Rule::Fleet(is_imported)),
    (FN402, Rule::Fleet(is_exported_by_anybody)),
    (FN403, Rule::Fleet(is_written)),
    (FN404, Rule::Pair(is_allowed_to_import)),
    (FN405, Rule::Fleet(is_granted)),
    (FN406, Rule::Fleet(is_the_only_one)),
    (FN407, Rule::Fleet(supports_headless)),
    (FN408, Rule::Pair(rights_are_enforced)),
    (FN409, Rule::Mcs(mcs::namespace_imports)),
    (FN410, Rule::Mcs(mcs::is_merged)),
    (FN411, Rule::Mcs(mcs::requests_slices)),
    (FN412, Rule::Fleet(namespace_of_importer_stays)),
    (FN413, Rule::Fleet(no_import_names_another_service)),
];

/// FN401.
fn is_imported(walk: &Walk<'_>) -> StepResult {
    let importer = walk.importer()?;
    if !walk.multi_cluster_services()?.is_empty() {
        return Ok(());
    }
    if walk.ends.importer_is_wanted {
        let is_reported = [namespace_of_importer_stays(walk), no_import_names_another_service(walk)];
        if is_reported.iter().any(|found| matches!(found, Err(Stop::Broken(_)))) {
            return Err(Stop::Skipped("a later step reports why".to_owned()));
        }
        return Err(Site::Member(importer).lacks_for::<MultiClusterService>(&walk.service.namespace, walk.service));
    }
    Err(Stop::Skipped(format!("{} has no MultiClusterService", importer.id)))
}

/// FN402.
fn is_exported_by_anybody(walk: &Walk<'_>) -> StepResult {
    let importer = walk.importer()?;
    let request = walk.multi_cluster_service()?;
    match walk.hub_import()? {
        Some(import) if exporters(import).next().is_some() => return Ok(()),
        Some(_) | None if walk.exporter.is_some() => {
            return Err(Stop::Skipped("the steps of the export report it".to_owned()));
        }
        Some(_) | None => {}
    }
    older_than(ANSWERED_SECONDS, Site::Member(importer), created(request))?;
    Err(match walk.hub_import()? {
        Some(import) => walk.hub().broken(import, "status.clusters", "empty"),
        None => walk.hub().lacks::<ServiceImport>(&walk.service.namespace, &walk.service.name),
    })
}

/// FN403.
fn is_written(walk: &Walk<'_>) -> StepResult {
    let (importer, request) = (walk.importer()?, walk.multi_cluster_service()?);
    if walk.claim()?.is_some() {
        return Ok(());
    }
    if request.metadata.deletion_timestamp.is_some() {
        return Err(Stop::Skipped("the MultiClusterService is being deleted".to_owned()));
    }
    let imports = importer.service_imports.known().unwrap_or_default();
    if walk.same_name(imports).is_some_and(|import| import.metadata.deletion_timestamp.is_some()) {
        return Err(Stop::Skipped("FN612 reports that the ServiceImport is being deleted".to_owned()));
    }
    older_than(ANSWERED_SECONDS, Site::Member(importer), created(request))?;
    Err(walk.hub().lacks_for::<InternalServiceImport>(&hub_namespace(importer), walk.service).at(created(request)))
}

/// FN404.
fn is_allowed_to_import(walk: &Walk<'_>) -> StepResult {
    let importer = walk.importer()?;
    let Some(namespace) = namespace(walk)? else { return Err(Stop::Skipped("the namespace is missing".to_owned())) };
    if is_allowed(walk.snapshot, Some(namespace), annotations::IMPORTERS, &importer.id) {
        return Ok(());
    }
    let list = list_of(namespace, annotations::IMPORTERS);
    Err(walk.hub().broken(namespace, &annotation(annotations::IMPORTERS), list))
}

/// FN405.
fn is_granted(walk: &Walk<'_>) -> StepResult {
    let (importer, request) = (walk.importer()?, walk.multi_cluster_service()?);
    if let Some(valid) = walk.valid(request)
        && valid.reason == Reason::LoadBalancerNotGranted.as_str()
    {
        return Err(Site::Member(importer).broken_condition(request, valid));
    }
    if !is_exclusive(request) {
        return Err(Stop::Skipped("the import is of type ClusterIP".to_owned()));
    }
    let Some(import) = walk.hub_import()? else { return Ok(()) };
    match exclusive_holder(walk.snapshot, import) {
        Some(holder) if holder != hub_namespace(importer) => {
            Err(walk.hub().broken(import, &annotation(annotations::SERVICE_IN_USE_BY), holder))
        }
        _ => Ok(()),
    }
}

/// FN406.
fn is_the_only_one(walk: &Walk<'_>) -> StepResult {
    let importer = walk.importer()?;
    for request in walk.multi_cluster_services()?.into_iter().skip(1) {
        if let Some(valid) = walk.valid(request).filter(|valid| valid.status != "True") {
            return Err(Site::Member(importer).broken_condition(request, valid));
        }
    }
    Ok(())
}

/// FN407.
fn supports_headless(walk: &Walk<'_>) -> StepResult {
    let importer = walk.importer()?;
    let type_ = walk.hub_import()?.and_then(|import| import.status.as_ref()?.import.type_);
    if type_ != Some(ServiceImportType::Headless) {
        return Err(Stop::Skipped("the Service is not headless".to_owned()));
    }
    let Some(agent) = member_agent(walk.snapshot, importer)? else { return Ok(()) };
    if has(agent.spec.features.as_ref(), Feature::Headless) {
        return Ok(());
    }
    let features: Vec<&str> = agent.spec.features.iter().flatten().map(|name| name.0.as_str()).collect();
    Err(walk.hub().broken(agent, "spec.features", features.join(", ")))
}

/// FN408. Without the annotations there is nothing to enforce.
fn rights_are_enforced(walk: &Walk<'_>) -> StepResult {
    let namespace = namespace(walk)?.ok_or_else(|| Stop::Skipped("the namespace is missing".to_owned()))?;
    let named = [annotations::EXPORTERS, annotations::IMPORTERS]
        .into_iter()
        .find(|it| namespace.annotations().contains_key(*it));
    let Some(named) = named else { return Err(Stop::Skipped("the namespace lists no clusters".to_owned())) };
    if are_rights_enforced(walk.snapshot) {
        return Ok(());
    }
    Err(walk.hub().broken(namespace, &annotation(named), "ignored: the hub agent runs with --namespace-policy=off"))
}

/// FN412.
fn namespace_of_importer_stays(walk: &Walk<'_>) -> StepResult {
    let importer = walk.importer()?;
    if !walk.ends.importer_is_wanted || !walk.multi_cluster_services()?.is_empty() {
        return Ok(());
    }
    let site = Site::Member(importer);
    let namespaces = need(&importer.namespaces, "Namespaces", site)?;
    match namespaces.iter().find(|namespace| *namespace.name_any() == *walk.service.namespace) {
        Some(namespace) => stays_or_goes_with(site, namespace),
        None => Err(site.lacks::<Namespace>("", &walk.service.namespace)),
    }
}

/// FN413. Without an importer, a MultiClusterService with the name of the Service shows what its user wanted.
fn no_import_names_another_service(walk: &Walk<'_>) -> StepResult {
    let has_import = walk.importer.is_some() && !walk.multi_cluster_services()?.is_empty();
    if has_import || walk.exporter.is_none() {
        return Ok(());
    }
    let hub_imports = need(&walk.snapshot.hub.service_imports, "ServiceImports", walk.hub())?;
    let is_exported = |name: &str| {
        let import = named(hub_imports, &walk.service.namespace, name);
        import.is_some_and(|import| exporters(import).next().is_some())
    };
    let importers = walk.snapshot.members.iter().filter(|it| walk.importer.is_none_or(|importer| importer.id == it.id));
    for member in importers {
        let all = member.multi_cluster_services.known().unwrap_or_default();
        let Some(request) = walk.same_name(all) else { continue };
        let Some(import) = request.spec.service_import.as_ref().filter(|import| !is_exported(&import.name)) else {
            continue;
        };
        let site = Site::Member(member);
        older_than(ANSWERED_SECONDS, site, changed(request))?;
        let value = format!("{}, which nobody exports", import.name);
        return Err(site.broken(request, "spec.serviceImport.name", value));
    }
    Ok(())
}

fn is_exclusive(request: &MultiClusterService) -> bool {
    !matches!(request.spec.type_, Some(MultiClusterServiceType::ClusterIP))
}
