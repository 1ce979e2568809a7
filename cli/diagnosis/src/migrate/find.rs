//! Objects that show an item of a migration.

use crate::explain::{
    Site, Stop, agent, annotation, are_rights_enforced, arguments, definitions_are_current, holder, in_use_by,
    is_allowed, is_by, is_expired, is_imported, is_requested, need, of_export, outcome, slice_maker,
};
use crate::report::{Api, Evidence, SliceMaker};
use crate::snapshot::{Listing, Member, Snapshot};
use fleetnet_api::crd::internal_service_export::SessionAffinity;
use fleetnet_api::crd::{
    AddressType, EndpointSliceExport, InternalServiceExport, InternalServiceImport, MultiClusterServiceType,
    ServiceExport, ServiceImport,
};
use fleetnet_api::decode::{decode, internal_load_balancer};
use fleetnet_api::names::{annotations, labels};
use fleetnet_core::admission;
use fleetnet_core::member::weight;
use fleetnet_core::model::{self, InternalLoadBalancer, Kind, Object, SilencePhase};
use fleetnet_core::names::{ENDPOINT_SLICE_LEASE, cluster_of, ports_fingerprint};
use fleetnet_types::Text;
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt as _;
use std::collections::{BTreeMap, BTreeSet};

type Findings = Result<Vec<Evidence>, Stop>;

/// Returns the weights of a member's ServiceExports, as far as weight and ServiceExport are as asked.
fn weights(
    member: &Member,
    is_meant: fn(&Result<i64, String>) -> bool,
    is_wanted: impl Fn(&ServiceExport) -> bool,
) -> Findings {
    let site = Site::Member(member);
    let exports = need(&member.service_exports, "ServiceExports", site)?;
    let shown = exports.iter().filter_map(|export| {
        let written = export.annotations().get(annotations::WEIGHT)?;
        let is_shown = is_meant(&weight(Some(written))) && is_wanted(export);
        is_shown.then(|| site.shown(export, &annotation(annotations::WEIGHT), written))
    });
    Ok(shown.collect())
}

fn is_zero(weight: &Result<i64, String>) -> bool {
    *weight == Ok(0)
}

/// Exports with weight 0 whose slices Go agents export: those without a conflict.
pub(super) fn weight_zero(_: &Snapshot, member: &Member) -> Findings {
    weights(member, is_zero, |export| of_export(export, "Conflict").is_some_and(|it| it.status == "False"))
}

/// Exports with weight 0 that have exported slices.
pub(super) fn slices_of_weight_zero(snapshot: &Snapshot, member: &Member) -> Findings {
    let slices = slice_exports(snapshot)?.iter().filter(|slice| is_of(*slice, member));
    let exported: BTreeSet<(String, String)> = slices.map(owner).collect();
    weights(member, is_zero, |export| exported.contains(&path(export)))
}

/// Exports with an invalid weight that are in the hub.
pub(super) fn exports_of_invalid_weight(snapshot: &Snapshot, member: &Member) -> Findings {
    let internal = internal_exports(snapshot)?.iter().filter(|export| is_of(*export, member));
    let exported: BTreeSet<(String, String)> = internal.map(service).collect();
    weights(member, Result::is_err, |export| exported.contains(&path(export)))
}

pub(super) fn headless(snapshot: &Snapshot) -> Findings {
    let exports = internal_exports(snapshot)?.iter().filter(|export| export.spec.headless == Some(true));
    Ok(exports.map(|export| Site::Hub(&snapshot.hub).shown(export, "spec.headless", "true")).collect())
}

pub(super) fn ipv6(snapshot: &Snapshot) -> Findings {
    let slices = slice_exports(snapshot)?.iter().filter(|slice| slice.spec.address_type == AddressType::IPv6);
    Ok(slices.map(|slice| Site::Hub(&snapshot.hub).shown(slice, "spec.addressType", "IPv6")).collect())
}

/// Exports and claims with another name than Go agents give them.
pub(super) fn other_names(snapshot: &Snapshot) -> Findings {
    let hub = Site::Hub(&snapshot.hub);
    let mut found = Vec::new();
    for export in internal_exports(snapshot)? {
        let reference = &export.spec.service_reference;
        if export.name_any() != go_name(&reference.namespace, &reference.name) {
            found.push(hub.shown(export, "metadata.name", export.name_any()));
        }
    }
    for claim in claims(snapshot)? {
        let reference = &claim.spec.service_import_reference;
        if claim.name_any() != go_name(&reference.namespace, &reference.name) {
            found.push(hub.shown(claim, "metadata.name", claim.name_any()));
        }
    }
    Ok(found)
}

