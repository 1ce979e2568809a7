//! Items of a change from fleetnet to Go agents.

use super::find;
use super::item::Find::{Hub, Member};
use super::item::Item;
use crate::report::Impact::{Behaviour, Traffic};

pub(super) const ITEMS: &[Item] = &[
    Item {
        id: "weight-zero",
        impact: Traffic,
        agents: "exporting member, hub",
        effect: "Go agents export the slices of an export with weight 0. If another member exports the Service too, a Go hub agent \
                 distributes them, so the traffic returns.",
        remedy: "Delete the ServiceExport.",
        find: Member(find::weight_zero),
    },
    Item {
        id: "invalid-weight",
        impact: Traffic,
        agents: "exporting member",
        effect: "Go agents withdraw the slices of an export with an invalid weight.",
        remedy: "Set the annotation networking.fleet.azure.com/weight to an integer from 0 to 1000, or remove it.",
        find: Member(find::exports_of_invalid_weight),
    },
    Item {
        id: "headless",
        impact: Traffic,
        agents: "exporting member, hub, importing member",
        effect: "Go agents do not export and import headless Services. Importers lose the endpoints.",
        remedy: "Export a Service with a cluster IP, and import that one.",
        find: Hub(find::headless),
    },
    Item {
        id: "ipv6",
        impact: Traffic,
        agents: "exporting member, hub, importing member",
        effect: "Go agents do not export IPv6 slices. Importers lose these endpoints.",
        remedy: "Make sure that clients can use the IPv4 endpoints of the Service.",
        find: Hub(find::ipv6),
    },
    Item {
        id: "name",
        impact: Traffic,
        agents: "exporting member, importing member",
        effect: "Go agents use the name NAMESPACE-NAME in the hub, and write a second export or claim beside this one. Importers can \
                 be without endpoints for a moment. If another Service has the same joined name, Go agents undo each other's writes.",
        remedy: "Run fleetnet migrate to-go again after the Go agents have started: it then deletes this object. Give the Service \
                 another name if another one has the same joined name.",
        find: Hub(find::other_names),
    },
    Item {
        id: "cluster-ip",
        impact: Traffic,
        agents: "importing member",
        effect: "Go agents make the derived Service a load balancer, which can get a public address.",
        remedy: "Set the annotation networking.fleet.azure.com/azure-load-balancer-internal to true, or delete the MultiClusterService.",
        find: Member(find::cluster_ip),
    },
    Item {
        id: "internal-load-balancer",
        impact: Traffic,
        agents: "importing member",
        effect: "Go agents ignore the annotation service.beta.kubernetes.io/azure-load-balancer-internal of a MultiClusterService, so \
                 its load balancer becomes public.",
        remedy: "Set the annotation networking.fleet.azure.com/azure-load-balancer-internal to true, too.",
        find: Member(find::internal_by_azure),
    },
    Item {
        id: "ports",
        impact: Traffic,
        agents: "hub",
        effect: "Go agents compare ports as lists, with their order and target ports. They see a conflict here, and importers can \
                 lose the endpoints of this export.",
        remedy: "Give the Services of all exporting members the same list of ports, with the same target ports.",
        find: Hub(find::accepted_with_other_list_of_ports),
    },
    Item {
        id: "namespace-lists",
        impact: Traffic,
        agents: "hub, member",
        effect: "An annotation of the Service's namespace in the hub does not list this member. Go agents ignore the annotation, so \
                 they accept its export or claim.",
        remedy: "Delete the ServiceExport or MultiClusterService of the member.",
        find: Hub(find::not_in_namespace_lists),
    },
    Item {
        id: "standard-api",
        impact: Traffic,
        agents: "all three",
        effect: "The standard API (multicluster.x-k8s.io) exports or imports this Service. Its imports end. A Go hub agent takes an \
                 export for one of the fleet's API, so MultiClusterServices get its endpoints.",
        remedy: "Turn the standard API off before (docs/how-to/multicluster-api.md): delete its ServiceExports, and remove the label \
                 fleetnet/import from all namespaces.",
        find: Hub(find::mcs_api),
    },
    Item {
        id: "address",
        impact: Traffic,
        agents: "importing member",
        effect: "fleetnet leaves out this address, because it has another meaning in other clusters. Go agents import it, or fail on \
                 the whole slice if the API server denies it.",
        remedy: "Remove the address from the source slice.",
        find: Hub(find::forbidden_addresses),
    },
    Item {
        id: "source-ranges",
        impact: Traffic,
        agents: "importing member",
        effect: "The member agent imports only addresses in these ranges. Go agents import all addresses.",
        remedy: "Limit the traffic in the network.",
        find: Member(find::source_ranges),
    },
    Item {
        id: "silent",
        impact: Traffic,
        agents: "hub, importing member",
        effect: "Go agents do not know silent members: importers use the endpoints of this member again.",
        remedy: "Repair the member, or remove it from the fleet.",
        find: Hub(find::silent),
    },
    Item {
        id: "own-slices",
        impact: Traffic,
        agents: "exporting member",
        effect: "The member agent writes the EndpointSlices of this cluster. Go agents do not, so the slices become stale.",
        remedy: "Start the EndpointSlice controller of kube-controller-manager before the member agent stops.",
        find: Member(find::own_slices),
    },
    Item {
        id: "several-importers",
        impact: Behaviour,
        agents: "hub",
        effect: "A Go hub agent grants a Service to one importer. The present importers keep it, but no other member gets it.",
        remedy: "Nothing, if no other member will import the Service.",
        find: Hub(find::several_importers),
    },
    Item {
        id: "details",
        impact: Behaviour,
        agents: "exporting member, hub, importing member",
        effect: "Go agents carry only addresses of ready endpoints, and ports. Other fields of this object are lost.",
        remedy: "Nothing, if no client needs draining endpoints, host names, zones or session affinity.",
        find: Hub(find::details),
    },
];
