//! Steps FN6xx: derived Service and imported slices.

use super::age::{age, settled};
use super::deletion::stays_or_goes;
use super::distribution::outside_of_ranges;
use super::evidence::{annotation, changed, condition, created, slice_changed};
use super::installed::flag_value;
use super::lookup::{in_namespace, is_headless, is_imported, need};
use super::rule::Rule;
use super::service_export::of_internal_export;
use super::step_result::{Site, StepResult, Stop};
use super::text::listed;
use super::walk::{Walk, service};
use super::{mcs, reach};
use crate::codes::Code::{self, *};
use crate::report::Api;
use fleetnet_api::crd::{AddressType, EndpointSliceImport, MultiClusterService};
use fleetnet_api::names::{annotations, labels};
use fleetnet_core::admission;
use fleetnet_core::conditions::DISPUTED;
use fleetnet_core::limits::{IMPORTED_ENDPOINTS, IMPORTED_SLICES};
use fleetnet_core::model::{self, SliceContent};
use fleetnet_core::names::routing_slice;
use fleetnet_core::reasons::Reason;
use k8s_openapi::api::core::v1::{Event, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt as _;
use std::collections::BTreeSet;

pub(super) const RULES: &[(Code, Rule)] = &[
    (FN601, Rule::Pair(is_derived)),
    (FN602, Rule::Fleet(name_is_free)),
    (FN603, Rule::Fleet(ports_are_valid)),
    (FN604, Rule::Fleet(was_not_lost)),
    (FN605, Rule::Pair(is_imported_here)),
    (FN606, Rule::Pair(is_current)),
    (FN607, Rule::Pair(addresses_are_accepted)),
    (FN608, Rule::Pair(ports_are_accepted)),
    (FN609, Rule::Pair(families_match)),
    (FN610, Rule::Fleet(load_balancer_has_address)),
    (FN611, Rule::Pair(has_one_writer)),
    (FN612, Rule::Pair(is_not_in_deletion)),
    (FN613, Rule::Mcs(mcs::shows_import)),
    (FN614, Rule::Mcs(mcs::names_are_free)),
    (FN615, Rule::Fleet(is_within_limit)),
    (FN616, Rule::Fleet(internal_is_readable)),
    (FN617, Rule::Fleet(affinity_is_the_same)),
    (FN618, Rule::Pair(is_within_share)),
];

/// Longest time for which an Event about a lost derived Service is news: Kubernetes keeps Events for an hour.
const NEWS_SECONDS: i64 = 3_600;

/// Reasons of the condition `Valid` for which the importer derives no Service, and that a later step reports.
const REPORTED_LATER: [Reason; 4] =
    [Reason::NameHeldByAnother, Reason::PortRefused, Reason::TooManyLoadBalancers, Reason::InternalLoadBalancerInvalid];

/// FN601. Later steps report a derived Service that the importer refuses to make.
fn is_derived(walk: &Walk<'_>) -> StepResult {
    if walk.api == Api::Mcs {
        return mcs::is_derived(walk);
    }
    let (importer, request) = (walk.importer()?, walk.multi_cluster_service()?);
    let site = Site::Member(importer);
    granted(walk)?;
    let valid = walk.valid(request);
    let has_reason =
        |reason: Reason| valid.is_some_and(|valid| valid.status == "False" && valid.reason == reason.as_str());
    if REPORTED_LATER.into_iter().any(has_reason) {
        return Err(Stop::Skipped("a later step reports it".to_owned()));
    }
    let name = walk.derived_name()?;
    if let Some(name) = &name
        && walk.service_of_importer(name)?.is_some()
    {
        return Ok(());
    }
    let since = valid.map_or_else(|| created(request), |valid| Some(valid.last_transition_time.0));
    settled(site, since)?;
    Err(match (valid, name) {
        (Some(valid), _) if valid.status != "True" => site.broken_condition(request, valid),
        (_, Some(name)) => site.lacks::<Service>(walk.import_namespace()?, &name),
        (_, None) => {
            site.broken(request, &format!("metadata.labels[{}]", labels::DERIVED_SERVICE), "missing").at(since)
        }
    })
}

/// FN602. The same reason also says that the name of a slice is in use: then there is a derived Service, and FN605
/// reports it.
fn name_is_free(walk: &Walk<'_>) -> StepResult {
    if walk.derived_service().is_ok() {
        return Ok(());
    }
    valid_without(walk, Reason::NameHeldByAnother)
}

/// FN603.
fn ports_are_valid(walk: &Walk<'_>) -> StepResult {
    valid_without(walk, Reason::PortRefused)
}

/// FN615.
fn is_within_limit(walk: &Walk<'_>) -> StepResult {
    valid_without(walk, Reason::TooManyLoadBalancers)
}

/// FN618.
fn is_within_share(walk: &Walk<'_>) -> StepResult {
    let (site, distributed) = (Site::Member(walk.importer()?), walk.distributed_slices()?);
    let Some(first) = distributed.first() else { return Ok(()) };
    let limit = |flag: &str, default: usize| match flag_value(site, flag).map_or(Ok(default), str::parse) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(limit) => limit,
    };
    let slices = limit("max-imported-slices", IMPORTED_SLICES);
    let endpoints = limit("max-imported-endpoints", IMPORTED_ENDPOINTS);
    let sum = |contents: &mut dyn Iterator<Item = SliceContent>| -> usize {
        contents.map(|content| content.endpoints.len() + content.draining.len()).sum()
    };
    let found = sum(&mut distributed.iter().filter_map(|slice| reach::of_distributed(slice)));
    let imported = sum(&mut walk.imported_slices()?.into_iter().filter_map(reach::of_slice));
    // The flags of an agent without a Deployment are not known. What it has imported was within its limits.
    if distributed.len() <= slices && found <= endpoints || imported >= found {
        return Ok(());
    }
    let value = format!(
        "{found} endpoints in {} slices, and {} imports {endpoints} in {slices}",
        distributed.len(),
        site.cluster()
    );
    Err(walk.hub().broken(*first, "spec.endpoints", value))
}

