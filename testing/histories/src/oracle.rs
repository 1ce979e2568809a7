//! Oracle: the expected state of a fleet at rest, in which no agent has anything left to do. It is derived only from
//! the objects of users, without functions of the rules.
//!
//! The oracle asserts both directions: each object that users request exists (so an agent that does nothing fails), and
//! no other object exists. `rules/proved.rs` proves with broken agents that the oracle can fail.

use crate::fleet::{Fleet, cluster_id, hub_namespace};
use fleetnet_core::model::{
    AddressType, Announcement, Condition, ConsumerType, EndpointSlice, InternalServiceImport, Kind, Meta,
    MultiClusterService, Object, PortNumber, Reference, ServiceExport, ServiceImport, ServicePort, ServiceType,
    SliceContent,
};
use fleetnet_core::names;
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName, Text, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

macro_rules! all {
    ($cluster:expr, $kind:ident) => {
        $cluster.list(Kind::$kind).filter_map(|object| match object {
            Object::$kind(object) => Some(object),
            _ => None,
        })
    };
}

/// Namespace of the agents' objects in each member.
const SYSTEM: &str = "fleet-system";

/// Runs all assertions of this file on a fleet at rest.
pub fn assert_settled(fleet: &Fleet) {
    assert_nothing_is_stuck(fleet);
    assert_exports_are_judged_alike(fleet);
    assert_imports_are_made(fleet);
    assert_imported_equals_exported(fleet);
    assert_nothing_is_added(fleet);
    assert_claims_are_fair(fleet);
    assert_nothing_is_left_over(fleet);
}

/// Asserts that every object that is being deleted has a finalizer of another controller. Otherwise an agent has failed
/// to remove our finalizer.
fn assert_nothing_is_stuck(fleet: &Fleet) {
    for (who, cluster) in fleet.clusters() {
        for object in cluster.all() {
            let meta = object.meta();
            let condition = !meta.finalizers.others.is_empty();
            assert!(!meta.deleting || condition, "{who}: {:?} {} is stuck deleting", object.kind(), meta.name);
        }
    }
}

/// Returns the fields of ports that conflict resolution compares.
fn port_set(ports: &[ServicePort]) -> BTreeSet<(Text, Text, PortNumber, Option<Text>)> {
    let key = |port: &ServicePort| (port.name.clone(), port.protocol.clone(), port.port, port.app_protocol.clone());
    ports.iter().map(key).collect()
}

fn status_of(conditions: &[Condition], condition_type: &str) -> Option<&'static str> {
    conditions
        .iter()
        .find(|condition| &*condition.condition_type == condition_type)
        .map(|condition| condition.status.as_str())
}

/// Returns the exports that users request for a Service and that are eligible: for each cluster id, the ServiceExport
/// and the Service's ports.
fn wanted_exports<'a>(
    fleet: &'a Fleet,
    service: &ObjectName,
) -> BTreeMap<String, (&'a ServiceExport, &'a [ServicePort])> {
    let mut wanted = BTreeMap::new();
    for (index, member) in fleet.members.iter().enumerate() {
        let export = all!(member, ServiceExport).find(|export| export.meta.name == *service);
        let source = all!(member, Service).find(|source| source.meta.name == *service);
        let (Some(export), Some(source)) = (export, source) else { continue };
        let weight = export.weight.as_deref().unwrap_or("1");
        let eligible = source.service_type != ServiceType::ExternalName && !source.headless;
        if eligible && weight != "0" {
            wanted.insert(cluster_id(index), (export, source.ports.as_slice()));
        }
    }
    wanted
}

/// Returns the Services that a user exports or imports, or that have a ServiceImport in the hub.
fn services(fleet: &Fleet) -> BTreeSet<ObjectName> {
    let exported = fleet.members.iter().flat_map(|member| member.list(Kind::ServiceExport));
    let imported = exported.chain(fleet.hub.list(Kind::ServiceImport)).map(|object| object.meta().name.clone());
    let requests = (0..fleet.members.len()).flat_map(|index| requests(fleet, index)).map(target);
    imported.chain(requests).collect()
}

