//! Tests of the round trip from planned writes to a decoded object. After a create and patches, the decoded object
//! equals the planned object.
//!
//! The simulated server stores what it receives, merges patches by RFC 7386, and counts versions.
#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod support;

use fleetnet_api::decode::decode;
use fleetnet_api::encode::{Body, encode};
use fleetnet_core::model::{
    AddressType, Claims, ClusterSelection, ClusterSelector, Condition, ConsumerType, EndpointSlice, Finalizers,
    HubSlice, HubSliceSpec, ImportStatus, ImportType, InternalLoadBalancer, InternalServiceExport,
    InternalServiceImport, Kind, LoadBalancerStatus, McsLabels, MemberAgent, MemberStatus, MergedImport,
    MergedServiceImport, Meta, MultiClusterService, Object, Operator, Owner, PortSetStamp, Reference, Renewal,
    Requirement, Service, ServiceExport, ServiceImport, ServiceType, SessionAffinity,
};
use fleetnet_core::plan::{Controller, DerivedService, Desired, ExportContent, ImportedSlice, Patch, Write};
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName, Text, Timestamp, Uid};
use property::{cases, for_any};
use proptest::prelude::*;
use proptest::{collection, option};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::schema::objects;
use support::text;

const AT: (&str, &str) = ("fleet-member-a", "object");

/// Simulated API server with one object.
struct Server {
    kind: Kind,
    object: Value,
}