/// FN616.
fn internal_is_readable(walk: &Walk<'_>) -> StepResult {
    valid_without(walk, Reason::InternalLoadBalancerInvalid)
}

/// FN617.
fn affinity_is_the_same(walk: &Walk<'_>) -> StepResult {
    let (own, derived) = (service(walk)?, walk.derived_service()?);
    let affinity = |service: &Service| {
        let affinity = service.spec.as_ref().and_then(|spec| spec.session_affinity.clone());
        affinity.unwrap_or_else(|| "None".to_owned())
    };
    let (wanted, found) = (affinity(own), affinity(derived));
    if wanted == found {
        return Ok(());
    }
    settled(Site::Member(walk.exporter()?), changed(own))?;
    settled(Site::Member(walk.importer()?), changed(derived))?;
    let value = format!("{found}, the exported Service has {wanted}");
    Err(Site::Member(walk.importer()?).broken(derived, "spec.sessionAffinity", value))
}

/// FN604.
fn was_not_lost(walk: &Walk<'_>) -> StepResult {
    let site = Site::Member(walk.importer()?);
    match event(walk, Reason::DerivedServiceLost)? {
        Some(event) if age(site, time(event)).is_none_or(|age| age < NEWS_SECONDS) => {
            Err(site.broken(event, "message", event.message.clone().unwrap_or_default()).at(time(event)))
        }
        _ => Ok(()),
    }
}

/// FN605. A slice of another owner with the same name cannot be imported either. A routing slice is a part of its
/// standard slice.
fn is_imported_here(walk: &Walk<'_>) -> StepResult {
    match walk.api {
        Api::Fleet => walk.derived_service().map(drop)?,
        Api::Mcs => waits_for_nothing(walk)?,
    }
    let site = Site::Member(walk.importer()?);
    for distributed in walk.distributed_slices()? {
        let present = walk.imported_slice(&distributed.name_any())?;
        if let Some(present) = present {
            if is_imported(present) || walk.is_bound(present) {
                is_routed(walk, present)?;
                continue;
            }
            return Err(site.broken(present, "metadata.labels", "another owner uses the name").at(created(present)));
        }
        if is_within_share(walk).is_err() {
            return Err(Stop::Skipped("FN618 reports it".to_owned()));
        }
        settled(walk.hub(), created(distributed))?;
        if walk.api == Api::Mcs {
            // The slice may have been distributed for the fleet's API before.
            settled(walk.hub(), changed(walk.requested_import()?))?;
        }
        return Err(site
            .lacks::<EndpointSlice>(walk.import_namespace()?, &distributed.name_any())
            .at(changed(distributed)));
    }
    Ok(())
}