/// Returns the MultiClusterServices of a member that name a Service to import and are not being deleted.
fn requests(fleet: &Fleet, index: usize) -> impl Iterator<Item = &MultiClusterService> {
    let all = all!(fleet.members[index], MultiClusterService);
    all.filter(|request| !request.meta.deleting && !request.import_name.is_empty())
}

/// Returns the Service that a MultiClusterService requests.
fn target(request: &MultiClusterService) -> ObjectName {
    ObjectName::new(request.meta.name.namespace.clone(), request.import_name.clone())
}

/// True if the weight annotation of an export is valid.
fn has_valid_weight(export: &ServiceExport) -> bool {
    export.weight.as_deref().is_none_or(|weight| weight.parse::<i64>().is_ok_and(|weight| (0..=1000).contains(&weight)))
}

fn assert_exports_are_judged_alike(fleet: &Fleet) {
    for service in services(fleet) {
        if fleet.hub.missing_namespaces.contains(&*service.namespace) {
            continue;
        }
        let wanted = wanted_exports(fleet, &service);
        let import = all!(fleet.hub, ServiceImport).find(|import| import.meta.name == service);
        let (exported, denied): (BTreeMap<ClusterId, _>, BTreeMap<ClusterId, _>) =
            all!(fleet.hub, InternalServiceExport)
                .filter(|export| export.reference.source == service)
                .filter_map(|export| Some((names::cluster_of(&export.meta.name.namespace)?, export)))
                .partition(|(cluster, _)| fleet.may_export(&service, cluster));
        for (cluster, export) in &denied {
            let valid = status_of(&export.conditions, "Valid");
            assert_eq!(valid, Some("False"), "{service} of {cluster} may not be exported");
        }
        // An invalid weight neither creates nor removes the export in the hub. So exports with an invalid weight are
        // allowed, but not demanded.
        let is_demanded = |(cluster, (export, _)): &(&String, &(&ServiceExport, &[ServicePort]))| {
            fleet.may_export(&service, cluster) && !export.meta.deleting && has_valid_weight(export)
        };
        let demanded = wanted.iter().filter(is_demanded).count();
        let Some(import) = import else {
            assert_eq!(demanded, 0, "{service} is exported by users and has no ServiceImport in the hub");
            assert!(exported.is_empty(), "{service} is offered and has no import");
            continue;
        };
        assert!(!import.status.clusters.is_empty(), "{service} has an import and no exporter");
        for cluster in &import.status.clusters {
            assert!(fleet.may_export(&service, cluster), "{service} of {cluster} is accepted and may not be exported");
        }
        for (cluster, export) in &exported {
            let accepted = import.status.clusters.contains(cluster);
            let same = port_set(&export.ports) == port_set(&import.status.ports);
            assert_eq!(accepted, same, "{service} of {cluster}: accepted because of its ports");
            let status = status_of(&export.conditions, "Conflict");
            assert_eq!(status, Some(if accepted { "False" } else { "True" }), "{service} of {cluster}");
            let Some((shown, ports)) = wanted.get(&**cluster) else { panic!("{service} of {cluster} is not wanted") };
            assert_eq!(port_set(&export.ports), port_set(ports), "{service} of {cluster} offers its ports");
            assert_eq!(status_of(&shown.conditions, "Conflict"), status, "{service} of {cluster}: shows the outcome");
            let valid = if has_valid_weight(shown) { "True" } else { "False" };
            assert_eq!(status_of(&shown.conditions, "Valid"), Some(valid));
        }
        for (cluster, (export, _)) in wanted {
            let is_exported = exported.contains_key(&*cluster) || denied.contains_key(&*cluster);
            assert!(is_exported || !has_valid_weight(export), "{service} of {cluster} is wanted and not offered");
        }
    }
}

/// Returns the content of a slice as text, so that slices of different kinds can be compared.
fn text_of(content: &SliceContent) -> String {
    format!("{content:?}")
}

fn is_source(slice: &EndpointSlice) -> bool {
    !slice.imported && slice.content.address_type == AddressType::IPv4
}

