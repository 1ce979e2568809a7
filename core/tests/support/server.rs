//! Effects of a write in a simulated API server: how a create or patch by an agent becomes the stored object.

use fleetnet_core::model::{
    Claims, ClusterSelection, ConsumerType, EndpointSlice, ExportedBy, Finalizers, HubSlice, HubSliceSpec,
    ImportStatus, InternalLoadBalancer, InternalServiceExport, InternalServiceImport, IpFamily, LoadBalancerStatus,
    McsImportStatus, McsServiceImport, MemberAgent, MemberStatus, MergedServiceImport, Meta, Object, Owner, Properties,
    Renewal, Service, ServiceImport, ServicePort, ServiceType, TargetPort,
};
use fleetnet_core::plan::{
    Controller, DerivedService, Desired, ExportContent, ImportedSlice, McsDerivedService, Patch,
};
use fleetnet_types::{ObjectName, Text, Timestamp, Uid};
use std::collections::BTreeMap;

fn hub_slice(meta: Meta, spec: HubSliceSpec) -> HubSlice {
    HubSlice { meta, spec, observed_generation: None, misnamed: false, deleted: None, traced: None }
}

/// Returns the object that a POST creates. `Cluster::create` and `Cluster::store` add UID and version.
pub(crate) fn made(at: &ObjectName, desired: &Desired) -> Object {
    let meta = fresh(at, !matches!(desired, Desired::Service(_) | Desired::McsService(_)));
    match desired.clone() {
        Desired::InternalServiceExport { reference, content } => Object::InternalServiceExport(InternalServiceExport {
            meta,
            reference,
            ports: content.ports,
            headless: content.headless,
            session_affinity: content.session_affinity,
            mcs: content.mcs,
            weight: content.weight,
            conditions: Vec::new(),
            stamp: None,
            precedence: Vec::new(),
        }),
        Desired::EndpointSliceExport(spec) => Object::EndpointSliceExport(hub_slice(meta, spec)),
        Desired::EndpointSliceImport(spec) => Object::EndpointSliceImport(hub_slice(meta, spec)),
        Desired::ServiceImport { controller, finalizer } => {
            let meta = Meta { finalizers: Finalizers { ours: finalizer, others: Vec::new() }, ..meta };
            let owners = controller.iter().map(owner).collect();
            Object::ServiceImport(ServiceImport {
                meta,
                owners,
                claims: Claims::default(),
                status: ImportStatus::default(),
                conditions: Vec::new(),
            })
        }
        Desired::InternalServiceImport { reference, consumer_type } => {
            let status = ImportStatus::default();
            let selection = ClusterSelection::default();
            Object::InternalServiceImport(InternalServiceImport {
                meta,
                reference,
                consumer_type,
                status,
                selection,
                selectors: Vec::new(),
            })
        }
        Desired::McsService(_) | Desired::McsServiceImport(_) => made_mcs(meta, desired.clone()),
        Desired::Service(derived) => {
            let mut service = empty_service(meta, derived.headless);
            set_derived(&mut service, derived);
            Object::Service(service)
        }
        Desired::EndpointSlice(wanted) => {
            let mut slice = EndpointSlice {
                meta,
                service: None,
                imported: true,
                mcs: None,
                relabelled: false,
                excess: 0,
                further_addresses: 0,
                content: wanted.content.clone(),
                observed_generation: None,
                traced: None,
            };
            set_imported(&mut slice, wanted);
            Object::EndpointSlice(slice)
        }
        Desired::MemberAgent(renewal) => Object::MemberAgent(renewed(meta, renewal)),
        Desired::MergedServiceImport { service, import, selection } => {
            Object::MergedServiceImport(MergedServiceImport { meta, service, import, selection })
        }
    }
}

/// Returns the metadata of a new object. The generation is 1 if objects of this kind have a generation
/// (`counts_generations`), otherwise 0. `Cluster::create` and `Cluster::store` add UID and version.
pub(crate) fn fresh(at: &ObjectName, counts_generations: bool) -> Meta {
    Meta {
        name: at.clone(),
        uid: Uid::default(),
        resource_version: 0,
        generation: i64::from(counts_generations),
        created: Timestamp::default(),
        deleting: false,
        finalizers: Finalizers::default(),
    }
}