/// Checks that a slice of the standard API which is not bound to the derived Service has a routing slice.
fn is_routed(walk: &Walk<'_>, standard: &EndpointSlice) -> StepResult {
    let is_hidden = walk.api == Api::Mcs && !standard.labels().contains_key(labels::SERVICE_NAME);
    let Some(derived) = walk.derived_name()?.filter(|_| is_hidden) else { return Ok(()) };
    let (site, name) = (Site::Member(walk.importer()?), routing_slice(&standard.name_any()));
    let routing = walk.imported_slice(&name)?;
    if routing.is_some_and(|routing| routing.labels().get(labels::SERVICE_NAME) == Some(&derived)) {
        return Ok(());
    }
    settled(site, changed(standard))?;
    Err(match routing {
        Some(routing) => site.broken(routing, "metadata.labels", "another owner uses the name").at(created(routing)),
        None => site.lacks::<EndpointSlice>(walk.import_namespace()?, &name).at(changed(standard)),
    })
}

/// Skips a step about slices of the standard API while they wait for the derived Service or the merged import.
fn waits_for_nothing(walk: &Walk<'_>) -> StepResult {
    walk.requested_import()?;
    if walk.derived_name()?.is_some() {
        walk.derived_service()?;
    }
    Ok(())
}

/// FN606. A Go agent does not write the generation to the imported slice, so nothing is known of its slices.
fn is_current(walk: &Walk<'_>) -> StepResult {
    let site = Site::Member(walk.importer()?);
    for (distributed, slice) in imported(walk)? {
        let wanted = distributed.spec.slice.endpoint_slice_reference.generation;
        let observed =
            slice.annotations().get(annotations::LAST_OBSERVED_GENERATION).and_then(|it| it.parse::<i64>().ok());
        let Some(observed) = observed.filter(|observed| *observed < wanted) else { continue };
        // A change that clients do not see, such as one of a port that lost a conflict, is not written.
        let present = reach::of_slice(slice).map(|content| reach::ready(&content));
        if present == reach::distributed(walk, distributed).ok() {
            continue;
        }
        settled(
            walk.hub(),
            slice_changed(
                walk.hub(),
                distributed,
                distributed.spec.slice.endpoint_slice_reference.exported_since.as_ref(),
            ),
        )?;
        let field = annotation(annotations::LAST_OBSERVED_GENERATION);
        return Err(site.broken(slice, &field, format!("{observed}, the hub has {wanted}")).at(changed(slice)));
    }
    Ok(())
}

/// FN607.
fn addresses_are_accepted(walk: &Walk<'_>) -> StepResult {
    for export in walk.slice_exports()? {
        let left_out = outside_of_ranges(walk, export);
        if !left_out.is_empty() {
            let why = format!("outside of the source ranges in the hub: {}", listed(left_out));
            return Err(walk.hub().broken(export, "spec.endpoints", why));
        }
    }
    let is_reported = event(walk, Reason::AddressRefused)?.is_some();
    for (distributed, slice) in imported(walk)? {
        let ports = distributed.spec.slice.ports.iter().flatten().map(|port| name(&port.name));
        if walk.api == Api::Mcs && !mcs::is_served(walk, ports)? {
            continue; // the importer leaves out all endpoints, and FN320 reports the conflict
        }
        let distributed_parts =
            distributed.spec.slice.endpoints.iter().flat_map(|it| it.addresses.iter().map(String::as_str));
        let endpoints = slice.endpoints.iter().flatten();
        let present: BTreeSet<&str> = endpoints.flat_map(|it| it.addresses.iter().map(String::as_str)).collect();
        let missing: Vec<&str> = distributed_parts.filter(|address| !present.contains(address)).collect();
        if !missing.is_empty() && (is_reported || missing.iter().all(|address| is_never_remote(distributed, address))) {
            return Err(walk.hub().broken(distributed, "spec.endpoints", format!("refused: {}", listed(missing))));
        }
    }
    Ok(())
}

