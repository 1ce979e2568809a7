//! Codes FN3xx: export from the exporting member to the hub.

use super::Code::*;
use super::Entry;
use fleetnet_core::reasons::Reason;

pub(super) const CODES: &[Entry] = &[
    Entry::new(FN301, "The Service is not exported", "The exporting member has no ServiceExport with the name of the Service.")
        .ok("The Service is exported")
    .seen("no ServiceExport in the exporter", "kubectl --context EXPORTER -n <namespace> get serviceexports.networking <name>")
        .remedy("Create a ServiceExport with the name and the namespace of the Service."),
    Entry::new(FN302, "The exported Service does not exist", "There is a ServiceExport, but no Service with its name.")
        .ok("The exported Service exists")
    .seen("condition Valid of the ServiceExport", "kubectl --context EXPORTER -n <namespace> get service <name>")
        .remedy("Create the Service, or delete the ServiceExport.")
        .reasons(&[Reason::ServiceNotFound]),
    Entry::new(
        FN303,
        "The namespace of the Service is missing or terminating in the hub",
        "The hub agent writes the ServiceImport to the namespace of the Service in the hub. This namespace does not exist, or is being deleted. By the standard API, only a hub agent with --namespace-policy=strict or listed needs the namespace.",
    )
    .ok("The hub has the namespace of the Service")
    .seen("Namespace in the hub", "kubectl --context HUB get namespace <namespace>")
    .remedy("Create the namespace <namespace> in the hub. If it is terminating, remove first what the conditions of the namespace name.")
    .reasons(&[Reason::WriteDenied, Reason::ExporterNotAllowed, Reason::ImporterNotAllowed]),
    Entry::new(
        FN304,
        "The Service cannot be exported",
        "The Service is of type ExternalName, or the agents made it for an import. By the fleet's API, it can also have more than 1,000 ports, or be headless without the annotation or the hub's support.",
    )
    .ok("The Service can be exported")
    .seen("condition Valid of the ServiceExport", "kubectl --context EXPORTER -n <namespace> get serviceexports.networking <name> -o yaml")
    .remedy("A Service of type ExternalName has no endpoints that can be exported: change its type, or delete the ServiceExport. Delete the ServiceExport of a derived Service. By the fleet's API, a headless Service also needs the annotation networking.fleet.azure.com/export-headless with the value \"true\" and a hub agent that supports it, and the limit is 1,000 ports.")
    .reasons(&[Reason::ServiceIneligible, Reason::ServiceImported, Reason::TooManyPorts, Reason::NotUnderstood]),
    Entry::new(
        FN305,
        "The weight of the export is malformed",
        "The annotation networking.fleet.azure.com/weight of the ServiceExport is not an integer from 0 to 1000.",
    )
    .ok("The weight of the export is well-formed")
    .seen("condition Valid and annotation of the ServiceExport", "kubectl --context EXPORTER -n <namespace> get serviceexports.networking <name> -o yaml")
    .remedy("Set the annotation networking.fleet.azure.com/weight to an integer from 0 to 1000, or remove it.")
    .reasons(&[Reason::ServiceExportInvalidWeightAnnotation]),
    Entry::new(FN306, "The weight of the export is 0", "The export is withdrawn on purpose: weight 0 means no traffic.")
        .ok("The weight of the export is not 0")
    .seen("condition Withdrawn of the ServiceExport", "kubectl --context EXPORTER -n <namespace> get serviceexports.networking <name> -o yaml")
        .remedy("Set the annotation networking.fleet.azure.com/weight to a value above 0.")
        .reasons(&[Reason::WeightIsZero]),
    Entry::new(
        FN307,
        "The namespace in the hub does not allow this exporter",
        "The annotation networking.fleet.azure.com/exporters of the namespace in the hub does not list the exporting cluster. With --namespace-policy=listed of the hub agent, the annotation can also be missing.",
    )
    .ok("The namespace in the hub allows this exporter")
    .seen("annotation networking.fleet.azure.com/exporters of the Namespace in the hub", "kubectl --context HUB get namespace <namespace> -o yaml")
    .remedy("Add the cluster id to the annotation networking.fleet.azure.com/exporters, or remove the annotation.")
    .reasons(&[Reason::ExporterNotAllowed]),
    Entry::new(
        FN308,
        "The name of the export is in use",
        "Exports of other Services already use all names that the agent may give to the InternalServiceExport.",
    )
    .ok("The name of the export is free")
    .seen("condition Valid of the ServiceExport", "kubectl --context HUB -n fleet-member-<member> get internalserviceexports")
    .remedy("Delete one of the two exports, or export the Service under another name.")
    .reasons(&[Reason::NameHeldByAnother]),
    Entry::new(
        FN309,
        "The hub rejected the export for its content",
        "The API server of the hub rejects the InternalServiceExport. The condition of the ServiceExport has the server's message.",
    )
    .ok("The hub accepts the export")
    .seen("condition Valid of the ServiceExport", "kubectl --context EXPORTER -n <namespace> get serviceexports.networking <name> -o yaml")
    .remedy("Do what the server's message says. Typical causes are a policy, a quota or an older definition.")
    .reasons(&[Reason::WriteRefused]),
    Entry::new(
        FN310,
        "The export is valid and not written to the hub",
        "The ServiceExport is valid for more than 30 s, and the hub has no InternalServiceExport for it.",
    )
    .ok("The export is written to the hub")
    .seen("no InternalServiceExport with a reference to the Service", "kubectl --context HUB -n fleet-member-<member> get internalserviceexports")
    .remedy("Read the log of the member agent in the exporter, and its Events on the ServiceExport.")
    .reasons(&[Reason::WriteDenied]),
    Entry::new(
        FN311,
        "The hub agent has not judged the export",
        "The InternalServiceExport has no outcome of the conflict resolution for more than 30 s.",
    )
    .ok("The hub agent has judged the export")
    .seen("condition Conflict or multicluster.x-k8s.io/Conflict of the InternalServiceExport", "kubectl --context HUB -n fleet-member-<member> get internalserviceexports -o yaml")
    .remedy("Check that the hub agent runs, is ready and leads. Read its Events on the InternalServiceExport.")
    .reasons(&[Reason::ServicePendingConflictResolution]),
    Entry::new(
        FN312,
        "The export conflicts with another exporter",
        "Another cluster exports the Service with other ports, and has exported them for a longer time.",
    )
    .ok("The export has no conflict")
    .seen("condition Conflict of the InternalServiceExport", "kubectl --context HUB -n fleet-member-<member> describe internalserviceexports")
    .remedy("Export the Service with the same ports as the winner, or under another name.")
    .reasons(&[Reason::ConflictFound]),
    Entry::new(
        FN313,
        "The export hangs in deletion",
        "The ServiceExport or its InternalServiceExport was deleted, and a finalizer keeps it. Or the ServiceExport of multicluster.x-k8s.io is gone, and its InternalServiceExport remains.",
    )
    .ok("The export does not hang in deletion")
    .seen("metadata.deletionTimestamp and metadata.finalizers", "kubectl --context EXPORTER -n <namespace> get serviceexports.networking <name> -o yaml")
    .remedy("Check that the agents run. Repair or delete the object that the agent's log names as undecodable.")
    .reasons(&[Reason::ObjectUnreadable]),
    Entry::new(
        FN314,
        "A slice of the exporter is not exported",
        "The export is accepted, and the hub has no EndpointSliceExport for an EndpointSlice of the Service.",
    )
    .ok("The slices of the exporter are exported")
    .seen("no EndpointSliceExport with the UID of the EndpointSlice", "kubectl --context HUB -n fleet-member-<member> get endpointsliceexports -o yaml")
    .remedy("Check the ResourceQuota of the member's namespace in the hub, and read the log of the member agent.")
    .reasons(&[Reason::NameHeldByAnother, Reason::TooManyExports, Reason::WriteDenied, Reason::WriteRefused]),
    Entry::new(
        FN315,
        "The exported slices are older than those of the exporter",
        "Endpoints of an EndpointSliceExport differ from those of its EndpointSlice for more than 10 s.",
    )
    .ok("The exported slices are up to date")
    .seen("spec.endpoints of the EndpointSliceExport against the EndpointSlice", "kubectl --context HUB -n fleet-member-<member> get endpointsliceexports -o yaml")
    .remedy("Read the log of the member agent in the exporter: retries, throttled requests (429), age of its watches."),
    Entry::new(
        FN316,
        "The Service has no ready endpoint in the exporter",
        "The EndpointSlices of the Service have no ready endpoint, or all have the address type FQDN. Slices of this type are not carried. Importers correctly have no endpoints either.",
    )
    .ok("The Service has ready endpoints in the exporter")
    .seen("endpoints[].conditions and addressType of the EndpointSlices", "kubectl --context EXPORTER -n <namespace> get endpointslices -l kubernetes.io/service-name=<name> -o yaml")
    .remedy("Check the selector of the Service, and the readiness of its pods. Without a selector, write ready endpoints to its EndpointSlices. In place of slices of type FQDN, create slices of type IPv4 or IPv6."),
    Entry::new(
        FN317,
        "The Service has no selector and no EndpointSlice of its own",
        "Kubernetes makes no EndpointSlices for a Service without a selector, and none of the cluster's own has the label kubernetes.io/service-name with the name of the Service. fleetnet exports EndpointSlices only.",
    )
    .ok("The Service has a selector or EndpointSlices")
    .seen("spec.selector of the Service, and labels of the EndpointSlices of its namespace", "kubectl --context EXPORTER -n <namespace> get endpointslices --show-labels")
    .remedy("Create EndpointSlices for the Service, or give it a selector. If slices exist, set their label kubernetes.io/service-name to the name of the Service."),
    Entry::new(
        FN318,
        "The EndpointSlice controller of the exporter does not work",
        "Ready pods of the Service are missing in its EndpointSlices.",
    )
    .ok("The EndpointSlice controller of the exporter works")
    .seen("ready pods that no EndpointSlice contains", "kubectl --context EXPORTER -n <namespace> get pods,endpointslices -o wide")
    .remedy("Repair kube-controller-manager, or let the member agent write EndpointSlices with --endpointslices=on.")
    .reasons(&[]),
    Entry::new(
        FN319,
        "The standard API cannot export the Service",
        "The ServiceExport of multicluster.x-k8s.io is valid, and the hub does not take or does not merge the export.",
    )
    .ok("The standard API exports the Service")
    .seen("condition Ready of the ServiceExport", "kubectl --context EXPORTER -n <namespace> get serviceexports.multicluster.x-k8s.io <name> -o yaml")
    .remedy("Do what the message of the condition Ready says.")
    .reasons(&[
        Reason::TooManyPorts,
        Reason::TooManyExports,
        Reason::ExporterNotAllowed,
        Reason::WriteRefused,
        Reason::NameHeldByAnother,
        Reason::MemberLeaves,
        Reason::LeavePostponed,
        Reason::InvalidClusterSelector,
    ]),
    Entry::new(
        FN320,
        "Exports of the standard API conflict",
        "The exports of several clusters disagree. The oldest export decides each property. Clients reach a cluster only at the ports for which its export agrees.",
    )
    .ok("The exports of the standard API agree")
    .seen("condition multicluster.x-k8s.io/Conflict of the InternalServiceExport", "kubectl --context EXPORTER -n <namespace> get serviceexports.multicluster.x-k8s.io <name> -o yaml")
    .remedy("Export the Service with the same properties from all clusters. The message of the condition names them.")
    .reasons(&[Reason::ConflictFound])
    .notice(),
    Entry::new(
        FN321,
        "A port of the Service has no endpoints",
        "Endpoints are ready, and none of their EndpointSlices has this port of the Service. Kubernetes leaves out a port whose targetPort is a name that no container has.",
    )
    .ok("Each port of the Service has endpoints")
    .seen("spec.ports of the Service against ports of its EndpointSlices", "kubectl --context EXPORTER -n <namespace> get service,endpointslices -l kubernetes.io/service-name=<name> -o yaml")
    .remedy("Give a container of the pods a port with the name in targetPort, or set targetPort to a number."),
    Entry::new(
        FN322,
        "Some addresses of an endpoint are not exported",
        "The agents carry the first 8 addresses of an endpoint. An EndpointSlice has an endpoint with more.",
    )
    .ok("All addresses of the endpoints are exported")
    .seen("endpoints[].addresses of the EndpointSlice", "kubectl --context EXPORTER -n <namespace> get endpointslices -l kubernetes.io/service-name=<name> -o yaml")
    .remedy("Write the other addresses as endpoints of their own.")
    .reasons(&[Reason::TooManyAddresses])
    .notice(),
    Entry::new(
        FN323,
        "Clients do not reach the cluster at a port, because its export conflicts",
        "An older export of the Service has another port of the same name or number. The import has the port of the older export, and no client reaches this cluster at its own port.",
    )
    .ok("Clients reach the cluster at all ports that it exports")
    .seen("spec.clusters[].ports of the MergedServiceImport against spec.ports of the Service", "kubectl --context HUB -n fleet-member-<importer> get mergedserviceimports -o yaml")
    .remedy("Export the Service with the same ports from all clusters. The oldest export decides.")
    .reasons(&[Reason::ConflictFound]),
];
