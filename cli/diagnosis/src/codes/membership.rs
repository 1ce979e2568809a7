//! Codes FN2xx: membership of a cluster in the fleet.

use super::Code::*;
use super::Entry;
use fleetnet_core::reasons::Reason;

pub(super) const CODES: &[Entry] = &[
    Entry::new(
        FN201,
        "The member has no namespace in the hub",
        "The hub has no namespace fleet-member-<cluster id>, so the member cannot write to the hub.",
    )
    .ok("The member has its namespace in the hub")
    .seen("Namespace fleet-member-<cluster id> in the hub", "kubectl --context HUB get namespace fleet-member-<member>")
    .remedy("Run `fleetnet join <member>` and apply its manifests in the hub."),
    Entry::new(
        FN202,
        "The member's account, role or binding in the hub is missing or too small",
        "The member agent has no ServiceAccount in its namespace of the hub, or this account lacks a right that the agent needs.",
    )
    .ok("The member's account, role and binding in the hub are complete")
    .seen(
        "ServiceAccount, Role and RoleBinding in fleet-member-<cluster id>",
        "kubectl --context HUB -n fleet-member-<member> get serviceaccounts,roles,rolebindings",
    )
    .remedy("Run `fleetnet join <member> --apply`.")
    .reasons(&[Reason::WriteDenied]),
    Entry::new(
        FN203,
        "The hub refuses the member's token",
        "The token in the Secret fleetnet-hub has expired, or its ServiceAccount was deleted or created again.",
    )
    .ok("The hub accepts the member's token")
    .seen("claims of the token in the Secret fleetnet-hub", "kubectl --context MEMBER -n <agent-namespace> logs -l app.kubernetes.io/part-of=fleetnet --tail=-1")
    .remedy("Run `fleetnet join <member> --apply --context <its context>`: it writes a new token."),
    Entry::new(
        FN204,
        "The member has a wrong address or certificate authority of the hub",
        "URL or certificate authority in the Secret fleetnet-hub differ from those of the hub, and the hub does not hear the member.",
    )
    .ok("The member has the right address and certificate authority of the hub")
    .seen(
        "keys url and certificate-authority of the Secret fleetnet-hub",
        "kubectl --context MEMBER -n <agent-namespace> get secret fleetnet-hub -o jsonpath='{.data.url}'",
    )
    .remedy("Run `fleetnet join <member> --apply --context <its context>` with the right --hub-server, or correct the Secret. Then restart the member agent: it reads the URL at its start."),
    Entry::new(
        FN205,
        "The member agent never wrote to the hub",
        "The namespace of the member in the hub contains no object of the member agent.",
    )
    .ok("The member agent writes to the hub")
    .seen("no MemberAgent in fleet-member-<cluster id>", "kubectl --context HUB -n fleet-member-<member> get memberagents")
    .remedy("Check in the member that the agent runs and is ready, and that it reaches the hub."),
    Entry::new(
        FN206,
        "The member is silent",
        "The hub has not received a heartbeat of the member for more than 60 s, and the member announced no stop.",
    )
    .ok("The hub hears the member")
    .seen("time of the last renewal of the MemberAgent", "kubectl --context HUB get memberagents -A")
    .reasons(&[Reason::MemberSilent, Reason::ManyMembersSilent])
    .remedy("Check the member agent, and its network to the hub."),
    Entry::new(
        FN207,
        "The member agent is stopped",
        "The member agent announced a planned stop and has not started again.",
    )
    .ok("The member agent is not stopped")
    .seen("spec.plannedStopTime of the MemberAgent", "kubectl --context HUB get memberagents -A")
    .remedy("Start the member agent, or remove the member with `fleetnet leave <member>`."),
    Entry::new(
        FN208,
        "Two clusters use one cluster id",
        "Another cluster owns the cluster id in the hub, or an agent of a clone of the cluster renews the same MemberAgent.",
    )
    .ok("Each cluster id belongs to one cluster")
    .seen(
        "spec.clusterUid of the MemberAgent differs from the UID of kube-system, or spec.leaderIdentity from the Lease",
        "kubectl --context HUB get memberagents -A -o wide",
    )
    .remedy("Give one of the two clusters another id, or stop one of the two agents (docs/how-to/members.md).")
    .reasons(&[Reason::ClusterIdInUse, Reason::ClusterIdShared]),
    Entry::new(
        FN209,
        "One cluster joined under two cluster ids",
        "Two members have the same UID of the namespace kube-system, so both export the same slices.",
    )
    .ok("Each cluster has one cluster id")
    .seen("spec.clusterUid of two MemberAgents", "kubectl --context HUB get memberagents -A -o wide")
    .remedy("Remove the id that the cluster should not have with `fleetnet leave <member> --force`, which changes the hub only.")
    .reasons(&[Reason::SliceHeldByAnother]),
    Entry::new(
        FN210,
        "The versions of member agent and hub agent differ too much",
        "Agents work together if their versions differ by at most one minor version.",
    )
    .ok("The versions of the agents fit")
    .seen("spec.version and status.version of the MemberAgent", "kubectl --context HUB get memberagents -A")
    .remedy("Upgrade the older agent.")
    .notice(),
    Entry::new(
        FN211,
        "The hub agent has not answered the member",
        "The hub agent announces its version in the status of each MemberAgent, and this status is empty for more than 30 s.",
    )
    .ok("The hub agent answers the member")
    .seen("status of the MemberAgent", "kubectl --context HUB get memberagents -A -o yaml")
    .remedy("Check in the hub that the hub agent runs, is ready and may write the status of MemberAgents."),
    Entry::new(
        FN212,
        "The clock of the member is wrong",
        "The clock of the member differs from the clock of the hub by more than 2 s, so latency samples are wrong.",
    )
    .ok("The clock of the member is right")
    .seen("spec.renewTime of the MemberAgent against the time of this write in metadata.managedFields", "kubectl --context HUB get memberagents -A --show-managed-fields -o yaml")
    .remedy("Synchronise the clocks of the member's nodes with NTP.")
    .notice(),
    Entry::new(
        FN213,
        "The member's namespace in the hub is terminating",
        "Somebody deleted the namespace of the member in the hub, so the member leaves the fleet.",
    )
    .ok("The member's namespace in the hub stays")
    .seen("metadata.deletionTimestamp of the Namespace, and remaining finalizers", "kubectl --context HUB get namespace fleet-member-<member> -o yaml")
    .remedy("Wait until the namespace is gone. If the member is gone too, run `fleetnet leave <member> --force`."),
    Entry::new(
        FN214,
        "The standard API is not on",
        "A cluster on the way of an export of multicluster.x-k8s.io lacks a definition. Or its agent does not announce the feature MulticlusterApi.",
    )
    .ok("The standard API is on")
    .seen("definitions, and spec.features (member agent) and status.features (hub agent) of the MemberAgent", "kubectl --context HUB get memberagents -A -o yaml")
    .remedy("Install deploy/multicluster in members and start their agents with --multicluster-api. If the hub or its agent lacks it, upgrade deploy/crds, the roles and the hub agent (docs/how-to/multicluster-api.md).")
    .reasons(&[Reason::NotUnderstood]),
    Entry::new(
        FN215,
        "Two clusters have the same addresses",
        "A Node of the member has a pod range or an address that lies in a range of another cluster. So an endpoint address does not say in which of the two clusters its pod is, and clients can reach a wrong pod.",
    )
    .ok("No two clusters have the same addresses")
    .seen("spec.podCIDRs and status.addresses of Nodes", "kubectl --context MEMBER get nodes -o yaml")
    .remedy("Give the clusters pod ranges that do not overlap. If this range is only announced and not used between clusters, nothing is to do.")
    .notice(),
];