/// FN608.
fn ports_are_accepted(walk: &Walk<'_>) -> StepResult {
    for (distributed, slice) in imported(walk)? {
        let mut missing: Vec<String> = Vec::new();
        for port in distributed.spec.slice.ports.iter().flatten() {
            let own = name(&port.name);
            let wanted = match walk.api {
                Api::Fleet => Some(own),
                Api::Mcs => mcs::served_name(walk, own)?,
            };
            let mut present = slice.ports.iter().flatten();
            if wanted.is_some_and(|wanted| !present.any(|it| it.port == port.port && name(&it.name) == wanted)) {
                let number = port.port.map_or_else(|| "all".to_owned(), |it| it.to_string());
                missing.push(format!("{own} {number}"));
            }
        }
        if !missing.is_empty() {
            if walk.api == Api::Mcs {
                settled(walk.hub(), changed(walk.requested_import()?))?; // the ports may have new names
            }
            let missing = listed(missing.iter().map(|port| port.trim()));
            return Err(walk.hub().broken(distributed, "spec.ports", format!("refused: {missing}")));
        }
    }
    Ok(())
}

/// FN609.
fn families_match(walk: &Walk<'_>) -> StepResult {
    let (service, slices) = (walk.derived_service()?, walk.imported_slices()?);
    let families: Vec<&String> = service.spec.iter().flat_map(|spec| spec.ip_families.iter().flatten()).collect();
    if families.is_empty() || slices.is_empty() || is_headless(service) {
        return Err(Stop::Skipped("there is nothing to compare".to_owned()));
    }
    if slices.iter().any(|slice| families.contains(&&slice.address_type)) {
        return Ok(());
    }
    let families = listed(families.iter().map(|it| it.as_str()));
    let value = format!("{families}, all slices have {}", slices[0].address_type);
    Err(Site::Member(walk.importer()?).broken(service, "spec.ipFamilies", value))
}

/// FN610.
fn load_balancer_has_address(walk: &Walk<'_>) -> StepResult {
    let (service, site) = (walk.derived_service()?, Site::Member(walk.importer()?));
    if service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) != Some("LoadBalancer") {
        return Err(Stop::Skipped("the derived Service is of type ClusterIP".to_owned()));
    }
    let ingress = service.status.as_ref().and_then(|status| status.load_balancer.as_ref()?.ingress.as_ref());
    if ingress.is_some_and(|ingress| !ingress.is_empty()) {
        return Ok(());
    }
    settled(site, created(service))?;
    Err(site.broken(service, "status.loadBalancer.ingress", "empty").at(created(service)))
}

/// FN611.
fn has_one_writer(walk: &Walk<'_>) -> StepResult {
    let is_disputed = |it: &&k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| it.status == "True";
    if let Ok(export) = walk.service_export()
        && let Some(disputed) = export.condition(DISPUTED).filter(is_disputed)
    {
        return Err(export.broken_condition(Site::Member(walk.exporter()?), disputed));
    }
    if let Ok(Some(export)) = walk.internal_export()
        && let Some(disputed) = of_internal_export(export, DISPUTED).filter(is_disputed)
    {
        return Err(walk.hub().broken_condition(export, disputed));
    }
    let site = Site::Member(walk.importer()?);
    if walk.api == Api::Fleet {
        let request = walk.multi_cluster_service()?;
        if let Some(disputed) = of_import(request, DISPUTED).filter(is_disputed) {
            return Err(site.broken_condition(request, disputed));
        }
    }
    for distributed in walk.distributed_slices()? {
        if let Some(slice) = walk.imported_slice(&distributed.name_any())?
            && !is_imported(slice)
            && walk.is_bound(slice)
        {
            let manager = slice.labels().get(labels::MANAGED_BY).cloned().unwrap_or_default();
            return Err(site
                .broken(slice, &format!("metadata.labels[{}]", labels::MANAGED_BY), manager)
                .at(changed(slice)));
        }
    }
    Ok(())
}

