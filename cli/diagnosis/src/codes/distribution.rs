//! Codes FN5xx: distribution of slices in the hub.

use super::Code::*;
use super::Entry;
use fleetnet_core::reasons::Reason;

pub(super) const CODES: &[Entry] = &[
    Entry::new(
        FN501,
        "An exported slice is not distributed to the importer",
        "The export is accepted and the importer requests the Service, and the hub has no EndpointSliceImport for an EndpointSliceExport.",
    )
    .ok("The exported slices are distributed to the importer")
    .seen("no EndpointSliceImport with the same source slice", "kubectl --context HUB -n fleet-member-<importer> get endpointsliceimports")
    .remedy("Check that the hub agent runs, is ready and leads, and read its log."),
    Entry::new(
        FN502,
        "The name or the source of an exported slice belongs to another member",
        "Another member exports a slice with the same name or the same source, so the hub agent distributes only the other one.",
    )
    .ok("The exported slices belong to one member")
    .seen("two EndpointSliceExports with one name or one source slice", "kubectl --context HUB get endpointsliceexports -A")
    .remedy("If one cluster joined under two ids, remove one of them. Otherwise find the client that wrote the other object.")
    .reasons(&[Reason::NameHeldByAnother, Reason::SliceHeldByAnother]),
    Entry::new(
        FN503,
        "A distributed slice is older than its export",
        "Endpoints of an EndpointSliceImport differ from those of its EndpointSliceExport for more than 10 s.",
    )
    .ok("The distributed slices are up to date")
    .seen("spec.endpoints of both objects", "kubectl --context HUB -n fleet-member-<importer> get endpointsliceimports -o yaml")
    .remedy("Read the log of the hub agent: retries, throttled requests (429), age of its watches."),
    Entry::new(
        FN504,
        "An IPv6 slice is not distributed",
        "An agent on the way does not announce the feature IPv6, so its peers do not send it IPv6 slices.",
    )
    .ok("The slices of all address families are distributed")
    .seen("spec.features and status.features of the MemberAgents", "kubectl --context HUB get memberagents -A -o wide")
    .remedy("Upgrade the agent that does not announce IPv6.")
    .reasons(&[Reason::NotUnderstood]),
    Entry::new(
        FN505,
        "The hub refuses a distributed slice",
        "A policy, a quota or a size limit in the importer's namespace of the hub refuses the EndpointSliceImport.",
    )
    .ok("The hub accepts the distributed slices")
    .seen("Event of the hub agent, or status of the ResourceQuota", "kubectl --context HUB -n fleet-member-<importer> get resourcequotas,events")
    .remedy("Remove EndpointSliceImports from the quota, or correct the policy. An object has at most 1.5 MiB.")
    .reasons(&[Reason::WriteDenied, Reason::WriteRefused]),
    Entry::new(
        FN506,
        "An object in the hub is undecodable",
        "An object in the hub is malformed or exceeds a limit. The agents continue with its last known state.",
    )
    .ok("All objects in the hub are decodable")
    .seen("the object, and fleetnet_unreadable_objects_total", "kubectl --context HUB get internalserviceexports,endpointsliceexports -A -o yaml")
    .remedy("Repair or delete the object. Find the client that wrote it: the agents never write such an object.")
    .reasons(&[Reason::ObjectUnreadable, Reason::NameRefused, Reason::MemberTooLarge, Reason::DistributionLimited, Reason::PropertiesUnknown,
        Reason::PropertiesLeftOut]),
];