fn owner(controller: &Controller) -> Owner {
    Owner {
        api_version: "networking.fleet.azure.com/v1alpha1".into(),
        kind: "MultiClusterService".into(),
        name: controller.name.clone(),
        uid: controller.uid.clone(),
        controller: true,
        block_owner_deletion: true,
    }
}

fn set_derived(service: &mut Service, derived: DerivedService) {
    service.service_type = match derived.consumer_type {
        ConsumerType::LoadBalancer => ServiceType::LoadBalancer,
        ConsumerType::ClusterIp => ServiceType::ClusterIp,
    };
    if service.service_type == ServiceType::ClusterIp {
        service.load_balancer = LoadBalancerStatus::default(); // the cloud releases the address
    }
    service.ports = with_targets(derived.ports);
    service.derived_from = Some(derived.derived_from);
    service.internal_load_balancer = derived.internal_load_balancer;
    assert_eq!(service.headless, derived.headless, "422: clusterIP is immutable");
    set_routing(service);
    service.session_affinity = derived.session_affinity;
    service.dual_stack |= derived.dual_stack;
}

fn set_imported(slice: &mut EndpointSlice, wanted: ImportedSlice) {
    assert_eq!(slice.content.address_type, wanted.content.address_type, "422: addressType is immutable");
    slice.service = wanted.service;
    slice.mcs = wanted.mcs.map(Box::new);
    slice.imported = true;
    slice.content = wanted.content;
    slice.excess = 0;
    slice.observed_generation = Some(wanted.observed_generation);
}

fn renewed(meta: Meta, renewal: Renewal) -> MemberAgent {
    let Renewal { announcement, cluster_uid, leader, renewed, stopped, latency: _, slice_stream: _, properties } =
        renewal;
    MemberAgent {
        meta,
        member: announcement,
        cluster_uid,
        leader: Some(leader),
        renewed: Some(renewed),
        stopped,
        properties: merged(Properties::new(), properties),
        status: MemberStatus::default(),
    }
}

/// Returns the properties after a merge patch.
fn merged(mut properties: Properties, changes: Option<BTreeMap<Text, Option<Text>>>) -> Properties {
    let Some(changes) = changes else { return properties };
    if changes.is_empty() {
        return Properties::new();
    }
    for (name, value) in changes {
        match value {
            Some(value) => properties.insert(name, value),
            None => properties.remove(&name),
        };
    }
    properties
}

fn set_exported(export: &mut InternalServiceExport, content: ExportContent) {
    export.ports = content.ports;
    export.headless = content.headless;
    export.session_affinity = content.session_affinity;
    export.mcs = content.mcs;
    export.weight = content.weight;
    if export.mcs.as_ref().is_some_and(|part| part.exported_by == ExportedBy::McsApi) {
        export.stamp = None;
    }
}