/// Name of an export or claim as the Go agents write it.
pub(super) fn go_name(namespace: &str, name: &str) -> String {
    format!("{namespace}-{name}")
}

pub(super) fn cluster_ip(_: &Snapshot, member: &Member) -> Findings {
    let site = Site::Member(member);
    let imports = need(&member.multi_cluster_services, "MultiClusterServices", site)?;
    let is_cluster_ip = |type_: Option<MultiClusterServiceType>| type_ == Some(MultiClusterServiceType::ClusterIP);
    let imports = imports.iter().filter(|import| is_cluster_ip(import.spec.type_));
    Ok(imports.map(|import| site.shown(import, "spec.type", "ClusterIP")).collect())
}

/// MultiClusterServices with the annotation of Azure for an internal load balancer, if the annotation of the fleet does
/// not ask for one too. Go agents ignore the annotation of Azure.
pub(super) fn internal_by_azure(_: &Snapshot, member: &Member) -> Findings {
    internal(member, |fleet, azure| {
        azure == InternalLoadBalancer::Requested && fleet != InternalLoadBalancer::Requested
    })
}

/// MultiClusterServices whose annotations for an internal load balancer have a value that fleetnet refuses.
pub(super) fn internal_malformed(_: &Snapshot, member: &Member) -> Findings {
    internal(member, |fleet, azure| fleet.max(azure) == InternalLoadBalancer::Malformed)
}

/// Returns the MultiClusterServices of type LoadBalancer by their requests for an internal load balancer: that of the
/// fleet's annotation, and that of Azure's annotation.
fn internal(member: &Member, is_meant: fn(InternalLoadBalancer, InternalLoadBalancer) -> bool) -> Findings {
    let site = Site::Member(member);
    let imports = need(&member.multi_cluster_services, "MultiClusterServices", site)?;
    let keys = [annotations::AZURE_LOAD_BALANCER_INTERNAL, annotations::SERVICE_AZURE_LOAD_BALANCER_INTERNAL];
    let shown = imports.iter().filter_map(|import| {
        let written = keys.map(|key| import.annotations().get(key));
        let [fleet, azure] =
            written.map(|it| it.map_or_else(InternalLoadBalancer::default, |it| internal_load_balancer(it)));
        let balances = import.spec.type_ != Some(MultiClusterServiceType::ClusterIP);
        let [of_fleet, of_azure] = keys;
        let key = if written[1].is_some() { of_azure } else { of_fleet };
        let value = written.into_iter().rev().flatten().next().map(String::as_str).unwrap_or_default();
        (balances && is_meant(fleet, azure)).then(|| site.shown(import, &annotation(key), value))
    });
    Ok(shown.collect())
}

/// Accepted exports whose list of ports is another one than that of the ServiceImport.
pub(super) fn accepted_with_other_list_of_ports(snapshot: &Snapshot) -> Findings {
    exports_with_ports(snapshot, "False", |export, import| {
        let ports = import.status.as_ref().and_then(|status| status.import.ports.as_ref());
        ports.is_some_and(|ports| *ports != export.spec.ports)
    })
}

/// Conflicted exports whose ports are those of the ServiceImport for fleetnet.
pub(super) fn conflicts_of_equal_ports(snapshot: &Snapshot) -> Findings {
    exports_with_ports(snapshot, "True", |export, import| {
        let of_export = fingerprint(Kind::InternalServiceExport, export);
        of_export.is_some() && of_export == fingerprint(Kind::ServiceImport, import)
    })
}

/// Returns the exports with this status of the condition `Conflict` whose ports and those of their ServiceImport are as
/// asked.
fn exports_with_ports(
    snapshot: &Snapshot,
    conflict: &str,
    is_meant: fn(&InternalServiceExport, &ServiceImport) -> bool,
) -> Findings {
    let imports = need(&snapshot.hub.service_imports, "ServiceImports", Site::Hub(&snapshot.hub))?;
    let imports: BTreeMap<(String, String), &ServiceImport> =
        imports.iter().map(|import| (path(import), import)).collect();
    let exports = internal_exports(snapshot)?.iter().filter(|export| {
        outcome(export, Api::Fleet).is_some_and(|it| it.status == conflict)
            && imports.get(&service(export)).is_some_and(|import| is_meant(export, import))
    });
    Ok(exports.map(|export| with_ports(snapshot, export)).collect())
}

