//! Codes FN1xx: access to the clusters, and installation.

use super::Code::*;
use super::Entry;
use fleetnet_core::reasons::Reason;

pub(super) const CODES: &[Entry] = &[
    Entry::new(
        FN101,
        "A kubeconfig context does not exist or is unreadable",
        "The kubeconfig file, or the context in it, does not exist or is malformed. No request was sent.",
    )
    .ok("The kubeconfig contexts are readable")
    .seen("the kubeconfig file", "kubectl config get-contexts")
    .remedy("Name the right file with --kubeconfig and the right context with --context or --hub-context."),
    Entry::new(
        FN102,
        "The API server is not reachable",
        "A connection to the API server fails at DNS, TCP, TLS or a proxy. A timeout is not a fault: then the state is not known.",
    )
    .ok("The API servers answer")
    .seen("URL, host and port of the API server, and the class of the error", "kubectl --context MEMBER version")
    .remedy("Check the network and the firewall on the way to host and port, the certificate authority, and the proxy."),
    Entry::new(
        FN103,
        "The API server refuses the credentials",
        "The API server answers 401 to the credentials of the kubeconfig.",
    )
    .ok("The API servers accept the credentials")
    .seen("HTTP status of the answer", "kubectl --context MEMBER auth whoami")
    .remedy("Renew the login of this context."),
    Entry::new(
        FN104,
        "This user may not read a kind",
        "The API server denies (403) the list of a kind that the diagnosis needs. The agents are not affected.",
    )
    .ok("This user may read all kinds")
    .seen("message of the denied list", "kubectl --context MEMBER auth can-i list serviceexports -A")
    .remedy("Bind this user to the ClusterRole fleetnet-viewer (deploy/viewer.yaml or the chart fleetnet-crds).")
    .not_known(),
    Entry::new(
        FN105,
        "A definition (CRD) is missing",
        "The API server does not have a kind that the agents need.",
    )
    .ok("All definitions (CRDs) exist")
    .seen("404 for the list of the kind", "kubectl --context MEMBER get crd -o name")
    .remedy("Install the definitions of this version (chart fleetnet-crds, or deploy/crds) in the cluster."),
    Entry::new(
        FN106,
        "A definition (CRD) is older than the agent",
        "The installed definition lacks a version or a field that this version of the agents uses. The server drops the field silently.",
    )
    .ok("The definitions (CRDs) are as new as the agents")
    .seen("spec.versions of the CustomResourceDefinition", "kubectl --context MEMBER get crd -o yaml")
    .remedy("Upgrade the definitions (chart fleetnet-crds, or deploy/crds) before the agents.")
    .reasons(&[Reason::NotUnderstood, Reason::ClusterIdNotChecked])
    .notice(),
    Entry::new(
        FN107,
        "No agent runs",
        "The Deployment of the agent is missing or has no running pod, so nobody carries out changes in this cluster.",
    )
    .ok("Agents run")
    .seen(
        "status of the Deployment, and waiting reasons of its pods",
        "kubectl --context MEMBER -n <agent-namespace> get deployments,pods",
    )
    .remedy("Follow the waiting reason of the pod: correct the image, create the Secret fleetnet-hub, or raise the quota. If the hub has no Deployment, the context may not be that of the hub: use --hub-context. If the agents run in another namespace than the evidence names, use --agent-namespace, or for the hub agent alone --hub-agent-namespace."),
    Entry::new(
        FN108,
        "The agent runs and is not ready",
        "The agent's container runs, but the agent does not have a complete view of its clusters.",
    )
    .ok("The agents are ready")
    .seen("condition Ready of the agent's pods", "kubectl --context MEMBER -n <agent-namespace> describe pods")
    .remedy("Read /readyz and the log lines `cannot watch` of the agent: each line names a kind, its cluster and the remedy."),
    Entry::new(
        FN109,
        "No fleetnet agent is the leader",
        "Nobody renews a Lease of the agent, or an agent of another product (the Go agent) holds it.",
    )
    .ok("A fleetnet agent is the leader")
    .seen("holderIdentity and renewTime of the Lease", "kubectl --context MEMBER -n <agent-namespace> get leases -o yaml")
    .remedy("If the Go agent holds the Lease, scale its Deployment to 0. Otherwise check that the agent can write Leases."),
    Entry::new(
        FN110,
        "The agent's role lacks a right in its own cluster",
        "The API server denies writes or watches of the agent in the agent's own cluster.",
    )
    .ok("The agents' roles have all rights in their own clusters")
    .seen(
        "SubjectAccessReview for the agent's ServiceAccount",
        "kubectl --context MEMBER auth can-i --list --as=system:serviceaccount:<agent-namespace>:member-agent",
    )
    .remedy("Apply the role of this version (the agent's chart, or deploy/member-agent.yaml and deploy/hub-agent.yaml).")
    .reasons(&[Reason::WriteDenied]),
    Entry::new(
        FN111,
        "A namespace of the hub is open to every member, and others are not",
        "The namespace has neither the annotation networking.fleet.azure.com/exporters nor the annotation networking.fleet.azure.com/importers. So every member may export its Services and import them. Another namespace of the hub has such a list.",
    )
    .ok("No namespace of the hub is open beside listed ones")
    .seen("annotations of the Namespaces in the hub", "kubectl --context HUB get namespaces -o yaml")
    .remedy("List clusters in both annotations of the namespace. To close all namespaces without lists, run the hub agent with --namespace-policy=listed.")
    .notice(),
    Entry::new(
        FN112,
        "Nobody makes the EndpointSlices of the cluster",
        "kube-controller-manager does not renew its Lease, and no member agent has taken over its EndpointSlice controller. Slices stay as they are, so changes of pods reach nobody.",
    )
    .ok("The EndpointSlices of the cluster are made")
    .seen("spec.renewTime of the Lease kube-controller-manager in kube-system", "kubectl --context MEMBER -n kube-system get lease kube-controller-manager -o yaml")
    .remedy("Repair kube-controller-manager, or let the member agent take over: set --endpointslices=auto, and apply deploy/endpointslices.yaml. It takes over after 3 minutes.")
    .notice(),
];