/// True if draining endpoints reach an importer: the hub announces support to the exporter, the importer to the hub.
fn draining_arrives(fleet: &Fleet, exporter: usize, importer: usize) -> bool {
    let agent = |index: usize| {
        let name = ObjectName::new(Text::from(&*hub_namespace(index)), cluster_id(index));
        match fleet.hub.get(Kind::MemberAgent, &name) {
            Some(Object::MemberAgent(agent)) => Some(agent),
            _ => None,
        }
    };
    let has = |announcement: &Announcement| announcement.features.iter().any(|name| &**name == "DrainingEndpoints");
    agent(exporter).is_some_and(|agent| has(&agent.status.announcement))
        && agent(importer).is_some_and(|agent| has(&agent.member))
}

/// Returns the sorted contents of a Service's slices in all accepted exporters, as a member must import them.
fn exported(fleet: &Fleet, import: &ServiceImport, importer: usize) -> Vec<String> {
    let mut all = Vec::new();
    for (index, member) in fleet.members.iter().enumerate() {
        if !import.status.clusters.contains(&ClusterId::from(cluster_id(index))) {
            continue;
        }
        let name = &import.meta.name;
        let of_service = |slice: &&EndpointSlice| {
            is_source(slice)
                && slice.meta.name.namespace == name.namespace
                && slice.service.as_ref() == Some(&name.name)
        };
        let has_draining = draining_arrives(fleet, index, importer);
        let content = |slice: &EndpointSlice| {
            let draining = slice.content.draining.iter().filter(|_| has_draining).cloned().collect();
            text_of(&SliceContent { draining, ..slice.content.clone() })
        };
        all.extend(all!(member, EndpointSlice).filter(of_service).map(content));
    }
    all.sort();
    all
}

/// Returns the MultiClusterService that controls a member's ServiceImport of a Service.
fn importer<'a>(fleet: &'a Fleet, index: usize, service: &ObjectName) -> Option<&'a MultiClusterService> {
    let cluster = &fleet.members[index];
    let import = all!(cluster, ServiceImport).find(|import| import.meta.name == *service)?;
    let owner = import.controller()?;
    all!(cluster, MultiClusterService).find(|request| request.meta.uid == owner.uid)
}

/// Asserts that each Service that users request in a member has a ServiceImport there. One of the requesting
/// MultiClusterServices controls the ServiceImport, and the claim of this MultiClusterService is in the hub.
fn assert_imports_are_made(fleet: &Fleet) {
    for (index, _) in fleet.members.iter().enumerate() {
        for service in requests(fleet, index).map(target).collect::<BTreeSet<_>>() {
            let request = importer(fleet, index, &service);
            let cluster = cluster_id(index);
            let request = request.unwrap_or_else(|| panic!("{service} is asked for in {cluster} and not imported"));
            assert_eq!(target(request), service, "{cluster}: imported for one that asks for something else");
            let is_claim = |claim: &InternalServiceImport| {
                *claim.meta.name.namespace == *hub_namespace(index)
                    && claim.reference.source == service
                    && claim.consumer_type == request.consumer_type
            };
            let claimed = all!(fleet.hub, InternalServiceImport).any(is_claim);
            assert!(claimed, "{cluster}: {service} is asked for as {:?} and not claimed so", request.consumer_type);
        }
    }
}

fn assert_imported_equals_exported(fleet: &Fleet) {
    for import in all!(fleet.hub, ServiceImport) {
        let service = &import.meta.name;
        for (index, member) in fleet.members.iter().enumerate() {
            let Some(request) = importer(fleet, index, service) else { continue };
            let claimed = import.claims.importers.contains_key(&*hub_namespace(index));
            let derived = request.derived_label.clone().filter(|_| claimed);
            let mut imported: Vec<String> = all!(member, EndpointSlice)
                .filter(|slice| &*slice.meta.name.namespace == SYSTEM && slice.service.is_some())
                .filter(|slice| slice.service == derived)
                .map(|slice| text_of(&slice.content))
                .collect();
            imported.sort();
            if !claimed {
                assert_eq!(status_of(&request.conditions, "Valid"), Some("Unknown"), "{service} in {index}");
                continue;
            }
            assert_eq!(imported, exported(fleet, import, index), "{service} as imported by {}", cluster_id(index));
            assert_eq!(status_of(&request.conditions, "Valid"), Some("True"), "{service} in {index}");
            let derived = derived.expect("a claimed import has a derived Service");
            let derived = all!(member, Service)
                .find(|service| service.meta.name == ObjectName::new(SYSTEM, derived.clone()))
                .expect("the derived Service stands");
            assert_eq!(derived.ports, import.status.ports);
            assert_eq!(request.load_balancer, derived.load_balancer);
        }
    }
}