fn with_ports(snapshot: &Snapshot, export: &InternalServiceExport) -> Evidence {
    let ports = serde_json::to_string(&export.spec.ports).unwrap_or_default();
    Site::Hub(&snapshot.hub).shown(export, "spec.ports", ports)
}

/// Fingerprint of the ports of an export or a ServiceImport, as the hub agent compares them. `None` for an object that
/// it cannot decode.
fn fingerprint(kind: Kind, object: &impl serde::Serialize) -> Option<Text> {
    let ports = match decode(kind, &serde_json::to_vec(object).ok()?).ok()? {
        Object::InternalServiceExport(export) => export.ports,
        Object::ServiceImport(import) => import.status.ports.to_vec(),
        _ => return None,
    };
    Some(ports_fingerprint(&ports))
}

/// Exports and claims of members that an annotation of the Service's namespace does not list.
pub(super) fn not_in_namespace_lists(snapshot: &Snapshot) -> Findings {
    if !are_rights_enforced(snapshot) {
        return Ok(Vec::new());
    }
    let hub = Site::Hub(&snapshot.hub);
    let namespaces = need(&snapshot.hub.namespaces, "Namespaces", hub)?;
    let is_listed = |of: Option<String>, namespace: &str, annotation: &str| {
        let member = of.as_deref().and_then(cluster_of);
        let found: Option<&Namespace> = namespaces.iter().find(|it| it.name_any() == namespace);
        member.is_none_or(|member| is_allowed(snapshot, found, annotation, &member))
    };
    let mut found = Vec::new();
    for export in internal_exports(snapshot)? {
        let reference = &export.spec.service_reference;
        if !is_listed(export.namespace(), &reference.namespace, annotations::EXPORTERS) {
            let why = format!("annotation {} of the namespace {}", annotations::EXPORTERS, reference.namespace);
            found.push(hub.shown(export, "metadata.namespace", why));
        }
    }
    for claim in claims(snapshot)? {
        let reference = &claim.spec.service_import_reference;
        if !is_listed(claim.namespace(), &reference.namespace, annotations::IMPORTERS) {
            let why = format!("annotation {} of the namespace {}", annotations::IMPORTERS, reference.namespace);
            found.push(hub.shown(claim, "metadata.namespace", why));
        }
    }
    Ok(found)
}

/// Exported slices with addresses that fleetnet's importers leave out.
pub(super) fn forbidden_addresses(snapshot: &Snapshot) -> Findings {
    let mut found = Vec::new();
    for slice in slice_exports(snapshot)? {
        let family = match slice.spec.address_type {
            AddressType::IPv4 => model::AddressType::IPv4,
            AddressType::IPv6 => model::AddressType::IPv6,
        };
        for address in slice.spec.endpoints.iter().flat_map(|endpoint| &endpoint.addresses) {
            if let Some(why) = admission::forbidden(&address.as_str().into(), &family) {
                found.push(Site::Hub(&snapshot.hub).shown(slice, "spec.endpoints", format!("{address}: {why}")));
            }
        }
    }
    Ok(found)
}

/// Members that the hub agent judged to be silent.
pub(super) fn silent(snapshot: &Snapshot) -> Findings {
    let site = Site::Hub(&snapshot.hub);
    let agents = need(&snapshot.hub.member_agents, "MemberAgents", site)?;
    let phases = agents.iter().filter_map(|agent| {
        let silence = agent.status.as_ref()?.silence.as_ref()?;
        let is_trusted = [SilencePhase::Postponed, SilencePhase::Returned].iter().any(|it| it.name() == silence.phase);
        (!is_trusted).then(|| site.shown(agent, "status.silence.phase", silence.phase.clone()))
    });
    Ok(phases.collect())
}

/// Lease of an EndpointSlice controller of fleetnet that runs, unless kube-controller-manager makes the slices.
pub(super) fn own_slices(snapshot: &Snapshot, member: &Member) -> Findings {
    let site = Site::Member(member);
    let leases = need(&member.agent.leases, "Leases", site)?;
    if slice_maker(snapshot, member) == Some(SliceMaker::KubeControllerManager) {
        return Ok(Vec::new());
    }
    let held = leases.iter().filter(|lease| lease.name_any() == ENDPOINT_SLICE_LEASE).filter_map(|lease| {
        let holder = holder(lease).filter(|holder| !holder.is_empty() && !is_expired(snapshot, site, lease))?;
        Some(site.shown(lease, "spec.holderIdentity", holder))
    });
    Ok(held.collect())
}

