//! Codes FN7xx: result.

use super::Code::*;
use super::Entry;

pub(super) const CODES: &[Entry] = &[
    Entry::new(
        FN701,
        "Endpoints in the importer differ, and no step explains it",
        "The imported endpoints are not those of the exporter, and every step before is in order.",
    )
    .ok("The importer serves the endpoints of the exporter")
    .seen("addresses in exporter and importer", "fleetnet explain <namespace>/<name> -o wide")
    .remedy("Run `fleetnet gather` and report a bug."),
    Entry::new(
        FN702,
        "Endpoints of a cluster that exports no more are still imported",
        "The importer has slices of a cluster that the ServiceImport in the hub does not list.",
    )
    .ok("No endpoints of former exporters are imported")
    .seen("status.clusters of the ServiceImport in the hub", "kubectl --context HUB -n <namespace> get serviceimport <name> -o yaml")
    .remedy("Start the member agent of this cluster so that it withdraws its slices. Read the steps before: the hub may be unable to list this cluster."),
    Entry::new(
        FN703,
        "Imported endpoints belong to a silent member",
        "The importer has endpoints of a member that the hub has not heard for more than 60 s. They may be outdated. Traffic goes to them only if no other member has ready endpoints (docs/concepts/failures.md).",
    )
    .ok("The imported endpoints belong to a live member")
    .seen("time of the last renewal of the exporter's MemberAgent", "kubectl --context HUB get memberagents -A")
    .remedy("Check the member agent of the exporter, and its network to the hub."),
    Entry::new(
        FN704,
        "The pod network does not connect the clusters",
        "All objects are in order, but packets do not arrive.",
    )
    .ok("The pod network connects the clusters")
    .seen("connections from a pod of the importer to addresses of the exporter", "fleetnet test connectivity <namespace>/<name>")
    .remedy("Run `fleetnet test connectivity <namespace>/<name>` to see which addresses connect. Check routes, firewalls and NetworkPolicies between the pod ranges of both clusters."),
    Entry::new(
        FN705,
        "Changes take longer than the target",
        "More than 1 % of the changes of the last minutes took longer than 750 ms from exporter to importer.",
    )
    .ok("Changes arrive in time")
    .seen("spec.latency of the importer's MemberAgent", "fleetnet latency")
    .remedy("Check the performance of the three API servers on the way, and the clocks of both members.")
    .notice(),
    Entry::new(
        FN706,
        "An API server is slow or throttles",
        "An API server answers after more than 1 s, or rejects requests with 429.",
    )
    .ok("The API servers answer in time")
    .seen("time and status of the answers to this diagnosis", "kubectl --context MEMBER get --raw /readyz?verbose")
    .remedy("Check API Priority and Fairness (429) and the size of the API server.")
    .notice(),
    Entry::new(
        FN707,
        "Pods of two clusters have the same address",
        "The pod ranges of the clusters overlap. Requests for the exporter reach a pod of another cluster, or none.",
    )
    .ok("No other cluster has pods with the same addresses")
    .seen("addresses of the EndpointSlices of both clusters", "kubectl --context EXPORTER -n <namespace> get endpointslices -l kubernetes.io/service-name=<name>")
    .remedy("Give each cluster a pod range of its own. fleetnet needs pod networks that do not overlap."),
    Entry::new(
        FN708,
        "An endpoint refuses connections",
        "The slice of the exporter lists the endpoint as ready, and nothing listens on its port. The port is wrong, or a pod of another cluster has the same address.",
    )
    .ok("The endpoints accept connections")
    .seen("connections from a pod of the importer to addresses of the exporter", "fleetnet test connectivity <namespace>/<name>")
    .remedy("Compare the targetPort of the exported Service with the port on which its pods listen. If the pods listen on it, give each cluster a pod range of its own."),
    Entry::new(
        FN709,
        "The address of the derived Service does not connect",
        "The addresses of the endpoints connect from the importer, and the address of the derived Service does not. kube-proxy does not use the imported EndpointSlices.",
    )
    .ok("The address of the derived Service connects")
    .seen("connections from a pod of the importer to the address of the Service", "fleetnet test connectivity <namespace>/<name>")
    .remedy("Check kube-proxy on the nodes of the importer, or what replaces it. It must use all EndpointSlices that have the label kubernetes.io/service-name."),
    Entry::new(
        FN710,
        "The name of the Service does not lead to it",
        "The address of the Service connects from the importer, and its name does not. The DNS server of the importer does not serve the name.",
    )
    .ok("The name leads to the Service")
    .seen("connections from a pod of the importer to the name of the Service", "fleetnet test connectivity <namespace>/<name>")
    .remedy("Check the DNS server of the importer. For names of clusterset.local, it must serve that zone (docs/how-to/multicluster-api.md)."),
    Entry::new(
        FN711,
        "Two clusters export the same address",
        "EndpointSlices of two exporters of the Service have the same address. It does not matter who wrote them. This is right for one backend that both clusters reach, such as the virtual address of a load balancer. It then gets requests for both exporters. If each cluster has a backend of its own at this address, requests for one of them reach the other.",
    )
    .ok("No two clusters export the same address")
    .seen("spec.endpoints of the EndpointSliceExports of both clusters", "kubectl --context HUB get endpointsliceexports -A -o yaml")
    .remedy("If the address is one backend that both clusters reach, export it from one cluster, or ignore this notice. Otherwise give each backend an address of its own.")
    .notice(),
];