/// Asserts that slices of the agents contain only what the agents write, and that the `exportedSince` of a distributed
/// slice is the `exportedSince` of its EndpointSliceExport.
fn assert_nothing_is_added(fleet: &Fleet) {
    for slice in all!(fleet.hub, EndpointSliceExport).chain(all!(fleet.hub, EndpointSliceImport)) {
        assert!(!slice.misnamed, "{} is named twice", slice.meta.name);
    }
    let exports = slices(fleet, Kind::EndpointSliceExport);
    for (copy, reference) in slices(fleet, Kind::EndpointSliceImport) {
        let mut of_its_name = exports.iter().filter(|(export, _)| export.name == copy.name);
        let is_same = |stamp| stamp == reference.exported_since;
        assert!(of_its_name.any(|(_, export)| is_same(export.exported_since)), "{copy} has a stamp of its own");
    }
    for (index, member) in fleet.members.iter().enumerate() {
        for slice in all!(member, EndpointSlice).filter(|slice| slice.imported) {
            assert_eq!(slice.excess, 0, "{}: {} says more than we write", cluster_id(index), slice.meta.name);
        }
    }
}

/// Asserts that every member that requests type ClusterIP imports. Of the members that request type LoadBalancer, one
/// has the exclusive claim. The others import only if they already imported through a claim of type ClusterIP.
fn assert_claims_are_fair(fleet: &Fleet) {
    for import in all!(fleet.hub, ServiceImport) {
        let requests_of_import: BTreeMap<MemberNamespace, &MultiClusterService> = (0..fleet.members.len())
            .filter(|index| fleet.may_import(&import.meta.name, &cluster_id(*index)))
            .filter_map(|index| Some((hub_namespace(index), importer(fleet, index, &import.meta.name)?)))
            .collect();
        let asking = |wanted: ConsumerType| requests_of_import.iter().filter(move |(_, it)| it.consumer_type == wanted);
        let claims = &import.claims.importers;
        for (namespace, _) in asking(ConsumerType::ClusterIp) {
            assert!(claims.contains_key(&**namespace), "{namespace} shares {}", import.meta.name);
        }
        let shares = |namespace: &MemberNamespace| {
            all!(fleet.hub, InternalServiceImport).any(|claim| {
                *claim.meta.name.namespace == **namespace
                    && claim.reference.source == import.meta.name
                    && claim.consumer_type == ConsumerType::ClusterIp
            })
        };
        let mut holders = 0;
        for (namespace, request) in asking(ConsumerType::LoadBalancer) {
            let waits_beside = shares(namespace);
            let reason = request
                .conditions
                .iter()
                .find(|condition| &*condition.condition_type == "Valid")
                .map(|condition| &*condition.reason);
            assert_eq!(waits_beside, reason == Some("LoadBalancerNotGranted"), "{namespace}: {reason:?}");
            assert!(!waits_beside || claims.contains_key(&**namespace), "{namespace} imports as before");
            holders += usize::from(!waits_beside && claims.contains_key(&**namespace));
        }
        let requested = asking(ConsumerType::LoadBalancer).count();
        assert_eq!(holders, requested.min(1), "one LoadBalancer of {}: {claims:?}", import.meta.name);
        assert!(
            claims.keys().all(|namespace| requests_of_import.contains_key(&**namespace)),
            "{claims:?} of {:?}",
            requests_of_import.keys()
        );
    }
}

