//! Codes FN7xx: result.

use super::Code::*;
use super::Entry;

pub(super) const CODES: &[Entry] = &[
    Entry::new(
        FN701,
        "Endpoints in the importer differ, and no step explains it",
        "The imported endpoints are not those of the exporter, and every step before is in order.",
    )
    .seen("addresses in exporter and importer", "fleetnet explain <namespace>/<name> -o wide")
    .remedy("Run `fleetnet gather` and report a bug."),
    Entry::new(
        FN702,
        "Endpoints of a cluster that exports no more are still imported",
        "The importer has slices of a cluster that the ServiceImport in the hub does not list.",
    )
    .seen("status.clusters of the ServiceImport in the hub", "kubectl --context HUB -n <namespace> get serviceimport <name> -o yaml")
    .remedy("Start the member agent of this cluster so that it withdraws its slices, or run `fleetnet leave <member> --force`."),
    Entry::new(
        FN703,
        "Imported endpoints belong to a silent member",
        "The importer has endpoints of a member that the hub has not heard for more than 60 s. They may be outdated. Traffic goes to them only if no other member has ready endpoints (docs/silent-members.md).",
    )
    .seen("time of the last renewal of the exporter's MemberAgent", "kubectl --context HUB get memberagents -A")
    .remedy("Check the member agent of the exporter, and its network to the hub."),
    Entry::new(
        FN704,
        "The pod network does not connect the clusters",
        "All objects are in order, but packets do not arrive. fleetnet cannot see this.",
    )
    .seen("a request from a pod of the importer to an address of the exporter", "kubectl --context IMPORTER run probe --rm -it --image=<image> -- <address>")
    .remedy("Check routes and firewalls between the pod ranges of both clusters."),
    Entry::new(
        FN705,
        "Changes take longer than the target",
        "More than 1 % of the changes of the last minutes took longer than 750 ms from exporter to importer.",
    )
    .seen("spec.latency of the importer's MemberAgent", "fleetnet latency")
    .remedy("Check the performance of the three API servers on the way, and the clocks of both members.")
    .notice(),
    Entry::new(
        FN706,
        "An API server is slow or throttles",
        "An API server answers after more than 1 s, or rejects requests with 429.",
    )
    .seen("time and status of the answers to this diagnosis", "kubectl --context MEMBER get --raw /readyz?verbose")
    .remedy("Check API Priority and Fairness (429) and the size of the API server.")
    .notice(),
];
