//! Builders of test objects. Each builder returns the smallest valid object, and chained method calls change the
//! object.

use fleetnet_core::features::Features;
use fleetnet_core::model::{
    AddressType, Announcement, Claims, ClusterSelection, Condition, ConsumerType, Endpoint, EndpointPort,
    EndpointSlice, ExportedBy, Finalizers, HubSlice, HubSliceSpec, ImportStatus, ImportType, InternalLoadBalancer,
    InternalMemberCluster, InternalServiceExport, InternalServiceImport, IpFamily, LoadBalancerIngress,
    LoadBalancerStatus, McsExport, McsProperties, McsServiceExport, McsServiceImport, MemberAgent, MemberCluster,
    MemberStatus, MembershipState, MergedImport, MergedServiceImport, Meta, MultiClusterService, Namespace, Object,
    Owner, PortSetStamp, Reference, Service, ServiceExport, ServiceImport, ServicePort, ServiceType, SessionAffinity,
    SliceContent, Stored, TargetPort,
};
use fleetnet_core::names::{self, SuffixLength};
use fleetnet_types::{ClusterId, ConditionStatus, ObjectName, Text, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Namespace of derived Services and imported slices.
pub(crate) const SYSTEM: &str = "fleet-system";

/// Splits a text such as `work/app` into namespace and name.
pub(crate) fn named(path: &str) -> ObjectName {
    let (namespace, name) = path.split_once('/').expect("namespace/name");
    ObjectName::new(namespace, name)
}

/// Returns the full name of an object in a member's namespace in the hub.
pub(crate) fn in_hub_of(cluster: &str, name: &str) -> ObjectName {
    ObjectName::new(names::member_namespace(cluster), name)
}

pub(crate) fn seconds(seconds: i64) -> Timestamp {
    Timestamp(seconds * 1_000_000)
}

fn meta(name: ObjectName, generation: i64) -> Meta {
    Meta {
        uid: format!("uid-{}", name.name).into(),
        name,
        resource_version: 1,
        generation,
        created: seconds(1),
        deleting: false,
        finalizers: Finalizers::default(),
    }
}

/// Builder methods for objects of every kind.
pub(crate) trait Build: Stored {
    fn uid(mut self, uid: &str) -> Self {
        self.meta_mut().uid = uid.into();
        self
    }
    fn version(mut self, version: u64) -> Self {
        self.meta_mut().resource_version = version;
        self
    }
    fn generation(mut self, generation: i64) -> Self {
        self.meta_mut().generation = generation;
        self
    }
    fn created(mut self, at: Timestamp) -> Self {
        self.meta_mut().created = at;
        self
    }
    fn deleting(mut self) -> Self {
        self.meta_mut().deleting = true;
        self
    }
    /// Adds our cleanup finalizer for the object's kind.
    fn marked(mut self) -> Self {
        self.meta_mut().finalizers.ours = true;
        self
    }
    /// Adds a finalizer of another controller.
    fn with_finalizer(mut self, finalizer: &str) -> Self {
        self.meta_mut().finalizers.others.push(finalizer.into());
        self
    }
}
impl<T: Stored> Build for T {}

/// Returns a port of a Service whose pods listen on port 8080.
pub(crate) fn port(name: &str, number: i32) -> ServicePort {
    ServicePort {
        name: name.into(),
        protocol: "TCP".into(),
        app_protocol: None,
        port: number.into(),
        target_port: Some(TargetPort::Number(8080.into())),
    }
}

/// Returns a ClusterIP Service with port 80 (`http`).
pub(crate) fn service(path: &str) -> Service {
    Service {
        meta: meta(named(path), 0),
        service_type: ServiceType::ClusterIp,
        headless: false,
        ports: vec![port("http", 80)],
        session_affinity: SessionAffinity::None,
        dual_stack: false,
        families: vec![IpFamily::IPv4],
        has_selector_or_external_ips: false,
        internal_traffic_policy: Some("Cluster".into()),
        is_external_policy_local: false,
        traffic_distribution: None,
        imports: None,
        cluster_ips: Vec::new(),
        derived_from: None,
        relabelled: false,
        internal_load_balancer: false,
        load_balancer: LoadBalancerStatus::default(),
    }
}

/// Returns the derived Service of a MultiClusterService. The Service has type LoadBalancer.
pub(crate) fn derived_service(name: &str, request: &str) -> Service {
    Service {
        service_type: ServiceType::LoadBalancer,
        derived_from: Some(named(request)),
        relabelled: false,
        ..service(&format!("{SYSTEM}/{name}"))
    }
}

pub(crate) trait BuildService {
    fn ports(self, ports: &[ServicePort]) -> Self;
    fn of_type(self, service_type: ServiceType) -> Self;
    fn headless(self) -> Self;
    fn with_address(self, ip: &str) -> Self;
}

impl BuildService for Service {
    fn ports(mut self, ports: &[ServicePort]) -> Self {
        self.ports = ports.to_vec();
        self
    }
    fn of_type(mut self, service_type: ServiceType) -> Self {
        self.service_type = service_type;
        self
    }
    fn headless(mut self) -> Self {
        self.headless = true;
        self
    }
    fn with_address(mut self, ip: &str) -> Self {
        self.load_balancer = address(ip);
        self
    }
}

/// Returns the status of a load balancer with one address.
pub(crate) fn address(ip: &str) -> LoadBalancerStatus {
    let ingress = LoadBalancerIngress { ip: Some(ip.into()), ..LoadBalancerIngress::default() };
    LoadBalancerStatus { ingress: vec![ingress] }
}

/// Returns an endpoint with one address.
pub(crate) fn endpoint(address: &str) -> Endpoint {
    Endpoint { addresses: vec![address.into()], ..Endpoint::default() }
}

/// Returns the content of an IPv4 slice with port 8080 (`http`).
pub(crate) fn content(addresses: &[&str]) -> SliceContent {
    SliceContent {
        address_type: AddressType::IPv4,
        endpoints: addresses.iter().map(|address| endpoint(address)).collect(),
        draining: Vec::new(),
        ports: vec![EndpointPort {
            name: "http".into(),
            protocol: "TCP".into(),
            port: Some(8080.into()),
            app_protocol: None,
        }],
    }
}

/// Returns a source slice with one endpoint. The part of the slice's name before the last hyphen is the name of its
/// Service.
pub(crate) fn slice(path: &str) -> EndpointSlice {
    let name = named(path);
    let service = name.name.rsplit_once('-').map(|(service, _)| Text::from(service));
    EndpointSlice {
        meta: meta(name, 1),
        service,
        imported: false,
        mcs: None,
        relabelled: false,
        excess: 0,
        further_addresses: 0,
        content: content(&["10.0.0.1"]),
        observed_generation: None,
        traced: None,
    }
}

/// Returns the name of an object in the namespace of imports.
pub(crate) fn in_system(name: &str) -> ObjectName {
    ObjectName::new(SYSTEM, name)
}

/// Returns an imported slice of a derived Service.
pub(crate) fn imported_slice(name: &str, service: &str) -> EndpointSlice {
    EndpointSlice {
        service: Some(service.into()),
        imported: true,
        relabelled: false,
        observed_generation: Some(1),
        ..slice(&format!("{SYSTEM}/{name}"))
    }
}

pub(crate) trait BuildSlice {
    fn endpoints(self, addresses: &[&str]) -> Self;
}

impl BuildSlice for EndpointSlice {
    fn endpoints(mut self, addresses: &[&str]) -> Self {
        self.content = content(addresses);
        self
    }
}

/// Returns a condition whose last transition was at second 1.
pub(crate) fn condition(condition_type: &str, status: &str, reason: &str, message: &str, generation: i64) -> Condition {
    Condition {
        condition_type: condition_type.into(),
        status: ConditionStatus::named(status).expect(status),
        reason: reason.into(),
        message: message.into(),
        observed_generation: generation,
        last_transition: seconds(1),
    }
}

pub(crate) fn valid(service: &str) -> Condition {
    condition("Valid", "True", "ServiceIsValid", &format!("service {service} is valid for export"), 1)
}

pub(crate) fn pending(service: &str) -> Condition {
    let message = format!("service {service} is pending export conflict resolution");
    condition("Conflict", "Unknown", "ServicePendingConflictResolution", &message, 1)
}

pub(crate) fn no_conflict(service: &str) -> Condition {
    condition("Conflict", "False", "NoConflictFound", &format!("service {service} is exported without conflict"), 1)
}

pub(crate) fn conflict(service: &str) -> Condition {
    let message = format!("service {service} is in conflict with other exported services");
    condition("Conflict", "True", "ConflictFound", &message, 1)
}

pub(crate) fn found() -> Condition {
    condition("Valid", "True", "FoundServiceImport", "found valid service import", 1)
}

pub(crate) fn not_found() -> Condition {
    let message = "importing service; if the condition remains for a while, please verify that service has been \
                   exported or service has been exported by other multiClusterService";
    condition("Valid", "Unknown", "UnknownServiceImport", message, 1)
}

/// Returns a ServiceExport as a user creates it: without finalizer and conditions.
pub(crate) fn service_export(path: &str) -> ServiceExport {
    ServiceExport {
        meta: Meta { uid: format!("uid-export-{path}").into(), ..meta(named(path), 1) },
        weight: None,
        headless: false,
        conditions: Vec::new(),
    }
}

/// Returns a ServiceExport of the standard API.
pub(crate) fn mcs_export(path: &str) -> McsServiceExport {
    McsServiceExport {
        meta: Meta { uid: format!("uid-mcs-export-{path}").into(), ..meta(named(path), 1) },
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        cluster_selectors: Ok(Vec::new()),
        weight: None,
        conditions: Vec::new(),
    }
}

/// Returns a ServiceExport that the hub agent has accepted in conflict resolution.
pub(crate) fn accepted_export(path: &str) -> ServiceExport {
    service_export(path).marked().with_conditions(&[valid(path), no_conflict(path)])
}

pub(crate) trait BuildExport {
    fn with_conditions(self, conditions: &[Condition]) -> Self;
    fn weighing(self, weight: &str) -> Self;
}

impl BuildExport for ServiceExport {
    fn with_conditions(mut self, conditions: &[Condition]) -> Self {
        self.conditions = conditions.to_vec();
        self
    }
    fn weighing(mut self, weight: &str) -> Self {
        self.weight = Some(weight.into());
        self
    }
}

/// Returns a MultiClusterService as a user creates it. It imports the Service that has its own namespace and name.
pub(crate) fn request(path: &str) -> MultiClusterService {
    let name = named(path);
    MultiClusterService {
        weights: Ok(BTreeMap::new()),
        import_name: name.name.clone(),
        meta: Meta { uid: format!("uid-request-{path}").into(), ..meta(name, 1) },
        consumer_type: ConsumerType::LoadBalancer,
        internal_load_balancer: InternalLoadBalancer::NotRequested,
        import_label: None,
        derived_label: None,
        cluster_selectors: Ok(Vec::new()),
        conditions: Vec::new(),
        load_balancer: LoadBalancerStatus::default(),
    }
}

pub(crate) trait BuildRequest {
    fn importing(self, name: &str) -> Self;
    fn consumed_as(self, consumer_type: ConsumerType) -> Self;
    /// Adds what the agent's first write to a MultiClusterService adds: the finalizer, and the label with the import's
    /// name.
    fn taken_on(self) -> Self;
    fn deriving(self, name: &str) -> Self;
    fn with_conditions(self, conditions: &[Condition]) -> Self;
}

impl BuildRequest for MultiClusterService {
    fn importing(mut self, name: &str) -> Self {
        self.import_name = name.into();
        self
    }
    fn consumed_as(mut self, consumer_type: ConsumerType) -> Self {
        self.consumer_type = consumer_type;
        self
    }
    fn taken_on(mut self) -> Self {
        self.import_label = Some(self.import_name.clone());
        self.marked()
    }
    fn deriving(mut self, name: &str) -> Self {
        self.derived_label = Some(name.into());
        self
    }
    fn with_conditions(mut self, conditions: &[Condition]) -> Self {
        self.conditions = conditions.to_vec();
        self
    }
}

/// Returns the status of a ServiceImport with these exporters.
pub(crate) fn resolved(clusters: &[&str]) -> ImportStatus {
    ImportStatus {
        import_type: Some(ImportType::ClusterSetIp),
        ports: vec![port("http", 80)],
        session_affinity: SessionAffinity::None,
        clusters: clusters.iter().map(|cluster| ClusterId::from(*cluster)).collect(),
    }
}

/// Returns a ServiceImport without owner, claims and exporters.
pub(crate) fn service_import(path: &str) -> ServiceImport {
    ServiceImport {
        meta: meta(named(path), 1),
        owners: Vec::new(),
        claims: Claims::default(),
        status: ImportStatus::default(),
        conditions: Vec::new(),
    }
}

pub(crate) trait BuildImport {
    fn controlled_by(self, request: &MultiClusterService) -> Self;
    fn showing(self, status: ImportStatus) -> Self;
    /// Records these members as importers, and adds the finalizer.
    fn claimed_by(self, clusters: &[&str]) -> Self;
    /// Records that this member has the exclusive claim (type LoadBalancer).
    fn claimed_alone_by(self, cluster: &str) -> Self;
}

impl BuildImport for ServiceImport {
    fn controlled_by(mut self, request: &MultiClusterService) -> Self {
        self.owners.push(Owner {
            api_version: "networking.fleet.azure.com/v1alpha1".into(),
            kind: "MultiClusterService".into(),
            name: request.meta.name.name.clone(),
            uid: request.meta.uid.clone(),
            controller: true,
            block_owner_deletion: true,
        });
        self.marked()
    }
    fn showing(mut self, status: ImportStatus) -> Self {
        self.status = status;
        self
    }
    fn claimed_by(mut self, clusters: &[&str]) -> Self {
        let importers =
            clusters.iter().map(|cluster| (names::member_namespace(cluster), ClusterId::from(*cluster))).collect();
        self.claims = Claims { present: true, importers, load_balancer: None };
        self.marked()
    }
    fn claimed_alone_by(mut self, cluster: &str) -> Self {
        self.claims.load_balancer = Some(names::member_namespace(cluster));
        self
    }
}

/// Returns the reference with which an object in the hub names its source object in a member, with the source object's
/// current version and generation.
pub(crate) fn reference(cluster: &str, source: &Meta, exported_since: Option<Timestamp>) -> Reference {
    Reference {
        cluster: cluster.into(),
        source: source.name.clone(),
        uid: source.uid.clone(),
        resource_version: source.resource_version.to_string().into(),
        generation: source.generation,
        exported_since,
    }
}

/// Returns a new InternalServiceExport of a Service. Its `exportedSince` is second 5.
pub(crate) fn internal_export(cluster: &str, service: &Service) -> InternalServiceExport {
    let source = &service.meta.name;
    let at = in_hub_of(cluster, &format!("{}-{}", source.namespace, source.name));
    InternalServiceExport {
        meta: Meta { uid: format!("uid-export-of-{cluster}").into(), ..meta(at, 1) },
        reference: reference(cluster, &service.meta, Some(seconds(5))),
        ports: service.ports.clone(),
        headless: service.headless,
        session_affinity: service.session_affinity,
        mcs: None,
        weight: None,
        conditions: Vec::new(),
        stamp: None,
        precedence: Vec::new(),
    }
}

/// Returns the part of an export for the standard API. Only the standard API exports the Service.
pub(crate) fn mcs_part() -> McsExport {
    let properties = McsProperties {
        families: vec![IpFamily::IPv4],
        internal_traffic_policy: Some("Cluster".into()),
        ..McsProperties::default()
    };
    McsExport { exported_by: ExportedBy::McsApi, properties, ..McsExport::default() }
}

pub(crate) trait BuildInternalExport {
    /// Exports the Service by the standard API.
    fn mcs(self, mcs: McsExport) -> Self;
    /// Adds the hub agent's finalizer, and the annotation `ports-offered-since` with this start time of the port set.
    fn port_set_since(self, at: Timestamp) -> Self;
    fn judged(self, outcome: Condition) -> Self;
}

impl BuildInternalExport for InternalServiceExport {
    fn mcs(self, mcs: McsExport) -> Self {
        Self { mcs: Some(Arc::new(mcs)), ..self }
    }

    fn port_set_since(mut self, at: Timestamp) -> Self {
        self.stamp =
            Some(PortSetStamp { since: at, ports: names::export_fingerprint(&self.ports, self.import_type()) });
        self.marked()
    }
    fn judged(mut self, outcome: Condition) -> Self {
        self.conditions = vec![outcome];
        self
    }
}

/// Returns a new claim (InternalServiceImport) of type LoadBalancer for a member's ServiceImport.
pub(crate) fn claim(cluster: &str, import: &ServiceImport) -> InternalServiceImport {
    let source = &import.meta.name;
    let at = in_hub_of(cluster, &format!("{}-{}", source.namespace, source.name));
    InternalServiceImport {
        meta: Meta { uid: format!("uid-claim-of-{cluster}").into(), ..meta(at, 1) },
        reference: reference(cluster, &import.meta, Some(import.meta.created)),
        consumer_type: ConsumerType::LoadBalancer,
        status: ImportStatus::default(),
        selection: ClusterSelection::default(),
        selectors: Vec::new(),
    }
}

pub(crate) trait BuildClaim {
    /// Changes the name of the claim.
    fn called(self, name: &str) -> Self;
    fn east_west(self) -> Self;
    fn with_status(self, status: ImportStatus) -> Self;
}

impl BuildClaim for InternalServiceImport {
    fn called(mut self, name: &str) -> Self {
        self.meta.name.name = name.into();
        self.reference.source.name = name.into();
        self
    }
    fn east_west(mut self) -> Self {
        self.consumer_type = ConsumerType::ClusterIp;
        self
    }
    fn with_status(mut self, status: ImportStatus) -> Self {
        self.status = status;
        self
    }
}

/// Returns the EndpointSliceExport of a slice whose Service is accepted. Its `exportedSince` is second 5.
pub(crate) fn slice_export(cluster: &str, slice: &EndpointSlice) -> HubSlice {
    let source = &slice.meta.name;
    let owner = ObjectName::new(source.namespace.clone(), slice.service.clone().expect("a source slice has a Service"));
    let uid = &slice.meta.uid;
    let export_uid = format!("uid-export-{owner}");
    let name =
        names::slice_export_name(cluster, &source.namespace, &source.name, uid, &export_uid, SuffixLength::Short);
    HubSlice {
        meta: Meta { uid: format!("uid-of-export-of-{uid}").into(), ..meta(in_hub_of(cluster, &name), 1) },
        spec: HubSliceSpec {
            reference: reference(cluster, &slice.meta, Some(seconds(5))),
            owner,
            content: slice.content.clone().into(),
        },
        observed_generation: None,
        misnamed: false,
        deleted: None,
        traced: None,
    }
}

/// Returns the distributed slice that the hub agent creates for an importer from an EndpointSliceExport.
pub(crate) fn distributed_slice(importer: &str, export: &HubSlice) -> HubSlice {
    let name = &export.meta.name.name;
    let at = in_hub_of(importer, name);
    HubSlice { meta: Meta { uid: format!("uid-copy-{name}").into(), ..meta(at, 1) }, ..export.clone() }
}

pub(crate) trait BuildHubSlice {
    fn called(self, name: &str) -> Self;
    fn with_addresses(self, addresses: &[&str], generation: i64) -> Self;
}

impl BuildHubSlice for HubSlice {
    fn called(mut self, name: &str) -> Self {
        self.meta.name.name = name.into();
        self
    }
    fn with_addresses(mut self, addresses: &[&str], generation: i64) -> Self {
        self.spec.content = content(addresses).into();
        self.spec.reference.generation = generation;
        self
    }
}

pub(crate) fn namespace(name: &str) -> Namespace {
    let meta = Meta { name: ObjectName::new("", name), ..meta(named(&format!("/{name}")), 0) };
    Namespace {
        meta,
        exporters: None,
        importers: None,
        source_ranges: fleetnet_core::ranges::SourceRanges::Any,
        properties: Ok(BTreeMap::new()),
        is_importing: false,
    }
}

/// Returns the namespace `kube-system` of a cluster.
pub(crate) fn system_namespace(cluster_uid: &str) -> Object {
    Object::SystemNamespace(namespace("kube-system").meta.uid(cluster_uid))
}

/// Returns a MemberAgent: the member agent announces the features `member`, and the hub agent announces the features
/// `hub`.
pub(crate) fn member_agent(cluster: &str, member: Features, hub: Features) -> MemberAgent {
    MemberAgent {
        meta: meta(in_hub_of(cluster, cluster), 1),
        member: Announcement::new("1.2.3", member),
        cluster_uid: None,
        leader: None,
        renewed: Some(seconds(5)),
        stopped: None,
        properties: BTreeMap::new(),
        status: MemberStatus { announcement: Announcement::new("1.2.3", hub), ..MemberStatus::default() },
    }
}

/// Returns the MergedServiceImport of a Service for an importer, with this import.
pub(crate) fn merged_service_import(importer: &str, service: &str, import: &Arc<MergedImport>) -> MergedServiceImport {
    let at = in_hub_of(importer, &names::merged_import_name(&named(service)));
    MergedServiceImport {
        meta: meta(at, 1),
        service: named(service),
        import: Arc::clone(import),
        selection: ClusterSelection::default(),
    }
}

/// Returns the InternalMemberCluster of a member with a heartbeat each minute.
pub(crate) fn internal_member_cluster(cluster: &str, state: MembershipState) -> InternalMemberCluster {
    let meta = meta(in_hub_of(cluster, cluster), 3);
    InternalMemberCluster { meta, state, heartbeat_micros: 60_000_000, agents: Vec::new() }
}

/// Conversion of an object to the enum `Object`, which views store. EndpointSliceExport and EndpointSliceImport are one
/// Rust type (`HubSlice`), so for `HubSlice` the caller chooses the variant.
pub(crate) trait IntoObject {
    fn object(self) -> Object;
}

macro_rules! into_object {
    ($($kind:ident),*) => {$(
        impl IntoObject for $kind {
            fn object(self) -> Object { Object::$kind(self) }
        }
    )*};
}
into_object!(
    Service,
    EndpointSlice,
    ServiceExport,
    ServiceImport,
    MultiClusterService,
    InternalServiceExport,
    InternalServiceImport,
    Namespace,
    MemberAgent,
    MergedServiceImport,
    InternalMemberCluster,
    MemberCluster,
    McsServiceExport,
    McsServiceImport
);

pub(crate) trait BuildNamespace {
    fn exported_from_by(self, clusters: &str) -> Self;
    fn imported_from_by(self, clusters: &str) -> Self;
    fn exporting_from(self, ranges: &str) -> Self;
}

impl BuildNamespace for Namespace {
    fn exported_from_by(mut self, clusters: &str) -> Self {
        self.exporters = Some(Self::clusters(clusters));
        self
    }
    fn imported_from_by(mut self, clusters: &str) -> Self {
        self.importers = Some(Self::clusters(clusters));
        self
    }
    fn exporting_from(mut self, ranges: &str) -> Self {
        self.source_ranges = fleetnet_core::ranges::SourceRanges::of(ranges);
        self
    }
}

/// Returns the finalizers of an object. Our finalizer is included only if `ours` is true.
pub(crate) fn finalizers_of(meta: &Meta, ours: bool) -> Finalizers {
    if ours { meta.finalizers.with_ours() } else { meta.finalizers.without_ours() }
}
