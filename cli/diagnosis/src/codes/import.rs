//! Codes FN6xx: derived Service and imported slices.

use super::Code::*;
use super::Entry;
use fleetnet_core::reasons::Reason;

pub(super) const CODES: &[Entry] = &[
    Entry::new(
        FN601,
        "The derived Service is missing",
        "The hub grants the import, and the importer has no derived Service: in <agent-namespace>, or by the standard API in the namespace of the Service.",
    )
    .ok("The derived Service exists")
    .seen("label networking.fleet.azure.com/derived-service of the MultiClusterService, or Service derived-<hash>", "kubectl --context IMPORTER get services -n <agent-namespace>")
    .remedy("Read the condition Valid of the MultiClusterService, or Ready of the ServiceImport of the standard API, and the log of the member agent in the importer. The standard API needs the rights of deploy/multicluster-api.yaml.")
    .reasons(&[Reason::WriteRefused, Reason::WriteDenied]),
    Entry::new(
        FN602,
        "The name of the derived Service is in use",
        "Other Services in <agent-namespace> use all names that the agent may give to the derived Service.",
    )
    .ok("The name of the derived Service is free")
    .seen("condition Valid of the MultiClusterService", "kubectl --context IMPORTER -n <agent-namespace> get services")
    .remedy("Delete or rename the other Service.")
    .reasons(&[Reason::NameHeldByAnother]),
    Entry::new(
        FN603,
        "The derived Service is refused because of a port",
        "A port of the exported Service is invalid, so the importer creates no derived Service.",
    )
    .ok("The ports of the derived Service are accepted")
    .seen("condition Valid of the MultiClusterService", "kubectl --context IMPORTER -n <namespace> get multiclusterservices -o yaml")
    .remedy("Correct the ports of the Service in the exporter.")
    .reasons(&[Reason::PortRefused]),
    Entry::new(
        FN604,
        "The derived Service was lost and made again",
        "Somebody removed the labels of the derived Service, so the agent made another one with another address.",
    )
    .ok("The derived Service was not lost")
    .seen("Event on the MultiClusterService", "kubectl --context IMPORTER -n <namespace> describe multiclusterservices")
    .remedy("Use the address of the new derived Service, and delete the old one.")
    .reasons(&[Reason::DerivedServiceLost])
    .notice(),
    Entry::new(
        FN605,
        "An imported slice is missing",
        "The hub distributes the slice to the importer, and the importer has no EndpointSlice for it.",
    )
    .ok("The imported slices exist")
    .seen("no EndpointSlice with the name of the EndpointSliceImport: in <agent-namespace>, or by the standard API in the namespace of the Service", "kubectl --context IMPORTER -n <agent-namespace> get endpointslices")
    .remedy("Check quotas and policies of this namespace in the importer, and read the log of the member agent.")
    .reasons(&[Reason::WriteDenied, Reason::WriteRefused, Reason::NameHeldByAnother]),
    Entry::new(
        FN606,
        "An imported slice is older than the distributed slice",
        "The importer has not imported the generation that the hub distributes for more than 10 s.",
    )
    .ok("The imported slices are up to date")
    .seen("annotation networking.fleet.azure.com/last-observed-generation of the EndpointSlice", "kubectl --context IMPORTER -n <agent-namespace> get endpointslices -o yaml")
    .remedy("Read the log of the member agent in the importer: retries, throttled requests (429), age of its watches."),
    Entry::new(
        FN607,
        "Addresses of a slice are refused",
        "The importer leaves out addresses that cannot belong to another cluster, that belong to its own cluster, or that are outside of --source-ranges. The hub agent leaves out addresses outside of the source ranges of the exporter in the hub.",
    )
    .ok("The addresses of the slices are accepted")
    .seen("addresses of the EndpointSliceImport that the imported slice lacks, and Events of the importer", "kubectl --context IMPORTER -n <namespace> get events")
    .remedy("Correct the declared ranges of the exporter, in the importer or on its member namespace in the hub, or the slice in the exporter.")
    .reasons(&[Reason::AddressRefused]),
    Entry::new(
        FN608,
        "Ports of a slice are refused",
        "The importer leaves out ports of a slice whose number, name or protocol is invalid.",
    )
    .ok("The ports of the slices are accepted")
    .seen("ports of the EndpointSliceImport that the imported slice lacks, and Events of the importer", "kubectl --context IMPORTER -n <namespace> get events")
    .remedy("Correct the ports of the slice in the exporter.")
    .reasons(&[Reason::PortRefused]),
    Entry::new(
        FN609,
        "The derived Service has another IP family than all slices",
        "No imported slice has an address family of the derived Service, so the Service routes to no endpoint.",
    )
    .ok("The derived Service has an IP family of its slices")
    .seen("spec.ipFamilies of the derived Service, addressType of the slices", "kubectl --context IMPORTER -n <agent-namespace> get services,endpointslices -o wide")
    .remedy("Use a dual-stack cluster as importer, or export slices of the family of the importer.")
    .reasons(&[Reason::IPFamilyNotSupported]),
    Entry::new(
        FN610,
        "The load balancer of the derived Service has no address",
        "The derived Service is of type LoadBalancer, and no cloud controller gave it an address.",
    )
    .ok("The load balancer of the derived Service has an address")
    .seen("status.loadBalancer of the derived Service", "kubectl --context IMPORTER -n <agent-namespace> describe services")
    .remedy("Check the cloud controller of the importer, or set spec.type of the MultiClusterService to ClusterIP.")
    .notice(),
    Entry::new(
        FN611,
        "Another writer changes objects of the agents",
        "Another writer undoes the agents' writes, or took over an imported slice. The agents repair each object once a minute.",
    )
    .ok("Only the agents change their objects")
    .seen("condition Disputed, or the label managed-by of an imported slice", "kubectl --context IMPORTER -n <agent-namespace> get endpointslices --show-managed-fields -o yaml")
    .remedy("Stop the other writer, or configure it so that it does not write this object.")
    .reasons(&[Reason::WritesUndone])
    .notice(),
    Entry::new(
        FN612,
        "The import hangs in deletion",
        "The MultiClusterService, the ServiceImport or the MergedServiceImport in the hub was deleted, and a finalizer keeps it.",
    )
    .ok("The import does not hang in deletion")
    .seen("metadata.deletionTimestamp and metadata.finalizers", "kubectl --context IMPORTER -n <namespace> get multiclusterservices,serviceimports.networking -o yaml")
    .remedy("Check that the member agent runs. Repair or delete the object that the agent's log names as undecodable.")
    .reasons(&[Reason::ObjectUnreadable]),
    Entry::new(
        FN613,
        "The ServiceImport is missing or not up to date",
        "The importer requests the slices, and its ServiceImport of multicluster.x-k8s.io is missing, or lacks an address or an exporter.",
    )
    .ok("The ServiceImport is up to date")
    .seen("spec.ips and status.clusters of the ServiceImport", "kubectl --context IMPORTER -n <namespace> get serviceimports.multicluster.x-k8s.io <name> -o yaml")
    .remedy("Read the log of the member agent in the importer. It needs the rights of deploy/multicluster-api.yaml.")
    .reasons(&[Reason::WriteDenied, Reason::WriteRefused]),
    Entry::new(
        FN614,
        "Another writer made an object that the import needs",
        "The ServiceImport or the derived Service of the standard API lacks the label of the member agent. So the agent leaves it alone.",
    )
    .ok("No other writer has the names that the import needs")
    .seen("label app.kubernetes.io/managed-by of the object", "kubectl --context IMPORTER -n <namespace> get services,serviceimports.multicluster.x-k8s.io --show-labels")
    .remedy("Stop the other implementation and delete the object, or remove the label fleetnet/import of the namespace.")
    .reasons(&[Reason::NameHeldByAnother]),
    Entry::new(
        FN615,
        "The namespace has its maximum of load balancers",
        "The importer allows a number of load balancers for the MultiClusterServices of one namespace (--load-balancers-per-namespace). Others come first, so this MultiClusterService gets none.",
    )
    .ok("The namespace may have another load balancer")
    .seen("condition Valid of the MultiClusterService", "kubectl --context IMPORTER -n <namespace> get multiclusterservices -o yaml")
    .remedy("Set spec.type of the MultiClusterService to ClusterIP, delete another one of type LoadBalancer in the namespace, or raise the limit.")
    .reasons(&[Reason::TooManyLoadBalancers]),
    Entry::new(
        FN616,
        "The annotation for an internal load balancer is malformed",
        "An annotation of the MultiClusterService asks for an internal load balancer with a value other than true and false. So the importer makes no load balancer, which could be public.",
    )
    .ok("The annotation for an internal load balancer is well-formed")
    .seen("annotations and condition Valid of the MultiClusterService", "kubectl --context IMPORTER -n <namespace> get multiclusterservices -o yaml")
    .remedy("Set networking.fleet.azure.com/azure-load-balancer-internal or service.beta.kubernetes.io/azure-load-balancer-internal to true or false.")
    .reasons(&[Reason::InternalLoadBalancerInvalid, Reason::WeightsInvalid]),
    Entry::new(
        FN617,
        "The derived Service has another session affinity than an exported Service",
        "The exports of several clusters have different session affinities. The hub agent takes that of one export, and reports no conflict.",
    )
    .ok("The derived Service has the session affinity of the exported Services")
    .seen("spec.sessionAffinity of both Services", "kubectl --context IMPORTER -n <agent-namespace> get services -o yaml")
    .remedy("Set the same spec.sessionAffinity in the Services of all exporters.")
    .notice(),
    Entry::new(
        FN618,
        "The exporter has more slices or endpoints than the importer imports",
        "The importer imports only a part of the endpoints of the exporter: as many as its flags --max-imported-slices and --max-imported-endpoints allow for one Service and exporter.",
    )
    .ok("The importer imports all slices and endpoints of the exporter")
    .seen("EndpointSliceImports of the exporter, and flags of the member agent", "kubectl --context HUB -n fleet-member-<importer> get endpointsliceimports")
    .remedy("Reduce the endpoints of the Service in the exporter, or raise --max-imported-slices and --max-imported-endpoints of the importer's member agent.")
    .reasons(&[Reason::TooManyEndpoints]),
];