pub(crate) fn merge(object: &mut Object, patch: Patch) {
    match (object, patch) {
        (object, Patch::Finalizers { finalizers, kind: _ }) => object.meta_mut().finalizers = finalizers,
        (Object::ServiceExport(export), Patch::ServiceExportConditions(list)) => export.conditions = list,
        (Object::InternalServiceExport(export), Patch::InternalServiceExport { reference, content }) => {
            export.reference = reference;
            set_exported(export, content);
        }
        (Object::MemberAgent(agent), Patch::MemberAgent(renewal)) => {
            agent.member = renewal.announcement;
            agent.cluster_uid = renewal.cluster_uid.or_else(|| agent.cluster_uid.take());
            (agent.leader, agent.renewed) = (Some(renewal.leader), Some(renewal.renewed));
            agent.stopped = renewal.stopped;
            agent.properties = merged(std::mem::take(&mut agent.properties), renewal.properties);
        }
        (Object::MemberAgent(agent), Patch::MemberAgentStatus(status)) => agent.status = status,
        (Object::ServiceImport(import), Patch::ServiceImportConditions(list)) => import.conditions = list,
        (Object::InternalMemberCluster(membership), Patch::InternalMemberClusterStatus(agents)) => {
            membership.agents = agents;
        }
        (Object::InternalServiceExport(export), Patch::InternalServiceExportStamp { finalizers, stamp }) => {
            export.meta.finalizers = finalizers;
            export.stamp = Some(stamp);
        }
        (Object::InternalServiceExport(export), Patch::InternalServiceExportConditions(list)) => {
            export.conditions = list;
        }
        (Object::InternalServiceExport(export), Patch::InternalServiceExportMerge { conditions: list, precedence }) => {
            (export.conditions, export.precedence) = (list, precedence);
        }
        (Object::EndpointSliceExport(slice), Patch::EndpointSliceExport(spec))
        | (Object::EndpointSliceImport(slice), Patch::EndpointSliceImport(spec)) => {
            slice.spec = spec;
            slice.misnamed = false;
        }
        (
            Object::MultiClusterService(request),
            Patch::MultiClusterService { finalizers, import_label, derived_label },
        ) => {
            request.meta.finalizers = finalizers;
            request.import_label = import_label;
            request.derived_label = derived_label;
        }
        (Object::MultiClusterService(request), Patch::MultiClusterServiceStatus { conditions, load_balancer }) => {
            request.conditions = conditions;
            request.load_balancer = load_balancer;
        }
        (Object::ServiceImport(import), Patch::ServiceImportOwners { others, controller, finalizers }) => {
            import.owners = others;
            import.owners.push(owner(&controller));
            import.meta.finalizers = finalizers;
        }
        (Object::ServiceImport(import), Patch::ServiceImportStatus(status)) => import.status = status,
        (Object::ServiceImport(import), Patch::Claims { importers, load_balancer, finalizers }) => {
            import.claims = Claims { present: !importers.is_empty(), importers, load_balancer };
            import.meta.finalizers = finalizers;
        }
        (Object::InternalServiceImport(claim), patch) => merge_claim(claim, patch),
        (Object::Service(service), Patch::DerivedService(derived)) => set_derived(service, derived),
        (Object::MergedServiceImport(merged), Patch::MergedServiceImport { service, import, selection }) => {
            (merged.service, merged.import, merged.selection) = (service, import, selection);
        }
        (Object::EndpointSlice(slice), Patch::ImportedSlice(wanted)) => set_imported(slice, wanted),
        (object, patch) => merge_mcs(object, patch),
    }
}

fn merge_claim(claim: &mut InternalServiceImport, patch: Patch) {
    match patch {
        Patch::InternalServiceImportStatus(status) => claim.status = status,
        Patch::ConsumerType(consumer_type) => claim.consumer_type = consumer_type,
        Patch::ClaimSelectors(selectors) => claim.selectors = selectors,
        Patch::ClaimSelection(selection) => claim.selection = selection,
        Patch::InternalServiceImport(reference) => claim.reference = reference,
        patch => panic!("{patch:?} of a claim"),
    }
}

/// Returns an object as a POST stores it: without its status subresource.
pub(crate) fn without_status(mut object: Object) -> Object {
    match &mut object {
        Object::Service(service) => service.load_balancer = LoadBalancerStatus::default(),
        Object::ServiceExport(export) => export.conditions = Vec::new(),
        Object::McsServiceExport(export) => export.conditions = Vec::new(),
        Object::McsServiceImport(import) => import.status = McsImportStatus::default(),
        Object::ServiceImport(import) => import.status = ImportStatus::default(),
        Object::InternalServiceExport(export) => export.conditions = Vec::new(),
        Object::InternalServiceImport(claim) => claim.status = ImportStatus::default(),
        Object::MultiClusterService(request) => {
            request.conditions = Vec::new();
            request.load_balancer = LoadBalancerStatus::default();
        }
        Object::MemberAgent(agent) => {
            agent.status = MemberStatus::default();
        }
        Object::EndpointSlice(_)
        | Object::EndpointSliceExport(_)
        | Object::EndpointSliceImport(_)
        | Object::Namespace(_)
        | Object::SystemNamespace(_)
        | Object::MemberCluster(_)
        | Object::ClusterProperty(_)
        | Object::Node(_)
        | Object::MergedServiceImport(_) => {}
        Object::InternalMemberCluster(membership) => membership.agents = Vec::new(),
    }
    object
}