/// Names of situations. Most property tests require that their random histories cover all of them.
pub const CLASSES: &[&str] = &[
    "endpoints are imported",
    "two exporters are accepted",
    "two importers share",
    "an export is in conflict",
    "an exclusive claim waits",
];

/// Returns the situations of [`CLASSES`] that occur in the current state of a fleet.
pub fn classes(fleet: &Fleet) -> Vec<&'static str> {
    let imports = || all!(fleet.hub, ServiceImport);
    let imports_endpoints = |slice: &EndpointSlice| slice.imported && !slice.content.endpoints.is_empty();
    let waits = |index: usize| {
        let waits_for = |request: &MultiClusterService, import: &ServiceImport| {
            let namespace = hub_namespace(index);
            target(request) == import.meta.name
                && request.consumer_type == ConsumerType::LoadBalancer
                && !import.claims.importers.contains_key(&*namespace)
                && !import.claims.importers.is_empty()
        };
        requests(fleet, index).any(|request| imports().any(|import| waits_for(request, import)))
    };
    let conflicts = |export: &fleetnet_core::model::InternalServiceExport| {
        status_of(&export.conditions, "Conflict") == Some("True")
    };
    let shown = [
        fleet.members.iter().any(|member| all!(member, EndpointSlice).any(imports_endpoints)),
        imports().any(|import| import.status.clusters.len() > 1),
        imports().any(|import| import.claims.importers.len() > 1),
        all!(fleet.hub, InternalServiceExport).any(conflicts),
        (0..fleet.members.len()).any(waits),
    ];
    CLASSES.iter().zip(shown).filter_map(|(class, shown)| shown.then_some(*class)).collect()
}

fn assert_nothing_is_left_over(fleet: &Fleet) {
    let is_member = |index: usize, kind: Kind, name: &ObjectName| fleet.members[index].get(kind, name).is_some();
    let member_of = |namespace: &str| {
        (0..fleet.members.len()).find(|index| &*hub_namespace(*index) == namespace).expect("a member")
    };
    for export in all!(fleet.hub, InternalServiceExport) {
        let index = member_of(&export.meta.name.namespace);
        assert!(is_member(index, Kind::ServiceExport, &export.reference.source), "left over: {}", export.meta.name);
    }
    for claim in all!(fleet.hub, InternalServiceImport) {
        let index = member_of(&claim.meta.name.namespace);
        assert!(is_member(index, Kind::ServiceImport, &claim.reference.source), "left over: {}", claim.meta.name);
    }
    let exports: BTreeMap<_, _> = slices(fleet, Kind::EndpointSliceExport);
    for (name, reference) in &exports {
        let index = member_of(&name.namespace);
        let source = fleet.members[index].get(Kind::EndpointSlice, &reference.source);
        let same = source.is_some_and(|source| source.meta().uid == reference.uid);
        assert!(same, "left over: {name}");
        let once = exports.values().filter(|other| other.uid == reference.uid && other.cluster == reference.cluster);
        assert_eq!(once.count(), 1, "exported more than once: {}", reference.source);
    }
    let imports = slices(fleet, Kind::EndpointSliceImport);
    for name in imports.keys() {
        assert!(exports.keys().any(|export| export.name == name.name), "left over: {name}");
    }
    for (index, member) in fleet.members.iter().enumerate() {
        for slice in all!(member, EndpointSlice).filter(|slice| slice.imported) {
            let distributed = ObjectName::new(hub_namespace(index), slice.meta.name.name.clone());
            assert!(imports.contains_key(&distributed), "{}: left over: {}", cluster_id(index), slice.meta.name);
        }
        for import in all!(member, ServiceImport) {
            assert!(importer(fleet, index, &import.meta.name).is_some(), "left over: {}", import.meta.name);
        }
        for service in all!(member, Service) {
            let requested_by = service.derived_from.as_ref();
            let orphan = requested_by.is_some_and(|name| !is_member(index, Kind::MultiClusterService, name));
            assert!(!orphan, "left over: {}", service.meta.name);
        }
    }
}