impl Server {
    fn holding(kind: Kind, mut object: Value) -> Self {
        let metadata = &mut object["metadata"];
        metadata["namespace"] = AT.0.into();
        metadata["name"] = AT.1.into();
        metadata["uid"] = "uid-1".into();
        metadata["resourceVersion"] = "1".into();
        metadata["generation"] = 1.into();
        metadata["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        Self { kind, object }
    }

    fn making(desired: Desired) -> Self {
        let kind = desired.kind();
        match encode(&Write::create(ObjectName::new(AT.0, AT.1), desired)) {
            Body::Create { body } => Self::holding(kind, body),
            other => panic!("{other:?}"),
        }
    }

    fn patched(mut self, patch: Patch) -> Self {
        let stored = self.read();
        assert_eq!(patch.kind(), self.kind);
        match encode(&Write::patch(stored.meta(), patch)) {
            Body::Patch { resource_version, body, .. } => {
                assert_eq!(resource_version, stored.meta().resource_version);
                json_patch::merge(&mut self.object, &body);
                self.object["metadata"]["resourceVersion"] = (resource_version + 1).to_string().into();
            }
            other => panic!("{other:?}"),
        }
        self
    }

    fn read(&self) -> Object {
        decode(self.kind, self.object.to_string().as_bytes()).unwrap()
    }
}

fn meta(resource_version: u64, finalizers: Finalizers) -> Meta {
    Meta {
        name: ObjectName::new(AT.0, AT.1),
        uid: "uid-1".into(),
        resource_version,
        generation: 1,
        created: Timestamp(1_767_225_600_000_000),
        deleting: false,
        finalizers,
    }
}

fn any_text() -> impl Strategy<Value = Text> {
    ".{0,12}".prop_map(Text::from)
}

fn a_name() -> impl Strategy<Value = Text> {
    "[a-z0-9.-]{1,20}".prop_map(Text::from)
}

fn a_moment() -> impl Strategy<Value = Timestamp> {
    (0..4_000_000_000_000_000_i64).prop_map(Timestamp)
}

fn finalizers() -> impl Strategy<Value = Finalizers> {
    let other = "[a-z]{1,8}\\.example/[a-z]{1,8}".prop_map(Text::from);
    (any::<bool>(), collection::vec(other, 0..3)).prop_map(|(ours, others)| Finalizers { ours, others })
}

/// Returns the content of objects of a kind that are generated from its definition.
fn decoded<T: std::fmt::Debug>(kind: Kind, content: fn(Object) -> Option<T>) -> impl Strategy<Value = T> {
    objects(&format!("{kind:?}")).prop_map(move |object| content(Server::holding(kind, object).read()).unwrap())
}

fn internal_export() -> impl Strategy<Value = InternalServiceExport> {
    decoded(Kind::InternalServiceExport, |object| match object {
        Object::InternalServiceExport(export) => Some(export),
        _ => None,
    })
}

fn export_content() -> impl Strategy<Value = ExportContent> {
    internal_export().prop_map(|export| ExportContent {
        ports: export.ports,
        headless: export.headless,
        session_affinity: export.session_affinity,
        mcs: export.mcs,
        weight: export.weight,
    })
}

fn conditions() -> impl Strategy<Value = Vec<Condition>> {
    internal_export().prop_map(|export| export.conditions)
}

fn merged_import() -> impl Strategy<Value = (ObjectName, MergedImport, ClusterSelection)> {
    decoded(Kind::MergedServiceImport, |object| match object {
        Object::MergedServiceImport(merged) => {
            Some((merged.service, Arc::unwrap_or_clone(merged.import), merged.selection))
        }
        _ => None,
    })
}

fn selection() -> impl Strategy<Value = ClusterSelection> {
    let cluster = || a_name().prop_map(|name| ClusterId::from(&*name));
    let results = collection::vec(collection::vec(cluster(), 0..3), 0..3);
    let weights = collection::btree_map(cluster(), 0..=1000_i64, 0..3);
    (results, weights).prop_map(|(results, weights)| ClusterSelection { results, weights })
}

fn selectors() -> impl Strategy<Value = Vec<ClusterSelector>> {
    let values = prop_oneof![Just(Vec::new()), collection::vec(a_name(), 1..3)];
    let requirement = ("[a-z]{1,8}", values).prop_map(|(key, values)| {
        let operator = if values.is_empty() { Operator::DoesNotExist } else { Operator::NotIn };
        Requirement { key: key.into(), operator, values }
    });
    let selector = collection::vec(requirement, 1..3).prop_map(|requirements| ClusterSelector { requirements });
    collection::vec(selector, 0..3)
}

fn claim() -> impl Strategy<Value = InternalServiceImport> {
    decoded(Kind::InternalServiceImport, |object| match object {
        Object::InternalServiceImport(claim) => Some(claim),
        _ => None,
    })
}

fn reference() -> impl Strategy<Value = Reference> {
    claim().prop_map(|claim| claim.reference)
}

fn import_status() -> impl Strategy<Value = ImportStatus> {
    claim().prop_map(|claim| claim.status)
}

fn member_agent() -> impl Strategy<Value = MemberAgent> {
    decoded(Kind::MemberAgent, |object| match object {
        Object::MemberAgent(agent) => Some(agent),
        _ => None,
    })
}

fn load_balancer() -> impl Strategy<Value = LoadBalancerStatus> {
    decoded(Kind::MultiClusterService, |object| match object {
        Object::MultiClusterService(service) => Some(service.load_balancer),
        _ => None,
    })
}

fn consumer_type() -> impl Strategy<Value = ConsumerType> {
    prop_oneof![Just(ConsumerType::LoadBalancer), Just(ConsumerType::ClusterIp)]
}

fn hub_slice() -> impl Strategy<Value = HubSliceSpec> {
    decoded(Kind::EndpointSliceExport, |object| match object {
        Object::EndpointSliceExport(slice) => Some(slice.spec),
        _ => None,
    })
}

fn derived_service() -> impl Strategy<Value = DerivedService> {
    (any_text(), any_text(), consumer_type(), export_content(), any::<[bool; 2]>()).prop_map(
        |(namespace, name, consumer_type, content, [dual_stack, internal_load_balancer])| DerivedService {
            derived_from: ObjectName::new(namespace, name),
            consumer_type,
            ports: content.ports,
            headless: content.headless,
            session_affinity: content.session_affinity,
            dual_stack,
            internal_load_balancer,
        },
    )
}

fn imported_slice() -> impl Strategy<Value = ImportedSlice> {
    let mcs = option::of((any_text(), any_text(), any::<bool>()));
    (any_text(), mcs, hub_slice(), any::<i64>()).prop_map(|(service, mcs, slice, observed_generation)| {
        let mcs = mcs.map(|(service, cluster, headless)| McsLabels { service, cluster: cluster.into(), headless });
        let has_service = mcs.as_ref().is_none_or(|labels| !labels.headless);
        let content = Arc::unwrap_or_clone(slice.content);
        ImportedSlice { service: has_service.then_some(service), mcs, content, observed_generation }
    })
}

fn a_uid() -> impl Strategy<Value = Uid> {
    any_text().prop_map(Uid::from)
}

fn owners() -> impl Strategy<Value = Vec<Owner>> {
    let owner = (any_text(), any_text(), any_text(), a_uid(), any::<bool>()).prop_map(
        |(api_version, kind, name, uid, block_owner_deletion)| Owner {
            api_version,
            kind,
            name,
            uid,
            controller: false,
            block_owner_deletion,
        },
    );
    collection::vec(owner, 0..3)
}

fn controlled_by(controller: &Controller) -> Owner {
    Owner {
        api_version: text("networking.fleet.azure.com/v1alpha1"),
        kind: text("MultiClusterService"),
        name: controller.name.clone(),
        uid: controller.uid.clone(),
        controller: true,
        block_owner_deletion: true,
    }
}

fn service_as_wanted(wanted: DerivedService, resource_version: u64) -> Object {
    Object::Service(Service {
        meta: meta(resource_version, Finalizers::default()),
        service_type: match wanted.consumer_type {
            ConsumerType::LoadBalancer => ServiceType::LoadBalancer,
            ConsumerType::ClusterIp => ServiceType::ClusterIp,
        },
        headless: wanted.headless,
        ports: wanted.ports,
        session_affinity: wanted.session_affinity,
        dual_stack: wanted.dual_stack,
        families: Vec::new(),
        has_selector_or_external_ips: false,
        internal_traffic_policy: Some("Cluster".into()),
        is_external_policy_local: false,
        traffic_distribution: None,
        imports: None,
        cluster_ips: Vec::new(),
        derived_from: Some(wanted.derived_from),
        relabelled: false,
        internal_load_balancer: wanted.internal_load_balancer,
        load_balancer: LoadBalancerStatus::default(),
    })
}

fn slice_as_wanted(wanted: ImportedSlice, resource_version: u64) -> Object {
    Object::EndpointSlice(EndpointSlice {
        meta: meta(resource_version, Finalizers::default()),
        service: wanted.service,
        mcs: wanted.mcs.map(Box::new),
        imported: true,
        relabelled: false,
        excess: 0,
        further_addresses: 0,
        content: wanted.content,
        observed_generation: Some(wanted.observed_generation),
        traced: None,
    })
}

/// Smallest number of random cases of each class, such as "headless" or "no ports". A test has 256 cases. If a class
/// has fewer cases than this, the test fails, because it tests too little.
const LEAST: usize = 4;

#[test]
fn internal_service_exports() {
    let input = (
        (reference(), export_content()),
        (reference(), export_content()),
        finalizers(),
        a_moment(),
        "[0-9a-f]{10}",
        (conditions(), internal_export().prop_map(|export| export.precedence)),
    );
    for_any(cases(256), LEAST, &input, |(first, second, finalizers, since, fingerprint, (conditions, precedence))| {
        let classes = [
            (first.1.ports != second.1.ports, "other ports"),
            (second.1.ports.is_empty(), "no ports"),
            (second.1.headless, "headless"),
            (second.1.session_affinity != SessionAffinity::None, "sticky"),
            (first.1.mcs.is_some() && second.1.mcs.is_none(), "standard API no more"),
            (first.1.mcs.is_some() && second.1.mcs.is_some(), "standard API changed"),
            (second.1.mcs.as_ref().is_some_and(|mcs| !mcs.cluster_selectors.is_empty()), "selecting"),
            (second.0.exported_since.is_none(), "without a time"),
            (finalizers.ours, "marked"),
            (!finalizers.others.is_empty(), "marked by others"),
            (conditions.is_empty(), "without conditions"),
            (conditions.len() > 1, "with several conditions"),
        ];
        let desired = Desired::InternalServiceExport { reference: first.0.clone(), content: first.1.clone() };
        let server = Server::making(desired);
        let mut expected = InternalServiceExport {
            meta: meta(1, Finalizers::default()),
            reference: first.0,
            ports: first.1.ports,
            headless: first.1.headless,
            session_affinity: first.1.session_affinity,
            mcs: first.1.mcs,
            weight: first.1.weight,
            conditions: Vec::new(),
            stamp: None,
            precedence: Vec::new(),
        };
        assert_eq!(server.read(), Object::InternalServiceExport(expected.clone()));
        expected.meta = meta(5, finalizers.clone());
        (expected.reference, expected.ports) = (second.0.clone(), second.1.ports.clone());
        (expected.headless, expected.session_affinity) = (second.1.headless, second.1.session_affinity);
        expected.mcs.clone_from(&second.1.mcs);
        expected.weight = second.1.weight.or(expected.weight);
        expected.conditions = conditions.clone();
        let stamp = PortSetStamp { since, ports: fingerprint.into() };
        expected.stamp = Some(stamp.clone());
        expected.precedence.clone_from(&precedence);
        let server = server
            .patched(Patch::InternalServiceExport { reference: second.0, content: second.1 })
            .patched(Patch::InternalServiceExportStamp { finalizers, stamp })
            .patched(Patch::InternalServiceExportConditions(Vec::new()))
            .patched(Patch::InternalServiceExportMerge { conditions, precedence });
        assert_eq!(server.read(), Object::InternalServiceExport(expected));
        classes
    });
}

#[test]
fn merged_service_imports() {
    let input = (merged_import(), merged_import(), finalizers());
    for_any(cases(256), LEAST, &input, |(first, second, finalizers)| {
        let classes = [
            (
                first.1.properties.labels.keys().any(|name| !second.1.properties.labels.contains_key(name)),
                "a label is removed",
            ),
            (!first.1.ports.is_empty() && second.1.ports.is_empty(), "ports are removed"),
            (second.1.clusters.iter().any(|cluster| cluster.ports.is_some()), "ports are filtered"),
            (second.1.import_type == ImportType::Headless, "headless"),
            (!second.2.results.is_empty(), "selected"),
            (!first.2.results.is_empty() && second.2.results.is_empty(), "selected no more"),
            (!second.2.weights.is_empty(), "weighted"),
        ];
        let with = |(service, import, selection): &(ObjectName, MergedImport, ClusterSelection)| {
            (service.clone(), Arc::new(import.clone()), selection.clone())
        };
        let (service, import, selection) = with(&first);
        let desired = Desired::MergedServiceImport { service, import, selection };
        let server = Server::making(desired);
        let object = |version, finalizers, of| {
            let (service, import, selection) = with(&of);
            let meta = meta(version, finalizers);
            Object::MergedServiceImport(MergedServiceImport { meta, service, import, selection })
        };
        assert_eq!(server.read(), object(1, Finalizers::default(), first));
        let kind = Kind::MergedServiceImport;
        let (service, import, selection) = with(&second);
        let server = server
            .patched(Patch::MergedServiceImport { service, import, selection })
            .patched(Patch::Finalizers { kind, finalizers: finalizers.clone() });
        assert_eq!(server.read(), object(3, finalizers, second));
        classes
    });
}

#[test]
fn internal_service_imports() {
    let references = (reference(), reference());
    let statuses = (import_status(), import_status());
    let selections = (selection(), selection(), selectors());
    let input = (references, (consumer_type(), consumer_type()), finalizers(), statuses, selections);
    for_any(cases(256), LEAST, &input, |(references, consumers, finalizers, statuses, selections)| {
        let classes = [
            (consumers.0 != consumers.1, "of another type"),
            (statuses.1.clusters.is_empty(), "taken back"),
            (!statuses.1.clusters.is_empty(), "answered"),
            (statuses.1.import_type.is_none(), "without a type"),
            (finalizers.ours, "marked"),
            (!selections.0.results.is_empty() && selections.1.results.is_empty(), "selected no more"),
            (!selections.1.results.is_empty() && !selections.1.weights.is_empty(), "selected and weighted"),
            (!selections.2.is_empty(), "selecting"),
        ];
        let desired = Desired::InternalServiceImport { reference: references.0.clone(), consumer_type: consumers.0 };
        let server = Server::making(desired)
            .patched(Patch::InternalServiceImportStatus(statuses.0.clone()))
            .patched(Patch::ClaimSelection(selections.0.clone()));
        let mut expected = InternalServiceImport {
            meta: meta(3, Finalizers::default()),
            reference: references.0,
            consumer_type: consumers.0,
            status: statuses.0,
            selection: selections.0,
            selectors: Vec::new(),
        };
        assert_eq!(server.read(), Object::InternalServiceImport(expected.clone()));
        expected.meta = meta(9, finalizers.clone());
        expected.selectors.clone_from(&selections.2);
        expected.selection = selections.1.clone();
        (expected.reference, expected.consumer_type, expected.status) =
            (references.1.clone(), consumers.1, statuses.1.clone());
        let server = server
            .patched(Patch::InternalServiceImport(references.1))
            .patched(Patch::ConsumerType(consumers.1))
            .patched(Patch::ClaimSelection(selections.1))
            .patched(Patch::ClaimSelectors(selections.2))
            .patched(Patch::InternalServiceImportStatus(statuses.1))
            .patched(Patch::Finalizers { kind: Kind::InternalServiceImport, finalizers });
        assert_eq!(server.read(), Object::InternalServiceImport(expected));
        classes
    });
}

#[test]
fn hub_slices() {
    let input = (hub_slice(), hub_slice(), finalizers());
    for_any(cases(256), LEAST, &input, |(first, second, finalizers)| {
        let classes = [
            (second.content.endpoints.is_empty(), "without endpoints"),
            (second.content.endpoints.len() > 1, "with endpoints"),
            (!second.content.draining.is_empty(), "with draining endpoints"),
            (second.content.ports.is_empty(), "without ports"),
            (second.content.ports.iter().any(|port| port.port.is_none()), "with a port of any number"),
            (second.content.address_type == AddressType::IPv6, "of IPv6"),
            (finalizers.ours, "marked"),
        ];
        for (desired, patch) in [
            (Desired::EndpointSliceExport(first.clone()), Patch::EndpointSliceExport(second.clone())),
            (Desired::EndpointSliceImport(first.clone()), Patch::EndpointSliceImport(second.clone())),
        ] {
            let kind = desired.kind();
            let object = |slice| match kind {
                Kind::EndpointSliceExport => Object::EndpointSliceExport(slice),
                _ => Object::EndpointSliceImport(slice),
            };
            let server = Server::making(desired);
            let meta_before = meta(1, Finalizers::default());
            let expected = HubSlice {
                meta: meta_before,
                spec: first.clone(),
                observed_generation: None,
                misnamed: false,
                deleted: None,
                traced: None,
            };
            assert_eq!(server.read(), object(expected));
            let server = server.patched(patch).patched(Patch::Finalizers { kind, finalizers: finalizers.clone() });
            let meta_after = meta(3, finalizers.clone());
            let expected = HubSlice {
                meta: meta_after,
                spec: second.clone(),
                observed_generation: None,
                misnamed: false,
                deleted: None,
                traced: None,
            };
            assert_eq!(server.read(), object(expected));
        }
        classes
    });
}

#[test]
fn service_imports_in_a_member() {
    let input = (a_uid(), any_text(), owners(), finalizers(), import_status());
    for_any(cases(256), LEAST, &input, |(uid, name, others, finalizers, status)| {
        let classes = [
            (others.is_empty(), "of one owner"),
            (others.len() > 1, "of several others"),
            (finalizers.ours, "marked"),
            (!finalizers.ours, "unmarked"),
            (status.clusters.is_empty(), "of nobody"),
        ];
        let controller = Controller { name, uid };
        let desired = Desired::ServiceImport { controller: Some(controller.clone()), finalizer: true };
        let server = Server::making(desired);
        let mut expected = ServiceImport {
            meta: meta(1, Finalizers { ours: true, others: Vec::new() }),
            owners: vec![controlled_by(&controller)],
            claims: Claims::default(),
            status: ImportStatus::default(),
            conditions: Vec::new(),
        };
        assert_eq!(server.read(), Object::ServiceImport(expected.clone()));
        expected.meta = meta(3, finalizers.clone());
        expected.owners = others.iter().cloned().chain([controlled_by(&controller)]).collect();
        expected.status = status.clone();
        let server = server
            .patched(Patch::ServiceImportOwners { others, controller, finalizers })
            .patched(Patch::ServiceImportStatus(status));
        assert_eq!(server.read(), Object::ServiceImport(expected));
        classes
    });
}

#[test]
fn service_imports_on_the_hub() {
    let input = (
        collection::btree_map(any_text().prop_map(MemberNamespace::from), any_text().prop_map(ClusterId::from), 0..3),
        option::of(any_text().prop_map(MemberNamespace::from)),
        finalizers(),
        (import_status(), import_status()),
        conditions(),
    );
    for_any(cases(256), LEAST, &input, |(importers, named, finalizers, statuses, conditions)| {
        let classes = [
            (importers.is_empty(), "claimed by nobody"),
            (importers.len() > 1, "claimed by several"),
            (named.is_some() && !importers.is_empty(), "with an exclusive claim"),
            (statuses.0 != statuses.1, "of another status"),
            (finalizers.ours, "marked"),
        ];
        let load_balancer = named.filter(|_| !importers.is_empty());
        let server = Server::making(Desired::ServiceImport { controller: None, finalizer: false })
            .patched(Patch::ServiceImportStatus(statuses.0))
            .patched(Patch::Claims {
                importers: BTreeMap::from([("x".into(), ClusterId::from("y"))]),
                load_balancer: Some("z".into()),
                finalizers: finalizers.clone(),
            })
            .patched(Patch::Claims {
                importers: importers.clone(),
                load_balancer: load_balancer.clone(),
                finalizers: finalizers.clone(),
            })
            .patched(Patch::ServiceImportConditions(conditions.clone()))
            .patched(Patch::ServiceImportStatus(statuses.1.clone()));
        let expected = ServiceImport {
            meta: meta(6, finalizers),
            owners: Vec::new(),
            claims: Claims { present: !importers.is_empty(), importers, load_balancer },
            status: statuses.1,
            conditions,
        };
        assert_eq!(server.read(), Object::ServiceImport(expected));
        classes
    });
}

#[test]
fn multi_cluster_services() {
    let input = (
        [(option::of(any_text()), option::of(any_text())), (option::of(any_text()), option::of(any_text()))],
        finalizers(),
        [conditions(), conditions()],
        [load_balancer(), load_balancer()],
    );
    for_any(cases(256), LEAST, &input, |(labels, finalizers, conditions, load_balancers)| {
        let classes = [
            (labels[0].1.is_some() && labels[1].1.is_none(), "that loses a label"),
            (labels[0].1.is_none() && labels[1].1.is_some(), "that gets a label"),
            (!conditions[0].is_empty() && conditions[1].is_empty(), "that loses its conditions"),
            (load_balancers[1].ingress.iter().any(|ingress| !ingress.ports.is_empty()), "with ports of an ingress"),
            (load_balancers[1].ingress.is_empty(), "without a load balancer"),
        ];
        let spec = json!({ "serviceImport": { "name": "app" }, "type": "ClusterIP" });
        let mut server = Server::holding(Kind::MultiClusterService, json!({ "metadata": {}, "spec": spec }));
        for step in 0..2 {
            let (import_label, derived_label) = labels[step].clone();
            server = server
                .patched(Patch::MultiClusterService {
                    finalizers: finalizers.clone(),
                    import_label: import_label.clone(),
                    derived_label: derived_label.clone(),
                })
                .patched(Patch::MultiClusterServiceStatus {
                    conditions: conditions[step].clone(),
                    load_balancer: load_balancers[step].clone(),
                });
            let expected = MultiClusterService {
                weights: Ok(BTreeMap::new()),
                meta: meta(if step == 0 { 3 } else { 5 }, finalizers.clone()),
                import_name: text("app"),
                consumer_type: ConsumerType::ClusterIp,
                internal_load_balancer: InternalLoadBalancer::NotRequested,
                import_label,
                derived_label,
                conditions: conditions[step].clone(),
                load_balancer: load_balancers[step].clone(),
                cluster_selectors: Ok(Vec::new()),
            };
            assert_eq!(server.read(), Object::MultiClusterService(expected));
        }
        classes
    });
}

#[test]
fn service_exports() {
    let input = (finalizers(), conditions(), any_text());
    for_any(cases(256), LEAST, &input, |(finalizers, conditions, weight)| {
        let classes = [
            (weight.is_empty(), "without a weight"),
            (conditions.is_empty(), "without conditions"),
            (!conditions.is_empty(), "with conditions"),
            (finalizers.ours, "marked"),
        ];
        let annotations = json!({ "networking.fleet.azure.com/weight": *weight, "a.example/b": "c" });
        let server = Server::holding(Kind::ServiceExport, json!({ "metadata": { "annotations": annotations } }))
            .patched(Patch::Finalizers { kind: Kind::ServiceExport, finalizers: finalizers.clone() })
            .patched(Patch::ServiceExportConditions(conditions.clone()));
        let expected = ServiceExport { meta: meta(3, finalizers), weight: Some(weight), headless: false, conditions };
        assert_eq!(server.read(), Object::ServiceExport(expected));
        classes
    });
}

#[test]
fn derived_services() {
    let input = (derived_service(), derived_service());
    for_any(cases(256), LEAST, &input, |(first, second)| {
        let classes = [
            (first.consumer_type != second.consumer_type, "of another type"),
            (first.session_affinity != second.session_affinity, "of another affinity"),
            (first.headless, "headless"),
            (!first.dual_stack && second.dual_stack, "of both families now"),
            (first.internal_load_balancer != second.internal_load_balancer, "of another load balancer"),
            (second.ports.is_empty(), "without ports"),
        ];
        let server = Server::making(Desired::Service(first.clone()));
        assert_eq!(server.read(), service_as_wanted(first.clone(), 1));
        // The agent never changes a derived Service from headless to not headless or back, and never from dual-stack to
        // single-stack. So the second state has these properties of the first.
        let second =
            DerivedService { headless: first.headless, dual_stack: first.dual_stack || second.dual_stack, ..second };
        let server = server.patched(Patch::DerivedService(second.clone()));
        assert_eq!(server.read(), service_as_wanted(second, 2));
        classes
    });
}

#[test]
fn member_agents() {
    let properties = || {
        let text = |pattern: &'static str| pattern.prop_map(Text::from);
        collection::btree_map(text("[a-d]"), text("[0-2]"), 0..4)
    };
    let input = (member_agent(), member_agent(), (a_name(), a_name()), (properties(), properties()));
    for_any(cases(256), LEAST, &input, |(first, second, leaders, properties)| {
        let (first, second) =
            (MemberAgent { properties: properties.0, ..first }, MemberAgent { properties: properties.1, ..second });
        let classes = [
            (first.cluster_uid.is_some() && second.cluster_uid.is_none(), "whose UID was not read"),
            (first.cluster_uid.is_none() && second.cluster_uid.is_some(), "that gets a UID"),
            (second.stopped.is_some(), "stopped"),
            (second.stopped.is_none(), "not stopped"),
            (second.member.features.is_empty(), "without features"),
            (second.status.announcement.features.len() > 1, "with features of the hub"),
            (second.status.slice_stream.is_some(), "that are offered a slice stream"),
            (second.status.counts.is_some(), "with counts"),
            (second.status.silent_members.is_empty(), "without silent members"),
            (first.properties.keys().any(|name| !second.properties.contains_key(name)), "that lose a property"),
            (!second.properties.is_empty(), "with properties"),
        ];
        let renewal = |agent: &MemberAgent, leader: &Text, properties| Renewal {
            announcement: agent.member.clone(),
            cluster_uid: agent.cluster_uid.clone(),
            leader: leader.clone(),
            renewed: agent.renewed.unwrap(),
            stopped: agent.stopped,
            latency: None,
            slice_stream: None,
            properties,
        };
        let set = |agent: &MemberAgent| {
            agent.properties.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect::<BTreeMap<_, _>>()
        };
        let mut changes: BTreeMap<_, _> = first.properties.keys().map(|name| (name.clone(), None)).collect();
        changes.extend(set(&second));
        let (new, changes) = (Some(set(&first)), Some(changes).filter(|_| first.properties != second.properties));
        let server = Server::making(Desired::MemberAgent(renewal(&first, &leaders.0, new)));
        let mut expected = MemberAgent {
            meta: meta(1, Finalizers::default()),
            leader: Some(leaders.0),
            status: MemberStatus::default(),
            ..first
        };
        assert_eq!(server.read(), Object::MemberAgent(expected.clone()));
        let server = server
            .patched(Patch::MemberAgent(renewal(&second, &leaders.1, changes)))
            .patched(Patch::MemberAgentStatus(second.status.clone()));
        expected = MemberAgent {
            meta: meta(3, Finalizers::default()),
            cluster_uid: second.cluster_uid.clone().or(expected.cluster_uid),
            leader: Some(leaders.1),
            ..second
        };
        assert_eq!(server.read(), Object::MemberAgent(expected));
        classes
    });
}

#[test]
fn imported_slices() {
    let input = (imported_slice(), imported_slice());
    for_any(cases(256), LEAST, &input, |(first, second)| {
        let classes = [
            (second.content.endpoints.is_empty(), "without endpoints"),
            (!second.content.draining.is_empty(), "with draining endpoints"),
            (first.content.ports != second.content.ports, "of other ports"),
            (second.content.ports.is_empty(), "without ports"),
            (second.mcs.is_some(), "of the standard API"),
            (first.mcs.is_some() && second.mcs.is_none(), "of the standard API before"),
            (second.service.is_none(), "of a headless Service"),
        ];
        let server = Server::making(Desired::EndpointSlice(first.clone()));
        assert_eq!(server.read(), slice_as_wanted(first.clone(), 1));
        let mut second = second;
        // The address type of a slice is immutable.
        second.content.address_type = first.content.address_type;
        let server = server.patched(Patch::ImportedSlice(second.clone()));
        assert_eq!(server.read(), slice_as_wanted(second, 2));
        classes
    });
}

/// No patch contains fields of other writers or of newer versions of fleetnet, so these fields survive every patch.
#[test]
fn what_is_not_ours_survives_every_patch() {
    let foreign = json!({
        "metadata": {
            "annotations": { "a.example/b": "c" },
            "labels": { "a.example/d": "e" },
            "managedFields": [{ "manager": "kubectl" }],
        },
        "spec": {
            "weight": 7,
            "type": "LoadBalancer",
            "publicIPResourceID": "/subscriptions/x",
            "ports": [],
            "serviceReference": { "kind": "Service", "apiVersion": "v1", "namespace": "work", "name": "app" },
        },
        "status": { "fromTheFuture": true },
    });
    let of = support::reference("exporter", "app", "uid-9", "233", 0, support::MADE);
    let server = Server::holding(Kind::InternalServiceExport, foreign.clone())
        .patched(Patch::InternalServiceExport {
            reference: of,
            content: ExportContent { ports: vec![support::http_80()], ..ExportContent::default() },
        })
        .patched(Patch::Finalizers {
            kind: Kind::InternalServiceExport,
            finalizers: Finalizers { ours: true, others: Vec::new() },
        })
        .patched(Patch::InternalServiceExportConditions(Vec::new()));
    for pointer in [
        "/metadata/annotations/a.example~1b",
        "/metadata/labels/a.example~1d",
        "/metadata/managedFields",
        "/spec/weight",
        "/spec/type",
        "/spec/publicIPResourceID",
        "/spec/serviceReference/kind",
        "/spec/serviceReference/apiVersion",
        "/status/fromTheFuture",
    ] {
        assert_eq!(server.object.pointer(pointer), foreign.pointer(pointer), "{pointer}");
    }
}