pub(super) fn several_importers(snapshot: &Snapshot) -> Findings {
    let site = Site::Hub(&snapshot.hub);
    let imports = need(&snapshot.hub.service_imports, "ServiceImports", site)?;
    let shared = imports.iter().filter_map(|import| {
        let members: Vec<String> = in_use_by(import).member_clusters.into_values().collect();
        let field = annotation(annotations::SERVICE_IN_USE_BY);
        (members.len() > 1).then(|| site.shown(import, &field, members.join(", ")))
    });
    Ok(shared.collect())
}

/// Exports with fields that Go agents do not have.
pub(super) fn details(snapshot: &Snapshot) -> Findings {
    let hub = Site::Hub(&snapshot.hub);
    let mut found = Vec::new();
    for export in internal_exports(snapshot)? {
        if export.spec.session_affinity == Some(SessionAffinity::ClientIP) {
            found.push(hub.shown(export, "spec.sessionAffinity", "ClientIP"));
        }
    }
    for slice in slice_exports(snapshot)? {
        let fields: Vec<&str> = details_of(slice).collect();
        if !fields.is_empty() {
            found.push(hub.shown(slice, "spec", fields.join(", ")));
        }
    }
    Ok(found)
}

/// Returns the fields of an exported slice that Go agents do not have.
fn details_of(slice: &EndpointSliceExport) -> impl Iterator<Item = &'static str> {
    let draining = slice.spec.draining_endpoints.iter().flatten();
    let all = || slice.spec.endpoints.iter().chain(draining.clone());
    let fields = [
        ("draining endpoints", draining.clone().next().is_some()),
        ("host names", all().any(|endpoint| endpoint.hostname.is_some())),
        ("zones", all().any(|endpoint| endpoint.zone.is_some())),
    ];
    fields.into_iter().filter(|(_, is_used)| *is_used).map(|(field, _)| field)
}

/// Exported slices of a source slice that has several.
pub(super) fn duplicate_exports(snapshot: &Snapshot) -> Findings {
    let slices = slice_exports(snapshot)?;
    let source = |slice: &EndpointSliceExport| (slice.namespace(), slice.spec.endpoint_slice_reference.uid.clone());
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for slice in slices {
        *counts.entry(source(slice)).or_default() += 1;
    }
    let is_duplicate = |slice: &&EndpointSliceExport| counts.get(&source(slice)).is_some_and(|count| *count > 1);
    let field = "spec.endpointSliceReference.name";
    let shown = |slice: &EndpointSliceExport| {
        Site::Hub(&snapshot.hub).shown(slice, field, slice.spec.endpoint_slice_reference.name.clone())
    };
    Ok(slices.iter().filter(is_duplicate).map(shown).collect())
}

/// Objects of a cluster that fleetnet cannot decode.
pub(super) fn undecodable(_: &Snapshot, site: Site<'_>) -> Findings {
    fn of<K>(kind: &str, listing: &Listing<K>, site: Site<'_>) -> Findings {
        need(listing, kind, site)?;
        let shown = |it: &crate::snapshot::Undecodable| Evidence {
            cluster: site.cluster().to_owned(),
            kind: it.kind.clone(),
            namespace: it.namespace.clone(),
            name: it.name.clone(),
            value: it.why.clone(),
            ..Evidence::default()
        };
        Ok(listing.undecodable().map(shown).collect())
    }
    let lists = match site {
        Site::Hub(hub) => vec![
            of("InternalServiceExports", &hub.internal_exports, site),
            of("InternalServiceImports", &hub.claims, site),
            of("EndpointSliceExports", &hub.slice_exports, site),
            of("ServiceImports", &hub.service_imports, site),
            of("MemberAgents", &hub.member_agents, site),
        ],
        Site::Member(member) => vec![
            of("ServiceExports", &member.service_exports, site),
            of("MultiClusterServices", &member.multi_cluster_services, site),
        ],
    };
    let mut found = Vec::new();
    for list in lists {
        match list {
            Ok(list) => found.extend(list),
            Err(Stop::Skipped(_)) => {} // the server does not have the kind
            Err(stop) => return Err(stop),
        }
    }
    Ok(found)
}

/// First CRD of a cluster that lacks a field.
pub(super) fn old_definitions(snapshot: &Snapshot, site: Site<'_>) -> Findings {
    need(&agent(site).definitions, "CustomResourceDefinitions", site)?;
    definitions_are_current(snapshot, site).map(|()| Vec::new())
}