/// Returns the part of an object whose change raises the generation: everything except metadata and status. For an
/// EndpointSlice this part also includes the labels.
pub(crate) fn specification(object: &Object) -> Object {
    let mut spec = without_status(object.clone());
    let meta = spec.meta_mut();
    *meta = Meta { uid: Uid::default(), ..fresh(&meta.name, false) };
    match &mut spec {
        Object::EndpointSlice(slice) => slice.observed_generation = None,
        Object::ServiceExport(export) => {
            export.weight = None;
            export.headless = false;
        }
        Object::ServiceImport(import) => {
            import.owners = Vec::new();
            import.claims = Claims::default();
        }
        Object::MultiClusterService(request) => {
            request.import_label = None;
            request.derived_label = None;
            request.internal_load_balancer = InternalLoadBalancer::NotRequested; // stored in an annotation
        }
        Object::InternalServiceExport(export) => export.stamp = None,
        Object::InternalServiceImport(claim) => claim.consumer_type = ConsumerType::LoadBalancer, // stored in an annotation
        Object::EndpointSliceExport(slice) | Object::EndpointSliceImport(slice) => slice.observed_generation = None,
        Object::Service(_)
        | Object::McsServiceExport(_)
        | Object::McsServiceImport(_)
        | Object::Namespace(_)
        | Object::SystemNamespace(_)
        | Object::MemberAgent(_)
        | Object::InternalMemberCluster(_)
        | Object::MemberCluster(_)
        | Object::ClusterProperty(_)
        | Object::Node(_)
        | Object::MergedServiceImport(_) => {}
    }
    spec
}

/// Returns a Service with the defaults of the API server, without ports.
fn empty_service(meta: Meta, headless: bool) -> Service {
    Service { meta, headless, ports: Vec::new(), ..super::build::service("work/app") }
}

/// Returns the ports of a Service with the default of the API server.
fn with_targets(mut ports: Vec<ServicePort>) -> Vec<ServicePort> {
    for port in &mut ports {
        port.target_port.get_or_insert(TargetPort::Number(port.port));
    }
    ports
}

/// Sets the fields with which clients reach only imported slices, as each write of a derived Service does.
fn set_routing(service: &mut Service) {
    service.has_selector_or_external_ips = false;
    service.internal_traffic_policy = Some("Cluster".into());
    service.is_external_policy_local = false;
}

/// Sets the fields of a derived Service of the standard API that a patch may change. The cluster has both families.
fn set_mcs_derived(service: &mut Service, desired: McsDerivedService) {
    set_routing(service);
    service.imports = Some(desired.service);
    service.relabelled = false;
    service.service_type = ServiceType::ClusterIp;
    service.families = vec![IpFamily::IPv4];
    service.cluster_ips = vec!["10.96.0.7".into()];
    if desired.dual_stack || service.dual_stack {
        service.families.push(IpFamily::IPv6);
        service.cluster_ips.push("fd00::7".into());
    }
    service.ports = with_targets(desired.ports);
    service.session_affinity = desired.session_affinity;
    service.dual_stack |= desired.dual_stack;
}

/// Returns the object of the standard API that a POST creates.
fn made_mcs(meta: Meta, desired: Desired) -> Object {
    match desired {
        Desired::McsService(derived) => {
            let mut service = empty_service(meta, false);
            set_mcs_derived(&mut service, derived);
            Object::Service(service)
        }
        Desired::McsServiceImport(spec) => {
            let status = McsImportStatus::default();
            Object::McsServiceImport(McsServiceImport {
                meta,
                is_ours: true,
                weights: Ok(std::collections::BTreeMap::new()),
                relabelled: false,
                spec,
                status,
            })
        }
        other => panic!("{other:?} is not of the standard API"),
    }
}

fn merge_mcs(object: &mut Object, patch: Patch) {
    match (object, patch) {
        (Object::Service(service), Patch::McsService(derived)) => set_mcs_derived(service, derived),
        (Object::McsServiceImport(import), Patch::McsServiceImport { spec, .. }) => {
            (import.spec, import.is_ours, import.relabelled) = (spec, true, false);
        }
        (Object::McsServiceImport(import), Patch::McsServiceImportStatus(status)) => import.status = status,
        (Object::McsServiceExport(export), Patch::McsServiceExportConditions(list)) => {
            export.conditions = list;
        }
        (object, patch) => panic!("{patch:?} does not fit a {:?}", object.kind()),
    }
}