/// Asserts that no derived Service is left of a Service without exporters. Only after the time for which agents keep
/// such a derived Service.
pub fn assert_grace_is_over(fleet: &Fleet) {
    for (index, member) in fleet.members.iter().enumerate() {
        for service in all!(member, Service) {
            let requested_by = service.derived_from.as_ref();
            let request = requests(fleet, index).find(|request| Some(&request.meta.name) == requested_by);
            let exported = request.is_none_or(|it| fleet.hub.get(Kind::ServiceImport, &target(it)).is_some());
            assert!(exported, "{}: left over without an exporter: {}", cluster_id(index), service.meta.name);
        }
    }
}

fn slices(fleet: &Fleet, kind: Kind) -> BTreeMap<ObjectName, &Reference> {
    fleet
        .hub
        .list(kind)
        .filter_map(|object| match object {
            Object::EndpointSliceExport(slice) | Object::EndpointSliceImport(slice) => {
                Some((slice.meta.name.clone(), &slice.spec.reference))
            }
            _ => None,
        })
        .collect()
}

/// Asserts that no cluster contains any object.
pub fn assert_empty(fleet: &Fleet) {
    let name = |who: &str, object: &Object| format!("{who}: {:?} {}", object.kind(), object.meta().name);
    let left = fleet.clusters().flat_map(|(who, cluster)| cluster.all().map(move |object| name(&who, object)));
    let left: Vec<String> = left.collect();
    assert_eq!(left, Vec::<String>::new(), "left over");
}

/// Returns all objects without UIDs, versions and times, which may differ between two runs of the same history.
pub fn state(fleet: &Fleet) -> BTreeMap<String, Object> {
    let mut state = BTreeMap::new();
    for (who, cluster) in fleet.clusters() {
        for object in cluster.all() {
            let name = format!("{who} {:?} {}", object.kind(), object.meta().name);
            state.insert(name, anonymous(object.clone()));
        }
    }
    state
}

fn anonymous(mut object: Object) -> Object {
    let blank = |meta: &mut Meta| {
        meta.uid = "".into();
        meta.resource_version = 0;
        meta.generation = 0;
        meta.created = Timestamp::default();
    };
    let calm = |conditions: &mut Vec<Condition>| {
        for condition in conditions {
            condition.last_transition = Timestamp::default();
            condition.observed_generation = 0;
        }
    };
    let forget = |reference: &mut Reference| {
        reference.uid = "".into();
        reference.resource_version = "".into();
        reference.generation = 0;
        reference.exported_since = None;
    };
    blank(object.meta_mut());
    match &mut object {
        Object::EndpointSlice(slice) => slice.observed_generation = None,
        Object::ServiceExport(export) => calm(&mut export.conditions),
        Object::McsServiceExport(export) => calm(&mut export.conditions),
        Object::McsServiceImport(import) => calm(&mut import.status.conditions),
        Object::MultiClusterService(request) => calm(&mut request.conditions),
        Object::ServiceImport(import) => {
            import.status.clusters.sort();
            import.owners.iter_mut().for_each(|owner| owner.uid = "".into());
        }
        Object::InternalServiceExport(export) => {
            calm(&mut export.conditions);
            forget(&mut export.reference);
            export.stamp.iter_mut().for_each(|stamp| stamp.since = Timestamp::default());
        }
        Object::InternalServiceImport(claim) => {
            claim.status.clusters.sort();
            forget(&mut claim.reference);
        }
        Object::EndpointSliceExport(slice) | Object::EndpointSliceImport(slice) => forget(&mut slice.spec.reference),
        Object::Service(service) => {
            (service.families, service.cluster_ips, service.internal_traffic_policy) = (Vec::new(), Vec::new(), None);
        }
        Object::Namespace(_) | Object::SystemNamespace(_) | Object::ClusterProperty(_) | Object::Node(_) => {}
        Object::MemberAgent(_)
        | Object::InternalMemberCluster(_)
        | Object::MemberCluster(_)
        | Object::MergedServiceImport(_) => {}
    }
    object
}