/// IPv6 slices of exported Services, which Go agents do not export.
pub(super) fn ipv6_sources(_: &Snapshot, member: &Member) -> Findings {
    let site = Site::Member(member);
    let exports = need(&member.service_exports, "ServiceExports", site)?;
    let exported: BTreeSet<(String, String)> = exports.iter().map(path).collect();
    let is_exported = |slice: &&EndpointSlice| {
        let service = slice.labels().get(labels::SERVICE_NAME).cloned().unwrap_or_default();
        slice.address_type == "IPv6"
            && !is_imported(slice)
            && exported.contains(&(slice.namespace().unwrap_or_default(), service))
    };
    let slices = need(&member.slices, "EndpointSlices", site)?.iter().filter(is_exported);
    Ok(slices.map(|slice| site.shown(slice, "addressType", "IPv6")).collect())
}

/// Exported Services with session affinity, which Go agents do not carry.
pub(super) fn sticky_sources(_: &Snapshot, member: &Member) -> Findings {
    let site = Site::Member(member);
    let exports = need(&member.service_exports, "ServiceExports", site)?;
    let services = need(&member.services, "Services", site)?;
    let exported: BTreeSet<(String, String)> = exports.iter().map(path).collect();
    let is_sticky = |service: &Service| {
        service.spec.as_ref().is_some_and(|spec| spec.session_affinity.as_deref() == Some("ClientIP"))
    };
    let services = services.iter().filter(|service| is_sticky(service) && exported.contains(&path(*service)));
    Ok(services.map(|service| site.shown(service, "spec.sessionAffinity", "ClientIP")).collect())
}

/// Member agents that limit the addresses of other clusters.
pub(super) fn source_ranges(_: &Snapshot, member: &Member) -> Findings {
    let site = Site::Member(member);
    let mut found = Vec::new();
    for deployment in need(&member.agent.deployments, "Deployments", site)? {
        let is_ranges = |argument: &&str| argument.trim_start_matches('-').starts_with("source-ranges");
        if let Some(ranges) = arguments(deployment).find(is_ranges) {
            found.push(site.shown(deployment, "spec.template.spec.containers", ranges));
        }
    }
    Ok(found)
}

/// Exports with fields that only Go agents with the Traffic Manager feature write.
pub(super) fn traffic_manager(snapshot: &Snapshot) -> Findings {
    let exports = internal_exports(snapshot)?.iter().filter_map(|export| Some((export, export.spec.type_.clone()?)));
    Ok(exports.map(|(export, type_)| Site::Hub(&snapshot.hub).shown(export, "spec.type", type_)).collect())
}

/// Exports that only the standard API requests, and its imports.
pub(super) fn mcs_api(snapshot: &Snapshot) -> Findings {
    let hub = Site::Hub(&snapshot.hub);
    let exports = internal_exports(snapshot)?.iter().filter(|export| !is_by(export, Api::Fleet));
    let exports = exports.map(|export| hub.shown(export, "spec.multicluster.only", "true"));
    let imports = match &snapshot.hub.merged_imports {
        Listing::NotDefined => &[],
        listing => need(listing, "MergedServiceImports", hub)?,
    };
    let imports = imports.iter().filter(|merged| is_requested(merged));
    let imports = imports.map(|merged| hub.shown(merged, "metadata.finalizers", "set by the importing member"));
    Ok(exports.chain(imports).collect())
}

fn internal_exports(snapshot: &Snapshot) -> Result<&[InternalServiceExport], Stop> {
    need(&snapshot.hub.internal_exports, "InternalServiceExports", Site::Hub(&snapshot.hub))
}

fn claims(snapshot: &Snapshot) -> Result<&[InternalServiceImport], Stop> {
    need(&snapshot.hub.claims, "InternalServiceImports", Site::Hub(&snapshot.hub))
}

fn slice_exports(snapshot: &Snapshot) -> Result<&[EndpointSliceExport], Stop> {
    need(&snapshot.hub.slice_exports, "EndpointSliceExports", Site::Hub(&snapshot.hub))
}

/// True if an object of the hub is in the namespace of a member.
pub(super) fn is_of<K: kube::Resource>(object: &K, member: &Member) -> bool {
    object.meta().namespace.as_deref().and_then(cluster_of).is_some_and(|id| *id == *member.id)
}

fn service(export: &InternalServiceExport) -> (String, String) {
    let reference = &export.spec.service_reference;
    (reference.namespace.clone(), reference.name.clone())
}

fn owner(slice: &EndpointSliceExport) -> (String, String) {
    let owner = &slice.spec.owner_service_reference;
    (owner.namespace.clone(), owner.name.clone())
}

/// Namespace and name of an object.
fn path<K: kube::Resource>(object: &K) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}
