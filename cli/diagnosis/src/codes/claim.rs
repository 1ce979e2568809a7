//! Codes FN4xx: claim of the importing member in the hub.

use super::Code::*;
use super::Entry;
use fleetnet_core::reasons::Reason;

pub(super) const CODES: &[Entry] = &[
    Entry::new(FN401, "The Service is not imported", "The importing member has no MultiClusterService for the Service.")
        .ok("The Service is imported")
    .seen("no MultiClusterService that names the Service", "kubectl --context IMPORTER -n <namespace> get multiclusterservices")
        .remedy("Create a MultiClusterService in the namespace of the Service."),
    Entry::new(
        FN402,
        "The MultiClusterService names a Service that nobody exports",
        "The hub has no ServiceImport with exporters for the name in spec.serviceImport.",
    )
    .ok("The MultiClusterService names an exported Service")
    .seen("status.clusters of the ServiceImport in the hub", "kubectl --context HUB -n <namespace> get serviceimport <name> -o yaml")
    .remedy("Correct the name or the namespace, or export the Service from another cluster.")
    .reasons(&[Reason::UnknownServiceImport, Reason::NoExportedService]),
    Entry::new(
        FN403,
        "The claim is not written to the hub",
        "The MultiClusterService exists for more than 30 s, and the hub has no InternalServiceImport for it.",
    )
    .ok("The claim is written to the hub")
    .seen("no InternalServiceImport with a reference to the Service", "kubectl --context HUB -n fleet-member-<member> get internalserviceimports")
    .remedy("Read the log of the member agent in the importer, and its Events on the MultiClusterService.")
    .reasons(&[Reason::WriteDenied, Reason::WriteRefused]),
    Entry::new(
        FN404,
        "The namespace in the hub does not allow this importer",
        "The annotation networking.fleet.azure.com/importers of the namespace in the hub does not list the importing cluster. With --namespace-policy=listed of the hub agent, the annotation can also be missing.",
    )
    .ok("The namespace in the hub allows this importer")
    .seen("annotation networking.fleet.azure.com/importers of the Namespace in the hub", "kubectl --context HUB get namespace <namespace> -o yaml")
    .remedy("Add the cluster id to the annotation networking.fleet.azure.com/importers, or remove the annotation.")
    .reasons(&[Reason::ImporterNotAllowed]),
    Entry::new(
        FN405,
        "Another cluster has the exclusive claim",
        "A Service has at most one importer of type LoadBalancer (the default), and another cluster is this importer.",
    )
    .ok("No other cluster has an exclusive claim")
    .seen("annotation networking.fleet.azure.com/service-in-use-by of the ServiceImport in the hub", "kubectl --context HUB -n <namespace> get serviceimport <name> -o yaml")
    .remedy("Set spec.type of the MultiClusterService to ClusterIP, or delete the MultiClusterService of the other cluster.")
    .reasons(&[Reason::ImportHeldByAnother, Reason::LoadBalancerNotGranted]),
    Entry::new(
        FN406,
        "Another MultiClusterService of the importer has the import",
        "Two MultiClusterServices of one cluster import the same Service. Only one of them gets it.",
    )
    .ok("One MultiClusterService imports the Service")
    .seen("condition Valid of the MultiClusterService, and the owner of the ServiceImport", "kubectl --context IMPORTER -n <namespace> get multiclusterservices,serviceimports -o yaml")
    .remedy("Delete one of the two MultiClusterServices.")
    .reasons(&[Reason::UnknownServiceImport]),
    Entry::new(
        FN407,
        "The importer does not support headless Services",
        "The Service is headless, and the member agent of the importer does not announce the feature Headless.",
    )
    .ok("The importer supports the type of the Service")
    .seen("spec.features of the importer's MemberAgent", "kubectl --context HUB get memberagents -A -o wide")
    .remedy("Upgrade the member agent of the importer.")
    .reasons(&[Reason::NotUnderstood]),
    Entry::new(
        FN408,
        "The hub agent does not enforce who may export and import",
        "The hub agent runs with --namespace-policy=off, so it ignores the annotations networking.fleet.azure.com/exporters and networking.fleet.azure.com/importers.",
    )
    .ok("The hub agent enforces who may export and import")
    .seen("arguments of the hub agent", "kubectl --context HUB -n <hub-agent-namespace> get deployments -l app.kubernetes.io/part-of=fleetnet -o yaml")
    .remedy("Run the hub agent without --namespace-policy=off, or remove the annotations.")
    .reasons(&[Reason::RightsNotEnforced])
    .notice(),
    Entry::new(
        FN409,
        "The namespace of the importer does not import",
        "The importer does not have the namespace of the Service, or this namespace lacks the label fleetnet/import=true. The namespaces kube-system, kube-public, kube-node-lease and <agent-namespace> never import.",
    )
    .ok("The namespace of the importer imports")
    .seen("label fleetnet/import of the Namespace", "kubectl --context IMPORTER get namespace <namespace> --show-labels")
    .remedy("Set the label of the namespace: kubectl label namespace <namespace> fleetnet/import=true. If the namespace is missing, create it first. If it never imports, export the Service from a namespace of users."),
    Entry::new(
        FN410,
        "The importer's merged import is missing or lacks the exporter",
        "The export is merged for more than 30 s. The hub has no MergedServiceImport with this cluster for the importer.",
    )
    .ok("The importer's merged import has the exporter")
    .seen("MergedServiceImports in fleet-member-<importer>", "kubectl --context HUB -n fleet-member-<importer> get mergedserviceimports")
    .remedy("Check that the hub agent runs, is ready and leads. Read its log."),
    Entry::new(
        FN411,
        "The importer does not request the slices",
        "The namespace imports, and the member agent has not set its finalizer on the MergedServiceImport for more than 30 s.",
    )
    .ok("The importer requests the slices")
    .seen("metadata.finalizers of the MergedServiceImport", "kubectl --context HUB -n fleet-member-<importer> get mergedserviceimports -o yaml")
    .remedy("Read the log of the member agent in the importer. It needs the rights of deploy/multicluster-api.yaml, and of its role in the hub.")
    .reasons(&[Reason::WriteDenied]),
    Entry::new(
        FN412,
        "The namespace of the Service is missing or terminating in the importer",
        "A MultiClusterService is in the namespace of the Service. The importer does not have this namespace, or deletes it.",
    )
    .ok("The importer has the namespace of the Service")
    .seen("Namespace in the importer", "kubectl --context IMPORTER get namespace <namespace> -o yaml")
    .remedy("Create the namespace <namespace> in the importer. If it is terminating, remove first what the conditions of the namespace name."),
    Entry::new(
        FN413,
        "A MultiClusterService of this name imports another Service",
        "A MultiClusterService has the name of the Service, and spec.serviceImport names a Service that nobody exports.",
    )
    .ok("No MultiClusterService of this name imports another Service")
    .seen("spec.serviceImport.name of the MultiClusterService", "kubectl --context IMPORTER -n <namespace> get multiclusterservice <name> -o yaml")
    .remedy("Correct spec.serviceImport.name of the MultiClusterService."),
];
