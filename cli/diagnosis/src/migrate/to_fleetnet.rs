//! Items of a change from Go agents to fleetnet.

use super::find;
use super::item::Find::{Cluster, Hub, Member};
use super::item::Item;
use crate::report::Impact::{Behaviour, Traffic};

pub(super) const ITEMS: &[Item] = &[
    Item {
        id: "weight-zero",
        impact: Traffic,
        agents: "exporting member",
        effect: "Go agents still export the slices of this export with weight 0. fleetnet withdraws them, so its traffic ends.",
        remedy: "Set a weight above 0 if the Service must get traffic.",
        find: Member(find::slices_of_weight_zero),
    },
    Item {
        id: "invalid-weight",
        impact: Traffic,
        agents: "exporting member",
        effect: "Go agents withdrew the slices of this export with an invalid weight. fleetnet exports them again.",
        remedy: "Set the annotation networking.fleet.azure.com/weight to an integer from 0 to 1000, or remove it.",
        find: Member(find::exports_of_invalid_weight),
    },
    Item {
        id: "address",
        impact: Traffic,
        agents: "importing member",
        effect: "fleetnet does not import this address, because it has another meaning in other clusters. Go agents do, if the API \
                 server of the importer takes it.",
        remedy: "Remove the address from the source slice.",
        find: Hub(find::forbidden_addresses),
    },
    Item {
        id: "ports",
        impact: Traffic,
        agents: "hub",
        effect: "Go agents see a conflict in the order of the ports or in target ports. fleetnet accepts this export, so importers \
                 get its endpoints.",
        remedy: "Delete the ServiceExport if this member must not serve the Service.",
        find: Hub(find::conflicts_of_equal_ports),
    },
    Item {
        id: "namespace-lists",
        impact: Traffic,
        agents: "hub",
        effect: "An annotation of the Service's namespace in the hub does not list this member. fleetnet does not accept its export \
                 or claim. Go agents ignore the annotation.",
        remedy: "Add the member to the annotation networking.fleet.azure.com/exporters or networking.fleet.azure.com/importers, or remove the annotation.",
        find: Hub(find::not_in_namespace_lists),
    },
    Item {
        id: "internal-load-balancer",
        impact: Traffic,
        agents: "importing member",
        effect: "Go agents ignore the annotation service.beta.kubernetes.io/azure-load-balancer-internal of a MultiClusterService, so \
                 its load balancer is public. fleetnet makes it internal, which changes its address.",
        remedy: "Remove the annotation if the load balancer must stay public.",
        find: Member(find::internal_by_azure),
    },
    Item {
        id: "malformed-internal-load-balancer",
        impact: Traffic,
        agents: "importing member",
        effect: "Go agents ignore an annotation for an internal load balancer with a value other than true and false. fleetnet neither \
                 creates nor changes this load balancer.",
        remedy: "Set the annotation to true or false, or remove it.",
        find: Member(find::internal_malformed),
    },
    Item {
        id: "ipv6",
        impact: Traffic,
        agents: "exporting member, hub, importing member",
        effect: "Go agents do not export this IPv6 slice. When all three agents are fleetnet's, importers get its endpoints.",
        remedy: "Make sure that the importing clusters can reach the IPv6 addresses of the pods.",
        find: Member(find::ipv6_sources),
    },
    Item {
        id: "session-affinity",
        impact: Behaviour,
        agents: "exporting member, hub, importing member",
        effect: "Go agents do not carry session affinity. When all three agents are fleetnet's, the derived Service has it.",
        remedy: "Nothing, if clients may stay at one endpoint.",
        find: Member(find::sticky_sources),
    },
    Item {
        id: "duplicate-slice",
        impact: Behaviour,
        agents: "exporting member",
        effect: "Go agents exported one source slice several times. fleetnet keeps one of these exports.",
        remedy: "Nothing.",
        find: Hub(find::duplicate_exports),
    },
    Item {
        id: "undecodable",
        impact: Behaviour,
        agents: "cluster of the object",
        effect: "fleetnet cannot decode this object. It leaves the object, and all that depends on it, as they are.",
        remedy: "Correct the object, or delete it.",
        find: Cluster(find::undecodable),
    },
    Item {
        id: "definitions",
        impact: Behaviour,
        agents: "cluster of the CRD",
        effect: "The CRD is missing or older than fleetnet. Features that need its new fields stay off.",
        remedy: "Apply the CRDs of deploy/crds before the agents start.",
        find: Cluster(find::old_definitions),
    },
    Item {
        id: "traffic-manager",
        impact: Behaviour,
        agents: "exporting member",
        effect: "A Go agent wrote fields for Azure Traffic Manager. fleetnet does not update them.",
        remedy: "Remove the Service from Traffic Manager, or keep the Go agent of this member.",
        find: Hub(find::traffic_manager),
    },
];