/// FN612.
fn is_not_in_deletion(walk: &Walk<'_>) -> StepResult {
    if walk.api == Api::Mcs {
        return mcs::is_not_in_deletion(walk);
    }
    let importer = walk.importer()?;
    let site = Site::Member(importer);
    walk.multi_cluster_services()?.into_iter().try_for_each(|request| stays_or_goes(site, request))?;
    let imports = need(&importer.service_imports, "ServiceImports", site)?;
    match walk.same_name(imports) {
        Some(import) => stays_or_goes(site, import),
        None => Ok(()),
    }
}

/// Skips a step that needs a granted claim. The hub agent fills the status of a granted claim.
fn granted(walk: &Walk<'_>) -> StepResult {
    let claim = walk.claim()?.ok_or_else(|| Stop::Skipped("there is no claim".to_owned()))?;
    let clusters = claim.status.as_ref().and_then(|status| status.clusters.as_ref());
    if clusters.is_none_or(Vec::is_empty) {
        return Err(Stop::Skipped("the claim is not granted".to_owned()));
    }
    Ok(())
}

fn valid_without(walk: &Walk<'_>, reason: Reason) -> StepResult {
    let request = walk.multi_cluster_service()?;
    match walk.valid(request) {
        Some(valid) if valid.status == "False" && valid.reason == reason.as_str() => {
            Err(Site::Member(walk.importer()?).broken_condition(request, valid))
        }
        _ => Ok(()),
    }
}

fn of_import<'a>(
    request: &'a MultiClusterService,
    type_: &str,
) -> Option<&'a k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
    condition(request.status.as_ref().and_then(|status| status.conditions.as_ref()), type_)
}

/// Returns each distributed slice of the pair with its imported slice, if the importer has imported its present
/// generation.
fn imported<'a>(walk: &Walk<'a>) -> Result<Vec<(&'a EndpointSliceImport, &'a EndpointSlice)>, Stop> {
    let mut pairs = Vec::new();
    for distributed in walk.distributed_slices()? {
        if let Some(slice) = walk.imported_slice(&distributed.name_any())?.filter(|slice| is_imported(slice)) {
            pairs.push((distributed, slice));
        }
    }
    Ok(pairs)
}

/// Returns the newest Event with this reason on the user's object of the import.
fn event<'a>(walk: &Walk<'a>, reason: Reason) -> Result<Option<&'a Event>, Stop> {
    let importer = walk.importer()?;
    let (kind, names) = match walk.api {
        Api::Fleet => {
            let names = walk.multi_cluster_services()?.iter().map(|request| request.name_any()).collect();
            ("MultiClusterService", names)
        }
        Api::Mcs => ("ServiceImport", vec![walk.service.name.to_string()]),
    };
    let is_about = |event: &&Event| {
        in_namespace(*event, &walk.service.namespace)
            && event.involved_object.kind.as_deref() == Some(kind)
            && event.involved_object.name.as_ref().is_some_and(|name| names.contains(name))
            && event.reason.as_deref() == Some(reason.as_str())
    };
    Ok(importer.events.objects().filter(is_about).max_by_key(|event| time(event)))
}

fn time(event: &Event) -> Option<jiff::Timestamp> {
    let (last, first) = (event.last_timestamp.as_ref(), event.first_timestamp.as_ref());
    last.or(first).map(|time| time.0).or_else(|| event.event_time.as_ref().map(|time| time.0))
}

fn name(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or_default()
}

/// True if no endpoint of another cluster can have this address.
fn is_never_remote(distributed: &EndpointSliceImport, address: &str) -> bool {
    let family = match distributed.spec.slice.address_type {
        AddressType::IPv4 => model::AddressType::IPv4,
        AddressType::IPv6 => model::AddressType::IPv6,
    };
    admission::forbidden(&address.into(), &family).is_some()
}
